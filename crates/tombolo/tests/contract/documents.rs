//! Documents and tables written by commands, from short runs. Every optional part appears at least once.

use crate::Section;
use crate::rare;
use crate::shape::Shape;
use crate::tables::{self, Tables};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Commands, one per line.
const COMMANDS: &str = include_str!("inputs/commands.txt");
/// Folder with the inputs.
const INPUTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract/inputs");

/// Subcommands with their own subcommands or kinds.
const GROUPS: [&str; 3] = ["list", "show", "trace"];

/// Options with a document of their own on standard output.
const SELECTING: [&str; 1] = ["--model"];

/// Shapes of all documents, by heading, and columns of all tables.
#[derive(Default)]
struct Collection {
    documents: BTreeMap<String, Shape>,
    tables: Tables,
}

impl Collection {
    fn add(&mut self, heading: &str, document: &Value) {
        self.documents.entry(heading.to_owned()).or_default().add(document);
    }
}

/// Runs all commands and returns a section per document, then a section per table.
pub(crate) fn sections() -> Vec<Section> {
    let lines: Vec<&str> = COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let (collection, next) = (Mutex::new(Collection::default()), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(line, &collection);
                }
            });
        }
    });
    let mut collection = collection.into_inner().expect("no command failed");
    rare::documents().iter().for_each(|(heading, one)| collection.add(heading, one));
    let Collection { documents, tables } = collection;
    let documents = documents.iter().map(|(heading, shape)| (format!("JSON of {heading}"), shape.lines()));
    documents.chain(tables.sections()).collect()
}

/// Runs a line from [`COMMANDS`].
fn run(line: &str, collection: &Mutex<Collection>) {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let (status, command) = line.split_once(' ').expect("a status before each command");
    let words: Vec<&str> = command.split(' ').collect();
    let arguments = words.iter().map(|word| word.replace("{in}", INPUTS).replace("{out}", out));
    let mut program = Command::new(env!("CARGO_BIN_EXE_tombolo"));
    let output = program.args(arguments).stdin(Stdio::null()).output().expect("the program starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), status.parse().ok(), "tombolo {command}: {told}");
    let read = |text: &[u8]| serde_json::from_slice(text).unwrap_or_else(|error| panic!("tombolo {command}: {error}"));
    let mut documents: Vec<(String, Value)> = vec![(heading(&words), read(&output.stdout))];
    for (flag, file) in words.iter().zip(&words[1..]) {
        if let Some(file) = file.strip_prefix("{out}/") {
            let text = fs::read(folder.path().join(file)).expect("it was written");
            documents.push((format!("{} {flag}", words[0]), read(&text)));
        }
    }
    let mut collection = collection.lock().expect("no other command failed");
    documents.iter().for_each(|(heading, one)| collection.add(heading, one));
    if Path::new(out).join("results.csv").exists() {
        collection.tables.extend(tables::read(Path::new(out)));
    }
}

/// Returns the subcommand, together with its kind if listed or shown, or with the option that selects its document.
fn heading(words: &[&str]) -> String {
    let subcommand = words[..if GROUPS.contains(&words[0]) { 2 } else { 1 }].join(" ");
    let option = words.iter().find(|word| SELECTING.contains(word));
    option.map_or(subcommand.clone(), |option| format!("{subcommand} {option}"))
}
