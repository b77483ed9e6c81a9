//! HIP-Examples square: the squares of an array's elements, added to another array, launched repeatedly.
//!
//! Threads stride through the arrays by the grid size. If the grid has as many threads as elements, each thread
//! processes a single element, as in CPElide.

use crate::prelude::*;

program! {
    /// squares added to an array: every launch reads what the one before wrote, at the same place
    pub(crate) static SQUARE = "square",
        "HIP-Examples square (ROCm/HIP-Examples), as of hal-uw/gem5-bmks-micro24; CPElide, Table II";
    properties: data_independent;
    parameters {
        /// elements of each of two arrays of 4-byte floats, at scale 1; scales
        elements: count(1..=1 << 30) = 524_288, "CPElide, Table II: 524288 1 2 2048 256, the first";
        /// launches
        launches: count(1..=1000) = 2,
            "CPElide, Table II, the third; hal-uw/gem5-bmks-micro24, square/square_m.hip.cpp (`numKernels`)";
        /// CTAs, at scale 1; scales, so that a thread keeps its elements
        ctas: count(1..=1 << 24) = 2048,
            "CPElide, Table II, the fourth; hal-uw/gem5-bmks-micro24, square/square_m.hip.cpp (`blocks`)";
        /// threads of a CTA
        threads: one_of(64, 128, 256, 512, 1024) = 256,
            "CPElide, Table II, the last; hal-uw/gem5-bmks-micro24, square/square_m.hip.cpp (`threadsPerBlock`)";
    }
    lay_out(name, request, memory) {
        let elements = request.scale.of(elements);
        let ctas = request.scale.of(ctas);
        let threads = threads as u32;
        // The last stride of the last thread is computed too, although it lies beyond the array.
        check_indices(
            name,
            elements + ctas * u64::from(threads),
            "elements, of which one stride lies beyond the array,",
        )?;
    }
    struct Squares {
        input, sums: Array<f32>[elements],
        launches, ctas: u64,
        threads: u32,
    }
}

impl Squares {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let (elements, stride) = (self.input.len() as i32, (self.ctas * u64::from(self.threads)) as i32);
        cta.each_warp(|warp| {
            let first = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            let strides = (Lanes::all(elements + stride - 1) - first).max(Lanes::all(0)) / stride;
            warp.repeat(strides.cast::<u32>(), |warp, round| {
                let i = warp.compute(ComputeClass::Int, 1, first + round as i32 * stride);
                let (value, sum) = (warp.load(self.input, i), warp.load(self.sums, i));
                let sum = warp.compute(ComputeClass::Fp32, 1, sum + value * value);
                warp.store(self.sums, i, sum);
            });
        });
    }

    /// Initial values, from the golden ratio to the golden ratio plus 1. Source: hal-uw/gem5-bmks-micro24,
    /// square/square_m.hip.cpp.
    fn start(&self, index: u64) -> f32 {
        1.618 + index as f32 / self.input.len() as f32
    }
}

impl Instance for Squares {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.start(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        host.copy_to_device(self.sums);
        for _ in 0..self.launches {
            host.launch(Grid::new("square", self.ctas, self.threads), |cta| self.kernel(cta))?;
        }
        host.copy_to_host(self.sums);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let squared = |index| f64::from(self.start(index)) * f64::from(self.start(index));
        let expected = (0..self.sums.len()).map(|index| (self.launches as f64 * squared(index)) as f32);
        compare("sums", memory.to_vec(self.sums), expected, 1e-5)
    }
}
