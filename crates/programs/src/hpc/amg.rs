//! AMG: algebraic multigrid V-cycles over sparse matrices in rows (CSR).
//!
//! On each level the smoother computes a residual and divides it by the rows' norms (l1-Jacobi). The residual is
//! restricted to the next level and solved there by another cycle; then the correction is prolonged back. Matrix,
//! restriction and prolongation are all sparse matrix-vector products, with eight threads per row.
//!
//! The setup phase runs on the host. Its coarse unknowns are the ones a coarsening finds on a regular problem: every
//! fourth unknown along each axis at first, then every second. Not modelled: the coarsening itself, and the Krylov
//! solver preconditioned by the cycle.

mod hierarchy;
mod operator;
mod setup;

use crate::prelude::*;
use hierarchy::{AmgLevel, Hierarchy};
use operator::Operator;
use setup::{OperatorValues, ReferenceSolver, setup};

/// Threads per CTA. Source: assumed, the usual size.
const THREADS: u32 = 256;
/// Threads per row. Source: assumed. With [`THREADS`], the 241,549 CTAs in NUMA-GPU, Table 2 fit its 3744 MB for rows
/// with 27 entries.
const GROUP: i32 = 8;

program! {
    // The number of levels below the finest, and hence the number of launches, grows with the logarithm of the side.
    /// algebraic multigrid V-cycle: products of sparse matrices and vectors on shrinking levels
    pub(crate) static AMG = "amg", "AMG (CORAL), problem 1, with hypre's options for GPUs; NUMA-GPU, Table 2 (HPC-AMG)";
    properties: nonlinear, data_independent;
    parameters {
        /// unknowns along x, at scale 1; scales by the root
        x: count(2..=512) = 201, "NUMA-GPU, Table 2: with y and z 3744 MB";
        /// unknowns along y, at scale 1; scales by the root
        y: count(2..=512) = 201, "NUMA-GPU, Table 2, as x";
        /// unknowns along z; does not scale, because modules share planes of z
        z: count(2..=512) = 201, "NUMA-GPU, Table 2, as x";
        /// V-cycles, of one sweep on the way down and one on the way up
        cycles: count(1..=1000) = 1,
            "hypre's manual (BoomerAMG as a preconditioner): one cycle an iteration of the solver";
        /// sweeps on the coarsest level
        bottom: count(1..=1000) = 8, "assumed, in place of an elimination of its at most 64 unknowns";
    }
    lay_out(name, request, memory) {
        let (x, y) = (request.scale.side_of(x), request.scale.side_of(y));
        require(name, x * y * z * 56 <= i32::MAX as u64, || {
            format!("matrices of {x} × {y} × {z} rows exceed 2^31 - 1")
        })?;
        let hierarchy = Hierarchy::new(CellGrid { x: x as i32, y: y as i32, z: z as i32 });
        let transfers = || hierarchy.levels.iter().filter_map(|level| level.transfer.as_ref());
        let matrices = Hierarchy::extent(hierarchy.levels.iter().map(|level| &level.matrix));
        let prolongations = Hierarchy::extent(transfers().map(|transfer| &transfer.prolongation));
        let restrictions = Hierarchy::extent(transfers().map(|transfer| &transfer.restriction));
        let mut csr = |name: &str, (rows, entries)| Csr {
            offsets: memory.array(&format!("{name}_offsets"), rows, Scaling::Scales),
            columns: memory.array(&format!("{name}_columns"), entries, Scaling::Scales),
            values: memory.array(&format!("{name}_values"), entries, Scaling::Scales),
        };
        let (matrix, prolongation, restriction) =
            (csr("matrix", matrices), csr("prolongation", prolongations), csr("restriction", restrictions));
    }
    struct MultigridSolver {
        matrix, prolongation, restriction: Csr,
        /// Vectors for all levels, placed like the matrix rows: solution, right-hand side, residual and norms.
        x: Array<f64>[matrices.0],
        right, residual, norms: Array<f64>[matrices.0],
        hierarchy: Hierarchy,
        cycles, bottom: u64,
        seed: u64 = request.seed,
    }
}

/// Arrays with every level's operators for one kind.
#[derive(Clone, Copy)]
struct Csr {
    /// First entry per row plus the end of the last row, level by level.
    offsets: Array<i32>,
    columns: Array<i32>,
    values: Array<f64>,
}

type RecordResult = Result<(), RecordError>;

