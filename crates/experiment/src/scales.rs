//! Finds the smallest scale with the same design comparison as the next larger scale, and thereby chooses quick scales.
//!
//! A workload runs at its smallest scale, then at twice this scale, and continues to double. The search ends when no
//! design's speed-up differs between two scales by more than a bound. Only the size of differences decides, never the
//! ranking between designs.

use crate::campaign::{Results, Watcher, run_points};
use crate::error::{PointError, SpecError, StoreError};
use crate::plan;
use crate::point::Point;
use crate::point_result::{Pass, PointResult};
use crate::store::Store;
use crate::workload::WorkloadChoice;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::{ConfigError, MachineConfig, MachineScale};
use tombolo_system::TimeChoice;

/// Parameters of a scale search.
pub struct ScaleSearch<'a> {
    /// The machine at scale 1.
    pub machine: &'a MachineConfig,
    /// Designs to compare.
    pub designs: &'a [Arc<DesignConfig>],
    /// Index of the baseline design for speed-ups.
    pub baseline: usize,
    /// Run time to compare.
    pub time: TimeChoice,
    /// Largest relative difference between agreeing speed-ups.
    pub within: f64,
    /// Limit on the core seconds for a run at the chosen scale.
    pub limit_s: f64,
    /// Limit on the core seconds for a run that only measures the error at smaller scales.
    pub compare_limit_s: f64,
    /// Maximum number of threads.
    pub threads: usize,
}

/// A workload in need of a scale.
#[derive(Clone)]
pub struct ScaleRequest {
    /// Label in reports.
    pub label: String,
    /// The workload, with its parameters.
    pub workload: Arc<WorkloadChoice>,
    /// Smallest scale to try.
    pub least: MachineScale,
}

/// Results from the runs at a scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScaleTrial {
    /// The scale.
    pub scale: String,
    /// Speed-up per design, in order: time under the baseline divided by time.
    pub speedups: Vec<f64>,
    /// Core seconds used by the longest run.
    pub seconds: f64,
    /// Difference from the next larger scale tried, if any.
    pub difference: Option<SpeedUpDifference>,
}

/// Difference between the speed-ups at a scale and at the next larger scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpeedUpDifference {
    /// Largest relative difference over all designs, as a share of the larger scale's speed-up.
    pub share: f64,
    /// Design with the largest difference.
    pub design: String,
}

/// Reason for not choosing a larger scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum StopReason {
    /// Speed-ups at the chosen scale agree with the next larger scale.
    #[serde(rename = "alike")]
    Alike,
    /// No larger scale exists: the chosen scale is 1.
    #[serde(rename = "whole")]
    Whole,
    /// Runs at the next scale exceed the time limit.
    #[serde(rename = "long")]
    Long,
}

/// Outcome of the search for a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScaleOutcome {
    /// Workload name.
    pub workload: String,
    /// Chosen scale.
    pub scale: String,
    /// Error bound on speed-ups at the chosen scale: the difference from the next larger scale, or from the next
    /// smaller if no larger scale was tried. `None` if only one scale was tried.
    pub error: Option<f64>,
    /// Reason for not choosing a larger scale.
    pub ended: StopReason,
    /// All scales tried, smallest first.
    pub tried: Vec<ScaleTrial>,
}

