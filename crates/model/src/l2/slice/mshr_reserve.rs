//! MSHR allocation in a slice, shared by all request levels.
//!
//! A miss at some level may depend on an MSHR at a higher level in another slice, never at a lower level. Each higher
//! level therefore has a reserve that lower levels cannot use. Requests from this module's SMs thus never exhaust the
//! slice at the expense of other modules, and no two slices wait for each other. A level without requests in this
//! machine has no reserve. A level may use MSHRs that lower levels leave free. Admission counts the MSHRs held per
//! level, not the free MSHRs: misses handled for remote modules take nothing from the local SMs' share until the slice
//! is full.

use super::LEVELS;

/// Each higher level reserves `1 / KEPT_SHARE` of the MSHRs, at least 1. Assumed: hardware's virtual channels are not
/// published. An eighth of HMG's 192 lets 24 remote requests miss in a slice otherwise full with local requests.
const KEPT_SHARE: u32 = 8;

/// MSHR occupancy of a slice, by level.
#[derive(Clone, Copy, Debug)]
pub(super) struct MshrReserve {
    /// Number of MSHRs held, per level.
    held: [u32; LEVELS],
    /// Limit per level on the MSHRs held at this level and all lower levels together.
    most: [u32; LEVELS],
    /// Bit `i`: a request at level `i` can allocate an MSHR.
    room: u8,
}

impl MshrReserve {
    /// Creates `count` free MSHRs; each existing level can use at least 1.
    pub(super) fn new(count: u32, levels: [bool; LEVELS]) -> MshrReserve {
        let kept = (count / KEPT_SHARE).max(1);
        let there = |level: usize| u32::from(levels[level]);
        let most = std::array::from_fn(|level| {
            let above: u32 = (level + 1..LEVELS).map(there).sum();
            let upto: u32 = (0..=level).map(there).sum();
            count.saturating_sub(kept * above).max(upto)
        });
        let mut registers = MshrReserve { held: [0; LEVELS], most, room: 0 };
        registers.find_room();
        registers
    }

    /// True if a request at `level` can allocate an MSHR.
    #[inline]
    pub(super) fn has_room(&self, level: usize) -> bool {
        self.room >> level & 1 != 0
    }

    /// Allocates an MSHR for a miss at `level`.
    #[inline]
    pub(super) fn take(&mut self, level: usize) {
        self.held[level] += 1;
        self.find_room();
    }

    /// Frees an MSHR after a miss at `level` has ended.
    #[inline]
    pub(super) fn give_back(&mut self, level: usize) {
        self.held[level] -= 1;
        self.find_room();
    }

    /// Recomputes the levels with room: at each level with room and at every higher level, the occupancy is below its
    /// limit.
    #[inline]
    fn find_room(&mut self) {
        let mut held = 0;
        self.room = (1 << LEVELS) - 1;
        for level in 0..LEVELS {
            held += self.held[level];
            if held >= self.most[level] {
                // Neither this level nor any lower level has room.
                self.room &= !0 << (level + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [bool; LEVELS] = [true; LEVELS];

    /// Allocates all MSHRs available at `level`; returns their number.
    fn fill(registers: &mut MshrReserve, level: usize) -> u32 {
        let mut taken = 0;
        while registers.has_room(level) {
            registers.take(level);
            taken += 1;
        }
        taken
    }

    #[test]
    fn each_level_finds_its_share_however_many_those_below_want() {
        let mut registers = MshrReserve::new(192, ALL);
        assert_eq!([0, 1, 2].map(|level| fill(&mut registers, level)), [144, 24, 24]);
        let mut fewest = MshrReserve::new(3, ALL);
        assert_eq!([0, 1, 2].map(|level| fill(&mut fewest, level)), [1, 1, 1]);
    }

    #[test]
    fn nothing_is_kept_for_levels_that_a_machine_lacks() {
        assert_eq!(fill(&mut MshrReserve::new(192, [true, false, false]), 0), 192);
        let mut one_gpu = MshrReserve::new(192, [true, false, true]);
        assert_eq!([0, 2].map(|level| fill(&mut one_gpu, level)), [168, 24]);
    }

    #[test]
    fn what_higher_levels_hold_of_their_own_takes_nothing_from_those_below() {
        let mut registers = MshrReserve::new(192, ALL);
        (0..24).for_each(|_| registers.take(2));
        (0..24).for_each(|_| registers.take(1));
        assert_eq!(fill(&mut registers, 0), 144);
    }

    #[test]
    fn a_level_may_use_what_those_below_leave_and_gives_it_back() {
        let mut registers = MshrReserve::new(192, ALL);
        assert_eq!(fill(&mut registers, 2), 192);
        assert!(!registers.has_room(0));
        registers.give_back(2);
        assert!(registers.has_room(0));
    }
}
