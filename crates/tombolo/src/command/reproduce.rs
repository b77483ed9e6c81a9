//! `reproduce`: a paper's evaluation, figure by figure, with its claims.

use crate::failure::Failure;
use crate::study::StudyArguments;
use std::path::PathBuf;
use std::process::ExitCode;
use tombolo_experiment::Study;
use tombolo_experiment::preset::papers;

/// In place of a paper: every one.
const ALL: &str = "all";

/// What to reproduce.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Paper: hmg, numa-gpu, cpelide, gps or umh, or all of these, each into a folder of its own
    paper: String,
    /// One figure alone: its number, or a name of `list experiments`; its page and tables have its name
    #[arg(long = "figure", value_name = "F")]
    figure: Option<String>,
    /// Folder for results, tables and the report; finished points in it are not run again [default: tombolo-PAPER]
    #[arg(long = "out", value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    study: StudyArguments,
}

impl Arguments {
    /// Runs it and prints figures and claims.
    pub(crate) fn execute(&self) -> Result<ExitCode, Failure> {
        let (known, time) = (papers(), self.study.time.choice());
        let sampled = self.study.sample.is_asked();
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("tombolo-{}", self.paper)));
        if self.paper == ALL {
            if let Some(figure) = &self.figure {
                let reason = format!("every paper has figures of its own; name one of {}", known.join(", "));
                return Err(Failure::Argument { flag: "--figure", value: figure.clone(), reason });
            }
            let one =
                |paper: &&str| Ok(Study::of_paper(paper, None, self.study.scale)?.with_time(time).sampled(sampled));
            let studies = known.iter().map(one);
            return self.study.execute_all(&studies.collect::<Result<Vec<_>, Failure>>()?, &out);
        }
        let study =
            Study::of_paper(&self.paper, self.figure.as_deref(), self.study.scale)?.with_time(time).sampled(sampled);
        self.study.execute(&study, &out, None)
    }
}
