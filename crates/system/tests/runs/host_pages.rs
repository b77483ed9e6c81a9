//! Pages that migrate between a host and GPUs by faults, tested with directed programs for which faults are known in
//! closed form.
//!
//! The machine has 128-byte lines and 64 KB pages, that is 512 lines per page. A kernel has a CTA for each GPU; CTA `i`
//! runs on GPU `i`.

use crate::common;
use common::hosted as machine;
use std::ops::Range;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_programs::find;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, HostLines};
use tombolo_system::paging::PagingRecord;
use tombolo_system::{RunRecord, RunSpec, run_checked};
use tombolo_types::{HostPhase, LineSize, Mask, Order};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Lines per page, and bytes per page.
const PAGE: u64 = 512;
const PAGE_BYTES: u64 = PAGE * 128;

fn managed(settings: &[&str]) -> DesignConfig {
    let all: Vec<&str> = ["placement.pinning=false"].iter().chain(settings).copied().collect();
    common::design("unified-memory-host", &all)
}

/// A kernel in which one GPU reads, or writes, the given lines.
fn kernel(gpu: usize, lines: Range<u64>, writes: bool) -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 4];
    ctas[gpu] = CtaBuilder::new().warp(|warp| {
        lines.for_each(|line| {
            if writes {
                warp.write([line]);
            } else {
                warp.read([line]);
            }
        });
    });
    ctas
}

/// A program with sixteen pages; the host sets up all lines in `setup` and reads all lines in `results`.
fn program(
    kernels: Vec<Vec<CtaBuilder>>,
    host: &[(u32, HostLines)],
    [setup, results]: [Range<u64>; 2],
) -> Arc<DirectedProgram> {
    let bytes = |lines: Range<u64>| {
        std::iter::once(lines.start * 128..lines.end * 128).filter(|bytes| !bytes.is_empty()).collect()
    };
    let setup = HostPhase { reads: Vec::new(), writes: bytes(setup) };
    let results = HostPhase { reads: bytes(results), writes: Vec::new() };
    DirectedProgram::of_arrays(LineSize::B128, kernels, &[("data", 0..16 * PAGE)], host)
        .with_host_phases(setup, results)
}

fn simulate(machine: &Arc<MachineConfig>, design: &DesignConfig, program: &Arc<DirectedProgram>) -> RunRecord {
    let [one, _] = common::held(machine, design, program);
    one
}

fn paging(record: &RunRecord) -> PagingRecord {
    record.paging.expect("pages move")
}

#[test]
fn what_the_host_writes_goes_to_the_gpu_that_uses_it_and_back_to_the_host_that_reads() {
    let all = 0..4 * PAGE;
    let kernels = vec![kernel(2, all.clone(), true), kernel(2, all.clone(), false)];
    let record = simulate(&machine(&[]), &managed(&[]), &program(kernels, &[], [all.clone(), all]));
    let paging = paging(&record);
    assert_eq!((paging.faults, paging.host_faults, paging.migrations), (8, 4, 8), "once there and once back");
    assert_eq!(paging.migrated_bytes, 8 * PAGE_BYTES);
    let phases = record.phases.expect("the host takes part");
    assert_eq!((phases.copies_in_s, phases.copies_out_s), (0.0, 0.0), "nobody copies");
    assert!(phases.host_results_s > 4.0 * 20e-6, "each page is a fault of the host: {phases:?}");
}

#[test]
fn a_page_that_no_gpu_touches_stays_on_the_host() {
    let kernels = vec![kernel(0, 0..1, false)];
    let record = simulate(&machine(&[]), &managed(&[]), &program(kernels, &[], [0..16 * PAGE, 8 * PAGE..16 * PAGE]));
    assert_eq!((paging(&record).faults, paging(&record).host_faults, paging(&record).migrations), (1, 0, 1));
}

#[test]
fn a_page_that_gpus_and_the_host_use_in_turn_moves_each_time() {
    let page = || 0..PAGE;
    let kernels = vec![kernel(0, page(), true), kernel(3, page(), true), kernel(1, page(), true)];
    let host = [(1, HostLines::Written(0..4)), (2, HostLines::Read(4..8))];
    let record = simulate(&machine(&[]), &managed(&[]), &program(kernels, &host, [page(), 0..0]));
    // To GPU 0, to the host, to GPU 3, to the host, to GPU 1.
    assert_eq!((paging(&record).migrations, paging(&record).host_faults), (5, 2));
}

