//! Device kernels for one level.

use super::host_solver::{BORDER, SLOPE};
use super::level::{Border, BoxTile, GhostCopy, GridLevel, Reach};
use super::{Multigrid, RecordResult};
use crate::prelude::*;

/// Threads per CTA in the ghost-cell copy kernel. Source: hpgmg-cuda, `COPY_THREAD_BLOCK_SIZE`.
const COPY_THREADS: u32 = 64;
/// Threads per CTA in the boundary kernel, and threads per tile. Source: hpgmg-cuda, `boundary_fv.h` (`BLOCK_SIZE`,
/// `NUM_BATCH`).
const BORDER_THREADS: u32 = 128;
const BORDER_GROUP: i32 = 16;
/// Threads per CTA in the kernels that clear, copy or compute a norm. Source: hpgmg-cuda, `MISC_THREAD_BLOCK_SIZE`.
const VECTOR_THREADS: u32 = 256;
/// Instructions that read a tile from its list and form its first cell's address. Source: assumed.
const PROLOGUE: u16 = 12;
/// Memory order for the norm's atomics. Source: CUDA's `atomicMax`, relaxed at device scope.
const MAXIMA: Order = Order::relaxed(Scope::Gpu);

/// Ghost-cell copies and borders for a level at one reach.
pub(super) struct Ghosts {
    exchanges: Vec<GhostCopy>,
    borders: Vec<Border>,
}

impl Ghosts {
    pub(super) fn new(level: &GridLevel, reach: Reach) -> Ghosts {
        Ghosts { exchanges: level.exchanges(reach), borders: level.borders(reach) }
    }
}

/// A thread's column with cells, walked along z.
struct CellColumn {
    /// Index for the column's first cell.
    at: Lanes<i32>,
    /// Coordinates in the level for the column's first cell.
    place: [Lanes<i32>; 3],
    cells: i32,
}

impl Multigrid {
    /// Fills the ghost cells in `vector` that a stencil with this reach reads: from neighbouring boxes, and then by the
    /// boundary condition.
    pub(super) fn fill_ghosts(
        &self,
        host: &mut Host<'_>,
        depth: usize,
        reach: Reach,
        vector: Array<f64>,
    ) -> RecordResult {
        let level = self.levels[depth];
        let ghosts = &self.ghosts[depth][usize::from(reach == Reach::Box)];
        if !ghosts.exchanges.is_empty() {
            host.launch(Grid::new("exchange", ghosts.exchanges.len() as u64, COPY_THREADS), |cta| {
                let exchange = &ghosts.exchanges[cta.index() as usize];
                cta.each_warp(|warp| copy_ghosts(warp, &level, exchange, vector));
            })?;
        }
        let groups = BORDER_THREADS / BORDER_GROUP as u32;
        let ctas = (ghosts.borders.len() as u64).div_ceil(u64::from(groups));
        host.launch(Grid::new("boundary", ctas, BORDER_THREADS), |cta| {
            cta.each_warp(|warp| {
                let border = warp.compute(ComputeClass::Int, 2, warp.global_thread() / BORDER_GROUP);
                warp.when(border.lt(ghosts.borders.len() as i32), |warp| {
                    warp.compute(ComputeClass::Int, PROLOGUE, ());
                    let outside =
                        border.map(|at| ghosts.borders.get(at as usize).map_or(0, |it| it.inwards.len()) as i32);
                    // Domain faces, edges and corners take separate branches in the kernel.
                    for axes in 1..=3 {
                        warp.when(outside.eq(axes), |warp| apply_border(warp, &ghosts.borders, border, axes, vector));
                    }
                });
            });
        })
    }

    /// Runs `body(warp, column)` for each column in each tile, a thread per column.
    fn each_column(
        host: &mut Host<'_>,
        name: &str,
        level: GridLevel,
        body: impl Fn(&mut Warp<'_>, &CellColumn) + Sync,
    ) -> RecordResult {
        let [across, rows] = level.threads();
        host.launch(Grid::new(name, level.tiles(), (across * rows) as u32), |cta: &mut Cta<'_>| {
            let tile = level.tile(cta.index());
            cta.each_warp(|warp| {
                let thread = warp.compute(ComputeClass::Int, 2, warp.thread());
                let [x, y] = [thread % across, thread / across];
                warp.when(x.lt(tile.cells[0]) & y.lt(tile.cells[1]), |warp| {
                    let column = column(warp, &level, &tile, [x, y]);
                    body(warp, &column);
                });
            });
        })
    }

