//! Attribution of errors: if values conflict, the error names the value set last, not the older value in the
//! conflict.

use crate::description::{DescriptionKind, read};
use crate::error::{ConfigError, ValueLocation};
use crate::spelling::shown;
use crate::tree::{ConfigTable, ConfigValue};

/// Reattributes an `error` from reading `tree` to the value whose replacement caused it: a setting, or else a value
/// in a file that builds on the file with the error.
pub(crate) fn blamed<T: DescriptionKind>(tree: &ConfigTable, error: ConfigError) -> ConfigError {
    let Some((place, key)) = blamable_value(&error) else { return error };
    let leaves = tree.leaves();
    let is_setting = |leaf: &ConfigValue| matches!(leaf.place, ValueLocation::Setting(_));
    let is_gone = |paths: &[&str]| {
        let mut before = tree.clone();
        paths.iter().for_each(|path| before.restore(path));
        read::<T>(&before).err().is_none_or(|other| blamable_value(&other).is_none_or(|(_, other)| other != key))
    };
    let settings = || leaves.iter().filter(|(_, leaf)| is_setting(leaf));
    let is_above = |leaf: &ConfigValue| leaf.below.is_some() && !is_setting(leaf) && file(&leaf.place) != file(place);
    let overlaid = leaves.iter().filter(|(_, leaf)| is_above(leaf));
    if let Some((path, leaf)) = settings().chain(overlaid).find(|(path, _)| is_gone(&[path])) {
        return reattribute(path, leaf, error);
    }
    let all: Vec<&str> = settings().map(|(path, _)| path.as_str()).collect();
    if all.len() > 1 && is_gone(&all) {
        let texts = settings().map(|(_, leaf)| match &leaf.place {
            ValueLocation::Setting(text) => text.to_string(),
            line @ ValueLocation::Line { .. } => line.to_string(),
        });
        return with_place(ValueLocation::Setting(texts.collect::<Vec<_>>().join(", ").into()), error);
    }
    error
}

/// The place and the key of a wrong file value: a value wrong by itself, or in conflict with other values.
fn blamable_value(error: &ConfigError) -> Option<(&ValueLocation, &str)> {
    match error {
        ConfigError::Value { place, key, .. } | ConfigError::Refused { place, key, .. } => {
            matches!(place, ValueLocation::Line { .. }).then_some((place, key))
        }
        _ => None,
    }
}

fn file(place: &ValueLocation) -> Option<&str> {
    match place {
        ValueLocation::Line { file, .. } => Some(file),
        ValueLocation::Setting(_) => None,
    }
}

/// The error, reattributed to the value at `path`, with the original place in its reason.
fn reattribute(path: &str, leaf: &ConfigValue, error: ConfigError) -> ConfigError {
    let (place, key, value, reason) = match error {
        ConfigError::Value { place, key, value, expected } => (place, key, value, format!("expected {expected}")),
        ConfigError::Refused { place, key, value, reason } => (place, key, value, reason),
        other => return other,
    };
    ConfigError::Refused {
        place: leaf.place.clone(),
        key: shown(path).to_owned(),
        value: leaf.text.clone(),
        reason: format!("beside {key} = {value} of {place}: {reason}"),
    }
}

/// The same error, reported at a different place.
fn with_place(place: ValueLocation, error: ConfigError) -> ConfigError {
    match error {
        ConfigError::Value { key, value, expected, .. } => ConfigError::Value { place, key, value, expected },
        ConfigError::Refused { key, value, reason, .. } => ConfigError::Refused { place, key, value, reason },
        other => other,
    }
}
