//! The two products in a biconjugate gradient step: q = A p, s = Aᵀ r, with a thread per element.

use super::matrixvector::{Matrix, PARAMETERS};
use crate::mgpusim::MI300A_KERNELS;
use tombolo_workload::bench::Benchmark;
use tombolo_workload::bench::{Instance, Request, WorkloadError};
use tombolo_workload::noise;
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, Memory, Scaling};

/// The workload's entry in the table.
pub(crate) static BICG: Benchmark = Benchmark {
    name: "bicg",
    about: "q = A p and s = A^T r: few threads, long chains of dependent loads",
    source: MI300A_KERNELS,
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: true,
    lay_out,
};

struct Bicg {
    matrix: Matrix,
    p: Array<f32>,
    q: Array<f32>,
    r: Array<f32>,
    s: Array<f32>,
    seed: u64,
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let matrix = Matrix::lay_out(name, request, memory)?;
    let (rows, columns) = (matrix.rows as u64, matrix.columns as u64);
    Ok(Box::new(Bicg {
        p: memory.array("p", columns, Scaling::Fixed),
        q: memory.array("q", rows, Scaling::Scales),
        r: memory.array("r", rows, Scaling::Scales),
        s: memory.array("s", columns, Scaling::Fixed),
        seed: !request.seed,
        matrix,
    }))
}

impl Instance for Bicg {
    fn fill(&self, memory: &Memory) {
        self.matrix.fill(memory);
        memory.fill(self.p, |index| noise::unit(self.seed, index));
        memory.fill(self.r, |index| noise::unit(self.seed ^ 1, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.matrix.values);
        host.copy_to_device(self.p);
        host.copy_to_device(self.r);
        self.matrix.rows(host, self.p, self.q, true)?;
        self.matrix.columns(host, self.r, self.s, true)?;
        host.copy_to_host(self.q);
        host.copy_to_host(self.s);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        self.matrix.check_rows(&memory.to_vec(self.p), &memory.to_vec(self.q), "q")?;
        self.matrix.check_columns(&memory.to_vec(self.r), &memory.to_vec(self.s), "s")
    }
}
