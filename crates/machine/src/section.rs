//! Sections of a configuration file: one declaration gives the struct, its keys, its reader and its record.

use crate::error::{ConfigError, near};
use crate::quantity::{Form, Plain, Quantity};
use crate::tree::{Node, Table};
use tombolo_types::Clock;

/// One key of a section, for help, templates and schemas.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As written in a file.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What may be written.
    pub expected: &'static str,
    /// The same, for schemas.
    pub form: Form,
    /// What holds where the key is absent; `None` where it must be given.
    pub default: fn() -> Option<Plain>,
}

impl Key {
    /// A key that holds a `T` and must be given.
    pub const fn required<T: Quantity>(name: &'static str, doc: &'static str) -> Key {
        Key { name, doc, expected: T::EXPECTED, form: T::FORM, default: || None }
    }

    /// A key that holds a `T` and may be left out.
    pub const fn optional<T: Quantity>(name: &'static str, doc: &'static str, default: fn() -> Option<Plain>) -> Key {
        Key { default, ..Key::required::<T>(name, doc) }
    }

    /// Where the default comes from, as far as the meaning says.
    pub fn source_of_default(&self) -> Option<&'static str> {
        let (_, source) = self.doc.split_once("Source of the default: ").or_else(|| self.doc.split_once("Source: "))?;
        Some(source.trim_end_matches('.'))
    }

    /// The full dotted path of the key in `section`; the empty name is that of the file itself.
    pub fn path(&self, section: &str) -> String {
        if section.is_empty() { self.name.to_owned() } else { format!("{section}.{}", self.name) }
    }
}

/// A struct whose fields are keys of one TOML table.
pub trait Section: Sized {
    /// The keys, in the order of the fields.
    const KEYS: &'static [Key];

    /// Reads all fields; an unknown or missing key is an error.
    fn read(reader: &Reader<'_>) -> Result<Self, ConfigError>;
}

/// One table being read.
pub struct Reader<'a> {
    /// The table.
    pub table: &'a Table,
    /// Name of the section; empty for the whole file.
    pub section: &'static str,
    /// Converts cycles.
    pub clock: Clock,
}

impl Reader<'_> {
    /// The dotted path of `key`.
    fn path(&self, key: &str) -> String {
        if self.section.is_empty() { key.to_owned() } else { format!("{}.{key}", self.section) }
    }

    /// The value of `key`, or `default` where the key is absent.
    pub fn get<T: Quantity>(&self, key: &'static str, default: Option<T>) -> Result<T, ConfigError> {
        let Some(node) = self.table.entries.get(key) else {
            return default.ok_or_else(|| ConfigError::Missing {
                place: self.table.place.clone(),
                key: self.path(key),
                expected: T::EXPECTED.to_owned(),
            });
        };
        let value = match node {
            Node::Leaf(leaf) => T::parse(&leaf.text, self.clock),
            Node::Table(_) => None,
        };
        value.ok_or_else(|| ConfigError::Value {
            place: node.place().clone(),
            key: self.path(key),
            value: node.text().to_owned(),
            expected: T::EXPECTED.to_owned(),
        })
    }

    /// The table of section `name`, read as `S`. A missing section reads as an empty one.
    pub fn section<S: Section>(&self, name: &'static str) -> Result<S, ConfigError> {
        let empty;
        let table = match self.table.entries.get(name) {
            Some(Node::Table(table)) => table,
            Some(Node::Leaf(leaf)) => {
                return Err(ConfigError::Value {
                    place: leaf.place.clone(),
                    key: name.to_owned(),
                    value: leaf.text.clone(),
                    expected: format!("a section with the keys {}", names(S::KEYS).join(", ")),
                });
            }
            None => {
                empty = Table { place: self.table.place.clone(), entries: Default::default() };
                &empty
            }
        };
        let reader = Reader { table, section: name, clock: self.clock };
        reader.refuse_unknown(&names(S::KEYS))?;
        S::read(&reader)
    }

    /// The table of section `name`, read as `S`; `None` where there is none.
    pub fn optional_section<S: Section>(&self, name: &'static str) -> Result<Option<S>, ConfigError> {
        if self.table.entries.contains_key(name) { self.section(name).map(Some) } else { Ok(None) }
    }

    /// An error for the first key that is not in `known`.
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

/// The names of `keys`.
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

/// Declares a section. A field is a key that must be given, unless a default follows it.
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
                    &$crate::quantity::Quantity::print(&self.$field),
                )?;)+
                fields.end()
            }
        }
    };
}
pub(crate) use section;
