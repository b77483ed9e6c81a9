//! A file as a tree that remembers where every value stands.

use crate::error::Place;
use std::collections::BTreeMap;

/// One value, as text; its key decides what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// As written, without quotes; a list as its words joined by commas.
    pub(crate) text: String,
    /// Where it stands.
    pub(crate) place: Place,
}

/// A value or a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// A value.
    Leaf(Leaf),
    /// A section.
    Table(Table),
}

/// A section, or a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Where it begins.
    pub(crate) place: Place,
    /// By key.
    pub(crate) entries: BTreeMap<String, Node>,
}
