//! Test cases: a program, the final states allowed by the model for it, and the event under test.

use super::corpus::{CORE, HOST, HOST_POLLING, KERNELS, POLLING, QUEUES, SHAPES};
use crate::axiomatic::{Limits, ModelError, Outcomes, outcomes};
use crate::explore::{Evictions, too_large};
use crate::litmus::{Condition, FinalState, Litmus, Program, parse};
use crate::random;
use crate::sequential::interleavings;

/// Maximum number of candidate executions examined by the model for a test.
const CANDIDATES: u64 = 10_000_000;

/// Placements drawn for each random program, each explored from cold and from warm caches. Source: assumed; scope bugs
/// over several modules require a placement that is rarely drawn with only a single draw per program.
pub const PLACEMENTS_OF_RANDOM: usize = 4;

/// A parsed test, not yet judged by the model.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the test.
    pub name: String,
    /// File that contains the test.
    pub file: Option<String>,
    /// The program and its condition; or the obstacle that prevents a run.
    content: Result<(Program, Option<Condition>), Obstacle>,
    /// Choice of placements.
    pub(super) placements: Placements,
    /// The question under test.
    question: Question,
}

/// Question that a test poses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Checks that the model allows every final state.
    Outcomes,
    /// Checks that an end is reachable. The model is not queried.
    End,
}

/// Choice of the explored placements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placements {
    /// All, up to renaming.
    All,
    /// A number of placements, drawn from a seed.
    Drawn {
        /// Number of placements, each explored from cold and from warm caches.
        count: usize,
        /// Seed for the random draws.
        seed: u64,
    },
}

/// Reason why a test is not run, or not to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The file contains no readable test.
    Unreadable(String),
    /// The test contains a construct that the model or the explorer does not support.
    Unsupported(String),
    /// The model's budget ends before its answer.
    Bounded(String),
}

impl From<ModelError> for Obstacle {
    fn from(error: ModelError) -> Obstacle {
        match error {
            ModelError::Budget { .. } | ModelError::Paths { .. } | ModelError::Arrivals { .. } => {
                Obstacle::Bounded(format!("the model: {error}"))
            }
            ModelError::Size { .. } | ModelError::Value { .. } => Obstacle::Unsupported(error.to_string()),
        }
    }
}

/// A test with the model's answer.
pub(super) struct JudgedTest {
    pub(super) program: Program,
    /// `None` if the model was not queried.
    pub(super) allowed: Option<Outcomes>,
    pub(super) condition: Option<Condition>,
}

impl Case {
    /// Parses a litmus test from `text`. An unreadable or unsupported test yields a case that reports the obstacle.
    pub fn parse(file: &str, text: &str) -> Case {
        match parse(file, text) {
            Ok(litmus) => Case { file: Some(file.to_owned()), ..Case::of(litmus) },
            Err(error) if error.unsupported().is_some() => {
                Case::not_run(file, Obstacle::Unsupported(error.to_string()))
            }
            Err(error) => Case::unreadable(file, error.to_string()),
        }
    }

    /// A file without a litmus test, and the reason.
    pub(super) fn unreadable(file: &str, reason: String) -> Case {
        Case::not_run(file, Obstacle::Unreadable(reason))
    }

    fn not_run(file: &str, obstacle: Obstacle) -> Case {
        let (placements, question) = (Placements::All, Question::Outcomes);
        Case { name: stem(file).to_owned(), file: Some(file.to_owned()), content: Err(obstacle), placements, question }
    }

    /// Creates a case from a litmus test with any origin.
    pub fn of(litmus: Litmus) -> Case {
        Case {
            name: litmus.program.name.clone(),
            file: None,
            content: Ok((litmus.program, Some(litmus.condition))),
            placements: Placements::All,
            question: Question::Outcomes,
        }
    }

    /// Program `index` in the random program series `seed`, on `count` placements drawn from both numbers.
    pub fn random(seed: u64, index: u64, count: usize) -> Case {
        Case::drawn(random::program(seed, index), (seed, index), count)
    }

    /// Program `index` from the series of programs with a single writer ([`random::one_writer`]), otherwise like
    /// `random`.
    pub fn one_writer(seed: u64, index: u64, count: usize) -> Case {
        Case::drawn(random::one_writer::program(seed, index), (seed, index), count)
    }

    /// A random program, on `count` placements drawn from the series and the index therein.
    fn drawn(program: Program, (seed, index): (u64, u64), count: usize) -> Case {
        let draw = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index;
        Case {
            name: program.name.clone(),
            file: None,
            content: Ok((program, None)),
            placements: Placements::Drawn { count, seed: draw },
            question: Question::Outcomes,
        }
    }

    /// The core tests shipped with the crate.
    pub fn core() -> Vec<Case> {
        read_all(CORE)
    }

    /// The shapes shipped with the crate: each exposes a broken rule in a protocol.
    pub fn shapes() -> Vec<Case> {
        read_all(SHAPES)
    }

    /// The tests for kernel boundaries shipped with the crate.
    pub fn kernels() -> Vec<Case> {
        read_all(KERNELS)
    }

    /// The polling tests shipped with the crate: threads wait in a loop, and the question is if they ever end.
    pub fn polling() -> Vec<Case> {
        ends_of(POLLING)
    }

    /// The tests shipped with the crate for requests that lack a cache resource.
    pub fn queues() -> Vec<Case> {
        read_all(QUEUES)
    }

    /// The tests with host threads shipped with the crate, polling tests last. A design for machines without a host
    /// does not run them.
    pub fn host() -> Vec<Case> {
        [read_all(HOST), ends_of(HOST_POLLING)].concat()
    }

