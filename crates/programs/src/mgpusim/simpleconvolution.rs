//! A convolution of a padded image with a mask, with a pixel per thread.

use crate::prelude::*;

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 64;

program! {
    /// convolves an image with a mask: many small CTAs, shifted loads
    pub(crate) static SIMPLECONVOLUTION = "simpleconvolution", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        /// side of the image of 4-byte integers, at scale 1; scales by the root, to a multiple of 8
        side: count(8..=1 << 15) = 1024, MI300A_KERNELS;
        /// side of the mask
        mask: count(1..=31) = 3, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        // The square of a multiple of 8 fills its CTAs.
        let side = request.fit_multiple("side", request.scale.side_of(side), 8);
        let width = mask;
        let padded = side + width - 1;
    }
    struct PaddedConvolution {
        input: Array<u32>[padded * padded],
        mask: Array<f32>[width * width, fixed],
        output: Array<i32>[side * side],
        side, width: i32,
        seed: u64 = request.seed,
    }
}

impl PaddedConvolution {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let padded = self.side + self.width - 1;
        cta.each_warp(|warp| {
            let t = warp.compute(ComputeClass::Int, 1 + DIVISION, warp.global_thread());
            let (x, y) = (t % self.side, t / self.side);
            let mut sum = Lanes::all(0.0);
            for m in 0..self.width {
                for n in 0..self.width {
                    let at = warp.compute(ComputeClass::Int, 2 + ADDRESS, (y + m) * padded + x + n);
                    let pixel = warp.load(self.input, at);
                    let weight = warp.load(self.mask, Lanes::all(m * self.width + n));
                    // The conversion and the sum.
                    sum = warp.compute(ComputeClass::Fp32, 2, sum + pixel.cast::<f32>() * weight);
                }
            }
            let rounded = warp.compute(ComputeClass::Fp32, 2, sum + 0.5).cast::<i32>();
            let t = warp.compute(ComputeClass::Int, ADDRESS, t);
            warp.store(self.output, t, rounded);
        });
    }

    fn pixel(&self, index: u64) -> u32 {
        noise::below(self.seed, index, 256) as u32
    }
}

impl Instance for PaddedConvolution {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.pixel(index));
        memory.fill(self.mask, |index| noise::unit(!self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        host.copy_to_device(self.mask);
        let ctas = self.output.len() / u64::from(THREADS);
        host.launch(Grid::new("convolution", ctas, THREADS), |cta| self.kernel(cta))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (side, width) = (self.side as u64, self.width as u64);
        let mask = memory.to_vec(self.mask);
        for at in 0..side * side {
            let (x, y) = (at % side, at / side);
            let tap = |sum: f32, tap: u64| {
                let pixel = self.pixel((y + tap / width) * (side + width - 1) + x + tap % width);
                sum + pixel as f32 * mask[tap as usize]
            };
            let expected = ((0..width * width).fold(0.0, tap) + 0.5) as i32;
            let found = memory.read(self.output, at);
            if found != expected {
                return Err(format!("pixel ({x}, {y}) is {found}, expected {expected}"));
            }
        }
        Ok(())
    }
}
