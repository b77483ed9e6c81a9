//! Which module each page is on. Decided before the run from the program's streams in canonical order, so
//! that it is the same for every design, thread count and run.
//!
//! First touch in canonical order: kernels in launch order; within a kernel the modules side by side, each
//! running its CTAs in its own order, ties to the lower module. Migration costs no time (readings: the
//! region of interest excludes it).

use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use tombolo_machine::design::{CtaScheduling, Placement};
use tombolo_machine::{DesignConfig, MachineConfig};
use tombolo_model::controller::Share;
use tombolo_model::page_table::PageTable;
use tombolo_types::stream::{Command, CtaStream, Program, StreamError};
use tombolo_types::{ModuleId, Page};

/// How a design cuts a grid over the modules.
pub fn share(design: &DesignConfig) -> Share {
    match design.cta_scheduling {
        CtaScheduling::Contiguous => Share::Contiguous,
        CtaScheduling::Interleaved => Share::Interleaved,
    }
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
    let modules = machine.topology.modules() as u8;
    let lines_per_page = machine.page_bytes / machine.line.bytes();
    Ok(Arc::new(match design.placement {
        Placement::FirstTouch => {
            let touches = first_touches(share(design), modules, lines_per_page.trailing_zeros(), program)?;
            PageTable::from_first_touch(touches, lines_per_page)
        }
        Placement::InterleavedPage => PageTable::interleaved_by_page(modules, lines_per_page),
        Placement::InterleavedLine => {
            // A directory entry needs one home, so lines go by regions.
            let granule = u64::from(machine.directory.lines_per_entry).min(lines_per_page);
            PageTable::interleaved_by_line(modules, granule, lines_per_page)
        }
    }))
}

fn first_touches(
    share: Share,
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
        // Module by module, for neighbouring CTAs are decoded together: a page goes to the lowest rank.
        let mut new: FxHashMap<Page, (u32, ModuleId)> = FxHashMap::default();
        for module in 0..modules {
            let (first, step, end) = share.of(ctas, u32::from(module), u32::from(modules));
            for (rank, cta) in (first..end).step_by(step as usize).enumerate() {
                program.cta(kernel, cta, &mut stream)?;
                let mut latest = None;
                for access in &stream.accesses {
                    let page = Page(access.line.0 >> page_shift);
                    if latest.replace(page) != Some(page) && !placed.contains(&page) {
                        let touch = (rank as u32, ModuleId(module));
                        new.entry(page).and_modify(|best| *best = touch.min(*best)).or_insert(touch);
                    }
                }
            }
        }
        placed.extend(new.keys().copied());
        let mut new: Vec<(Page, ModuleId)> = new.into_iter().map(|(page, (_, module))| (page, module)).collect();
        new.sort_unstable();
        touches.extend(new);
    }
    Ok(touches)
}
