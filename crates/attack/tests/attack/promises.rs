//! Compares the promises of shipped designs with the explorer's findings.

use std::collections::HashSet;
use tombolo_check::verify::{Budget, Case, Design, DesignReport, TestVerdict, verify};
use tombolo_design::{DesignConfig, design, list_designs};
use tombolo_types::Promise;

/// Thread count, suited to the smallest machine for test runs.
const THREADS: usize = 2;

/// The designs with a new combination of protocol and options, compared with all earlier designs.
fn distinct() -> Vec<DesignConfig> {
    let mut seen = HashSet::new();
    let shipped = list_designs().into_iter().map(|listed| {
        design(listed.name).and_then(|design| design.check()).unwrap_or_else(|error| panic!("{}: {error}", listed.name))
    });
    shipped.filter(|design| seen.insert((design.coherence.protocol(), design.options()))).collect()
}

/// Findings of the kernel boundary tests for `design`, within `states_of_test` states each, under an assumed promise
/// `promise`.
fn found(design: &DesignConfig, promise: Promise, states_of_test: u64) -> DesignReport {
    let checked = Design::new(&design.name, design.coherence.protocol(), design.options(), promise);
    let budget = Budget { states_of_placement: 20_000, states_of_test, walks: 2, ..Budget::default() };
    let checked = [checked.expect("its protocol is one of the catalogue")];
    verify(&checked, &Case::kernels(), budget, THREADS, &()).remove(0)
}

#[test]
fn a_preset_promises_what_it_keeps_and_no_less() {
    keeps_what_it_promises(400);
}

#[test]
#[ignore = "deep: 6,000 states a test"]
fn a_preset_promises_what_it_keeps_and_no_less_within_a_larger_budget() {
    keeps_what_it_promises(6_000);
}

fn keeps_what_it_promises(states_of_test: u64) {
    for design in distinct() {
        let report = found(&design, Promise::Ptx, states_of_test);
        let wrong = report.tests.iter().filter(|test| test.verdict == TestVerdict::Violation).count();
        let keeps = wrong == 0;
        let promised = design.promises.contains(Promise::Ptx);
        assert_eq!(
            keeps, promised,
            "{}: {wrong} tests are violated, and it promises {:?}",
            design.name, design.promises
        );
    }
}
