//! Pages that move by faults, in closed form: waiting requesters, moved pages, and the duration of each part.

use crate::common::{apart, design};
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_protocol::paging::BrokenPaging;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::paging::PagingRecord;
use tombolo_system::{RunRecord, RunSpec, run, run_checked};

/// Lines per page.
const PAGE: u64 = 512;

fn spec(machine: &Arc<MachineConfig>, settings: &[&str], program: Arc<DirectedProgram>) -> RunSpec {
    let design = design("unified-memory", settings);
    RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads: 1 }
}

fn simulate(machine: &Arc<MachineConfig>, program: Arc<DirectedProgram>) -> RunRecord {
    run(&spec(machine, &[], program)).unwrap_or_else(|error| panic!("{error}"))
}

fn paging(record: &RunRecord) -> PagingRecord {
    record.paging.expect("pages move")
}

/// Kernel after kernel, one of two GPUs in turn loads a page's first line.
fn alternating(kernels: u64) -> Arc<DirectedProgram> {
    let turn = |kernel: u64| {
        let load = || CtaBuilder::new().warp(|w| _ = w.read([0]));
        if kernel.is_multiple_of(2) { vec![load(), CtaBuilder::new()] } else { vec![CtaBuilder::new(), load()] }
    };
    DirectedProgram::new((0..kernels).map(turn).collect())
}

/// Picoseconds that a change in settings costs for a program on two GPUs.
fn cost(program: impl Fn() -> Arc<DirectedProgram>, with: &[&str], without: &[&str]) -> i64 {
    let ps = |settings| (simulate(&apart(2, settings), program()).time_s * 1e12).round() as i64;
    ps(with) - ps(without)
}

#[test]
fn alternating_accesses_cost_a_migration_each() {
    const TURNS: u64 = 9;
    let record = simulate(&apart(2, &[]), alternating(TURNS));
    let PagingRecord { faults, batches, migrations, migrated_bytes, shootdowns, .. } = paging(&record);
    // The first GPU already has the page.
    assert_eq!([faults, batches, migrations, shootdowns], [TURNS - 1; 4]);
    assert_eq!(migrated_bytes, (TURNS - 1) * PAGE * 128);
    let sent: u64 = record
        .links
        .iter()
        .filter(|link| link.name.starts_with("gpu") && link.name.ends_with("out"))
        .map(|link| link.data_bytes)
        .sum();
    assert_eq!(sent, migrated_bytes, "and nothing else crosses");
}

#[test]
fn each_migration_takes_the_fault_the_shootdown_and_the_page() {
    let turns = |turns: u64| move || alternating(turns);
    for moves in [2, 8] {
        // The last access to a page's lines begins at a slot on its channel's bus: slots are two nanoseconds long.
        let near = |found: i64, expected: i64| {
            assert!((found - expected).abs() < moves as i64 * 2_100, "{found} ps, not {expected}");
        };
        let service = cost(turns(moves + 1), &["paging.service=30us"], &["paging.service=20us"]);
        near(service, moves as i64 * 10_000_000);
        let shootdown = cost(turns(moves + 1), &["paging.shootdown=5us"], &["paging.shootdown=2us"]);
        near(shootdown, moves as i64 * 3_000_000);
        let pages = cost(turns(moves + 1), &["page_bytes=128KB"], &["page_bytes=64KB"]);
        let weights = (128 << 10) / 2 / 256 * (256 + 16);
        let expected = (moves * weights) as f64 / 16e9 * 1e12;
        assert!(
            (pages as f64 / expected - 1.0).abs() < 0.02,
            "{pages} ps more for twice the page, expected {expected}"
        );
    }
}

