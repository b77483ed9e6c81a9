//! A multigrid level: boxes with cells, a ghost-cell layer around each box, and the tiles that kernels process.

use crate::prelude::*;

/// Ghost-cell layers around a box. Source: HPGMG-FV, the second-order operator's `stencil_get_radius`.
const GHOSTS: i32 = 1;
/// Padding multiple for planes and boxes, in doubles. Source: HPGMG-FV, `BOX_ALIGN_KSTRIDE`, `BOX_ALIGN_VOLUME`.
const ALIGNMENT: i32 = 8;
/// Alignment, in doubles, for the start of each level in a vector: whole lines on any machine. Source: assumed; in
/// HPGMG-FV each level has a separate allocation.
const LEVEL_ALIGNMENT: i32 = 32;
/// Cells per tile along each axis. Source: hpgmg-cuda, `build.sh` (`BLOCKCOPY_TILE_I`, `_J`, `_K`).
const TILE: [i32; 3] = [32, 4, 8];
/// Ghost cells along each axis that a thread group sets at the border. Source: hpgmg-cuda, `build.sh`
/// (`BOUNDARY_TILE_I`, `_J`, `_K`).
const BORDER_TILE: [i32; 3] = [64, 16, 16];

/// Set of ghost cells that a stencil reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Ghost cells behind a box's faces.
    Faces,
    /// Ghost cells behind faces, edges and corners.
    Box,
}

/// A level's box shape, layout and cell size.
#[derive(Clone, Copy)]
pub(super) struct GridLevel {
    /// Cells per box along each axis, without ghost cells.
    pub(super) sides: [i32; 3],
    /// Boxes along each axis.
    pub(super) boxes: i32,
    /// Elements between neighbours along each axis.
    pub(super) strides: [i32; 3],
    /// Elements per box, including ghost cells and padding.
    volume: i32,
    /// Index for the level's first element in each vector.
    first: i32,
    /// Inverse square of a cell's side length; the finest level's cells have side 1.
    pub(super) scale: f64,
}

/// A tile: part of a box, the work for one CTA.
#[derive(Clone, Copy)]
pub(super) struct BoxTile {
    pub(super) block: i32,
    /// First cell's coordinates in the box.
    pub(super) low: [i32; 3],
    /// Number of cells along each axis.
    pub(super) cells: [i32; 3],
}

/// A copy from cells in a box to ghost cells in another box.
pub(super) struct GhostCopy {
    pub(super) from: i32,
    pub(super) to: i32,
    pub(super) cells: [i32; 3],
}

/// Ghost cells beyond the domain's border, along some axes of a box.
pub(super) struct Border {
    /// Index for the first ghost cell.
    pub(super) first: i32,
    /// Cell counts and strides along the axes inside the domain; a count of 1 if fewer than two axes are inside.
    pub(super) along: [(i32, i32); 2],
    /// Stride to the next cell inwards, for each axis outside the domain.
    pub(super) inwards: Vec<i32>,
}

impl GridLevel {
    /// Builds a level that starts behind `first` elements. A box row's length is a multiple of `align` doubles.
    fn new(sides: [i32; 3], boxes: i32, align: i32, first: i32, scale: f64) -> GridLevel {
        let [x, y, z] = sides.map(|side| side + 2 * GHOSTS);
        let row = (x as u32).next_multiple_of(align as u32);
        let plane = (row * y as u32).next_multiple_of(ALIGNMENT as u32);
        let volume = (plane * z as u32).next_multiple_of(ALIGNMENT as u32) as i32;
        GridLevel { sides, boxes, strides: [1, row as i32, plane as i32], volume, first, scale }
    }

