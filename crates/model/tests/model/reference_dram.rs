//! DRAM model against two cycle-accurate simulators, with their results in `data/dram.csv`, and against bounds that
//! follow from the timings alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;
use tombolo_model::memory::{AccessTiming, Dram, DramConfig, RefreshScope};
use tombolo_types::{Bytes, Line, LineSize, Mask, Ps, Rate};

/// Read bursts in flight, for traces without times. Source: the drivers of the references.
const OUTSTANDING: u64 = 64;

/// Pseudo channel of the references. Source: `data/dram.csv`.
const CONFIG: DramConfig = DramConfig {
    rate: Rate(16_000_000_000),
    channels: 1,
    banks: 16,
    bank_groups: 4,
    line: LineSize::B128,
    row: Bytes(1024),
    burst: Bytes(32),
    atom: Bytes(32),
    t_cas: Ps::from_ns(14),
    t_cwl: Ps::from_ns(7),
    t_ccd_l: Ps::from_ns(4),
    t_rcd: Ps::from_ns(14),
    t_rp: Ps::from_ns(14),
    t_ras: Ps::from_ns(33),
    t_rrd_s: Ps::from_ns(4),
    t_rrd_l: Ps::from_ns(4),
    t_faw: Ps::from_ns(16),
    t_rtp: Ps::from_ns(5),
    t_wr: Ps::from_ns(16),
    t_turn: Ps::from_ns(23),
    refresh: RefreshScope::Channel,
    t_refi: Ps::ZERO,
    t_rfc: Ps::ZERO,
    write_queue: 64,
};

/// The configuration with a refresh time in ns; 0 for no refresh.
fn refreshed(time: u64) -> DramConfig {
    let interval = if time == 0 { Ps::ZERO } else { Ps::from_ns(3900) };
    DramConfig { t_refi: interval, t_rfc: Ps::from_ns(time), ..CONFIG }
}

/// Results of the references: a row in the CSV file.
struct Reference {
    traffic: &'static str,
    refresh: u64,
    /// Share of the pins' rate per reference, in percent.
    percent: [f64; 2],
    /// Mean latency per reference, in ns, for a trace with times.
    latency: Option<[f64; 2]>,
}

