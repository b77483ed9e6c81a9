//! Which warp issues next: when each is ready, and in what order the machine's scheduler takes them.

use tombolo_machine::machine::Scheduler;
use tombolo_types::Ps;

/// Warp slots of an SM at most: one bit each.
pub(super) const SLOTS: usize = 64;

/// When the warps of an SM may issue. Slots stand for themselves modulo [`SLOTS`].
pub(super) struct Ready {
    scheduler: Scheduler,
    /// By warp slot; [`Ps::NEVER`] while it waits or where there is no warp.
    at: [Ps; SLOTS],
    /// Bit `i`: slot `i` has a time.
    timed: u64,
    /// By warp slot: order of arrival at the SM.
    age: [u32; SLOTS],
    next_age: u32,
}

impl Ready {
    /// No warp is there.
    pub(super) fn new(scheduler: Scheduler) -> Ready {
        Ready { scheduler, at: [Ps::NEVER; SLOTS], timed: 0, age: [0; SLOTS], next_age: 0 }
    }

    /// A warp has come into `slot`, younger than all others.
    pub(super) fn arrive(&mut self, slot: usize) {
        self.age[slot % SLOTS] = self.next_age;
        self.next_age = self.next_age.wrapping_add(1);
    }

    /// When the warp in `slot` may issue.
    #[inline]
    pub(super) fn at(&self, slot: usize) -> Ps {
        self.at[slot % SLOTS]
    }

    /// The warp in `slot` may issue from `at` on.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, at: Ps) {
        self.at[slot % SLOTS] = at;
        let timed = u64::from(at < Ps::NEVER);
        self.timed = self.timed & !(1 << (slot % SLOTS)) | timed << (slot % SLOTS);
    }

    /// Which of `slots` issues first from `at` on, and when: of those that are ready then the one that issued last,
    /// `current`; then, by the machine's scheduler, the one resident longest or the next in turn. `None`: all wait.
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

    /// Warps in slots 4 to 7, the later slots older, ready at these times.
    fn ready(scheduler: Scheduler, times: [u64; 4]) -> Ready {
        let mut ready = Ready::new(scheduler);
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