    /// Builds all levels: halves boxes until a level has at most `threshold` cells, or its boxes cannot be halved
    /// again. This level is the last.
    pub(super) fn all(sides: [i32; 3], boxes: i32, align: i32, threshold: i32) -> Vec<GridLevel> {
        let mut levels = vec![GridLevel::new(sides, boxes, align, 0, 1.0)];
        while let Some(level) = levels.last()
            && (levels.len() == 1 || level.cells().count() > threshold)
            && level.sides.iter().all(|side| side % 2 == 0 && *side > 2)
        {
            let halves = level.sides.map(|side| side / 2);
            levels.push(GridLevel::new(halves, boxes, align, level.end(), level.scale / 4.0));
        }
        levels
    }

    /// Total number of boxes.
    fn count(&self) -> i32 {
        self.boxes.pow(3)
    }

    /// All cells in the level, without ghost cells.
    pub(super) fn cells(&self) -> CellGrid {
        let [x, y, z] = self.sides.map(|side| side * self.boxes);
        CellGrid { x, y, z }
    }

    /// Index range for the level's elements in each vector.
    pub(super) fn elements(&self) -> std::ops::Range<u64> {
        self.first as u64..(self.first + self.count() * self.volume) as u64
    }

    /// Index for the next level's first element.
    pub(super) fn end(&self) -> i32 {
        (self.elements().end as u32).next_multiple_of(LEVEL_ALIGNMENT as u32) as i32
    }

    /// Coordinates for a box among the boxes.
    fn place_of(&self, block: i32) -> [i32; 3] {
        CellGrid { x: self.boxes, y: self.boxes, z: self.boxes }.coordinates(block)
    }

    /// Level coordinates for the first cell in a box.
    pub(super) fn low(&self, block: i32) -> [i32; 3] {
        let place = self.place_of(block);
        [0, 1, 2].map(|axis| place[axis] * self.sides[axis])
    }

    /// Index for a cell in a box; ghost cells are at -1 and behind the last cell.
    pub(super) fn index(&self, block: i32, place: [i32; 3]) -> i32 {
        let within: i32 = place.iter().zip(self.strides).map(|(at, stride)| (at + GHOSTS) * stride).sum();
        self.first + block * self.volume + within
    }

    /// Box and place for an element; `None` for padding.
    pub(super) fn cell(&self, index: i32) -> Option<(i32, [i32; 3])> {
        let (block, within) = ((index - self.first) / self.volume, (index - self.first) % self.volume);
        let [_, row, plane] = self.strides;
        let place = [within % plane % row, within % plane / row, within / plane].map(|at| at - GHOSTS);
        let inside = place.iter().zip(self.sides).all(|(at, side)| *at < side + GHOSTS);
        inside.then_some((block, place))
    }

    /// Box that contains a cell in the level, and the cell's place in it.
    pub(super) fn owner(&self, place: [i32; 3]) -> (i32, [i32; 3]) {
        let boxes = CellGrid { x: self.boxes, y: self.boxes, z: self.boxes };
        let block = boxes.index([0, 1, 2].map(|axis| place[axis] / self.sides[axis]));
        (block, [0, 1, 2].map(|axis| place[axis] % self.sides[axis]))
    }

    /// True if a place is an own cell, not a ghost cell.
    pub(super) fn is_own_cell(&self, place: [i32; 3]) -> bool {
        place.iter().zip(self.sides).all(|(at, side)| (0..side).contains(at))
    }

    fn tiles_along(&self) -> [i32; 3] {
        [0, 1, 2].map(|axis| (self.sides[axis] as u32).div_ceil(TILE[axis] as u32) as i32)
    }

    /// Total number of tiles.
    pub(super) fn tiles(&self) -> u64 {
        (self.tiles_along().iter().product::<i32>() * self.count()) as u64
    }

    /// Tile for an index: box by box, x fastest.
    pub(super) fn tile(&self, index: u32) -> BoxTile {
        let [x, y, z] = self.tiles_along();
        let tiles = CellGrid { x, y, z };
        let (block, within) = (index as i32 / tiles.count(), tiles.coordinates(index as i32 % tiles.count()));
        let low = [0, 1, 2].map(|axis| within[axis] * TILE[axis]);
        let cells = [0, 1, 2].map(|axis| (self.sides[axis] - low[axis]).min(TILE[axis]));
        BoxTile { block, low, cells }
    }

