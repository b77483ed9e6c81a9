//! Blocks from host memory in GPU memories, tested with directed programs for which bytes and blocks are known in
//! closed form.
//!
//! The machine has 128-byte lines and 4 KB blocks, that is 32 lines per block. A kernel has a CTA for each GPU; CTA `i`
//! runs on GPU `i`.

use crate::common;
use common::hosted as machine;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_programs::find;
use tombolo_protocol::BrokenRule;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, HostLines, WarpBuilder};
use tombolo_system::host::BlocksRecord;
use tombolo_system::run_checked;
use tombolo_system::{RunRecord, RunSpec};
use tombolo_types::{LineSize, Mask, Order, Scope};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Lines per block.
const BLOCK: u64 = 32;

fn umh(settings: &[&str]) -> DesignConfig {
    common::design("umh", settings)
}

/// A kernel with four CTAs; each CTA in `active` runs one warp.
fn kernel(active: impl IntoIterator<Item = usize>, write: impl Fn(usize, &mut WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 4];
    for gpu in active {
        ctas[gpu] = CtaBuilder::new().warp(|warp| write(gpu, warp));
    }
    ctas
}

/// Reads each line in the range once.
fn reads(gpu: usize, lines: std::ops::Range<u64>) -> Vec<CtaBuilder> {
    kernel([gpu], |_, warp| lines.clone().for_each(|line| _ = warp.read([line])))
}

/// Sixteen warps on the first GPU, each of which reads four blocks of its own.
fn sixteen_readers() -> Vec<CtaBuilder> {
    let mut ctas = vec![CtaBuilder::new(); 4];
    ctas[0] = (0..16).fold(CtaBuilder::new(), |cta, warp| {
        let lines = warp * 4 * BLOCK..(warp + 1) * 4 * BLOCK;
        cta.warp(|warp| lines.clone().for_each(|line| _ = warp.read([line])))
    });
    ctas
}

/// Writes each line in the range completely.
fn writes(gpu: usize, lines: std::ops::Range<u64>) -> Vec<CtaBuilder> {
    kernel([gpu], |_, warp| lines.clone().for_each(|line| _ = warp.write([line])))
}

fn program(kernels: Vec<Vec<CtaBuilder>>, host: &[(u32, HostLines)]) -> Arc<DirectedProgram> {
    DirectedProgram::of_arrays(LineSize::B128, kernels, &[("data", 0..64 * BLOCK)], host)
}

/// Runs a program, with and without values, on one thread and on two, and checks that all results are equal.
fn simulate(machine: &Arc<MachineConfig>, design: &DesignConfig, program: &Arc<DirectedProgram>) -> RunRecord {
    let [one, _] = common::held(machine, design, program);
    one
}

fn blocks(record: &RunRecord) -> &BlocksRecord {
    record.blocks.as_ref().expect("a design of blocks")
}

#[test]
fn a_block_is_fetched_once_whatever_is_used_of_it() {
    let machine = machine(&[]);
    for used in [1, BLOCK] {
        let lines = |blocks: u64| (0..blocks).flat_map(move |block| (0..used).map(move |line| block * BLOCK + line));
        let pass = || kernel([0], |_, warp| lines(8).for_each(|line| _ = warp.read([line])));
        let record = simulate(&machine, &umh(&[]), &program(vec![pass(), pass()], &[]));
        assert_eq!((blocks(&record).fetched, blocks(&record).asked), (8, 8), "{used} lines used");
        assert_eq!(blocks(&record).used_lines, 8 * used);
    }
}

#[test]
fn a_clean_block_crosses_from_the_host_once_less_where_its_owner_sends_it() {
    let machine = machine(&[]);
    let all = (0..4).map(|gpu| reads(gpu, 0..BLOCK)).collect::<Vec<_>>();
    for (peers, from_peers) in [("true", 1), ("false", 0)] {
        let design = umh(&[&format!("coherence.peer_transfer={peers}")]);
        let record = simulate(&machine, &design, &program(all.clone(), &[]));
        assert_eq!((blocks(&record).fetched, blocks(&record).from_peers), (4, from_peers), "peers: {peers}");
    }
}

