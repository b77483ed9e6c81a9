//! Streams through an array with a CTA per part of the array: read, write or copy, pass after pass. The time per pass
//! shows the bandwidth of the memory level that holds the array. Each CTA either stays on a single part, which may fit
//! in the L1, or moves on to another CTA's part, absent from the L1.

use crate::prelude::*;

/// Threads per CTA. Source: assumed, the maximum on GPUs from either maker.
const THREADS: u32 = 1024;
/// Elements per thread and instruction: 16 bytes, the widest access available.
const VECTOR: usize = 4;
/// Elements that a CTA processes in each step through a part.
const STEP: u64 = THREADS as u64 * VECTOR as u64;
/// Distance in parts by which a CTA advances with each pass. Source: assumed, a prime, to prevent CTAs on an SM from
/// following each other.
const ONWARD: u64 = 37;

program! {
    /// streaming read, write or copy: the bandwidth of a level of the hierarchy
    pub(crate) static BANDWIDTH = "bandwidth", "te42kyfo/gpu-benches: gpu-stream, gpu-l2-cache, gpu-cache";
    properties: data_independent;
    parameters {
        /// size of the array in KiB, at scale 1; scales, to whole parts of 16 KiB
        kib: count(16..=1 << 22) = 65_536, "assumed: beyond every L2";
        /// CTAs of 1024 threads, a part of the array each; scales
        ctas: count(1..=1 << 20) = 160, "assumed: two on each SM of V100";
        /// times that the array is gone through; does not scale
        passes: count(1..=1 << 16) = 1, "assumed";
        /// what is done with the array; a copy goes to a second one
        operation: choice("read", "write", "copy") = "read", "McCalpin, STREAM; te42kyfo/gpu-benches, gpu-stream";
        /// whether a CTA goes on to another part with each pass, or stays on its own
        parts: choice("all", "own") = "all", "te42kyfo/gpu-benches: all as gpu-l2-cache, own as gpu-cache";
    }
    lay_out(name, request, memory) {
        let ctas = request.scale.of(ctas);
        let elements = request.scale.of(kib << 8);
        let part = (elements / ctas).max(1).next_multiple_of(STEP);
        request.fit_parts("kib", elements, part * ctas, 1 << 8, "whole parts of 16 KiB, as many for each CTA");
        require(name, part * ctas <= 1 << 31, || format!("{ctas} parts of {part} elements exceed 2^31 elements"))?;
        let operation = match operation {
            "write" => StreamOperation::Write,
            "copy" => StreamOperation::Copy,
            _ => StreamOperation::Read,
        };
        let others = if operation == StreamOperation::Copy { part * ctas } else { ctas * u64::from(THREADS) };
    }
    struct StreamedArray {
        from: Array<f32>[part * ctas],
        /// Destination of the copy; for read, a sum per thread.
        to: Array<f32>[others],
        /// Elements per part.
        part: u64,
        ctas, passes: u64,
        operation: StreamOperation,
        stays: bool = parts == "own",
        seed: u64 = request.seed,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamOperation {
    Read,
    Write,
    Copy,
}

impl StreamedArray {
    /// First element of a CTA's part in a pass.
    fn first(&self, cta: u64, pass: u64) -> u64 {
        let part = if self.stays { cta } else { (cta + ONWARD * pass) % self.ctas };
        part * self.part
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        let own = u64::from(cta.index());
        cta.each_warp(|warp| {
            let mut sum = Lanes::all(0.0);
            let thread = warp.thread().cast::<i64>() * VECTOR as i64;
            for pass in 0..self.passes {
                let first = self.first(own, pass);
                for at in (0..self.part / STEP).map(|step| (first + step * STEP) as i64) {
                    let at = warp.compute(ComputeClass::Int, ADDRESS, thread + at);
                    sum = self.step(warp, at, sum);
                }
                // A pass must end before the next begins, so that the next pass finds its lines in the cache.
                sum = warp.compute(ComputeClass::Fp32, 1, sum);
            }
            if self.operation == StreamOperation::Read {
                warp.store(self.to, warp.global_thread(), sum);
            }
        });
    }

    /// Executes a single instruction on the elements starting at `at`. The sum waits for loads only at the pass end, as
    /// in compiled loops with sufficient unrolling.
    fn step(&self, warp: &mut Warp<'_>, at: Lanes<i64>, sum: Lanes<f32>) -> Lanes<f32> {
        match self.operation {
            StreamOperation::Read => {
                let [a, b, c, d]: [_; VECTOR] = warp.load_vector(self.from, at);
                warp.compute(ComputeClass::Fp32, VECTOR as u16, ());
                sum + (a + b + c + d)
            }
            StreamOperation::Write => {
                warp.store_vector(self.from, at, [Lanes::all(1.0); VECTOR]);
                sum
            }
            StreamOperation::Copy => {
                let vector: [_; VECTOR] = warp.load_vector(self.from, at);
                warp.store_vector(self.to, at, vector);
                sum
            }
        }
    }

    fn value(&self, index: u64) -> f32 {
        noise::unit(self.seed, index)
    }
}

impl Instance for StreamedArray {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.from, |index| self.value(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.from);
        let grid = Grid::new("bandwidth", self.ctas, THREADS);
        if self.operation == StreamOperation::Read || self.stays || self.passes == 1 {
            host.launch(grid, |cta| self.kernel(cta))?;
        } else {
            // In each pass, another CTA writes the part, always with the same values: a race only in time.
            host.launch_ordered(grid, |cta| self.kernel(cta))?;
        }
        host.copy_to_host(self.to);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let sum = |thread: u64| -> f32 {
            let (cta, lane) = (thread / u64::from(THREADS), thread % u64::from(THREADS));
            let steps = (0..self.passes).flat_map(|pass| (0..self.part / STEP).map(move |step| (pass, step)));
            let vector = |(pass, step)| self.first(cta, pass) + step * STEP + lane * VECTOR as u64;
            steps.map(vector).map(|at| (at..at + VECTOR as u64).map(|at| self.value(at)).sum::<f32>()).sum()
        };
        match self.operation {
            StreamOperation::Read => compare("sums", memory.to_vec(self.to), (0..self.to.len()).map(sum), 1e-4),
            StreamOperation::Write => {
                compare("from", memory.to_vec(self.from), std::iter::repeat_n(1.0, self.from.len() as usize), 0.0)
            }
            StreamOperation::Copy => {
                compare("to", memory.to_vec(self.to), (0..self.to.len()).map(|at| self.value(at)), 0.0)
            }
        }
    }
}
