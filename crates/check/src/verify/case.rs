//! What is tested: a program, the final states the model allows it, and the event that is asked for.

use super::corpus::{CORE, HOST, HOST_POLLING, KERNELS, POLLING, QUEUES, SHAPES};
use crate::axiomatic::{Limits, ModelError, Outcomes, barriers_meet, outcomes};
use crate::explore::{Evictions, too_large};
use crate::litmus::{Condition, FinalState, Litmus, Program, parse};
use crate::random;

/// Candidate executions that the model may look at for a test.
const CANDIDATES: u64 = 10_000_000;

/// Placements drawn for each random program, each explored from cold and from warm caches. Source: assumed; scope bugs over
/// several modules take a placement that few programs get as their only one.
pub const PLACEMENTS_OF_RANDOM: usize = 4;

/// A test that is read and not yet judged by the model.
#[derive(Clone, Debug)]
pub struct Case {
    /// The test's own name.
    pub name: String,
    /// Where it was read.
    pub file: Option<String>,
    /// What runs; or why nothing does.
    content: Result<(Program, Option<Condition>), Obstacle>,
    /// How its placements are chosen.
    pub(super) placements: Placements,
    /// What is asked of it.
    question: Question,
}

/// What is asked of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Whether every final state is one that the model allows.
    Outcomes,
    /// Whether an end can be reached at all: its threads poll, and the model reads no loops.
    End,
}

/// Which placements of a program are explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placements {
    /// All, up to renaming.
    All,
    /// This many, drawn from a seed.
    Drawn {
        /// How many, each from cold and from warm caches.
        count: usize,
        /// From what.
        seed: u64,
    },
}

/// Why a test is not run, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// It is no test that can be read.
    Unreadable(String),
    /// It holds what the model or the explorer does not take.
    Unsupported(String),
    /// The model's budget ends before its answer.
    Bounded(String),
}

impl From<ModelError> for Obstacle {
    fn from(error: ModelError) -> Obstacle {
        match error {
            ModelError::Budget { .. } | ModelError::Paths { .. } => Obstacle::Bounded(format!("the model: {error}")),
            ModelError::Loop { .. } | ModelError::Size { .. } | ModelError::Value { .. } => {
                Obstacle::Unsupported(error.to_string())
            }
        }
    }
}

/// A test with the model's answer.
pub(super) struct Judged {
    pub(super) program: Program,
    /// `None` where the model was not asked.
    pub(super) allowed: Option<Outcomes>,
    pub(super) condition: Option<Condition>,
}

impl Case {
    /// A litmus test in `text`. One that cannot be read, or holds what is not supported, is a case that says so.
    pub fn parse(file: &str, text: &str) -> Case {
        match parse(file, text) {
            Ok(litmus) => Case { file: Some(file.to_owned()), ..Case::of(litmus) },
            Err(error) if error.unsupported().is_some() => {
                Case::not_run(file, Obstacle::Unsupported(error.to_string()))
            }
            Err(error) => Case::unreadable(file, error.to_string()),
        }
    }

    /// A file that holds no litmus test, and why.
    pub(super) fn unreadable(file: &str, reason: String) -> Case {
        Case::not_run(file, Obstacle::Unreadable(reason))
    }

    fn not_run(file: &str, obstacle: Obstacle) -> Case {
        let (placements, question) = (Placements::All, Question::Outcomes);
        Case { name: stem(file).to_owned(), file: Some(file.to_owned()), content: Err(obstacle), placements, question }
    }

    /// A litmus test, wherever it comes from.
    pub fn of(litmus: Litmus) -> Case {
        Case {
            name: litmus.program.name.clone(),
            file: None,
            content: Ok((litmus.program, Some(litmus.condition))),
            placements: Placements::All,
            question: Question::Outcomes,
        }
    }

    /// Program `index` of the series `seed` of random programs, on `count` placements drawn from both.
    pub fn random(seed: u64, index: u64, count: usize) -> Case {
        Case::drawn(random::program(seed, index), (seed, index), count)
    }

    /// The same of the series of programs of one writer ([`random::one_writer`]).
    pub fn one_writer(seed: u64, index: u64, count: usize) -> Case {
        Case::drawn(random::one_writer::program(seed, index), (seed, index), count)
    }

    /// A random program, on `count` placements drawn from its series and its number there.
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

    /// The core tests that ship with the crate.
    pub fn core() -> Vec<Case> {
        read_all(CORE)
    }

    /// The shapes that ship with the crate: each shows a broken rule of a protocol.
    pub fn shapes() -> Vec<Case> {
        read_all(SHAPES)
    }