#[test]
fn a_block_that_one_gpu_writes_stays_there_at_the_end_of_kernels() {
    let machine = machine(&[]);
    let kernels = vec![writes(1, 0..BLOCK), writes(1, 0..BLOCK), reads(1, 0..BLOCK)];
    let record = simulate(&machine, &umh(&[]), &program(kernels, &[]));
    assert_eq!((blocks(&record).fetched, blocks(&record).written_back_bytes), (1, 0));
    assert_eq!(blocks(&record).states["M"], 1);
}

#[test]
fn words_that_gpus_write_to_one_line_are_merged_without_loss() {
    let machine = machine(&[]);
    let word = |gpu: usize| Mask(1 << gpu);
    let share = (0..4).map(|gpu| reads(gpu, 0..BLOCK)).collect::<Vec<_>>();
    let write = kernel(0..4, |gpu, warp| _ = warp.store([3], word(gpu), Order::WEAK));
    let read = kernel(0..4, |_, warp| _ = warp.read([3]));
    let kernels = share.into_iter().chain([write, read]).collect();
    let record = simulate(&machine, &umh(&[]), &program(kernels, &[]));
    // All GPUs merge at once: if the home meanwhile recalls the block from a GPU, the data also arrives as a reply.
    assert_eq!(blocks(&record).written_back_bytes, (4 + 3) * 4, "a word of each, and of three once more");
}

#[test]
fn the_host_sees_what_gpus_wrote_and_they_what_it_wrote() {
    let machine = machine(&[]);
    let kernels = vec![writes(0, 0..BLOCK), reads(1, 0..BLOCK), writes(2, BLOCK..2 * BLOCK), reads(3, 0..2 * BLOCK)];
    let host = [(1, HostLines::Read(0..4)), (2, HostLines::Written(0..2)), (4, HostLines::Read(0..2 * BLOCK))];
    let record = simulate(&machine, &umh(&[]), &program(kernels, &host));
    let phases = record.phases.expect("the host takes part");
    assert!(phases.host_between_s > 0.0, "{phases:?}");
}

#[test]
fn gpus_that_cache_lines_of_the_host_move_no_more_than_they_use() {
    let machine = machine(&[]);
    let lines = |blocks: u64| (0..blocks).map(|block| block * BLOCK);
    let pass = || kernel([0], |_, warp| lines(8).for_each(|line| _ = warp.read([line])));
    let bytes = |design: &DesignConfig| {
        let record = simulate(&machine, design, &program(vec![pass()], &[]));
        record.links.iter().find(|link| link.name == "gpu0.in").expect("a link").data_bytes
    };
    assert_eq!(bytes(&common::design("zero-copy", &[])), 8 * 128);
    assert_eq!(bytes(&umh(&[])), 8 * BLOCK * 128);
}

#[test]
fn lines_of_the_host_that_gpus_write_are_its_own_at_the_end_of_a_kernel() {
    let machine = machine(&[]);
    let kernels = vec![writes(0, 0..BLOCK), reads(1, 0..BLOCK), writes(2, 0..BLOCK), reads(3, 0..2 * BLOCK)];
    let host = [(1, HostLines::Read(0..BLOCK)), (2, HostLines::Written(0..2)), (4, HostLines::Read(0..2 * BLOCK))];
    let record = simulate(&machine, &common::design("zero-copy", &[]), &program(kernels, &host));
    assert!(record.blocks.is_none() && record.host_memory.is_some_and(|memory| memory.read_bytes > 0));
}

#[test]
fn zero_copy_reads_host_memory_past_the_hosts_cache() {
    let machine = machine(&[]);
    // The host has written the lines last, and its cache holds every line dirty.
    let kernels = vec![reads(0, 0..1), reads(1, 0..BLOCK), reads(2, 0..BLOCK)];
    let host = [(1, HostLines::Written(0..BLOCK))];
    let moved = |home_l2: &str| {
        let design = common::design("zero-copy", &[&format!("coherence.home_l2={home_l2}")]);
        let memory = simulate(&machine, &design, &program(kernels.clone(), &host)).host_memory.expect("a host");
        (memory.read_bytes, memory.write_bytes)
    };
    let bytes = BLOCK * 128;
    let [snooped, serves] = ["snooped", "serves"].map(moved);
    assert!(snooped.0 >= 2 * bytes, "two GPUs read each line in memory: {snooped:?}");
    assert!(snooped.1 >= bytes, "dirty lines are written back first: {snooped:?}");
    assert!(serves.0 < bytes, "the cache serves both: {serves:?}");
}

