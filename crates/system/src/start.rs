//! Contents of TLBs and L2s at the start of a program, if the machine requests warm ones (`tlb.start`, `host.copies`).

use crate::placement::touched;
use crate::run::{RunError, RunSpec};
use tombolo_design::Placement;
use tombolo_design::placement::Movement;
use tombolo_machine::machine::{HostCopies, TlbStart};
use tombolo_model::front_end::PageTable;
use tombolo_model::l2::L2Design;
use tombolo_model::module::Module;
use tombolo_model::observe::Contents;
use tombolo_types::stream::{Command, Program, StreamError};
use tombolo_types::{Line, LineSize, Mask, ModuleId, Page, Tracks};

/// Checks that the design supports the machine's warm start.
pub(crate) fn check(spec: &RunSpec) -> Result<(), RunError> {
    let (machine, design) = (&spec.machine, &spec.design);
    let refused = |key: &str, why: &str| {
        Err(RunError::DoesNotFit(format!("{key} of machine {}, design {}: {why}", machine.name, design.name)))
    };
    let sharing = design.placement.sharing();
    if machine.tlb.start == TlbStart::Warm && sharing.moves() {
        return refused("tlb.start = \"warm\"", "no TLB holds a page before the driver has mapped it");
    }
    if machine.host.copies == HostCopies::Past {
        return Ok(());
    }
    let key = "host.copies = \"l2\"";
    let is_placed = matches!(
        design.placement,
        Placement::FirstTouch(_) | Placement::InterleavedLine(_) | Placement::InterleavedPage(_)
    );
    if sharing.movement != Movement::Placed || !is_placed {
        return refused(key, "pages are not in the memory of one module of a GPU from the start");
    }
    if machine.directory.tracks == Tracks::All {
        return refused(key, "directory.tracks = \"all\" has an entry for each line of an L2, and copies make none");
    }
    Ok(())
}

/// Fills the TLBs and the L2s in `modules`, which are idle at time zero. `pages`: the homes of the program's pages.
///
/// # Errors
/// The recording is damaged.
pub(crate) fn fill<C: L2Design<D>, D: Contents>(
    spec: &RunSpec,
    pages: &PageTable,
    modules: &mut [Module<C, D>],
) -> Result<(), StreamError> {
    if spec.machine.tlb.start == TlbStart::Warm {
        let held = array_pages(spec)?;
        modules.iter_mut().for_each(|module| module.warm_tlbs(&held));
    }
    if spec.machine.host.copies == HostCopies::L2 {
        for (line, mask) in copied(&*spec.program) {
            if let Some(home) = pages.home(ModuleId(0), line) {
                modules[usize::from(home.0)].warm_l2(line, mask);
            }
        }
    }
    Ok(())
}

/// Pages in the program's arrays, ascending; without arrays, the pages accessed by kernels.
fn array_pages(spec: &RunSpec) -> Result<Vec<Page>, StreamError> {
    let size = spec.machine.page_bytes;
    let arrays = spec.program.arrays().iter().filter(|array| array.bytes > 0);
    let mut pages: Vec<Page> =
        arrays.flat_map(|array| array.base / size..=(array.base + array.bytes - 1) / size).map(Page).collect();
    if pages.is_empty() {
        pages = touched(&spec.machine, &spec.design, &*spec.program)?;
    }
    pages.sort_unstable();
    pages.dedup();
    Ok(pages)
}

/// Lines copied to a device before the first launch, each with its copied bytes, in copy order.
fn copied(program: &dyn Program) -> impl Iterator<Item = (Line, Mask)> + '_ {
    let before = program.commands().iter().take_while(|command| command.kernel().is_none());
    let copies = before.filter_map(|command| match *command {
        Command::Copy { address, bytes, to_device: true } if bytes > 0 => Some((address, address + bytes)),
        Command::Copy { .. } | Command::Launch { .. } | Command::Host { .. } | Command::Barrier => None,
    });
    let size = program.line_size();
    copies.flat_map(move |(start, end)| {
        let lines = start / size.bytes()..=(end - 1) / size.bytes();
        lines.map(move |line| (Line(line), copied_mask(line * size.bytes(), (start, end), size)))
    })
}

/// Mask for the bytes between two addresses within the line at `line`, in whole grains.
fn copied_mask(line: u64, (start, end): (u64, u64), size: LineSize) -> Mask {
    let first = start.saturating_sub(line) / size.grain();
    let last = ((end - line).min(size.bytes()) - 1) / size.grain();
    Mask(u32::MAX >> (31 - (last - first)) << first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directed::DirectedProgram;

    #[test]
    fn copies_before_the_first_launch_name_their_bytes_in_order() {
        let copy = |address, bytes, to_device| Command::Copy { address, bytes, to_device };
        let program = DirectedProgram::new(vec![Vec::new()]).with_commands(vec![
            copy(256, 128, true),
            copy(0, 256, false),
            copy(120, 12, true),
            copy(640, 0, true),
            Command::launch(0, 0),
            copy(512, 128, true),
        ]);
        let found: Vec<(u64, u32)> = copied(&*program).map(|(line, mask)| (line.0, mask.0)).collect();
        assert_eq!(found, [(2, u32::MAX), (0, 0xc000_0000), (1, 1)]);
    }
}
