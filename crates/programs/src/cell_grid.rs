//! A box of cells with a memory order, shared by the benchmarks on structured grids.

use tombolo_workload::prelude::*;

/// A box of cells, with x varying fastest in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellGrid {
    /// Number of cells along x.
    pub(crate) x: i32,
    /// Number of cells along y.
    pub(crate) y: i32,
    /// Number of cells along z.
    pub(crate) z: i32,
}

impl CellGrid {
    /// Total number of cells.
    pub(crate) fn count(self) -> i32 {
        self.x * self.y * self.z
    }

    /// Cell index for the given coordinates.
    pub(crate) fn index(self, [x, y, z]: [i32; 3]) -> i32 {
        (z * self.y + y) * self.x + x
    }

    /// Cell coordinates for the given index.
    pub(crate) fn coordinates(self, index: i32) -> [i32; 3] {
        [index % self.x, index / self.x % self.y, index / self.x / self.y]
    }

    /// Cell coordinates in each lane: two divisions by launch constants.
    pub(crate) fn lane_coordinates(self, warp: &mut Warp<'_>, index: Lanes<i32>) -> [Lanes<i32>; 3] {
        let row = index / self.x;
        let place = [index - row * self.x, row % self.y, row / self.y];
        warp.compute(ComputeClass::Int, 8, place)
    }

    /// Cell index in each lane.
    pub(crate) fn indices(self, warp: &mut Warp<'_>, [x, y, z]: [Lanes<i32>; 3]) -> Lanes<i32> {
        warp.compute(ComputeClass::Int, 2, (z * self.y + y) * self.x + x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_where_its_index_says() {
        let cells = CellGrid { x: 3, y: 4, z: 5 };
        assert!((0..cells.count()).all(|index| cells.index(cells.coordinates(index)) == index));
        assert_eq!(cells.coordinates(13), [1, 0, 1]);
    }
}
