//! Rust sources: files, doc comments, and the part of a file before its tests.

use crate::text::Tally;
use std::path::{Path, PathBuf};

/// A Rust source file.
pub(crate) struct Source {
    /// Path for messages.
    pub(crate) name: String,
    text: String,
}

impl Source {
    /// All Rust files at `path`: one file, or a folder's in order of their paths.
    pub(crate) fn read_all(path: &Path) -> Result<Vec<Source>, String> {
        let paths = if path.is_dir() { files(path, "rs")? } else { vec![path.to_owned()] };
        paths.iter().map(|path| Ok(Source { name: path.display().to_string(), text: read(path)? })).collect()
    }

    #[cfg(test)]
    pub(crate) fn new(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), text: text.to_owned() }
    }

    /// Tally of the doc comments: consecutive lines of `///` or `//!` are a block.
    pub(crate) fn comments(&self) -> Tally {
        let mut tally = Tally::default();
        let mut block: Option<(usize, String)> = None;
        for (number, line) in self.text.lines().chain([""]).enumerate() {
            match (doc_text(line), &mut block) {
                (Some(text), Some((_, lines))) => {
                    lines.push('\n');
                    lines.push_str(text);
                }
                (Some(text), None) => block = Some((number + 1, text.to_owned())),
                (None, _) => {
                    if let Some((first, text)) = block.take() {
                        tally.add_block(first, &text);
                    }
                }
            }
        }
        tally
    }

    /// The text before the file's module of tests, unless the file is a test itself.
    pub(crate) fn product(&self) -> Option<&str> {
        let is_test = self.name.contains("/tests/") || self.name.ends_with("/tests.rs") || !self.name.contains("/src/");
        (!is_test).then(|| self.text.split("#[cfg(test)]\nmod tests").next().unwrap_or(&self.text))
    }
}

/// Text of a line of a doc comment, without the slashes.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    (!text.starts_with('/')).then(|| text.strip_prefix(' ').unwrap_or(text))
}

/// Files of a folder and its sub-folders with an extension, in order of their paths.
pub(crate) fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.is_dir() {
            paths.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Text of a file, or an error with its path.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
