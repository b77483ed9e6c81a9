//! What came of the runs under a design.

use serde::{Serialize, Serializer};

/// How a design fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedVerdict {
    /// Every run ended in a state that the model allows.
    Ok,
    /// Some run did not.
    Violation,
    /// It promises nothing, and was seen to misbehave.
    Misbehaves,
    /// It promises nothing, and was not seen to misbehave: the runs show nothing.
    Blind,
}

impl TimedVerdict {
    /// As printed.
    pub fn word(self) -> &'static str {
        match self {
            TimedVerdict::Ok => "ok",
            TimedVerdict::Violation => "violation",
            TimedVerdict::Misbehaves => "not promised",
            TimedVerdict::Blind => "blind",
        }
    }

    /// Whether nothing is wrong.
    pub fn holds(self) -> bool {
        matches!(self, TimedVerdict::Ok | TimedVerdict::Misbehaves)
    }
}

impl Serialize for TimedVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Tests that were not run, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotRun {
    /// Why.
    pub reason: String,
    /// How many.
    pub tests: usize,
}

/// The reason why a test is not run under a design that promises nothing to it.
pub const NOT_PROMISED: &str = "not promised";
/// The reason why a test with host threads is not run under a design in which no host takes part.
pub const NO_HOST: &str = "host threads, and no host takes part";

impl NotRun {
    /// Whether that answers the question of the tests.
    pub fn is_answer(&self) -> bool {
        self.reason == NOT_PROMISED || self.reason == NO_HOST || self.reason.starts_with("bounded")
    }
}

/// A run that failed, made small.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failing {
    /// The test.
    pub test: String,
    /// The run: `--timed 1 --seed` repeats it alone.
    pub seed: u64,
    /// What was wrong with it.
    pub seen_as: String,
    /// What is wrong with the small one.
    pub small: String,
    /// The program of the small one.
    pub program: String,
    /// Its machine, placement, delays and other warps.
    pub setup: String,
    /// What passed about its lines, as a message sequence chart.
    pub trace: String,
}

/// One test under a design, over all its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimedTest {
    /// The test.
    pub name: String,
    /// Runs.
    pub runs: u64,
    /// Different final states seen.
    pub outcomes: usize,
    /// Final states that the model allows.
    pub allowed: usize,
}

/// All runs under one design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimedReport {
    /// The design.
    pub design: String,
    /// How it fared.
    pub verdict: TimedVerdict,
    /// Runs.
    pub runs: u64,
    /// The tests that were read or that ship, by name; random programs are counted alone.
    pub tests: Vec<TimedTest>,
    /// Different random programs.
    pub programs: usize,
    /// Different final states seen, over tests and programs.
    pub outcomes: usize,
    /// Final states that the model allows them.
    pub allowed: usize,
    /// Runs in which something was wrong.
    pub violations: u64,
    /// What was not run, and why.
    pub not_run: Vec<NotRun>,
    /// The first run in which something was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Failing>,
}
