//! What can be wrong with a description, each with its place, its value and what is allowed.

use crate::tree::Node;
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
    /// A setting on the command line, such as `l2.bytes=6MB`.
    Setting(Arc<str>),
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
    #[error("{place}: {key} = {value:?}: expected {expected}")]
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
}

impl ConfigError {
    pub(crate) fn not_a_value(node: &Node, key: String, expected: &str) -> ConfigError {
        let (place, value) = match node {
            Node::Leaf(leaf) => (leaf.place.clone(), leaf.text.clone()),
            Node::Table(table) => (table.place.clone(), "a section".to_owned()),
        };
        ConfigError::Value { place, key, value, expected: expected.to_owned() }
    }
}
