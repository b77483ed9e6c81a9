//! One of an SM's schedulers: when it issues, and which warp.

use tombolo_types::Ps;

/// A scheduler with its own pipelines.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubCore {
    /// Its warp slots, by bit.
    pub(super) slots: u64,
    /// When its pipelines take the next instruction.
    pub(super) free_at: Ps,
    /// Left over of the last instruction's time, in 1024ths of a picosecond.
    pub(super) carry: u64,
    /// What an instruction takes at least, likewise: the share of a turn that its resident warps do not fill.
    pub(super) least: u64,
    /// When its next issue event is due; [`Ps::NEVER`] where none is.
    pub(super) next: Ps,
    /// The warp it issued last.
    pub(super) current: usize,
}

impl SubCore {
    /// An idle one with `count` warp slots from slot `first` on. It takes them as if `current` had issued last.
    pub(super) fn new(first: usize, count: usize, current: usize) -> SubCore {
        let slots = (u64::MAX >> (64 - count)) << first;
        SubCore { slots, free_at: Ps::ZERO, carry: 0, least: 0, next: Ps::NEVER, current }
    }

    /// Of its slots those by bit in `warps`.
    #[inline]
    pub(super) fn count(&self, warps: u64) -> u32 {
        (self.slots & warps).count_ones()
    }

    /// Occupies the pipelines from `at` for `cost` 1024ths of a picosecond, or more where too few warps are resident to
    /// fill them; returns when they are free, `count` such instructions later.
    #[inline]
    pub(super) fn spend(&mut self, at: Ps, cost: u64, count: u64) -> Ps {
        let total = cost.max(self.least) * count + self.carry;
        self.carry = total % 1024;
        at + Ps(total / 1024)
    }
}
