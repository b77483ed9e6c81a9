//! NVIDIA's Jacobi solver for several GPUs: each owns a slab with rows, and reads a row from either neighbour.
//!
//! The plane is a ring of rows: row 0 repeats the last inner row and the last row the first inner row, so the first and
//! the last GPU are neighbours. The owners write both copies. The change's norm is summed in integer units of 2^-32, so
//! that the order does not matter; the source adds floats. Norms for all launches stay on the device until the end; the
//! source copies each norm back.
//!
//! The source's threads start at column 1, so that a warp's store covers parts of two lines. With `aligned`, rows are
//! padded to whole lines and threads start at column 0, where the thread of the fixed side idles. GPS, 7.4, says that
//! the coalescer in the SM captures all spatial locality of its Jacobi; this holds for aligned rows alone.

use super::sum::add_up;
use crate::prelude::*;
use std::f64::consts::PI;

const SAMPLE: &str = "NVIDIA/multi-gpu-programming-models, multi_threaded_copy/jacobi.cu (`nx`, `ny`, `nccheck`, `dim_block_x`, `dim_block_y`)";
const SAMPLE_OFFSET: &str =
    "NVIDIA/multi-gpu-programming-models, jacobi.cu: rows without padding, threads from column 1 on";
/// Columns and rows per CTA, with a thread for each point. Source: [`SAMPLE`].
const SIDE: i32 = 32;
/// Norm units for a change of 1. Source: assumed, 2^32, so that sums over 2^31 points with changes up to 1 fit.
const UNIT: f32 = 4_294_967_296.0;

program! {
    /// Jacobi's iteration on several GPUs: a slab of rows each, a row of either neighbour read
    pub(crate) static JACOBI = "jacobi", "NVIDIA/multi-gpu-programming-models; GPS, Table 2 (Jacobi)";
    properties: data_independent, partitioned_by_gpus;
    parameters {
        /// columns of the plane of 4-byte floats, at scale 1; scales
        columns: count(3..=1 << 20) = 16_384, SAMPLE;
        /// rows of the plane, which GPUs share; does not scale
        rows: count(3..=1 << 20) = 16_384, SAMPLE;
        /// launches
        iterations: count(1..=100_000) = 10, "assumed: the sample runs 1000, of which all but the first do the same";
        /// launches from one that sums the norm of the change to the next
        check: count(1..=100_000) = 1, SAMPLE;
        /// rows padded to whole 128-byte lines, and threads from column 0 on: each warp stores in a single line
        aligned: flag = "no", SAMPLE_OFFSET;
    }
    lay_out(name, request, memory) {
        let columns = request.fit_least("columns", request.scale.of(columns), 3);
        let pitch = if aligned { columns.next_multiple_of(SIDE as u64) } else { columns };
        check_indices(name, pitch * rows, "points")?;
        let gpus = request.gpus();
        require(name, rows - 2 >= u64::from(gpus), || format!("{rows} rows leave some of {gpus} GPUs without any"))?;
    }
    struct Planes {
        planes: [Array<f32>; 2]["a", "a_new"; pitch * rows],
        /// Norm sum for each launch, by GPU.
        norms: Vec<Array<u64>> =
            (0..gpus).map(|gpu| memory.array(&format!("l2_norm{gpu}"), iterations, Scaling::Fixed)).collect(),
        columns, rows: i32,
        /// Points from row to row.
        pitch: i32,
        /// Column of a row's first thread.
        first: i32 = i32::from(!aligned),
        iterations, check: u64,
        /// Grid over the inner rows.
        tiles: PartitionGrid = Partition::even(rows - 2, gpus).tiles(SIDE as u64, columns.div_ceil(SIDE as u64)),
    }
}

