//! `sweep`: runs a user's own experiment, locally or on a cluster.

use crate::WRONG_INPUT;
use crate::failure::{CommandFailure, did_you_mean};
use crate::hardware::refuse_twice;
use crate::output::complain;
use crate::request::{study, vary};
use crate::study::StudyArguments;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tombolo_experiment::shell::quoted;
use tombolo_experiment::spec::Shape;
use tombolo_experiment::workload::workloads;
use tombolo_experiment::{ExperimentRequest, ScaleChoice, Shard, Study, slurm};
use tombolo_machine::error::near;

/// Default number of jobs in a script. Source: assumed.
const JOBS: u16 = 16;

/// Arguments for `sweep`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The experiment: a .toml file
    #[arg(required_unless_present = "machine", conflicts_with = "machine")]
    spec: Option<PathBuf>,
    #[command(flatten)]
    asked: InlineArguments,
    /// Execution: local, on this machine; slurm, later: writes a script to submit with sbatch
    #[arg(long = "engine", value_enum, default_value = "local")]
    engine: Engine,
    /// Jobs in slurm's script, at most one per point [default: 16]
    #[arg(long = "jobs", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    jobs: Option<u16>,
    /// Runs only part I of N parts of the points, I from 0, and makes no tables
    #[arg(long = "shard", value_name = "I/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Folder for results, tables and the report; finished points are reused [default: tombolo-NAME]
    #[arg(long = "out", value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    study: StudyArguments,
}

/// Arguments of a sweep without a file.
#[derive(clap::Args)]
struct InlineArguments {
    /// Without a file: the machine, a name from `list machines`, or the path to a .toml file
    #[arg(long = "machine", value_name = "M", requires_all = ["designs", "workload", "vary"])]
    machine: Option<String>,
    /// Designs: names from `list designs`, or paths to .toml files
    #[arg(long = "designs", value_name = "A,B,…", requires = "machine", num_args = 1.., value_delimiter = ',')]
    designs: Vec<String>,
    /// Workloads, like for `compare`: points are workload means, or lines if a single design and a single setting are
    /// swept
    #[arg(long = "workload", value_name = "W[,KEY=VALUE…]|trace:PATH", requires = "machine", num_args = 1..)]
    workload: Vec<String>,
    /// Sweeps a value of the machine or the designs, like l2.bytes=3MB,6MB: the horizontal axis. May be repeated: each
    /// value of the second is a line, each of a third a figure
    #[arg(long = "vary", value_name = "KEY=A,B,…", requires = "machine", value_parser = vary)]
    vary: Vec<(String, Vec<String>)>,
    /// Replaces a value of the machine or the designs at every point; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE", requires = "machine")]
    set: Vec<String>,
    /// Baseline design for speed-ups, without any swept setting [default: the first]
    #[arg(long = "baseline", value_name = "A", requires = "machine")]
    baseline: Option<String>,
    /// Chart for two settings [default: lines]
    #[arg(long = "chart", value_enum, requires = "machine")]
    chart: Option<ChartShape>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ChartShape {
    /// A line for each value of the second setting
    #[value(name = "lines")]
    Lines,
    /// A cell for each pair
    #[value(name = "heat")]
    Heat,
}

impl InlineArguments {
    fn study(&self, machine: &str, scale: ScaleChoice) -> Result<Study, CommandFailure> {
        if let Some(baseline) = self.baseline.as_ref().filter(|one| !self.designs.contains(one)) {
            let hint = did_you_mean(&near(baseline, self.designs.iter().map(String::as_str)));
            let reason = format!("not one of --designs{hint}; these are {}", self.designs.join(", "));
            return Err(CommandFailure::Argument { flag: "--baseline", value: baseline.clone(), reason });
        }
        refuse_twice("--designs", self.designs.iter().map(String::as_str))?;
        let chosen = workloads(&self.workload)?;
        refuse_twice("--workload", chosen.iter().map(|choice| choice.label.as_str()))?;
        let asked = ExperimentRequest {
            id: "sweep".to_owned(),
            machine: machine.to_owned(),
            designs: self.designs.clone(),
            workloads: chosen.into_iter().map(|choice| choice.label).collect(),
            scale: match scale {
                ScaleChoice::Fixed(scale) => Some(scale.to_string()),
                ScaleChoice::Quick | ScaleChoice::Paper => None,
            },
            set: self.set.clone(),
            vary: self.vary.clone(),
            baseline: self.baseline.clone(),
            chart: self.chart.map(|drawn| match drawn {
                ChartShape::Lines => Shape::Lines,
                ChartShape::Heat => Shape::Heat,
            }),
        };
        study(&asked, scale)
    }

