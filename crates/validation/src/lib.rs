//! Compares simulated with measured kernel times.
//!
//! - [`measured`]: tables of measured times, among them those that ship. [`suite`]: what each benchmark of such a
//!   table runs: which workload, and what the host does besides. [`estimate`]: the time of that on a machine, of a
//!   part where all of it would be too much. [`errors`]: how far the two are apart.
//! - [`probe`]: latencies and bandwidths of NVIDIA's GPUs beside published ones. [`peer`]: those of another GPU's memory.
//!   [`pattern`]: what lanes that diverge take.
//!
//! Not modelled: clocks that change, other work on the machine, the host's own time beyond fixed costs.
//!
//! Read [`suite`] next.

pub mod errors;
pub mod estimate;
pub mod measured;
pub mod pattern;
pub mod peer;
pub mod probe;
pub mod suite;

pub use errors::{Row, Summary};
pub use estimate::{EstimateError, Estimator, SEED};
pub use measured::{MeasuredError, Measurement, read, shipped};
pub use suite::Case;
