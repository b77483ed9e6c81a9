//! Shipped tests catch every broken rule, under every protocol to which the rule applies. The tests named in the rule's
//! row pass if no rule is broken.

use tombolo_check::explore::PROTOCOLS;
use tombolo_check::verify::mutants::{Broken, Mutant, TestEffort, catch, mutants};
use tombolo_check::verify::{Budget, Case, Design, TestVerdict, verify};
use tombolo_protocol::BrokenRule;
use tombolo_protocol::nmoesi::BrokenNmoesi;

#[test]
fn every_broken_rule_is_caught_by_a_test_that_ships() {
    let all = mutants(PROTOCOLS);
    for (mutant, report) in all.iter().zip(catch(&all, TestEffort::First, 2, &())) {
        assert!(report.caught, "{} passes under {}", report.name, report.configuration);
        let by = report.by.expect("it was caught by something");
        let first = &by.first.test;
        assert!(
            mutant.own_tests().contains(&first.as_str()),
            "{first} catches {} first, its row names none that does",
            report.name
        );
        println!("| {} | {} | {:?} |", report.name, report.configuration, by.first);
    }
    let rules = BrokenRule::ALL.into_iter().map(Broken::Rule);
    for rule in rules.chain(BrokenNmoesi::ALL.into_iter().map(Broken::Nmoesi)) {
        assert!(all.iter().any(|mutant| mutant.rule == rule), "{rule} is looked for");
    }
}

#[test]
fn the_tests_that_a_rule_names_ship_and_pass_where_no_rule_is_broken() {
    explore_named_tests(1_000);
}

#[test]
#[ignore = "deep: 20,000 states a test"]
fn the_tests_that_a_rule_names_pass_within_a_larger_budget() {
    explore_named_tests(20_000);
}

/// Explores, under each protocol, the tests named in the rows for broken rules.
fn explore_named_tests(states: u64) {
    let shipped = [Case::shipped(), Case::host()].concat();
    for configuration in PROTOCOLS.iter().filter(|protocol| **protocol != "ideal") {
        let of_protocol = mutants(&[*configuration]);
        let named = |case: &&Case| of_protocol.iter().any(|mutant| mutant.own_tests().contains(&case.stem()));
        let cases: Vec<Case> = shipped.iter().filter(named).cloned().collect();
        let design = Design::configured(configuration).expect("it is listed");
        let budget =
            Budget { states_of_placement: states as usize, states_of_test: states, walks: 2, ..Budget::default() };
        for test in &verify(&[design], &cases, budget, 2, &())[0].tests {
            assert!(
                matches!(test.verdict, TestVerdict::Ok | TestVerdict::Bounded),
                "{} under {configuration}",
                test.name
            );
        }
    }
    let names: Vec<&str> = shipped.iter().map(Case::stem).collect();
    let missing = |mutant: &Mutant| mutant.own_tests().iter().find(|name| !names.contains(name)).copied();
    assert_eq!(mutants(PROTOCOLS).iter().find_map(missing), None);
}

#[test]
fn a_violation_is_shown_as_a_chart() {
    let mut wanted = mutants(&["hmg"]);
    wanted.retain(|mutant| mutant.rule == Broken::Rule(BrokenRule::AcquireKeepsL1));
    let chart = catch(&wanted, TestEffort::First, 1, &())[0].trace.clone().expect("a violation has a trace");
    assert!(chart.contains("--->|") && chart.contains("P1: ld.acquire.gpu r0, y"), "{chart}");
    assert!(chart.contains("forbidden outcome: "), "{chart}");
    println!("{chart}");
}
