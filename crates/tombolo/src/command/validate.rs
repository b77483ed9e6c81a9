//! `validate`: compares simulated with measured kernel times. `--probes` is implemented in [`super::probes`].

use super::probes;
use crate::failure::CommandFailure;
use crate::output::{command_line, complain, probe, refuse_input, show, write_whole};
use crate::progress::Progress;
use crate::provenance::{WithProvenance, provenance};
use crate::table::{Cell, Look, Table};
use crate::threads::{ThreadsArgument, each};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tombolo_design::{apply, design};
use tombolo_experiment::campaign::{Watcher, unbroken};
use tombolo_machine::machine;
use tombolo_report::document::{Chart, ChartKind, Figure};
use tombolo_report::evidence::{self, Evidence};
use tombolo_report::{Document, document, html};
use tombolo_validation::errors::Errors;
use tombolo_validation::measured::{SHIPPED, ShippedTable};
use tombolo_validation::probe::{PROBES, Probe};
use tombolo_validation::{Estimator, Measurement, Summary, TimeComparison, read, shipped};

/// Largest accepted table of measured times, in bytes. Source: assumed, a thousand times the shipped table.
const LARGEST_TABLE: u64 = 16 << 20;

/// Arguments for `validate`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Machine: a name from `list machines`, or the path to a .toml file [default: mi300a; for probes all machines with
    /// any]
    #[arg(long = "machine", value_name = "M")]
    machine: Option<String>,
    /// Design: a name from `list designs`, or the path to a .toml file [default: from the machine's table; mi300a
    /// without a table]
    #[arg(long = "design", value_name = "D")]
    design: Option<String>,
    /// Replaces a value of the machine or the design; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE")]
    settings: Vec<String>,
    /// Measured times: a file with the columns kernel_name, problem_size and min_ms, or a machine with a shipped table
    /// (mi300a, h100-sxm) [default: the machine's own; for dgx-h100 its probes]
    #[arg(long = "measured", value_name = "FILE.csv|MACHINE")]
    measured: Option<PathBuf>,
    /// Benchmarks to run, separated by commas [default: all in the table]
    #[arg(long = "benchmarks", value_name = "NAME,…", value_delimiter = ',')]
    benchmarks: Vec<String>,
    /// Runs everything instead of samples: slow
    #[arg(long = "whole")]
    whole: bool,
    /// Probes the latencies and bandwidths of v100, h100, h100-sxm and dgx-h100 instead, next to published values
    #[arg(long = "probes", conflicts_with_all = ["design", "measured", "benchmarks", "whole"])]
    probes: bool,
    #[command(flatten)]
    threads: ThreadsArgument,
    /// Prints a JSON document instead of text
    #[arg(long = "json")]
    json: bool,
    /// Also writes a report page with a scatter plot, atomically
    #[arg(long = "out", value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// Result of the command, printed in text or JSON.
#[derive(Serialize)]
struct ValidationReport {
    tombolo: &'static str,
    machine: String,
    design: String,
    /// Settings applied to machine and design.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
    /// Source of the measured times.
    measured: String,
    rows: Vec<TimeComparison>,
    summary: Summary,
}

