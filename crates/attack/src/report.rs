//! Results of the runs under a design.

use crate::reached::Reached;
use serde::{Serialize, Serializer};

/// Verdict on a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedVerdict {
    /// Every run ended in a state allowed by the model.
    Ok,
    /// Some run did not end in an allowed state.
    Violation,
    /// The design promises nothing, and misbehaved.
    Misbehaves,
    /// The design promises nothing, and did not misbehave: the runs are not conclusive.
    Blind,
}

impl TimedVerdict {
    /// Printed form.
    pub fn word(self) -> &'static str {
        match self {
            TimedVerdict::Ok => "ok",
            TimedVerdict::Violation => "violation",
            TimedVerdict::Misbehaves => "not promised",
            TimedVerdict::Blind => "blind",
        }
    }

    /// True if no error was found.
    pub fn holds(self) -> bool {
        matches!(self, TimedVerdict::Ok | TimedVerdict::Misbehaves)
    }
}

impl Serialize for TimedVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Tests that were not run, for a common reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedTests {
    /// The reason.
    pub reason: String,
    /// Number of tests.
    pub tests: usize,
}

/// Reason for skipping a test under a design without a promise to it.
pub const NOT_PROMISED: &str = "not promised";
/// Reason for skipping a test after a request to stop.
pub const STOPPED: &str = "stopped";
/// Reason for skipping a test with host threads under a design without a host.
pub const NO_HOST: &str = "host threads, and no host takes part";

impl SkippedTests {
    /// True if the reason also answers the tests' question.
    pub fn is_answer(&self) -> bool {
        self.reason == NOT_PROMISED || self.reason == NO_HOST || self.reason.starts_with("bounded")
    }
}

/// A run that failed, minimised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailingRun {
    /// The test.
    pub test: String,
    /// Seed of the run: `--timed 1 --seed` repeats it alone.
    pub seed: u64,
    /// The failure.
    pub seen_as: String,
    /// The failure of the minimised run.
    pub small: String,
    /// Program of the minimised run.
    pub program: String,
    /// Machine, placement, delays and additional warps of the minimised run.
    pub setup: String,
    /// Messages about the test's lines, as a message sequence chart.
    pub trace: String,
}

/// A test under a design, over all its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimedTest {
    /// The test.
    pub name: String,
    /// Number of runs.
    pub runs: u64,
    /// Distinct final states seen.
    pub outcomes: usize,
    /// Final states allowed by the model.
    pub allowed: usize,
}

/// All runs under a design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimedReport {
    /// The design.
    pub design: String,
    /// Verdict on the design.
    pub verdict: TimedVerdict,
    /// Number of runs.
    pub runs: u64,
    /// Tests from files or from the shipped set, by name; random programs are counted separately.
    pub tests: Vec<TimedTest>,
    /// Number of distinct random programs.
    pub programs: usize,
    /// Distinct final states seen, over tests and programs.
    pub outcomes: usize,
    /// Final states allowed by the model for these tests and programs.
    pub allowed: usize,
    /// Number of runs with a failure.
    pub violations: u64,
    /// Number of runs with a count above zero, by the counter's path in the JSON of a run.
    pub reached: Reached,
    /// Tests that were not run, with reasons.
    pub not_run: Vec<SkippedTests>,
    /// The first run with a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<FailingRun>,
}
