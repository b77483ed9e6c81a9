//! Rodinia lud: factors of a dense matrix, L below and U above the diagonal, in place and tile by tile.
//!
//! Each step launches three kernels over the remaining matrix. `diagonal` factors its first tile in one CTA.
//! `perimeter` finishes the tiles to the right and below, with a CTA per pair. `internal` subtracts their products from
//! all other tiles, a CTA per tile. The last step only factors the diagonal tile: 3 (n / 16 - 1) + 1 launches.

use crate::prelude::*;
use crate::reference::compare;
use std::ops::Range;

/// Sides of a tile. Source: Rodinia 3.1 lud (`BLOCK_SIZE`).
const SIDE: i32 = 16;
/// Bytes per tile in the scratchpad.
const TILE: u32 = 4 * (SIDE * SIDE) as u32;
/// Instructions for a single-precision division. Source: assumed, like in gaussian: a reciprocal and its corrections.
const DIVISION: u16 = 8;

program! {
    /// LU factors of a dense matrix in place: three launches a step, over what is left of one array
    pub(crate) static LUD = "lud", "Rodinia 3.1 lud (yuhc/gpu-rodinia, cuda/lud/cuda/lud_kernel.cu); CPElide, Table II";
    properties: nonlinear, data_independent;
    parameters {
        /// rows and columns of the matrix of 4-byte floats, at scale 1; scales by the root, to whole tiles of 16
        size: count(16..=1 << 15) = 512, "CPElide, Table II: 512.dat";
        /// loads of a tile's rows: all in flight, or each written to the scratchpad before the next
        loads: choice("overlapped", "serial") = "overlapped",
            "assumed: an unrolled loop; the published binary (hal-uw/gem5-bmks-micro24, lud_hip) waits after each load";
    }
    lay_out(name, request, memory) {
        let size = request.fit_multiple("size", request.scale.side_of(size), SIDE as u64);
        check_indices(name, size * size, "elements")?;
    }
    struct Matrix {
        /// Matrix elements, `[row][column]`
        elements: Array<f32>["matrix"; size * size],
        /// Rows and columns, whole tiles.
        size: i32,
        /// True if a warp waits for each row of a tile before it loads the next.
        serial_loads: bool = loads == "serial",
        seed: u64 = request.seed,
    }
}

/// Position of an element in a tile.
fn cell(row: impl Into<Lanes<i32>>, column: impl Into<Lanes<i32>>) -> Lanes<i32> {
    row.into() * SIDE + column.into()
}

/// Subtracts the product of two numbers from `value`.
fn subtract_product(warp: &mut Warp<'_>, value: Lanes<f32>, left: Lanes<f32>, right: Lanes<f32>) -> Lanes<f32> {
    warp.compute(ComputeClass::Fp32, 1, value - left * right)
}

impl Matrix {
    /// Index of an element.
    fn at(&self, row: i32, column: i32) -> i32 {
        row * self.size + column
    }

    /// Loads rows into the scratchpad, for the tile whose first element is `corner`, a thread per `column`.
    fn load_rows(
        &self,
        warp: &mut Warp<'_>,
        corner: i32,
        rows: Range<i32>,
        column: Lanes<i32>,
        tile: &mut Shared<f32>,
    ) {
        let column = warp.compute(ComputeClass::Int, 2 + ADDRESS, column);
        let rows: Vec<_> = rows.collect();
        let in_flight = if self.serial_loads { 1 } else { rows.len() };
        for rows in rows.chunks(in_flight) {
            let load = |row: &i32| warp.load(self.elements, column + (corner + row * self.size));
            let values: Vec<_> = rows.iter().map(load).collect();
            for (row, value) in rows.iter().zip(values) {
                warp.store_shared(tile, cell(*row, column), value);
            }
        }
    }

    /// Stores rows from a tile, with a thread per `column`.
    fn store_rows(&self, warp: &mut Warp<'_>, corner: i32, rows: Range<i32>, column: Lanes<i32>, tile: &Shared<f32>) {
        for row in rows {
            let value = warp.load_shared(tile, cell(row, column));
            let at = warp.compute(ComputeClass::Int, 1, column + (corner + row * self.size));
            warp.store(self.elements, at, value);
        }
    }

