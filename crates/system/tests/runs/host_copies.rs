//! Copies between a host and GPUs, tested with directed programs for which bytes and times are known in closed form.
//!
//! The machine has 128-byte lines and 64 KB pages, that is 512 lines per page. A kernel has a CTA for each GPU; CTA `i`
//! runs on GPU `i`.

use crate::common;
use std::ops::Range;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_programs::find;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, HostLines};
use tombolo_system::host::PhasesRecord;
use tombolo_system::paging::CopiesRecord;
use tombolo_system::run_checked;
use tombolo_system::{RunRecord, RunSpec, run};
use tombolo_types::stream::{Command, Program};
use tombolo_types::{HostPhase, LaunchDevices, LineSize, Mask, Order};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Links at 16 GB/s, slower than the memories and the last-level cache.
const FAST: [&str; 4] =
    ["gpu_link.rate=16GB/s", "llc.rate=400GB/s", "host_memory.rate=307.2GB/s", "host_memory.channels=16"];

const LINE: u64 = 128;
/// Lines per page.
const PAGE: u64 = 512;
const PAGE_BYTES: u64 = PAGE * LINE;
const GPUS: u64 = 4;
/// Seconds per call, and bytes per second on a link: 256 out of every 272 are data.
const CALL: f64 = 10e-6;
const RATE: f64 = 16e9 * 256.0 / 272.0;

fn machine(settings: &[&str]) -> Arc<MachineConfig> {
    let all: Vec<&str> = FAST.iter().chain(settings).copied().collect();
    common::hosted(&all)
}

fn memcpy(settings: &[&str]) -> DesignConfig {
    common::design("memcpy-host", settings)
}

fn cuda6() -> DesignConfig {
    common::design("unified-memory-cuda6", &[])
}

/// A kernel with a CTA per GPU; each CTA reads the lines in `reads` and writes the lines in `writes`.
fn kernel(reads: impl Fn(u64) -> Range<u64>, writes: impl Fn(u64) -> Range<u64>) -> Vec<CtaBuilder> {
    let cta = |gpu: u64| {
        CtaBuilder::new().warp(|warp| {
            reads(gpu).for_each(|line| _ = warp.read([line]));
            writes(gpu).for_each(|line| _ = warp.write([line]));
        })
    };
    (0..GPUS).map(cta).collect()
}

/// The page that belongs to a GPU in an array with one page per GPU.
fn own(gpu: u64) -> Range<u64> {
    gpu * PAGE..(gpu + 1) * PAGE
}

fn nothing(_: u64) -> Range<u64> {
    0..0
}

fn bytes(lines: Range<u64>) -> Vec<Range<u64>> {
    if lines.is_empty() { Vec::new() } else { std::iter::once(lines.start * LINE..lines.end * LINE).collect() }
}

/// A program with these arrays; the host sets up some lines before it and reads some lines at the end.
fn program(
    kernels: Vec<Vec<CtaBuilder>>,
    arrays: &[(&str, Range<u64>)],
    host: &[(u32, HostLines)],
    (setup, results): (Range<u64>, Range<u64>),
) -> Arc<DirectedProgram> {
    let setup = HostPhase { reads: Vec::new(), writes: bytes(setup) };
    let results = HostPhase { reads: bytes(results), writes: Vec::new() };
    DirectedProgram::of_arrays(LineSize::B128, kernels, arrays, host).with_host_phases(setup, results)
}

/// Runs a program, with and without values, on one thread and on two, and checks that all results are equal. The parts
/// of the run time add up to the total.
fn simulate(machine: &Arc<MachineConfig>, design: &DesignConfig, program: &Arc<DirectedProgram>) -> RunRecord {
    let [one, checked] = common::held(machine, design, program);
    assert_whole(&checked);
    one
}

/// Checks that every load returned an allowed value, and that the parts of the time add up.
fn assert_whole(record: &RunRecord) {
    let check = record.check.as_ref().expect("a checked run");
    assert_eq!(check.violations, 0, "{}: {:?}", record.design, check.first);
    let p = phases(record);
    let host = p.host_setup_s + p.host_between_s + p.host_results_s;
    let parts = p.kernels_s + p.synchronisation_s + p.copies_in_s + p.copies_out_s + host + p.launches_s;
    assert!((parts - p.whole_s).abs() < 1e-9, "{p:?}");
    assert!((p.copies_in_s + p.copies_out_s - copies(record).exposed_s).abs() < 1e-9, "{p:?}");
}

fn phases(record: &RunRecord) -> PhasesRecord {
    record.phases.expect("the host takes part")
}

