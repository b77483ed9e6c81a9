//! The PTX memory consistency model as axioms, and the complete set of final states it allows a program.
//!
//! Source: PTX ISA 6.0 and later, chapter "Memory Consistency Model"; Lustig, Sahasrabuddhe and Giroux, "A
//! Formal Analysis of the NVIDIA PTX Memory Consistency Model", ASPLOS 2019. `fence.sc` is also an
//! acquire-release fence.
//!
//! A *candidate execution* gives each read the write it reads from, orders the writes of each location, and
//! orders the `fence.sc`. [`outcomes`] enumerates the candidates that satisfy every axiom:
//! - `paths` cuts a program with forward branches into straight-line ones;
//! - `events` lays out the events of one of them and all that does not depend on the candidate;
//! - `axioms` says which candidates are consistent, whole or in part;
//! - `search` assigns reads, then orders, and backs out of what is inconsistent already;
//! - `barriers` says whether the barriers can all open, which all of these take for granted.
//!
//! Coherence is partial: only morally strong pairs and pairs in causality are ordered. Every axiom only gets
//! harder to satisfy with more coherence edges, so the least order that they demand is enough, and a location
//! may end with the value of any write that has no successor in it.

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

/// How much work [`outcomes`] may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Partial candidate executions looked at, one to two microseconds each.
    pub candidates: u64,
}

impl Default for Limits {
    /// Ten million candidates: ten to twenty seconds.
    fn default() -> Limits {
        Limits { candidates: 10_000_000 }
    }
}

/// Why the model has no answer for a program.
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
    /// Too many events for the bit rows that the model works on.
    #[error("{events} events (locations, memory operations, atomics twice, fences, barriers): the model takes {limit}")]
    Size {
        /// Events of the program.
        events: usize,
        /// Events allowed.
        limit: usize,
    },
    /// A location takes a value that its type does not hold: the model does not wrap values.
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

/// The final states that the model allows a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcomes {
    /// Sorted, without duplicates.
    states: Vec<FinalState>,
    /// Partial candidate executions looked at.
    pub candidates: u64,
}

impl Outcomes {
    /// All states, sorted.
    pub fn states(&self) -> &[FinalState] {
        &self.states
    }

    /// Whether the model allows `state`.
    pub fn contains(&self, state: &FinalState) -> bool {
        self.states.binary_search(state).is_ok()
    }

    /// Whether the model allows the event of `litmus`, whose program these outcomes are of.
    pub fn allow_event(&self, litmus: &Litmus) -> bool {
        self.states.iter().any(|state| litmus.condition.event(&litmus.program, state))
    }
}

/// The complete set of final states of `program` under the PTX memory model.
///
/// A thread's branches must go forward. Barriers with the same id synchronise the threads of a CTA by
/// occurrence in each kernel: the first of each thread with the first of the others, and so on.
pub fn outcomes(program: &Program, limits: &Limits) -> Result<Outcomes, ModelError> {
    let mut search = search::Search::new(limits.candidates);
    paths::for_each(program, |paths| search.run(&events::Events::new(program, paths)?))?;
    let candidates = search.candidates();
    let mut states: Vec<FinalState> = search.into_found().map(FinalState).collect();
    states.sort_unstable();
    Ok(Outcomes { states, candidates })
}

/// A final state as the search stores it: see [`FinalState`].
type State = Box<[Value]>;
