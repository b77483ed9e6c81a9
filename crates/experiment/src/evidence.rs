//! Evidence behind a figure's numbers: the run for each number, its range over seeds and scales, and notes from runs
//! about the row's workload.

use crate::figure::FigureTable;
use crate::grid::{Change, Coordinate, Inputs, Numbers};
use crate::layout::Panel;
use crate::plan::ExperimentPlan;
use crate::point_result::PointResult;
use crate::sampling::SAMPLES;
use crate::shell::quoted;
use crate::spec::{Dimension, Relative};
use std::collections::BTreeMap;
use tombolo_machine::MachineScale;
use tombolo_report::document::FigureRow;
use tombolo_report::evidence::{CellEvidence, Evidence, Remark, Run, Runs};
use tombolo_system::TimeChoice;

/// Counters shown for a run next to its time; the results table has all counters.
const COUNTERS: [&str; 5] = ["transactions", "l2.loads", "l2.hits", "inter_gpu_bytes", "dram.read_bytes"];

/// Largest relative difference between a workload's speed-ups at two scales without a remark; the bound used to choose
/// quick scales.
const COARSE: f64 = 0.05;

/// Description for ranges caused by the quick-scale error.
const SCALES: &str = "what speed-ups differ by at the next larger scale";

/// Runs in a document, each listed once.
#[derive(Default)]
pub(crate) struct Register {
    runs: Runs,
    places: BTreeMap<String, usize>,
}

impl Register {
    /// Creates a register for runs compared by the time `time`.
    pub(crate) fn new(time: TimeChoice) -> Register {
        let counters = std::iter::once(time.path()).chain(COUNTERS).map(str::to_owned).collect();
        Register { runs: Runs { counters, rows: Vec::new() }, places: BTreeMap::new() }
    }

    pub(crate) fn into_runs(self) -> Runs {
        self.runs
    }

    /// Returns the index of the run at a coordinate, or `None` if no simulation ran for it.
    pub(crate) fn place(&mut self, plan: &ExperimentPlan, at: Coordinate, numbers: &mut Numbers<'_>) -> Option<usize> {
        plan.record(at, numbers)?;
        let point = plan.point(at, &Change::default()).ok()?;
        let (runs, key) = (&mut self.runs, point.key().to_string());
        let place = *self.places.entry(key).or_insert_with(|| {
            let values = runs.counters.iter().map(|path| numbers.counter(&point, path)).collect();
            runs.rows.push(Run { label: point.label(), command: plan.command(at), values });
            runs.rows.len() - 1
        });
        Some(place)
    }
}

impl ExperimentPlan {
    /// Returns the evidence behind the numbers in `table`, the table without any change.
    pub(crate) fn evidence(
        &self,
        table: &FigureTable,
        changes: &[Change],
        numbers: &mut Numbers<'_>,
        register: &mut Register,
    ) -> Evidence {
        let repeats: Vec<&Change> = changes.iter().filter(|change| is_of_seed_or_scale(change)).collect();
        let moved: Vec<TablePair> =
            repeats.iter().map(|change| TablePair::of(self, &table.panel, change, numbers)).collect();
        let (mut cells, mut remarks) = (Vec::new(), Vec::new());
        let (mut by_scale, mut has_samples) = (false, false);
        for (at, row) in table.rows.iter().enumerate() {
            for column in 0..table.columns.len() {
                let here = self.run_of(&table.panel, at, row, column);
                let run = here.and_then(|here| register.place(self, here, numbers));
                let scaled = row.value(column).and_then(|value| self.of_scale(value, here?));
                by_scale |= scaled.is_some();
                let range = row.value(column).and_then(|value| self.range(value, row, column, &moved));
                let sampled = self.sampled_range(table, at, column, numbers);
                has_samples |= sampled.is_some();
                let range = range.into_iter().chain(scaled).chain(sampled).reduce(joined);
                if run.is_some() || range.is_some() {
                    cells.push(CellEvidence { row: at, column, run, range });
                }
            }
            if self.layout.rows == Dimension::Workload && !row.summary {
                remarks.extend(self.noted(table, at, numbers).into_iter().map(|text| Remark { row: at, text }));
                remarks.extend(self.coarse(&self.cell(&table.panel, at, 0)).map(|text| Remark { row: at, text }));
            }
        }
        let has_ranges = cells.iter().any(|cell: &CellEvidence| cell.range.is_some());
        let told = |change: &&Change| match &change.only {
            None => change.label.clone(),
            Some(only) => format!("{} (of {} workloads; means move as theirs)", change.label, only.len()),
        };
        let by_scale = by_scale.then(|| SCALES.to_owned());
        let over = repeats.iter().map(told).chain(by_scale).chain(has_samples.then(|| SAMPLES.to_owned()));
        let repeated = if has_ranges { over.collect::<Vec<_>>().join(", ") } else { String::new() };
        Evidence { repeated, cells, remarks }
    }

