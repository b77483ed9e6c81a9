//! Which module each page is on. Decided before the run from the program's streams in canonical order, so
//! that it is the same for every design, thread count and run.
//!
//! First touch in canonical order: kernels in launch order; within a kernel the modules side by side, each
//! running its CTAs in its own order, their accesses side by side too. A page that several modules reach at the
//! same place goes to one of them by a hash of the page: who wins a race between equals is nobody's habit, and a
//! fixed winner would be home to everything that all share. Migration costs no time (readings: the
//! region of interest excludes it).

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tombolo_design::scheduling::CtaCut;
use tombolo_design::{DesignConfig, Placement};
use tombolo_machine::MachineConfig;
use tombolo_model::page_table::PageTable;
use tombolo_types::stream::{Command, CtaStream, Program, StreamError};
use tombolo_types::{ModuleId, Page};

/// Places the pages of a program on a machine as a design says.
///
/// # Errors
/// The recording is damaged.
pub fn place(
    machine: &MachineConfig,
    design: &DesignConfig,
    program: &dyn Program,
) -> Result<Arc<PageTable>, StreamError> {
    let modules = machine.topology.modules() as u8;
    let lines_per_page = machine.page_bytes / machine.line.bytes();
    Ok(Arc::new(match design.placement {
        Placement::FirstTouch(_) => {
            let touches = first_touches(design.scheduling.cut(), modules, lines_per_page.trailing_zeros(), program)?;
            PageTable::from_first_touch(touches, lines_per_page)
        }
        Placement::InterleavedPage(_) => PageTable::interleaved_by_page(modules, lines_per_page),
        Placement::InterleavedLine(_) => {
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

fn first_touches(
    share: CtaCut,
    modules: u8,
    page_shift: u32,
    program: &dyn Program,
) -> Result<Vec<(Page, ModuleId)>, StreamError> {
    let mut placed = FxHashSet::default();
    let mut touches = Vec::new();
    let mut stream = CtaStream::default();
    for command in program.commands() {
        let Command::Launch { kernel, .. } = *command else { continue };
        let ctas = program.kernels()[kernel as usize].ctas;
        // Module by module, for neighbouring CTAs are decoded together: a page goes to the earliest touch.
        let mut new: FxHashMap<Page, Touch> = FxHashMap::default();
        for module in 0..modules {
            let (first, step, end) = share.of(ctas, u32::from(module), u32::from(modules));
            for (rank, cta) in (first..end).step_by(step as usize).enumerate() {
                program.cta(kernel, cta, &mut stream)?;
                let mut latest = None;
                for (place, access) in stream.accesses.iter().enumerate() {
                    let page = Page(access.line.0 >> page_shift);
                    if latest.replace(page) != Some(page) && !placed.contains(&page) {
                        let turn = turn(page, module, modules);
                        let touch = Touch { rank: rank as u32, place: place as u32, turn, module: ModuleId(module) };
                        new.entry(page).and_modify(|best| *best = touch.min(*best)).or_insert(touch);
                    }
                }
            }
        }
        placed.extend(new.keys().copied());
        let mut new: Vec<(Page, ModuleId)> = new.into_iter().map(|(page, touch)| (page, touch.module)).collect();
        new.sort_unstable();
        touches.extend(new);
    }
    Ok(touches)
}
