//! HPGMG-FV: finite-volume geometric multigrid. A V-cycle smooths on each level, restricts the residual to the
//! next coarser one, solves the coarsest by smoothing, and interpolates the correction back.
//!
//! Every step is a kernel over one level, one thread a cell; coarse levels are short kernels of few CTAs.
//!
//! Not modelled: the boxes that HPGMG cuts a level into, and the copies of ghost cells between them; its
//! Krylov solver on the coarsest level.

use crate::bench::benchmark::Benchmark;
use crate::bench::cells::Cells;
use crate::bench::reference::agree;
use crate::bench::workload::{Instance, Request, WorkloadError, check_indices};
use crate::noise;
use crate::parameter::{Kind, Parameter};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Scaling, Warp};

/// Threads of a CTA. Source: assumed, the usual size.
const THREADS: u32 = 256;
/// Sides of the finest level are multiples of this, so that there are at least five levels. Source: assumed.
const MULTIPLE: u64 = 16;
/// Cells between the starts of levels in an array, a multiple of one line of any machine.
const ALIGNMENT: u32 = 32;
/// Constant `a` of the operator `a α u - b ∇·β∇u`; `b` is 1. Source: assumed; HPGMG-FV with `USE_HELMHOLTZ`, whose
/// nine arrays a level reach the footprint of HMG Table III.
const A: f64 = 1.0;

static PARAMETERS: [Parameter; 7] = [
    Parameter {
        name: "x",
        kind: Kind::Count { low: 16, high: 1 << 10 },
        default: "256",
        about: "cells along x, at scale 1; scales by the root, to whole multiples of 16",
        source: "HPGMG-FV, eight boxes of 128 cells a side; reaches the 1.32 GB of HMG Table III",
    },
    Parameter {
        name: "y",
        kind: Kind::Count { low: 16, high: 1 << 10 },
        default: "256",
        about: "cells along y, at scale 1; scales by the root, to whole multiples of 16",
        source: "HPGMG-FV, as x",
    },
    Parameter {
        name: "z",
        kind: Kind::Count { low: 2, high: 1 << 10 },
        default: "256",
        about: "cells along z; does not scale, because modules share planes of z",
        source: "HPGMG-FV, as x",
    },
    Parameter {
        name: "smooths",
        kind: Kind::Count { low: 1, high: 100 },
        default: "3",
        about: "red-black sweeps before and after each correction",
        source: "HPGMG-FV, Gauss-Seidel (`NUM_SMOOTHS`)",
    },
    Parameter {
        name: "bottom",
        kind: Kind::Count { low: 1, high: 1000 },
        default: "12",
        about: "red-black sweeps on the coarsest level",
        source: "assumed: in place of the Krylov solver, whose some ten iterations apply the operator twice each",
    },
    Parameter {
        name: "planes",
        kind: Kind::Count { low: 1, high: 64 },
        default: "1",
        about: "cells along z that a thread computes one after the other",
        source: "assumed: one; HPGMG's CUDA version has tiles of several planes",
    },
    Parameter {
        name: "cycles",
        kind: Kind::Count { low: 1, high: 1000 },
        default: "1",
        about: "V-cycles",
        source: "assumed: a cycle visits every level on its way down and up, and all cycles are alike",
    },
];

/// The benchmark. The levels below the finest, and so its launches, grow with the logarithm of its side.
pub(crate) static HPGMG: Benchmark = Benchmark {
    name: "hpgmg",
    about: "geometric multigrid V-cycles: dependent stencil kernels from large grids to tiny ones",
    source: "HPGMG-FV (Adams et al., LBNL-6630E); HMG Table III (HPC_HPGMG); NUMA-GPU, Table 2 (HPC-HPGMG, -UVM)",
    parameters: &PARAMETERS,
    nonlinear: true,
    address_only: true,
    lay_out,
};

/// Arrays that hold all levels, the finest first.
struct Multigrid {
    /// Solution, and the copy that the other half of the sweeps writes.
    u: [Array<f64>; 2],
    rhs: Array<f64>,
    residual: Array<f64>,
    alpha: Array<f64>,
    /// Coefficient of the face below each cell along each axis.
    beta: [Array<f64>; 3],
    /// Inverse of the operator's diagonal.
    inverse: Array<f64>,
    levels: Vec<Level>,
    smooths: u64,
    bottom: u64,
    planes: i32,
    cycles: u64,
    seed: u64,
}

/// One level.
#[derive(Clone, Copy)]
struct Level {
    cells: Cells,
    /// Index of its first cell in each array.
    first: i32,
    /// Inverse square of the side of a cell; the finest level's cells have side 1.
    scale: f64,
}

