//! Machines, designs and runs for tests with directed programs.
#![allow(unreachable_pub, reason = "a fixture of the tests beside it")]

pub mod eight;
pub mod ways;

use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::DirectedProgram;
use tombolo_system::{RunRecord, RunSpec, Simulation, run, run_checked};

/// A machine with settings applied: by default `hmg-4x4` with one SM per module and whole-line sectors.
pub fn machine(settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine("hmg-4x4").expect("a preset");
    let mut all = vec!["topology.sms_per_module=1", "l1.sector_bytes=128"];
    all.extend(settings);
    tombolo_design::apply(&all, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

/// A preset design with settings applied.
pub fn design(name: &str, settings: &[&str]) -> DesignConfig {
    let mut machine = tombolo_machine::machine("hmg-4x4").expect("a preset");
    let mut designs = [tombolo_design::design(name).expect("a preset")];
    tombolo_design::apply(settings, &mut machine, &mut designs).expect("settings a design has");
    let [design] = designs;
    design.check().expect("a design that fits")
}

/// Preset designs, at least one for each coherence option.
pub const DESIGNS: [&str; 8] = [
    "no-remote-caching",
    "software-flat",
    "software-hierarchical",
    "nhcc",
    "hmg",
    "ideal",
    "numa-memory-side",
    "numa-coherent",
];

/// Runs a program on one thread.
pub fn simulate(machine: &Arc<MachineConfig>, design: DesignConfig, program: Arc<DirectedProgram>) -> RunRecord {
    simulate_on(1, machine, design, program)
}

/// Runs a program on `threads` threads.
pub fn simulate_on(
    threads: usize,
    machine: &Arc<MachineConfig>,
    design: DesignConfig,
    program: Arc<DirectedProgram>,
) -> RunRecord {
    let spec = RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads };
    run(&spec).unwrap_or_else(|error| panic!("{error}"))
}

/// Memory without refresh, for tests with times in closed form.
pub const NO_REFRESH: [&str; 2] = ["dram.refresh_interval=0ns", "dram.refresh=0ns"];

/// Runs a program on `threads` threads, and tracks load latencies.
pub fn follow_on(
    threads: usize,
    machine: &Arc<MachineConfig>,
    design: DesignConfig,
    program: Arc<DirectedProgram>,
) -> RunRecord {
    let spec = RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads };
    Simulation::new(&spec).latency().run().unwrap_or_else(|error| panic!("{error}")).record
}

/// `gpus` V100s with two SMs each and 16 GB/s links, with 64 KB pages and instantaneous launches.
pub fn apart(gpus: u64, settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine("v100").expect("a preset");
    let gpus = format!("topology.gpus={gpus}");
    let mut all = vec![&gpus[..], "page_bytes=64KB", "topology.sms_per_module=2", "gpu_link.rate=16GB/s"];
    all.extend(NO_REFRESH);
    all.extend(["host.launch_latency=0ns", "host.dependent_launch_latency=0ns"]);
    all.extend(settings);
    tombolo_design::apply(&all, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

/// NUMA-GPU's four sockets with two SMs each and a host, and directories for their memories.
const HOST: &str = r#"
base = "numa-4"
[topology]
sms_per_module = 2
[cpu]
clock = "3GHz"
issue_cycles = 1
[llc]
bytes = "2MiB"
ways = 16
hit_latency = "15ns"
rate = "100GB/s"
[host_memory]
bytes = "16GiB"
rate = "38.4GB/s"
channels = 2
banks = 16
row_bytes = "8KiB"
burst_bytes = "64B"
column = "14ns"
activate = "14ns"
precharge = "14ns"
row_active = "32ns"
base_latency = "30ns"
write_queue = 64
[host_directory]
controllers = 2
lookup_latency = "0.5ns"
[host_link]
through = "fabric"
[stack]
lookup_latency = "2ns"
"#;

/// The machine with a host, with settings applied.
pub fn hosted(settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::Description::<MachineConfig>::parse("host", HOST).expect("a machine");
    let all = [&NO_REFRESH[..], settings].concat();
    tombolo_design::apply(&all, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

/// Runs a program on one thread, on two threads, and with values. Checks that all results are equal and that every load
/// returns an allowed value. Returns the run without values and the run with values.
pub fn held(machine: &Arc<MachineConfig>, design: &DesignConfig, program: &Arc<DirectedProgram>) -> [RunRecord; 2] {
    let run = |threads| simulate_on(threads, machine, design.clone(), Arc::clone(program));
    let (one, two) = (run(1), run(2));
    assert_eq!(one.digest, two.digest, "one thread and two");
    let (machine, program) = (Arc::clone(machine), Arc::clone(program) as _);
    let spec = RunSpec { machine, design: design.clone(), program, pages: None, threads: 1 };
    let checked = run_checked(&spec, None).unwrap_or_else(|error| panic!("{error}"));
    let check = checked.check.as_ref().expect("a checked run");
    assert_eq!(check.violations, 0, "{}: {:?}", checked.design, check.first);
    assert_eq!(checked.digest, one.digest, "with values and without");
    [one, checked]
}
