//! Kernels that show a single property of a memory system: a file per kernel.

pub(super) mod bandwidth;
pub(super) mod chase;
pub(super) mod stencil2d;
pub(super) mod triad;
