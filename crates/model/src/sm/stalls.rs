//! What the warps of an SM spend their time on. It observes, and decides nothing.
//!
//! A warp is told of as it leaves its sub-core, with what it waits for, and as it comes back: then the time between counts.
//! Of that, what lies behind its wake counts as [`Stall::Issue`]. What a load waits for its module says as it answers.

use super::Sm;
use super::ready::SLOTS;
use super::warp::Wait;
use crate::latency::share;
use crate::mshr::{ByEntry, EntryId};
use crate::stall::{Queue, Stall, StallTimes};
use crate::watch::Contents;
use tombolo_types::Ps;

/// Times of the warps of an SM.
pub(super) struct Stalls {
    /// So far.
    pub(super) times: StallTimes,
    /// By warp slot modulo [`SLOTS`]: from when on its time does not count yet.
    since: [Ps; SLOTS],
    /// By warp slot, where its warp `translates`: from when to when an access of its waits for a translation.
    of_warps: Vec<Translates>,
    /// By miss register: the same of its read. What is left of earlier reads is over.
    of_misses: ByEntry<Translates>,
    /// When the last of these is.
    latest: Ps,
}

/// What the wait for an access that is over counts as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    pub(super) stall: Stall,
    /// By [`Queue`]: what of the access was spent there, in picoseconds.
    pub(super) queues: [u32; Queue::ALL.len()],
    /// What the access took; 0 where it met no queue, or none is known of.
    pub(super) whole: u32,
}

impl From<Stall> for Waited {
    fn from(stall: Stall) -> Waited {
        Waited { stall, queues: [0; Queue::ALL.len()], whole: 0 }
    }
}

/// A wait for a translation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Translates {
    /// When the access would go on without it.
    from: Ps,
    /// When it is there.
    until: Ps,
}

impl Stalls {
    /// None, of so many warp slots.
    pub(super) fn new(slots: usize) -> Stalls {
        Stalls {
            times: StallTimes::default(),
            since: [Ps::ZERO; SLOTS],
            of_warps: vec![Translates::default(); slots],
            of_misses: ByEntry::default(),
            latest: Ps::ZERO,
        }
    }

    /// The time of the warp in `slot` counts from `at` on.
    #[inline]
    pub(super) fn count_from(&mut self, slot: usize, at: Ps) {
        self.since[slot % SLOTS] = at;
    }
}

impl Wait {
    /// What it counts as; of a load, until it is known who answers.
    pub(super) fn stall(self) -> Stall {
        match self {
            Wait::Nothing => Stall::Issue,
            Wait::Result(_) | Wait::AnyResult | Wait::AllResults | Wait::MissRegister | Wait::Line => Stall::OwnL2,
            Wait::StoreCredit => Stall::StoreCredit,
            Wait::Barrier => Stall::Barrier,
            Wait::Drain => Stall::Release,
            Wait::Sync | Wait::Flag => Stall::Acquire,
            Wait::Page => Stall::Page,
        }
    }
}

impl<D: Contents> Sm<D> {
    /// A warp comes back to its sub-core at `at`, and has been ready since `ready`.
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

    /// A warp ends at `end`, having issued its last instruction at `at`: it waits for its last hit, scratchpad access or
    /// arithmetic.
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

    /// Counts the time from `since` to `ready` of a warp whose accesses waited for a translation.
    #[cold]
    fn count_translation(&mut self, slot: usize, since: Ps, ready: Ps) {
        let stall = self.warps[slot].stall;
        let part = self.translation(slot, since, ready);
        self.stalls.times.add(Stall::Tlb, part);
        self.stalls.times.add(stall, ready - since - part);
        self.warps[slot].translates = self.stalls.of_warps[slot].until > ready;
    }

    /// What of the time from `since` to `ready` a warp waited for translations of accesses.
    fn translation(&self, slot: usize, since: Ps, ready: Ps) -> Ps {
        let (stall, Translates { from, until }) = (self.warps[slot].stall, self.stalls.of_warps[slot]);
        let awaits = matches!(stall, Stall::L1 | Stall::OwnL2 | Stall::Module | Stall::Gpu | Stall::Host);
        if awaits { until.min(ready).saturating_sub(from.max(since)) } else { Ps::ZERO }
    }

    /// A warp's wait for an access ends at `now`: of that, in the proportion of the access, what was spent in queues.
    #[inline]
    pub(super) fn count_queued(&mut self, slot: usize, waited: Waited, now: Ps) {
        if waited.whole > 0 {
            self.add_queued(slot, waited, now);
        }
    }

    #[inline(never)]
    fn add_queued(&mut self, slot: usize, Waited { stall, queues, whole }: Waited, now: Ps) {
        self.counts.turn_to(self.warps[slot].kernel, &self.stats, &self.stalls.times);
        let since = self.stalls.since[slot % SLOTS];
        let mut wait = now.saturating_sub(since);
        if self.warps[slot].translates {
            wait = wait.saturating_sub(self.translation(slot, since, now.max(since)));
        }
        self.stalls.times.add_queued(stall, share(queues, wait.0.min(whole.into()), whole));
    }

    /// A warp's access that would go on at `at` does so at `translated`, when its translation is there. `entry`: of a read.
    #[inline]
    pub(super) fn await_translation(&mut self, slot: usize, entry: Option<EntryId>, (at, translated): (Ps, Ps)) {
        if translated > at {
            let wait = Translates { from: at, until: translated };
            self.note_translation(slot, wait);
            if let Some(entry) = entry {
                self.stalls.of_misses.set(entry, wait);
                self.stalls.latest = translated.max(self.stalls.latest);
            }
        }
    }

    #[cold]
    fn note_translation(&mut self, slot: usize, wait: Translates) {
        let warp = &mut self.warps[slot];
        let known = &mut self.stalls.of_warps[slot];
        *known = if warp.translates { Translates { until: wait.until.max(known.until), ..*known } } else { wait };
        warp.translates = true;
    }

    /// The translation that a miss waits for is there at `ready`: those who have joined the miss wait as long.
    pub(super) fn prolong_translation(&mut self, entry: EntryId, ready: Ps) {
        let Sm { mshr, warps, stalls, .. } = self;
        for waiter in mshr.waiters(entry) {
            if warps[usize::from(waiter.warp)].translates {
                let until = &mut stalls.of_warps[usize::from(waiter.warp)].until;
                *until = ready.max(*until);
            }
        }
    }

    /// A warp joins a miss at `now`: it waits for its translation, too.
    #[inline]
    pub(super) fn share_translation(&mut self, slot: usize, entry: EntryId, now: Ps) {
        if self.stalls.latest > now {
            let wait = self.stalls.of_misses.get(entry);
            if wait.until > now {
                self.note_translation(slot, Translates { from: wait.from.max(now), ..wait });
            }
        }
    }
}
