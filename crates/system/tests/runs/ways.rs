//! Programs under every sharing policy that makes a promise: loads return allowed values on one GPU, on four and on
//! sixteen.

use crate::common::ways::{SHARING_POLICIES, assert_right};
use std::sync::Arc;
use tombolo_programs::find;
use tombolo_types::stream::Program;
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Programs with halos, with scattered reads, with a reduction, and with one array that all modules write; each size
/// runs in about a second.
const PROGRAMS: [(&str, &[(&str, &str)]); 4] = [
    ("pathfinder", &[("columns", "2048"), ("rows", "9"), ("pyramid", "2")]),
    ("stencil2d", &[("rows", "64"), ("columns", "64"), ("iterations", "2")]),
    ("spmv", &[("rows", "512")]),
    ("floydwarshall", &[("nodes", "48")]),
];

#[test]
fn programs_find_what_they_must_on_one_gpu_on_four_and_on_sixteen() {
    for (name, given) in PROGRAMS {
        let workload = find(name).expect("a workload");
        let given: Vec<_> = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let request = Request::new(workload, Scale::FULL, &given, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
        let program = record(workload, &request, &RecordOptions::default(), Mode::Auto).expect("it runs");
        let program: Arc<dyn Program> = Arc::new(program);
        for gpus in [1, 4, 16] {
            SHARING_POLICIES.iter().for_each(|way| assert_right(name, &program, gpus, *way));
        }
    }
}
