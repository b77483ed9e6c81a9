use super::*;
use crate::directed::{CtaBuilder, DirectedProgram, HostLines};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tombolo_design::placement::CopyContents;
use tombolo_model::front_end::{PageMove, PeerCopy, Remap, Schedule};
use tombolo_protocol::elision::LineRange;
use tombolo_types::stream::{AtomicResult, Command};
use tombolo_types::{Line, LineSize, Mask, Order};

/// Lines per page.
const PAGE: u64 = 8;

fn find(program: &DirectedProgram, modules: u8) -> Movement {
    Movement::find(program, CtaDistribution::Contiguous, TouchOrder::new(modules, PAGE)).expect("it decodes")
}

/// A CTA with a single warp that first reads a range of lines and then writes a range of lines.
fn cta(reads: Range<u64>, writes: Range<u64>) -> CtaBuilder {
    CtaBuilder::new().warp(|w| _ = w.read(reads).write(writes))
}

/// Lines carried by all copies in a schedule.
fn carried(schedule: &Schedule) -> u64 {
    let calls = schedule.tasks.iter().flat_map(|around| &around.copies);
    calls.map(|&call| LineSet::from(schedule.copies[call as usize].lines).count()).sum()
}

/// The calls after command number `index`: sender, target, and half-open line range.
fn calls(schedule: &Schedule, index: usize) -> Vec<(u8, u8, u64, u64)> {
    let call = |&call: &u32| {
        let PeerCopy { from, to, lines, .. } = &schedule.copies[call as usize];
        (from.0, to.0, lines.first.0, lines.end.0)
    };
    schedule.tasks[index].copies.iter().map(call).collect()
}

/// Four modules, each with its quarter of `a` and `b`: `there` writes `b` from `a`, `back` writes `a` from `b`, each
/// with one line from its neighbours.
fn stencil() -> Arc<DirectedProgram> {
    let part = |base: u64, module: u64| base + module * 16..base + (module + 1) * 16;
    let halo = |base: u64, module: u64| {
        let own = part(base, module);
        own.start.max(base + 1) - 1..own.end.min(base + 63) + 1
    };
    let kernel = |from, to| (0..4).map(|module| cta(halo(from, module), part(to, module))).collect();
    DirectedProgram::with_arrays(vec![kernel(0, 64), kernel(64, 0)], &[("a", 0..64), ("b", 64..128)])
}

#[test]
fn each_module_sends_its_slice_to_all_others_behind_every_launch() {
    let program = stencil().with_launch_order(&[0, 1, 0]);
    let (schedule, notes) = find(&program, 4).copies(&*program, CopyContents::Hull);
    assert_eq!(carried(&schedule), 3 * 64 * (4 - 1), "written x (n - 1)");
    assert_eq!(calls(&schedule, 0)[..4], [(0, 1, 64, 80), (0, 2, 64, 80), (0, 3, 64, 80), (1, 2, 80, 96)]);
    assert_eq!(schedule.tasks[0], schedule.tasks[2], "a kernel launched again sends the same");
    assert_eq!(schedule.copies.len(), 2 * 4 * 3);
    assert_eq!(notes, [""; 0], "slices do not overlap");
}

#[test]
fn only_halos_are_needed_and_nothing_behind_the_last_reader() {
    let program = stencil().with_launch_order(&[0, 1]);
    let (schedule, _) = find(&program, 4).copies(&*program, CopyContents::Needed);
    let up = |module: u64| (module as u8, module as u8 + 1, 64 + module * 16 + 15, 64 + (module + 1) * 16);
    let down = |module: u64| (module as u8, module as u8 - 1, 64 + module * 16, 64 + module * 16 + 1);
    assert_eq!(calls(&schedule, 0), [up(0), up(1), down(1), up(2), down(2), down(3)]);
    assert_eq!(calls(&schedule, 1), [], "nobody reads what it wrote");
}

