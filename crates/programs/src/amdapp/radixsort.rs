//! RadixSort from the AMD APP SDK 2.5: digits of 8 bits, a histogram per thread, prefix sums on the host, in four
//! passes.
//!
//! Source: RadixSort_Kernels.cl and RadixSort.cpp. A thread owns 256 consecutive elements and 256 counters in the
//! scratchpad. The sample's counters have 16 bits and wrap when positions exceed 65535; in this program they have 32.
//! The scan visits the counters digit by digit, with strides of a kilobyte; the recording keeps the addresses accessed
//! by the host, not their order.
//!
//! Arithmetic and the depth of early loads are counted from the Southern Islands binary shipped with the sample.

use crate::prelude::*;
use std::collections::VecDeque;

/// Threads per CTA. Source: RadixSort.hpp (`GROUP_SIZE`).
const THREADS: i32 = 64;
/// Bits per digit. Source: RadixSort.hpp (`RADIX`).
const BITS: u32 = 8;
/// Digit value count, and elements per thread. Source: RadixSort.hpp (`RADICES`).
const RADICES: i32 = 1 << BITS;
/// Elements per CTA.
const SHARE: u64 = THREADS as u64 * RADICES as u64;
/// Loads in flight in the histogram. Source: the sample's Southern Islands binary.
const AHEAD_ELEMENTS: i32 = 13;
/// Loads in flight while counters are copied. Source: the sample's Southern Islands binary.
const AHEAD_COUNTERS: i32 = 16;

program! {
    /// radix sort: histograms of strided elements, prefix sums on the host, scattered stores, four times
    pub(crate) static RADIXSORT = "radixsort",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), RadixSort; UMH, Table I (RS)";
    parameters {
        /// elements, 4-byte integers, at scale 1; scales, to a power of two from 16384
        elements: count(1..=1 << 28) = 2_097_152, "UMH, Table I (RS); powers of two: RadixSort.cpp, setupRadixSort";
    }
    lay_out(name, request, memory) {
        let wanted = request.scale.of(elements);
        let rule = format!("powers of two from {SHARE}");
        let elements = request.fit("elements", wanted, wanted.max(SHARE).next_power_of_two(), &rule);
        check_indices(name, elements, "elements")?;
        let mut array = |name| memory.array(name, elements, Scaling::Scales);
        let [unsorted, buckets, scanned, sorted] = ["unsorted", "buckets", "scanned", "sorted"].map(&mut array);
    }
    struct RadixSort {
        unsorted: Array<u32>,
        /// `[thread][digit]`: occurrence count for each digit per thread.
        buckets: Array<u32>,
        /// `[thread][digit]`: destination of the digit's first element.
        scanned: Array<u32>,
        sorted: Array<u32>,
        seed: u64 = request.seed,
    }
}

/// Each thread's elements in sequence, loaded ahead of use.
struct PrefetchQueue {
    array: Array<u32>,
    first: Lanes<i32>,
    next: i32,
    loads: VecDeque<Lanes<u32>>,
}

impl PrefetchQueue {
    /// Loads the first `depth` elements.
    fn new(warp: &mut Warp<'_>, array: Array<u32>, depth: i32) -> PrefetchQueue {
        let first = warp.global_thread() * RADICES;
        let mut ahead = PrefetchQueue { array, first, next: 0, loads: VecDeque::new() };
        (0..depth).for_each(|_| ahead.load(warp));
        ahead
    }

    fn load(&mut self, warp: &mut Warp<'_>) {
        if self.next < RADICES {
            self.loads.push_back(warp.load(self.array, self.first + self.next));
            self.next += 1;
        }
    }

    /// Returns the next element, at a cost of `instructions`; its register receives another load.
    fn take(&mut self, warp: &mut Warp<'_>, instructions: u16) -> Lanes<u32> {
        let element = self.loads.pop_front().expect("a thread takes as many elements as it has");
        let element = warp.compute(ComputeClass::Int, instructions, element);
        self.load(warp);
        element
    }
}

/// Scratchpad index of a thread's counter for a digit.
fn counter(warp: &Warp<'_>, digit: Lanes<i32>) -> Lanes<i32> {
    warp.thread() * RADICES + digit
}

fn digit(element: Lanes<u32>, shift: u32) -> Lanes<i32> {
    element.map(|element| (element >> shift) as i32 & (RADICES - 1))
}

