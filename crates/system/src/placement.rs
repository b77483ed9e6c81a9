//! Which module each page is on. Decided before the run from the program's streams in canonical order, so
//! that it is the same for every design, thread count and run.
//!
//! First touch in canonical order: kernels in launch order; within a kernel the modules side by side, each
//! running its CTAs in its own order, their accesses side by side too. A page that several modules reach at the
//! same place goes to one of them by a hash of the page: who wins a race between equals is nobody's habit, and a
//! fixed winner would be home to everything that all share. Migration costs no time (readings: the
//! region of interest excludes it).

mod copied;

use crate::movement::Walk;
use crate::survey::{Launch, Reader, survey};
use crate::uses::Uses;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tombolo_design::placement::{CopiedFromHost, Inputs, Ranges, UnifiedMemory};
use tombolo_design::scheduling::Shape;
use tombolo_design::{DesignConfig, Placement};
use tombolo_machine::MachineConfig;
use tombolo_model::page_table::PageTable;
use tombolo_types::stream::{CtaStream, Program, StreamError};
use tombolo_types::{Line, ModuleId, On, Page};

/// Pages that the kernels of a program access, ascending.
///
/// # Errors
/// The recording is damaged.
pub(crate) fn touched(
    machine: &MachineConfig,
    design: &DesignConfig,
    program: &dyn Program,
) -> Result<Vec<Page>, StreamError> {
    let shape = Shape::of(machine);
    let mut first = FirstTouch::new(shape.modules(), machine.page_bytes / machine.line.bytes());
    survey(program, design.scheduling.cut(), shape, &mut [&mut first])?;
    let mut pages: Vec<Page> = first.touches().into_iter().map(|(page, _)| page).collect();
    pages.sort_unstable();
    Ok(pages)
}

/// Places the pages of a program on a machine as a design says.
///
/// # Errors
/// The recording is damaged.
pub fn place(
    machine: &MachineConfig,
    design: &DesignConfig,
    program: &dyn Program,
) -> Result<Arc<PageTable>, StreamError> {
    place_beside(machine, design, program, &mut [])
}

/// The same, for the pages and for `readers` in one walk over the streams.
///
/// # Errors
/// The recording is damaged.
pub fn place_beside(
    machine: &MachineConfig,
    design: &DesignConfig,
    program: &dyn Program,
    readers: &mut [&mut dyn Reader],
) -> Result<Arc<PageTable>, StreamError> {
    let modules = machine.topology.modules() as u8;
    let lines_per_page = machine.page_bytes / machine.line.bytes();
    let shape = Shape::of(machine);
    let walk = |readers: &mut [&mut dyn Reader]| survey(program, design.scheduling.cut(), shape, readers);
    let beside = |one: &mut dyn Reader, readers: &mut [&mut dyn Reader]| {
        let mut all: Vec<&mut dyn Reader> = vec![one];
        for reader in readers.iter_mut() {
            all.push(&mut **reader);
        }
        walk(&mut all)
    };
    Ok(Arc::new(match design.placement {
        Placement::FirstTouch(_)
        | Placement::UnifiedMemory(UnifiedMemory { host: false, .. })
        | Placement::RemoteDemandLoads(_)
        | Placement::Published(_) => {
            let mut first = FirstTouch::new(shape.modules(), lines_per_page);
            beside(&mut first, readers)?;
            first.pages()
        }
        Placement::UnifiedMemoryHints(_) => {
            let mut moved = Walk::new(shape.modules(), lines_per_page);
            beside(&mut moved, readers)?;
            moved.finish().hints(program).1
        }
        Placement::Duplicated(_) => {
            walk(readers)?;
            PageTable::everywhere(lines_per_page)
        }
        Placement::CopiedFromHost(CopiedFromHost { ranges: Ranges::Interleaved, inputs: Inputs::Divided }) => {
            walk(readers)?;
            PageTable::interleaved_by_page(modules, lines_per_page)
        }
        Placement::CopiedFromHost(CopiedFromHost { ranges, inputs }) => {
            let mut first = FirstTouch::new(shape.modules(), lines_per_page);
            let mut uses = (inputs == Inputs::Replicated).then(|| Uses::new(program, modules));
            let mut all: Vec<&mut dyn Reader> = vec![&mut first];
            all.extend(uses.as_mut().map(|uses| uses as &mut dyn Reader));
            readers.iter_mut().for_each(|reader| all.push(&mut **reader));
            walk(&mut all)?;
            let copied = copied::Copied { program, modules, lines_per_page, ranges };
            copied.pages(first.touches(), uses.map(Uses::finish))
        }
        Placement::UnifiedMemoryCuda6(_) => {
            walk(readers)?;
            PageTable::at(ModuleId(0), lines_per_page)
        }
        Placement::PinnedOnHost(_)
        | Placement::CachedInGpus(_)
        | Placement::UnifiedMemory(UnifiedMemory { host: true, .. }) => {
            walk(readers)?;
            PageTable::at(ModuleId(modules), lines_per_page)
        }
        Placement::InterleavedPage(_) => {
            walk(readers)?;
            PageTable::interleaved_by_page(modules, lines_per_page)
        }
        Placement::InterleavedLine(_) => {
            walk(readers)?;
            PageTable::interleaved_by_line(modules, design.lines_together(machine), lines_per_page)
        }
    }))
}

