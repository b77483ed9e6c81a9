//! Recording: a host program launches every kernel once, and the resulting instruction streams are kept compressed.
//!
//! Read [`Host`] first, then [`Recording`] for replay. `block` batches, compresses and spills CTAs to disk,
//! `memory_budget` limits host memory, `simulation_cost` sizes samples, and `sample` selects parts of a program that
//! represent the whole.

mod block;
mod error;
mod host;
mod memory_budget;
mod recording;
mod sample;
mod simulation_cost;

pub use error::RecordError;
pub use host::{Host, RecordOptions};
pub(crate) use memory_budget::{MemoryBudget, mebibytes};
pub use recording::Recording;
pub(crate) use sample::CtaSelection;
pub use sample::{LaunchDurations, LaunchWeights, Projection, ResidentCtas, Sample, TimeWeights, Trips};