impl RadixSort {
    fn histogram(&self, cta: &mut Cta<'_>, shift: u32) {
        let mut counts = cta.shared::<u32>(SHARE as usize);
        let mut elements: Vec<PrefetchQueue> = Vec::new();
        cta.each_warp(|warp| {
            warp.compute(ComputeClass::Int, 14, ());
            for value in 0..RADICES {
                let at = warp.compute(ComputeClass::Int, 1, counter(warp, Lanes::all(value)));
                warp.store_shared(&mut counts, at, 0);
            }
            elements.push(PrefetchQueue::new(warp, self.unsorted, AHEAD_ELEMENTS));
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let elements = &mut elements[warp.index() as usize];
            for _ in 0..RADICES {
                let element = elements.take(warp, 4);
                let at = counter(warp, digit(element, shift));
                let count = warp.load_shared(&counts, at) + 1;
                let count = warp.compute(ComputeClass::Int, 1, count);
                warp.store_shared(&mut counts, at, count);
            }
        });
        cta.barrier();
        cta.each_warp(|warp| {
            for value in 0..RADICES {
                let count = warp.load_shared(&counts, counter(warp, Lanes::all(value)));
                let at = warp.compute(ComputeClass::Int, 2, warp.global_thread() * RADICES + value);
                warp.store(self.buckets, at, count);
            }
        });
    }

    fn permute(&self, cta: &mut Cta<'_>, shift: u32) {
        let mut places = cta.shared::<u32>(SHARE as usize);
        cta.each_warp(|warp| {
            warp.compute(ComputeClass::Int, 12, ());
            let mut scanned = PrefetchQueue::new(warp, self.scanned, AHEAD_COUNTERS);
            for value in 0..RADICES {
                let place = scanned.take(warp, 1);
                let at = warp.compute(ComputeClass::Int, 1, counter(warp, Lanes::all(value)));
                warp.store_shared(&mut places, at, place);
            }
        });
        cta.barrier();
        for index in 0..RADICES {
            cta.each_warp(|warp| self.put(warp, &mut places, index, shift));
            cta.barrier();
        }
    }

    /// Stores each thread's element `index` at the sorted position.
    fn put(&self, warp: &mut Warp<'_>, places: &mut Shared<u32>, index: i32, shift: u32) {
        let element = warp.load(self.unsorted, warp.global_thread() * RADICES + index);
        let element = warp.compute(ComputeClass::Int, 4, element);
        let at = counter(warp, digit(element, shift));
        let place = warp.load_shared(places, at);
        let place = warp.compute(ComputeClass::Int, 3, place);
        warp.store(self.sorted, place, element);
        let next = warp.compute(ComputeClass::Int, 1, place + 1);
        warp.store_shared(places, at, next);
    }

    /// Computes the destination of each thread's elements for each digit: after smaller digits, and after equal digits
    /// in preceding threads.
    fn scan(&self, memory: &Memory) {
        let mut counts = memory.to_vec(self.buckets);
        let mut sum = 0;
        for digit in 0..RADICES as usize {
            for count in counts.iter_mut().skip(digit).step_by(RADICES as usize) {
                sum += std::mem::replace(count, sum);
            }
        }
        memory.fill(self.scanned, |index| counts[index as usize]);
    }

    /// A number up to the maximum of the C library's generator. Source: RadixSort.cpp, setupRadixSort.
    fn value(&self, index: u64) -> u32 {
        noise::noise(self.seed, index) as u32 >> 1
    }
}

impl Instance for RadixSort {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.unsorted, |index| self.value(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let grid = |name| Grid::new(name, self.unsorted.len() / SHARE, THREADS as u32).shared_bytes(4 * SHARE as u32);
        for shift in (0..u32::BITS).step_by(BITS as usize) {
            host.copy_to_device(self.unsorted);
            host.launch(grid("histogram"), |cta| self.histogram(cta, shift))?;
            host.copy_to_host(self.buckets);
            self.scan(host.memory());
            host.copy_to_device(self.scanned);
            host.launch(grid("permute"), |cta| self.permute(cta, shift))?;
            host.copy_to_host(self.sorted);
            host.memory().copy(self.sorted, self.unsorted, self.sorted.len());
        }
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut expected: Vec<u32> = (0..self.unsorted.len()).map(|index| self.value(index)).collect();
        expected.sort_unstable();
        equal("element", &memory.to_vec(self.sorted), &expected)
    }
}
