//! STREAM triad: `a[i] = b[i] + s * c[i]`, launched repeatedly.

use tombolo_workload::bench::{Benchmark, Instance, Request, WorkloadError};
use tombolo_workload::parameter::{Parameter, ParameterKind};
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, ComputeClass, Cta, Grid, Memory, Scaling};

/// The factor s. Source: BabelStream (`startScalar`).
const FACTOR: f64 = 0.4;

static PARAMETERS: [Parameter; 3] = [
    Parameter {
        name: "elements",
        kind: ParameterKind::Count { low: 1, high: 1 << 30 },
        default: "33554432",
        about: "elements of each of three arrays of 8-byte floats, at scale 1",
        source: "BabelStream (`ARRAY_SIZE`)",
    },
    Parameter {
        name: "iterations",
        kind: ParameterKind::Count { low: 1, high: 100_000 },
        default: "10",
        about: "launches",
        source: "STREAM (`NTIMES`)",
    },
    Parameter {
        name: "threads",
        kind: ParameterKind::Choice(&["192", "256", "512", "1024"]),
        default: "1024",
        about: "threads of a CTA",
        source: "BabelStream, CUDA version (`TBSIZE`); GPU-STREAM's predecessor stream.cu has 192",
    },
];

/// The workload's entry in the table.
pub(crate) static TRIAD: Benchmark = Benchmark {
    name: "triad",
    about: "STREAM triad over three arrays, iterated: bandwidth, no sharing",
    source: "McCalpin, STREAM; sizes of BabelStream; NUMA-GPU, Table 2 (Other-Stream-Triad)",
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: true,
    lay_out,
};

struct TriadArrays {
    a: Array<f64>,
    b: Array<f64>,
    c: Array<f64>,
    iterations: u64,
    threads: u32,
}

fn lay_out(_: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let elements = request.scale.of(request.values.count("elements"));
    let mut array = |name| memory.array(name, elements, Scaling::Scales);
    let (iterations, threads) = (request.values.count("iterations"), request.values.count("threads") as u32);
    Ok(Box::new(TriadArrays { a: array("a"), b: array("b"), c: array("c"), iterations, threads }))
}

fn triad(cta: &mut Cta<'_>, arrays: &TriadArrays) {
    cta.each_warp(|warp| {
        let i = warp.global_thread();
        warp.when(i.cast::<i64>().lt(arrays.a.len() as i64), |warp| {
            let i = warp.compute(ComputeClass::Int, 1, i);
            let sum = warp.load(arrays.b, i) + warp.load(arrays.c, i) * FACTOR;
            let sum = warp.compute(ComputeClass::Fp64, 1, sum);
            warp.store(arrays.a, i, sum);
        });
    });
}

impl Instance for TriadArrays {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.b, |index| index as f64);
        memory.fill(self.c, |index| (index % 1000) as f64 * 0.5);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.b);
        host.copy_to_device(self.c);
        for _ in 0..self.iterations {
            let ctas = self.a.len().div_ceil(u64::from(self.threads));
            host.launch(Grid::new("triad", ctas, self.threads), |cta| triad(cta, self))?;
        }
        host.copy_to_host(self.a);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        for index in 0..self.a.len() {
            let expected = index as f64 + FACTOR * ((index % 1000) as f64 * 0.5);
            let found = memory.read(self.a, index);
            let near = (found - expected).abs() <= 1e-12 * expected.abs();
            if !near {
                return Err(format!("a[{index}] is {found}, expected {expected}"));
            }
        }
        Ok(())
    }
}
