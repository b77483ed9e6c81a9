//! What can be wrong with a description, each with its place, its value and what is allowed.

use std::fmt;
use std::sync::Arc;

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a file, 1-based.
    Line {
        /// The file, or `preset NAME`.
        file: Arc<str>,
        /// Line number.
        line: usize,
    },
    /// A setting, such as `l2.bytes=6MB`.
    Setting(Arc<str>),
}

impl Place {
    /// Whether it is a setting.
    pub fn is_setting(&self) -> bool {
        matches!(self, Place::Setting(_))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { file, line } => write!(f, "{file}:{line}"),
            Place::Setting(text) => write!(f, "setting {text}"),
        }
    }
}

/// A description of a machine or a design that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No preset of this name, and no path of a file either.
    #[error(
        "no {kind} is called {name:?}{}; there are {}, and paths of files that end in .toml",
        suggestion(near),
        known.join(", ")
    )]
    UnknownName {
        /// `machine` or `design`.
        kind: &'static str,
        /// As given.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
        /// All presets.
        known: Vec<String>,
    },
    /// A file that cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A file that is not TOML.
    #[error("{place}: {reason}")]
    Syntax {
        /// Where reading stopped.
        place: Place,
        /// What was expected.
        reason: String,
    },
    /// A chain of `base` that is too long to be anything but a circle.
    #[error("{place}: base = {name:?}: more than {limit} files build on one another; is it a circle?")]
    BaseTooDeep {
        /// The last link followed.
        place: Place,
        /// What it names.
        name: String,
        /// Longest chain.
        limit: usize,
    },
    /// A setting that is not `path=value`.
    #[error("setting {text:?}: expected path=value, such as l2.bytes=6MB")]
    Setting {
        /// As given.
        text: String,
    },
    /// A key that does not exist.
    #[error("{place}: no key {key}{}; {within} has {}", suggestion(near), keys.join(", "))]
    UnknownKey {
        /// Where it stands.
        place: Place,
        /// Dotted path.
        key: String,
        /// Names that look like it.
        near: Vec<String>,
        /// Whose keys are listed, such as `section l2 of a machine`.
        within: String,
        /// All keys there.
        keys: Vec<String>,
    },
    /// A setting of a section that the description leaves out.
    #[error(
        "{place}: {key}: this {kind} has no section {section}; a file adds one, and the sections that belong to it: {}",
        needs.join(", ")
    )]
    AbsentSection {
        /// The setting.
        place: Place,
        /// Dotted path.
        key: String,
        /// `machine` or `design`.
        kind: &'static str,
        /// The section.
        section: &'static str,
        /// Sections without which it would mean nothing.
        needs: &'static [&'static str],
    },
    /// A key that must be given is not.
    #[error("{place}: key {key} is missing; it takes {expected}")]
    Missing {
        /// Where it would stand.
        place: Place,
        /// Dotted path.
        key: String,
        /// What may be written.
        expected: String,
    },
    /// A value that its key cannot take.
    #[error("{place}: {key} = {value}: expected {expected}")]
    Value {
        /// Where it stands.
        place: Place,
        /// Dotted path.
        key: String,
        /// As written.
        value: String,
        /// What may be written.
        expected: String,
    },
    /// A value that its key could take, but not beside the others.
    #[error("{place}: {key} = {value}: {reason}")]
    Refused {
        /// Where it stands.
        place: Place,
        /// Dotted path.
        key: String,
        /// As written.
        value: String,
        /// Why, and what is allowed.
        reason: String,
    },
    /// A scale that this machine cannot be built at.
    #[error("scale {scale} of {machine}: {reason}")]
    Scale {
        /// As given.
        scale: String,
        /// Name of the machine.
        machine: String,
        /// Why, and what is allowed.
        reason: String,
    },
}

fn suggestion(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!(" (did you mean {}?)", names.join(" or ")),
    }
}

/// The names of `all` that look most like `name`: at most three, none further than a third of its length.
pub fn near<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let allowed = |other: &str| (name.len().max(other.len()) / 3).max(1);
    let measured = all.into_iter().map(|other| (edits(name, other), other));
    let close: Vec<(usize, &str)> = measured.filter(|(distance, other)| *distance <= allowed(other)).collect();
    let least = close.iter().map(|(distance, _)| *distance).min();
    let nearest = close.into_iter().filter(|(distance, _)| Some(*distance) == least);
    nearest.take(3).map(|(_, other)| other.to_owned()).collect()
}

/// Insertions, deletions and replacements of a byte between two names. Long names share nothing worth naming.
fn edits(a: &str, b: &str) -> usize {
    const LONGEST: usize = 64;
    if a.len().max(b.len()) > LONGEST {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_few_and_close() {
        assert_eq!(near("byte", ["bytes", "ways", "banks"]), ["bytes"]);
        assert_eq!(near("hmg-4x5", ["hmg-4x4", "hmg-1x4", "v100"]), ["hmg-4x4"]);
        assert_eq!(near("l3", ["l1", "l2", "sm"]), ["l1", "l2"]);
        assert!(near("quantum", ["bytes", "ways"]).is_empty());
        assert!(near(&"x".repeat(100_000), ["bytes"]).is_empty());
    }
}
