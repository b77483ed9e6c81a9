//! Stall accounting for an SM's warps. Purely observational: it influences no simulated time.
//!
//! Accounting starts when a warp leaves its sub-core, with the reason for its wait, and ends when the warp returns.
//! The elapsed time is then added to the reason's category; time after the wake-up counts as [`Stall::Issue`]. A
//! load's category is known when its reply names the responding module.

use super::Sm;
use super::ready::SLOTS;
use super::warp::WaitReason;
use crate::l2::mshr::{EntryId, PerEntry};
use crate::observe::latency::share;
use crate::observe::stall::{Queue, Stall, StallTimes};
use crate::observe::value_probe::Contents;
use tombolo_types::Ps;

/// Accumulated stall times and their open intervals.
pub(super) struct Stalls {
    /// Stall times accumulated so far.
    pub(super) times: StallTimes,
    /// Start of the uncounted interval, by warp slot modulo [`SLOTS`].
    since: [Ps; SLOTS],
    /// Translation wait by warp slot, valid while the warp's `translates` flag is set.
    of_warps: Vec<TranslationWait>,
    /// Translation wait by MSHR, for its read. Entries left by earlier reads lie in the past.
    of_misses: PerEntry<TranslationWait>,
    /// Latest end time among the translation waits in `of_misses`.
    latest: Ps,
}

/// Stall category for a finished wait on an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct StallCause {
    pub(super) stall: Stall,
    /// Time that the access spent in each [`Queue`], in picoseconds.
    pub(super) queues: [u32; Queue::ALL.len()],
    /// Total access latency; 0 if the access met no queue or its latency is unknown.
    pub(super) whole: u32,
}

impl From<Stall> for StallCause {
    fn from(stall: Stall) -> StallCause {
        StallCause { stall, queues: [0; Queue::ALL.len()], whole: 0 }
    }
}

/// Time interval spent waiting for a translation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TranslationWait {
    /// Time at which the access would have continued without the wait.
    from: Ps,
    /// Completion time of the translation.
    until: Ps,
}

impl Stalls {
    /// Creates empty statistics for `slots` warp slots.
    pub(super) fn new(slots: usize) -> Stalls {
        Stalls {
            times: StallTimes::default(),
            since: [Ps::ZERO; SLOTS],
            of_warps: vec![TranslationWait::default(); slots],
            of_misses: PerEntry::default(),
            latest: Ps::ZERO,
        }
    }

    /// Starts the uncounted interval for the warp in `slot` at `at`.
    #[inline]
    pub(super) fn count_from(&mut self, slot: usize, at: Ps) {
        self.since[slot % SLOTS] = at;
    }
}

impl WaitReason {
    /// Stall category for a wait. A load counts as [`Stall::OwnL2`] while its responder is unknown.
    pub(super) fn stall(self) -> Stall {
        match self {
            WaitReason::Nothing => Stall::Issue,
            WaitReason::Result(_)
            | WaitReason::AnyResult
            | WaitReason::AllResults
            | WaitReason::MissRegister
            | WaitReason::Line => Stall::OwnL2,
            WaitReason::StoreCredit => Stall::StoreCredit,
            WaitReason::Barrier => Stall::Barrier,
            WaitReason::Drain => Stall::Release,
            WaitReason::Sync | WaitReason::Flag => Stall::Acquire,
            WaitReason::Page => Stall::Page,
        }
    }
}

impl<D: Contents> Sm<D> {
    /// Accounts for a warp that returns to its sub-core at `at` after becoming ready at `ready`.
    #[inline]
    pub(super) fn count_stall(&mut self, slot: usize, ready: Ps, at: Ps) {
        let since = self.stalls.since[slot % SLOTS];
        let ready = ready.max(since).min(at);
        if self.warps[slot].translates {
            self.count_translation(slot, since, ready);
        } else {
            self.stalls.times.add(self.warps[slot].stall, ready - since);
        }
        self.stalls.times.add(Stall::Issue, at - ready);
    }

