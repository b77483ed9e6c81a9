//! Recording: a host program launches every kernel once, and the resulting instruction streams are kept compressed.
//!
//! Read [`Host`] first, then [`Recording`] for replay. `block` batches, compresses and spills CTAs to disk, `room`
//! limits host memory, and `sample` selects parts of a program that represent the whole.

mod block;
mod error;
mod host;
mod recording;
mod room;
mod sample;
mod work;

pub use error::RecordError;
pub use host::{Host, RecordOptions};
pub use recording::Recording;
pub(crate) use room::{Room, mebibytes};
pub(crate) use sample::Picked;
pub use sample::{AtOnce, Counts, Part, Projection, Sample, Spent, Trips};
