//! Seismic waves in elastic ground on several GPUs: each owns a slab with planes, and reads two planes from either
//! neighbour.
//!
//! A step has four kernels: `stress` updates six stresses from velocity slopes; `velocity-x`, `-y` and `-z` each update
//! one velocity from stress slopes. Slopes are centred and fourth-order, and all fields are defined at equal points.
//! CTAs are 16 x 16 columns that march along z. `stress` keeps five planes with three velocities in the scratchpad, the
//! other kernels a plane with two stresses; a warp stores half lines. Every field with a slope along z is read across
//! the cuts: velocities by `stress`, the xz, yz and zz stresses by the three other kernels.
//!
//! The source cuts x and z over four GPUs; here only planes along z are cut, so that every GPU has all CTA columns. The
//! source exchanges nine arrays every four steps, with halos eight cells wide that both neighbours compute. Here one
//! range holds an array and a cell has one writer, so neighbouring cells are read in place in every step. One force
//! acts in the middle of the ground; the source has a force in every GPU's block. Tile borders that the source fills
//! from the wrong row, or not at all, here hold the values needed for slopes.

mod reference;
mod stress;
mod velocity;

use super::DIVISION;
use crate::prelude::*;
use reference::Fields;
use std::ops::Range;

/// Cells per CTA along x and y. Source: Tartan, b2reqwp/eqwp.cu (`CUDA_BLOCK_SIZE`).
const SIDE: i32 = 16;
/// Reach of a difference in cells, and width of the constant frame. Source: Tartan, b2reqwp/b2r_config.h (`B2R_D`).
const REACH: i32 = 2;
/// Cells from row to row in a tile.
const ACROSS: i32 = SIDE + 2 * REACH;
/// Cells per tile.
const TILE: usize = (ACROSS * ACROSS) as usize;
/// Length of a step (`Dt`) and of a cell (`Dx`), in units unspecified by the source. Source: Tartan, b2reqwp/eqwp.cu,
/// also for the constants below.
const STEP: f64 = 0.5;
const CELL: f64 = 10.0;
/// Inverse density (`inv_rho`).
const LIGHTNESS: f64 = 1.0 / 1800.0;
/// Lamé's first and second constant (`lame1`, `lame2`).
const LAME: [f64; 2] = [32.0, 174.87];
/// Steps in which the force acts (`FRC_TIME`), its size along y, and its distance in rows from the last row (`INIT_Y`).
const FORCED: u64 = 50;
const FORCE: f32 = -10_000.0;
const DEPTH: i32 = 7;
/// Divisor for the number of columns and planes on which the force acts (`eqwp_cuda_init`).
const EXTENT: i32 = 10;
/// Stress index for each pair of axes: xx, xy, xz, yy, yz, zz.
const PAIRS: [[usize; 3]; 3] = [[0, 1, 2], [1, 3, 4], [2, 4, 5]];

program! {
    /// seismic waves on several GPUs: velocities and stresses of a slab of planes each, two planes of either neighbour
    pub(crate) static EQWP = "eqwp", "uuudown/Tartan, scale-out/scale-out/b2reqwp (eqwp.cu); GPS, Table 2 (B2rEqwp)";
    properties: data_independent, partitioned_by_gpus;
    parameters {
        /// cells along x, of 4-byte floats, at scale 1; scales. Two cells of a frame at either end come on top
        x: count(6..=1 << 20) = 3000,
            "uuudown/Tartan, b2reqwp/b2r_config.h: its larger ground, 3000 x 200. A GPU has 188 x 13 CTAs, four waves \
            of 80 SMs with eight each; of its default, 500 x 40, 32 x 3: fewer than twice its SMs";
        /// cells along y; does not scale: x alone shrinks, as the force does, which has a value for each x and z
        y: count(7..=1 << 20) = 200, "Tartan, as x";
        /// planes, which GPUs share; does not scale
        z: count(6..=1 << 20) = 500,
            "Tartan, b2reqwp/b2r_config.h: its default, whose share of exchanged cells a step it keeps";
        /// steps, each four launches
        iterations: count(1..=100_000) = 8,
            "assumed: Tartan runs 600, of which the first 50 are alike; one to profile, and seven steady ones";
    }
    lay_out(name, request, memory) {
        let x = request.fit_least("x", request.scale.of(x), 6);
        let [y, z] = ["y", "z"].map(|name| request.values.count(name));
        let gpus = request.gpus();
        require(name, z >= u64::from(gpus), || format!("{z} planes leave some of {gpus} GPUs without any"))?;
        let [wide, high, deep] = [x, y, z].map(|side| side + 2 * REACH as u64);
        let count = wide * high * deep;
        check_indices(name, count, "cells")?;
        let mut field = |name| memory.array(name, count, Scaling::Scales);
        let velocity = ["vx", "vy", "vz"].map(&mut field);
        let stress = ["sigma_xx", "sigma_xy", "sigma_xz", "sigma_yy", "sigma_yz", "sigma_zz"].map(&mut field);
        let ctas = [wide, high].map(|side| side.div_ceil(SIDE as u64));
    }
    struct Ground {
        /// Velocity along x, y and z: `[z][y][x]` including the frame, like stresses and the displacement.
        velocity: [Array<f32>; 3],
        /// Stresses in the numbering of [`PAIRS`].
        stress: [Array<f32>; 6],
        /// Displacement along y.
        displacement: Array<f32>["disp"; count],
        /// External force, `[z][x][axis]`
        force: Array<f32>["f_init"; 3 * wide * deep],
        /// Cell grid including the frame.
        cells: CellGrid = CellGrid { x: wide as i32, y: high as i32, z: deep as i32 },
        iterations: u64,
        /// Grid over the inner planes; all planes on a GPU form one tile.
        tiles: PartitionGrid = Partition::even(z, gpus).tiles(z, ctas[0] * ctas[1]),
    }
}

