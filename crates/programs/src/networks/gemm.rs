//! The tiled matrix product shared by dense layers: slabs of both factors pass through the scratchpad.
//!
//! A CTA computes a tile of the product, `rows × columns`. For each slab of `depth` terms the CTA fetches parts of both
//! factors into registers, stores the parts to either buffer in the scratchpad, and multiplies. The next slab is
//! fetched before the current slab is multiplied, as in real kernels, to hide the latency. In the scratchpad, a slab is
//! stored term by term, regardless of the layout in memory.

use crate::prelude::*;

/// Shape of a tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileShape {
    /// Rows of the product, a multiple of 4.
    pub(super) rows: u32,
    /// Columns of the product, a multiple of 4.
    pub(super) columns: u32,
    /// Terms per slab, all slices together.
    pub(super) depth: u32,
    /// Threads per CTA.
    pub(super) threads: u32,
    /// Thread groups, each multiplying a share of the slab's terms for the whole tile; their sums are added at the end.
    pub(super) slices: u32,
    /// Rows and columns of the results held by a thread, multiples of 4.
    pub(super) thread: (u32, u32),
    /// Registers per thread.
    pub(super) registers: u32,
}

/// The large tile. Source: 128 × 128 × 8 with 8 × 8 results per thread, as in cuBLAS and cuDNN for single precision on
/// NVIDIA's GPUs from Maxwell to Volta (Lavin, maxDNN, 2015; CUTLASS's default for SIMT). A thread may have 128
/// registers, and two CTAs share an SM.
pub(super) const TILE_128X128: TileShape =
    TileShape { rows: 128, columns: 128, depth: 8, threads: 256, slices: 1, thread: (8, 8), registers: 128 };
/// Half the columns, half the threads. Source: cuBLAS `sgemm_128x64`, used when the large tile leaves SMs idle.
pub(super) const TILE_128X64: TileShape = TileShape { columns: 64, threads: 128, ..TILE_128X128 };
/// Half the rows, half the threads. Source: cuDNN `volta_scudnn_128x64_relu_interior_nn_v1`, with pixels along its long
/// side: 128 threads with 128 registers, as printed by nvprof on a V100.
pub(super) const TILE_64X128: TileShape = TileShape { rows: 64, threads: 128, ..TILE_128X128 };
/// Half the rows and half the columns. Source: cuBLAS `sgemm_64x64`; the share per thread and its registers are
/// assumed, half the large tile's.
pub(super) const TILE_64X64: TileShape =
    TileShape { rows: 64, columns: 64, threads: 128, thread: (8, 4), registers: 86, ..TILE_128X128 };
/// Four threads with twelve rows each. Source: assumed after cuda-convnet2 (`filterActs_YxX_sparse2`), whose CTAs have
/// four rows of threads, each with up to 12 or 16 filters.
pub(super) const TILE_48X64: TileShape =
    TileShape { rows: 48, columns: 64, depth: 16, threads: 64, thread: (12, 4), registers: 128, ..TILE_128X128 };
/// The small tile: four warps multiply a quarter of the terms each. Source: cuBLAS `sgemm_32x32_sliced1x4`, used for
/// products too small to fill the GPU otherwise: 128 threads with 86 registers, according to the profiler. The depth is
/// assumed: each slice multiplies eight terms per slab.
pub(super) const TILE_32X32: TileShape =
    TileShape { rows: 32, columns: 32, depth: 32, threads: 128, slices: 4, thread: (8, 4), registers: 86 };

/// Padding words per term of a slab in the scratchpad, in addition to the lines: keeps vectors aligned and spreads the
/// stores of a transposed slab over banks. Source: assumed, like CUTLASS's padding for transposed data.
const PADDING: u32 = 4;

/// The factor that contains an element. A *line* is a row in the left factor and a column in the right factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactorSide {
    /// `rows × terms`.
    Left,
    /// `terms × columns`.
    Right,
}

/// Elements that a warp fetched for a slab, with their position in the slab.
pub(super) struct FetchedPiece {
    pub(super) side: FactorSide,
    pub(super) line: Lanes<i32>,
    pub(super) term: Lanes<i32>,
    pub(super) values: FetchedValues,
}

/// The elements fetched by each lane.
pub(super) enum FetchedValues {
    /// A single element.
    One(Lanes<f32>),
    /// A single term of four adjacent lines.
    Lines([Lanes<f32>; 4]),
    /// Four terms of a single line.
    Terms([Lanes<f32>; 4]),
}

/// A factor's slab in the scratchpad.
struct Slab {
    values: Shared<f32>,
    /// Words from term to term.
    pitch: u32,
}

impl TileShape {
    /// Lines in a factor's slab.
    pub(super) fn lines(&self, side: FactorSide) -> u32 {
        match side {
            FactorSide::Left => self.rows,
            FactorSide::Right => self.columns,
        }
    }

