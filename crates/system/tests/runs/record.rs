//! Contents of a run's record: times, memories, energies, tested with directed programs for which counters are known.

use crate::common::{NO_REFRESH, design, machine, simulate};
use std::sync::Arc;
use tombolo_system::RunRecord;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_system::record::{DramRecord, L1Record, L2Record, MemoryCacheRecord};
use tombolo_system::utilization::UtilizationShares;
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Order, Rate, Scope};

fn run(settings: &[&str], program: Arc<DirectedProgram>) -> RunRecord {
    simulate(&machine(settings), design("hmg", &[]), program)
}

/// A CTA with a single warp reading `lines` in sequence.
fn reads(lines: impl IntoIterator<Item = u64>) -> Vec<CtaBuilder> {
    vec![CtaBuilder::new().warp(|warp| lines.into_iter().for_each(|line| _ = warp.read([line])))]
}

#[test]
fn the_time_of_a_run_counts_what_is_copied_after_the_last_kernel() {
    let program = DirectedProgram::with_copies(vec![reads(0..4)], &[1000, 3000]);
    let record = run(&["host.copy_latency=1us", "host.copy_rate=1GB/s"], program);
    let after = record.time_s - record.kernels[0].end_s;
    assert!((after - 6e-6).abs() < 1e-9, "two latencies and four microseconds of bytes, not {after} s");
}

#[test]
fn lookups_are_counted_by_kind_at_each_level() {
    // Two reads to one line, one write, one update: the second read hits in the L1.
    let warp = CtaBuilder::new().warp(|warp| {
        warp.read([0]).use_result(1).read([0]).write([1]).atomic(
            [2],
            Order::relaxed(Scope::Sys),
            AtomicResult::Discarded,
        );
    });
    let record = run(&["topology.gpus=1", "topology.modules_per_gpu=1"], DirectedProgram::new(vec![vec![warp]]));
    assert_eq!(record.l1, L1Record { accesses: 4, loads: 2, hits: 1, merges: 0 });
    assert_eq!(record.l2, L2Record { accesses: 3, loads: 1, ..L2Record::default() });
}

#[test]
fn dram_and_the_cache_in_front_of_it_count_what_each_of_them_served() {
    let lines = 1024;
    // An L2 with a quarter of the lines, read repeatedly in a cycle, holds none of them.
    let twice = |settings: &[&str]| {
        let settings = [&["l2.bytes=32KB"], settings].concat();
        run(&settings, DirectedProgram::new(vec![reads(0..lines), reads(0..lines)]))
    };
    let without = twice(&[]);
    assert_eq!(without.memory_cache, MemoryCacheRecord::default());
    assert_eq!(without.dram.read_bytes, 2 * lines * 128);
    let with = twice(&["memory_cache.bytes=1MB"]);
    let [accesses, reads] = [2 * lines; 2];
    let counts = MemoryCacheRecord { accesses, reads, hits: lines, misses: lines, ..MemoryCacheRecord::default() };
    assert_eq!(with.memory_cache, counts);
    assert_eq!(with.dram.read_bytes, lines * 128, "the second time comes from the cache");
    assert_eq!(with.coherence["memory_read_bytes"], 2 * lines * 128, "L2s ask for both");
    assert_eq!(with.energy_pj.dram * 2.0, without.energy_pj.dram);
}

/// Consecutive 2 KB rows in a single bank: sixteen lines each.
#[test]
fn rows_and_channels_of_a_stream_are_counted() {
    let lines = 256;
    let machine_of_one =
        ["topology.gpus=1", "topology.modules_per_gpu=1", "dram.channels=1", "dram.banks=1", "dram.row_bytes=2KB"];
    // A refresh closes a row.
    let one = [&machine_of_one[..], &NO_REFRESH].concat();
    let record = run(&one, DirectedProgram::new(vec![reads(0..lines)]));
    let [row_hits, row_misses, row_conflicts] = [lines - lines / 16, 1, lines / 16 - 1];
    let DramRecord { read_bytes, .. } = record.dram;
    let counted = DramRecord { read_bytes, row_hits, row_misses, row_conflicts, ..DramRecord::default() };
    assert_eq!((record.dram, read_bytes), (counted, lines * 128));
    let machine = machine(&one);
    let near = |share: f64, bytes: u64, rate: Rate, what: &str| {
        let expected = bytes as f64 / rate.0 as f64 / record.time_s;
        assert!((share / expected - 1.0).abs() < 1e-3, "{what}: {share}, not {expected}");
    };
    let busy = record.utilization;
    near(busy.dram_channels.mean, lines * 128, machine.dram.rate, "the channel");
    near(busy.dram_channels.highest, lines * 128, machine.dram.rate, "the busiest channel");
    near(busy.crossbar_to_sms.highest, lines * 128, machine.crossbar.rate, "the crossbar");
    assert_eq!(busy.crossbar_from_sms, UtilizationShares::default(), "a read carries no bytes");
}

/// All accesses go to one slice: only this slice is in use.
#[test]
fn the_busiest_slice_is_told_apart_from_the_mean() {
    let one = ["topology.gpus=1", "topology.modules_per_gpu=1"];
    let record = run(&one, DirectedProgram::new(vec![reads([7; 1])]));
    let slices = f64::from(machine(&one).l2.slices);
    let UtilizationShares { mean, highest } = record.utilization.l2_slices;
    assert!(slices > 1.0 && mean > 0.0 && (highest / mean / slices - 1.0).abs() < 1e-9, "{mean} and {highest}");
}

#[test]
fn a_module_that_is_a_whole_gpu_pays_for_no_link_of_its_own() {
    let energy = |modules: &str| {
        let mut ctas = vec![CtaBuilder::new(); 16];
        ctas[0] = reads(0..8).remove(0);
        let record = run(&["topology.gpus=2", modules], DirectedProgram::new(vec![reads(0..8), ctas]));
        (record.energy_pj.module_links, record.energy_pj.gpu_links)
    };
    let (module_links, gpu_links) = energy("topology.modules_per_gpu=1");
    assert!(module_links == 0.0 && gpu_links > 0.0, "{module_links} and {gpu_links} pJ");
    assert!(energy("topology.modules_per_gpu=2").0 > 0.0);
}

#[test]
fn sets_by_low_bits_are_those_of_the_low_bits() {
    // Eight lines that differ only above the index bits for 256 sets, in four ways.
    let hits = |index: &str| run(&[index], DirectedProgram::new(vec![reads((0..16).map(|i| i % 8 * 256))])).l1.hits;
    assert_eq!(hits("l1.set_index=low-bits"), 0);
    assert!(hits("l1.set_index=hashed") > 4);
}
