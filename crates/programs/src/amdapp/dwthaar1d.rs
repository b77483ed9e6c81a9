//! DwtHaar1D from the AMD APP SDK: Haar wavelets of a signal, with nine levels per launch, all in each group's
//! scratchpad.
//!
//! A group halves a part of the signal level by level. Each level's details are stored among the coefficients; the
//! group's average is stored in a list. The host turns the averages into the signal for the next launch, until a single
//! average is left.
//!
//! A level has no barrier between loads and stores, therefore wavefronts race. If wavefronts run in index order, as in
//! this recording, the result equals the sample's reference.

use crate::prelude::*;
use std::f32::consts::SQRT_2;

/// Maximum level count per launch: the binary logarithm of a group's 256 threads, plus one.
const LEVELS: u32 = 9;
/// Longest signal accepted by the sample.
const LONGEST: u64 = 1 << 23;

/// Work before the loads.
const LOAD: InstructionCounts = InstructionCounts { fp32: 0, int: 7, other: 0, special: 0 };
/// Work between the loads and their stores to the scratchpad.
const STAGE: InstructionCounts = InstructionCounts { fp32: 0, int: 5, other: 0, special: 0 };
/// Work for dividing by the square root of the length, in the first launch.
const NORMALISE: InstructionCounts = InstructionCounts { fp32: 8, int: 2, other: 1, special: 2 };
/// Work for a level up to the branch. The branch itself is counted when it is executed.
const LEVEL: InstructionCounts = InstructionCounts { fp32: 0, int: 1, other: 0, special: 0 };
/// Work for a level's addresses.
const PLACE: InstructionCounts = InstructionCounts { fp32: 0, int: 8, other: 0, special: 0 };
/// Work for a sum, a difference, and their products with the square root of 1/2.
const HALVE: (ComputeClass, u16) = (ComputeClass::Fp32, 4);
/// Work before the average is stored.
const AVERAGE: InstructionCounts = InstructionCounts { fp32: 2, int: 0, other: 0, special: 0 };

program! {
    // The launch count grows with the footprint's logarithm.
    /// Haar wavelets of a signal, nine levels a launch; the host copies averages between launches
    pub(crate) static DWTHAAR1D = "dwthaar1d",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), DwtHaar1D; UMH, Table I";
    properties: nonlinear, data_independent;
    parameters {
        /// elements of the signal, 4-byte floats, at scale 1; scales, to a power of two up to 8388608
        length: count(2..=LONGEST) = 2_097_152, "UMH, Table I: 2097152";
    }
    lay_out(_, request, memory) {
        let wanted = request.scale.of(length);
        let fitted = wanted.clamp(2, LONGEST).next_power_of_two();
        let length = request.fit("length", wanted, fitted, &format!("powers of two from 2 to {LONGEST}"));
    }
    #[derive(Clone, Copy)]
    struct Wavelets {
        input: Array<f32>[length],
        /// An array with the signal's length: an average, then details of all levels from the last to the first.
        coefficients: Array<f32>[length],
        /// An average per group; the array has the signal's length, as in the sample.
        averages: Array<f32>[length],
        seed: u64 = request.seed,
    }
}

/// Parameters of a launch.
#[derive(Clone, Copy)]
struct LaunchShape {
    /// Elements in the signal.
    length: i32,
    /// Number of levels.
    levels: u32,
    is_first: bool,
}

impl LaunchShape {
    /// Threads per group, with two elements each.
    fn threads(self) -> u32 {
        1 << (self.levels - 1)
    }
}

