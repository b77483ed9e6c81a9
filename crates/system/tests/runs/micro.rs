//! Small traces with one warp or a few warps on a V100 description; their cycles are known from hardware or from its
//! description. Clock and settings match Accel-Sim's Quadro GV100: no copies, no translation, no links.

use crate::common::design;
use std::path::Path;
use std::sync::Arc;
use tombolo_system::{RunRecord, RunSpec, run};
use tombolo_types::stream::Program;
use tombolo_workload::trace;

const HZ: f64 = 1.132e9;

fn traced(name: &str, settings: &[&str]) -> RunRecord {
    let mut machine = tombolo_machine::machine("v100").expect("a preset");
    let bare = [
        "sm.clock=1.132GHz",
        "host.copy_rate=infinite",
        "host.copy_latency=0ns",
        "tlb.l2_latency=0ns",
        "tlb.walk_latency=0ns",
        "gpu_link.latency=0ns",
        "module_link.latency=0ns",
    ];
    tombolo_design::apply(&[&bare[..], settings].concat(), &mut machine, &mut []).expect("settings a machine has");
    let machine = Arc::new(machine.check().expect("a machine that fits"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/micro").join(name);
    let program: Arc<dyn Program> =
        Arc::from(trace::open(&path, machine.line, machine.sm.warp_width).expect("a trace"));
    run(&RunSpec { machine, design: design("v100", &[]), program, pages: None, threads: 1 }).expect("it runs")
}

/// Cycles in a kernel from its first CTA's start to its last CTA's end, excluding the command processor.
fn cycles(name: &str) -> f64 {
    traced(name, &[]).gpus[0].busy_s * HZ
}

#[track_caller]
fn within(found: f64, least: f64, most: f64) {
    assert!((least..=most).contains(&found), "{found:.1}, not {least:.1} to {most:.1}");
}

#[test]
fn a_load_from_memory_takes_what_it_took_on_hardware() {
    // Jia et al. 2018: 375 cycles at 1.38 GHz.
    within(cycles("load1"), 340.0, 380.0);
    within(cycles("sect1warp"), 340.0, 380.0);
}

#[test]
fn four_warps_that_load_four_sectors_of_a_line_take_as_long_as_one() {
    let one = cycles("sect1warp");
    within(cycles("sect4warps"), 0.9 * one, 1.1 * one);
}

#[test]
fn four_loads_of_a_warp_to_four_sectors_of_each_line_take_little_longer_than_one() {
    let one = cycles("load1");
    within(cycles("aos_1warp"), one, 1.3 * one);
}

#[test]
fn random_loads_that_hit_the_l1_look_up_four_lines_a_cycle() {
    // Sixteen warps with 32 loads each, 32 random words per load: 8 cycles for lookups, plus conflicts in banks with
    // several words.
    within(cycles("rndL1_x16w") / 512.0, 8.0, 14.0);
}

#[test]
fn an_empty_kernel_takes_what_the_command_processor_says() {
    // To the single module, back, and one release phase; an additional cycle for dispatch.
    for ns in [36.0, 500.0] {
        let took = |links: &[&str]| {
            let latency = format!("host.command_latency={ns}ns");
            let kernel = traced("exit1", &[&[&latency[..]], links].concat()).kernels[0].clone();
            (kernel.end_s - kernel.start_s) * HZ
        };
        let trips = 3.0 * ns * 1e-9 * HZ;
        within(took(&[]), trips, trips + 2.0);
        let far = ["gpu_link.latency=50us", "module_link.latency=50us"];
        assert_eq!(took(&far), took(&[]), "no link is part of it");
    }
    within(cycles("exit1"), 0.0, 2.0);
}
