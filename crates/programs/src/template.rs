//! Template: a line about the computed result.
//!
//! To add it: save this file as `crates/programs/src/SUITE/template.rs`. Add a line `pub(super) mod template;` to the
//! folder's `mod.rs`, a line `&SUITE::template::TEMPLATE,` to `crates/programs/src/table.rs`, and a line with a small
//! size to `small_of` in `crates/programs/src/small.rs`. Tests then compare the result with the reference. The suites are amdapp, hip, hpc, lonestar, mgpusim, micro, networks, pannotia, rodinia and other.
//! Examples to read: `micro/triad.rs`, `rodinia/pathfinder.rs`, and with waits between CTAs `lonestar/mst.rs`.

use tombolo_workload::bench::{Benchmark, Instance, Request, WorkloadError};
use tombolo_workload::parameter::{Parameter, ParameterKind};
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, ComputeClass, Cta, Grid, Memory, Scaling};

/// Threads per CTA. Source: say which.
const THREADS: u32 = 256;

/// Parameters on the command line: each with allowed values, unit and the default's source.
static PARAMETERS: [Parameter; 2] = [
    Parameter {
        name: "elements",
        kind: ParameterKind::Count { low: 1, high: 1 << 30 },
        default: "1048576",
        about: "elements of each of two arrays of 4-byte floats, at scale 1",
        source: "say which",
    },
    Parameter {
        name: "iterations",
        kind: ParameterKind::Count { low: 1, high: 100_000 },
        default: "10",
        about: "launches",
        source: "say which",
    },
];

/// The workload's entry in the table.
pub(crate) static TEMPLATE: Benchmark = Benchmark {
    name: "template",
    about: "what it computes, in a line for lists",
    source: "whose program it is, and where its sizes come from",
    parameters: &PARAMETERS,
    // True if work does not follow footprint, so that a scaled run answers another question.
    nonlinear: false,
    // True if no address and no branch depends on data.
    data_independent: true,
    lay_out,
};

struct Arrays {
    input: Array<f32>,
    output: Array<f32>,
    iterations: u64,
}

/// Adds the arrays; arrays that follow a run's scale are marked.
fn lay_out(_: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let elements = request.scale.of(request.values.count("elements"));
    let mut array = |name| memory.array(name, elements, Scaling::Scales);
    let iterations = request.values.count("iterations");
    Ok(Box::new(Arrays { input: array("input"), output: array("output"), iterations }))
}

/// The kernel from a CTA's point of view: a thread per element.
fn twice(cta: &mut Cta<'_>, arrays: &Arrays) {
    cta.each_warp(|warp| {
        let i = warp.global_thread();
        warp.when(i.cast::<i64>().lt(arrays.input.len() as i64), |warp| {
            let value = warp.load(arrays.input, i);
            let value = warp.compute(ComputeClass::Fp32, 1, value + value);
            warp.store(arrays.output, i, value);
        });
    });
}

impl Instance for Arrays {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| (index % 1000) as f32);
    }

    /// The host program.
    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        for _ in 0..self.iterations {
            let ctas = self.input.len().div_ceil(u64::from(THREADS));
            host.launch(Grid::new("twice", ctas, THREADS), |cta| twice(cta, self))?;
        }
        host.copy_to_host(self.output);
        Ok(())
    }

    /// A plain reference for the result.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let wrong =
            (0..self.output.len()).find(|index| memory.read(self.output, *index) != (index % 1000) as f32 * 2.0);
        wrong.map_or(Ok(()), |index| Err(format!("output[{index}] is {}", memory.read(self.output, index))))
    }
}
