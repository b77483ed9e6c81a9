//! MatrixMultiplication from the AMD APP SDK 2.5: a matrix product in tiles of 32 x 32. Each tile is computed by 64
//! threads with 4 x 4 elements each, and the tile of A is in the scratchpad.
//!
//! Source: MatrixMultiplication_Kernels.cl (`mmmKernel_local`, and `mmmKernel` for GPUs without a scratchpad) and
//! MatrixMultiplication.cpp. A CTA has a single barrier per tile, after the stores to the scratchpad: no more is needed
//! on GPUs whose wavefront is the whole CTA. Arithmetic, scratchpad accesses and registers are counted from the
//! Southern Islands binary shipped with the sample: it moves a vector with a single memory instruction, but word by
//! word in the scratchpad.

use crate::prelude::*;
use std::array::from_fn;

/// Side length of a CTA. Source: MatrixMultiplication.hpp (`blockSize`).
const SIDE: i32 = 8;
/// Elements per vector, and per side of a thread's result block. Source: MatrixMultiplication_Kernels.cl.
const VECTOR: usize = 4;
/// Tile side length, in elements.
const TILE: i32 = SIDE * VECTOR as i32;
/// Registers per thread with and without the scratchpad. Source: the sample's Southern Islands binary.
const REGISTERS: [u32; 2] = [79, 69];

program! {
    // The work grows faster than the footprint.
    /// matrix product: tiles of one factor in the scratchpad, columns of the other from memory
    pub(crate) static MATRIXMULTIPLICATION = "amdapp-matrixmultiplication",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), MatrixMultiplication; UMH, Table I (MM)";
    properties: nonlinear, data_independent;
    parameters {
        /// side of the matrices of 4-byte floats, at scale 1; scales by the root, to whole tiles of 32
        side: count(1..=1 << 14) = 1024, "UMH, Table I (MM): 1024x1024x1024; tiles: MatrixMultiplication.cpp, setup";
        /// whether tiles of A are staged in the scratchpad
        scratchpad: flag = "yes", "MatrixMultiplication.cpp, setupCL: where the device has one";
    }
    lay_out(name, request, memory) {
        let side = request.fit_multiple("side", request.scale.side_of(side), TILE as u64);
        check_indices(name, side * side, "elements")?;
        let mut matrix = |name| memory.array(name, side * side, Scaling::Scales);
        let [a, b, c] = ["a", "b", "c"].map(&mut matrix);
    }
    struct MatrixProduct {
        a, b, c: Array<f32>,
        side: i32,
        scratchpad: bool,
        seed: u64 = request.seed,
    }
}

/// Vectors from four rows: `[row][column]`.
type RowVectors = [[Lanes<f32>; VECTOR]; VECTOR];

/// A thread's column and row in its CTA.
fn place(warp: &Warp<'_>) -> (Lanes<i32>, Lanes<i32>) {
    (warp.thread() % SIDE, warp.thread() / SIDE)
}

/// Adds the products of four columns from A with four rows from B.
fn multiply(warp: &mut Warp<'_>, sums: &mut RowVectors, a: RowVectors, b: RowVectors) {
    // Sixteen sums with four products each.
    let (a, b) = warp.compute_wide(ComputeClass::Fp32, 64, (VECTOR * VECTOR) as u16, (a, b));
    if warp.computes() {
        for (sums, a) in sums.iter_mut().zip(a) {
            for (column, sum) in sums.iter_mut().enumerate() {
                *sum = (0..VECTOR).fold(*sum, |sum, k| sum + a[k] * b[k][column]);
            }
        }
    }
}

impl MatrixProduct {
    /// First column and row of the CTA's tile.
    fn corner(&self, cta: u32) -> (i32, i32) {
        let tiles = self.side / TILE;
        (cta as i32 % tiles * TILE, cta as i32 / tiles * TILE)
    }

    /// Loads vectors from four rows starting at `row`, with their first elements in `column`.
    fn load(&self, warp: &mut Warp<'_>, matrix: Array<f32>, column: Lanes<i32>, row: Lanes<i32>) -> RowVectors {
        from_fn(|r| warp.load_vector(matrix, (row + r as i32) * self.side + column))
    }

    fn staged_kernel(&self, cta: &mut Cta<'_>) {
        let (left, top) = self.corner(cta.index());
        let mut block = cta.shared::<f32>((TILE * TILE) as usize);
        let mut sums: Vec<RowVectors> = vec![[[Lanes::all(0.0); VECTOR]; VECTOR]; cta.warps() as usize];
        cta.each_warp(|warp| warp.compute(ComputeClass::Int, 55, ()));
        for tile in cta.trips().map(|tile| tile as i32) {
            cta.each_warp(|warp| self.stage(warp, &mut block, tile * TILE, top));
            cta.barrier();
            cta.each_warp(|warp| {
                warp.compute(ComputeClass::Int, 11, ());
                for j in 0..SIDE {
                    self.step(warp, &block, &mut sums[warp.index() as usize], (left, tile * TILE, j));
                }
                warp.compute(ComputeClass::Int, 7, ());
            });
        }
        cta.each_warp(|warp| self.store(warp, (left, top), sums[warp.index() as usize], 8));
    }

