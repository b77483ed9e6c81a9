//! Keys in configuration files.

use crate::quantity::{Quantity, RecordValue, ValueForm};

/// A key in a section, for help, templates and schemas.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The key's name in a file.
    pub name: &'static str,
    /// The key's meaning.
    pub doc: &'static str,
    /// The permitted text.
    pub expected: &'static str,
    /// The permitted text's form, for schemas.
    pub form: ValueForm,
    /// The value used if the key is absent; `None` for a mandatory key.
    pub default: fn() -> Option<RecordValue>,
}

impl Key {
    /// A key that holds a `T` and is mandatory.
    pub const fn required<T: Quantity>(name: &'static str, doc: &'static str) -> Key {
        Key { name, doc, expected: T::EXPECTED, form: T::FORM, default: || None }
    }

    /// An optional key that holds a `T` and may be absent from the file.
    pub const fn optional<T: Quantity>(
        name: &'static str,
        doc: &'static str,
        default: fn() -> Option<RecordValue>,
    ) -> Key {
        Key { default, ..Key::required::<T>(name, doc) }
    }

    /// The default's source, if the key's documentation names a source.
    pub fn source_of_default(&self) -> Option<&'static str> {
        let (_, source) = self.doc.split_once("Source of the default: ").or_else(|| self.doc.split_once("Source: "))?;
        Some(source.trim_end_matches('.'))
    }

    /// The key's full dotted path in `section`; the empty section name stands for the file itself.
    pub fn path(&self, section: &str) -> String {
        if section.is_empty() { self.name.to_owned() } else { format!("{section}.{}", self.name) }
    }
}
