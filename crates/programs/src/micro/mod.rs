//! Micro-benchmarks: kernels that expose a single property of the memory system, with a file per kernel.

pub(super) mod bandwidth;
pub(super) mod chase;
pub(super) mod stencil2d;
pub(super) mod triad;
