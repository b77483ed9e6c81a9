//! Translation: TLB levels and the walkers behind them.
//!
//! Modelled: which pages a level holds, walks in flight that later requests join, a bounded number of walks at
//! a time. Not modelled: what a walk reads (it takes a stated time), address spaces, permissions.

use crate::cache::{BulkClass, Cache, CacheConfig, Index, Replacement, Ways};
use tombolo_types::{Line, Page, Ps};

/// Shape of a TLB level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlbConfig {
    /// Pages it holds: a multiple of `ways`.
    pub entries: u32,
    /// Ways of a set, 1 to [`MAX_WAYS`](crate::cache::MAX_WAYS); as many as entries for a fully associative
    /// level. A larger fully associative one is close to 32 ways, sets being hashed.
    pub ways: u32,
}

/// Counters of a TLB level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlbStats {
    /// Translations found.
    pub hits: u64,
    /// Translations found on their way: their walk was not over.
    pub joins: u64,
    /// Translations not found.
    pub misses: u64,
}

/// One TLB level: least recently used goes.
#[derive(Clone)]
pub struct Tlb {
    /// By page: when its translation is there.
    pages: Cache<Ps>,
    /// The page asked for or filled last, the newest of its set: asking again changes nothing.
    latest: Option<(Page, Ps)>,
    stats: TlbStats,
}

impl Tlb {
    /// An empty level. Panics on a shape outside what [`TlbConfig`] allows.
    pub fn new(config: TlbConfig) -> Tlb {
        let TlbConfig { entries, ways } = config;
        assert!(ways > 0 && entries > 0 && entries % ways == 0, "{entries} entries in {ways} ways");
        let shape = CacheConfig {
            sets: entries / ways,
            ways,
            replacement: Replacement::LeastRecentlyUsed,
            index: Index::Hashed,
        };
        Tlb { pages: Cache::new(shape), latest: None, stats: TlbStats::default() }
    }

    /// When the translation of `page` is there: `now`, or later where its walk is under way. `None`: ask the
    /// next level and [`Tlb::fill`].
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

    /// When the translation of a page other than the latest is there.
    #[inline(never)]
    fn search(&mut self, page: Page) -> Option<Ps> {
        let Some(&mut ready) = self.pages.lookup(key(page)) else {
            self.stats.misses += 1;
            return None;
        };
        self.latest = Some((page, ready));
        Some(ready)
    }

    /// Holds `page` from now on; its translation is there at `ready`.
    #[inline]
    pub fn fill(&mut self, page: Page, ready: Ps) {
        self.pages.store(key(page), BulkClass::default(), ready, Ways::ALL);
        self.latest = Some((page, ready));
    }

    /// The translation of `page` is there at `ready`, where it is still held.
    pub fn set_ready(&mut self, page: Page, ready: Ps) {
        if let Some(known) = self.pages.peek_mut(key(page)) {
            *known = ready;
        }
        if let Some((latest, known)) = &mut self.latest
            && *latest == page
        {
            *known = ready;
        }
    }

    /// Holds these pages, as if they had been walked for in this order before time zero.
    pub fn warm(&mut self, pages: &[Page]) {
        pages.iter().for_each(|page| self.fill(*page, Ps::ZERO));
    }

    /// Forgets `page`; returns whether it was there.
    pub fn invalidate(&mut self, page: Page) -> bool {
        self.latest = None;
        self.pages.remove(key(page)).is_some()
    }

    /// Forgets every page.
    pub fn invalidate_all(&mut self) {
        self.latest = None;
        self.pages.invalidate_class(BulkClass::default());
    }

    /// Counters so far.
    pub fn stats(&self) -> &TlbStats {
        &self.stats
    }
}

/// A tag array holds numbers, whatever they number.
fn key(page: Page) -> Line {
    Line(page.0)
}

/// Shape of a module's page walkers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkersConfig {
    /// Walks at a time, at least 1.
    pub walkers: u32,
    /// How long a walk takes.
    pub latency: Ps,
}

/// Counters of a module's page walkers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkersStats {
    /// Walks.
    pub walks: u64,
    /// Time walks waited for a walker, summed.
    pub queueing: Ps,
}

/// The page walkers of a module.
#[derive(Clone, Debug)]
pub struct Walkers {
    latency: Ps,
    free_at: Vec<Ps>,
    stats: WalkersStats,
}

impl Walkers {
    /// Idle walkers. Panics where there is none.
    pub fn new(config: WalkersConfig) -> Walkers {
        assert!(config.walkers > 0, "a module needs at least one walker");
        let free_at = vec![Ps::ZERO; config.walkers as usize];
        Walkers { latency: config.latency, free_at, stats: WalkersStats::default() }
    }

    /// Begins a walk at `now`, or when a walker is free; returns when it is done.
    #[inline]
    pub fn walk(&mut self, now: Ps) -> Ps {
        let walker = self.free_at.iter_mut().min().expect("there is at least one walker");
        let start = now.max(*walker);
        self.stats.walks += 1;
        self.stats.queueing += start - now;
        *walker = start + self.latency;
        *walker
    }

    /// Counters so far.
    pub fn stats(&self) -> &WalkersStats {
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
        assert_eq!(tlb.lookup(Ps(0), Page(0)), None, "the least recently used went");
    }

    #[test]
    fn a_warm_level_holds_the_last_pages_that_it_has_room_for() {
        let mut tlb = Tlb::new(TlbConfig { entries: 4, ways: 4 });
        tlb.warm(&(0..6).map(Page).collect::<Vec<_>>());
        let held: Vec<bool> = (0..6).map(|page| tlb.lookup(Ps(0), Page(page)).is_some()).collect();
        assert_eq!(held, [false, false, true, true, true, true]);
        assert_eq!(*tlb.stats(), TlbStats { hits: 4, joins: 0, misses: 2 }, "what came before is not counted");
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