/// A thread's cells, and its position in tiles.
struct ThreadColumn {
    x: Lanes<i32>,
    y: Lanes<i32>,
    /// Index for the thread's cell in plane 0.
    cell: Lanes<i32>,
    slot: Lanes<i32>,
    /// Lanes with cells in the field, and lanes with cells inside the frame.
    stored: Lanes<bool>,
    inside: Lanes<bool>,
    /// By axis, lanes that fill the border before and after the tile.
    borders: [[Lanes<bool>; 2]; 2],
}

impl Ground {
    /// Cells from plane to plane.
    fn plane(&self) -> i32 {
        self.cells.x * self.cells.y
    }

    /// Threads in a CTA by warp, and the planes over which they march.
    fn columns(&self, cta: &mut Cta<'_>) -> (Vec<ThreadColumn>, Range<i32>) {
        let CtaTile { items, across, .. } = self.tiles.tile(cta.index());
        let wide = (self.cells.x as u64).div_ceil(SIDE as u64);
        let corner = [across % wide, across / wide].map(|tile| tile as i32 * SIDE);
        let mut columns = Vec::new();
        cta.each_warp(|warp| columns.push(self.column(warp, corner)));
        (columns, items.start as i32 + REACH..items.end as i32 + REACH)
    }

    fn column(&self, warp: &mut Warp<'_>, [left, top]: [i32; 2]) -> ThreadColumn {
        let sides = [self.cells.x, self.cells.y];
        let local = [warp.thread() % SIDE, warp.thread() / SIDE];
        let place @ [x, y] = [local[0] + left, local[1] + top];
        // Two places, a slot and a cell with two instructions each, and eight comparisons.
        let cell = warp.compute(ComputeClass::Int, 2 + 2 * 2 + 8, y * self.cells.x + x);
        let within = |axis: usize| place[axis].ge(REACH) & place[axis].lt(sides[axis] - REACH);
        let border = |axis: usize| {
            let rows = within(1 - axis);
            let before = local[axis].lt(REACH) & place[axis].ge(REACH) & place[axis].lt(sides[axis]);
            let behind = local[axis].ge(SIDE - REACH) & place[axis].lt(sides[axis] - REACH);
            [before & rows, behind & rows]
        };
        ThreadColumn {
            x,
            y,
            cell,
            slot: (local[1] + REACH) * ACROSS + local[0] + REACH,
            stored: x.lt(sides[0]) & y.lt(sides[1]),
            inside: within(0) & within(1),
            borders: [border(0), border(1)],
        }
    }

    /// Fills the tile borders on both sides along an axis.
    fn fill_borders(
        &self,
        warp: &mut Warp<'_>,
        column: &ThreadColumn,
        at: Lanes<i32>,
        axis: usize,
        fields: &mut [(Array<f32>, &mut Shared<f32>)],
    ) {
        let (stride, slots) = if axis == 0 { (1, 1) } else { (self.cells.x, ACROSS) };
        for (fills, distance) in column.borders[axis].into_iter().zip([-REACH, REACH]) {
            warp.when(fills, |warp| {
                let count = fields.len() as u16 * ADDRESS;
                let beyond = warp.compute(ComputeClass::Int, count, at + distance * stride);
                let values: Vec<_> = fields.iter().map(|(array, _)| warp.load(*array, beyond)).collect();
                for ((_, tile), value) in fields.iter_mut().zip(values) {
                    warp.store_shared(tile, column.slot + distance * slots, value);
                }
            });
        }
    }

