//! A matrix product in tiles of 32 x 32, with 64 threads per tile, and with the tile of A staged in global memory.
//!
//! The program equals the measured program, faults included. Every CTA stages tiles of A in a shared buffer of few
//! kilobytes. All tiles come from A's first 32 rows, and every row of result tiles therefore equals the first. All CTAs
//! stage equal values, and the race affects only timing; the recording runs the CTAs in sequence.

use crate::prelude::*;

/// Tile side length, in elements. Source: [`MI300A_KERNELS`].
const TILE: i32 = 32;
/// CTA side length; vectors per tile row. Source: [`MI300A_KERNELS`].
const SIDE: i32 = 8;
/// Elements per vector, and per side of a thread's result block.
const VECTOR: usize = 4;
/// Registers per thread. Source: counted: 16 sums, 4 vectors from A and 4 from B in flight twice over, addresses.
const REGISTERS: u32 = 96;

program! {
    // Work grows faster than the footprint.
    /// matrix product staged through global memory: loads of the L1, arithmetic
    pub(crate) static MATRIXMULTIPLICATION = "matrixmultiplication", MI300A_KERNELS;
    properties: nonlinear, data_independent;
    parameters {
        /// side of the matrices of 4-byte floats, at scale 1; scales by the root, to whole tiles of 32
        side: count(1..=1 << 14) = 640, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        let side = request.fit_multiple("side", request.scale.side_of(side), TILE as u64);
        let mut matrix = |name| memory.array(name, side * side, Scaling::Scales);
        let (a, b, c) = (matrix("a"), matrix("b"), matrix("c"));
        let staged = memory.array("staged", (TILE * TILE) as u64, Scaling::Fixed);
    }
    struct MatrixProduct {
        a, b, c: Array<f32>,
        /// A single tile.
        staged: Array<f32>,
        side: i32,
        seed: u64 = request.seed,
    }
}

/// A thread's accumulators: `[row][column]`.
type Sums = [[Lanes<f32>; VECTOR]; VECTOR];

impl MatrixProduct {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let tiles = self.side / TILE;
        let (bx, by) = (cta.index() as i32 % tiles, cta.index() as i32 / tiles);
        let mut sums: Vec<Sums> = vec![[[Lanes::all(0.0); VECTOR]; VECTOR]; cta.warps() as usize];
        for tile in cta.trips().map(|tile| tile as i32) {
            cta.each_warp(|warp| self.stage(warp, tile));
            cta.barrier();
            cta.each_warp(|warp| {
                let sums = &mut sums[warp.index() as usize];
                (0..SIDE).for_each(|j| self.multiply(warp, sums, (tile * TILE + 4 * j, bx), j));
            });
            cta.barrier();
        }
        cta.each_warp(|warp| {
            let (x, y) = place(warp);
            for (r, row) in (0..).zip(sums[warp.index() as usize]) {
                let at = (y * 4 + (TILE * by + r)) * self.side + (x + SIDE * bx) * VECTOR as i32;
                let at = warp.compute(ComputeClass::Int, 2 + ADDRESS, at);
                warp.store_vector(self.c, at, row);
            }
        });
    }

    /// Copies a tile from the first rows of A.
    fn stage(&self, warp: &mut Warp<'_>, tile: i32) {
        let (x, y) = place(warp);
        let rows: [[Lanes<f32>; VECTOR]; VECTOR] = std::array::from_fn(|r| {
            let at = (y * 4 + r as i32) * self.side + (x + SIDE * tile) * VECTOR as i32;
            let at = warp.compute(ComputeClass::Int, 2 + ADDRESS, at);
            warp.load_vector(self.a, at)
        });
        for (r, row) in (0..).zip(rows) {
            warp.store_vector(self.staged, ((y * 4 + r) * SIDE + x) * VECTOR as i32, row);
        }
    }

    /// Computes four terms for each sum: four columns of the staged tile starting at vector `j`, with four rows of B
    /// starting at `row` in tile column `bx`.
    fn multiply(&self, warp: &mut Warp<'_>, sums: &mut Sums, (row, bx): (i32, i32), j: i32) {
        let (x, y) = place(warp);
        warp.compute(ComputeClass::Int, 4 + 2 * ADDRESS, ());
        let a: [[Lanes<f32>; VECTOR]; VECTOR] =
            std::array::from_fn(|r| warp.load_vector(self.staged, ((y * 4 + r as i32) * SIDE + j) * VECTOR as i32));
        let b: [[Lanes<f32>; VECTOR]; VECTOR] = std::array::from_fn(|r| {
            warp.load_vector(self.b, (x + SIDE * bx) * VECTOR as i32 + (row + r as i32) * self.side)
        });
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
}

/// A thread's column and row in its CTA.
fn place(warp: &Warp<'_>) -> (Lanes<i32>, Lanes<i32>) {
    (warp.thread() % SIDE, warp.thread() / SIDE)
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
        let trips = Trips { count: tiles, unit: 1 };
        let grid = Grid::new("product", tiles * tiles, (SIDE * SIDE) as u32).registers(REGISTERS).trips(trips);
        host.launch_ordered(grid, |cta| self.kernel(cta))?;
        host.copy_to_host(self.c);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let side = self.side as usize;
        let (a, b) = (memory.to_vec(self.a), memory.to_vec(self.b));
        let expected = (0..side * side).map(|at| {
            let (row, column) = (at / side % TILE as usize, at % side);
            (0..side).fold(0.0, |sum: f32, k| sum + a[row * side + k] * b[k * side + column])
        });
        compare("c", memory.to_vec(self.c), expected, 1e-4)
    }
}
