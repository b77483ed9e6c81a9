//! Result of a comparison: runs, speed-ups over a baseline, geometric means, and the counters that explain them.

mod errors;
mod kernels;

use crate::table::{Cell, Look, Table, bytes, count, percent, seconds};
use errors::Errors;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tombolo_report::Document;
use tombolo_report::document::{self, Chart, ChartKind, Figure, FigureRow, Provenance};
use tombolo_system::record::KernelRecord;
use tombolo_system::{RunRecord, TimeChoice};

/// Speed-ups that differ from 1 by less are shown as equal to the baseline. Source: the resolution of two decimals.
const EQUAL: f64 = 0.005;

/// Result of each run, or its error, by workload, then by design.
pub(crate) type Results = Vec<Vec<Result<RunRecord, String>>>;

/// A run without a result.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FailedRun {
    /// Workload name from the command line.
    workload: String,
    /// Name of the design.
    design: String,
    /// Reason for the run's failure.
    error: String,
}

/// Launches of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Launches {
    /// Workload name from the command line.
    pub(crate) workload: String,
    /// Name of the design.
    pub(crate) design: String,
    /// Launches, in order.
    pub(crate) kernels: Vec<KernelRecord>,
}

/// Cost of the comparison on the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Seconds of wall-clock time, recording included.
    pub(crate) wall_s: f64,
    /// Number of threads used.
    pub(crate) threads: usize,
}

/// Complete document, printed by `compare --json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Comparison {
    /// Version of the simulator.
    tombolo: String,
    /// Machine.
    machine: String,
    /// Fraction of the machine and the inputs in this run.
    scale: String,
    /// Settings of the machine and the designs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
    /// Baseline design for speed-ups.
    baseline: String,
    /// Run time used for speed-ups.
    time: TimeChoice,
    /// Designs, in the given order.
    designs: Vec<String>,
    /// Workloads, in the given order.
    workloads: Vec<String>,
    /// Baseline time divided by the design's time, by workload and design; null if a run failed.
    speedups: BTreeMap<String, BTreeMap<String, Option<f64>>>,
    /// Geometric mean over all workloads, by design; null if any run failed.
    geometric_means: BTreeMap<String, Option<f64>>,
    /// Error bound on speed-ups, in either direction, for sampled runs; null if unbounded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    speedup_errors: BTreeMap<String, BTreeMap<String, Option<f64>>>,
    /// Error bound on geometric means, in either direction; null if unbounded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    geometric_mean_errors: BTreeMap<String, Option<f64>>,
    /// Every result, workload by workload, designs in the given order.
    runs: Vec<RunRecord>,
    /// Launches for every result, on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kernels: Vec<Launches>,
    /// Every run without a result.
    failures: Vec<FailedRun>,
    /// Distinct notes from the runs.
    notes: Vec<String>,
    /// Cost of the command on the host.
    host: Cost,
}

/// Description of the compared runs.
pub(crate) struct ComparisonSetup {
    /// Machine.
    pub(crate) machine: String,
    /// Scale of the machine.
    pub(crate) scale: String,
    /// Settings.
    pub(crate) set: Vec<String>,
    /// Name of the baseline design in `designs`.
    pub(crate) baseline: String,
    /// Run time used for speed-ups.
    pub(crate) time: TimeChoice,
    /// Names of the designs.
    pub(crate) designs: Vec<String>,
    /// Workload names from the command line.
    pub(crate) workloads: Vec<String>,
    /// True to include launches.
    pub(crate) kernels: bool,
}

