//! Axes and their options. A single declaration gives the type, the keys, the reader and the record.

use crate::DesignConfig;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use tombolo_machine::error::{ConfigError, near};
use tombolo_machine::quantity::RecordValue;
use tombolo_machine::record::SerializedValue;
use tombolo_machine::section::Reader;
use tombolo_machine::spelling::{KIND, OptionInfo};
use tombolo_machine::tree::ConfigNode;
use tombolo_machine::{Conflict, Key, ValueForm};
use tombolo_types::Clock;

/// An option on an axis: a struct whose fields are the keys it reads.
pub trait AxisOption: Sized {
    /// The word used in a file.
    const WORD: &'static str;
    /// A one-line description for lists.
    const ABOUT: &'static str;
    /// The keys, in the order of the struct's fields.
    const KEYS: &'static [Key];

    /// Reads the keys; each has a default.
    ///
    /// # Errors
    /// Fails if a key does not accept its value.
    fn read(reader: &Reader<'_>) -> Result<Self, ConfigError>;

    /// The keys with their values.
    fn values(&self) -> Vec<(&'static str, RecordValue)>;
}

/// A choice between options.
pub trait DesignAxis: Sized {
    /// The options, in list order.
    fn options() -> Vec<OptionInfo>;

    /// The keys of all options.
    fn keys() -> Vec<Key>;

    /// The words for all options, formatted for an error message.
    fn expected() -> &'static str;

    /// Reads the option called `word`; `None` if no option has this word.
    ///
    /// # Errors
    /// Fails if a key in the option does not accept its value.
    fn read(word: &str, reader: &Reader<'_>) -> Result<Option<Self>, ConfigError>;

    /// The option's word, and its keys with their values.
    fn written(&self) -> (&'static str, Vec<(&'static str, RecordValue)>);

    /// The option's conflict with the rest of `design`, if any, with the reason. `key`: the axis.
    fn conflict(&self, key: &'static str, design: &DesignConfig) -> Option<Conflict>;
}

/// Reads the axis called `name` from a whole file. If a `default` exists, the file may omit the axis.
pub(crate) fn read<A: DesignAxis>(file: &Reader<'_>, name: &'static str, default: Option<A>) -> Result<A, ConfigError> {
    let missing = || ConfigError::Missing {
        place: file.table.place.clone(),
        key: name.to_owned(),
        expected: A::expected().to_owned(),
    };
    // Short spellings are expanded earlier, so a value is a table.
    let Some(ConfigNode::Table(table)) = file.table.entries.get(name) else { return default.ok_or_else(missing) };
    let kind = table.entries.get(KIND);
    let word = match (kind, &default) {
        (Some(kind), _) => kind.text(),
        (None, Some(default)) => default.written().0,
        (None, None) => return Err(missing()),
    };
    let reader = Reader { table, section: name, clock: file.clock };
    let is_word = matches!(kind, None | Some(ConfigNode::Leaf(_)));
    let option = if is_word { A::read(word, &reader)? } else { None };
    let option = option.ok_or_else(|| ConfigError::Value {
        place: kind.map_or(&table.place, ConfigNode::place).clone(),
        key: name.to_owned(),
        value: word.to_owned(),
        expected: A::expected().to_owned(),
    })?;
    refuse_unread::<A>(&reader, word)?;
    Ok(option)
}

/// Returns an error for the first key that the option called `word` does not read.
fn refuse_unread<A: DesignAxis>(reader: &Reader<'_>, word: &str) -> Result<(), ConfigError> {
    let options = A::options();
    let own = options.iter().find(|option| option.word == word).map(|option| &option.keys[..]).unwrap_or_default();
    let unread = reader.table.entries.iter().find(|(key, _)| *key != KIND && !own.contains(&key.as_str()));
    let Some((key, node)) = unread else { return Ok(()) };
    let readers: Vec<&str> =
        options.iter().filter(|option| option.keys.contains(&key.as_str())).map(|option| option.word).collect();
    let path = format!("{}.{key}", reader.section);
    if readers.is_empty() {
        let known: Vec<String> = std::iter::once(KIND).chain(own.iter().copied()).map(str::to_owned).collect();
        return Err(ConfigError::UnknownKey {
            place: node.place().clone(),
            near: near(key, known.iter().map(String::as_str)),
            within: format!("{} = \"{word}\"", reader.section),
            key: path,
            keys: known,
        });
    }
    Err(ConfigError::Refused {
        place: node.place().clone(),
        value: node.text().to_owned(),
        reason: format!("{} = \"{word}\" does not read it; only {} does", reader.section, readers.join(", ")),
        key: path,
    })
}

/// An axis in its recorded form: the option's word, or a table if the option has keys.
pub(crate) struct AxisRecord<'a, A>(pub(crate) &'a A);

impl<A: DesignAxis> Serialize for AxisRecord<'_, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (word, values) = self.0.written();
        if values.is_empty() {
            return serializer.serialize_str(word);
        }
        let mut map = serializer.serialize_map(Some(values.len() + 1))?;
        map.serialize_entry(KIND, word)?;
        values.into_iter().try_for_each(|(key, value)| map.serialize_entry(key, &SerializedValue(value)))?;
        map.end()
    }
}

