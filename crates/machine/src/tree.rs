//! A file as a tree, with the place of every value.

use crate::error::{ConfigError, ValueLocation};
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::de::{DeArray, DeTable, DeValue};

/// A single value, as text; its key determines the meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigValue {
    /// The text as written, without quotes; a list appears as words joined by commas.
    pub text: String,
    /// The place of the value.
    pub place: ValueLocation,
    /// The value's source: the text after `# Source:` on its line; empty if absent.
    pub source: String,
    /// The value it replaced, from a base file or before a setting.
    pub below: Option<Box<ConfigValue>>,
}

impl ConfigValue {
    fn replace(&mut self, above: ConfigValue) {
        let below = std::mem::replace(self, above);
        self.below = Some(Box::new(below));
    }
}

/// A value or a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigNode {
    /// A value.
    Leaf(ConfigValue),
    /// A section.
    Table(ConfigTable),
}

impl ConfigNode {
    /// The place of the node.
    pub fn place(&self) -> &ValueLocation {
        match self {
            ConfigNode::Leaf(leaf) => &leaf.place,
            ConfigNode::Table(table) => &table.place,
        }
    }

    /// The value's text, or a note that the node is a section.
    pub fn text(&self) -> &str {
        match self {
            ConfigNode::Leaf(leaf) => &leaf.text,
            ConfigNode::Table(_) => "a section",
        }
    }
}

/// A section, or a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigTable {
    /// The beginning of the table in its file.
    pub place: ValueLocation,
    /// Nodes by key.
    pub entries: BTreeMap<String, ConfigNode>,
}

impl ConfigTable {
    /// Parses the text of the file called `file`.
    pub fn parse(file: &str, text: &str) -> Result<ConfigTable, ConfigError> {
        let source = SourceText::new(file, text);
        match DeTable::parse(text) {
            Ok(table) => source.table(table.get_ref(), 0),
            Err(error) => Err(ConfigError::Syntax {
                place: source.place(error.span().map_or(0, |span| span.start)),
                reason: error.message().trim().replace('\n', "; "),
            }),
        }
    }

    /// Overlays `upper` on this table: values from `upper` replace, sections merge.
    pub(crate) fn overlay(&mut self, upper: ConfigTable) {
        self.place = upper.place;
        for (key, node) in upper.entries {
            match (self.entries.get_mut(&key), node) {
                (Some(ConfigNode::Table(below)), ConfigNode::Table(above)) => below.overlay(above),
                (Some(ConfigNode::Leaf(below)), ConfigNode::Leaf(above)) => below.replace(above),
                (_, node) => {
                    self.entries.insert(key, node);
                }
            }
        }
    }

    /// Puts `leaf` at the dotted `path`, replacing any present value.
    pub(crate) fn put(&mut self, path: &str, leaf: ConfigValue) {
        match path.split_once('.') {
            None => match self.entries.get_mut(path) {
                Some(ConfigNode::Leaf(below)) => below.replace(leaf),
                Some(ConfigNode::Table(_)) | None => _ = self.entries.insert(path.to_owned(), ConfigNode::Leaf(leaf)),
            },
            Some((section, rest)) => {
                let place = self.place.clone();
                let empty = || ConfigNode::Table(ConfigTable { place, entries: BTreeMap::new() });
                match self.entries.entry(section.to_owned()).or_insert_with(empty) {
                    ConfigNode::Table(table) => table.put(rest, leaf),
                    // A file that gives a value for a section is refused when it is read.
                    ConfigNode::Leaf(_) => {}
                }
            }
        }
    }

    /// Undoes the replacement of the value at the dotted `path`; removes a value that replaced nothing.
    pub(crate) fn restore(&mut self, path: &str) {
        match path.split_once('.') {
            None => {
                if let Some(ConfigNode::Leaf(leaf)) = self.entries.remove(path)
                    && let Some(below) = leaf.below
                {
                    self.entries.insert(path.to_owned(), ConfigNode::Leaf(*below));
                }
            }
            Some((section, rest)) => {
                if let Some(ConfigNode::Table(table)) = self.entries.get_mut(section) {
                    table.restore(rest);
                }
            }
        }
    }

    /// Every value by dotted path, in path order.
    pub fn leaves(&self) -> Vec<(String, &ConfigValue)> {
        let (mut own, mut below) = (Vec::new(), Vec::new());
        for (key, node) in &self.entries {
            match node {
                ConfigNode::Leaf(leaf) => own.push((key.clone(), leaf)),
                ConfigNode::Table(table) => {
                    below.extend(table.leaves().into_iter().map(|(path, leaf)| (format!("{key}.{path}"), leaf)));
                }
            }
        }
        own.append(&mut below);
        own
    }

    /// Finds the node at the dotted `path`.
    pub fn find(&self, path: &str) -> Option<&ConfigNode> {
        match path.split_once('.') {
            None => self.entries.get(path),
            Some((section, rest)) => match self.entries.get(section)? {
                ConfigNode::Table(table) => table.find(rest),
                ConfigNode::Leaf(_) => None,
            },
        }
    }
}

/// The text of a setting's value: plain, or in file syntax, for example `"64KB"` or `["a", "b"]`. Quotes or
/// brackets that do not enclose a single value remain part of the text, which no key accepts.
pub(crate) fn setting(value: &str) -> String {
    let value = value.trim();
    let as_in_a_file = || {
        let tree =
            ConfigTable::parse("setting", &format!("value = {value}")).ok().filter(|tree| tree.entries.len() == 1)?;
        Some(tree.find("value")?.text().trim().to_owned())
    };
    let is_plain = !value.starts_with(['"', '\'', '[']);
    if is_plain { None } else { as_in_a_file() }.unwrap_or_else(|| value.to_owned())
}

