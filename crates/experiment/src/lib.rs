//! Experiments as data.
//!
//! An experiment is a TOML file with machines × designs × workloads × swept values. The file also holds the metrics and
//! their normalisation, the chart, the paper's published values, and the claims. [`spec`] defines the file format,
//! `schema/experiment.json` is the format for editors, and `presets` holds the experiments shipped with the program. A
//! new figure or claim needs no Rust code.
//!
//! ```
//! use tombolo_experiment::{ExperimentPlan, ScaleChoice, reader::File};
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
//! ExperimentPlan::new(file, spec, ScaleChoice::Quick)?;
//! # Ok::<(), tombolo_experiment::SpecError>(())
//! ```
//!
//! - [`reader`] and [`plan`]: from a file to checked points. `grid`: the points needed by a figure, and their numbers.
//! - [`point`]: inputs that decide a result, and the key used to store the result. [`store`]: the folder with finished
//!   results.
//! - [`campaign`]: the common runner for `compare`, `sweep` and `reproduce`. [`workload`]: programs by name, and
//!   traces; `word_list`: their spelling.
//! - [`request`]: an experiment file built from command-line arguments.
//! - [`readings`]: claims that belong to a paper's default reading, and sets of settings for alternative readings.
//! - `layout`: rows, columns and panels, and defaults for absent keys.
//! - `figure`, `claim`, `repeat`: rows and columns, verdicts, repetitions. `exclusion`: workloads left out from means.
//!   `compared_time`: the run time to compare. [`mechanism`]: directed programs.
//! - [`explain`]: reasons for differences between designs, by class of warp-slot cycles. `stacks`: such differences
//!   under figures and for claims.
//! - `evidence`: runs, ranges and remarks behind the numbers in a figure.
//! - [`study`]: several experiments combined into a document; `export`: tidy tables, CSV and Parquet; `launches`:
//!   kernels in a stored result; [`slurm`]: a script for clusters; [`shell`]: quoting for command lines.
//!
//! Not in this crate: drawing documents (crate `report`), and simulating a point (crate `system`).
//!
//! Read [`spec`] next, then [`study`].

pub mod campaign;
mod claim;
mod clock;
mod compared_time;
mod configuration;
pub mod error;
mod evidence;
mod exclusion;
pub mod explain;
mod export;
mod figure;
mod grid;
mod hardware;
mod launches;
mod layout;
pub mod mechanism;
pub mod plan;
pub mod point;
mod point_result;
pub mod preset;
#[cfg(test)]
mod ratios;
pub mod reader;
pub mod readings;
mod repeat;
pub mod request;
mod sampling;
pub mod scales;
pub mod shell;
pub mod slurm;
pub mod spec;
mod stacks;
pub mod store;
pub mod study;
mod systems;
mod word_list;
pub mod workload;

pub use error::{PointError, SpecError, StoreError};
pub use plan::{ExperimentPlan, ScaleChoice};
pub use point::{MODEL_VERSION, Point};
pub use point_result::{Counter, Pass, PointResult};
pub use request::ExperimentRequest;
pub use sampling::SAMPLES;
pub use store::Store;
pub use study::{Shard, Study, StudyError, StudyOptions, StudyOutcome};
