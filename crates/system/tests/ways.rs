//! Programs under every way to share memory that promises something: loads return what they must on one GPU, on four and on
//! sixteen.

use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::{RunSpec, run_checked};
use tombolo_types::stream::Program;
use tombolo_workload::bench::{Mode, Request, find, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Designs that promise the memory model, or what a kernel's boundary brings.
const WAYS: [(&str, &[&str]); 7] = [
    ("unified-memory", &[]),
    ("unified-memory", &["placement.read_mostly=true"]),
    ("unified-memory", &["placement.pinning=true"]),
    ("unified-memory-hints", &[]),
    ("memcpy", &[]),
    ("memcpy", &["placement.overlap=true"]),
    ("memcpy-needed", &[]),
];

/// Programs of halos, of scattered reads, of a reduction, and of one that all write, at sizes of a second.
const PROGRAMS: [(&str, &[(&str, &str)]); 4] = [
    ("pathfinder", &[("columns", "2048"), ("rows", "9"), ("pyramid", "2")]),
    ("stencil2d", &[("rows", "64"), ("columns", "64"), ("iterations", "2")]),
    ("spmv", &[("rows", "512")]),
    ("floydwarshall", &[("nodes", "48")]),
];

/// So many GPUs of one SM each, with small pages.
fn machine(gpus: u32) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine("gps-4-pcie3").expect("a preset");
    let gpus = format!("topology.gpus={gpus}");
    let settings = [&gpus[..], "topology.sms_per_module=2", "page_bytes=4KB"];
    tombolo_design::apply(&settings, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

#[test]
fn programs_find_what_they_must_on_one_gpu_on_four_and_on_sixteen() {
    for (name, given) in PROGRAMS {
        let workload = find(name).expect("a workload");
        let given: Vec<_> = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let request = Request::new(workload, Scale::FULL, &given, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
        let program = record(workload, &request, &RecordOptions::default(), Mode::Auto).expect("it runs");
        let program: Arc<dyn Program> = Arc::new(program);
        for gpus in [1, 4, 16] {
            let machine = machine(gpus);
            for (way, settings) in WAYS {
                let mut design = tombolo_design::design(way).expect("a preset");
                settings.iter().for_each(|setting| {
                    let (key, value) = setting.split_once('=').expect("a key and a value");
                    design.set(key, value).expect("a key");
                });
                let design = design.check().expect("a design that fits");
                let (machine, program) = (Arc::clone(&machine), Arc::clone(&program));
                let spec = RunSpec { machine, design, program, pages: None, threads: 2 };
                let ran = run_checked(&spec, None).unwrap_or_else(|error| panic!("{name} under {way}: {error}"));
                let check = ran.check.expect("a checked run says what it found");
                assert!(check.loads > 100, "{name} under {way} on {gpus}: {} loads", check.loads);
                assert_eq!(check.first, [], "{name} under {way} {settings:?} on {gpus} GPUs");
            }
        }
    }
}
