//! Left-hand sides: for each row, the sum over the outer products of its ratings' factors.

use super::{AlternatingLeastSquares, HalfIteration, TILE, UNROLLED};
use crate::prelude::*;

/// Ratings whose factors share the scratchpad at a time. Source: cuMF_als, als.cu (`SCAN_BATCH` in single precision).
pub(super) const BATCH: usize = 28;
/// Regularisation weight per rating in a row. Source: cuMF_als, main.cpp: 0.048 for Netflix.
pub(super) const LAMBDA: f32 = 0.048;

impl AlternatingLeastSquares {
    /// Number of tiles in the upper triangle.
    fn upper(&self) -> i32 {
        let tiles = self.features / TILE;
        tiles * (tiles + 1) / 2
    }

    /// Threads per CTA: enough for a tile each, and for two factors each.
    pub(super) fn tile_threads(&self) -> u32 {
        self.upper().max(self.features / 2) as u32
    }

    /// First row and first column for a thread's tile, row by row in the upper triangle.
    fn tile(&self, thread: i32) -> (i32, i32) {
        let (tiles, mut row, mut left) = (self.features / TILE, 0, thread);
        while row < tiles && left >= tiles - row {
            left -= tiles - row;
            row += 1;
        }
        (row * TILE, (row + left) * TILE)
    }

    /// Sums up the left-hand side for the CTA's row, and stores it.
    pub(super) fn sum_products(&self, cta: &mut Cta<'_>, half: &HalfIteration, batch: u64) {
        let slot = half.slots.tile(cta.index()).items.start;
        let Some(row) = half.row(slot, batch) else { return };
        let ratings = half.bounds(cta, row);
        let features = self.features as usize;
        let mut staged = cta.shared(BATCH * features);
        let mut sums = vec![0.0; features * features];
        for first in ratings.clone().step_by(BATCH) {
            let count = BATCH.min((ratings.end - first) as usize);
            cta.each_warp(|warp| {
                let pair = warp.thread() * 2;
                warp.when(pair.lt(self.features), |warp| self.stage(warp, half, (first, count), pair, &mut staged));
            });
            cta.barrier();
            cta.each_warp(|warp| {
                warp.when(warp.thread().lt(self.upper()), |warp| {
                    // Ten values for a tile's rows and ten for its columns, two values per load, followed by a hundred
                    // independent sums.
                    warp.shared(TILE as u16 * count as u16);
                    let sums = (TILE * TILE) as u16;
                    warp.compute_wide(ComputeClass::Fp32, sums * count as u16, sums, ());
                });
            });
            staged.values().chunks(features).take(count).for_each(|factors| add_product(&mut sums, factors));
            cta.barrier();
        }
        let weight = (ratings.end - ratings.start) as f32 * LAMBDA;
        for at in 0..features {
            sums[at * features + at] += weight;
            (0..at).for_each(|column| sums[at * features + column] = sums[column * features + at]);
        }
        cta.each_warp(|warp| {
            warp.when(warp.thread().lt(self.upper()), |warp| self.store(warp, half, slot as i32, &sums));
        });
    }

    /// Loads a pair of adjacent factors for each rating into the scratchpad.
    fn stage(
        &self,
        warp: &mut Warp<'_>,
        half: &HalfIteration,
        (first, count): (i32, usize),
        pair: Lanes<i32>,
        staged: &mut Shared<f32>,
    ) {
        let all: Vec<i32> = (0..count as i32).collect();
        for turns in all.chunks(UNROLLED) {
            let others: Vec<_> = turns.iter().map(|turn| warp.load(half.other, Lanes::all(first + turn))).collect();
            let load = |other| {
                let at = warp.compute(ComputeClass::Int, 1 + 2 * ADDRESS, other * self.features + pair);
                warp.load_vector(half.from, at)
            };
            let factors: Vec<[Lanes<f32>; 2]> = others.into_iter().map(load).collect();
            for (turn, factors) in turns.iter().zip(factors) {
                warp.store_shared_vector(staged, pair + turn * self.features, factors);
            }
        }
    }

    /// Stores each thread's tile, and its mirror image unless it is on the diagonal, two values at once.
    fn store(&self, warp: &mut Warp<'_>, half: &HalfIteration, slot: i32, sums: &[f32]) {
        let features = self.features;
        let corners = warp.compute(ComputeClass::Int, 8, warp.thread().map(|thread| self.tile(thread)));
        let (top, left) = (corners.map(|corner| corner.0), corners.map(|corner| corner.1));
        let tile = |warp: &mut Warp<'_>, top: Lanes<i32>, left: Lanes<i32>| {
            for step in 0..TILE * TILE / 2 {
                let (row, column) = (step / (TILE / 2), step % (TILE / 2) * 2);
                let at = (top + row) * features + left + column;
                let at = warp.compute(ComputeClass::Int, 1, at);
                let values = [at.pick(sums), (at + 1).pick(sums)];
                warp.store_vector(half.hermitian, at + slot * features * features, values);
            }
        };
        tile(warp, top, left);
        warp.when(top.ne(left), |warp| tile(warp, left, top));
    }
}

/// Adds the outer product of `factors` and `factors` to the upper triangle in `sums`.
fn add_product(sums: &mut [f32], factors: &[f32]) {
    for (row, factor) in factors.iter().enumerate() {
        let sums = &mut sums[row * factors.len()..(row + 1) * factors.len()];
        sums[row..].iter_mut().zip(&factors[row..]).for_each(|(sum, other)| *sum += factor * other);
    }
}
