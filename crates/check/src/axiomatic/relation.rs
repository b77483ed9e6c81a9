//! Event sets and relations between events, stored as bits in machine words.

/// Maximum number of events in a set or a relation.
pub(super) const CAPACITY: usize = u64::BITS as usize;

/// A set of events: bit `i` stands for event `i`.
pub(super) type Set = u64;

/// The set that contains only `event`.
pub(super) fn only(event: usize) -> Set {
    1 << event
}

/// True if `set` contains `event`.
pub(super) fn has(set: Set, event: usize) -> bool {
    set >> event & 1 != 0
}

/// The events in `set`, in ascending order.
pub(super) fn members(mut set: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let event = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (event < CAPACITY).then_some(event)
    })
}

/// A binary relation: row `i` contains the events to which event `i` is related.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relation {
    pub(super) rows: [Set; CAPACITY],
}

impl Relation {
    pub(super) const EMPTY: Relation = Relation { rows: [0; CAPACITY] };

    pub(super) fn add(&mut self, from: usize, to: usize) {
        self.rows[from] |= only(to);
    }

    pub(super) fn holds(&self, from: usize, to: usize) -> bool {
        has(self.rows[from], to)
    }

    /// Closes the relation transitively over paths through `nodes`.
    pub(super) fn close_over(&mut self, nodes: Set) {
        for through in members(nodes) {
            let reached = self.rows[through];
            for from in members(nodes) {
                if has(self.rows[from], through) {
                    self.rows[from] |= reached;
                }
            }
        }
    }

    /// Adds a pair to a transitively closed relation on `nodes` and closes it again. Returns false, and changes
    /// nothing, if the pair would create a cycle.
    pub(super) fn insert_ordered(&mut self, nodes: Set, from: usize, to: usize) -> bool {
        if from == to || self.holds(to, from) {
            return false;
        }
        let after = self.rows[to] | only(to);
        for before in members(nodes) {
            if before == from || self.holds(before, from) {
                self.rows[before] |= after;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_lists_a_set_in_order() {
        assert_eq!(members(0).count(), 0);
        assert_eq!(members(1 << 63 | 0b101).collect::<Vec<_>>(), [0, 2, 63]);
        assert_eq!(members(u64::MAX).count(), 64);
    }

    #[test]
    fn an_inserted_pair_is_closed_and_its_reverse_refused() {
        let mut order = Relation::EMPTY;
        assert!(order.insert_ordered(0b1111, 2, 3));
        assert!(order.insert_ordered(0b1111, 0, 1));
        assert!(order.insert_ordered(0b1111, 1, 2));
        assert!(order.holds(0, 3));
        assert!(!order.insert_ordered(0b1111, 3, 0));
        assert!(!order.insert_ordered(0b1111, 1, 1));
    }

    #[test]
    fn closing_follows_paths_of_any_length() {
        let mut chain = Relation::EMPTY;
        for event in [5, 2, 7, 0] {
            chain.add(event + 1, event);
        }
        chain.add(0, 8);
        chain.close_over(!0);
        assert!(chain.holds(1, 7));
        assert!(!chain.holds(7, 1));
    }
}
