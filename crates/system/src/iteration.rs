//! Splits a run into its first iteration and the later ones. In some programs the first iteration bears most overheads:
//! pages move, subscriptions are tracked, caches are cold. [`crate::movement`] finds the launches of the iterations in the
//! streams.

use crate::movement::IterationLaunches;
use crate::record::RunRecord;
pub use tombolo_metrics::IterationRecord;

/// Record for a run with these launches per iteration; `None` if no launch follows the first iteration.
pub(crate) fn iteration(launches: IterationLaunches, record: &RunRecord) -> Option<IterationRecord> {
    let IterationLaunches { first: launches, each } = launches;
    let kernels = &record.kernels;
    let (first, next) = (kernels.first()?, kernels.get(launches)?);
    let end_s = first.start_s + record.time.region_s;
    let opening = |launch: usize| kernels.get(launch).map_or(end_s, |kernel| kernel.start_s);
    let first_s = next.start_s - first.start_s;
    let later = (kernels.len() - launches) / each;
    // A program may end within an iteration.
    let last_ends = launches + later * each;
    let last_s = if later == 0 { 0.0 } else { opening(last_ends) - opening(last_ends - each) };
    Some(IterationRecord {
        launches: launches as u32,
        of: kernels.len() as u32,
        later: later as u32,
        first_s,
        steady_s: record.time.region_s - first_s,
        last_s,
    })
}