    /// Factors the diagonal tile at `start`.
    fn diagonal(&self, cta: &mut Cta<'_>, start: i32) {
        let corner = self.at(start, start);
        let mut tile = cta.shared::<f32>((SIDE * SIDE) as usize);
        cta.each_warp(|warp| {
            let column = warp.thread();
            self.load_rows(warp, corner, 0..SIDE, column, &mut tile);
        });
        cta.barrier();
        for step in 0..SIDE - 1 {
            cta.each_warp(|warp| {
                let row = warp.thread();
                warp.when(row.gt(step), |warp| {
                    let mut value = warp.load_shared(&tile, cell(row, step));
                    for term in 0..step {
                        let left = warp.load_shared(&tile, cell(row, term));
                        let right = warp.load_shared(&tile, cell(term, step));
                        value = subtract_product(warp, value, left, right);
                    }
                    let pivot = warp.load_shared(&tile, cell(step, step));
                    let value = warp.compute(ComputeClass::Fp32, DIVISION, value / pivot);
                    warp.store_shared(&mut tile, cell(row, step), value);
                });
            });
            cta.barrier();
            cta.each_warp(|warp| {
                let column = warp.thread();
                warp.when(column.gt(step), |warp| {
                    let mut value = warp.load_shared(&tile, cell(step + 1, column));
                    for term in 0..=step {
                        let left = warp.load_shared(&tile, cell(step + 1, term));
                        let right = warp.load_shared(&tile, cell(term, column));
                        value = subtract_product(warp, value, left, right);
                    }
                    warp.store_shared(&mut tile, cell(step + 1, column), value);
                });
            });
            cta.barrier();
        }
        cta.each_warp(|warp| {
            let column = warp.thread();
            // The first row remains unchanged.
            self.store_rows(warp, corner, 1..SIDE, column, &tile);
        });
    }

    /// Finishes two tiles: the first half of the threads a tile to the right of the tile at `start`, the second half a
    /// tile below.
    fn perimeter(&self, cta: &mut Cta<'_>, start: i32) {
        let other = start + SIDE * (cta.index() as i32 + 1);
        let [corner, right, below] = [self.at(start, start), self.at(start, other), self.at(other, start)];
        let [mut diagonal, mut row, mut column] = std::array::from_fn(|_| cta.shared::<f32>((SIDE * SIDE) as usize));
        cta.each_warp(|warp| {
            let thread = warp.thread();
            // Each half loads half of the diagonal tile.
            warp.when(thread.lt(SIDE), |warp| {
                self.load_rows(warp, corner, 0..SIDE / 2, thread, &mut diagonal);
                self.load_rows(warp, right, 0..SIDE, thread, &mut row);
            });
            warp.when(thread.ge(SIDE), |warp| {
                self.load_rows(warp, corner, SIDE / 2..SIDE, thread - SIDE, &mut diagonal);
                self.load_rows(warp, below, 0..SIDE, thread - SIDE, &mut column);
            });
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let thread = warp.thread();
            warp.when(thread.lt(SIDE), |warp| lower(warp, thread, &diagonal, &mut row));
            warp.when(thread.ge(SIDE), |warp| upper(warp, thread - SIDE, &diagonal, &mut column));
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let thread = warp.thread();
            warp.when(thread.lt(SIDE), |warp| self.store_rows(warp, right, 1..SIDE, thread, &row));
            warp.when(thread.ge(SIDE), |warp| self.store_rows(warp, below, 0..SIDE, thread - SIDE, &column));
        });
    }

