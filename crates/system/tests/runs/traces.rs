//! A native trace in the format's first version replays with the digest from its recording.

use crate::common::{design, machine};
use std::path::Path;
use std::sync::Arc;
use tombolo_programs::find;
use tombolo_system::{RunSpec, run};
use tombolo_types::stream::Program;
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;
use tombolo_workload::trace;

#[test]
fn a_trace_that_names_no_arrays_runs_as_its_recording_does() {
    // The file contains no information about arithmetic chains.
    let latencies = ["fp32", "int", "fp64", "special", "tensor"].map(|class| format!("sm.{class}_latency_cycles=1"));
    let machine = machine(&latencies.each_ref().map(String::as_str));
    let (file, given) = ("stencil2d-version-1.tombolo", [("columns", "128"), ("rows", "40"), ("iterations", "2")]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workload/tests/data/native").join(file);
    let read: Arc<dyn Program> = Arc::from(trace::open(&path, machine.line, machine.sm.warp_width).expect("a trace"));
    let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let workload = find("stencil2d").expect("a workload that ships");
    let request = Request::new(workload, Scale::FULL, &given, 1).expect("its parameters");
    let recording = record(workload, &request, &RecordOptions::default(), Mode::Auto).expect("it runs");
    let spec = |program| RunSpec {
        machine: Arc::clone(&machine),
        design: design("hmg", &[]),
        program,
        pages: None,
        threads: 1,
    };
    let digest = |program| run(&spec(program)).unwrap_or_else(|error| panic!("{error}")).digest;
    assert_eq!(digest(read), digest(Arc::new(recording)));
}
