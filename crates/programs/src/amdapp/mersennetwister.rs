//! MersenneTwister from the AMD APP SDK: Gaussian numbers from seeds, in groups of 16 x 16 threads, with a seed vector
//! per thread.
//!
//! A thread computes four further vectors of state from its seeds, draws `factor` vectors, and turns two neighbours at
//! a time into Gaussian numbers (Box and Muller). As in the sample, pairs overlap: the last vectors drawn are not used.

use super::square_grid::{SquareGrid, fit_square};
use crate::prelude::*;
use std::array::from_fn;

/// Threads along a group's side: the sample doubles both sides in turn up to 256 threads.
const SIDE: i32 = 16;
/// Words per vector (`uint4`, `float4`).
const VECTOR: usize = 4;
/// Number of state vectors.
const STATES: usize = 5;
/// Maximum number of vectors drawn per thread.
const MOST: usize = 8;

/// State multiplier. Source: Matsumoto and Nishimura, MT19937 initialization.
const MULTIPLIER: u32 = 1_812_433_253;
/// Masks for a vector's words. Source: the sample; Saito and Matsumoto's SFMT has different masks for each period.
const MASKS: [u32; VECTOR] = [0xfdff_37ff, 0xef7f_3f7d, 0xff77_7b7d, 0x7ff7_fb2f];
/// Shift distances in bits: for a whole vector, for its words to the right, and for its words to the left. Source: the
/// sample.
const SHIFTS: [u32; 3] = [24, 13, 15];

/// Work before the load.
const ADDRESS: InstructionCounts = InstructionCounts { fp32: 3, int: 10, other: 0, special: 0 };
/// Work for computing the states.
const SEEDING: InstructionCounts = InstructionCounts { fp32: 16, int: 64, other: 0, special: 0 };
/// Work per drawn vector; moves select two states by index.
const ROUND: InstructionCounts = InstructionCounts { fp32: 41, int: 51, other: 4, special: 0 };
/// Work before the pairs.
const PAIRS: InstructionCounts = InstructionCounts { fp32: 4, int: 4, other: 0, special: 0 };
/// Work for a pair up to its first store, on the branch for small angles. Loads from tables of logarithms, among the
/// constants, are left out.
const FIRST: InstructionCounts = InstructionCounts { fp32: 405, int: 121, other: 56, special: 8 };
/// Work from the first store to the pair's second store.
const SECOND: InstructionCounts = InstructionCounts { fp32: 240, int: 30, other: 20, special: 0 };

program! {
    /// Gaussian numbers from seeds: a vector read and `factor` vectors written by each thread, side by side
    pub(crate) static MERSENNETWISTER = "mersennetwister",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), MersenneTwister; UMH, Table I";
    properties: data_independent;
    parameters {
        /// seeds, 4-byte words, before rounding, at scale 1; scales
        randoms: count(1..=1 << 28) = 131_072, "UMH, Table I: 131072 x 4, the first, of which the sample makes 262144";
        /// numbers made of each seed
        factor: one_of(2, 4, 6, 8) = 4, "UMH, Table I: 131072 x 4, the second";
    }
    lay_out(name, request, memory) {
        let width = fit_square(request, "randoms", SIDE as u64);
        let seeds = VECTOR as u64 * width * width;
        check_indices(name, seeds * factor, "numbers")?;
    }
    struct Twister {
        /// `[thread][word]`.
        seeds: Array<u32>[seeds],
        /// `[thread][number][word]`.
        numbers: Array<f32>[seeds * factor],
        factor: usize,
        grid: SquareGrid = SquareGrid { width: width as i32, side: SIDE },
        seed: u64 = request.seed,
    }
}

type Words = [u32; VECTOR];

/// Shifts a vector to the left as a single number whose lowest word is the first.
fn left(words: Words, by: u32) -> Words {
    from_fn(|at| (words[at] << by) | if at == 0 { 0 } else { words[at - 1] >> (32 - by) })
}

/// Shifts a vector to the right in the same representation.
fn right(words: Words, by: u32) -> Words {
    from_fn(|at| (words[at] >> by) | words.get(at + 1).map_or(0, |above| above << (32 - by)))
}

/// The vectors drawn by a thread from a vector of seeds.
fn drawn(seeds: Words) -> [u32; MOST * VECTOR] {
    let [whole, down, up] = SHIFTS;
    let mut history = vec![seeds];
    for step in 1..STATES {
        let last = history[step - 1];
        history.push(last.map(|word| MULTIPLIER.wrapping_mul(word ^ (word >> 30)).wrapping_add(step as u32)));
    }
    for round in 0..MOST {
        let (a, [far, near]) = (history[round], [history[round + 3], history[round + 4]]);
        // The sample returns to the first states in two rounds.
        let b = history[if [3, 4].contains(&round) { round - 3 } else { round + 2 }];
        let (lifted, lowered) = (left(a, whole), right(far, whole));
        history.push(from_fn(|at| a[at] ^ lifted[at] ^ ((b[at] >> down) & MASKS[at]) ^ lowered[at] ^ (near[at] << up)));
    }
    from_fn(|at| history[STATES + at / VECTOR][at % VECTOR])
}

