//! What lines hold while exploring: the values of the one or two locations that lie on them.

use crate::litmus::{Update, Value};
use tombolo_protocol::Data;
use tombolo_types::Mask;

/// Locations that one line can hold.
pub(super) const CELLS: usize = 2;

/// The mask of all cells of a line.
pub(super) const WHOLE_LINE: Mask = Mask((1 << CELLS) - 1);

/// The contents of a line: cell `i` is the location at bit `i` of a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Values(pub(super) [Value; CELLS]);

/// The cells that a mask names.
pub(super) fn cells(mask: Mask) -> impl Iterator<Item = usize> {
    (0..CELLS).filter(move |&cell| mask.0 >> cell & 1 != 0)
}

/// The mask of one cell.
pub(super) fn mask_of(cell: u8) -> Mask {
    Mask(1 << cell)
}

impl Data for Values {
    /// Its operands are constants: the thread that issues an atomic fills in its registers.
    type Update = Update;

    fn merge(&mut self, from: Values, mask: Mask) {
        for cell in cells(mask) {
            self.0[cell] = from.0[cell];
        }
    }

    fn update(&mut self, update: Update, mask: Mask) -> Values {
        let before = *self;
        for cell in cells(mask) {
            self.0[cell] = update.apply(self.0[cell], &[]);
        }
        before
    }
}
