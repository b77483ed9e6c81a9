//! Alternating least squares on several GPUs: ratings are approximated by products between item factors and user
//! factors.
//!
//! An iteration follows cuMF. First, every item's factors (`x`) solve a small linear system built from the user
//! factors; then every user's factors (`theta`) solve a system built from the item factors. Each half has three
//! kernels:
//!
//! - *right*: a row's right-hand side, its ratings times the factors to which they refer;
//! - *hermitian*: its left-hand side, the sum over the outer products of these factors, accumulated in tiles from the
//!   scratchpad;
//! - *solve*: six conjugate-gradient steps from the row's last factors.
//!
//! A CTA handles a row. Left-hand sides are the largest arrays, so that rows are processed in batches.
//!
//! GPUs share the rows in either matrix evenly. A GPU writes only the factors for its own rows. It reads the other
//! matrix's factors referenced by its ratings, which are nearly all factors on all GPUs. Left-hand and right-hand sides
//! stay with their GPU.
//!
//! Departures from the source:
//!
//! - Each GPU has whole rows in both matrices. The source's program for four GPUs (hugewiki) distributes parts of the
//!   larger matrix. It adds up partial left-hand sides for the other matrix on the first GPU, which solves and sends
//!   all factors back.
//! - A batch contains every nth row, but the source's batches contain consecutive rows. Each GPU therefore has rows in
//!   every batch.
//! - Sums over a CTA have a fixed order. The source adds to a scratchpad word by atomics, in any order.
//! - The left-hand side follows the source's kernel for any number of factors, but is stored in pairs. The source's
//!   kernel for a hundred factors also stores pairs, and loads equal lines in smaller pieces.
//! - The right-hand side is one kernel, in place of cuSPARSE's product and a transposition.
//! - A row without ratings keeps its factors; the source divides zero by zero for such a row.
//! - Matrices are copied to the device once, not in each iteration.
//! - Not modelled: the error over all ratings, printed by the source after each iteration.
//!
//! GPS, 7.4, says that its ALS mostly issues atomics. cuMF's only atomics on device memory add up this error. With
//! `factors=atomics` a solution adds its change to each factor by an atomic, so that all data shared by GPUs is written
//! by atomics; no public program is known that does. Ratings are drawn at random, with Netflix's number and unevenness
//! ([`ratings`]).

mod hermitian;
mod ratings;
mod reference;
mod solve;

use crate::prelude::*;
use hermitian::BATCH;
use ratings::{RatingMatrix, Ratings, Sizes};
use solve::GROUP;
use std::ops::Range;
use std::sync::OnceLock;

/// Rows and columns in a thread's left-hand-side tile. Source: cuMF_als, als.h (`T10`).
const TILE: i32 = 10;
/// Registers for a thread with a tile. Source: assumed: a hundred sums, and their operands.
const REGISTERS: u32 = 128;
/// Largest initial user factor. Source: cuMF_als, main.cpp: 0.2; initial item factors are zero.
const LARGEST: f32 = 0.2;
/// Number of distinct initial factor values. Source: assumed; the source uses `rand`.
const LEVELS: u64 = 1 << 16;
/// Loads in flight per thread in a loop; the factor count is a multiple of it. Source: assumed: compilers unroll about
/// this far.
const UNROLLED: usize = 5;
const NETFLIX: &str = "cuMF_als, README, main.cpp: the Netflix data set";