#[test]
fn a_store_that_misses_fetches_its_line_or_keeps_its_bytes_alone() {
    let machine = machine(&[]);
    let write = || kernel([0], |_, warp| (0..BLOCK).for_each(|line| _ = warp.store([line], Mask(1), Order::WEAK)));
    let received = |store_miss: &str| {
        let design = common::design("zero-copy", &[&format!("coherence.store_miss={store_miss}")]);
        let record = simulate(&machine, &design, &program(vec![write()], &[]));
        record.links.iter().find(|link| link.name == "gpu0.in").expect("a link").data_bytes
    };
    assert_eq!(["fetch", "mask"].map(received), [BLOCK * 128, 0]);
}

#[test]
fn fewer_requests_in_flight_at_the_port_make_a_gpu_wait_for_its_host() {
    let seconds = |design: &str, settings: &[&str]| {
        let machine = machine(&[settings, &["l2.slices=2"]].concat());
        let record = simulate(&machine, &common::design(design, &[]), &program(vec![sixteen_readers()], &[]));
        record.phases.expect("the host takes part").kernels_s
    };
    for design in ["zero-copy", "umh"] {
        let of = |requests: u32| seconds(design, &[&format!("host_link.outstanding={requests}")]);
        let [few, more, most] = [1, 64, 1_000_000].map(of);
        assert!(few > 1.5 * most && more < few, "{design}: {few}, {more}, {most}");
    }
    let split =
        |bytes: &str| seconds("umh", &["host_link.outstanding=8", format!("host_link.request_bytes={bytes}").as_str()]);
    assert!(split("512") > split("4096"), "a block of 4 KB takes eight requests of 512 bytes");
}

#[test]
fn a_home_with_few_transactions_in_flight_makes_requests_wait() {
    let of = |most: u32| {
        let outstanding = format!("host_directory.outstanding={most}");
        let machine = machine(&[&outstanding, "host_directory.lookup_latency=10us", "l2.slices=2"]);
        let record = simulate(&machine, &umh(&[]), &program(vec![sixteen_readers(); 2], &[]));
        (record.phases.expect("the host takes part").kernels_s, blocks(&record).home_waits)
    };
    let [few, more, most] = [3, 8, 65535].map(of);
    assert_eq!(most.1, 0, "no two GPUs ask for a block");
    assert!(few.1 > more.1 && more.1 > 0, "{few:?}, {more:?}");
    assert!(few.0 > 1.2 * most.0 && more.0 < few.0, "{few:?}, {more:?}, {most:?}");
}

#[test]
fn kernels_that_end_without_merges_read_old_values() {
    let machine = machine(&[]);
    let share = || (0..4).map(|gpu| reads(gpu, 0..BLOCK));
    let write = kernel(0..4, |gpu, warp| _ = warp.store([3], Mask(1 << gpu), Order::WEAK));
    let read = kernel(0..4, |_, warp| _ = warp.read([3]));
    let kernels: Vec<_> = share().chain([write, read]).collect();
    let design = umh(&["coherence.kernel_end=none", "promises=nothing"]);
    let spec = RunSpec { machine, design, program: program(kernels, &[]), pages: None, threads: 1 };
    let found = run_checked(&spec, None).expect("it runs").check.expect("it is checked");
    assert!(found.violations > 0);
}