impl Level {
    /// Halves the sides as long as all are even and larger than two.
    fn all(cells: Cells) -> Vec<Level> {
        let mut levels = vec![Level { cells, first: 0, scale: 1.0 }];
        while let Some(&Level { cells: Cells { x, y, z }, first, scale }) = levels.last()
            && [x, y, z].iter().all(|side| side % 2 == 0 && *side > 2)
        {
            let next = first + ((x * y * z) as u32).next_multiple_of(ALIGNMENT) as i32;
            levels.push(Level { cells: Cells { x: x / 2, y: y / 2, z: z / 2 }, first: next, scale: scale / 4.0 });
        }
        levels
    }

    fn sides(&self) -> [i32; 3] {
        [self.cells.x, self.cells.y, self.cells.z]
    }

    /// Distance in memory between neighbours along each axis.
    fn strides(&self) -> [i32; 3] {
        [1, self.cells.x, self.cells.x * self.cells.y]
    }
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let side = |name| request.fit_multiple(name, request.scale.side_of(request.values.count(name)), MULTIPLE);
    let [x, y] = ["x", "y"].map(side);
    let count = |name| request.values.count(name);
    let z = count("z");
    check_indices(name, x * y * z * 2, "cells of all levels")?;
    let levels = Level::all(Cells { x: x as i32, y: y as i32, z: z as i32 });
    let cells = levels.last().map_or(0, |level| level.first + level.cells.count()) as u64;
    let mut array = |name| memory.array(name, cells, Scaling::Scales);
    Ok(Box::new(Multigrid {
        u: [array("u"), array("temporary")],
        rhs: array("rhs"),
        residual: array("residual"),
        alpha: array("alpha"),
        beta: [array("beta_x"), array("beta_y"), array("beta_z")],
        inverse: array("inverse"),
        levels,
        smooths: count("smooths"),
        bottom: count("bottom"),
        planes: count("planes") as i32,
        cycles: count("cycles"),
        seed: request.seed,
    }))
}

type Done = Result<(), RecordError>;

