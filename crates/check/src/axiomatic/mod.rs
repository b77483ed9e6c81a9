//! The PTX memory consistency model in axioms, and the complete set of allowed final states for a program.
//!
//! Source: PTX ISA 6.0 and later, chapter "Memory Consistency Model"; Lustig, Sahasrabuddhe and Giroux, "A Formal
//! Analysis of the NVIDIA PTX Memory Consistency Model", ASPLOS 2019. `fence.sc` is also an acquire-release fence.
//!
//! A *candidate execution* assigns a source write to each read, orders the writes per location, and orders the
//! `fence.sc`. [`outcomes`] enumerates the candidates that satisfy every axiom:
//! - `paths` cuts a program with forward branches into straight-line programs;
//! - `events` lays out the events for a straight-line program with every relation that is independent from the
//!   candidate;
//! - `axioms` decides if a complete or partial candidate is consistent;
//! - `search` assigns reads, then orders, and backtracks from inconsistent candidates;
//! - `barriers` decides if every barrier can open, a precondition for the rest.
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

pub(crate) use barriers::barriers_meet;

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
    /// A branch goes backwards.
    #[error("thread P{thread} has a loop, which the axiomatic model does not unroll")]
    Loop {
        /// The thread's number.
        thread: u32,
    },
    /// The branches of all threads together allow too many paths.
    #[error("the branches allow more than {limit} paths through the program")]
    Paths {
        /// Paths allowed.
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

/// Computes the complete set of final states for `program` under the PTX memory model.
///
/// A thread's branches must go forward. Barriers with equal ids synchronise the threads in a CTA by occurrence within
/// each kernel: each thread's first occurrence meets every mate's first, the second meets every second, and so forth.
pub fn outcomes(program: &Program, limits: &Limits) -> Result<Outcomes, ModelError> {
    let mut search = search::CandidateSearch::new(limits.candidates);
    paths::for_each(program, |paths| search.run(&events::Events::new(program, paths)?))?;
    let candidates = search.candidates();
    let mut states: Vec<FinalState> = search.into_found().map(FinalState).collect();
    states.sort_unstable();
    Ok(Outcomes { states, candidates })
}

/// A final state as stored by the search: see [`FinalState`].
type StateValues = Box<[Value]>;