/// When a module touches a page in a kernel: the least comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    /// Of the CTA among those of its module.
    rank: u32,
    /// Of the access in the CTA's stream.
    place: u32,
    /// Of the module among those that are level.
    turn: u8,
    module: ModuleId,
}

/// The place of `module` in the order of the modules that a page has. The multiplier is the 64-bit golden ratio.
fn turn(page: Page, module: u8, modules: u8) -> u8 {
    let first = (page.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % u64::from(modules);
    ((u64::from(module) + u64::from(modules) - first) % u64::from(modules)) as u8
}

/// The first touch of every page: a reader of streams.
pub struct FirstTouch {
    modules: u8,
    /// Lines of a page.
    lines_per_page: u64,
    /// What has been launched: launched again, it touches the same pages.
    known: FxHashSet<(u32, On)>,
    placed: FxHashSet<Page>,
    /// The earliest touch of pages that the launch at hand is the first to touch.
    new: FxHashMap<Page, Touch>,
    touches: Vec<(Page, ModuleId)>,
}

impl FirstTouch {
    /// For a machine of `modules` modules and pages of `lines_per_page` lines, a power of two.
    pub fn new(modules: u8, lines_per_page: u64) -> FirstTouch {
        FirstTouch {
            modules,
            lines_per_page,
            known: FxHashSet::default(),
            placed: FxHashSet::default(),
            new: FxHashMap::default(),
            touches: Vec::new(),
        }
    }

    /// The pages, each where it was first touched.
    pub fn pages(self) -> PageTable {
        let lines_per_page = self.lines_per_page;
        PageTable::from_first_touch(self.touches(), lines_per_page)
    }

    /// The pages with the module that first touched each.
    pub fn touches(mut self) -> Vec<(Page, ModuleId)> {
        self.close();
        self.touches
    }

    /// Of CTA number `rank` of `module`: these lines are touched, each at a place of its stream.
    pub fn note(&mut self, module: ModuleId, rank: u32, lines: impl Iterator<Item = (u32, Line)>) {
        let shift = self.lines_per_page.trailing_zeros();
        let mut latest = None;
        for (place, line) in lines {
            let page = Page(line.0 >> shift);
            if latest.replace(page) != Some(page) && !self.placed.contains(&page) {
                let touch = Touch { rank, place, turn: turn(page, module.0, self.modules), module };
                // Module by module, for neighbouring CTAs are decoded together: a page goes to the earliest touch.
                self.new.entry(page).and_modify(|best| *best = touch.min(*best)).or_insert(touch);
            }
        }
    }

    /// The launch at hand has ended: its new pages are placed.
    fn close(&mut self) {
        self.placed.extend(self.new.keys().copied());
        let mut new: Vec<_> = self.new.drain().map(|(page, touch)| (page, touch.module)).collect();
        new.sort_unstable();
        self.touches.extend(new);
    }
}

impl Reader for FirstTouch {
    fn launch(&mut self, launch: Launch) -> bool {
        self.close();
        self.known.insert(launch.kind())
    }

    fn cta(&mut self, module: ModuleId, rank: u32, stream: &CtaStream) {
        self.note(module, rank, (0..).zip(stream.accesses.iter().map(|access| access.line)));
    }
}
