//! DRAM model against a cycle-accurate simulator, with its results in `data/dram.csv`, and against bounds that follow
//! from the timings alone.
//!
//! Intended differences: the reference models bank groups and write recovery, and rejects accesses when its queues are
//! full; the model omits all three. Refresh is disabled on both sides.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;
use tombolo_model::dram::{AccessTiming, Dram, DramConfig};
use tombolo_types::{Bytes, Line, LineSize, Mask, Ps, Rate};

const ACCESSES: u64 = 20_000;
const BURST: Bytes = Bytes(64);
/// Reads in flight if no other limit applies. Source: `trans_queue_size` in the reference.
const OUTSTANDING: usize = 32;

/// Channel configuration of the reference. Source: DRAMsim3, configs/HBM2_8Gb_x128.ini.
const CONFIG: DramConfig = DramConfig {
    rate: Rate(32_000_000_000),
    channels: 1,
    banks: 16,
    line: LineSize::new(64).unwrap(),
    // Accesses per row in the reference when a stream opens it: 32 accesses with 64 B each.
    row: Bytes(2048),
    burst: BURST,
    t_cas: Ps::from_ns(14),
    t_rcd: Ps::from_ns(14),
    t_rp: Ps::from_ns(14),
    t_ras: Ps::from_ns(34),
    t_faw: Ps::from_ns(30),
    // Write data to read data: tWTR_L and CL; in the opposite direction, a cycle or two.
    t_turn: Ps::from_ns(24),
    t_refi: Ps::ZERO,
    t_rfc: Ps::ZERO,
    // Two batches of 32 writes: the reference gathers this many before it writes.
    write_queue: 64,
};

/// Reference result: a row in the CSV file.
struct Reference {
    order: &'static str,
    writes: u64,
    gap: u64,
    /// Number of accesses completed by `cycles`, in ns.
    done: u64,
    cycles: u64,
    latency: Option<f64>,
}

fn references() -> Vec<Reference> {
    let rows = include_str!("data/dram.csv").lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| {
        let fields: Vec<&'static str> = row.split(',').collect();
        let number = |at: usize| fields[at].parse::<u64>().unwrap();
        Reference {
            order: fields[0],
            writes: number(1),
            gap: number(2),
            cycles: number(3),
            done: number(4) + number(5),
            latency: fields[6].parse().ok(),
        }
    })
    .collect()
}

/// Pseudorandom bits, identical in every run (SplitMix64).
fn mixed(index: u64) -> u64 {
    let mut z = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Access `index` in a trace: its burst, and true for a write. Reads stay in the lower half of the channel, writes go
/// to the upper half.
fn access(order: &str, writes: u64, index: u64) -> (u64, bool) {
    let half = 1 << 23;
    let burst = match order {
        "sequential" => index,
        "strided" => 16 * index,
        _ => mixed(index + 1) % half,
    };
    let written = writes != 0 && index % writes == writes - 1;
    (if written { burst + half } else { burst }, written)
}

/// Runs a trace. Returns each access's completion time, and the mean read latency in ns.
fn run(config: DramConfig, order: &str, writes: u64, gap: u64) -> (Vec<Ps>, f64) {
    let mut dram = Dram::new(config);
    let (mut now, mut waited, mut reads) = (Ps::ZERO, 0.0, 0.0);
    let (mut done, mut inflight) = (Vec::new(), BinaryHeap::new());
    for index in 0..ACCESSES {
        now = now.max(Ps::from_ns(index * gap));
        if gap == 0 && inflight.len() == OUTSTANDING {
            let Reverse(earliest) = inflight.pop().unwrap();
            now = now.max(earliest);
        }
        let (burst, written) = access(order, writes, index);
        let end = if written {
            dram.write(AccessTiming::at(now), Line(burst), Mask::ALL)
        } else {
            dram.read(AccessTiming::at(now), Line(burst), BURST)
        };
        if !written {
            waited += (end - now).0 as f64 / 1e3;
            reads += 1.0;
        }
        done.push(end);
        inflight.push(Reverse(end));
    }
    (done, waited / reads)
}

#[test]
fn saturated_channels_do_as_much_as_the_reference() {
    for Reference { order, writes, gap, done, cycles, .. } in references().into_iter().filter(|row| row.gap == 0) {
        let (ends, _) = run(CONFIG, order, writes, gap);
        let found = ends.iter().filter(|&&end| end <= Ps::from_ns(cycles)).count() as f64;
        let ratio = found / done as f64;
        // The reference's bus turnarounds depend on how many writes have gathered by chance.
        let allowed = if writes == 0 { 0.01 } else { 0.06 };
        assert!((ratio - 1.0).abs() < allowed, "{order}, one in {writes} written: {ratio:.3} of the reference");
    }
}

#[test]
fn reads_below_saturation_take_as_long_as_in_the_reference() {
    for Reference { order, writes, gap, latency, .. } in references().into_iter().filter(|row| row.gap != 0) {
        let (_, found) = run(CONFIG, order, writes, gap);
        let ratio = found / latency.unwrap();
        // The reference takes another cycle to hand a read over.
        assert!((0.93..1.02).contains(&ratio), "{order}, one in {gap} ns: {ratio:.3} of the reference");
    }
}

#[test]
fn random_reads_open_rows_no_faster_than_four_in_their_window() {
    let (ends, _) = run(CONFIG, "random", 0, 0);
    let bound = Ps(ACCESSES * CONFIG.t_faw.0 / 4);
    let last = *ends.iter().max().unwrap();
    assert!(last >= bound - CONFIG.t_faw && last.0 < bound.0 * 11 / 10, "{last}, bound {bound}");
}

#[test]
fn one_bank_opens_a_row_each_row_cycle_and_no_faster() {
    let one_bank = DramConfig { banks: 1, t_faw: Ps::ZERO, ..CONFIG };
    let (ends, _) = run(one_bank, "random", 0, 0);
    let bound = Ps(ACCESSES * (CONFIG.t_ras + CONFIG.t_rp).0);
    let last = *ends.iter().max().unwrap();
    // Among 20000 reads over half a million rows, a few find their row open or already requested.
    assert!(last.0 > bound.0 * 97 / 100 && last < bound + Ps::from_ns(100), "{last}, bound {bound}");
}

#[test]
fn a_sequential_stream_takes_the_bus_and_nothing_else() {
    let (ends, _) = run(CONFIG, "sequential", 0, 0);
    let bus = Ps(ACCESSES * BURST.0 * 1_000_000 / (CONFIG.rate.0 / 1_000_000));
    let last = *ends.iter().max().unwrap();
    assert!(last >= bus && last.0 < bus.0 * 103 / 100, "{last}, the bus needs {bus}");
}

/// Writes the reference's traces to the folder named in `TRACES`: `cargo test --test reference_dram -- --ignored`.
#[test]
#[ignore = "writes the traces that the reference was run on"]
fn write_traces() {
    let folder = std::path::PathBuf::from(std::env::var("TRACES").unwrap());
    for Reference { order, writes, gap, .. } in references() {
        let mut trace = String::new();
        for index in 0..ACCESSES {
            let (burst, written) = access(order, writes, index);
            let word = if written { "WRITE" } else { "READ" };
            writeln!(trace, "0x{:X} {word} {}", burst * BURST.0, index * gap).unwrap();
        }
        std::fs::write(folder.join(format!("{order}_{writes}_{gap}.txt")), trace).unwrap();
    }
}
