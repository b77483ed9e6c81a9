//! A finite impulse response filter: each thread computes a sample from the preceding samples, with a sample per tap.

use crate::mgpusim::MI300A_KERNELS;
use tombolo_workload::bench::{ADDRESS, Benchmark, compare};
use tombolo_workload::bench::{Instance, Request, WorkloadError};
use tombolo_workload::noise;
use tombolo_workload::parameter::{Parameter, ParameterKind};
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Scaling};

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;

static PARAMETERS: [Parameter; 2] = [
    Parameter {
        name: "samples",
        kind: ParameterKind::Count { low: 1, high: 1 << 28 },
        default: "262144",
        about: "samples, 4-byte floats, at scale 1; scales, to whole CTAs",
        source: MI300A_KERNELS,
    },
    Parameter {
        name: "taps",
        kind: ParameterKind::Count { low: 1, high: 256 },
        default: "32",
        about: "taps",
        source: MI300A_KERNELS,
    },
];

/// The workload's entry in the table.
pub(crate) static FIR: Benchmark = Benchmark {
    name: "fir",
    about: "finite impulse response filter: overlapping loads that hit the L1",
    source: MI300A_KERNELS,
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: true,
    lay_out,
};

struct Filter {
    input: Array<f32>,
    output: Array<f32>,
    coefficients: Array<f32>,
    history: Array<f32>,
    taps: i32,
    seed: u64,
}

fn lay_out(_: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let wanted = request.scale.of(request.values.count("samples"));
    let samples = request.fit_multiple("samples", wanted, u64::from(THREADS));
    let taps = request.values.count("taps");
    Ok(Box::new(Filter {
        input: memory.array("input", samples, Scaling::Scales),
        output: memory.array("output", samples, Scaling::Scales),
        coefficients: memory.array("coefficients", taps, Scaling::Fixed),
        history: memory.array("history", taps, Scaling::Fixed),
        taps: taps as i32,
        seed: request.seed,
    }))
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
