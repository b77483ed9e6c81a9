//! The benchmarks: a folder per suite, a file per benchmark, and a line each in the table.

mod amdapp;
mod benchmark;
mod cell_grid;
mod grid_barrier;
mod hip;
mod hpc;
mod lonestar;
mod mgpusim;
mod micro;
mod multigpu;
mod networks;
mod numbering;
mod other;
mod pannotia;
mod reference;
mod rodinia;
mod run;
mod scope;
mod table;
#[cfg(test)]
mod template;
mod workload;

pub use benchmark::{Benchmark, LayOut, compare, require};
pub use run::{Mode, footprint, layout, plan, record};
pub use table::{REGISTERED, aliases, all, find, list, names, register, suite};
pub use workload::{Instance, Request, Workload, WorkloadError};

/// Source text of a starting point for new workloads, named `template`; a test runs it.
pub const TEMPLATE: &str = include_str!("template.rs");

#[cfg(test)]
mod host_ends;
#[cfg(test)]
mod launches;
#[cfg(test)]
mod pinned;
#[cfg(test)]
mod rounding;
#[cfg(test)]
mod small;
#[cfg(test)]
mod table2;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod variants;
