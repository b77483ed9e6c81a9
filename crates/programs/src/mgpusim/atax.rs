//! y = Aᵀ(A x): row products, then column products, with a thread per element.

use super::matrixvector::{Matrix, PARAMETERS};
use crate::mgpusim::MI300A_KERNELS;
use tombolo_workload::bench::Benchmark;
use tombolo_workload::bench::{Instance, Request, WorkloadError};
use tombolo_workload::noise;
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, Memory, Scaling};

/// The workload's entry in the table.
pub(crate) static ATAX: Benchmark = Benchmark {
    name: "atax",
    about: "y = A^T (A x): few threads, long chains of dependent loads",
    source: MI300A_KERNELS,
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: true,
    lay_out,
};

struct Atax {
    matrix: Matrix,
    x: Array<f32>,
    /// The intermediate product A x.
    product: Array<f32>,
    y: Array<f32>,
    seed: u64,
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let matrix = Matrix::lay_out(name, request, memory)?;
    let (rows, columns) = (matrix.rows as u64, matrix.columns as u64);
    Ok(Box::new(Atax {
        x: memory.array("x", columns, Scaling::Fixed),
        product: memory.array("product", rows, Scaling::Scales),
        y: memory.array("y", columns, Scaling::Fixed),
        seed: !request.seed,
        matrix,
    }))
}

impl Instance for Atax {
    fn fill(&self, memory: &Memory) {
        self.matrix.fill(memory);
        memory.fill(self.x, |index| noise::unit(self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.matrix.values);
        host.copy_to_device(self.x);
        self.matrix.rows(host, self.x, self.product, false)?;
        self.matrix.columns(host, self.product, self.y, false)?;
        host.copy_to_host(self.y);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let product = memory.to_vec(self.product);
        self.matrix.check_rows(&memory.to_vec(self.x), &product, "product")?;
        self.matrix.check_columns(&product, &memory.to_vec(self.y), "y")
    }
}