impl Multigrid {
    /// Runs `body(warp, index of the cell, its coordinates)` for each cell of a level, one thread for each column of
    /// as many cells along z as a thread has planes.
    fn each_cell(
        &self,
        host: &mut Host<'_>,
        name: &str,
        level: Level,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>, [Lanes<i32>; 3]) + Sync,
    ) -> Done {
        let (cells, planes) = (level.cells, self.planes);
        let columns = Cells { z: (cells.z as u32).div_ceil(planes as u32) as i32, ..cells };
        let ctas = (columns.count() as u64).div_ceil(u64::from(THREADS));
        host.launch(Grid::new(name, ctas, THREADS), |cta: &mut Cta<'_>| {
            cta.each_warp(|warp| {
                let column = warp.compute(ComputeClass::Int, 1, warp.global_thread());
                warp.when(column.lt(columns.count()), |warp| {
                    let [x, y, z] = columns.places(warp, column);
                    if planes == 1 {
                        return body(warp, column + level.first, [x, y, z]);
                    }
                    for plane in 0..planes {
                        let place = [x, y, z * planes + plane];
                        let cell = cells.indices(warp, place);
                        warp.when(place[2].lt(cells.z), |warp| body(warp, cell + level.first, place));
                    }
                });
            });
        })
    }

    /// The operator applied to `u` at a cell whose own value is `centre`. Beyond the border lies the negative
    /// of the border cell, so that the face between is zero.
    fn apply(
        &self,
        warp: &mut Warp<'_>,
        level: Level,
        u: Array<f64>,
        at: Lanes<i32>,
        place: [Lanes<i32>; 3],
        centre: Lanes<f64>,
    ) -> Lanes<f64> {
        let mut flow = Lanes::all(0.0);
        for (axis, (side, stride)) in level.sides().into_iter().zip(level.strides()).enumerate() {
            let below = place[axis].gt(0);
            let above = place[axis].lt(side - 1);
            let (down, up) = (below.select(at - stride, at), above.select(at + stride, at));
            let (down, up) = warp.compute(ComputeClass::Int, 4, (down, up));
            let low_face = warp.load(self.beta[axis], at);
            // The border's face has the coefficient of the border cell's own.
            let high_face = warp.load(self.beta[axis], up);
            let (low, high) = (warp.load(u, down), warp.load(u, up));
            let low = below.select(low, low * -1.0);
            let high = above.select(high, high * -1.0);
            flow = flow + low_face * (low - centre) + high_face * (high - centre);
        }
        let own = warp.load(self.alpha, at) * centre * A;
        warp.compute(ComputeClass::Fp64, 15, own - flow * level.scale)
    }

    /// One half of a red-black sweep from `u[turn]` to the other: cells of one colour move, the rest are copied.
    fn half_sweep(&self, host: &mut Host<'_>, level: Level, colour: i32) -> Done {
        let (from, to) = (self.u[colour as usize], self.u[1 - colour as usize]);
        self.each_cell(host, "smooth", level, |warp, at, place| {
            let centre = warp.load(from, at);
            let rhs = warp.load(self.rhs, at);
            let applied = self.apply(warp, level, from, at, place, centre);
            let inverse = warp.load(self.inverse, at);
            let [x, y, z] = place;
            let moves = ((x + y + z) % 2).eq(colour);
            let moved = moves.select(centre + inverse * (rhs - applied), centre);
            let moved = warp.compute(ComputeClass::Fp64, 4, moved);
            warp.store(to, at, moved);
        })
    }

    fn smooth(&self, host: &mut Host<'_>, level: Level, sweeps: u64) -> Done {
        (0..sweeps).try_for_each(|_| {
            self.half_sweep(host, level, 0)?;
            self.half_sweep(host, level, 1)
        })
    }

    fn find_residual(&self, host: &mut Host<'_>, level: Level) -> Done {
        self.each_cell(host, "residual", level, |warp, at, place| {
            let centre = warp.load(self.u[0], at);
            let rhs = warp.load(self.rhs, at);
            let applied = self.apply(warp, level, self.u[0], at, place, centre);
            let residual = warp.compute(ComputeClass::Fp64, 1, rhs - applied);
            warp.store(self.residual, at, residual);
        })
    }

    /// The mean of eight residuals becomes the right-hand side of the coarser level, whose solution starts
    /// at zero.
    fn restrict(&self, host: &mut Host<'_>, fine: Level, coarse: Level) -> Done {
        self.each_cell(host, "restrict", coarse, |warp, at, place| {
            let corner = fine.cells.indices(warp, place.map(|at| at * 2)) + fine.first;
            let [_, row, plane] = fine.strides();
            let mut sum = Lanes::all(0.0);
            for offset in [0, row, plane, plane + row] {
                let [left, right] = warp.load_vector(self.residual, corner + offset);
                sum = sum + left + right;
            }
            let mean = warp.compute(ComputeClass::Fp64, 8, sum * 0.125);
            warp.store(self.rhs, at, mean);
            warp.store(self.u[0], at, 0.0);
        })
    }

    /// Each cell adds the correction of the coarse cell around it.
    fn interpolate(&self, host: &mut Host<'_>, coarse: Level, fine: Level) -> Done {
        self.each_cell(host, "interpolate", fine, |warp, at, place| {
            let around = coarse.cells.indices(warp, place.map(|at| at / 2)) + coarse.first;
            let corrected = warp.load(self.u[0], at) + warp.load(self.u[0], around);
            let corrected = warp.compute(ComputeClass::Fp64, 1, corrected);
            warp.store(self.u[0], at, corrected);
        })
    }

    fn cycle(&self, host: &mut Host<'_>) -> Done {
        let coarsest = self.levels.len() - 1;
        for pair in self.levels.windows(2) {
            self.smooth(host, pair[0], self.smooths)?;
            self.find_residual(host, pair[0])?;
            self.restrict(host, pair[0], pair[1])?;
        }
        self.smooth(host, self.levels[coarsest], self.bottom)?;
        for pair in self.levels.windows(2).rev() {
            self.interpolate(host, pair[1], pair[0])?;
            self.smooth(host, pair[0], self.smooths)?;
        }
        Ok(())
    }

    /// Coefficient of the face below a cell along `axis`; of its centre for axis 3. Smooth, and the same on
    /// every level at the same point.
    fn coefficient(&self, level: &Level, index: i32, axis: usize) -> f64 {
        let (place, sides) = (level.cells.place(index), level.sides());
        let along = |at: usize| {
            let half = if at == axis { 0.0 } else { 0.5 };
            (f64::from(place[at]) + half) / f64::from(sides[at])
        };
        1.0 + 0.5 * along(0) * (1.0 - along(1)) + 0.25 * along(2)
    }

    /// The operator's diagonal.
    fn diagonal(&self, level: &Level, index: i32) -> f64 {
        let place = level.cells.place(index);
        let mut sum = 0.0;
        for (axis, (side, stride)) in level.sides().into_iter().zip(level.strides()).enumerate() {
            let inner = place[axis] < side - 1;
            let low = self.coefficient(level, index, axis);
            let high = if inner { self.coefficient(level, index + stride, axis) } else { low };
            sum += low * if place[axis] > 0 { 1.0 } else { 2.0 } + high * if inner { 1.0 } else { 2.0 };
        }
        A * self.coefficient(level, index, 3) + sum * level.scale
    }

    fn start(&self, index: u64) -> f64 {
        f64::from(noise::unit(self.seed, index))
    }

    /// Sets `array` on every level to `value(level, cell)`.
    fn fill_levels(&self, memory: &Memory, array: Array<f64>, value: impl Fn(&Level, i32) -> f64) {
        for level in &self.levels {
            let (first, count) = (level.first, level.cells.count());
            let cells = first as u64..(first + count) as u64;
            memory.fill_part(array, cells, |at| value(level, at as i32 - first));
        }
    }
}

