//! y = Aᵀ(A x): row products, then column products, with a thread per element.

use super::matrixvector::{Matrix, PARAMETERS};
use crate::prelude::*;

program! {
    /// y = A^T (A x): few threads, long chains of dependent loads
    pub(crate) static ATAX = "atax", MI300A_KERNELS;
    properties: data_independent;
    parameters: &PARAMETERS;
    lay_out(name, request, memory) {
        let matrix = Matrix::lay_out(memory, name, request)?;
        let (rows, columns) = (matrix.rows as u64, matrix.columns as u64);
    }
    struct Atax {
        x: Array<f32>[columns, fixed],
        /// The intermediate product A x.
        product: Array<f32>[rows],
        y: Array<f32>[columns, fixed],
        seed: u64 = !request.seed,
        matrix: Matrix,
    }
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
