//! `compare`: workloads under several designs, against a baseline.

use crate::WRONG_INPUT;
use crate::comparison::{Compared, Comparison, Cost, Results};
use crate::failure::{Failure, did_you_mean};
use crate::hardware::{Hardware, MachineArguments, refuse_twice};
use crate::output::{OutputArguments, complain};
use crate::progress::Progress;
use crate::provenance::{provenance, seeds};
use crate::table::seconds;
use crate::threads::ThreadsArgument;
use crate::timed::TimeArgument;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tombolo_experiment::campaign::run_points;
use tombolo_experiment::workload::{Target, WorkloadChoice, workloads};
use tombolo_experiment::{Pass, Point, PointResult};
use tombolo_machine::error::near;
use tombolo_system::{RunRecord, TimeChoice};

/// What to compare.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    machine: MachineArguments,
    /// Designs: names of `list designs`, or paths of .toml files
    #[arg(long, value_name = "A,B,…", required = true, num_args = 1.., value_delimiter = ',')]
    designs: Vec<String>,
    /// Workloads of `list workloads`, each with its parameters, and traces: triad,elements=4096,trace:PATH; a PATH with a
    /// comma goes in double quotes: 'trace:"a,b"'
    #[arg(long, value_name = "W[,KEY=VALUE…]|trace:PATH", required = true, num_args = 1..)]
    workload: Vec<String>,
    /// The design that speed-ups are over [default: the first]
    #[arg(long, value_name = "A")]
    baseline: Option<String>,
    #[command(flatten)]
    time: TimeArgument,
    #[command(flatten)]
    threads: ThreadsArgument,
    #[command(flatten)]
    output: OutputArguments,
}

impl Arguments {
    /// Runs everything and prints the comparison. Status 2 where a run gave no result; the others are printed.
    pub(crate) fn execute(&self) -> Result<ExitCode, Failure> {
        let hardware = self.machine.hardware(&self.designs)?;
        let designs: Vec<String> = hardware.designs.iter().map(|design| design.name.clone()).collect();
        let baseline = self.baseline(&designs)?;
        let chosen = workloads(&self.workload)?;
        refuse_twice("--workload", chosen.iter().map(|choice| choice.label.as_str()))?;
        chosen.iter().try_for_each(|choice| choice.check(Target::of(&hardware.machine)))?;
        let named = self.designs.iter().map(String::as_str).chain([self.machine.machine()]).map(PathBuf::from);
        self.output.check(chosen.iter().flat_map(WorkloadChoice::files).chain(named))?;
        let threads = self.threads.count();
        let started = Instant::now();
        let results = run_all(&hardware, &chosen, self.time.choice(), threads)?;
        let made = provenance(threads, &seeds(&chosen));
        let cost = Cost { wall_s: started.elapsed().as_secs_f64(), threads };
        let compared = Compared {
            machine: hardware.machine.name.clone(),
            scale: hardware.machine.scale.to_string(),
            set: self.machine.settings().to_vec(),
            baseline,
            time: self.time.choice(),
            designs,
            workloads: chosen.into_iter().map(|choice| choice.label).collect(),
        };
        let comparison = Comparison::of(compared, results, cost);
        let whole = comparison.is_whole();
        comparison.failures().for_each(|failure| complain(&format!("error: {failure}")));
        self.output.give(&comparison, made, whole, |colours| comparison.text(colours))?;
        Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(WRONG_INPUT) })
    }

    /// The name of the baseline: as given in `--designs`, or as the design calls itself.
    fn baseline(&self, designs: &[String]) -> Result<String, Failure> {
        let Some(asked) = &self.baseline else { return Ok(designs[0].clone()) };
        let mut pairs = self.designs.iter().zip(designs);
        pairs.find(|(given, name)| *given == asked || *name == asked).map(|(_, name)| name.clone()).ok_or_else(|| {
            let hint = did_you_mean(&near(asked, designs.iter().map(String::as_str)));
            let reason = format!("not one of --designs{hint}; these are {}", designs.join(", "));
            Failure::Argument { flag: "--baseline", value: asked.clone(), reason }
        })
    }
}

/// Runs every workload under every design with up to `threads` threads: the results by workload, then by design.
fn run_all(
    hardware: &Hardware,
    workloads: &[WorkloadChoice],
    time: TimeChoice,
    threads: usize,
) -> Result<Results, Failure> {
    let designs: Vec<_> = hardware.designs.iter().cloned().map(Arc::new).collect();
    let mut points = Vec::new();
    for workload in workloads {
        let workload = Arc::new(workload.clone());
        for design in &designs {
            let (machine, design, workload) =
                (Arc::clone(&hardware.machine), Arc::clone(design), Arc::clone(&workload));
            points.push(Point::new(machine, design, workload, Pass::Simulation, Vec::new())?);
        }
    }
    let progress = Progress::new(points.len());
    let results = run_points(&points, None, threads, &progress)?;
    let record = |point: &Point| match results.get(point.key()).expect("every point has an answer") {
        Ok(outcome) => match &**outcome {
            PointResult::Simulation(record) => comparable(record, point, time),
            PointResult::Sharing(_) | PointResult::Arrays(_) => unreachable!("a simulation was asked for"),
        },
        Err(error) => Err(error.clone()),
    };
    Ok(points.chunks(designs.len()).map(|row| row.iter().map(record).collect()).collect())
}

/// The record of a point under the names given, or why it cannot be compared.
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
    // Designs or workloads of two names may be one point.
    record.design.clone_from(&point.design.name);
    record.workload.clone_from(&point.workload.label);
    Ok(record)
}
