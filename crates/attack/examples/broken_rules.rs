//! How soon each broken rule shows under each design: `broken_rules RUNS SEED DESIGN…`; `DESIGN+back` writes lines back.

use tombolo_attack::{Attack, Target, catch, shipped};
use tombolo_check::verify::Case;
use tombolo_machine::{DesignConfig, design};
use tombolo_protocol::BrokenRule;

/// The design of a word.
fn described(word: &str) -> DesignConfig {
    let mut tree = design(word.trim_end_matches("+back")).expect("a design that ships");
    if word.ends_with("+back") {
        tree.set("l2_write", "back").expect("a key of designs");
    }
    tree.check().expect("a design that makes sense")
}

/// The runs until a rule shows under a design, as a word.
fn runs_until(rule: BrokenRule, word: &str, (runs, seed): (u64, u64), cases: &[Case]) -> String {
    let targets = [Target::new(&described(word))];
    let attack = Attack { targets: &targets, cases, random: true, seed, runs, threads: 1 };
    catch(&attack, rule).map_or("-".to_owned(), |(at, _)| (at - seed + 1).to_string())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse().expect("RUNS SEED DESIGN…");
    let (range, words) = ((number(0), number(1)), &arguments[2..]);
    let cases = shipped();
    // Polls that never see their flag take a million rounds each.
    let rules: Vec<BrokenRule> =
        BrokenRule::ALL.into_iter().filter(|rule| *rule != BrokenRule::LoadIgnoresScope).collect();
    std::thread::scope(|scope| {
        for first in 0..2 {
            let (rules, cases) = (&rules, &cases);
            scope.spawn(move || {
                for rule in rules.iter().skip(first).step_by(2) {
                    let found = words.iter().map(|word| format!("{:>8}", runs_until(*rule, word, range, cases)));
                    println!("{:36} {}", format!("{rule:?}"), found.collect::<String>());
                }
            });
        }
    });
}
