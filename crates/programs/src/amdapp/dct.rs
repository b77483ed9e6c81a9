//! DCT from the AMD APP SDK: discrete cosine transforms for blocks of 8 x 8, with a group per block.
//!
//! Both products in the sample run along columns: the second product reads the first product's result transposed. A
//! block's column is therefore multiplied by the square of the cosine matrix, and its rows are not transformed. The
//! sample's reference agrees.

use super::square_grid::SquareGrid;
use crate::prelude::*;
use crate::reference::compare;
use std::f64::consts::PI;

/// Side length for a block, and for a group.
const SIDE: i32 = 8;
/// Elements per block.
const BLOCK: usize = (SIDE * SIDE) as usize;

/// Work before the first product.
const START: InstructionCounts = InstructionCounts { fp32: 4, int: 10, other: 0, special: 0 };
/// Work per term in either product, except for the term's loads and multiplication.
const TERM: InstructionCounts = InstructionCounts { fp32: 1, int: 5, other: 1, special: 0 };
/// Work between the first product and its store to the scratchpad, and between the second product and its store.
const STORE: InstructionCounts = InstructionCounts { fp32: 1, int: 4, other: 0, special: 0 };
/// Work before the second product.
const SECOND: InstructionCounts = InstructionCounts { fp32: 1, int: 3, other: 0, special: 0 };

program! {
    /// cosine transforms of blocks of 8 x 8, one a group of 64 threads: each block read again for every term
    pub(crate) static DCT = "dct", "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), DCT; UMH, Table I";
    properties: data_independent;
    parameters {
        /// columns of the matrices of 4-byte floats, at scale 1; scale by the root, to whole blocks of 8
        columns: count(1..=1 << 16) = 1024, "UMH, Table I: 1024 x 1024";
        /// rows of the matrices, at scale 1; scale by the root, to whole blocks of 8
        rows: count(1..=1 << 16) = 1024, "UMH, Table I: 1024 x 1024";
    }
    lay_out(name, request, memory) {
        let mut side = |name| {
            let wanted = request.scale.side_of(request.values.count(name));
            request.fit_multiple(name, wanted, SIDE as u64)
        };
        let (columns, rows) = (side("columns"), side("rows"));
        check_indices(name, columns * rows, "elements")?;
    }
    struct ImageBlocks {
        /// `[row][column]`.
        input: Array<f32>[columns * rows],
        /// `[row][column]`.
        output: Array<f32>[columns * rows],
        /// Cosines: `[sample][frequency]`.
        table: Array<f32>["cosines"; BLOCK as u64, fixed],
        grid: SquareGrid = SquareGrid { width: columns as i32, side: SIDE },
        seed: u64 = request.seed,
    }
}

/// The weight of a sample in a frequency.
fn cosine(sample: usize, frequency: usize) -> f64 {
    let factor = if frequency == 0 { 0.5_f64.sqrt() } else { 1.0 };
    factor / 2.0 * ((2 * sample + 1) as f64 * frequency as f64 * PI / 16.0).cos()
}

impl ImageBlocks {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let [left, top] = self.grid.corner(cta.index());
        let width = self.grid.width;
        let mut between: Shared<f32> = cta.shared(BLOCK);
        cta.each_warp(|warp| {
            START.alone(warp);
            let [x, y] = self.grid.local(warp);
            let mut sum = Lanes::all(0.0);
            for k in 0..SIDE {
                TERM.alone(warp);
                let weight = warp.load(self.table, x + k * SIDE);
                let value = warp.load(self.input, y + ((top + k) * width + left));
                sum = warp.compute(ComputeClass::Fp32, 1, sum + weight * value);
            }
            STORE.alone(warp);
            warp.store_shared(&mut between, y * SIDE + x, sum);
        });
        cta.barrier();
        cta.each_warp(|warp| {
            SECOND.alone(warp);
            let [x, y] = self.grid.local(warp);
            let mut sum = Lanes::all(0.0);
            for k in 0..SIDE {
                TERM.alone(warp);
                let weight = warp.load(self.table, y + k * SIDE);
                let value = warp.load_shared(&between, x * SIDE + k);
                sum = warp.compute(ComputeClass::Fp32, 1, sum + value * weight);
            }
            STORE.alone(warp);
            warp.store(self.output, (y + top) * width + (x + left), sum);
        });
    }

    /// A value from 0 to below 256, in steps of 2^-16.
    fn start(&self, index: u64) -> f32 {
        noise::below(self.seed, index, 1 << 24) as f32 / 65_536.0
    }
}

impl Instance for ImageBlocks {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.start(index));
        let side = SIDE as u64;
        memory.fill(self.table, |index| cosine((index / side) as usize, (index % side) as usize) as f32);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        host.copy_to_device(self.table);
        let groups = self.input.len() / BLOCK as u64;
        let grid = Grid::new("dct", groups, self.grid.threads()).shared_bytes(4 * BLOCK as u32);
        host.launch(grid, |cta| self.kernel(cta))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (side, width) = (SIDE as usize, self.grid.width as usize);
        // The square of the cosine matrix.
        let weight = |from: usize, to: usize| (0..side).map(|k| cosine(from, k) * cosine(k, to)).sum::<f64>();
        let weights: Vec<f64> = (0..BLOCK).map(|at| weight(at / side, at % side)).collect();
        for (at, found) in memory.to_vec(self.output).into_iter().enumerate() {
            let (row, column) = (at / width, at % width);
            let top = row - row % side;
            let value = |from: usize| f64::from(self.start(((top + from) * width + column) as u64));
            let expected = (0..side).map(|from| weights[from * side + row % side] * value(from)).sum();
            let magnitude = (0..side).map(value).sum();
            compare(&format!("output[{at}]"), found, expected, magnitude)?;
        }
        Ok(())
    }
}
