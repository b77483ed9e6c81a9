//! `explain`: reports the reasons for differences between designs on a workload.

use crate::explanation::{Explanation, ExplanationRequest};
use crate::failure::CommandFailure;
use crate::hardware::{Hardware, MachineArguments};
use crate::output::{OutputArguments, complain};
use crate::progress::Progress;
use crate::provenance::{provenance, seeds};
use crate::threads::ThreadsArgument;
use crate::time_argument::TimeArgument;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_experiment::campaign::{Observers, run_one_observed, run_points};
use tombolo_experiment::workload::{Target, WorkloadChoice, only};
use tombolo_experiment::{Pass, Point, PointResult};
use tombolo_system::RunRecord;

/// Arguments for `explain`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Designs, at least two: names from `list designs`, or paths to .toml files; each is compared with the first
    #[arg(long = "designs", value_name = "A,B,…", required = true, num_args = 1.., value_delimiter = ',')]
    designs: Vec<String>,
    /// Workload from `list workloads`, with parameters: triad,elements=4096; or trace:PATH; a PATH with a comma goes in
    /// double quotes: 'trace:"a,b"'
    #[arg(long = "workload", value_name = "W[,KEY=VALUE…]|trace:PATH")]
    workload: String,
    /// Also reports load latencies by serving component and path segment, and the share of load waits spent in queues
    #[arg(long = "latency")]
    latency: bool,
    #[command(flatten)]
    time: TimeArgument,
    #[command(flatten)]
    threads: ThreadsArgument,
    #[command(flatten)]
    output: OutputArguments,
}

impl Arguments {
    /// Runs the workload under every design and reports the differences. Fails if a run gives no result.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        if self.designs.len() < 2 {
            let (value, reason) = (self.designs.join(","), "give two at least: each is held to the first".to_owned());
            return Err(CommandFailure::Argument { flag: "--designs", value, reason });
        }
        let hardware = self.machine.hardware(&self.designs)?;
        let chosen = only(&self.workload)?;
        chosen.check(Target::of(&hardware.machine))?;
        let named = self.designs.iter().map(String::as_str).chain([self.machine.machine()]).map(PathBuf::from);
        self.output.check(chosen.files().into_iter().chain(named))?;
        let threads = self.threads.count();
        let runs = if self.latency {
            self.follow(&hardware, &chosen, threads)?
        } else {
            self.run(&hardware, &chosen, threads)?
        };
        if let Some(run) = runs.iter().find(|run| run.time.of(self.time.choice()) == 0.0) {
            let reason = "the program takes no time under it, of which nothing can be explained".to_owned();
            return Err(CommandFailure::Argument { flag: "--designs", value: run.design.clone(), reason });
        }
        runs.iter().flat_map(|run| &run.notes).for_each(|note| complain(&format!("warning: {note}")));
        let asked = ExplanationRequest {
            machine: hardware.machine.name.clone(),
            scale: hardware.machine.scale.to_string(),
            set: self.machine.settings().to_vec(),
            workload: chosen.label.clone(),
            time: self.time.choice(),
        };
        let explanation = Explanation::of(asked, &runs);
        let made = provenance(threads, &seeds(std::slice::from_ref(&chosen)));
        self.output.give(&explanation, made, true, |colours| explanation.text(colours))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the record of each design, with the design's own name.
    fn run(
        &self,
        hardware: &Hardware,
        chosen: &WorkloadChoice,
        threads: usize,
    ) -> Result<Vec<RunRecord>, CommandFailure> {
        let workload = Arc::new(chosen.clone());
        let point = |design| {
            let (machine, workload) = (Arc::clone(&hardware.machine), Arc::clone(&workload));
            Point::new(machine, Arc::new(design), workload, Pass::Simulation, Vec::new())
        };
        let points = hardware.designs.iter().cloned().map(point).collect::<Result<Vec<_>, _>>()?;
        let progress = Progress::new(points.len());
        let results = run_points(&points, None, threads, &progress)?;
        let record = |point: &Point| match results.get(point.key()).expect("every point has an answer") {
            Ok(outcome) => match &**outcome {
                // Designs with different names may be the same point.
                PointResult::Simulation(record) => {
                    Ok(RunRecord { design: point.design.name.clone(), ..(**record).clone() })
                }
                PointResult::Sharing(_) | PointResult::Arrays(_) => unreachable!("a simulation was asked for"),
            },
            Err(error) => {
                let (value, reason) = (point.design.name.clone(), error.clone());
                Err(CommandFailure::Argument { flag: "--designs", value, reason })
            }
        };
        points.iter().map(record).collect()
    }

    /// Like `run`, with load latencies.
    fn follow(
        &self,
        hardware: &Hardware,
        chosen: &WorkloadChoice,
        threads: usize,
    ) -> Result<Vec<RunRecord>, CommandFailure> {
        let progress = Progress::new(hardware.designs.len());
        let source = chosen.record(Target::of(&hardware.machine), threads)?;
        let run = |design: &DesignConfig| {
            let name = format!("{} under {}", source.label, design.name);
            let observers = Observers { latency: true, ..Observers::default() };
            let run = || run_one_observed(&hardware.machine, design, &source, threads, observers);
            Ok(progress.during(&name, run)?.record)
        };
        hardware.designs.iter().map(run).collect()
    }
}
