//! Warp scheduler in an SM: issue time and current warp.

use tombolo_types::Ps;

/// Scheduler with its own pipelines.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubCore {
    /// Bit set of this scheduler's warp slots.
    pub(super) slots: u64,
    /// Time at which the pipelines accept the next instruction.
    pub(super) free_at: Ps,
    /// Remainder from the last instruction's time, in 1024ths of a picosecond.
    pub(super) carry: u64,
    /// Minimum time per instruction, in 1024ths of a picosecond: a turn's share that too few resident warps cannot
    /// fill.
    pub(super) least: u64,
    /// Time for the scheduled issue event; [`Ps::NEVER`] if none is scheduled.
    pub(super) next: Ps,
    /// Slot of the most recently issued warp.
    pub(super) current: usize,
}

impl SubCore {
    /// Creates an idle scheduler with `count` warp slots from slot `first` on. Round-robin order starts after
    /// `current`.
    pub(super) fn new(first: usize, count: usize, current: usize) -> SubCore {
        let slots = (u64::MAX >> (64 - count)) << first;
        SubCore { slots, free_at: Ps::ZERO, carry: 0, least: 0, next: Ps::NEVER, current }
    }

    /// Number of this scheduler's slots in the bit set `warps`.
    #[inline]
    pub(super) fn count(&self, warps: u64) -> u32 {
        (self.slots & warps).count_ones()
    }

    /// Occupies the pipelines from `at` on for `count` instructions at `cost` 1024ths of a picosecond each. The cost
    /// is raised if too few warps are resident to fill a turn. Returns the time at which the pipelines are free.
    #[inline]
    pub(super) fn spend(&mut self, at: Ps, cost: u64, count: u64) -> Ps {
        let total = cost.max(self.least) * count + self.carry;
        self.carry = total % 1024;
        at + Ps(total / 1024)
    }
}