impl Comparison {
    /// Builds the comparison from `results`: by workload, then by design, in the order of `compared`.
    pub(crate) fn of(compared: ComparisonSetup, results: Results, host: Cost) -> Comparison {
        let ComparisonSetup { machine, scale, set, baseline, time, designs, workloads, kernels } = compared;
        let (mut runs, mut failures) = (Vec::new(), Vec::new());
        for (workload, row) in workloads.iter().zip(results) {
            for (design, result) in designs.iter().zip(row) {
                match result {
                    Ok(run) => runs.push(run),
                    Err(error) => {
                        let (workload, design) = (workload.clone(), design.clone());
                        failures.push(FailedRun { workload, design, error });
                    }
                }
            }
        }
        let launches = |run: &RunRecord| Launches {
            workload: run.workload.clone(),
            design: run.design.clone(),
            kernels: run.kernels.clone(),
        };
        let mut comparison = Comparison {
            kernels: runs.iter().filter(|_| kernels).map(launches).collect(),
            tombolo: env!("CARGO_PKG_VERSION").to_owned(),
            machine,
            scale,
            set,
            baseline,
            time,
            designs,
            workloads,
            speedups: BTreeMap::new(),
            geometric_means: BTreeMap::new(),
            speedup_errors: BTreeMap::new(),
            geometric_mean_errors: BTreeMap::new(),
            notes: each_once(&runs),
            runs,
            failures,
            host,
        };
        comparison.measure();
        comparison
    }

    /// Computes speed-ups and means.
    fn measure(&mut self) {
        for workload in &self.workloads {
            let row = self.designs.iter().map(|design| (design.clone(), self.speedup(workload, design)));
            self.speedups.insert(workload.clone(), row.collect());
        }
        for design in &self.designs {
            let speedups = self.workloads.iter().map(|workload| self.speedups[workload][design]);
            self.geometric_means.insert(design.clone(), geometric_mean(speedups));
        }
        self.measure_errors();
    }

    /// True if every run has a result.
    pub(crate) fn is_whole(&self) -> bool {
        self.failures.is_empty()
    }

    /// Returns a line for each run without a result.
    pub(crate) fn failures(&self) -> impl Iterator<Item = String> {
        self.failures.iter().map(|failed| failed.error.clone())
    }

    fn run(&self, workload: &str, design: &str) -> Option<&RunRecord> {
        self.runs.iter().find(|run| run.workload == workload && run.design == design)
    }

    fn speedup(&self, workload: &str, design: &str) -> Option<f64> {
        let time = |design| self.run(workload, design).map(|run| run.time.of(self.time)).filter(|time| *time > 0.0);
        Some(time(&self.baseline)? / time(design)?)
    }

    /// Formats both tables, the notes and the failures for people.
    pub(crate) fn text(&self, colours: bool) -> String {
        let title = |text: &str| format!("{}\n", Look::Strong.paint(text, colours));
        let Comparison { machine, scale, baseline, time, .. } = self;
        let mut text = title(&format!("{machine} at scale {scale}: speed-up over {baseline}, {}", time.title()));
        text.push_str(&self.speedup_table().render(colours));
        text.push('\n');
        text.push_str(&title("Why"));
        text.push_str(&self.cause_table().render(colours));
        if !self.kernels.is_empty() {
            text.push_str(&title("Kernels, by time"));
            text.push_str(&kernels::table(&self.kernels, &self.designs).render(colours));
        }
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        for FailedRun { workload, design, error } in &self.failures {
            let failed = Look::Bad.paint("failed", colours);
            text.push_str(&format!("{failed}: {workload} under {design}: {error}\n"));
        }
        let Cost { wall_s, threads } = self.host;
        let runs = self.runs.len() + self.failures.len();
        text.push_str(&format!("\n{runs} runs in {} on {threads} threads\n", seconds(wall_s)));
        text
    }

    fn speedup_table(&self) -> Table {
        let headings = std::iter::once("workload").chain(self.designs.iter().map(String::as_str));
        let mut table = Table::new(1).with_headings(headings);
        let mut add = |name: &str, speedups: &BTreeMap<String, Option<f64>>, errors: Option<&Errors>| {
            let error = |design| errors.and_then(|errors| errors.get(design).copied());
            let cells = self.designs.iter().map(|design| speedup_cell(speedups[design], error(design)));
            table.row(std::iter::once(Cell::plain(name)).chain(cells).collect());
        };
        for workload in &self.workloads {
            add(workload, &self.speedups[workload], self.speedup_errors.get(workload));
        }
        add("geometric mean", &self.geometric_means, Some(&self.geometric_mean_errors));
        table
    }

