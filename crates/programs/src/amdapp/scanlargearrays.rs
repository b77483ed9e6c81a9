//! ScanLargeArrays from the AMD APP SDK 2.5: prefix sums within blocks in the scratchpad, prefix sums over the blocks'
//! sums, and a final addition to the blocks.
//!
//! Source: ScanLargeArrays_Kernels.cl and ScanLargeArrays.cpp. Every thread in a CTA stores the block's sum to the same
//! element. Arithmetic and scratchpad accesses are counted from the Southern Islands binary shipped with the sample.

use crate::prelude::*;

/// Elements per block; the block's scan has half this number of threads. Source: ScanLargeArrays.hpp (`GROUP_SIZE`).
const BLOCK: u64 = 256;
/// Minimum number of elements: two blocks, because a single block has no sums to scan.
const LEAST: u64 = 2 * BLOCK;
/// Largest input. Source: ScanLargeArrays.cpp, setupScanLargeArrays.
const LARGEST: u64 = 255;

program! {
    // The launch count grows with the footprint's logarithm.
    /// prefix sums of a large array: blocks, their sums, and the sums added to the blocks
    pub(crate) static SCANLARGEARRAYS = "scanlargearrays",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), ScanLargeArrays; UMH, Table I (SLA)";
    properties: nonlinear, data_independent;
    parameters {
        /// elements, 4-byte floats, at scale 1; scales, to a power of two from 512
        elements: count(1..=1 << 28) = 2_097_152, "UMH, Table I (SLA); powers of two: ScanLargeArrays.cpp, setup";
    }
    lay_out(name, request, memory) {
        let wanted = request.scale.of(elements);
        let rule = format!("powers of two from {LEAST}");
        let elements = request.fit("elements", wanted, wanted.max(LEAST).next_power_of_two(), &rule);
        check_indices(name, elements, "elements")?;
        let mut array = |name: &str, elements| memory.array(name, elements, Scaling::Scales);
        let input = array("input", elements);
        let (mut levels, mut from) = (Vec::new(), input);
        while from.len() > BLOCK {
            let number = levels.len();
            let to = array(&format!("output{number}"), from.len());
            let sums = array(&format!("sums{number}"), from.len() / BLOCK);
            levels.push(BlockScan { from, to, sums });
            from = sums;
        }
        let last = array("scanned", from.len());
    }
    struct Scan {
        input: Array<f32>,
        levels: Vec<BlockScan>,
        /// The scan of the last level's sums, at most a block.
        last: Array<f32>,
        seed: u64 = request.seed,
    }
}

/// A scan by blocks: over the input, or over the sums of the level before.
struct BlockScan {
    from: Array<f32>,
    to: Array<f32>,
    /// An element per block.
    sums: Array<f32>,
}

/// Adds up a block in place, up the tree.
fn sum_up(cta: &mut Cta<'_>, block: &mut Shared<f32>, length: i32) {
    for (step, nodes) in (0..length.ilog2()).map(|step| (1 << step, length >> (step + 1))) {
        cta.barrier();
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 1, warp.thread());
            warp.when(thread.lt(nodes), |warp| {
                let [low, high] = children(warp, thread, step);
                let [left, right] = [low, high].map(|at| warp.load_shared(block, at));
                let sum = warp.compute(ComputeClass::Fp32, 1, left + right);
                warp.store_shared(block, high, sum);
            });
        });
    }
}

/// Replaces every element by the sum of all preceding elements, down the tree from a zero root.
fn spread_down(cta: &mut Cta<'_>, block: &mut Shared<f32>, length: i32) {
    for (step, nodes) in (0..length.ilog2()).rev().map(|step| (1 << step, length >> (step + 1))) {
        cta.barrier();
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 1, warp.thread());
            warp.when(thread.lt(nodes), |warp| {
                let [low, high] = children(warp, thread, step);
                let [left, above] = [low, high].map(|at| warp.load_shared(block, at));
                warp.store_shared(block, low, above);
                let sum = warp.load_shared(block, high) + left;
                let sum = warp.compute(ComputeClass::Fp32, 1, sum);
                warp.store_shared(block, high, sum);
            });
        });
    }
    cta.barrier();
}

/// Last elements in both halves of the subtree for each lane's thread; a half has `step` elements.
fn children(warp: &mut Warp<'_>, thread: Lanes<i32>, step: i32) -> [Lanes<i32>; 2] {
    let low = (thread * 2 + 1) * step - 1;
    warp.compute(ComputeClass::Int, 7, [low, low + step])
}

/// Loads each thread's pair of elements, and stores the pair to the scratchpad.
fn load_pairs(cta: &mut Cta<'_>, from: Array<f32>, block: &mut Shared<f32>, [first, rest]: [u16; 2]) {
    cta.each_warp(|warp| {
        let at = warp.compute(ComputeClass::Int, first, warp.global_thread() * 2);
        let pair = [warp.load(from, at), warp.load(from, at + 1)];
        warp.compute(ComputeClass::Int, rest, ());
        (0..).zip(pair).for_each(|(offset, value)| warp.store_shared(block, warp.thread() * 2 + offset, value));
    });
}

