//! The path from a name, a file and settings to a checked configuration.

use crate::blame::blamed;
use crate::error::{ConfigError, ValueLocation, near};
use crate::machine::MachineConfig;
use crate::preset::{self, Preset};
use crate::section::Key;
use crate::spelling::{self, AxisInfo, FullSpelling};
use crate::tree::{self, ConfigTable, ConfigValue};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum length for a chain of `base` files. Assumed, far beyond any chain a reader could follow.
const BASE_LIMIT: usize = 8;
/// Largest description read, in bytes: assumed, a hundred times the largest shipped file.
const FILE_LIMIT: u64 = 1 << 20;

/// The list line for a file without a description and without a base.
pub const NO_DESCRIPTION: &str = "no description";

/// A section that a description may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionalSection {
    /// The section's name.
    pub name: &'static str,
    /// The sections that must be present for it to be meaningful, possibly including the section itself.
    pub needs: &'static [&'static str],
}

/// The subject of a description: a machine or a design.
pub trait DescriptionKind: Sized {
    /// The kind, `machine` or `design`, which is also the prefix for settings.
    const KIND: &'static str;

    /// Every section by name, with its keys. The keys outside any section come first, under the empty name. A
    /// section that is a choice has all its options' keys.
    fn sections() -> Vec<(&'static str, &'static [Key])>;

    /// The sections that a description may leave out.
    fn optional_sections() -> &'static [OptionalSection] {
        &[]
    }

    /// The sections that are a choice between options.
    fn axes() -> Vec<AxisInfo> {
        Vec::new()
    }

    /// Earlier spellings for paths, each with the current spelling.
    fn aliases() -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The shipped presets, in list order.
    fn presets() -> &'static [Preset];

    /// Reads the configuration in a tree, if every value matches its key and all values are consistent.
    ///
    /// # Errors
    /// Returns the first invalid value.
    fn read(tree: &ConfigTable) -> Result<Self, ConfigError>;
}

/// A description after reading and before checking: settings can still replace its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description<T> {
    tree: ConfigTable,
    notes: Vec<String>,
    described: PhantomData<T>,
}

/// A value as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedValue {
    /// Dotted path, for example `l2.bytes`.
    pub path: String,
    /// The text as written.
    pub value: String,
    /// The value's source; empty if the file states no source.
    pub source: String,
}

/// The description for the machine called `name`: a preset, or the path to a `.toml` file.
pub fn machine(name: &str) -> Result<Description<MachineConfig>, ConfigError> {
    Description::named(name)
}

/// A preset in a list.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PresetSummary {
    /// The preset's name.
    pub name: &'static str,
    /// A one-line description.
    pub description: String,
}

/// The shipped machines.
pub fn list_machines() -> Vec<PresetSummary> {
    list::<MachineConfig>()
}

/// The presets for `T`: shipped, then registered ([`preset::register`]).
pub fn list<T: DescriptionKind>() -> Vec<PresetSummary> {
    let line = |preset: &Preset| {
        let tree = ConfigTable::parse(preset.name, preset.text).expect("a test reads every preset");
        tree.find("description").map(|node| node.text().to_owned()).unwrap_or_default()
    };
    preset::all::<T>().iter().map(|preset| PresetSummary { name: preset.name, description: line(preset) }).collect()
}

/// A tree, together with notices about its spelling.
type AnnotatedTree = (ConfigTable, Vec<String>);

impl<T: DescriptionKind> Description<T> {
    /// The description called `name`: a preset, or the path to a `.toml` file.
    ///
    /// # Errors
    /// Fails if the description does not exist, or cannot be read.
    pub fn named(name: &str) -> Result<Description<T>, ConfigError> {
        /// Presets already read, by kind and name, with their notices. Experiments name some presets thousands of
        /// times.
        static READ: Mutex<BTreeMap<(&str, &str), AnnotatedTree>> = Mutex::new(BTreeMap::new());
        let preset = preset::all::<T>().into_iter().find(|preset| preset.name == name);
        let key = preset.map(|preset| (T::KIND, preset.name));
        let read = || READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((tree, notes)) = key.and_then(|key| read().get(&key).cloned()) {
            return Ok(Description { tree, notes, described: PhantomData });
        }
        let mut notes = Vec::new();
        let tree = build::<T>(&open::<T>(name, None)?, 0, &mut notes)?;
        if let Some(key) = key {
            read().insert(key, (tree.clone(), notes.clone()));
        }
        Ok(Description { tree, notes, described: PhantomData })
    }

    /// The description in `text`, called `name` in errors. `base` names presets or files relative to the current
    /// folder.
    pub fn parse(name: &str, text: &str) -> Result<Description<T>, ConfigError> {
        let file = DescriptionFile {
            label: name.into(),
            name: name.to_owned(),
            text: text.to_owned(),
            folder: PathBuf::new(),
        };
        let mut notes = Vec::new();
        let tree = build::<T>(&file, 0, &mut notes)?;
        Ok(Description { tree, notes, described: PhantomData })
    }

