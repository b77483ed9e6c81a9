//! Kernels that show one property of a memory system: one file each.

pub(super) mod bandwidth;
pub(super) mod chase;
pub(super) mod stencil2d;
pub(super) mod triad;
