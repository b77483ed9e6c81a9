//! Jacobi's method on several GPUs for a linear system whose band matrix is stored: each GPU owns a block of rows, and
//! reads unknowns of neighbouring blocks within the half-band.
//!
//! The matrix is HPCG's: a row for each point of a box, 26 on the diagonal, and -1 for each of up to 26 neighbouring
//! points. Rows are numbered along x, then y, then z, so that the half-band is a plane, a line and a point. The system's
//! exact solution is 1 everywhere. An iteration is one kernel, with a thread per row.
//!
//! The matrix is stored by diagonals, with zeros for neighbours outside the box. Unknowns have room for a half-band at
//! either end, so that no thread tests for the box. Blocks of rows, diagonals and unknowns begin at whole 128-byte
//! lines: a warp stores whole lines, as in GPS, 7.4, whose Jacobi "solves a diagonally dominant system" (Table 2).
//!
//! Departures from the sources:
//!
//! - HPCG smooths by Gauss and Seidel's method; this program takes the matrix, and Jacobi's method instead.
//! - HPCG stores rows with column indices. A band needs none.
//! - HPCG gives each process a box of the default size. Here GPUs share one box, cut along z.
//! - The number of iterations is fixed; no residual is computed.

use super::DIVISION;
use crate::prelude::*;

const HPCG: &str = "HPCG (hpcg-benchmark/hpcg), bin/hpcg.dat: 104 104 104";
/// Diagonal element, and an element beside the diagonal. Source: HPCG, src/GenerateProblem_ref.cpp.
const DIAGONAL: f64 = 26.0;
const BESIDE: f64 = -1.0;
/// Threads per CTA. Source: assumed.
const THREADS: u64 = 256;
/// Rows per group: a block of rows consists of whole groups. Source: a warp of 32 threads, which stores two 128-byte
/// lines of unknowns.
const GROUP: u64 = 32;
/// Diagonals whose loads are in flight at once. Source: assumed, a plane of the stencil.
const UNROLLED: usize = 9;

program! {
    /// Jacobi's method for a stored band matrix on several GPUs: a block of rows each, a half-band of either neighbour
    /// read
    pub(crate) static BANDED = "jacobi-banded", "HPCG (hpcg-benchmark/hpcg), its matrix; GPS, Table 2 (Jacobi)";
    properties: data_independent, partitioned_by_gpus;
    parameters {
        /// points along x, at scale 1; scales
        x: count(1..=1 << 20) = 104, HPCG;
        /// points along y; does not scale
        y: count(1..=1 << 14) = 104, HPCG;
        /// points along z, which GPUs share; does not scale
        z: count(1..=1 << 14) = 104, HPCG;
        /// launches, all alike
        iterations: count(1..=100_000) = 10, "assumed, that of jacobi";
    }
    lay_out(name, request, memory) {
        let count = |key| request.values.count(key);
        let [y, z, iterations] = ["y", "z", "iterations"].map(count);
        let x = request.scale.of(x);
        let rows = x * y * z;
        let (pitch, half_band) = (rows.next_multiple_of(GROUP), x * y + x + 1);
        check_indices(name, 27 * pitch, "elements of the matrix")?;
        let gpus = request.gpus();
        let groups = rows.div_ceil(GROUP);
        require(name, groups >= u64::from(gpus), || format!("{rows} rows leave some of {gpus} GPUs without any"))?;
        let margin = half_band.next_multiple_of(GROUP);
    }
    struct BandedSystem {
        /// Box sides, in points.
        sides: [i32; 3] = [x, y, z].map(|side| side as i32),
        /// Elements by diagonal: `[diagonal][row]`, a diagonal padded to whole groups of rows.
        matrix: Array<f64>[27 * pitch],
        /// Right-hand side.
        right: Array<f64>[pitch],
        /// Unknowns of two successive iterates, each with room for a half-band at either end.
        unknowns: [Array<f64>; 2]["x", "x_new"; margin + pitch + margin],
        /// Elements from diagonal to diagonal.
        pitch: i32,
        /// Elements before the first unknown: the half-band, in whole groups.
        margin: i32,
        iterations: u64,
        rows: PartitionGrid = Partition::groups(rows, GROUP, gpus).tiles(THREADS, 1),
    }
}

/// Steps along x, y and z to the neighbour on a diagonal; diagonals ascend by offset.
fn steps(diagonal: i32) -> [i32; 3] {
    [diagonal % 3 - 1, diagonal / 3 % 3 - 1, diagonal / 9 - 1]
}

impl BandedSystem {
    fn points(&self) -> i32 {
        self.sides.iter().product()
    }

    /// Rows from a row to its neighbour on a diagonal.
    fn offset(&self, diagonal: i32) -> i32 {
        let [x, y, z] = steps(diagonal);
        (z * self.sides[1] + y) * self.sides[0] + x
    }

    /// Matrix element; zero outside the box and in the padding.
    fn element(&self, diagonal: i32, row: i32) -> f64 {
        let [x, y, _] = self.sides;
        let place = [row % x, row / x % y, row / x / y];
        let mut neighbour = place.into_iter().zip(steps(diagonal)).zip(self.sides);
        let is_inside = row < self.points() && neighbour.all(|((at, step), side)| (0..side).contains(&(at + step)));
        match (is_inside, self.offset(diagonal)) {
            (false, _) => 0.0,
            (true, 0) => DIAGONAL,
            (true, _) => BESIDE,
        }
    }

