//! Groups of a module's L2 slices. A group owns slices, their DRAM channels and a share of the memory-side cache. Each
//! group is the smallest part of a module's memory that all remaining components reach only by messages.

/// A slice group within a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupIndex {
    /// Index from 0.
    pub(crate) index: u32,
    /// Total number of groups in the module.
    pub(crate) groups: u32,
}

impl GroupIndex {
    /// The only group in a module without others.
    pub(crate) const ONLY: GroupIndex = GroupIndex { index: 0, groups: 1 };

    /// All groups of a module with `groups` groups.
    pub(crate) fn all(groups: u32) -> impl Iterator<Item = GroupIndex> {
        (0..groups).map(move |index| GroupIndex { index, groups })
    }

    /// The group's share when `count` items are divided as evenly as possible; shares differ by at most one.
    pub(crate) fn part(self, count: u32) -> u32 {
        let [groups, index, count] = [self.groups, self.index, count].map(u64::from);
        ((index + 1) * count / groups - index * count / groups) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_all_there_is_as_evenly_as_it_divides() {
        for (groups, count) in [(1, 7), (4, 16), (16, 1000), (64, 3)] {
            let parts: Vec<u32> = GroupIndex::all(groups).map(|group| group.part(count)).collect();
            assert_eq!(parts.iter().sum::<u32>(), count);
            assert!(parts.iter().all(|part| [count / groups, count.div_ceil(groups)].contains(part)), "{parts:?}");
        }
    }
}