impl Planes {
    fn kernel(&self, cta: &mut Cta<'_>, [from, to]: [Array<f32>; 2], sums: Option<u64>) {
        let CtaTile { gpu, items, across } = self.tiles.tile(cta.index());
        let (columns, rows, pitch) = (self.columns, self.rows, self.pitch);
        let (top, bottom) = (items.start as i32 + 1, items.end as i32 + 1);
        let mut changes: Vec<Lanes<u64>> = Vec::new();
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let x = thread % SIDE + (across as i32 * SIDE + self.first);
            let y = thread / SIDE + top;
            let at = warp.compute(ComputeClass::Int, 6, y * pitch + x);
            let mut change = Lanes::all(0_u64);
            warp.when(x.ge(1) & x.lt(columns - 1) & y.lt(bottom), |warp| {
                let east = warp.load(from, at + 1);
                let west = warp.load(from, at - 1);
                let south = warp.load(from, at + pitch);
                let north = warp.load(from, at - pitch);
                let new = warp.compute(ComputeClass::Fp32, 4, (east + west + south + north) * 0.25);
                warp.store(to, at, new);
                warp.when(y.eq(1), |warp| warp.store(to, x + (rows - 1) * pitch, new));
                warp.when(y.eq(rows - 2), |warp| warp.store(to, x, new));
                if sums.is_some() {
                    let own = warp.load(from, at);
                    let [squared] = warp.calculate(ComputeClass::Fp32, 3, [new, own], |[new, own]| [units(new, own)]);
                    change = warp.update(change, squared);
                }
            });
            changes.push(change);
        });
        if let Some(launch) = sums {
            add_up(cta, changes, self.norms[gpu], launch as i32);
        }
    }

    /// Initial value: fixed values on the sides, zero inside and in the padding.
    fn start(&self, index: u64) -> f32 {
        let (column, row) = (index as i32 % self.pitch, index as i32 / self.pitch);
        if column == 0 || column == self.columns - 1 {
            return (2.0 * PI * f64::from(row) / f64::from(self.rows - 1)).sin() as f32;
        }
        0.0
    }
}

/// Squared change, in norm units.
fn units(new: f32, own: f32) -> u64 {
    ((new - own) * (new - own) * UNIT) as u64
}

impl Instance for Planes {
    fn fill(&self, memory: &Memory) {
        self.planes.iter().for_each(|plane| memory.fill(*plane, |index| self.start(index)));
        self.norms.iter().for_each(|norm| memory.clear(*norm));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.planes.iter().for_each(|plane| host.copy_to_device(*plane));
        let mut pair = self.planes;
        for launch in 0..self.iterations {
            let grid = self.tiles.grid("jacobi", (SIDE * SIDE) as u32).shared_bytes(8 * SIDE as u32);
            let sums = launch.is_multiple_of(self.check).then_some(launch);
            host.launch(grid, |cta| self.kernel(cta, pair, sums))?;
            pair.reverse();
        }
        host.copy_to_host(pair[0]);
        self.norms.iter().for_each(|norm| host.copy_to_host(*norm));
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let [columns, rows, pitch] = [self.columns, self.rows, self.pitch].map(|count| count as usize);
        let mut from: Vec<f32> = (0..(pitch * rows) as u64).map(|index| self.start(index)).collect();
        let mut norms = vec![0_u64; self.iterations as usize];
        for (launch, norm) in norms.iter_mut().enumerate() {
            let mut to = from.clone();
            let sums = (launch as u64).is_multiple_of(self.check);
            for y in 1..rows - 1 {
                for at in y * pitch + 1..y * pitch + columns - 1 {
                    to[at] = (from[at + 1] + from[at - 1] + from[at + pitch] + from[at - pitch]) * 0.25;
                    *norm += if sums { units(to[at], from[at]) } else { 0 };
                }
            }
            let inner = |row: usize| row * pitch + 1..row * pitch + columns - 1;
            to.copy_within(inner(rows - 2), 1);
            to.copy_within(inner(1), (rows - 1) * pitch + 1);
            from = to;
        }
        let result = memory.to_vec(self.planes[(self.iterations % 2) as usize]);
        compare("point", result, from, 0.0)?;
        for (launch, expected) in (0..).zip(norms) {
            let sums = self.norms.iter().map(|norm| memory.get(*norm, launch).unwrap_or_default());
            let found: u64 = sums.sum();
            if found != expected {
                return Err(format!("norm {launch} is {found}, expected {expected}"));
            }
        }
        Ok(())
    }
}
