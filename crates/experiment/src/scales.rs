//! Finds the smallest scale with the same design comparison as the next larger scale, and thereby chooses quick scales.
//!
//! A workload runs at its smallest scale, then at twice this scale, and continues to double. The search ends when no
//! design's speed-up differs between two scales by more than a bound. Only the size of differences decides, never the
//! ranking between designs. The baseline may be a design on another machine, for example on one socket, which is scaled
//! alike.
//!
//! Two ratios must moreover stay within [`MOST_OFF`] of their values at scale 1, since all capacities scale by the factor
//! itself:
//! - footprint over capacity, known without a run: an array may keep its size, or scale by the root;
//! - active set over capacity: the lines that a module accesses in one kernel at most, for example a wavefront. Its growth
//!   between two scales is continued to scale 1.

use crate::campaign::{Results, Watcher, run_points};
use crate::error::{PointError, SpecError, StoreError};
use crate::plan;
use crate::point::Point;
use crate::point_result::{Pass, PointResult};
use crate::store::Store;
use crate::workload::{Target, WorkloadChoice};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::{ConfigError, MachineConfig, MachineScale};
use tombolo_system::TimeChoice;
use tombolo_system::movement::Movement;
use tombolo_system::placement::TouchOrder;

/// Parameters of a scale search.
pub struct ScaleSearch<'a> {
    /// The machine at scale 1.
    pub machine: &'a MachineConfig,
    /// Designs to compare.
    pub designs: &'a [Arc<DesignConfig>],
    /// Baseline for speed-ups.
    pub baseline: Baseline<'a>,
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

/// The run whose time a speed-up divides.
pub enum Baseline<'a> {
    /// The design with this index, on the same machine.
    Listed(usize),
    /// A design on another machine at scale 1.
    Other(&'a MachineConfig, Arc<DesignConfig>),
}

/// Largest factor between a ratio to capacity at the chosen scale and at scale 1. Source: assumed, the reading of the papers'
/// suites.
pub const MOST_OFF: f64 = 2.0;

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
    /// Footprint over capacity, relative to scale 1. 1 for a trace.
    pub footprint: f64,
    /// Most lines that a module accesses in one kernel.
    pub active_lines: u64,
    /// Active set over capacity, relative to scale 1, if a larger scale was tried: its growth up to that scale is continued.
    pub active_set: Option<f64>,
}

