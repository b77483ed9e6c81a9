//! Wires a machine, a design and a recorded program into a run, and reads the result.
//!
//! - [`mod@run`]: one run; `fit` checks beforehand for mismatches between program, machine and design. `start`: cache
//!   contents at the start. `ended`: the run's result. [`placement`]: page homes, decided before the run and identical
//!   for every design. [`record`]: the result in the format read by scripts. [`energy`]: event counts multiplied by
//!   energies per event.
//! - [`checker`]: checks that the loads in a run return values which the memory model allows.
//! - [`partition`]: the machine's partitions for the engine. [`mod@sample`]: representative parts for each launch.
//!   [`sampling`]: the time for a whole program, estimated from some launches.
//! - [`host`]: phases in a run with a coherent host, and the fate of host memory blocks.
//! - `ways`: way partitioning in caches, configured and measured. [`timeline`]: activity per time window for links,
//!   ways and kernels. [`time`]: the run time split into kernels, copies and launches; [`iteration`]: the first
//!   iteration against the later ones. `launches`: records for each launch and each GPU.
//! - [`survey`]: one walk over a program's streams, without simulation, for several readers. [`sharing`]: remote lines
//!   that several modules in a GPU load. [`uses`]: lines that each module reads and writes, per array.
//! - [`movement`]: data movement between GPU memories: copies, pages, homes.
//! - [`labels`]: labels that describe a kernel's array accesses to the command processor; several kinds exist.
//! - [`elision`]: operations performed and elided at kernel boundaries. [`oracle`]: operations that were necessary.
//! - `schedule`: actions that a sharing policy adds around a program's commands. `subscribed`: subscriptions made by
//!   hand. [`paging`], [`publication`]: their costs.
//! - [`directed`]: a language for small programs with a result predicted in closed form.
//!
//! Not in this crate: hardware behaviour (crate `model`) and many runs side by side (crate `experiment`).
//!
//! Read [`mod@run`] next.

pub mod arrays;
mod broken_rules;
pub mod checker;
mod counters;
mod cut;
pub mod directed;
pub mod elision;
mod ended;
pub mod energy;
mod fit;
mod hints;
pub mod host;
pub mod iteration;
pub mod labels;
pub mod latency;
mod launches;
mod links;
pub mod movement;
pub mod observer;
pub mod oracle;
pub mod paging;
pub mod partition;
pub mod placement;
pub mod publication;
pub mod record;
pub mod run;
pub mod sample;
pub mod sampling;
mod schedule;
pub mod sharing;
pub mod simulation;
pub mod stalls;
mod start;
mod subscribed;
pub mod survey;
pub mod time;
pub mod timeline;

pub mod uses;
pub mod utilization;
mod version_probe;
mod ways;

pub use broken_rules::BrokenRules;
pub use observer::{Observer, SharedObserver};
pub use placement::place;
pub use record::RunRecord;
pub use run::{ResidentLines, RunError, RunSpec};
pub use sample::sample;
pub use sampling::{KernelDemands, SamplingRecord, TimeEstimate, run_sampled, sampling_refusal};
pub use simulation::{Observed, Simulation, run, run_checked, run_watched};
pub use time::{TimeChoice, TimeRecord};
pub use tombolo_engine::ThreadPool;
pub use tombolo_workload::record::Projection;
