//! Samples of the AMD APP SDK 2.5 that the UMH paper's Table I runs: one file each.
//!
//! Host buffers apart from a device's are not arrays: a copy stands for what moves between them.

pub(super) mod blackscholes;
pub(super) mod dct;
pub(super) mod dwthaar1d;
pub(super) mod histogram;
#[cfg(test)]
mod identities;
pub(super) mod matrixtranspose;
pub(super) mod mersennetwister;
mod square;
mod work;
