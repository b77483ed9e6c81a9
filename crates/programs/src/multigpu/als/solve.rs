//! Right-hand sides, and the solution by conjugate gradients: a CTA per row, a thread per factor.

use super::{AlternatingLeastSquares, HalfIteration, UNROLLED};
use crate::multigpu::sum::ATOMIC;
use crate::prelude::*;

/// Conjugate-gradient steps. Source: cuMF_als, als.cu (`CG_ITER`).
pub(super) const STEPS: usize = 6;
/// Squared residual that ends the solution. Source: cuMF_als, cg.cu (`CG_ERROR`).
pub(super) const SMALL: f32 = 1e-4;
/// Lanes whose products are added by shuffles. Source: cuMF_als, device_utilities.h (`WARP_SIZE`).
pub(super) const GROUP: u32 = 32;

/// Solution vectors in the scratchpad.
struct SolutionVectors {
    x: Shared<f32>,
    /// Search direction in the current step.
    p: Shared<f32>,
    /// Residual after the current step.
    r: Shared<f32>,
    /// Left-hand side times `p`.
    ap: Shared<f32>,
}

impl AlternatingLeastSquares {
    /// Computes the right-hand side for the CTA's row: its ratings times their factors. A warp loads 32 ratings at once
    /// and broadcasts them by shuffles.
    pub(super) fn multiply(&self, cta: &mut Cta<'_>, half: &HalfIteration) {
        let row = half.rows.tile(cta.index()).items.start as i32;
        let ratings = half.bounds(cta, row);
        cta.each_warp(|warp| {
            let (factor, lane) = (warp.thread(), warp.lane());
            let mut sum = Lanes::all(0.0_f32);
            for first in ratings.clone().step_by(GROUP as usize) {
                let at = warp.compute(ComputeClass::Int, 2 + 2 * ADDRESS, lane + first);
                let held = lane.lt(GROUP as i32) & at.lt(ratings.end);
                let [other] = warp.load_vector_if(held, half.other, at);
                let [value] = warp.load_vector_if(held, half.value, at);
                let (other, value) = warp.compute(ComputeClass::Int, 0, (other, value));
                let count = (GROUP as i32).min(ratings.end - first) as u32;
                warp.when(factor.lt(self.features), |warp| {
                    for turns in (0..count).collect::<Vec<_>>().chunks(UNROLLED) {
                        let load = |turn: &u32| {
                            // Two shuffles.
                            let shuffled = warp.compute(ComputeClass::Other, 2, factor);
                            let at = shuffled + other.lane(*turn) * self.features;
                            let at = warp.compute(ComputeClass::Int, 1 + ADDRESS, at);
                            warp.load(half.from, at)
                        };
                        let factors: Vec<Lanes<f32>> = turns.iter().map(load).collect();
                        for (turn, factors) in turns.iter().zip(factors) {
                            let factors = warp.compute(ComputeClass::Fp32, 1, factors);
                            sum = sum + factors * value.lane(*turn);
                        }
                    }
                });
            }
            warp.when(factor.lt(self.features), |warp| {
                warp.store(half.right, factor + row * self.features, sum);
            });
        });
    }

    /// Solves for the factors in the CTA's row, starting from its present factors.
    pub(super) fn solve(&self, cta: &mut Cta<'_>, half: &HalfIteration, batch: u64) {
        let slot = half.slots.tile(cta.index()).items.start;
        let Some(row) = half.row(slot, batch) else { return };
        let (first, left) = (row * self.features, slot as i32 * self.features * self.features);
        let [x, p, r, ap] = std::array::from_fn(|_| cta.shared(self.features as usize));
        let mut vectors = SolutionVectors { x, p, r, ap };
        let mut before = Vec::new();
        cta.each_warp(|warp| {
            let factor = warp.compute(ComputeClass::Int, 2 + ADDRESS, warp.thread());
            let x = warp.load(half.to, factor + first);
            before.push(x);
            warp.store_shared(&mut vectors.x, factor, x);
        });
        cta.barrier();
        let mut squared = self.first_residual(cta, half, (first, left), &mut vectors);
        // A row without ratings has residual zero: the source would divide zero by zero.
        let steps = if squared == 0.0 { 0 } else { STEPS };
        for _ in 0..steps {
            let before = squared;
            squared = self.step(cta, half, left, before, &mut vectors);
            if squared < SMALL {
                break;
            }
            cta.each_warp(|warp| {
                let factor = warp.thread();
                let [r, p] = [&vectors.r, &vectors.p].map(|vector| warp.load_shared(vector, factor));
                let p = warp.compute(ComputeClass::Fp32, 1, r + p * (squared / before));
                warp.store_shared(&mut vectors.p, factor, p);
            });
            cta.barrier();
        }
        cta.each_warp(|warp| {
            let factor = warp.compute(ComputeClass::Int, ADDRESS, warp.thread());
            let x = warp.load_shared(&vectors.x, factor);
            if self.adds_atomically {
                let change = warp.compute(ComputeClass::Fp32, 1, x - before[warp.index() as usize]);
                warp.add_alone(half.to, factor + first, change, ATOMIC);
            } else {
                warp.store(half.to, factor + first, x);
            }
        });
    }

