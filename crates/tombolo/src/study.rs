//! Code shared between `reproduce` and `sweep`: arguments, interrupts, and printed output.

use crate::WRONG_INPUT;
use crate::failure::CommandFailure;
use crate::output::{complain, show};
use crate::progress::Progress;
use crate::provenance::provenance;
use crate::sample_argument::SampleArgument;
use crate::session;
use crate::threads::ThreadsArgument;
use crate::time_argument::TimeArgument;
use std::path::Path;
use std::process::ExitCode;
use tombolo_experiment::{ScaleChoice, Shard, Study, StudyOptions, StudyOutcome};
use tombolo_machine::MachineScale;
use tombolo_report::Document;
use tombolo_report::document::{Claim, ClaimKind, Verdict};

/// Exit status for the answer "no", for example a failed claim under `--strict`.
const NO: u8 = 1;
/// Exit status after an interrupt. Source: POSIX shells, 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Arguments for running and printing a study.
#[derive(clap::Args)]
pub(crate) struct StudyArguments {
    /// quick: each experiment's own scale, minutes on two cores; paper: 1; or a fraction, like 1/8
    #[arg(long = "scale", value_name = "quick|paper|F", default_value = "quick", value_parser = scale, allow_negative_numbers = true)]
    pub(crate) scale: ScaleChoice,
    #[command(flatten)]
    pub(crate) time: TimeArgument,
    #[command(flatten)]
    pub(crate) sample: SampleArgument,
    /// Also runs long direction repetitions: assumed values halved and doubled, seeds and scales in sweeps; at paper
    /// scale nothing is repeated without it
    #[arg(long = "robust")]
    pub(crate) robust: bool,
    /// Status 1 if an identity or a mechanism of the default readings fails
    #[arg(long = "strict")]
    strict: bool,
    /// Prints the report in JSON instead of text, a list of reports for all papers
    #[arg(long = "json")]
    json: bool,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgument,
}

fn scale(text: &str) -> Result<ScaleChoice, String> {
    match text {
        "quick" => Ok(ScaleChoice::Quick),
        "paper" => Ok(ScaleChoice::Paper),
        _ => match text.parse() {
            Ok(MachineScale::FULL) => Ok(ScaleChoice::Paper),
            Ok(scale) => Ok(ScaleChoice::Fixed(scale)),
            Err(error) => Err(tombolo_machine::ConfigError::to_string(&error)),
        },
    }
}

impl StudyArguments {
    /// Runs `study` into the folder `out` and prints the results. Returns status 2 if a point gave no result.
    pub(crate) fn execute(&self, study: &Study, out: &Path, shard: Option<Shard>) -> Result<ExitCode, CommandFailure> {
        tell_when_interrupted(out);
        match self.run(study, out, shard)? {
            StudyOutcome::Shard(failures) if failures.is_empty() => Ok(ExitCode::SUCCESS),
            StudyOutcome::Shard(_) => Ok(ExitCode::from(WRONG_INPUT)),
            StudyOutcome::Whole(document) => {
                show(self.json, &document, |_| text(&document, study, out))?;
                Ok(self.status(&[*document]))
            }
        }
    }

    /// Runs studies in sequence, each into a folder with its name inside `out`, and prints all results.
    pub(crate) fn execute_all(&self, studies: &[Study], out: &Path) -> Result<ExitCode, CommandFailure> {
        tell_when_interrupted(out);
        let folders = studies.iter().map(|study| out.join(study.name()));
        let mut documents = Vec::new();
        for (study, folder) in studies.iter().zip(folders.clone()) {
            if let StudyOutcome::Whole(document) = self.run(study, &folder, None)? {
                documents.push(*document);
            }
        }
        show(self.json, &documents, |_| {
            let all = documents.iter().zip(studies).zip(folders);
            all.map(|((document, study), folder)| text(document, study, &folder)).collect()
        })?;
        Ok(self.status(&documents))
    }

    /// Runs a study and reports the points without a result.
    fn run(&self, study: &Study, out: &Path, shard: Option<Shard>) -> Result<StudyOutcome, CommandFailure> {
        let progress = Progress::new(study.count(self.robust)?);
        let options = StudyOptions {
            out,
            threads: self.threads.count(),
            robust: self.robust,
            shard,
            provenance: provenance(self.threads.count(), &[]),
            watcher: &progress,
        };
        let finished = study.run(&options)?;
        drop(progress);
        let failures = match &finished {
            StudyOutcome::Whole(document) => &document.failures,
            StudyOutcome::Shard(failures) => failures,
        };
        for failure in failures {
            complain(&format!("error: {}: {}", failure.point, failure.error));
        }
        Ok(finished)
    }

    /// Refuses `--json` and `--strict` if `flag` with `value` makes no document.
    pub(crate) fn refuse_answers(&self, flag: &'static str, value: &str) -> Result<(), CommandFailure> {
        let given = [(self.json, "--json"), (self.strict, "--strict")];
        let Some((_, vain)) = given.into_iter().find(|(given, _)| *given) else { return Ok(()) };
        let reason = format!("it makes no document: leave {vain} out");
        Err(CommandFailure::Argument { flag, value: value.to_owned(), reason })
    }

    fn status(&self, documents: &[Document]) -> ExitCode {
        let must =
            |claim: &&Claim| claim.is_default() && matches!(claim.kind, ClaimKind::Identity | ClaimKind::Mechanism);
        let claims = documents.iter().flat_map(|document| &document.claims);
        let broken = claims.filter(must).any(|claim| claim.verdict != Verdict::Holds);
        match (documents.iter().all(|document| document.failures.is_empty()), self.strict && broken) {
            (false, _) => ExitCode::from(WRONG_INPUT),
            (true, true) => ExitCode::from(NO),
            (true, false) => ExitCode::SUCCESS,
        }
    }
}

/// Installs an interrupt handler that tells the user about the safely stored results, except in a session.
pub(crate) fn tell_when_interrupted(out: &Path) {
    if session::current().is_some() {
        return;
    }
    let folder = out.display().to_string();
    // If the system refuses a handler, an interrupt ends the program silently, and still loses no finished result.
    let _ = ctrlc::try_set_handler(move || {
        complain(&format!("\ninterrupted: what is finished is in {folder}; the same command goes on from there"));
        std::process::exit(INTERRUPTED);
    });
}

/// Default terminal width in columns. Source: assumed, a width that fits most terminals.
const COLUMNS: usize = 100;

/// Formats claims and figures for people, followed by the written files.
fn text(document: &Document, study: &Study, out: &Path) -> String {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(COLUMNS);
    let (folder, page) = (out.display(), out.join(study.page()));
    format!("{}\n{folder}: {}\npage: {}\n", tombolo_report::text(document, columns), study.files(), page.display())
}
