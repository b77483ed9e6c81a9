//! `sweep`: a user's own experiment, here or on a cluster.

use crate::failure::Failure;
use crate::output::complain;
use crate::study::StudyArguments;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tombolo_experiment::shell::quoted;
use tombolo_experiment::{Shard, Study, slurm};

/// Jobs of a script where none are asked for. Source: assumed.
const JOBS: u16 = 16;

/// What to sweep.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The experiment: a .toml file
    spec: PathBuf,
    /// Where it runs: local, on this machine; slurm, nowhere yet: writes a script to submit with sbatch
    #[arg(long, value_enum, default_value = "local")]
    engine: Engine,
    /// Jobs of slurm's script [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    jobs: Option<u16>,
    /// Runs part I of N of the points alone, I from 0, and makes no tables
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<Shard>,
    /// Folder for results, tables and the report; finished points in it are not run again [default: tombolo-NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    study: StudyArguments,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    Local,
    Slurm,
}

fn shard(text: &str) -> Result<Shard, String> {
    let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    let shard = parts.map(|(index, of)| Shard { index, of });
    shard.filter(|shard| shard.index < shard.of).ok_or_else(|| "expected I/N with I from 0 and below N".to_owned())
}

impl Arguments {
    /// Runs it and prints the figure, or writes the script.
    pub(crate) fn execute(&self) -> Result<ExitCode, Failure> {
        let study = Study::of_file(&self.spec, self.study.scale)?.with_time(self.study.time.choice());
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("tombolo-{}", study.name())));
        if let Some(shard) = self.shard {
            self.study.refuse_answers("--shard", &format!("{}/{}", shard.index, shard.of))?;
        }
        let refuse = |flag, value: String, reason: &str| Err(Failure::Argument { flag, value, reason: reason.into() });
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
        let script =
            slurm::script(&out, &self.words(&out), usize::from(self.jobs.unwrap_or(JOBS)), self.study.threads.count())?;
        complain(&format!(
            "{} points; submit with: sbatch {}",
            study.count(self.study.robust)?,
            quoted(&script.display().to_string())
        ));
        Ok(ExitCode::SUCCESS)
    }

    /// This sweep as a command for a node, without engine, threads and shard.
    fn words(&self, out: &Path) -> Vec<String> {
        let word = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
        let program = std::env::current_exe().map_or_else(|_| "tombolo".to_owned(), |path| path.display().to_string());
        let mut words = vec![program, "sweep".into(), word(&self.spec), "--out".into(), word(out)];
        words.extend(["--scale".to_owned(), self.study.scale.to_string()]);
        words.extend(["--time".to_owned(), self.study.time.choice().to_string()]);
        words.extend(self.study.robust.then(|| "--robust".to_owned()));
        words
    }
}
