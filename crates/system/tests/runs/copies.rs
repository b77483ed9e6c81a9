//! Memory that is copied, advised or remapped around kernels, in closed form.

use crate::common::{apart, design};
use std::ops::Range;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_protocol::copies::BrokenCopies;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::paging::CopiesRecord;
use tombolo_system::{BrokenRules, RunRecord, RunSpec, run, run_checked};
use tombolo_types::{LineSize, Mask, Order};

/// Lines per page, and per GPU's part of the array.
const PAGE: u64 = 512;
const GPUS: u64 = 4;

fn spec(machine: &Arc<MachineConfig>, name: &str, settings: &[&str], program: &Arc<DirectedProgram>) -> RunSpec {
    let (machine, design, program) = (Arc::clone(machine), design(name, settings), Arc::clone(program));
    RunSpec { machine, design, program, pages: None, threads: 1 }
}

fn simulate(name: &str, program: &Arc<DirectedProgram>) -> RunRecord {
    run(&spec(&apart(GPUS, &[]), name, &[], program)).unwrap_or_else(|error| panic!("{error}"))
}

fn copies(record: &RunRecord) -> CopiesRecord {
    record.copies.expect("it copies")
}

/// The part that GPU `gpu` has in an array divided by whole pages.
fn part(gpu: u64) -> Range<u64> {
    gpu * PAGE..(gpu + 1) * PAGE
}

fn over(kernels: Vec<Vec<CtaBuilder>>) -> Arc<DirectedProgram> {
    DirectedProgram::of_arrays(LineSize::B128, kernels, &[("x", 0..GPUS * PAGE)], &[])
}

/// Each GPU writes its part.
fn writing() -> Vec<CtaBuilder> {
    (0..GPUS).map(|gpu| CtaBuilder::sharing(part(gpu), 8, |w, line| _ = w.write([line]))).collect()
}

/// Each GPU reads its part and `halo` lines on either side.
fn reading(halo: u64) -> Vec<CtaBuilder> {
    let lines = |gpu| part(gpu).start.saturating_sub(halo)..(part(gpu).end + halo).min(GPUS * PAGE);
    let cta = |gpu: u64| CtaBuilder::new().warp(|w| lines(gpu).for_each(|line| _ = w.read([line])));
    (0..GPUS).map(cta).collect()
}

/// Bytes sent by all GPUs, headers included.
fn sent(record: &RunRecord) -> u64 {
    let out = record.links.iter().filter(|link| link.name.starts_with("gpu") && link.name.ends_with("out"));
    out.map(|link| link.bytes).sum()
}

#[test]
fn memcpy_sends_what_was_written_to_all_others() {
    let record = simulate("memcpy", &over(vec![writing(), reading(0)]));
    let bytes = GPUS * PAGE * 128 * (GPUS - 1);
    assert_eq!((copies(&record).calls, copies(&record).bytes), (GPUS * (GPUS - 1), bytes));
    assert_eq!(sent(&record), bytes / 256 * (256 + 16), "in packets of 256 bytes with a header");
    let port = (bytes / GPUS / 256 * (256 + 16)) as f64 / 16e9;
    let calls = (GPUS - 1) as f64 * 10e-6;
    let exposed = copies(&record).exposed_s / (port + calls);
    assert!((1.0..1.02).contains(&exposed), "{exposed} of the calls and of what a port takes");
}

#[test]
fn what_is_sent_behind_the_last_kernel_is_in_the_region() {
    let record = simulate("memcpy", &over(vec![writing()]));
    assert!(copies(&record).exposed_s > 0.0 && record.time.region_s > copies(&record).exposed_s, "{:?}", record.time);
}

