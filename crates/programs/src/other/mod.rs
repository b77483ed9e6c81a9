//! Programs outside any suite: a file for each.

pub(super) mod bitcoin;
pub(super) mod raytracing;
