//! HIP programs of no larger suite: BabelStream, AMD's HIP-Examples, and samples.

pub(super) mod babelstream;
pub(super) mod square;
pub(super) mod streams;
