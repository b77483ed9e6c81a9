//! How fast the simulator is: warp instructions and line transactions a second of replay.
//!
//! `cargo bench -p tombolo-system --bench throughput [stream|gather|reuse|remote|threads|designs] [once]` prints one
//! line a case: the median of five runs and the spread; with `once`, one run and its transactions. The programs are
//! generated; replay alone is timed. Beside it, `purpose` says what its instructions are for.

mod programs;

use programs::spec;
use tombolo_system::{RunRecord, RunSpec, run};

/// The program's own allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whether each case is to run once, as under a profiler.
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
        let alone = spec("hmg", "remote");
        let one = measure("remote, one thread", &alone);
        let two = measure("remote, two threads", &RunSpec { threads: 2, ..alone });
        println!("two threads are {:.2} times as fast as one", one / two);
    }
}
