//! A module's address translation behind the SMs' TLBs: banks of the L2 TLB, each with a share of the page walkers.
//! Each page belongs to a single bank.

use crate::sm::tlb::{Tlb, TlbConfig, Walkers, WalkersConfig};
#[cfg(test)]
use crate::sm::tlb::{TlbStats, WalkersStats};
use std::collections::BTreeSet;
use tombolo_types::{Page, Ps};

/// Shape of a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TranslationConfig {
    /// The bank's part of the L2 TLB.
    pub(crate) tlb: TlbConfig,
    /// Latency from an SM's TLB miss to the end of the L2 TLB lookup.
    pub(crate) latency: Ps,
    /// The bank's page walkers.
    pub(crate) walkers: WalkersConfig,
}

/// Counters for a bank.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TranslationStats {
    /// Counters for the bank's part of the L2 TLB.
    pub(crate) tlb: TlbStats,
    /// Counters for the bank's page walkers.
    pub(crate) walkers: WalkersStats,
}

/// Bank for a page, among `banks` banks.
#[inline]
pub(crate) fn bank_of(page: Page, banks: u16) -> u16 {
    // Multiples of the golden ratio spread strides of any length.
    let spread = page.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((spread * u64::from(banks)) >> 32) as u16
}

/// A translation bank.
#[derive(Clone)]
pub(crate) struct Translation {
    latency: Ps,
    tlb: Tlb,
    walkers: Walkers,
    /// Pages accessed since tracking began, as found by walks (GPS, section 5.2). `None` if accesses are not tracked.
    accessed: Option<BTreeSet<Page>>,
}

impl Translation {
    /// An empty TLB with idle walkers. `tracks`: set if accessed pages are recorded.
    pub(crate) fn new(config: TranslationConfig, tracks: bool) -> Translation {
        Translation {
            latency: config.latency,
            tlb: Tlb::new(config.tlb),
            walkers: Walkers::new(config.walkers),
            accessed: tracks.then(BTreeSet::new),
        }
    }

    /// Translates a page that missed in an SM's TLB at `now`. Returns the time when the translation is available, and
    /// true if a walk was necessary.
    pub(crate) fn translate(&mut self, page: Page, now: Ps) -> (Ps, bool) {
        let looked_up = now + self.latency;
        match self.tlb.lookup(looked_up, page) {
            Some(ready) => (ready, false),
            None => {
                let ready = self.walkers.walk(looked_up);
                self.tlb.fill(page, ready);
                if let Some(accessed) = &mut self.accessed {
                    accessed.insert(page);
                }
                (ready, true)
            }
        }
    }

    /// Returns the accessed pages; afterwards, accesses are no longer tracked.
    pub(crate) fn take_accessed(&mut self) -> BTreeSet<Page> {
        self.accessed.take().unwrap_or_default()
    }

    /// Inserts these pages, as if walked for in this order before time zero.
    pub(crate) fn warm(&mut self, pages: &[Page]) {
        self.tlb.warm(pages);
    }

    /// Drops a page.
    pub(crate) fn forget(&mut self, page: Page) {
        self.tlb.invalidate(page);
    }

    /// Counters so far.
    #[cfg(test)]
    pub(crate) fn stats(&self) -> TranslationStats {
        TranslationStats { tlb: *self.tlb.stats(), walkers: *self.walkers.stats() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_any_stride_go_to_all_banks_evenly() {
        for stride in [1, 2, 64, 1000, 4096] {
            let mut pages = [0; 16];
            (0..1600).for_each(|page| pages[usize::from(bank_of(Page(page * stride), 16))] += 1);
            assert!(pages.iter().all(|pages| (80..=120).contains(pages)), "{stride}: {pages:?}");
        }
        assert_eq!(bank_of(Page(u64::MAX), 1), 0);
    }

    #[test]
    fn a_page_is_walked_for_once_and_found_from_then_on() {
        let mut translation = Translation::new(
            TranslationConfig {
                tlb: TlbConfig { entries: 4, ways: 4 },
                latency: Ps(100),
                walkers: WalkersConfig { walkers: 1, latency: Ps(1000) },
            },
            true,
        );
        assert_eq!(translation.translate(Page(1), Ps(0)), (Ps(1100), true));
        assert_eq!(translation.translate(Page(1), Ps(500)), (Ps(1100), false), "its walk is in flight");
        assert_eq!(translation.translate(Page(1), Ps(2000)), (Ps(2100), false));
        assert_eq!(translation.take_accessed(), BTreeSet::from([Page(1)]));
        let TranslationStats { tlb, walkers } = translation.stats();
        assert_eq!((tlb.misses, tlb.joins, tlb.hits, walkers.walks), (1, 1, 1, 1));
    }
}