    /// [`Multigrid::each_column`] for a stencil: runs
    /// `body(warp, cell, its colour, its value in `u`, the operator there)` for each cell. A column keeps three values
    /// and two faces in registers.
    fn each_stencil(
        &self,
        host: &mut Host<'_>,
        name: &str,
        level: GridLevel,
        u: Array<f64>,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>, Lanes<i32>, Lanes<f64>, Lanes<f64>) + Sync,
    ) -> RecordResult {
        let [_, row, plane] = level.strides;
        Self::each_column(host, name, level, |warp, column| {
            let mut below = warp.load(u, column.at - plane);
            let mut centre = warp.load(u, column.at);
            let mut face = warp.load(self.beta[2], column.at);
            let [x, y, z] = column.place;
            for step in 0..column.cells {
                let at = warp.compute(ComputeClass::Int, 8, column.at + plane * step);
                let (above, next) = (warp.load(u, at + plane), warp.load(self.beta[2], at + plane));
                let mut flow = face * (below - centre) + next * (above - centre);
                for (axis, stride) in [(0, 1), (1, row)] {
                    let high = warp.load(self.beta[axis], at + stride) * (warp.load(u, at + stride) - centre);
                    let low = warp.load(self.beta[axis], at) * (warp.load(u, at - stride) - centre);
                    flow = flow + low + high;
                }
                // Six differences, six products and their sum, and the factor.
                let applied = warp.compute_wide(ComputeClass::Fp64, 13, 2, flow * -level.scale);
                body(warp, at, (x + y + z + step) % 2, centre, applied);
                (below, centre, face) = (centre, above, next);
            }
        })
    }

    /// Half a red-black sweep from `from` to `to`: cells with one colour are updated, the rest are copied.
    pub(super) fn half_sweep(
        &self,
        host: &mut Host<'_>,
        depth: usize,
        half: i32,
        [from, to]: [Array<f64>; 2],
    ) -> RecordResult {
        self.each_stencil(host, "smooth", self.levels[depth], from, |warp, at, colour, centre, applied| {
            let inverse = warp.load(self.inverse, at);
            let rhs = warp.load(self.remainder, at);
            let moves = warp.compute(ComputeClass::Int, 2, colour.eq(half % 2));
            let moved = moves.select(centre + inverse * (rhs - applied), centre);
            let moved = warp.compute(ComputeClass::Fp64, 3, moved);
            warp.store(to, at, moved);
        })
    }

    /// Subtracts the operator applied to the solution from `rhs`; the result goes to the second solution vector.
    pub(super) fn find_residual(&self, host: &mut Host<'_>, depth: usize, rhs: Array<f64>) -> RecordResult {
        let [u, residual] = self.u;
        self.each_stencil(host, "residual", self.levels[depth], u, |warp, at, _, _, applied| {
            let rhs = warp.load(rhs, at);
            let rest = warp.compute(ComputeClass::Fp64, 1, rhs - applied);
            warp.store(residual, at, rest);
        })
    }

    /// Averages eight cells in `from` for each cell on the coarser level, as its right-hand side.
    pub(super) fn restrict(&self, host: &mut Host<'_>, depth: usize, from: Array<f64>) -> RecordResult {
        let (fine, coarse) = (self.levels[depth], self.levels[depth + 1]);
        let [across, rows] = coarse.threads();
        let [_, row, plane] = fine.strides;
        host.launch(Grid::new("restrict", coarse.tiles(), (across * rows) as u32), |cta: &mut Cta<'_>| {
            let tile = coarse.tile(cta.index());
            let (to, corner) = (first(&coarse, &tile), fine.index(tile.block, tile.low.map(|at| at * 2)));
            cta.each_warp(|warp| {
                let thread = warp.compute(ComputeClass::Int, 2, warp.thread());
                let [x, y] = [thread % across, thread / across];
                warp.when(x.lt(tile.cells[0]) & y.lt(tile.cells[1]), |warp| {
                    warp.compute(ComputeClass::Int, PROLOGUE, ());
                    for z in 0..tile.cells[2] {
                        let read = x * 2 + y * (2 * row) + (corner + z * 2 * plane);
                        let read = warp.compute(ComputeClass::Int, 6, read);
                        let mut sum = Lanes::all(0.0);
                        for offset in [0, row, plane, plane + row] {
                            sum = sum + warp.load(from, read + offset) + warp.load(from, read + (offset + 1));
                        }
                        let mean = warp.compute(ComputeClass::Fp64, 8, sum * 0.125);
                        let written = x + y * coarse.strides[1] + (to + z * coarse.strides[2]);
                        warp.store(self.remainder, written, mean);
                    }
                });
            });
        })
    }

    /// Adds the coarser level's solution, interpolated over 27 cells, to `kept` times the finer level's solution. A
    /// thread sets two rows in two planes at a time; CTAs beyond the end on a coarse tile exit at once.
    pub(super) fn interpolate(&self, host: &mut Host<'_>, depth: usize, kept: f64) -> RecordResult {
        let (fine, coarse) = (self.levels[depth], self.levels[depth + 1]);
        let [across, rows] = fine.threads();
        let along = (fine.sides[0] as u32).div_ceil(across as u32);
        let grid = Grid::new("interpolate", coarse.tiles() * u64::from(along), (across * rows) as u32);
        host.launch(grid, |cta: &mut Cta<'_>| {
            let tile = coarse.tile(cta.index() / along);
            let part = (cta.index() % along) as i32 * across;
            cta.each_warp(|warp| {
                let thread = warp.compute(ComputeClass::Int, 4, warp.thread());
                let [x, y] = [thread % across + part, thread / across];
                warp.when(x.lt(2 * tile.cells[0]) & y.lt(tile.cells[1]), |warp| {
                    warp.compute(ComputeClass::Int, PROLOGUE, ());
                    for z in 0..tile.cells[2] {
                        self.interpolate_four(warp, [&fine, &coarse], &tile, [x, y], z, kept);
                    }
                });
            });
        })
    }

    /// Interpolates the four fine cells in two rows and two planes around a coarse cell, at `x` along the tile.
    fn interpolate_four(
        &self,
        warp: &mut Warp<'_>,
        [fine, coarse]: [&GridLevel; 2],
        tile: &BoxTile,
        [x, y]: [Lanes<i32>; 2],
        z: i32,
        kept: f64,
    ) {
        let [_, row, plane] = coarse.strides;
        let around = x / 2 + y * row + (first(coarse, tile) + z * plane);
        let around = warp.compute(ComputeClass::Int, 10, around);
        let slope = x.map(|at| if at % 2 == 0 { SLOPE } else { -SLOPE });
        // Sums by plane and row over the three coarse cells along x.
        let mut lines = [[Lanes::all(0.0); 3]; 3];
        for (far, line) in (-1..).zip(lines.iter_mut()) {
            for (near, line) in (-1..).zip(line) {
                let at = around + (near * row + far * plane);
                let [left, middle, right] = [-1, 0, 1].map(|step| warp.load(self.u[0], at + step));
                *line = slope * left + middle - slope * right;
            }
        }
        let corner = fine.index(tile.block, tile.low.map(|at| at * 2));
        let written = x + y * (2 * fine.strides[1]) + (corner + z * 2 * fine.strides[2]);
        for (up, back) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let [near, far] = [back, up].map(|odd| if odd == 0 { SLOPE } else { -SLOPE });
            let planes = lines.map(|[low, middle, high]| low * near + middle - high * near);
            let sum = planes[0] * far + planes[1] - planes[2] * far;
            let at = warp.compute(ComputeClass::Int, 2, written + (back * fine.strides[1] + up * fine.strides[2]));
            let old = warp.load(self.u[0], at);
            // A quarter share from the 18 operations along x, six along y, two along z, two with the old value.
            let value = warp.compute_wide(ComputeClass::Fp64, 15, 3, old * kept + sum);
            warp.store(self.u[0], at, value);
        }
    }

    /// Zeros a vector, including its ghost cells.
    pub(super) fn clear(&self, host: &mut Host<'_>, depth: usize, vector: Array<f64>) -> RecordResult {
        let level = self.levels[depth];
        host.launch(Grid::new("clear", level.tiles(), VECTOR_THREADS), |cta| {
            let mut tile = level.tile(cta.index());
            for axis in 0..3 {
                // Tiles at the box's faces include its ghost cells.
                let (low, cells) = (tile.low[axis], tile.cells[axis]);
                let [before, behind] = [low == 0, low + cells == level.sides[axis]].map(i32::from);
                (tile.low[axis], tile.cells[axis]) = (low - before, cells + before + behind);
            }
            cta.each_warp(|warp| each_cell(warp, &level, &tile, |warp, at| warp.store(vector, at, 0.0)));
        })
    }

    /// Copies the right-hand side to the vector that cycles use as their right-hand side.
    pub(super) fn copy_rhs(&self, host: &mut Host<'_>) -> RecordResult {
        let level = self.levels[0];
        host.launch(Grid::new("copy", level.tiles(), VECTOR_THREADS), |cta| {
            let tile = level.tile(cta.index());
            cta.each_warp(|warp| {
                each_cell(warp, &level, &tile, |warp, at| {
                    let value = warp.load(self.rhs, at);
                    let value = warp.compute(ComputeClass::Fp64, 2, value);
                    warp.store(self.remainder, at, value);
                });
            });
        })
    }

    /// Largest magnitude in a vector on the finest level, read by the host. Magnitudes compare like their bit patterns.
    pub(super) fn find_norm(&self, host: &mut Host<'_>, vector: Array<f64>) -> RecordResult {
        let level = self.levels[0];
        host.memory().clear(self.norm);
        let grid = Grid::new("norm", level.tiles(), VECTOR_THREADS).shared_bytes(8 * VECTOR_THREADS / 32);
        host.launch(grid, |cta| {
            let (tile, warps) = (level.tile(cta.index()), cta.warps() as i32);
            let mut largest = cta.shared::<f64>(warps as usize);
            cta.each_warp(|warp| {
                let mut most = Lanes::all(0.0);
                each_cell(warp, &level, &tile, |warp, at| {
                    let value = warp.load(vector, at).map(f64::abs);
                    let larger = warp.compute(ComputeClass::Fp64, 2, most.max(value));
                    most = warp.update(most, larger);
                });
                let most = max_lanes(warp, most);
                let own = Lanes::all(warp.index() as i32);
                warp.single(|warp| warp.store_shared(&mut largest, own, most));
            });
            cta.barrier();
            cta.warp(0, |warp| {
                let (lane, mut most) = (warp.lane(), Lanes::all(0.0));
                warp.when(lane.lt(warps), |warp| {
                    let own = warp.load_shared(&largest, lane);
                    most = warp.update(most, own);
                });
                let most = max_lanes(warp, most).map(f64::to_bits);
                warp.single(|warp| warp.reduce(Reduction::Max, self.norm, Lanes::all(0), most, MAXIMA));
            });
        })?;
        host.memory().read(self.norm, 0);
        Ok(())
    }
}

