//! Points in a plan, and the numbers computed from their results.

use crate::campaign::Results;
use crate::error::PointError;
use crate::hardware;
use crate::layout::Panel;
use crate::plan::{ExperimentPlan, MetricSource, PlannedBaseline};
use crate::point::Point;
use crate::point_result::{HARDWARE, PointResult};
use crate::spec::{Dimension, Extrapolation, Metric, Text};
use crate::systems::System;
use std::collections::BTreeMap;
use std::sync::Arc;
use tombolo_machine::{MachineConfig, MachineScale};
use tombolo_report::document::Failure;
use tombolo_system::RunRecord;

/// Selects the inputs for workloads with input data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Inputs {
    /// Inputs chosen by the run.
    #[default]
    Own,
    /// Inputs from scale 1.
    Whole,
    /// Second inputs from quick scale.
    Second,
}

/// A change applied to all points in a plan, for a repetition. The default changes nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    /// Description in words; empty for no change.
    pub(crate) label: String,
    pub(crate) seed: Option<u64>,
    pub(crate) scale: Option<MachineScale>,
    pub(crate) inputs: Inputs,
    pub(crate) set: Vec<String>,
    /// Indices of the changed workloads; `None` for all workloads.
    pub(crate) only: Option<Vec<usize>>,
}

/// A value for each dimension, by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coordinate {
    pub(crate) workload: usize,
    pub(crate) design: usize,
    pub(crate) machine: usize,
    /// Index of the step, or `None` without steps.
    pub(crate) step: Option<usize>,
    pub(crate) metric: usize,
    /// True if the machine is named explicitly and overrides the machine of a step.
    pub(crate) names_machine: bool,
    /// True if the design is named explicitly and overrides the design of a step.
    pub(crate) names_design: bool,
}

/// Returns the coordinate that the baseline `to` selects, relative to `here`.
pub(crate) fn beside(here: Coordinate, to: PlannedBaseline) -> Coordinate {
    Coordinate {
        machine: to.machine.unwrap_or(here.machine),
        design: to.design.unwrap_or(here.design),
        step: to.step.unwrap_or(here.step),
        names_machine: to.machine.is_some(),
        names_design: to.design.is_some(),
        ..here
    }
}

/// A requested point, or the reason for its failure.
pub(crate) type PlannedPoint = Result<Point, Failure>;

impl ExperimentPlan {
    /// Indices of the workloads affected by a change.
    pub(crate) fn workloads_of(&self, change: &Change) -> Vec<usize> {
        change.only.clone().unwrap_or_else(|| (0..self.workloads.len()).collect())
    }

    /// Returns the coordinate of a figure's cell. If cells are means, the coordinate has the first workload.
    pub(crate) fn cell(&self, panel: &Panel, row: usize, column: usize) -> Coordinate {
        let first = Coordinate { step: Some(0), ..Coordinate::default() };
        let places = panel.0.iter().copied().chain([(self.layout.rows, row), (self.layout.columns, column)]);
        places.fold(first, |at, (dimension, index)| self.with(at, dimension, index))
    }

    /// Returns every point needed by the figure under a change, in cell order; duplicates are possible.
    #[cfg(test)]
    pub(crate) fn points(&self, change: &Change) -> Vec<PlannedPoint> {
        self.cells_and_bases(change).into_iter().map(|(asked, _)| asked).collect()
    }

    /// Like `points`, with a flag per point: true for a cell's own point, false for a normalisation base.
    pub(crate) fn cells_and_bases(&self, change: &Change) -> Vec<(PlannedPoint, bool)> {
        let (mut asked, unchanged) = (Vec::new(), Change::default());
        let cells = self.coordinates(change).into_iter().map(|at| (at, change));
        for (coordinate, change) in cells.chain(self.deciding_coordinates().into_iter().map(|at| (at, &unchanged))) {
            let base = self.metric(coordinate.metric).relative.map(|_| self.base(coordinate));
            let needed = [(Some(coordinate), true), (base, false)];
            let needed = needed.into_iter().filter_map(|(at, is_cell)| Some((at?, is_cell)));
            match self.origins[coordinate.metric] {
                MetricSource::Results(_) => asked.extend(needed.map(|(at, is_cell)| (self.point(at, change), is_cell))),
                // No simulation runs for hardware metrics, but the machine must be valid.
                MetricSource::Hardware => {
                    let machines =
                        needed.filter_map(|(at, is_cell)| Some((Err(self.hardware(at, change).err()?), is_cell)));
                    asked.extend(machines);
                }
            }
        }
        asked
    }

    pub(crate) fn coordinates(&self, change: &Change) -> Vec<Coordinate> {
        let workloads = self.workloads_of(change);
        let indices = |dimension| match dimension {
            Dimension::Workload => workloads.clone(),
            _ => (0..self.labels(dimension).len()).collect(),
        };
        let (rows, columns) = (indices(self.layout.rows), indices(self.layout.columns));
        let mut all = Vec::new();
        for panel in self.panels() {
            let cells = rows.iter().flat_map(|row| columns.iter().map(move |column| (*row, *column)));
            for (row, column) in cells {
                let cell = self.cell(&panel, row, column);
                match self.is_mean_of_workloads() {
                    true => all.extend(workloads.iter().map(|index| Coordinate { workload: *index, ..cell })),
                    false => all.push(cell),
                }
            }
        }
        all
    }

