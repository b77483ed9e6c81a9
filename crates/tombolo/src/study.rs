//! What `reproduce` and `sweep` share: arguments, interrupts, and what is printed.

use crate::WRONG_INPUT;
use crate::failure::Failure;
use crate::output::{complain, show};
use crate::progress::Progress;
use crate::table::{Cell, Look, Table};
use crate::threads::ThreadsArgument;
use std::path::Path;
use std::process::ExitCode;
use tombolo_experiment::{Options, ScaleChoice, Shard, Study};
use tombolo_report::Document;
use tombolo_report::document::{Claim, ClaimKind, Figure, Verdict};

/// Status of an answer "no".
const NO: u8 = 1;
/// Status of a program ended by an interrupt. Source: POSIX shells, 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// How a study is run and shown.
#[derive(clap::Args)]
pub(crate) struct StudyArguments {
    /// quick: each experiment's own scale, minutes on two cores; paper: 1; or a fraction, such as 1/8
    #[arg(long, value_name = "quick|paper|F", default_value = "quick", value_parser = scale)]
    pub(crate) scale: ScaleChoice,
    /// Repeats directions also with assumed values halved and doubled, which takes long
    #[arg(long)]
    pub(crate) robust: bool,
    /// Status 1 where an identity or a mechanism fails
    #[arg(long)]
    strict: bool,
    /// Prints the report as one JSON document instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgument,
}

fn scale(text: &str) -> Result<ScaleChoice, String> {
    match text {
        "quick" => Ok(ScaleChoice::Quick),
        "paper" => Ok(ScaleChoice::Paper),
        _ => text.parse().map(ScaleChoice::Fixed).map_err(|error: tombolo_machine::ConfigError| error.to_string()),
    }
}

impl StudyArguments {
    /// Runs `study` into `out` and prints what came out. Status 2 where a point gave no result.
    pub(crate) fn execute(&self, study: &Study, out: &Path, shard: Option<Shard>) -> Result<ExitCode, Failure> {
        let progress = Progress::new(study.count(self.robust)?);
        tell_when_interrupted(out);
        let options = Options {
            out,
            threads: self.threads.count(),
            robust: self.robust,
            shard,
            command: command(),
            version: env!("CARGO_PKG_VERSION"),
            watcher: &progress,
        };
        let document = study.run(&options)?;
        drop(progress);
        let Some(document) = document else { return Ok(ExitCode::SUCCESS) };
        for failure in &document.failures {
            complain(&format!("error: {}: {}", failure.point, failure.error));
        }
        show(self.json, &document, |colours| text(&document, out, colours))?;
        Ok(self.status(&document))
    }

    fn status(&self, document: &Document) -> ExitCode {
        let must = |claim: &&Claim| matches!(claim.kind, ClaimKind::Identity | ClaimKind::Mechanism);
        let broken = document.claims.iter().filter(must).any(|claim| claim.verdict != Verdict::Holds);
        match (document.failures.is_empty(), self.strict && broken) {
            (false, _) => ExitCode::from(WRONG_INPUT),
            (true, true) => ExitCode::from(NO),
            (true, false) => ExitCode::SUCCESS,
        }
    }
}

/// The command line as given, which makes the report again.
fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("tombolo".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Has an interrupt say that nothing finished is lost.
fn tell_when_interrupted(out: &Path) {
    let folder = out.display().to_string();
    // Where the system refuses, an interrupt ends the program without a word, and as little is lost.
    let _ = ctrlc::try_set_handler(move || {
        complain(&format!("\ninterrupted: what is finished is in {folder}; the same command goes on from there"));
        std::process::exit(INTERRUPTED);
    });
}

/// Claims and figures, for people.
fn text(document: &Document, out: &Path, colours: bool) -> String {
    let title = |text: &str| format!("{}\n", Look::Strong.paint(text, colours));
    let mut text = title(&format!("{} at scale {}", document.title, document.scale));
    for figure in &document.figures {
        text.push_str(&format!("\n{}", title(&figure.title)));
        text.push_str(&figure_table(figure).render(colours));
    }
    if !document.claims.is_empty() {
        text.push_str(&format!("\n{}", title("Claims")));
        text.push_str(&claim_table(&document.claims).render(colours));
    }
    for claim in &document.claims {
        if let Some(cause) = &claim.cause {
            text.push_str(&format!("{}: {cause}\n", claim.id));
        }
    }
    for failure in &document.failures {
        let failed = Look::Bad.paint("failed", colours);
        text.push_str(&format!("{failed}: {}: {}\n", failure.point, failure.error));
    }
    text.push_str(&format!("\n{}: results.csv, results.parquet, report.json\n", out.display()));
    text
}

fn figure_table(figure: &Figure) -> Table {
    let mut table = Table::new(1).with_headings(figure.columns.iter().map(String::as_str));
    for row in &figure.rows {
        let values = row.values.iter().map(|value| Cell::plain(number(*value)));
        table.row(std::iter::once(Cell::plain(&row.label)).chain(values).collect());
    }
    table
}

fn claim_table(claims: &[Claim]) -> Table {
    let mut table = Table::new(3).with_headings(["claim", "kind", "verdict", "paper", "measured", "unit"]);
    for claim in claims {
        let (verdict, look) = match claim.verdict {
            Verdict::Holds => ("holds", Look::Good),
            Verdict::Fails => ("fails", Look::Bad),
            Verdict::NotRobust => ("not robust", Look::Bad),
            Verdict::Shown => ("shown", Look::Plain),
        };
        let kind = match claim.kind {
            ClaimKind::Identity => "identity",
            ClaimKind::Mechanism => "mechanism",
            ClaimKind::Direction => "direction",
            ClaimKind::Magnitude => "magnitude",
        };
        let numbers = [number(claim.paper), number(claim.measured), claim.unit.clone()].map(Cell::plain);
        let words = [Cell::plain(&claim.id), Cell::plain(kind), Cell::new(verdict, look)];
        table.row(words.into_iter().chain(numbers).collect());
    }
    table
}

/// A number of three decimals; whole ones without; a dash for none.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
        Some(value) => format!("{value:.3}"),
    }
}
