//! One of an SM's schedulers: when it issues, and which warp.

use tombolo_types::Ps;

/// A scheduler with its own pipelines.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubCore {
    /// When its pipelines take the next instruction.
    pub(super) free_at: Ps,
    /// Left over of the last instruction's time, in 1024ths of a picosecond.
    pub(super) carry: u64,
    /// When its next issue event is due; [`Ps::NEVER`] where none is.
    pub(super) next: Ps,
    /// The warp it issued last.
    pub(super) current: usize,
    /// The warp that its next issue event was scheduled for: the one that is likely to issue.
    pub(super) likely: usize,
}

impl Default for SubCore {
    fn default() -> SubCore {
        SubCore { free_at: Ps::ZERO, carry: 0, next: Ps::NEVER, current: 0, likely: 0 }
    }
}

impl SubCore {
    /// Occupies the pipelines from `at` for `cost` 1024ths of a picosecond; returns when they are free.
    #[inline]
    pub(super) fn spend(&mut self, at: Ps, cost: u64) -> Ps {
        let total = cost + self.carry;
        self.carry = total % 1024;
        at + Ps(total / 1024)
    }
}