    /// Copies a tile of A to the scratchpad.
    fn stage(&self, warp: &mut Warp<'_>, block: &mut Shared<f32>, column: i32, top: i32) {
        let (x, y) = place(warp);
        let (vector, row) = warp.compute(ComputeClass::Int, 14, (x * VECTOR as i32, y * VECTOR as i32));
        let rows = self.load(warp, self.a, vector + column, row + top);
        let rows = warp.compute(ComputeClass::Int, 19, rows);
        for (r, row_of_a) in (0..).zip(rows) {
            for (word, value) in (0..).zip(row_of_a) {
                warp.store_shared(block, (row + r) * TILE + vector + word, value);
            }
        }
    }

    /// Computes four terms for each sum: vector `j` from four rows of the tile, with four rows of B starting at `first
    /// + 4 j`.
    fn step(&self, warp: &mut Warp<'_>, block: &Shared<f32>, sums: &mut RowVectors, (left, first, j): (i32, i32, i32)) {
        let (x, y) = place(warp);
        let column = warp.compute(ComputeClass::Int, 4, x * VECTOR as i32 + left);
        let b = self.load(warp, self.b, column, Lanes::all(first + j * VECTOR as i32));
        let corner = warp.compute(ComputeClass::Int, 28, y * (VECTOR as i32 * TILE) + j * VECTOR as i32);
        let a = from_fn(|r| from_fn(|word| warp.load_shared(block, corner + (r as i32 * TILE + word as i32))));
        multiply(warp, sums, a, b);
        warp.compute(ComputeClass::Int, 16, ());
    }

    fn direct_kernel(&self, cta: &mut Cta<'_>) {
        let (left, top) = self.corner(cta.index());
        let steps = cta.trips();
        cta.each_warp(|warp| {
            let (x, y) = place(warp);
            let vectors = (x * VECTOR as i32 + left, y * VECTOR as i32 + top);
            let (column, row) = warp.compute(ComputeClass::Int, 34, vectors);
            let mut sums: RowVectors = [[Lanes::all(0.0); VECTOR]; VECTOR];
            for step in steps.clone() {
                let k = warp.compute(ComputeClass::Int, 15, Lanes::all(step as i32 * VECTOR as i32));
                let a = self.load(warp, self.a, k, row);
                let b = self.load(warp, self.b, column, k);
                multiply(warp, &mut sums, a, b);
                warp.compute(ComputeClass::Int, 17, ());
            }
            self.store(warp, (left, top), sums, 10);
        });
    }

    /// Stores a thread's results, after `instructions` integer instructions.
    fn store(&self, warp: &mut Warp<'_>, (left, top): (i32, i32), sums: RowVectors, instructions: u16) {
        let (x, y) = place(warp);
        let first = (y * VECTOR as i32 + top) * self.side + x * VECTOR as i32 + left;
        for ((r, row), count) in (0..).zip(sums).zip([instructions, 3, 2, 1]) {
            let at = warp.compute(ComputeClass::Int, count, first + r * self.side);
            warp.store_vector(self.c, at, row);
        }
    }
}

impl Instance for MatrixProduct {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.a, |index| noise::unit(self.seed, index));
        memory.fill(self.b, |index| noise::unit(!self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.a);
        host.copy_to_device(self.b);
        let tiles = (self.side / TILE) as u64;
        let [staged, direct] = REGISTERS;
        let grid = |name| Grid::new(name, tiles * tiles, (SIDE * SIDE) as u32);
        if self.scratchpad {
            let trips = Trips { count: tiles, unit: 1 };
            let grid = grid("product-staged").registers(staged).shared_bytes((4 * TILE * TILE) as u32).trips(trips);
            host.launch(grid, |cta| self.staged_kernel(cta))?;
        } else {
            let trips = Trips { count: tiles * SIDE as u64, unit: SIDE as u64 };
            host.launch(grid("product").registers(direct).trips(trips), |cta| self.direct_kernel(cta))?;
        }
        host.copy_to_host(self.c);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let side = self.side as usize;
        let (a, b) = (memory.to_vec(self.a), memory.to_vec(self.b));
        let expected = (0..side * side).map(|at| {
            let (row, column) = (at / side, at % side);
            (0..side).fold(0.0, |sum: f32, k| sum + a[row * side + k] * b[k * side + column])
        });
        compare("c", memory.to_vec(self.c), expected, 1e-5)
    }
}
