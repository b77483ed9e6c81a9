//! Simulation speed: warp instructions and line transactions per second during replay.
//!
//! `cargo bench -p tombolo-system --bench throughput [stream|gather|reuse|remote|threads|designs] [once]` prints one
//! line per case: the median and the spread over five runs; with `once`, one run and its transactions. The programs are
//! generated; only the replay is timed. The script `purpose` in this folder breaks the instructions down by purpose.

mod programs;

use programs::spec;
use tombolo_system::{RunRecord, RunSpec, run};

/// The program's memory allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// True if each case is to run once, for example under a profiler.
fn once() -> bool {
    std::env::args().any(|arg| arg == "once")
}

fn measure(name: &str, spec: &RunSpec) -> f64 {
    let runs = if once() { 1 } else { 5 };
    let mut records: Vec<RunRecord> = (0..runs).map(|_| run(spec).expect("a sound program runs")).collect();
    records.sort_by(|a, b| a.host.wall_s.total_cmp(&b.host.wall_s));
    let median = &records[records.len() / 2];
    println!(
        "{name}: {:.2} M warp instructions/s, {:.2} M transactions/s, {:.1} events/transaction, {:.0} ns/event; \
         {:.3} s (from {:.3} to {:.3}), digest {}",
        median.host.warp_instructions_per_s / 1e6,
        median.host.transactions_per_s / 1e6,
        median.host.events as f64 / median.transactions as f64,
        median.host.wall_s * 1e9 / median.host.events as f64 * median.host.threads as f64,
        median.host.wall_s,
        records[0].host.wall_s,
        records[records.len() - 1].host.wall_s,
        median.digest,
    );
    if once() {
        println!("{name}: {} transactions", median.transactions);
    }
    median.host.wall_s
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-') && arg != "once").collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|arg| arg == name);
    for case in ["stream", "gather", "reuse", "remote"] {
        if wants(case) {
            measure(case, &spec("hmg", case));
        }
    }
    if wants("designs") {
        for design in ["no-remote-caching", "software-flat", "software-hierarchical", "nhcc", "ideal"] {
            measure(&format!("remote, {design}"), &spec(design, "remote"));
        }
    }
    if wants("threads") {
        ["stream", "gather", "remote"].into_iter().for_each(compare_threads);
    }
}

/// Alternates runs on one thread and on two threads; reports the speedup and the ratio between processor times.
fn compare_threads(case: &str) {
    let alone = spec("hmg", case);
    let timed = |threads| {
        let before = processor_time();
        let record = run(&RunSpec { threads, ..alone.clone() }).expect("a sound program runs");
        (record.host.wall_s, processor_time() - before, record.digest)
    };
    let pairs = if once() { 1 } else { 7 };
    let mut ratios: Vec<[f64; 2]> = Vec::new();
    for _ in 0..pairs {
        let (one, two) = (timed(1), timed(2));
        assert_eq!(one.2, two.2, "{case}: threads change nothing");
        ratios.push([one.0 / two.0, two.1 / one.1]);
    }
    let median = |which: usize| {
        let mut all: Vec<f64> = ratios.iter().map(|ratio| ratio[which]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (faster, more) = (median(0), median(1));
    println!("{case}: two threads are {faster:.2} times as fast as one and take {more:.2} times the processor time");
}

/// Processor time used by this process in seconds, as counted by Linux in hundredths.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux tells");
    let behind_name = stat.rsplit(')').next().expect("a name stands in brackets");
    let times = behind_name.split_whitespace().skip(11).take(2);
    times.map(|ticks| ticks.parse::<f64>().expect("a number of ticks")).sum::<f64>() / 100.0
}
