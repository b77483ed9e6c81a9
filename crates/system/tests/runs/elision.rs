//! Kernel boundaries on CPElide's machine against closed forms: operations performed, operations elided, and costs.
//! Four chiplets with one CU each. A page has 64 lines, and its home is the first chiplet with an access.

use crate::common::design;
use std::ops::Range;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, HostLines};
use tombolo_system::elision::{BoundaryRecord, ElisionRecord};
use tombolo_system::{RunRecord, RunSpec, Simulation, run_checked};
use tombolo_types::Mask;

const CHIPLETS: u64 = 4;
/// Lines per page.
const PAGE: u64 = 64;
const LINE: u64 = 64;

fn machine(settings: &[&str]) -> Arc<MachineConfig> {
    let mut machine = tombolo_machine::machine("chiplet-4").expect("a preset");
    let settings = [&["topology.sms_per_module=1"], settings].concat();
    tombolo_design::apply(&settings, &mut machine, &mut []).expect("settings a machine has");
    Arc::new(machine.check().expect("a machine that fits"))
}

/// The page that belongs to a chiplet in an array beginning at line `array`.
fn page(array: u64, chiplet: u64) -> Range<u64> {
    array + chiplet * PAGE..array + (chiplet + 1) * PAGE
}

/// Four CTAs, one per chiplet, with the instructions that `each` adds for the chiplet.
fn kernel(each: impl Fn(u64, &mut tombolo_system::directed::WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    (0..CHIPLETS).map(|chiplet| CtaBuilder::new().warp(|warp| each(chiplet, warp))).collect()
}

/// A kernel in which only chiplet `active` works.
fn on(active: u64, each: impl Fn(&mut tombolo_system::directed::WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    let cta = |chiplet| if chiplet == active { CtaBuilder::new().warp(&each) } else { CtaBuilder::new() };
    (0..CHIPLETS).map(cta).collect()
}

/// Writes lines one by one.
fn write(warp: &mut tombolo_system::directed::WarpBuilder<'_>, lines: Range<u64>) {
    lines.for_each(|line| _ = warp.write([line]));
}

/// Reads lines one by one.
fn read(warp: &mut tombolo_system::directed::WarpBuilder<'_>, lines: Range<u64>) {
    lines.for_each(|line| _ = warp.read([line]));
}

type Arrays<'a> = &'a [(&'a str, Range<u64>)];

fn spec(machine: &Arc<MachineConfig>, (name, settings): (&str, &[&str]), program: Arc<DirectedProgram>) -> RunSpec {
    let design = design(name, settings);
    RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads: 1 }
}

fn logged(
    named: (&str, &[&str]),
    kernels: Vec<Vec<CtaBuilder>>,
    arrays: Arrays<'_>,
    host: &[(u32, HostLines)],
) -> (RunRecord, Vec<BoundaryRecord>) {
    let machine = machine(&[]);
    let program = DirectedProgram::of_arrays(machine.line, kernels, arrays, host);
    let spec = spec(&machine, named, program);
    let observed = Simulation::new(&spec).boundaries().run().unwrap_or_else(|error| panic!("{error}"));
    (observed.record, observed.boundaries)
}

fn ran(
    design: &str,
    kernels: Vec<Vec<CtaBuilder>>,
    arrays: Arrays<'_>,
) -> (RunRecord, ElisionRecord, Vec<BoundaryRecord>) {
    let (record, boundaries) = logged((design, &[]), kernels, arrays, &[]);
    let elision = record.elision.clone().expect("it is logged");
    (record, elision, boundaries)
}

/// The modules that flush and the modules that invalidate before launch number `launch`.
fn before(boundaries: &[BoundaryRecord], launch: usize) -> (Vec<usize>, Vec<usize>) {
    let launches: Vec<&BoundaryRecord> = boundaries.iter().filter(|boundary| boundary.at == "launch").collect();
    operations(launches[launch])
}

fn operations(boundary: &BoundaryRecord) -> (Vec<usize>, Vec<usize>) {
    let those = |wanted: fn(&tombolo_system::elision::ModuleBoundary) -> bool| {
        let modules = boundary.modules.iter().enumerate();
        modules.filter(|(_, module)| wanted(module)).map(|(index, _)| index).collect()
    };
    (those(|module| module.flush), those(|module| module.invalidate))
}

const NOBODY: (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());

#[test]
fn chiplets_that_keep_to_their_own_ranges_do_nothing_until_the_end() {
    let step = || kernel(|chiplet, warp| _ = (read(warp, page(0, chiplet)), write(warp, page(0, chiplet))));
    let (record, elision, boundaries) = ran("cpelide", vec![step(), step(), step()], &[("a", 0..4 * PAGE)]);
    assert_eq!((elision.flushes, elision.invalidations), (CHIPLETS, 0), "the release at the end alone");
    assert_eq!((0..3).map(|launch| before(&boundaries, launch)).collect::<Vec<_>>(), vec![NOBODY; 3]);
    assert_eq!(record.l2.loads - record.l2.hits, CHIPLETS * PAGE, "misses of the first kernel");
    assert_eq!(elision.flushed_lines, CHIPLETS * PAGE);
    assert_eq!((elision.needed_flushes, elision.needed_invalidations), (Some(CHIPLETS), Some(0)));
    assert_eq!((elision.elided_flushes, elision.elided_invalidations), (3 * CHIPLETS, 3 * CHIPLETS));
    assert_eq!((elision.elidable_flushes, elision.elidable_invalidations), (Some(3 * CHIPLETS), Some(3 * CHIPLETS)));
    assert_eq!(elision.boundaries, 4);
}

#[test]
fn a_producer_is_flushed_once_and_keeps_clean_copies() {
    let kernels =
        vec![on(0, |warp| write(warp, 0..PAGE)), on(1, |warp| read(warp, 0..PAGE)), on(0, |warp| read(warp, 0..PAGE))];
    let (record, elision, boundaries) = ran("cpelide", kernels, &[("a", 0..PAGE)]);
    assert_eq!((0..3).map(|at| before(&boundaries, at)).collect::<Vec<_>>(), [NOBODY, (vec![0], vec![]), NOBODY]);
    assert_eq!((elision.flushes, elision.invalidations, elision.flushed_lines), (1, 0, PAGE));
    assert_eq!(record.l2.hits, PAGE, "all that the third kernel reads");
}

#[test]
fn an_invalidation_keeps_what_its_module_has_written_since() {
    // In the second kernel chiplet 0 writes b and chiplet 1 writes a. Chiplet 0 has copies of a from the first kernel.
    let (a, b) = (0..PAGE, PAGE..PAGE + 10);
    let both = |chiplet: u64, warp: &mut tombolo_system::directed::WarpBuilder<'_>| match chiplet {
        0 => write(warp, b.clone()),
        1 => write(warp, a.clone()),
        _ => {}
    };
    let kernels = vec![on(0, |warp| write(warp, a.clone())), kernel(both), on(0, |warp| read(warp, a.clone()))];
    let (record, elision, boundaries) = ran("cpelide", kernels, &[("a", a.clone()), ("b", PAGE..2 * PAGE)]);
    assert_eq!(before(&boundaries, 1), (vec![0], vec![]));
    assert_eq!(before(&boundaries, 2), (vec![1], vec![0]));
    let dropped: u64 = boundaries[boundaries.len() - 3..].iter().map(|at| at.modules[0].dropped_lines).sum();
    assert_eq!(dropped, PAGE, "its copies of a; those of b are dirty and stay");
    let last = boundaries.last().expect("the end of the program");
    assert_eq!((last.at, operations(last).0, last.modules[0].flushed_lines), ("program-end", vec![0], 10));
    assert_eq!(elision.flushed_lines, PAGE + 10, "chiplet 1's stores went through");
    assert_eq!(record.l2.hits, 0);
}

#[test]
fn what_is_only_read_is_never_synchronised() {
    let step = || kernel(|_, warp| read(warp, 0..4 * PAGE));
    for name in ["cpelide", "cpelide-home-aware"] {
        let (_, elision, _) = ran(name, (0..10).map(|_| step()).collect(), &[("a", 0..4 * PAGE)]);
        assert_eq!((elision.flushes, elision.invalidations), (0, 0), "{name}");
    }
}

#[test]
fn the_baseline_synchronises_everywhere_and_moves_all_that_is_used() {
    let kernels = 3;
    let step = || kernel(|chiplet, warp| _ = (read(warp, page(0, chiplet)), write(warp, page(0, chiplet))));
    let (record, elision, _) = ran("viper", (0..kernels).map(|_| step()).collect(), &[("a", 0..4 * PAGE)]);
    assert_eq!((elision.flushes, elision.invalidations), (kernels * CHIPLETS, kernels * CHIPLETS));
    assert_eq!((elision.elided_flushes, elision.elided_invalidations), (0, 0));
    let moved = kernels * CHIPLETS * PAGE * LINE;
    assert_eq!(record.coherence["memory_read_bytes"], moved);
    assert_eq!(record.coherence["memory_write_bytes"], moved);
    assert_eq!(elision.dropped_lines, (kernels - 1) * CHIPLETS * PAGE);
}

#[test]
fn labels_of_modes_alone_elide_nothing_of_what_is_written() {
    let step = || kernel(|chiplet, warp| _ = (read(warp, page(0, chiplet)), write(warp, page(0, chiplet))));
    let kernels = || vec![step(), step(), step()];
    let arrays: Arrays<'_> = &[("a", 0..4 * PAGE)];
    let (modes, boundaries) = logged(("cpelide", &["elision.labels=modes"]), kernels(), arrays, &[]);
    let all: Vec<usize> = (0..4).collect();
    assert_eq!((1..3).map(|at| before(&boundaries, at)).collect::<Vec<_>>(), vec![(all.clone(), all); 2]);
    let (baseline, _) = logged(("viper", &["boundary=launch"]), kernels(), arrays, &[]);
    assert_eq!(modes.traffic_flits, baseline.traffic_flits);
    assert_eq!(modes.coherence["memory_write_bytes"], baseline.coherence["memory_write_bytes"]);
}

/// Each chiplet writes its page in the target array and reads its page in the source array, plus a halo line from each
/// neighbour; the arrays swap after each step.
fn ping_pong(steps: u64) -> Vec<Vec<CtaBuilder>> {
    let all = 4 * PAGE;
    let step = |at: u64| {
        let (from, to) = if at.is_multiple_of(2) { (0, all) } else { (all, 0) };
        kernel(|chiplet, warp| {
            let own = page(from, chiplet);
            read(warp, own.start.saturating_sub(1).max(from)..(own.end + 1).min(from + all));
            write(warp, page(to, chiplet));
        })
    };
    // First touch: each chiplet becomes the home of its pages in both arrays.
    let first = kernel(|chiplet, warp| _ = (write(warp, page(0, chiplet)), write(warp, page(all, chiplet))));
    std::iter::once(first).chain((0..steps).map(step)).collect()
}

#[test]
fn halos_flush_every_step_and_invalidate_only_where_homes_are_not_known() {
    let arrays: Arrays<'_> = &[("a", 0..4 * PAGE), ("b", 4 * PAGE..8 * PAGE)];
    let all: Vec<usize> = (0..4).collect();
    let (_, hull, boundaries) = ran("cpelide", ping_pong(6), arrays);
    let done: Vec<_> = (2..7).map(|at| before(&boundaries, at)).collect();
    assert!(done.iter().all(|(flushes, _)| *flushes == all), "{done:?}");
    let invalidating: Vec<usize> = done.iter().map(|(_, invalidations)| invalidations.len()).collect();
    assert_eq!(invalidating, [0, 4, 0, 4, 0], "every second step");
    let (_, aware, boundaries) = ran("cpelide-home-aware", ping_pong(6), arrays);
    assert_eq!((2..7).map(|at| before(&boundaries, at)).collect::<Vec<_>>(), vec![(all, vec![]); 5]);
    assert_eq!((aware.invalidations, aware.needed_invalidations), (0, Some(0)));
    assert_eq!(hull.needed_invalidations, Some(0), "an oracle knows homes, too");
    let (_, _, operations) = {
        let (record, boundaries) = logged(("cpelide", &["elision.operations=range"]), ping_pong(6), arrays, &[]);
        let elision = record.elision.clone().expect("it is logged");
        (record, boundaries, elision)
    };
    assert!(operations.dropped_lines < hull.dropped_lines, "{} of {}", operations.dropped_lines, hull.dropped_lines);
    assert_eq!(operations.flushes, hull.flushes);
}

#[test]
fn stores_reach_memory_each_time_under_nhcc_once_a_kernel_under_viper_and_once_in_all_under_cpelide() {
    let kernels = 5;
    let step = || kernel(|chiplet, warp| write(warp, page(0, chiplet)));
    let written = |name: &str, settings: &[&str]| {
        let kernels = (0..kernels).map(|_| step()).collect();
        // With the shortest write queue, no queued write merges with a later kernel's write to the line.
        let machine = machine(&["dram.write_queue=2"]);
        let program = DirectedProgram::of_arrays(machine.line, kernels, &[("a", 0..4 * PAGE)], &[]);
        let spec = spec(&machine, (name, settings), program);
        let record = Simulation::new(&spec).boundaries().run().unwrap_or_else(|error| panic!("{error}")).record;
        (record.coherence["memory_write_bytes"], record.dram.write_bytes)
    };
    let lines = CHIPLETS * PAGE * LINE;
    assert_eq!(written("nhcc", &["l3_write=through"]), (kernels * lines, kernels * lines));
    assert_eq!(written("nhcc", &[]), (kernels * lines, 0), "an L3 that writes back absorbs them");
    assert_eq!(written("viper", &[]), (kernels * lines, 0));
    assert_eq!(written("cpelide", &[]), (lines, 0));
}

#[test]
fn remote_reads_cross_each_time_under_the_text_and_once_where_an_l2_caches_them() {
    let kernels = 3;
    let twice = || on(1, |warp| _ = (read(warp, 0..PAGE), read(warp, 0..PAGE)));
    let remote = |name: &str, settings: &[&str]| {
        let first = on(0, |warp| read(warp, 0..PAGE));
        let all = std::iter::once(first).chain((0..kernels).map(|_| twice())).collect();
        // An L1 with a single line: no second read hits.
        let machine = machine(&["l1.bytes=64B", "l1.ways=1"]);
        let program = DirectedProgram::of_arrays(machine.line, all, &[("a", 0..PAGE)], &[]);
        let spec = spec(&machine, (name, settings), program);
        let record = Simulation::new(&spec).boundaries().run().expect("it runs").record;
        record.traffic_flits.expect("there is an L3").remote
    };
    // Flits per remote read: one for the request, five for the reply.
    let crossing = 6 * PAGE;
    assert_eq!(remote("viper", &[]), 2 * kernels * crossing);
    assert_eq!(remote("cpelide", &[]), 2 * kernels * crossing);
    assert_eq!(remote("viper-cached", &[]), kernels * crossing);
    assert_eq!(remote("viper-cached", &["elision=cpelide"]), crossing);
}

#[test]
fn a_home_l2_that_serves_others_needs_no_operation() {
    // Chiplet 1 reads what chiplet 0 has written, twice.
    let kernels = || {
        let write = || on(0, |warp| write(warp, 0..PAGE));
        vec![write(), on(1, |warp| read(warp, 0..PAGE)), write(), on(1, |warp| read(warp, 0..PAGE))]
    };
    let elision = |name: &str, settings: &[&str]| {
        logged((name, settings), kernels(), &[("a", 0..PAGE)], &[]).0.elision.expect("a table decides")
    };
    let text = elision("cpelide", &[]);
    assert!(text.needed_flushes > Some(0), "{text:?}");
    let home = elision("cpelide", &["coherence.remote=home"]);
    assert_eq!((home.needed_flushes, home.needed_invalidations), (Some(0), Some(0)), "{home:?}");
    let remote = |settings: &[&str]| logged(("viper", settings), kernels(), &[("a", 0..PAGE)], &[]).0;
    let [memory, home] = [remote(&[]), remote(&["coherence.remote=home"])];
    let hits = |record: &RunRecord| (record.l2.remote_loads, record.l2.remote_hits);
    assert_eq!(hits(&memory).1, 0, "remote reads pass the home's L2");
    assert_eq!(hits(&home), (2 * PAGE, 2 * PAGE), "its flushes leave clean lines, which serve remote reads");
}

#[test]
fn a_launch_takes_what_the_command_processor_takes() {
    let empty = || vec![CtaBuilder::new(); 4];
    let cycle = 1.0 / 1.801e9;
    let times =
        |name: &str, kernels, host: &[(u32, HostLines)]| logged((name, &[]), kernels, &[("a", 0..PAGE)], host).0;
    let near = |found: f64, right: f64, what: &str| {
        assert!((found - right).abs() < 2.0 * cycle, "{what}: {found}, not {right}")
    };
    // Three round trips to all chiplets: two for boundary operations, one for the launch and the kernel's end.
    let baseline = times("viper", vec![empty(), empty()], &[]).kernels;
    near(baseline[0].start_s, 2e-6, "the packet of the first");
    near(baseline[1].start_s - baseline[0].end_s, 2e-6, "that of the second");
    near(baseline[1].end_s - baseline[1].start_s, 495.0 * cycle, "the kernel");
    // Two round trips: the launch with the kernel's end, and the confirmation that write-through data has arrived.
    let elided = times("cpelide", vec![empty(), empty()], &[]).kernels;
    near(elided[0].start_s, 8e-6, "the packet of the first, and the table's work");
    near(elided[1].end_s - elided[1].start_s, 330.0 * cycle, "the kernel");
    near(elided[1].start_s - elided[0].end_s, 2e-6, "the packet of the second, which was queued");
    // A host read between the kernels: the second packet is not queued in time, but the table delays the first kernel alone.
    let waits = times("cpelide", vec![empty(), empty()], &[(1, HostLines::Read(0..1))]).kernels;
    near(waits[1].start_s - waits[0].end_s, 2e-6, "the packet of the second, behind the host");
    // The second launch flushes chiplet 0 alone: one message and one reply.
    let flush = |flushed: u64| {
        let kernels = vec![on(0, |warp| write(warp, 0..flushed)), on(1, |warp| write(warp, 0..flushed))];
        let program = logged(("cpelide", &[]), kernels, &[("a", 0..PAGE)], &[]);
        program.1.iter().filter(|at| at.at == "launch").nth(1).map(|at| at.end_s - at.start_s).expect("two launches")
    };
    let (one, more) = (flush(1), flush(33));
    assert!(one >= 130.0 * cycle && one < 400.0 * cycle, "{} cycles", one / cycle);
    let rate = 512e9;
    assert!(more - one < 2.0 * 32.0 * 72.0 / rate + 64.0 * cycle, "{} cycles more", (more - one) / cycle);
}

#[test]
fn a_row_makes_room_for_the_sixty_fifth_array() {
    let arrays: Vec<(String, Range<u64>)> = (0..65).map(|at| (format!("a{at}"), at..at + 1)).collect();
    let arrays: Vec<(&str, Range<u64>)> = arrays.iter().map(|(name, lines)| (name.as_str(), lines.clone())).collect();
    let kernels = (0..65).map(|at| on(2, move |warp| write(warp, at..at + 1))).collect();
    let (_, elision, boundaries) = ran("cpelide", kernels, &arrays);
    assert_eq!(elision.rows_peak, 64);
    assert_eq!((0..64).map(|at| before(&boundaries, at)).collect::<Vec<_>>(), vec![NOBODY; 64]);
    assert_eq!(before(&boundaries, 64), (vec![2], vec![2]));
}

#[test]
fn of_nine_arrays_the_two_closest_share_a_row() {
    let at = |array: u64| if array < 5 { 10 * array } else { 10 * array - 4 };
    let arrays: Vec<(String, Range<u64>)> =
        (0..9).map(|array| (format!("a{array}"), at(array)..at(array) + 4)).collect();
    let arrays: Vec<(&str, Range<u64>)> = arrays.iter().map(|(name, lines)| (name.as_str(), lines.clone())).collect();
    let all = || on(0, |warp| (0..9).for_each(|array| read(warp, at(array)..at(array) + 1)));
    let (_, elision, boundaries) = ran("cpelide", vec![all(), all()], &arrays);
    assert_eq!(elision.rows_peak, 8);
    let second = boundaries.iter().filter(|at| at.at == "launch").nth(1).expect("two launches");
    let shared = second.modules[0].why.iter().filter_map(|why| why.arrays.as_ref()).find(|arrays| arrays.len() > 1);
    assert_eq!(shared, Some(&vec!["a4".to_owned(), "a5".to_owned()]));
}

#[test]
fn what_the_host_reads_is_released_and_what_it_writes_is_read_anew() {
    let kernels = vec![
        kernel(|chiplet, warp| write(warp, page(0, chiplet))),
        kernel(|chiplet, warp| read(warp, page(0, chiplet))),
    ];
    let host = [(1, HostLines::Read(0..1)), (1, HostLines::Written(PAGE..PAGE + 1))];
    let (_, boundaries) = logged(("cpelide", &[]), kernels, &[("a", 0..4 * PAGE)], &host);
    let of_host: Vec<_> = boundaries.iter().filter(|at| at.at == "host").map(operations).collect();
    assert_eq!(
        of_host,
        [(vec![0], vec![]), (vec![1], vec![])],
        "before it writes, too: dirty bytes would come over it"
    );
    assert_eq!(before(&boundaries, 1), (vec![], vec![1]));
}

#[test]
fn a_line_that_all_write_in_part_is_read_right() {
    let quarter = |chiplet: u64| Mask(0b1111 << (4 * chiplet));
    let each = |chiplet, warp: &mut tombolo_system::directed::WarpBuilder<'_>| {
        warp.store([0], quarter(chiplet), tombolo_types::Order::WEAK);
    };
    let all =
        || vec![kernel(each), kernel(|_, warp| read(warp, 0..1)), kernel(each), kernel(|_, warp| read(warp, 0..1))];
    for named in [("cpelide", ""), ("cpelide-home-aware", ""), ("viper-cached", "elision=cpelide")] {
        let machine = machine(&[]);
        let program = DirectedProgram::of_arrays(machine.line, all(), &[("a", 0..1)], &[]);
        let settings: Vec<&str> = [named.1].into_iter().filter(|setting| !setting.is_empty()).collect();
        let record = run_checked(&spec(&machine, (named.0, &settings), program), None).expect("it runs");
        let check = record.check.expect("it is checked");
        assert_eq!((check.loads, check.violations), (8, 0), "{named:?}: {:?}", check.first);
    }
}

#[test]
fn a_program_without_arrays_is_synchronised_as_before() {
    let step = || kernel(|chiplet, warp| write(warp, page(0, chiplet)));
    let (_, elision, _) = ran("cpelide", vec![step(), step()], &[]);
    assert_eq!((elision.invalidations, elision.needed_flushes), (2 * CHIPLETS, None));
    assert_eq!(elision.flushes, 4 * CHIPLETS, "before each launch and behind each kernel");
}

#[test]
fn a_directory_leaves_nothing_to_invalidate_and_a_wait_to_elide() {
    let own = || kernel(|chiplet, warp| _ = (read(warp, page(0, chiplet)), write(warp, page(0, chiplet))));
    let all = || kernel(|_, warp| read(warp, 0..4 * PAGE));
    let arrays: Arrays<'_> = &[("a", 0..4 * PAGE)];
    let counts = |settings: &[&str]| {
        let (record, _) = logged(("nhcc", settings), vec![own(), own(), all(), own()], arrays, &[]);
        let elision = record.elision.expect("it is logged");
        (elision.flushes, elision.invalidations, elision.needed_flushes, elision.flushed_lines)
    };
    assert_eq!(counts(&[]), (4 * CHIPLETS, 0, Some(0), 0), "a release behind each kernel");
    // Releases before the third kernel, which reads lines written by remote chiplets, and at the program's end, for the
    // stores of the fourth kernel.
    assert_eq!(counts(&["elision=cpelide"]), (2 * CHIPLETS, 0, Some(0), 0));
}

#[test]
fn a_label_that_lacks_an_array_is_seen() {
    let kernels = vec![on(0, |warp| write(warp, 0..4)), on(1, |warp| read(warp, 0..4))];
    let machine = machine(&[]);
    let program = DirectedProgram::of_arrays(machine.line, kernels, &[("a", 0..PAGE), ("b", PAGE..2 * PAGE)], &[]);
    let checked = |drop: &str| {
        let drop = format!("elision.drop={drop}");
        let spec = spec(&machine, ("cpelide", &[drop.as_str()]), Arc::clone(&program));
        run_checked(&spec, None).map(|record| record.check.expect("it is checked"))
    };
    let places = checked("a").expect("it runs").places;
    let [place] = &places[..] else { panic!("{places:?}") };
    assert_eq!((place.array.as_deref(), &*place.module, place.launch), (Some("a"), "module1", 1));
    assert_eq!((place.bytes, place.violations), ([0, 3 * LINE + 2], 4), "the first wrong bytes of four lines");
    assert_eq!(checked("b").expect("it runs").violations, 0);
    assert!(checked("c").expect_err("no such array").to_string().contains("the program has a, b"));
}

#[test]
fn one_chiplet_is_as_fast_as_one_piece_where_the_table_takes_no_time() {
    let step = || vec![CtaBuilder::new().warp(|warp| _ = (read(warp, 0..PAGE), write(warp, 0..PAGE)))];
    let machine = machine(&["topology.modules_per_gpu=1", "host.table_latency=0us"]);
    let kernels = |name: &str| {
        let program = DirectedProgram::of_arrays(machine.line, vec![step(), step(), step()], &[("a", 0..PAGE)], &[]);
        let spec = spec(&machine, (name, &[]), program);
        let record = Simulation::new(&spec).boundaries().run().expect("it runs").record;
        let elision = record.elision.clone().expect("it is logged");
        (record.kernels.iter().map(|kernel| kernel.ctas).sum::<u64>(), elision.flushes, elision.invalidations)
    };
    assert_eq!(kernels("cpelide"), (3, 1, 0), "the release at the end");
}
