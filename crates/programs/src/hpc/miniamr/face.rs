//! A block's face: its entry in the neighbour list, and its ghost cells.

use super::octree::{BlockPosition, Neighbour, others};
use crate::prelude::*;

/// Neighbour kinds, stored in the top bits of a face's first word. The bits below hold the part of the coarser block.
const SAME: u32 = 0;
pub(super) const BORDER: u32 = 1;
pub(super) const COARSER: u32 = 2;
pub(super) const FINER: u32 = 3;
pub(super) const KIND: u32 = 30;
pub(super) const PART: u32 = 28;

/// A ghost cell in each lane.
pub(super) struct GhostCells {
    /// Axis across the ghost cell's face.
    pub(super) axis: usize,
    /// Variable that contains the ghost cell.
    pub(super) variable: i32,
    /// Block slot that contains the ghost cell.
    pub(super) slot: Lanes<u32>,
    /// True for the low face.
    pub(super) low: Lanes<bool>,
    /// Coordinates in the face along the two other axes.
    pub(super) at: [Lanes<i32>; 2],
    /// The face's entry in the neighbour list.
    pub(super) words: [Lanes<u32>; 4],
}

impl GhostCells {
    /// Padded coordinates for a cell at `along` on the ghost's axis and `[u, v]` on the other axes.
    pub(super) fn place(&self, along: Lanes<i32>, [u, v]: [Lanes<i32>; 2]) -> [Lanes<i32>; 3] {
        let [first, second] = others(self.axis);
        let mut place = [Lanes::all(0); 3];
        (place[self.axis], place[first], place[second]) = (along, u + 1, v + 1);
        place
    }
}

/// Slot stored in a face's first word.
pub(super) fn slot_of(word: Lanes<u32>) -> Lanes<u32> {
    word.map(|word| word & ((1 << PART) - 1))
}

/// Encodes a face's entry in the neighbour list.
pub(super) fn words(place: BlockPosition, face: usize, neighbour: Neighbour) -> [u32; 4] {
    match neighbour {
        Neighbour::Border => [BORDER << KIND, 0, 0, 0],
        Neighbour::Same(slot) => [SAME << KIND | slot, 0, 0, 0],
        Neighbour::Coarser(slot) => {
            let [first, second] = others(face / 2).map(|axis| (place.along(axis) & 1) as u32);
            [COARSER << KIND | second << (PART + 1) | first << PART | slot, 0, 0, 0]
        }
        Neighbour::Finer([first, rest @ ..]) => [FINER << KIND | first, rest[0], rest[1], rest[2]],
    }
}
