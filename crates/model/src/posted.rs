//! What an SM has posted: its store credits, and who waits until they have come back.

use crate::credits::{Credits, CreditsStats, Generation};
use std::collections::VecDeque;
use tombolo_types::{Page, Ps, Scope, SmId};

/// Shape of an SM's posted stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostedConfig {
    /// Stores and atomics under way at a time.
    pub stores: u32,
}

/// Who waits until everything an SM has posted has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drainer {
    /// A warp that releases.
    Warp {
        /// Which.
        warp: u8,
        /// Scope of its release.
        scope: Scope,
    },
    /// The controller, at the end of a kernel.
    Kernel,
    /// The controller, where the module is to use a page no more.
    Page(Page),
}

/// A store credit on its way back to an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreReturn {
    /// Whose it is.
    pub sm: SmId,
    /// The credit.
    pub credit: Generation,
    /// When it is back.
    pub at: Ps,
}

/// The posted stores of one SM.
#[derive(Clone, Debug)]
pub struct Posted {
    credits: Credits,
    /// Where a warp waits for a credit: when the SM is told of the first to come back, [`Ps::NEVER`] where that is not
    /// known.
    due: Option<Ps>,
    /// Who waits for what has been posted so far, oldest first.
    draining: VecDeque<Drainer>,
}

impl Posted {
    /// Nothing is under way.
    pub fn new(config: PostedConfig) -> Posted {
        Posted { credits: Credits::new(config.stores), due: None, draining: VecDeque::new() }
    }

    /// Takes a credit, where one is left.
    #[inline]
    pub fn try_take(&mut self, now: Ps) -> Option<Generation> {
        self.credits.try_take(now)
    }

    /// Whether a credit is left.
    pub fn has_room(&mut self, now: Ps) -> bool {
        self.credits.available(now) > 0
    }

    /// A warp waits for a credit: when to tell the SM of the next to come back, unless it is told already or nobody knows
    /// yet.
    pub fn await_credit(&mut self, now: Ps) -> Option<Ps> {
        if self.due.is_some() {
            return None;
        }
        let at = self.credits.next_return().map(|at| at.max(now));
        self.due = Some(at.unwrap_or(Ps::NEVER));
        at
    }

    /// The SM is told at `now` of a credit that is back. False where an earlier one has been told of.
    pub fn told(&mut self, now: Ps) -> bool {
        let expected = self.due == Some(now);
        if expected {
            self.due = None;
        }
        expected
    }

    /// A credit will be back at `at`; returns whether the SM is to be told then.
    pub fn return_at(&mut self, credit: Generation, at: Ps) -> bool {
        self.credits.return_at(credit, at);
        let first = self.due.is_some_and(|due| at < due);
        if first {
            self.due = Some(at);
        }
        first
    }

    /// `drainer` waits for all that has been posted. Ask [`Posted::pop_drained`] afterwards.
    pub fn drain(&mut self, drainer: Drainer) {
        self.credits.drain();
        self.draining.push_back(drainer);
    }

    /// Whose wait is over, once each, and when: after `now`.
    #[inline]
    pub fn pop_drained(&mut self, now: Ps) -> Option<(Ps, Drainer)> {
        let drained = self.credits.pop_drained()?;
        let drainer = self.draining.pop_front().expect("somebody waits for each drain of an SM's stores");
        Some((drained.at.max(now) + Ps(1), drainer))
    }

    /// Counters of the credits.
    pub fn stats(&self) -> &CreditsStats {
        self.credits.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warp_that_waits_is_told_of_the_first_credit_to_come_back() {
        let mut posted = Posted::new(PostedConfig { stores: 2 });
        let credits = [(); 2].map(|()| posted.try_take(Ps(0)).expect("two are left"));
        assert_eq!((posted.try_take(Ps(1)), posted.await_credit(Ps(1))), (None, None), "nobody knows when");
        assert!(posted.return_at(credits[0], Ps(30)));
        assert!(posted.return_at(credits[1], Ps(20)), "it is earlier");
        assert!(posted.told(Ps(20)) && posted.has_room(Ps(20)));
        assert!(!posted.told(Ps(30)), "nobody waits any more");
    }

    #[test]
    fn a_drain_is_over_when_all_that_was_posted_before_it_is_back() {
        let mut posted = Posted::new(PostedConfig { stores: 2 });
        let credit = posted.try_take(Ps(0)).expect("two are left");
        posted.drain(Drainer::Kernel);
        assert_eq!(posted.pop_drained(Ps(5)), None);
        posted.return_at(credit, Ps(10));
        assert_eq!(posted.pop_drained(Ps(5)), Some((Ps(11), Drainer::Kernel)));
    }
}
