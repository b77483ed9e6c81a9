//! Settings for a machine and its designs, distinguished by their paths.

use crate::DesignConfig;
use std::sync::Arc;
use tombolo_machine::description::{is_top_level_key, refuse_unknown_path, settable, top_level_keys};
use tombolo_machine::error::{ConfigError, ValueLocation, near};
use tombolo_machine::{Description, DescriptionKind, MachineConfig};

/// Applies settings `path=value` in order. A path begins with `machine.` or `design.`, or with a section or key
/// that belongs to only one side. A design setting applies to each design in `designs`. An option's key applies to
/// the designs that chose the option; if no design did, it applies to all, so that reading them reports the reason.
///
/// # Errors
/// Fails if a setting is malformed, or if neither side has its path.
pub fn apply(
    settings: &[impl AsRef<str>],
    machine: &mut Description<MachineConfig>,
    designs: &mut [Description<DesignConfig>],
) -> Result<(), ConfigError> {
    let mut of_designs = Vec::new();
    for setting in settings {
        let text = setting.as_ref();
        let (path, value) = text.split_once('=').ok_or_else(|| ConfigError::Setting { text: text.to_owned() })?;
        let (path, value) = (path.trim(), value.trim());
        let first = path.split('.').next().unwrap_or_default();
        if first == DesignConfig::KIND || is_top_level_key::<DesignConfig>(first) {
            // The path is checked even without any design to set it on.
            refuse_unknown_path::<DesignConfig>(path, &Arc::from(text))?;
            designs.iter_mut().try_for_each(|design| design.set(path, value))?;
            of_designs.push(path);
        } else if first == MachineConfig::KIND || is_top_level_key::<MachineConfig>(first) {
            machine.set(path, value)?;
        } else {
            return Err(unknown_everywhere(path, text));
        }
    }
    of_designs.iter().for_each(|path| drop_where_unread(path, designs));
    Ok(())
}

/// Undoes the setting of `path` for designs whose chosen option does not read it, if another design's option does.
fn drop_where_unread(path: &str, designs: &mut [Description<DesignConfig>]) {
    let mut without = designs.to_vec();
    let dropped: Vec<bool> = without.iter_mut().map(|design| design.drop_if_unread(path)).collect();
    if dropped.contains(&false) {
        designs.clone_from_slice(&without);
    }
}

fn unknown_everywhere(path: &str, setting: &str) -> ConfigError {
    let known = [settable::<MachineConfig>(), settable::<DesignConfig>()].concat();
    ConfigError::UnknownKey {
        place: ValueLocation::Setting(setting.into()),
        key: path.to_owned(),
        near: near(path, known.iter().map(String::as_str)),
        within: "a machine or a design".to_owned(),
        keys: [top_level_keys::<MachineConfig>(), top_level_keys::<DesignConfig>()].concat(),
    }
}
