//! Transposes a square matrix through the scratchpad, in 64 x 64 tiles, processed by CTAs along diagonals.

use crate::prelude::*;

/// Tile side length, in elements. Source: [`MI300A_KERNELS`].
const TILE: i32 = 64;
/// Elements per vector, and side length of a thread's block, transposed in registers. Source: [`MI300A_KERNELS`].
const VECTOR: i32 = 4;
/// Vectors per tile row, and threads along each side of a CTA.
const SIDE: i32 = TILE / VECTOR;

program! {
    /// transposes a matrix through the scratchpad: strided rows, bank conflicts
    pub(crate) static MATRIXTRANSPOSE = "matrixtranspose", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        /// side of the matrices of 4-byte floats, at scale 1; scales by the root, to whole tiles of 64
        side: count(1..=1 << 16) = 3072, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        let side = request.fit_multiple("side", request.scale.side_of(side), TILE as u64);
    }
    struct MatrixTranspose {
        input, output: Array<f32>[side * side],
        side: i64,
        seed: u64 = request.seed,
    }
}

impl MatrixTranspose {
    fn tiles(&self) -> i64 {
        self.side / i64::from(TILE)
    }

    /// Index of the element at a row and a vector column.
    fn at(&self, row: Lanes<i32>, vector: Lanes<i32>) -> Lanes<i64> {
        row.cast::<i64>() * self.side + vector.cast::<i64>() * i64::from(VECTOR)
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        let tiles = self.tiles();
        let (bx, by) = (i64::from(cta.index()) % tiles, i64::from(cta.index()) / tiles);
        let (tile_row, tile_column) = (bx as i32, ((bx + by) % tiles) as i32);
        let mut tile: Shared<f32> = cta.shared((TILE * TILE) as usize);
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, DIVISION + 8, warp.thread());
            let (x, y) = (thread % SIDE, thread / SIDE);
            let rows: Vec<[Lanes<f32>; VECTOR as usize]> = (0..VECTOR)
                .map(|r| {
                    let at = self.at(y * VECTOR + (TILE * tile_row + r), x + SIDE * tile_column);
                    let at = warp.compute(ComputeClass::Int, 2 * ADDRESS, at);
                    warp.load_vector(self.input, at)
                })
                .collect();
            for (r, row) in (0..).zip(rows) {
                let slot = (y * VECTOR + r) * SIDE + x;
                warp.store_shared_vector(&mut tile, slot * VECTOR, row);
            }
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let (x, y) = (thread % SIDE, thread / SIDE);
            let block: Vec<[Lanes<f32>; VECTOR as usize]> =
                (0..VECTOR).map(|r| warp.load_shared_vector(&tile, ((x * VECTOR + r) * SIDE + y) * VECTOR)).collect();
            for r in 0..VECTOR {
                let column: [_; VECTOR as usize] = std::array::from_fn(|row| block[row][r as usize]);
                let at = self.at(y * VECTOR + (TILE * tile_column + r), x + SIDE * tile_row);
                let at = warp.compute(ComputeClass::Int, 2 * ADDRESS, at);
                warp.store_vector(self.output, at, column);
            }
        });
    }
}

impl Instance for MatrixTranspose {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| noise::unit(self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        let ctas = (self.tiles() * self.tiles()) as u64;
        let grid = Grid::new("transpose", ctas, (SIDE * SIDE) as u32).shared_bytes(4 * (TILE * TILE) as u32);
        host.launch(grid, |cta| self.kernel(cta))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let side = self.side as u64;
        let expected = (0..side * side).map(|at| noise::unit(self.seed, at % side * side + at / side));
        compare("output", memory.to_vec(self.output), expected, 0.0)
    }
}
