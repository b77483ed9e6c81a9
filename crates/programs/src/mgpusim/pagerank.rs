//! PageRank as sparse products, with 64 threads per row: gathers that follow the row, then a reduction in the
//! scratchpad.
//!
//! Each matrix entry exists with probability 1/2. The number of entries per row is drawn accordingly, and determines
//! the start of the next row: equally long rows would all begin on a single module and channel. A row's columns ascend,
//! with a column drawn from each of equally long stretches, a stretch per entry. Columns are thus known without reading
//! the column array.

use crate::prelude::*;
use std::ops::Range;

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: i32 = 64;

program! {
    /// PageRank on a dense random graph: streams of rows, gathers, a CTA a row
    pub(crate) static PAGERANK = "mgpusim-pagerank", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        /// nodes; does not scale, because vectors and matrix could not both
        nodes: count(2..=1 << 16) = 3072, MI300A_KERNELS;
        /// rows of the matrix that are computed, at scale 1, 0 for as many as nodes; scales
        rows: count(0..=1 << 16) = 0, "assumed: rows scale, as the work of a partition of the graph";
    }
    lay_out(_, request, memory) {
        let given = rows;
        let wanted = request.scale.of(if given == 0 { nodes } else { given });
        let rows = request.fit("rows", wanted, wanted.min(nodes), "as many as nodes, at most");
        let starts = starts(rows, nodes, request.seed);
        let entries = starts[rows as usize].max(1);
    }
    struct Ranks {
        offsets: Array<u32>[rows + 1],
        columns: Array<u32>[entries],
        values: Array<f32>[entries],
        vectors: [Array<f32>; 2]["x", "y"; nodes, fixed],
        nodes: u64,
        /// Start of each row among the entries, followed by the last row's end.
        starts: Vec<u64>,
        seed: u64 = request.seed,
    }
}

/// Start of each of `rows` rows, followed by the end of the last: every entry of `nodes` exists or not according to a
/// random bit.
fn starts(rows: u64, nodes: u64, seed: u64) -> Vec<u64> {
    let words = nodes.div_ceil(64);
    let length = |row: u64| -> u64 {
        let full: u32 = (1..words).map(|word| noise::noise(seed, row * words + word).count_ones()).sum();
        let last = noise::noise(seed, row * words) >> (64 * words - nodes);
        u64::from(full + last.count_ones())
    };
    let mut starts = vec![0];
    starts.extend((0..rows).scan(0, |end, row| {
        *end += length(row);
        Some(*end)
    }));
    starts
}

