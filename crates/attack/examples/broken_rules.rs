//! Number of runs until each broken rule shows under each design: `broken_rules RUNS SEED DESIGN…`; `DESIGN+back`
//! writes lines back. Words before the designs select rules if ending in `?`, and tests if ending in `!`, by a part of
//! the name.

use tombolo_attack::{Attack, Target, catch, shipped};
use tombolo_check::verify::Case;
use tombolo_design::{DesignConfig, design};
use tombolo_protocol::BrokenRule;

/// The design for a word.
fn described(word: &str) -> DesignConfig {
    let mut tree = design(word.trim_end_matches("+back")).expect("a design that ships");
    if word.ends_with("+back") {
        tree.set("l2_write", "back").expect("a key of designs");
    }
    tree.check().expect("a design that makes sense")
}

/// Runs until a rule shows under a design, in text form.
fn runs_until(rule: BrokenRule, word: &str, (runs, seed): (u64, u64), (cases, random): (&[Case], bool)) -> String {
    let targets = [Target::new(&described(word))];
    let attack = Attack { targets: &targets, cases, random, seed, runs, threads: 1 };
    catch(&attack, rule).map_or("-".to_owned(), |(at, _)| (at - seed + 1).to_string())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments[at].parse().expect("RUNS SEED DESIGN…");
    let ending =
        |ending: char| -> Vec<&str> { arguments[2..].iter().filter_map(|word| word.strip_suffix(ending)).collect() };
    let (rules_of, tests) = (ending('?'), ending('!'));
    let words: Vec<String> = arguments[2..].iter().filter(|word| !word.ends_with(['?', '!'])).cloned().collect();
    let range = (number(0), number(1));
    let named = |case: &Case| {
        tests.is_empty() || tests.iter().any(|test| case.file.as_ref().is_some_and(|file| file.contains(test)))
    };
    let cases: Vec<Case> = shipped().into_iter().filter(named).collect();
    let random = tests.is_empty();
    let chosen = |rule: &BrokenRule| rules_of.is_empty() || rules_of.iter().any(|part| rule.name().contains(part));
    // Polls that never see their flag take a million rounds each.
    let rules: Vec<BrokenRule> = BrokenRule::ALL
        .into_iter()
        .filter(|rule| (*rule != BrokenRule::LoadIgnoresScope || !rules_of.is_empty()) && chosen(rule))
        .collect();
    std::thread::scope(|scope| {
        for first in 0..2 {
            let (rules, cases, words) = (&rules, &cases, &words);
            scope.spawn(move || {
                for rule in rules.iter().skip(first).step_by(2) {
                    let found =
                        words.iter().map(|word| format!("{:>8}", runs_until(*rule, word, range, (cases, random))));
                    println!("{:36} {}", rule.name(), found.collect::<String>());
                }
            });
        }
    });
}
