//! What moves between the memories of a machine's GPUs, for ways of sharing memory that move it around kernels.
//!
//! One walk over a program's streams, without simulating, says what each module reads and writes in each kernel. From it and
//! from the program's commands come
//! - `host_copies`: what a program copies between the host and GPUs before its commands;
//! - `copies`: what `cudaMemcpy` carries behind each launch, all that was written or only what is read elsewhere;
//! - `pages`: pages that hints move before each launch, and where the latest writer of a page is;
//! - `profile`: where the first iteration ends, in which accesses are tracked;
//! - `matrix`: by array, who reads what whom has written;
//! - `exchange`: by array and pair, what must cross whatever carries it.
//!
//! No workload says so and none helps. Each GPU is one module on the machines that this is for; nothing is refused here.
//! Not here: what any of it costs (crate `model`). Read `copies` next.

mod bytes;
mod copies;
mod exchange;
mod host_copies;
mod marks;
mod matrix;
mod needed;
mod pages;
mod profile;
#[cfg(test)]
mod tests;

pub(crate) use copies::array_lines;
pub use exchange::Exchange;
pub(crate) use host_copies::HostCopier;
pub use matrix::{ArraySharing, Flow, PageKind, PageKinds};

use crate::placement::{FirstTouch, TouchOrder};
use crate::survey::{Launch, Reader, Touch, accesses, survey};
use marks::Marks;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use tombolo_design::scheduling::{CtaCut, Shape};
use tombolo_model::schedule::Written;
use tombolo_protocol::elision::LineSet;
use tombolo_types::stream::{CtaStream, Program, StreamError};
use tombolo_types::{ModuleId, On, Page};

/// What one module does in one kernel. An atomic reads its line and writes its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleMovement {
    /// Lines read.
    pub read: LineSet,
    /// Bytes written.
    pub written: Arc<Written>,
}

/// What a module does to a page in one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageUse {
    /// Which page.
    pub page: Page,
    /// Who.
    pub module: ModuleId,
    /// Whether it writes it; it reads it otherwise.
    pub writes: bool,
}

/// What moves: the result of the walk.
#[derive(Clone, Debug)]
pub struct Movement {
    lines_per_page: u64,
    /// Lines between two ranges of an array that are carried rather than the second copied by a call of its own, at most.
    gap: u64,
    /// By kernel and where it runs, its number: launched again there it does the same.
    numbers: FxHashMap<(u32, On), u32>,
    /// By number, then by module.
    kernels: Vec<Vec<ModuleMovement>>,
    /// Who first touched each page.
    touched: Vec<(Page, ModuleId)>,
    /// Who first wrote each page that is written.
    written: Vec<(Page, ModuleId)>,
}

impl Movement {
    /// Walks over `program` on the GPUs that `order` names, of one module each, which share grids as `cut` says.
    ///
    /// # Errors
    /// The recording is damaged.
    pub fn find(program: &dyn Program, cut: CtaCut, order: TouchOrder) -> Result<Movement, StreamError> {
        let shape = Shape { gpus: order.modules, modules_per_gpu: 1 };
        let mut walk = Walk::new(order);
        survey(program, cut, shape, &mut [&mut walk])?;
        Ok(walk.finish())
    }

    /// The same, where two ranges of an array that are to be copied are one call if at most `lines` lines lie between: a
    /// programmer does not pay for a call where carrying what lies between takes less.
    #[must_use]
    pub fn carrying(self, lines: u64) -> Movement {
        Movement { gap: lines, ..self }
    }

    /// The number of a kernel that runs there.
    ///
    /// # Panics
    /// Where the program does not launch it there.
    pub fn number(&self, kernel: u32, on: On) -> u32 {
        self.numbers[&(kernel, on)]
    }

    /// What each module does in kernel number `kernel` ([`Movement::number`]), by module.
    pub fn kernel(&self, kernel: u32) -> &[ModuleMovement] {
        &self.kernels[kernel as usize]
    }

