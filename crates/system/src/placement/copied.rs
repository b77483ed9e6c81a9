//! Page homes in GPU memories for arrays that are copied to the GPUs from a host.
//!
//! | page in | home |
//! | --- | --- |
//! | an array that kernels load and never write, if inputs are replicated | every GPU |
//! | another array, contiguous ranges | among `n` GPUs, the `i`-th GPU has the `i`-th part, in whole pages |
//! | another array, interleaved | page `p` at GPU `p` modulo `n` |
//!
//! A page shared by two arrays is placed with the first, and is never replicated. For lines outside every array, runs
//! of touched pages are treated like arrays.

use crate::movement::{array_lines, pages_of};
use crate::uses::KernelUses;
use std::ops::Range;
use tombolo_design::placement::Ranges;
use tombolo_model::front_end::PageTable;
use tombolo_protocol::elision::{LineRange, LineSet};
use tombolo_types::stream::Program;
use tombolo_types::{Line, ModuleId, Page};

/// Computes page homes.
pub(super) struct CopiedPlacement<'a> {
    /// The program.
    pub(super) program: &'a dyn Program,
    /// Number of GPUs, each with one module.
    pub(super) modules: u8,
    /// Lines per page.
    pub(super) lines_per_page: u64,
    /// Method by which arrays are divided among GPUs.
    pub(super) ranges: Ranges,
}

impl CopiedPlacement<'_> {
    /// The page table. `touched`: pages that kernels touch. `uses`: the kernels' array accesses, if inputs are
    /// replicated.
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

    /// Pages in arrays that kernels load and never write. If a kernel touches lines outside every array, such lines may
    /// share an array's outermost pages; these pages are then not replicated.
    fn inputs(&self, arrays: &[Option<LineRange>], uses: &KernelUses) -> Vec<Range<u64>> {
        let (mut loaded, mut written) = (vec![false; arrays.len()], vec![false; arrays.len()]);
        for used in uses.values().flat_map(|kernel| &kernel.arrays) {
            let of =
                |set: fn(&crate::uses::LineAccesses) -> &LineSet| used.modules.iter().any(|one| !set(one).is_empty());
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

    /// Pages that contain any line in `lines`.
    fn of(&self, lines: &LineSet) -> Vec<Range<u64>> {
        pages_of(lines, self.lines_per_page)
    }

    /// Lines in a range of neighbouring pages.
    fn lines(&self, pages: Range<u64>) -> LineRange {
        LineRange::new(Line(pages.start * self.lines_per_page), Line(pages.end * self.lines_per_page))
    }
}

/// Assigns neighbouring pages to modules.
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
