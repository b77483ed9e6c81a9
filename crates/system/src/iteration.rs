//! The first iteration of a program and those behind it, for programs whose first one pays for all: pages move, subscriptions
//! are tracked, caches are cold. Where it ends [`crate::movement`] finds in the streams.

use crate::record::RunRecord;
use serde::{Deserialize, Serialize};
use tombolo_types::stream::{Command, Program};

/// The region of interest in two parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IterationRecord {
    /// Launches of the first iteration.
    pub launches: u32,
    /// Launches of the program.
    pub of: u32,
    /// From the first kernel's opening to that of the first launch behind the first iteration.
    pub first_s: f64,
    /// The rest of the region.
    pub steady_s: f64,
}

impl IterationRecord {
    /// That of a run of `program` whose first iteration ends with command `last`; `None` where nothing comes behind.
    pub(crate) fn new(program: &dyn Program, last: usize, record: &RunRecord) -> Option<IterationRecord> {
        let is_launch = |command: &&Command| matches!(command, Command::Launch { .. });
        let launches = program.commands()[..=last].iter().filter(is_launch).count();
        let (first, next) = (record.kernels.first()?, record.kernels.get(launches)?);
        let first_s = next.start_s - first.start_s;
        let of = record.kernels.len() as u32;
        Some(IterationRecord { launches: launches as u32, of, first_s, steady_s: record.time.region_s - first_s })
    }
}
