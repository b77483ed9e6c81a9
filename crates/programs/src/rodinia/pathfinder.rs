//! Rodinia pathfinder: the cheapest path down a grid, several rows per launch.
//!
//! A launch computes `pyramid` rows. Each CTA loads a stretch of the previous launch's last row into the scratchpad,
//! with halo columns on both sides. A cell needs three neighbours in the row above, so each computed row makes the
//! valid stretch narrower by a column per side. Each CTA stores only the columns still valid in the last row.

use crate::prelude::*;

/// Threads per CTA; a thread computes one column of the CTA's stretch. Source: Rodinia 3.1 pathfinder (`BLOCK_SIZE`).
const THREADS: i32 = 256;

program! {
    /// dynamic programming down a grid, dependent launches of several rows
    pub(crate) static PATHFINDER = "pathfinder", "Rodinia 3.1 pathfinder; HMG Table III (Rodinia_pathfinder)";
    properties: data_independent;
    parameters {
        /// columns of the grid of 4-byte costs, at scale 1; scales, because CTAs cut the columns
        columns: count(1..=1 << 28) = 4_000_000, "HMG Table III: 1.49 GB at Rodinia's 100 rows";
        /// rows of the grid
        rows: count(2..=100_000) = 100, "Rodinia 3.1 pathfinder (`run`: 100000 100 20)";
        /// rows a launch
        pyramid: count(1..=127) = 20, "Rodinia 3.1 pathfinder (`run`: 100000 100 20)";
    }
    lay_out(name, request, memory) {
        let columns = request.scale.of(columns);
        check_indices(name, columns * rows, "cells")?;
    }
    struct CostGrid {
        /// Costs of all rows except the first: `(rows - 1) × columns`.
        wall: Array<i32>[columns * (rows - 1)],
        /// Cost of the cheapest path to each column of a row. A launch reads one array and writes the other.
        results: [Array<i32>; 2]["result0", "result1"; columns],
        columns, rows, pyramid: i32,
        seed: u64 = request.seed,
    }
}

/// Parameters for one launch, which adds the rows `start` to `start + steps - 1` of `wall` to the paths.
struct RowsLaunch<'a> {
    paths: &'a CostGrid,
    from: Array<i32>,
    to: Array<i32>,
    start: i32,
    steps: i32,
}

impl RowsLaunch<'_> {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let columns = self.paths.columns;
        let left = (THREADS - 2 * self.steps) * cta.index() as i32 - self.steps;
        let (first, last) = ((-left).max(0), (THREADS - 1).min(columns - 1 - left));
        let mut before = cta.shared::<i32>(THREADS as usize);
        let mut after = cta.shared::<i32>(THREADS as usize);
        cta.each_warp(|warp| {
            let column = warp.compute(ComputeClass::Int, 10, warp.thread() + left);
            warp.when(column.ge(0) & column.lt(columns), |warp| {
                let cost = warp.load(self.from, column);
                warp.store_shared(&mut before, warp.thread(), cost);
            });
        });
        cta.barrier();
        for step in 0..self.steps {
            self.advance(cta, step, left, (first, last), &before, &mut after);
            cta.barrier();
            if step + 1 < self.steps {
                self.copy_back(cta, step, (first, last), &after, &mut before);
                cta.barrier();
            }
        }
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let valid = self.valid(thread, self.steps - 1, (first, last));
            warp.when(valid, |warp| {
                let cost = warp.load_shared(&after, thread);
                warp.store(self.to, thread + left, cost);
            });
        });
    }

    /// Threads with a valid column after `step`. `first` and `last`: the threads at the ends of the grid's part in this
    /// stretch.
    fn valid(&self, thread: Lanes<i32>, step: i32, (first, last): (i32, i32)) -> Lanes<bool> {
        thread.ge((step + 1).max(first)) & thread.le((THREADS - 2 - step).min(last))
    }

    fn advance(
        &self,
        cta: &mut Cta<'_>,
        step: i32,
        left: i32,
        (first, last): (i32, i32),
        before: &Shared<i32>,
        after: &mut Shared<i32>,
    ) {
        cta.each_warp(|warp| {
            let thread = warp.thread();
            warp.when(self.valid(thread, step, (first, last)), |warp| {
                let west = warp.load_shared(before, (thread - 1).max(Lanes::all(first)));
                let middle = warp.load_shared(before, thread);
                let east = warp.load_shared(before, (thread + 1).min(Lanes::all(last)));
                let at = thread + (self.paths.columns * (self.start + step) + left);
                let at = warp.compute(ComputeClass::Int, 4, at);
                let cost = warp.load(self.paths.wall, at);
                let best = west.min(middle).min(east) + cost;
                let best = warp.compute(ComputeClass::Int, 1, best);
                warp.store_shared(after, thread, best);
            });
        });
    }

    fn copy_back(
        &self,
        cta: &mut Cta<'_>,
        step: i32,
        valid: (i32, i32),
        after: &Shared<i32>,
        before: &mut Shared<i32>,
    ) {
        cta.each_warp(|warp| {
            let thread = warp.thread();
            warp.when(self.valid(thread, step, valid), |warp| {
                let cost = warp.load_shared(after, thread);
                warp.store_shared(before, thread, cost);
            });
        });
    }
}

impl CostGrid {
    fn cost(&self, row: i32, column: i32) -> i32 {
        noise::below(self.seed, row as u64 * self.columns as u64 + column as u64, 10) as i32
    }
}

impl Instance for CostGrid {
    fn fill(&self, memory: &Memory) {
        let columns = self.columns as u64;
        memory.fill(self.results[0], |index| self.cost(0, index as i32));
        memory.fill(self.wall, |index| self.cost((index / columns) as i32 + 1, (index % columns) as i32));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.wall);
        host.copy_to_device(self.results[0]);
        let [mut from, mut to] = self.results;
        for start in (0..self.rows - 1).step_by(self.pyramid as usize) {
            let steps = self.pyramid.min(self.rows - 1 - start);
            let ctas = (self.columns as u64).div_ceil((THREADS - 2 * steps) as u64);
            let grid = Grid::new("pathfinder", ctas, THREADS as u32).shared_bytes(8 * THREADS as u32);
            let stretch = RowsLaunch { paths: self, from, to, start, steps };
            host.launch(grid, |cta| stretch.kernel(cta))?;
            std::mem::swap(&mut from, &mut to);
        }
        host.copy_to_host(from);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let last = self.columns - 1;
        let mut best: Vec<i32> = (0..self.columns).map(|column| self.cost(0, column)).collect();
        for row in 1..self.rows {
            let next = |column: i32| {
                let reach = (column - 1).max(0) as usize..=(column + 1).min(last) as usize;
                best[reach].iter().min().copied().unwrap_or_default() + self.cost(row, column)
            };
            best = (0..self.columns).map(next).collect();
        }
        let launches = (self.rows as u32 - 1).div_ceil(self.pyramid as u32);
        let result = memory.to_vec(self.results[launches as usize % 2]);
        match best.iter().zip(&result).position(|(expected, found)| expected != found) {
            Some(at) => Err(format!("column {at} costs {}, expected {}", result[at], best[at])),
            None => Ok(()),
        }
    }
}
