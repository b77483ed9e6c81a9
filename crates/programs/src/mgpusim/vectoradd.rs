//! Adds two vectors, with an element per thread.

use crate::mgpusim::MI300A_KERNELS;
use tombolo_workload::bench::{ADDRESS, Benchmark, compare};
use tombolo_workload::bench::{Instance, Request, WorkloadError};
use tombolo_workload::noise;
use tombolo_workload::parameter::{Parameter, ParameterKind};
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, ComputeClass, Cta, Grid, Memory, Scaling};

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;

static PARAMETERS: [Parameter; 1] = [Parameter {
    name: "elements",
    kind: ParameterKind::Count { low: 1, high: 1 << 30 },
    default: "4194304",
    about: "elements of each of three vectors of 4-byte floats, at scale 1; scales",
    source: MI300A_KERNELS,
}];

/// The workload's entry in the table.
pub(crate) static VECTORADD: Benchmark = Benchmark {
    name: "vectoradd",
    about: "adds two vectors: bandwidth, one launch",
    source: MI300A_KERNELS,
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: true,
    lay_out,
};

struct VectorSum {
    a: Array<f32>,
    b: Array<f32>,
    sum: Array<f32>,
    seed: u64,
}

fn lay_out(_: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let elements = request.scale.of(request.values.count("elements"));
    let mut array = |name| memory.array(name, elements, Scaling::Scales);
    Ok(Box::new(VectorSum { a: array("a"), b: array("b"), sum: array("sum"), seed: request.seed }))
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
