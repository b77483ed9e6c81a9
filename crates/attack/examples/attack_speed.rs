//! Seconds and verdicts of an attack: `attack_speed RUNS SEED THREADS [DESIGN…]` (all shipped designs by default;
//! `DESIGN+back` writes lines back).

use std::time::Instant;
use tombolo_attack::{Attack, Target, attack, shipped};
use tombolo_design::{design, list_designs};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, otherwise: u64| arguments.get(at).map_or(otherwise, |text| text.parse().expect("a number"));
    let (runs, seed, threads) = (number(0, 500), number(1, 1), number(2, 2) as usize);
    let all: Vec<String> = list_designs().iter().map(|listed| listed.name.to_owned()).collect();
    let names = if arguments.len() > 3 { &arguments[3..] } else { &all };
    let target = |word: &String| {
        let mut tree = design(word.trim_end_matches("+back")).expect("a design that ships");
        if word.ends_with("+back") {
            tree.set("l2_write", "back").expect("a key of designs");
        }
        Target::new(&tree.check().expect("a design that makes sense"))
    };
    let targets: Vec<Target> = names.iter().map(target).collect();
    let cases = shipped();
    for target in &targets {
        let started = Instant::now();
        let one = Attack { targets: std::slice::from_ref(target), cases: &cases, random: true, seed, runs, threads };
        let report = &attack(&one, &())[0];
        println!(
            "{:28} {:12} {} runs, {} tests, {} programs, outcomes {} of {}, {} violations, not run {:?}, {:.1} s",
            report.design,
            report.verdict.word(),
            report.runs,
            report.tests.len(),
            report.programs,
            report.outcomes,
            report.allowed,
            report.violations,
            report.not_run,
            started.elapsed().as_secs_f64()
        );
        if let Some(first) = &report.first {
            println!(
                "{} seed {}: {}\n{}\n{}\n{}\n{}",
                first.test, first.seed, first.seen_as, first.small, first.program, first.setup, first.trace
            );
        }
    }
}
