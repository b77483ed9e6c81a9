//! Checks that documents agree with the program's output, and builds their tables from kept results.
//!
//! HTML comments in Markdown describe the block or the table below them.
//!
//! | comment | content below it |
//! | --- | --- |
//! | `<!-- run -->` | commands, followed by their output; if the text continues with `(shortened)`, some lines from it |
//! | `<!-- run: COMMAND -->` | output of this command |
//! | `<!-- run deep -->` | like `run`, but run only with `--deep` |
//! | `<!-- run fails -->` | like `run`, for commands that must fail: their error |
//! | `<!-- file NAME -->` | a file that later commands in the document read |
//! | `<!-- keep NAME from FILE -->` | commands that write the report FILE, kept as `docs/results/NAME.json` |
//! | `<!-- table NAME DIGITS: FIGURE > COLUMN; … -->` | a table: a row for each row in the first figure, a column for each source |
//! | `<!-- columns NAME DIGITS: FIGURE > ROW; … -->` | a table: a row for each column in the first figure, a column for each source |
//! | `<!-- claims NAME DIGITS: ID … -->` | a table: a claim, the measured value, the paper's value |
//! | `<!-- verdicts: NAME … -->` | a table: number of direction claims for each reproduction, by verdict |
//!
//! A source may be the ratio between two sources, `FIGURE > COLUMN / FIGURE > COLUMN`, or the maximum over several
//! columns, `FIGURE > COLUMN | COLUMN`. A number in the text that links to kept results is compared with them, also in
//! per cent: `[1.05](results/NAME.json "FIGURE > ROW > COLUMN")`.
//!
//! Without arguments: checks tables, numbers, and all README commands that are not deep. `--deep`: runs all commands,
//! and rebuilds kept results to compare them. `--bless` rewrites any differing text. `NAME …`: restricts the check to
//! these documents and kept results.
//!
//! Not checked: numbers in the text without a link, and output that depends on the host, for example seconds.

mod document;
mod kept;
mod markdown;
mod marker;
mod shell;
mod shown;
mod table;

use document::Document;
use kept::{KeptReport, Results};
use markdown::{Passage, PassageKind};
use shell::Shell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The document with commands that run without `--deep`.
const QUICK: &str = "README.md";
/// Folder for all other documents, and for kept results.
const FOLDER: &str = "docs";

/// A position in a document, with the error found there.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    place: String,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.text)
    }
}

/// Scope and mode of the check.
struct Settings {
    /// Root of the repository.
    root: PathBuf,
    results: Results,
    is_deep: bool,
    blesses: bool,
    /// Documents and kept results named on the command line; empty: all.
    selected: Vec<String>,
    /// Kept results for which some document contains the commands.
    keepable: Vec<String>,
}

impl Settings {
    fn new(root: PathBuf, arguments: impl Iterator<Item = String>) -> Result<Settings, String> {
        let results = Results { folder: root.join(FOLDER).join("results") };
        let mut settings =
            Settings { root, results, is_deep: false, blesses: false, selected: Vec::new(), keepable: Vec::new() };
        for argument in arguments {
            match argument.as_str() {
                "--deep" => settings.is_deep = true,
                "--bless" => settings.blesses = true,
                _ if argument.starts_with('-') => {
                    return Err(format!(
                        "{argument}: expected `--deep`, `--bless`, or names of documents and kept results"
                    ));
                }
                _ => settings.selected.push(argument),
            }
        }
        Ok(settings)
    }

    /// True if a document or a kept result is selected.
    fn names(&self, name: &str) -> bool {
        self.selected.is_empty() || self.selected.iter().any(|selected| selected == name)
    }

    /// True if a document's commands run without `--deep`.
    fn is_quick(&self, document: &str) -> bool {
        document == QUICK || !self.selected.is_empty()
    }
}

fn main() -> ExitCode {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let program = std::env::var_os("TOMBOLO").map_or_else(|| target.join("debug/tombolo"), PathBuf::from);
    let root = std::env::current_dir().map_err(|error| format!("the working folder: {error}"));
    let settings = root.and_then(|root| Settings::new(root, std::env::args().skip(1)));
    match settings.and_then(|settings| check(settings, &program)) {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            faults.iter().for_each(|fault| eprintln!("{fault}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Checks all documents against the output of `program`; returns all faults.
fn check(mut settings: Settings, program: &Path) -> Result<Vec<Fault>, String> {
    let shell = Shell::new(settings.root.join("target/documents"), program)?;
    let documents = documents(&settings.root)?;
    settings.keepable = documents.iter().flat_map(keepable).collect();
    let known: Vec<&str> = documents.iter().map(|document| document.name.as_str()).collect();
    let known: Vec<&str> = known.into_iter().chain(settings.keepable.iter().map(String::as_str)).collect();
    if let Some(selected) = settings.selected.iter().find(|selected| !known.contains(&selected.as_str())) {
        return Err(format!("{selected}: expected one of {}", known.join(", ")));
    }
    let mut faults = Vec::new();
    if settings.is_deep {
        for document in &documents {
            faults.extend(keep_all(document, &shell, &settings));
        }
    }
    for document in documents {
        faults.extend(document.check(&shell, &settings));
    }
    Ok(faults)
}

fn documents(root: &Path) -> Result<Vec<Document>, String> {
    let told = |error: std::io::Error| format!("{FOLDER}: {error}");
    let mut names = vec![QUICK.to_owned()];
    for entry in std::fs::read_dir(root.join(FOLDER)).map_err(told)? {
        let name = entry.map_err(told)?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            names.push(format!("{FOLDER}/{name}"));
        }
    }
    names[1..].sort();
    names.iter().map(|name| Document::read(root, name)).collect()
}

/// Names of the kept results for which a document contains the commands.
fn keepable(document: &Document) -> Vec<String> {
    let name = |passage: Passage| match passage.kind {
        PassageKind::Keep { name, .. } => Some(name),
        _ => None,
    };
    document.passages().unwrap_or_default().into_iter().filter_map(name).collect()
}

/// Rebuilds the kept results that a document names, and compares or stores them. Finished points are preserved, so that
/// an interrupted run can continue.
fn keep_all(document: &Document, shell: &Shell, settings: &Settings) -> Vec<Fault> {
    let mut faults = Vec::new();
    for Passage { line, kind } in document.passages().unwrap_or_default() {
        let PassageKind::Keep { name, from, commands } = kind else { continue };
        if settings.names(&name) {
            println!("{}:{}: {}", document.name, line + 1, commands.trim_end());
            if let Err(text) = keep(&name, &from, &commands, shell, settings) {
                faults.push(Fault { place: format!("{}:{}", document.name, line + 1), text });
            }
        }
    }
    faults
}

fn keep(name: &str, from: &str, commands: &str, shell: &Shell, settings: &Settings) -> Result<(), String> {
    let kept = settings.results.get(name)?;
    if kept.is_none() && !settings.blesses {
        return Err(document::lacks(name));
    }
    let folder = shell.scratch.join("kept");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    shell.run(&folder, commands, false)?;
    let path = folder.join(from);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let report = tombolo_report::Document::from_json(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let made = KeptReport::of(&report, commands);
    match kept {
        Some(kept) if made.agrees(&kept) => Ok(()),
        Some(kept) if !settings.blesses => {
            Err(format!("`{name}` comes out otherwise than kept:\n{}", made.differences(&kept).join("\n")))
        }
        _ => settings.results.keep(name, &made),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
