//! What a benchmark is: its declaration, a request for an instance of it, and what is done with an instance.

mod benchmark;
mod declaration;
mod field;
mod run;
mod workload;

pub use benchmark::{ADDRESS, Benchmark, DIVISION, LayOut, Properties, compare, each_active, map_active, require};
pub use field::FieldValue;
pub use run::{Mode, footprint, layout, plan, record};
pub use workload::{Instance, Request, Workload, WorkloadError, check_indices};
