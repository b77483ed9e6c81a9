//! Vector clocks: a warp's knowledge about the progress of each other warp, direct or transitive.

use std::sync::Arc;

/// A point in a warp's program: after its `sequence`th memory operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// The warp, numbered from 0 in each kernel.
    pub(super) warp: u32,
    /// Memory operations that the warp had issued.
    pub(super) sequence: u32,
}

/// A sparse vector clock: for each known warp, the last moment that happens before. Shared and immutable.
#[derive(Clone, Debug, Default)]
pub(super) struct VectorClock(Arc<Vec<Moment>>);

impl VectorClock {
    /// True if `moment` happens before the holder of this clock.
    pub(super) fn covers(&self, moment: Moment) -> bool {
        let found = self.0.binary_search_by_key(&moment.warp, |known| known.warp);
        found.is_ok_and(|at| self.0[at].sequence >= moment.sequence)
    }

    /// Joins two clocks: the maximum per warp.
    pub(super) fn join(&self, other: &VectorClock) -> VectorClock {
        if Arc::ptr_eq(&self.0, &other.0) || other.0.is_empty() {
            return self.clone();
        }
        if self.0.is_empty() {
            return other.clone();
        }
        let (mut left, mut right) = (&self.0[..], &other.0[..]);
        let mut joined = Vec::with_capacity(left.len().max(right.len()));
        while let (Some(a), Some(b)) = (left.first(), right.first()) {
            let warp = a.warp.min(b.warp);
            let sequence = |known: &Moment| if known.warp == warp { known.sequence } else { 0 };
            joined.push(Moment { warp, sequence: sequence(a).max(sequence(b)) });
            left = &left[usize::from(a.warp == warp)..];
            right = &right[usize::from(b.warp == warp)..];
        }
        joined.extend_from_slice(left);
        joined.extend_from_slice(right);
        VectorClock(Arc::new(joined))
    }

    /// Extends the clock by `moment`.
    pub(super) fn with(&self, moment: Moment) -> VectorClock {
        self.join(&VectorClock(Arc::new(vec![moment])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn knowledge(moments: &BTreeMap<u32, u32>) -> VectorClock {
        VectorClock(Arc::new(moments.iter().map(|(&warp, &sequence)| Moment { warp, sequence }).collect()))
    }

    proptest! {
        #[test]
        fn a_join_covers_what_either_covers_and_no_more(
            a in prop::collection::btree_map(0..12_u32, 0..5_u32, 0..8),
            b in prop::collection::btree_map(0..12_u32, 0..5_u32, 0..8),
        ) {
            let (left, right) = (knowledge(&a), knowledge(&b));
            let joined = left.join(&right);
            for warp in 0..12 {
                for sequence in 0..6 {
                    let moment = Moment { warp, sequence };
                    prop_assert_eq!(joined.covers(moment), left.covers(moment) || right.covers(moment));
                }
            }
        }
    }
}
