//! Sorts integers by a bitonic network: a launch for each pass, each over the whole array.

use crate::prelude::*;

/// Threads per CTA. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 64;

program! {
    // The pass count grows with the square of the footprint's logarithm.
    /// bitonic sort: hundreds of dependent launches of small CTAs
    pub(crate) static BITONICSORT = "bitonicsort", MI300A_KERNELS;
    properties: nonlinear, data_independent;
    parameters {
        /// elements, 4-byte integers, at scale 1; scales, to a power of two from 128
        elements: count(2..=1 << 28) = 65_536, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        let wanted = request.scale.of(elements);
        let least = 2 * u64::from(THREADS);
        let rule = format!("powers of two from {least}");
        let elements = request.fit("elements", wanted, wanted.max(least).next_power_of_two(), &rule);
    }
    struct BitonicSort {
        values: Array<u32>[elements],
        seed: u64 = request.seed,
    }
}

impl BitonicSort {
    fn kernel(&self, cta: &mut Cta<'_>, stage: u32, pass: u32) {
        let distance = 1 << (stage - pass);
        cta.each_warp(|warp| {
            let t = warp.compute(ComputeClass::Int, 6 + 2 * ADDRESS, warp.global_thread());
            let left = t / distance * (2 * distance) + t % distance;
            let (a, b) = (warp.load(self.values, left), warp.load(self.values, left + distance));
            let (a, b) = warp.compute(ComputeClass::Int, 4, (a, b));
            let descending = t.map(|t| t >> stage & 1 == 1);
            let (low, high) = (a.min(b), a.max(b));
            warp.store(self.values, left, descending.select(high, low));
            warp.store(self.values, left + distance, descending.select(low, high));
        });
    }
}

impl Instance for BitonicSort {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.values, |index| noise::noise(self.seed, index) as u32);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.values);
        let elements = self.values.len();
        let grid = || Grid::new("bitonic-pass", elements / 2 / u64::from(THREADS), THREADS);
        let stages = elements.ilog2();
        if host.samples() {
            // Passes with equal distance are alike: every stage, beginning with the stage for this distance, has such a
            // pass.
            let alike: Vec<u64> = (1..=u64::from(stages)).rev().collect();
            host.series_of(&alike, |host, first| host.launch(grid(), |cta| self.kernel(cta, first as u32, 0)))?;
        } else {
            for (stage, pass) in (0..stages).flat_map(|stage| (0..=stage).map(move |pass| (stage, pass))) {
                host.launch(grid(), |cta| self.kernel(cta, stage, pass))?;
            }
        }
        host.copy_to_host(self.values);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut expected: Vec<u32> =
            (0..self.values.len()).map(|index| noise::noise(self.seed, index) as u32).collect();
        expected.sort_unstable();
        let found = memory.to_vec(self.values);
        match expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            Some(at) => Err(format!("element {at} is {}, expected {}", found[at], expected[at])),
            None => Ok(()),
        }
    }
}