impl MultigridSolver {
    /// Runs `body` with one thread for each row in a level.
    fn each(
        &self,
        host: &mut Host<'_>,
        name: &str,
        level: &AmgLevel,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> RecordResult {
        let (rows, first) = (level.matrix.rows(), level.matrix.first_row());
        let ctas = (rows as u64).div_ceil(u64::from(THREADS));
        host.launch(Grid::new(name, ctas, THREADS), |cta: &mut Cta<'_>| {
            cta.each_warp(|warp| {
                let row = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread());
                warp.when(row.lt(rows), |warp| body(warp, row + first));
            });
        })
    }

    /// Multiplies `operator` with the part of `vector` that starts at `from`. The first thread per row gets the row's
    /// index and sum.
    fn multiply(
        &self,
        host: &mut Host<'_>,
        name: &str,
        (csr, operator): (Csr, &Operator),
        (vector, from): (Array<f64>, i32),
        body: impl Fn(&mut Warp<'_>, Lanes<i32>, Lanes<f64>) + Sync,
    ) -> RecordResult {
        let rows = operator.rows();
        let ctas = (rows as u64 * GROUP as u64).div_ceil(u64::from(THREADS));
        host.launch(Grid::new(name, ctas, THREADS), |cta: &mut Cta<'_>| {
            cta.each_warp(|warp| {
                let thread = warp.global_thread();
                let [index, lane] = warp.compute(ComputeClass::Int, 3 + ADDRESS, [thread / GROUP, thread % GROUP]);
                warp.when(index.lt(rows), |warp| {
                    let sum = Self::row_sum(warp, (csr, operator), (vector, from), index, lane);
                    warp.when(lane.eq(0), |warp| body(warp, index, sum));
                });
            });
        })
    }

    /// Product of a row and a vector, summed over the row's threads.
    fn row_sum(
        warp: &mut Warp<'_>,
        (csr, operator): (Csr, &Operator),
        (vector, from): (Array<f64>, i32),
        index: Lanes<i32>,
        lane: Lanes<i32>,
    ) -> Lanes<f64> {
        let at = index + operator.first_row();
        let ends = (warp.load(csr.offsets, at), warp.load(csr.offsets, at + 1));
        warp.compute(ComputeClass::Int, 2, ends);
        // The host knows the loaded row bounds without memory contents.
        let row = index.map(|index| operator.row(index));
        let rounds = row.zip(lane, |row, lane| ((row.count() - lane + GROUP - 1) / GROUP) as u32);
        let mut sum = Lanes::all(0.0);
        warp.repeat(rounds, |warp, round| {
            let entry = lane + round as i32 * GROUP;
            let at = row.zip(entry, |row, entry| row.first + entry);
            let at = warp.compute(ComputeClass::Int, 1 + 2 * ADDRESS, at);
            let (loaded, value) = (warp.load(csr.columns, at), warp.load(csr.values, at));
            warp.compute(ComputeClass::Int, ADDRESS, loaded);
            let column = row.zip(entry, |row, entry| operator.column(&row, entry));
            let product = value * warp.load(vector, column + from);
            let added = warp.compute(ComputeClass::Fp64, 1, sum + product);
            sum = warp.update(sum, added);
        });
        warp.sum_lanes(ComputeClass::Fp64, sum, GROUP as u32)
    }

    fn find_residual(&self, host: &mut Host<'_>, level: &AmgLevel) -> RecordResult {
        let first = level.matrix.first_row();
        self.multiply(host, "residual", (self.matrix, &level.matrix), (self.x, first), |warp, row, sum| {
            let residual = warp.load(self.right, row + first) - sum;
            let residual = warp.compute(ComputeClass::Fp64, 1, residual);
            warp.store(self.residual, row + first, residual);
        })
    }

    /// Runs one smoothing sweep; `fresh` is set while the solution is still zero.
    fn smooth(&self, host: &mut Host<'_>, level: &AmgLevel, fresh: bool) -> RecordResult {
        if fresh {
            return self.each(host, "smooth-first", level, |warp, at| {
                let step = warp.load(self.right, at) / warp.load(self.norms, at);
                let step = warp.compute(ComputeClass::Fp64, 8, step);
                warp.store(self.x, at, step);
            });
        }
        self.find_residual(host, level)?;
        self.each(host, "smooth", level, |warp, at| {
            let moved = warp.load(self.x, at) + warp.load(self.residual, at) / warp.load(self.norms, at);
            let moved = warp.compute(ComputeClass::Fp64, 9, moved);
            warp.store(self.x, at, moved);
        })
    }

    fn cycle(&self, host: &mut Host<'_>, depth: usize, fresh: bool) -> RecordResult {
        let level = &self.hierarchy.levels[depth];
        self.smooth(host, level, fresh)?;
        let Some(transfer) = &level.transfer else {
            return (1..self.bottom).try_for_each(|_| self.smooth(host, level, false));
        };
        let first = level.matrix.first_row();
        let coarse = self.hierarchy.levels[depth + 1].matrix.first_row();
        self.find_residual(host, level)?;
        let down = (self.restriction, &transfer.restriction);
        self.multiply(host, "restrict", down, (self.residual, first), |warp, row, sum| {
            warp.store(self.right, row + coarse, sum);
        })?;
        self.cycle(host, depth + 1, true)?;
        let up = (self.prolongation, &transfer.prolongation);
        self.multiply(host, "prolong", up, (self.x, coarse), |warp, row, sum| {
            let corrected = warp.load(self.x, row + first) + sum;
            let corrected = warp.compute(ComputeClass::Fp64, 1, corrected);
            warp.store(self.x, row + first, corrected);
        })?;
        self.smooth(host, level, false)
    }

    fn start(&self, index: u64) -> f64 {
        f64::from(noise::unit(self.seed, index))
    }

    /// Fills an operator's arrays. `values` is empty if arrays have no contents.
    fn fill_operator(memory: &Memory, csr: Csr, operator: &Operator, values: &[f64]) {
        let (rows, first) = (operator.rows() as u64, operator.row(0).first as u64);
        let (first_row, end) = (operator.first_row() as u64, first + operator.entries());
        memory.fill_part(csr.offsets, first_row..first_row + rows + 1, |at| {
            let index = at - first_row;
            if index < rows { operator.row(index as i32).first } else { end as i32 }
        });
        let mut columns = (0..operator.rows()).flat_map(|index| {
            let row = operator.row(index);
            (0..row.count()).map(move |entry| operator.column(&row, entry))
        });
        memory.fill_part(csr.columns, first..end, |_| columns.next().expect("each entry has a column"));
        memory.fill_part(csr.values, first..end, |at| values[(at - first) as usize]);
    }
}

