//! Splits a run into its first iteration and the later ones. In some programs the first iteration bears most overheads:
//! pages move, subscriptions are tracked, caches are cold. [`crate::movement`] finds the launches of the iterations in the
//! streams.

use crate::movement::IterationLaunches;
use crate::record::RunRecord;
pub use tombolo_metrics::IterationRecord;

/// Record for a run with these iterations; `None` if no launch follows the first iteration.
pub(crate) fn iteration(iterations: IterationLaunches, record: &RunRecord) -> Option<IterationRecord> {
    let starts: Vec<f64> = record.kernels.iter().map(|kernel| kernel.start_s).collect();
    split(iterations, &starts, record.time.region_s)
}

/// `starts`: of each launch, in seconds. `region_s`: from the first start to the end of the run.
fn split(iterations: IterationLaunches, starts: &[f64], region_s: f64) -> Option<IterationRecord> {
    let IterationLaunches { each, .. } = iterations;
    let launches = iterations.first();
    let (first, next) = (starts.first()?, starts.get(launches)?);
    let opening = |launch: usize| starts.get(launch).copied().unwrap_or(first + region_s);
    let first_s = next - first;
    let later = (starts.len() - launches) / each;
    // A program may end within an iteration.
    let last_ends = launches + later * each;
    let last_s = if later == 0 { 0.0 } else { opening(last_ends) - opening(last_ends - each) };
    Some(IterationRecord {
        launches: launches as u32,
        of: starts.len() as u32,
        later: later as u32,
        first_s,
        steady_s: region_s - first_s,
        last_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Iterations of two launches behind one launch, which started at `starts`, until 100 s.
    fn of(starts: &[f64]) -> Option<IterationRecord> {
        split(IterationLaunches { before: 1, each: 2 }, starts, 100.0 - starts[0])
    }

    #[test]
    fn the_last_iteration_is_the_last_whole_one() {
        let whole = of(&[1.0, 10.0, 20.0, 40.0, 50.0, 70.0, 80.0]).expect("two iterations follow the first");
        assert_eq!((whole.launches, whole.of, whole.later), (3, 7, 2));
        assert_eq!((whole.first_s, whole.steady_s, whole.last_s), (39.0, 60.0, 30.0), "the last ends with the run");
        let cut = of(&[1.0, 10.0, 20.0, 40.0, 50.0, 70.0]).expect("one and a half follow");
        assert_eq!((cut.later, cut.last_s), (1, 30.0), "it ends where the unfinished one begins");
    }

    #[test]
    fn an_iteration_that_is_not_whole_is_no_last_one() {
        let part = of(&[1.0, 10.0, 20.0, 40.0]).expect("half an iteration follows the first");
        assert_eq!((part.later, part.last_s, part.first_s), (0, 0.0, 39.0));
        assert_eq!(of(&[1.0, 10.0, 20.0]), None, "nothing follows the first");
    }
}