    /// Replaces the value at `path` (`l2.bytes`, or `machine.l2.bytes`). An unknown path is an immediate error; a
    /// wrong value is reported when the description is checked.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), ConfigError> {
        let setting: Arc<str> = format!("{path}={value}").into();
        let FullSpelling { path, note } = spelling::in_full::<T>(inner::<T>(path));
        refuse_unknown_path::<T>(&path, &setting)?;
        self.refuse_absent_section(&path, &setting)?;
        self.notes.extend(note.map(|note| format!("setting {setting}: {note}")));
        let text = tree::setting(value);
        let source = format!("set by {setting}");
        self.tree.put(&path, ConfigValue { text, source, place: ValueLocation::Setting(setting), below: None });
        Ok(())
    }

    /// The key at `path`, in any accepted spelling.
    pub fn key(path: &str) -> Option<Key> {
        let FullSpelling { path, .. } = spelling::in_full::<T>(inner::<T>(path));
        let in_section = |(section, keys): (&'static str, &'static [Key])| {
            keys.iter().find(|key| key.path(section) == path).copied()
        };
        T::sections().into_iter().find_map(in_section)
    }

    /// True if the section called `name` is present in the description or mandatory.
    pub fn has_section(&self, name: &str) -> bool {
        let is_optional = T::optional_sections().iter().any(|section| section.name == name);
        !is_optional || self.tree.entries.contains_key(name)
    }

    /// Returns an error if `path` belongs to a section that the description leaves out.
    fn refuse_absent_section(&self, path: &str, setting: &Arc<str>) -> Result<(), ConfigError> {
        let name = path.split('.').next().unwrap_or_default();
        match T::optional_sections().iter().find(|section| section.name == name) {
            Some(section) if !self.has_section(name) => Err(ConfigError::AbsentSection {
                place: ValueLocation::Setting(setting.clone()),
                key: path.to_owned(),
                kind: T::KIND,
                section: section.name,
                needs: section.needs,
            }),
            _ => Ok(()),
        }
    }

    /// Undoes a setting for a key that the axis's chosen option does not read; returns true if the key was unread.
    pub fn drop_if_unread(&mut self, path: &str) -> bool {
        let FullSpelling { path, .. } = spelling::in_full::<T>(inner::<T>(path));
        let Some((section, key)) = path.split_once('.') else { return false };
        let Some(axis) = AxisInfo::named::<T>(section) else { return false };
        let kind = self.tree.find(&format!("{section}.{}", spelling::KIND)).map(|kind| kind.text().to_owned());
        let is_unread = kind.is_some_and(|kind| !axis.reads(&kind, key));
        if is_unread {
            self.tree.restore(&path);
        }
        is_unread
    }

    /// Notices about the description's spelling: keys that have a different name today.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Every value as written, with its dotted path and its source: the text after `# Source:` on the line, empty
    /// if absent.
    pub fn values(&self) -> Vec<DescribedValue> {
        let value = |(path, leaf): (String, &ConfigValue)| DescribedValue {
            path,
            value: leaf.text.clone(),
            source: leaf.source.clone(),
        };
        self.tree.leaves().into_iter().map(value).collect()
    }

    pub(crate) fn tree(&self) -> &ConfigTable {
        &self.tree
    }

    /// Checks the configuration: every value must match its key, and all values must be consistent.
    pub fn check(&self) -> Result<T, ConfigError> {
        read::<T>(&self.tree).map_err(|error| blamed::<T>(&self.tree, error))
    }
}

/// Reads the configuration in `tree`, ignoring keys for options that a setting replaced.
pub(crate) fn read<T: DescriptionKind>(tree: &ConfigTable) -> Result<T, ConfigError> {
    T::read(&spelling::without_replaced::<T>(tree))
}

/// `path` without the prefix for the kind of description.
fn inner<T: DescriptionKind>(path: &str) -> &str {
    path.strip_prefix(T::KIND).and_then(|rest| rest.strip_prefix('.')).unwrap_or(path)
}

/// Dotted paths that a setting may name. The name and the description are reserved for files.
pub fn settable<T: DescriptionKind>() -> Vec<String> {
    let own = |section: &str, key: &Key| match section {
        "" => key.name.to_owned(),
        section => spelling::shown(&format!("{section}.{}", key.name)).to_owned(),
    };
    let paths = T::sections().into_iter().flat_map(|(section, keys)| keys.iter().map(move |key| own(section, key)));
    paths.filter(|path| path != "name" && path != "description").collect()
}

/// True if a settable path begins with `first`, in the current or an earlier spelling.
pub fn is_top_level_key<T: DescriptionKind>(first: &str) -> bool {
    settable::<T>().iter().any(|path| path.split('.').next() == Some(first))
        || T::aliases().iter().any(|(earlier, _)| *earlier == first)
}

