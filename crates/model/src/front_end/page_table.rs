//! Page placement: the home module for every line, fixed before a run and shared by all threads. Each module learns
//! later moves on its own ([`crate::front_end::view`]).

use crate::l2::set_index::SetIndex;
use rustc_hash::FxHashMap;
use std::ops::Range;
use tombolo_types::{Line, ModuleId, Page};

/// Number of unplaced pages at which a segment is split; a shorter gap costs a filler byte per page.
const GAP: u64 = 4096;

/// Maximum number of segments, searched linearly; smaller segments go to a hash table.
const MAX_SEGMENTS: usize = 8;

/// Marks an unplaced page in [`Segment::homes`].
const UNPLACED: u8 = u8::MAX;

/// A segment with pages at close addresses.
#[derive(Clone, Debug)]
struct Segment {
    first: u64,
    homes: Vec<u8>,
}

#[derive(Clone, Debug)]
enum HomeMap {
    /// Homes by page: the largest segments, all remaining pages, then the pages replicated in every module's memory,
    /// ascending.
    Table { segments: Vec<Segment>, sparse: FxHashMap<u64, u8>, replicated: Vec<Range<u64>> },
    /// Granules with 2^`shift` lines, round robin over the modules.
    Interleaved { modules: SetIndex, shift: u32 },
    /// All pages are in every module's own memory.
    Everywhere,
    /// All pages are in one module's memory.
    At(ModuleId),
}

/// Home module for every line.
#[derive(Clone, Debug)]
pub struct PageTable {
    placement: HomeMap,
    /// Binary logarithm for the lines per page.
    page_shift: u32,
}

impl PageTable {
    /// Places each page at the module in the page's first touch. Pages have `lines_per_page` lines, a power of two.
    ///
    /// Panics on module 255, because no machine has this module.
    pub fn from_first_touch(touches: impl IntoIterator<Item = (Page, ModuleId)>, lines_per_page: u64) -> PageTable {
        PageTable::with_replicas(touches, Vec::new(), lines_per_page)
    }

    /// Like `from_first_touch`, but every module has the `replicated` pages in its own memory: page number ranges in
    /// ascending order.
    ///
    /// Panics on module 255, because no machine has this module.
    pub fn with_replicas(
        touches: impl IntoIterator<Item = (Page, ModuleId)>,
        replicated: Vec<Range<u64>>,
        lines_per_page: u64,
    ) -> PageTable {
        let has_one_home = |(page, _): &(Page, ModuleId)| !holds(&replicated, page.0);
        let mut pages: Vec<(Page, ModuleId)> = touches.into_iter().filter(has_one_home).collect();
        pages.sort_by_key(|(page, _)| *page);
        pages.dedup_by_key(|(page, _)| *page);
        assert!(pages.iter().all(|(_, module)| module.0 != UNPLACED), "module {UNPLACED} does not exist");
        let mut runs: Vec<&[(Page, ModuleId)]> = pages.chunk_by(|a, b| b.0.0 - a.0.0 < GAP).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
        let (dense, rest) = runs.split_at(runs.len().min(MAX_SEGMENTS));
        let segments = dense.iter().map(|run| Segment::new(run)).collect();
        let sparse = rest.iter().copied().flatten().map(|(page, module)| (page.0, module.0)).collect();
        let placement = HomeMap::Table { segments, sparse, replicated };
        PageTable { placement, page_shift: shift(lines_per_page) }
    }

    /// Places page `p` at module `p` modulo `modules`.
    pub fn interleaved_by_page(modules: u8, lines_per_page: u64) -> PageTable {
        PageTable::interleaved(modules, lines_per_page, lines_per_page)
    }

    /// Interleaves granules of `granule` lines over `modules` modules. The granule is a power of two between a single
    /// line and a page.
    pub fn interleaved_by_line(modules: u8, granule: u64, lines_per_page: u64) -> PageTable {
        PageTable::interleaved(modules, granule, lines_per_page)
    }

    /// Replicates every page in every module: each module is home for itself.
    pub fn everywhere(lines_per_page: u64) -> PageTable {
        PageTable { placement: HomeMap::Everywhere, page_shift: shift(lines_per_page) }
    }

