//! Samples from the AMD APP SDK 2.5 as used in UMH, at the sizes in UMH's Table I: a file per sample.
//!
//! Host buffers separate from device buffers are not arrays: a copy represents the transfer between both.

pub(super) mod blackscholes;
pub(super) mod dct;
pub(super) mod dwthaar1d;
pub(super) mod floydwarshall;
pub(super) mod histogram;
#[cfg(test)]
mod identities;
pub(crate) mod instruction_counts;
#[cfg(test)]
mod launches;
pub(super) mod matrixmultiplication;
pub(super) mod matrixtranspose;
pub(super) mod mersennetwister;
pub(super) mod radixsort;
pub(super) mod reduction;
pub(super) mod scanlargearrays;
pub(super) mod simpleconvolution;
pub(super) mod sobelfilter;
mod square_grid;
