//! The axioms, evaluated on candidate executions that may be incomplete.
//!
//! Every derived relation grows monotonically with its base relations. An axiom violated by an incomplete candidate is
//! therefore violated by each completion, too. The axioms' names and order follow the PTX ISA.

use super::events::Events;
use super::relation::{CAPACITY, Relation, Set, has, members, only};

/// A candidate execution, complete or partial.
#[derive(Clone, Copy)]
pub(super) struct Execution<'a> {
    pub(super) events: &'a Events,
    /// Reads with an assigned source write.
    assigned: Set,
    /// Per assigned read: the source write.
    source: [u8; CAPACITY],
    /// Per write: the assigned reads that read from this write.
    readers: [Set; CAPACITY],
    /// Coherence order: transitively closed.
    coherence: Relation,
    /// Explicitly chosen part of the fence order, beyond the pairs implied by causality.
    fences: Relation,
    /// Causality order of the candidate at the last [`Execution::settle`].
    causality: Relation,
    /// Set when an addition since the last settle may extend causality. Coherence edges never do.
    causality_grows: bool,
}

impl<'a> Execution<'a> {
    /// Initial candidate: no read is assigned, and only program order relates the events.
    pub(super) fn new(events: &'a Events) -> Execution<'a> {
        let mut coherence = Relation::EMPTY;
        for (initial, writes) in events.writes.iter().enumerate() {
            coherence.rows[initial] = writes & !only(initial);
            for write in members(*writes) {
                coherence.rows[write] |= events.program_order.rows[write] & writes;
            }
        }
        Execution {
            events,
            assigned: 0,
            source: [0; CAPACITY],
            readers: [0; CAPACITY],
            coherence,
            fences: Relation::EMPTY,
            causality: Relation::EMPTY,
            causality_grows: true,
        }
    }

    /// Source write of the assigned read `read`.
    pub(super) fn source(&self, read: usize) -> usize {
        usize::from(self.source[read])
    }

    /// Lets `read` read from `write`. Returns false if a value would then depend on itself (axiom *no thin air*).
    pub(super) fn assign(&mut self, read: usize, write: usize) -> bool {
        let mut seen = 0;
        let mut open = self.events.depends[write];
        while open != 0 {
            seen |= open;
            let next = members(open & self.assigned);
            open = next.fold(0, |set, one| set | self.events.depends[self.source(one)]) & !seen;
        }
        self.assigned |= only(read);
        self.source[read] = write as u8;
        self.readers[write] |= only(read);
        self.causality_grows |= self.events.strong_pair(write, read);
        !has(seen, read)
    }

    /// Orders two `fence.sc` events.
    pub(super) fn order_fences(&mut self, first: usize, second: usize) {
        self.fences.add(first, second);
        self.causality_grows = true;
    }

    /// Puts `first` before `second` in coherence order; false if the reverse order already holds.
    pub(super) fn order_writes(&mut self, first: usize, second: usize) -> bool {
        self.coherence.holds(first, second)
            || self.coherence.insert_ordered(self.events.writes[self.events.location(first)], first, second)
    }

    /// Finds a morally strong pair of still unordered fences.
    pub(super) fn open_fences(&self) -> Option<(usize, usize)> {
        let ordered = |a, b| self.causality.holds(a, b) || self.fences.holds(a, b);
        self.events.fence_pairs.iter().copied().find(|&(a, b)| !ordered(a, b) && !ordered(b, a))
    }

    /// Finds a morally strong pair of still unordered writes to a single location.
    pub(super) fn open_writes(&self) -> Option<(usize, usize)> {
        self.events.writes.iter().find_map(|writes| {
            members(*writes).find_map(|first| {
                let strong = self.events.morally_strong.rows[first] & writes & !self.coherence.rows[first];
                members(strong).find(|second| !self.coherence.holds(*second, first)).map(|second| (first, second))
            })
        })
    }

    /// The writes to `location` without a successor in coherence order.
    pub(super) fn last_writes(&self, location: usize) -> Set {
        let writes = self.events.writes[location];
        members(writes).filter(|write| self.coherence.rows[*write] == 0).fold(0, |set, write| set | only(write))
    }

    /// Adds every edge forced by the axioms. Returns false if an axiom is violated, regardless of later additions.
    pub(super) fn settle(&mut self) -> bool {
        if self.causality_grows {
            self.causality = self.causality_order();
            self.causality_grows = false;
            if !self.fence_order_holds() || !self.coherence_follows_causality() {
                return false;
            }
        }
        loop {
            let before = self.coherence.rows;
            let consistent =
                self.locations_are_sequential() && self.reads_are_not_overtaken() && self.atomics_are_whole();
            if !consistent {
                return false;
            }
            if before == self.coherence.rows {
                return true;
            }
        }
    }
}

/// Causality.
impl Execution<'_> {
    /// Observation from `write`: a morally strong read-from edge, extended through atomics.
    fn observers(&self, write: usize) -> Set {
        let mut seen = 0;
        let mut open = self.readers[write] & self.events.morally_strong.rows[write];
        while open != 0 {
            seen |= open;
            let written = members(open).filter_map(|read| self.events.atomic_write[read]).map(usize::from);
            open =
                written.fold(0, |set, next| set | self.readers[next] & self.events.morally_strong.rows[next]) & !seen;
        }
        seen
    }

