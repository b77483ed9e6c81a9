//! A sparse matrix in row form (CSR) times a vector, with a row per thread.
//!
//! The matrix is a band: entry j in row r is at column (r + j) modulo the number of rows, which makes the array
//! contents known in advance.

use crate::prelude::*;

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;

program! {
    /// sparse matrix times vector, a thread a row: strided loads that share lines over iterations
    pub(crate) static SPMV = "spmv", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        /// rows, and columns, at scale 1; scales
        rows: count(1..=1 << 26) = 262_144, MI300A_KERNELS;
        /// entries of each row
        entries: count(1..=1024) = 16, MI300A_KERNELS;
    }
    lay_out(name, request, memory) {
        let rows = request.scale.of(rows);
        require(name, rows * entries <= i32::MAX as u64, || {
            format!("{rows} rows of {entries} exceed 2^31 - 1 entries")
        })?;
    }
    struct Band {
        values: Array<f32>[rows * entries],
        columns: Array<i32>[rows * entries],
        offsets: Array<i32>[rows + 1],
        vector, output: Array<f32>[rows],
        rows, entries: i32,
        seed: u64 = request.seed,
    }
}

impl Band {
    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let row = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread());
            warp.when(row.lt(self.rows), |warp| {
                let ends = (warp.load(self.offsets, row), warp.load(self.offsets, row + 1));
                warp.compute(ComputeClass::Int, 2, ends);
                let first = row * self.entries;
                let mut sum = Lanes::all(0.0);
                for entry in 0..self.entries {
                    let at = warp.compute(ComputeClass::Int, 1 + 2 * ADDRESS, first + entry);
                    let column = warp.load(self.columns, at);
                    let value = warp.load(self.values, at);
                    warp.compute(ComputeClass::Int, ADDRESS, column);
                    let factor = warp.load(self.vector, (row + entry) % self.rows);
                    sum = warp.compute(ComputeClass::Fp32, 1, sum + value * factor);
                }
                warp.store(self.output, row, sum);
            });
        });
    }
}

impl Instance for Band {
    fn fill(&self, memory: &Memory) {
        let (entries, rows) = (self.entries as u64, self.rows as u64);
        memory.fill(self.offsets, |row| (row * entries) as i32);
        memory.fill(self.columns, |at| ((at / entries + at % entries) % rows) as i32);
        memory.fill(self.values, |index| noise::unit(self.seed, index));
        memory.fill(self.vector, |index| noise::unit(!self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.values);
        host.copy_to_device(self.columns);
        host.copy_to_device(self.offsets);
        host.copy_to_device(self.vector);
        let ctas = self.output.len().div_ceil(u64::from(THREADS));
        host.launch(Grid::new("spmv", ctas, THREADS), |cta| self.kernel(cta))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (values, columns) = (memory.to_vec(self.values), memory.to_vec(self.columns));
        let (offsets, vector) = (memory.to_vec(self.offsets), memory.to_vec(self.vector));
        let expected = offsets.windows(2).map(|ends| {
            let entries = ends[0] as usize..ends[1] as usize;
            entries.fold(0.0, |sum: f32, at| sum + values[at] * vector[columns[at] as usize])
        });
        compare("output", memory.to_vec(self.output), expected, 1e-5)
    }
}
