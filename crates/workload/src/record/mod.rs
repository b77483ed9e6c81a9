//! Recording: a host program launches kernels once, and its streams are kept compressed.
//!
//! Read [`Host`] first, then [`Recording`], which replays; `block` holds how CTAs are batched, compressed
//! and spilled to disk.

mod block;
mod error;
mod host;
mod recording;

pub use error::RecordError;
pub use host::{Host, RecordOptions};
pub use recording::Recording;
