//! The tiled matrix product that dense layers share: slabs of both factors through the scratchpad.
//!
//! A CTA computes a tile of the product, `rows × columns`. For each slab of `depth` terms it fetches its parts
//! of both factors into registers, stores them to the scratchpad, and multiplies; the next slab is fetched
//! before the current one is multiplied, as real kernels do to hide the latency.

use crate::simt::{ComputeClass, Cta, Lanes, Shared, Warp};

/// Shape of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    /// Rows of the product.
    pub(super) rows: u32,
    /// Columns of the product.
    pub(super) columns: u32,
    /// Terms of a slab.
    pub(super) depth: u32,
    /// Threads of the CTA.
    pub(super) threads: u32,
    /// Passes of a warp through the scratchpad for a slab, all loads together.
    pub(super) passes: u16,
}

/// Elements that one warp fetched, and where they go in the scratchpad.
pub(super) enum Piece {
    /// Four elements of the left factor's slab (`rows × depth`), side by side from `at`.
    Left { at: Lanes<i32>, values: [Lanes<f32>; 4] },
    /// Four elements of the right factor's slab (`depth × columns`), side by side from `at`.
    Right { at: Lanes<i32>, values: [Lanes<f32>; 4] },
    /// One element of the right factor's slab.
    RightOne { at: Lanes<i32>, value: Lanes<f32> },
}

impl Tile {
    /// Scratchpad bytes of both slabs.
    pub(super) fn shared_bytes(&self) -> u32 {
        4 * self.depth * (self.rows + self.columns)
    }

    /// Rounds in which the CTA's threads, a thread a column, pass over `rows` rows.
    pub(super) fn rounds(&self, rows: u32) -> u32 {
        rows * self.columns / self.threads
    }

    /// The row that a warp is at in one of these rounds: a warp never spans two, because its width is a power
    /// of two and the tile has more columns.
    pub(super) fn row_of(&self, warp: &Warp<'_>, round: u32) -> u32 {
        (round * self.threads + warp.index() * warp.width()) / self.columns
    }

    /// Multiplies `slabs` slabs. `fetch(warp, slab)` loads the warp's part of a slab. Returns the tile, row by
    /// row; zeros where values are not computed.
    pub(super) fn multiply(
        &self,
        cta: &mut Cta<'_>,
        slabs: u32,
        mut fetch: impl FnMut(&mut Warp<'_>, u32) -> Vec<Piece>,
    ) -> Vec<f32> {
        let mut left = cta.shared::<f32>((self.rows * self.depth) as usize);
        let mut right = cta.shared::<f32>((self.depth * self.columns) as usize);
        let mut product = vec![0.0; (self.rows * self.columns) as usize];
        let multiplies = self.rows * self.columns * self.depth / self.threads;
        let mut fetched: Vec<Vec<Piece>> = Vec::new();
        cta.each_warp(|warp| fetched.push(fetch(warp, 0)));
        for slab in 0..slabs {
            let mut pieces = std::mem::take(&mut fetched).into_iter();
            cta.each_warp(|warp| {
                let pieces = pieces.next().unwrap_or_default();
                pieces.iter().for_each(|piece| store(warp, piece, &mut left, &mut right));
            });
            cta.barrier();
            cta.each_warp(|warp| {
                if slab + 1 < slabs {
                    fetched.push(fetch(warp, slab + 1));
                }
                warp.shared(self.passes);
                warp.compute(ComputeClass::Fp32, multiplies as u16, ());
            });
            cta.barrier();
            if cta.computes() {
                self.accumulate(left.values(), right.values(), &mut product);
            }
        }
        product
    }

    fn accumulate(&self, left: &[f32], right: &[f32], product: &mut [f32]) {
        let (depth, columns) = (self.depth as usize, self.columns as usize);
        for (row, sums) in left.chunks(depth).zip(product.chunks_mut(columns)) {
            for (factor, others) in row.iter().zip(right.chunks(columns)) {
                for (sum, other) in sums.iter_mut().zip(others) {
                    *sum += factor * other;
                }
            }
        }
    }
}

fn store(warp: &mut Warp<'_>, piece: &Piece, left: &mut Shared<f32>, right: &mut Shared<f32>) {
    match *piece {
        Piece::Left { at, values } => warp.store_shared_vector(left, at, values),
        Piece::Right { at, values } => warp.store_shared_vector(right, at, values),
        Piece::RightOne { at, value } => warp.store_shared(right, at, value),
    }
}

/// Compares a layer's output with its reference, which sums in another order: relative to the sum of the
/// magnitudes of the terms.
pub(super) fn compare(what: &str, found: f32, expected: f64, magnitude: f64) -> Result<(), String> {
    let tolerance = 1e-5 * magnitude.max(1.0);
    if (f64::from(found) - expected).abs() <= tolerance {
        return Ok(());
    }
    Err(format!("{what} is {found}, expected {expected} within {tolerance}"))
}
