//! The two products in a biconjugate gradient step: q = A p, s = Aᵀ r, with a thread per element.

use super::matrixvector::{Matrix, PARAMETERS};
use crate::prelude::*;

program! {
    /// q = A p and s = A^T r: few threads, long chains of dependent loads
    pub(crate) static BICG = "bicg", MI300A_KERNELS;
    properties: data_independent;
    parameters: &PARAMETERS;
    lay_out(name, request, memory) {
        let matrix = Matrix::lay_out(memory, name, request)?;
        let (rows, columns) = (matrix.rows as u64, matrix.columns as u64);
    }
    struct Bicg {
        p: Array<f32>[columns, fixed],
        q, r: Array<f32>[rows],
        s: Array<f32>[columns, fixed],
        seed: u64 = !request.seed,
        matrix: Matrix,
    }
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