    /// Returns the coordinate for a single-run number.
    fn run_of(&self, panel: &Panel, at: usize, row: &FigureRow, column: usize) -> Option<Coordinate> {
        let is_one = !row.summary && (!self.is_mean_of_workloads() || self.workloads.len() == 1);
        is_one.then(|| self.cell(panel, at, column))
    }

    /// Returns the range of a speed-up over a run on the same machine. The range covers the speed-up error of the
    /// workload at a different scale.
    fn of_scale(&self, value: f64, here: Coordinate) -> Option<[f64; 2]> {
        let error = self.workloads.get(here.workload)?.error?;
        let ((machine, _), (other, _)) = (self.what_runs(here), self.what_runs(self.base(here)));
        let is_speedup = self.metric(here.metric).relative == Some(Relative::SpeedUp);
        (is_speedup && machine == other).then_some([value * (1.0 - error), value * (1.0 + error)])
    }

    /// Returns a remark if a workload's speed-ups differ between scales by more than [`COARSE`].
    fn coarse(&self, at: &Coordinate) -> Option<String> {
        let error = self.workloads.get(at.workload)?.error.filter(|error| *error > COARSE)?;
        Some(format!("speed-ups differ by up to {:.0} % from those at another scale", 100.0 * error))
    }

    /// Returns the least and greatest value among a number and its repetitions.
    fn range(&self, value: f64, row: &FigureRow, column: usize, moved: &[TablePair]) -> Option<[f64; 2]> {
        let is_mean = row.summary || self.is_mean_of_workloads();
        let all: Vec<f64> = moved.iter().filter_map(|one| one.value(value, &row.label, column, is_mean)).collect();
        let ends = |[low, high]: [f64; 2], value: &f64| [low.min(*value), high.max(*value)];
        (!all.is_empty()).then(|| all.iter().fold([value, value], ends))
    }

    /// Returns the notes about the workload from the runs in a row.
    fn noted(&self, table: &FigureTable, row: usize, numbers: &Numbers<'_>) -> Vec<String> {
        let mut noted: Vec<String> = Vec::new();
        for at in (0..table.columns.len()).map(|column| self.cell(&table.panel, row, column)) {
            let prefix = format!("{}: ", self.workloads[at.workload].choice.label);
            let notes = self.result(at, numbers).into_iter().flat_map(PointResult::notes);
            for note in notes.filter_map(|note| note.strip_prefix(&prefix)) {
                if !noted.iter().any(|known| known == note) {
                    noted.push(note.to_owned());
                }
            }
        }
        noted
    }

    /// Returns the command that repeats the run at a coordinate.
    fn command(&self, at: Coordinate) -> String {
        let (machine, design) = self.what_runs(at);
        let workload = &self.workloads[at.workload];
        let mut words = vec![
            ("--machine", self.machines[machine].name.clone()),
            ("--design", self.designs[design].name.clone()),
            ("--workload", workload.choice.label.clone()),
        ];
        if workload.scale != MachineScale::FULL {
            words.push(("--scale", workload.scale.to_string()));
        }
        words.extend(self.settings(at, &Change::default()).into_iter().map(|setting| ("--set", setting)));
        let words = words.into_iter().map(|(flag, word)| format!(" {flag} {}", quoted(&word)));
        let sample = self.samples(self.metric(at.metric)).then(|| " --sample".to_owned());
        std::iter::once("tombolo run".to_owned()).chain(words).chain(sample).collect()
    }
}

/// Returns the smallest range that contains both ranges.
fn joined([low, high]: [f64; 2], [least, greatest]: [f64; 2]) -> [f64; 2] {
    [low.min(least), high.max(greatest)]
}

/// True for a change that touches only seeds, scales or inputs.
fn is_of_seed_or_scale(change: &Change) -> bool {
    change.set.is_empty() && (change.seed.is_some() || change.scale.is_some() || change.inputs != Inputs::Own)
}

