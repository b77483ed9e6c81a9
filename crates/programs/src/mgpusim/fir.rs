//! A finite impulse response filter: each thread computes a sample from the preceding samples, with a sample per tap.

use crate::prelude::*;

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;

program! {
    /// finite impulse response filter: overlapping loads that hit the L1
    pub(crate) static FIR = "fir", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        /// samples, 4-byte floats, at scale 1; scales, to whole CTAs
        samples: count(1..=1 << 28) = 262_144, MI300A_KERNELS;
        /// taps
        taps: count(1..=256) = 32, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        let wanted = request.scale.of(samples);
        let samples = request.fit_multiple("samples", wanted, u64::from(THREADS));
    }
    struct Filter {
        input, output: Array<f32>[samples],
        coefficients, history: Array<f32>[taps, fixed],
        taps: i32,
        seed: u64 = request.seed,
    }
}

impl Filter {
    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let t = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread());
            let mut sum = Lanes::all(0.0);
            for tap in 0..self.taps {
                let coefficient = warp.load(self.coefficients, Lanes::all(tap));
                let (mut recent, mut past) = (Lanes::all(0.0), Lanes::all(0.0));
                let is_recent = t.ge(tap);
                warp.when_else(
                    is_recent,
                    |warp| recent = warp.load(self.input, t - tap),
                    |warp| past = warp.load(self.history, t + (self.taps - tap)),
                );
                let sample = is_recent.select(recent, past);
                // The sum, the loop counter, the two addresses.
                sum = warp.compute(ComputeClass::Fp32, 1, sum + coefficient * sample);
                warp.compute(ComputeClass::Int, 4, ());
            }
            warp.store(self.output, t, sum);
        });
    }
}

impl Instance for Filter {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| noise::unit(self.seed, index));
        memory.fill(self.coefficients, |index| noise::unit(!self.seed, index));
        memory.fill(self.history, |index| noise::unit(self.seed ^ 1, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        host.copy_to_device(self.coefficients);
        host.copy_to_device(self.history);
        let ctas = self.output.len() / u64::from(THREADS);
        host.launch(Grid::new("fir", ctas, THREADS), |cta| self.kernel(cta))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let input = memory.to_vec(self.input);
        let (coefficients, history) = (memory.to_vec(self.coefficients), memory.to_vec(self.history));
        let taps = coefficients.len();
        let sample = |t: usize, tap: usize| if t >= tap { input[t - tap] } else { history[taps - tap + t] };
        let expected =
            (0..input.len()).map(|t| (0..taps).fold(0.0, |sum: f32, tap| sum + coefficients[tap] * sample(t, tap)));
        compare("output", memory.to_vec(self.output), expected, 1e-5)
    }
}