    /// The tests of kernel boundaries that ship with the crate.
    pub fn kernels() -> Vec<Case> {
        read_all(KERNELS)
    }

    /// The polling tests that ship with the crate: threads that wait in a loop, of which is asked whether they ever end.
    pub fn polling() -> Vec<Case> {
        ends_of(POLLING)
    }

    /// The tests of requests that lack a resource of a cache that ship with the crate.
    pub fn queues() -> Vec<Case> {
        read_all(QUEUES)
    }

    /// The tests with host threads that ship with the crate, those that poll last. A design whose machine has no host does
    /// not run them.
    pub fn host() -> Vec<Case> {
        [read_all(HOST), ends_of(HOST_POLLING)].concat()
    }

    /// The tests that ship with the crate and need no host: core, shapes, kernels, polling, queues.
    pub fn shipped() -> Vec<Case> {
        [Case::core(), Case::shapes(), Case::kernels(), Case::polling(), Case::queues()].concat()
    }

    /// When caches make room: not where an end is asked for, which an eviction would bring by chance.
    pub(super) fn evictions(&self) -> Evictions {
        match self.question {
            Question::Outcomes => Evictions::AtAccess,
            Question::End => Evictions::Never,
        }
    }

    /// The name of its file without folder and ending, or its own.
    pub fn stem(&self) -> &str {
        stem_or(self.file.as_deref(), &self.name)
    }

    /// Whether it was drawn, and not read.
    pub fn is_random(&self) -> bool {
        matches!(self.placements, Placements::Drawn { .. })
    }

    /// The program with the final states that the model allows it, for at most `candidates` candidate executions.
    ///
    /// # Errors
    /// Says why there is no answer: the test is unreadable or unsupported, or the model's budget ends before.
    pub fn allowed(&self, candidates: u64) -> Result<(Program, Outcomes), String> {
        let judged = self.judge_within(candidates).map_err(|obstacle| match obstacle {
            Obstacle::Unreadable(reason) => format!("unreadable: {reason}"),
            Obstacle::Unsupported(reason) => format!("unsupported: {reason}"),
            Obstacle::Bounded(reason) => format!("bounded: {reason}"),
        })?;
        let allowed = judged.allowed.ok_or("the model reads no loops")?;
        Ok((judged.program, allowed))
    }

    /// Asks the model.
    pub(super) fn judge(&self) -> Result<Judged, Obstacle> {
        self.judge_within(CANDIDATES)
    }

    fn judge_within(&self, candidates: u64) -> Result<Judged, Obstacle> {
        if let Some(reason) = self.content.as_ref().ok().and_then(|(program, _)| too_large(program)) {
            return Err(Obstacle::Unsupported(reason));
        }
        self.asked_of_model(candidates)
    }

    /// Asks the model, whatever an explorer takes.
    pub(super) fn asked_of_model(&self, candidates: u64) -> Result<Judged, Obstacle> {
        let (program, condition) = self.content.clone()?;
        if self.question == Question::End {
            return Ok(Judged { program, allowed: None, condition });
        }
        if !barriers_meet(&program)? {
            return Err(Obstacle::Unsupported("barriers of a CTA may never meet".to_owned()));
        }
        let allowed = outcomes(&program, &Limits { candidates })?;
        Ok(Judged { program, allowed: Some(allowed), condition })
    }
}

impl Judged {
    /// Whether `state` shows the event: that of the condition, or for a program without one any state that
    /// the model forbids.
    pub(super) fn is_event(&self, state: &FinalState) -> bool {
        match &self.condition {
            Some(condition) => condition.event(&self.program, state),
            None => self.forbids(state),
        }
    }

    /// Whether the model forbids `state`.
    pub(super) fn forbids(&self, state: &FinalState) -> bool {
        self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(state))
    }

    /// Whether the model allows the event; `None` where it was not asked.
    pub(super) fn allows_event(&self) -> Option<bool> {
        let allowed = self.allowed.as_ref()?;
        Some(allowed.states().iter().any(|state| self.is_event(state)))
    }
}

fn read_all(files: &[(&str, &str)]) -> Vec<Case> {
    files.iter().map(|(file, text)| Case::parse(file, text)).collect()
}

/// Tests that are asked for their end.
fn ends_of(files: &[(&str, &str)]) -> Vec<Case> {
    let asked = |case| Case { question: Question::End, ..case };
    read_all(files).into_iter().map(asked).collect()
}

/// The name of `file` without folder and ending, or `name` where there is none.
pub(super) fn stem_or<'a>(file: Option<&'a str>, name: &'a str) -> &'a str {
    file.map_or(name, stem)
}

/// A file's name without folder and ending.
fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".litmus").unwrap_or(name)
}
