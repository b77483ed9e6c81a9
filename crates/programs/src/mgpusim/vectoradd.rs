//! Adds two vectors, with an element per thread.

use crate::prelude::*;

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;

program! {
    /// adds two vectors: bandwidth, one launch
    pub(crate) static VECTORADD = "vectoradd", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        /// elements of each of three vectors of 4-byte floats, at scale 1; scales
        elements: count(1..=1 << 30) = 4_194_304, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        let elements = request.scale.of(elements);
    }
    struct VectorSum {
        a, b, sum: Array<f32>[elements],
        seed: u64 = request.seed,
    }
}

impl VectorSum {
    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            // The index has two dimensions in the source, the second with extent 1.
            let i = warp.compute(ComputeClass::Int, 3, warp.global_thread());
            warp.when(i.lt(self.sum.len() as i32), |warp| {
                let i = warp.compute(ComputeClass::Int, 2 * ADDRESS, i);
                let sum = warp.load(self.a, i) + warp.load(self.b, i);
                let sum = warp.compute(ComputeClass::Fp32, 1, sum);
                warp.store(self.sum, i, sum);
            });
        });
    }

    fn inputs(&self, index: u64) -> (f32, f32) {
        (noise::unit(self.seed, 2 * index), noise::unit(self.seed, 2 * index + 1))
    }
}

impl Instance for VectorSum {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.a, |index| self.inputs(index).0);
        memory.fill(self.b, |index| self.inputs(index).1);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.a);
        host.copy_to_device(self.b);
        let ctas = self.sum.len().div_ceil(u64::from(THREADS));
        host.launch(Grid::new("vectoradd", ctas, THREADS), |cta| self.kernel(cta))?;
        host.copy_to_host(self.sum);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected = (0..self.sum.len()).map(|index| self.inputs(index)).map(|(a, b)| a + b);
        compare("sum", memory.to_vec(self.sum), expected, 0.0)
    }
}
