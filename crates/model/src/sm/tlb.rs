//! Address translation: TLB levels and the page walkers behind them.
//!
//! Modelled: the pages that a level holds, walks in flight joined by later requests, a bounded number of concurrent
//! walks. Not modelled: memory reads by a walk (it takes a fixed time), address spaces, permissions.

use crate::l2::cache::{BulkClass, Cache, CacheConfig, IndexFunction, Replacement, Ways};
use tombolo_types::{Line, Page, Ps};

/// Shape of a TLB level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlbConfig {
    /// Number of pages held: a multiple of `ways`.
    pub entries: u32,
    /// Ways per set, 1 to `MAX_WAYS`; equal to `entries` for a fully associative level. For a
    /// larger fully associative level, 32 ways are a close approximation, because sets are hashed.
    pub ways: u32,
}

/// Counters for a TLB level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlbStats {
    /// Translations found.
    pub hits: u64,
    /// Translations found while their walk was in flight.
    pub joins: u64,
    /// Translations not found.
    pub misses: u64,
}

/// A TLB level with LRU replacement.
#[derive(Clone)]
pub struct Tlb {
    /// Time when a page's translation is available, by page.
    pages: Cache<Ps>,
    /// Page requested or filled last, the newest in the set: a further request for this page changes nothing.
    latest: Option<(Page, Ps)>,
    stats: TlbStats,
}

impl Tlb {
    /// An empty level. Panics if [`TlbConfig`] does not allow the shape.
    pub fn new(config: TlbConfig) -> Tlb {
        let TlbConfig { entries, ways } = config;
        assert!(ways > 0 && entries > 0 && entries % ways == 0, "{entries} entries in {ways} ways");
        let shape = CacheConfig {
            sets: entries / ways,
            ways,
            replacement: Replacement::LeastRecentlyUsed,
            index: IndexFunction::Hashed,
        };
        Tlb { pages: Cache::new(shape), latest: None, stats: TlbStats::default() }
    }

    /// Returns the time when the translation for `page` is available: `now`, or later if its walk is in flight. On
    /// `None`, look up the next level and call [`Tlb::fill`].
    #[inline]
    pub fn lookup(&mut self, now: Ps, page: Page) -> Option<Ps> {
        let ready = match self.latest {
            Some((latest, ready)) if latest == page => ready,
            _ => self.search(page)?,
        };
        if ready > now {
            self.stats.joins += 1;
            return Some(ready);
        }
        self.stats.hits += 1;
        Some(now)
    }

    /// Time when the translation for a page other than the latest is available.
    #[inline(never)]
    fn search(&mut self, page: Page) -> Option<Ps> {
        let Some(&mut ready) = self.pages.lookup(key(page)) else {
            self.stats.misses += 1;
            return None;
        };
        self.latest = Some((page, ready));
        Some(ready)
    }

    /// Inserts `page`, whose translation is available at `ready`.
    #[inline]
    pub fn fill(&mut self, page: Page, ready: Ps) {
        self.pages.store(key(page), BulkClass::default(), ready, Ways::ALL);
        self.latest = Some((page, ready));
    }

    /// Sets the time when the translation for `page` is available, if the level still holds the page.
    pub(crate) fn set_ready(&mut self, page: Page, ready: Ps) {
        if let Some(known) = self.pages.peek_mut(key(page)) {
            *known = ready;
        }
        if let Some((latest, known)) = &mut self.latest
            && *latest == page
        {
            *known = ready;
        }
    }

    /// Inserts these pages, as if walked for in this order before time zero.
    pub(crate) fn warm(&mut self, pages: &[Page]) {
        pages.iter().for_each(|page| self.fill(*page, Ps::ZERO));
    }

    /// Drops `page`; returns true if the page was present.
    pub(crate) fn invalidate(&mut self, page: Page) -> bool {
        self.latest = None;
        self.pages.remove(key(page)).is_some()
    }

    /// Drops every page.
    #[cfg(test)]
    pub(crate) fn invalidate_all(&mut self) {
        self.latest = None;
        self.pages.invalidate_class(BulkClass::default());
    }

    /// Counters so far.
    pub(crate) fn stats(&self) -> &TlbStats {
        &self.stats
    }
}

/// Key for a page in the tag array, which is indexed by plain numbers.
fn key(page: Page) -> Line {
    Line(page.0)
}

/// Shape of the page walkers in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkersConfig {
    /// Number of concurrent walks, which must be above zero.
    pub(crate) walkers: u32,
    /// Duration of a walk.
    pub(crate) latency: Ps,
}

/// Counters for a module's page walkers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WalkersStats {
    /// Walks.
    pub(crate) walks: u64,
    /// Total time during which walks waited for a free walker.
    pub(crate) queueing: Ps,
}

