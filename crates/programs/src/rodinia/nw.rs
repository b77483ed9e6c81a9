//! Rodinia nw: Needleman-Wunsch alignment between two sequences, with a wavefront of kernels over tiles.
//!
//! Launch `i` computes the tiles on anti-diagonal `i`. Within a tile, one thread per column walks the tile's own
//! anti-diagonals through the scratchpad.

use crate::prelude::*;

/// Lowest and highest similarity score. Source: BLOSUM62, the matrix in Rodinia's nw; the scores themselves are random,
/// because no address depends on them.
const SCORES: (i32, i32) = (-4, 11);

program! {
    /// Needleman-Wunsch: thousands of short dependent kernels along a wavefront
    pub(crate) static NW = "nw", "Rodinia 3.1 nw; HMG Table III (Rodinia_nw-16K-10)";
    properties: nonlinear, data_independent;
    parameters {
        /// length of each sequence, at scale 1; scales by the root, to whole tiles
        length: count(16..=1 << 15) = 16_384,
            "HMG Table III: nw-16K-10, 2.00 GB in two square arrays of 4-byte integers";
        /// cost of a gap
        penalty: count(0..=1000) = 10, "HMG Table III: nw-16K-10";
        /// side of a tile, and threads of a CTA
        tile: one_of(16, 32, 64) = 16, "Rodinia 3.1 nw (`BLOCK_SIZE`); 64: MGPUSim, gpu_perf_scripts";
    }
    lay_out(name, request, memory) {
        let length = request.fit_multiple("length", request.scale.side_of(length), tile);
        let cells = (length + 1) * (length + 1);
        check_indices(name, cells, "cells")?;
    }
    struct Alignment {
        reference, matrix: Array<i32>[cells],
        /// Length of each sequence, a multiple of `tile`.
        length: i32,
        penalty, tile: i32,
        seed: u64 = request.seed,
    }
}

/// A tile in the scratchpad: `tile + 1` squared scores, `tile` squared similarities.
struct ScratchTile {
    scores: Shared<i32>,
    similar: Shared<i32>,
}

impl Alignment {
    /// Computes one tile whose upper left cell inside the borders is `(row, column)`, counted from 0.
    fn kernel(&self, cta: &mut Cta<'_>, row: i32, column: i32) {
        let (side, pitch) = (self.tile, self.length + 1);
        let corner = pitch * row + column;
        let mut tile = ScratchTile {
            scores: cta.shared(((side + 1) * (side + 1)) as usize),
            similar: cta.shared((side * side) as usize),
        };
        self.load(cta, corner, &mut tile);
        for diagonal in 0..side {
            cta.each_warp(|warp| self.step(warp, &mut tile, diagonal, Lanes::all(0)));
            cta.barrier();
        }
        for diagonal in (0..side - 1).rev() {
            cta.each_warp(|warp| self.step(warp, &mut tile, diagonal, Lanes::all(side - 1 - diagonal)));
            cta.barrier();
        }
        cta.each_warp(|warp| {
            let x = warp.thread();
            for y in 0..side {
                let score = warp.load_shared(&tile.scores, x + ((y + 1) * (side + 1) + 1));
                let at = warp.compute(ComputeClass::Int, 1, x + (corner + pitch * (y + 1) + 1));
                warp.store(self.matrix, at, score);
            }
        });
    }

    /// Loads similarities, and the borders left by earlier tiles, from memory into the scratchpad.
    fn load(&self, cta: &mut Cta<'_>, corner: i32, tile: &mut ScratchTile) {
        let (side, pitch) = (self.tile, self.length + 1);
        cta.each_warp(|warp| {
            let x = warp.compute(ComputeClass::Int, 8, warp.thread());
            warp.single(|warp| {
                let score = warp.load(self.matrix, Lanes::all(corner));
                warp.store_shared(&mut tile.scores, Lanes::all(0), score);
            });
            let rows: Vec<_> =
                (0..side).map(|y| warp.load(self.reference, x + (corner + pitch * (y + 1) + 1))).collect();
            for (y, row) in (0..).zip(rows) {
                warp.store_shared(&mut tile.similar, x + y * side, row);
            }
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let y = warp.thread();
            let west = warp.load(self.matrix, y * pitch + (corner + pitch));
            warp.store_shared(&mut tile.scores, (y + 1) * (side + 1), west);
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let x = warp.thread();
            let north = warp.load(self.matrix, x + (corner + 1));
            warp.store_shared(&mut tile.scores, x + 1, north);
        });
        cta.barrier();
    }

    /// Computes the cells on one anti-diagonal: threads 0 to `diagonal`, `shift` columns in.
    fn step(&self, warp: &mut Warp<'_>, tile: &mut ScratchTile, diagonal: i32, shift: Lanes<i32>) {
        let pitch = self.tile + 1;
        let thread = warp.thread();
        warp.when(thread.le(diagonal), |warp| {
            let x = thread + shift + 1;
            let y = thread * -1 + shift + (diagonal + 1);
            let at = warp.compute(ComputeClass::Int, 5, y * pitch + x);
            let diagonal = warp.load_shared(&tile.scores, at - (pitch + 1));
            let similar = warp.load_shared(&tile.similar, (y - 1) * self.tile + x - 1);
            let west = warp.load_shared(&tile.scores, at - 1);
            let north = warp.load_shared(&tile.scores, at - pitch);
            let best = (diagonal + similar).max(west - self.penalty).max(north - self.penalty);
            let best = warp.compute(ComputeClass::Int, 4, best);
            warp.store_shared(&mut tile.scores, at, best);
        });
    }

    fn similarity(&self, index: u64) -> i32 {
        let (low, high) = SCORES;
        low + noise::below(self.seed, index, (high - low + 1) as u64) as i32
    }
}

impl Instance for Alignment {
    fn fill(&self, memory: &Memory) {
        let pitch = self.length as u64 + 1;
        memory.fill(self.reference, |index| self.similarity(index));
        for place in 0..pitch {
            memory.write(self.matrix, place, -(place as i32) * self.penalty);
            memory.write(self.matrix, place * pitch, -(place as i32) * self.penalty);
        }
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.reference);
        host.copy_to_device(self.matrix);
        let tiles = self.length / self.tile;
        let cells = (self.tile + 1) * (self.tile + 1) + self.tile * self.tile;
        host.series((2 * tiles - 1) as u64, |host, wave| {
            let wave = wave as i32;
            // First tile column on this anti-diagonal, and its number of tiles.
            let first = (wave - tiles + 1).max(0);
            let count = wave.min(tiles - 1) - first + 1;
            let grid = Grid::new("nw", count as u64, self.tile as u32).shared_bytes(4 * cells as u32);
            host.launch(grid, |cta| {
                let column = first + cta.index() as i32;
                self.kernel(cta, (wave - column) * self.tile, column * self.tile);
            })
        })?;
        host.copy_to_host(self.matrix);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let pitch = self.length as usize + 1;
        let mut above: Vec<i32> = (0..pitch as i32).map(|column| -column * self.penalty).collect();
        for row in 1..pitch {
            let mut scores = vec![-(row as i32) * self.penalty];
            for column in 1..pitch {
                let at = (row * pitch + column) as u64;
                let matched = above[column - 1] + self.similarity(at);
                let best = matched.max(scores[column - 1] - self.penalty).max(above[column] - self.penalty);
                scores.push(best);
                let found = memory.read(self.matrix, at);
                if found != best {
                    return Err(format!("score ({row}, {column}) is {found}, expected {best}"));
                }
            }
            above = scores;
        }
        Ok(())
    }
}