#[test]
fn stacks_of_one_block_evict_and_nothing_is_lost() {
    let machine = machine(&["l2.slices=4", "stack.bytes=16KiB"]);
    let kernels =
        vec![writes(0, 0..64 * BLOCK), reads(1, 0..64 * BLOCK), writes(1, 0..8 * BLOCK), reads(0, 0..64 * BLOCK)];
    let record = simulate(&machine, &umh(&[]), &program(kernels, &[]));
    assert!(blocks(&record).evicted > 100, "{:?}", blocks(&record));
}

#[test]
fn blocks_that_are_only_written_are_fetched_all_the_same() {
    let machine = machine(&[]);
    let record = simulate(&machine, &umh(&[]), &program(vec![writes(2, 0..8 * BLOCK)], &[]));
    assert_eq!((blocks(&record).fetched, blocks(&record).used_lines), (8, 8 * BLOCK));
}

#[test]
fn a_value_that_the_host_loads_brings_what_was_written_of_its_block_alone() {
    let machine = machine(&[]);
    let line = Mask::ALL.grains() * 4;
    let read = |written: u64, lines: std::ops::Range<u64>| {
        let record =
            simulate(&machine, &umh(&[]), &program(vec![writes(0, 0..written)], &[(1, HostLines::Read(lines))]));
        let phases = record.phases.expect("the host takes part");
        (blocks(&record).written_back_bytes, phases.host_between_s)
    };
    let (bytes, one) = read(BLOCK, 3..4);
    assert_eq!(bytes, BLOCK * u64::from(line), "the block was written as a whole");
    assert_eq!(read(BLOCK, 3..9).0, bytes, "other lines of it are the host's by then");
    assert_eq!(read(4, 3..4).0, 4 * u64::from(line), "four lines of it were written");
    let (bytes, of_many) = read(16 * BLOCK, 3..4);
    assert_eq!(bytes, BLOCK * u64::from(line), "however much else was written");
    // The row may be open or closed.
    assert!((of_many / one - 1.0).abs() < 0.01, "{of_many} s and {one} s");
}

#[test]
fn a_line_that_the_host_stores_takes_the_block_from_all() {
    let machine = machine(&[]);
    let share = (0..4).map(|gpu| reads(gpu, 0..BLOCK));
    let again = (0..4).map(|gpu| reads(gpu, 0..BLOCK));
    let kernels: Vec<_> = share.chain(again).collect();
    let fetched =
        |host: &[(u32, HostLines)]| blocks(&simulate(&machine, &umh(&[]), &program(kernels.clone(), host))).fetched;
    assert_eq!(fetched(&[]), 4);
    assert_eq!(fetched(&[(4, HostLines::Written(7..8))]), 8);
}

#[test]
fn rows_that_stay_open_are_faster() {
    let time = |policy: &str| {
        let machine = machine(&[&format!("stack.row_policy={policy}"), "l2.bytes=64KiB", "l2.ways=4", "l2.slices=4"]);
        // Twice the L2's capacity, so that the second pass reads the stacks.
        let pass = || reads(0, 0..32 * BLOCK);
        simulate(&machine, &umh(&[]), &program(vec![pass(), pass()], &[])).kernels[1].clone()
    };
    let took = |kernel: tombolo_system::record::KernelRecord| kernel.end_s - kernel.start_s;
    let (open, closed) = (took(time("open")), took(time("closed")));
    assert!(closed > open * 1.05, "closed {closed}, open {open}");
}

#[test]
fn all_that_is_written_goes_back_at_a_kernels_end_where_the_design_says_so() {
    let machine = machine(&[]);
    let bytes = |settings: &[&str]| {
        let record = simulate(&machine, &umh(settings), &program(vec![writes(3, 0..4 * BLOCK)], &[]));
        blocks(&record).written_back_bytes
    };
    assert_eq!(bytes(&["coherence.kernel_end=flush-all"]), 4 * BLOCK * 128);
    assert_eq!(bytes(&[]), 0);
}

#[test]
fn a_flag_of_a_kernel_is_not_one_of_the_kernel_before() {
    let machine = machine(&[]);
    let release = Order::release(Scope::Sys);
    let acquire = Order::acquire(Scope::Sys);
    let handshake = || {
        kernel([0, 3], |gpu, warp| match gpu {
            0 => _ = warp.write([0, 1]).store([40], Mask(1), release).signal(0),
            _ => _ = warp.wait_until(40, 0, acquire).read([0, 1]),
        })
    };
    let program = program(vec![handshake(), handshake(), handshake()], &[]);
    for design in ["umh", "zero-copy"] {
        simulate(&machine, &common::design(design, &[]), &program);
    }
}

