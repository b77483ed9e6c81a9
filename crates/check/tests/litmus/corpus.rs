//! The shared litmus tests: reader, verdicts and outcome sets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tombolo_check::axiomatic::{Limits, outcomes};
use tombolo_check::litmus::{Assignments, Instruction, Litmus, Quantifier, parse, read};
use tombolo_types::Order;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/litmus")
}

/// Tests with host threads, and the model's verdicts on their events.
const HOST: &str = "../host/expected.csv";

/// Rows in a CSV file without the header.
fn rows(file: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(corpus().join(file)).expect("the corpus is complete");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn test(path: &str) -> Litmus {
    read(&corpus().join(path)).unwrap_or_else(|error| panic!("{error}"))
}

fn verdict(litmus: &Litmus) -> &'static str {
    let outcomes = outcomes(&litmus.program, &Limits::default()).expect("core tests are small");
    if outcomes.allow_event(litmus) { "allowed" } else { "forbidden" }
}

#[test]
fn core_verdicts_are_reproduced() {
    let rows = rows("expected.csv");
    assert_eq!(rows.len(), 52);
    for row in rows {
        let litmus = test(&row[0]);
        let quantifier = match litmus.condition.quantifier {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::Forall => "forall",
        };
        assert_eq!(quantifier, row[1], "{}", row[0]);
        assert_eq!(verdict(&litmus), row[2], "{}", row[0]);
    }
}

#[test]
fn variant_verdicts_are_reproduced() {
    let rows = rows("variants.csv");
    assert_eq!(rows.len(), 183);
    for row in rows {
        let litmus = test(&row[0]);
        assert_eq!(litmus.program.threads.len().to_string(), row[2], "{}", row[0]);
        assert_eq!(verdict(&litmus), row[1], "{}", row[0]);
    }
}

#[test]
fn verdicts_of_loops_are_reproduced() {
    let rows = rows("loops.csv");
    assert_eq!(rows.len(), 11);
    for row in rows {
        let litmus = test(&row[0]);
        assert!(litmus.program.has_loop(), "{}", row[0]);
        assert_eq!(verdict(&litmus), row[1], "{}", row[0]);
        let outcomes = outcomes(&litmus.program, &Limits::default()).expect("they are small");
        assert_eq!(
            outcomes.repetitions.map_or(String::new(), |repetitions| repetitions.to_string()),
            row[2],
            "{}",
            row[0]
        );
    }
}

#[test]
fn host_verdicts_are_what_the_scopes_and_boundaries_of_each_test_say() {
    let rows = rows(HOST);
    assert_eq!(rows.len(), 60);
    for row in rows {
        let litmus = test(&format!("../host/{}", row[0]));
        assert!(litmus.program.has_host(), "{}", row[0]);
        assert_eq!(verdict(&litmus), row[1], "{}", row[0]);
    }
}

/// The test without any instruction by which a thread orders another.
fn without_order(mut litmus: Litmus) -> Litmus {
    for thread in &mut litmus.program.threads {
        thread.code.retain(|one| !matches!(one, Instruction::KernelBoundary | Instruction::Fence { .. }));
        for instruction in &mut thread.code {
            if let Instruction::Load { order, .. }
            | Instruction::Store { order, .. }
            | Instruction::Atomic { order, .. } = instruction
            {
                *order = Order::WEAK;
            }
        }
    }
    litmus
}

#[test]
fn what_a_host_test_forbids_is_allowed_where_nothing_orders_its_threads() {
    for row in rows(HOST) {
        let litmus = without_order(test(&format!("../host/{}", row[0])));
        // A single thread always keeps its own program order.
        let expected = if row[0] == "CoRWR+host.sys.litmus" { "forbidden" } else { "allowed" };
        assert_eq!(verdict(&litmus), expected, "{}", row[0]);
    }
}

#[test]
fn core_outcome_sets_are_reproduced() {
    let text = std::fs::read_to_string(corpus().join("outcomes.json")).unwrap();
    let tests: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(tests.len(), 52);
    for (path, expected) in tests {
        let litmus = test(&path);
        let mut expected: Vec<BTreeMap<String, i64>> = serde_json::from_value(expected["outcomes"].clone()).unwrap();
        expected.sort();
        let outcomes = outcomes(&litmus.program, &Limits::default()).unwrap();
        let named = |state| Assignments { program: &litmus.program, state }.entries().collect();
        let mut found: Vec<BTreeMap<String, i64>> = outcomes.states().iter().map(named).collect();
        found.sort();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn printing_and_reading_gives_the_same_test() {
    let with_host: Vec<String> = rows(HOST).iter().map(|row| format!("../host/{}", row[0])).collect();
    let others = [rows("expected.csv"), rows("variants.csv")].concat();
    for path in others.iter().map(|row| &row[0]).chain(&with_host) {
        let litmus = test(path);
        let printed = litmus.to_string();
        let again = parse(path, &printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(again, litmus, "{printed}");
    }
}
