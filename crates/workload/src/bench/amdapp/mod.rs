//! Samples of the AMD APP SDK 2.5 as UMH runs them, at the sizes of its Table I: one file each.

pub(super) mod floydwarshall;
#[cfg(test)]
mod identities;
pub(super) mod matrixmultiplication;
pub(super) mod radixsort;
pub(super) mod reduction;
pub(super) mod scanlargearrays;
pub(super) mod simpleconvolution;
pub(super) mod sobelfilter;
