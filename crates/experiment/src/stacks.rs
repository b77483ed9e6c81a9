//! Stacked bars under speed-ups: run time by class of warp-slot cycles, relative to the baseline's time. Also compares
//! the cells in a claim, to give the cause for a claim that does not hold.

use crate::compared_time::is_of_time;
use crate::evidence::Register;
use crate::explain::{Difference, differences, shares, words};
use crate::grid::{Change, Coordinate, Numbers};
use crate::layout::Panel;
use crate::plan::ExperimentPlan;
use crate::spec::{self, Dimension, Metric, Text};
use tombolo_report::document::{Chart, ChartKind, Figure, FigureRow};
use tombolo_report::evidence::{CellEvidence, Evidence};
use tombolo_system::RunRecord;
use tombolo_system::stalls::SMALLEST_SHOWN_SHARE;

/// Maximum number of stacks in a figure. Source: assumed, the number of stacks distinguishable across a page.
const MOST_STACKS: usize = 48;

/// Maximum number of differences reported for a claim. Source: assumed, a sentence's worth.
const MOST_TOLD: usize = 3;

/// Classes in record order, each with its share of the baseline's time; a share may exceed 1.
type Stack = Vec<(&'static str, f64)>;

/// A stack to draw: label, coordinates for the averaged runs, and a flag for summaries.
struct Bar {
    label: String,
    runs: Vec<Coordinate>,
    summary: bool,
}

impl ExperimentPlan {
    /// Builds the stacks under a figure that compares times; `None` for any different figure, and if no run has a
    /// result.
    pub(crate) fn stacks(&self, numbers: &mut Numbers<'_>, register: &mut Register) -> Option<Figure> {
        let bars = self.bars(self.time_metric()?, numbers)?;
        let stacks: Vec<(Bar, Option<Stack>)> = bars
            .into_iter()
            .map(|bar| {
                let stack = self.mean_stack(&bar.runs, numbers);
                (bar, stack)
            })
            .collect();
        let known: Vec<&Stack> = stacks.iter().filter_map(|(_, stack)| stack.as_ref()).collect();
        let classes = known.first()?.iter().enumerate().map(|(at, (class, _))| (at, *class));
        let shown: Vec<(usize, &str)> =
            classes.filter(|(at, _)| known.iter().any(|stack| stack[*at].1 >= SMALLEST_SHOWN_SHARE)).collect();
        let percents = |stack: &Option<Stack>| {
            shown.iter().map(|(at, _)| stack.as_ref().map(|stack| 100.0 * stack[*at].1)).collect()
        };
        let mut cells = Vec::new();
        for (row, (bar, stack)) in stacks.iter().enumerate() {
            let [at] = bar.runs[..] else { continue };
            let run = register.place(self, at, numbers);
            cells.extend((0..shown.len()).filter(|_| stack.is_some()).map(|column| CellEvidence {
                row,
                column,
                run,
                range: None,
            }));
        }
        let row = |(bar, stack): &(Bar, Option<Stack>)| FigureRow {
            label: bar.label.clone(),
            values: percents(stack),
            summary: bar.summary,
            at: None,
        };
        Some(Figure {
            id: format!("{}-stalls", self.spec.id),
            title: format!("{}: where the time goes (time: {})", self.heading(), self.time),
            caption: format!("{CAPTION} Times are {}.", self.time.title()),
            chart: Chart {
                kind: ChartKind::Stacked,
                x: "run".to_owned(),
                y: "time over the baseline's".to_owned(),
                unit: "%".to_owned(),
                reference: Some(100.0),
                looks: shown.iter().map(|(at, _)| *at).collect(),
                ..Chart::default()
            },
            columns: std::iter::once("run".to_owned()).chain(shown.iter().map(|(_, class)| words(class))).collect(),
            rows: stacks.iter().map(row).collect(),
            evidence: Evidence { cells, ..Evidence::default() },
            ..Figure::default()
        })
    }

    /// Returns the index for the metric comparing times with baseline times.
    fn time_metric(&self) -> Option<usize> {
        let is_plain = |metric: &Metric| {
            metric.value.len() <= 1
                && metric.per.len() <= 1
                && metric.to_value.is_empty()
                && metric.extrapolate.is_none()
        };
        self.spec.metric.iter().position(|metric| is_plain(metric) && is_of_time(metric))
    }

    /// Returns the workloads included in means, or `None` if the selection is unknown.
    fn kept(&self, numbers: &mut Numbers<'_>) -> Option<Vec<usize>> {
        let left_out = self.left_out(numbers)?;
        Some(self.workloads_of(&Change::default()).into_iter().filter(|index| !left_out.contains(index)).collect())
    }

    /// Returns the stacks to draw: each workload under each design, step and machine in the figure, and the means. If
    /// too many, or if the figure only has means, only the means are drawn. `None` if even the means are too many.
    fn bars(&self, metric: usize, numbers: &mut Numbers<'_>) -> Option<Vec<Bar>> {
        let kept = self.kept(numbers)?;
        let places = self.with_baseline(self.places(metric), *kept.first()?, numbers);
        let of = |at: Coordinate, workload: &usize| Coordinate { workload: *workload, ..at };
        let workloads = if self.workloads.len() == 1 { &[] } else { &self.workloads[..] };
        let of_rows = self.layout.shown().any(|one| one == Dimension::Workload);
        let is_each_shown = of_rows && (workloads.len() + 1) * places.len() <= MOST_STACKS;
        let mut bars = Vec::new();
        for (index, workload) in workloads.iter().enumerate().filter(|_| is_each_shown) {
            let bar = |(label, at): &(String, Coordinate)| {
                let label =
                    if label.is_empty() { workload.label.clone() } else { format!("{}, {label}", workload.label) };
                Bar { label, runs: vec![of(*at, &index)], summary: false }
            };
            bars.extend(places.iter().map(bar));
        }
        let (mean, summary) = if bars.is_empty() { ("", false) } else { ("mean, ", true) };
        bars.extend(places.into_iter().map(|(label, at)| {
            let runs = kept.iter().map(|workload| of(at, workload)).collect();
            Bar { label: format!("{mean}{label}").trim_end_matches(", ").to_owned(), runs, summary }
        }));
        (bars.len() <= MOST_STACKS).then_some(bars)
    }

    /// Returns every combination of values in rows, columns and panels, except for workloads and metrics.
    fn places(&self, metric: usize) -> Vec<(String, Coordinate)> {
        let first = Coordinate { step: Some(0), metric, ..Coordinate::default() };
        let mut places = vec![(String::new(), first)];
        for dimension in self.layout.shown() {
            if matches!(dimension, Dimension::Workload | Dimension::Metric) {
                continue;
            }
            let labels = self.labels(dimension);
            let mut longer = Vec::new();
            for (before, at) in &places {
                let gap = if before.is_empty() { "" } else { ", " };
                let named = labels.iter().enumerate();
                longer.extend(
                    named.map(|(index, label)| (format!("{before}{gap}{label}"), self.with(*at, dimension, index))),
                );
            }
            places = longer;
        }
        places
    }

    /// Adds the common baseline in front of the combinations, if the combinations lack it.
    fn with_baseline(
        &self,
        mut places: Vec<(String, Coordinate)>,
        workload: usize,
        numbers: &Numbers<'_>,
    ) -> Vec<(String, Coordinate)> {
        let bases: Vec<Coordinate> = places.iter().map(|(_, at)| self.base(*at)).collect();
        let run = |at: Coordinate| self.record(Coordinate { workload, ..at }, numbers);
        if let [base, others @ ..] = &bases[..]
            && others.iter().all(|other| other == base)
            && let Some(record) = run(*base)
            && !places.iter().any(|(_, at)| run(*at).is_some_and(|run| std::ptr::eq(run, record)))
        {
            places.insert(0, ("baseline".to_owned(), *base));
        }
        places
    }

    /// Returns the mean stack over runs; `None` if a run has no result.
    fn mean_stack(&self, runs: &[Coordinate], numbers: &Numbers<'_>) -> Option<Stack> {
        let stack = |at: &Coordinate| {
            let (run, base) = (self.timed(*at, numbers)?, self.timed(self.base(*at), numbers)?);
            Some(shares(run, base, self.time))
        };
        let stacks: Vec<Stack> = runs.iter().map(stack).collect::<Option<_>>()?;
        let mean = |(at, (class, _)): (usize, &(&'static str, f64))| {
            (*class, stacks.iter().map(|stack| stack[at].1).sum::<f64>() / stacks.len() as f64)
        };
        Some(stacks.first()?.iter().enumerate().map(mean).collect())
    }

    /// Returns the record of the run at a coordinate, if present and with a positive time.
    fn timed<'r>(&self, at: Coordinate, numbers: &Numbers<'r>) -> Option<&'r RunRecord> {
        self.record(at, numbers).filter(|run| run.time.of(self.time) > 0.0)
    }

    /// Describes the largest differences between a claim's two cells, or between its cell and the baseline. `None` for
    /// a claim that does not compare times.
    pub(crate) fn explanation(&self, claim: &spec::Claim, numbers: &mut Numbers<'_>) -> Option<String> {
        let metric = self.time_metric()?;
        let ([of], [] | [_]) = (&claim.of[..], &claim.to[..]) else { return None };
        let runs = self.runs_of(of, metric, numbers)?;
        let (others, names) = match claim.to.first() {
            Some(to) => (self.runs_of(to, metric, numbers)?, names(to, of)),
            None => (runs.iter().map(|at| self.base(*at)).collect(), ["its baseline".to_owned(), column(of)]),
        };
        if runs.len() != others.len() {
            return None;
        }
        let pair =
            |(other, run): (&Coordinate, &Coordinate)| Some((self.timed(*other, numbers)?, self.timed(*run, numbers)?));
        let pairs: Vec<(&RunRecord, &RunRecord)> = others.iter().zip(&runs).map(pair).collect::<Option<_>>()?;
        let differences = differences(&pairs, self.time);
        let told = differences.iter().filter(|one| one.is_shown()).take(MOST_TOLD).map(Difference::to_string);
        let told: Vec<String> = told.collect();
        let workloads = if pairs.len() == 1 { String::new() } else { format!(" (mean of {} workloads)", pairs.len()) };
        let [from, to] = names;
        (!told.is_empty()).then(|| format!("of the time of {from}, {from} -> {to}{workloads}: {}", told.join("; ")))
    }

    /// Returns the runs behind a cell, one per workload. `None` for a cell with several columns, for a different
    /// metric, or without a run.
    fn runs_of(&self, cell: &spec::Cell, metric: usize, numbers: &mut Numbers<'_>) -> Option<Vec<Coordinate>> {
        let [column] = &cell.columns[..] else { return None };
        let column = self.labels(self.layout.columns).iter().position(|label| label == column.get())?;
        let labels = self.labels(self.layout.rows);
        let of_rows = self.layout.rows == Dimension::Workload;
        let row = match cell.row.as_ref().map(Text::get) {
            Some("first") => Some(0),
            Some("last") => Some(labels.len().checked_sub(1)?),
            // Means, and claims over each row.
            None | Some("mean" | "mean-beside" | "mean-of-all") if of_rows => None,
            Some(row) => Some(labels.iter().position(|label| label == row)?),
            None => return None,
        };
        let at = self.cell(&Panel::default(), row.unwrap_or(0), column);
        let workloads = match row {
            Some(_) if !self.is_mean_of_workloads() => vec![at.workload],
            None if cell.row.as_ref().is_some_and(|row| row.get() == "mean-of-all") => {
                self.workloads_of(&Change::default())
            }
            _ => self.kept(numbers)?,
        };
        let of = |workload| Coordinate { workload, ..at };
        (at.metric == metric).then(|| workloads.into_iter().map(of).collect())
    }
}

/// Caption for all stacks.
const CAPTION: &str = "A stack is as high as its time over that of its baseline, cut by class: outside kernels (idle), at \
                       kernel boundaries, and the rest by the cycles of warp slots that held a warp. Means are arithmetic.";

fn column(cell: &spec::Cell) -> String {
    cell.columns.first().map(|column| column.get().to_owned()).unwrap_or_default()
}

/// Returns the distinguishing names of two cells: their columns, or their rows if the columns are equal.
fn names(one: &spec::Cell, other: &spec::Cell) -> [String; 2] {
    let row = |cell: &spec::Cell| cell.row.as_ref().map_or(String::new(), |row| row.get().to_owned());
    if column(one) == column(other) { [row(one), row(other)] } else { [column(one), column(other)] }
}
