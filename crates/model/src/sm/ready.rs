//! Warp selection: each warp's ready time, and the scheduler's choice among ready warps.

use tombolo_machine::machine::Scheduler;
use tombolo_types::Ps;

/// Maximum number of warp slots per SM: each slot is a bit in a word.
pub(super) const SLOTS: usize = 64;

/// Ready times and ages for the warps in an SM. Slot numbers are taken modulo [`SLOTS`].
pub(super) struct ReadyTimes {
    scheduler: Scheduler,
    /// Ready time by warp slot; [`Ps::NEVER`] for a waiting warp or an empty slot.
    at: [Ps; SLOTS],
    /// Bit `i`: slot `i` has a ready time.
    timed: u64,
    /// Arrival order at the SM, by warp slot.
    age: [u32; SLOTS],
    next_age: u32,
}

impl ReadyTimes {
    /// Creates the state for an SM without warps.
    pub(super) fn new(scheduler: Scheduler) -> ReadyTimes {
        ReadyTimes { scheduler, at: [Ps::NEVER; SLOTS], timed: 0, age: [0; SLOTS], next_age: 0 }
    }

    /// Records the arrival of a warp in `slot`; this warp is younger than all resident warps.
    pub(super) fn arrive(&mut self, slot: usize) {
        self.age[slot % SLOTS] = self.next_age;
        self.next_age = self.next_age.wrapping_add(1);
    }

    /// Returns the ready time for the warp in `slot`.
    #[inline]
    pub(super) fn at(&self, slot: usize) -> Ps {
        self.at[slot % SLOTS]
    }

    /// Sets the ready time for the warp in `slot`.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, at: Ps) {
        self.at[slot % SLOTS] = at;
        let timed = u64::from(at < Ps::NEVER);
        self.timed = self.timed & !(1 << (slot % SLOTS)) | timed << (slot % SLOTS);
    }

    /// Selects the first warp among `slots` to issue from `at` on, with its issue time. A ready `current` warp, which
    /// issued last, is preferred; then the scheduler picks the oldest resident warp or the next in round-robin order.
    /// `None`: all warps wait.
    #[inline]
    pub(super) fn next(&self, slots: u64, current: usize, at: Ps) -> Option<(Ps, usize)> {
        if self.at(current) <= at && slots >> (current % SLOTS) & 1 != 0 {
            return Some((at, current));
        }
        match self.scheduler {
            Scheduler::GreedyOldest => self.oldest(slots, current, at),
            Scheduler::GreedyRoundRobin => self.in_turn(slots, current, at),
        }
    }

    fn oldest(&self, slots: u64, current: usize, at: Ps) -> Option<(Ps, usize)> {
        let mut left = self.timed & slots;
        let mut first = None;
        while left != 0 {
            let slot = left.trailing_zeros() as usize;
            left &= left - 1;
            let rank = if slot == current { 0 } else { 1 + u64::from(self.age[slot % SLOTS]) };
            let key = (self.at(slot).max(at), rank, slot);
            if first.is_none_or(|first| key < first) {
                first = Some(key);
            }
        }
        first.map(|(ready, _, slot)| (ready, slot))
    }

    fn in_turn(&self, slots: u64, current: usize, at: Ps) -> Option<(Ps, usize)> {
        let mut left = (self.timed & slots).rotate_right((current % SLOTS) as u32);
        let mut first = None;
        while left != 0 {
            let slot = (current + left.trailing_zeros() as usize) % SLOTS;
            left &= left - 1;
            let ready = self.at(slot).max(at);
            if ready == at {
                return Some((at, slot));
            }
            if first.is_none_or(|(before, _)| ready < before) {
                first = Some((ready, slot));
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_HALF: u64 = 0xf0;

    /// Warps in slots 4 to 7, where later slots are older, with the given ready times.
    fn ready(scheduler: Scheduler, times: [u64; 4]) -> ReadyTimes {
        let mut ready = ReadyTimes::new(scheduler);
        (4..8).rev().for_each(|slot| ready.arrive(slot));
        (4..8).zip(times).for_each(|(slot, at)| ready.set(slot, Ps(at)));
        ready
    }

    #[test]
    fn the_warp_that_issued_last_goes_on() {
        for scheduler in [Scheduler::GreedyOldest, Scheduler::GreedyRoundRobin] {
            let ready = ready(scheduler, [10, 10, 10, 10]);
            assert_eq!(ready.next(SECOND_HALF, 5, Ps(20)), Some((Ps(20), 5)), "ready already");
            assert_eq!(ready.next(SECOND_HALF, 5, Ps(5)), Some((Ps(10), 5)), "as early as any");
        }
    }

    #[test]
    fn the_oldest_of_those_ready_first_issues() {
        let ready = ready(Scheduler::GreedyOldest, [10, 30, 10, 20]);
        assert_eq!(ready.next(SECOND_HALF, 5, Ps(5)), Some((Ps(10), 6)));
        assert_eq!(ready.next(SECOND_HALF, 5, Ps(25)), Some((Ps(25), 7)));
    }

    #[test]
    fn turns_go_round_the_slots_of_the_sub_core() {
        let ready = ready(Scheduler::GreedyRoundRobin, [10, 30, 30, 20]);
        assert_eq!(ready.next(SECOND_HALF, 6, Ps(5)), Some((Ps(10), 4)));
        assert_eq!(ready.next(SECOND_HALF, 6, Ps(25)), Some((Ps(25), 7)));
        assert_eq!(ready.next(SECOND_HALF, 5, Ps(15)), Some((Ps(15), 4)));
    }

    #[test]
    fn nobody_issues_while_all_wait() {
        let mut ready = ready(Scheduler::GreedyOldest, [10; 4]);
        (4..8).for_each(|slot| ready.set(slot, Ps::NEVER));
        assert_eq!(ready.next(SECOND_HALF, 4, Ps(20)), None);
        ready.set(3, Ps(10));
        assert_eq!(ready.next(SECOND_HALF, 4, Ps(20)), None, "a warp of another sub-core");
    }
}
