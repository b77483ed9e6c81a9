//! Sections of a configuration file. A single declaration gives the struct, the keys, the reader and the record.

use crate::error::{ConfigError, near};
use crate::quantity::Quantity;
use crate::tree::{ConfigNode, ConfigTable};
use tombolo_types::Clock;
pub use tombolo_types::Key;

/// A struct whose fields are the keys in a TOML table.
pub trait Section: Sized {
    /// The keys, in the order of the struct's fields.
    const KEYS: &'static [Key];

    /// Reads all fields; an unknown or missing key is an error.
    fn read(reader: &Reader<'_>) -> Result<Self, ConfigError>;
}

/// The reader for a single table.
pub struct Reader<'a> {
    /// The table to read.
    pub table: &'a ConfigTable,
    /// The section's name; empty for the whole file.
    pub section: &'static str,
    /// Clock used to convert cycles.
    pub clock: Clock,
}

impl Reader<'_> {
    /// The dotted path to `key`.
    fn path(&self, key: &str) -> String {
        if self.section.is_empty() { key.to_owned() } else { format!("{}.{key}", self.section) }
    }

    /// The value of `key`, or `default` if the key is absent.
    pub fn get<T: Quantity>(&self, key: &'static str, default: Option<T>) -> Result<T, ConfigError> {
        let value = self.given(key, T::EXPECTED, |text| T::parse(text, self.clock))?;
        value.or(default).ok_or_else(|| ConfigError::Missing {
            place: self.table.place.clone(),
            key: self.path(key),
            expected: T::EXPECTED.to_owned(),
        })
    }

    /// The value of `key`, converted by `parse`; `None` if the key is absent.
    ///
    /// # Errors
    /// Fails if `parse` does not accept the value's text; `expected` describes the permitted text.
    pub fn given<T>(
        &self,
        key: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(node) = self.table.entries.get(key) else { return Ok(None) };
        let value = match node {
            ConfigNode::Leaf(leaf) => parse(&leaf.text),
            ConfigNode::Table(_) => None,
        };
        value.map(Some).ok_or_else(|| ConfigError::Value {
            place: node.place().clone(),
            key: self.path(key),
            value: node.text().to_owned(),
            expected: expected.to_owned(),
        })
    }

    /// Reads the table of section `name` as `S`. A missing section reads like an empty section.
    pub fn section<S: Section>(&self, name: &'static str) -> Result<S, ConfigError> {
        let empty;
        let table = match self.table.entries.get(name) {
            Some(ConfigNode::Table(table)) => table,
            Some(ConfigNode::Leaf(leaf)) => {
                return Err(ConfigError::Value {
                    place: leaf.place.clone(),
                    key: name.to_owned(),
                    value: leaf.text.clone(),
                    expected: format!("a section with the keys {}", names(S::KEYS).join(", ")),
                });
            }
            None => {
                empty = ConfigTable { place: self.table.place.clone(), entries: Default::default() };
                &empty
            }
        };
        let reader = Reader { table, section: name, clock: self.clock };
        reader.refuse_unknown(&names(S::KEYS))?;
        S::read(&reader)
    }

    /// Reads the table of section `name` as `S`; `None` if the section is missing.
    pub fn optional_section<S: Section>(&self, name: &'static str) -> Result<Option<S>, ConfigError> {
        if self.table.entries.contains_key(name) { self.section(name).map(Some) } else { Ok(None) }
    }

    /// Returns an error for the first key that is not in `known`.
    pub fn refuse_unknown(&self, known: &[&'static str]) -> Result<(), ConfigError> {
        match self.table.entries.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, node)) => Err(ConfigError::UnknownKey {
                place: node.place().clone(),
                key: self.path(key),
                near: near(key, known.iter().copied()),
                within: if self.section.is_empty() { "a file".into() } else { format!("section {}", self.section) },
                keys: known.iter().map(|key| (*key).to_owned()).collect(),
            }),
        }
    }
}

/// The names of all `keys`.
pub fn names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

macro_rules! default {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
pub(crate) use default;

/// Declares a section. A field is a key that must be given, unless a default follows the field.
macro_rules! section {
    ($(#[doc = $about:literal])* pub struct $Name:ident {
        $( $(#[doc = $doc:literal])+ $field:ident : $Type:ty $(= $default:expr)? ),+ $(,)?
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Name { $( $(#[doc = $doc])+ pub $field: $Type ),+ }

        impl $crate::section::Section for $Name {
            const KEYS: &'static [$crate::section::Key] = &[$($crate::section::Key {
                name: stringify!($field),
                doc: concat!($($doc),+).trim_ascii_start(),
                expected: <$Type as $crate::quantity::Quantity>::EXPECTED,
                form: <$Type as $crate::quantity::Quantity>::FORM,
                default: || {
                    let default: Option<$Type> = $crate::section::default!($($default)?);
                    default.as_ref().map($crate::quantity::Quantity::print)
                },
            }),+];

            fn read(reader: &$crate::section::Reader<'_>) -> Result<Self, $crate::error::ConfigError> {
                Ok($Name {
                    $($field: reader.get(stringify!($field), $crate::section::default!($($default)?))?),+
                })
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let keys = <$Name as $crate::section::Section>::KEYS;
                let mut fields = serializer.serialize_struct(stringify!($Name), keys.len())?;
                $(fields.serialize_field(
                    stringify!($field),
                    &$crate::record::SerializedValue($crate::quantity::Quantity::print(&self.$field)),
                )?;)+
                fields.end()
            }
        }
    };
}
pub(crate) use section;