impl Instance for MultigridSolver {
    fn fill(&self, memory: &Memory) {
        let has_contents = memory.backing() == Backing::Real;
        let all = if has_contents { setup(&self.hierarchy) } else { Vec::new() };
        for (depth, level) in self.hierarchy.levels.iter().enumerate() {
            let of = |values: fn(&OperatorValues) -> &Vec<f64>| all.get(depth).map_or(&[][..], |level| values(level));
            Self::fill_operator(memory, self.matrix, &level.matrix, of(|values| &values.matrix));
            let (first, rows) = (level.matrix.first_row() as u64, level.matrix.rows() as u64);
            let norms = of(|values| &values.norms);
            memory.fill_part(self.norms, first..first + rows, |at| norms[(at - first) as usize]);
            if let Some(transfer) = &level.transfer {
                let (prolongation, restriction) = (of(|values| &values.prolongation), of(|values| &values.restriction));
                Self::fill_operator(memory, self.prolongation, &transfer.prolongation, prolongation);
                Self::fill_operator(memory, self.restriction, &transfer.restriction, restriction);
            }
        }
        memory.fill_part(self.right, 0..self.hierarchy.levels[0].matrix.rows() as u64, |row| self.start(row));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for csr in [self.matrix, self.prolongation, self.restriction] {
            host.copy_to_device(csr.offsets);
            host.copy_to_device(csr.columns);
            host.copy_to_device(csr.values);
        }
        host.copy_to_device(self.norms);
        host.copy_to_device(self.right);
        (0..self.cycles).try_for_each(|cycle| self.cycle(host, 0, cycle == 0))?;
        host.copy_to_host(self.x);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let rows = self.hierarchy.levels[0].matrix.rows() as usize;
        let right: Vec<f64> = (0..rows as u64).map(|row| self.start(row)).collect();
        let (reference, mut x) = (ReferenceSolver::new(&self.hierarchy), vec![0.0; rows]);
        (0..self.cycles).for_each(|_| reference.cycle(0, &mut x, &right, self.bottom));
        compare_f64("x", &memory.to_vec(self.x)[..rows], &x)
    }
}
