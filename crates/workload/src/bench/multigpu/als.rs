//! Alternating least squares on several GPUs: ratings are approximated by products of factors of items and of users.
//!
//! An iteration is cuMF's: with the factors of users as they are, those of every item (`x`) solve a small linear system; then,
//! with these, those of every user (`theta`). Each half is three kernels: right-hand sides, the ratings of a row times the
//! factors they name; left-hand sides, the sum of the factors' outer products; a few steps of conjugate gradients. A CTA has a
//! row. Left-hand sides are the largest arrays, so that rows come in batches.
//!
//! GPUs share the rows of either matrix evenly. A GPU writes the factors of its own rows, and reads those of the other matrix
//! that its ratings name: as good as all, of all GPUs. Left-hand and right-hand sides stay with their GPU.
//!
//! Departures: a batch has every so many rows, where the source takes rows side by side, so that each GPU has some of every
//! batch. Sums over a CTA have an order, where the source adds to its scratchpad by atomics. The left-hand sides are those of
//! the source's kernel for any number of factors, with its kernel's pairs of stores for a hundred; that one loads factors
//! in pieces, from the same lines. The product for right-hand sides is cuSPARSE's and a transposition in the source. A row
//! without ratings keeps its factors. Matrices are copied once, not in each iteration. Not modelled: the error over all ratings,
//! which the source prints behind each iteration.
//!
//! GPS, 7.4, says that its ALS mostly issues atomics. In cuMF only that error has any in device memory, and none is here: no
//! other GPU reads what they add up. Ratings are drawn ([`ratings`]).

mod hermitian;
mod ratings;
mod reference;
mod solve;

use super::MultiGpu;
use super::cut::{Cut, Tiles};
use crate::bench::benchmark::Benchmark;
use crate::bench::reference::equal;
use crate::bench::workload::{Instance, Request, WorkloadError, check_indices};
use crate::noise;
use crate::parameter::{Kind, Parameter};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Lanes, Memory, Scaling};
use hermitian::BATCH;
use ratings::{Ratings, Rows, Sizes};
use solve::GROUP;
use std::ops::Range;
use std::sync::OnceLock;

/// Rows and columns of a thread's tile of a left-hand side. Source: cuMF_als, als.h (`T10`).
const TILE: i32 = 10;
/// Registers of a thread that has a tile. Source: assumed: a hundred sums, and what they are formed from.
const REGISTERS: u32 = 128;
/// Largest factor of a user at the start. Source: cuMF_als, main.cpp: 0.2; those of items are zero.
const LARGEST: f32 = 0.2;
/// Steps of a factor at the start.
const STEPS: u64 = 1 << 16;
const NETFLIX: &str = "cuMF_als, README, main.cpp: the Netflix data set";

static PARAMETERS: [Parameter; 7] = [
    Parameter {
        name: "items",
        kind: Kind::Count { low: 2, high: 1 << 24 },
        default: "17770",
        about: "items, at scale 1, which GPUs share; scales with users and ratings, so that rows stay as long",
        source: NETFLIX,
    },
    Parameter {
        name: "users",
        kind: Kind::Count { low: 2, high: 1 << 24 },
        default: "480189",
        about: "users, at scale 1, which GPUs share; scales",
        source: NETFLIX,
    },
    Parameter {
        name: "ratings",
        kind: Kind::Count { low: 2, high: 1 << 31 },
        default: "99072112",
        about: "ratings, at scale 1; scales",
        source: NETFLIX,
    },
    Parameter {
        name: "features",
        kind: Kind::Count { low: 1, high: 160 },
        default: "100",
        about: "factors of an item and of a user; does not scale",
        source: "cuMF_als, README: F=100; the source takes multiples of 10",
    },
    Parameter {
        name: "x_batches",
        kind: Kind::Count { low: 1, high: 1000 },
        default: "1",
        about: "batches of items, whose left-hand sides share memory",
        source: "cuMF_als, README (X_BATCH)",
    },
    Parameter {
        name: "theta_batches",
        kind: Kind::Count { low: 1, high: 1000 },
        default: "3",
        about: "batches of users",
        source: "cuMF_als, README (THETA_BATCH)",
    },
    Parameter {
        name: "iterations",
        kind: Kind::Count { low: 1, high: 1000 },
        default: "10",
        about: "iterations, each of both halves",
        source: "cuMF_als, main.cpp (ITERS)",
    },
];

/// The benchmark.
pub(in crate::bench) static ALS: MultiGpu = MultiGpu(Benchmark {
    name: "als",
    about: "matrix factorisation by alternating least squares on several GPUs: each reads all factors of the other matrix",
    source: "cuMF_als (cuMF/cumf_als; Tan et al., HPDC 2016); GPS, Table 2 (ALS)",
    parameters: &PARAMETERS,
    nonlinear: false,
    address_only: false,
    lay_out,
});