#[test]
fn who_has_ended_sends_while_others_run() {
    // GPU 0 has four times the work: the remaining GPUs copy before GPU 0 completes its part in the kernel.
    let writing = |gpu: u64| {
        let rounds = if gpu == 0 { 4 } else { 1 };
        CtaBuilder::new()
            .warp(|w| (0..rounds).for_each(|_| part(gpu).for_each(|line| _ = w.read([line]).write([line]))))
    };
    let program = over(vec![(0..GPUS).map(writing).collect(), reading(PAGE)]);
    let exposed = |settings: &[&str]| {
        let spec = spec(&apart(GPUS, &[]), "memcpy", settings, &program);
        let (plain, checked) = (run(&spec).expect("it runs"), run_checked(&spec, None).expect("it runs"));
        assert_eq!(plain.digest, checked.digest);
        assert_eq!(checked.check.expect("it is checked").first, []);
        (copies(&plain).bytes, copies(&plain).exposed_s, plain.time.region_s)
    };
    let (after, beside) = (exposed(&[]), exposed(&["placement.overlap=true"]));
    assert_eq!(after.0, beside.0, "the same bytes");
    // The slow GPU's own port sends as before; data from the other GPUs has already arrived.
    assert!(beside.1 <= after.1 && beside.2 < after.2, "{after:?} {beside:?}");
}

#[test]
fn what_nobody_reads_is_not_needed() {
    let halo = simulate("memcpy-needed", &over(vec![writing(), reading(3)]));
    // Three borders have six sides, with three lines and one call each.
    assert_eq!((copies(&halo).calls, copies(&halo).bytes), (6, 6 * 3 * 128));
    let none = simulate("memcpy-needed", &over(vec![writing(), reading(0)]));
    assert_eq!((copies(&none).calls, sent(&none)), (0, 0));
}

#[test]
fn the_bound_takes_the_time_of_its_slowest_gpu() {
    let uneven = |gpu: u64| {
        let lines = part(gpu).start..part(gpu).start + if gpu == 2 { PAGE } else { 64 };
        CtaBuilder::sharing(lines, 8, |w, line| _ = w.read([line]).write([line]))
    };
    let bound = simulate("infinite-bandwidth", &over(vec![(0..GPUS).map(uneven).collect()]));
    let alone = |gpu: u64| if gpu == 2 { uneven(gpu) } else { CtaBuilder::new() };
    let slowest = simulate("infinite-bandwidth", &over(vec![(0..GPUS).map(alone).collect()]));
    assert_eq!((copies(&bound).calls, sent(&bound)), (0, 0));
    assert_eq!(bound.time_s, slowest.time_s);
}

#[test]
fn what_others_wrote_is_there_behind_a_kernel() {
    let program = over(vec![writing(), reading(PAGE), writing(), reading(PAGE)]);
    for name in ["memcpy", "memcpy-needed", "unified-memory", "unified-memory-hints", "numa-memory-side"] {
        let spec = spec(&apart(GPUS, &[]), name, &[], &program);
        let (plain, checked) = (run(&spec).expect("it runs"), run_checked(&spec, None).expect("it runs"));
        assert_eq!((&plain.digest, plain.copies), (&checked.digest, checked.copies), "{name}");
        let check = checked.check.expect("a checked run says what it found");
        assert_eq!((check.first, check.loads > 1000), (vec![], true), "{name}");
    }
    let bound = run_checked(&spec(&apart(GPUS, &[]), "infinite-bandwidth", &[], &program), None).expect("it runs");
    assert!(bound.check.expect("it is checked").violations > 0, "nothing was copied");
}

#[test]
fn a_page_used_from_afar_costs_no_fault_and_one_request_and_answer_a_line() {
    let record = simulate("unified-memory-hints", &over(vec![writing(), reading(3)]));
    let paging = record.paging.expect("pages may move");
    assert_eq!((paging.faults, paging.prefetched_bytes), (0, 0), "each page has one writer, and then several readers");
    assert_eq!(sent(&record), 6 * 3 * (16 + 128 + 16));
}

#[test]
fn a_page_that_one_gpu_alone_uses_moves_there_before_the_kernel() {
    // Every GPU writes its part; then only the next GPU reads it.
    let next = (0..GPUS).map(|gpu| CtaBuilder::sharing(part((gpu + 1) % GPUS), 8, |w, line| _ = w.read([line])));
    let record = simulate("unified-memory-hints", &over(vec![writing(), next.collect()]));
    let paging = record.paging.expect("pages move");
    assert_eq!((paging.faults, paging.prefetched_bytes), (0, GPUS * PAGE * 128));
    assert_eq!(record.l2.remote_loads, 0);
}