impl Arguments {
    /// Runs every row and prints its deviation from the measurement.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        if let Some(out) = &self.out {
            let named = self.machine.iter().chain(&self.design).map(PathBuf::from);
            refuse_input("--out", out, named.chain(self.measured.clone()))?;
            probe(out)?;
        }
        if self.probes {
            return self.probe(&self.probes()?);
        }
        let between_gpus = probes::between_gpus(self.machine());
        if self.measured.is_none() && self.benchmarks.is_empty() && !between_gpus.is_empty() {
            return self.probe(&between_gpus);
        }
        let measured = self.measured()?;
        let estimator = self.estimator()?;
        if self.table_path().is_some() {
            tell_places(&measured);
        }
        let rows = estimate_all(&estimator, &measured, self.threads.count())?;
        let sampled = rows.iter().filter(|row| row.sampled).count();
        let answer = ValidationReport {
            tombolo: env!("CARGO_PKG_VERSION"),
            machine: estimator.machine.name.clone(),
            design: estimator.design.name.clone(),
            set: self.settings.clone(),
            measured: match self.table_path() {
                None => "shipped with tombolo".to_owned(),
                Some(path) => path.display().to_string(),
            },
            summary: Summary::of(&rows),
            rows,
        };
        if sampled > 0 {
            complain(&format!(
                "note: {sampled} of {} rows were sampled (marked ~): parts of their kernels stand for the whole, and \
                 halves of the parts differ by twice what follows; --whole runs everything",
                answer.rows.len()
            ));
        }
        if answer.summary.sound.is_some() {
            complain(
                "note: rows marked ? were measured again by their source with another result (docs/validation.md)",
            );
        }
        let made = provenance(self.threads.count(), &[tombolo_validation::SEED]);
        if let Some(path) = &self.out {
            let document = Document { provenance: Some(made.clone()), ..answer.document() };
            write_whole(path, html(&document).as_bytes())?;
        }
        show(self.json, &WithProvenance { answer: &answer, provenance: made }, |colours| answer.text(colours))?;
        Ok(ExitCode::SUCCESS)
    }

    fn machine(&self) -> &str {
        self.machine.as_deref().unwrap_or("mi300a")
    }

    /// Probes for the machine, or all probes without a machine.
    fn probes(&self) -> Result<Vec<Probe>, CommandFailure> {
        let Some(machine) = &self.machine else { return Ok(PROBES.to_vec()) };
        let probes: Vec<Probe> = PROBES.into_iter().filter(|probe| probe.machine == machine).collect();
        if probes.is_empty() {
            let mut machines: Vec<&str> = PROBES.iter().map(|probe| probe.machine).collect();
            machines.sort_unstable();
            machines.dedup();
            let reason = format!("no probes; expected one of {}", machines.join(", "));
            return Err(CommandFailure::Argument { flag: "--machine", value: machine.clone(), reason });
        }
        Ok(probes)
    }

    fn probe(&self, probes: &[Probe]) -> Result<ExitCode, CommandFailure> {
        probes::answer(probes, &self.settings, self.threads.count(), self.json, self.out.as_deref())
    }

    fn estimator(&self) -> Result<Estimator, CommandFailure> {
        let mut machine = machine(self.machine())?;
        let of_table = self.shipped_table().or_else(|| shipped(self.machine())).map_or("mi300a", |table| table.design);
        let mut designs = [design(self.design.as_deref().unwrap_or(of_table))?];
        apply(&self.settings, &mut machine, &mut designs)?;
        let [design] = &designs;
        Ok(Estimator { machine: Arc::new(machine.check()?), design: design.check()?, samples: !self.whole })
    }

    /// Returns the shipped table: the table named by `--measured`, or otherwise the machine's own.
    fn shipped_table(&self) -> Option<&'static ShippedTable> {
        match &self.measured {
            None => shipped(self.machine()),
            Some(name) if !name.exists() => name.to_str().and_then(shipped),
            Some(_) => None,
        }
    }

    /// Returns the path to the user's table, if `--measured` names a file.
    fn table_path(&self) -> Option<&PathBuf> {
        self.measured.as_ref().filter(|_| self.shipped_table().is_none())
    }

    fn measured(&self) -> Result<Vec<Measurement>, CommandFailure> {
        let mut rows = match (self.table_path(), self.shipped_table()) {
            (None, Some(table)) => table.rows()?,
            (None, None) => {
                let tables = SHIPPED.iter().map(|table| table.machine).collect::<Vec<_>>().join(" and ");
                let reason = format!(
                    "no measured times of this machine ship, only those of {tables}; --measured names a table to compare with"
                );
                return Err(CommandFailure::Argument { flag: "--machine", value: self.machine().to_owned(), reason });
            }
            (Some(path), _) => {
                let unreadable = |reason: String| CommandFailure::Unreadable { path: path.clone(), reason };
                let found = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
                if !found.is_file() || found.len() > LARGEST_TABLE {
                    return Err(unreadable(format!("a table is a file of at most {LARGEST_TABLE} bytes")));
                }
                let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
                read(&path.display().to_string(), &text)?
            }
        };
        for name in &self.benchmarks {
            if !rows.iter().any(|row| row.benchmark == *name) {
                let reason = "the table has no such benchmark".to_owned();
                return Err(CommandFailure::Argument { flag: "--benchmarks", value: name.clone(), reason });
            }
        }
        rows.retain(|row| self.benchmarks.is_empty() || self.benchmarks.contains(&row.benchmark));
        Ok(rows)
    }
}

