//! Wires a machine, a design and a recorded program into a run, and reads the result.
//!
//! - [`mod@run`]: one run; `fit`: whether it can be. `start`: what caches hold as it begins. `ended`: its result. [`placement`]: which module each page is on, decided before the run and alike for
//!   every design. [`record`]: the result as scripts see it. [`energy`]: counts times energies.
//! - [`checker`]: whether the loads of a run return what the memory model allows.
//! - [`partition`]: how the machine is cut for the engine. [`mod@sample`]: which parts of launches stand for all.
//!   [`sampling`]: the time of a whole program from some of its launches.
//! - [`host`]: what a run with a host that takes part spent where, and what became of blocks of its memory.
//! - `ways`: how ways of caches are shared, as asked and as it came. [`timeline`]: what links, ways and kernels did
//!   over time. [`time`]: kernels, copies and launches told apart; [`iteration`]: the first iteration and the others. `launches`: each launch and each GPU.
//! - [`survey`]: one walk over a program's streams, without simulating, for many readers. [`sharing`]: what the modules
//!   of a GPU load from other GPUs in common. [`uses`]: which lines of which array each module reads and writes.
//! - [`movement`]: what moves between the memories of GPUs: copies, pages, homes.
//! - [`labels`]: what a program tells a command processor of that, by one of several kinds of label.
//! - [`elision`]: what was done and elided at kernel boundaries. [`oracle`]: what was needed.
//! - `schedule`: what a way to share memory puts around a program's commands. `subscribed`: who subscribes by
//!   hand. [`paging`], [`publication`]: what it took.
//! - [`directed`]: a language for small programs whose outcome is predicted in closed form.
//!
//! Not here: what any piece of hardware does (crate `model`), many runs side by side (crate `experiment`).
//!
//! Read [`mod@run`] next.

pub mod arrays;
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
pub mod stalls;
mod start;
mod subscribed;
pub mod survey;
pub mod time;
pub mod timeline;

pub mod uses;
pub mod utilization;
mod ways;

pub use placement::place;
pub use record::RunRecord;
pub use run::{
    Broken, Resident, RunError, RunSpec, run, run_beside, run_checked, run_followed, run_logged, run_timed, run_warm,
    run_watched,
};
pub use sample::sample;
pub use sampling::{Demands, SamplingRecord, Told, refusal, run_sampled};
pub use time::{TimeChoice, TimeRecord};
pub use tombolo_engine::Spare;
pub use tombolo_workload::record::Projection;
