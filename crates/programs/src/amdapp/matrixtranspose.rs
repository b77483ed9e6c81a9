//! MatrixTranspose from the AMD APP SDK: tiles of 16 x 16 pass through the scratchpad, and each thread reads back only
//! the element written by itself.
//!
//! The scratchpad therefore transposes nothing: threads load along rows and store along columns.

use super::square_grid::SquareGrid;
use crate::prelude::*;

/// Side length for a tile, and for a group (`blockSize`).
const SIDE: i32 = 16;
/// Elements per tile.
const TILE: usize = (SIDE * SIDE) as usize;

/// Work before the load.
const LOAD: InstructionCounts = InstructionCounts { fp32: 2, int: 10, other: 0, special: 0 };
/// Work between the load and the store to the scratchpad.
const STAGE: InstructionCounts = InstructionCounts { fp32: 0, int: 4, other: 0, special: 0 };
/// Work between the barrier and the load from the scratchpad.
const FETCH: InstructionCounts = InstructionCounts { fp32: 0, int: 1, other: 0, special: 0 };
/// Work before the store.
const STORE: InstructionCounts = InstructionCounts { fp32: 0, int: 5, other: 0, special: 0 };

program! {
    /// transposes a matrix in tiles of 16 x 16: loads along rows, stores a column apart
    pub(crate) static MATRIXTRANSPOSE = "amdapp-matrixtranspose",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), MatrixTranspose; UMH, Table I";
    properties: data_independent;
    parameters {
        /// side of the matrices of 4-byte floats, at scale 1; scales by the root, to whole tiles of 16
        side: count(1..=1 << 16) = 1024, "UMH, Table I: 1024 x 1024";
    }
    lay_out(name, request, memory) {
        let side = request.fit_multiple("side", request.scale.side_of(side), SIDE as u64);
        check_indices(name, side * side, "elements")?;
        let grid = SquareGrid { width: side as i32, side: SIDE };
    }
    struct MatrixTranspose {
        /// `[row][column]`.
        input: Array<f32>[side * side],
        /// `[column][row]`.
        output: Array<f32>[side * side],
        grid: SquareGrid,
        seed: u64 = request.seed,
    }
}

impl MatrixTranspose {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let mut tile: Shared<f32> = cta.shared(TILE);
        cta.each_warp(|warp| {
            LOAD.alone(warp);
            let [column, row] = self.grid.global(warp);
            let value = warp.load(self.input, row * self.grid.width + column);
            STAGE.alone(warp);
            warp.store_shared(&mut tile, warp.thread(), value);
        });
        cta.barrier();
        cta.each_warp(|warp| {
            FETCH.alone(warp);
            let value = warp.load_shared(&tile, warp.thread());
            STORE.alone(warp);
            let [column, row] = self.grid.global(warp);
            warp.store(self.output, column * self.grid.width + row, value);
        });
    }

    /// A value from 0 to below 256, in steps of 2^-16.
    fn start(&self, index: u64) -> f32 {
        noise::below(self.seed, index, 1 << 24) as f32 / 65_536.0
    }
}

impl Instance for MatrixTranspose {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.start(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        let groups = self.input.len() / TILE as u64;
        let grid = Grid::new("transpose", groups, self.grid.threads()).shared_bytes(4 * TILE as u32);
        host.launch(grid, |cta| self.kernel(cta))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let side = self.grid.width as u64;
        let expected = (0..side * side).map(|at| self.start(at % side * side + at / side));
        compare("output", memory.to_vec(self.output), expected, 0.0)
    }
}
