//! Warps' waiting conditions: own load results, observed through times in directed programs; flags set by remote
//! modules.

use crate::common::{DESIGNS, design, machine, simulate};
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Mask, Order, Scope};

/// A run on `hmg-4x4` with a producer CTA and a waiting consumer CTA, after a kernel that places lines 0 and 1 at
/// module 0.
fn handed_over(name: &str, (from, leave): (usize, &dyn Fn(&mut WarpBuilder<'_>)), (to, line): (usize, u64)) {
    let alone = |module: usize, write: &dyn Fn(&mut WarpBuilder<'_>)| {
        let mut ctas = vec![CtaBuilder::new(); 16];
        ctas[module] = CtaBuilder::new().warp(|warp| write(warp));
        ctas
    };
    let mut ctas = alone(from, leave);
    ctas[to] = CtaBuilder::new().warp(|warp| _ = warp.wait_until(line, 0, Order::relaxed(Scope::Sys)));
    let program = DirectedProgram::new(vec![alone(0, &|warp| _ = warp.read([0, 1])), ctas]);
    let record = simulate(&machine(&[]), design(name, &[]), program);
    assert!(record.sm["failed_polls"] > 0, "{name}: the flag was there before anybody left it");
}

#[test]
fn a_flag_is_seen_on_each_line_of_its_store() {
    for name in DESIGNS {
        for line in [0, 1] {
            handed_over(name, (0, &|warp| _ = warp.compute(5000).write([0, 1]).signal(0)), (4, line));
        }
    }
}

#[test]
fn the_flag_of_an_atomic_travels_on_with_what_it_wrote() {
    // Performed at its GPU home, which is not the line's system home.
    let atomic = Order::relaxed(Scope::Gpu);
    for name in ["software-hierarchical", "hmg", "ideal"] {
        let leave =
            |warp: &mut WarpBuilder<'_>| _ = warp.compute(5000).atomic([0], atomic, AtomicResult::Discarded).signal(0);
        handed_over(name, (4, &leave), (8, 0));
    }
}

#[test]
fn polls_are_no_results_of_their_warp() {
    // A load served by memory after 20 us, a wait with failing first polls, and 10,000 cycles of arithmetic that need
    // the load's result, not a poll's: one after another at 1.3 GHz. The flag's line is in the L2.
    let cta = CtaBuilder::new()
        .warp(|warp| {
            warp.load([64], Order::WEAK).wait_until(0, 0, Order::relaxed(Scope::Gpu)).use_result(1).compute(10_000);
        })
        .warp(|warp| _ = warp.compute(1300).write([0]).signal(0));
    let touch = CtaBuilder::new().warp(|warp| _ = warp.read([0]));
    let program = DirectedProgram::new(vec![vec![touch], vec![cta]]);
    let record = simulate(&machine(&["dram.base_latency=20us"]), design("hmg", &[]), program);
    let kernel = &record.kernels[1];
    let (time, polls) = (kernel.end_s - kernel.start_s, record.sm["failed_polls"]);
    assert!(polls > 10, "{polls} polls failed");
    assert!(time > 20e-6 + 10_000.0 / 1.3e9, "the arithmetic began before its operand was there: {time} s");
}

#[test]
fn polls_of_one_line_for_two_flags_do_not_wait_for_each_other() {
    // The second warp's polls would merge with the first warp's polls, and the first warp waits for the second.
    let strong = Order::relaxed(Scope::Sys);
    let write = |warp: &mut WarpBuilder<'_>, flag| _ = warp.store([0], Mask::ALL, strong).signal(flag);
    for name in DESIGNS {
        let mut ctas = vec![CtaBuilder::new(); 16];
        ctas[4] = CtaBuilder::new().warp(|warp| _ = warp.wait_until(0, 0, strong)).warp(|warp| {
            warp.wait_until(0, 1, strong);
            write(warp, 0);
        });
        ctas[8] = CtaBuilder::new().warp(|warp| write(warp.compute(5000), 1));
        let record = simulate(&machine(&["sm.sub_cores=4"]), design(name, &[]), DirectedProgram::new(vec![ctas]));
        assert!(record.sm["failed_polls"] < 1_000, "{name}: {} polls failed", record.sm["failed_polls"]);
    }
}

#[test]
fn an_acquiring_poll_that_fails_drops_its_l1_where_the_design_says_so() {
    let run = |polls: &str, order: Order| {
        let mut ctas = vec![CtaBuilder::new(); 16];
        ctas[4] = CtaBuilder::new().warp(|warp| _ = warp.wait_until(0, 0, order));
        ctas[0] = CtaBuilder::new()
            .warp(|warp| _ = warp.compute(5000).store([0], Mask::ALL, Order::release(Scope::Sys)).signal(0));
        let setting = format!("design.polls={polls}");
        let sm = simulate(&machine(&[]), design("peer", &[&setting]), DirectedProgram::new(vec![ctas])).sm;
        assert!(sm["failed_polls"] > 1, "the flag was there before anybody polled");
        (sm["l1_invalidations"], sm["failed_polls"])
    };
    let acquire = Order::acquire(Scope::Sys);
    let (kept, _) = run("keep-l1", acquire);
    let (dropped, failed) = run("drop-l1", acquire);
    assert_eq!(dropped, kept + failed);
    // A relaxed poll acquires nothing, regardless of its outcome.
    let relaxed = Order::relaxed(Scope::Sys);
    assert_eq!(run("drop-l1", relaxed).0, run("keep-l1", relaxed).0);
}
