//! `run`: one program on one machine under one design.

use crate::campaign::run_one;
use crate::command::compare::threads_or_all;
use crate::failure::Failure;
use crate::hardware::MachineArguments;
use crate::output::{OutputArguments, complain};
use crate::progress::Progress;
use crate::source::{WorkloadChoice, workloads};
use crate::summary;
use std::process::ExitCode;

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Design: a name of `list designs`, or the path of a .toml file
    #[arg(long, value_name = "D")]
    design: String,
    /// Workload of `list workloads`, with parameters: triad,elements=4096
    #[arg(long, value_name = "W[,KEY=VALUE…]")]
    workload: String,
    /// Threads; the result does not depend on it [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    output: OutputArguments,
}

impl Arguments {
    /// Runs it and prints the record.
    pub(crate) fn execute(&self) -> Result<ExitCode, Failure> {
        let hardware = self.machine.hardware(std::slice::from_ref(&self.design))?;
        let chosen = one(workloads(std::slice::from_ref(&self.workload))?)?;
        chosen.check(&hardware.machine)?;
        self.output.check()?;
        let threads = threads_or_all(self.threads);
        let progress = Progress::new(1);
        let source =
            progress.during(&format!("recording {}", chosen.label), || chosen.record(&hardware.machine, threads))?;
        let record =
            progress.during(&source.label, || run_one(&hardware, &hardware.designs[0], &source, None, threads));
        drop(progress);
        let record = record?;
        record.notes.iter().for_each(|note| complain(&format!("warning: {note}")));
        self.output.give(&record, true, |colours| summary::text(&record, colours))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The one workload that a run takes.
fn one(chosen: Vec<WorkloadChoice>) -> Result<WorkloadChoice, Failure> {
    let all = chosen.iter().map(|choice| choice.label.as_str()).collect::<Vec<_>>().join(",");
    let count = chosen.len();
    let mut chosen = chosen.into_iter();
    match (chosen.next(), chosen.next()) {
        (Some(only), None) => Ok(only),
        _ => {
            let reason = format!("{count} workloads; run takes one, compare takes several");
            Err(Failure::Argument { flag: "--workload", value: all, reason })
        }
    }
}
