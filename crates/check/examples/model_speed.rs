//! Times the axiomatic model on random programs, by number of memory operations.
//!
//! `cargo run --release -p tombolo-check --example model_speed -- [programs] [seed]`

use std::time::Instant;
use tombolo_check::axiomatic::{Limits, outcomes};
use tombolo_check::random::{OPERATIONS, program, stratum};

/// Measurements for programs with a given number of operations. Times in microseconds.
#[derive(Default)]
struct TimingRow {
    programs: usize,
    states: usize,
    candidates: u64,
    cut: usize,
    times: Vec<u128>,
}

fn main() {
    let mut arguments =
        std::env::args().skip(1).map(|argument| argument.parse().expect("programs and seed are numbers"));
    let (programs, seed) = (arguments.next().unwrap_or(10_000), arguments.next().unwrap_or(7));
    let mut rows: Vec<TimingRow> = (0..=OPERATIONS).map(|_| TimingRow::default()).collect();
    let mut worst = (0, 0);
    for index in 0..programs {
        let program = program(seed, index);
        let start = Instant::now();
        let result = outcomes(&program, &Limits::default());
        let time = start.elapsed().as_micros();
        worst = worst.max((time, index));
        let row = &mut rows[stratum(index).operations];
        row.programs += 1;
        row.times.push(time);
        match result {
            Ok(outcomes) => {
                row.states += outcomes.states().len();
                row.candidates += outcomes.candidates;
            }
            Err(_) => row.cut += 1,
        }
    }
    println!(
        "{:>4} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12} {:>5}",
        "ops", "programs", "states", "candidates", "mean us", "median us", "p99 us", "max us", "cut"
    );
    for (operations, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.programs > 0) {
        row.times.sort_unstable();
        let at = |percent: usize| row.times[(row.times.len() - 1) * percent / 100];
        let mean = row.times.iter().sum::<u128>() / row.programs as u128;
        let states = row.states / row.programs;
        let candidates = row.candidates / row.programs as u64;
        println!(
            "{operations:>4} {:>8} {states:>10} {candidates:>10} {mean:>10} {:>10} {:>10} {:>12} {:>5}",
            row.programs,
            at(50),
            at(99),
            at(100),
            row.cut
        );
    }
    println!("slowest: program {} of seed {seed}, {} us", worst.1, worst.0);
}