/// Index for the first cell in a tile.
fn first(level: &GridLevel, tile: &BoxTile) -> i32 {
    level.index(tile.block, tile.low)
}

fn column(warp: &mut Warp<'_>, level: &GridLevel, tile: &BoxTile, [x, y]: [Lanes<i32>; 2]) -> CellColumn {
    let low = level.low(tile.block);
    let [left, front, bottom] = [0, 1, 2].map(|axis| low[axis] + tile.low[axis]);
    let at = x + y * level.strides[1] + first(level, tile);
    let at = warp.compute(ComputeClass::Int, PROLOGUE, at);
    CellColumn { at, place: [x + left, y + front, Lanes::all(bottom)], cells: tile.cells[2] }
}

/// Runs `body(warp, index)` for each cell in a tile: threads run over its rows, and each walks along z.
fn each_cell(warp: &mut Warp<'_>, level: &GridLevel, tile: &BoxTile, mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>)) {
    let [across, rows, planes] = tile.cells;
    let step = VECTOR_THREADS as i32 / across;
    let thread = warp.compute(ComputeClass::Int, PROLOGUE + 2 * DIVISION, warp.thread());
    let [x, mut y] = [thread % across, thread / across];
    // Threads beyond the last whole row would repeat cells from the next row.
    let mut left = y.lt(step.min(rows));
    for _ in 0..(rows as u32).div_ceil(step as u32) {
        warp.when(left, |warp| {
            for z in 0..planes {
                let at = x + y * level.strides[1] + (first(level, tile) + z * level.strides[2]);
                let at = warp.compute(ComputeClass::Int, 3, at);
                body(warp, at);
            }
        });
        y = y + step;
        left = left & y.lt(rows);
    }
}