    fn cause_table(&self) -> Table {
        let mut table = Table::new(2).with_headings(ExplainingCounters::HEADINGS);
        for workload in &self.workloads {
            let mut name = workload.as_str();
            for design in &self.designs {
                let cause = self.run(workload, design).map(ExplainingCounters::of);
                table.row(cause_row(std::mem::take(&mut name), design, cause));
            }
        }
        if self.workloads.len() > 1 {
            let mut name = "all";
            for design in &self.designs {
                let runs = self.workloads.iter().map(|workload| self.run(workload, design));
                let total = runs
                    .map(|run| run.map(ExplainingCounters::of))
                    .try_fold(ExplainingCounters::default(), |sum, cause| Some(sum.and(cause?)));
                table.row(cause_row(std::mem::take(&mut name), design, total));
            }
        }
        table
    }
}

/// Returns the distinct notes of all runs.
fn each_once(runs: &[RunRecord]) -> Vec<String> {
    let mut notes = Vec::new();
    for note in runs.iter().flat_map(|run| &run.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

/// Formats a speed-up. `error`: the error bound, for sampled runs.
fn speedup_cell(speedup: Option<f64>, error: Option<Option<f64>>) -> Cell {
    let Some(speedup) = speedup else { return Cell::new("failed", Look::Bad) };
    let unsure = error.map_or(0.0, |error| error.unwrap_or(f64::INFINITY));
    let look = match speedup {
        _ if (speedup - 1.0).abs() < EQUAL.max(unsure) => Look::Plain,
        _ if speedup > 1.0 => Look::Good,
        _ => Look::Bad,
    };
    let off = match error {
        Some(Some(error)) if error > 0.0 => format!(" ± {error:.2}"),
        Some(None) => " ± ?".to_owned(),
        None | Some(Some(_)) => String::new(),
    };
    Cell::new(format!("{speedup:.2}{off}"), look)
}

fn cause_row(workload: &str, design: &str, cause: Option<ExplainingCounters>) -> Vec<Cell> {
    let labels = [Cell::plain(workload), Cell::plain(design)];
    labels.into_iter().chain(cause.map(|cause| cause.cells()).into_iter().flatten()).collect()
}

/// Loads at a cache level, in line transactions.
#[derive(Clone, Copy, Debug, Default)]
struct Loads {
    hits: u64,
    all: u64,
}

impl Loads {
    fn and(self, other: Loads) -> Loads {
        Loads { hits: self.hits + other.hits, all: self.all + other.all }
    }
}

/// Counters that explain a run's time.
#[derive(Clone, Copy, Debug, Default)]
struct ExplainingCounters {
    l1: Loads,
    l2: Loads,
    inter_gpu_bytes: u64,
    invalidation_bytes: u64,
    invalidations: u64,
    bulk_invalidations: u64,
    dram_bytes: u64,
}

impl ExplainingCounters {
    const HEADINGS: [&'static str; 9] = [
        "workload",
        "design",
        "L1 hits",
        "L2 hits",
        "between GPUs",
        "invalidations",
        "their bytes",
        "L2s dropped",
        "from DRAM",
    ];

    fn of(run: &RunRecord) -> ExplainingCounters {
        let counter = |name: &str| run.coherence.get(name).copied().unwrap_or(0);
        let causes = ["invalidations_by_store", "invalidations_by_eviction", "invalidations_forwarded"];
        ExplainingCounters {
            l1: Loads { hits: run.l1.hits, all: run.l1.loads },
            l2: Loads { hits: run.l2.hits, all: run.l2.loads },
            inter_gpu_bytes: run.inter_gpu_bytes,
            invalidation_bytes: counter("invalidation_bytes"),
            invalidations: causes.iter().map(|cause| counter(cause)).sum(),
            bulk_invalidations: counter("bulk_invalidations"),
            dram_bytes: run.dram.read_bytes,
        }
    }

    fn and(self, other: ExplainingCounters) -> ExplainingCounters {
        ExplainingCounters {
            l1: self.l1.and(other.l1),
            l2: self.l2.and(other.l2),
            inter_gpu_bytes: self.inter_gpu_bytes + other.inter_gpu_bytes,
            invalidation_bytes: self.invalidation_bytes + other.invalidation_bytes,
            invalidations: self.invalidations + other.invalidations,
            bulk_invalidations: self.bulk_invalidations + other.bulk_invalidations,
            dram_bytes: self.dram_bytes + other.dram_bytes,
        }
    }

    fn cells(&self) -> [Cell; 7] {
        [
            percent(self.l1.hits, self.l1.all),
            percent(self.l2.hits, self.l2.all),
            bytes(self.inter_gpu_bytes),
            count(self.invalidations),
            bytes(self.invalidation_bytes),
            count(self.bulk_invalidations),
            bytes(self.dram_bytes),
        ]
        .map(Cell::plain)
    }
}

impl Comparison {
    /// Builds the report document for the comparison, with its provenance.
    pub(crate) fn report(&self, provenance: Option<Provenance>) -> Document {
        let command = provenance.as_ref().map(|made| made.command.clone()).unwrap_or_default();
        let failure = |one: &FailedRun| document::Failure {
            point: format!("{} under {}", one.workload, one.design),
            error: one.error.clone(),
        };
        Document {
            title: format!("Designs on {}", self.machine),
            paper: "comparison".to_owned(),
            scale: self.scale.clone(),
            time: self.time.to_string(),
            tombolo: self.tombolo.clone(),
            command,
            figures: vec![self.figure()],
            failures: self.failures.iter().map(failure).collect(),
            notes: self.notes.clone(),
            provenance,
            ..Document::default()
        }
    }

    fn figure(&self) -> Figure {
        let row = |label: &str, speedups: &BTreeMap<String, Option<f64>>, summary| FigureRow {
            label: label.to_owned(),
            values: self.designs.iter().map(|design| speedups.get(design).copied().flatten()).collect(),
            summary,
            at: None,
        };
        let none = BTreeMap::new();
        let rows = self.workloads.iter().map(|one| row(one, self.speedups.get(one).unwrap_or(&none), false));
        let mean = row("geometric mean", &self.geometric_means, true);
        let set = if self.set.is_empty() { String::new() } else { format!(" Set: {}.", self.set.join(", ")) };
        Figure {
            id: "speed-up".to_owned(),
            title: format!("Speed-up over {} on {} (time: {})", self.baseline, self.machine, self.time),
            caption: format!(
                "Speed-up: time under {}, over the time of the run. Times are {}. Run at {} of machine and input.{set}",
                self.baseline,
                self.time.title(),
                self.scale
            ),
            chart: Chart {
                kind: ChartKind::Bars,
                x: "workload".to_owned(),
                y: "speed-up".to_owned(),
                reference: Some(1.0),
                ..Chart::default()
            },
            columns: std::iter::once("workload".to_owned()).chain(self.designs.iter().cloned()).collect(),
            rows: rows.chain([mean]).collect(),
            evidence: self.evidence(),
            ..Figure::default()
        }
    }
}

/// Returns the geometric mean; `None` if a value is missing, or without values.
fn geometric_mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let logarithms = values.map(|value| value.map(f64::ln)).collect::<Option<Vec<f64>>>()?;
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    (!logarithms.is_empty()).then(|| mean.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometric_mean_needs_every_value() {
        let mean = geometric_mean([Some(2.0), Some(8.0)].into_iter()).unwrap();
        assert!((mean - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean([Some(2.0), None].into_iter()), None);
        assert_eq!(geometric_mean([].into_iter()), None);
    }

    #[test]
    fn a_failed_baseline_leaves_no_speedups_and_is_named() {
        let compared = ComparisonSetup {
            machine: "m".into(),
            scale: "1".into(),
            set: Vec::new(),
            baseline: "a".into(),
            time: TimeChoice::default(),
            designs: vec!["a".into(), "b".into()],
            workloads: vec!["w".into()],
            kernels: true,
        };
        let results = vec![vec![Err("no room".to_owned()), Err("no room".to_owned())]];
        let comparison = Comparison::of(compared, results, Cost { wall_s: 1.0, threads: 1 });
        assert!(!comparison.is_whole());
        assert_eq!(comparison.geometric_means["b"], None);
        assert!(comparison.text(false).contains("failed: w under a: no room"));
    }
}