fn copies(record: &RunRecord) -> CopiesRecord {
    record.copies.expect("it copies")
}

/// Data bytes transferred over a link, without headers.
fn data(record: &RunRecord, link: &str) -> u64 {
    record.links.iter().find(|one| one.name == link).unwrap_or_else(|| panic!("no link {link}")).data_bytes
}

/// True if a time equals one call plus `bytes` at the link's rate, with a tolerance of two percent for latencies.
fn takes_as_long_as(time: f64, bytes: u64) -> bool {
    (1.0..1.02).contains(&(time / (CALL + bytes as f64 / RATE)))
}

#[test]
fn each_gpu_gets_its_range_before_a_kernel_and_gives_it_back_before_the_host_reads() {
    let x = 0..GPUS * PAGE;
    let program = program(vec![kernel(own, own)], &[("x", x.clone())], &[], (x.clone(), x));
    let record = simulate(&machine(&[]), &memcpy(&[]), &program);
    for gpu in 0..GPUS {
        assert_eq!([data(&record, &format!("gpu{gpu}.in")), data(&record, &format!("gpu{gpu}.out"))], [PAGE_BYTES; 2]);
    }
    assert_eq!([data(&record, "host.out"), data(&record, "host.in")], [GPUS * PAGE_BYTES; 2]);
    assert_eq!((copies(&record).calls, copies(&record).bytes), (2 * GPUS, 2 * GPUS * PAGE_BYTES));
}

#[test]
fn a_copy_takes_its_call_and_its_bytes_at_the_rate_of_the_link() {
    let x = 0..16 * PAGE;
    let all = |cta: u64| if cta == 0 { 0..16 * PAGE } else { 0..0 };
    let program = program(vec![kernel(all, all)], &[("x", x.clone())], &[], (x.clone(), x));
    let record = simulate(&machine(&["topology.gpus=1"]), &memcpy(&[]), &program);
    let phases = phases(&record);
    for time in [phases.copies_in_s, phases.copies_out_s] {
        assert!(takes_as_long_as(time, 16 * PAGE_BYTES), "{phases:?}");
    }
    let of_both = phases.whole_s - phases.host_setup_s - phases.host_results_s;
    assert!((record.time.region_s / of_both - 1.0).abs() < 0.01, "the region has both copies: {:?}", record.time);
}

#[test]
fn copies_of_several_gpus_run_side_by_side_and_share_what_is_one_medium() {
    let x = 0..16 * GPUS * PAGE;
    let mine = |gpu: u64| 16 * PAGE * gpu..16 * PAGE * (gpu + 1);
    let program = program(vec![kernel(mine, mine)], &[("x", x.clone())], &[], (x.clone(), x));
    let own = ["gpu_link.rate=64GB/s", "host_link.through=own", "host_link.rate=16GB/s", "host_link.latency=235ns"];
    let each = 16 * PAGE_BYTES;
    for (settings, bytes) in
        [(&["fabric.shape=pairs"][..], each), (&["fabric.shape=shared"], GPUS * each), (&own, each)]
    {
        let phases = phases(&simulate(&machine(settings), &memcpy(&[]), &program));
        for time in [phases.copies_in_s, phases.copies_out_s] {
            assert!(takes_as_long_as(time, bytes), "{settings:?}: {phases:?}");
        }
    }
}

#[test]
fn even_ranges_leave_ctas_in_turn_the_others_share_of_accesses_remote() {
    let (x, ctas) = (0..GPUS * PAGE, 128);
    let reading =
        |cta: u64| CtaBuilder::new().warp(|warp| (16 * cta..16 * (cta + 1)).for_each(|line| _ = warp.read([line])));
    let program = program(vec![(0..ctas).map(reading).collect()], &[("x", x.clone())], &[], (x, 0..0));
    let record = simulate(&machine(&[]), &memcpy(&[]), &program);
    let came: u64 = (0..GPUS).map(|gpu| data(&record, &format!("gpu{gpu}.in"))).sum();
    let remote = (came - copies(&record).bytes) / LINE;
    assert_eq!(remote * GPUS, ctas * 16 * (GPUS - 1));
}