    /// Synchronising edges: a release pattern observed by an acquire pattern, with morally strong heads; a shared
    /// barrier; fence order.
    fn synchronisation(&self, observed: &[Set; CAPACITY]) -> Relation {
        let mut edges = self.events.barrier;
        for write in self.events.writes.iter().flat_map(|writes| members(*writes)) {
            for head in members(self.events.release_heads[write]) {
                let acquires = members(observed[write]).fold(0, |set, read| set | self.events.acquire_heads[read]);
                edges.rows[head] |= acquires & self.events.morally_strong.rows[head];
            }
        }
        for (row, fences) in edges.rows.iter_mut().zip(&self.fences.rows) {
            *row |= fences;
        }
        edges
    }

    fn causality_order(&self) -> Relation {
        let mut observed = [0; CAPACITY];
        for write in self.events.writes.iter().flat_map(|writes| members(*writes)) {
            observed[write] = self.observers(write);
        }
        let base = self.base_causality(&self.synchronisation(&observed));
        let mut causality = base;
        for write in self.events.writes.iter().flat_map(|writes| members(*writes)) {
            for read in members(observed[write]) {
                causality.rows[write] |= base.rows[read] | self.events.program_order_location.rows[read];
            }
        }
        causality
    }

    /// Transitive closure over paths with at least an edge from `edges` and program order on either side.
    fn base_causality(&self, edges: &Relation) -> Relation {
        let order = &self.events.program_order;
        let mut heads = 0;
        let mut after = Relation::EMPTY;
        for head in (0..self.events.len()).filter(|head| edges.rows[*head] != 0) {
            heads |= only(head);
            after.rows[head] = members(edges.rows[head]).fold(0, |set, tail| set | only(tail) | order.rows[tail]);
        }
        after.close_over(heads);
        let mut base = Relation::EMPTY;
        if heads != 0 {
            for event in self.events.locations..self.events.len() {
                let first = heads & (only(event) | order.rows[event]);
                base.rows[event] = members(first).fold(0, |set, head| set | after.rows[head]);
            }
        }
        base
    }

    /// Axiom *fence-SC*: some order over the morally strong pairs of `fence.sc` does not contradict causality.
    fn fence_order_holds(&self) -> bool {
        self.events.fence_pairs.iter().all(|&(a, b)| {
            let before = self.fences.holds(a, b) || self.causality.holds(a, b);
            let after = self.fences.holds(b, a) || self.causality.holds(b, a);
            !(before && after)
        })
    }

    /// Axiom *coherence*: causality between two writes to a location implies coherence order.
    fn coherence_follows_causality(&mut self) -> bool {
        let events = self.events;
        events.writes.iter().all(|writes| {
            members(*writes).all(|first| {
                members(self.causality.rows[first] & writes).all(|second| self.order_writes(first, second))
            })
        })
    }
}