/// Reports the assumed parameters for rows with equal sizes.
fn tell_places(measured: &[Measurement]) {
    let mut told = BTreeMap::new();
    for row in measured.iter().filter(|row| row.by_place) {
        let parameters = row.case.parameters.iter().map(|(key, value)| format!("{key}={value}"));
        let all: &mut Vec<String> = told.entry(&row.benchmark).or_default();
        all.push(format!("{} as {}", row.size, parameters.collect::<Vec<_>>().join(",")));
    }
    for (benchmark, rows) in told {
        complain(&format!(
            "note: rows of one size of {benchmark} are told apart by their order (docs/validation.md): {}",
            rows.join("; ")
        ));
    }
}

/// Simulates all rows and returns their times, in order.
fn estimate_all(
    estimator: &Estimator,
    measured: &[Measurement],
    threads: usize,
) -> Result<Vec<TimeComparison>, CommandFailure> {
    let progress = Progress::new(measured.len());
    each(measured, threads, |measured| {
        let row = progress.during(&measured.benchmark, || estimate(estimator, measured));
        progress.advanced(1, None);
        row
    })
}

fn estimate(estimator: &Estimator, measured: &Measurement) -> Result<TimeComparison, CommandFailure> {
    let label = format!("{} {} on {}", measured.benchmark, measured.size, estimator.machine.name);
    let estimate = unbroken(&label, || {
        estimator
            .estimate(&measured.case)
            .map_err(|error| CommandFailure::Estimate { label: label.clone(), error: error.into() })
    })?;
    Ok(TimeComparison {
        benchmark: measured.benchmark.clone(),
        size: measured.size.clone(),
        measured_ms: measured.measured_ms,
        simulated_ms: estimate.time_s * 1e3,
        sampled: estimate.sampled,
        sampling_error_ms: estimate.error_s * 1e3,
        sound: measured.sound,
    })
}

/// Formats a fraction in percent.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Joins words with a blank between two, and skips empty words.
fn joined(words: &[&str]) -> String {
    let said = words.iter().map(|word| word.trim()).filter(|word| !word.is_empty());
    said.collect::<Vec<_>>().join(" ")
}

/// Formats the sampling error of a row: half the difference between the sample's two halves.
fn sampling(row: &TimeComparison) -> String {
    if row.sampled { format!("± {}", percent(row.sampling_error_ms / row.simulated_ms)) } else { String::new() }
}

/// Returns the mark for a row with a doubtful measurement.
fn doubt(row: &TimeComparison) -> &'static str {
    if row.sound { "" } else { "?" }
}

impl ValidationReport {
    fn text(&self, colours: bool) -> String {
        let mut rows =
            Table::new(2).with_headings(["benchmark", "size", "measured ms", "simulated ms", "sampling", "ratio"]);
        for row in &self.rows {
            let mark = if row.sampled { "~" } else { "" };
            rows.row(vec![
                Cell::plain(&*row.benchmark),
                Cell::plain(&*row.size),
                Cell::plain(format!("{}{:.4}", doubt(row), row.measured_ms)),
                Cell::plain(format!("{mark}{:.4}", row.simulated_ms)),
                Cell::plain(sampling(row)),
                Cell::plain(format!("{:.2}", row.simulated_ms / row.measured_ms)),
            ]);
        }
        let headings = ["benchmark", "rows", "weighted error", "mean symmetric error", "worst", "slope", "worst row"];
        let mut errors = Table::new(1).with_headings(headings);
        let mut add = |name: &str, of: &Errors, look: Look| {
            let slope = of.slope.map_or_else(|| "-".to_owned(), |slope| format!("{slope:.2}"));
            let shares = [of.weighted, of.mean_symmetric, of.worst].map(percent);
            let numbers = [name.to_owned(), of.rows.to_string()].into_iter().chain(shares).chain([slope]);
            let cells = numbers.map(|text| Cell::new(text, look));
            errors.row(cells.chain([Cell::new(of.worst_row.clone(), look)]).collect());
        };
        self.summary.benchmarks.iter().for_each(|(name, of)| add(name, of, Look::Plain));
        if let Some(sound) = &self.summary.sound {
            add("without rows marked ?", sound, Look::Plain);
        }
        add("all", &self.summary.overall, Look::Strong);
        format!("{}\n{}", rows.render(colours), errors.render(colours))
    }

