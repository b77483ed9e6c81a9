//! Report for a test, and for all tests under a design.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Reachability of a test's event under a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum EventReachability {
    /// Reached in some execution.
    #[serde(rename = "reached")]
    Reached,
    /// Not reached in any explored execution.
    #[serde(rename = "unreached")]
    Unreached,
}

/// The model's verdict on the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ModelVerdict {
    /// Some execution shows it.
    #[serde(rename = "allowed")]
    Allowed,
    /// No execution shows it.
    #[serde(rename = "forbidden")]
    Forbidden,
}

/// Result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestVerdict {
    /// Every placement was explored to the end without a violation.
    Ok,
    /// A violation was found.
    Violation,
    /// No violation was found before the budget ended.
    Bounded,
    /// The test was not run: it contains unmodelled constructs.
    Unsupported,
    /// The test was not run: its file contains no test.
    Unreadable,
    /// The design does not promise the property under test.
    NotPromised,
}

impl TestVerdict {
    /// Every verdict.
    pub const ALL: [TestVerdict; 6] = [
        TestVerdict::Ok,
        TestVerdict::Violation,
        TestVerdict::Bounded,
        TestVerdict::Unsupported,
        TestVerdict::Unreadable,
        TestVerdict::NotPromised,
    ];

    /// Printed form.
    pub fn word(self) -> &'static str {
        match self {
            TestVerdict::Ok => "ok",
            TestVerdict::Violation => "violation",
            TestVerdict::Bounded => "bounded",
            TestVerdict::Unsupported => "unsupported",
            TestVerdict::Unreadable => "unreadable",
            TestVerdict::NotPromised => "not promised",
        }
    }

    /// True if the test was run, and its question is answered.
    pub fn is_answer(self) -> bool {
        match self {
            TestVerdict::Ok | TestVerdict::Violation | TestVerdict::Bounded | TestVerdict::NotPromised => true,
            TestVerdict::Unsupported | TestVerdict::Unreadable => false,
        }
    }
}

impl Serialize for TestVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Names of registers and locations with their values at program end.
pub type Outcome = BTreeMap<String, i64>;

/// A test under a design.
#[derive(Clone, Debug, Serialize)]
pub struct TestReport {
    /// The test.
    pub name: String,
    /// File that contains the test; `None` for a random program.
    pub file: Option<String>,
    /// Reachability of the event. For a random program the event is any state forbidden by the model.
    pub event: EventReachability,
    /// The model's verdict on the event; `None` if the model was not queried.
    pub expected: Option<ModelVerdict>,
    /// Final states reached; for a random program only the states forbidden by the model.
    pub outcomes: Vec<Outcome>,
    /// Final states reached.
    pub reached: usize,
    /// Final states allowed by the model.
    pub allowed: usize,
    /// States explored, over all placements.
    pub states: u64,
    /// Placements explored to the end, each from cold and from warm caches.
    pub placements: usize,
    /// Total number of placements.
    pub placements_of: usize,
    /// Result of the test.
    pub verdict: TestVerdict,
    /// Reason for a bounded or missing run; the violation; or the event reached by a design without promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Path to the violation with the fewest steps on a placement, in message sequence chart form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The program, if it came from no file and a violation was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// All tests under a design.
#[derive(Clone, Debug, Serialize)]
pub struct DesignReport {
    /// The design.
    pub design: String,
    /// Test reports in the given order.
    pub tests: Vec<TestReport>,
}

impl DesignReport {
    /// Tests with the result `verdict`.
    pub fn count(&self, verdict: TestVerdict) -> usize {
        self.tests.iter().filter(|test| test.verdict == verdict).count()
    }
}