#[test]
fn faults_at_once_share_services() {
    for (pages, batch) in [(1, 4), (4, 4), (5, 4), (10, 4), (10, 256)] {
        let kernel = |first: bool| {
            let all = || CtaBuilder::new().warp(|w| _ = w.read((0..pages).map(|page| page * PAGE)));
            if first { vec![all(), CtaBuilder::new()] } else { vec![CtaBuilder::new(), all()] }
        };
        let program = DirectedProgram::new(vec![kernel(true), kernel(false)]);
        let record = simulate(&apart(2, &[&format!("paging.batch={batch}")]), program);
        let found = paging(&record);
        assert_eq!((found.faults, found.migrations), (pages, pages));
        assert_eq!(found.batches, pages.div_ceil(batch), "{pages} faults in batches of {batch}");
    }
}

#[test]
fn one_page_more_than_a_gpu_holds_is_evicted_at_every_touch() {
    const ROOM: u64 = 4;
    const ROUNDS: u64 = 3;
    // The second GPU reads, in turn, pages placed by the first GPU; it has room for one page less.
    let first = vec![CtaBuilder::new().warp(|w| _ = w.read((0..=ROOM).map(|page| page * PAGE))), CtaBuilder::new()];
    let touch = |page: u64| vec![CtaBuilder::new(), CtaBuilder::new().warp(|w| _ = w.read([page * PAGE]))];
    let touches = (0..ROUNDS).flat_map(|_| 0..=ROOM).map(touch);
    let program = DirectedProgram::new(std::iter::once(first).chain(touches).collect());
    let record = simulate(&apart(2, &[&format!("dram.bytes={}KB", ROOM * 64)]), program);
    let found = paging(&record);
    let touches = ROUNDS * (ROOM + 1);
    // The first GPU lacks room for one page: a page arrives from the host, and another is evicted to it.
    assert_eq!((found.migrations, found.evictions), (touches + 1, touches - ROOM + 1));
}

/// Two GPUs take turns in writing parts within shared pages, and read each other's writes.
fn exchanging() -> Arc<DirectedProgram> {
    let kernel = |turn: u64| {
        let cta = |gpu: u64| {
            CtaBuilder::new().warp(|w| {
                for page in 0..6 {
                    let line = page * PAGE + (gpu + turn) % 2 * 8;
                    w.read([line]).write([line, line + 1]);
                }
            })
        };
        (0..2).map(cta).collect()
    };
    DirectedProgram::new((0..6).map(kernel).collect())
}

#[test]
fn values_follow_their_pages() {
    for settings in [&[][..], &["placement.read_mostly=true"], &["placement.pinning=true"]] {
        let spec = spec(&apart(2, &[]), settings, exchanging());
        let plain = run(&spec).unwrap_or_else(|error| panic!("{error}"));
        let checked = run_checked(&spec, None).unwrap_or_else(|error| panic!("{error}"));
        assert!(paging(&plain).migrations > 6, "{settings:?}: {:?}", plain.paging);
        assert_eq!((&plain.digest, plain.paging), (&checked.digest, checked.paging), "{settings:?}");
        let check = checked.check.expect("a checked run says what it found");
        assert_eq!((check.first, check.loads), (vec![], 72), "{settings:?}");
    }
}

#[test]
fn checked_runs_see_what_is_lost_on_the_way() {
    let spec = spec(&apart(2, &[]), &[], exchanging());
    for rule in [BrokenPaging::NotWrittenBack, BrokenPaging::MappedEarly] {
        let record = run_checked(&spec, rule).unwrap_or_else(|error| panic!("{error}"));
        assert!(record.check.expect("a checked run says what it found").violations > 0, "{rule:?}");
    }
}

#[test]
fn a_run_is_the_same_at_every_thread_count() {
    let spec = spec(&apart(4, &[]), &[], exchanging());
    let on = |threads| run(&RunSpec { threads, ..spec.clone() }).unwrap_or_else(|error| panic!("{error}"));
    let one = on(1);
    for threads in [2, 4, 5] {
        let other = on(threads);
        assert_eq!((&one.digest, one.paging), (&other.digest, other.paging), "{threads} threads");
    }
}
