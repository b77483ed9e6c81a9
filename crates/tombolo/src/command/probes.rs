//! `validate --probes`, and `validate` for a multi-GPU machine: latencies and bandwidths in simulation, next to
//! microbenchmark results from the real machines.

use crate::failure::CommandFailure;
use crate::output::{command_line, show, write_whole};
use crate::progress::Progress;
use crate::provenance::{WithProvenance, provenance};
use crate::table::{Cell, Table};
use crate::threads::each;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tombolo_design::{apply, design};
use tombolo_experiment::campaign::{Watcher, unbroken};
use tombolo_machine::machine;
use tombolo_report::document::{Chart, ChartKind, Figure, FigureRow};
use tombolo_report::{Document, html};
use tombolo_validation::probe::{Finding, PROBES, Probe, ProbeTarget, Quantity};

/// Description of the bandwidth and latency measurements.
const MEASURED: &str = "A latency or the bandwidth of a cache is the difference of two lengths, at most the machine's own \
                        rate; the bandwidth of memory is that of one long stream.";

/// Result of the probes.
#[derive(Serialize)]
struct ProbeReport {
    tombolo: &'static str,
    probes: Vec<Finding>,
}

/// Returns the probes that `validate` runs on a multi-GPU machine without a table; empty if the machine has none.
pub(super) fn between_gpus(machine: &str) -> Vec<Probe> {
    PROBES.into_iter().filter(|probe| probe.machine == machine && probe.level == ProbeTarget::Peer).collect()
}

/// Runs probes with `settings` and prints the findings; writes a page to `out`.
pub(super) fn answer(
    probes: &[Probe],
    settings: &[String],
    threads: usize,
    json: bool,
    out: Option<&Path>,
) -> Result<ExitCode, CommandFailure> {
    let progress = Progress::over(probes.len(), "probes");
    let probes = each(probes, threads, |probe| {
        let finding = progress.during(probe.name, || find(probe, settings));
        progress.advanced(1, None);
        finding
    })?;
    drop(progress);
    let answer = ProbeReport { tombolo: env!("CARGO_PKG_VERSION"), probes };
    let made = provenance(threads, &[]);
    if let Some(path) = out {
        let document = Document { provenance: Some(made.clone()), ..answer.document() };
        write_whole(path, html(&document).as_bytes())?;
    }
    show(json, &WithProvenance { answer: &answer, provenance: made }, |colours| answer.text(colours))?;
    Ok(ExitCode::SUCCESS)
}

fn find(probe: &Probe, settings: &[String]) -> Result<Finding, CommandFailure> {
    let mut machine = machine(probe.machine)?;
    let mut designs = [design(probe.design())?];
    apply(settings, &mut machine, &mut designs)?;
    let [design] = &designs;
    let (machine, design) = (Arc::new(machine.check()?), design.check()?);
    let label = format!("{} on {}", probe.name, probe.machine);
    unbroken(&label, || {
        probe
            .find(&machine, &design)
            .map_err(|error| CommandFailure::Estimate { label: label.clone(), error: error.into() })
    })
}

fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Cycles => "cycles",
        Quantity::Gigabytes => "GB/s",
    }
}

impl ProbeReport {
    fn text(&self, colours: bool) -> String {
        let headings = ["machine", "probe", "unit", "source", "published", "simulated", "ratio"];
        let mut table = Table::new(4).with_headings(headings);
        for finding in &self.probes {
            let words = [&finding.machine, finding.name, unit(finding.quantity), &finding.source];
            let numbers = [
                format!("{:.1}", finding.published),
                format!("{:.1}", finding.simulated),
                format!("{:.2}", finding.simulated / finding.published),
            ];
            table.row(words.map(String::from).into_iter().chain(numbers).map(Cell::plain).collect());
        }
        let whys = self.probes.iter().filter_map(|finding| Some((finding, finding.why?)));
        let notes = whys.map(|(finding, why)| format!("{}, {}: {why}\n", finding.machine, finding.name));
        table.render(colours) + &notes.collect::<String>()
    }

    fn document(&self) -> Document {
        let whys = self.probes.iter().filter_map(|finding| Some((finding, finding.why?)));
        let whys = whys.map(|(finding, why)| format!("{}, {}: {why}", finding.machine, finding.name));
        Document {
            title: "NVIDIA's GPUs against published microbenchmarks".into(),
            paper: "validation".into(),
            scale: "1".into(),
            tombolo: self.tombolo.into(),
            command: command_line(),
            figures: vec![
                self.figure("latency", "Latency from load to load", Quantity::Cycles),
                self.table("latency-numbers", "Latency from load to load, in cycles", Quantity::Cycles),
                self.figure("bandwidth", "Bandwidth of a stream", Quantity::Gigabytes),
                self.table("bandwidth-numbers", "Bandwidth of a stream, in GB/s", Quantity::Gigabytes),
            ],
            notes: [MEASURED.into()].into_iter().chain(whys).collect(),
            ..Document::default()
        }
    }

    /// Builds a figure with simulated over published values: a probe in agreement has the value 1, whatever its
    /// magnitude.
    fn figure(&self, id: &str, title: &str, quantity: Quantity) -> Figure {
        let row = |finding: &Finding| FigureRow {
            label: format!("{}: {}", finding.machine, finding.name),
            values: vec![Some(finding.simulated / finding.published)],
            summary: false,
            at: None,
        };
        let findings = || self.probes.iter().filter(|finding| finding.quantity == quantity);
        let mut sources: Vec<&str> = findings().map(|finding| &*finding.source).collect();
        sources.dedup();
        Figure {
            id: id.into(),
            title: title.into(),
            caption: format!("Simulated over published: at 1 they agree. Published: {}.", sources.join("; ")),
            chart: Chart {
                kind: ChartKind::Bars,
                x: "probe".into(),
                y: "simulated ÷ published".into(),
                reference: Some(1.0),
                ..Chart::default()
            },
            columns: ["probe", "simulated ÷ published"].map(String::from).to_vec(),
            rows: findings().map(row).collect(),
            ..Figure::default()
        }
    }

    /// Builds a table with the plain numbers.
    fn table(&self, id: &str, title: &str, quantity: Quantity) -> Figure {
        let row = |finding: &Finding| FigureRow {
            label: format!("{}: {}", finding.machine, finding.name),
            values: vec![Some(finding.published), Some(finding.simulated)],
            summary: false,
            at: None,
        };
        let findings = self.probes.iter().filter(|finding| finding.quantity == quantity);
        Figure {
            id: id.into(),
            title: title.into(),
            chart: Chart { kind: ChartKind::Table, unit: unit(quantity).into(), ..Chart::default() },
            columns: ["probe", "published", "simulated"].map(String::from).to_vec(),
            rows: findings.map(row).collect(),
            ..Figure::default()
        }
    }
}
