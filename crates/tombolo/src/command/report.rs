//! `tombolo report`: makes one HTML page of the results in a folder, or of a document.

use crate::comparison::Comparison;
use crate::failure::Failure;
use crate::output::{probe, refuse_input, write_whole};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tombolo_report::document::Provenance;
use tombolo_report::{Document, html_all};

/// Name of the file that `reproduce` and `sweep` leave in their folder; of one figure it has the figure's name.
const DOCUMENT: &str = "report.json";

/// What is asked.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder with a report.json, or whose folders have one each; or such a document, as of one figure, or that of `compare`
    #[arg(value_name = "DIR|FILE.json")]
    folder: PathBuf,
    /// File to write, whole or not at all
    #[arg(short, long = "out", value_name = "FILE.html")]
    out: PathBuf,
}

impl Arguments {
    /// Reads, renders, writes.
    pub(crate) fn execute(&self) -> Result<ExitCode, Failure> {
        let paths = documents(&self.folder)?;
        refuse_input("--out", &self.out, &paths)?;
        let documents = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
        probe(&self.out)?;
        write_whole(&self.out, html_all(&documents).as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The document itself; or of a folder: its own, or else those of its folders by name.
fn documents(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    if folder.is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let own = folder.join(DOCUMENT);
    if own.is_file() {
        return Ok(vec![own]);
    }
    let refused = |error| Failure::Unreadable { path: folder.to_owned(), reason: io::Error::to_string(&error) };
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(refused)?;
    let mut found: Vec<PathBuf> = entries.iter().map(|entry| entry.path().join(DOCUMENT)).collect();
    found.retain(|path| path.is_file());
    found.sort();
    if found.is_empty() {
        let reason = format!(
            "there is no {DOCUMENT} in it, nor in any of its folders; reproduce and sweep leave one, but reproduce \
             --figure 8 a figure-8.json, which is given by its own path"
        );
        return Err(Failure::Unreadable { path: folder.to_owned(), reason });
    }
    Ok(found)
}

/// The document at `path`: that of a study, or that of a comparison.
fn read(path: &Path) -> Result<Document, Failure> {
    let failed = |reason| Failure::Unreadable { path: path.to_owned(), reason };
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    match serde_json::from_str::<Kind>(&text) {
        Ok(Kind { speedups: Some(_), provenance }) => {
            let comparison: Comparison =
                serde_json::from_str(&text).map_err(|error| failed(format!("not a comparison's document: {error}")))?;
            Ok(comparison.report(provenance))
        }
        _ => Document::from_json(&text).map_err(|error| failed(error.to_string())),
    }
}

/// What tells one document from the other, and what both may have.
#[derive(serde::Deserialize)]
struct Kind {
    speedups: Option<serde::de::IgnoredAny>,
    provenance: Option<Provenance>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gives_the_folder_of_one_figure_is_told_to_give_its_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("figure-8.json"), "{}").unwrap();
        let refused = documents(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("no report.json") && refused.contains("figure-8.json"), "{refused}");
        assert_eq!(documents(&folder.path().join("figure-8.json")).unwrap().len(), 1);
    }
}