/// Page walkers in a module.
#[derive(Clone, Debug)]
pub(crate) struct Walkers {
    latency: Ps,
    free_at: Vec<Ps>,
    stats: WalkersStats,
}

impl Walkers {
    /// Idle walkers. Panics if there are none.
    pub(crate) fn new(config: WalkersConfig) -> Walkers {
        assert!(config.walkers > 0, "a module needs at least one walker");
        let free_at = vec![Ps::ZERO; config.walkers as usize];
        Walkers { latency: config.latency, free_at, stats: WalkersStats::default() }
    }

    /// Begins a walk at `now`, or when a walker becomes free; returns the walk's end.
    #[inline]
    pub(crate) fn walk(&mut self, now: Ps) -> Ps {
        let walker = self.free_at.iter_mut().min().expect("there is at least one walker");
        let start = now.max(*walker);
        self.stats.walks += 1;
        self.stats.queueing += start - now;
        *walker = start + self.latency;
        *walker
    }

    /// Counters so far.
    #[cfg(test)]
    pub(crate) fn stats(&self) -> &WalkersStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_filled_is_found() {
        let mut tlb = Tlb::new(TlbConfig { entries: 32, ways: 32 });
        assert_eq!(tlb.lookup(Ps(0), Page(7)), None);
        tlb.fill(Page(7), Ps(0));
        assert_eq!(tlb.lookup(Ps(5), Page(7)), Some(Ps(5)));
        assert_eq!(*tlb.stats(), TlbStats { hits: 1, joins: 0, misses: 1 });
    }

    #[test]
    fn a_request_joins_the_walk_under_way() {
        let mut tlb = Tlb::new(TlbConfig { entries: 32, ways: 32 });
        tlb.fill(Page(7), Ps(100));
        assert_eq!(tlb.lookup(Ps(5), Page(7)), Some(Ps(100)));
        assert_eq!(tlb.stats().joins, 1);
    }

    #[test]
    fn a_fully_associative_level_holds_any_pages_up_to_its_size() {
        let mut tlb = Tlb::new(TlbConfig { entries: 32, ways: 32 });
        (0..32).for_each(|page| tlb.fill(Page(page * 4096), Ps(0)));
        assert!((0..32).all(|page| tlb.lookup(Ps(0), Page(page * 4096)).is_some()));
        tlb.fill(Page(1), Ps(0));
        assert_eq!(tlb.lookup(Ps(0), Page(0)), None, "the least recently used page was evicted");
    }

    #[test]
    fn a_warm_level_holds_the_last_pages_that_it_has_room_for() {
        let mut tlb = Tlb::new(TlbConfig { entries: 4, ways: 4 });
        tlb.warm(&(0..6).map(Page).collect::<Vec<_>>());
        let held: Vec<bool> = (0..6).map(|page| tlb.lookup(Ps(0), Page(page)).is_some()).collect();
        assert_eq!(held, [false, false, true, true, true, true]);
        assert_eq!(*tlb.stats(), TlbStats { hits: 4, joins: 0, misses: 2 }, "warming is not counted");
    }

    #[test]
    fn a_page_asked_for_again_and_again_is_the_most_recent_once() {
        let mut tlb = Tlb::new(TlbConfig { entries: 2, ways: 2 });
        tlb.fill(Page(0), Ps(0));
        tlb.fill(Page(1), Ps(0));
        for page in [0, 0, 1, 1, 0] {
            assert_eq!(tlb.lookup(Ps(0), Page(page)), Some(Ps(0)));
        }
        tlb.fill(Page(2), Ps(0));
        assert_eq!((tlb.lookup(Ps(0), Page(0)), tlb.lookup(Ps(0), Page(1))), (Some(Ps(0)), None));
    }

    #[test]
    fn an_invalidation_forgets_one_page_or_all() {
        let mut tlb = Tlb::new(TlbConfig { entries: 64, ways: 16 });
        (0..4).for_each(|page| tlb.fill(Page(page), Ps(0)));
        assert!(tlb.invalidate(Page(2)));
        assert_eq!(tlb.lookup(Ps(0), Page(2)), None);
        assert!(tlb.lookup(Ps(0), Page(3)).is_some());
        tlb.invalidate_all();
        assert_eq!(tlb.lookup(Ps(0), Page(3)), None);
    }

    #[test]
    fn no_more_walks_run_than_there_are_walkers() {
        let mut walkers = Walkers::new(WalkersConfig { walkers: 2, latency: Ps(100) });
        let done: Vec<Ps> = (0..5).map(|_| walkers.walk(Ps(10))).collect();
        assert_eq!(done, [Ps(110), Ps(110), Ps(210), Ps(210), Ps(310)]);
        assert_eq!(walkers.stats().queueing, Ps(100 + 100 + 200));
    }
}