program! {
    /// matrix factorisation by alternating least squares on several GPUs: each reads all factors of the other matrix
    pub(crate) static ALS = "als", "cuMF_als (cuMF/cumf_als; Tan et al., HPDC 2016); GPS, Table 2 (ALS)";
    properties: partitioned_by_gpus;
    parameters {
        /// items, at scale 1, which GPUs share; scales with users and ratings, so that rows stay as long
        items: count(2..=1 << 24) = 17_770, NETFLIX;
        /// users, at scale 1, which GPUs share; scales
        users: count(2..=1 << 24) = 480_189, NETFLIX;
        /// ratings, at scale 1; scales
        ratings: count(2..=1 << 31) = 99_072_112, NETFLIX;
        /// factors of an item and of a user; does not scale
        features: count(1..=160) = 100, "cuMF_als, README: F=100; the source takes multiples of 10";
        /// batches of items, whose left-hand sides share memory
        x_batches: count(1..=1000) = 1, "cuMF_als, README (X_BATCH)";
        /// batches of users
        theta_batches: count(1..=1000) = 3, "cuMF_als, README (THETA_BATCH)";
        /// iterations, each of both halves
        iterations: count(1..=1000) = 10, "cuMF_als, main.cpp (ITERS)";
        /// a solved factor is stored, or the change of it is added by an atomic
        factors: choice("stores", "atomics") = "stores", "cuMF_als, cg.cu: stores";
    }
    lay_out(name, request, memory) {
        let scaled = |name| request.scale.of(request.values.count(name));
        let (items, users, ratings) = (scaled("items").max(2), scaled("users").max(2), scaled("ratings"));
        let most = request.fit_most("ratings", ratings, items * users / 2);
        let sizes = Sizes { items, users, ratings: request.fit_least("ratings", most, users) };
        let features = request.fit_multiple("features", features, TILE as u64);
        check_indices(name, sizes.ratings, "ratings")?;
        check_indices(name, items.max(users) * features, "factors")?;
        let x = memory.array("x", items * features, Scaling::Scales);
        let theta = memory.array("theta", users * features, Scaling::Scales);
        let mut half =
            |names: &HalfNames, count: u64, [from, to]: [Array<f32>; 2]| -> Result<HalfIteration, WorkloadError> {
                let batches = request.values.count(names.batches);
                let slots = count.div_ceil(batches);
                check_indices(name, slots * features * features, "elements of left-hand sides")?;
                let [first, other, value, right, hermitian] = names.arrays;
                Ok(HalfIteration {
                    kernels: names.kernels,
                    count,
                    batches,
                    first: memory.array(first, count + 1, Scaling::Scales),
                    other: memory.array(other, sizes.ratings, Scaling::Scales),
                    value: memory.array(value, sizes.ratings, Scaling::Scales),
                    right: memory.array(right, count * features, Scaling::Scales),
                    hermitian: memory.array(hermitian, slots * features * features, Scaling::Scales),
                    from,
                    to,
                    rows: Partition::groups(count, batches, request.gpus()).tiles(1, 1),
                    slots: Partition::even(slots, request.gpus()).tiles(1, 1),
                })
            };
    }
    struct AlternatingLeastSquares {
        x: HalfIteration = half(&X, items, [theta, x])?,
        theta: HalfIteration = half(&THETA, users, [x, theta])?,
        sizes: Sizes,
        features: i32,
        iterations: u64,
        /// True if a solution adds its change to the factors by atomics.
        adds_atomically: bool = factors == "atomics",
        seed: u64 = request.seed,
        /// Ratings, drawn when first needed: array sizes are known without them.
        ratings: OnceLock<Ratings> = OnceLock::new(),
    }
}

