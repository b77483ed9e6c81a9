//! Stencil over a plane, alternating between two arrays: five points with a thread per point, or nine points through
//! the scratchpad with a thread per column of 16.
//!
//! Five-point CTAs are contiguous in rows, so modules share only the rows at their borders; nine-point CTAs are ordered
//! down the rows.

use crate::prelude::*;

/// Columns in a CTA's tile. Source: SHOC Stencil2D runs warp-wide tiles; rows assumed for 256 threads.
const TILE_COLUMNS: i32 = 32;
/// Rows in a CTA's tile.
const TILE_ROWS: i32 = 8;
/// Weight of the centre. Source: SHOC Stencil2D (`weight-center` 0.25, `weight-cardinal` 0.15).
const CENTRE: f32 = 0.25;
/// Weight of each neighbour.
const CARDINAL: f32 = 0.15;

/// Weight of each diagonal neighbour. Source: SHOC Stencil2D (`weight-diagonal` 0.05).
const DIAGONAL: f32 = 0.05;
/// Nine points: rows per thread. Source: MGPUSim, gpu_perf_scripts.
const OWNED: i32 = 16;
/// Nine points: threads per CTA, with a column each. Source: MGPUSim, gpu_perf_scripts.
const COLUMNS: i32 = 64;
/// Nine points: padding elements per row, including the halo. Source: MGPUSim, gpu_perf_scripts.
const PADDING: i32 = 16;

program! {
    /// iterated five-point stencil: rows at the borders of modules are shared between launches
    pub(crate) static STENCIL2D = "stencil2d", "Jacobi iteration; weights of SHOC Stencil2D";
    properties: data_independent;
    parameters {
        /// columns of the plane of 4-byte floats, at scale 1; scales
        columns: count(3..=1 << 20) = 8192,
            "assumed: twice the largest side of SHOC Stencil2D, so that the planes exceed every L2";
        /// rows of the plane; does not scale, because modules share rows
        rows: count(3..=1 << 20) = 8192, "assumed, as columns";
        /// launches
        iterations: count(1..=100_000) = 10, "assumed: enough for the state after the first sweep to dominate";
        /// points of the stencil; with 9, columns and rows are those inside a halo, in whole tiles of 64 x 16
        points: one_of(5, 9) = 5, "5: Jacobi iteration; 9: SHOC Stencil2D as in MGPUSim, gpu_perf_scripts";
    }
    lay_out(name, request, memory) {
        let columns = request.scale.of(columns);
        let nine = request.values.text("points") == "9";
        let (columns, rows, pitch) = if nine {
            let inside = request.fit_multiple("columns", columns, COLUMNS as u64);
            (inside + 2, request.fit_multiple("rows", rows, OWNED as u64) + 2, inside + PADDING as u64)
        } else {
            let columns = request.fit_least("columns", columns, 3);
            (columns, rows, columns)
        };
        check_indices(name, pitch * rows, "points")?;
    }
    struct Planes {
        planes: [Array<f32>; 2]["plane0", "plane1"; pitch * rows],
        /// Columns including the border.
        columns: i32,
        rows: i32,
        /// Elements from row to row.
        pitch: i32,
        nine: bool,
        iterations: u64,
        seed: u64 = request.seed,
    }
}

/// Nine-point kernel. A CTA with a column per thread loads 18 rows of 66 columns and computes the 16 x 64 points
/// inside.
fn sweep_nine(cta: &mut Cta<'_>, plane: &Planes, from: Array<f32>, to: Array<f32>) {
    let down = (plane.rows - 2) / OWNED;
    let (top, left) = (cta.index() as i32 % down * OWNED, cta.index() as i32 / down * COLUMNS);
    let (height, width) = (OWNED + 2, COLUMNS + 2);
    let mut tile: Shared<f32> = cta.shared((height * width) as usize);
    cta.each_warp(|warp| {
        let x = warp.compute(ComputeClass::Int, 8, warp.thread());
        let load = |warp: &mut Warp<'_>, tile: &mut Shared<f32>, x: Lanes<i32>| {
            let rows: Vec<_> = (0..height).map(|row| warp.load(from, x + ((top + row) * plane.pitch + left))).collect();
            for (row, value) in (0..).zip(rows) {
                warp.store_shared(tile, x + row * width, value);
            }
        };
        load(warp, &mut tile, x + 1);
        warp.when(x.eq(0), |warp| load(warp, &mut tile, x));
        warp.when(x.eq(COLUMNS - 1), |warp| load(warp, &mut tile, x + 2));
    });
    cta.barrier();
    cta.each_warp(|warp| {
        let x = warp.thread() + 1;
        let mut rows: Vec<[Lanes<f32>; 3]> = Vec::new();
        for row in 0..height {
            rows.push(std::array::from_fn(|side| warp.load_shared(&tile, x + (row * width + side as i32 - 1))));
            let [.., north, own, south] = &rows[..] else { continue };
            let cardinal = north[1] + south[1] + own[0] + own[2];
            let diagonal = north[0] + north[2] + south[0] + south[2];
            let sum = own[1] * CENTRE + cardinal * CARDINAL + diagonal * DIAGONAL;
            let sum = warp.compute(ComputeClass::Fp32, 11, sum);
            let at = warp.compute(ComputeClass::Int, 3, x + ((top + row - 1) * plane.pitch + left));
            warp.store(to, at, sum);
        }
    });
}

