//! Heat diffusion in a box on several GPUs: each owns a slab with planes, and reads two planes from either neighbour.
//!
//! A step copies the field, then runs three Runge-Kutta stages with two kernels each: a fourth-order Laplacian, and an
//! update. Laplacian CTAs are 64 x 4 columns that march over up to 16 planes. Update CTAs are cubes with sides of eight
//! cells, so that a warp stores half lines. Rows are padded like in `cudaMallocPitch`. Three cells at every border
//! remain constant.
//!
//! The source first computes three planes at each cut, sends their Laplacians, and updates ghost planes on both sides
//! of the cut. Here one range holds the field, only the owner updates a plane, and two neighbouring planes are read in
//! place. One launch computes all planes: the source splits off the planes at cuts to hide its copies, which is here a
//! task for the design. The source divides by 12 twice and uses the conductivity along x for all axes; here each axis
//! has a separate conductivity, divided only once.

use super::DIVISION;
use crate::prelude::*;

const TARTAN: &str = "uuudown/Tartan, scale-out/scale-out/diffusion/run.sh: 1 2 2 2 400 400 400 1000 64 4 1";
/// Cells in a Laplacian CTA along x, and along y. Source: [`TARTAN`].
const WIDE: i32 = 64;
const HIGH: i32 = 4;
/// Planes over which a Laplacian CTA marches. Source: Tartan, diffusion/DiffusionMPICUDA.h (`LOOP`).
const MARCH: u64 = 16;
/// Side of an update CTA, in cells. Source: Tartan, diffusion/main.c (`threadsPerBlock3D_RK`).
const CUBE: i32 = 8;
/// Constant cells at a border. Source: Tartan, diffusion/DiffusionMPICUDA.h (`RADIUS`).
const BORDER: i32 = 3;
/// Row length multiple, in doubles. Source: assumed, the 512 bytes to which `cudaMallocPitch` aligns rows.
const PITCH: u64 = 64;
/// Box side along each axis, and the conductivity, in units unspecified by the source. Source: [`TARTAN`].
const SIDE: f64 = 2.0;
const CONDUCTIVITY: f64 = 1.0;
/// Fraction of the longest stable step for a second-order method. Source: Tartan, diffusion/main.c.
const COURANT: f64 = 0.8;
/// Instructions in an update by stage. Source: counted: fused products, and a division by 3 in the last stage.
const UPDATE: [u16; 3] = [1, 3, 2 + DIVISION];

program! {
    /// heat in a box on several GPUs: a slab of planes each, two planes of either neighbour read three times a step
    pub(crate) static DIFFUSION = "diffusion",
        "uuudown/Tartan, diffusion (LaplaceO4_async, Compute_RK); GPS, Table 2 (Diffusion)";
    properties: data_independent, partitioned_by_gpus;
    parameters {
        /// cells along x, of 8-byte floats, at scale 1; scales by the root
        columns: count(7..=1 << 14) = 400, TARTAN;
        /// cells along y, at scale 1; scales by the root
        rows: count(7..=1 << 14) = 400, TARTAN;
        /// cells along z, which GPUs share; does not scale. Three planes of ghosts at either end come on top
        planes: count(1..=1 << 14) = 400, TARTAN;
        /// steps, each a copy and three times two launches
        iterations: count(1..=100_000) = 8,
            "assumed: Tartan runs 1000, all alike; one to profile, and seven steady ones";
    }
    lay_out(name, request, memory) {
        let least = 2 * BORDER as u64 + 1;
        let side = |name| request.fit_least(name, request.scale.side_of(request.values.count(name)), least);
        let [columns, rows] = ["columns", "rows"].map(side);
        let inside = planes;
        let (planes, pitch) = (inside + 2 * BORDER as u64, columns.next_multiple_of(PITCH));
        check_indices(name, pitch * rows * planes, "cells")?;
        let gpus = request.gpus();
        require(name, inside >= u64::from(gpus), || format!("{inside} planes leave some of {gpus} GPUs without any"))?;
        let cut = Partition::even(inside, gpus);
        let parts = |cells: u64, each: i32| cells.div_ceil(each as u64);
    }
    struct Heat {
        /// Temperature, `[plane][row][column]`, like the other fields.
        heat: Array<f64>["u"; pitch * rows * planes],
        /// Temperature as it was before the step.
        before: Array<f64>["uo"; pitch * rows * planes],
        laplacian: Array<f64>["Lu"; pitch * rows * planes],
        columns, rows: i32,
        /// Number of planes, including ghosts.
        planes: i32,
        /// Elements from row to row.
        pitch: i32,
        iterations: u64,
        /// Grid over the inner planes, in marching columns.
        marches: PartitionGrid = cut.tiles(MARCH, parts(columns, WIDE) * parts(rows, HIGH)),
        /// Grid over the inner planes, in cubes.
        cubes: PartitionGrid = cut.tiles(CUBE as u64, parts(columns, CUBE) * parts(rows, CUBE)),
    }
}

