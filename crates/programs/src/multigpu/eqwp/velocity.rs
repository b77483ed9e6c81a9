//! The kernels that each update a velocity.

use super::{ACROSS, Ground, LIGHTNESS, PAIRS, REACH, STEP, TILE, ThreadColumn, add_product, slope, slope_in};
use crate::prelude::*;
use std::array::from_fn;

/// Axis whose displacement is recorded.
const KEPT: usize = 1;
/// Stresses in five planes, held in registers.
type StressLine = [Lanes<f32>; 5];

impl Ground {
    /// Updates the velocity along an axis. Stresses along x and y are in tiles, stresses along z are in registers.
    pub(super) fn push(&self, cta: &mut Cta<'_>, axis: usize, forced: bool) {
        let (columns, planes) = self.columns(cta);
        let mut tiles: [Shared<f32>; 2] = from_fn(|_| cta.shared(TILE));
        let mut lines: Vec<StressLine> = Vec::new();
        cta.each_warp(|warp| {
            let column = &columns[warp.index() as usize];
            let mut line = [Lanes::all(0.0); 5];
            warp.when(column.stored, |warp| {
                for (depth, plane) in (1..).zip(planes.start - REACH..planes.start + REACH) {
                    let at = warp.compute(ComputeClass::Int, 1 + ADDRESS, column.cell + plane * self.plane());
                    line[depth] = warp.load(self.stress[PAIRS[axis][2]], at);
                }
            });
            lines.push(line);
        });
        for plane in planes {
            cta.each_warp(|warp| {
                let index = warp.index() as usize;
                let (column, line) = (&columns[index], &mut lines[index]);
                warp.when(column.stored, |warp| self.load_plane(warp, column, (plane, axis), line, &mut tiles));
            });
            cta.barrier();
            cta.each_warp(|warp| {
                let index = warp.index() as usize;
                let (column, line) = (&columns[index], lines[index]);
                warp.when(column.inside, |warp| self.push_plane(warp, column, (plane, axis), (line, &tiles), forced));
            });
            cta.barrier();
        }
    }

    /// Loads the next value along z, and the plane with its borders.
    fn load_plane(
        &self,
        warp: &mut Warp<'_>,
        column: &ThreadColumn,
        (plane, axis): (i32, usize),
        line: &mut StressLine,
        tiles: &mut [Shared<f32>; 2],
    ) {
        let [along_x, along_y, along_z] = PAIRS[axis].map(|pair| self.stress[pair]);
        let at = warp.compute(ComputeClass::Int, 2 + 3 * ADDRESS, column.cell + plane * self.plane());
        line.rotate_left(1);
        line[4] = warp.load(along_z, at + REACH * self.plane());
        let own = [along_x, along_y].map(|field| warp.load(field, at));
        for (axis, (field, tile)) in [along_x, along_y].into_iter().zip(tiles.iter_mut()).enumerate() {
            self.fill_borders(warp, column, at, axis, &mut [(field, tile)]);
        }
        for (tile, value) in tiles.iter_mut().zip(own) {
            warp.store_shared(tile, column.slot, value);
        }
    }

    fn push_plane(
        &self,
        warp: &mut Warp<'_>,
        column: &ThreadColumn,
        (plane, axis): (i32, usize),
        (line, tiles): (StressLine, &[Shared<f32>; 2]),
        forced: bool,
    ) {
        let at = warp.compute(ComputeClass::Int, ADDRESS, column.cell + plane * self.plane());
        let old = warp.load(self.velocity[axis], at);
        let along_x = slope_in(warp, &tiles[0], column.slot, 1);
        let along_y = slope_in(warp, &tiles[1], column.slot, ACROSS);
        let [far_low, low, _, high, far_high] = line;
        let along_z = slope(warp, [far_low, low, high, far_high]);
        let mut sum = warp.compute(ComputeClass::Fp32, 2, along_x + along_y + along_z);
        let (row, _) = self.forced();
        warp.when(column.y.eq(row) & Lanes::all(forced), |warp| {
            let at = (column.x + plane * self.cells.x) * 3 + axis as i32;
            let at = warp.compute(ComputeClass::Int, 2 + ADDRESS, at);
            let force = warp.load(self.force, at);
            let more = warp.compute(ComputeClass::Fp32, 1, sum + force);
            sum = warp.update(sum, more);
        });
        let new = add_product(warp, old, STEP * LIGHTNESS, sum);
        warp.store(self.velocity[axis], at, new);
        if axis == KEPT {
            let at = warp.compute(ComputeClass::Int, ADDRESS, at);
            let old = warp.load(self.displacement, at);
            let new = add_product(warp, old, STEP * STEP * LIGHTNESS, sum);
            warp.store(self.displacement, at, new);
        }
    }
}