    /// Threads per CTA along x and y in the kernels that walk along z.
    pub(super) fn threads(&self) -> [i32; 2] {
        [self.sides[0].min(TILE[0]), TILE[1]]
    }

    /// First ghost cell and ghost-cell count along an axis, in direction -1, 0 or 1.
    fn ghost_range(&self, axis: usize, direction: i32) -> (i32, i32) {
        let side = self.sides[axis];
        [(-GHOSTS, GHOSTS), (0, side), (side, GHOSTS)][(direction + 1) as usize]
    }

    /// Copies that fill ghost cells from neighbouring boxes, ordered by sending box.
    pub(super) fn exchanges(&self, reach: Reach) -> Vec<GhostCopy> {
        let mut exchanges = Vec::new();
        for block in 0..self.count() {
            for direction in directions(reach) {
                let Some(neighbour) = self.neighbour(block, direction) else { continue };
                // The neighbour's ghost cells on the side towards this box.
                let ghosts = [0, 1, 2].map(|axis| self.ghost_range(axis, -direction[axis]));
                let own = [0, 1, 2].map(|axis| ghosts[axis].0 + direction[axis] * self.sides[axis]);
                for (offset, cells) in cut(ghosts.map(|(_, count)| count), TILE) {
                    let moved = |place: [i32; 3]| [0, 1, 2].map(|axis| place[axis] + offset[axis]);
                    exchanges.push(GhostCopy {
                        from: self.index(block, moved(own)),
                        to: self.index(neighbour, moved(ghosts.map(|(first, _)| first))),
                        cells,
                    });
                }
            }
        }
        exchanges
    }

    /// Neighbouring box in a direction; `None` beyond the border.
    fn neighbour(&self, block: i32, direction: [i32; 3]) -> Option<i32> {
        let place = self.place_of(block);
        let place = [0, 1, 2].map(|axis| place[axis] + direction[axis]);
        let inside = place.iter().all(|at| (0..self.boxes).contains(at));
        inside.then(|| CellGrid { x: self.boxes, y: self.boxes, z: self.boxes }.index(place))
    }

    /// Ghost cells set by boundary conditions, box by box.
    pub(super) fn borders(&self, reach: Reach) -> Vec<Border> {
        let mut borders = Vec::new();
        for block in 0..self.count() {
            for direction in directions(reach) {
                let place = self.place_of(block);
                let outside = |axis: usize| !(0..self.boxes).contains(&(place[axis] + direction[axis]));
                if !(0..3).any(outside) {
                    continue;
                }
                let ghosts = [0, 1, 2].map(|axis| self.ghost_range(axis, direction[axis]));
                for (offset, cells) in cut(ghosts.map(|(_, count)| count), BORDER_TILE) {
                    let mut along = (0..3).filter(|axis| !outside(*axis)).map(|axis| (cells[axis], self.strides[axis]));
                    borders.push(Border {
                        first: self.index(block, [0, 1, 2].map(|axis| ghosts[axis].0 + offset[axis])),
                        along: [(); 2].map(|()| along.next().unwrap_or((1, 0))),
                        inwards: (0..3)
                            .filter(|axis| outside(*axis))
                            .map(|a| -direction[a] * self.strides[a])
                            .collect(),
                    });
                }
            }
        }
        borders
    }
}

/// Directions from a box to ghost cells, x fastest.
fn directions(reach: Reach) -> impl Iterator<Item = [i32; 3]> {
    let all = CellGrid { x: 3, y: 3, z: 3 };
    (0..all.count()).map(move |index| all.coordinates(index).map(|at| at - 1)).filter(move |direction| {
        let axes = direction.iter().filter(|step| **step != 0).count();
        axes == 1 || axes > 1 && reach == Reach::Box
    })
}

