//! Document parts that take minutes to produce, or that need a faulty simulator: built directly from the document
//! types.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use tombolo_attack::{FailingRun, TimedReport, TimedVerdict};
use tombolo_check::verify::{DesignReport, EventReachability, ModelVerdict, TestReport, TestVerdict};
use tombolo_validation::probe::{Finding, Quantity};
use tombolo_validation::{Summary, TimeComparison};

/// Returns the parts, with the headings of their documents.
pub(crate) fn documents() -> [(String, Value); 2] {
    let checked = json!({
        "designs": [DesignReport { design: String::new(), tests: vec![random_violation()] }],
        "timed": [timed_violation()],
    });
    let rows = [true, true, true, false].map(row);
    let validated = json!({ "summary": Summary::of(&rows), "rows": rows, "probes": [explained()] });
    [("check".to_owned(), checked), ("validate".to_owned(), validated)]
}

/// A random program that violates the model under a design with the full promise.
fn random_violation() -> TestReport {
    TestReport {
        name: String::new(),
        file: None,
        event: EventReachability::Reached,
        expected: Some(ModelVerdict::Forbidden),
        outcomes: vec![BTreeMap::from([("P0:r0".to_owned(), 1)])],
        reached: 1,
        allowed: 1,
        states: 1,
        placements: 1,
        placements_of: 1,
        verdict: TestVerdict::Violation,
        reason: Some(String::new()),
        trace: Some(String::new()),
        program: Some(String::new()),
    }
}

/// A design whose timing model violates a test.
fn timed_violation() -> TimedReport {
    let failing = FailingRun {
        test: String::new(),
        seed: 1,
        seen_as: String::new(),
        small: String::new(),
        program: String::new(),
        setup: String::new(),
        trace: String::new(),
    };
    TimedReport {
        design: String::new(),
        verdict: TimedVerdict::Violation,
        runs: 1,
        tests: Vec::new(),
        programs: 1,
        outcomes: 1,
        allowed: 1,
        violations: 1,
        reached: [(String::new(), 1)].into(),
        not_run: Vec::new(),
        first: Some(failing),
    }
}

/// A row with a sound or a doubtful measurement.
fn row(sound: bool) -> TimeComparison {
    let (measured_ms, simulated_ms) = if sound { (1.0, 1.5) } else { (2.0, 1.5) };
    let (benchmark, size) = (String::new(), String::new());
    TimeComparison { benchmark, size, measured_ms, simulated_ms, sampled: true, sampling_error_ms: 0.5, sound }
}

/// A probe with a large deviation from the published value.
fn explained() -> Finding {
    Finding {
        machine: String::new(),
        name: "",
        quantity: Quantity::Cycles,
        published: 1.0,
        simulated: 2.5,
        limit: None,
        source: String::new(),
        why: Some(""),
    }
}
