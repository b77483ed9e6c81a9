//! `run`: one program on one machine under one design.

use crate::failure::Failure;
use crate::hardware::{Hardware, MachineArguments};
use crate::output::{OutputArguments, complain, probe, refuse_input, write_whole};
use crate::progress::Progress;
use crate::source;
use crate::summary;
use crate::threads::ThreadsArgument;
use std::path::PathBuf;
use std::process::ExitCode;
use tombolo_experiment::campaign::{run_one, run_one_timed};
use tombolo_experiment::workload::{Source, Target, WorkloadChoice, only};
use tombolo_machine::design::Promise;
use tombolo_system::{Projection, RunRecord, project, sample};
use tombolo_workload::trace;

/// What a sampled result says of itself.
fn sampled(Projection { time_s, error_s }: Projection) -> String {
    format!(
        "sampled: time_s is projected from the parts of kernels that ran, and halves of the sample differ from it by \
         {:.1} % (docs/validation.md compares that with the true error); all other numbers are those of the parts",
        100.0 * error_s / time_s
    )
}

/// What to run.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("program").required(true).args(["workload", "trace"])))]
pub(crate) struct Arguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Design: a name of `list designs`, or the path of a .toml file
    #[arg(long, value_name = "D")]
    design: String,
    /// Workload of `list workloads`, with parameters: triad,elements=4096
    #[arg(long, value_name = "W[,KEY=VALUE…]")]
    workload: Option<String>,
    /// Trace: a folder with a kernelslist.g, such a list, or a file of `trace import` or `trace record`
    #[arg(long, value_name = "DIR|FILE")]
    trace: Option<PathBuf>,
    /// Hold loads to the memory model: lines carry which store wrote them
    #[arg(long)]
    check: bool,
    /// Runs parts of large kernels and of long series of launches, from which the time of the whole is projected;
    /// counters are those of the parts
    #[arg(long, conflicts_with = "trace")]
    sample: bool,
    /// Also writes what the links and the kernels did over time to FILE, which Perfetto opens (ui.perfetto.dev)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["check", "sample"])]
    timeline: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadsArgument,
    #[command(flatten)]
    output: OutputArguments,
}

/// A record with what was set for it: its own names say nothing of that.
#[derive(serde::Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    record: &'a RunRecord,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    set: &'a [String],
}

impl Arguments {
    /// Runs it and prints the record.
    pub(crate) fn execute(&self) -> Result<ExitCode, Failure> {
        let hardware = self.machine.hardware(std::slice::from_ref(&self.design))?;
        let inputs = self.inputs()?;
        self.output.check(&inputs)?;
        if let Some(timeline) = &self.timeline {
            refuse_input("--timeline", timeline, &inputs)?;
            self.output.refuse_same("--timeline", timeline)?;
            probe(timeline)?;
        }
        let threads = self.threads.count();
        let progress = Progress::new(1);
        let source = self.source(&hardware, threads, &progress)?;
        let [design] = &hardware.designs[..] else { unreachable!("one design was asked for") };
        let machine = &hardware.machine;
        let mut record = progress.during(&source.label, || self.record(&hardware, &source, threads))?;
        if let Some(sample) = &source.sample {
            let projection = project(&record, sample, machine);
            if projection.time_s < 0.0 {
                let reason = format!("its parts project to {} s for the whole, which is no time", projection.time_s);
                return Err(Failure::Argument { flag: "--sample", value: source.label.clone(), reason });
            }
            record.time_s = projection.time_s;
            record.notes.push(sampled(projection));
        }
        drop(progress);
        record.notes.iter().for_each(|note| complain(&format!("warning: {note}")));
        let answer = Answer { record: &record, set: self.machine.settings() };
        self.output.give(&answer, true, |colours| summary::text(&record, &source, colours))?;
        let broken = record.check.as_ref().is_some_and(|check| check.violations > 0);
        let promised = design.promises.contains(Promise::Ptx);
        Ok(if broken && promised { ExitCode::from(1) } else { ExitCode::SUCCESS })
    }

    /// What of the arguments may be files that are read.
    fn inputs(&self) -> Result<Vec<PathBuf>, Failure> {
        let chosen = self.workload.as_deref().map(only).transpose()?;
        let files = chosen.iter().flat_map(WorkloadChoice::files);
        let named = files.chain([self.machine.machine(), self.design.as_str()]).map(PathBuf::from);
        Ok(named.chain(self.trace.iter().flat_map(|path| trace::files(path))).collect())
    }

    /// Runs it, and writes its timeline where that was asked for.
    fn record(&self, hardware: &Hardware, source: &Source, threads: usize) -> Result<RunRecord, Failure> {
        let Hardware { machine, designs, .. } = hardware;
        let Some(path) = &self.timeline else {
            return Ok(run_one(machine, &designs[0], source, None, threads, self.check)?);
        };
        let (record, timeline) = run_one_timed(machine, &designs[0], source, threads)?;
        let json = serde_json::to_vec(&timeline.trace()).expect("its keys are strings");
        write_whole(path, &json)?;
        Ok(record)
    }

    fn source(&self, hardware: &Hardware, threads: usize, progress: &Progress) -> Result<Source, Failure> {
        let machine = &hardware.machine;
        match (&self.workload, &self.trace) {
            (Some(workload), _) => {
                let chosen = only(workload)?;
                let what = format!("recording {}", chosen.label);
                let sample = self.sample.then(|| sample(machine, &hardware.designs[0]));
                Ok(progress.during(&what, || chosen.record_part(Target::of(machine), threads, sample))?)
            }
            (None, Some(path)) => progress.during("reading the trace", || source::trace(path, machine)),
            (None, None) => unreachable!("one of the two is required"),
        }
    }
}
