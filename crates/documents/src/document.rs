//! A document, and the edits that bring it up to date.

use crate::markdown::{Passage, PassageKind, ShownOutput, passages, text_lines};
use crate::marker::RunMode;
use crate::shell::Shell;
use crate::shown;
use crate::table::{self, KeptLookup};
use crate::{Fault, Settings};
use std::ops::Range;
use std::path::Path;

/// A Markdown file as read.
pub(crate) struct Document {
    /// Path from the repository's root.
    pub(crate) name: String,
    lines: Vec<String>,
}

/// Lines that replace existing lines.
struct Edit {
    lines: Range<usize>,
    text: Vec<String>,
    /// Reason for the edit: the error in the current text.
    fault: String,
}

/// Result of checking a document.
#[derive(Default)]
struct Findings {
    edits: Vec<Edit>,
    faults: Vec<Fault>,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub(crate) fn read(root: &Path, name: &str) -> Result<Document, String> {
        let text = std::fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))?;
        Ok(Document { name: name.to_owned(), lines: text.lines().map(str::to_owned).collect() })
    }

    fn fault(&self, line: usize, text: &str) -> Fault {
        Fault { place: format!("{}:{}", self.name, line + 1), text: text.to_owned() }
    }

    /// The document's live passages.
    ///
    /// # Errors
    ///
    /// The first malformed marker, or output without a marker.
    pub(crate) fn passages(&self) -> Result<Vec<Passage>, Fault> {
        passages(&self.lines).map_err(|(line, text)| self.fault(line, &text))
    }

    /// Compares the document with the program's output and with kept results, or rewrites it.
    pub(crate) fn check(mut self, shell: &Shell, settings: &Settings) -> Vec<Fault> {
        let mut findings = Findings::default();
        match self.passages() {
            Err(fault) => return vec![fault],
            Ok(passages) => {
                self.tables(&passages, settings, &mut findings);
                self.numbers(settings, &mut findings);
                self.runs(&passages, shell, settings, &mut findings);
            }
        }
        let mut faults = findings.faults;
        if settings.blesses {
            faults.extend(self.rewrite(findings.edits, settings).err());
        } else {
            faults.extend(findings.edits.iter().map(|edit| self.fault(edit.lines.start, &edit.fault)));
        }
        faults
    }

    /// Reports results that were never kept; a fault if no document contains commands to make them.
    fn lack(&self, line: usize, name: &str, settings: &Settings, findings: &mut Findings) {
        if settings.keepable.iter().any(|known| known == name) {
            println!("{}", self.fault(line, &lacks(name)));
        } else {
            let known = settings.keepable.join("`, `");
            let fault = format!("nothing makes kept results `{name}`: expected one of `{known}`");
            findings.faults.push(self.fault(line, &fault));
        }
    }

    fn tables(&self, passages: &[Passage], settings: &Settings, findings: &mut Findings) {
        for Passage { line, kind } in passages {
            let PassageKind::Table { marker, body } = kind else { continue };
            match table::rows(marker, &settings.results) {
                Err(fault) => findings.faults.push(self.fault(*line, &fault)),
                Ok(KeptLookup::Lacks(name)) => self.lack(*line, &name, settings, findings),
                Ok(KeptLookup::Whole(rows)) if rows == self.lines[body.clone()] => {}
                Ok(KeptLookup::Whole(text)) => {
                    let old = &self.lines[body.clone()];
                    let row = text.iter().find(|row| !old.contains(row));
                    let fault = format!(
                        "the table is not that of kept results: {}",
                        row.map_or("order of rows", String::as_str)
                    );
                    findings.edits.push(Edit { lines: body.clone(), text, fault });
                }
            }
        }
    }

    fn numbers(&self, settings: &Settings, findings: &mut Findings) {
        for line in text_lines(&self.lines) {
            match table::numbers(&self.lines[line], &settings.results) {
                Err(fault) => findings.faults.push(self.fault(line, &fault)),
                Ok(KeptLookup::Lacks(name)) => self.lack(line, &name, settings, findings),
                Ok(KeptLookup::Whole(text)) if text == self.lines[line] => {}
                Ok(KeptLookup::Whole(text)) => {
                    let fault = format!("kept results say: {text}");
                    findings.edits.push(Edit { lines: line..line + 1, text: vec![text], fault });
                }
            }
        }
    }

    fn runs(&self, passages: &[Passage], shell: &Shell, settings: &Settings, findings: &mut Findings) {
        let is_asked = settings.names(&self.name);
        let is_run =
            |mode: &RunMode| is_asked && (settings.is_deep || (!mode.is_deep && settings.is_quick(&self.name)));
        let folder = match shell.empty(&self.name.replace('/', "-")) {
            Ok(folder) => folder,
            Err(fault) => return findings.faults.push(self.fault(0, &fault)),
        };
        for Passage { line, kind } in passages {
            match kind {
                PassageKind::File { name, text } => {
                    if let Err(error) = std::fs::write(folder.join(name), text) {
                        findings.faults.push(self.fault(*line, &format!("{name}: {error}")));
                    }
                }
                PassageKind::Run { mode, commands, output } if is_run(mode) => {
                    println!("{}:{}: {}", self.name, line + 1, commands.trim_end());
                    match shell.run(&folder, commands, mode.fails) {
                        Err(fault) => findings.faults.push(self.fault(*line, &fault)),
                        Ok(printed) => self.compare(output.as_ref(), &printed, settings, findings),
                    }
                }
                PassageKind::Run { .. } | PassageKind::Keep { .. } | PassageKind::Table { .. } => {}
            }
        }
    }

    fn compare(&self, output: Option<&ShownOutput>, printed: &str, settings: &Settings, findings: &mut Findings) {
        let Some(ShownOutput { lines, is_shortened }) = output else { return };
        let (shown, printed) = (&self.lines[lines.clone()], shown::lines(printed));
        let Err(fault) = shown::check(shown, &printed, *is_shortened) else { return };
        match shown::bless(shown, &printed, *is_shortened) {
            Err(fault) if settings.blesses => findings.faults.push(self.fault(lines.start, &fault)),
            made => {
                let text = made.unwrap_or_default();
                findings.edits.push(Edit { lines: lines.clone(), text, fault });
            }
        }
    }

    fn rewrite(&mut self, mut edits: Vec<Edit>, settings: &Settings) -> Result<(), Fault> {
        if edits.is_empty() {
            return Ok(());
        }
        // From the end, so that earlier lines keep their numbers.
        edits.sort_by_key(|edit| std::cmp::Reverse(edit.lines.start));
        for edit in edits {
            println!("{}:{}: rewritten", self.name, edit.lines.start + 1);
            self.lines.splice(edit.lines, edit.text);
        }
        let text = self.lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        std::fs::write(settings.root.join(&self.name), text).map_err(|error| self.fault(0, &error.to_string()))
    }
}

/// Remark on results that were never kept.
pub(crate) fn lacks(name: &str) -> String {
    format!("no results of `{name}` are kept yet: `--deep --bless {name}` makes them")
}
