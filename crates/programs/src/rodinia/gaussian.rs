//! Rodinia gaussian: elimination in a dense linear system, one column per pair of launches.
//!
//! `fan-1` divides the column below the pivot by it. `fan-2` subtracts the pivot's row, multiplied by these ratios,
//! from all rows below. Like in the source, neighbouring threads process neighbouring *rows*, so that their accesses
//! lie a row apart.
//!
//! A thread in Rodinia's second kernel handles one matrix element; here a CTA has a tile, and its threads walk through
//! the tile's elements.

use crate::prelude::*;

/// Threads per CTA in the first kernel. Source: Rodinia 3.1 gaussian (`MAXBLOCKSIZE`).
const THREADS: u32 = 512;
/// Threads along each CTA side in the second kernel. Source: assumed; Rodinia has 4 unless built with `RD_WG_SIZE`.
const SIDE: i32 = 16;

program! {
    /// elimination in a dense system: one row broadcast to all others, accesses a row apart
    pub(crate) static GAUSSIAN = "gaussian", "Rodinia 3.1 gaussian; NUMA-GPU, Table 2 (Rodinia-Gaussian)";
    properties: data_independent;
    parameters {
        /// unknowns, at scale 1; scales by the root
        size: count(2..=46_340) = 3216, "NUMA-GPU, Table 2: 78 MB in two matrices of 4-byte floats";
        /// rows and columns of the matrix that a CTA of the second kernel treats
        tile: count(4..=256) = 64,
            "NUMA-GPU, Table 2: 2599 CTAs, as good as 51 × 51 tiles; Rodinia's one element a thread gives 10,201";
        /// unknowns that are eliminated, at most all but one
        steps: count(1..=46_339) = 4, "assumed: all steps do the same to a shrinking matrix under the same grid";
    }
    lay_out(name, request, memory) {
        let size = request.scale.side_of(size);
        check_indices(name, size * size, "elements")?;
        let steps = request.fit("steps", steps, steps.min(size - 1), "all but one of the unknowns, at most");
    }
    struct System {
        /// Coefficient matrix in row-major order.
        matrix: Array<f32>[size * size],
        /// Multiples of the pivot's row subtracted from each row.
        multipliers: Array<f32>[size * size],
        // The vector would follow the root of the scale. It keeps its full length instead, and only its first part is
        // in use.
        right: Array<f32>[request.values.count("size").max(size), fixed],
        size, tile, steps: i32,
        seed: u64 = request.seed,
    }
}

impl System {
    /// Divides the column below `pivot` by the pivot element.
    fn divide(&self, cta: &mut Cta<'_>, pivot: i32) {
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 1, warp.global_thread());
            warp.when(thread.lt(self.size - 1 - pivot), |warp| {
                let at = (thread + (pivot + 1)) * self.size + pivot;
                let at = warp.compute(ComputeClass::Int, 2 + 2 * ADDRESS, at);
                let value = warp.load(self.matrix, at);
                let divisor = warp.load(self.matrix, Lanes::all(self.size * pivot + pivot));
                let ratio = warp.compute(ComputeClass::Fp32, 8, value / divisor);
                warp.store(self.multipliers, at, ratio);
            });
        });
    }

    /// Subtracts multiples of row `pivot` from the rows below.
    fn subtract(&self, cta: &mut Cta<'_>, pivot: i32) {
        let (tiles, index) = ((self.size as u32).div_ceil(self.tile as u32), cta.index());
        let [top, left] = [index % tiles, index / tiles].map(|tile| tile as i32 * self.tile);
        let (rows, columns) = (self.size - 1 - pivot, self.size - pivot);
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let [x, y] = warp.compute(ComputeClass::Int, 4, [thread % SIDE, thread / SIDE]);
            for down in (0..self.tile).step_by(SIDE as usize) {
                let row = x + (top + down);
                let taken = x.lt(self.tile - down) & row.lt(rows);
                for across in (0..self.tile).step_by(SIDE as usize) {
                    let column = y + (left + across);
                    warp.when(taken & y.lt(self.tile - across) & column.lt(columns), |warp| {
                        let first = (row + (pivot + 1)) * self.size + pivot;
                        let at = warp.compute(ComputeClass::Int, 4 + 3 * ADDRESS, first + column);
                        let multiplier = warp.load(self.multipliers, first);
                        let above = warp.load(self.matrix, column + (self.size * pivot + pivot));
                        let value = warp.load(self.matrix, at) - multiplier * above;
                        let value = warp.compute(ComputeClass::Fp32, 1, value);
                        warp.store(self.matrix, at, value);
                        warp.when(column.eq(0), |warp| {
                            let row = row + (pivot + 1);
                            let above = warp.load(self.right, Lanes::all(pivot));
                            let value = warp.load(self.right, row) - multiplier * above;
                            let value = warp.compute(ComputeClass::Fp32, 1, value);
                            warp.store(self.right, row, value);
                        });
                    });
                }
            }
        });
    }

    /// Matrix element: the diagonal outweighs the rest in its row, and every row and column has non-zero elements.
    fn element(&self, index: u64) -> f32 {
        let size = self.size as u64;
        if index / size == index % size { size as f32 } else { noise::unit(self.seed, index) }
    }
}

impl Instance for System {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.matrix, |index| self.element(index));
        memory.fill(self.right, |index| noise::unit(!self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.multipliers);
        host.copy_to_device(self.matrix);
        host.copy_to_device(self.right);
        let tiles = (self.size as u64).div_ceil(self.tile as u64);
        let rows = (self.size as u64).div_ceil(u64::from(THREADS));
        for pivot in 0..self.steps {
            host.launch(Grid::new("fan-1", rows, THREADS), |cta| self.divide(cta, pivot))?;
            host.launch(Grid::new("fan-2", tiles * tiles, (SIDE * SIDE) as u32), |cta| self.subtract(cta, pivot))?;
        }
        host.copy_to_host(self.multipliers);
        host.copy_to_host(self.matrix);
        host.copy_to_host(self.right);
        Ok(())
    }

    /// Eliminates row by row. Each element undergoes equal operations in equal order, so rounding errors are equal,
    /// too.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let size = self.size as usize;
        let mut rows: Vec<f32> = (0..self.matrix.len()).map(|index| self.element(index)).collect();
        let mut right: Vec<f32> = (0..self.right.len()).map(|index| noise::unit(!self.seed, index)).collect();
        let mut multipliers = vec![0.0; rows.len()];
        for pivot in 0..self.steps as usize {
            let (above, below) = rows.split_at_mut((pivot + 1) * size);
            let above = &above[pivot * size..];
            for (row, value) in below.chunks_mut(size).zip(pivot + 1..) {
                let multiplier = row[pivot] / above[pivot];
                multipliers[value * size + pivot] = multiplier;
                (pivot..size).for_each(|column| row[column] -= multiplier * above[column]);
                right[value] -= multiplier * right[pivot];
            }
        }
        compare("multipliers", memory.to_vec(self.multipliers), multipliers, 0.0)?;
        compare("matrix", memory.to_vec(self.matrix), rows, 0.0)?;
        compare("right", memory.to_vec(self.right), right, 0.0)
    }
}
