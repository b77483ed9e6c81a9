//! The kernel language: arrays that really change, CTAs of warps, values of one element a lane.
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
//! A load does not block: its value carries a token, and arithmetic unites tokens. The framework records
//! the wait where the value is first needed: as an index, as a stored value, as a condition, or by
//! [`Warp::compute`], which also says how many instructions the arithmetic costs. These are one chain, each the result of the
//! one before, unless [`Warp::compute_wide`] says otherwise. Chains of different values run side by side.
//!
//! Elements have 1, 4 or 8 bytes. A stream names bytes by a [`Mask`](tombolo_types::Mask) of 32 grains a line, and a grain of
//! a 128-byte line has four. A store of bytes that together fill their grains is one. A store that leaves part of a grain as it
//! was is performed at the grain's system home, like an atomic whose result nobody reads, so that nothing beside it is lost.
//!
//! Not modelled: instruction fetch, registers, divergence beyond the mask of active lanes (both sides of a
//! branch run one after the other and meet again at its end).
//!
//! Read [`memory`](Memory) first, then [`Lanes`], [`Warp`] and [`Cta`].

mod access;
mod atomic;
mod coalesce;
mod cooperative;
mod cta;
mod deps;
mod fault;
mod host_watch;
mod lanes;
mod launch;
mod memory;
mod shadow;
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
pub(crate) use launch::{Discipline, Launch};
pub(crate) use shadow::Shadow;

#[cfg(test)]
mod tests;
