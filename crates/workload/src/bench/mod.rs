//! The benchmarks: a folder a suite, a file each, one line in the table.

mod benchmark;
mod cells;
mod grid_barrier;
mod hpc;
mod lonestar;
mod mgpusim;
mod micro;
mod networks;
mod numbering;
mod other;
mod reference;
mod rodinia;
mod run;
mod scope;
mod table;
mod workload;

pub use run::{Mode, footprint, plan, record};
pub use table::{aliases, find, list, names, suite};
pub use workload::{Instance, Request, Workload, WorkloadError};

#[cfg(test)]
mod pinned;
#[cfg(test)]
mod rounding;
#[cfg(test)]
mod table2;
#[cfg(test)]
mod tests;