#[test]
fn pages_in_turn_are_where_ctas_in_turn_use_them_and_cost_no_more_calls() {
    let x = 0..2 * GPUS * PAGE;
    let reading = |page: u64| CtaBuilder::new().warp(|warp| own(page).for_each(|line| _ = warp.read([line])));
    let program = program(vec![(0..2 * GPUS).map(reading).collect()], &[("x", x.clone())], &[], (x, 0..0));
    for (ranges, remote) in [("contiguous", 6), ("interleaved", 0)] {
        let design = memcpy(&[&format!("placement.ranges={ranges}")]);
        let record = simulate(&machine(&[]), &design, &program);
        assert_eq!((copies(&record).calls, copies(&record).bytes), (GPUS, 2 * GPUS * PAGE_BYTES), "{ranges}");
        let came: u64 = (0..GPUS).map(|gpu| data(&record, &format!("gpu{gpu}.in"))).sum();
        assert_eq!(came - copies(&record).bytes, remote * PAGE_BYTES, "{ranges}");
    }
}

#[test]
fn replicated_inputs_go_whole_to_each_gpu_and_what_kernels_write_stays_divided() {
    // Each GPU reads the next GPU's part and writes its own. Lines in y share the last page with x, if any.
    let reads = |gpu: u64| own((gpu + 1) % GPUS);
    for (y, shared) in [(GPUS * PAGE, 0), (GPUS * PAGE - 8, 1)] {
        let writes = move |gpu: u64| y + gpu * PAGE..y + (gpu + 1) * PAGE - 8;
        let arrays = [("x", 0..y), ("y", y..y + GPUS * PAGE)];
        let reads = move |gpu: u64| reads(gpu).start..reads(gpu).end.min(y);
        let program = program(vec![kernel(reads, writes)], &arrays, &[], (0..y, y..y + GPUS * PAGE));
        for ranges in ["contiguous", "interleaved"] {
            let settings = [format!("placement.ranges={ranges}"), "placement.inputs=replicated".to_owned()];
            let record = simulate(&machine(&[]), &memcpy(&settings.each_ref().map(|one| &**one)), &program);
            // In x, unshared pages go whole to each GPU; on a shared page, x's lines go only to its home.
            let to_gpus = (GPUS * (GPUS - shared) * PAGE + shared * (PAGE - 8)) * LINE;
            let came: u64 = (0..GPUS).map(|gpu| data(&record, &format!("gpu{gpu}.in"))).sum();
            assert_eq!(data(&record, "host.out"), to_gpus, "{ranges}, {shared} shared");
            if shared == 0 {
                assert_eq!(came, to_gpus, "{ranges}: no load is remote");
            }
        }
    }
}

#[test]
fn only_what_the_other_side_has_written_and_this_one_reads_is_copied() {
    let arrays = [("in", 0..4 * PAGE), ("out", 4 * PAGE..8 * PAGE), ("unread", 8 * PAGE..12 * PAGE)];
    let out = |gpu: u64| own(gpu + 4);
    // The host sets up all lines; two launches read `in` and write `out`; in between, the host reads two pages from
    // `out`.
    let kernels = vec![kernel(own, out), kernel(own, out)];
    let host = [(1, HostLines::Read(4 * PAGE..6 * PAGE))];
    let program = program(kernels, &arrays, &host, (0..12 * PAGE, 4 * PAGE..8 * PAGE));
    let record = simulate(&machine(&[]), &memcpy(&[]), &program);
    assert_eq!((data(&record, "host.out"), data(&record, "host.in")), (4 * PAGE_BYTES, (2 + 4) * PAGE_BYTES));
    assert_eq!(copies(&record).calls, 4 + 2 + 4);
}

#[test]
fn the_first_and_the_last_byte_written_to_an_array_bound_what_is_carried() {
    let x = 0..GPUS * PAGE;
    let host = [(1, HostLines::Written(10..12)), (1, HostLines::Written(90..100))];
    let kernels = vec![kernel(|_| 0..PAGE, nothing), kernel(|_| 0..PAGE, nothing)];
    let program = program(kernels, &[("x", x.clone())], &host, (x, 0..0));
    let record = simulate(&machine(&[]), &memcpy(&[]), &program);
    assert_eq!(data(&record, "host.out"), GPUS * PAGE_BYTES + 90 * LINE);
}