    /// What the modules do to pages in kernel number `kernel`: by page, then by module, once each.
    pub fn page_uses(&self, kernel: u32) -> Vec<PageUse> {
        let mut uses = Vec::new();
        for (module, movement) in (0..=u8::MAX).map(ModuleId).zip(self.kernel(kernel)) {
            let mut add = |lines: &LineSet, writes| {
                let pages = pages_of(lines, self.lines_per_page).into_iter().flatten().map(Page);
                uses.extend(pages.map(|page| PageUse { page, module, writes }));
            };
            add(&movement.read, false);
            add(&movement.written.lines, true);
        }
        uses.sort_unstable_by_key(|used| (used.page, used.module, !used.writes));
        uses.dedup_by_key(|used| (used.page, used.module));
        uses
    }
}

/// The pages that hold any of `lines`: ascending ranges, no two of which touch.
pub fn pages_of(lines: &LineSet, lines_per_page: u64) -> Vec<Range<u64>> {
    let mut pages: Vec<Range<u64>> = Vec::new();
    for range in lines.ranges() {
        let found = range.first.0 / lines_per_page..(range.end.0 - 1) / lines_per_page + 1;
        match pages.last_mut() {
            Some(last) if found.start <= last.end => last.end = found.end,
            Some(_) | None => pages.push(found),
        }
    }
    pages
}

/// Finds what moves: a reader of streams.
pub struct Walk {
    lines_per_page: u64,
    modules: u8,
    /// By kernel and where it runs, its number.
    numbers: FxHashMap<(u32, On), u32>,
    /// By number, then by module.
    kernels: Vec<Vec<ModuleMovement>>,
    /// The kernel at hand, and the module whose CTAs are shown.
    at: Option<(u32, ModuleId)>,
    /// What that module does.
    marks: Marks,
    touched: FirstTouch,
    written: FirstTouch,
}

impl Walk {
    /// On the modules and pages that `order` names.
    pub fn new(order: TouchOrder) -> Walk {
        Walk {
            lines_per_page: order.lines_per_page,
            modules: order.modules,
            numbers: FxHashMap::default(),
            kernels: Vec::new(),
            at: None,
            marks: Marks::default(),
            written: FirstTouch::of(order.clone(), |touch| touch != Touch::Load),
            touched: FirstTouch::new(order),
        }
    }

    /// What was found.
    pub fn finish(mut self) -> Movement {
        self.close();
        Movement {
            lines_per_page: self.lines_per_page,
            gap: 0,
            numbers: self.numbers,
            kernels: self.kernels,
            touched: self.touched.touches(),
            written: self.written.touches(),
        }
    }

    /// All CTAs of the module at hand have been shown.
    fn close(&mut self) {
        let Some((kernel, module)) = self.at.take() else { return };
        let (read, written) = self.marks.take();
        self.kernels[kernel as usize][usize::from(module.0)] = ModuleMovement { read, written: Arc::new(written) };
    }
}

impl Reader for Walk {
    fn launch(&mut self, launch: Launch) -> bool {
        self.close();
        self.touched.launch(launch);
        self.written.launch(launch);
        let number = self.kernels.len() as u32;
        let is_new = *self.numbers.entry(launch.kind()).or_insert(number) == number;
        if is_new {
            self.kernels.push(vec![ModuleMovement::default(); usize::from(self.modules)]);
            self.at = Some((number, ModuleId(0)));
        }
        is_new
    }

    fn cta(&mut self, module: ModuleId, rank: u32, stream: &CtaStream) {
        let (kernel, shown) = self.at.expect("a launch begins before its CTAs");
        if shown != module {
            self.close();
            self.at = Some((kernel, module));
        }
        for (touch, access) in accesses(stream) {
            if matches!(touch, Touch::Load | Touch::Atomic) {
                self.marks.read(access.line);
            }
            if matches!(touch, Touch::Store | Touch::Atomic) {
                self.marks.write(access.line, access.mask);
            }
        }
        self.touched.cta(module, rank, stream);
        self.written.cta(module, rank, stream);
    }
}