#[test]
fn pages_of_one_module_alone_are_not_shared_and_shared_ones_are_sent_whole_or_by_lines() {
    // Pages of 8 lines. Both modules read page 1; each writes its own page, and a line of page 1.
    let kernel = vec![
        CtaBuilder::new().warp(|w| _ = w.write([0, 9])).warp(|w| _ = w.read([15])),
        CtaBuilder::new().warp(|w| _ = w.write([20, 11])).warp(|w| _ = w.read([8])),
    ];
    let program = |arrays: &[_]| DirectedProgram::with_arrays(vec![kernel.clone()], arrays);
    let sent = |arrays: &[_], copied| {
        let program = program(arrays);
        calls(&find(&program, 2).copies(&*program, copied).0, 0)
    };
    let one = [("a", 0..24)];
    assert_eq!(sent(&one, CopyContents::SharedPages), [(0, 1, 8, 16), (1, 0, 8, 16)], "neither page 0 nor page 2");
    assert_eq!(sent(&one, CopyContents::SharedLines), [(0, 1, 9, 10), (1, 0, 11, 12)]);
    let parts = [("a", 0..10), ("b", 10..24)];
    assert_eq!(sent(&parts, CopyContents::SharedPages), [(0, 1, 8, 10), (1, 0, 10, 16)], "an array's part of the page");
    assert_eq!(sent(&[], CopyContents::SharedPages), [(0, 1, 8, 16), (1, 0, 8, 16)], "pages outside every array");
}

#[test]
fn a_stencil_shares_the_pages_at_its_borders() {
    let program = stencil().with_launch_order(&[0, 1]);
    let (schedule, _) = find(&program, 4).copies(&*program, CopyContents::SharedPages);
    // Pages of 8 lines: of the first and the last module's two, one lies at a border.
    assert_eq!(calls(&schedule, 0)[..4], [(0, 1, 72, 80), (0, 2, 72, 80), (0, 3, 72, 80), (1, 2, 80, 96)]);
    assert_eq!(carried(&schedule), 2 * 3 * (8 + 16 + 16 + 8), "both launches, three targets");
}

#[test]
fn what_is_written_again_before_it_is_read_is_not_needed_but_what_another_part_holds_is() {
    let store = |mask| CtaBuilder::new().warp(|w| _ = w.store([0], Mask(mask), Order::WEAK));
    let idle = || cta(0..0, 0..0);
    let read = vec![idle(), cta(0..1, 0..0)];
    let program = |second| {
        let kernels = vec![vec![store(0xff), idle()], vec![store(second), idle()], read.clone()];
        DirectedProgram::with_arrays(kernels, &[("a", 0..8)])
    };
    let first = |second| {
        let program = program(second);
        calls(&find(&program, 2).copies(&*program, CopyContents::Needed).0, 0)
    };
    assert_eq!(first(0xff), [], "all of it is written again");
    assert_eq!(first(0xf0), [(0, 1, 0, 1)], "its lower half is not");
}

#[test]
fn what_the_host_writes_is_sent_by_nobody_and_said() {
    let kernels = vec![vec![cta(0..0, 0..16), cta(0..0, 0..0)], vec![cta(0..0, 0..0), cta(0..16, 0..0)]];
    let host = [(1, HostLines::Written(0..12))];
    let program = DirectedProgram::of_arrays(LineSize::B128, kernels, &[("a", 0..16)], &host);
    let (schedule, notes) = find(&program, 2).copies(&*program, CopyContents::Needed);
    assert_eq!(calls(&schedule, 0), [(0, 1, 12, 16)]);
    let note = "what the host writes or copies reaches every GPU's copy at once, outside the region of interest";
    assert_eq!(notes, [note]);
}

#[test]
fn hulls_that_overlap_are_said_and_so_are_bytes_that_two_write() {
    let two = |first: [u64; 2], second: [u64; 2]| {
        let kernel =
            vec![CtaBuilder::new().warp(|w| _ = w.write(first)), CtaBuilder::new().warp(|w| _ = w.write(second))];
        let program = DirectedProgram::with_arrays(vec![kernel], &[("a", 0..16), ("b", 16..32)]);
        find(&program, 2).copies(&*program, CopyContents::Hull).1
    };
    assert_eq!(two([0, 4], [5, 20]), [""; 0]);
    let between = "arrays a: GPUs 0 and 1 write bytes between each other's; only bytes written by the sender change";
    assert_eq!(two([0, 4], [2, 20]), [between]);
    let same = "write the same bytes in one kernel; copies do not merge them, and each has what came last";
    assert!(two([0, 4], [4, 20])[1].ends_with(same));
}

