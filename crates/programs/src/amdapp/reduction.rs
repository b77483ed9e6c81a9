//! Reduction from the AMD APP SDK 2.5: a CTA adds up its vectors in a tree in the scratchpad, and the host adds up the
//! CTAs' sums.
//!
//! Source: Reduction_Kernels.cl and Reduction.cpp. Arithmetic and scratchpad accesses are counted from the Southern
//! Islands binary shipped with the sample: it moves a vector with a single memory instruction, but word by word in the
//! scratchpad.

use crate::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Threads per CTA. Source: Reduction.hpp (`GROUP_SIZE`).
const THREADS: i32 = 256;
/// Elements per vector. Source: Reduction.hpp (`VECTOR_SIZE`).
const VECTOR: usize = 4;
/// Elements per CTA.
const SHARE: u64 = THREADS as u64 * VECTOR as u64;
/// Exclusive upper bound of inputs. Source: Reduction.cpp, setupReduction: 0 to 5.
const BOUND: u64 = 6;

program! {
    /// sum of integers: a tree in each CTA's scratchpad, the rest on the host
    pub(crate) static REDUCTION = "reduction",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), Reduction; UMH, Table I (RD)";
    properties: data_independent;
    parameters {
        /// elements, 4-byte integers, at scale 1; scales, to whole multiples of 1024
        elements: count(1..=1 << 30) = 2_097_152, "UMH, Table I (RD); multiples: Reduction.cpp, setupReduction";
    }
    lay_out(name, request, memory) {
        let wanted = request.scale.of(elements);
        let rule = format!("whole multiples of {SHARE}, rounded down, at least one");
        let elements = request.fit("elements", wanted, (wanted / SHARE).max(1) * SHARE, &rule);
        check_indices(name, elements, "elements")?;
    }
    struct Sum {
        input: Array<u32>[elements],
        /// A vector per CTA.
        sums: Array<u32>[elements / SHARE * VECTOR as u64],
        /// The host's final sum.
        total: AtomicU32 = AtomicU32::new(0),
        seed: u64 = request.seed,
    }
}

/// Loads the vector that begins at `first`, word by word.
fn load_words(warp: &mut Warp<'_>, from: &Shared<u32>, first: Lanes<i32>) -> [Lanes<u32>; VECTOR] {
    std::array::from_fn(|word| warp.load_shared(from, first + word as i32))
}

fn store_words(warp: &mut Warp<'_>, to: &mut Shared<u32>, first: Lanes<i32>, vector: [Lanes<u32>; VECTOR]) {
    (0..).zip(vector).for_each(|(word, value)| warp.store_shared(to, first + word, value));
}

impl Sum {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let mut partial = cta.shared::<u32>(SHARE as usize);
        cta.each_warp(|warp| {
            let at = warp.compute(ComputeClass::Int, 11, warp.global_thread() * VECTOR as i32);
            let vector: [Lanes<u32>; VECTOR] = warp.load_vector(self.input, at);
            store_words(warp, &mut partial, warp.thread() * VECTOR as i32, vector);
        });
        cta.barrier();
        for half in (0..THREADS.ilog2()).rev().map(|step| 1 << step) {
            cta.each_warp(|warp| {
                let thread = warp.compute(ComputeClass::Int, 1, warp.thread());
                warp.when(thread.lt(half), |warp| {
                    let first = warp.compute(ComputeClass::Int, 5, thread * VECTOR as i32);
                    let own = load_words(warp, &partial, first);
                    let other = load_words(warp, &partial, first + half * VECTOR as i32);
                    let sum = std::array::from_fn(|word| own[word] + other[word]);
                    let sum = warp.compute(ComputeClass::Int, 4, sum);
                    store_words(warp, &mut partial, first, sum);
                });
            });
            cta.barrier();
        }
        cta.each_warp(|warp| {
            warp.when(warp.thread().eq(0), |warp| {
                let first = warp.compute(ComputeClass::Int, 4, warp.thread());
                let sum = load_words(warp, &partial, first);
                let at = warp.compute(ComputeClass::Int, 1, Lanes::all(warp.cta() as i32 * VECTOR as i32));
                warp.store_vector(self.sums, at, sum);
            });
        });
    }

    fn value(&self, index: u64) -> u32 {
        noise::below(self.seed, index, BOUND) as u32
    }
}

impl Instance for Sum {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.value(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        let grid = Grid::new("reduce", self.input.len() / SHARE, THREADS as u32).shared_bytes(4 * SHARE as u32);
        host.launch(grid, |cta| self.kernel(cta))?;
        host.copy_to_host(self.sums);
        let sums = host.memory().to_vec(self.sums);
        self.total.store(sums.into_iter().fold(0, u32::wrapping_add), Ordering::Relaxed);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let input: Vec<u32> = (0..self.input.len()).map(|index| self.value(index)).collect();
        let of = |share: &[u32], word| share[word..].iter().step_by(VECTOR).sum::<u32>();
        let expected: Vec<u32> =
            input.chunks(SHARE as usize).flat_map(|share| (0..VECTOR).map(move |word| of(share, word))).collect();
        equal("sum", &memory.to_vec(self.sums), &expected)?;
        let total = input.iter().fold(0, |sum: u32, value| sum.wrapping_add(*value));
        equal("total", &[self.total.load(Ordering::Relaxed)], &[total])
    }
}
