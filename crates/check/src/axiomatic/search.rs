//! Enumerates consistent candidate executions and collects their final states.

use super::axioms::Execution;
use super::events::Events;
use super::relation::members;
use super::symbolic::Evaluator;
use super::{ModelError, StateValues};
use crate::litmus::Value;
use rustc_hash::FxHashSet;

/// Final states found up to this point, over all paths through a program.
pub(super) struct CandidateSearch {
    found: FxHashSet<StateValues>,
    candidates: u64,
    limit: u64,
}

impl CandidateSearch {
    pub(super) fn new(limit: u64) -> CandidateSearch {
        CandidateSearch { found: FxHashSet::default(), candidates: 0, limit }
    }

    pub(super) fn candidates(&self) -> u64 {
        self.candidates
    }

    /// The final states found, in no particular order.
    pub(super) fn into_found(self) -> impl Iterator<Item = StateValues> {
        self.found.into_iter()
    }

    /// Adds the final states for a single straight-line program.
    pub(super) fn run(&mut self, events: &Events) -> Result<(), ModelError> {
        let reads: Vec<usize> = members(events.reads).collect();
        let mut execution = Execution::new(events);
        if execution.settle() { self.assign(execution, &reads) } else { Ok(()) }
    }

    fn count(&mut self) -> Result<(), ModelError> {
        self.candidates += 1;
        if self.candidates > self.limit { Err(ModelError::Budget { limit: self.limit }) } else { Ok(()) }
    }

    /// Assigns each possible source in turn to the first read in `reads`.
    fn assign(&mut self, execution: Execution, reads: &[usize]) -> Result<(), ModelError> {
        let Some((&read, rest)) = reads.split_first() else { return self.evaluate(execution) };
        for write in members(execution.events.sources[read]) {
            self.count()?;
            let mut next = execution;
            if next.assign(read, write) && next.settle() {
                self.assign(next, rest)?;
            }
        }
        Ok(())
    }

    /// Evaluates an execution with a source for every read: register contents and all written values are known.
    fn evaluate(&mut self, execution: Execution) -> Result<(), ModelError> {
        let events = execution.events;
        let mut evaluator = Evaluator::new(&events.expressions, |read| events.written[execution.source(read)]);
        if !events.assumptions.iter().all(|assumption| evaluator.satisfies(assumption)) {
            return Ok(());
        }
        let registers = events.registers.iter().flatten();
        let mut state: Vec<Value> = registers.map(|register| evaluator.value(*register)).collect();
        let memory = state.len();
        state.resize(memory + events.locations, 0);
        let written = events.written.iter().map(|value| evaluator.value(*value)).collect();
        self.order(execution, &mut Ending { state, memory, written })
    }

    /// Orders the remaining unordered fences and writes in both directions, unless this could find no new state.
    fn order(&mut self, execution: Execution, ending: &mut Ending) -> Result<(), ModelError> {
        if ending.all(&execution, &mut |state| self.found.contains(state)) {
            return Ok(());
        }
        if let Some((a, b)) = execution.open_fences() {
            for (first, second) in [(a, b), (b, a)] {
                self.count()?;
                let mut next = execution;
                next.order_fences(first, second);
                if next.settle() {
                    self.order(next, ending)?;
                }
            }
            return Ok(());
        }
        if let Some((a, b)) = execution.open_writes() {
            for (first, second) in [(a, b), (b, a)] {
                self.count()?;
                let mut next = execution;
                if next.order_writes(first, second) && next.settle() {
                    self.order(next, ending)?;
                }
            }
            return Ok(());
        }
        execution.events.check_values(&ending.written)?;
        ending.all(&execution, &mut |state| {
            self.found.insert(state.into());
            true
        });
        Ok(())
    }
}

/// Possible endings for an execution with a source for every read.
struct Ending {
    /// The registers, then a value per location, filled in by [`Ending::all`].
    state: Vec<Value>,
    /// Index of the first location in `state`.
    memory: usize,
    /// Per event: the written value.
    written: Vec<Value>,
}

impl Ending {
    /// True if `holds` accepts every final state compatible with the coherence order of `execution`.
    fn all(&mut self, execution: &Execution, holds: &mut impl FnMut(&[Value]) -> bool) -> bool {
        self.all_from(0, execution, holds)
    }

    fn all_from(&mut self, location: usize, execution: &Execution, holds: &mut impl FnMut(&[Value]) -> bool) -> bool {
        if self.memory + location == self.state.len() {
            return holds(&self.state);
        }
        members(execution.last_writes(location)).all(|write| {
            self.state[self.memory + location] = self.written[write];
            self.all_from(location + 1, execution, holds)
        })
    }
}