/// Converts offsets in the text into places while the file is parsed.
struct SourceText<'a> {
    file: Arc<str>,
    text: &'a str,
    /// Offsets of line ends.
    ends: Vec<usize>,
}

impl<'a> SourceText<'a> {
    fn new(file: &str, text: &'a str) -> SourceText<'a> {
        SourceText { file: file.into(), text, ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    fn place(&self, offset: usize) -> ValueLocation {
        let line = self.ends.partition_point(|end| *end < offset) + 1;
        ValueLocation::Line { file: self.file.clone(), line }
    }

    fn table(&self, table: &DeTable<'_>, offset: usize) -> Result<ConfigTable, ConfigError> {
        let mut entries = BTreeMap::new();
        for (key, value) in table {
            let name = key.get_ref().to_string();
            let at = value.span().start;
            let node = match value.get_ref() {
                // A section's header has no span of its own; its key has a span.
                DeValue::Table(inner) => ConfigNode::Table(self.table(inner, key.span().start)?),
                DeValue::Array(list) => ConfigNode::Leaf(self.leaf(self.list(&name, list)?, value.span())),
                scalar => ConfigNode::Leaf(self.leaf(self.scalar(&name, scalar, at)?, value.span())),
            };
            entries.insert(name, node);
        }
        Ok(ConfigTable { place: self.place(offset), entries })
    }

    /// Builds a value with its place and its source.
    fn leaf(&self, text: String, span: std::ops::Range<usize>) -> ConfigValue {
        let line = self.text.get(span.end..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let source = line.split_once("# Source:").map(|(_, source)| source.trim().to_owned()).unwrap_or_default();
        ConfigValue { text, place: self.place(span.start), source, below: None }
    }

    /// The text of a list: its words with commas between them, the words of a list inside it with colons. A list inside
    /// a list has several words, so that its text is no word's.
    fn list(&self, key: &str, list: &DeArray<'_>) -> Result<String, ConfigError> {
        let words =
            |list: &DeArray<'_>, between: &str, word: &dyn Fn(&DeValue<'_>, usize) -> Result<String, ConfigError>| {
                let words = list.iter().map(|item| word(item.get_ref(), item.span().start));
                Ok(words.collect::<Result<Vec<String>, ConfigError>>()?.join(between))
            };
        let scalar = |value: &DeValue<'_>, offset: usize| self.scalar(key, value, offset);
        words(list, ",", &|value, offset| match value {
            DeValue::Array(inner) if inner.len() > 1 => words(inner, ":", &scalar),
            value => scalar(value, offset),
        })
    }

    fn scalar(&self, key: &str, value: &DeValue<'_>, offset: usize) -> Result<String, ConfigError> {
        match value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
            DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
                Ok(value) => Ok(value.to_string()),
                Err(_) => Ok(number.to_string()),
            },
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => Err(ConfigError::Value {
                place: self.place(offset),
                key: key.to_owned(),
                value: format!("a {}", value.type_str()),
                expected: "text, a number, true or false, or a list of these".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"x\"\n[l2]\nbytes = 1_024\nways = 0x10\n[dram]\nlist = [\"a\", 2]\nrate = 1.50\n";

    #[test]
    fn every_value_knows_its_line_and_text() {
        let tree = ConfigTable::parse("m.toml", TEXT).unwrap();
        let leaf =
            |path: &str| (tree.find(path).unwrap().text().to_owned(), tree.find(path).unwrap().place().to_string());
        assert_eq!(leaf("name"), ("x".to_owned(), "m.toml:1".to_owned()));
        assert_eq!(leaf("l2.bytes"), ("1024".to_owned(), "m.toml:3".to_owned()));
        assert_eq!(leaf("l2.ways"), ("16".to_owned(), "m.toml:4".to_owned()));
        assert_eq!(leaf("dram.list"), ("a,2".to_owned(), "m.toml:6".to_owned()));
        assert_eq!(leaf("dram.rate"), ("1.50".to_owned(), "m.toml:7".to_owned()));
        assert_eq!(leaf("l2"), ("a section".to_owned(), "m.toml:2".to_owned()));
    }

    #[test]
    fn a_value_knows_the_source_on_its_line() {
        let text = "a = 1 # Source: a book, page 2\nb = [\"x\", \"y\"]  # Source: assumed\nc = 3 # why\n[s]\nd = 4\n";
        let tree = ConfigTable::parse("m.toml", text).unwrap();
        let sources: Vec<(String, &str)> =
            tree.leaves().into_iter().map(|(path, leaf)| (path, leaf.source.as_str())).collect();
        let expected = [("a", "a book, page 2"), ("b", "assumed"), ("c", ""), ("s.d", "")];
        assert_eq!(sources, expected.map(|(path, source)| (path.to_owned(), source)));
    }

    #[test]
    fn an_overlay_replaces_values_and_merges_sections() {
        let mut tree = ConfigTable::parse("base.toml", TEXT).unwrap();
        tree.overlay(ConfigTable::parse("top.toml", "\n[l2]\nways = 4").unwrap());
        assert_eq!(tree.find("l2.bytes").unwrap().place().to_string(), "base.toml:3");
        assert_eq!(tree.find("l2.ways").unwrap().place().to_string(), "top.toml:3");
    }

    #[test]
    fn broken_toml_is_an_error_with_its_line() {
        let error = ConfigTable::parse("m.toml", "a = 1\nb = = 2\n").unwrap_err().to_string();
        assert!(error.starts_with("m.toml:2: "), "{error}");
        let error = ConfigTable::parse("m.toml", "a = [{ b = 1 }]\n").unwrap_err().to_string();
        assert_eq!(error, "m.toml:1: a = a table: expected text, a number, true or false, or a list of these");
    }
}