struct Solver {
    sizes: Sizes,
    features: i32,
    iterations: u64,
    seed: u64,
    /// Drawn when first needed: sizes of arrays are known without.
    ratings: OnceLock<Ratings>,
    x: Half,
    theta: Half,
}

/// The half of an iteration that solves for one of the matrices.
struct Half {
    /// Names of its kernels.
    kernels: [&'static str; 3],
    count: u64,
    batches: u64,
    /// First rating of each row, and the number of all.
    first: Array<i32>,
    /// The row of the other matrix that each rating names, and the rating.
    other: Array<i32>,
    value: Array<f32>,
    /// Right-hand side of each row.
    right: Array<f32>,
    /// Left-hand sides of the rows of a batch, all of one row after those of another.
    hermitian: Array<f32>,
    /// Factors of the other matrix, and its own, row by row.
    from: Array<f32>,
    to: Array<f32>,
    /// Of rows.
    rows: Tiles,
    /// Of the rows of a batch.
    slots: Tiles,
}

/// What the arrays of a half are called.
struct Names {
    kernels: [&'static str; 3],
    batches: &'static str,
    arrays: [&'static str; 5],
}

const X: Names = Names {
    kernels: ["x-right", "x-hermitian", "x-solve"],
    batches: "x_batches",
    arrays: ["item_first", "item_users", "item_values", "y_theta", "tt"],
};
const THETA: Names = Names {
    kernels: ["theta-right", "theta-hermitian", "theta-solve"],
    batches: "theta_batches",
    arrays: ["user_first", "user_items", "user_values", "y_x", "xx"],
};

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let scaled = |name| request.scale.of(request.values.count(name));
    let (items, users, ratings) = (scaled("items").max(2), scaled("users").max(2), scaled("ratings"));
    let most = request.fit_most("ratings", ratings, items * users / 2);
    let sizes = Sizes { items, users, ratings: request.fit_least("ratings", most, users) };
    let features = request.fit_multiple("features", request.values.count("features"), TILE as u64);
    check_indices(name, sizes.ratings, "ratings")?;
    check_indices(name, items.max(users) * features, "factors")?;
    let x = memory.array("x", items * features, Scaling::Scales);
    let theta = memory.array("theta", users * features, Scaling::Scales);
    let mut half = |names: &Names, count: u64, [from, to]: [Array<f32>; 2]| -> Result<Half, WorkloadError> {
        let batches = request.values.count(names.batches);
        let slots = count.div_ceil(batches);
        check_indices(name, slots * features * features, "elements of left-hand sides")?;
        let [first, other, value, right, hermitian] = names.arrays;
        Ok(Half {
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
            rows: Cut::groups(count, batches, request.gpus()).tiles(1, 1),
            slots: Cut::even(slots, request.gpus()).tiles(1, 1),
        })
    };
    Ok(Box::new(Solver {
        x: half(&X, items, [theta, x])?,
        theta: half(&THETA, users, [x, theta])?,
        sizes,
        features: features as i32,
        iterations: request.values.count("iterations"),
        seed: request.seed,
        ratings: OnceLock::new(),
    }))
}

impl Half {
    /// The row of a slot in a batch: the last slot may have none.
    fn row(&self, slot: u64, batch: u64) -> Option<i32> {
        let row = slot * self.batches + batch;
        (row < self.count).then_some(row as i32)
    }

    /// The ratings of a row, which every warp looks up.
    fn bounds(&self, cta: &mut Cta<'_>, row: i32) -> Range<i32> {
        let mut bounds = 0..0;
        cta.each_warp(|warp| {
            let ends = (warp.load(self.first, Lanes::all(row)), warp.load(self.first, Lanes::all(row + 1)));
            let (first, end) = warp.compute(ComputeClass::Int, 2, ends);
            bounds = first.lane(0)..end.lane(0);
        });
        bounds
    }

    fn fill(&self, memory: &Memory, rows: &Rows) {
        memory.fill(self.first, |row| rows.first[row as usize]);
        memory.fill(self.other, |rating| rows.other[rating as usize]);
        memory.fill(self.value, |rating| rows.value[rating as usize]);
    }
}

impl Solver {
    fn ratings(&self) -> &Ratings {
        self.ratings.get_or_init(|| Ratings::new(self.sizes, self.seed))
    }

    /// A factor of a user at the start.
    fn start(&self, index: u64) -> f32 {
        LARGEST * (noise::below(self.seed ^ 3, index, STEPS) as f32 / STEPS as f32)
    }

    fn update(&self, host: &mut Host<'_>, half: &Half) -> Result<(), RecordError> {
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

impl Instance for Solver {
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
            reference::update(by_item, features, &theta, &mut x);
            reference::update(by_user, features, &x, &mut theta);
        }
        equal("factor of items", &memory.to_vec(self.x.to), &x)?;
        equal("factor of users", &memory.to_vec(self.theta.to), &theta)
    }
}