fn sweep(cta: &mut Cta<'_>, plane: &Planes, from: Array<f32>, to: Array<f32>) {
    let (columns, rows) = (plane.columns, plane.rows);
    let tiles = (columns as u32).div_ceil(TILE_COLUMNS as u32);
    let left = (cta.index() % tiles) as i32 * TILE_COLUMNS;
    let top = (cta.index() / tiles) as i32 * TILE_ROWS;
    cta.each_warp(|warp| {
        let x = warp.thread() % TILE_COLUMNS + left;
        let y = warp.thread() / TILE_COLUMNS + top;
        let at = warp.compute(ComputeClass::Int, 6, y * columns + x);
        let inner = x.ge(1) & x.lt(columns - 1) & y.ge(1) & y.lt(rows - 1);
        warp.when(inner, |warp| {
            let centre = warp.load(from, at);
            let north = warp.load(from, at - columns);
            let south = warp.load(from, at + columns);
            let west = warp.load(from, at - 1);
            let east = warp.load(from, at + 1);
            let sum = centre * CENTRE + (north + south + west + east) * CARDINAL;
            let sum = warp.compute(ComputeClass::Fp32, 5, sum);
            warp.store(to, at, sum);
        });
    });
}

impl Planes {
    fn start(&self, index: u64) -> f32 {
        noise::unit(self.seed, index)
    }
}

impl Instance for Planes {
    fn fill(&self, memory: &Memory) {
        self.planes.iter().for_each(|plane| memory.fill(*plane, |index| self.start(index)));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.planes.iter().for_each(|plane| host.copy_to_device(*plane));
        let across = (self.columns as u64).div_ceil(TILE_COLUMNS as u64);
        let down = (self.rows as u64).div_ceil(TILE_ROWS as u64);
        let [mut from, mut to] = self.planes;
        for _ in 0..self.iterations {
            if self.nine {
                let ctas = (self.columns - 2) as u64 / COLUMNS as u64 * ((self.rows - 2) as u64 / OWNED as u64);
                let tile = (OWNED + 2) * (COLUMNS + 2);
                let grid = Grid::new("stencil2d-nine", ctas, COLUMNS as u32).shared_bytes(4 * tile as u32);
                host.launch(grid, |cta| sweep_nine(cta, self, from, to))?;
            } else {
                let grid = Grid::new("stencil2d", across * down, (TILE_COLUMNS * TILE_ROWS) as u32);
                host.launch(grid, |cta| sweep(cta, self, from, to))?;
            }
            std::mem::swap(&mut from, &mut to);
        }
        host.copy_to_host(from);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (columns, rows, pitch) = (self.columns as usize, self.rows as usize, self.pitch as usize);
        let mut from: Vec<f32> = (0..(pitch * rows) as u64).map(|index| self.start(index)).collect();
        for _ in 0..self.iterations {
            let mut to = from.clone();
            for y in 1..rows - 1 {
                for x in 1..columns - 1 {
                    let at = y * pitch + x;
                    let cardinal = from[at - pitch] + from[at + pitch] + from[at - 1] + from[at + 1];
                    to[at] = from[at] * CENTRE + cardinal * CARDINAL;
                    if self.nine {
                        let (above, below) = (at - pitch, at + pitch);
                        let diagonal = from[above - 1] + from[above + 1] + from[below - 1] + from[below + 1];
                        to[at] += diagonal * DIAGONAL;
                    }
                }
            }
            from = to;
        }
        let result = memory.to_vec(self.planes[(self.iterations % 2) as usize]);
        compare("point", result, from, 1e-6)
    }
}
