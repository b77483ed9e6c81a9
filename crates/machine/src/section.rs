//! Sections of a configuration file: one declaration gives the struct, its keys, its reader and its record.

use crate::error::ConfigError;
use crate::quantity::Quantity;
use crate::tree::{Node, Table};
use tombolo_types::Clock;

/// One key of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// As written in a file.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// What may be written.
    pub expected: &'static str,
}

/// A struct whose fields are keys of one TOML table.
pub(crate) trait Section: Sized {
    /// The keys, in the order of the fields.
    const KEYS: &'static [Key];

    /// Reads all fields; an unknown or missing key is an error.
    fn read(reader: &Reader<'_>) -> Result<Self, ConfigError>;
}

/// One table being read.
pub(crate) struct Reader<'a> {
    /// The table.
    pub(crate) table: &'a Table,
    /// Its dotted path with a trailing dot; empty for the whole file.
    pub(crate) prefix: String,
    /// Converts cycles.
    pub(crate) clock: Clock,
}

impl Reader<'_> {
    /// The value of `key`, or `default` where the key is absent.
    pub(crate) fn get<T: Quantity>(&self, key: &'static str, default: Option<T>) -> Result<T, ConfigError> {
        let path = || format!("{}{key}", self.prefix);
        let Some(node) = self.table.entries.get(key) else {
            return default.ok_or_else(|| ConfigError::Missing {
                place: self.table.place.clone(),
                key: path(),
                expected: T::EXPECTED.to_owned(),
            });
        };
        let Node::Leaf(leaf) = node else {
            return Err(ConfigError::not_a_value(node, path(), T::EXPECTED));
        };
        T::parse(&leaf.text, self.clock).ok_or_else(|| ConfigError::Value {
            place: leaf.place.clone(),
            key: path(),
            value: leaf.text.clone(),
            expected: T::EXPECTED.to_owned(),
        })
    }
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
                doc: concat!($($doc),+),
                expected: <$Type as $crate::quantity::Quantity>::EXPECTED,
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
