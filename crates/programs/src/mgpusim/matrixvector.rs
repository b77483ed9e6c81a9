//! Common part for atax and bicg: a square matrix times a vector, by rows and by columns, with a thread per result
//! element. The result stays in memory and is stored after every term, because the compiler must assume concurrent
//! reads.

use crate::prelude::*;

/// Threads per CTA. Source: [`MI300A_KERNELS`](crate::mgpusim::MI300A_KERNELS).
const THREADS: u32 = 256;
/// Columns per 128-byte line; rows reach new lines after this many columns.
const LINE: u64 = 32;

pub(super) static PARAMETERS: [Parameter; 2] = parameters![
    /// rows of the matrix of 4-byte floats, at scale 1; scales
    rows: count(1..=1 << 16) = 1536, crate::mgpusim::MI300A_KERNELS;
    /// columns of the matrix; does not scale
    columns: count(1..=1 << 16) = 1536, crate::mgpusim::MI300A_KERNELS;
];

arrays! {
    lay_out(memory, workload: &'static str, request: &Request) {
        let (rows, columns) = (request.scale.of(request.values.count("rows")), request.values.count("columns"));
        require(workload, rows * columns <= i32::MAX as u64, || {
            format!("{rows} rows of {columns} columns exceed 2^31 - 1 elements")
        })?;
    }
    /// The matrix.
    pub(super) struct Matrix {
        pub(super) values: Array<f32>["matrix"; rows * columns],
        pub(super) rows, columns: i32,
        seed: u64 = request.seed,
    }
}

impl Matrix {
    pub(super) fn fill(&self, memory: &Memory) {
        memory.fill(self.values, |index| noise::unit(self.seed, index));
    }

    /// Computes the products of each row i with `by` and stores or adds the result in `to[i]`. `clears` is true if the
    /// kernel stores a zero first.
    pub(super) fn rows(
        &self,
        host: &mut Host<'_>,
        by: Array<f32>,
        to: Array<f32>,
        clears: bool,
    ) -> Result<(), RecordError> {
        let trips = Trips { count: self.columns as u64, unit: LINE };
        let grid = Grid::new("row-products", (self.rows as u64).div_ceil(u64::from(THREADS)), THREADS).trips(trips);
        host.launch(grid, |cta| {
            let place = |i: Lanes<i32>, j: i32| i * self.columns + j;
            self.accumulate(cta, (by, to), self.rows, clears, place);
        })
    }

    /// Computes the products of each column j with `by` and stores or adds the result in `to[j]`.
    pub(super) fn columns(
        &self,
        host: &mut Host<'_>,
        by: Array<f32>,
        to: Array<f32>,
        clears: bool,
    ) -> Result<(), RecordError> {
        let trips = Trips { count: self.rows as u64, unit: LINE };
        let grid =
            Grid::new("column-products", (self.columns as u64).div_ceil(u64::from(THREADS)), THREADS).trips(trips);
        host.launch(grid, |cta| {
            let place = |j: Lanes<i32>, i: i32| j + i * self.columns;
            self.accumulate(cta, (by, to), self.columns, clears, place);
        })
    }

    fn accumulate(
        &self,
        cta: &mut Cta<'_>,
        (by, to): (Array<f32>, Array<f32>),
        results: i32,
        clears: bool,
        place: impl Fn(Lanes<i32>, i32) -> Lanes<i32>,
    ) {
        let trips = cta.trips();
        cta.each_warp(|warp| {
            let t = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread());
            warp.when(t.lt(results), |warp| {
                let mut sum = Lanes::all(0.0);
                if clears {
                    warp.store(to, t, 0.0);
                } else {
                    sum = warp.load(to, t);
                }
                for trip in trips.clone().map(|trip| trip as i32) {
                    let at = warp.compute(ComputeClass::Int, 2 + ADDRESS, place(t, trip));
                    let product = warp.load(self.values, at) * warp.load(by, Lanes::all(trip));
                    sum = warp.compute(ComputeClass::Fp32, 1, sum + product);
                    warp.store(to, t, sum);
                }
            });
        });
    }

    /// Compares `found` with the matrix times `by`.
    pub(super) fn check_rows(&self, by: &[f32], found: &[f32], what: &str) -> Result<(), String> {
        let product = |i: usize| self.sum((0..self.columns as usize).map(|j| (i * self.columns as usize + j, by[j])));
        compare(what, found.iter().copied(), (0..self.rows as usize).map(product), 1e-4)
    }

    /// Compares `found` with the transposed matrix times `by`.
    pub(super) fn check_columns(&self, by: &[f32], found: &[f32], what: &str) -> Result<(), String> {
        let product = |j: usize| self.sum((0..self.rows as usize).map(|i| (i * self.columns as usize + j, by[i])));
        compare(what, found.iter().copied(), (0..self.columns as usize).map(product), 1e-4)
    }

    fn sum(&self, terms: impl Iterator<Item = (usize, f32)>) -> f32 {
        terms.fold(0.0, |sum, (at, factor)| sum + noise::unit(self.seed, at as u64) * factor)
    }
}
