//! The kernel that updates all six stresses from velocity slopes.

use super::{
    ACROSS, Ground, LAME, PAIRS, REACH, STEP, TILE, ThreadColumn, account_doubles, add_product, slope, slope_in,
};
use crate::prelude::*;
use std::array::from_fn;

/// Velocity tiles in five planes: the middle tile has borders.
type VelocityPlanes = [Shared<f32>; 5];
/// Index for the plane whose stresses are updated.
const MIDDLE: usize = 2;

impl Ground {
    pub(super) fn strain(&self, cta: &mut Cta<'_>) {
        let (columns, planes) = self.columns(cta);
        let mut tiles: [VelocityPlanes; 3] = from_fn(|_| from_fn(|_| cta.shared(TILE)));
        cta.each_warp(|warp| {
            let column = &columns[warp.index() as usize];
            warp.when(column.stored, |warp| {
                for (depth, plane) in (1..).zip(planes.start - REACH..planes.start + REACH) {
                    let at = warp.compute(ComputeClass::Int, 1 + 3 * ADDRESS, column.cell + plane * self.plane());
                    let values = self.velocity.map(|field| warp.load(field, at));
                    for (tiles, value) in tiles.iter_mut().zip(values) {
                        warp.store_shared(&mut tiles[depth], column.slot, value);
                    }
                }
            });
        });
        for plane in planes {
            cta.each_warp(|warp| {
                let column = &columns[warp.index() as usize];
                warp.when(column.stored, |warp| self.advance(warp, column, plane, &mut tiles));
            });
            cta.barrier();
            cta.each_warp(|warp| {
                let column = &columns[warp.index() as usize];
                warp.when(column.inside, |warp| self.strain_plane(warp, column, plane, &tiles));
            });
            cta.barrier();
        }
    }

    /// Shifts every plane in the tiles back by one, and loads the plane in front and the borders.
    fn advance(&self, warp: &mut Warp<'_>, column: &ThreadColumn, plane: i32, tiles: &mut [VelocityPlanes; 3]) {
        let at = warp.compute(ComputeClass::Int, 2 + 3 * ADDRESS, column.cell + plane * self.plane());
        let front = self.velocity.map(|field| warp.load(field, at + REACH * self.plane()));
        for (tiles, value) in tiles.iter_mut().zip(front) {
            for depth in 1..tiles.len() {
                let moved = warp.load_shared(&tiles[depth], column.slot);
                warp.store_shared(&mut tiles[depth - 1], column.slot, moved);
            }
            warp.store_shared(&mut tiles[4], column.slot, value);
        }
        let middle = tiles.iter_mut().map(|tiles| &mut tiles[MIDDLE]);
        let mut fields: Vec<_> = self.velocity.into_iter().zip(middle).collect();
        for axis in [0, 1] {
            self.fill_borders(warp, column, at, axis, &mut fields);
        }
    }

    fn strain_plane(&self, warp: &mut Warp<'_>, column: &ThreadColumn, plane: i32, tiles: &[VelocityPlanes; 3]) {
        let at = warp.compute(ComputeClass::Int, 6 * ADDRESS, column.cell + plane * self.plane());
        let old = self.stress.map(|field| warp.load(field, at));
        // Velocity slopes, `[velocity][axis]`
        let slopes = tiles.each_ref().map(|tiles| {
            let along_x = slope_in(warp, &tiles[MIDDLE], column.slot, 1);
            let along_y = slope_in(warp, &tiles[MIDDLE], column.slot, ACROSS);
            let around = [0, 1, 3, 4].map(|depth| warp.load_shared(&tiles[depth], column.slot));
            [along_x, along_y, slope(warp, around)]
        });
        for (axis, pairs) in PAIRS.iter().enumerate() {
            for (other, &pair) in pairs.iter().enumerate().skip(axis) {
                let rate = if axis == other { normal(warp, slopes, axis) } else { shear(warp, slopes, axis, other) };
                let new = add_product(warp, old[pair], STEP, rate);
                warp.store(self.stress[pair], at, new);
            }
        }
    }
}

/// Rate for a normal stress along its own axis.
fn normal(warp: &mut Warp<'_>, slopes: [[Lanes<f32>; 3]; 3], axis: usize) -> Lanes<f32> {
    let [first, second] = [[1, 2], [0, 2], [0, 1]][axis];
    let operands = [axis, first, second].map(|axis| slopes[axis][axis]);
    let [rate] = warp.calculate(ComputeClass::Fp32, 1, operands, |[own, first, second]| {
        [((LAME[0] + 2.0 * LAME[1]) * f64::from(own) + LAME[0] * f64::from(first + second)) as f32]
    });
    account_doubles(warp, 2, 3);
    rate
}

/// Rate of a shear stress between two axes.
fn shear(warp: &mut Warp<'_>, slopes: [[Lanes<f32>; 3]; 3], axis: usize, other: usize) -> Lanes<f32> {
    let operands = [slopes[axis][other], slopes[other][axis]];
    let [rate] =
        warp.calculate(ComputeClass::Fp32, 1, operands, |[one, two]| [(LAME[1] * f64::from(one + two)) as f32]);
    account_doubles(warp, 1, 2);
    rate
}
