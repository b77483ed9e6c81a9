//! Compares simulated with measured kernel times.
//!
//! - [`measured`]: tables of measured times, including the shipped tables. [`suite`]: the program behind each benchmark
//!   in such a table: its workload, and the host's additional work. [`estimate`]: estimates the time for this program on
//!   a machine, from a sample if a complete run would be too long. [`errors`]: statistics over the deviations.
//! - [`probe`]: latencies and bandwidths of NVIDIA's GPUs, compared with published values. [`peer`]: probes for a peer
//!   GPU's memory. [`pattern`]: costs of divergent lanes. [`scattered`]: random and strided reads.
//!
//! Not modelled: varying clocks, other work on the machine, the host's own time beyond fixed costs.
//!
//! Read [`suite`] next.

pub mod errors;
pub mod estimate;
pub mod measured;
pub mod pattern;
pub mod peer;
pub mod probe;
pub mod scattered;
pub mod suite;

pub use errors::{Summary, TimeComparison};
pub use estimate::{EstimateError, Estimator, SEED};
pub use measured::{MeasuredError, Measurement, read, shipped};
pub use suite::Case;
