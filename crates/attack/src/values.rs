//! Lines with the values for a litmus test's locations.

use crate::observer::Observer;
use std::sync::Arc;
use tombolo_check::litmus::{Operand, Update, Value};
use tombolo_model::observe::{Contents, NoteValue};
use tombolo_protocol::Data;
use tombolo_protocol::registry::ProtocolFamily;
use tombolo_system::run::register_contents;
use tombolo_types::Mask;

/// Maximum number of locations on a line.
pub const CELLS: usize = 4;

/// The grain of each cell: two in the first 32-byte sector, one in each of the next two.
const GRAINS: [u32; CELLS] = [0, 1, 9, 17];

/// Position within a line for a single location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCell(pub u8);

impl LineCell {
    /// Bytes of the cell.
    pub fn mask(self) -> Mask {
        Mask(1 << GRAINS[usize::from(self.0)])
    }

    /// The only cell in `mask`, if the mask selects exactly one.
    fn of(mask: Mask) -> Option<LineCell> {
        (0..CELLS as u8).map(LineCell).find(|cell| cell.mask() == mask)
    }
}

/// Bytes in every line that belong to no location.
pub const UNUSED: Mask = Mask(1 << 31);

/// By cell: difference between a location's value and its initial value, to make unwritten memory correct by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CellOffsets([Value; CELLS]);

impl CellOffsets {
    /// Contents with `value` in every cell, for locations with initial value `initial`.
    pub fn of(value: Value, initial: Value) -> CellOffsets {
        CellOffsets([value.wrapping_sub(initial); CELLS])
    }

    /// Value of the location in `cell`, given the initial value `initial`.
    pub fn value(&self, cell: LineCell, initial: Value) -> Value {
        self.0[usize::from(cell.0)].wrapping_add(initial)
    }
}

/// Update of a location by an atomic. All operands are constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtomicUpdate {
    /// Function applied to the old value.
    pub update: Update,
    /// Initial value of the location.
    pub initial: Value,
}

impl Data for CellOffsets {
    type Update = AtomicUpdate;

    fn merge(&mut self, from: CellOffsets, mask: Mask) {
        for (cell, grain) in GRAINS.into_iter().enumerate() {
            if mask.0 >> grain & 1 != 0 {
                self.0[cell] = from.0[cell];
            }
        }
    }

    fn update(&mut self, change: AtomicUpdate, mask: Mask) -> CellOffsets {
        let before = *self;
        if let Some(cell) = LineCell::of(mask) {
            let new = change.update.apply(self.value(cell, change.initial), &[]);
            self.0[usize::from(cell.0)] = new.wrapping_sub(change.initial);
        }
        before
    }
}

/// Compiles the attacked simulator for the registered protocol called `name`.
pub fn register<F: ProtocolFamily>(name: &'static str) {
    register_contents::<F, CellOffsets>(name);
}

impl Contents for CellOffsets {
    type Note<T: NoteValue> = ();
    type Probe = Arc<Observer>;

    fn exchange(self, mask: Mask) -> AtomicUpdate {
        // Cells store the difference from the initial contents.
        let value = LineCell::of(mask).map_or(0, |cell| self.value(cell, 0));
        AtomicUpdate { update: Update::Exchange(Operand::Value(value)), initial: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_check::litmus::{Arithmetic, Operand};

    #[test]
    fn a_merge_takes_the_cells_of_its_mask_alone() {
        let mut values = CellOffsets::of(1, 0);
        values.merge(CellOffsets::of(2, 0), Mask(0xff));
        assert_eq!([0, 1, 2, 3].map(|cell| values.value(LineCell(cell), 0)), [2, 2, 1, 1]);
    }

    #[test]
    fn an_update_changes_its_cell_from_the_initial_value_on() {
        let mut values = CellOffsets::default();
        let change = AtomicUpdate { update: Update::Apply(Arithmetic::Add, Operand::Value(3)), initial: 7 };
        let before = values.update(change, LineCell(2).mask());
        assert_eq!((before.value(LineCell(2), 7), values.value(LineCell(2), 7)), (7, 10));
        assert_eq!(values.value(LineCell(1), 7), 7);
    }

    #[test]
    fn an_update_of_unused_bytes_changes_no_cell() {
        let mut values = CellOffsets::of(5, 0);
        values.update(AtomicUpdate::default(), UNUSED);
        assert_eq!(values, CellOffsets::of(5, 0));
    }
}
