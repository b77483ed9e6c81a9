//! Sections that are a choice between options, and their spellings.
//!
//! `links = "turning"` is short for a table `[links]` with `kind = "turning"`. A key belongs to the options that
//! read it: if a derived file or a setting chooses another option, keys of the base file's option are removed.

use crate::description::DescriptionKind;
use crate::tree::{ConfigNode, ConfigTable, ConfigValue};

/// The key for a choice's word.
pub const KIND: &str = "kind";

/// A section that is a choice between options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisInfo {
    /// The section's name.
    pub name: &'static str,
    /// The options to choose from.
    pub options: Vec<OptionInfo>,
}

/// An axis option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// The word used in a file.
    pub word: &'static str,
    /// A one-line description for lists.
    pub about: &'static str,
    /// The keys that it reads.
    pub keys: Vec<&'static str>,
}

impl AxisInfo {
    /// The axis called `name` in `T`.
    pub(crate) fn named<T: DescriptionKind>(name: &str) -> Option<AxisInfo> {
        T::axes().into_iter().find(|axis| axis.name == name)
    }

    /// True if the option called `word` reads `key`.
    pub(crate) fn reads(&self, word: &str, key: &str) -> bool {
        let option = self.options.iter().find(|option| option.word == word);
        key == KIND || option.is_some_and(|option| option.keys.contains(&key))
    }
}

/// The full spelling for a path from a file or setting.
pub(crate) struct FullSpelling {
    /// The full path.
    pub(crate) path: String,
    /// A notice with the current spelling, if the path was written in an earlier spelling.
    pub(crate) note: Option<String>,
}

/// Converts `path` to the full spelling.
pub(crate) fn in_full<T: DescriptionKind>(path: &str) -> FullSpelling {
    let alias = T::aliases().iter().find(|(earlier, _)| *earlier == path);
    let today = alias.map_or(path, |(_, today)| today);
    let note = alias.map(|(earlier, today)| format!("key {earlier} of a {} is now {today}", T::KIND));
    let path = if AxisInfo::named::<T>(today).is_some() { format!("{today}.{KIND}") } else { today.to_owned() };
    FullSpelling { path, note }
}

/// The path as shown in errors: an axis appears under its own name.
pub fn shown(path: &str) -> &str {
    path.strip_suffix(KIND).and_then(|axis| axis.strip_suffix('.')).unwrap_or(path)
}

/// Expands short and earlier spellings in a file; notices about earlier spellings are appended to `notes`.
pub(crate) fn write_out<T: DescriptionKind>(tree: &mut ConfigTable, notes: &mut Vec<String>) {
    let leaves: Vec<(String, ConfigValue)> = tree
        .entries
        .iter()
        .filter_map(|(key, node)| match node {
            ConfigNode::Leaf(leaf) => Some((key.clone(), leaf.clone())),
            ConfigNode::Table(_) => None,
        })
        .collect();
    let spelled: Vec<(String, String, ConfigValue)> = leaves
        .into_iter()
        .filter_map(|(key, leaf)| {
            let FullSpelling { path, note } = in_full::<T>(&key);
            notes.extend(note.map(|note| format!("{}: {note}", leaf.place)));
            (path != key).then_some((key, path, leaf))
        })
        .collect();
    spelled.iter().for_each(|(key, ..)| _ = tree.entries.remove(key));
    spelled.into_iter().for_each(|(_, path, leaf)| tree.put(&path, leaf));
    for (earlier, today) in T::aliases() {
        let Some((section, key)) = earlier.split_once('.') else { continue };
        let Some(ConfigNode::Table(table)) = tree.entries.get_mut(section) else { continue };
        if let Some(ConfigNode::Leaf(leaf)) = table.entries.remove(key) {
            notes.push(format!("{}: key {earlier} of a {} is now {today}", leaf.place, T::KIND));
            tree.put(today, leaf);
        }
    }
}

/// Removes keys from `below` if `above` replaces their option with a different option.
pub(crate) fn drop_replaced<T: DescriptionKind>(below: &mut ConfigTable, above: &ConfigTable) {
    for axis in T::axes() {
        let kind = |tree: &ConfigTable| tree.find(&format!("{}.{KIND}", axis.name)).map(|node| node.text().to_owned());
        let (Some(now), true) = (kind(above), kind(below).is_some()) else { continue };
        if let Some(ConfigNode::Table(table)) = below.entries.get_mut(axis.name) {
            table.entries.retain(|key, _| axis.reads(&now, key));
        }
    }
}

/// A copy of `tree` without file keys whose option a setting replaced.
pub(crate) fn without_replaced<T: DescriptionKind>(tree: &ConfigTable) -> ConfigTable {
    let mut tree = tree.clone();
    for axis in T::axes() {
        let Some(ConfigNode::Table(table)) = tree.entries.get_mut(axis.name) else { continue };
        let Some(ConfigNode::Leaf(kind)) = table.entries.get(KIND).cloned() else { continue };
        if kind.place.is_setting() {
            table.entries.retain(|key, node| axis.reads(&kind.text, key) || node.place().is_setting());
        }
    }
    tree
}
