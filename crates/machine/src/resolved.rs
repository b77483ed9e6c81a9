//! Every value in a description, in key order: the written value, or the default, each with its source.

use crate::description::{Description, DescriptionKind};
use crate::error::{ConfigError, ValueLocation};
use crate::section::Key;
use crate::spelling::{self, AxisInfo, KIND};
use crate::tree::{ConfigNode, ConfigTable};

/// An effective value.
#[derive(Clone, Debug)]
pub struct ResolvedValue {
    /// The name of its section; empty outside any section.
    pub section: &'static str,
    /// The key, with its documentation.
    pub key: Key,
    /// The value as written; a default appears in the form it would have in a file.
    pub value: String,
    /// The value's place in a file or setting; `None` for a default.
    pub place: Option<ValueLocation>,
    /// The value's source: the text after `# Source:` on its line, or the default's source stated by the key's
    /// documentation; empty if neither exists.
    pub source: String,
}

impl ResolvedValue {
    /// Dotted path, for example `l2.bytes`; for a chosen option, its axis, for example `links`.
    pub fn path(&self) -> String {
        spelling::shown(&self.key.path(self.section)).to_owned()
    }
}

impl<T: DescriptionKind> Description<T> {
    /// Every effective value, section by section, with the keys in documentation order. Keys for options that are
    /// not chosen are omitted.
    ///
    /// # Errors
    /// Fails if the description does not pass [`Description::check`].
    pub fn resolved(&self) -> Result<Vec<ResolvedValue>, ConfigError> {
        self.check()?;
        let tree = spelling::without_replaced::<T>(self.tree());
        let mut values = Vec::new();
        for (section, keys) in T::sections().into_iter().filter(|(section, _)| self.has_section(section)) {
            let chosen = AxisInfo::named::<T>(section).zip(tree.find(&format!("{section}.{KIND}")));
            let is_read = |key: &Key| chosen.as_ref().is_none_or(|(axis, kind)| axis.reads(kind.text(), key.name));
            values.extend(keys.iter().filter(|key| is_read(key)).filter_map(|key| resolve(&tree, section, *key)));
        }
        Ok(values)
    }
}

fn resolve(tree: &ConfigTable, section: &'static str, key: Key) -> Option<ResolvedValue> {
    if let Some(ConfigNode::Leaf(leaf)) = tree.find(&key.path(section)) {
        let (value, place, source) = (leaf.text.clone(), Some(leaf.place.clone()), leaf.source.clone());
        return Some(ResolvedValue { section, key, value, place, source });
    }
    let value = (key.default)()?.to_string();
    let source = key.source_of_default().unwrap_or_default().to_owned();
    Some(ResolvedValue { section, key, value, place: None, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MachineConfig, list};

    fn values<T: DescriptionKind>(name: &str, text: &str) -> Vec<ResolvedValue> {
        Description::<T>::parse(name, text).unwrap().resolved().unwrap()
    }

    fn told<T: DescriptionKind>(text: &str, path: &str) -> (String, Option<String>, String) {
        let values = values::<T>("mine", text);
        let value = values.into_iter().find(|value| value.path() == path).unwrap();
        (value.value, value.place.map(|place| place.to_string()), value.source)
    }

    #[test]
    fn a_value_names_the_file_of_the_chain_that_set_it() {
        let text = "base = \"numa-2\"\n[l2]\nways = 8  # Source: a guess\n";
        let guess = ("8".to_owned(), Some("mine:3".to_owned()), "a guess".to_owned());
        assert_eq!(told::<MachineConfig>(text, "l2.ways"), guess);
        let (_, place, source) = told::<MachineConfig>(text, "topology.gpus");
        assert!(place.unwrap().starts_with("preset machines/numa-2.toml:") && !source.is_empty());
        let (_, place, source) = told::<MachineConfig>(text, "l2.bytes");
        assert!(place.unwrap().starts_with("preset machines/numa-4.toml:") && !source.is_empty());
    }

    #[test]
    fn a_default_has_no_place_and_the_source_that_its_key_states() {
        let one = ("1".to_owned(), None, String::new());
        assert_eq!(told::<MachineConfig>("base = \"hmg-4x4\"", "sm.turn_cycles"), one);
        let source = |doc| Key::required::<u32>("key", doc).source_of_default();
        assert_eq!(source("Cycles. Source of the default: NUMA-GPU, section 4.1."), Some("NUMA-GPU, section 4.1"));
        assert_eq!(source("Cycles."), None);
    }

    #[test]
    fn every_key_of_every_preset_has_a_value() {
        for listed in list::<MachineConfig>() {
            let described = Description::<MachineConfig>::named(listed.name).unwrap();
            let there = MachineConfig::sections().into_iter().filter(|(section, _)| described.has_section(section));
            let keys: usize = there.map(|(_, keys)| keys.len()).sum();
            assert_eq!(described.resolved().unwrap().len(), keys, "{}", listed.name);
        }
    }
}