impl Wavelets {
    fn kernel(&self, cta: &mut Cta<'_>, step: LaunchShape) {
        let (threads, group) = (step.threads() as i32, cta.index() as i32);
        let mut signal: Shared<f32> = cta.shared(2 * threads as usize);
        let root = (step.length as f32).sqrt();
        cta.each_warp(|warp| {
            LOAD.alone(warp);
            let own = warp.thread() * 2;
            let mut pair = [0, 1].map(|next| warp.load(self.input, own + (group * threads * 2 + next)));
            STAGE.alone(warp);
            for (next, value) in (0..).zip(pair) {
                warp.store_shared(&mut signal, own + next, value);
            }
            if step.is_first {
                pair = NORMALISE.on(warp, pair);
                for (next, value) in (0..).zip(pair) {
                    warp.store_shared(&mut signal, own + next, value / root);
                }
            }
        });
        cta.barrier();
        for level in 0..step.levels {
            let (active, middle) = (threads >> level, step.length >> (level + 1));
            cta.each_warp(|warp| {
                LEVEL.alone(warp);
                warp.when(warp.thread().lt(active), |warp| {
                    PLACE.alone(warp);
                    let thread = warp.thread();
                    let [low, high] = [0, 1].map(|next| warp.load_shared(&signal, thread * 2 + next));
                    let (class, count) = HALVE;
                    // The average and the detail of two neighbours: the SDK's kernel has a sum and a difference.
                    let [sum, difference] = warp.compute_wide(class, count, 2, [low + high, low - high]);
                    warp.store_shared(&mut signal, thread, sum / SQRT_2);
                    warp.store(self.coefficients, thread + (middle + group * active), difference / SQRT_2);
                });
            });
            cta.barrier();
        }
        cta.each_warp(|warp| {
            warp.when(warp.thread().eq(0), |warp| {
                let average = warp.load_shared(&signal, Lanes::all(0));
                AVERAGE.alone(warp);
                warp.store(self.averages, Lanes::all(group), average);
            });
        });
    }

    /// A whole number from 0 to 9.
    fn start(&self, index: u64) -> f32 {
        noise::below(self.seed, index, 10) as f32
    }

    fn length(&self) -> u64 {
        self.input.len()
    }
}

impl Instance for Wavelets {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.start(index));
    }

    /// The host keeps the input, and a separate copy of each launch's coefficients, assembled at the end.
    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let (memory, Wavelets { input, coefficients, averages, .. }) = (host.memory(), *self);
        let signal = memory.to_vec(input);
        let mut kept = Vec::new();
        let mut left = self.length().ilog2();
        loop {
            let (length, levels) = (1 << left, left.min(LEVELS));
            host.copy_first_to_device(input, length);
            let step = LaunchShape { length: length as i32, levels, is_first: length == self.length() };
            let threads = step.threads();
            let grid = Grid::new("haar", length >> levels, threads).shared_bytes(8 * threads);
            host.launch(grid, |cta| self.kernel(cta, step))?;
            host.copy_to_host(coefficients);
            host.copy_to_host(averages);
            left -= levels;
            if left == 0 {
                memory.write(coefficients, 0, memory.read(averages, 0));
                keep(memory, coefficients, length, &mut kept);
                memory.fill_part(coefficients, length..self.length(), |index| kept[index as usize]);
                break;
            }
            keep(memory, coefficients, length, &mut kept);
            memory.copy(averages, input, 1 << left);
        }
        memory.fill(input, |index| signal[index as usize]);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut signal: Vec<f64> = (0..self.length()).map(|index| f64::from(self.start(index))).collect();
        signal.iter_mut().for_each(|value| *value /= (self.length() as f64).sqrt());
        let mut expected = vec![0.0; signal.len()];
        while signal.len() > 1 {
            let half = |sign: f64| signal.chunks(2).map(|pair| (pair[0] + sign * pair[1]) / 2.0_f64.sqrt()).collect();
            let (sums, differences): (Vec<f64>, Vec<f64>) = (half(1.0), half(-1.0));
            expected[sums.len()..2 * sums.len()].copy_from_slice(&differences);
            signal = sums;
        }
        expected[0] = signal[0];
        let found = memory.to_vec(self.coefficients);
        compare("coefficients", found, expected.into_iter().map(|value| value as f32), 1e-4)?;
        compare("input", memory.to_vec(self.input), (0..self.length()).map(|index| self.start(index)), 0.0)
    }
}

/// Copies the first `length` elements of an array into the host's own copy.
fn keep(memory: &Memory, array: Array<f32>, length: u64, kept: &mut Vec<f32>) {
    kept.resize(kept.len().max(length as usize), 0.0);
    (0..length).for_each(|index| kept[index as usize] = memory.read(array, index));
}
