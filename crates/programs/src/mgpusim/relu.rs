//! Rectifies a vector: each element is replaced by the maximum of the element and zero.

use crate::mgpusim::MI300A_KERNELS;
use tombolo_workload::bench::{ADDRESS, Benchmark, compare};
use tombolo_workload::bench::{Instance, Request, WorkloadError};
use tombolo_workload::noise;
use tombolo_workload::parameter::{Parameter, ParameterKind};
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Scaling};

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;

static PARAMETERS: [Parameter; 1] = [Parameter {
    name: "elements",
    kind: ParameterKind::Count { low: 1, high: 1 << 30 },
    default: "4194304",
    about: "elements of each of two vectors of 4-byte floats, at scale 1; scales",
    source: MI300A_KERNELS,
}];

/// The workload's entry in the table.
pub(crate) static RELU: Benchmark = Benchmark {
    name: "relu",
    about: "rectifies a vector: bandwidth, as much written as read",
    source: MI300A_KERNELS,
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: true,
    lay_out,
};

struct RectifiedVector {
    input: Array<f32>,
    output: Array<f32>,
    seed: u64,
}

fn lay_out(_: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let elements = request.scale.of(request.values.count("elements"));
    let mut array = |name| memory.array(name, elements, Scaling::Scales);
    Ok(Box::new(RectifiedVector { input: array("input"), output: array("output"), seed: request.seed }))
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
