//! `reproduce`: a paper's evaluation, figure by figure, with its claims.

use crate::failure::Failure;
use crate::study::StudyArguments;
use std::path::PathBuf;
use std::process::ExitCode;
use tombolo_experiment::Study;
use tombolo_experiment::preset::papers;

/// The papers of this simulator; some of their experiments are not part of it yet.
const PAPERS: [&str; 5] = ["numa-gpu", "umh", "hmg", "gps", "cpelide"];

/// What to reproduce.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Paper: numa-gpu, umh, hmg, gps or cpelide
    paper: String,
    /// One figure alone: its number, or a name of `list experiments`
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
        let known = papers();
        if let Some(paper) = PAPERS.iter().find(|paper| **paper == self.paper && !known.contains(paper)) {
            return Err(Failure::NotYet { paper, known: known.join(", ") });
        }
        let study = Study::of_paper(&self.paper, self.figure.as_deref(), self.study.scale)?;
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("tombolo-{}", self.paper)));
        self.study.execute(&study, &out, None)
    }
}