#[test]
fn a_gpu_that_polls_a_block_does_not_keep_another_from_it_for_ever() {
    // A peer's data takes longer than the polling GPU needs to request the block from the home again.
    let slow = ["gpu_link.latency=20us", "host_link.through=own", "host_link.latency=10ns", "host_link.rate=16GB/s"];
    let kernel = kernel([0, 1], |gpu, warp| match gpu {
        0 => _ = warp.wait_until(1, 0, Order::acquire(Scope::Sys)),
        _ => {
            warp.compute(u16::MAX).read([0]).use_result(1);
            warp.store([1], Mask(1), Order::release(Scope::Sys)).signal(0);
        }
    });
    let record = simulate(&machine(&slow), &umh(&[]), &program(vec![kernel], &[]));
    assert!(record.time_s < 1e-3, "{} s", record.time_s);
}

#[test]
fn machines_that_cannot_keep_blocks_are_refused() {
    let refusal = |machine: Arc<MachineConfig>, design: &str| {
        let program = program(vec![reads(0, 0..1)], &[]);
        let spec = RunSpec { machine, design: common::design(design, &[]), program, pages: None, threads: 1 };
        tombolo_system::run(&spec).expect_err("it does not fit").to_string()
    };
    let uneven = machine(&["stack.interleave_bytes=1KiB", "l2.slices=3", "l2.bytes=3MiB"]);
    assert!(refusal(uneven, "umh").contains("no power of two"));
    let plain = tombolo_machine::machine("numa-4").and_then(|machine| machine.check()).expect("a preset");
    let plain = Arc::new(plain);
    assert!(refusal(Arc::clone(&plain), "umh").contains("has no host"));
    assert!(refusal(plain, "zero-copy").contains("[host_memory]"));
}

#[test]
fn blocks_of_any_size_and_sets_of_any_ways_keep_values() {
    let all = 64 * BLOCK;
    for (block, ways) in [(128, 1), (1024, 2), (16 * 1024, 4)] {
        let [size, ways] = [format!("stack.block_bytes={block}B"), format!("stack.ways={ways}")];
        let machine = machine(&["l2.slices=4", "stack.bytes=1MiB", &size, &ways]);
        let word = kernel(0..4, |gpu, warp| _ = warp.store([7, 70], Mask(2 << gpu), Order::WEAK));
        let kernels = vec![reads(3, 0..all), writes(0, 0..all), reads(1, 0..all), word, reads(2, 0..all)];
        let host = [(2, HostLines::Read(5..9)), (4, HostLines::Written(0..3)), (5, HostLines::Read(0..all))];
        let record = simulate(&machine, &umh(&[]), &program(kernels, &host));
        assert!(blocks(&record).fetched >= 3 * all * 128 / block, "{block}: {:?}", blocks(&record));
    }
}

#[test]
fn a_block_that_is_spread_over_slices_has_a_part_in_each() {
    let all = 64 * BLOCK;
    for (interleave, parts) in [(4096, 1), (2048, 2), (1024, 4), (128, 4)] {
        let spread = format!("stack.interleave_bytes={interleave}B");
        let machine = machine(&["l2.slices=4", "stack.bytes=1MiB", &spread]);
        let record = |kernels, host: &[_]| simulate(&machine, &umh(&[]), &program(kernels, host));
        let one = record(vec![reads(0, 0..1)], &[]);
        let link = one.links.iter().find(|link| link.name == "gpu0.in").expect("a link");
        assert_eq!((blocks(&one).fetched, link.data_bytes), (1, 4096 / parts), "{interleave}: a part of a block");
        let whole = record(vec![reads(0, 0..8 * BLOCK)], &[]);
        assert_eq!(blocks(&whole).fetched, 8 * parts, "{interleave}");
        // Equal stack capacity in bytes holds proportionally many parts.
        assert_eq!(blocks(&whole).states["E"], 8 * parts, "{interleave}");
        let word = kernel(0..4, |gpu, warp| _ = warp.store([7, 70], Mask(2 << gpu), Order::WEAK));
        let kernels = vec![reads(3, 0..all), writes(0, 0..all), reads(1, 0..all), word, reads(2, 0..all)];
        let host = [(2, HostLines::Read(5..9)), (4, HostLines::Written(0..3)), (5, HostLines::Read(0..all))];
        record(kernels, &host);
    }
}