/// Returns an error unless a setting may name `path` in a `T`.
///
/// # Errors
/// Lists the known keys in this place.
pub fn refuse_unknown_path<T: DescriptionKind>(path: &str, setting: &Arc<str>) -> Result<(), ConfigError> {
    let known = settable::<T>();
    let path = spelling::in_full::<T>(inner::<T>(path)).path;
    let path = spelling::shown(&path);
    if known.iter().any(|known| known == path) {
        return Ok(());
    }
    let section = path.split('.').next().unwrap_or_default();
    let inside: Vec<String> = known.iter().filter(|known| known.starts_with(&format!("{section}."))).cloned().collect();
    let (within, keys, candidates) = match inside.is_empty() {
        true => (format!("a {}", T::KIND), top_level_keys::<T>(), known),
        false => (format!("section {section} of a {}", T::KIND), inside.clone(), inside),
    };
    Err(ConfigError::UnknownKey {
        place: ValueLocation::Setting(setting.clone()),
        key: path.to_owned(),
        near: near(path, candidates.iter().map(String::as_str)),
        within,
        keys,
    })
}

/// The first words in all settable paths.
pub fn top_level_keys<T: DescriptionKind>() -> Vec<String> {
    let mut tops: Vec<String> =
        settable::<T>().iter().filter_map(|path| path.split('.').next().map(str::to_owned)).collect();
    tops.dedup();
    tops
}

/// A description file's text before it is parsed.
struct DescriptionFile {
    /// The label used for the file in errors.
    label: Arc<str>,
    /// The user-visible name, unless the file gives a different name.
    name: String,
    text: String,
    /// The folder for relative bases.
    folder: PathBuf,
}

fn open<T: DescriptionKind>(name: &str, folder: Option<&Path>) -> Result<DescriptionFile, ConfigError> {
    if let Some(preset) = preset::all::<T>().iter().find(|preset| preset.name == name) {
        let label = format!("preset {}s/{name}.toml", T::KIND).into();
        return Ok(DescriptionFile {
            label,
            name: name.to_owned(),
            text: preset.text.to_owned(),
            folder: PathBuf::new(),
        });
    }
    if !name.ends_with(".toml") {
        let known: Vec<String> = preset::all::<T>().iter().map(|preset| preset.name.to_owned()).collect();
        let near = near(name, known.iter().map(String::as_str));
        return Err(ConfigError::UnknownName { kind: T::KIND, name: name.to_owned(), near, known });
    }
    let path = folder.unwrap_or(Path::new("")).join(name);
    let text = read_file(&path)?;
    let stem = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    Ok(DescriptionFile { label: path.to_string_lossy().into(), name: stem, text, folder })
}

fn read_file(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable { path: path.to_string_lossy().into_owned(), reason };
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if !metadata.is_file() {
        return Err(unreadable("not a file".to_owned()));
    }
    let length = metadata.len();
    if length > FILE_LIMIT {
        return Err(unreadable(format!("{length} bytes; a description has at most {FILE_LIMIT}")));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| unreadable(format!("not UTF-8: {}", error.utf8_error())))
}

/// Builds the tree for `file`, overlaid on its base's tree.
fn build<T: DescriptionKind>(
    file: &DescriptionFile,
    depth: usize,
    notes: &mut Vec<String>,
) -> Result<ConfigTable, ConfigError> {
    let mut tree = ConfigTable::parse(&file.label, &file.text)?;
    spelling::write_out::<T>(&mut tree, notes);
    let name = ConfigValue { text: file.name.clone(), place: tree.place.clone(), source: String::new(), below: None };
    if tree.find("name").is_none() {
        tree.put("name", name);
    }
    let Some(base) = tree.entries.remove("base") else {
        return Ok(tree);
    };
    let (name, place) = (base.text().to_owned(), base.place().clone());
    if depth >= BASE_LIMIT {
        return Err(ConfigError::BaseTooDeep { place, name, limit: BASE_LIMIT });
    }
    if tree.find("description").is_none() {
        let text = format!("based on {name}");
        tree.put("description", ConfigValue { text, place: place.clone(), source: String::new(), below: None });
    }
    let below = open::<T>(&name, Some(&file.folder)).map_err(|error| at_base(&error, &place, &name))?;
    let mut whole = build::<T>(&below, depth + 1, notes)?;
    spelling::drop_replaced::<T>(&mut whole, &tree);
    whole.overlay(tree);
    Ok(whole)
}

/// An error about a missing base, reported at the place that names the base.
fn at_base(error: &ConfigError, place: &ValueLocation, name: &str) -> ConfigError {
    ConfigError::Refused {
        place: place.clone(),
        key: "base".to_owned(),
        value: name.to_owned(),
        reason: error.to_string(),
    }
}
