//! Splits a run into its first iteration and the later ones. In some programs the first iteration bears most overheads:
//! pages move, subscriptions are tracked, caches are cold. [`crate::movement`] finds the end of the first iteration in
//! the streams.

use crate::record::RunRecord;
use serde::{Deserialize, Serialize};
use tombolo_types::stream::{Command, Program};

/// The region of interest, split into two parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IterationRecord {
    /// Launches in the first iteration.
    pub launches: u32,
    /// Launches in the program.
    pub of: u32,
    /// Seconds from the first kernel's start to the start of the first launch after the first iteration.
    pub first_s: f64,
    /// Seconds in the rest of the region.
    pub steady_s: f64,
}

impl IterationRecord {
    /// Record for a run of `program` whose first iteration ends with command `last`; `None` if no launch follows.
    pub(crate) fn new(program: &dyn Program, last: usize, record: &RunRecord) -> Option<IterationRecord> {
        let is_launch = |command: &&Command| matches!(command, Command::Launch { .. });
        let launches = program.commands()[..=last].iter().filter(is_launch).count();
        let (first, next) = (record.kernels.first()?, record.kernels.get(launches)?);
        let first_s = next.start_s - first.start_s;
        let of = record.kernels.len() as u32;
        Some(IterationRecord { launches: launches as u32, of, first_s, steady_s: record.time.region_s - first_s })
    }
}
