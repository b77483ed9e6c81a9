//! What stands behind the numbers of a figure: the run of each, its range over seeds and scales, and what runs noted of the
//! workload of a row.

use crate::figure::Table;
use crate::grid::{Change, Coordinate, Inputs, Numbers};
use crate::layout::Panel;
use crate::plan::Plan;
use crate::point_result::PointResult;
use crate::sampling::SAMPLES;
use crate::shell::quoted;
use crate::spec::{Dimension, Relative};
use std::collections::BTreeMap;
use tombolo_machine::Scale;
use tombolo_report::document::Row;
use tombolo_report::evidence::{Cell, Evidence, Remark, Run, Runs};
use tombolo_system::TimeChoice;

/// Counters that are shown of a run beside its time; a table of results has all.
const COUNTERS: [&str; 5] = ["transactions", "l2.loads", "l2.hits", "inter_gpu_bytes", "dram.read_bytes"];

/// Share by which speed-ups of a workload may differ at another scale without a remark: what a quick scale is chosen by.
const COARSE: f64 = 0.05;

/// What ranges are over where a quick scale has an error.
const SCALES: &str = "what speed-ups differ by at the next larger scale";

/// The runs of a document, each once.
#[derive(Default)]
pub(crate) struct Register {
    runs: Runs,
    places: BTreeMap<String, usize>,
}

impl Register {
    /// One for runs that are compared by this time.
    pub(crate) fn new(time: TimeChoice) -> Register {
        let counters = std::iter::once(time.path()).chain(COUNTERS).map(str::to_owned).collect();
        Register { runs: Runs { counters, rows: Vec::new() }, places: BTreeMap::new() }
    }

    pub(crate) fn into_runs(self) -> Runs {
        self.runs
    }

    /// The place of the run at a coordinate; `None` where nothing was simulated there.
    pub(crate) fn place(&mut self, plan: &Plan, at: Coordinate, numbers: &mut Numbers<'_>) -> Option<usize> {
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

impl Plan {
    /// What stands behind the numbers of `table`, which is that of no change.
    pub(crate) fn evidence(
        &self,
        table: &Table,
        changes: &[Change],
        numbers: &mut Numbers<'_>,
        register: &mut Register,
    ) -> Evidence {
        let repeats: Vec<&Change> = changes.iter().filter(|change| is_of_seed_or_scale(change)).collect();
        let moved: Vec<Moved> = repeats.iter().map(|change| Moved::of(self, &table.panel, change, numbers)).collect();
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
                    cells.push(Cell { row: at, column, run, range });
                }
            }
            if self.layout.rows == Dimension::Workload && !row.summary {
                remarks.extend(self.noted(table, at, numbers).into_iter().map(|text| Remark { row: at, text }));
                remarks.extend(self.coarse(&self.cell(&table.panel, at, 0)).map(|text| Remark { row: at, text }));
            }
        }
        let has_ranges = cells.iter().any(|cell: &Cell| cell.range.is_some());
        let told = |change: &&Change| match &change.only {
            None => change.label.clone(),
            Some(only) => format!("{} (of {} workloads; means move as theirs)", change.label, only.len()),
        };
        let by_scale = by_scale.then(|| SCALES.to_owned());
        let over = repeats.iter().map(told).chain(by_scale).chain(has_samples.then(|| SAMPLES.to_owned()));
        let repeated = if has_ranges { over.collect::<Vec<_>>().join(", ") } else { String::new() };
        Evidence { repeated, cells, remarks }
    }

    /// The coordinate of a number that is of one run.
    fn run_of(&self, panel: &Panel, at: usize, row: &Row, column: usize) -> Option<Coordinate> {
        let is_one = !row.summary && (!self.is_mean_of_workloads() || self.workloads.len() == 1);
        is_one.then(|| self.cell(panel, at, column))
    }

    /// The ends of a speed-up over a run of the same machine, by what such speed-ups of its workload differ by at another
    /// scale.
    fn of_scale(&self, value: f64, here: Coordinate) -> Option<[f64; 2]> {
        let error = self.workloads.get(here.workload)?.error?;
        let ((machine, _), (other, _)) = (self.what_runs(here), self.what_runs(self.base(here)));
        let is_speedup = self.metric(here.metric).relative == Some(Relative::SpeedUp);
        (is_speedup && machine == other).then_some([value * (1.0 - error), value * (1.0 + error)])
    }

    /// What is said of a workload whose speed-ups differ by more than a bound at another scale.
    fn coarse(&self, at: &Coordinate) -> Option<String> {
        let error = self.workloads.get(at.workload)?.error.filter(|error| *error > COARSE)?;
        Some(format!("speed-ups differ by up to {:.0} % from those at another scale", 100.0 * error))
    }

    /// The least and the greatest of a number and what repetitions make of it.
    fn range(&self, value: f64, row: &Row, column: usize, moved: &[Moved]) -> Option<[f64; 2]> {
        let is_mean = row.summary || self.is_mean_of_workloads();
        let all: Vec<f64> = moved.iter().filter_map(|one| one.value(value, &row.label, column, is_mean)).collect();
        let ends = |[low, high]: [f64; 2], value: &f64| [low.min(*value), high.max(*value)];
        (!all.is_empty()).then(|| all.iter().fold([value, value], ends))
    }

    /// What the runs of a row noted of their workload.
    fn noted(&self, table: &Table, row: usize, numbers: &Numbers<'_>) -> Vec<String> {
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

    /// The command that makes the run at a coordinate alone.
    fn command(&self, at: Coordinate) -> String {
        let (machine, design) = self.what_runs(at);
        let workload = &self.workloads[at.workload];
        let mut words = vec![
            ("--machine", self.machines[machine].name.clone()),
            ("--design", self.designs[design].name.clone()),
            ("--workload", workload.choice.label.clone()),
        ];
        if workload.scale != Scale::FULL {
            words.push(("--scale", workload.scale.to_string()));
        }
        words.extend(self.settings(at, &Change::default()).into_iter().map(|setting| ("--set", setting)));
        let words = words.into_iter().map(|(flag, word)| format!(" {flag} {}", quoted(&word)));
        let sample = self.samples(self.metric(at.metric)).then(|| " --sample".to_owned());
        std::iter::once("tombolo run".to_owned()).chain(words).chain(sample).collect()
    }
}