/// Numbers in a figure under a change, and the unchanged numbers for the same workloads.
struct TablePair {
    changed: FigureTable,
    unchanged: FigureTable,
    of_all: bool,
}

impl TablePair {
    fn of(plan: &ExperimentPlan, panel: &Panel, change: &Change, numbers: &mut Numbers<'_>) -> TablePair {
        let nothing = Change { only: change.only.clone(), ..Change::default() };
        let of = |change, numbers: &mut _| FigureTable::in_panel(plan, panel.clone(), change, numbers);
        let (changed, unchanged) = (of(change, numbers), of(&nothing, numbers));
        TablePair { changed, unchanged, of_all: change.only.is_none() }
    }

    /// Applies the change to a number. A mean over all workloads is scaled by the ratio between the two means over the
    /// repeated workloads.
    fn value(&self, value: f64, row: &str, column: usize, is_mean: bool) -> Option<f64> {
        let changed = self.changed.row(row)?.value(column)?;
        if self.of_all || !is_mean {
            return Some(changed);
        }
        let unchanged = self.unchanged.row(row)?.value(column)?;
        Some(value * changed / unchanged).filter(|value| value.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ScaleChoice;
    use crate::preset;

    fn table(values: &[f64]) -> FigureTable {
        let row = |(at, value): (usize, &f64)| FigureRow {
            label: at.to_string(),
            values: vec![Some(*value)],
            summary: false,
            at: None,
        };
        FigureTable {
            panel: Panel::default(),
            columns: vec!["gain".into()],
            rows: values.iter().enumerate().map(row).collect(),
            left_out: None,
        }
    }

    #[test]
    fn a_mean_moves_as_that_of_the_workloads_that_were_run_again() {
        let moved = |of_all| TablePair { changed: table(&[3.0]), unchanged: table(&[2.0]), of_all };
        assert_eq!(moved(false).value(4.0, "0", 0, true), Some(6.0));
        assert_eq!(moved(false).value(4.0, "0", 0, false), Some(3.0), "a workload has its own number");
        assert_eq!(moved(true).value(4.0, "0", 0, true), Some(3.0));
        assert_eq!(moved(true).value(4.0, "1", 0, true), None, "it was not run again");
    }

    /// Returns a shipped figure whose first workload has the given error at a different scale.
    fn plan(paper: &str, id: &str, error: f64) -> ExperimentPlan {
        let (_, experiments) = preset::paper(paper).unwrap();
        let (file, spec) = experiments.into_iter().find(|(_, spec)| spec.id == id).unwrap();
        let mut plan = ExperimentPlan::new(file, spec, ScaleChoice::Quick).unwrap();
        plan.workloads[0].error = Some(error);
        plan
    }

    #[test]
    fn speed_ups_over_a_run_of_the_same_machine_have_the_error_of_their_scale() {
        let first = |plan: &ExperimentPlan| plan.cell(&Panel::default(), 0, 0);
        let same = plan("hmg", "figure-8", 0.1);
        assert_eq!(same.of_scale(2.0, first(&same)), Some([1.8, 2.2]));
        let other = plan("numa-gpu", "figure-10", 0.1);
        assert_eq!(other.of_scale(2.0, first(&other)), None, "one socket is another machine");
    }

    #[test]
    fn rows_that_differ_much_at_another_scale_are_remarked_on() {
        let told = |error| {
            let plan = plan("hmg", "figure-8", error);
            plan.coarse(&plan.cell(&Panel::default(), 0, 0))
        };
        assert_eq!(told(0.05), None);
        assert_eq!(told(0.12).as_deref(), Some("speed-ups differ by up to 12 % from those at another scale"));
    }

    #[test]
    fn ranges_hold_those_of_repetitions_and_of_scale() {
        assert_eq!(joined([1.0, 2.0], [0.5, 1.5]), [0.5, 2.0]);
    }

    #[test]
    fn ranges_are_over_seeds_and_scales_and_not_over_what_is_assumed() {
        let seed = Change { seed: Some(2), ..Change::default() };
        let assumed = Change { set: vec!["fabric.latency=1us".into()], ..Change::default() };
        assert_eq!([&seed, &assumed, &Change::default()].map(is_of_seed_or_scale), [true, false, false]);
    }
}
