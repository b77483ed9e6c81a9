//! A module's translation behind the TLBs of its SMs: the L2 TLB and the page walkers.

use crate::tlb::{Tlb, TlbConfig, TlbStats, Walkers, WalkersConfig, WalkersStats};
use tombolo_types::{Page, Ps};

/// Shape of a module's translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationConfig {
    /// The L2 TLB.
    pub tlb: TlbConfig,
    /// From a miss of an SM's TLB to the end of the L2 TLB's lookup.
    pub latency: Ps,
    /// The page walkers.
    pub walkers: WalkersConfig,
}

/// Counters of a module's translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationStats {
    /// Of the L2 TLB.
    pub tlb: TlbStats,
    /// Of the page walkers.
    pub walkers: WalkersStats,
}

/// A module's translation.
#[derive(Clone)]
pub struct Translation {
    latency: Ps,
    tlb: Tlb,
    walkers: Walkers,
}

impl Translation {
    /// An empty TLB and idle walkers.
    pub fn new(config: TranslationConfig) -> Translation {
        Translation { latency: config.latency, tlb: Tlb::new(config.tlb), walkers: Walkers::new(config.walkers) }
    }

    /// Translates a page that missed an SM's TLB at `now`: when the translation is there, and whether it took a walk.
    pub fn translate(&mut self, page: Page, now: Ps) -> (Ps, bool) {
        let looked_up = now + self.latency;
        match self.tlb.lookup(looked_up, page) {
            Some(ready) => (ready, false),
            None => {
                let ready = self.walkers.walk(looked_up);
                self.tlb.fill(page, ready);
                (ready, true)
            }
        }
    }

    /// The L2 TLB holds these pages, as if they had been walked for in this order before time zero.
    pub fn warm(&mut self, pages: &[Page]) {
        self.tlb.warm(pages);
    }

    /// Forgets a page.
    pub fn forget(&mut self, page: Page) {
        self.tlb.invalidate(page);
    }

    /// Counters so far.
    pub fn stats(&self) -> TranslationStats {
        TranslationStats { tlb: *self.tlb.stats(), walkers: *self.walkers.stats() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_walked_for_once_and_found_from_then_on() {
        let mut translation = Translation::new(TranslationConfig {
            tlb: TlbConfig { entries: 4, ways: 4 },
            latency: Ps(100),
            walkers: WalkersConfig { walkers: 1, latency: Ps(1000) },
        });
        assert_eq!(translation.translate(Page(1), Ps(0)), (Ps(1100), true));
        assert_eq!(translation.translate(Page(1), Ps(500)), (Ps(1100), false), "its walk is under way");
        assert_eq!(translation.translate(Page(1), Ps(2000)), (Ps(2100), false));
        let TranslationStats { tlb, walkers } = translation.stats();
        assert_eq!((tlb.misses, tlb.joins, tlb.hits, walkers.walks), (1, 1, 1, 1));
    }
}