    /// The tests shipped with the crate and need no host: core, shapes, kernels, polling, queues.
    pub fn shipped() -> Vec<Case> {
        [Case::core(), Case::shapes(), Case::kernels(), Case::polling(), Case::queues()].concat()
    }

    /// Eviction setting. Tests that ask for an end run without evictions, because an eviction could end a poll by
    /// chance.
    pub(super) fn evictions(&self) -> Evictions {
        match self.question {
            Question::Outcomes => Evictions::AtAccess,
            Question::End => Evictions::Never,
        }
    }

    /// Stem of the file name without folder and extension, or the test's name.
    pub fn stem(&self) -> &str {
        stem_or(self.file.as_deref(), &self.name)
    }

    /// True if the test was drawn instead of read.
    pub fn is_random(&self) -> bool {
        matches!(self.placements, Placements::Drawn { .. })
    }

    /// The program with the final states allowed by the model, for at most `candidates` candidate executions.
    ///
    /// # Errors
    /// States the reason for a missing answer: the test is unreadable or unsupported, or the model's budget ends
    /// before.
    pub fn allowed(&self, candidates: u64) -> Result<(Program, Outcomes), String> {
        let judged = self.judge_within(candidates).map_err(|obstacle| match obstacle {
            Obstacle::Unreadable(reason) => format!("unreadable: {reason}"),
            Obstacle::Unsupported(reason) => format!("unsupported: {reason}"),
            Obstacle::Bounded(reason) => format!("bounded: {reason}"),
        })?;
        let allowed = judged.allowed.ok_or("the test asks for its end alone")?;
        Ok((judged.program, allowed))
    }

    /// Queries the model.
    pub(super) fn judge(&self) -> Result<JudgedTest, Obstacle> {
        self.judge_within(CANDIDATES)
    }

    fn judge_within(&self, candidates: u64) -> Result<JudgedTest, Obstacle> {
        if let Some(reason) = self.content.as_ref().ok().and_then(|(program, _)| too_large(program)) {
            return Err(Obstacle::Unsupported(reason));
        }
        let judged = self.query_model(candidates)?;
        if let Some(allowed) = &judged.allowed {
            judged.can_be_explored(allowed)?;
        }
        Ok(judged)
    }

    /// Queries the model without the explorer's size limits.
    pub(super) fn query_model(&self, candidates: u64) -> Result<JudgedTest, Obstacle> {
        let (program, condition) = self.content.clone()?;
        if self.question == Question::End {
            return Ok(JudgedTest { program, allowed: None, condition });
        }
        let allowed = outcomes(&program, &Limits { candidates })?;
        if allowed.barriers.can_hang {
            return Err(Obstacle::Unsupported("barriers of a CTA may never meet".to_owned()));
        }
        Ok(JudgedTest { program, allowed: Some(allowed), condition })
    }
}

/// Maximum number of states of a program's interleavings. Source: assumed; about two hundred megabytes, and far more than
/// tests need.
pub(super) const INTERLEAVED: usize = 500_000;

/// Reason why outcomes may be missing.
pub(super) fn bounded_by_repetitions(repetitions: usize) -> String {
    format!(
        "loops that do more than poll are unrolled to {repetitions} repetitions: further ones may allow further outcomes"
    )
}

impl JudgedTest {
    /// Checks that the model's answer is complete, and that a protocol without faults ends the program.
    fn can_be_explored(&self, allowed: &Outcomes) -> Result<(), Obstacle> {
        let unsupported = |reason: &str| Err(Obstacle::Unsupported(reason.to_owned()));
        if let Some(repetitions) = allowed.repetitions {
            return Err(Obstacle::Bounded(bounded_by_repetitions(repetitions)));
        }
        if allowed.barriers.has_several_groupings {
            return unsupported("the order of arrivals decides which threads meet at a barrier");
        }
        // A loop may wait for a store that never comes, or that comes only behind a barrier at which the loop's thread is
        // missing.
        let never_ends = || interleavings(&self.program, INTERLEAVED).is_some_and(|interleaved| interleaved.is_empty());
        if allowed.states().is_empty() || self.program.has_loop() && never_ends() {
            return unsupported("no execution ends");
        }
        Ok(())
    }

    /// True if `state` shows the event: the condition's event, or, for a program without condition, any state forbidden
    /// by the model.
    pub(super) fn is_event(&self, state: &FinalState) -> bool {
        match &self.condition {
            Some(condition) => condition.event(&self.program, state),
            None => self.forbids(state),
        }
    }

    /// True if the model forbids `state`.
    pub(super) fn forbids(&self, state: &FinalState) -> bool {
        self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(state))
    }

    /// True if the model allows the event; `None` if the model was not queried.
    pub(super) fn allows_event(&self) -> Option<bool> {
        let allowed = self.allowed.as_ref()?;
        Some(allowed.states().iter().any(|state| self.is_event(state)))
    }
}

fn read_all(files: &[(&str, &str)]) -> Vec<Case> {
    files.iter().map(|(file, text)| Case::parse(file, text)).collect()
}

/// Tests that ask for their end.
fn ends_of(files: &[(&str, &str)]) -> Vec<Case> {
    let asked = |case| Case { question: Question::End, ..case };
    read_all(files).into_iter().map(asked).collect()
}

/// The name of `file` without folder and extension, or `name` without a file.
pub(super) fn stem_or<'a>(file: Option<&'a str>, name: &'a str) -> &'a str {
    file.map_or(name, stem)
}

/// A file's name without folder and extension.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".litmus").unwrap_or(name)
}