    /// Row, and ranges for columns and planes, in which the force acts.
    fn forced(&self) -> (i32, [Range<i32>; 2]) {
        let part = |side: i32| side / 2..side / 2 + side / EXTENT;
        (self.cells.y - DEPTH - REACH, [part(self.cells.x), part(self.cells.z)])
    }

    /// Initial force along axis `index % 3` at a column and a plane.
    fn start(&self, index: u64) -> f32 {
        let (place, wide) = ((index / 3) as i32, self.cells.x);
        let (_, [columns, planes]) = self.forced();
        let acts = index % 3 == 1 && columns.contains(&(place % wide)) && planes.contains(&(place / wide));
        if acts { FORCE } else { 0.0 }
    }

    /// All fields changed by a step, with their names.
    fn fields(&self) -> impl Iterator<Item = (&'static str, Array<f32>)> {
        let names = ["vx", "vy", "vz", "xx", "xy", "xz", "yy", "yz", "zz", "displacement"];
        let arrays = self.velocity.into_iter().chain(self.stress).chain([self.displacement]);
        names.into_iter().zip(arrays)
    }
}

/// Slope from four values at distances -2, -1, 1 and 2. The source divides by a double.
fn slope(warp: &mut Warp<'_>, around: [Lanes<f32>; 4]) -> Lanes<f32> {
    let [slope] = warp.calculate(ComputeClass::Fp32, 4, around, |[far_low, low, high, far_high]| {
        let change = -1.0 / 12.0 * (far_high - far_low) + 2.0 / 3.0 * (high - low);
        [(f64::from(change) / CELL) as f32]
    });
    account_doubles(warp, DIVISION, 2);
    slope
}

/// Slope in a tile along an axis with slot stride `stride`.
fn slope_in(warp: &mut Warp<'_>, tile: &Shared<f32>, slot: Lanes<i32>, stride: i32) -> Lanes<f32> {
    let around = [-2, -1, 1, 2].map(|distance| warp.load_shared(tile, slot + distance * stride));
    slope(warp, around)
}

/// Accounts for instructions in double precision, and for conversions to and from it.
fn account_doubles(warp: &mut Warp<'_>, count: u16, conversions: u16) {
    warp.compute(ComputeClass::Fp64, count, ());
    warp.compute(ComputeClass::Other, conversions, ());
}

/// Adds a product in double precision to `old`: one fused instruction, three conversions.
fn add_product(warp: &mut Warp<'_>, old: Lanes<f32>, factor: f64, change: Lanes<f32>) -> Lanes<f32> {
    let [new] = warp.calculate(ComputeClass::Fp64, 1, [old, change], |[old, change]| {
        [(f64::from(old) + factor * f64::from(change)) as f32]
    });
    account_doubles(warp, 0, 3);
    new
}

impl Instance for Ground {
    fn fill(&self, memory: &Memory) {
        self.velocity.into_iter().chain(self.stress).for_each(|field| memory.fill(field, |_| 0.0));
        memory.clear(self.displacement);
        memory.fill(self.force, |index| self.start(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.force);
        self.velocity.into_iter().chain(self.stress).for_each(|field| host.copy_to_device(field));
        let grid = |name, tiles: u32| self.tiles.grid(name, (SIDE * SIDE) as u32).shared_bytes(tiles * 4 * TILE as u32);
        for step in 0..self.iterations {
            host.launch(grid("stress", 15), |cta| self.strain(cta))?;
            for (axis, name) in ["velocity-x", "velocity-y", "velocity-z"].into_iter().enumerate() {
                host.launch(grid(name, 2), |cta| self.push(cta, axis, step < FORCED))?;
            }
        }
        host.copy_to_host(self.displacement);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected = Fields::after(self);
        let mut expected = expected.velocity.into_iter().chain(expected.stress).chain([expected.displacement]);
        self.fields()
            .try_for_each(|(name, field)| compare(name, memory.to_vec(field), expected.next().unwrap_or_default(), 0.0))
    }
}
