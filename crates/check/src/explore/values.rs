//! Line contents during exploration: the values of one or two locations per line. Programs with more locations use more
//! lines.

use crate::litmus::{Update, Value};
use tombolo_protocol::Data;
use tombolo_types::Mask;

/// Maximum number of locations on a line.
pub(super) const CELLS: usize = 2;

/// The mask of all cells on a line.
pub(super) const WHOLE_LINE: Mask = Mask((1 << CELLS) - 1);

/// The contents of `N` locations: cell `i` corresponds to bit `i` of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cells<const N: usize>(pub(super) [Value; N]);

/// The contents of a line.
pub(super) type Values = Cells<CELLS>;

impl<const N: usize> Default for Cells<N> {
    fn default() -> Cells<N> {
        Cells([0; N])
    }
}

/// The cells on a line selected by a mask.
pub(super) fn cells(mask: Mask) -> impl Iterator<Item = usize> {
    named::<CELLS>(mask)
}

/// The cells among `N` selected by a mask.
fn named<const N: usize>(mask: Mask) -> impl Iterator<Item = usize> {
    (0..N).filter(move |&cell| mask.0 >> cell & 1 != 0)
}

/// The mask of a single cell.
pub(super) fn mask_of(cell: u8) -> Mask {
    Mask(1 << cell)
}

impl<const N: usize> Data for Cells<N> {
    /// Update operands are constants: the issuing thread substitutes register values for an atomic.
    type Update = Update;

    fn merge(&mut self, from: Cells<N>, mask: Mask) {
        for cell in named::<N>(mask) {
            self.0[cell] = from.0[cell];
        }
    }

    fn update(&mut self, update: Update, mask: Mask) -> Cells<N> {
        let before = *self;
        for cell in named::<N>(mask) {
            self.0[cell] = update.apply(self.0[cell], &[]);
        }
        before
    }
}
