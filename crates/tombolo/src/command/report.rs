//! `tombolo report`: renders the results in a folder, or a document, to a single HTML page, and writes their figures as
//! files for papers.

use crate::comparison::Comparison;
use crate::failure::CommandFailure;
use crate::output::{probe, refuse_input, write_whole};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tombolo_report::document::Provenance;
use tombolo_report::{Document, FigureFiles, figures, folder_name, html_all, interactive};

/// File name that `reproduce` and `sweep` write into their folder; for a single figure the file has the figure's name.
const DOCUMENT: &str = "report.json";

/// Arguments for `report`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["out", "figures"])))]
pub(crate) struct Arguments {
    /// Folder with a report.json, or with a report.json in each subfolder; or a document: for one figure, or from
    /// `compare`
    #[arg(value_name = "DIR|FILE.json")]
    folder: PathBuf,
    /// File to write, atomically
    #[arg(short = 'o', long = "out", value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Folder for the figures: FIGURE.svg, FIGURE.csv with the numbers, and FIGURE.tex for pgfplots; with several
    /// papers, a folder each
    #[arg(long = "figures", value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Charts on the page react to the pointer and to keys; their library adds 700 KB to the page
    #[arg(long = "interactive", requires = "out")]
    interactive: bool,
}

impl Arguments {
    /// Reads the documents, renders them, and writes the files.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        let paths = documents(&self.folder)?;
        if let Some(out) = &self.out {
            refuse_input("--out", out, &paths)?;
        }
        let documents = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
        let mut files: Vec<(PathBuf, String)> = Vec::new();
        if let Some(folder) = &self.figures {
            files.extend(figure_files(&documents, folder)?);
            for (path, _) in &files {
                refuse_input("--figures", path, &paths)?;
            }
        }
        if let Some(out) = &self.out {
            let page = if self.interactive { interactive(&documents) } else { html_all(&documents) };
            files.push((out.clone(), page));
        }
        files.iter().try_for_each(|(path, _)| probe(path))?;
        files.iter().try_for_each(|(path, text)| write_whole(path, text.as_bytes()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the figures in all documents as files in a folder, which is created if missing. Several documents have a
/// folder each.
fn figure_files(documents: &[Document], folder: &Path) -> Result<Vec<(PathBuf, String)>, CommandFailure> {
    let mut files = Vec::new();
    for document in documents {
        let place = if documents.len() == 1 { folder.to_owned() } else { folder.join(folder_name(document)) };
        let failed = |error| CommandFailure::File { path: place.clone(), action: "create", error };
        fs::create_dir_all(&place).map_err(failed)?;
        for figure in figures(document) {
            let FigureFiles { name, svg, csv, tex } = figure;
            for (ending, text) in [("svg", svg), ("csv", csv), ("tex", tex)] {
                files.push((place.join(format!("{name}.{ending}")), text));
            }
        }
    }
    Ok(files)
}

/// Returns the path of the document itself. For a folder, returns the folder's own document, or otherwise the documents
/// in all subfolders, sorted by name.
fn documents(folder: &Path) -> Result<Vec<PathBuf>, CommandFailure> {
    if folder.is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let own = folder.join(DOCUMENT);
    if own.is_file() {
        return Ok(vec![own]);
    }
    let refused = |error| CommandFailure::Unreadable { path: folder.to_owned(), reason: io::Error::to_string(&error) };
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(refused)?;
    let mut found: Vec<PathBuf> = entries.iter().map(|entry| entry.path().join(DOCUMENT)).collect();
    found.retain(|path| path.is_file());
    found.sort();
    if found.is_empty() {
        let reason = format!(
            "there is no {DOCUMENT} in it, nor in any of its folders; reproduce and sweep leave one, but reproduce \
             --figure 8 a figure-8.json, which is given by its own path"
        );
        return Err(CommandFailure::Unreadable { path: folder.to_owned(), reason });
    }
    Ok(found)
}

/// Reads the document at `path`, which belongs to a study or to a comparison.
fn read(path: &Path) -> Result<Document, CommandFailure> {
    let failed = |reason| CommandFailure::Unreadable { path: path.to_owned(), reason };
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    match serde_json::from_str::<DocumentFields>(&text) {
        Ok(DocumentFields { speedups: Some(_), provenance }) => {
            let comparison: Comparison =
                serde_json::from_str(&text).map_err(|error| failed(format!("not a comparison's document: {error}")))?;
            Ok(comparison.report(provenance))
        }
        _ => Document::from_json(&text).map_err(|error| failed(error.to_string())),
    }
}

/// Fields that distinguish a comparison from a study, and common fields.
#[derive(serde::Deserialize)]
struct DocumentFields {
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
