//! Recording: a host program launches kernels once, and its streams are kept compressed.
//!
//! Read [`Host`] first, then [`Recording`], which replays; `block` holds how CTAs are batched, compressed
//! and spilled to disk, `room` what memory there is for all that, `sample` how a part of a program stands for the whole.

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