    /// Returns the arguments in command-line form.
    fn words(&self, machine: &str) -> Vec<String> {
        let mut words =
            vec!["--machine".to_owned(), machine.to_owned(), "--designs".to_owned(), self.designs.join(",")];
        words.push("--workload".to_owned());
        words.extend(self.workload.iter().cloned());
        let varied = self.vary.iter().map(|(path, values)| ("--vary", format!("{path}={}", values.join(","))));
        let set = self.set.iter().map(|setting| ("--set", setting.clone()));
        let baseline = self.baseline.iter().map(|design| ("--baseline", design.clone()));
        for (flag, value) in varied.chain(set).chain(baseline) {
            words.extend([flag.to_owned(), value]);
        }
        words.extend((self.chart == Some(ChartShape::Heat)).then(|| "--chart=heat".to_owned()));
        words
    }
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    #[value(name = "local")]
    Local,
    #[value(name = "slurm")]
    Slurm,
}

fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    let shard = parts.map(|(index, of)| Shard { index, of });
    shard.filter(|shard| shard.index < shard.of).ok_or_else(|| "expected I/N with I from 0 and below N".to_owned())
}

impl Arguments {
    /// Runs the sweep and prints the figure, or writes the script.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        let study = match (&self.spec, &self.asked.machine) {
            (Some(spec), _) => Study::of_file(spec, self.study.scale)?,
            (None, Some(machine)) => self.asked.study(machine, self.study.scale)?,
            (None, None) => unreachable!("one of the two is required"),
        };
        let study = study.with_time(self.study.time.choice()).sampled(self.study.sample.is_enabled());
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("tombolo-{}", study.name())));
        if let Some(shard) = self.shard {
            self.study.refuse_answers("--shard", &format!("{}/{}", shard.index, shard.of))?;
        }
        let refuse =
            |flag, value: String, reason: &str| Err(CommandFailure::Argument { flag, value, reason: reason.into() });
        if self.engine == Engine::Local {
            return match self.jobs {
                Some(jobs) => refuse("--jobs", jobs.to_string(), "without --engine slurm there are no jobs"),
                None => self.study.execute(&study, &out, self.shard),
            };
        }
        if self.shard.is_some() {
            return refuse("--engine", "slurm".to_owned(), "its script gives each job a shard: leave --shard out");
        }
        self.study.refuse_answers("--engine", "slurm")?;
        let impossible = study.impossible(self.study.robust)?;
        impossible.iter().for_each(|failure| complain(&format!("error: {failure}")));
        let points = study.count(self.study.robust)?;
        if points == 0 {
            return Ok(ExitCode::from(WRONG_INPUT));
        }
        let jobs = usize::from(self.jobs.unwrap_or(JOBS)).min(points);
        let script = slurm::script(&out, &self.words(&out), jobs, self.study.threads.count())?;
        let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        complain(&format!(
            "{} in {}; submit with: sbatch {}",
            plural(points, "point"),
            plural(jobs, "job"),
            quoted(&script.display().to_string())
        ));
        Ok(if impossible.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(WRONG_INPUT) })
    }

    /// Returns this sweep as a command for a cluster node, without engine, threads and shard.
    fn words(&self, out: &Path) -> Vec<String> {
        let word = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
        let program = std::env::current_exe().map_or_else(|_| "tombolo".to_owned(), |path| path.display().to_string());
        let mut words = vec![program, "sweep".to_owned()];
        words.extend(self.spec.iter().map(|spec| word(spec)));
        words.extend(self.asked.machine.iter().flat_map(|machine| self.asked.words(machine)));
        words.extend(["--out".to_owned(), word(out)]);
        words.extend(["--scale".to_owned(), self.study.scale.to_string()]);
        words.extend(["--time".to_owned(), self.study.time.choice().to_string()]);
        words.extend(self.study.sample.is_enabled().then(|| "--sample".to_owned()));
        words.extend(self.study.robust.then(|| "--robust".to_owned()));
        words
    }
}