/// Two Gaussian numbers from two words, in single precision.
fn gaussian([size, turn]: [u32; 2]) -> [f32; 2] {
    let [size, turn] = [size, turn].map(|word| word as f32 / 4_294_967_296.0);
    let (radius, angle) = ((-2.0 * size.ln()).sqrt(), std::f32::consts::TAU * turn);
    [radius * angle.cos(), radius * angle.sin()]
}

/// Word `at` of a vector stored as a single number.
fn word(vector: u128, at: usize) -> u32 {
    (vector >> (32 * at)) as u32
}

/// Joins words into a vector stored as a single number.
fn joined(word: impl Fn(usize) -> u32) -> u128 {
    (0..VECTOR).map(|at| u128::from(word(at)) << (32 * at)).sum()
}

/// Computes like [`drawn`], with each vector represented by a single number: all rounds are written out, as in the
/// sample.
fn plain(first: u128) -> [u128; MOST] {
    let next = |state, step| {
        joined(|at| (word(state, at) ^ (word(state, at) >> 30)).wrapping_mul(MULTIPLIER).wrapping_add(step))
    };
    let second = next(first, 1);
    let third = next(second, 2);
    let fourth = next(third, 3);
    let fifth = next(fourth, 4);
    let round = |a: u128, b: u128, far: u128, near: u128| {
        a ^ (a << 24) ^ joined(|at| (word(b, at) >> 13) & MASKS[at]) ^ (far >> 24) ^ joined(|at| word(near, at) << 15)
    };
    let mut t = [0; MOST];
    t[0] = round(first, third, fourth, fifth);
    t[1] = round(second, fourth, fifth, t[0]);
    t[2] = round(third, fifth, t[0], t[1]);
    t[3] = round(fourth, first, t[1], t[2]);
    t[4] = round(fifth, second, t[2], t[3]);
    t[5] = round(t[0], t[2], t[3], t[4]);
    t[6] = round(t[1], t[3], t[4], t[5]);
    t[7] = round(t[2], t[4], t[5], t[6]);
    t
}

impl Twister {
    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            ADDRESS.alone(warp);
            let [column, row] = self.grid.global(warp);
            let thread = row * self.grid.width + column;
            let seeds: [Lanes<u32>; VECTOR] = warp.load_vector(self.seeds, thread * VECTOR as i32);
            let seeds = SEEDING.on(warp, seeds);
            let words: [_; MOST * VECTOR] = warp.calculate(ComputeClass::Int, 0, seeds, drawn);
            (0..self.factor).for_each(|_| ROUND.alone(warp));
            PAIRS.alone(warp);
            for pair in 0..self.factor / 2 {
                FIRST.alone(warp);
                let numbers: [[Lanes<f32>; 2]; VECTOR] = from_fn(|at| {
                    let operands = [0, 1].map(|next| words[(pair + next) * VECTOR + at]);
                    warp.calculate(ComputeClass::Fp32, 0, operands, gaussian)
                });
                let first = (thread * self.factor as i32 + 2 * pair as i32) * VECTOR as i32;
                warp.store_vector(self.numbers, first, numbers.map(|[cosine, _]| cosine));
                SECOND.alone(warp);
                warp.store_vector(self.numbers, first + VECTOR as i32, numbers.map(|[_, sine]| sine));
            }
        });
    }

    fn start(&self, index: u64) -> u32 {
        noise::noise(self.seed, index) as u32
    }

    /// Expected word in a vector of Gaussian numbers, in double precision.
    fn expected(drawn: &[u128], vector: usize, at: usize) -> f64 {
        let uniform = |vector: usize| f64::from(word(drawn[vector], at) as f32) / 2.0_f64.powi(32);
        let (size, turn) = (uniform(vector / 2), uniform(vector / 2 + 1));
        let angle = std::f64::consts::TAU * turn;
        (-2.0 * size.ln()).sqrt() * if vector.is_multiple_of(2) { angle.cos() } else { angle.sin() }
    }
}

impl Instance for Twister {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.seeds, |index| self.start(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.seeds);
        let groups = self.seeds.len() / (VECTOR as u64 * u64::from(self.grid.threads()));
        host.launch(Grid::new("gaussian", groups, self.grid.threads()), |cta| self.kernel(cta))?;
        host.copy_to_host(self.numbers);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let threads = self.seeds.len() / VECTOR as u64;
        let expected = (0..threads).flat_map(|thread| {
            let drawn = plain(joined(|at| self.start(VECTOR as u64 * thread + at as u64)));
            (0..VECTOR * self.factor).map(move |at| Self::expected(&drawn, at / VECTOR, at % VECTOR) as f32)
        });
        compare("numbers", memory.to_vec(self.numbers), expected, 1e-5)
    }
}
