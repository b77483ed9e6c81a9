//! Minimum delays between partitions, which determine the length of windows.

use tombolo_types::Ps;

/// Least message delays between partitions, which form groups. Partitions in a group are close to each other, like the
/// modules in a GPU, and further away from partitions in another group. A thread with whole groups waits for further
/// threads only when groups can exchange messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookahead {
    /// Group of each partition. The partitions in a group are adjacent.
    pub groups: Vec<u16>,
    /// Least delay for a message between two partitions in one group.
    pub within: Ps,
    /// Least delay for a message between two partitions in different groups, at least `within`.
    pub between: Ps,
}

impl Lookahead {
    /// Lookahead for at most 2^16 partitions with equal distances.
    pub fn even(partitions: usize, delay: Ps) -> Lookahead {
        Lookahead { groups: (0..=u16::MAX).take(partitions).collect(), within: delay, between: delay }
    }

    /// Least delay for a message from partition `from` to partition `to`.
    pub(crate) fn of(&self, from: u16, to: u16) -> Ps {
        self.delay(self.groups[usize::from(from)] == self.groups[usize::from(to)])
    }

    /// Least delay for a message between two partitions, in one group (`near`) or in two.
    #[inline(always)]
    pub(crate) fn delay(&self, near: bool) -> Ps {
        if near { self.within } else { self.between }
    }

    /// Panics unless the lookahead describes `partitions` partitions.
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