impl Ranks {
    fn rows(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    /// Entry range of a row.
    fn entries(&self, row: u64) -> Range<u64> {
        self.starts[row as usize]..self.starts[row as usize + 1]
    }

    /// An entry's column in a row: the columns are divided into equal stretches, a stretch per entry, and the column is
    /// drawn from the entry's own stretch.
    fn column(&self, row: &Range<u64>, entry: u64) -> u32 {
        let (place, count) = (entry - row.start, row.end - row.start);
        let (from, to) = (place * self.nodes / count, (place + 1) * self.nodes / count);
        (from + noise::below(!self.seed, entry, to - from)) as u32
    }

    fn kernel(&self, cta: &mut Cta<'_>, x: Array<f32>, y: Array<f32>) {
        let row = i64::from(cta.index());
        let entries = self.entries(u64::from(cta.index()));
        let trips = cta.trips();
        let mut sums: Shared<f32> = cta.shared(THREADS as usize);
        cta.each_warp(|warp| {
            let lane = warp.compute(ComputeClass::Int, 4, warp.thread());
            warp.store(y, Lanes::all(row), 0.0);
            let ends = (warp.load(self.offsets, Lanes::all(row)), warp.load(self.offsets, Lanes::all(row + 1)));
            warp.store_shared(&mut sums, lane, 0.0);
            warp.compute(ComputeClass::Int, 2, ends);
            let mut sum = Lanes::all(0.0);
            for trip in trips.clone().map(|trip| trip as i64) {
                let at = lane.cast::<i64>() + (entries.start as i64 + trip * i64::from(THREADS));
                warp.when(at.lt(entries.end as i64), |warp| {
                    sum = self.entry(warp, x, &entries, at, sum);
                });
            }
            warp.store_shared(&mut sums, lane, sum);
        });
        self.reduce(cta, &mut sums);
        cta.warp(0, |warp| {
            warp.single(|warp| {
                let before = warp.load(y, Lanes::all(row));
                let sum = warp.load_shared(&sums, Lanes::all(0)) + before;
                let sum = warp.compute(ComputeClass::Fp32, 1, sum);
                warp.store(y, Lanes::all(row), sum);
            });
        });
    }

    /// Adds the entries at `at`, in a row with `entries`, to the lanes' sums.
    fn entry(
        &self,
        warp: &mut Warp<'_>,
        x: Array<f32>,
        entries: &Range<u64>,
        at: Lanes<i64>,
        sum: Lanes<f32>,
    ) -> Lanes<f32> {
        let at = warp.compute(ComputeClass::Int, 1 + 2 * ADDRESS, at);
        let value = warp.load(self.values, at);
        let column = warp.load(self.columns, at);
        warp.compute(ComputeClass::Int, ADDRESS, column);
        let known = map_active(warp, |lane| self.column(entries, at.lane(lane) as u64));
        let rank = warp.load(x, known);
        let added = warp.compute(ComputeClass::Fp32, 1, sum + value * rank);
        warp.update(sum, added)
    }

    /// Sums up in the scratchpad. If a CTA is a single warp, the source has no barriers; this program also omits
    /// barriers without effect.
    fn reduce(&self, cta: &mut Cta<'_>, sums: &mut Shared<f32>) {
        let several = cta.warps() > 1;
        for half in [32, 16, 8, 4, 2, 1] {
            if several {
                cta.barrier();
            }
            cta.warp(0, |warp| {
                let lane = warp.thread();
                warp.when(lane.lt(half), |warp| {
                    let sum = warp.load_shared(sums, lane) + warp.load_shared(sums, lane + half);
                    let sum = warp.compute(ComputeClass::Fp32, 1, sum);
                    warp.store_shared(sums, lane, sum);
                });
            });
        }
    }
}

impl Instance for Ranks {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.offsets, |row| self.starts[row as usize] as u32);
        memory.fill(self.columns, |entry| {
            let row = self.starts.partition_point(|start| *start <= entry).saturating_sub(1) as u64;
            if row < self.rows() { self.column(&self.entries(row), entry) } else { 0 }
        });
        memory.fill(self.values, |entry| noise::unit(!self.seed, entry));
        memory.fill(self.vectors[0], |node| noise::unit(self.seed ^ 1, node));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.vectors[0]);
        let [x, y] = self.vectors;
        let longest = self.starts.windows(2).map(|row| row[1] - row[0]).max().unwrap_or(0);
        let trips = Trips { count: longest.div_ceil(THREADS as u64).max(1), unit: 1 };
        for (from, to) in [(x, y), (y, x)] {
            let grid = Grid::new("pagerank", self.rows(), THREADS as u32).shared_bytes(4 * THREADS as u32).trips(trips);
            host.launch(grid, |cta| self.kernel(cta, from, to))?;
        }
        host.copy_to_host(x);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let values = memory.to_vec(self.values);
        let product = |from: &[f32]| -> Vec<f32> {
            let row = |row: u64| {
                let entries = self.entries(row);
                let term = |at: u64| values[at as usize] * from[self.column(&entries, at) as usize];
                entries.clone().fold(0.0, |sum: f32, at| sum + term(at))
            };
            (0..self.nodes).map(|at| if at < self.rows() { row(at) } else { 0.0 }).collect()
        };
        let x: Vec<f32> = (0..self.nodes).map(|node| noise::unit(self.seed ^ 1, node)).collect();
        let y = product(&x);
        compare("y", memory.to_vec(self.vectors[1]), y.iter().copied(), 1e-4)?;
        let rows = self.rows() as usize;
        compare("x", memory.to_vec(self.vectors[0]).into_iter().take(rows), product(&y), 1e-3)
    }
}
