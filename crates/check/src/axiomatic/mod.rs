//! The PTX memory consistency model in axioms, and the complete set of allowed final states for a program.
//!
//! Source: PTX ISA 6.0 and later, chapter "Memory Consistency Model"; Lustig, Sahasrabuddhe and Giroux, "A Formal
//! Analysis of the NVIDIA PTX Memory Consistency Model", ASPLOS 2019. `fence.sc` is also an acquire-release fence.
//!
//! A *candidate execution* assigns a source write to each read, orders the writes per location, and orders the
//! `fence.sc`. [`outcomes`] enumerates the candidates that satisfy every axiom:
//! - `paths` cuts a program with branches into straight-line programs, and unrolls loops;
//! - `barriers` lists the groups of threads that may open each barrier together;
//! - `events` lays out the events for a straight-line program with every relation that is independent from the
//!   candidate;
//! - `axioms` decides if a complete or partial candidate is consistent;
//! - `search` assigns reads, then orders, and backtracks from inconsistent candidates.
//!
//! Coherence is partial: only morally strong pairs and causally related pairs are ordered. Every axiom becomes strictly
//! harder to satisfy with more coherence edges, therefore the least demanded order is enough. A location may end with
//! the value of any write without a successor in coherence order.

mod axioms;
mod barriers;
mod events;
mod paths;
mod relation;
mod search;
mod symbolic;

use crate::litmus::{FinalState, Litmus, Program, Value};
use thiserror::Error;

/// Bounds on the work that [`outcomes`] may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Partial candidate executions examined, one to two microseconds each.
    pub candidates: u64,
}

impl Default for Limits {
    /// Ten million candidates: ten to twenty seconds.
    fn default() -> Limits {
        Limits { candidates: 10_000_000 }
    }
}

/// Reason why the model cannot evaluate a program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelError {
    /// The branches of all threads together allow too many paths.
    #[error("branches and barriers allow more than {limit} paths through the program")]
    Paths {
        /// Paths allowed.
        limit: usize,
    },
    /// The threads of a CTA arrive at their barriers in too many orders.
    #[error("the threads of a CTA can be at their barriers in more than {limit} states")]
    Arrivals {
        /// States allowed.
        limit: usize,
    },
    /// The event count exceeds the width of the model's bit rows.
    #[error("{events} events (locations, memory operations, atomics twice, fences, barriers): the model takes {limit}")]
    Size {
        /// Number of events in the program.
        events: usize,
        /// Number of events allowed.
        limit: usize,
    },
    /// A location takes a value outside the type's range: the model does not wrap values.
    #[error("{location} takes the value {value}, which the type of its accesses does not hold")]
    Value {
        /// Name of the location.
        location: String,
        /// The value.
        value: Value,
    },
    /// The work exceeds [`Limits::candidates`].
    #[error("more than {limit} candidate executions")]
    Budget {
        /// Candidates allowed.
        limit: u64,
    },
}

/// The final states allowed by the model for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcomes {
    /// Sorted, without duplicates.
    states: Vec<FinalState>,
    /// Partial candidate executions examined.
    pub candidates: u64,
    /// Maximum number of repetitions of loops in a thread: longer executions may end in further states. `None` if the
    /// states are complete, as for all programs in which every loop only polls.
    pub repetitions: Option<usize>,
    /// The program's barriers, on all paths, including paths to which no values lead.
    pub(crate) barriers: BarrierFacts,
}

/// Properties of a program's barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BarrierFacts {
    /// True if some order of arrivals leaves a thread waiting for ever.
    pub(crate) can_hang: bool,
    /// True if the order of arrivals decides which threads meet.
    pub(crate) has_several_groupings: bool,
}

impl Outcomes {
    /// All states, sorted.
    pub fn states(&self) -> &[FinalState] {
        &self.states
    }

    /// True if the model allows `state`.
    pub fn contains(&self, state: &FinalState) -> bool {
        self.states.binary_search(state).is_ok()
    }

    /// True if the model allows the event of `litmus`; the outcomes must belong to the test's program.
    pub fn allow_event(&self, litmus: &Litmus) -> bool {
        self.states.iter().any(|state| litmus.condition.event(&litmus.program, state))
    }
}

/// Computes the complete set of final states for `program` under the PTX memory model, over all executions in which
/// every thread ends.
///
/// Loops that write, wait at barriers or use values of earlier iterations are unrolled: see [`Outcomes::repetitions`],
/// whose number falls to what fits into the model's events and paths.
///
/// A barrier opens when as many threads have arrived as it counts; without a count, when every thread in the CTA has
/// arrived or has ended the kernel. All orders of arrival are examined.
pub fn outcomes(program: &Program, limits: &Limits) -> Result<Outcomes, ModelError> {
    if !paths::has_bounded_loop(program) {
        return outcomes_within(program, 0, limits).map(|found| Outcomes { repetitions: None, ..found });
    }
    let mut repetitions = paths::REPETITIONS;
    loop {
        match outcomes_within(program, repetitions, limits) {
            Err(ModelError::Size { .. } | ModelError::Paths { .. }) if repetitions > 0 => repetitions -= 1,
            answer => return answer,
        }
    }
}

/// Computes the final states of executions in which each thread repeats loops at most `repetitions` times.
fn outcomes_within(program: &Program, repetitions: usize, limits: &Limits) -> Result<Outcomes, ModelError> {
    let mut search = search::CandidateSearch::new(limits.candidates);
    let mut barriers = BarrierFacts::default();
    paths::for_each(program, repetitions, |paths| {
        let groupings = barriers::groupings(program, paths)?;
        barriers.can_hang |= groupings.can_hang;
        barriers.has_several_groupings |= groupings.complete.len() > 1;
        groupings.complete.iter().try_for_each(|groups| search.run(&events::Events::new(program, paths, groups)?))
    })?;
    let candidates = search.candidates();
    let mut states: Vec<FinalState> = search.into_found().map(FinalState).collect();
    states.sort_unstable();
    Ok(Outcomes { states, candidates, repetitions: Some(repetitions), barriers })
}

/// A final state as stored by the search: see [`FinalState`].
type StateValues = Box<[Value]>;
