//! A single row in the table: possible L2 contents per module for a structure.

use super::Touch;
use crate::elision::{LineRange, LineSet, StructureState};
use tombolo_types::ModuleId;

/// Possible contents of a module's L2 for a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TableCell {
    pub(super) state: StructureState,
    /// Empty if the state is [`StructureState::NotPresent`].
    pub(super) lines: LineSet,
}

/// A single structure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct TableRow {
    pub(super) structure: LineRange,
    /// Cells, indexed by module.
    pub(super) cells: Vec<TableCell>,
}

impl TableRow {
    pub(super) fn new(structure: LineRange, modules: u8) -> TableRow {
        TableRow { structure, cells: vec![TableCell::default(); usize::from(modules)] }
    }

    pub(super) fn cell(&self, module: ModuleId) -> &TableCell {
        &self.cells[usize::from(module.0)]
    }

    pub(super) fn entries(&self) -> usize {
        self.cells.iter().map(|cell| cell.lines.ranges().len()).max().unwrap_or(0).max(1)
    }

    /// True if the touch affects this row's structure.
    pub(super) fn has(&self, touch: &Touch) -> bool {
        self.structure.overlaps(touch.structure)
    }

    /// This row's lines used by a launch on the module.
    pub(super) fn local(&self, touches: &[Touch], module: ModuleId) -> LineSet {
        let mut lines = LineSet::default();
        let local = touches.iter().filter(|touch| touch.is_local(module) && self.has(touch));
        local.for_each(|touch| lines.add(&touch.lines));
        lines
    }

    /// Merges another row into this row.
    pub(super) fn absorb(&mut self, other: TableRow) {
        self.structure = self.structure.hull(other.structure);
        for (cell, other) in self.cells.iter_mut().zip(other.cells) {
            cell.state = cell.state.joined(other.state);
            cell.lines.add(&other.lines);
        }
    }
}
