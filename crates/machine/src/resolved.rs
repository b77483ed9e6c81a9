//! Every value of a description in the order of its keys: as written, or its default, and where it comes from.

use crate::description::{Described, Description};
use crate::error::{ConfigError, Place};
use crate::section::Key;
use crate::spelling::{Axis, KIND, shown};
use crate::tree::Node;

/// A value that holds.
#[derive(Clone, Debug)]
pub struct ResolvedValue {
    /// Name of its section; empty outside any.
    pub section: &'static str,
    /// Its key.
    pub key: Key,
    /// As written; a default as it would be written.
    pub value: String,
    /// Where it stands; `None` of a default.
    pub place: Option<Place>,
    /// Where it comes from: what follows `# Source:` on its line, or what the meaning of the key says of the default;
    /// empty where neither does.
    pub source: String,
}

impl ResolvedValue {
    /// Dotted path, such as `l2.bytes`.
    pub fn path(&self) -> String {
        shown(&self.key.path(self.section)).to_owned()
    }
}

impl<T: Described> Description<T> {
    /// Every value, section by section, keys in the order of the documentation. Of a section that is a choice these are the
    /// keys of the option chosen.
    ///
    /// # Errors
    /// The description is not one that [`Description::check`] takes.
    pub fn resolved(&self) -> Result<Vec<ResolvedValue>, ConfigError> {
        self.check()?;
        let sections = T::sections().into_iter();
        let keys = sections.flat_map(|(section, keys)| keys.iter().map(move |key| (section, *key)));
        Ok(keys.filter_map(|(section, key)| self.resolve(section, key)).collect())
    }

    fn resolve(&self, section: &'static str, key: Key) -> Option<ResolvedValue> {
        if let Some(axis) = Axis::named::<T>(section)
            && let Some(kind) = self.tree().find(&format!("{section}.{KIND}"))
            && !axis.reads(kind.text(), key.name)
        {
            return None;
        }
        if let Some(Node::Leaf(leaf)) = self.tree().find(&key.path(section)) {
            let (value, place, source) = (leaf.text.clone(), Some(leaf.place.clone()), leaf.source.clone());
            return Some(ResolvedValue { section, key, value, place, source });
        }
        let value = (key.default)()?.to_string();
        let source = key.source_of_default().unwrap_or_default().to_owned();
        Some(ResolvedValue { section, key, value, place: None, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MachineConfig, presets};

    fn values<T: Described>(name: &str, text: &str) -> Vec<ResolvedValue> {
        Description::<T>::parse(name, text).unwrap().resolved().unwrap()
    }

    fn told<T: Described>(text: &str, path: &str) -> (String, Option<String>, String) {
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
    fn a_default_stands_nowhere_and_has_the_source_that_its_key_states() {
        let one = ("1".to_owned(), None, String::new());
        assert_eq!(told::<MachineConfig>("base = \"hmg-4x4\"", "sm.turn_cycles"), one);
        let source = |doc| Key::required::<u32>("key", doc).source_of_default();
        assert_eq!(source("Cycles. Source of the default: NUMA-GPU, section 4.1."), Some("NUMA-GPU, section 4.1"));
        assert_eq!(source("Cycles."), None);
    }

    #[test]
    fn every_key_of_every_preset_has_a_value() {
        fn all<T: Described>() {
            let keys: usize = T::sections().iter().map(|(_, keys)| keys.len()).sum();
            for listed in presets::<T>() {
                let described = Description::<T>::named(listed.name).unwrap();
                assert_eq!(described.resolved().unwrap().len(), keys, "{}", listed.name);
            }
        }
        all::<MachineConfig>();
    }
}