    /// Computes the first residual, which is also the first direction; returns its square.
    fn first_residual(
        &self,
        cta: &mut Cta<'_>,
        half: &HalfIteration,
        (first, left): (i32, i32),
        vectors: &mut SolutionVectors,
    ) -> f32 {
        let products = self.times(cta, half, left, &vectors.x);
        let mut squares = Vec::new();
        cta.each_warp(|warp| {
            let factor = warp.compute(ComputeClass::Int, ADDRESS, warp.thread());
            let right = warp.load(half.right, factor + first);
            let r = warp.compute(ComputeClass::Fp32, 1, right - products[warp.index() as usize]);
            warp.store_shared(&mut vectors.r, factor, r);
            warp.store_shared(&mut vectors.p, factor, r);
            squares.push(warp.compute(ComputeClass::Fp32, 1, r * r));
        });
        add_up(cta, squares)
    }

    /// Takes a step along the direction; returns the new residual's square.
    fn step(
        &self,
        cta: &mut Cta<'_>,
        half: &HalfIteration,
        left: i32,
        squared: f32,
        vectors: &mut SolutionVectors,
    ) -> f32 {
        let products = self.times(cta, half, left, &vectors.p);
        let mut curved = Vec::new();
        cta.each_warp(|warp| {
            let (factor, ap) = (warp.thread(), products[warp.index() as usize]);
            warp.store_shared(&mut vectors.ap, factor, ap);
            let p = warp.load_shared(&vectors.p, factor);
            curved.push(warp.compute(ComputeClass::Fp32, 1, p * ap));
        });
        let along = add_up(cta, curved);
        cta.warp(0, |warp| {
            warp.single(|warp| {
                warp.compute(ComputeClass::Special, 1, ());
                warp.shared(3);
            });
        });
        cta.barrier();
        let length = squared / along;
        let mut squares = Vec::new();
        cta.each_warp(|warp| {
            let factor = warp.thread();
            let SolutionVectors { x, p, r, ap } = &*vectors;
            let [x, p, r, ap] = [x, p, r, ap].map(|vector| warp.load_shared(vector, factor));
            let x = warp.compute(ComputeClass::Fp32, 1, x + p * length);
            let r = warp.compute(ComputeClass::Fp32, 1, r - ap * length);
            warp.store_shared(&mut vectors.x, factor, x);
            warp.store_shared(&mut vectors.r, factor, r);
            squares.push(warp.compute(ComputeClass::Fp32, 1, r * r));
        });
        add_up(cta, squares)
    }

    /// Multiplies the left-hand side, which starts at element `left`, by a vector. The matrix is symmetric: each vector
    /// value is multiplied by a row, which is also a column.
    fn times(&self, cta: &mut Cta<'_>, half: &HalfIteration, left: i32, vector: &Shared<f32>) -> Vec<Lanes<f32>> {
        let mut products = Vec::new();
        cta.each_warp(|warp| {
            let mut sum = Lanes::all(0.0_f32);
            for (turn, values) in (0..).zip(vector.values().chunks(UNROLLED)) {
                let at = warp.thread() + (left + turn * UNROLLED as i32 * self.features);
                let at = warp.compute(ComputeClass::Int, ADDRESS, at);
                let loaded: [Lanes<f32>; UNROLLED] =
                    std::array::from_fn(|row| warp.load(half.hermitian, at + row as i32 * self.features));
                warp.shared(UNROLLED as u16);
                let loaded = warp.compute(ComputeClass::Fp32, UNROLLED as u16, loaded);
                sum = loaded.into_iter().zip(values).fold(sum, |sum, (row, value)| sum + row * *value);
            }
            products.push(sum);
        });
        products
    }
}

/// Sums over all lanes: by shuffles in each group with 32 lanes, then group after group. The source uses atomics on a
/// scratchpad word, in any order.
fn add_up(cta: &mut Cta<'_>, held: Vec<Lanes<f32>>) -> f32 {
    let mut sum = 0.0;
    for (index, held) in (0..).zip(held) {
        cta.warp(index, |warp| {
            let groups = warp.sum_lanes(ComputeClass::Fp32, held, GROUP.min(warp.width()));
            warp.single(|warp| warp.shared(1));
            let first = (0..warp.width()).step_by(GROUP as usize).filter(|lane| warp.active() >> lane & 1 == 1);
            first.for_each(|lane| sum += groups.lane(lane));
        });
    }
    cta.barrier();
    sum
}