/// Cuts a block into parts: offset and cell counts per part, x fastest.
fn cut(cells: [i32; 3], tile: [i32; 3]) -> Vec<([i32; 3], [i32; 3])> {
    let [x, y, z] = [0, 1, 2].map(|axis| (cells[axis] as u32).div_ceil(tile[axis] as u32) as i32);
    let parts = CellGrid { x, y, z };
    let part = |index| {
        let place = parts.coordinates(index);
        let offset = [0, 1, 2].map(|axis| place[axis] * tile[axis]);
        (offset, [0, 1, 2].map(|axis| (cells[axis] - offset[axis]).min(tile[axis])))
    };
    (0..parts.count()).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn level() -> GridLevel {
        GridLevel::new([8, 6, 4], 2, 4, 64, 1.0)
    }

    #[test]
    fn an_element_is_the_cell_that_its_index_says() {
        let level = level();
        assert_eq!(level.strides, [1, 12, 96]);
        for place in [[-1, -1, -1], [0, 0, 0], [8, 6, 4], [7, 2, -1]] {
            assert_eq!(level.cell(level.index(5, place)), Some((5, place)));
        }
        // Two padding doubles follow the ghost cell in a row.
        assert_eq!(level.cell(level.index(0, [8, 0, 0]) + 1), None);
        assert_eq!(level.low(5), [8, 0, 4]);
    }

    #[test]
    fn every_ghost_cell_is_filled_once_by_a_neighbour_or_by_the_border() {
        let level = level();
        let mut filled = BTreeSet::new();
        for exchange in level.exchanges(Reach::Box) {
            let [x, y, z] = exchange.cells;
            let [_, row, plane] = level.strides;
            for place in (0..x * y * z).map(|index| CellGrid { x, y, z }.coordinates(index)) {
                let offset = place[0] + place[1] * row + place[2] * plane;
                let ((from, own), (to, ghost)) =
                    (level.cell(exchange.from + offset).unwrap(), level.cell(exchange.to + offset).unwrap());
                let of = |block, place: [i32; 3]| [0, 1, 2].map(|axis| level.low(block)[axis] + place[axis]);
                assert_eq!(of(from, own), of(to, ghost), "a copy moves the value of one cell");
                assert!(level.is_own_cell(own) && !level.is_own_cell(ghost) && filled.insert((to, ghost)));
            }
        }
        for border in level.borders(Reach::Box) {
            let [(across, stride), (rows, far)] = border.along;
            for (row, column) in (0..rows).flat_map(|row| (0..across).map(move |column| (row, column))) {
                let (block, ghost) = level.cell(border.first + column * stride + row * far).unwrap();
                assert!(!level.is_own_cell(ghost) && filled.insert((block, ghost)));
            }
        }
        let ghosts = 10 * 8 * 6 - 8 * 6 * 4;
        assert_eq!(filled.len(), 8 * ghosts);
    }

    #[test]
    fn tiles_and_copies_of_the_default_size_are_those_of_the_cuda_version() {
        let level = GridLevel::new([128; 3], 2, 4, 0, 1.0);
        // A box has 4 × 32 × 16 tiles, and each face shared with another box yields 512, 64 or 128 copies.
        assert_eq!((level.tiles(), level.exchanges(Reach::Faces).len()), (8 * 2048, 8 * (512 + 64 + 128)));
        assert_eq!(level.borders(Reach::Faces).len(), 8 * (64 + 16 + 16));
        let last = level.tile(8 * 2048 - 1);
        assert_eq!((last.block, last.low, last.cells), (7, [96, 124, 120], [32, 4, 8]));
    }

    #[test]
    fn levels_end_below_the_threshold() {
        let sides = |levels: Vec<GridLevel>| levels.iter().map(|level| level.sides[0]).collect::<Vec<_>>();
        assert_eq!(sides(GridLevel::all([128; 3], 2, 4, 10_000)), [128, 64, 32, 16, 8]);
        assert_eq!(sides(GridLevel::all([12; 3], 1, 4, 10_000)), [12, 6]);
        assert_eq!(sides(GridLevel::all([12; 3], 1, 4, 1)), [12, 6, 3]);
    }
}