/// Reason for a failed search.
#[derive(Debug, thiserror::Error)]
pub enum ScalesError {
    /// Results cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A workload does not accept its parameters.
    #[error(transparent)]
    Point(#[from] PointError),
    /// The machine cannot be scaled down far enough.
    #[error(transparent)]
    Machine(#[from] ConfigError),
    /// A run failed, or took no time.
    #[error("{workload} at scale {scale}: {reason}")]
    Run {
        /// The workload.
        workload: String,
        /// The scale.
        scale: String,
        /// Reason for the run's failure.
        reason: String,
    },
}

/// Returns the workloads in a shipped suite. Each has the parameters for quick scale, and the smallest scale allowed by
/// the reading of its paper.
///
/// # Errors
/// Returns an error if no such suite ships.
pub fn of_suite(name: &str) -> Result<Vec<ScaleRequest>, SpecError> {
    plan::scale_requests(name)
}

impl ScaleSearch<'_> {
    /// Runs `scale_requests` at increasing scales. Results already present in `folder` are reused.
    ///
    /// # Errors
    /// Returns an error if a run fails, or if its result cannot be stored.
    pub fn run(
        &self,
        wanted: &ScaleRequest,
        folder: &Path,
        watcher: &dyn Watcher,
    ) -> Result<ScaleOutcome, ScalesError> {
        let store = Store::open(folder)?;
        let mut tried: Vec<ScaleTrial> = Vec::new();
        let mut next = Some(wanted.least.with_whole_sms([self.machine.topology.sms_per_module]));
        let mut ended = StopReason::Whole;
        while let Some(scale) = next {
            let one = self.at(wanted, scale, &store, watcher)?;
            if let Some(last) = tried.last_mut() {
                last.difference = Some(self.difference(last, &one));
            }
            tried.push(one);
            if is_alike(&tried, self.within) {
                ended = StopReason::Alike;
                break;
            }
            next = twice(scale);
            if next.is_some() && expected(&tried) > self.limit_s.max(self.compare_limit_s) {
                (next, ended) = (None, StopReason::Long);
            }
        }
        Ok(found(&wanted.label, tried, ended, self.limit_s))
    }

    fn at(
        &self,
        wanted: &ScaleRequest,
        scale: MachineScale,
        store: &Store,
        watcher: &dyn Watcher,
    ) -> Result<ScaleTrial, ScalesError> {
        let machine = Arc::new(self.machine.scaled(scale)?);
        let point = |design: &Arc<DesignConfig>| {
            let (machine, workload) = (Arc::clone(&machine), Arc::clone(&wanted.workload));
            Point::new(machine, Arc::clone(design), workload, Pass::Simulation, Vec::new())
        };
        let points = self.designs.iter().map(point).collect::<Result<Vec<_>, _>>()?;
        let results = run_points(&points, Some(store), self.threads, watcher)?;
        let refuse =
            |reason: String| ScalesError::Run { workload: wanted.label.clone(), scale: scale.to_string(), reason };
        let times = points.iter().map(|point| self.time(point, &results)).collect::<Result<Vec<_>, _>>();
        let times = times.map_err(refuse)?;
        let known = store.costs();
        let seconds = points.iter().filter_map(|point| known.get(&point.run())).copied();
        Ok(ScaleTrial {
            scale: scale.to_string(),
            speedups: times.iter().map(|time| times[self.baseline] / time).collect(),
            seconds: seconds.fold(0.0, f64::max),
            difference: None,
        })
    }

    fn time(&self, point: &Point, results: &Results) -> Result<f64, String> {
        let record = match results.get(point.key()) {
            Some(Ok(outcome)) => match &**outcome {
                PointResult::Simulation(record) => record,
                PointResult::Sharing(_) | PointResult::Arrays(_) => unreachable!("a simulation was asked for"),
            },
            Some(Err(error)) => return Err(error.clone()),
            None => return Err("a file that it is made of changed meanwhile".to_owned()),
        };
        match record.time.of(self.time) {
            time if time > 0.0 => Ok(time),
            _ => Err(format!("takes no time under {}", point.design.name)),
        }
    }

    fn difference(&self, smaller: &ScaleTrial, larger: &ScaleTrial) -> SpeedUpDifference {
        let pairs = smaller.speedups.iter().zip(&larger.speedups).zip(self.designs);
        let all = pairs.map(|((small, large), design)| ((small / large - 1.0).abs(), design));
        let (share, design) = all.max_by(|one, other| one.0.total_cmp(&other.0)).expect("there is a design");
        SpeedUpDifference { share, design: design.name.clone() }
    }
}

/// Returns the next larger scale, at most 1.
fn twice(scale: MachineScale) -> Option<MachineScale> {
    (scale != MachineScale::FULL)
        .then(|| MachineScale::new(2 * scale.numerator(), scale.denominator()).unwrap_or(MachineScale::FULL))
}

/// True if the last two scales agree.
fn is_alike(tried: &[ScaleTrial], within: f64) -> bool {
    let before = tried.len().checked_sub(2).and_then(|at| tried[at].difference.as_ref());
    before.is_some_and(|difference| difference.share <= within)
}

/// Estimates the seconds for the longest run at the next larger scale. Growth continues at the rate between the last
/// two scales, and is at least a factor 2.
fn expected(tried: &[ScaleTrial]) -> f64 {
    let last = tried.last().map_or(0.0, |one| one.seconds);
    let before = tried.len().checked_sub(2).map_or(0.0, |at| tried[at].seconds);
    let growth = if before > 0.0 { last / before } else { 0.0 };
    last * growth.max(2.0)
}

/// Summarises the scales in `tried`. If runs at the desired scale exceed `limit_s`, the largest scale below with runs
/// inside the limit is chosen, or the smallest scale if none qualifies.
fn found(workload: &str, tried: Vec<ScaleTrial>, ended: StopReason, limit_s: f64) -> ScaleOutcome {
    let wanted = match ended {
        StopReason::Alike => tried.len() - 2,
        StopReason::Whole | StopReason::Long => tried.len() - 1,
    };
    let chosen = tried[..=wanted].iter().rposition(|one| one.seconds <= limit_s).unwrap_or(0);
    let ended = if chosen < wanted { StopReason::Long } else { ended };
    let differs = |at: usize| tried[at].difference.as_ref().map(|one| one.share);
    // At scale 1 nothing is left out.
    let error = match ended {
        StopReason::Whole => Some(0.0),
        StopReason::Alike | StopReason::Long => differs(chosen).or_else(|| chosen.checked_sub(1).and_then(differs)),
    };
    ScaleOutcome { workload: workload.to_owned(), scale: tried[chosen].scale.clone(), error, ended, tried }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::SilentWatcher;
    use crate::workload::only;

    fn tried(scale: &str, seconds: f64, share: Option<f64>) -> ScaleTrial {
        let difference = share.map(|share| SpeedUpDifference { share, design: "hmg".to_owned() });
        ScaleTrial { scale: scale.to_owned(), speedups: Vec::new(), seconds, difference }
    }

    #[test]
    fn scales_double_up_to_one() {
        let mut all = vec![MachineScale::new(1, 20).unwrap()];
        while let Some(next) = twice(*all.last().unwrap()) {
            all.push(next);
        }
        let all: Vec<String> = all.iter().map(MachineScale::to_string).collect();
        assert_eq!(all, ["1/20", "1/10", "1/5", "2/5", "4/5", "1"]);
    }

    #[test]
    fn the_next_run_is_expected_to_grow_as_the_last_did_and_to_double_at_least() {
        assert_eq!(expected(&[tried("1/8", 3.0, None)]), 6.0);
        assert_eq!(expected(&[tried("1/8", 3.0, None), tried("1/4", 12.0, None)]), 48.0);
        assert_eq!(expected(&[tried("1/8", 3.0, None), tried("1/4", 4.0, None)]), 8.0);
    }

    #[test]
    fn what_is_chosen_has_the_error_that_was_measured() {
        let of = |shares: &[Option<f64>], ended| {
            let scales = ["1/8", "1/4", "1/2"];
            let all = scales.iter().zip(shares).map(|(scale, share)| tried(scale, 1.0, *share)).collect();
            let found = found("mst", all, ended, 10.0);
            (found.scale, found.error)
        };
        assert!(is_alike(&[tried("1/8", 1.0, Some(0.04)), tried("1/4", 1.0, None)], 0.05));
        assert!(!is_alike(&[tried("1/8", 1.0, Some(0.06)), tried("1/4", 1.0, None)], 0.05));
        assert!(!is_alike(&[tried("1/8", 1.0, None)], 0.05));
        assert_eq!(of(&[Some(0.3), Some(0.02), None], StopReason::Alike), ("1/4".to_owned(), Some(0.02)));
        assert_eq!(of(&[Some(0.3), Some(0.2), None], StopReason::Long), ("1/2".to_owned(), Some(0.2)));
        let long = vec![tried("1/8", 5.0, Some(0.7)), tried("1/4", 17.0, None)];
        let kept = found("bfs", long, StopReason::Long, 10.0);
        assert_eq!((kept.scale.as_str(), kept.error), ("1/8", Some(0.7)), "a run at 1/4 takes longer than the limit");
        let compared = vec![tried("1/8", 5.0, Some(0.7)), tried("1/4", 17.0, Some(0.01)), tried("1/2", 40.0, None)];
        let kept = found("bfs", compared, StopReason::Alike, 10.0);
        assert_eq!(
            (kept.scale.as_str(), kept.error, kept.ended),
            ("1/8", Some(0.7), StopReason::Long),
            "1/4 only compares"
        );
        let whole = vec![tried("1/2", 5.0, Some(0.2)), tried("1", 17.0, None)];
        assert_eq!(found("bfs", whole, StopReason::Whole, 10.0).error, Some(0.2), "1 only compares");
        assert_eq!(found("bfs", vec![tried("1", 17.0, None)], StopReason::Whole, 10.0).error, Some(0.0));
        assert_eq!(of(&[None], StopReason::Long), ("1/8".to_owned(), None));
        assert_eq!(of(&[Some(0.3), Some(0.2), None], StopReason::Whole), ("1/2".to_owned(), Some(0.0)));
    }

    #[test]
    fn designs_that_do_the_same_are_alike_at_once_and_finished_runs_are_kept() {
        let machine = tombolo_machine::machine("hmg-4x4").unwrap().check().unwrap();
        let hmg = tombolo_design::design("hmg").unwrap().check().unwrap();
        let twin = DesignConfig { name: "twin".to_owned(), ..hmg.clone() };
        let designs = [hmg, twin].map(Arc::new);
        let search = ScaleSearch {
            machine: &machine,
            designs: &designs,
            baseline: 0,
            time: TimeChoice::default(),
            within: 0.05,
            limit_s: 60.0,
            compare_limit_s: 60.0,
            threads: 1,
        };
        let workload = Arc::new(only("triad,elements=262144").unwrap());
        let wanted = ScaleRequest { label: "triad".to_owned(), workload, least: MachineScale::new(1, 33).unwrap() };
        let folder = tempfile::tempdir().unwrap();
        let found = search.run(&wanted, folder.path(), &SilentWatcher).unwrap();
        assert_eq!((found.ended, found.scale.as_str(), found.tried.len()), (StopReason::Alike, "1/32", 2));
        assert_eq!(found.tried[1].scale, "1/16");
        assert_eq!((found.error, &found.tried[1].speedups[..]), (Some(0.0), &[1.0, 1.0][..]));
        assert_eq!(search.run(&wanted, folder.path(), &SilentWatcher).unwrap(), found);
        let hurried = ScaleSearch { limit_s: 1e-9, compare_limit_s: 0.0, ..search };
        let stopped = hurried.run(&wanted, folder.path(), &SilentWatcher).unwrap();
        assert_eq!((stopped.ended, stopped.tried.len(), stopped.error), (StopReason::Long, 1, None));
    }
}