    /// Subtracts the product of a tile below and a tile to the right of `start` from the tile at their intersection.
    fn internal(&self, cta: &mut Cta<'_>, start: i32) {
        let across = ((self.size - start) / SIDE - 1) as u32;
        let [left, top] = [cta.index() % across, cta.index() / across].map(|tile| start + SIDE * (tile as i32 + 1));
        let [mut row, mut column] = std::array::from_fn(|_| cta.shared::<f32>((SIDE * SIDE) as usize));
        let place = |warp: &mut Warp<'_>| {
            let thread = warp.thread();
            warp.compute(ComputeClass::Int, 2, [thread % SIDE, thread / SIDE])
        };
        cta.each_warp(|warp| {
            let [x, y] = place(warp);
            for (corner, tile) in [(self.at(start, left), &mut row), (self.at(top, start), &mut column)] {
                let at = warp.compute(ComputeClass::Int, 2 + ADDRESS, y * self.size + x + corner);
                let value = warp.load(self.elements, at);
                warp.store_shared(tile, cell(y, x), value);
            }
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let [x, y] = place(warp);
            let mut sum = Lanes::all(0.0);
            for term in 0..SIDE {
                let (left, right) = (warp.load_shared(&column, cell(y, term)), warp.load_shared(&row, cell(term, x)));
                sum = warp.compute(ComputeClass::Fp32, 1, sum + left * right);
            }
            let at = warp.compute(ComputeClass::Int, 2 + ADDRESS, y * self.size + x + self.at(top, left));
            let value = warp.load(self.elements, at) - sum;
            let value = warp.compute(ComputeClass::Fp32, 1, value);
            warp.store(self.elements, at, value);
        });
    }

    /// Initial matrix, with a diagonal that outweighs the rest of its row, so that no pivot is near zero.
    fn start(&self, index: u64) -> f32 {
        let size = self.size as u64;
        if index / size == index % size { size as f32 } else { noise::unit(self.seed, index) }
    }
}

/// Solves L X = B for a column in a tile to the right of the diagonal.
fn lower(warp: &mut Warp<'_>, column: Lanes<i32>, diagonal: &Shared<f32>, tile: &mut Shared<f32>) {
    for step in 1..SIDE {
        let mut value = warp.load_shared(tile, cell(step, column));
        for term in 0..step {
            let left = warp.load_shared(diagonal, cell(step, term));
            let right = warp.load_shared(tile, cell(term, column));
            value = subtract_product(warp, value, left, right);
        }
        warp.store_shared(tile, cell(step, column), value);
    }
}

/// Solves X U = B for a row in a tile below the diagonal.
fn upper(warp: &mut Warp<'_>, row: Lanes<i32>, diagonal: &Shared<f32>, tile: &mut Shared<f32>) {
    for step in 0..SIDE {
        let mut value = warp.load_shared(tile, cell(row, step));
        for term in 0..step {
            let left = warp.load_shared(tile, cell(row, term));
            let right = warp.load_shared(diagonal, cell(term, step));
            value = subtract_product(warp, value, left, right);
        }
        let pivot = warp.load_shared(diagonal, cell(step, step));
        let value = warp.compute(ComputeClass::Fp32, DIVISION, value / pivot);
        warp.store_shared(tile, cell(row, step), value);
    }
}

impl Instance for Matrix {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.elements, |index| self.start(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.elements);
        let diagonal = Grid::new("diagonal", 1, SIDE as u32).shared_bytes(TILE);
        for start in (0..self.size - SIDE).step_by(SIDE as usize) {
            let tiles = ((self.size - start) / SIDE - 1) as u64;
            host.launch(diagonal.clone(), |cta| self.diagonal(cta, start))?;
            let perimeter = Grid::new("perimeter", tiles, 2 * SIDE as u32).shared_bytes(3 * TILE);
            host.launch(perimeter, |cta| self.perimeter(cta, start))?;
            let internal = Grid::new("internal", tiles * tiles, (SIDE * SIDE) as u32).shared_bytes(2 * TILE);
            host.launch(internal, |cta| self.internal(cta, start))?;
        }
        host.launch(diagonal, |cta| self.diagonal(cta, self.size - SIDE))?;
        host.copy_to_host(self.elements);
        Ok(())
    }

    /// Checks that L times U is the matrix. The diagonal of L is 1, and is not stored.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let size = self.size as usize;
        let factors: Vec<f64> = memory.to_vec(self.elements).into_iter().map(f64::from).collect();
        let columns: Vec<f64> = (0..factors.len()).map(|at| factors[at % size * size + at / size]).collect();
        for at in 0..factors.len() {
            let (row, column) = (at / size, at % size);
            let terms = row.min(column);
            let (left, right) = (&factors[row * size..][..terms], &columns[column * size..][..terms]);
            let last = if row <= column { factors[at] } else { factors[at] * factors[column * size + column] };
            let (mut sum, mut magnitude) = (last, last.abs());
            for (left, right) in left.iter().zip(right) {
                sum += left * right;
                magnitude += (left * right).abs();
            }
            let expected = f64::from(self.start(at as u64));
            compare(&format!("L times U ({row}, {column})"), sum as f32, expected, magnitude)?;
        }
        Ok(())
    }
}
