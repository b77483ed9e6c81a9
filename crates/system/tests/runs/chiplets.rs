//! The machines from CPElide (MICRO 2024): latencies from its Table I measured by pointer chases, and boundary costs.

use crate::common::design;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::energy::Energy;
use tombolo_system::{RunRecord, RunSpec, run};

fn machine(name: &str, settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine(name).expect("a preset");
    tombolo_design::apply(settings, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

/// Four CTAs, one per chiplet; the CTA on chiplet `active` chases through `lines`, `passes` times.
fn chase(active: usize, lines: u64, passes: u64) -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 4];
    ctas[active] = CtaBuilder::new().warp(|warp| {
        (0..lines * passes).for_each(|step| _ = warp.read([step % lines]));
    });
    ctas
}

fn simulate(machine: &Arc<MachineConfig>, design_name: &str, kernels: Vec<Vec<CtaBuilder>>) -> RunRecord {
    let design = design(design_name, &[]);
    let program = DirectedProgram::of_lines(machine.line, kernels);
    let spec = RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads: 1 };
    run(&spec).unwrap_or_else(|error| panic!("{error}"))
}

/// Lines in a ring: sixteen times an L1.
const RING: u64 = 4096;

/// An L2 too small to hold any line from the ring until its next use.
const SMALL_L2: &str = "l2.bytes=32KB";

/// Cycles per dependent load in a ring homed on chiplet 0, chased from `chiplet`: the cost of a third pass compared
/// with two.
fn cycles(name: &str, settings: &[&str], chiplet: usize) -> f64 {
    let machine = machine(name, settings);
    let [two, three] = [2, 3].map(|passes| {
        let kernels = vec![chase(0, RING, 1), chase(chiplet, RING, passes)];
        simulate(&machine, "numa-memory-side", kernels).cycles
    });
    (three - two) as f64 / RING as f64
}

#[track_caller]
fn near(found: f64, stated: f64) {
    assert!((found - stated).abs() <= 1.0, "{found} cycles, stated are {stated}");
}

// Source of the numbers: CPElide, Table I.
#[test]
fn a_load_from_the_own_l2_takes_269_cycles() {
    near(cycles("chiplet-4", &[], 0), 269.0);
    near(cycles("chiplet-7", &[], 0), 269.0);
    near(cycles("monolithic-4", &[], 0), 269.0);
}

#[test]
fn a_load_from_another_chiplets_l2_takes_390_cycles() {
    near(cycles("chiplet-4", &[], 1), 390.0);
    near(cycles("chiplet-4", &[], 3), 390.0);
}

#[test]
fn a_load_from_the_l3_takes_330_cycles_and_from_a_remote_one_451() {
    near(cycles("chiplet-4", &[SMALL_L2], 0), 330.0);
    near(cycles("monolithic-4", &["l2.bytes=128KB"], 0), 330.0);
    near(cycles("chiplet-4", &[SMALL_L2], 1), 451.0);
}

/// Four CTAs, one per chiplet; only the first, `first`, does any work.
fn on_the_first(first: CtaBuilder) -> Vec<Vec<CtaBuilder>> {
    vec![std::iter::once(first).chain(std::iter::repeat_with(CtaBuilder::new)).take(4).collect()]
}

/// A line written on its home.
fn write() -> Vec<Vec<CtaBuilder>> {
    on_the_first(CtaBuilder::new().warp(|warp| _ = warp.write([0])))
}

fn flits(design: &str, kernels: Vec<Vec<CtaBuilder>>) -> (u64, u64, u64) {
    let flits = simulate(&machine("chiplet-4", &[]), design, kernels).traffic_flits.expect("there is an L3");
    (flits.l1_l2, flits.l2_l3, flits.remote)
}

#[test]
fn flits_are_counted_between_each_pair_of_levels() {
    // A line read: a request with one flit, a reply with five (64 bytes and 8, in 16-byte flits).
    assert_eq!(flits("numa-memory-side", vec![chase(0, 1, 1)]), (6, 6, 0));
    let both = vec![chase(0, 1, 1), chase(1, 1, 1)];
    assert_eq!(flits("numa-memory-side", both), (12, 6, 6), "the second read finds the line in its home's L2");
}

#[test]
fn a_written_line_is_five_flits_to_the_l2_and_as_many_on_where_a_boundary_flushes_it() {
    assert_eq!(flits("numa-memory-side", write()), (5, 0, 0), "an L2 beside its memory keeps it");
    assert_eq!(flits("viper", write()), (5, 5, 0), "the end of the kernel flushes it to the L3");
}

/// Energy for a program on the machine with `settings`.
fn energy(settings: &[&str], design: &str, kernels: Vec<Vec<CtaBuilder>>) -> Energy {
    simulate(&machine("chiplet-4", settings), design, kernels).energy_pj
}

