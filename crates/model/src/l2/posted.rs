//! Posted stores of an SM: store credits, and the waiters for their return.

use crate::front_end::page_run::PageRun;
use crate::l2::credits::{Credits, Generation};
use crate::sm::kernel_slot::KernelSlot;
use std::collections::VecDeque;
use tombolo_types::Scope;

/// Shape of the posted stores in an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PostedConfig {
    /// Maximum number of stores and atomics in flight.
    pub(crate) stores: u32,
}

/// A waiter for the acknowledgment of all stores posted by an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drainer {
    /// A releasing warp.
    Warp {
        /// Warp slot.
        warp: u8,
        /// Scope of the release.
        scope: Scope,
    },
    /// The controller, at the end of a kernel's CTA. The wait also covers earlier stores from other kernels on the SM.
    Cta(KernelSlot),
    /// The controller, when the module must stop using pages.
    Pages(PageRun),
}

/// Posted stores of one SM.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    credits: Credits,
    /// Waiters for the stores posted so far, oldest first.
    draining: VecDeque<Drainer>,
}

impl Posted {
    /// State with nothing in flight.
    pub(crate) fn new(config: PostedConfig) -> Posted {
        Posted { credits: Credits::new(config.stores), draining: VecDeque::new() }
    }

    /// Takes a credit, if any is left.
    #[inline]
    pub(crate) fn try_take(&mut self) -> Option<Generation> {
        self.credits.try_take()
    }

    /// True if a credit is left.
    pub(crate) fn has_room(&self) -> bool {
        self.credits.available() > 0
    }

    /// Returns a credit.
    #[inline]
    pub(crate) fn give_back(&mut self, credit: Generation) {
        self.credits.give_back(credit);
    }

    /// Starts a wait by `drainer` for all stores posted so far. Call [`Posted::pop_drained`] afterwards.
    pub(crate) fn drain(&mut self, drainer: Drainer) {
        self.credits.drain();
        self.draining.push_back(drainer);
    }

    /// Returns each waiter exactly once, when its wait is over.
    #[inline]
    pub(crate) fn pop_drained(&mut self) -> Option<Drainer> {
        self.credits.pop_drained()?;
        Some(self.draining.pop_front().expect("somebody waits for each drain of an SM's stores"))
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
