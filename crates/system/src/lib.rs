//! Wires a machine, a design and a recorded program into a run, and reads the result.
//!
//! - [`mod@run`]: one run. [`placement`]: which module each page is on, decided before the run and alike for
//!   every design. [`record`]: the result as scripts see it. [`energy`]: counts times energies.
//! - [`partition`]: how the machine is cut for the engine. [`sample`]: the time of a whole program from a part.
//!
//! Read [`mod@run`] next.

pub mod energy;
pub mod partition;
pub mod placement;
pub mod record;
pub mod run;
pub mod sample;

pub use placement::place;
pub use record::RunRecord;
pub use run::{Resident, RunError, RunSpec, run, run_warm};
pub use sample::{SampleInfo, project};
