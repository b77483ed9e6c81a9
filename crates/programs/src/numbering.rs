//! Numbering for a mesh's elements and nodes, which decides the data's location.

use super::cell_grid::CellGrid;
use tombolo_workload::prelude::*;

/// Bin side length in cells. Source: assumed: Corrigan et al., AIAA 2009-4001, number Rodinia's meshes by bins and do
/// not state their size.
const BIN: i32 = 4;

/// Numbers for the items in a box of cells. An item's place is the cell index times the number of items per cell, plus
/// the item's index within the cell.
pub(crate) enum Numbering {
    /// Each place equals its number.
    Regular,
    /// Numbers are given by a list.
    Listed {
        /// Place of each number.
        places: Vec<i32>,
        /// Number of each place.
        numbers: Vec<i32>,
    },
}

impl Numbering {
    /// Numbers the `each` items of every cell bin by bin, in random order within a bin, like a generator for
    /// unstructured meshes.
    pub(crate) fn binned(cells: CellGrid, each: i32, seed: u64) -> Numbering {
        let [x, y, z] = [cells.x, cells.y, cells.z].map(|side| (side + BIN - 1) / BIN);
        let bins = CellGrid { x, y, z };
        let bin = |place: i32| bins.index(cells.coordinates(place / each).map(|at| at / BIN));
        Numbering::by(cells.count() * each, |place| (bin(place), noise::noise(seed, place as u64)))
    }

    /// Numbers cells in shells around the first cell: a shell has all cells at equal distance along their farthest
    /// axis. A shell begins with its face of greatest z, in L-shaped rows around x = y = 0, then descends by an
    /// L-shaped row for each z.
    pub(crate) fn shells(cells: CellGrid) -> Numbering {
        Numbering::by(cells.count(), |place| {
            let [x, y, z] = cells.coordinates(place);
            let row = x.max(y);
            (row.max(z), -z, row, y + row - x)
        })
    }

    /// Numbers `count` places in ascending key order.
    fn by<K: Ord>(count: i32, mut key: impl FnMut(i32) -> K) -> Numbering {
        let mut places: Vec<i32> = (0..count).collect();
        places.sort_by_cached_key(|place| key(*place));
        let mut numbers = vec![0; places.len()];
        (0..).zip(&places).for_each(|(number, place)| numbers[*place as usize] = number);
        Numbering::Listed { places, numbers }
    }

    /// The place of a number.
    pub(crate) fn place(&self, number: i32) -> i32 {
        match self {
            Numbering::Regular => number,
            Numbering::Listed { places, .. } => places[number as usize],
        }
    }

    /// The number of a place.
    pub(crate) fn number(&self, place: i32) -> i32 {
        match self {
            Numbering::Regular => place,
            Numbering::Listed { numbers, .. } => numbers[place as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_numbered_one_after_the_other_and_mixed_within() {
        let cells = CellGrid { x: 5, y: 4, z: 8 };
        let numbering = Numbering::binned(cells, 2, 7);
        let places: Vec<i32> = (0..2 * cells.count()).map(|number| numbering.place(number)).collect();
        assert!((0..).zip(&places).all(|(number, place)| numbering.number(*place) == number));
        // The first bin holds 4 × 4 × 4 cells with two items each, the second 1 × 4 × 4.
        let first_bin = |place: &i32| cells.coordinates(place / 2).iter().all(|at| *at < 4);
        assert!(places[..128].iter().all(first_bin) && !places[128..].iter().any(first_bin));
        assert!(places[..128].windows(2).any(|pair| pair[0] > pair[1]));
    }

    #[test]
    fn shells_lie_around_the_first_cell() {
        let cells = CellGrid { x: 3, y: 3, z: 3 };
        let numbering = Numbering::shells(cells);
        let cell = |number| cells.coordinates(numbering.place(number));
        let first: Vec<_> = (0..8).map(cell).collect();
        let shell = [[0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0], [0, 1, 0]];
        assert_eq!((first[0], &first[1..]), ([0, 0, 0], &shell[..]));
        assert!((8..27).map(cell).all(|cell| cell.contains(&2)));
    }
}
