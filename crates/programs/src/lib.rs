//! The programs that ship: a folder per suite, a file per program, and a line each in the table.
//!
//! Their language is [`tombolo_workload`]. [`find`] finds a program by its name; [`register`] adds one of a user's crate.
//! Pathfinder is a good first program to read.

mod amdapp;
mod cell_grid;
mod collectives;
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
mod prelude;
mod reference;
mod rodinia;
mod scope;
mod table;
#[cfg(test)]
mod template;

pub use table::{REGISTERED, aliases, all, find, list, names, register, suite};

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
