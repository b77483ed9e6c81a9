//! Where GPUs have the pages of what is copied to them from a host.
//!
//! | page of | is |
//! | --- | --- |
//! | an array that kernels load and never write, where inputs are replicated | at every GPU |
//! | another array, in even ranges | of `n` GPUs at the `i`-th, which has the `i`-th part, in whole pages |
//! | another array, interleaved | page `p` at GPU `p` modulo `n` |
//!
//! A page of two arrays is placed with the first, and is never replicated. Of lines of no array, runs of pages that are touched
//! stand for arrays.

use crate::movement::{array_lines, pages_of};
use crate::uses::KernelUses;
use std::ops::Range;
use tombolo_design::placement::Ranges;
use tombolo_model::page_table::PageTable;
use tombolo_protocol::elision::{LineSet, Lines};
use tombolo_types::stream::Program;
use tombolo_types::{Line, ModuleId, Page};

/// Places pages.
pub(super) struct Copied<'a> {
    /// The program.
    pub(super) program: &'a dyn Program,
    /// Of the GPUs, each of which has one.
    pub(super) modules: u8,
    /// Lines of a page.
    pub(super) lines_per_page: u64,
    /// How arrays are divided.
    pub(super) ranges: Ranges,
}

impl Copied<'_> {
    /// The pages. `touched`: pages that kernels touch. `uses`: what kernels do to arrays, where inputs are replicated.
    pub(super) fn pages(&self, touched: Vec<(Page, ModuleId)>, uses: Option<KernelUses>) -> PageTable {
        let arrays = array_lines(self.program);
        let mut runs: Vec<Range<u64>> = arrays.iter().flatten().flat_map(|array| self.of(&(*array).into())).collect();
        let touched: LineSet = touched.into_iter().map(|(page, _)| self.lines(page.0..page.0 + 1)).collect();
        let all: LineSet = arrays.iter().flatten().copied().collect();
        let elsewhere = touched.without(&self.of(&all).into_iter().map(|pages| self.lines(pages)).collect());
        runs.extend(self.of(&elsewhere));
        let placed = runs.into_iter().flat_map(|pages| divided(pages, self.modules, self.ranges));
        let replicated = uses.map(|uses| self.inputs(&arrays, &uses)).unwrap_or_default();
        PageTable::with_replicas(placed, replicated, self.lines_per_page)
    }

    /// The pages of arrays that kernels load and never write. Where a kernel touches lines of no array, these may be beside an
    /// array on its outer pages, which stay where they are.
    fn inputs(&self, arrays: &[Option<Lines>], uses: &KernelUses) -> Vec<Range<u64>> {
        let (mut loaded, mut written) = (vec![false; arrays.len()], vec![false; arrays.len()]);
        for used in uses.values().flat_map(|kernel| &kernel.arrays) {
            let of = |set: fn(&crate::uses::Touched) -> &LineSet| used.modules.iter().any(|one| !set(one).is_empty());
            loaded[used.array as usize] |= of(|one| &one.read);
            written[used.array as usize] |= of(|one| &one.written);
        }
        let is_input = |index: usize| loaded[index] && !written[index];
        let of = |wanted: bool| -> LineSet {
            let chosen = arrays.iter().enumerate().filter(|(index, _)| is_input(*index) == wanted);
            chosen.filter_map(|(_, lines)| *lines).collect()
        };
        let mut others: LineSet = self.of(&of(false)).into_iter().map(|pages| self.lines(pages)).collect();
        let inputs = of(true);
        if uses.values().any(|kernel| kernel.elsewhere) {
            let whole: LineSet = self.of(&inputs).into_iter().map(|pages| self.lines(pages)).collect();
            let outside = whole.without(&inputs);
            others.add(&self.of(&outside).into_iter().map(|pages| self.lines(pages)).collect());
        }
        self.of(&inputs.without(&others))
    }

    /// The pages that hold any of `lines`.
    fn of(&self, lines: &LineSet) -> Vec<Range<u64>> {
        pages_of(lines, self.lines_per_page)
    }

    /// The lines of some neighbouring pages.
    fn lines(&self, pages: Range<u64>) -> Lines {
        Lines::new(Line(pages.start * self.lines_per_page), Line(pages.end * self.lines_per_page))
    }
}

/// The modules of some neighbouring pages.
fn divided(pages: Range<u64>, modules: u8, ranges: Ranges) -> impl Iterator<Item = (Page, ModuleId)> {
    let count = pages.end - pages.start;
    (0..).zip(pages).map(move |(place, page)| {
        let module = match ranges {
            Ranges::Contiguous => place * u64::from(modules) / count,
            Ranges::Interleaved => page % u64::from(modules),
        };
        (Page(page), ModuleId(module as u8))
    })
}
