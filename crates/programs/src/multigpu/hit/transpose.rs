//! Transposes: planes in tiles through the scratchpad; and exchanges between x slabs and y slabs.

use super::{RecordResult, Turbulence};
use crate::prelude::*;

/// Tile side, with a thread per value. Source: `THREADSPERBLOCK_IN` in src/turH.h.
pub(super) const TILE: i32 = 16;
/// Row pitch for a tile in the scratchpad, in values, to avoid bank conflicts. Source: src/transpose_kernels.cu.
const PITCH: i32 = TILE + 1;
/// Integer instructions for an index and its bounds. Source: counted.
const INDEX: u16 = 10;

/// Column and row for each lane's thread in a tile.
fn thread(warp: &Warp<'_>) -> [Lanes<i32>; 2] {
    [warp.thread() % TILE, warp.thread() / TILE]
}

impl Turbulence {
    /// Transposes every plane from [x][y][z] to [x][z][y]. If the spectrum comes from y slabs, this kernel reads data
    /// that all GPUs wrote.
    pub(super) fn zyx_to_yzx(&self, host: &mut Host<'_>, from: Array<f32>, to: Array<f32>) -> RecordResult {
        self.planes(host, "zyx-to-yzx", [from, to], [self.mesh.side, self.mesh.half()])
    }

    /// Transposes every plane from [x][z][y] to [x][y][z].
    pub(super) fn yzx_to_zyx(&self, host: &mut Host<'_>, from: Array<f32>, to: Array<f32>) -> RecordResult {
        self.planes(host, "yzx-to-zyx", [from, to], [self.mesh.half(), self.mesh.side])
    }

    /// Transposes planes with `rows` rows and `columns` columns, through tiles in the scratchpad.
    fn planes(
        &self,
        host: &mut Host<'_>,
        name: &str,
        pair: [Array<f32>; 2],
        [rows, columns]: [i32; 2],
    ) -> RecordResult {
        let [from, to] = pair;
        let grid = self.planes.grid(name, (TILE * TILE) as u32).shared_bytes(8 * (TILE * PITCH) as u32);
        host.launch(grid, |cta: &mut Cta<'_>| {
            let tile = self.planes.tile(cta.index());
            let first = tile.items.start as i32 * self.mesh.plane();
            let across = columns.cast_unsigned().div_ceil(TILE as u32) as i32;
            let corner = [tile.across as i32 % across * TILE, tile.across as i32 / across * TILE];
            let mut shared: Shared<f32> = cta.shared(2 * (TILE * PITCH) as usize);
            cta.each_warp(|warp| {
                let [x, y] = thread(warp);
                let (column, row) = (x + corner[0], y + corner[1]);
                let at = warp.compute(ComputeClass::Int, INDEX, row * columns + column + first);
                warp.when(column.lt(columns) & row.lt(rows), |warp| {
                    let value: [_; 2] = warp.load_vector(from, at * 2);
                    warp.store_shared_vector(&mut shared, (y * PITCH + x) * 2, value);
                });
            });
            cta.barrier();
            cta.each_warp(|warp| {
                let [x, y] = thread(warp);
                let (row, column) = (x + corner[1], y + corner[0]);
                let at = warp.compute(ComputeClass::Int, INDEX, column * rows + row + first);
                warp.when(column.lt(columns) & row.lt(rows), |warp| {
                    let value: [_; 2] = warp.load_shared_vector(&shared, (x * PITCH + y) * 2);
                    warp.store_vector(to, at * 2, value);
                });
            });
        })
    }

    /// Converts [x][y][z] to [y][x][z]: a GPU reads, from every x slab, the rows for its own y range.
    pub(super) fn zxy_to_zyx(&self, host: &mut Host<'_>, from: Array<f32>, to: Array<f32>) -> RecordResult {
        self.slabs(host, "zxy-to-zyx", |warp, by_x, by_y| {
            let value: [_; 2] = warp.load_vector(from, by_x);
            warp.store_vector(to, by_y, value);
        })
    }

    /// Converts [y][x][z] to [x][y][z]: a GPU writes the rows for its own y range into every owner's x slab.
    pub(super) fn zyx_to_zxy(&self, host: &mut Host<'_>, from: Array<f32>, to: Array<f32>) -> RecordResult {
        self.slabs(host, "zyx-to-zxy", |warp, by_x, by_y| {
            let value: [_; 2] = warp.load_vector(from, by_y);
            warp.store_vector(to, by_x, value);
        })
    }

    /// Runs `body(warp, index as [x][y][z], index as [y][x][z])`, plane after plane along y.
    fn slabs(
        &self,
        host: &mut Host<'_>,
        name: &str,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>, Lanes<i32>) + Sync,
    ) -> RecordResult {
        let (side, half, plane) = (self.mesh.side, self.mesh.half(), self.mesh.plane());
        host.launch(self.planes.grid(name, (TILE * TILE) as u32), |cta| {
            let tile = self.planes.tile(cta.index());
            let y = tile.items.start as i32;
            let across = half.cast_unsigned().div_ceil(TILE as u32) as i32;
            let corner = [tile.across as i32 % across * TILE, tile.across as i32 / across * TILE];
            cta.each_warp(|warp| {
                let [column, row] = thread(warp);
                let (z, x) = (column + corner[0], row + corner[1]);
                let by_x = warp.compute(ComputeClass::Int, INDEX, (x * plane + z + y * half) * 2);
                let by_y = warp.compute(ComputeClass::Int, 4, (x * half + z + y * plane) * 2);
                warp.when(z.lt(half) & x.lt(side), |warp| body(warp, by_x, by_y));
            });
        })
    }
}