#[test]
fn a_kernel_launched_on_another_gpu_is_another_senders() {
    let on = |device| LaunchDevices::module(ModuleId(device));
    let launch = |device| Command::Launch { kernel: 0, stream: 0, on: on(device) };
    let program = DirectedProgram::with_arrays(vec![vec![cta(0..0, 0..4)]], &[("a", 0..8)]);
    let program = program.with_commands(vec![launch(0), launch(1), launch(0)]);
    let movement = find(&program, 2);
    let (schedule, _) = movement.copies(&*program, CopyContents::Hull);
    assert_eq!([0, 1, 2].map(|index| calls(&schedule, index)), [[(0, 1, 0, 4)], [(1, 0, 0, 4)], [(0, 1, 0, 4)]]);
    assert!(movement.kernel(movement.number(0, on(1)))[0].written.lines.is_empty());
}

#[test]
fn what_lies_between_two_ranges_of_an_array_is_carried_where_that_takes_less_than_a_call() {
    let write = CtaBuilder::new().warp(|w| _ = w.write([0, 3, 9, 16, 18]));
    let read = CtaBuilder::new().warp(|w| _ = w.read([0, 3, 9, 16, 18]));
    let kernels = vec![vec![write, cta(0..0, 0..0)], vec![cta(0..0, 0..0), read]];
    let program = DirectedProgram::with_arrays(kernels, &[("a", 0..16), ("b", 16..32)]);
    let behind =
        |lines| calls(&find(&program, 2).with_joining_distance(lines).copies(&*program, CopyContents::Needed).0, 0);
    let call = |first, end| (0, 1, first, end);
    assert_eq!(behind(0), [(0, 1), (3, 4), (9, 10), (16, 17), (18, 19)].map(|(first, end)| call(first, end)));
    assert_eq!(behind(2), [call(0, 4), call(9, 10), call(16, 19)]);
    assert_eq!(behind(u64::MAX), [call(0, 10), call(16, 19)], "no call is of two arrays");
    let kernels = vec![
        vec![CtaBuilder::new().warp(|w| _ = w.write([0, 7, 16])), cta(0..0, 0..0)],
        vec![cta(0..0, 0..0), cta(0..17, 0..0)],
    ];
    let nameless = DirectedProgram::new(kernels);
    let (schedule, _) = find(&nameless, 2).with_joining_distance(u64::MAX).copies(&*nameless, CopyContents::Needed);
    assert_eq!(calls(&schedule, 0), [call(0, 8), call(16, 17)], "between runs of pages nobody knows what lies");
}

#[test]
fn lines_of_no_array_are_sent_by_runs_of_pages() {
    let kernel = vec![CtaBuilder::new().warp(|w| _ = w.write([2, 9, 30])), cta(0..0, 0..0)];
    let program = DirectedProgram::new(vec![kernel]);
    let (schedule, _) = find(&program, 2).copies(&*program, CopyContents::Hull);
    assert_eq!(calls(&schedule, 0), [(0, 1, 2, 10), (0, 1, 30, 31)], "pages 0 and 1 touch, page 3 is alone");
}

fn moves(schedule: &Schedule) -> Vec<Vec<(u64, u8)>> {
    let of = |moves: &[PageMove]| moves.iter().map(|one| (one.page.0, one.to.0)).collect();
    schedule.tasks.iter().map(|around| of(&around.moves)).collect()
}

#[test]
fn a_hinted_page_goes_to_its_only_user_and_back_to_its_writer() {
    let idle = || cta(0..0, 0..0);
    let writes = vec![cta(0..0, 0..8), idle()];
    let reads = vec![idle(), cta(0..8, 0..0)];
    let both = vec![cta(0..0, 0..8), cta(0..8, 0..0)];
    let program = DirectedProgram::new(vec![reads, writes, both]).with_launch_order(&[0, 1, 0, 0, 2, 0]);
    let (schedule, pages) = find(&program, 2).hints(&*program);
    assert_eq!(pages.home(ModuleId(0), Line(0)), Some(ModuleId(0)), "it is preferred where it is written");
    assert_eq!(moves(&schedule), [vec![(0, 1)], vec![(0, 0)], vec![(0, 1)], vec![], vec![(0, 0)], vec![(0, 1)]]);
}

