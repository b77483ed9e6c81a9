//! Data movement between GPU memories, for sharing policies that move data around kernels.
//!
//! A single walk over a program's streams, without simulation, finds the lines that each module reads and writes in
//! each kernel. Together with the program's commands, it determines
//! - `host_copies`: copies between the host and GPUs before a program's commands;
//! - `copies`: ranges carried by `cudaMemcpy` after each launch, either everything written or only data read elsewhere;
//! - `pages`: pages that hints move before each launch, and the latest writer for each page;
//! - `profile`: the end of the first iteration, during which accesses are tracked;
//! - `matrix`: readers and writers, per array;
//! - `exchange`: the minimum traffic per array and module pair, for any mechanism.
//!
//! No workload declares its movement; all information comes from the streams. On the intended machines, each GPU is one
//! module; no program is refused here. Not included: the costs of movement (crate `model`). Read `copies` next.

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
pub use exchange::ArrayTraffic;
pub(crate) use host_copies::HostCopier;
pub use matrix::{ArraySharing, Flow, PageKind, PageKinds};
pub use profile::IterationLaunches;

use crate::placement::{FirstTouch, TouchOrder};
use crate::survey::{Reader, SurveyedLaunch, Touch, accesses, survey};
use marks::Marks;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use tombolo_design::scheduling::{CtaDistribution, MachineShape};
use tombolo_model::front_end::WrittenBytes;
use tombolo_protocol::elision::LineSet;
use tombolo_types::stream::{CtaStream, Program, StreamError};
use tombolo_types::{LaunchDevices, ModuleId, Page};

/// Accesses by a module in a kernel. An atomic reads the whole line and writes the accessed bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleMovement {
    /// Lines read.
    pub read: LineSet,
    /// Bytes written.
    pub written: Arc<WrittenBytes>,
}

/// A module's access to a page in one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageUse {
    /// The page.
    pub page: Page,
    /// The accessing module.
    pub module: ModuleId,
    /// True if the module writes the page; otherwise it only reads.
    pub writes: bool,
}

/// Data accesses by kernel and module: the result of the walk.
#[derive(Clone, Debug)]
pub struct Movement {
    lines_per_page: u64,
    /// Maximum number of lines between two ranges in an array for which a joint copy replaces two calls.
    gap: u64,
    /// Number of each kernel and target modules: repeated launches have equal accesses.
    numbers: FxHashMap<(u32, LaunchDevices), u32>,
    /// Accesses, indexed by number, then by module.
    kernels: Vec<Vec<ModuleMovement>>,
    /// Module that first touched each page.
    touched: Vec<(Page, ModuleId)>,
    /// Module that first wrote each written page.
    written: Vec<(Page, ModuleId)>,
}

impl Movement {
    /// Walks over `program` on the GPUs in `order`, each with one module, with grids divided by `cut`.
    ///
    /// # Errors
    /// The recording is damaged.
    pub fn find(program: &dyn Program, cut: CtaDistribution, order: TouchOrder) -> Result<Movement, StreamError> {
        let shape = MachineShape { gpus: order.modules, modules_per_gpu: 1 };
        let mut walk = MovementWalk::new(order);
        survey(program, cut, shape, &mut [&mut walk])?;
        Ok(walk.finish())
    }

    /// Sets the joining distance for copies: two ranges in an array become one call if at most `lines` lines lie
    /// between them. A programmer avoids a second call if carrying the gap takes less time.
    #[must_use]
    pub fn with_joining_distance(self, lines: u64) -> Movement {
        Movement { gap: lines, ..self }
    }

    /// The number for a kernel and its target modules.
    ///
    /// # Panics
    /// If the program does not launch the kernel on these modules.
    pub fn number(&self, kernel: u32, on: LaunchDevices) -> u32 {
        self.numbers[&(kernel, on)]
    }

    /// Accesses in kernel number `kernel` ([`Movement::number`]), indexed by module.
    pub fn kernel(&self, kernel: u32) -> &[ModuleMovement] {
        &self.kernels[kernel as usize]
    }

    /// Largest number of lines that a module accesses in one kernel.
    pub fn active_lines(&self) -> u64 {
        let lines = |module: &ModuleMovement| {
            let mut lines = module.read.clone();
            lines.add(&module.written.lines);
            lines.count()
        };
        self.kernels.iter().flatten().map(lines).max().unwrap_or(0)
    }

    /// Page uses in kernel number `kernel`: sorted by page, then by module, without duplicates.
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

/// Pages that contain any line in `lines`: ascending ranges, no two adjacent.
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

/// Finds data movement: a reader of streams.
pub struct MovementWalk {
    lines_per_page: u64,
    modules: u8,
    /// Number of each kernel and target modules.
    numbers: FxHashMap<(u32, LaunchDevices), u32>,
    /// Accesses, indexed by number, then by module.
    kernels: Vec<Vec<ModuleMovement>>,
    /// The current kernel, and the module with the CTAs being visited.
    at: Option<(u32, ModuleId)>,
    /// Lines touched by this module.
    marks: Marks,
    touched: FirstTouch,
    written: FirstTouch,
}

impl MovementWalk {
    /// Creates a walk for the modules and pages in `order`.
    pub fn new(order: TouchOrder) -> MovementWalk {
        MovementWalk {
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

    /// The result.
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

    /// Ends the current module: all its CTAs have been visited.
    fn close(&mut self) {
        let Some((kernel, module)) = self.at.take() else { return };
        let (read, written) = self.marks.take();
        self.kernels[kernel as usize][usize::from(module.0)] = ModuleMovement { read, written: Arc::new(written) };
    }
}

impl Reader for MovementWalk {
    fn launch(&mut self, launch: SurveyedLaunch) -> bool {
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
