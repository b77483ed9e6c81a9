//! The axiomatic model allows every outcome that plain interleaving over a single memory reaches.

use std::collections::BTreeSet;
use std::path::Path;
use tombolo_check::axiomatic::{Limits, outcomes};
use tombolo_check::litmus::{Assignments, FinalState, Program, read};
use tombolo_check::random;

/// Final states of all interleavings.
fn interleavings(program: &Program) -> BTreeSet<FinalState> {
    tombolo_check::sequential::interleavings(program, 1_000_000).expect("it is small")
}

#[test]
fn interleavings_of_random_programs_are_allowed() {
    for index in 0..500 {
        let program = random::program(5, index);
        let Ok(allowed) = outcomes(&program, &Limits { candidates: 20_000 }) else { continue };
        for state in &interleavings(&program) {
            let shown = Assignments { program: &program, state };
            assert!(allowed.contains(state), "{program}\n{shown}");
        }
    }
}

#[test]
fn interleaving_reaches_thirteen_allowed_events_of_the_corpus_and_no_forbidden_one() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/litmus");
    let expected = std::fs::read_to_string(corpus.join("expected.csv")).unwrap();
    let mut reached = 0;
    for line in expected.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let litmus = read(&corpus.join(fields[0])).unwrap();
        let event = interleavings(&litmus.program).iter().any(|state| litmus.condition.event(&litmus.program, state));
        assert!(!event || fields[2] == "allowed", "{}", fields[0]);
        reached += u32::from(event);
    }
    assert_eq!(reached, 13);
}
