//! HIP programs outside the larger suites: BabelStream, AMD's HIP-Examples, and samples.

pub(super) mod babelstream;
pub(super) mod square;
pub(super) mod streams;