#[test]
fn a_page_that_two_write_stays_where_it_is() {
    let both = vec![cta(0..0, 0..4), cta(0..0, 4..8)];
    let alone = vec![cta(0..0, 0..0), cta(0..0, 0..8)];
    let program = DirectedProgram::new(vec![both, alone]).with_launch_order(&[1, 0, 0]);
    let (schedule, pages) = find(&program, 2).hints(&*program);
    assert_eq!(pages.home(ModuleId(0), Line(0)), Some(ModuleId(1)));
    assert_eq!(moves(&schedule), [vec![], vec![], vec![]]);
}

fn remaps(schedule: &Schedule) -> Vec<Vec<(u8, u64, u8)>> {
    let of = |remaps: &[Remap]| remaps.iter().map(|one| (one.at.0, one.page.0, one.home.0)).collect();
    schedule.tasks.iter().map(|around| of(&around.remaps)).collect()
}

#[test]
fn a_page_is_found_at_its_latest_writer_as_of_the_last_barrier() {
    let all_read = (0..3).map(|_| cta(0..8, 0..0)).collect();
    let written_by = |writer| (0..3).map(|module| cta(0..8, 0..if module == writer { 8 } else { 0 })).collect();
    let program =
        DirectedProgram::new(vec![all_read, written_by(1), written_by(2)]).with_launch_order(&[1, 0, 2, 0, 0, 2]);
    let (schedule, pages) = find(&program, 3).latest_writers(&*program);
    let first = pages.home(ModuleId(0), Line(0)).expect("it is touched").0;
    let told = |homes: [(u8, u8); 2]| homes.map(|(at, home)| (at, 0, home)).to_vec();
    let before: Vec<_> = (first != 1).then_some((1, 0, 1)).into_iter().collect();
    let others = (0..3).filter(|&at| at != 1 && first != 1).map(|at| (at, 0, 1)).collect();
    let expected = [before, others, vec![(2, 0, 2)], told([(0, 2), (1, 2)]), vec![], vec![]];
    assert_eq!(remaps(&schedule), expected);
}

#[test]
fn a_matrix_tells_who_reads_what_whom_has_written() {
    let kernel = |module: u64| {
        let own = module * 8..module * 8 + 8;
        CtaBuilder::new().warp(|w| {
            // A table that all modules read, a halo, a counter that all modules increment, and private lines.
            let halo = 64 + own.start..64 + (own.end + 1).min(16);
            w.read(0..8).read(halo).write(own.clone().map(|line| 64 + line));
            w.atomic([128], Order::WEAK, AtomicResult::Discarded).write(own.map(|line| 192 + line));
        })
    };
    let arrays = [("table", 0..8), ("halo", 64..80), ("counter", 128..129), ("own", 192..208), ("idle", 256..300)];
    let program = DirectedProgram::with_arrays(vec![vec![kernel(0), kernel(1)]], &arrays);
    let rows = find(&program, 2).sharing(&*program);
    let kinds: Vec<_> = rows.iter().map(|row| (row.array, row.pages.most())).collect();
    let expected =
        [PageKind::ReadOnly, PageKind::OneWriter, PageKind::ManyWriters, PageKind::Private].map(Some).into_iter();
    assert_eq!(kinds, (0..).map(Some).zip(expected).collect::<Vec<_>>());
    let between = rows[1].flows.iter().find(|flow| flow.writer != flow.reader).copied();
    let expected = Flow { writer: ModuleId(1), reader: ModuleId(0), pages: 1, bytes: 128 };
    assert_eq!(between, Some(expected));
    assert_eq!((rows[1].contended_lines, rows[2].contended_lines), (0, 1));
}

const MODULES: usize = 3;
const LINES: u64 = 24;