#[test]
fn a_gpu_that_fetches_what_the_host_wrote_gets_lines_of_its_cache_that_are_dirty() {
    // The last-level cache holds 2 MiB, that is the last half of 4 MiB. Blocks still present are supplied by the cache,
    // but only their dirty lines.
    let (blocks_written, cached) = (1024, 512);
    let machine = machine(&["llc.ways=16", "llc.directory_blocks=512"]);
    let writes = std::iter::once(0..blocks_written * 4096).collect();
    let written = tombolo_types::HostPhase { reads: Vec::new(), writes };
    let lines = 0..blocks_written * BLOCK;
    let read = CtaBuilder::sharing(lines.clone(), 32, |warp, line| _ = warp.read([line]));
    let program = DirectedProgram::of_arrays(LineSize::B128, vec![vec![read]], &[("data", lines)], &[])
        .with_host_phases(written, tombolo_types::HostPhase::default());
    let record = simulate(&machine, &umh(&[]), &program);
    let (of, memory) = (blocks(&record), record.host_memory.expect("the host takes part"));
    assert_eq!(of.fetched, blocks_written);
    assert!((1..=cached).contains(&of.from_peers), "{of:?}");
    // Lines evicted from the cache were written to memory and are read from there; no others are.
    assert_eq!(memory.read_bytes, memory.write_bytes, "{of:?}, {memory:?}");
    assert!(memory.read_bytes >= (blocks_written - cached) * 4096, "{of:?}, {memory:?}");
    assert!(memory.read_bytes < blocks_written * 4096, "{of:?}, {memory:?}");
}

/// Bytes per second at which a GPU fetches blocks written by the host, over links faster than the host's memory.
fn fetched_per_second(settings: &[&str]) -> f64 {
    let written = 256 * 4096;
    let fast = ["gpu_link.rate=400GB/s", "llc.ways=16", "llc.directory_blocks=512"];
    let machine = machine(&[&fast[..], settings].concat());
    let host = tombolo_types::HostPhase { reads: Vec::new(), writes: std::iter::once(0..written).collect() };
    let lines = 0..written / 4096 * BLOCK;
    // One line in each block, 32 blocks per instruction: requests to the host wait in parallel.
    let blocks_of = |warp: u64| (0..32).map(move |block| (32 * warp + block) * BLOCK);
    let read =
        (0..written / 4096 / 32).fold(CtaBuilder::new(), |cta, own| cta.warp(|warp| _ = warp.read(blocks_of(own))));
    let program = DirectedProgram::of_arrays(LineSize::B128, vec![vec![read]], &[("data", lines)], &[])
        .with_host_phases(host, tombolo_types::HostPhase::default());
    let record = simulate(&machine, &umh(&[]), &program);
    assert_eq!(blocks(&record).from_peers, written / 4096, "the host's cache answers for all: {:?}", blocks(&record));
    written as f64 / (record.kernels[0].end_s - record.kernels[0].start_s)
}

#[test]
fn the_hosts_cache_sends_a_block_no_faster_than_its_port_and_host_memory_have_the_lines() {
    let (quick, slow) = (fetched_per_second(&["llc.rate=400GB/s"]), fetched_per_second(&["llc.rate=10GB/s"]));
    assert!((8e9..10e9).contains(&slow) && quick > 4.0 * slow, "from the cache: {quick} and {slow} bytes a second");
    let left = fetched_per_second(&["llc.rate=400GB/s", "llc.bytes=8KiB"]);
    assert!((15e9..38.4e9).contains(&left), "lines that have left the cache: {left} bytes a second");
}