    fn document(&self) -> Document {
        Document {
            title: format!("{} against measured hardware", self.machine),
            paper: "validation".into(),
            scale: "1".into(),
            tombolo: self.tombolo.into(),
            command: command_line(),
            figures: vec![self.scatter(), self.errors()],
            notes: self.notes(),
            ..Document::default()
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec!["The measured time is the smallest of a row's repetitions.".to_owned()];
        if self.rows.iter().any(|row| row.sampled) {
            notes.push(
                "Rows with ± were sampled: parts of their kernels stand for the whole, and two halves of the sample \
                 differ by twice that."
                    .to_owned(),
            );
        }
        if self.rows.iter().any(|row| !row.sound) {
            notes.push("Rows with ? were measured again by their source with another result.".to_owned());
        }
        notes
    }

    fn scatter(&self) -> Figure {
        let row = |row: &TimeComparison| document::FigureRow {
            label: joined(&[&row.benchmark, &row.size, doubt(row), &sampling(row)]),
            values: vec![Some(row.measured_ms), Some(row.simulated_ms)],
            summary: false,
            at: None,
        };
        Figure {
            id: "scatter".into(),
            title: "Simulated over measured time".into(),
            caption: "One point a benchmark and size; on the diagonal the two agree.".into(),
            chart: Chart {
                kind: ChartKind::Scatter,
                x: "measured (ms)".into(),
                y: "simulated".into(),
                unit: "ms".into(),
                log_y: true,
                ..Chart::default()
            },
            columns: ["benchmark", "measured", "simulated"].map(String::from).to_vec(),
            rows: self.rows.iter().map(row).collect(),
            evidence: self.ranges(),
            ..Figure::default()
        }
    }

    /// Returns the ranges between the two halves of each sample, centred on its time.
    fn ranges(&self) -> Evidence {
        let sampled = self.rows.iter().enumerate().filter(|(_, row)| row.sampled);
        let cell = |(at, row): (usize, &TimeComparison)| {
            let (time, error) = (row.simulated_ms, row.sampling_error_ms);
            evidence::CellEvidence { row: at, column: 1, run: None, range: Some([time - error, time + error]) }
        };
        let cells: Vec<evidence::CellEvidence> = sampled.map(cell).collect();
        let repeated = if cells.is_empty() { "" } else { "the halves of a sample" };
        Evidence { repeated: repeated.to_owned(), cells, remarks: Vec::new() }
    }

    fn errors(&self) -> Figure {
        let row = |name: &str, of: &Errors, summary| document::FigureRow {
            label: name.to_owned(),
            values: vec![Some(of.weighted * 100.0), Some(of.mean_symmetric * 100.0), Some(of.worst * 100.0), of.slope],
            summary,
            at: None,
        };
        let mut rows: Vec<_> = self.summary.benchmarks.iter().map(|(name, of)| row(name, of, false)).collect();
        rows.extend(self.summary.sound.iter().map(|sound| row("without rows measured otherwise again", sound, false)));
        rows.push(row("all", &self.summary.overall, true));
        Figure {
            id: "errors".into(),
            title: "Errors by benchmark".into(),
            caption: "Weighted: sum of absolute errors over sum of measured times. Mean symmetric: mean of the \
                      difference over the smaller of the two, and the largest. Slope: of simulated over measured time of the half of \
                      the rows with the longest measured ones, by least squares."
                .into(),
            chart: Chart { kind: ChartKind::Table, x: "benchmark".into(), y: "error".into(), ..Chart::default() },
            columns: ["benchmark", "weighted %", "mean symmetric %", "worst %", "slope"].map(String::from).to_vec(),
            rows,
            ..Figure::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_no_blank_for_a_mark_that_is_not_there() {
        assert_eq!(joined(&["fir", "1024_taps16", "", "± 0.5 %"]), "fir 1024_taps16 ± 0.5 %");
        assert_eq!(joined(&["fir", "1024_taps16", "? ", ""]), "fir 1024_taps16 ?");
    }
}
