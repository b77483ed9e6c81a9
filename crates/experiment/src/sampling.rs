//! Samples instead of whole programs: data shared between sampled points, and error ranges for figures.

use crate::error::PointError;
use crate::figure::FigureTable;
use crate::grid::{Change, Coordinate, Numbers};
use crate::plan::ExperimentPlan;
use crate::point::Point;
use crate::spec::{Metric, Relative};
use crate::workload::PreparedProgram;
use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_system::{KernelDemands, RunRecord, TimeChoice, TimeEstimate};

/// Description of the ranges shown in a figure with sampled runs, for the figure's caption.
pub const SAMPLES: &str = "the errors of samples, 95 % sure";

/// Resource demands by a program's kernels on each machine. Points with a common machine share the demands, which are
/// computed once.
#[derive(Default)]
pub(crate) struct DemandCache(Vec<(Arc<MachineConfig>, Arc<KernelDemands>)>);

impl DemandCache {
    /// Returns the demands for a sampled point recorded in `source`, or `None` for an unsampled point.
    pub(crate) fn of(
        &mut self,
        point: &Point,
        source: &PreparedProgram,
    ) -> Result<Option<Arc<KernelDemands>>, PointError> {
        if !point.is_sampled() {
            return Ok(None);
        }
        if let Some((_, demands)) = self.0.iter().find(|(machine, _)| *machine == point.machine) {
            return Ok(Some(Arc::clone(demands)));
        }
        let damaged = |error| PointError::Stream { label: source.label.clone(), error };
        let demands = Arc::new(KernelDemands::of(&point.machine, &*source.program).map_err(damaged)?);
        self.0.push((Arc::clone(&point.machine), Arc::clone(&demands)));
        Ok(Some(demands))
    }
}

impl ExperimentPlan {
    /// True if the runs for a metric may be sampled. The metric must be a run time, because counters cover only the
    /// launches that ran.
    pub(crate) fn samples(&self, metric: &Metric) -> bool {
        self.sampled && self.timed_path(metric).is_some()
    }

    /// Returns the path of the metric's time, if the metric is a run time.
    fn timed_path<'a>(&self, metric: &'a Metric) -> Option<&'a str> {
        let [path] = &metric.value[..] else { return None };
        let path = self.path(metric, path.get());
        let is_time = path == TIME || TimeChoice::ALL.iter().any(|choice| choice.path() == path);
        (is_time && metric.per.is_empty() && metric.to_value.is_empty() && metric.extrapolate.is_none()).then_some(path)
    }

    /// Returns the range of a number in `table` due to sampling errors, or `None` if the number uses no samples. A mean
    /// gets the largest relative error among its numbers. No mean over positive numbers can move further than all its
    /// numbers do.
    pub(crate) fn sampled_range(
        &self,
        table: &FigureTable,
        at: usize,
        column: usize,
        numbers: &Numbers<'_>,
    ) -> Option<[f64; 2]> {
        let value = table.rows[at].value(column)?;
        let rows = (0..table.rows.len()).filter(|row| !table.rows[*row].summary);
        let rows: Vec<usize> = if table.rows[at].summary { rows.collect() } else { vec![at] };
        let cells = rows.into_iter().map(|row| self.cell(&table.panel, row, column));
        let spreads = cells.flat_map(|cell| self.each_run(cell)).filter_map(|run| self.spread(run, numbers));
        let [least, greatest] = spreads.reduce(|[low, high], [least, most]| [low.min(least), high.max(most)])?;
        Some([value * least, value * greatest])
    }

    /// Returns the runs behind a cell: one run per workload if the cell is a mean over workloads.
    fn each_run(&self, cell: Coordinate) -> Vec<Coordinate> {
        if !self.is_mean_of_workloads() {
            return vec![cell];
        }
        let all = self.workloads_of(&Change::default());
        all.into_iter().map(|workload| Coordinate { workload, ..cell }).collect()
    }

    /// Returns the range for a single run's number, in the form of two factors relative to the number itself.
    fn spread(&self, at: Coordinate, numbers: &Numbers<'_>) -> Option<[f64; 2]> {
        let metric = self.metric(at.metric);
        let path = self.timed_path(metric)?;
        let choice = TimeChoice::ALL.into_iter().find(|choice| choice.path() == path).unwrap_or(TimeChoice::Whole);
        let told = |record: &RunRecord| TimeEstimate::of(record, choice);
        let run = self.record(at, numbers)?;
        let Some(relative) = metric.relative else {
            let (alone, one) = (told(run), TimeEstimate { time_s: run.time.of(choice), error_s: 0.0 });
            return run.is_estimate().then(|| alone.over(one));
        };
        let base = self.record(self.base(at), numbers)?;
        if std::ptr::eq(run, base) {
            // A run over itself has speed-up 1, without any error.
            return None;
        }
        let (above, below) = match relative {
            Relative::SpeedUp => (told(base), told(run)),
            Relative::Ratio => (told(run), told(base)),
        };
        let value = above.time_s / below.time_s;
        (run.is_estimate() || base.is_estimate()).then(|| above.over(below).map(|end| end / value))
    }
}

/// Path of the whole run's time.
const TIME: &str = "time_s";