#[test]
fn words_that_host_and_gpus_write_to_the_same_lines_are_all_there() {
    let x = 0..GPUS * PAGE;
    let write = |word: u32| {
        let cta = |gpu: u64| {
            let store = |warp: &mut tombolo_system::directed::WarpBuilder<'_>| {
                own(gpu).step_by(7).for_each(|line| _ = warp.store([line], Mask(1 << word), Order::WEAK));
            };
            CtaBuilder::new().warp(store)
        };
        (0..GPUS).map(cta).collect::<Vec<CtaBuilder>>()
    };
    let all = |_| 0..GPUS * PAGE;
    let kernels = vec![write(0), write(1), kernel(all, nothing), write(2), kernel(all, nothing)];
    let host = [
        (1, HostLines::Read(0..40)),
        (1, HostLines::Written(30..50)),
        (2, HostLines::Read(0..2 * PAGE)),
        (4, HostLines::Written(PAGE..PAGE + 9)),
        (4, HostLines::Read(20..PAGE)),
        (5, HostLines::Written(3..4)),
    ];
    let program = program(kernels, &[("a", 0..PAGE / 2), ("x", PAGE / 2..GPUS * PAGE)], &host, (x.clone(), x));
    let machine = machine(&[]);
    for design in [memcpy(&[]), memcpy(&["placement.ranges=interleaved"]), cuda6()] {
        let record = simulate(&machine, &design, &program);
        assert!(phases(&record).copies_in_s > 0.0 && phases(&record).copies_out_s > 0.0, "{}", design.name);
    }
}

#[test]
fn an_array_that_no_kernel_touches_costs_a_transfer_each_way_under_unified_memory_alone() {
    // UMH, Figure 3: z has 160 pages, 4 KB each.
    let z = 640 * 1024;
    let lines = [("x", 0..PAGE), ("z", PAGE..PAGE + z / LINE)];
    let first = |gpu: u64| if gpu == 0 { 0..PAGE } else { 0..0 };
    let machine = machine(&["page_bytes=4KB"]);
    let record = |design: &DesignConfig, arrays: &[(&str, Range<u64>)]| {
        let all = 0..arrays.last().map_or(0, |(_, lines)| lines.end);
        let program = program(vec![kernel(first, nothing)], arrays, &[], (all.clone(), all));
        simulate(&machine, design, &program)
    };
    let [with, without] = [&lines[..], &lines[..1]].map(|arrays| record(&cuda6(), arrays));
    for link in ["gpu0.in", "gpu0.out"] {
        assert_eq!(data(&with, link) - data(&without, link), z, "{link}");
    }
    let [with, without] = [&lines[..], &lines[..1]].map(|arrays| record(&memcpy(&[]), arrays));
    assert_eq!((copies(&with).bytes, copies(&with).calls), (copies(&without).bytes, copies(&without).calls));
    assert_eq!(phases(&with).copies_out_s, 0.0, "no kernel has written anything");
}

#[test]
fn lines_of_no_array_are_copied_by_runs_of_pages() {
    let program = program(vec![kernel(own, own)], &[], &[], (0..GPUS * PAGE, 0..GPUS * PAGE));
    let record = simulate(&machine(&[]), &memcpy(&[]), &program);
    assert_eq!((copies(&record).calls, copies(&record).bytes), (2 * GPUS, 2 * GPUS * PAGE_BYTES));
    let unified = simulate(&machine(&[]), &cuda6(), &program_without_host());
    assert!(unified.notes.iter().any(|note| note.contains("names no arrays")), "{:?}", unified.notes);
    assert_eq!(copies(&unified).bytes, 0);
}

fn program_without_host() -> Arc<DirectedProgram> {
    program(vec![kernel(own, own)], &[], &[], (0..0, 0..0))
}

#[test]
fn a_program_that_says_nothing_of_its_host_copies_nothing_and_a_note_says_so() {
    let record = simulate(&machine(&[]), &memcpy(&[]), &program_without_host());
    assert_eq!(copies(&record), CopiesRecord::default());
    assert!(record.notes.iter().any(|note| note.contains("nothing is copied")), "{:?}", record.notes);
}

#[test]
fn kernels_side_by_side_are_refused() {
    let launch = |stream| Command::Launch { kernel: 0, stream, on: LaunchDevices::All };
    let program = program_without_host().with_commands(vec![launch(0), launch(1)]);
    for gpus in ["topology.gpus=1", "topology.gpus=4"] {
        let (machine, program) = (machine(&[gpus]), Arc::clone(&program) as _);
        let spec = RunSpec { machine, design: memcpy(&[]), program, pages: None, threads: 1 };
        let error = run(&spec).expect_err("it is refused").to_string();
        assert!(error.contains("several streams"), "{error}");
    }
}