/// A scale at which nothing was run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RefusedScale {
    /// The scale.
    pub scale: String,
    /// Footprint over capacity, relative to scale 1.
    pub footprint: f64,
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
    /// Smaller scales at which footprint over capacity is off by more than [`MOST_OFF`].
    pub refused: Vec<RefusedScale>,
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
        let (mut tried, mut refused): (Vec<ScaleTrial>, Vec<RefusedScale>) = (Vec::new(), Vec::new());
        let sms = [Some(self.machine), self.other().map(|(machine, _)| machine)].into_iter().flatten();
        let mut next = Some(wanted.least.with_whole_sms(sms.map(|machine| machine.topology.sms_per_module)));
        let (mut before, mut ended) = (None, StopReason::Whole);
        while let Some(scale) = next {
            let footprint = self.footprint(wanted, scale)?;
            if is_off(footprint) {
                refused.push(RefusedScale { scale: scale.to_string(), footprint });
                next = twice(scale);
                continue;
            }
            let one = self.at(wanted, scale, footprint, &store, watcher)?;
            if let Some((last, from)) = tried.last_mut().zip(before) {
                last.difference = Some(self.difference(last, &one));
                last.active_set = Some(continued(fraction(from), last.active_lines, fraction(scale), one.active_lines));
            }
            tried.push(one);
            before = Some(scale);
            if is_alike(&tried, self.within) {
                ended = StopReason::Alike;
                break;
            }
            next = twice(scale);
            if next.is_some() && expected(&tried) > self.limit_s.max(self.compare_limit_s) {
                (next, ended) = (None, StopReason::Long);
            }
        }
        Ok(found(&wanted.label, tried, refused, ended, self.limit_s))
    }

    /// The machine and the design of a baseline on another machine.
    fn other(&self) -> Option<(&MachineConfig, &Arc<DesignConfig>)> {
        match &self.baseline {
            Baseline::Listed(_) => None,
            Baseline::Other(machine, design) => Some((machine, design)),
        }
    }

    /// Footprint over capacity at `scale`, relative to scale 1. 1 for a trace, whose footprint is not known.
    fn footprint(&self, wanted: &ScaleRequest, scale: MachineScale) -> Result<f64, ScalesError> {
        let bytes = |scale: MachineScale| {
            let arrays =
                wanted.workload.arrays(Target::new(self.machine, scale).scale(), self.machine.topology.gpus)?;
            Ok::<_, PointError>(arrays.iter().map(|(array, _)| array.bytes).sum::<u64>() as f64)
        };
        let (here, whole) = (bytes(scale)?, bytes(MachineScale::FULL)?);
        Ok(if whole > 0.0 { here / (whole * fraction(scale)) } else { 1.0 })
    }

    fn at(
        &self,
        wanted: &ScaleRequest,
        scale: MachineScale,
        footprint: f64,
        store: &Store,
        watcher: &dyn Watcher,
    ) -> Result<ScaleTrial, ScalesError> {
        let machine = Arc::new(self.machine.scaled(scale)?);
        let point = |machine: &Arc<MachineConfig>, design: &Arc<DesignConfig>| {
            let (machine, workload) = (Arc::clone(machine), Arc::clone(&wanted.workload));
            Point::new(machine, Arc::clone(design), workload, Pass::Simulation, Vec::new())
        };
        let mut points = self.designs.iter().map(|design| point(&machine, design)).collect::<Result<Vec<_>, _>>()?;
        if let Some((other, design)) = self.other() {
            points.push(point(&Arc::new(other.scaled(scale)?), design)?);
        }
        let results = run_points(&points, Some(store), self.threads, watcher)?;
        let refuse =
            |reason: String| ScalesError::Run { workload: wanted.label.clone(), scale: scale.to_string(), reason };
        let times = points.iter().map(|point| self.time(point, &results)).collect::<Result<Vec<_>, _>>();
        let times = times.map_err(&refuse)?;
        let base = match self.baseline {
            Baseline::Listed(index) => times[index],
            Baseline::Other(..) => times[self.designs.len()],
        };
        let program = wanted.workload.record(Target::of(&machine), self.threads)?.program;
        let order = TouchOrder::of(&machine, &self.designs[0], &*program);
        let moved = Movement::find(&*program, self.designs[0].scheduling.cut(&machine), order);
        let active_lines = moved.map_err(|error| refuse(error.to_string()))?.active_lines();
        let known = store.costs();
        let seconds = points.iter().filter_map(|point| known.get(&point.run())).copied();
        Ok(ScaleTrial {
            scale: scale.to_string(),
            speedups: times[..self.designs.len()].iter().map(|time| base / time).collect(),
            seconds: seconds.fold(0.0, f64::max),
            difference: None,
            footprint,
            active_lines,
            active_set: None,
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

/// The scale as a number.
fn fraction(scale: MachineScale) -> f64 {
    scale.numerator() as f64 / scale.denominator() as f64
}

/// True if a ratio to capacity is farther than [`MOST_OFF`] from its value at scale 1.
pub fn is_off(ratio: f64) -> bool {
    ratio.max(1.0 / ratio) > MOST_OFF
}

/// Active set over capacity at `scale`, relative to scale 1, if it grows on as from `lines` to `lines_at_larger` lines.
fn continued(scale: f64, lines: u64, larger: f64, lines_at_larger: u64) -> f64 {
    let growth = (lines_at_larger.max(1) as f64 / lines.max(1) as f64).ln() / (larger / scale).ln();
    scale.powf(growth - 1.0)
}

/// True if the last two scales agree, and the smaller of them has an active set as at scale 1.
fn is_alike(tried: &[ScaleTrial], within: f64) -> bool {
    let Some(before) = tried.len().checked_sub(2).map(|at| &tried[at]) else { return false };
    let agrees = before.difference.as_ref().is_some_and(|difference| difference.share <= within);
    agrees && !before.active_set.is_some_and(is_off)
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
fn found(
    workload: &str,
    tried: Vec<ScaleTrial>,
    refused: Vec<RefusedScale>,
    ended: StopReason,
    limit_s: f64,
) -> ScaleOutcome {
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
    ScaleOutcome { workload: workload.to_owned(), scale: tried[chosen].scale.clone(), error, ended, tried, refused }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::SilentWatcher;
    use crate::workload::only;

    fn tried(scale: &str, seconds: f64, share: Option<f64>) -> ScaleTrial {
        let difference = share.map(|share| SpeedUpDifference { share, design: "hmg".to_owned() });
        ScaleTrial {
            scale: scale.to_owned(),
            speedups: Vec::new(),
            seconds,
            difference,
            footprint: 1.0,
            active_lines: 1,
            active_set: None,
        }
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
            let found = found("mst", all, Vec::new(), ended, 10.0);
            (found.scale, found.error)
        };
        assert!(is_alike(&[tried("1/8", 1.0, Some(0.04)), tried("1/4", 1.0, None)], 0.05));
        assert!(!is_alike(&[tried("1/8", 1.0, Some(0.06)), tried("1/4", 1.0, None)], 0.05));
        assert!(!is_alike(&[tried("1/8", 1.0, None)], 0.05));
        assert_eq!(of(&[Some(0.3), Some(0.02), None], StopReason::Alike), ("1/4".to_owned(), Some(0.02)));
        assert_eq!(of(&[Some(0.3), Some(0.2), None], StopReason::Long), ("1/2".to_owned(), Some(0.2)));
        let long = vec![tried("1/8", 5.0, Some(0.7)), tried("1/4", 17.0, None)];
        let kept = found("bfs", long, Vec::new(), StopReason::Long, 10.0);
        assert_eq!((kept.scale.as_str(), kept.error), ("1/8", Some(0.7)), "a run at 1/4 takes longer than the limit");
        let compared = vec![tried("1/8", 5.0, Some(0.7)), tried("1/4", 17.0, Some(0.01)), tried("1/2", 40.0, None)];
        let kept = found("bfs", compared, Vec::new(), StopReason::Alike, 10.0);
        assert_eq!(
            (kept.scale.as_str(), kept.error, kept.ended),
            ("1/8", Some(0.7), StopReason::Long),
            "1/4 only compares"
        );
        let whole = vec![tried("1/2", 5.0, Some(0.2)), tried("1", 17.0, None)];
        assert_eq!(found("bfs", whole, Vec::new(), StopReason::Whole, 10.0).error, Some(0.2), "1 only compares");
        assert_eq!(found("bfs", vec![tried("1", 17.0, None)], Vec::new(), StopReason::Whole, 10.0).error, Some(0.0));
        assert_eq!(of(&[None], StopReason::Long), ("1/8".to_owned(), None));
        assert_eq!(of(&[Some(0.3), Some(0.2), None], StopReason::Whole), ("1/2".to_owned(), Some(0.0)));
    }

    #[test]
    fn an_active_set_that_grows_by_the_root_is_off_at_small_scales() {
        let by_root = |scale: f64| continued(scale, 100, 2.0 * scale, 141);
        assert!((by_root(1.0 / 4.0) - 2.0).abs() < 0.02, "a wavefront of half the length, for a quarter of the caches");
        assert!((by_root(1.0 / 32.0) - 32.0_f64.sqrt()).abs() < 0.2);
        assert!((continued(1.0 / 8.0, 50, 1.0 / 4.0, 100) - 1.0).abs() < 1e-12, "it grows as capacities do");
        let same = |active_set| [ScaleTrial { active_set, ..tried("1/8", 1.0, Some(0.0)) }, tried("1/4", 1.0, None)];
        assert!(is_alike(&same(Some(1.9)), 0.05) && is_alike(&same(Some(0.6)), 0.05));
        assert!(!is_alike(&same(Some(2.1)), 0.05) && !is_alike(&same(Some(0.4)), 0.05), "alike, but not for scale 1");
    }

    #[test]
    fn a_baseline_on_another_machine_is_scaled_alike_and_a_footprint_that_does_not_scale_is_refused() {
        let of = |name| tombolo_machine::machine(name).expect("a preset").check().expect("it fits");
        let design = |name| Arc::new(tombolo_design::design(name).expect("a preset").check().expect("it fits"));
        let (machine, one) = (of("numa-4"), of("numa-1"));
        let designs = [design("numa-memory-side"), design("numa-aware")];
        let search = |baseline| ScaleSearch {
            machine: &machine,
            designs: &designs,
            baseline,
            time: TimeChoice::default(),
            within: 1.0,
            limit_s: 60.0,
            compare_limit_s: 60.0,
            threads: 1,
        };
        let (least, folder) = (MachineScale::new(1, 32).unwrap(), tempfile::tempdir().unwrap());
        let ran = |baseline, word: &str| {
            let wanted = ScaleRequest { label: "it".to_owned(), workload: Arc::new(only(word).unwrap()), least };
            search(baseline).run(&wanted, folder.path(), &SilentWatcher).unwrap()
        };
        let triad = "triad,elements=4194304,iterations=1";
        let here = ran(Baseline::Other(&machine, Arc::clone(&designs[0])), triad);
        assert_eq!(here.tried, ran(Baseline::Listed(0), triad).tried, "the listed design, named");
        let over_one = ran(Baseline::Other(&one, Arc::clone(&designs[0])), triad);
        let speedup = over_one.tried[0].speedups[0];
        assert!((2.0..=4.5).contains(&speedup), "four sockets over one: {speedup}");
        assert!(over_one.refused.is_empty() && (over_one.tried[0].footprint - 1.0).abs() < 0.1);
        // Both vectors keep their size, each that of a row; at 1/32 the matrix has a single row.
        let fixed = ran(Baseline::Listed(0), "atax,rows=32,columns=2048");
        let refused: Vec<&str> = fixed.refused.iter().map(|one| one.scale.as_str()).collect();
        assert_eq!((refused, fixed.tried[0].scale.as_str()), (vec!["1/32"], "1/16"));
        assert!(fixed.refused[0].footprint > MOST_OFF && fixed.tried[0].footprint < MOST_OFF);
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
            baseline: Baseline::Listed(0),
            time: TimeChoice::default(),
            within: 0.05,
            limit_s: 60.0,
            compare_limit_s: 60.0,
            threads: 1,
        };
        let workload = Arc::new(only("triad,elements=4194304,iterations=1").unwrap());
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