    /// Accounts for a warp with end time `end` and last issue at `at`. The wait is for its last hit, scratchpad access
    /// or arithmetic.
    pub(super) fn count_end(&mut self, slot: usize, at: Ps, end: Ps) {
        let warp = &self.warps[slot];
        self.warps[slot].stall = match end {
            _ if end <= warp.shared_at => Stall::Scratchpad,
            _ if end <= warp.hit_at => Stall::L1,
            _ => Stall::Arithmetic,
        };
        self.stalls.count_from(slot, at);
        self.count_stall(slot, end, end);
    }

    /// Splits the interval from `since` to `ready` between translation and the warp's stall category.
    #[cold]
    fn count_translation(&mut self, slot: usize, since: Ps, ready: Ps) {
        let stall = self.warps[slot].stall;
        let part = self.translation(slot, since, ready);
        self.stalls.times.add(Stall::Tlb, part);
        self.stalls.times.add(stall, ready - since - part);
        self.warps[slot].translates = self.stalls.of_warps[slot].until > ready;
    }

    /// Time between `since` and `ready` spent by a warp on translations for its accesses.
    fn translation(&self, slot: usize, since: Ps, ready: Ps) -> Ps {
        let (stall, TranslationWait { from, until }) = (self.warps[slot].stall, self.stalls.of_warps[slot]);
        let awaits = matches!(stall, Stall::L1 | Stall::OwnL2 | Stall::Module | Stall::Gpu | Stall::Host);
        if awaits { until.min(ready).saturating_sub(from.max(since)) } else { Ps::ZERO }
    }

    /// Accounts for queueing when a warp's wait for an access ends at `now`: the wait is split in proportion to the
    /// access's time in queues.
    #[inline]
    pub(super) fn count_queued(&mut self, slot: usize, waited: StallCause, now: Ps) {
        if waited.whole > 0 {
            self.add_queued(slot, waited, now);
        }
    }

    #[inline(never)]
    fn add_queued(&mut self, slot: usize, StallCause { stall, queues, whole }: StallCause, now: Ps) {
        self.counts.turn_to(self.warps[slot].kernel, &self.stats, &self.stalls.times);
        let since = self.stalls.since[slot % SLOTS];
        let mut wait = now.saturating_sub(since);
        if self.warps[slot].translates {
            wait = wait.saturating_sub(self.translation(slot, since, now.max(since)));
        }
        self.stalls.times.add_queued(stall, share(queues, wait.0.min(whole.into()), whole));
    }

    /// Records a translation wait: a warp's access that could continue at `at` continues at `translated`. `entry`: the
    /// MSHR, for a read.
    #[inline]
    pub(super) fn await_translation(&mut self, slot: usize, entry: Option<EntryId>, (at, translated): (Ps, Ps)) {
        if translated > at {
            let wait = TranslationWait { from: at, until: translated };
            self.note_translation(slot, wait);
            if let Some(entry) = entry {
                self.stalls.of_misses.set(entry, wait);
                self.stalls.latest = translated.max(self.stalls.latest);
            }
        }
    }

    #[cold]
    fn note_translation(&mut self, slot: usize, wait: TranslationWait) {
        let warp = &mut self.warps[slot];
        let known = &mut self.stalls.of_warps[slot];
        *known = if warp.translates { TranslationWait { until: wait.until.max(known.until), ..*known } } else { wait };
        warp.translates = true;
    }

    /// Extends the translation waits of all warps merged into a miss to `ready`, when its translation completes.
    pub(super) fn prolong_translation(&mut self, entry: EntryId, ready: Ps) {
        let Sm { mshr, warps, stalls, .. } = self;
        for waiter in mshr.waiters(entry) {
            if warps[usize::from(waiter.warp)].translates {
                let until = &mut stalls.of_warps[usize::from(waiter.warp)].until;
                *until = ready.max(*until);
            }
        }
    }

    /// Records the shared translation wait for a warp joining a miss at `now`.
    #[inline]
    pub(super) fn share_translation(&mut self, slot: usize, entry: EntryId, now: Ps) {
        if self.stalls.latest > now {
            let wait = self.stalls.of_misses.get(entry);
            if wait.until > now {
                self.note_translation(slot, TranslationWait { from: wait.from.max(now), ..wait });
            }
        }
    }
}