/// A range that has both.
fn joined([low, high]: [f64; 2], [least, greatest]: [f64; 2]) -> [f64; 2] {
    [low.min(least), high.max(greatest)]
}

/// A change of seeds, scales or inputs, and of nothing else.
fn is_of_seed_or_scale(change: &Change) -> bool {
    change.set.is_empty() && (change.seed.is_some() || change.scale.is_some() || change.inputs != Inputs::Own)
}

/// The numbers of a figure under a change, and those of the same workloads without it.
struct Moved {
    changed: Table,
    unchanged: Table,
    of_all: bool,
}

impl Moved {
    fn of(plan: &Plan, panel: &Panel, change: &Change, numbers: &mut Numbers<'_>) -> Moved {
        let nothing = Change { only: change.only.clone(), ..Change::default() };
        let of = |change, numbers: &mut _| Table::in_panel(plan, panel.clone(), change, numbers);
        let (changed, unchanged) = (of(change, numbers), of(&nothing, numbers));
        Moved { changed, unchanged, of_all: change.only.is_none() }
    }

    /// What the change makes of a number. A mean of all workloads moves as that of those that were run again.
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

    fn table(values: &[f64]) -> Table {
        let row = |(at, value): (usize, &f64)| Row {
            label: at.to_string(),
            values: vec![Some(*value)],
            summary: false,
            at: None,
        };
        Table {
            panel: Panel::default(),
            columns: vec!["gain".into()],
            rows: values.iter().enumerate().map(row).collect(),
            left_out: None,
        }
    }

    #[test]
    fn a_mean_moves_as_that_of_the_workloads_that_were_run_again() {
        let moved = |of_all| Moved { changed: table(&[3.0]), unchanged: table(&[2.0]), of_all };
        assert_eq!(moved(false).value(4.0, "0", 0, true), Some(6.0));
        assert_eq!(moved(false).value(4.0, "0", 0, false), Some(3.0), "a workload has its own number");
        assert_eq!(moved(true).value(4.0, "0", 0, true), Some(3.0));
        assert_eq!(moved(true).value(4.0, "1", 0, true), None, "it was not run again");
    }

    /// A figure that ships, whose first workload differs by a share at another scale.
    fn plan(paper: &str, id: &str, error: f64) -> Plan {
        let (_, experiments) = preset::paper(paper).unwrap();
        let (file, spec) = experiments.into_iter().find(|(_, spec)| spec.id == id).unwrap();
        let mut plan = Plan::new(file, spec, ScaleChoice::Quick).unwrap();
        plan.workloads[0].error = Some(error);
        plan
    }

    #[test]
    fn speed_ups_over_a_run_of_the_same_machine_have_the_error_of_their_scale() {
        let first = |plan: &Plan| plan.cell(&Panel::default(), 0, 0);
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