/// Accesses by a CTA: lines read, and lines written with masks.
#[derive(Clone, Debug)]
struct CtaAccesses {
    reads: Vec<u64>,
    writes: Vec<(u64, u32)>,
}

fn does() -> impl Strategy<Value = CtaAccesses> {
    let mask = prop_oneof![Just(u32::MAX), Just(0x0f), Just(0xf0), 1..u32::MAX];
    let reads = prop::collection::vec(0..LINES, 0..4);
    (reads, prop::collection::vec((0..LINES, mask), 0..4)).prop_map(|(reads, writes)| CtaAccesses { reads, writes })
}

/// Kernels with one CTA per module, and their launch order.
fn programs() -> impl Strategy<Value = (Vec<Vec<CtaAccesses>>, Vec<u32>)> {
    let kernels = prop::collection::vec(prop::collection::vec(does(), MODULES), 1..4);
    kernels.prop_flat_map(|kernels| {
        let order = prop::collection::vec(0..kernels.len() as u32, 1..8);
        (Just(kernels), order)
    })
}

fn program(kernels: &[Vec<CtaAccesses>], order: &[u32]) -> Arc<DirectedProgram> {
    let cta = |does: &CtaAccesses| {
        CtaBuilder::new().warp(|w| {
            w.read(does.reads.iter().copied());
            does.writes.iter().for_each(|&(line, mask)| _ = w.store([line], Mask(mask), Order::WEAK));
        })
    };
    let kernels = kernels.iter().map(|kernel| kernel.iter().map(cta).collect()).collect();
    DirectedProgram::with_arrays(kernels, &[("a", 0..10), ("b", 10..16)]).with_launch_order(order)
}

/// The writer of each line and byte: launch and module.
type Replica = BTreeMap<(u64, u32), (usize, usize)>;

fn bytes_of(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |bit| mask & (1 << bit) != 0)
}

/// Runs the kernels on memories that are connected only by the schedule's copies. If exactly one module wrote a byte
/// last, every reading module must see this writer's value.
fn values_arrive(kernels: &[Vec<CtaAccesses>], order: &[u32], schedule: &Schedule) -> Result<(), TestCaseError> {
    let mut replicas = vec![Replica::new(); MODULES];
    let mut latest: BTreeMap<(u64, u32), (usize, BTreeSet<usize>)> = BTreeMap::new();
    for (launch, &kernel) in order.iter().enumerate() {
        for (module, does) in kernels[kernel as usize].iter().enumerate() {
            for byte in does.reads.iter().flat_map(|&line| (0..32).map(move |bit| (line, bit))) {
                if let Some((last, writers)) = latest.get(&byte).filter(|(_, writers)| writers.len() == 1) {
                    let expected = (*last, *writers.first().expect("one"));
                    prop_assert_eq!(replicas[module].get(&byte), Some(&expected), "byte {:?} at {}", byte, module);
                }
            }
        }
        for (module, does) in kernels[kernel as usize].iter().enumerate() {
            for byte in does.writes.iter().flat_map(|&(line, mask)| bytes_of(mask).map(move |bit| (line, bit))) {
                replicas[module].insert(byte, (launch, module));
                let (last, writers) = latest.entry(byte).or_default();
                if *last != launch {
                    (*last, *writers) = (launch, BTreeSet::new());
                }
                writers.insert(module);
            }
        }
        for &copy in &schedule.tasks[launch].copies {
            let PeerCopy { from, to, lines, written, .. } = &schedule.copies[copy as usize];
            for line in lines.first.0..lines.end.0 {
                for byte in bytes_of(written.mask(Line(line)).0).map(|bit| (line, bit)) {
                    let value = replicas[usize::from(from.0)][&byte];
                    replicas[usize::from(to.0)].insert(byte, value);
                }
            }
        }
    }
    Ok(())
}

