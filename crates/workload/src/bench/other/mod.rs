//! Programs of no suite: one file each.

pub(super) mod bitcoin;
pub(super) mod raytracing;
