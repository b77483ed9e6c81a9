//! What an SM has posted: its store credits, and who waits until they have come back.

use crate::credits::{Credits, CreditsStats, Generation};
use crate::kernel_slot::KernelSlot;
use crate::page_run::PageRun;
use std::collections::VecDeque;
use tombolo_types::Scope;

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
    /// The controller, at the end of a CTA of a kernel. It waits for what others have posted on the SM so far, too.
    Cta(KernelSlot),
    /// The controller, where the module is to use pages no more.
    Pages(PageRun),
}

/// The posted stores of one SM.
#[derive(Clone, Debug)]
pub struct Posted {
    credits: Credits,
    /// Who waits for what has been posted so far, oldest first.
    draining: VecDeque<Drainer>,
}

impl Posted {
    /// Nothing is under way.
    pub fn new(config: PostedConfig) -> Posted {
        Posted { credits: Credits::new(config.stores), draining: VecDeque::new() }
    }

    /// Takes a credit, where one is left.
    #[inline]
    pub fn try_take(&mut self) -> Option<Generation> {
        self.credits.try_take()
    }

    /// Whether a credit is left.
    pub fn has_room(&self) -> bool {
        self.credits.available() > 0
    }

    /// A credit is back.
    #[inline]
    pub fn give_back(&mut self, credit: Generation) {
        self.credits.give_back(credit);
    }

    /// `drainer` waits for all that has been posted. Ask [`Posted::pop_drained`] afterwards.
    pub fn drain(&mut self, drainer: Drainer) {
        self.credits.drain();
        self.draining.push_back(drainer);
    }

    /// Whose wait is over, once each.
    #[inline]
    pub fn pop_drained(&mut self) -> Option<Drainer> {
        self.credits.pop_drained()?;
        Some(self.draining.pop_front().expect("somebody waits for each drain of an SM's stores"))
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
    fn a_credit_that_is_back_is_taken_again() {
        let mut posted = Posted::new(PostedConfig { stores: 1 });
        let credit = posted.try_take().expect("one is left");
        assert_eq!((posted.try_take(), posted.has_room()), (None, false));
        posted.give_back(credit);
        assert!(posted.has_room() && posted.try_take().is_some());
    }

    #[test]
    fn a_drain_is_over_when_all_that_was_posted_before_it_is_back() {
        let mut posted = Posted::new(PostedConfig { stores: 2 });
        let credit = posted.try_take().expect("two are left");
        posted.drain(Drainer::Cta(KernelSlot(1)));
        assert_eq!(posted.pop_drained(), None);
        posted.give_back(credit);
        assert_eq!(posted.pop_drained(), Some(Drainer::Cta(KernelSlot(1))));
    }
}
