//! Decides each page's home module. The decision is made before the run, from the program's streams in canonical order,
//! so that it is equal for every design, thread count and run.
//!
//! First touch places each page on the first module to touch the page: `first_touch`. Migration costs no time
//! (readings: the region of interest excludes migration).

mod copied;
mod first_touch;
mod logical_time;

pub use first_touch::{FirstTouch, TouchOrder};

use crate::movement::MovementWalk;
use crate::survey::{Reader, survey};
use crate::uses::UseFinder;
use std::sync::Arc;
use tombolo_design::placement::{CopiedFromHost, Inputs, Ranges, UnifiedMemory};
use tombolo_design::scheduling::MachineShape;
use tombolo_design::{DesignConfig, Placement};
use tombolo_machine::MachineConfig;
use tombolo_model::front_end::PageTable;
use tombolo_types::stream::{Program, StreamError};
use tombolo_types::{ModuleId, Page};

/// Pages that the kernels of a program access, ascending.
///
/// # Errors
/// The recording is damaged.
pub(crate) fn touched(
    machine: &MachineConfig,
    design: &DesignConfig,
    program: &dyn Program,
) -> Result<Vec<Page>, StreamError> {
    let mut first = FirstTouch::new(TouchOrder::of(machine, design, program));
    survey(program, design.scheduling.cut(machine), MachineShape::of(machine), &mut [&mut first])?;
    let mut pages: Vec<Page> = first.touches().into_iter().map(|(page, _)| page).collect();
    pages.sort_unstable();
    Ok(pages)
}

/// Places a program's pages on a machine according to the design.
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

/// Like [`place`], with additional `readers` in the same walk over the streams.
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
    let shape = MachineShape::of(machine);
    let order = || TouchOrder::of(machine, design, program);
    let walk = |readers: &mut [&mut dyn Reader]| survey(program, design.scheduling.cut(machine), shape, readers);
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
        | Placement::PublishedPages(_) => {
            let mut first = FirstTouch::new(order());
            beside(&mut first, readers)?;
            first.pages()
        }
        Placement::UnifiedMemoryHints(_) => {
            let mut moved = MovementWalk::new(order());
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
            let mut first = FirstTouch::new(order());
            let mut uses = (inputs == Inputs::Replicated).then(|| UseFinder::new(program, modules));
            let mut all: Vec<&mut dyn Reader> = vec![&mut first];
            all.extend(uses.as_mut().map(|uses| uses as &mut dyn Reader));
            readers.iter_mut().for_each(|reader| all.push(&mut **reader));
            walk(&mut all)?;
            let copied = copied::CopiedPlacement { program, modules, lines_per_page, ranges };
            copied.pages(first.touches(), uses.map(UseFinder::finish))
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
