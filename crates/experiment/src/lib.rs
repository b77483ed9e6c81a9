//! Experiments as data.
//!
//! An experiment is a TOML file: machines × designs × workloads × swept values, what is measured and how it is
//! normalised, how it is drawn, what the paper states, and what is claimed. [`spec`] is the form of the file,
//! `schema/experiment.json` the same for editors, `presets` the experiments that ship: a figure or a claim is added
//! there without touching Rust.
//!
//! ```
//! use tombolo_experiment::{Plan, ScaleChoice, reader::File};
//! let text = r#"
//! id = "links"
//! title = "HMG and NHCC over the bandwidth between GPUs"
//! caption = "Speed-up over no remote caching with the links of Table II."
//! machines = ["hmg-4x4"]
//! designs = ["nhcc", "hmg"]
//! workloads = ["pathfinder", "bfs"]
//! scale = "1/16"
//! rows = "step"
//! columns = "design"
//! mean = "geometric"
//! metric = [{ name = "speed-up", value = ["time_s"], relative = "speed-up", to = { design = "no-remote-caching", step = "none" } }]
//! chart = { kind = "lines", x = "bandwidth", y = "speed-up" }
//!
//! [[axis]]
//! name = "bandwidth"
//! step = [
//!     { label = "100 GB/s", set = ["gpu_link.rate=100GB/s"] },
//!     { label = "400 GB/s", set = ["gpu_link.rate=400GB/s"] },
//! ]
//!
//! [[claim]]
//! id = "links-help"
//! kind = "direction"
//! text = "HMG gains from faster links"
//! of = [{ row = "last", columns = ["hmg"] }]
//! to = [{ row = "first", columns = ["hmg"] }]
//! above = 1.0
//! "#;
//! let file = File { name: "links.toml".into(), text: text.into() };
//! let spec = file.read()?;
//! Plan::new(file, spec, ScaleChoice::Quick)?;
//! # Ok::<(), tombolo_experiment::SpecError>(())
//! ```
//!
//! - [`reader`] and [`plan`]: from a file to checked points. `grid`: which points a figure needs, and their numbers.
//! - [`point`]: what decides a result, and the key it is kept under. [`store`]: the folder of finished results.
//! - [`campaign`]: the one runner of `compare`, `sweep` and `reproduce`. [`workload`]: programs by name, and traces; `words`:
//!   how they are written.
//! - [`ask`]: what a command line asks, as such a file.
//! - [`readings`]: which claims are of a paper's default reading, and sets of settings for the others.
//! - `layout`: rows, columns and panels, and what a file leaves to be understood.
//! - `figure`, `claim`, `repeat`: rows and columns, verdicts, repetitions. `left_out`: what means leave out. `compared`:
//!   which time of runs. [`mechanism`]: directed programs.
//! - [`explain`]: why designs differ, by class of warp-slot cycles. `stacks`: the same under figures and of claims.
//! - `evidence`: runs, ranges and remarks behind the numbers of a figure.
//! - [`study`]: several experiments into one document; `export`: tidy tables, CSV and Parquet; `launches`: kernels
//!   of a kept result; [`slurm`]: a script for clusters;
//!   [`shell`]: words of a command line.
//!
//! Not here: how a document is drawn (crate `report`), and what a point does (crate `system`).
//!
//! Read [`spec`] next, then [`study`].

pub mod ask;
pub mod campaign;
mod claim;
mod clock;
mod compared;
mod configuration;
pub mod error;
mod evidence;
pub mod explain;
mod export;
mod figure;
mod grid;
mod hardware;
mod launches;
mod layout;
mod left_out;
pub mod mechanism;
pub mod plan;
pub mod point;
mod point_result;
pub mod preset;
pub mod reader;
pub mod readings;
mod repeat;
mod sampling;
pub mod scales;
pub mod shell;
pub mod slurm;
pub mod spec;
mod stacks;
pub mod store;
pub mod study;
mod systems;
mod words;
pub mod workload;

pub use ask::Ask;
pub use error::{PointError, SpecError, StoreError};
pub use plan::{Plan, ScaleChoice};
pub use point::{MODEL_VERSION, Point};
pub use point_result::{Counter, Pass, PointResult};
pub use sampling::SAMPLES;
pub use store::Store;
pub use study::{Finished, Options, Shard, Study, StudyError};
