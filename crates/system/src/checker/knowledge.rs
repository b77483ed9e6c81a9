//! What a warp knows: how far each other warp had come when it last heard of it, at first or second hand.

use std::sync::Arc;

/// A moment of a warp's program: after its `sequence`th memory operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// The warp, numbered from 0 in each kernel.
    pub(super) warp: u32,
    /// Memory operations it had issued.
    pub(super) sequence: u32,
}

/// A sparse vector clock: for each warp heard of, the last of its moments that happens before. Shared, never changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge(Arc<Vec<Moment>>);

impl Knowledge {
    /// Whether `moment` happens before whoever knows this.
    pub(super) fn covers(&self, moment: Moment) -> bool {
        let found = self.0.binary_search_by_key(&moment.warp, |known| known.warp);
        found.is_ok_and(|at| self.0[at].sequence >= moment.sequence)
    }

    /// Both together.
    pub(super) fn join(&self, other: &Knowledge) -> Knowledge {
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
        Knowledge(Arc::new(joined))
    }

    /// This and one moment more.
    pub(super) fn with(&self, moment: Moment) -> Knowledge {
        self.join(&Knowledge(Arc::new(vec![moment])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn knowledge(moments: &BTreeMap<u32, u32>) -> Knowledge {
        Knowledge(Arc::new(moments.iter().map(|(&warp, &sequence)| Moment { warp, sequence }).collect()))
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
