//! Sums of elements at a distance: `y[i] = x[i] + x[(i + distance) % elements]`. The distance decides whose memory is read.

use tombolo::program::prelude::*;

/// Threads per CTA. Source: assumed.
const THREADS: u32 = 256;

program! {
    /// sums of elements half an array apart: every read of a second element is of another GPU
    pub(crate) static DISTANT_SUM = "distant-sum", "assumed";
    properties: data_independent;
    parameters {
        /// elements of each of two arrays of 4-byte floats, at scale 1
        elements: count(1..=1 << 30) = 4_194_304, "assumed";
        /// launches, all alike
        launches: count(1..=1000) = 4, "assumed";
    }
    lay_out(_, request, memory) {
        let elements = request.scale.of(elements);
    }
    struct Arrays {
        x, y: Array<f32>[elements],
        launches: u64,
    }
}

/// Contents of `x` at an index.
fn input(index: u64) -> f32 {
    (index % 1000) as f32
}

impl Instance for Arrays {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.x, input);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let elements = self.x.len();
        host.copy_to_device(self.x);
        for _ in 0..self.launches {
            host.launch(Grid::new("distant_sum", elements.div_ceil(u64::from(THREADS)), THREADS), |cta| {
                cta.each_warp(|warp| {
                    let i = warp.global_thread().cast::<i64>();
                    warp.when(i.lt(elements as i64), |warp| {
                        let there = warp.compute(ComputeClass::Int, 2, (i + elements as i64 / 2) % elements as i64);
                        let sum = warp.load(self.x, i) + warp.load(self.x, there);
                        let sum = warp.compute(ComputeClass::Fp32, 1, sum);
                        warp.store(self.y, i, sum);
                    });
                });
            })?;
        }
        host.copy_to_host(self.y);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let elements = self.y.len();
        let found = (0..elements).map(|index| memory.read(self.y, index));
        let expected = (0..elements).map(|index| input(index) + input((index + elements / 2) % elements));
        compare("y", found, expected, 0.0)
    }
}
