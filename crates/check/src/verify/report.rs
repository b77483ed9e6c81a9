//! What is said of a test, and of all tests of a design.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Whether a design reached the event of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Event {
    /// In some execution.
    #[serde(rename = "reached")]
    Reached,
    /// In none that was explored.
    #[serde(rename = "unreached")]
    Unreached,
}

/// What the model says of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Expected {
    /// Some execution shows it.
    #[serde(rename = "allowed")]
    Allowed,
    /// None does.
    #[serde(rename = "forbidden")]
    Forbidden,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every placement was explored to its end and nothing was wrong.
    Ok,
    /// Something was wrong.
    Violation,
    /// Nothing was wrong in what a budget left room for.
    Bounded,
    /// It was not run: it holds what is not modelled.
    Unsupported,
    /// It was not run: its file holds no test.
    Unreadable,
    /// The design does not promise what the test asks.
    NotPromised,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Verdict; 6] = [
        Verdict::Ok,
        Verdict::Violation,
        Verdict::Bounded,
        Verdict::Unsupported,
        Verdict::Unreadable,
        Verdict::NotPromised,
    ];

    /// As printed.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Violation => "violation",
            Verdict::Bounded => "bounded",
            Verdict::Unsupported => "unsupported",
            Verdict::Unreadable => "unreadable",
            Verdict::NotPromised => "not promised",
        }
    }

    /// Whether the test was run, so that its question is answered.
    pub fn is_answer(self) -> bool {
        match self {
            Verdict::Ok | Verdict::Violation | Verdict::Bounded | Verdict::NotPromised => true,
            Verdict::Unsupported | Verdict::Unreadable => false,
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Names of registers and locations with their values at the end of a program.
pub type Outcome = BTreeMap<String, i64>;

/// One test under one design.
#[derive(Clone, Debug, Serialize)]
pub struct TestReport {
    /// The test.
    pub name: String,
    /// Where it was read; `None` for a random program.
    pub file: Option<String>,
    /// Whether its event was reached. The event of a random program is any state that the model forbids.
    pub event: Event,
    /// What the model says of the event; `None` where it was not asked.
    pub expected: Option<Expected>,
    /// Final states reached; of a random program only those that the model forbids.
    pub outcomes: Vec<Outcome>,
    /// How many final states were reached.
    pub reached: usize,
    /// Final states that the model allows.
    pub allowed: usize,
    /// States explored, over all placements.
    pub states: u64,
    /// Placements explored to their end, from cold and from warm caches each.
    pub placements: usize,
    /// Placements there are.
    pub placements_of: usize,
    /// How it ended.
    pub verdict: Verdict,
    /// Why it was bounded or not run; what was wrong; what a design without promise reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The way to the violation with the fewest steps on its placement, as a message sequence chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The program, where it was in no file and something was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// All tests under one design.
#[derive(Clone, Debug, Serialize)]
pub struct DesignReport {
    /// The design.
    pub design: String,
    /// In the order given.
    pub tests: Vec<TestReport>,
}

impl DesignReport {
    /// Tests that ended with `verdict`.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.tests.iter().filter(|test| test.verdict == verdict).count()
    }
}