    /// Returns the result at a coordinate, if any.
    pub(crate) fn result<'r>(&self, at: Coordinate, numbers: &Numbers<'r>) -> Option<&'r PointResult> {
        let MetricSource::Results(_) = self.origins[at.metric] else { return None };
        let point = self.point(at, &Change::default()).ok()?;
        Some(&**numbers.results.get(point.key())?.as_ref().ok()?)
    }

    /// Returns the run record at a coordinate, if any.
    pub(crate) fn record<'r>(&self, at: Coordinate, numbers: &Numbers<'r>) -> Option<&'r RunRecord> {
        match self.result(at, numbers)? {
            PointResult::Simulation(record) => Some(record),
            PointResult::Sharing(_) | PointResult::Arrays(_) => None,
        }
    }

    /// Returns the normalisation base of the value at `here`.
    pub(crate) fn base(&self, here: Coordinate) -> Coordinate {
        beside(here, self.baselines[here.metric])
    }

    /// Returns the machine and the design at a coordinate. Named values come first, then the values of the step, then
    /// the coordinate's own.
    pub(crate) fn what_runs(&self, at: Coordinate) -> (usize, usize) {
        let step = at.step.map(|step| &self.steps[step]);
        let machine = step.and_then(|step| step.machine).filter(|_| !at.names_machine).unwrap_or(at.machine);
        (machine, step.and_then(|step| step.design).filter(|_| !at.names_design).unwrap_or(at.design))
    }

    pub(crate) fn point(&self, at: Coordinate, change: &Change) -> PlannedPoint {
        let failed = |error: PointError| Failure { point: self.label(at, change), error: error.to_string() };
        self.build(at, change, self.settings(at, change)).map_err(failed)
    }

    fn label(&self, at: Coordinate, change: &Change) -> String {
        let (machine, design) = self.what_runs(at);
        let settings = self.settings(at, change);
        let (workload, machine) = (&self.workloads[at.workload].label, &self.machines[machine].name);
        let with = if settings.is_empty() { String::new() } else { format!(" with {}", settings.join(", ")) };
        format!("{workload} on {machine} under {}{with}", self.designs[design].name)
    }

    pub(crate) fn settings(&self, at: Coordinate, change: &Change) -> Vec<String> {
        let common = self.spec.set.iter().map(|text| text.get().to_owned());
        let step = at.step.map(|step| self.steps[step].set.clone()).unwrap_or_default();
        common.chain(step).chain(change.set.iter().cloned()).collect()
    }

    fn build(&self, at: Coordinate, change: &Change, settings: Vec<String>) -> Result<Point, PointError> {
        let workload = &self.workloads[at.workload];
        let scale = change.scale.unwrap_or(workload.scale);
        let (machine, design) = self.system(self.what_runs(at), &settings, scale)?;
        let mut choice = Arc::clone(workload.inputs(change.inputs).unwrap_or(&workload.choice));
        if let Some(seed) = change.seed {
            Arc::make_mut(&mut choice).seed = seed;
        }
        let MetricSource::Results(pass) = self.origins[at.metric] else {
            unreachable!("a point is built for what is measured")
        };
        let point = Point::new(machine, design, choice, pass, settings)?;
        Ok(if self.samples(self.metric(at.metric)) { point.sampled() } else { point })
    }

    /// Builds the machine and the design with plan indices `at`, and applies the settings.
    fn system(&self, at: (usize, usize), settings: &[String], scale: MachineScale) -> Result<System, PointError> {
        let build = || {
            let mut machine = self.machines[at.0].description.clone();
            // All designs receive the settings. An option key is therefore refused only if no design reads the key.
            let mut designs: Vec<_> = self.designs.iter().map(|named| named.description.clone()).collect();
            tombolo_design::apply(settings, &mut machine, &mut designs)?;
            let machine = machine.check()?.scaled(scale)?;
            Ok((Arc::new(machine).into(), Arc::new(designs.swap_remove(at.1).check()?).into()))
        };
        self.systems.get_or_build(at, settings, scale, build)
    }

    /// Returns the number for a cell, or for a single workload within the cell; `None` if a point failed or the number
    /// does not exist.
    pub(crate) fn value(&self, at: Coordinate, change: &Change, numbers: &mut Numbers<'_>) -> Option<f64> {
        let metric = self.metric(at.metric);
        let here = self.measured(at, change, numbers)?;
        let relative = match metric.relative {
            None => here,
            Some(relative) => relative.of(here, self.base_measured(at, change, numbers)?),
        };
        Some(relative).filter(|value| value.is_finite())
    }

    /// Returns the cells whose numbers cannot be compared, for example a speed-up over a run without time.
    pub(crate) fn incomparable(&self, numbers: &mut Numbers<'_>) -> Vec<Failure> {
        let change = Change::default();
        let mut found = Vec::new();
        for at in self.coordinates(&change).into_iter().chain(self.deciding_coordinates()) {
            let metric = self.metric(at.metric);
            let Some(relative) = metric.relative else { continue };
            let base = self.base(at);
            if let Some(here) = self.measured(at, &change, numbers)
                && let Some(there) = self.base_measured(at, &change, numbers)
                && !relative.of(here, there).is_finite()
            {
                let paths: Vec<&str> = metric.value.iter().map(|path| self.path(metric, path.get())).collect();
                let (of, against) = (paths.join(" + "), self.label(base, &change));
                let error = format!("{}, {}: {of} is {here}, and {there} of {against}", self.spec.id, metric.name);
                found.push(Failure { point: self.label(at, &change), error });
            }
        }
        found
    }

    /// Returns the number of a point, or of the machine alone, before normalisation.
    fn measured(&self, at: Coordinate, change: &Change, numbers: &mut Numbers<'_>) -> Option<f64> {
        self.number(at, self.metric(at.metric), change, numbers)
    }

    /// Returns the number used to normalise the value at `at`.
    fn base_measured(&self, at: Coordinate, change: &Change, numbers: &mut Numbers<'_>) -> Option<f64> {
        let metric = self.metric(at.metric);
        if metric.to_value.is_empty() {
            return self.measured(self.base(at), change, numbers);
        }
        let of_base = Metric { value: metric.to_value.clone(), ..metric.clone() };
        self.number(self.base(at), &of_base, change, numbers)
    }

    fn number(&self, at: Coordinate, metric: &Metric, change: &Change, numbers: &mut Numbers<'_>) -> Option<f64> {
        if let MetricSource::Hardware = self.origins[at.metric] {
            let machine = self.hardware(at, change).ok()?;
            return divided(metric, |path| hardware::value(&machine, &self.stated, path.strip_prefix(HARDWARE)?));
        }
        let point = self.point(at, change).ok()?;
        let value = match (&metric.extrapolate, &self.workloads[at.workload].iterations) {
            (Some(Extrapolation { first, further }), Some(published)) => {
                let mut of = |value: &Vec<Text>| {
                    let part = Metric { value: value.clone(), ..metric.clone() };
                    numbers.quantity(&point, &part, |path| self.path(metric, path))
                };
                Extrapolation::total(published.count, of(first)?, of(further)?)
            }
            _ => numbers.quantity(&point, metric, |path| self.path(metric, path))?,
        };
        let scale = point.machine.scale;
        let share = scale.numerator() as f64 / scale.denominator() as f64;
        Some(if metric.per_scale { value / share } else { value })
    }

    /// Returns the machine at a coordinate, at scale 1.
    fn hardware(&self, at: Coordinate, change: &Change) -> Result<MachineConfig, Failure> {
        let (named, settings) = (&self.machines[self.what_runs(at).0], self.settings(at, change));
        let mut machine = named.description.clone();
        tombolo_design::apply(&settings, &mut machine, &mut []).and_then(|()| machine.check()).map_err(|error| {
            let point = format!("{} with {}", named.name, settings.join(", "));
            Failure { point, error: error.to_string() }
        })
    }
}

