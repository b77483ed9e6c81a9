//! Compares the table of metrics with a real run's record: every recorded number needs an entry, and no entry may be
//! superfluous.

use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use tombolo_machine::{Description, MachineConfig};
use tombolo_metrics::{find, table};
use tombolo_system::{RunRecord, RunSpec, Simulation};
use tombolo_workload::bench::{self, Mode, Request};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Collects every number in `value` by its path; list members and numbered table members appear under `*`.
fn numbers(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Number(_) => drop(found.insert(path.to_owned())),
        Value::Array(members) => members.iter().for_each(|member| numbers(&below("*"), member, found)),
        Value::Object(members) if !members.is_empty() && members.keys().all(|name| name.parse::<u32>().is_ok()) => {
            members.values().for_each(|member| numbers(&below("*"), member, found));
        }
        Value::Object(members) => members.iter().for_each(|(name, member)| numbers(&below(name), member, found)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Returns the record of a small run with every optional observation enabled, in JSON form.
fn record(
    machine: &Description<MachineConfig>,
    share: u64,
    design: &str,
    program: &str,
    given: [(&str, &str); 2],
) -> Value {
    let scale = tombolo_machine::MachineScale::new(1, share).expect("a scale");
    let machine = Arc::new(machine.check().and_then(|machine| machine.scaled(scale)).expect("a preset is sound"));
    let design = tombolo_design::design(design).and_then(|design| design.check()).expect("a preset is sound");
    let workload = tombolo_programs::find(program).expect("a workload");
    let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let request = Request::new(workload, Scale::FULL, &given, 1).expect("its parameters");
    let request = request.with_gpus(machine.topology.gpus);
    let options = RecordOptions { warp_width: machine.sm.warp_width, line: machine.line, ..RecordOptions::default() };
    let program = bench::record(workload, &request, &options, Mode::Auto).expect("it runs");
    let spec = RunSpec { machine, design, program: Arc::new(program), pages: None, threads: 1 };
    let observed = Simulation::new(&spec).boundaries().latency().run().expect("it runs").record;
    let RunRecord { sampling, .. } = tombolo_system::run_sampled(&spec, None, None).expect("it runs");
    serde_json::to_value(RunRecord { sampling, ..observed }).expect("a record is JSON")
}

/// Returns records of four runs: with counted boundaries, with migrating pages, with published pages, and with an
/// active host.
fn records() -> [Value; 4] {
    let mut cached = tombolo_machine::machine("hmg-4x4").expect("a preset");
    cached.set("memory_cache.bytes", "16MB").expect("a key");
    let apart = tombolo_machine::machine("gps-4-pcie3").expect("a preset");
    let hosted = tombolo_machine::machine("umh-4-nvlink").expect("a preset");
    let wall = [("columns", "4096"), ("rows", "12")];
    [
        record(&cached, 32, "hmg", "pathfinder", wall),
        record(&apart, 40, "unified-memory-hints", "pathfinder", wall),
        record(&apart, 40, "gps", "jacobi", [("columns", "1024"), ("rows", "66")]),
        record(&hosted, 16, "umh", "pathfinder", wall),
    ]
}

#[test]
fn the_table_names_each_number_of_a_record_and_nothing_else() {
    let mut found = BTreeSet::new();
    records().iter().for_each(|record| numbers("", record, &mut found));
    let named: BTreeSet<String> = table().iter().map(|metric| metric.path.clone()).collect();
    let missing: Vec<_> = found.difference(&named).collect();
    let stale: Vec<_> = named.difference(&found).collect();
    assert!(missing.is_empty() && stale.is_empty(), "without a name: {missing:?}; not recorded: {stale:?}");
    assert!(found.iter().all(|path| find(path).is_some_and(|metric| metric.path == *path)));
}