/// Stores each thread's pair.
fn store_pairs(cta: &mut Cta<'_>, block: &Shared<f32>, to: Array<f32>, instructions: u16) {
    cta.each_warp(|warp| {
        let at = warp.compute(ComputeClass::Int, instructions, warp.global_thread() * 2);
        let pair = [0, 1].map(|offset| warp.load_shared(block, warp.thread() * 2 + offset));
        (0..).zip(pair).for_each(|(offset, value)| warp.store(to, at + offset, value));
    });
}

/// Scans each block, and stores the block's sum.
fn scan_block(cta: &mut Cta<'_>, level: &BlockScan) {
    let mut block = cta.shared::<f32>(BLOCK as usize);
    load_pairs(cta, level.from, &mut block, [10, 6]);
    sum_up(cta, &mut block, BLOCK as i32);
    cta.barrier();
    let root = Lanes::all(BLOCK as i32 - 1);
    cta.each_warp(|warp| {
        let root = warp.compute(ComputeClass::Int, 1, root);
        let sum = warp.load_shared(&block, root);
        let at = warp.compute(ComputeClass::Int, 1, Lanes::all(warp.cta() as i32));
        warp.store(level.sums, at, sum);
    });
    cta.barrier();
    cta.each_warp(|warp| {
        let root = warp.compute(ComputeClass::Int, 2, root);
        warp.store_shared(&mut block, root, 0.0);
    });
    spread_down(cta, &mut block, BLOCK as i32);
    store_pairs(cta, &block, level.to, 5);
}

/// Scans an array with at most a block of elements, in a single CTA.
fn scan_last(cta: &mut Cta<'_>, from: Array<f32>, to: Array<f32>) {
    let length = from.len() as i32;
    let mut block = cta.shared::<f32>(length as usize);
    load_pairs(cta, from, &mut block, [6, 2]);
    sum_up(cta, &mut block, length);
    cta.each_warp(|warp| {
        warp.when(warp.thread().eq(0), |warp| {
            let root = warp.compute(ComputeClass::Int, 2, Lanes::all(length - 1));
            warp.store_shared(&mut block, root, 0.0);
        });
    });
    spread_down(cta, &mut block, length);
    store_pairs(cta, &block, to, 4);
}

/// Adds an element to every element of a block.
fn add(cta: &mut Cta<'_>, from: Array<f32>, to: Array<f32>) {
    let mut before = cta.shared::<f32>(1);
    cta.each_warp(|warp| {
        let thread = warp.compute(ComputeClass::Int, 4, warp.thread());
        warp.when(thread.eq(0), |warp| {
            let at = warp.compute(ComputeClass::Int, 1, Lanes::all(warp.cta() as i32));
            let sum = warp.load(from, at);
            warp.compute(ComputeClass::Int, 1, ());
            warp.store_shared(&mut before, thread, sum);
        });
    });
    cta.barrier();
    cta.each_warp(|warp| {
        let at = warp.compute(ComputeClass::Int, 2, warp.global_thread());
        let value = warp.load(to, at);
        let place = warp.compute(ComputeClass::Int, 1, Lanes::all(0));
        let sum = value + warp.load_shared(&before, place);
        let sum = warp.compute(ComputeClass::Fp32, 1, sum);
        warp.store(to, at, sum);
    });
}

impl Scan {
    fn value(&self, index: u64) -> f32 {
        noise::below(self.seed, index, LARGEST + 1) as f32
    }

    /// The array added to a level's blocks: the scan of the level's sums.
    fn scanned(&self, level: usize) -> Array<f32> {
        self.levels.get(level + 1).map_or(self.last, |next| next.to)
    }
}

impl Instance for Scan {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.value(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        let threads = BLOCK as u32 / 2;
        for level in &self.levels {
            let grid = Grid::new("scan-blocks", level.sums.len(), threads).shared_bytes(4 * BLOCK as u32);
            host.launch(grid, |cta| scan_block(cta, level))?;
        }
        let sums = self.levels.last().map_or(self.input, |level| level.sums);
        let grid = Grid::new("scan-sums", 1, sums.len() as u32 / 2).shared_bytes(sums.bytes() as u32);
        host.launch(grid, |cta| scan_last(cta, sums, self.last))?;
        for (number, level) in self.levels.iter().enumerate().rev() {
            let grid = Grid::new("add-sums", level.to.len() / BLOCK, BLOCK as u32).shared_bytes(4);
            host.launch(grid, |cta| add(cta, self.scanned(number), level.to))?;
        }
        host.copy_to_host(self.levels[0].to);
        Ok(())
    }

    /// Adds in integers, which do not round.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let before = (0..self.input.len()).scan(0_u64, |sum, index| {
            let before = *sum;
            *sum += noise::below(self.seed, index, LARGEST + 1);
            Some(before as f32)
        });
        compare("output", memory.to_vec(self.levels[0].to), before, 1e-5)
    }
}