/// Numbers in results, by path; each result is flattened once.
pub(crate) struct Numbers<'a> {
    results: &'a Results,
    flat: BTreeMap<String, BTreeMap<String, f64>>,
}

impl<'a> Numbers<'a> {
    pub(crate) fn new(results: &'a Results) -> Numbers<'a> {
        Numbers { results, flat: BTreeMap::new() }
    }

    fn quantity(&mut self, point: &Point, metric: &Metric, path: impl Fn(&str) -> &str) -> Option<f64> {
        let flat = self.of(point)?;
        divided(metric, |name| flat.get(path(name)).copied())
    }

    /// Returns the counter at a path in a point's result.
    pub(crate) fn counter(&mut self, point: &Point, path: &str) -> Option<f64> {
        self.of(point)?.get(path).copied()
    }

    fn of(&mut self, point: &Point) -> Option<&BTreeMap<String, f64>> {
        let outcome = self.results.get(point.key())?.as_ref().ok()?;
        Some(self.flat.entry(point.key().to_string()).or_insert_with(|| numbers(outcome)))
    }
}

fn numbers(outcome: &PointResult) -> BTreeMap<String, f64> {
    let counters = outcome.counters().into_iter();
    counters.filter_map(|(path, counter)| Some((path, counter.number()?))).collect()
}

/// Computes `factor × sum of value ÷ sum of per`.
fn divided(metric: &Metric, number: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let sum = |paths: &[Text]| paths.iter().try_fold(0.0, |sum, path| Some(sum + number(path.get())?));
    let above = sum(&metric.value)? * metric.factor.unwrap_or(1.0);
    if metric.per.is_empty() {
        return Some(above);
    }
    match sum(&metric.per)? {
        0.0 => metric.empty,
        below => Some(above / below),
    }
}
