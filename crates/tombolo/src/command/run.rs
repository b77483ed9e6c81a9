//! `run`: runs a single program on a machine under a design.

use crate::failure::CommandFailure;
use crate::hardware::{Hardware, MachineArguments};
use crate::observer::{Observation, observations};
use crate::output::{OutputArguments, complain, probe, refuse_input, write_whole};
use crate::progress::Progress;
use crate::provenance::{provenance, seeds};
use crate::sample_argument::SampleArgument;
use crate::summary::{self, SummaryOptions};
use crate::threads::ThreadsArgument;
use crate::time_argument::TimeArgument;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tombolo_experiment::campaign::{Observers, run_one_observed, run_one_sampled};
use tombolo_experiment::workload::{PreparedProgram, Target, WorkloadChoice, only};
use tombolo_system::RunRecord;
use tombolo_system::elision::BoundaryRecord;
use tombolo_system::record::KernelRecord;
use tombolo_system::timeline::Trace;
use tombolo_types::Promise;

/// Arguments for `run`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("program").required(true).args(["workload", "trace"])))]
pub(crate) struct Arguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Design: a name from `list designs`, or the path to a .toml file
    #[arg(long = "design", value_name = "D")]
    design: String,
    /// Workload from `list workloads`, with parameters: triad,elements=4096; or trace:PATH to a folder with a
    /// kernelslist.g, the list itself, or a file from `trace import` or `trace record`; a PATH with a comma goes in
    /// double quotes: 'trace:"a,b"'
    #[arg(long = "workload", value_name = "W[,KEY=VALUE…]|trace:PATH")]
    workload: Option<String>,
    /// Like `--workload trace:PATH`, without quotes
    #[arg(long = "trace", value_name = "PATH", hide = true)]
    trace: Option<PathBuf>,
    /// Checks loads against the memory model: lines carry the identity of the last store
    #[arg(long = "check", conflicts_with = "sample")]
    check: bool,
    #[command(flatten)]
    sample: SampleArgument,
    /// Prints a row for each launch (its kernel's open interval, and its CTAs' activity), each GPU and each module
    #[arg(long = "kernels")]
    kernels: bool,
    #[command(flatten)]
    time: TimeArgument,
    /// Also measures load latencies by serving component and path segment, and the share of load waits spent in queues
    #[arg(long = "latency", conflicts_with = "sample")]
    latency: bool,
    /// Also writes the activity of kernels, links, memories and caches over time to FILE, for Perfetto
    /// (ui.perfetto.dev): a track per GPU
    #[arg(long = "timeline", value_name = "FILE", conflicts_with = "sample")]
    timeline: Option<PathBuf>,
    /// Also writes to FILE, as JSON, the actions at each kernel boundary, the elided actions and the reasons, and an
    /// oracle's minimum
    #[arg(long = "boundaries", value_name = "FILE", conflicts_with = "sample")]
    boundaries: Option<PathBuf>,
    /// Also runs an observer registered by a crate of your own, and adds its report to the document; may be repeated
    #[arg(long = "observe", value_name = "NAME", conflicts_with = "sample")]
    observe: Vec<String>,
    #[command(flatten)]
    threads: ThreadsArgument,
    #[command(flatten)]
    output: OutputArguments,
}

/// A record with its launches and its settings, because the record's own names do not include the settings.
#[derive(serde::Serialize)]
struct RunDocument<'a> {
    #[serde(flatten)]
    record: &'a RunRecord,
    kernels: &'a [KernelRecord],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    set: &'a [String],
    /// Reports of the user's observers, by name.
    #[serde(skip_serializing_if = "Map::is_empty")]
    observed: Map<String, Value>,
}

/// Contents of the file written for `--boundaries`.
#[derive(serde::Serialize)]
struct Boundaries<'a> {
    boundaries: &'a [BoundaryRecord],
}

