//! Times the explorer: the core tests, litmus files or random programs under designs, sequentially on a single thread,
//! in seconds of processor time (on Linux).
//!
//! `cargo run --release -p tombolo-check --example explore_speed -- DESIGN[,DESIGN…] [core|shapes|kernels|polling|FILE|DIR|random:FROM:TO] [NAME]`
//!
//! A design has the syntax of [`Design::configured`], such as `software-flat+back+remote`. `NAME`: only tests with this
//! text in their file or name.

use std::path::Path;
use tombolo_check::verify::{Budget, Case, Design, PLACEMENTS_OF_RANDOM, TestVerdict, read_tests, verify};

/// Seed for the series of random programs.
const SEED: u64 = 7;
/// Number of random programs timed together.
const TOGETHER: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default: &'static str| arguments.get(index).map_or(default, String::as_str);
    let cases = cases(argument(1, "core"));
    let holds = |case: &&Case| {
        let name = argument(2, "");
        case.name.contains(name) || case.file.as_deref().is_some_and(|file| file.contains(name))
    };
    let chosen: Vec<Case> = cases.iter().filter(holds).cloned().collect();
    let designs: Vec<Design> = argument(0, "hmg").split(',').map(design).collect();
    if argument(1, "core").starts_with("random") {
        return time_together(&designs, &chosen);
    }
    println!("{:<28} {:<60} {:>10} {:>12} {:>9} verdict", "design", "test", "placements", "states", "seconds");
    for design in &designs {
        time(design, &design.name, &chosen);
    }
}

/// Times random programs under all designs at once, to query the model only once.
fn time_together(designs: &[Design], cases: &[Case]) {
    for cases in cases.chunks(TOGETHER) {
        let begun = processor_seconds();
        let reports = verify(designs, cases, Budget::default(), 1, &());
        let first = cases.first().map_or("", |case| &case.name);
        println!("{} programs from {first}: {:.1} s", cases.len(), processor_seconds() - begun);
        for report in reports {
            let states: u64 = report.tests.iter().map(|test| test.states).sum();
            let (ok, bounded) = (report.count(TestVerdict::Ok), report.count(TestVerdict::Bounded));
            println!(
                "{:<28} {ok} ok, {bounded} bounded, {} else: {states} states",
                report.design,
                cases.len() - ok - bounded
            );
            for test in report.tests.iter().filter(|test| test.trace.is_some()) {
                println!(
                    "{}\n{}",
                    test.program.as_deref().unwrap_or_default(),
                    test.trace.as_deref().unwrap_or_default()
                );
            }
        }
    }
}

fn time(design: &Design, name: &str, cases: &[Case]) {
    let (mut states, mut seconds, mut ok) = (0, 0.0, 0);
    for case in cases {
        let begun = processor_seconds();
        let reports = verify(std::slice::from_ref(design), std::slice::from_ref(case), Budget::default(), 1, &());
        let took = processor_seconds() - begun;
        let test = &reports[0].tests[0];
        let shown = case.file.as_deref().unwrap_or(&case.name);
        let placements = format!("{}/{}", test.placements, test.placements_of);
        let told = test.reason.as_deref().unwrap_or_default();
        println!("{name:<28} {shown:<60} {placements:>10} {:>12} {took:>9.2} {:?} {told}", test.states, test.verdict);
        if let Some(trace) = &test.trace {
            println!("{}\n{trace}", test.program.as_deref().unwrap_or_default());
        }
        (states, seconds) = (states + test.states, seconds + took);
        ok += usize::from(test.verdict == TestVerdict::Ok);
    }
    println!("{name:<28} {ok} of {} ok: {states} states, {seconds:.1} s", cases.len());
}

/// Processor time used by this process in seconds, independent from other processes. Source: proc(5), fields utime and
/// stime in hundredths.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux counts processor time");
    let after_name = stat.rsplit(')').next().expect("a split has a part");
    let ticks =
        after_name.split_whitespace().skip(11).take(2).map(|field| field.parse::<f64>().expect("ticks are numbers"));
    ticks.sum::<f64>() / 100.0
}

fn cases(from: &str) -> Vec<Case> {
    if from == "shapes" {
        return Case::shapes();
    }
    if from == "core" {
        return Case::core();
    }
    if from == "polling" {
        return Case::polling();
    }
    if from == "kernels" {
        return Case::kernels();
    }
    if let Some(range) = from.strip_prefix("random:") {
        let (first, last) = range.split_once(':').expect("random:FROM:TO");
        let number = |text: &str| text.parse::<u64>().expect("indices are numbers");
        return (number(first)..number(last)).map(|index| Case::random(SEED, index, PLACEMENTS_OF_RANDOM)).collect();
    }
    read_tests(Path::new(from)).expect("the files hold litmus tests")
}

fn design(configuration: &str) -> Design {
    Design::configured(configuration).unwrap_or_else(|error| panic!("{error}"))
}