    /// Places every page at a single module.
    pub fn at(module: ModuleId, lines_per_page: u64) -> PageTable {
        PageTable { placement: HomeMap::At(module), page_shift: shift(lines_per_page) }
    }

    /// A table with equal page size, and all pages placed at one module.
    pub(crate) fn all_at(&self, module: ModuleId) -> PageTable {
        PageTable { placement: HomeMap::At(module), page_shift: self.page_shift }
    }

    fn interleaved(modules: u8, granule: u64, lines_per_page: u64) -> PageTable {
        let modules = SetIndex::new(u32::from(modules));
        let placement = HomeMap::Interleaved { modules, shift: shift(granule) };
        PageTable { placement, page_shift: shift(lines_per_page) }
    }

    /// Page of `line`.
    #[inline]
    pub(crate) fn page_of(&self, line: Line) -> Page {
        Page(line.0 >> self.page_shift)
    }

    /// First line in a page.
    pub(crate) fn first_line(&self, page: Page) -> Line {
        Line(page.0 << self.page_shift)
    }

    /// Number of aligned consecutive lines with a common home: a power of two.
    pub fn lines_together(&self) -> u64 {
        match &self.placement {
            HomeMap::Table { .. } | HomeMap::Everywhere | HomeMap::At(_) => 1 << self.page_shift,
            HomeMap::Interleaved { shift, .. } => 1 << shift,
        }
    }

    /// Every page with its home module, ascending, if pages were placed individually and have one home.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (Page, ModuleId)> + '_ {
        let (segments, sparse) = match &self.placement {
            HomeMap::Table { segments, sparse, .. } => (&segments[..], Some(sparse)),
            HomeMap::Interleaved { .. } | HomeMap::Everywhere | HomeMap::At(_) => (&[][..], None),
        };
        let dense = segments.iter().flat_map(|segment| (segment.first..).zip(&segment.homes));
        let dense = dense.filter(|(_, home)| **home != UNPLACED).map(|(page, &home)| (page, home));
        let sparse = sparse.into_iter().flatten().map(|(&page, &home)| (page, home));
        let mut all: Vec<(u64, u8)> = dense.chain(sparse).collect();
        all.sort_unstable();
        all.into_iter().map(|(page, home)| (Page(page), ModuleId(home)))
    }

    /// Home module for `line` if equal for every module; `None` also for an unplaced page.
    pub(crate) fn only_home(&self, line: Line) -> Option<ModuleId> {
        let replicated = match &self.placement {
            HomeMap::Everywhere => true,
            HomeMap::Table { replicated, .. } => holds(replicated, self.page_of(line).0),
            HomeMap::Interleaved { .. } | HomeMap::At(_) => false,
        };
        if replicated { None } else { self.home(ModuleId(0), line) }
    }

    /// Home module for `line` from the viewpoint of module `at`; `None` for an unplaced page.
    #[inline]
    pub fn home(&self, at: ModuleId, line: Line) -> Option<ModuleId> {
        match &self.placement {
            HomeMap::Everywhere => Some(at),
            HomeMap::At(module) => Some(*module),
            HomeMap::Interleaved { modules, shift } => Some(ModuleId(modules.split(line.0 >> shift).1 as u8)),
            HomeMap::Table { segments, sparse, replicated } => {
                let page = self.page_of(line).0;
                for segment in segments {
                    if let Some(&home) = segment.homes.get(page.wrapping_sub(segment.first) as usize)
                        && home != UNPLACED
                    {
                        return Some(ModuleId(home));
                    }
                }
                let alone = if sparse.is_empty() { None } else { sparse.get(&page).map(|&home| ModuleId(home)) };
                alone.or_else(|| holds(replicated, page).then_some(at))
            }
        }
    }
}

/// True if a page lies in any of the ascending ranges.
fn holds(ranges: &[Range<u64>], page: u64) -> bool {
    let next = ranges.partition_point(|range| range.end <= page);
    ranges.get(next).is_some_and(|range| range.start <= page)
}

impl Segment {
    /// Segment for `run`, which is ascending and not empty.
    fn new(run: &[(Page, ModuleId)]) -> Segment {
        let first = run[0].0.0;
        let mut homes = vec![UNPLACED; (run[run.len() - 1].0.0 - first) as usize + 1];
        for (page, module) in run {
            homes[(page.0 - first) as usize] = module.0;
        }
        Segment { first, homes }
    }
}