impl Arguments {
    /// Runs the program and prints the record.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        let observations = observations(&self.observe)?;
        let hardware = self.machine.hardware(std::slice::from_ref(&self.design))?;
        let chosen = self.chosen()?;
        let inputs = self.inputs(&chosen);
        self.output.check(&inputs)?;
        for (flag, path) in [("--timeline", &self.timeline), ("--boundaries", &self.boundaries)] {
            if let Some(path) = path {
                refuse_input(flag, path, &inputs)?;
                self.output.refuse_same(flag, path)?;
                probe(path)?;
            }
        }
        let threads = self.threads.count();
        let progress = Progress::new(1);
        let source = self.source(&chosen, &hardware, threads, &progress)?;
        let [design] = &hardware.designs[..] else { unreachable!("one design was asked for") };
        let mut record = progress.during(&source.label, || self.record(&hardware, &source, threads, &observations))?;
        drop(progress);
        record.notes.iter().for_each(|note| complain(&format!("warning: {note}")));
        record.notes.extend(hardware.notes.iter().cloned());
        let told = |observation: &Observation| Ok((observation.name.to_owned(), observation.report()?));
        let observed = observations.iter().map(told).collect::<Result<Map<_, _>, CommandFailure>>()?;
        let answer = RunDocument { record: &record, kernels: &record.kernels, set: self.machine.settings(), observed };
        let shown = SummaryOptions { kernels: self.kernels, time: self.time.choice() };
        let made = provenance(threads, &seeds(std::slice::from_ref(&chosen)));
        self.output.give(&answer, made, true, |colours| {
            summary::text(&record, &source, shown, colours) + &summary::observed(&answer.observed)
        })?;
        let broken = record.check.as_ref().is_some_and(|check| check.violations > 0);
        let promised = design.promises.contains(Promise::Ptx);
        Ok(if broken && promised { ExitCode::from(1) } else { ExitCode::SUCCESS })
    }

    fn chosen(&self) -> Result<WorkloadChoice, CommandFailure> {
        match (&self.workload, &self.trace) {
            (Some(workload), _) => Ok(only(workload)?),
            (None, Some(path)) => Ok(WorkloadChoice::trace(path)),
            (None, None) => unreachable!("one of the two is required"),
        }
    }

    /// Returns the arguments that may name input files, for the check against output files.
    fn inputs(&self, chosen: &WorkloadChoice) -> Vec<PathBuf> {
        let named = [self.machine.machine(), self.design.as_str()].map(PathBuf::from);
        chosen.files().into_iter().chain(named).collect()
    }

    /// Runs the program, and writes the timeline and the boundaries on request.
    fn record(
        &self,
        hardware: &Hardware,
        source: &PreparedProgram,
        threads: usize,
        observations: &[Observation],
    ) -> Result<RunRecord, CommandFailure> {
        let Hardware { machine, designs, .. } = hardware;
        if self.sample.is_enabled() {
            return Ok(run_one_sampled(machine, &designs[0], source, threads)?);
        }
        let observers = Observers {
            check: self.check,
            latency: self.latency,
            timeline: self.timeline.is_some(),
            boundaries: self.boundaries.is_some(),
            own: observations.iter().map(|observation| Arc::clone(&observation.observer)).collect(),
        };
        let observed = run_one_observed(machine, &designs[0], source, threads, observers)?;
        if let Some(path) = &self.boundaries {
            let json =
                serde_json::to_vec(&Boundaries { boundaries: &observed.boundaries }).expect("its keys are strings");
            write_whole(path, &json)?;
        }
        if let (Some(path), Some(timeline)) = (&self.timeline, observed.timeline) {
            let name = format!("{} under {}", source.label, designs[0].name);
            let json = serde_json::to_vec(&Trace::of(&[(name, timeline)])).expect("its keys are strings");
            write_whole(path, &json)?;
        }
        Ok(observed.record)
    }

    fn source(
        &self,
        chosen: &WorkloadChoice,
        hardware: &Hardware,
        threads: usize,
        progress: &Progress,
    ) -> Result<PreparedProgram, CommandFailure> {
        let machine = &hardware.machine;
        let what = format!("{} {}", if chosen.is_trace() { "reading" } else { "recording" }, chosen.label);
        Ok(progress.during(&what, || chosen.record(Target::of(machine), threads))?)
    }
}
