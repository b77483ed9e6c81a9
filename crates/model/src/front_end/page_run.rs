//! Runs of consecutive pages, sent between components in a single message.

use tombolo_types::Page;

/// Consecutive pages: at least one, at most 2^16 - 1. The size is eight bytes, because runs are part of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageRun {
    /// Bits 0 to 31 in the first page's number.
    first_low: u32,
    /// Bits 32 to 47 in the first page's number. Source: virtual addresses have 49 bits (GPS, Table 1).
    first_high: u16,
    count: u16,
}

impl PageRun {
    /// A run with one page.
    pub(crate) fn of(page: Page) -> PageRun {
        let first_high = u16::try_from(page.0 >> 32).expect("a page's number has at most 48 bits");
        PageRun { first_low: page.0 as u32, first_high, count: 1 }
    }

    /// Groups pages, in this order, into the smallest number of runs.
    pub(crate) fn all(pages: impl IntoIterator<Item = Page>) -> Vec<PageRun> {
        let mut runs: Vec<PageRun> = Vec::new();
        for page in pages {
            if !runs.last_mut().is_some_and(|last| last.extend(page)) {
                runs.push(PageRun::of(page));
            }
        }
        runs
    }

    /// Adds a page directly after the last page. Returns false, and changes nothing, if `page` does not follow.
    pub(crate) fn extend(&mut self, page: Page) -> bool {
        let follows = page.0 == self.first() + u64::from(self.count) && self.count < u16::MAX;
        self.count += u16::from(follows);
        follows
    }

    /// Pages in ascending order.
    pub(crate) fn pages(self) -> impl Iterator<Item = Page> {
        (self.first()..).take(usize::from(self.count)).map(Page)
    }

    /// Number of pages.
    pub(crate) fn count(self) -> u32 {
        u32::from(self.count)
    }

    /// Number of the first page.
    fn first(self) -> u64 {
        u64::from(self.first_high) << 32 | u64::from(self.first_low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_in_as_few_runs_as_their_order_has() {
        let runs = |pages: &[u64]| -> Vec<Vec<u64>> {
            let all = PageRun::all(pages.iter().copied().map(Page));
            all.into_iter().map(|run| run.pages().map(|page| page.0).collect()).collect()
        };
        assert_eq!(runs(&[7, 8, 9, 11, 12, 3]), [vec![7, 8, 9], vec![11, 12], vec![3]]);
        assert_eq!(runs(&[5, 5]), [vec![5], vec![5]]);
        assert_eq!((runs(&[]).len(), PageRun::of(Page(4)).count()), (0, 1));
        let far = (1 << 40) + 5;
        assert_eq!(runs(&[far, far + 1]), [vec![far, far + 1]]);
        let many: Vec<u64> = (0..70_000).collect();
        assert_eq!(runs(&many).iter().map(Vec::len).collect::<Vec<_>>(), [65_535, 4_465]);
    }
}