/// The keys in an axis's section: its kind, then the keys of all options, without repetition.
pub(crate) fn section<A: DesignAxis>(about: &'static str, default: fn() -> Option<RecordValue>) -> Vec<Key> {
    let words: Vec<&'static str> = A::options().iter().map(|option| option.word).collect();
    // Leaked once per axis and program.
    let form = ValueForm::Words(words.leak());
    let mut keys = vec![Key { name: KIND, doc: about, expected: A::expected(), form, default }];
    for key in A::keys() {
        if keys.iter().all(|known| known.name != key.name) {
            keys.push(key);
        }
    }
    keys
}

/// A 1 GHz clock: no design key is a time, so any clock can read the keys.
pub(crate) fn clock() -> Clock {
    Clock::from_hz(1_000_000_000)
}

/// The axis's value if a file omits the axis: none, or the given default.
macro_rules! default {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
pub(crate) use default;

/// Declares an option: a struct with a key per field, each with its default.
macro_rules! option {
    ($(#[doc = $about:literal])+ pub struct $Name:ident = $word:literal {
        $( $(#[doc = $doc:literal])+ $field:ident : $Type:ty = $default:expr ),* $(,)?
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $Name { $( $(#[doc = $doc])+ pub $field: $Type ),* }

        impl $crate::axis::AxisOption for $Name {
            const WORD: &'static str = $word;
            const ABOUT: &'static str = concat!($($about),+).trim_ascii_start();
            const KEYS: &'static [tombolo_machine::Key] = &[$(tombolo_machine::Key::optional::<$Type>(
                stringify!($field),
                concat!($($doc),+).trim_ascii_start(),
                || {
                    let default: $Type = $default;
                    Some(tombolo_machine::quantity::Quantity::print(&default))
                },
            )),*];

            fn read(
                #[allow(unused_variables, reason = "an option may have no keys")]
                reader: &tombolo_machine::section::Reader<'_>,
            ) -> Result<Self, tombolo_machine::ConfigError> {
                Ok($Name { $($field: reader.get(stringify!($field), Some($default))?),* })
            }

            fn values(&self) -> Vec<(&'static str, tombolo_machine::quantity::RecordValue)> {
                vec![$((stringify!($field), tombolo_machine::quantity::Quantity::print(&self.$field))),*]
            }
        }
    };
}
pub(crate) use option;

/// Makes an axis of an enum whose variants are words: options without keys.
macro_rules! word_axis {
    ($Name:ident $(refused by $conflict:path)?) => {
        impl $crate::axis::DesignAxis for $Name {
            fn options() -> Vec<tombolo_machine::spelling::OptionInfo> {
                let option = |option: &$Name| tombolo_machine::spelling::OptionInfo {
                    word: option.word(),
                    about: option.about(),
                    keys: Vec::new(),
                };
                $Name::ALL.iter().map(option).collect()
            }

            fn keys() -> Vec<tombolo_machine::Key> {
                Vec::new()
            }

            fn expected() -> &'static str {
                <$Name as tombolo_machine::quantity::Quantity>::EXPECTED
            }

            fn read(
                word: &str,
                _: &tombolo_machine::section::Reader<'_>,
            ) -> Result<Option<Self>, tombolo_machine::ConfigError> {
                Ok($Name::ALL.iter().copied().find(|option| option.word() == word))
            }

            fn written(&self) -> (&'static str, Vec<(&'static str, tombolo_machine::quantity::RecordValue)>) {
                (self.word(), Vec::new())
            }

            $crate::axis::conflict!($($conflict)?);
        }
    };
}
pub(crate) use word_axis;

/// Defines [`DesignAxis::conflict`] by a function, if the axis refuses anything.
macro_rules! conflict {
    () => {
        fn conflict(&self, _: &'static str, _: &$crate::DesignConfig) -> Option<tombolo_machine::Conflict> {
            None
        }
    };
    ($conflict:path) => {
        fn conflict(&self, key: &'static str, design: &$crate::DesignConfig) -> Option<tombolo_machine::Conflict> {
            $conflict(self, key, design)
        }
    };
}
pub(crate) use conflict;

/// Declares an axis: an enum with a variant per option, named like the option's struct.
macro_rules! axis {
    ($(#[doc = $about:literal])+ pub enum $Name:ident { $($Option:ident),+ $(,)? } $(refused by $conflict:path)?) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Name { $(
            #[doc = concat!("See [`struct@", stringify!($Option), "`].")]
            $Option($Option)
        ),+ }

        impl $Name {
            /// The word used in a file.
            pub fn word(&self) -> &'static str {
                match self { $($Name::$Option(_) => <$Option as $crate::axis::AxisOption>::WORD),+ }
            }
        }

        impl $crate::axis::DesignAxis for $Name {
            fn options() -> Vec<tombolo_machine::spelling::OptionInfo> {
                vec![$(tombolo_machine::spelling::OptionInfo {
                    word: <$Option as $crate::axis::AxisOption>::WORD,
                    about: <$Option as $crate::axis::AxisOption>::ABOUT,
                    keys: tombolo_machine::section::names(<$Option as $crate::axis::AxisOption>::KEYS),
                }),+]
            }

            fn keys() -> Vec<tombolo_machine::Key> {
                [$(<$Option as $crate::axis::AxisOption>::KEYS),+].concat()
            }

            fn expected() -> &'static str {
                static LIST: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
                    let words = [$(<$Option as $crate::axis::AxisOption>::WORD),+];
                    format!("one of {}", words.map(|word| format!("{word:?}")).join(", "))
                });
                &LIST
            }

            fn read(
                word: &str,
                reader: &tombolo_machine::section::Reader<'_>,
            ) -> Result<Option<Self>, tombolo_machine::ConfigError> {
                $(if word == <$Option as $crate::axis::AxisOption>::WORD {
                    return <$Option as $crate::axis::AxisOption>::read(reader)
                        .map(|option| Some($Name::$Option(option)));
                })+
                Ok(None)
            }

            fn written(&self) -> (&'static str, Vec<(&'static str, tombolo_machine::quantity::RecordValue)>) {
                match self { $($Name::$Option(option) => {
                    (<$Option as $crate::axis::AxisOption>::WORD, $crate::axis::AxisOption::values(option))
                }),+ }
            }

            $crate::axis::conflict!($($conflict)?);
        }
    };
}
pub(crate) use axis;