    /// A grid with `ctas` CTAs and the tile's resource needs on an SM.
    pub(super) fn grid(&self, name: &str, ctas: u64) -> Grid {
        Grid::new(name, ctas, self.threads).shared_bytes(self.shared_bytes()).registers(self.registers)
    }

    /// Scratchpad bytes: two buffers for both slabs, whose space is reused for the slices' sums at the end.
    fn shared_bytes(&self) -> u32 {
        let buffers = 2 * self.depth * (self.rows + self.columns + 2 * PADDING);
        let sums = if self.slices > 1 { self.threads * self.results() } else { 0 };
        4 * buffers.max(sums)
    }

    /// Results held by a thread.
    fn results(&self) -> u32 {
        self.thread.0 * self.thread.1
    }

    /// Words fetched by a thread for both slabs: an upper bound on pieces per thread.
    pub(super) fn words(&self) -> usize {
        ((self.rows + self.columns) * self.depth / self.threads) as usize
    }

    /// Number of rounds in which the CTA's threads, with a thread per column, cover `rows` rows.
    pub(super) fn rounds(&self, rows: u32) -> u32 {
        rows * self.columns / self.threads
    }

    /// A warp's row in a round: a warp never spans two rows, because its width is a power of two and the tile has more
    /// columns.
    pub(super) fn row_of(&self, warp: &Warp<'_>, round: u32) -> u32 {
        (round * self.threads + warp.index() * warp.width()) / self.columns
    }

    /// Multiplies `slabs` slabs. `fetch(warp, slab)` loads the warp's part of a slab. Returns the tile, row by row,
    /// with zeros if values are not computed.
    pub(super) fn multiply(
        &self,
        cta: &mut Cta<'_>,
        slabs: u32,
        mut fetch: impl FnMut(&mut Warp<'_>, u32) -> Vec<FetchedPiece>,
    ) -> Vec<f32> {
        let mut left = self.slab(cta, FactorSide::Left);
        let mut right = self.slab(cta, FactorSide::Right);
        let mut product = vec![0.0; (self.rows * self.columns) as usize];
        // A thread multiplies its results for each term in its slice, and reads its lines as vectors of four.
        let terms = self.depth / self.slices;
        let passes = terms * (self.thread.0 + self.thread.1) / 4;
        let mut fetched: Vec<Vec<FetchedPiece>> = Vec::new();
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
                warp.shared(passes as u16);
                // Each result in the thread's block has a separate accumulator.
                let results = self.results() as u16;
                warp.compute_wide(ComputeClass::Fp32, terms as u16 * results, results, ());
            });
            if cta.computes() {
                self.accumulate(&left, &right, &mut product);
            }
        }
        self.unite_slices(cta);
        product
    }

    fn slab(&self, cta: &mut Cta<'_>, side: FactorSide) -> Slab {
        let pitch = self.lines(side) + PADDING;
        Slab { values: cta.shared((pitch * self.depth) as usize), pitch }
    }

    fn accumulate(&self, left: &Slab, right: &Slab, product: &mut [f32]) {
        let columns = self.columns as usize;
        let lefts = left.values.values().chunks(left.pitch as usize);
        for (factors, others) in lefts.zip(right.values.values().chunks(right.pitch as usize)) {
            for (sums, factor) in product.chunks_mut(columns).zip(factors) {
                for (sum, other) in sums.iter_mut().zip(others) {
                    *sum += factor * other;
                }
            }
        }
    }

    /// Stores every slice's sums to the scratchpad, and lets each thread add the sums for its share of the tile.
    fn unite_slices(&self, cta: &mut Cta<'_>) {
        if self.slices == 1 {
            return;
        }
        let results = self.results() as u16;
        cta.barrier();
        cta.each_warp(|warp| warp.shared(results));
        cta.barrier();
        cta.each_warp(|warp| {
            warp.shared(results);
            // A thread's share of the results, each with an independent sum.
            let share = (results / self.slices as u16).max(1);
            warp.compute_wide(ComputeClass::Fp32, results - results / self.slices as u16, share, ());
        });
    }
}

fn store(warp: &mut Warp<'_>, piece: &FetchedPiece, left: &mut Slab, right: &mut Slab) {
    let slab = match piece.side {
        FactorSide::Left => left,
        FactorSide::Right => right,
    };
    let pitch = slab.pitch as i32;
    let at = piece.term * pitch + piece.line;
    match piece.values {
        FetchedValues::One(value) => warp.store_shared(&mut slab.values, at, value),
        FetchedValues::Lines(values) => warp.store_shared_vector(&mut slab.values, at, values),
        FetchedValues::Terms(values) => {
            for (term, value) in (0..).zip(values) {
                warp.store_shared(&mut slab.values, at + term * pitch, value);
            }
        }
    }
}
