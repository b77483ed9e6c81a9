//! Template: a line about the computed result.
//!
//! To add it: save this file as `crates/programs/src/SUITE/template.rs`. Add a line `pub(super) mod template;` to the
//! folder's `mod.rs`, a line `&SUITE::template::TEMPLATE,` to `crates/programs/src/table.rs`, and a line with a small
//! size to `small_of` in `crates/programs/src/small.rs`. Tests then compare the result with the reference. The suites are amdapp, hip, hpc, lonestar, mgpusim, micro, networks, pannotia, rodinia and other.
//! Examples to read: `micro/triad.rs`, `rodinia/pathfinder.rs`, and with waits between CTAs `lonestar/mst.rs`.

use tombolo_workload::prelude::*;

/// Threads per CTA. Source: say which.
const THREADS: u32 = 256;

program! {
    /// what it computes, in a line for lists
    pub(crate) static TEMPLATE = "template", "whose program it is, and where its sizes come from";
    // `nonlinear`: work does not follow footprint. `data_independent`: no address and no branch depends on data.
    properties: data_independent;
    // Parameters on the command line: each with a help text, allowed values, and a default and its source.
    parameters {
        /// elements of each of two arrays of 4-byte floats, at scale 1
        elements: count(1..=1 << 30) = 1_048_576, "say which";
        /// launches
        iterations: count(1..=100_000) = 10, "say which";
    }
    // Sizes from parameters.
    lay_out(_, request, memory) {
        let elements = request.scale.of(elements);
    }
    // Arrays that follow a run's scale, and values that kernels need.
    struct Arrays {
        input, output: Array<f32>[elements],
        iterations: u64,
    }
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
