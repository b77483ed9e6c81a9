//! The miss registers of a slice, shared by the levels of requests.
//!
//! What a miss of one level waits for may need a register of a higher level elsewhere, never of a lower one. So each
//! higher level keeps some that no lower one may take: requests of this module's SMs never fill the slice against those
//! of other modules, and no two slices wait for each other. A level that no request of the machine has keeps none. A
//! level may use what those below leave. Which requests hold the registers counts, not how many are free: what a home
//! has under way for others takes nothing from the share of its own SMs until the slice is full.

use super::LEVELS;

/// One of so many registers is kept for each higher level, at least one. Assumed: hardware's virtual channels are not
/// published; an eighth of HMG's 192 lets 24 requests of other modules miss beside a slice full of its own.
const KEPT_SHARE: u32 = 8;

/// Who holds a slice's miss registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers {
    /// By level: registers that its misses hold.
    held: [u32; LEVELS],
    /// By level: how many it and those below may hold together.
    most: [u32; LEVELS],
    /// By level, by bit: whether a request of it finds one.
    room: u8,
}

impl Registers {
    /// All of `count` free; at least one for each level that there is.
    pub(super) fn new(count: u32, levels: [bool; LEVELS]) -> Registers {
        let kept = (count / KEPT_SHARE).max(1);
        let there = |level: usize| u32::from(levels[level]);
        let most = std::array::from_fn(|level| {
            let above: u32 = (level + 1..LEVELS).map(there).sum();
            let upto: u32 = (0..=level).map(there).sum();
            count.saturating_sub(kept * above).max(upto)
        });
        let mut registers = Registers { held: [0; LEVELS], most, room: 0 };
        registers.find_room();
        registers
    }

    /// Whether a request of `level` finds one.
    #[inline]
    pub(super) fn has_room(&self, level: usize) -> bool {
        self.room >> level & 1 != 0
    }

    /// A miss of `level` takes one.
    #[inline]
    pub(super) fn take(&mut self, level: usize) {
        self.held[level] += 1;
        self.find_room();
    }

    /// A miss of `level` has ended.
    #[inline]
    pub(super) fn give_back(&mut self, level: usize) {
        self.held[level] -= 1;
        self.find_room();
    }

    /// Finds the levels with room: those up to which, and up to each above, fewer are held than may be.
    #[inline]
    fn find_room(&mut self) {
        let mut held = 0;
        self.room = (1 << LEVELS) - 1;
        for level in 0..LEVELS {
            held += self.held[level];
            if held >= self.most[level] {
                // Neither this level nor one below has any.
                self.room &= !0 << (level + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [bool; LEVELS] = [true; LEVELS];

    /// Takes what there is for `level`; returns how many.
    fn fill(registers: &mut Registers, level: usize) -> u32 {
        let mut taken = 0;
        while registers.has_room(level) {
            registers.take(level);
            taken += 1;
        }
        taken
    }

    #[test]
    fn each_level_finds_its_share_however_many_those_below_want() {
        let mut registers = Registers::new(192, ALL);
        assert_eq!([0, 1, 2].map(|level| fill(&mut registers, level)), [144, 24, 24]);
        let mut fewest = Registers::new(3, ALL);
        assert_eq!([0, 1, 2].map(|level| fill(&mut fewest, level)), [1, 1, 1]);
    }

    #[test]
    fn nothing_is_kept_for_levels_that_a_machine_lacks() {
        assert_eq!(fill(&mut Registers::new(192, [true, false, false]), 0), 192);
        let mut one_gpu = Registers::new(192, [true, false, true]);
        assert_eq!([0, 2].map(|level| fill(&mut one_gpu, level)), [168, 24]);
    }

    #[test]
    fn what_higher_levels_hold_of_their_own_takes_nothing_from_those_below() {
        let mut registers = Registers::new(192, ALL);
        (0..24).for_each(|_| registers.take(2));
        (0..24).for_each(|_| registers.take(1));
        assert_eq!(fill(&mut registers, 0), 144);
    }

    #[test]
    fn a_level_may_use_what_those_below_leave_and_gives_it_back() {
        let mut registers = Registers::new(192, ALL);
        assert_eq!(fill(&mut registers, 2), 192);
        assert!(!registers.has_room(0));
        registers.give_back(2);
        assert!(registers.has_room(0));
    }
}