#[test]
fn readers_with_copies_of_their_own_and_the_host_among_them_find_what_was_written() {
    let page = || 0..PAGE;
    let readers = (0..4).map(|gpu| kernel(gpu, page(), false)).collect();
    let design = managed(&["placement.read_mostly=true"]);
    let record = simulate(&machine(&[]), &design, &program(readers, &[(2, HostLines::Read(0..8))], [page(), page()]));
    assert_eq!(
        (paging(&record).migrations, paging(&record).host_faults),
        (4, 0),
        "a copy each, and the host keeps its own"
    );
    let kernels = vec![kernel(0, page(), false), kernel(1, page(), true), kernel(0, page(), false)];
    let record = simulate(&machine(&[]), &design, &program(kernels, &[], [page(), page()]));
    assert!(paging(&record).host_faults > 0, "who writes has the only copy");
}

#[test]
fn a_page_that_thrashes_is_used_where_it_is() {
    let design = managed(&["placement.pinning=true"]);
    let page = || 0..PAGE;
    let kernels: Vec<Vec<CtaBuilder>> = (0..12).map(|turn| kernel(turn % 2, page(), true)).collect();
    let host: Vec<(u32, HostLines)> = (0..6).map(|turn| (2 * turn + 1, HostLines::Written(0..4))).collect();
    let machine = machine(&["paging.thrashing_moves=3", "paging.thrashing_time=1s", "paging.pinned_time=1s"]);
    let record = simulate(&machine, &design, &program(kernels, &host, [page(), page()]));
    assert!(paging(&record).pins > 0 && paging(&record).migrations < 6, "{:?}", paging(&record));
}

#[test]
fn a_memory_that_is_full_gives_pages_back_to_the_host() {
    // Room for four pages per GPU.
    let machine = machine(&["dram.bytes=256KiB"]);
    let all = || 0..8 * PAGE;
    let kernels = vec![kernel(1, all(), true), kernel(1, all(), false)];
    let record = simulate(&machine, &managed(&[]), &program(kernels, &[], [all(), all()]));
    let paging = paging(&record);
    // All pages are fetched twice, and all except the last four have been evicted before the next fetch. The host reads
    // evicted pages from its own memory.
    assert_eq!((paging.evictions, paging.migrations, paging.host_faults), (12, 16 + 4, 4));
}

#[test]
fn words_that_host_and_gpus_write_to_one_line_are_all_there() {
    let word = |gpu: usize| {
        let mut ctas = vec![CtaBuilder::new(); 4];
        ctas[gpu] = CtaBuilder::new().warp(|warp| _ = warp.store([3], Mask(2 << gpu), Order::WEAK));
        ctas
    };
    let kernels = vec![word(0), word(1), kernel(2, 0..8, false), word(3)];
    let host = [(1, HostLines::Written(0..2)), (3, HostLines::Read(0..8))];
    simulate(&machine(&[]), &managed(&[]), &program(kernels, &host, [0..PAGE, 0..PAGE]));
}

#[test]
fn a_line_of_which_the_host_has_written_a_part_is_read_whole() {
    let setup = HostPhase { reads: Vec::new(), writes: vec![0..8, 3 * 128..3 * 128 + 64] };
    let results = HostPhase { reads: std::iter::once(0..4 * 128).collect(), writes: Vec::new() };
    let kernels = vec![kernel(0, PAGE..PAGE + 1, false)];
    let program = program(kernels, &[], [0..0, 0..0]);
    let program = program.with_host_phases(setup, results);
    // The part that a load finds in the cache arrives before the sectors that memory adds.
    let record = simulate(&machine(&["l1.sector_bytes=32"]), &managed(&[]), &program);
    assert_eq!(paging(&record).host_faults, 0, "the page has stayed on the host");
}

#[test]
fn workloads_find_what_they_must_on_umhs_machines() {
    let machine = tombolo_machine::machine("umh-4-nvlink").and_then(|machine| machine.check()).expect("it ships");
    let machine = Arc::new(machine);
    for (name, key, value) in [("pathfinder", "columns", "4096"), ("rodinia-bfs", "nodes", "2048")] {
        let workload = find(name).expect("a workload that ships");
        let given = [(key.to_owned(), value.to_owned())];
        let request = Request::new(workload, Scale::FULL, &given, 1).unwrap_or_else(|error| panic!("{error}"));
        let options =
            RecordOptions { line: machine.line, warp_width: machine.sm.warp_width, ..RecordOptions::default() };
        let program = Arc::new(record(workload, &request, &options, Mode::Auto).expect("it runs"));
        let spec = RunSpec { machine: Arc::clone(&machine), design: managed(&[]), program, pages: None, threads: 1 };
        let record = run_checked(&spec, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let check = record.check.as_ref().expect("a checked run");
        assert_eq!(check.violations, 0, "{name}: {:?}", check.first);
        assert!(paging(&record).host_faults > 0, "{name}");
    }
}
