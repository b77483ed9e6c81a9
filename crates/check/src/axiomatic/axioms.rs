//! The axioms, on candidate executions that may be incomplete.
//!
//! All derived relations grow with the relations they are made of, so what an incomplete candidate violates,
//! every completion of it violates too. The axioms' names and order are those of the PTX ISA.

use super::events::Events;
use super::relation::{CAPACITY, Relation, Set, has, members, only};

/// A candidate execution, whole or in part.
#[derive(Clone, Copy)]
pub(super) struct Execution<'a> {
    pub(super) events: &'a Events,
    /// Reads that have a source.
    assigned: Set,
    /// Per assigned read: the write it reads from.
    source: [u8; CAPACITY],
    /// Per write: the assigned reads that read from it.
    readers: [Set; CAPACITY],
    /// Coherence order: transitively closed.
    coherence: Relation,
    /// The part of the fence order that was chosen, not implied by causality.
    fences: Relation,
    /// Causality order of the candidate at the last [`Execution::settle`].
    causality: Relation,
}

impl<'a> Execution<'a> {
    /// No read assigned, nothing ordered but by the program.
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
        }
    }

    /// The write that the assigned read `read` reads from.
    pub(super) fn source(&self, read: usize) -> usize {
        usize::from(self.source[read])
    }

    /// Lets `read` read from `write`. False where that makes a value depend on itself (axiom *no thin air*).
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
        !has(seen, read)
    }

    /// Orders two `fence.sc`.
    pub(super) fn order_fences(&mut self, first: usize, second: usize) {
        self.fences.add(first, second);
    }

    /// Puts `first` before `second` in coherence order; false where the reverse holds.
    pub(super) fn order_writes(&mut self, first: usize, second: usize) -> bool {
        self.coherence.holds(first, second)
            || self.coherence.insert_ordered(self.events.writes[self.events.location(first)], first, second)
    }

    /// A morally strong pair of fences that is not ordered yet.
    pub(super) fn open_fences(&self) -> Option<(usize, usize)> {
        let ordered = |a, b| self.causality.holds(a, b) || self.fences.holds(a, b);
        self.events.fence_pairs.iter().copied().find(|&(a, b)| !ordered(a, b) && !ordered(b, a))
    }

    /// A morally strong pair of writes to one location that is not ordered yet.
    pub(super) fn open_writes(&self) -> Option<(usize, usize)> {
        self.events.writes.iter().find_map(|writes| {
            members(*writes).find_map(|first| {
                let strong = self.events.morally_strong.rows[first] & writes & !self.coherence.rows[first];
                members(strong).find(|second| !self.coherence.holds(*second, first)).map(|second| (first, second))
            })
        })
    }

    /// The writes to `location` that have no successor in coherence order.
    pub(super) fn last_writes(&self, location: usize) -> Set {
        let writes = self.events.writes[location];
        members(writes).filter(|write| self.coherence.rows[*write] == 0).fold(0, |set, write| set | only(write))
    }

    /// Adds what the axioms force. False where some axiom is violated, whatever is added.
    pub(super) fn settle(&mut self) -> bool {
        self.causality = self.causality_order();
        if !self.fence_order_holds() || !self.coherence_follows_causality() {
            return false;
        }
        loop {
            let before = self.coherence.rows;
            let Some(communication) = self.location_order() else { return false };
            let consistent = self.strong_writes_follow(&communication)
                && self.reads_are_not_overtaken(&communication)
                && self.atomics_are_whole();
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
    /// Observation from `write`: a morally strong read-from, extended through atomics.
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

    /// Synchronising edges: a release pattern observed by an acquire pattern, with morally strong heads; same
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

    /// At least one of `edges`, with program order on either side, transitively closed.
    fn base_causality(&self, edges: &Relation) -> Relation {
        let order = &self.events.program_order;
        let mut heads = 0;
        let mut after = Relation::EMPTY;
        for head in (0..CAPACITY).filter(|head| edges.rows[*head] != 0) {
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

    /// Axiom *fence-SC*: some order over the morally strong pairs of `fence.sc` is not contradicted by causality.
    fn fence_order_holds(&self) -> bool {
        self.events.fence_pairs.iter().all(|&(a, b)| {
            let before = self.fences.holds(a, b) || self.causality.holds(a, b);
            let after = self.fences.holds(b, a) || self.causality.holds(b, a);
            !(before && after)
        })
    }

    /// Axiom *coherence*: causality between writes of one location is in coherence order.
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
    /// The writes that come after what `read` reads from.
    fn overwritten_by(&self, read: usize) -> Set {
        self.coherence.rows[self.source(read)]
    }

    /// Morally strong communication with same-location program order, transitively closed. `None` where it has
    /// a cycle: axiom *SC per location*.
    fn location_order(&self) -> Option<Relation> {
        let mut order = self.events.program_order_location;
        for accesses in &self.events.accesses {
            for event in members(*accesses) {
                let communication = if has(self.assigned, event) {
                    self.overwritten_by(event)
                } else {
                    self.coherence.rows[event] | self.readers[event]
                };
                order.rows[event] |= communication & self.events.morally_strong.rows[event];
            }
            order.close_over(*accesses);
            if members(*accesses).any(|event| order.holds(event, event)) {
                return None;
            }
        }
        Some(order)
    }

    /// Morally strong writes are in coherence order, and in no other than SC per location gives them.
    fn strong_writes_follow(&mut self, order: &Relation) -> bool {
        let events = self.events;
        events.writes.iter().all(|writes| {
            members(*writes).all(|first| {
                let later = order.rows[first] & events.morally_strong.rows[first] & writes;
                members(later).all(|second| self.order_writes(first, second))
            })
        })
    }

    /// Axiom *causality*, and with it SC per location for reads: no read reads from, or from before, a write
    /// that it precedes or follows.
    fn reads_are_not_overtaken(&mut self, order: &Relation) -> bool {
        let events = self.events;
        members(self.assigned).all(|read| {
            let source = self.source(read);
            !self.causality.holds(read, source)
                && members(events.writes[events.location(read)] & !only(source)).all(|write| {
                    let before = self.causality.holds(write, read)
                        || events.strong_pair(write, read) && order.holds(write, read);
                    !before || self.precedes_source(write, source)
                })
        })
    }

    /// `write` must not follow `source`; where the two are morally strong it precedes it.
    fn precedes_source(&mut self, write: usize, source: usize) -> bool {
        if self.events.strong_pair(write, source) {
            return self.order_writes(write, source);
        }
        !self.coherence.holds(source, write)
    }

    /// Axiom *atomicity*: no morally strong write falls between what an atomic reads and what it writes.
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