#[test]
fn reduction_fetches_no_faster_than_host_memory_has_what_left_a_small_cache() {
    let mut machine = tombolo_machine::machine("umh-1-nvlink").expect("a preset");
    tombolo_design::apply(&["llc.bytes=8KB"], &mut machine, &mut []).expect("settings a machine has");
    let machine = Arc::new(machine.check().expect("a machine that fits"));
    let workload = find("reduction").expect("a workload that ships");
    let given = [("elements".to_owned(), "524288".to_owned())];
    let request = Request::new(workload, Scale::FULL, &given, 1).unwrap_or_else(|error| panic!("{error}"));
    let options = RecordOptions { line: machine.line, warp_width: machine.sm.warp_width, ..RecordOptions::default() };
    let program = Arc::new(record(workload, &request, &options, Mode::Auto).expect("it runs"));
    let host_memory = machine.host_memory.as_ref().expect("it has a host").rate.0 as f64;
    let spec = RunSpec { machine, design: umh(&[]), program, pages: None, threads: 1 };
    let record = tombolo_system::run(&spec).unwrap_or_else(|error| panic!("{error}"));
    let fetched = (blocks(&record).fetched * 4096) as f64;
    let took: f64 = record.kernels.iter().map(|kernel| kernel.end_s - kernel.start_s).sum();
    assert!(fetched / took <= host_memory, "{} bytes a second", fetched / took);
    assert!(record.host_memory.expect("the host takes part").read_bytes as f64 > 0.9 * fetched);
}

#[test]
fn requests_of_a_block_keep_their_order_where_registers_and_places_are_few() {
    let machine = machine(&["l2.mshrs=3", "l2.slices=1", "l2.bytes=1MiB", "stack.bytes=16KiB"]);
    // Every warp has a private line in every block.
    let strong = Order::relaxed(Scope::Gpu);
    let touches = |warp: &mut WarpBuilder<'_>, own: u64| {
        for turn in 0..64 {
            let line = (13 * turn + 7 * own) % 64 * BLOCK + own;
            warp.write([line]).load([line], strong);
        }
    };
    let cta = (0..32).fold(CtaBuilder::new(), |cta, own| cta.warp(|warp| touches(warp, own)));
    let program = program(vec![vec![cta]], &[]);
    simulate(&machine, &umh(&[]), &program);
    let spec = RunSpec { machine, design: umh(&[]), program, pages: None, threads: 1 };
    let broken = run_checked(&spec, BrokenRule::RequestPassesDeferred).unwrap_or_else(|error| panic!("{error}"));
    assert!(broken.check.expect("a checked run").violations > 0, "a request that passes others of its line is seen");
}

#[test]
fn a_host_that_waits_for_its_own_rate_is_called_once_for_each_access() {
    const LINES: u64 = 64 * BLOCK;
    let machine = machine(&["cpu.outstanding=64", "cpu.issue_cycles=9", "llc.rate=400GB/s"]);
    let host = [(1, HostLines::Written(0..LINES)), (1, HostLines::Read(0..LINES))];
    let program = program(vec![reads(0, 0..1)], &host);
    let events = simulate(&machine, &common::design("zero-copy", &[]), &program).host.events;
    assert!(events < 20 * LINES, "{events} events of {} accesses", 2 * LINES);
}

#[test]
fn neighbouring_ctas_of_a_turn_share_blocks() {
    let machine = machine(&[]);
    // Eight lines per CTA, that is four CTAs per block.
    let ctas: Vec<CtaBuilder> =
        (0..64).map(|cta| CtaBuilder::sharing(8 * cta..8 * cta + 8, 1, |warp, line| _ = warp.write([line]))).collect();
    let fetched = |chunk: u32| {
        let design = umh(&[&format!("scheduling.cta_chunk={chunk}")]);
        blocks(&simulate(&machine, &design, &program(vec![ctas.clone()], &[]))).fetched
    };
    assert_eq!((fetched(1), fetched(4)), (4 * 16, 16));
}
