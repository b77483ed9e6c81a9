//! Histogram from the AMD APP SDK: 256 bins, counted separately by each of 128 threads in scratchpad bytes.
//!
//! A group processes 32768 values, with neighbouring threads on neighbouring values, adds its threads' bins, and stores
//! the sums. The host adds all groups' sums.

use crate::prelude::*;
use std::collections::VecDeque;

/// Number of bins, and number of values per thread (`BIN_SIZE`).
const BINS: i32 = 256;
/// Threads per group (`GROUP_SIZE`).
const THREADS: u32 = 128;
/// Bins per word: a bin is a byte.
const PACKED: i32 = 4;
/// Values per group.
const VALUES: u64 = BINS as u64 * THREADS as u64;
/// Values loaded by a thread before counting the first value. Source: the sample's binary for Southern Islands, see
/// [`InstructionCounts`].
const AHEAD: usize = 13;

/// Work before the first store to the scratchpad.
const START: InstructionCounts = InstructionCounts { fp32: 1, int: 2, other: 0, special: 0 };
/// Work for storing a zero.
const CLEAR: InstructionCounts = InstructionCounts { fp32: 0, int: 1, other: 0, special: 0 };
/// Work before the loads.
const LOAD: InstructionCounts = InstructionCounts { fp32: 0, int: 18, other: 0, special: 0 };
/// Work between a value and its bin's count, and between the count and the next value.
const COUNT: [InstructionCounts; 2] = [
    InstructionCounts { fp32: 0, int: 3, other: 0, special: 0 },
    InstructionCounts { fp32: 0, int: 1, other: 0, special: 0 },
];
/// Work for the quotient of bins and threads, computed at run time.
const QUOTIENT: InstructionCounts = InstructionCounts { fp32: 7, int: 11, other: 4, special: 1 };
/// Work before a bin's sum.
const SUM: InstructionCounts = InstructionCounts { fp32: 1, int: 2, other: 0, special: 0 };
/// Work per term in a bin's sum, after the term's load.
const TERM: InstructionCounts = InstructionCounts { fp32: 0, int: 3, other: 0, special: 0 };
/// Work between a bin's sum and its store, and after the store.
const STORE: [InstructionCounts; 2] = [
    InstructionCounts { fp32: 0, int: 2, other: 0, special: 0 },
    InstructionCounts { fp32: 0, int: 1, other: 0, special: 0 },
];

program! {
    // Bins affect only bank conflicts, and no address.
    /// counts of 256 values: an array read once, little written, the last sums on the host
    pub(crate) static HISTOGRAM = "histogram",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), Histogram; UMH, Table I";
    parameters {
        /// columns of the matrix of 4-byte words; whole multiples of 256, rounded down
        columns: count(1..=1 << 16) = 2048, "UMH, Table I: 2048 x 2048";
        /// rows of the matrix, at scale 1; scale, to whole multiples of 128, rounded down
        rows: count(1..=1 << 16) = 2048, "UMH, Table I: 2048 x 2048";
    }
    lay_out(name, request, memory) {
        let columns = fit_down(request, "columns", columns, BINS as u64);
        let rows = request.scale.of(rows);
        let rows = fit_down(request, "rows", rows, u64::from(THREADS));
        let values = columns * rows;
        check_indices(name, values, "values")?;
    }
    struct Histogram {
        data: Array<u32>[values],
        /// `[group][bin]`.
        counts: Array<u32>[values / VALUES * BINS as u64],
        seed: u64 = request.seed,
    }
}

/// Rounds a side of the matrix like the sample: down to a multiple, but never to zero.
fn fit_down(request: &mut Request, parameter: &'static str, wanted: u64, of: u64) -> u64 {
    let rule = format!("whole multiples of {of}, rounded down, one at least");
    request.fit(parameter, wanted, (wanted / of).max(1) * of, &rule)
}

/// Word index and bit offset of a scratchpad byte.
fn place(byte: Lanes<i32>) -> [Lanes<i32>; 2] {
    [byte / PACKED, byte % PACKED * 8]
}

