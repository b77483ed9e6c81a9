//! Splits a run into its first iteration and the later ones. In some programs the first iteration bears most overheads:
//! pages move, subscriptions are tracked, caches are cold. [`crate::movement`] finds the end of the first iteration in
//! the streams.

use crate::record::RunRecord;
pub use tombolo_metrics::IterationRecord;
use tombolo_types::stream::{Command, Program};

/// Record for a run of `program` whose first iteration ends with command `last`; `None` if no launch follows.
pub(crate) fn iteration(program: &dyn Program, last: usize, record: &RunRecord) -> Option<IterationRecord> {
    let is_launch = |command: &&Command| matches!(command, Command::Launch { .. });
    let launches = program.commands()[..=last].iter().filter(is_launch).count();
    let (first, next) = (record.kernels.first()?, record.kernels.get(launches)?);
    let first_s = next.start_s - first.start_s;
    let of = record.kernels.len() as u32;
    Some(IterationRecord { launches: launches as u32, of, first_s, steady_s: record.time.region_s - first_s })
}