/// A line read from memory: 512 bits, and 128-bit flits at 1.21 pJ per bit. An instruction costs an eighth fetch.
const READ: Energy = Energy {
    l1i: 10.0,
    l1: 80.0,
    scratchpad: 0.0,
    l2: 800.0,
    l3: 800.0,
    crossbar: 12.0 * 154.88,
    dram: 2007.04,
    module_links: 0.0,
    gpu_links: 0.0,
};

#[test]
fn a_read_of_a_line_is_charged_one_access_of_each_level() {
    assert_eq!(energy(&[], "numa-memory-side", vec![chase(0, 1, 1)]), READ);
    let hit = energy(&[], "numa-memory-side", vec![chase(0, 1, 2)]);
    assert_eq!(hit, Energy { l1i: 20.0, l1: 160.0, ..READ }, "the second finds it in the L1");
}

#[test]
fn a_read_of_another_chiplets_l2_is_charged_its_crossing() {
    let both = energy(&[], "numa-memory-side", vec![chase(0, 1, 1), chase(1, 1, 1)]);
    // Six flits to and from the other chiplet, at 0.54 pJ per bit, and six more between L1 and L2. The second read is
    // looked up in its own L2 and in its home's L2.
    let (l2, crossbar, module_links) = (2400.0, 18.0 * 154.88, 414.72);
    assert_eq!(both, Energy { l1i: 20.0, l1: 160.0, l2, crossbar, module_links, ..READ });
}

#[test]
fn a_request_past_an_l2_is_not_charged_its_lookup() {
    let record = simulate(&machine("chiplet-4", &[]), "viper", vec![chase(0, 1, 1), chase(1, 1, 1)]);
    assert_eq!(record.coherence["passed"], 1, "the home's L2");
    assert_eq!(record.l2.accesses - record.coherence["passed"], 2, "the first read's and the second's own L2");
    assert_eq!((record.energy_pj.l2, record.energy_pj.l3), (1600.0, 1600.0));
}

#[test]
fn a_written_line_is_charged_an_access_of_l1_and_l2_and_flushed_one_of_the_l3() {
    let written = Energy { l3: 0.0, crossbar: 5.0 * 154.88, dram: 0.0, ..READ };
    assert_eq!(energy(&[], "numa-memory-side", write()), written);
    let flushed = Energy { l3: 800.0, crossbar: 10.0 * 154.88, ..written };
    assert_eq!(energy(&[], "viper", write()), flushed, "the L3 keeps it, and DRAM sees nothing");
}

#[test]
fn fills_and_write_backs_of_an_l2_are_charged_where_the_machine_says_so() {
    let settings = ["energy.l2_fill_per_bit=1pJ"];
    assert_eq!(energy(&settings, "numa-memory-side", vec![chase(0, 1, 1)]).l2, 800.0 + 512.0);
    assert_eq!(energy(&settings, "viper", write()).l2, 800.0 + 512.0);
    assert_eq!(energy(&settings, "numa-memory-side", write()).l2, 800.0);
}

#[test]
fn the_scratchpad_is_charged_by_the_pass() {
    let passes = on_the_first(CtaBuilder::new().warp(|warp| _ = warp.scratchpad(3)));
    let energy = energy(&[], "viper", passes);
    assert_eq!(energy, Energy { l1i: 10.0, scratchpad: 480.0, ..Energy::default() });
}

/// Seconds for a kernel that writes a line, under software coherence with a write-back L2.
fn kernel_s(settings: &[&str]) -> f64 {
    let machine = machine("chiplet-4", settings);
    let design = design("software-flat", &["design.l2_write=back"]);
    let program = DirectedProgram::of_lines(machine.line, write());
    let record = run(&RunSpec { machine, design, program, pages: None, threads: 1 }).expect("it runs");
    record.kernels[0].end_s - record.kernels[0].start_s
}

#[test]
fn a_walk_of_the_l2_delays_the_release_that_needs_it() {
    // A slice has 512 KB: 8192 lines. At one line per cycle, 4.5 us.
    let walk = 8192.0 / 1.801e9;
    let more = kernel_s(&["l2.walk_rate=64B/cycle"]) - kernel_s(&[]);
    assert!(more >= 0.9 * walk, "{more} s more, of which a walk takes {walk} s");
}

#[test]
fn a_message_to_all_chiplets_takes_a_broadcast_and_one_to_the_processor_a_unicast() {
    let times = |unicast: &str, broadcast: &str| {
        let settings = [format!("host.unicast_latency={unicast}"), format!("host.broadcast_latency={broadcast}")];
        kernel_s(&settings.each_ref().map(String::as_str))
    };
    let base = times("100ns", "200ns");
    // Messages towards the processor: the kernel's end and the release's acknowledgment. Message towards the chiplets:
    // the release's phase.
    for (more, what) in [(times("150ns", "200ns") - base, "unicast"), (times("100ns", "250ns") - base, "broadcast")] {
        let trips = more / 50e-9;
        assert!(
            (trips - trips.round()).abs() < 1e-3 && (1.0..=3.0).contains(&trips.round()),
            "{trips} trips of {what}"
        );
    }
}