/// Communication within a location.
impl Execution<'_> {
    /// Writes after the source of `read` in coherence order.
    fn overwritten_by(&self, read: usize) -> Set {
        self.coherence.rows[self.source(read)]
    }

    /// Axiom *SC per location*: morally strong communication together with per-location program order is acyclic.
    fn locations_are_sequential(&self) -> bool {
        let mut order = self.events.program_order_location;
        self.events.accesses.iter().all(|accesses| {
            for event in members(*accesses) {
                let communication = if has(self.assigned, event) {
                    self.overwritten_by(event)
                } else {
                    self.coherence.rows[event] | self.readers[event]
                };
                order.rows[event] |= communication & self.events.morally_strong.rows[event];
            }
            order.close_over(*accesses);
            members(*accesses).all(|event| !order.holds(event, event))
        })
    }

    /// Axiom *causality*: a read never reads from a write later in causality, nor from a write that was overwritten by
    /// an earlier write in causality.
    fn reads_are_not_overtaken(&mut self) -> bool {
        let events = self.events;
        members(self.assigned).all(|read| {
            let source = self.source(read);
            !self.causality.holds(read, source)
                && members(events.writes[events.location(read)] & !only(source))
                    .all(|write| !self.causality.holds(write, read) || self.precedes_source(write, source))
        })
    }

    /// Requires that `write` does not follow `source`; if the two are morally strong, orders `write` first.
    fn precedes_source(&mut self, write: usize, source: usize) -> bool {
        if self.events.strong_pair(write, source) {
            return self.order_writes(write, source);
        }
        !self.coherence.holds(source, write)
    }

    /// Axiom *atomicity*: no morally strong write falls between the read and the write of an atomic.
    fn atomics_are_whole(&mut self) -> bool {
        let events = self.events;
        members(self.assigned).all(|read| {
            let Some(write) = events.atomic_write[read].map(usize::from) else { return true };
            let source = self.source(read);
            let strong = events.morally_strong.rows[read] & events.morally_strong.rows[write];
            members(strong & events.writes[events.location(read)]).all(|other| {
                if self.coherence.holds(source, other) {
                    return self.order_writes(write, other);
                }
                let before = self.coherence.holds(other, write) && events.strong_pair(other, source);
                !before || self.order_writes(other, source)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axiomatic::barriers::Grouping;
    use crate::axiomatic::paths;
    use crate::litmus::parse;

    /// Runs `check` on the events of a program without branches.
    fn with_events(rows: &str, check: impl Fn(&Events)) {
        let text = format!("PTX test {{}} P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ; {rows} exists x=0");
        let program = parse("test", &text).unwrap().program;
        paths::for_each(&program, 0, |paths| {
            check(&Events::new(&program, paths, &Grouping::new())?);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn fences_ordered_against_causality_are_inconsistent() {
        // Event 0 is the initial x; P0 has 1 (fence) and 2 (store), P1 has 3 (load) and 4 (fence).
        with_events("fence.sc.sys | ld.acquire.sys r0, x ; st.release.sys x, 1 | fence.sc.sys ;", |events| {
            let mut execution = Execution::new(events);
            assert!(execution.assign(3, 2) && execution.settle());
            assert_eq!(execution.open_fences(), None, "the message orders them");
            let mut against = execution;
            against.order_fences(4, 1);
            assert!(!against.settle());
            execution.order_fences(1, 4);
            assert!(execution.settle());
        });
    }

    #[test]
    fn a_read_of_an_own_later_write_is_inconsistent() {
        with_events("ld.weak r0, x | ; st.weak x, 1 | ;", |events| {
            let mut execution = Execution::new(events);
            assert!(execution.assign(1, 2));
            assert!(!execution.settle());
        });
    }

    #[test]
    fn racing_weak_writes_stay_unordered() {
        with_events("st.weak x, 1 | st.weak x, 2 ;", |events| {
            let mut execution = Execution::new(events);
            assert!(execution.settle());
            assert_eq!(execution.open_writes(), None);
            assert_eq!(execution.last_writes(0), 0b110);
        });
    }

    #[test]
    fn strong_writes_are_open_until_ordered() {
        with_events("st.relaxed.sys x, 1 | st.relaxed.sys x, 2 ;", |events| {
            let mut execution = Execution::new(events);
            assert!(execution.settle());
            assert_eq!(execution.open_writes(), Some((1, 2)));
            assert!(execution.order_writes(2, 1) && execution.settle());
            assert!(!execution.order_writes(1, 2));
            assert_eq!(execution.last_writes(0), 0b010);
        });
    }
}
