//! Warp slot cycles by class, tested with directed programs for which stall stacks are known in closed form. CTA `i`
//! among sixteen runs on module `i`; the SM clock is 1 GHz: a cycle is a nanosecond.

use crate::common::{self, design, follow_on, machine};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::RunRecord;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::stalls::{QueuedRecord, StallRecord};
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Mask, Order, Scope};

/// Warp slots in the machine: a single SM in each of sixteen modules.
const SLOTS: u64 = 16 * 64;

fn nanosecond_clock(settings: &[&str]) -> Arc<MachineConfig> {
    machine(&[&["sm.clock=1GHz"], settings].concat())
}

/// A kernel with sixteen CTAs; the CTA on `module` is `cta`.
fn at(module: usize, cta: CtaBuilder) -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 16];
    ctas[module] = cta;
    ctas
}

/// Module 0 touches lines, which makes module 0 the pages' home.
fn touch(lines: std::ops::Range<u64>) -> Vec<CtaBuilder> {
    at(0, CtaBuilder::new().warp(|warp| lines.for_each(|line| _ = warp.read([line]))))
}

fn one_warp(module: usize, write: impl FnOnce(&mut WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    at(module, CtaBuilder::new().warp(write))
}

fn run(settings: &[&str], name: &str, kernels: Vec<Vec<CtaBuilder>>) -> RunRecord {
    follow_on(1, &nanosecond_clock(settings), design(name, &[]), DirectedProgram::new(kernels))
}

/// The stall stack for the last kernel in a run.
fn last(record: &RunRecord) -> StallRecord {
    record.kernels.last().expect("a kernel was launched").stalls
}

/// A mixture of all operations.
fn mixed() -> Arc<DirectedProgram> {
    let cta = |id: u64| {
        (0..8).fold(CtaBuilder::new(), |cta, warp| {
            cta.warp(|w| {
                let base = (id * 8 + warp) * 64;
                w.compute(7).load(base..base + 8, Order::WEAK).scratchpad(3).use_result(1);
                w.write(4096 + base..4096 + base + 4).barrier().read([warp, 8192 + id]);
                w.atomic([16_384 + warp], Order::relaxed(Scope::Sys), AtomicResult::Returned).use_result(1);
                w.store([32_768 + base], Mask(1), Order::release(Scope::Sys)).read([base]);
            })
        })
    };
    DirectedProgram::new(vec![(0..16).map(cta).collect(), (0..16).map(cta).collect()])
}

fn adds_up(stalls: &StallRecord, what: &str) {
    let sum: u64 = stalls.named().iter().map(|(_, cycles)| cycles).sum();
    assert_eq!(sum, stalls.warp_slot_cycles, "{what}: {stalls:?}");
    for (class, queues) in stalls.queued.expect("loads are followed").named() {
        let cycles = stalls.named().iter().find(|(name, _)| *name == class).map(|(_, cycles)| *cycles);
        // Each class is rounded together with all earlier classes: the result may deviate by one cycle.
        assert!(queues.sum() <= cycles.expect("a class") + 1, "{what}, {class}: {stalls:?}");
    }
}

#[test]
fn classes_add_up_to_the_slots_of_the_machine_under_every_design_and_thread_count() {
    let machine = nanosecond_clock(&["l1.mshrs=8", "sm.posted_stores=8"]);
    for name in common::DESIGNS {
        let record = follow_on(1, &machine, design(name, &[]), mixed());
        adds_up(&record.stalls, name);
        let whole = record.time_s * 1e9 * SLOTS as f64;
        assert!((record.stalls.warp_slot_cycles as f64 - whole).abs() < 4.5, "{name}: a cycle of each GPU is rounded");
        record.gpus.iter().for_each(|gpu| adds_up(&gpu.stalls, name));
        let of_gpus = record.gpus.iter().fold(StallRecord::default(), |sum, gpu| sum.and(&gpu.stalls));
        assert_eq!(of_gpus, record.stalls, "{name}");
        for kernel in &record.kernels {
            adds_up(&kernel.stalls, name);
            let open = (kernel.end_s - kernel.start_s) * 1e9 * SLOTS as f64;
            assert!((kernel.stalls.warp_slot_cycles as f64 - open).abs() < 1.5, "{name}");
        }
        let two = follow_on(2, &machine, design(name, &[]), mixed());
        assert_eq!((two.stalls, &two.statistics_digest), (record.stalls, &record.statistics_digest), "{name}");
    }
}

/// Kernels run one after another: between them, all slots are idle.
#[test]
fn the_stacks_of_kernels_are_those_of_the_run_but_for_what_lies_between() {
    let record = run(&[], "hmg", vec![touch(0..64); 3]);
    let kernels = record.kernels.iter().fold(StallRecord::default(), |sum, kernel| sum.and(&kernel.stalls));
    for ((name, of_run), (_, of_kernels)) in record.stalls.named().into_iter().zip(kernels.named()) {
        let between = record.stalls.warp_slot_cycles - kernels.warp_slot_cycles;
        let expected = of_kernels + if name == "idle" { between } else { 0 };
        assert!(of_run.abs_diff(expected) <= 8, "{name}: {of_run}, and {expected} of kernels");
    }
}

#[test]
fn arithmetic_counts_what_it_occupies_and_the_others_of_its_sub_core_wait_to_issue() {
    let busy = |warps: u64| {
        let cta = (0..warps).fold(CtaBuilder::new(), |cta, _| cta.warp(|warp| _ = warp.compute(1000)));
        last(&run(&[], "hmg", vec![at(0, cta)]))
    };
    let (one, eight) = (busy(1), busy(8));
    assert_eq!((one.arithmetic, one.issue), (2000, 0), "two cycles each");
    // Each of the four sub-cores has two warps, which issue in turn.
    assert_eq!((eight.arithmetic, eight.issue), (16_000, 4 * 2000));
}

#[test]
fn a_barrier_counts_from_the_first_to_come_to_the_last() {
    let pair = CtaBuilder::new().warp(|warp| _ = warp.compute(500).barrier()).warp(|warp| _ = warp.barrier());
    let stalls = last(&run(&[], "hmg", vec![at(0, pair)]));
    assert_eq!((stalls.barrier, stalls.arithmetic, stalls.issue), (1000, 1000, 2));
}

/// The first warp issues for one cycle and waits for its data until the 119th cycle. The second is admitted after a
/// hundred cycles, issues for one cycle and waits for nineteen.
#[test]
fn a_pass_of_the_scratchpad_delays_the_next() {
    let pair = CtaBuilder::new().warp(|warp| _ = warp.scratchpad(100)).warp(|warp| _ = warp.scratchpad(1));
    let stalls = last(&run(&[], "hmg", vec![at(0, pair)]));
    assert_eq!((stalls.scratchpad, stalls.issue), (118 + 100 + 19, 2));
}

/// Each first access to a page causes a walk. Without it, the access would have left the L1 after the hit latency.
#[test]
fn a_cold_tlb_costs_a_walk_a_page() {
    let pages = 12;
    let lines = (2 << 20) / 128;
    let reads = || one_warp(0, |warp| (0..pages).for_each(|page| _ = warp.read([page * lines])));
    let stalls = run(&["tlb.l1_entries=4"], "hmg", vec![reads(), reads()]).kernels;
    let (lookup, walk, hit) = (80, 574, 28);
    assert_eq!(stalls[0].stalls.tlb, pages * (lookup + walk - hit));
    assert_eq!(stalls[1].stalls.tlb, pages * (lookup - hit), "the module's TLB has them");
    let warm = run(&[], "hmg", vec![reads(), reads()]);
    assert_eq!(warm.kernels[1].stalls.tlb, 0);
    let near = |one: u64, other: u64| one.abs_diff(other) <= pages;
    assert!(near(warm.kernels[1].stalls.own_l2, stalls[1].stalls.own_l2), "{stalls:?}");
}

/// The second warp joins the first warp's miss, and waits equally long for the walk.
#[test]
fn a_load_that_joins_a_miss_shares_its_walk() {
    let pair = || CtaBuilder::new().warp(|warp| _ = warp.read([0])).warp(|warp| _ = warp.read([0]));
    let stalls = last(&run(&[], "hmg", vec![at(0, pair())]));
    assert!((2 * 600..=2 * 626).contains(&stalls.tlb), "{stalls:?}");
}

#[test]
fn a_load_counts_where_it_was_answered() {
    let of = |module: usize| {
        let reads = |warp: &mut WarpBuilder<'_>| (0..32).for_each(|line| _ = warp.read([4 * line]));
        let stalls = last(&run(
            &["tlb.walk_latency=0ns", "tlb.l2_latency=0ns"],
            "hmg",
            vec![touch(0..128), one_warp(module, reads)],
        ));
        [stalls.own_l2, stalls.module, stalls.gpu].map(|cycles| cycles / 32)
    };
    // An L2 hit: to the slice and back, in addition to the L1's 28 cycles and the transfer times on ports.
    let [own, module, gpu] = of(0);
    assert!((28 + 2 * 40 + 85..28 + 2 * 40 + 85 + 8).contains(&own) && module == 0 && gpu == 0, "{own}");
    let [own_of_module, module, gpu] = of(1);
    assert!(own_of_module == 0 && gpu == 0 && module >= own + 85 + 2 * 32, "{module}");
    let [_, _, gpu] = of(4);
    assert!(gpu >= own + 85 + 2 * 128, "{gpu}");
}

/// Every warp has a load outstanding: all warps wait for the link, which delivers line after line.
#[test]
fn a_saturated_link_is_what_its_readers_wait_for() {
    let (lines, warps) = (16_384, 64);
    let reader = CtaBuilder::sharing(0..lines, warps, |warp, line| _ = warp.read([line]));
    let settings = ["gpu_link.rate=4GB/s", "page_bytes=64MB"];
    let record = run(&settings, "no-remote-caching", vec![touch(0..1), at(4, reader)]);
    let stalls = last(&record);
    let line_on_link = f64::from(128 + 16) / 4.0;
    let expected = (warps * lines) as f64 * line_on_link;
    let share = stalls.gpu as f64 / expected;
    assert!((share - 1.0).abs() < 0.02, "{} cycles, {expected} expected", stalls.gpu);
    let held = stalls.warp_slot_cycles - stalls.idle - stalls.kernel_boundary;
    assert!(stalls.gpu as f64 / held as f64 > 0.98, "{stalls:?}");
    // Everything except a lone load's latency is queueing at the link.
    let alone =
        run(&settings, "no-remote-caching", vec![touch(0..1), one_warp(4, |warp| _ = warp.read([0]).read([1]))]);
    let alone = alone.latency.expect("loads are followed").gpu;
    let alone = alone.mean_ns - alone.legs_ns.tlb;
    let expected = lines as f64 * (warps as f64 * line_on_link - alone);
    let queues = stalls.queued.expect("loads are followed").gpu;
    assert!((queues.link as f64 / expected - 1.0).abs() < 0.02, "{stalls:?}, {expected} expected");
    assert!(queues.slice + queues.dram < queues.link / 100, "{stalls:?}");
}

/// A lone reader never queues.
#[test]
fn a_lone_reader_meets_no_queue() {
    for (module, name) in [(0, "hmg"), (1, "hmg"), (4, "hmg"), (4, "numa-memory-side")] {
        let record = run(&[], name, vec![touch(0..1), one_warp(module, |warp| _ = warp.read([0]))]);
        assert_eq!(record.stalls.queued, Some(QueuedRecord::default()), "{name}, module {module}");
        let stalls = last(&record);
        assert!(stalls.own_l2 + stalls.module + stalls.gpu > 150, "{stalls:?}");
    }
}

/// A store waits for a credit as long as the link needs to transfer it, once all credits are in flight.
#[test]
fn a_full_store_queue_is_what_its_writers_wait_for() {
    let (lines, warps, credits) = (8192, 4, 32);
    let writer = CtaBuilder::sharing(0..lines, warps, |warp, line| _ = warp.write([line]));
    let settings = ["gpu_link.rate=4GB/s", "page_bytes=64MB", "sm.posted_stores=32", "l2.posted_stores=32"];
    let record = run(&settings, "no-remote-caching", vec![touch(0..1), at(4, writer)]);
    let stalls = last(&record);
    let line_on_link = f64::from(128 + 16) / 4.0;
    let expected = warps as f64 * (lines - credits) as f64 * line_on_link;
    let share = stalls.store_credit as f64 / expected;
    assert!((share - 1.0).abs() < 0.02, "{} cycles, {expected} expected", stalls.store_credit);
    assert_eq!(stalls.issue, lines, "a slot each");
}

/// A release at system scope waits until its stores have crossed and been acknowledged: a longer link counts twice in
/// each.
#[test]
fn a_drained_release_waits_for_what_was_posted_before_it() {
    let releases = 16;
    let stalls = |latency: &str| {
        let release = one_warp(4, |warp| {
            for region in 0..releases {
                warp.write([4 * region]).store([4 * region + 1], Mask(1), Order::release(Scope::Sys));
            }
        });
        last(&run(&[latency], "software-flat", vec![touch(0..4 * releases), release]))
    };
    let (near, far) = (stalls("gpu_link.latency=1us"), stalls("gpu_link.latency=11us"));
    assert_eq!(far.release - near.release, (releases * 2 * 10_000), "{near:?}, {far:?}");
    assert_eq!((near.store_credit, near.gpu), (0, 0));
}

/// A consumer waits for a flag throughout the producer's computation.
#[test]
fn a_wait_for_a_flag_counts_as_an_acquire() {
    let stalls = |arithmetic| {
        let mut ctas = at(
            0,
            CtaBuilder::new().warp(|warp| {
                warp.compute(arithmetic).store([0], Mask(1), Order::release(Scope::Gpu)).signal(0);
            }),
        );
        ctas[1] = CtaBuilder::new().warp(|warp| _ = warp.wait_until(0, 0, Order::acquire(Scope::Gpu)));
        last(&run(&[], "hmg", vec![ctas]))
    };
    let (short, long) = (stalls(1000), stalls(20_000));
    let more = long.acquire - short.acquire;
    assert!(more.abs_diff(38_000) < 400, "{more}");
}

/// A kernel without CTAs counts entirely as boundary.
#[test]
fn a_kernel_that_runs_nothing_is_all_boundary() {
    let record = run(&[], "hmg", vec![vec![CtaBuilder::new(); 16]]);
    let stalls = last(&record);
    assert_eq!(stalls.kernel_boundary + stalls.idle, stalls.warp_slot_cycles);
    assert!(stalls.share(stalls.kernel_boundary) > 0.9, "{stalls:?}");
    // Outside the kernel, no slot is at a boundary.
    assert!(record.stalls.kernel_boundary.abs_diff(stalls.kernel_boundary) <= 4, "{stalls:?}");
}
