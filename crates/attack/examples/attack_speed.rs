//! Seconds and verdicts of an attack: `attack_speed RUNS SEED THREADS [DESIGN…]` (all that ship without one).

use std::time::Instant;
use tombolo_attack::{Attack, Target, attack};
use tombolo_check::verify::Case;
use tombolo_machine::{design, list_designs};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| arguments.get(at).map_or(otherwise, |text| text.parse().expect("a number"));
    let (runs, seed, threads) = (number(0, 500), number(1, 1), number(2, 2) as usize);
    let shipped: Vec<String> = list_designs().iter().map(|listed| listed.name.to_owned()).collect();
    let names = if arguments.len() > 3 { &arguments[3..] } else { &shipped };
    let target = |name: &String| Target::new(&design(name).and_then(|tree| tree.check()).expect("a design that ships"));
    let targets: Vec<Target> = names.iter().map(target).collect();
    let cases = [Case::core(), Case::shapes(), Case::kernels()].concat();
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
            println!("{} seed {}: {}\n{}\n{}\n{}\n{}", first.test, first.seed, first.seen_as, first.small, first.program, first.setup, first.trace);
        }
    }
}
