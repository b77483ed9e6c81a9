//! Lines that carry the values of a litmus test's locations.

use crate::observer::Observer;
use std::sync::Arc;
use tombolo_check::litmus::{Operand, Update, Value};
use tombolo_model::latency::Noted;
use tombolo_model::watch::Contents;
use tombolo_protocol::Data;
use tombolo_types::Mask;

/// Locations that one line can hold.
pub const CELLS: usize = 4;

/// The grain of each cell: two in the first sector of 32 bytes, one in each of the next two.
const GRAINS: [u32; CELLS] = [0, 1, 9, 17];

/// A place in a line for one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell(pub u8);

impl Cell {
    /// Its bytes.
    pub fn mask(self) -> Mask {
        Mask(1 << GRAINS[usize::from(self.0)])
    }

    /// The only cell of `mask`, if it names one.
    fn of(mask: Mask) -> Option<Cell> {
        (0..CELLS as u8).map(Cell).find(|cell| cell.mask() == mask)
    }
}

/// Bytes of every line that no location is in.
pub const UNUSED: Mask = Mask(1 << 31);

/// By cell: how much a location's value differs from its initial one, so that memory nobody has written is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Values([Value; CELLS]);

impl Values {
    /// `value` in every cell, where the locations began with `initial`.
    pub fn of(value: Value, initial: Value) -> Values {
        Values([value.wrapping_sub(initial); CELLS])
    }

    /// The value of the location in `cell`, which began with `initial`.
    pub fn value(&self, cell: Cell, initial: Value) -> Value {
        self.0[usize::from(cell.0)].wrapping_add(initial)
    }
}

/// What an atomic does to its location. All operands are constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// What becomes of the old value.
    pub update: Update,
    /// What the location began with.
    pub initial: Value,
}

impl Data for Values {
    type Update = Change;

    fn merge(&mut self, from: Values, mask: Mask) {
        for (cell, grain) in GRAINS.into_iter().enumerate() {
            if mask.0 >> grain & 1 != 0 {
                self.0[cell] = from.0[cell];
            }
        }
    }

    fn update(&mut self, change: Change, mask: Mask) -> Values {
        let before = *self;
        if let Some(cell) = Cell::of(mask) {
            let new = change.update.apply(self.value(cell, change.initial), &[]);
            self.0[usize::from(cell.0)] = new.wrapping_sub(change.initial);
        }
        before
    }
}

impl Contents for Values {
    type Note<T: Noted> = ();
    type Watch = Arc<Observer>;

    fn exchange(self, mask: Mask) -> Change {
        // Cells hold what they differ by from what was there first.
        let value = Cell::of(mask).map_or(0, |cell| self.value(cell, 0));
        Change { update: Update::Exchange(Operand::Value(value)), initial: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_check::litmus::{Arithmetic, Operand};

    #[test]
    fn a_merge_takes_the_cells_of_its_mask_alone() {
        let mut values = Values::of(1, 0);
        values.merge(Values::of(2, 0), Mask(0xff));
        assert_eq!([0, 1, 2, 3].map(|cell| values.value(Cell(cell), 0)), [2, 2, 1, 1]);
    }

    #[test]
    fn an_update_changes_its_cell_from_the_initial_value_on() {
        let mut values = Values::default();
        let change = Change { update: Update::Apply(Arithmetic::Add, Operand::Value(3)), initial: 7 };
        let before = values.update(change, Cell(2).mask());
        assert_eq!((before.value(Cell(2), 7), values.value(Cell(2), 7)), (7, 10));
        assert_eq!(values.value(Cell(1), 7), 7);
    }

    #[test]
    fn an_update_of_unused_bytes_changes_no_cell() {
        let mut values = Values::of(5, 0);
        values.update(Change::default(), UNUSED);
        assert_eq!(values, Values::of(5, 0));
    }
}
