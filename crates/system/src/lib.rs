//! Wires a machine, a design and a recorded program into a run, and reads the result.
//!
//! - [`mod@run`]: one run. [`placement`]: which module each page is on, decided before the run and alike for
//!   every design. [`record`]: the result as scripts see it. [`energy`]: counts times energies.
//! - [`checker`]: whether the loads of a run return what the memory model allows.
//! - [`partition`]: how the machine is cut for the engine. [`mod@sample`]: the time of a whole program from a part.
//! - `ways`: how ways of caches are shared, as asked and as it came. [`timeline`]: what links, ways and kernels did
//!   over time. [`time`]: kernels, copies and launches told apart. `launches`: each launch and each GPU.
//! - [`sharing`]: what the modules of a GPU load from other GPUs in common, without simulating.
//! - [`directed`]: a language for small programs whose outcome is predicted in closed form.
//!
//! Not here: what any piece of hardware does (crate `model`), many runs side by side (crate `experiment`).
//!
//! Read [`mod@run`] next.

pub mod checker;
pub mod directed;
pub mod energy;
mod launches;
mod links;
pub mod partition;
pub mod placement;
pub mod record;
pub mod run;
pub mod sample;
pub mod sharing;
pub mod time;
pub mod timeline;
mod ways;

pub use placement::place;
pub use record::RunRecord;
pub use run::{Resident, RunError, RunSpec, run, run_checked, run_timed, run_warm, run_watched};
pub use sample::{SampleInfo, project, sample};
pub use time::{TimeChoice, TimeRecord};
pub use tombolo_workload::record::Projection;
