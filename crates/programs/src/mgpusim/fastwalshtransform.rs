//! The fast Walsh transform, in place: a launch for each step, each over the whole array.

use crate::prelude::*;

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;

program! {
    /// fast Walsh transform: a launch a step, strides that double
    pub(crate) static FASTWALSHTRANSFORM = "fastwalshtransform", MI300A_KERNELS;
    properties: nonlinear, data_independent;
    parameters {
        /// elements, 4-byte floats, at scale 1; scales, to a power of two from 512
        elements: count(2..=1 << 28) = 2_097_152, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        let wanted = request.scale.of(elements);
        let least = 2 * u64::from(THREADS);
        let rule = format!("powers of two from {least}");
        let elements = request.fit("elements", wanted, wanted.max(least).next_power_of_two(), &rule);
    }
    struct Transform {
        values: Array<f32>[elements],
        seed: u64 = request.seed,
    }
}

impl Transform {
    fn kernel(&self, cta: &mut Cta<'_>, step: i32) {
        cta.each_warp(|warp| {
            let t = warp.compute(ComputeClass::Int, 1 + DIVISION + 2 + 2 * ADDRESS, warp.global_thread());
            let p = t / step * (2 * step) + t % step;
            let (a, b) = (warp.load(self.values, p), warp.load(self.values, p + step));
            // The sum and the difference.
            let (a, b) = warp.compute_wide(ComputeClass::Fp32, 2, 2, (a, b));
            warp.store(self.values, p, a + b);
            warp.store(self.values, p + step, a - b);
        });
    }
}

impl Instance for Transform {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.values, |index| noise::unit(self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.values);
        let elements = self.values.len();
        host.series(u64::from(elements.ilog2()), |host, step| {
            let grid = Grid::new("walsh-step", elements / 2 / u64::from(THREADS), THREADS);
            host.launch(grid, |cta| self.kernel(cta, 1 << step))
        })?;
        host.copy_to_host(self.values);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut values: Vec<f32> = (0..self.values.len()).map(|index| noise::unit(self.seed, index)).collect();
        for step in (0..values.len().ilog2()).map(|bit| 1 << bit) {
            for block in values.chunks_mut(2 * step) {
                let (low, high) = block.split_at_mut(step);
                for (a, b) in low.iter_mut().zip(high) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
        }
        compare("values", memory.to_vec(self.values), values, 0.0)
    }
}
