//! `reproduce`: a paper's evaluation, figure by figure, with its claims.

use crate::failure::Failure;
use crate::study::StudyArguments;
use std::path::PathBuf;
use std::process::ExitCode;
use tombolo_experiment::Study;
use tombolo_experiment::preset::papers;

/// The papers of this simulator; some of their experiments are not part of it yet.
const PAPERS: [&str; 5] = ["numa-gpu", "umh", "hmg", "gps", "cpelide"];

/// In place of a paper: every one whose experiments ship.
const ALL: &str = "all";

/// What to reproduce.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Paper: hmg, numa-gpu, cpelide or gps, or all of these, each into a folder of its own; umh is to come
    paper: String,
    /// One figure alone: its number, or a name of `list experiments`; its page and tables have its name
    #[arg(long, value_name = "F")]
    figure: Option<String>,
    /// Folder for results, tables and the report; finished points in it are not run again [default: tombolo-PAPER]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    study: StudyArguments,
}

impl Arguments {
    /// Runs it and prints figures and claims.
    pub(crate) fn execute(&self) -> Result<ExitCode, Failure> {
        let (known, time) = (papers(), self.study.time.choice());
        if let Some(paper) = PAPERS.iter().find(|paper| **paper == self.paper && !known.contains(paper)) {
            return Err(Failure::NotYet { paper, known: known.join(", ") });
        }
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("tombolo-{}", self.paper)));
        if self.paper == ALL {
            if let Some(figure) = &self.figure {
                let reason = format!("every paper has figures of its own; name one of {}", known.join(", "));
                return Err(Failure::Argument { flag: "--figure", value: figure.clone(), reason });
            }
            let one = |paper: &&str| Ok(Study::of_paper(paper, None, self.study.scale)?.with_time(time));
            let studies = known.iter().map(one);
            return self.study.execute_all(&studies.collect::<Result<Vec<_>, Failure>>()?, &out);
        }
        let study = Study::of_paper(&self.paper, self.figure.as_deref(), self.study.scale)?.with_time(time);
        self.study.execute(&study, &out, None)
    }
}