    /// Right-hand side for the solution 1: the sum over a row.
    fn sum(&self, row: i32) -> f64 {
        (0..27).map(|diagonal| self.element(diagonal, row)).sum()
    }

    fn kernel(&self, cta: &mut Cta<'_>, [from, to]: [Array<f64>; 2]) {
        let CtaTile { items, .. } = self.rows.tile(cta.index());
        let beside: Vec<i32> = (0..27).filter(|diagonal| *diagonal != 13).collect();
        cta.each_warp(|warp| {
            let row = warp.compute(ComputeClass::Int, 2, warp.thread() + items.start as i32);
            warp.when(row.lt(items.end as i32), |warp| {
                let row = warp.compute(ComputeClass::Int, 4 * ADDRESS, row);
                let mut sum = Lanes::all(0.0_f64);
                for diagonals in beside.chunks(UNROLLED) {
                    let load = |diagonal: &i32| {
                        // A 64-bit addition for each address.
                        let [row] = warp.compute(ComputeClass::Int, 4, [row]);
                        let element = warp.load(self.matrix, row + diagonal * self.pitch);
                        (element, warp.load(from, row + (self.margin + self.offset(*diagonal))))
                    };
                    let loaded: Vec<(Lanes<f64>, Lanes<f64>)> = diagonals.iter().map(load).collect();
                    for (element, unknown) in loaded {
                        let operands = [sum, element, unknown];
                        let [next] = warp.calculate(ComputeClass::Fp64, 1, operands, |[sum, element, unknown]| {
                            [sum + element * unknown]
                        });
                        sum = next;
                    }
                }
                let right = warp.load(self.right, row);
                let diagonal = warp.load(self.matrix, row + 13 * self.pitch);
                let [new] = warp.calculate(
                    ComputeClass::Fp64,
                    1 + DIVISION,
                    [sum, right, diagonal],
                    |[sum, right, diagonal]| [(right - sum) / diagonal],
                );
                warp.store(to, row + self.margin, new);
            });
        });
    }

    /// An iteration over the points of the box, without the stored band.
    fn after_iteration(&self, from: &[f64]) -> Vec<f64> {
        let [x, y, z] = self.sides;
        let at = |[i, j, k]: [i32; 3]| ((k * y + j) * x + i) as usize;
        let around = |middle: i32, side: i32| (middle - 1).max(0)..(middle + 2).min(side);
        let point = |place: [i32; 3]| {
            let [i, j, k] = place;
            let (mut right, mut sum) = (DIAGONAL, 0.0);
            for other in around(k, z).flat_map(|k| around(j, y).flat_map(move |j| around(i, x).map(move |i| [i, j, k])))
            {
                if other != place {
                    right += BESIDE;
                    sum += BESIDE * from[at(other)];
                }
            }
            (right - sum) / DIAGONAL
        };
        (0..self.points()).map(|row| point([row % x, row / x % y, row / x / y])).collect()
    }
}

impl Instance for BandedSystem {
    fn fill(&self, memory: &Memory) {
        let pitch = self.pitch as u64;
        memory.fill(self.matrix, |at| self.element((at / pitch) as i32, (at % pitch) as i32));
        memory.fill(self.right, |row| self.sum(row as i32));
        self.unknowns.iter().for_each(|unknowns| memory.clear(*unknowns));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.matrix);
        host.copy_to_device(self.right);
        self.unknowns.iter().for_each(|unknowns| host.copy_to_device(*unknowns));
        let mut pair = self.unknowns;
        for _ in 0..self.iterations {
            host.launch(self.rows.grid("jacobi-banded", THREADS as u32), |cta| self.kernel(cta, pair))?;
            pair.reverse();
        }
        host.copy_to_host(pair[0]);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut expected = vec![0.0; self.points() as usize];
        for _ in 0..self.iterations {
            expected = self.after_iteration(&expected);
        }
        let found = memory.to_vec(self.unknowns[(self.iterations % 2) as usize]);
        let found = &found[self.margin as usize..][..expected.len()];
        compare_f64("unknown", found, &expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::scale::Scale;
    use tombolo_workload::simt::Backing;

    /// Largest distance of an unknown from its solution after the given number of iterations.
    fn largest_error(iterations: u64) -> f64 {
        let count = iterations.to_string();
        let given = [("x", "5"), ("y", "6"), ("z", "7"), ("iterations", &count)];
        let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut request = Request::new(&BANDED, Scale::FULL, &given, 7).unwrap().with_gpus(2);
        let mut memory = Memory::new(Backing::Real);
        let instance = BANDED.lay_out(&mut request, &mut memory).unwrap();
        instance.fill(&memory);
        instance.run(&mut Host::new(&memory, &RecordOptions::default())).unwrap();
        let latest = if iterations.is_multiple_of(2) { "x" } else { "x_new" };
        let place = memory.arrays().iter().position(|array| array.name == latest).unwrap();
        let found = memory.bits(place);
        let (margin, points) = (64, 5 * 6 * 7);
        found[margin..margin + points].iter().map(|bits| (f64::from_bits(*bits) - 1.0).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn iterates_approach_the_solution() {
        let errors = [1, 10, 100].map(largest_error);
        assert!(errors.is_sorted_by(|before, after| before > after), "{errors:?}");
        assert!(errors[2] < 1e-3, "{errors:?}");
    }
}