/// Sender, target and line needed after launch number `at`, line by line.
fn needed_behind(kernels: &[Vec<CtaAccesses>], order: &[u32], at: usize) -> BTreeSet<(u8, u8, u64)> {
    let does = |launch: usize| &kernels[order[launch] as usize];
    let mask =
        |does: &CtaAccesses, line| does.writes.iter().filter(|(l, _)| *l == line).fold(0, |all, (_, mask)| all | mask);
    let mut needed = BTreeSet::new();
    for (from, to) in (0..MODULES).flat_map(|from| (0..MODULES).map(move |to| (from, to))).filter(|(a, b)| a != b) {
        for line in 0..LINES {
            let mut live = mask(&does(at)[from], line);
            for later in at + 1..order.len() {
                if live != 0 && does(later)[to].reads.contains(&line) {
                    needed.insert((from as u8, to as u8, line));
                }
                live &= !does(later).iter().fold(0, |all, does| all | mask(does, line));
            }
        }
    }
    needed
}

proptest! {
    #[test]
    fn hulls_bring_every_value((kernels, order) in programs()) {
        let program = program(&kernels, &order);
        let (schedule, _) = find(&program, MODULES as u8).copies(&*program, CopyContents::Hull);
        values_arrive(&kernels, &order, &schedule)?;
    }

    #[test]
    fn what_is_needed_is_that_of_a_map_and_brings_every_value((kernels, order) in programs()) {
        let program = program(&kernels, &order);
        let (schedule, _) = find(&program, MODULES as u8).copies(&*program, CopyContents::Needed);
        values_arrive(&kernels, &order, &schedule)?;
        for launch in 0..order.len() {
            let lines = |(from, to, first, end): (u8, u8, u64, u64)| (first..end).map(move |line| (from, to, line));
            let found: BTreeSet<_> = calls(&schedule, launch).into_iter().flat_map(lines).collect();
            prop_assert_eq!(found, needed_behind(&kernels, &order, launch));
        }
    }

    #[test]
    fn what_is_carried_between_harms_no_value((kernels, order) in programs(), gap in 0..10_u64) {
        let program = program(&kernels, &order);
        let (schedule, _) = find(&program, MODULES as u8).with_joining_distance(gap).copies(&*program, CopyContents::Needed);
        values_arrive(&kernels, &order, &schedule)?;
    }

    #[test]
    fn the_home_of_a_page_as_its_home_sees_it_is_itself((kernels, order) in programs()) {
        let program = program(&kernels, &order);
        let movement = find(&program, MODULES as u8);
        let (schedule, table) = movement.latest_writers(&*program);
        let mut told: BTreeMap<(u64, u8), u8> = BTreeMap::new();
        let mut latest: BTreeMap<u64, u8> = BTreeMap::new();
        for (launch, around) in schedule.tasks.iter().enumerate() {
            told.extend(around.remaps.iter().map(|remap| ((remap.page.0, remap.at.0), remap.home.0)));
            let first = |page: u64| table.home(ModuleId(0), Line(page * PAGE)).expect("it is touched").0;
            let sees = |page, at| told.get(&(page, at)).copied().unwrap_or_else(|| first(page));
            let uses = movement.page_uses(movement.number(order[launch], LaunchDevices::All));
            for used in &uses {
                let (page, at) = (used.page.0, used.module.0);
                let home = sees(page, at);
                prop_assert_eq!(sees(page, home), home);
                let before = latest.get(&page).copied().unwrap_or_else(|| first(page));
                prop_assert_eq!(home, if used.writes { at } else { before });
            }
            latest.extend(uses.iter().filter(|used| used.writes).map(|used| (used.page.0, used.module.0)));
        }
    }
}

#[test]
fn commands_that_are_no_launches_have_nothing_around_them() {
    let program = DirectedProgram::with_copies(vec![vec![cta(0..0, 0..8), cta(0..8, 0..0)]], &[1024]);
    assert!(matches!(program.commands()[1], Command::Copy { .. }));
    let movement = find(&program, 2);
    for schedule in [
        movement.copies(&*program, CopyContents::Hull).0,
        movement.copies(&*program, CopyContents::Needed).0,
        movement.hints(&*program).0,
        movement.latest_writers(&*program).0,
    ] {
        assert_eq!(schedule.tasks.len(), 2);
        assert!(schedule.tasks_of(1).is_none());
    }
    assert_eq!(
        movement.kernel(movement.number(0, LaunchDevices::All))[0].written.lines,
        LineRange::new(Line(0), Line(8)).into()
    );
}