fn references() -> Vec<Reference> {
    let rows = include_str!("../data/dram.csv").lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| {
        let fields: Vec<&'static str> = row.split(',').collect();
        let both = |at: [usize; 2]| at.map(|at| fields[at].parse::<f64>().ok());
        let latency = match both([3, 5]) {
            [Some(one), Some(other)] => Some([one, other]),
            _ => None,
        };
        Reference {
            traffic: fields[0],
            refresh: fields[1].parse().unwrap(),
            percent: both([2, 4]).map(Option::unwrap),
            latency,
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

/// Access in a trace.
#[derive(Clone, Copy)]
struct TraceAccess {
    /// Time of the access in ns, for a trace with times.
    at: Option<u64>,
    write: bool,
    line: u64,
    /// First of the line's four sectors, and number of sectors.
    sectors: (u32, u32),
}

impl TraceAccess {
    fn mask(self) -> Mask {
        let (first, count) = self.sectors;
        Mask((((1_u64 << (8 * count)) - 1) << (8 * first)) as u32)
    }
}

/// A random line.
fn random(index: u64) -> u64 {
    mixed(index + 1) % (1 << 20)
}

/// Accesses to random lines with `sectors` sectors each, without times: reads, writes, or each at random.
fn randoms(sectors: u32, write: impl Fn(u64) -> bool) -> Vec<TraceAccess> {
    let first = |index| if sectors == 1 { (mixed(index + 99) % 4) as u32 } else { 0 };
    let access =
        |index| TraceAccess { at: None, write: write(index), line: random(index), sectors: (first(index), sectors) };
    (0..u64::from(40_000 / sectors)).map(access).collect()
}

/// Reads of lines with exponentially distributed times between them; `mean` in ns.
fn poisson(mean: f64, line: impl Fn(u64) -> u64) -> Vec<TraceAccess> {
    let mut time = 0.0;
    let access = |index: u64| {
        let uniform = ((mixed(index ^ 0x5555_0000) >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        time -= uniform.ln() * mean;
        TraceAccess { at: Some(time as u64), write: false, line: line(index), sectors: (0, 4) }
    };
    (0..10_000).map(access).collect()
}

/// Line accesses without times.
fn lines(count: u64, write: bool) -> Vec<TraceAccess> {
    (0..count).map(|line| TraceAccess { at: None, write, line, sectors: (0, 4) }).collect()
}

/// Reads by 64 CTAs with a contiguous part each; with `copies`, each line read is also written elsewhere. `next`: the
/// CTA of a step.
fn ctas(copies: bool, next: impl Fn(u64) -> u64) -> Vec<TraceAccess> {
    let mut done = [0; 64];
    let mut accesses = Vec::new();
    for step in 0.. {
        let cta = next(step);
        let line = cta * 4096 + done[cta as usize];
        done[cta as usize] += 1;
        accesses.push(TraceAccess { at: None, write: false, line, sectors: (0, 4) });
        if copies {
            accesses.push(TraceAccess { at: None, write: true, line: line + (1 << 20), sectors: (0, 4) });
        }
        if accesses.len() >= 20_000 {
            break;
        }
    }
    accesses
}

/// The trace with a name.
fn trace(traffic: &str) -> Vec<TraceAccess> {
    let half = |index| mixed(index + 7) & 1 == 1;
    match traffic {
        "random-32" => randoms(1, |_| false),
        "random-32-writes" => randoms(1, |_| true),
        "random-64" => randoms(2, |_| false),
        "random-32-half-written" => {
            randoms(1, half).into_iter().map(|access| TraceAccess { sectors: (0, 1), ..access }).collect()
        }
        "random-64-half-written" => randoms(2, half),
        "random-128-half-written" => randoms(4, half),
        "stream" => lines(20_000, false),
        "stream-writes" => lines(20_000, true),
        "sequential-50" => poisson(16.0, |index| index),
        "sequential-80" => poisson(10.0, |index| index),
        "sequential-95" => poisson(8.421, |index| index),
        "random-50" => poisson(16.0, random),
        "random-80" => poisson(10.0, random),
        "ctas-reads" => ctas(false, |step| mixed(step + 5) % 64),
        "ctas-copy" => ctas(true, |step| mixed(step + 5) % 64),
        "ctas-copy-in-step" => ctas(true, |step| step % 64),
        other => panic!("no trace {other}"),
    }
}

/// Results of a trace on the model.
struct Found {
    /// Share of the pins' rate between a tenth and nine tenths of all completions, in percent.
    percent: f64,
    /// Mean latency of reads, in ns.
    latency: f64,
    /// Completion time of the last access.
    last: Ps,
}

fn run(config: DramConfig, trace: &[TraceAccess]) -> Found {
    let mut dram = Dram::new(config);
    let (mut now, mut waited, mut reads) = (Ps::ZERO, 0.0, 0.0);
    let (mut ends, mut inflight, mut bursts) = (Vec::new(), BinaryHeap::new(), 0);
    for access in trace {
        let count = u64::from(access.sectors.1);
        now = now.max(access.at.map_or(Ps::ZERO, Ps::from_ns));
        if access.write {
            now = now.max(dram.write(AccessTiming::at(now), Line(access.line), access.mask()));
            ends.push((now, count));
            continue;
        }
        while access.at.is_none() && bursts + count > OUTSTANDING {
            let Reverse((done, ended)) = inflight.pop().unwrap();
            now = now.max(done);
            bursts -= ended;
        }
        let end = dram.read(AccessTiming::at(now), Line(access.line), access.mask());
        waited += (end - now).0 as f64 / 1e3;
        reads += 1.0;
        inflight.push(Reverse((end, count)));
        bursts += count;
        ends.push((end, count));
    }
    ends.sort_unstable();
    let (from, until) = (ends.len() / 10, ends.len() * 9 / 10);
    let bytes: u64 = ends[from..until].iter().map(|(_, count)| count * CONFIG.burst.0).sum();
    let pins = (ends[until].0 - ends[from].0).0 as f64 * config.rate.0 as f64 / 1e12;
    Found { percent: bytes as f64 / pins * 100.0, latency: waited / reads, last: ends[ends.len() - 1].0 }
}

#[test]
fn traffic_takes_as_much_of_the_pins_as_in_the_references() {
    for Reference { traffic, refresh, percent: [one, other], .. } in references() {
        let found = run(refreshed(refresh), &trace(traffic)).percent;
        // References differ by up to 3 points in mixes of reads and writes: they group the writes in other ways.
        let allowed = if traffic.contains("writ") || traffic.contains("copy") { 3.5 } else { 2.0 };
        let (low, high) = (one.min(other) - allowed, one.max(other) + allowed);
        assert!(
            (low..high).contains(&found),
            "{traffic}, refresh {refresh}: {found:.1} %, references {one} and {other}"
        );
    }
}

#[test]
fn reads_below_saturation_take_as_long_as_in_the_references() {
    for Reference { traffic, refresh, latency, .. } in references() {
        let Some([one, other]) = latency else { continue };
        let found = run(refreshed(refresh), &trace(traffic)).latency;
        // Near saturation the latency follows small differences of the order.
        let allowed = if traffic == "sequential-95" { 0.15 } else { 0.06 };
        let (low, high) = (one.min(other) * (1.0 - allowed), one.max(other) * (1.0 + allowed));
        assert!(
            (low..high).contains(&found),
            "{traffic}, refresh {refresh}: {found:.1} ns, references {one} and {other}"
        );
    }
}

#[test]
fn random_reads_open_rows_no_faster_than_four_in_their_window() {
    let trace = trace("random-32");
    let last = run(CONFIG, &trace).last;
    let bound = Ps(trace.len() as u64 * CONFIG.t_faw.0 / 4);
    assert!(last.0 > bound.0 * 99 / 100 && last.0 < bound.0 * 11 / 10, "{last}, bound {bound}");
}

/// Four activations in 20 ns limit random reads of a channel of GDDR5 to 64 bytes in 5 ns. The pins carry 192 bytes then.
#[test]
fn random_bursts_of_gddr5_take_a_third_of_the_pins() {
    let machine = tombolo_machine::machine("umh-4-pcie").unwrap().check().unwrap();
    let config = tombolo_model::convert::dram(&machine);
    let trace = trace("random-32");
    let one_channel = DramConfig { channels: 1, rate: Rate(config.rate.0 / u64::from(config.channels)), ..config };
    let last = run(one_channel, &trace).last;
    let moved = trace.len() as f64 * config.burst.0 as f64;
    let percent = moved / (last.0 as f64 * one_channel.rate.0 as f64 / 1e12) * 100.0;
    assert!((31.0..35.0).contains(&percent), "{percent:.1} %");
}

#[test]
fn one_bank_opens_a_row_each_row_cycle_and_no_faster() {
    let one_bank = DramConfig { banks: 1, bank_groups: 1, ..CONFIG };
    let trace = trace("random-32");
    let last = run(one_bank, &trace).last;
    let bound = Ps(trace.len() as u64 * (CONFIG.t_ras + CONFIG.t_rp).0);
    // Among 40000 reads from 130000 rows, a few find their row open or already requested.
    assert!(last.0 > bound.0 * 97 / 100 && last < bound + Ps::from_ns(100), "{last}, bound {bound}");
}

/// Writes the references' traces to the folder named in `TRACES`: `cargo test -p tombolo-model --test model -- --ignored`.
/// A line per burst: time in ns, direction, bank, row, and burst in the row.
#[test]
#[ignore = "writes the traces that the references were run on"]
fn write_traces() {
    let folder = std::path::PathBuf::from(std::env::var("TRACES").unwrap());
    let dram = Dram::new(CONFIG);
    let bursts_per_line = CONFIG.line.bytes() / CONFIG.burst.0;
    for Reference { traffic, refresh, .. } in references() {
        if refresh != 0 {
            continue;
        }
        let mut text = String::new();
        for access in trace(traffic) {
            let (_, bank, row) = dram.locate(Line(access.line));
            let in_row = access.line % (CONFIG.row.0 / CONFIG.line.bytes()) * bursts_per_line;
            let direction = if access.write { 'W' } else { 'R' };
            for sector in access.sectors.0..access.sectors.0 + access.sectors.1 {
                let burst = in_row + u64::from(sector);
                writeln!(text, "{} {direction} {bank} {row} {burst}", access.at.unwrap_or(0)).unwrap();
            }
        }
        std::fs::write(folder.join(format!("{traffic}.txt")), text).unwrap();
    }
}
