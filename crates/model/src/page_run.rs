//! Pages that follow each other, of which components tell each other by one message.

use tombolo_types::Page;

/// Pages that follow each other: one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageRun {
    first: Page,
    count: u32,
}

impl PageRun {
    /// A run of one page.
    pub fn of(page: Page) -> PageRun {
        PageRun { first: page, count: 1 }
    }

    /// Pages, in as few runs as follow each other in this order.
    pub fn all(pages: impl IntoIterator<Item = Page>) -> Vec<PageRun> {
        let mut runs: Vec<PageRun> = Vec::new();
        for page in pages {
            if !runs.last_mut().is_some_and(|last| last.extend(page)) {
                runs.push(PageRun::of(page));
            }
        }
        runs
    }

    /// Adds a page that follows the last. False, with nothing changed, where `page` is another.
    pub fn extend(&mut self, page: Page) -> bool {
        let follows = page.0 == self.first.0 + u64::from(self.count) && self.count < u32::MAX;
        self.count += u32::from(follows);
        follows
    }

    /// Its pages, in their order.
    pub fn pages(self) -> impl Iterator<Item = Page> {
        (self.first.0..).take(self.count as usize).map(Page)
    }

    /// Number of its pages.
    pub fn count(self) -> u32 {
        self.count
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
    }
}
