//! Experiments as data.
//!
//! An experiment is a TOML file: machines × designs × workloads × swept values, what is measured and how it is
//! normalised, how it is drawn, what the paper states, and what is claimed. [`spec`] is the form of the file,
//! `schema/experiment.json` the same for editors, `presets` the experiments that ship: a figure or a claim is added
//! there without touching Rust.
//!
//! - [`reader`] and [`plan`]: from a file to checked points. `grid`: which points a figure needs, and their numbers.
//! - [`point`]: what decides a result, and the key it is kept under. [`store`]: the folder of finished results.
//! - [`campaign`]: the one runner of `compare`, `sweep` and `reproduce`. [`workload`]: programs by name.
//! - `figure`, `claim`, `repeat`: rows and columns, verdicts, repetitions. [`mechanism`]: directed programs.
//! - [`study`]: several experiments into one document; `export`: CSV and Parquet; [`slurm`]: a script for clusters.
//!
//! Not here: how a document is drawn (crate `report`), and what a point does (crate `system`).
//!
//! Read [`spec`] next, then [`study`].

pub mod campaign;
mod claim;
mod configuration;
pub mod error;
mod export;
mod figure;
mod grid;
mod hardware;
pub mod mechanism;
mod outcome;
pub mod plan;
pub mod point;
pub mod preset;
pub mod reader;
mod repeat;
pub mod slurm;
pub mod spec;
pub mod store;
pub mod study;
pub mod workload;

pub use error::{PointError, SpecError, StoreError};
pub use outcome::{Counter, Outcome, Pass};
pub use plan::{Plan, ScaleChoice};
pub use point::{MODEL_VERSION, Point};
pub use store::Store;
pub use study::{Options, Shard, Study, StudyError};