/// The half of an iteration that solves for one matrix.
struct HalfIteration {
    /// Kernel names.
    kernels: [&'static str; 3],
    count: u64,
    batches: u64,
    /// First rating per row, followed by the total rating count.
    first: Array<i32>,
    /// Row in the other matrix to which each rating refers, and the rating's value.
    other: Array<i32>,
    value: Array<f32>,
    /// Right-hand side per row.
    right: Array<f32>,
    /// Left-hand sides for a batch, row after row: `[slot][row][column]`.
    hermitian: Array<f32>,
    /// Factors in the other matrix, and in this matrix, row by row.
    from: Array<f32>,
    to: Array<f32>,
    /// Grid over all rows.
    rows: PartitionGrid,
    /// Grid over a batch's rows.
    slots: PartitionGrid,
}

/// Names for a half's kernels and arrays.
struct HalfNames {
    kernels: [&'static str; 3],
    batches: &'static str,
    arrays: [&'static str; 5],
}

const X: HalfNames = HalfNames {
    kernels: ["x-right", "x-hermitian", "x-solve"],
    batches: "x_batches",
    arrays: ["item_first", "item_users", "item_values", "y_theta", "tt"],
};
const THETA: HalfNames = HalfNames {
    kernels: ["theta-right", "theta-hermitian", "theta-solve"],
    batches: "theta_batches",
    arrays: ["user_first", "user_items", "user_values", "y_x", "xx"],
};

impl HalfIteration {
    /// Row for a slot in a batch: `None` if the last slot is empty.
    fn row(&self, slot: u64, batch: u64) -> Option<i32> {
        let row = slot * self.batches + batch;
        (row < self.count).then_some(row as i32)
    }

    /// Rating range for a row, looked up by every warp.
    fn bounds(&self, cta: &mut Cta<'_>, row: i32) -> Range<i32> {
        let mut bounds = 0..0;
        cta.each_warp(|warp| {
            let ends = (warp.load(self.first, Lanes::all(row)), warp.load(self.first, Lanes::all(row + 1)));
            let (first, end) = warp.compute(ComputeClass::Int, 2, ends);
            bounds = first.lane(0)..end.lane(0);
        });
        bounds
    }

    fn fill(&self, memory: &Memory, rows: &RatingMatrix) {
        memory.fill(self.first, |row| rows.first[row as usize]);
        memory.fill(self.other, |rating| rows.other[rating as usize]);
        memory.fill(self.value, |rating| rows.value[rating as usize]);
    }
}

impl AlternatingLeastSquares {
    fn ratings(&self) -> &Ratings {
        self.ratings.get_or_init(|| Ratings::new(self.sizes, self.seed))
    }

    /// Initial value for a user factor.
    fn start(&self, index: u64) -> f32 {
        LARGEST * (noise::below(self.seed ^ 3, index, LEVELS) as f32 / LEVELS as f32)
    }

    fn update(&self, host: &mut Host<'_>, half: &HalfIteration) -> Result<(), RecordError> {
        let (features, [right, hermitian, solve]) = (self.features as u32, half.kernels);
        let grid = half.rows.grid(right, features.next_multiple_of(GROUP));
        host.launch(grid, |cta| self.multiply(cta, half))?;
        for batch in 0..half.batches {
            let grid = half.slots.grid(hermitian, self.tile_threads());
            let grid = grid.shared_bytes(4 * BATCH as u32 * features).registers(REGISTERS);
            host.launch(grid, |cta| self.sum_products(cta, half, batch))?;
            // Four vectors and four scalars.
            let grid = half.slots.grid(solve, features).shared_bytes(4 * (4 * features + 4));
            host.launch(grid, |cta| self.solve(cta, half, batch))?;
        }
        Ok(())
    }
}

impl Instance for AlternatingLeastSquares {
    fn fill(&self, memory: &Memory) {
        self.x.fill(memory, &self.ratings().by_item);
        self.theta.fill(memory, &self.ratings().by_user);
        memory.fill(self.x.to, |_| 0.0);
        memory.fill(self.theta.to, |index| self.start(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for half in [&self.x, &self.theta] {
            host.copy_to_device(half.first);
            host.copy_to_device(half.other);
            host.copy_to_device(half.value);
            host.copy_to_device(half.to);
        }
        for _ in 0..self.iterations {
            self.update(host, &self.x)?;
            self.update(host, &self.theta)?;
        }
        host.copy_to_host(self.x.to);
        host.copy_to_host(self.theta.to);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (features, Ratings { by_item, by_user }) = (self.features as usize, self.ratings());
        let mut x = vec![0.0; self.x.to.len() as usize];
        let mut theta: Vec<f32> = (0..self.theta.to.len()).map(|index| self.start(index)).collect();
        for _ in 0..self.iterations {
            reference::update(by_item, features, self.adds_atomically, &theta, &mut x);
            reference::update(by_user, features, self.adds_atomically, &x, &mut theta);
        }
        equal("factor of items", &memory.to_vec(self.x.to), &x)?;
        equal("factor of users", &memory.to_vec(self.theta.to), &theta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_workload::scale::Scale;
    use tombolo_workload::simt::Backing;

    #[test]
    fn a_row_stays_with_its_gpu_in_every_kernel() {
        for (count, batches, gpus) in [(60_u64, 3, 4), (61, 3, 7), (10, 1, 16), (100, 7, 2)] {
            let slots = count.div_ceil(batches);
            let (rows, of_batch) = (Partition::groups(count, batches, gpus), Partition::even(slots, gpus));
            for gpu in 0..usize::from(gpus) {
                let of_slots =
                    of_batch.block(gpu).flat_map(|slot| (0..batches).map(move |batch| slot * batches + batch));
                assert_eq!(
                    of_slots.filter(|row| *row < count).collect::<Vec<_>>(),
                    rows.block(gpu).collect::<Vec<_>>()
                );
            }
        }
    }

    #[test]
    fn left_hand_sides_have_the_memory_of_a_batch() {
        let mut memory = Memory::new(Backing::AddressOnly);
        ALS.lay_out(&mut Request::new(&ALS, Scale::FULL, &[], 7).unwrap(), &mut memory).unwrap();
        let bytes = |name: &str| memory.arrays().iter().find(|array| array.name == name).map(|array| array.bytes);
        assert_eq!(bytes("tt"), Some(17_770 * 40_000));
        assert_eq!(bytes("xx"), Some(160_063 * 40_000));
    }
}