/// Twelve times the second difference, from values at distances -2, -1, 1 and 2 and at the cell itself.
fn second_difference([far_low, low, high, far_high]: [f64; 4], own: f64) -> f64 {
    16.0 * low - far_low + 16.0 * high - far_high - 30.0 * own
}

impl Heat {
    /// Elements from plane to plane, including the row padding.
    fn plane(&self) -> i32 {
        self.rows * self.pitch
    }

    /// Cell spacing along each axis.
    fn spacing(&self) -> [f64; 3] {
        [self.columns, self.rows, self.planes - 2 * BORDER].map(|cells| SIDE / f64::from((cells - 1).max(1)))
    }

    /// Length of a time step, derived from the spacing.
    fn step(&self) -> f64 {
        let rates = self.spacing().map(|side| side.powi(-2));
        COURANT / (2.0 * CONDUCTIVITY * rates.iter().sum::<f64>())
    }

    /// Lanes at least `margin` cells away from the borders along x and y.
    fn inside(&self, [x, y]: [Lanes<i32>; 2], margin: i32) -> Lanes<bool> {
        x.ge(margin) & x.lt(self.columns - margin) & y.ge(margin) & y.lt(self.rows - margin)
    }

    /// Runs `body(warp, index of its first cell, planes)` for each column in a CTA that lies `margin` cells inside.
    fn each_column(&self, cta: &mut Cta<'_>, margin: i32, body: impl Fn(&mut Warp<'_>, Lanes<i32>, i32)) {
        let CtaTile { items, across, .. } = self.marches.tile(cta.index());
        let wide = (self.columns as u64).div_ceil(WIDE as u64);
        let [left, top] = [(across % wide) as i32 * WIDE, (across / wide) as i32 * HIGH];
        let (first, count) = (items.start as i32 + BORDER, (items.end - items.start) as i32);
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let [x, y] = warp.compute(ComputeClass::Int, 6, [thread % WIDE + left, thread / WIDE + top]);
            warp.when(self.inside([x, y], margin), |warp| {
                let at = warp.compute(ComputeClass::Int, 2, y * self.pitch + x + first * self.plane());
                body(warp, at, count);
            });
        });
    }

    /// Copies the field, like `cudaMemcpy2DAsync` from array to array. Source: assumed, with the Laplacian's CTAs.
    fn copy(&self, cta: &mut Cta<'_>) {
        self.each_column(cta, 0, |warp, first, count| {
            for plane in 0..count {
                let at = warp.compute(ComputeClass::Int, 4, first + plane * self.plane());
                let value = warp.load(self.heat, at);
                warp.store(self.before, at, value);
            }
        });
    }

    fn laplace(&self, cta: &mut Cta<'_>) {
        let shares = self.spacing().map(|side| CONDUCTIVITY / (12.0 * side * side));
        self.each_column(cta, BORDER, |warp, first, count| self.march(warp, first, count, shares));
    }

    /// Computes the Laplacian for a cell column: values along z stay in registers from plane to plane.
    fn march(&self, warp: &mut Warp<'_>, first: Lanes<i32>, count: i32, shares: [f64; 3]) {
        let (row, plane, from) = (self.pitch, self.plane(), self.heat);
        // Addresses for the row itself, two rows on either side, the plane in front, and the result.
        let first = warp.compute(ComputeClass::Int, 7 * ADDRESS, first);
        let mut line = [-2, -1, 0, 1, 2].map(|distance| warp.load(from, first + distance * plane));
        for step in 0..count {
            let mut at = first + step * plane;
            if step > 0 {
                // The loop bound, and a 64-bit addition for each address.
                at = warp.compute(ComputeClass::Int, 2 + 2 * 7, at);
                line.rotate_left(1);
                line[4] = warp.load(from, at + 2 * plane);
            }
            let beside = [-2, -1, 1, 2].map(|distance| warp.load(from, at + distance));
            let along = [-2, -1, 1, 2].map(|distance| warp.load(from, at + distance * row));
            let [below2, below, own, above, above2] = line;
            let [[west2, west, east, east2], [north2, north, south, south2]] = [beside, along];
            let operands = [own, west2, west, east, east2, north2, north, south, south2, below2, below, above, above2];
            // Four instructions along each axis, and three products with the shares.
            let [sum] = warp.calculate(ComputeClass::Fp64, 15, operands, |[own, around @ ..]| {
                let [a, b, c, d, e, f, g, h, i, j, k, l] = around;
                let [x, y, z] = [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(|axis| second_difference(axis, own));
                [shares[0] * x + shares[1] * y + shares[2] * z]
            });
            warp.store(self.laplacian, at, sum);
        }
    }

    /// Runs stage 0, 1 or 2 in the Runge-Kutta method with strong stability preservation.
    fn update(&self, cta: &mut Cta<'_>, stage: usize) {
        let CtaTile { items, across, .. } = self.cubes.tile(cta.index());
        let wide = (self.columns as u64).div_ceil(CUBE as u64);
        let [left, top] = [(across % wide) as i32 * CUBE, (across / wide) as i32 * CUBE];
        let [front, end] = [items.start, items.end].map(|plane| plane as i32 + BORDER);
        let step = self.step();
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let place = [thread % CUBE + left, thread / CUBE % CUBE + top, thread / (CUBE * CUBE) + front];
            let [x, y, z] = warp.compute(ComputeClass::Int, 8, place);
            warp.when(self.inside([x, y], BORDER) & z.lt(end), |warp| {
                let at = (z * self.rows + y) * self.pitch + x;
                // An address for each array; the first stage loads one array less.
                let at = warp.compute(ComputeClass::Int, 2 + 3 * ADDRESS, at);
                let own = if stage > 0 { warp.load(self.heat, at) } else { Lanes::all(0.0) };
                let before = warp.load(self.before, at);
                let laplacian = warp.load(self.laplacian, at);
                let operands = [own, before, laplacian];
                let [next] = warp.calculate(ComputeClass::Fp64, UPDATE[stage], operands, |[own, before, laplacian]| {
                    [match stage {
                        0 => before + step * laplacian,
                        1 => 0.75 * before + 0.25 * (own + step * laplacian),
                        _ => (before + 2.0 * (own + step * laplacian)) / 3.0,
                    }]
                });
                warp.store(self.heat, at, next);
            });
        });
    }

    /// Column, row and plane for an element.
    fn place(&self, index: u64) -> [i32; 3] {
        let (pitch, rows) = (self.pitch as u64, self.rows as u64);
        [index % pitch, index / pitch % rows, index / pitch / rows].map(|at| at as i32)
    }

    /// Initial temperature: 1 in the middle half of the box along each axis, zero elsewhere.
    fn start(&self, index: u64) -> f64 {
        let sides = [self.columns, self.rows, self.planes];
        let hot = self.place(index).into_iter().zip(sides).all(|(at, side)| (side / 4..3 * side / 4).contains(&at));
        f64::from(u8::from(hot))
    }

    /// Applies an explicit time step to a field, by second derivatives.
    fn after_step(&self, field: &[f64]) -> Vec<f64> {
        let strides = [1, self.pitch, self.plane()].map(|stride| stride as usize);
        let derivatives = |at: usize| -> f64 {
            let along = |(stride, side): (usize, f64)| {
                let around = |distance: usize| field[at - distance * stride] + field[at + distance * stride];
                (4.0 / 3.0 * around(1) - around(2) / 12.0 - 2.5 * field[at]) / (side * side)
            };
            strides.into_iter().zip(self.spacing()).map(along).sum()
        };
        let stays = |at: usize| {
            let sides = [self.columns, self.rows, self.planes];
            let place = self.place(at as u64).into_iter().zip(sides);
            place.into_iter().any(|(at, side)| at < BORDER || at >= side - BORDER)
        };
        let next = |at| field[at] + if stays(at) { 0.0 } else { self.step() * CONDUCTIVITY * derivatives(at) };
        (0..field.len()).map(next).collect()
    }
}

impl Instance for Heat {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.heat, |index| self.start(index));
        memory.clear(self.before);
        memory.clear(self.laplacian);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.heat);
        let column = (WIDE * HIGH) as u32;
        for _ in 0..self.iterations {
            host.launch(self.marches.grid("copy", column), |cta| self.copy(cta))?;
            for stage in 0..UPDATE.len() {
                host.launch(self.marches.grid("laplace", column), |cta| self.laplace(cta))?;
                let grid = self.cubes.grid("update", CUBE.pow(3) as u32);
                host.launch(grid, |cta| self.update(cta, stage))?;
            }
        }
        host.copy_to_host(self.heat);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut field: Vec<f64> = (0..self.heat.len()).map(|index| self.start(index)).collect();
        for _ in 0..self.iterations {
            let mix = |kept: f64, other: Vec<f64>| -> Vec<f64> {
                field.iter().zip(other).map(|(before, after)| kept * before + (1.0 - kept) * after).collect()
            };
            let second = mix(0.75, self.after_step(&self.after_step(&field)));
            field = mix(1.0 / 3.0, self.after_step(&second));
        }
        compare_f64("heat", &memory.to_vec(self.heat), &field)
    }
}
