//! STREAM triad: `a[i] = b[i] + s * c[i]`, launched repeatedly.

use crate::prelude::*;

/// The factor s. Source: BabelStream (`startScalar`).
const FACTOR: f64 = 0.4;

program! {
    /// STREAM triad over three arrays, iterated: bandwidth, no sharing
    pub(crate) static TRIAD = "triad", "McCalpin, STREAM; sizes of BabelStream; NUMA-GPU, Table 2 (Other-Stream-Triad)";
    properties: data_independent;
    parameters {
        /// elements of each of three arrays of 8-byte floats, at scale 1
        elements: count(1..=1 << 30) = 33_554_432, "BabelStream (`ARRAY_SIZE`)";
        /// launches
        iterations: count(1..=100_000) = 10, "STREAM (`NTIMES`)";
        /// threads of a CTA
        threads: one_of(192, 256, 512, 1024) = 1024,
            "BabelStream, CUDA version (`TBSIZE`); GPU-STREAM's predecessor stream.cu has 192";
    }
    lay_out(_, request, memory) {
        let elements = request.scale.of(elements);
        let threads = threads as u32;
    }
    struct TriadArrays {
        a, b, c: Array<f64>[elements],
        iterations: u64,
        threads: u32,
    }
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
