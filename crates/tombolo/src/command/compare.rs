//! `compare`: runs workloads under several designs, against a baseline.

use crate::WRONG_INPUT;
use crate::comparison::{Comparison, ComparisonSetup, Cost, Results};
use crate::failure::CommandFailure;
use crate::hardware::{Hardware, MachineArguments, baseline, refuse_twice};
use crate::output::{OutputArguments, complain, probe, refuse_input, write_whole};
use crate::progress::Progress;
use crate::provenance::{provenance, seeds};
use crate::request::{choice, is_folder, study};
use crate::sample_argument::SampleArgument;
use crate::study::tell_when_interrupted;
use crate::table::seconds;
use crate::threads::ThreadsArgument;
use crate::time_argument::TimeArgument;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tombolo_experiment::campaign::{self, Observers, run_one_observed, run_points};
use tombolo_experiment::workload::{Target, WorkloadChoice, workloads};
use tombolo_experiment::{ExperimentRequest, Pass, Point, PointResult, StudyOptions};
use tombolo_machine::MachineScale;
use tombolo_report::document::Provenance;
use tombolo_system::timeline::Trace;
use tombolo_system::{RunRecord, TimeChoice};

/// Arguments for `compare`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Designs: names from `list designs`, or paths to .toml files
    #[arg(long = "designs", value_name = "A,B,…", required = true, num_args = 1.., value_delimiter = ',')]
    designs: Vec<String>,
    /// Workloads from `list workloads` with parameters, and traces: triad,elements=4096,trace:PATH; a PATH with a comma
    /// goes in double quotes: 'trace:"a,b"'
    #[arg(long = "workload", value_name = "W[,KEY=VALUE…]|trace:PATH", required = true, num_args = 1..)]
    workload: Vec<String>,
    /// Baseline design for speed-ups [default: the first]
    #[arg(long = "baseline", value_name = "A")]
    baseline: Option<String>,
    #[command(flatten)]
    time: TimeArgument,
    #[command(flatten)]
    sample: SampleArgument,
    #[command(flatten)]
    threads: ThreadsArgument,
    /// Also shows launches: grouped by name and time in text; a row each in JSON
    #[arg(long = "kernels")]
    kernels: bool,
    /// Also runs everything once more and writes the activity over time to FILE, for Perfetto (ui.perfetto.dev): a
    /// process per workload and design
    #[arg(long = "timeline", value_name = "FILE", conflicts_with = "sample")]
    timeline: Option<PathBuf>,
    /// Prints a JSON document instead of text
    #[arg(long = "json")]
    json: bool,
    /// Also writes the JSON document to FILE.json, atomically; or writes results, tables and a page into the folder
    /// DIR, and reuses finished points there
    #[arg(long = "out", value_name = "FILE.json|DIR")]
    out: Option<PathBuf>,
}

impl Arguments {
    /// Runs everything and prints the comparison. Returns status 2 if a run gave no result; the remaining results are
    /// printed.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        let hardware = self.machine.hardware(&self.designs)?;
        let designs: Vec<String> = hardware.designs.iter().map(|design| design.name.clone()).collect();
        let base = baseline(self.baseline.as_deref(), &self.designs, &designs)?;
        let chosen = workloads(&self.workload)?;
        refuse_twice("--workload", chosen.iter().map(|choice| choice.label.as_str()))?;
        chosen.iter().try_for_each(|choice| choice.check(Target::of(&hardware.machine)))?;
        let folder = self.out.as_deref().filter(|out| is_folder(out));
        let output = OutputArguments::new(self.json, self.out.clone().filter(|_| folder.is_none()));
        let named = self.designs.iter().map(String::as_str).chain([self.machine.machine()]).map(PathBuf::from);
        let inputs: Vec<PathBuf> = chosen.iter().flat_map(WorkloadChoice::files).chain(named).collect();
        output.check(&inputs)?;
        if let Some(path) = &self.timeline {
            refuse_input("--timeline", path, &inputs)?;
            output.refuse_same("--timeline", path)?;
            probe(path)?;
        }
        let threads = self.threads.count();
        let started = Instant::now();
        let made = provenance(threads, &seeds(&chosen));
        let points = points(&hardware, &chosen, self.sample.is_enabled())?;
        let results = match folder {
            Some(folder) => self.keep(folder, (base, hardware.machine.scale), &chosen, &made)?,
            None => run_points(&points, None, threads, &Progress::new(points.len()))?,
        };
        let records = records(&points, &results, hardware.designs.len(), self.time.choice());
        if let Some(path) = &self.timeline {
            write_whole(path, &timelines(&hardware, &chosen, threads)?)?;
        }
        let cost = Cost { wall_s: started.elapsed().as_secs_f64(), threads };
        let compared = ComparisonSetup {
            machine: hardware.machine.name.clone(),
            scale: hardware.machine.scale.to_string(),
            set: self.machine.settings().to_vec(),
            baseline: designs[base].clone(),
            time: self.time.choice(),
            designs,
            workloads: chosen.into_iter().map(|choice| choice.label).collect(),
            kernels: self.kernels,
        };
        let comparison = Comparison::of(compared, records, cost);
        let whole = comparison.is_whole();
        comparison.failures().for_each(|failure| complain(&format!("error: {failure}")));
        output.give(&comparison, made, whole, |colours| {
            let page = folder.map(|folder| format!("page: {}\n", folder.join("report.html").display()));
            format!("{}{}", comparison.text(colours), page.unwrap_or_default())
        })?;
        Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(WRONG_INPUT) })
    }

    /// Runs the comparison in a study: simulates the points missing in `folder`, and writes tables and the page to the
    /// folder.
    fn keep(
        &self,
        folder: &Path,
        (baseline, scale): (usize, MachineScale),
        chosen: &[WorkloadChoice],
        made: &Provenance,
    ) -> Result<campaign::Results, CommandFailure> {
        let asked = ExperimentRequest {
            id: "comparison".to_owned(),
            machine: self.machine.machine().to_owned(),
            designs: self.designs.clone(),
            workloads: chosen.iter().map(|choice| choice.label.clone()).collect(),
            scale: Some(scale.to_string()),
            set: self.machine.settings().to_vec(),
            baseline: Some(self.designs[baseline].clone()),
            ..ExperimentRequest::default()
        };
        let study = study(&asked, choice(scale))?.with_time(self.time.choice()).sampled(self.sample.is_enabled());
        tell_when_interrupted(folder);
        let progress = Progress::new(study.count(false)?);
        let options = StudyOptions {
            out: folder,
            threads: self.threads.count(),
            robust: false,
            shard: None,
            provenance: made.clone(),
            watcher: &progress,
        };
        Ok(study.run_and_keep(&options)?.1)
    }
}

