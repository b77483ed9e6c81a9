//! A module's part in pages that move: who waits for a page, and what is under way to it.
//!
//! Idle where pages do not move: nobody asks it.

use crate::page_run::PageRun;
use rustc_hash::FxHashMap;
use tombolo_protocol::paging::Wanted;
use tombolo_types::{Page, SmId};

/// Warps that wait for a page.
#[derive(Clone, Debug, Default)]
struct Waiting {
    /// In the order in which they came.
    warps: Vec<(SmId, u8)>,
    /// What the driver has been asked for: the most of it.
    asked: Option<Wanted>,
}

/// What a module knows of pages beside its view of them.
#[derive(Clone, Debug, Default)]
pub struct Residence {
    waiting: FxHashMap<Page, Waiting>,
    /// Misses of L1s under way, by page.
    loads: FxHashMap<Page, u32>,
    /// Of pages being unmapped: how many parts of that are not over.
    unmapping: FxHashMap<Page, u32>,
    /// Pages whose unmapping waits for stores beyond the L2, by the number under which they are answered.
    draining: Vec<Option<PageRun>>,
}

impl Residence {
    /// A warp waits for a page.
    pub fn park(&mut self, page: Page, warp: (SmId, u8)) {
        self.waiting.entry(page).or_default().warps.push(warp);
    }

    /// A warp will need a page. Returns whether the driver is to be told.
    pub fn ask(&mut self, page: Page, wanted: Wanted) -> bool {
        // Who may write may load.
        let asked = &mut self.waiting.entry(page).or_default().asked;
        let is_new = *asked < Some(wanted);
        *asked = (*asked).max(Some(wanted));
        is_new
    }

    /// Whoever waits for a page, to try again.
    pub fn wake(&mut self, page: Page) -> Vec<(SmId, u8)> {
        self.waiting.remove(&page).unwrap_or_default().warps
    }

    /// A miss of an L1 on a line of a page begins.
    pub fn load_begins(&mut self, page: Page) {
        *self.loads.entry(page).or_default() += 1;
    }

    /// It is over. Returns whether that was the last one that the page's unmapping waits for.
    pub fn load_ends(&mut self, page: Page) -> bool {
        let left = self.loads.get_mut(&page).expect("a miss begins before it ends");
        *left -= 1;
        if *left > 0 {
            return false;
        }
        self.loads.remove(&page);
        self.unmapping.contains_key(&page)
    }

    /// Whether a miss on a line of a page is under way.
    pub fn has_loads(&self, page: Page) -> bool {
        self.loads.contains_key(&page)
    }

    /// A page is being unmapped, which has so many parts.
    pub fn unmap(&mut self, page: Page, parts: u32) {
        let before = self.unmapping.insert(page, parts);
        assert!(before.is_none(), "{page:?} is unmapped twice at once");
    }

    /// A part is over. Returns whether all are.
    pub fn part_ends(&mut self, page: Page) -> bool {
        let left = self.unmapping.get_mut(&page).expect("a part of what is being unmapped");
        *left -= 1;
        let over = *left == 0;
        if over {
            self.unmapping.remove(&page);
        }
        over
    }

    /// Pages wait for the stores of the module. Returns the number under which they are answered.
    pub fn drains(&mut self, pages: PageRun) -> u32 {
        let free = self.draining.iter().position(Option::is_none).unwrap_or_else(|| {
            self.draining.push(None);
            self.draining.len() - 1
        });
        self.draining[free] = Some(pages);
        u32::try_from(free).expect("a memory has fewer pages")
    }

    /// The stores that they waited for have been taken. Returns which pages they were.
    pub fn drained(&mut self, number: u32) -> PageRun {
        self.draining[number as usize].take().expect("pages wait under the number")
    }

    /// Pages that somebody waits for, for a report of who waits for whom.
    pub fn waiting(&self) -> impl Iterator<Item = (Page, usize)> + '_ {
        self.waiting.iter().map(|(page, waiting)| (*page, waiting.warps.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page(7);

    #[test]
    fn the_driver_is_asked_once_to_load_and_once_more_to_write() {
        let mut residence = Residence::default();
        let (load, store) = (Wanted::Load, Wanted::Store);
        let asked = [load, load, store, store, load].map(|wanted| residence.ask(PAGE, wanted));
        assert_eq!(asked, [true, false, true, false, false]);
        (0..3).for_each(|warp| residence.park(PAGE, (SmId(0), warp)));
        assert_eq!(residence.wake(PAGE), [0, 1, 2].map(|warp| (SmId(0), warp)));
        assert!(residence.ask(PAGE, Wanted::Load), "it is asked for anew");
    }

    #[test]
    fn an_unmapping_is_over_when_loads_and_drains_are() {
        let mut residence = Residence::default();
        residence.load_begins(PAGE);
        residence.load_begins(PAGE);
        assert!(!residence.load_ends(PAGE), "nobody unmaps it, and one is under way");
        residence.unmap(PAGE, 2);
        assert!(residence.load_ends(PAGE) && !residence.has_loads(PAGE));
        assert!(!residence.part_ends(PAGE) && residence.part_ends(PAGE));
        let [first, second, third] = [PAGE, Page(8), Page(9)].map(PageRun::of);
        assert_eq!((residence.drains(first), residence.drains(second)), (0, 1));
        assert_eq!((residence.drained(1), residence.drains(third), residence.drained(0)), (second, 1, first));
    }
}