/// The plain solver that the kernels are compared with.
struct Reference<'a> {
    grids: &'a Multigrid,
    /// Solution and right-hand side of each level.
    u: Vec<Vec<f64>>,
    rhs: Vec<Vec<f64>>,
}

impl Reference<'_> {
    fn residual(&self, depth: usize, index: i32) -> f64 {
        let (level, u) = (&self.grids.levels[depth], &self.u[depth]);
        let (place, centre) = (level.cells.place(index), u[index as usize]);
        let mut flow = 0.0;
        for (axis, (side, stride)) in level.sides().into_iter().zip(level.strides()).enumerate() {
            let low = if place[axis] > 0 { u[(index - stride) as usize] } else { -centre };
            let inner = place[axis] < side - 1;
            let high = if inner { u[(index + stride) as usize] } else { -centre };
            let above = if inner { index + stride } else { index };
            flow += self.grids.coefficient(level, index, axis) * (low - centre);
            flow += self.grids.coefficient(level, above, axis) * (high - centre);
        }
        let own = A * self.grids.coefficient(level, index, 3) * centre;
        self.rhs[depth][index as usize] - (own - flow * level.scale)
    }

    /// Red-black sweeps in place: a cell's neighbours all have the other colour.
    fn smooth(&mut self, depth: usize, sweeps: u64) {
        let level = self.grids.levels[depth];
        for half in 0..2 * sweeps {
            for index in 0..level.cells.count() {
                if level.cells.place(index).iter().sum::<i32>() as u64 % 2 == half % 2 {
                    let step = self.residual(depth, index) / self.grids.diagonal(&level, index);
                    self.u[depth][index as usize] += step;
                }
            }
        }
    }

    fn cycle(&mut self, depth: usize) {
        let level = self.grids.levels[depth];
        let Some(coarse) = self.grids.levels.get(depth + 1).map(|level| level.cells) else {
            return self.smooth(depth, self.grids.bottom);
        };
        self.smooth(depth, self.grids.smooths);
        let around = |index| coarse.index(level.cells.place(index).map(|at| at / 2)) as usize;
        self.u[depth + 1] = vec![0.0; coarse.count() as usize];
        self.rhs[depth + 1] = vec![0.0; coarse.count() as usize];
        for index in 0..level.cells.count() {
            self.rhs[depth + 1][around(index)] += self.residual(depth, index) / 8.0;
        }
        self.cycle(depth + 1);
        for index in 0..level.cells.count() {
            self.u[depth][index as usize] += self.u[depth + 1][around(index)];
        }
        self.smooth(depth, self.grids.smooths);
    }
}

impl Instance for Multigrid {
    fn fill(&self, memory: &Memory) {
        memory.fill_part(self.rhs, 0..self.levels[0].cells.count() as u64, |cell| self.start(cell));
        self.fill_levels(memory, self.alpha, |level, cell| self.coefficient(level, cell, 3));
        for (axis, beta) in self.beta.into_iter().enumerate() {
            self.fill_levels(memory, beta, |level, cell| self.coefficient(level, cell, axis));
        }
        self.fill_levels(memory, self.inverse, |level, cell| 1.0 / self.diagonal(level, cell));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for array in [self.rhs, self.alpha, self.inverse].into_iter().chain(self.beta) {
            host.copy_to_device(array);
        }
        (0..self.cycles).try_for_each(|_| self.cycle(host))?;
        host.copy_to_host(self.u[0]);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let cells = self.levels[0].cells.count() as usize;
        let mut reference =
            Reference { grids: self, u: vec![Vec::new(); self.levels.len()], rhs: vec![Vec::new(); self.levels.len()] };
        reference.u[0] = vec![0.0; cells];
        reference.rhs[0] = (0..cells as u64).map(|cell| self.start(cell)).collect();
        (0..self.cycles).for_each(|_| reference.cycle(0));
        agree("solution", &memory.to_vec(self.u[0])[..cells], &reference.u[0])
    }
}
