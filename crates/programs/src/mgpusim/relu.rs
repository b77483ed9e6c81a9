//! Rectifies a vector: each element is replaced by the maximum of the element and zero.

use crate::prelude::*;

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;

program! {
    /// rectifies a vector: bandwidth, as much written as read
    pub(crate) static RELU = "relu", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        /// elements of each of two vectors of 4-byte floats, at scale 1; scales
        elements: count(1..=1 << 30) = 4_194_304, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        let elements = request.scale.of(elements);
    }
    struct RectifiedVector {
        input, output: Array<f32>[elements],
        seed: u64 = request.seed,
    }
}

impl RectifiedVector {
    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let i = warp.compute(ComputeClass::Int, 3, warp.global_thread());
            warp.when(i.lt(self.output.len() as i32), |warp| {
                let i = warp.compute(ComputeClass::Int, ADDRESS, i);
                let value = warp.load(self.input, i).max(Lanes::all(0.0));
                let value = warp.compute(ComputeClass::Fp32, 1, value);
                warp.store(self.output, i, value);
            });
        });
    }

    fn input(&self, index: u64) -> f32 {
        10.0 * noise::unit(self.seed, index)
    }
}

impl Instance for RectifiedVector {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.input(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        let ctas = self.output.len().div_ceil(u64::from(THREADS));
        host.launch(Grid::new("relu", ctas, THREADS), |cta| self.kernel(cta))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected = (0..self.output.len()).map(|index| self.input(index).max(0.0));
        compare("output", memory.to_vec(self.output), expected, 0.0)
    }
}
