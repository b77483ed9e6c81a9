//! Dependencies of a value: the outstanding loads and the arithmetic of its warp.

use crate::chains::Depth;

/// A set of a warp's loads (and returning atomics), numbered from 0 in issue order.
///
/// Only the 64 loads up to the newest are represented: a warp never has more outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deps {
    /// Number of the newest load in the set; meaningless if `mask` is zero.
    newest: u32,
    /// Bit `i` is set if the set contains load `newest - i`.
    mask: u64,
    /// Set if the value was never computed, because the run generates only addresses.
    pub(crate) unknown: bool,
    /// Depth of the arithmetic that computed the value.
    pub(crate) depth: Depth,
}

impl Deps {
    /// The empty set: no loads and no arithmetic.
    pub(crate) const NONE: Deps = Deps { newest: 0, mask: 0, unknown: false, depth: Depth::NONE };

    /// The set with load number `load` alone.
    #[inline]
    pub(crate) fn of(load: u32, unknown: bool) -> Deps {
        Deps { newest: load, mask: 1, unknown, depth: Depth::NONE }
    }

    /// The union of two sets.
    #[inline]
    pub(crate) fn unite(self, other: Deps) -> Deps {
        let (unknown, depth) = (self.unknown || other.unknown, self.depth.max(other.depth));
        if other.mask == 0 {
            return Deps { unknown, depth, ..self };
        }
        if self.mask == 0 {
            return Deps { unknown, depth, ..other };
        }
        let (new, old) = if self.newest >= other.newest { (self, other) } else { (other, self) };
        let older = old.mask.checked_shl(new.newest - old.newest).unwrap_or(0);
        Deps { newest: new.newest, mask: new.mask | older, unknown, depth }
    }

    /// Removes all loads from the set.
    #[inline]
    pub(crate) fn settle(&mut self) {
        self.mask = 0;
    }

    /// The set as distances after `issued` loads: bit `d - 1` represents the load issued `d` loads ago.
    #[inline]
    fn distances(self, issued: u32) -> u64 {
        if self.mask == 0 { 0 } else { self.mask.checked_shl(issued - 1 - self.newest).unwrap_or(0) }
    }
}

/// The loads of a warp: number of issued loads, and loads without a completed wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadTracker {
    issued: u32,
    /// Bit `d - 1` is set if the load issued `d` loads ago has not been waited for. Older loads are complete.
    pending: u64,
}

impl LoadTracker {
    /// Issues a load; returns its number.
    #[inline]
    pub(crate) fn issue(&mut self) -> u32 {
        self.pending = self.pending << 1 | 1;
        self.issued += 1;
        self.issued - 1
    }

    /// Waits for `deps`; returns the distances (bit `d - 1`) that were still outstanding.
    #[inline]
    pub(crate) fn wait(&mut self, deps: Deps) -> u64 {
        let waited = deps.distances(self.issued) & self.pending;
        self.pending &= !waited;
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_waited_for_once_at_its_distance() {
        let mut loads = LoadTracker::default();
        let first = Deps::of(loads.issue(), false);
        loads.issue();
        let third = Deps::of(loads.issue(), false);
        assert_eq!(loads.wait(first.unite(third)), 0b101);
        assert_eq!(loads.wait(first), 0, "already waited for");
    }

    #[test]
    fn a_load_of_64_loads_ago_is_outstanding_and_an_older_one_is_not() {
        let mut loads = LoadTracker::default();
        let first = Deps::of(loads.issue(), false);
        (0..63).for_each(|_| _ = loads.issue());
        assert_eq!(loads.clone().wait(first), 1 << 63);
        loads.issue();
        assert_eq!(loads.wait(first), 0);
    }

    #[test]
    fn union_keeps_what_either_names() {
        let (old, new) = (Deps::of(3, false), Deps::of(70, true));
        assert_eq!(old.unite(Deps::NONE), old);
        let both = Deps::of(10, false).unite(old);
        assert_eq!(both, old.unite(Deps::of(10, false)));
        assert_eq!(both.mask, 1 << 7 | 1);
        assert_eq!(old.unite(new), new, "67 loads apart: the older one is complete by rule");
    }
}
