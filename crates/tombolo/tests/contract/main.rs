//! Contract with users: `contract.txt` at the root of the repository lists every spelling that users may rely on.
//!
//! - [`command_line`]: subcommands, options and their words.
//! - [`names`]: shipped names.
//! - [`files`]: keys in TOML files and their values.
//! - [`documents`]: paths in JSON documents, [`tables`]: columns of tables. Both come from small runs, and from
//!   [`rare`] parts.
//!
//! `TOMBOLO_BLESS=1 cargo test -p tombolo --test contract` writes the file.

mod command_line;
mod documents;
mod files;
mod names;
mod rare;
mod shape;
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// First lines of the file.
const HEAD: &str = "\
# Spellings that users rely on: the command line, names that ship, keys of files, paths of documents, columns of tables.
# Written by `./check --bless`. A change of this file is a change for users and needs a line in CHANGELOG.md.
# JSON: [] is an entry of an array, {} a key that is data. Tables: types are those of Parquet.
";

/// A heading and its lines.
pub(crate) type Section = (String, BTreeSet<String>);

#[test]
fn spellings_that_users_rely_on_are_those_of_the_contract() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../contract.txt");
    let now = text(&sections());
    if std::env::var_os("TOMBOLO_BLESS").is_some() {
        fs::write(&path, now).expect("the repository can be written");
        return;
    }
    let before = fs::read_to_string(&path).unwrap_or_default();
    let [removed, added] = [(&before, &now), (&now, &before)].map(|(of, other)| lines_not_in(of, other));
    assert!(
        before == now,
        "the contract with users differs:\n{}{}\
         A change of contract.txt is a change for users and needs a line in CHANGELOG.md; `./check --bless` writes the file.",
        marked('-', &removed),
        marked('+', &added)
    );
}

fn sections() -> Vec<Section> {
    let made = [names::sections(), files::sections(), documents::sections()].concat();
    std::iter::once(command_line::section()).chain(made).collect()
}

fn text(sections: &[Section]) -> String {
    sections.iter().fold(HEAD.to_owned(), |mut text, (heading, lines)| {
        text += &format!("\n== {heading}\n");
        lines.iter().for_each(|line| text += &format!("{line}\n"));
        text
    })
}

/// Returns the lines in `text` that are absent from `other`, each with its heading.
fn lines_not_in(text: &str, other: &str) -> Vec<String> {
    let other: BTreeSet<String> = under_headings(other).collect();
    under_headings(text).filter(|line| !other.contains(line)).collect()
}

fn under_headings(text: &str) -> impl Iterator<Item = String> {
    let mut heading = "";
    text.lines().filter(|line| !line.is_empty()).map(move |line| {
        heading = line.strip_prefix("== ").unwrap_or(heading);
        format!("{heading}: {line}")
    })
}

fn marked(mark: char, lines: &[String]) -> String {
    lines.iter().map(|line| format!("{mark} {line}\n")).collect()
}
