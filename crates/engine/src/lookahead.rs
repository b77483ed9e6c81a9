//! How far apart partitions are.

use tombolo_types::Ps;

/// The least delays of messages between partitions, which stand in groups: near each other within one, as the modules of a
/// GPU do, and further from those of others. A thread that has whole groups waits for others only as often as groups can
/// hear from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookahead {
    /// The group of each partition. Those of a group are adjacent.
    pub groups: Vec<u16>,
    /// Least delay of a message between two partitions of a group.
    pub within: Ps,
    /// Least delay of a message between two partitions of different groups, no less than `within`.
    pub between: Ps,
}

impl Lookahead {
    /// Partitions, at most 2^16, each of which is as far from all others.
    pub fn even(partitions: usize, delay: Ps) -> Lookahead {
        Lookahead { groups: (0..=u16::MAX).take(partitions).collect(), within: delay, between: delay }
    }

    /// The least delay of a message from one partition to another.
    pub(crate) fn of(&self, from: u16, to: u16) -> Ps {
        self.delay(self.groups[usize::from(from)] == self.groups[usize::from(to)])
    }

    /// The least delay of a message between two partitions, of one group (`near`) or of two.
    #[inline(always)]
    pub(crate) fn delay(&self, near: bool) -> Ps {
        if near { self.within } else { self.between }
    }

    /// Panics unless it is one of `partitions` partitions.
    pub(crate) fn check(&self, partitions: usize) {
        let Lookahead { groups, within, between } = self;
        assert!(groups.len() == partitions, "each of {partitions} partitions has a group, {} are given", groups.len());
        let mut seen = groups.clone();
        seen.dedup();
        let runs = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert!(runs == seen.len(), "the partitions of a group are adjacent");
        assert!(partitions == 1 || *within > Ps::ZERO, "{partitions} partitions need a lookahead above zero");
        assert!(within <= between, "groups that are {between} apart cannot have partitions that are {within} apart");
    }
}