/// Loads a byte from the scratchpad.
fn load_byte(warp: &mut Warp<'_>, bytes: &Shared<u32>, byte: Lanes<i32>) -> Lanes<u32> {
    let [word, bit] = place(byte);
    warp.load_shared(bytes, word).zip(bit, |word, bit| (word >> bit) & 0xff)
}

/// Stores a byte to the scratchpad. Each lane stores to a separate word.
fn store_byte(warp: &mut Warp<'_>, bytes: &mut Shared<u32>, byte: Lanes<i32>, value: Lanes<u32>) {
    let [word, bit] = place(byte);
    let words = word.pick(bytes.values());
    let shifted = bit.zip(value, |bit, value| (0xff << bit, (value & 0xff) << bit));
    warp.store_shared(bytes, word, words.zip(shifted, |word, (mask, byte)| (word & !mask) | byte));
}

impl Histogram {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let mut bins: Shared<u32> = cta.shared((THREADS as i32 * BINS / PACKED) as usize);
        let first = cta.index() as i32 * VALUES as i32;
        cta.each_warp(|warp| {
            START.alone(warp);
            for bin in 0..BINS {
                CLEAR.alone(warp);
                store_byte(warp, &mut bins, warp.thread() * BINS + bin, Lanes::all(0));
            }
        });
        cta.barrier();
        cta.each_warp(|warp| self.count(warp, &mut bins, first));
        cta.barrier();
        cta.each_warp(|warp| {
            QUOTIENT.alone(warp);
            for part in 0..BINS / THREADS as i32 {
                SUM.alone(warp);
                let bin = warp.thread() + part * THREADS as i32;
                let mut sum = Lanes::all(0);
                for thread in 0..THREADS as i32 {
                    let count = load_byte(warp, &bins, bin + thread * BINS);
                    sum = TERM.on(warp, sum + count);
                }
                STORE[0].alone(warp);
                warp.store(self.counts, bin + warp.cta() as i32 * BINS, sum);
                STORE[1].alone(warp);
            }
        });
    }

    /// Counts the values for a warp's threads, starting at `first` among the group's values.
    fn count(&self, warp: &mut Warp<'_>, bins: &mut Shared<u32>, first: i32) {
        LOAD.alone(warp);
        let load = |warp: &mut Warp<'_>, round: i32| {
            let at = warp.thread() + (first + round * THREADS as i32);
            warp.load(self.data, at)
        };
        let mut loaded: VecDeque<_> = (0..AHEAD as i32).map(|round| load(warp, round)).collect();
        for round in AHEAD as i32..BINS + AHEAD as i32 {
            let value = loaded.pop_front().expect("as many values are ahead as rounds are left, at most");
            if round < BINS {
                loaded.push_back(load(warp, round));
            }
            let value = COUNT[0].on(warp, value);
            let byte = warp.thread() * BINS + value.cast::<i32>();
            let count = load_byte(warp, bins, byte) + 1;
            COUNT[1].alone(warp);
            store_byte(warp, bins, byte, count);
        }
    }

    fn value(&self, index: u64) -> u32 {
        noise::below(self.seed, index, BINS as u64) as u32
    }
}

/// Sums of all groups' counts.
fn totals(counts: &[u32]) -> Vec<u32> {
    let mut totals = vec![0; BINS as usize];
    counts.iter().enumerate().for_each(|(at, count)| totals[at % BINS as usize] += count);
    totals
}

impl Instance for Histogram {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.data, |index| self.value(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.data);
        let grid = Grid::new("histogram", self.data.len() / VALUES, THREADS).shared_bytes(BINS as u32 * THREADS);
        host.launch(grid, |cta| self.kernel(cta))?;
        host.copy_to_host(self.counts);
        totals(&host.memory().to_vec(self.counts));
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (groups, bins) = (self.data.len() / VALUES, BINS as usize);
        let mut expected = vec![0; groups as usize * bins];
        for index in 0..self.data.len() {
            expected[(index / VALUES) as usize * bins + self.value(index) as usize] += 1;
        }
        let found = memory.to_vec(self.counts);
        equal("count", &found, &expected)?;
        let mut whole = vec![0; bins];
        (0..self.data.len()).for_each(|index| whole[self.value(index) as usize] += 1);
        equal("total", &totals(&found), &whole)
    }
}
