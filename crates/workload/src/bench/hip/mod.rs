//! HIP programs of no larger suite: BabelStream, and AMD's HIP-Examples.

pub(super) mod babelstream;
pub(super) mod square;
