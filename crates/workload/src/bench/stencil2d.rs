//! Five-point Jacobi stencil over a plane, ping-pong between two arrays.
//!
//! CTAs are contiguous in rows, so modules share only the rows at their borders.

use super::{Instance, Request, Workload, WorkloadError, check_indices};
use crate::noise;
use crate::parameter::{Kind, Parameter};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Grid, Memory, Scaling};

/// Columns of a CTA's tile. Source: SHOC Stencil2D runs tiles of a warp's width; rows assumed for 256 threads.
const TILE_COLUMNS: i32 = 32;
/// Rows of a CTA's tile.
const TILE_ROWS: i32 = 8;
/// Weight of the centre. Source: SHOC Stencil2D (`weight-center` 0.25, `weight-cardinal` 0.15).
const CENTRE: f32 = 0.25;
/// Weight of each neighbour.
const CARDINAL: f32 = 0.15;

static PARAMETERS: [Parameter; 3] = [
    Parameter {
        name: "columns",
        kind: Kind::Count { low: 3, high: 1 << 20 },
        default: "8192",
        about: "columns of the plane of 4-byte floats, at scale 1; scales",
        source: "assumed: twice the largest side of SHOC Stencil2D, so that the planes exceed every L2",
    },
    Parameter {
        name: "rows",
        kind: Kind::Count { low: 3, high: 1 << 20 },
        default: "8192",
        about: "rows of the plane; does not scale, because modules share rows",
        source: "assumed, as columns",
    },
    Parameter {
        name: "iterations",
        kind: Kind::Count { low: 1, high: 100_000 },
        default: "10",
        about: "launches",
        source: "assumed: enough for the state after the first sweep to dominate",
    },
];

/// The benchmark.
pub(super) struct Stencil2d;

struct Planes {
    planes: [Array<f32>; 2],
    columns: i32,
    rows: i32,
    iterations: u64,
    seed: u64,
}

impl Workload for Stencil2d {
    fn name(&self) -> &'static str {
        "stencil2d"
    }

    fn about(&self) -> &'static str {
        "iterated five-point stencil: rows at the borders of modules are shared between launches"
    }

    fn source(&self) -> &'static str {
        "Jacobi iteration; weights of SHOC Stencil2D"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn address_only(&self) -> bool {
        true
    }

    fn lay_out(&self, request: &Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
        let columns = request.scale.of(request.values.count("columns")).max(3);
        let rows = request.values.count("rows");
        check_indices(self.name(), columns * rows, "points")?;
        let mut plane = |name| memory.array(name, columns * rows, Scaling::Scales);
        Ok(Box::new(Planes {
            planes: [plane("plane0"), plane("plane1")],
            columns: columns as i32,
            rows: rows as i32,
            iterations: request.values.count("iterations"),
            seed: request.seed,
        }))
    }
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
            let grid = Grid::new("stencil2d", across * down, (TILE_COLUMNS * TILE_ROWS) as u32);
            host.launch(grid, |cta| sweep(cta, self, from, to))?;
            std::mem::swap(&mut from, &mut to);
        }
        host.copy_to_host(from);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (columns, rows) = (self.columns as usize, self.rows as usize);
        let mut from: Vec<f32> = (0..(columns * rows) as u64).map(|index| self.start(index)).collect();
        for _ in 0..self.iterations {
            let mut to = from.clone();
            for y in 1..rows - 1 {
                for x in 1..columns - 1 {
                    let at = y * columns + x;
                    let cardinal = from[at - columns] + from[at + columns] + from[at - 1] + from[at + 1];
                    to[at] = from[at] * CENTRE + cardinal * CARDINAL;
                }
            }
            from = to;
        }
        let result = memory.to_vec(self.planes[(self.iterations % 2) as usize]);
        match from.iter().zip(&result).position(|(expected, found)| expected != found) {
            Some(at) => Err(format!("point {at} is {}, expected {}", result[at], from[at])),
            None => Ok(()),
        }
    }
}
