//! The kernel language: arrays that really change, CTAs with warps, and values with an element per lane.
//!
//! ```
//! use tombolo_workload::simt::{Array, ComputeClass, Cta};
//!
//! /// a[i] = b[i] + s * c[i], one element a thread.
//! fn triad(cta: &mut Cta<'_>, a: Array<f64>, b: Array<f64>, c: Array<f64>, s: f64) {
//!     cta.each_warp(|warp| {
//!         let i = warp.global_thread();
//!         let sum = warp.load(b, i) + warp.load(c, i) * s;
//!         let sum = warp.compute(ComputeClass::Fp64, 1, sum);
//!         warp.store(a, i, sum);
//!     });
//! }
//! ```
//!
//! A load does not block: its value carries a token, and arithmetic unites tokens. The framework records the wait at
//! the first use of the value: an index, a stored value, a condition, or an operand of [`Warp::compute`], which also
//! states the arithmetic instruction count. By default the instructions form a chain, each dependent on the preceding
//! instruction; [`Warp::compute_wide`] sets other widths. Chains for different values run concurrently.
//!
//! Elements have 1, 4 or 8 bytes. A stream describes bytes by a [`Mask`](tombolo_types::Mask) with 32 grains per line;
//! a grain in a 128-byte line has four bytes. A store that completely fills all touched grains is recorded without
//! change. A store to part of a grain is performed at the grain's system home, like an atomic with a discarded result,
//! and concurrent stores to neighbouring bytes are not lost.
//!
//! Not modelled: instruction fetch, registers, divergence beyond the mask of active lanes (both sides of a branch run
//! in sequence and reconverge at the end).
//!
//! Read [`memory`](Memory) first, then [`Lanes`], [`Warp`] and [`Cta`].

mod access;
mod atomic;
pub(crate) mod coalesce;
mod cooperative;
mod cta;
mod deps;
mod fault;
mod host_watch;
mod independence;
mod lanes;
mod launch;
pub(crate) mod memory;
mod shared;
mod warp;

pub use atomic::Reduction;
pub use cta::Cta;
pub use lanes::{Cast, Index, Lanes, MAX_LANES, Number, Value};
pub use launch::Grid;
pub use memory::{Array, Backing, Element, Integer, Memory, Scaling};
pub use shared::Shared;
pub use tombolo_types::ArrayInfo;
pub use tombolo_types::stream::ComputeClass;
pub use warp::Warp;

pub(crate) use cooperative::run_cooperative;
pub(crate) use cta::CtaRecord;
pub(crate) use fault::{Fault, guarded};
pub(crate) use independence::IndependenceChecker;
pub(crate) use launch::{Discipline, Launch};

#[cfg(test)]
mod tests;
