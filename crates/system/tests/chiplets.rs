//! The machines of CPElide (MICRO 2024): the latencies of its Table I by pointer chases, and what boundaries cost.

mod common;

use common::design;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{Cta, Directed};
use tombolo_system::{RunRecord, RunSpec, run};

fn machine(name: &str, settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine(name).expect("a preset");
    tombolo_design::apply(settings, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

/// Four CTAs, one a chiplet of four; that of chiplet `active` chases `lines` as many times as told.
fn chase(active: usize, lines: u64, passes: u64) -> Vec<Cta> {
    let mut ctas = vec![Cta::new(); 4];
    ctas[active] = Cta::new().warp(|warp| {
        (0..lines * passes).for_each(|step| _ = warp.read([step % lines]));
    });
    ctas
}

fn simulate(machine: &Arc<MachineConfig>, design_name: &str, kernels: Vec<Vec<Cta>>) -> RunRecord {
    let design = design(design_name, &[]);
    let program = Directed::of_lines(machine.line, kernels);
    let spec = RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads: 1 };
    run(&spec).unwrap_or_else(|error| panic!("{error}"))
}

/// Lines of a ring: sixteen times an L1.
const RING: u64 = 4096;

/// An L2 that holds none of the ring.
const SMALL_L2: &str = "l2.bytes=32KB";

/// Cycles from load to load of a ring homed on chiplet 0, chased from `chiplet`: a third pass, beside two.
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

#[test]
fn flits_are_counted_between_each_pair_of_levels() {
    // A read of a line: a request of one flit, an answer of five (64 bytes and 8, in flits of 16).
    let flits = |kernels| simulate(&machine("chiplet-4", &[]), "numa-memory-side", kernels).traffic_flits;
    let own = flits(vec![chase(0, 1, 1)]).expect("there is an L3");
    assert_eq!((own.l1_l2, own.l2_l3, own.remote), (6, 6, 0));
    let both = flits(vec![chase(0, 1, 1), chase(1, 1, 1)]).expect("there is an L3");
    assert_eq!((both.l1_l2, both.l2_l3, both.remote), (12, 6, 6), "the second read finds the line in its home's L2");
}

/// Seconds of a kernel that writes a line, under software coherence with an L2 that writes back.
fn kernel_s(settings: &[&str]) -> f64 {
    let machine = machine("chiplet-4", settings);
    let write = vec![Cta::new().warp(|warp| _ = warp.write([0]))];
    let design = design("software-flat", &["design.l2_write=back"]);
    let program = Directed::of_lines(machine.line, vec![write]);
    let record = run(&RunSpec { machine, design, program, pages: None, threads: 1 }).expect("it runs");
    record.kernels[0].end_s - record.kernels[0].start_s
}

#[test]
fn a_walk_of_the_l2_delays_the_release_that_needs_it() {
    // A slice has 512 KB: 8192 lines. At one a cycle, 4.5 us.
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
    // The end of the kernel and the acknowledgment of its release come back; the phase of the release goes out.
    for (more, what) in [(times("150ns", "200ns") - base, "unicast"), (times("100ns", "250ns") - base, "broadcast")] {
        let trips = more / 50e-9;
        assert!(
            (trips - trips.round()).abs() < 1e-3 && (1.0..=3.0).contains(&trips.round()),
            "{trips} trips of {what}"
        );
    }
}