/// Returns every workload under every design, workload by workload.
fn points(hardware: &Hardware, workloads: &[WorkloadChoice], sampled: bool) -> Result<Vec<Point>, CommandFailure> {
    let designs: Vec<_> = hardware.designs.iter().cloned().map(Arc::new).collect();
    let mut points = Vec::new();
    for workload in workloads {
        let workload = Arc::new(workload.clone());
        for design in &designs {
            let (machine, design, workload) =
                (Arc::clone(&hardware.machine), Arc::clone(design), Arc::clone(&workload));
            let point = Point::new(machine, design, workload, Pass::Simulation, Vec::new())?;
            points.push(if sampled { point.sampled() } else { point });
        }
    }
    Ok(points)
}

/// Returns a trace file with the activity over time for every workload under every design.
fn timelines(hardware: &Hardware, workloads: &[WorkloadChoice], threads: usize) -> Result<Vec<u8>, CommandFailure> {
    let progress = Progress::new(workloads.len() * hardware.designs.len());
    let mut runs = Vec::new();
    for workload in workloads {
        let source = workload.record(Target::of(&hardware.machine), threads)?;
        for design in &hardware.designs {
            let name = format!("{} under {}", source.label, design.name);
            let observers = Observers { timeline: true, ..Observers::default() };
            let run = || run_one_observed(&hardware.machine, design, &source, threads, observers);
            let observed = progress.during(&name, run)?;
            let timed = (observed.record, observed.timeline.expect("it was asked for"));
            runs.push((name, timed.1));
        }
    }
    Ok(serde_json::to_vec(&Trace::of(&runs)).expect("its keys are strings"))
}

/// Arranges the results of the points by workload, then by design.
fn records(points: &[Point], results: &campaign::Results, designs: usize, time: TimeChoice) -> Results {
    let record = |point: &Point| match results.get(point.key()) {
        Some(Ok(outcome)) => match &**outcome {
            PointResult::Simulation(record) => comparable(record, point, time),
            PointResult::Sharing(_) | PointResult::Arrays(_) => unreachable!("a simulation was asked for"),
        },
        Some(Err(error)) => Err(error.clone()),
        None => Err(format!("{}: a file that it is made of changed meanwhile", point.label())),
    };
    points.chunks(designs).map(|row| row.iter().map(record).collect()).collect()
}

/// Returns a point's record under the user's names, or the reason why the record cannot be compared.
fn comparable(record: &RunRecord, point: &Point, time: TimeChoice) -> Result<RunRecord, String> {
    if record.time.of(time) == 0.0 {
        let (workload, machine) = (&point.workload.label, &record.machine);
        let hint = match record.time_s {
            0.0 => String::new(),
            _ => format!(": no kernel runs; --time whole compares all {}", seconds(record.time_s)),
        };
        return Err(format!("{workload}: takes no time on {machine}, with which nothing can be compared{hint}"));
    }
    let mut record = record.clone();
    // Designs or workloads with different names may be the same point.
    record.design.clone_from(&point.design.name);
    record.workload.clone_from(&point.workload.label);
    Ok(record)
}