fn shift(lines: u64) -> u32 {
    assert!(lines.is_power_of_two(), "{lines} lines are no power of two");
    lines.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Viewpoint used if the result does not depend on it.
    const AT: ModuleId = ModuleId(9);

    #[test]
    fn the_first_touch_places_a_page() {
        let touches = [(3, 1), (4, 2), (3, 0)].map(|(page, module)| (Page(page), ModuleId(module)));
        let table = PageTable::from_first_touch(touches, 16);
        assert_eq!(table.home(AT, Line(3 * 16 + 15)), Some(ModuleId(1)));
        assert_eq!(table.home(AT, Line(4 * 16)), Some(ModuleId(2)));
        assert_eq!(table.home(AT, Line(5 * 16)), None, "nobody placed it");
    }

    #[test]
    fn of_replicated_pages_each_module_is_at_home_to_itself() {
        for far in [0, 1 << 40] {
            // The last module that a machine may have; a page that is also named as replicated is replicated.
            let others = (0..20).map(|i| (Page(far + (i << 30) + 1), ModuleId(254)));
            let replicated = vec![far..far + 1, far + 5..far + 7];
            let table = PageTable::with_replicas(others.chain([(Page(far), ModuleId(1))]), replicated, 16);
            assert_eq!([4, 6, 7].map(|page| table.home(AT, Line((far + page) * 16))), [None, Some(AT), None]);
            assert_eq!([3, 7].map(|at| table.home(ModuleId(at), Line(far * 16))), [3, 7].map(|at| Some(ModuleId(at))));
            assert_eq!(table.home(ModuleId(3), Line(far * 16 + 16)), Some(ModuleId(254)));
            assert_eq!(table.home(ModuleId(3), Line(far * 16 + 32)), None);
            assert_eq!(table.placed().count(), 20, "{far}");
        }
    }

    #[test]
    fn pages_far_apart_are_found_too() {
        let far: Vec<(Page, ModuleId)> = (0..40).map(|i| (Page(i << 30), ModuleId(i as u8))).collect();
        let table = PageTable::from_first_touch(far.iter().copied(), 1);
        assert!(far.iter().all(|&(page, module)| table.home(AT, Line(page.0)) == Some(module)));
    }

    #[test]
    fn pages_take_turns() {
        let table = PageTable::interleaved_by_page(3, 8);
        let homes: Vec<_> = (0..5).map(|page| table.home(AT, Line(page * 8 + 7)).unwrap().0).collect();
        assert_eq!(homes, [0, 1, 2, 0, 1]);
    }

    #[test]
    fn lines_take_turns_by_granule() {
        let table = PageTable::interleaved_by_line(4, 2, 8);
        let homes: Vec<_> = (0..10).map(|line| table.home(AT, Line(line)).unwrap().0).collect();
        assert_eq!(homes, [0, 0, 1, 1, 2, 2, 3, 3, 0, 0]);
        assert_eq!(table.page_of(Line(9)), Page(1));
    }

    #[test]
    fn where_pages_are_everywhere_each_module_is_at_home() {
        let table = PageTable::everywhere(8);
        assert_eq!([3, 7].map(|at| table.home(ModuleId(at), Line(5))), [3, 7].map(|at| Some(ModuleId(at))));
    }

    proptest! {
        #[test]
        fn it_does_what_a_map_does(
            touches in prop::collection::vec(
                (prop_oneof![0..100_u64, 100_000..100_100_u64, (0..60_u64).prop_map(|i| i << 40)], 0..16_u8),
                0..300,
            ),
        ) {
            let mut naive = BTreeMap::new();
            for &(page, module) in &touches {
                naive.entry(page).or_insert(module);
            }
            let pairs = touches.iter().map(|&(page, module)| (Page(page), ModuleId(module)));
            let table = PageTable::from_first_touch(pairs, 4);
            for page in touches.iter().flat_map(|&(page, _)| [page, page + 1]) {
                let expected = naive.get(&page).map(|&module| ModuleId(module));
                prop_assert_eq!(table.home(AT, Line(page * 4 + 1)), expected);
            }
        }
    }
}
