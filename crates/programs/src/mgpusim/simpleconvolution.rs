//! A convolution of a padded image with a mask, with a pixel per thread.

use crate::mgpusim::MI300A_KERNELS;
use tombolo_workload::bench::{ADDRESS, Benchmark, DIVISION};
use tombolo_workload::bench::{Instance, Request, WorkloadError};
use tombolo_workload::noise;
use tombolo_workload::parameter::{Parameter, ParameterKind};
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Scaling};

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 64;

static PARAMETERS: [Parameter; 2] = [
    Parameter {
        name: "side",
        kind: ParameterKind::Count { low: 8, high: 1 << 15 },
        default: "1024",
        about: "side of the image of 4-byte integers, at scale 1; scales by the root, to a multiple of 8",
        source: MI300A_KERNELS,
    },
    Parameter {
        name: "mask",
        kind: ParameterKind::Count { low: 1, high: 31 },
        default: "3",
        about: "side of the mask",
        source: MI300A_KERNELS,
    },
];

/// The workload's entry in the table.
pub(crate) static SIMPLECONVOLUTION: Benchmark = Benchmark {
    name: "simpleconvolution",
    about: "convolves an image with a mask: many small CTAs, shifted loads",
    source: MI300A_KERNELS,
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: true,
    lay_out,
};

struct PaddedConvolution {
    input: Array<u32>,
    mask: Array<f32>,
    output: Array<i32>,
    side: i32,
    width: i32,
    seed: u64,
}

fn lay_out(_: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    // The square of a multiple of 8 fills its CTAs.
    let side = request.fit_multiple("side", request.scale.side_of(request.values.count("side")), 8);
    let width = request.values.count("mask");
    let padded = side + width - 1;
    Ok(Box::new(PaddedConvolution {
        input: memory.array("input", padded * padded, Scaling::Scales),
        mask: memory.array("mask", width * width, Scaling::Fixed),
        output: memory.array("output", side * side, Scaling::Scales),
        side: side as i32,
        width: width as i32,
        seed: request.seed,
    }))
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
