//! What is done around a program's commands, by the way in which a design shares memory between GPUs.

use crate::movement::Movement as Moved;
use crate::run::RunSpec;
use std::sync::Arc;
use tombolo_design::placement::{Copied, Movement, Sharing};
use tombolo_model::schedule::Schedule;
use tombolo_types::stream::StreamError;

/// A schedule, and what is to be said of it.
pub(crate) struct Scheduled {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) notes: Vec<String>,
}

/// What a design puts around the commands of a program.
///
/// # Errors
/// The recording is damaged.
pub(crate) fn scheduled(spec: &RunSpec, sharing: &Sharing) -> Result<Scheduled, StreamError> {
    let (machine, program) = (&spec.machine, &*spec.program);
    let modules = machine.topology.modules() as u8;
    let find =
        || Moved::find(program, spec.design.scheduling.cut(), modules, machine.page_bytes / machine.line.bytes());
    let (schedule, notes) = match sharing.movement {
        Movement::Placed
        | Movement::Faults
        | Movement::Hints { prefetch: false }
        | Movement::Copies(Copied::Nothing) => (Schedule::default(), Vec::new()),
        Movement::Hints { prefetch: true } => (find()?.hints(program).0, Vec::new()),
        Movement::Copies(copied @ (Copied::Hull | Copied::Needed)) => find()?.copies(program, copied),
        Movement::LatestWriter => (find()?.latest_writers(program).0, Vec::new()),
    };
    Ok(Scheduled { schedule: Arc::new(schedule), notes })
}
