//! Dependent arithmetic in closed form, on a single SM with a 1 GHz clock: a cycle is a nanosecond. Single precision
//! takes two cycles to issue and four until its result; four sub-cores share the warps.

use crate::common::{self, design, simulate};
use std::path::Path;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::{RunRecord, RunSpec, run};
use tombolo_types::Order;
use tombolo_types::stream::ComputeClass::{Fp32, Fp64, Special};
use tombolo_workload::trace;

fn machine(settings: &[&str]) -> Arc<MachineConfig> {
    common::machine(&[&["sm.clock=1GHz", "topology.gpus=1", "topology.modules_per_gpu=1"], settings].concat())
}

fn on_one_sm(settings: &[&str], ctas: Vec<CtaBuilder>) -> RunRecord {
    simulate(&machine(settings), design("hmg", &[]), DirectedProgram::new(vec![ctas]))
}

/// Additional cycles for `ctas` compared with CTAs that end at once.
fn cycles(ctas: impl Fn() -> Vec<CtaBuilder>) -> u64 {
    let lasts = |ctas| {
        let record: RunRecord = on_one_sm(&[], ctas);
        record.kernels[0].end_s - record.kernels[0].start_s
    };
    let empty = ctas().iter().map(|_| CtaBuilder::new().warp(|_| {})).collect();
    ((lasts(ctas()) - lasts(empty)) * 1e9).round() as u64
}

fn warps(count: usize, write: impl Fn(&mut WarpBuilder<'_>) + Copy) -> impl Fn() -> Vec<CtaBuilder> {
    move || vec![(0..count).fold(CtaBuilder::new(), |cta, _| cta.warp(write))]
}

#[test]
fn a_chain_takes_a_latency_an_instruction() {
    assert_eq!(cycles(warps(1, |warp| _ = warp.chains(Fp32, 100, 1))), 400);
    assert_eq!(cycles(warps(1, |warp| _ = warp.chains(Fp64, 100, 1))), 800);
    assert_eq!(cycles(warps(1, |warp| _ = warp.chains(Special, 100, 1))), 1400);
}

#[test]
fn warps_fill_the_latency_of_each_others_chains() {
    assert_eq!(cycles(warps(8, |warp| _ = warp.chains(Fp32, 100, 1))), 400, "two warps of each sub-core");
    assert_eq!(cycles(warps(16, |warp| _ = warp.chains(Fp32, 100, 1))), 800, "four: issue bounds them");
    assert_eq!(cycles(warps(16, |warp| _ = warp.chains(Fp32, 50, 1).chains(Fp32, 50, 1))), 800, "in two runs each");
}

#[test]
fn chains_side_by_side_shorten_the_path_until_issue_bounds_it() {
    assert_eq!(cycles(warps(1, |warp| _ = warp.chains(Fp64, 96, 1))), 8 * 96);
    assert_eq!(
        cycles(warps(1, |warp| _ = warp.chains(Special, 96, 2))),
        8 * 96 + 6,
        "eight to issue, and a last result"
    );
    assert_eq!(cycles(warps(1, |warp| _ = warp.chains(Fp32, 96, 4))), 2 * 96 + 2, "two to issue, and a last result");
}

#[test]
fn a_chain_on_a_loaded_value_starts_when_that_arrives() {
    let load = |warp: &mut WarpBuilder<'_>| _ = warp.load([0], Order::WEAK);
    let chain = |count| {
        cycles(warps(1, move |warp| {
            load(warp);
            warp.use_result(1).chains(Fp32, count, 1);
        }))
    };
    assert_eq!(chain(200) - chain(100), 400);
    let alone = cycles(warps(1, move |warp| {
        load(warp);
        warp.use_result(1);
    }));
    assert_eq!(chain(100), alone + 400);
    let beside = cycles(warps(1, move |warp| {
        load(warp);
        warp.chains(Fp32, 10, 1);
    }));
    assert_eq!(beside, alone, "what does not need the value hides behind it");
}

#[test]
fn what_needs_a_result_waits_for_it() {
    let store = |ilp| cycles(warps(1, move |warp| _ = warp.chains(Fp64, 64, ilp).write([0])));
    assert_eq!(store(1) - store(64), 8 * 64 - (4 * 64 + 4), "a chain beside instructions that issue every four cycles");
}

#[test]
fn a_warp_that_waits_for_its_arithmetic_counts_as_arithmetic() {
    let record = on_one_sm(&[], warps(1, |warp| _ = warp.chains(Fp32, 100, 1).barrier())());
    let stalls = record.kernels[0].stalls;
    assert_eq!((stalls.arithmetic, stalls.issue, stalls.barrier), (400, 1, 0));
    let sum: u64 = stalls.named().iter().map(|(_, cycles)| cycles).sum();
    assert_eq!(sum, stalls.warp_slot_cycles);
    let record = on_one_sm(&[], warps(16, |warp| _ = warp.chains(Fp32, 100, 1))());
    let stalls = record.kernels[0].stalls;
    let first_of_each = 4 * 400;
    let second_of_each = 4 * (400 - 200);
    assert_eq!(stalls.arithmetic, first_of_each + second_of_each + 8 * 200, "issue bounds the others");
    let sum: u64 = stalls.named().iter().map(|(_, cycles)| cycles).sum();
    assert_eq!(sum, stalls.warp_slot_cycles);
}

#[test]
fn without_latencies_only_issue_counts() {
    let latencies = ["fp32", "int", "fp64", "special", "tensor"].map(|class| format!("sm.{class}_latency_cycles=1"));
    let settings = latencies.each_ref().map(String::as_str);
    let digest = |ilp| on_one_sm(&settings, warps(6, |warp| _ = warp.chains(Fp32, 100, ilp).write([0]))()).digest;
    assert_eq!(digest(1), digest(100));
}

#[test]
fn a_trace_of_dependent_additions_takes_four_cycles_each() {
    let mut machine = tombolo_machine::machine("v100").expect("a preset");
    tombolo_design::apply(&["sm.clock=1GHz"], &mut machine, &mut []).expect("a setting machines have");
    let machine = Arc::new(machine.check().expect("a machine that fits"));
    let lasts = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        let program = trace::open(&path, machine.line, machine.sm.warp_width).expect("a trace").into();
        let (machine, design) = (Arc::clone(&machine), design("v100", &[]));
        let spec = RunSpec { machine, design, program, pages: None, threads: 1 };
        let record = run(&spec).unwrap_or_else(|error| panic!("{error}"));
        (record.kernels[0].end_s - record.kernels[0].start_s) * 1e9
    };
    // The other kernel ends at once, with the same last instruction.
    let added = lasts("alu100") - lasts("empty-kernel");
    assert!((added - 399.0).abs() < 1.1, "100 additions take {added} cycles");
}
