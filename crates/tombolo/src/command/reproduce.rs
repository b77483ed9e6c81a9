//! `reproduce`: runs a paper's evaluation, figure by figure, with its claims.

use crate::failure::CommandFailure;
use crate::study::StudyArguments;
use std::path::PathBuf;
use std::process::ExitCode;
use tombolo_experiment::Study;
use tombolo_experiment::preset::{papers, sets};
use tombolo_experiment::readings::DEFAULT;

/// Word in place of a paper's name that selects all papers.
const ALL: &str = "all";

/// Arguments for `reproduce`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Paper: hmg, numa-gpu, cpelide, gps or umh, or all, each into its own folder
    paper: String,
    /// Single figure: the number, or a name from `list experiments`; page and tables have its name
    #[arg(long = "figure", value_name = "F")]
    figure: Option<String>,
    #[arg(long = "readings", value_name = "SET", default_value = DEFAULT, help = readings_help())]
    readings: String,
    /// Folder for results, tables and the report; finished points are not run again [default: tombolo-PAPER, with -SET
    /// for a different set]
    #[arg(long = "out", value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    study: StudyArguments,
}

impl Arguments {
    /// Runs the evaluation and prints figures and claims.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        let (known, time) = (papers(), self.study.time.given());
        let sampled = self.study.sample.is_enabled();
        let set = if self.readings == DEFAULT { String::new() } else { format!("-{}", self.readings) };
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("tombolo-{}{set}", self.paper)));
        let study = |paper: &str, figure: Option<&str>| {
            let study = Study::of_paper_under(paper, figure, &self.readings, self.study.scale)?.sampled(sampled);
            Ok::<_, CommandFailure>(match time {
                Some(time) => study.with_time(time),
                None => study,
            })
        };
        if self.paper == ALL {
            if let Some(figure) = &self.figure {
                let reason = format!("every paper has figures of its own; name one of {}", known.join(", "));
                return Err(CommandFailure::Argument { flag: "--figure", value: figure.clone(), reason });
            }
            if self.readings != DEFAULT {
                let reason = format!("every paper has readings of its own; name one of {}", known.join(", "));
                return Err(CommandFailure::Argument { flag: "--readings", value: self.readings.clone(), reason });
            }
            let studies = known.iter().map(|paper| study(paper, None)).collect::<Result<Vec<_>, _>>()?;
            return self.study.execute_all(&studies, &out);
        }
        self.study.execute(&study(&self.paper, self.figure.as_deref())?, &out, None)
    }
}

/// Returns the help text for `--readings`, with the sets available for each paper.
fn readings_help() -> String {
    let of = |paper: &&str| {
        let sets = sets(paper).expect("a test reads all that ships");
        let others: Vec<&str> = sets.iter().map(String::as_str).filter(|set| *set != DEFAULT).collect();
        format!("{paper}: {}", others.join(", "))
    };
    let papers: Vec<String> = papers().iter().map(of).collect();
    format!(
        "Set of readings that every figure is run under. Claims of another than {DEFAULT} are shown as CLAIM@SET and not \
         judged; `show readings PAPER` has what each sets. {}",
        papers.join("; ")
    )
}
