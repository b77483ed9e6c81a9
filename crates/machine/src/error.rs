//! Errors in descriptions, each reported with the place, the value and the permitted values.

use std::fmt;
use std::sync::Arc;

/// The place at which a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueLocation {
    /// A line in a file, 1-based.
    Line {
        /// The file, or `preset NAME`.
        file: Arc<str>,
        /// Line number.
        line: usize,
    },
    /// A setting, for example `l2.bytes=6MB`.
    Setting(Arc<str>),
}

impl ValueLocation {
    /// True if the place is a setting.
    pub fn is_setting(&self) -> bool {
        matches!(self, ValueLocation::Setting(_))
    }
}

impl fmt::Display for ValueLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueLocation::Line { file, line } => write!(f, "{file}:{line}"),
            ValueLocation::Setting(text) => write!(f, "setting {text}"),
        }
    }
}

/// An error in a machine's or a design's description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The name is neither a preset nor a file path.
    #[error(
        "no {kind} is called {name:?}{}; there are {}, and paths of files that end in .toml",
        suggestion(near),
        known.join(", ")
    )]
    UnknownName {
        /// The kind, `machine` or `design`.
        kind: &'static str,
        /// The name as given.
        name: String,
        /// Known names similar to the given name.
        near: Vec<String>,
        /// All presets.
        known: Vec<String>,
    },
    /// A registered description has the name of a preset.
    #[error("a {kind} called {name:?} is there already: a registered one has a name of its own")]
    NameTaken {
        /// The kind, `machine` or `design`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A file cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A file is not TOML.
    #[error("{place}: {reason}")]
    Syntax {
        /// The place at which parsing stopped.
        place: ValueLocation,
        /// The expected text.
        reason: String,
    },
    /// A chain of `base` files is too long, and probably circular.
    #[error("{place}: base = {name:?}: more than {limit} files build on one another; is it a circle?")]
    BaseTooDeep {
        /// The last link followed.
        place: ValueLocation,
        /// The base it names.
        name: String,
        /// Maximum chain length.
        limit: usize,
    },
    /// A setting is not in the form `path=value`.
    #[error("setting {text:?}: expected path=value, such as l2.bytes=6MB")]
    Setting {
        /// The setting as given.
        text: String,
    },
    /// A key does not exist.
    #[error("{place}: no key {key}{}; {within} has {}", suggestion(near), keys.join(", "))]
    UnknownKey {
        /// The key's place.
        place: ValueLocation,
        /// Dotted path.
        key: String,
        /// Known keys similar to the given key.
        near: Vec<String>,
        /// The owner of the listed keys, for example `section l2 of a machine`.
        within: String,
        /// All keys in this place.
        keys: Vec<String>,
    },
    /// A setting belongs to a section that the description leaves out.
    #[error(
        "{place}: {key}: this {kind} has no section {section}; a file adds one, and the sections that belong to it: {}",
        needs.join(", ")
    )]
    AbsentSection {
        /// The setting.
        place: ValueLocation,
        /// Dotted path.
        key: String,
        /// `machine` or `design`.
        kind: &'static str,
        /// The section.
        section: &'static str,
        /// Sections required along with this section.
        needs: &'static [&'static str],
    },
    /// A mandatory key is missing from the file.
    #[error("{place}: key {key} is missing; it takes {expected}")]
    Missing {
        /// The place at which the key was expected.
        place: ValueLocation,
        /// Dotted path.
        key: String,
        /// The permitted text.
        expected: String,
    },
    /// A value does not match the key's type.
    #[error("{place}: {key} = {value}: expected {expected}")]
    Value {
        /// The value's place.
        place: ValueLocation,
        /// Dotted path.
        key: String,
        /// The value as written.
        value: String,
        /// The permitted text.
        expected: String,
    },
    /// A value matches the key's type, but conflicts with other values.
    #[error("{place}: {key} = {value}: {reason}")]
    Refused {
        /// The value's place.
        place: ValueLocation,
        /// Dotted path.
        key: String,
        /// The value as written.
        value: String,
        /// The reason, and the permitted values.
        reason: String,
    },
    /// The machine cannot be built at this scale.
    #[error("scale {scale} of {machine}: {reason}")]
    Scale {
        /// The scale, as given.
        scale: String,
        /// The machine's name.
        machine: String,
        /// The reason, and the permitted scales.
        reason: String,
    },
}

fn suggestion(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!(" (did you mean {}?)", names.join(" or ")),
    }
}

/// The names in `all` most similar to `name`: at most three, each within a third of its length.
pub fn near<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let allowed = |other: &str| (name.len().max(other.len()) / 3).max(1);
    let measured = all.into_iter().map(|other| (edits(name, other), other));
    let close: Vec<(usize, &str)> = measured.filter(|(distance, other)| *distance <= allowed(other)).collect();
    let least = close.iter().map(|(distance, _)| *distance).min();
    let nearest = close.into_iter().filter(|(distance, _)| Some(*distance) == least);
    nearest.take(3).map(|(_, other)| other.to_owned()).collect()
}

/// The number of byte insertions, deletions and replacements between two names. Names longer than 64 bytes count as
/// entirely different.
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