#[test]
fn loads_find_the_latest_writer_and_cross_once_per_miss() {
    // GPU 3 writes the first page, which GPU 0 has touched first; then all GPUs read it.
    let first =
        (0..GPUS).map(|gpu| if gpu == 0 { CtaBuilder::new().warp(|w| _ = w.read([0])) } else { CtaBuilder::new() });
    let writer =
        |gpu| if gpu == 3 { CtaBuilder::sharing(part(0), 8, |w, line| _ = w.write([line])) } else { CtaBuilder::new() };
    let all = (0..GPUS).map(|_| CtaBuilder::sharing(part(0), 8, |w, line| _ = w.read([line]).read([line])));
    let program = over(vec![first.collect(), (0..GPUS).map(writer).collect(), all.collect()]);
    let record = simulate("remote-demand-loads", &program);
    assert_eq!(sent(&record), (GPUS - 1) * PAGE * (16 + 128 + 16), "its own loads stay, stores are local");
    let placed = simulate("numa-memory-side", &program);
    assert!(sent(&placed) > sent(&record), "where the page stays the writer's stores cross, too");
}

/// Three kernels that write, each followed by a kernel in which all GPUs read all lines. Each GPU first writes its part,
/// then that of its neighbour, whose L2 has older dirty bytes. Last, it writes other bytes in both parts: each line has
/// two writers.
fn exchanging() -> Arc<DirectedProgram> {
    let all = || (0..GPUS).map(|_| CtaBuilder::sharing(0..GPUS * PAGE, 8, |w, line| _ = w.read([line]))).collect();
    let writing = |parts: &[u64], bytes: fn(u64) -> u32| {
        let cta = |gpu: u64| {
            let lines = parts.iter().flat_map(|beside| part((gpu + beside) % GPUS));
            CtaBuilder::new().warp(|w| lines.for_each(|line| _ = w.store([line], Mask(bytes(gpu)), Order::WEAK)))
        };
        (0..GPUS).map(cta).collect()
    };
    let (own, neighbour) = (writing(&[0], |_| 3), writing(&[1], |_| 3));
    over(vec![all(), own, all(), neighbour, all(), writing(&[0, 1], |gpu| 3 << (4 * gpu)), all()])
}

#[test]
fn checked_runs_see_every_broken_rule_of_copies() {
    let spec = spec(&apart(GPUS, &[]), "memcpy", &[], &exchanging());
    let violations = |rule: Option<BrokenCopies>| {
        let rules = rule.map_or(BrokenRules::default(), BrokenRules::from);
        let record = run_checked(&spec, rules).unwrap_or_else(|error| panic!("{error}"));
        record.check.expect("a checked run says what it found").violations
    };
    assert_eq!(violations(None), 0);
    for rule in BrokenCopies::ALL {
        assert!(violations(Some(rule)) > 0, "{}", rule.name());
    }
}

#[test]
fn every_way_is_the_same_at_every_thread_count() {
    let program = over(vec![writing(), reading(3), writing(), reading(PAGE)]);
    for name in ["memcpy", "memcpy-needed", "unified-memory-hints", "remote-demand-loads", "infinite-bandwidth"] {
        let spec = spec(&apart(GPUS, &[]), name, &[], &program);
        let on = |threads| run(&RunSpec { threads, ..spec.clone() }).expect("it runs");
        let one = on(1);
        for threads in [2, 3] {
            assert_eq!(one.digest, on(threads).digest, "{name} on {threads} threads");
        }
    }
}

#[test]
fn what_moves_before_a_slow_launch_is_no_part_of_the_region() {
    // The first page has two writers and belongs to one of them; it moves to its only reader before the first kernel.
    let load = || CtaBuilder::new().warp(|w| _ = w.read([0]));
    let reader = (0..GPUS).map(|gpu| if gpu == 0 { load() } else { CtaBuilder::new() });
    let writers = (0..GPUS).map(|gpu| match gpu {
        1 | 2 => CtaBuilder::new().warp(|w| _ = w.write([gpu])),
        _ => CtaBuilder::new(),
    });
    let program = over(vec![reader.collect(), writers.collect()]);
    let record = run(&spec(&apart(GPUS, &["host.launch_latency=1ms"]), "unified-memory-hints", &[], &program));
    let record = record.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(record.paging.expect("pages move").prefetched_bytes, PAGE * 128);
    assert!(record.time.region_s < 1e-3 && record.time.whole_s > 1e-3, "{:?}", record.time);
}