/// Copies ghost cells, a cell per thread at a time.
fn copy_ghosts(warp: &mut Warp<'_>, level: &GridLevel, exchange: &GhostCopy, vector: Array<f64>) {
    let [across, rows, planes] = exchange.cells;
    let cells = across * rows * planes;
    warp.compute(ComputeClass::Int, PROLOGUE, ());
    for start in (0..cells).step_by(COPY_THREADS as usize) {
        let cell = warp.compute(ComputeClass::Int, 1, warp.thread() + start);
        warp.when(cell.lt(cells), |warp| {
            let row = cell / across;
            let offset = cell % across + row % rows * level.strides[1] + row / rows * level.strides[2];
            // Two divisions with their remainders, and two addresses.
            let offset = warp.compute(ComputeClass::Int, 2 * DIVISION + 8, offset);
            let value = warp.load(vector, offset + exchange.from);
            warp.store(vector, offset + exchange.to, value);
        });
    }
}

/// Sets the ghost cells in each lane's tile from the two cells inwards along each outside axis. `axes` counts the axes
/// along which the tile lies outside.
fn apply_border(warp: &mut Warp<'_>, borders: &[Border], border: Lanes<i32>, axes: i32, vector: Array<f64>) {
    let of = |value: fn(&Border) -> i32| border.map(|at| borders.get(at as usize).map_or(0, value));
    let (across, rows) = (of(|it| it.along[0].0), of(|it| it.along[1].0));
    let (stride, far, start) = (of(|it| it.along[0].1), of(|it| it.along[1].1), of(|it| it.first));
    let own = warp.thread() % BORDER_GROUP;
    let rounds = (across * rows + (BORDER_GROUP - 1) - own) / BORDER_GROUP;
    warp.repeat(rounds.cast(), |warp, round| {
        let cell = own + round as i32 * BORDER_GROUP;
        let at = start + cell % across * stride + cell / across * far;
        let at = warp.compute(ComputeClass::Int, DIVISION + 8, at);
        let mut sum = Lanes::all(0.0);
        // Combinations with depth 1 or 2 along each outside axis.
        for which in 0..1_usize << axes {
            let (mut inner, mut weight) = (at, 1.0);
            for axis in 0..axes as usize {
                let deep = which >> axis & 1;
                let inwards = border.map(|at| borders.get(at as usize).and_then(|it| it.inwards.get(axis)).copied());
                inner = inner + inwards.map(|stride| stride.unwrap_or_default() * (1 + deep as i32));
                weight *= BORDER[deep];
            }
            sum = sum + warp.load(vector, inner) * weight;
        }
        let sum = warp.compute(ComputeClass::Fp64, 1 << axes, sum);
        warp.store(vector, at, sum);
    });
}

/// Maximum over all lanes, returned in every lane: a shuffle and a comparison per step.
fn max_lanes(warp: &mut Warp<'_>, mut most: Lanes<f64>) -> Lanes<f64> {
    let mut distance = warp.width() / 2;
    while distance > 0 {
        let shuffled = warp.compute(ComputeClass::Other, 1, most);
        let other = Lanes::by_lane(|lane| shuffled.lane(lane ^ distance));
        most = warp.compute(ComputeClass::Fp64, 1, shuffled.max(other));
        distance /= 2;
    }
    most
}