#[test]
fn the_first_value_is_the_first_that_the_host_loads_behind_the_last_cta() {
    let times = |host: &[(u32, HostLines)], results| {
        let kernels = vec![kernel(nothing, own), kernel(own, nothing)];
        let program = program(kernels, &[("data", 0..4 * PAGE)], host, (0..4 * PAGE, results));
        let phases = phases(&simulate(&machine(&[]), &memcpy(&[]), &program));
        (phases.first_value_s, phases.last_value_s)
    };
    // Results read by a host phase after the last kernel, or at the program's end: the times are equal.
    let [in_a_phase, at_the_end] = [times(&[(2, HostLines::Read(0..PAGE))], 0..0), times(&[], 0..PAGE)];
    let (Some(first), Some(last)) = in_a_phase else { panic!("values are read: {in_a_phase:?}") };
    // The copy, plus the ends of the kernel and of the phase before it.
    let copy = CALL + PAGE_BYTES as f64 / RATE;
    assert!((copy..copy + 2e-6).contains(&first) && last > first, "{first} {last}");
    assert_eq!(at_the_end, in_a_phase);
    // A read between kernels is not after the last kernel.
    assert_eq!(times(&[(1, HostLines::Read(0..PAGE))], 0..0), (None, None));
}

#[test]
fn a_host_that_reads_first_has_its_first_value_before_it_writes() {
    let first_value = |order: &str| {
        let (setup, none) = (0..4 * PAGE, 0..0);
        let program = program(vec![kernel(own, nothing)], &[("data", setup.clone())], &[], (setup.clone(), none));
        let results = HostPhase { reads: bytes(3 * PAGE..4 * PAGE), writes: bytes(0..3 * PAGE) };
        let program = program.with_host_phases(HostPhase { reads: Vec::new(), writes: bytes(setup) }, results);
        let order = format!("cpu.order={order}");
        phases(&simulate(&machine(&[&order]), &memcpy(&[]), &program)).first_value_s.expect("values are read")
    };
    assert!(first_value("reads-first") < first_value("address"));
}

#[test]
fn arrays_that_gpu_memory_has_no_room_for_are_refused() {
    let machine = machine(&["dram.bytes=256KiB"]);
    let refusal = |pages: u64, design: DesignConfig| {
        let program = program(vec![kernel(own, nothing)], &[("data", 0..pages * PAGE)], &[], (0..PAGE, 0..0));
        run(&RunSpec { machine: Arc::clone(&machine), design, program, pages: None, threads: 1 })
            .map_err(|error| error.to_string())
    };
    // A memory holds four pages: all pages under unified memory, a fourth of all pages with even ranges.
    assert!(refusal(4, cuda6()).is_ok() && refusal(16, memcpy(&[])).is_ok());
    assert!(refusal(5, cuda6()).unwrap_err().contains("GPU 0"));
    assert!(refusal(17, memcpy(&[])).unwrap_err().contains("GPU 0"));
    let replicated = || memcpy(&["placement.inputs=replicated"]);
    assert!(refusal(4, replicated()).is_ok());
    assert!(refusal(5, replicated()).unwrap_err().contains("327680 bytes"));
}

/// A shipped workload, recorded for a machine's line size and warp width.
fn workload(machine: &MachineConfig, name: &str, given: &[(&str, &str)]) -> Arc<dyn Program> {
    let workload = find(name).expect("a workload that ships");
    let given: Vec<_> = given.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let request = Request::new(workload, Scale::FULL, &given, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
    let options = RecordOptions { line: machine.line, warp_width: machine.sm.warp_width, ..RecordOptions::default() };
    Arc::new(record(workload, &request, &options, Mode::Auto).expect("it runs"))
}

#[test]
fn workloads_find_what_they_must_on_umhs_machines() {
    let workloads: [(&str, &[(&str, &str)]); 3] = [
        ("pathfinder", &[("columns", "2048"), ("rows", "9"), ("pyramid", "2")]),
        ("stencil2d", &[("rows", "64"), ("columns", "64"), ("iterations", "2")]),
        ("rodinia-bfs", &[("nodes", "2048")]),
    ];
    for name in ["umh-1-nvlink", "umh-4-pcie"] {
        let machine = tombolo_machine::machine(name).and_then(|machine| machine.check()).expect("it ships");
        let machine = Arc::new(machine);
        for (name, given) in workloads {
            let program = workload(&machine, name, given);
            let replicated = memcpy(&["placement.inputs=replicated"]);
            for design in [memcpy(&[]), memcpy(&["placement.ranges=interleaved"]), replicated, cuda6()] {
                let (machine, program) = (Arc::clone(&machine), Arc::clone(&program));
                let spec = RunSpec { machine, design, program, pages: None, threads: 1 };
                let record = run_checked(&spec, None).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_whole(&record);
                assert!(phases(&record).copies_in_s > 0.0 && phases(&record).copies_out_s > 0.0, "{name}");
            }
        }
    }
}
