//! A module's bookkeeping for moving pages: warps that wait for a page, loads in flight to the page, and the unfinished
//! parts of an unmapping.
//!
//! Idle if pages do not move: no function is called then.

use crate::front_end::page_run::PageRun;
use rustc_hash::{FxHashMap, FxHashSet};
use tombolo_protocol::paging::AttemptedAccess;
use tombolo_types::{Page, SmId};

/// Waiters for a page, with the access already requested from the driver on their behalf.
#[derive(Clone, Debug, Default)]
struct PageWaiters {
    /// Warps, in order of arrival.
    warps: Vec<(SmId, u8)>,
    /// Strongest access requested from the driver.
    asked: Option<AttemptedAccess>,
}

/// A module's knowledge about pages, in addition to its view.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageWaits {
    waiting: FxHashMap<Page, PageWaiters>,
    /// L1 misses in flight, by page.
    loads: FxHashMap<Page, u32>,
    /// Unfinished parts, by page being unmapped.
    unmapping: FxHashMap<Page, u32>,
    /// Pages whose unmapping waits for answers to atomics that the module has sent to the page's home.
    unanswered: FxHashSet<Page>,
    /// Pages whose unmapping waits for stores beyond the L2, by the number used in the reply.
    draining: Vec<Option<PageRun>>,
}

impl PageWaits {
    /// A warp waits for a page.
    pub(crate) fn park(&mut self, page: Page, warp: (SmId, u8)) {
        self.waiting.entry(page).or_default().warps.push(warp);
    }

    /// A warp will need a page. Returns true if the driver must be notified.
    pub(crate) fn ask(&mut self, page: Page, wanted: AttemptedAccess) -> bool {
        // Permission to write includes permission to load.
        let asked = &mut self.waiting.entry(page).or_default().asked;
        let is_new = *asked < Some(wanted);
        *asked = (*asked).max(Some(wanted));
        is_new
    }

    /// Removes and returns the warps that wait for a page, to retry.
    pub(crate) fn wake(&mut self, page: Page) -> Vec<(SmId, u8)> {
        self.waiting.remove(&page).unwrap_or_default().warps
    }

    /// An L1 miss on a line in a page begins.
    pub(crate) fn load_begins(&mut self, page: Page) {
        *self.loads.entry(page).or_default() += 1;
    }

    /// An L1 miss ends. Returns true for the last miss awaited by the page's unmapping.
    pub(crate) fn load_ends(&mut self, page: Page) -> bool {
        let left = self.loads.get_mut(&page).expect("a miss begins before it ends");
        *left -= 1;
        if *left > 0 {
            return false;
        }
        self.loads.remove(&page);
        self.unmapping.contains_key(&page)
    }

    /// True if a miss on a line in the page is in flight.
    pub(crate) fn has_loads(&self, page: Page) -> bool {
        self.loads.contains_key(&page)
    }

    /// Begins the unmapping for a page, which has `parts` parts.
    pub(crate) fn unmap(&mut self, page: Page, parts: u32) {
        let before = self.unmapping.insert(page, parts);
        assert!(before.is_none(), "{page:?} is unmapped twice at once");
    }

    /// A part is complete. Returns true if all are.
    pub(crate) fn part_ends(&mut self, page: Page) -> bool {
        let left = self.unmapping.get_mut(&page).expect("a part of what is being unmapped");
        *left -= 1;
        let over = *left == 0;
        if over {
            self.unmapping.remove(&page);
        }
        over
    }

    /// The unmapping of a page, whose other parts are complete, waits for answers to atomics.
    pub(crate) fn await_answers(&mut self, page: Page) {
        self.unmap(page, 1);
        self.unanswered.insert(page);
    }

    /// All atomics to a page have been answered. Returns true if the page's unmapping has waited for them.
    pub(crate) fn answers_end(&mut self, page: Page) -> bool {
        self.unanswered.remove(&page)
    }

    /// Pages wait for the module's stores, which must be accepted at their destination. Returns the number used in the
    /// reply.
    pub(crate) fn drains(&mut self, pages: PageRun) -> u32 {
        let free = self.draining.iter().position(Option::is_none).unwrap_or_else(|| {
            self.draining.push(None);
            self.draining.len() - 1
        });
        self.draining[free] = Some(pages);
        u32::try_from(free).expect("a memory has fewer pages")
    }

    /// The awaited stores have been accepted. Returns the pages that waited.
    pub(crate) fn drained(&mut self, number: u32) -> PageRun {
        self.draining[number as usize].take().expect("pages wait under the number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page(7);

    #[test]
    fn the_driver_is_asked_once_to_load_and_once_more_to_write() {
        let mut residence = PageWaits::default();
        let (load, store) = (AttemptedAccess::Load, AttemptedAccess::Store);
        let asked = [load, load, store, store, load].map(|wanted| residence.ask(PAGE, wanted));
        assert_eq!(asked, [true, false, true, false, false]);
        (0..3).for_each(|warp| residence.park(PAGE, (SmId(0), warp)));
        assert_eq!(residence.wake(PAGE), [0, 1, 2].map(|warp| (SmId(0), warp)));
        assert!(residence.ask(PAGE, AttemptedAccess::Load), "a new request is necessary");
    }

    #[test]
    fn an_unmapping_is_over_when_loads_and_drains_are() {
        let mut residence = PageWaits::default();
        residence.load_begins(PAGE);
        residence.load_begins(PAGE);
        assert!(!residence.load_ends(PAGE), "no unmapping waits, and one load is in flight");
        residence.unmap(PAGE, 2);
        assert!(residence.load_ends(PAGE) && !residence.has_loads(PAGE));
        assert!(!residence.part_ends(PAGE) && residence.part_ends(PAGE));
        assert!(!residence.answers_end(PAGE), "no unmapping waits for answers");
        residence.await_answers(PAGE);
        assert!(residence.answers_end(PAGE) && residence.part_ends(PAGE) && !residence.answers_end(PAGE));
        let [first, second, third] = [PAGE, Page(8), Page(9)].map(PageRun::of);
        assert_eq!((residence.drains(first), residence.drains(second)), (0, 1));
        assert_eq!((residence.drained(1), residence.drains(third), residence.drained(0)), (second, 1, first));
    }
}
