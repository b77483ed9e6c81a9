//! DRAM against a cycle-accurate simulator, whose numbers are in `data/dram.csv`, and against bounds that follow from
//! the timings alone.
//!
//! What differs by intent: the reference knows bank groups and write recovery, and refuses accesses when its queues
//! are full; the model has none of these. It has no refresh either, which the reference was run without.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;
use tombolo_model::dram::{Asked, Dram, DramConfig};
use tombolo_types::{Bytes, Line, LineSize, Mask, Ps, Rate};

const ACCESSES: u64 = 20_000;
const BURST: Bytes = Bytes(64);
/// Reads in flight where nothing else bounds them. Source: `trans_queue_size` of the reference.
const OUTSTANDING: usize = 32;

/// The reference's channel. Source: DRAMsim3, configs/HBM2_8Gb_x128.ini.
const CONFIG: DramConfig = DramConfig {
    rate: Rate(32_000_000_000),
    channels: 1,
    banks: 16,
    line: LineSize::new(64).unwrap(),
    // Accesses that the reference makes to a row it opens for a stream: 32 of 64 B.
    row: Bytes(2048),
    burst: BURST,
    t_cas: Ps::from_ns(14),
    t_rcd: Ps::from_ns(14),
    t_rp: Ps::from_ns(14),
    t_ras: Ps::from_ns(34),
    t_faw: Ps::from_ns(30),
    // From a write's data to a read's: tWTR_L and CL; back, a cycle or two.
    t_turn: Ps::from_ns(24),
    t_refi: Ps::ZERO,
    t_rfc: Ps::ZERO,
    // Two batches of the 32 that the reference gathers before it writes.
    write_queue: 64,
};

/// A row of the reference.
struct Reference {
    order: &'static str,
    writes: u64,
    gap: u64,
    /// Accesses done by `cycles`, in ns.
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

/// Bits without a pattern, the same in every run (SplitMix64).
fn mixed(index: u64) -> u64 {
    let mut z = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Access `index` of a trace: the burst, and whether it is written. Reads stay in the lower half of the channel.
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

/// Runs a trace; when each access was done, and the mean latency of the reads in ns.
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
            dram.write(Asked::at(now), Line(burst), Mask::ALL)
        } else {
            dram.read(Asked::at(now), Line(burst), BURST)
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
        // When the reference turns its bus depends on how many writes have gathered by chance.
        let allowed = if writes == 0 { 0.01 } else { 0.06 };
        assert!((ratio - 1.0).abs() < allowed, "{order}, one in {writes} written: {ratio:.3} of the reference");
    }
}

#[test]
fn reads_below_saturation_take_as_long_as_in_the_reference() {
    for Reference { order, writes, gap, latency, .. } in references().into_iter().filter(|row| row.gap != 0) {
        let (_, found) = run(CONFIG, order, writes, gap);
        let ratio = found / latency.unwrap();
        // The reference takes a cycle to hand a read over.
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
    // Of 20000 reads over half a million rows some fall on a row that is open or asked for.
    assert!(last.0 > bound.0 * 97 / 100 && last < bound + Ps::from_ns(100), "{last}, bound {bound}");
}

#[test]
fn a_sequential_stream_takes_the_bus_and_nothing_else() {
    let (ends, _) = run(CONFIG, "sequential", 0, 0);
    let bus = Ps(ACCESSES * BURST.0 * 1_000_000 / (CONFIG.rate.0 / 1_000_000));
    let last = *ends.iter().max().unwrap();
    assert!(last >= bus && last.0 < bus.0 * 103 / 100, "{last}, the bus needs {bus}");
}

/// Writes the reference's traces to the folder that `TRACES` names: `cargo test --test reference_dram -- --ignored`.
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
