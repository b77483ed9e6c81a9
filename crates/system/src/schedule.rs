//! What is done around a program's commands, by the way in which a design shares memory between GPUs.

use std::sync::Arc;
use tombolo_design::placement::{Movement, Sharing};
use tombolo_model::schedule::Schedule;

/// The schedule of a program under a design.
pub(crate) fn schedule(sharing: &Sharing) -> Arc<Schedule> {
    Arc::new(match sharing.movement {
        Movement::Placed | Movement::Faults => Schedule::default(),
        Movement::Hints { .. } | Movement::Copies(_) | Movement::LatestWriter => Schedule::default(),
    })
}
