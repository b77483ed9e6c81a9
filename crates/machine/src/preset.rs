//! The shipped machines, embedded in the program, and descriptions that a program registers. A new machine needs a file
//! and a line in this list.

use crate::description::DescriptionKind;
use std::sync::{PoisonError, RwLock};

/// A description with a name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name used by users.
    pub name: &'static str,
    /// The file's text.
    pub text: &'static str,
}

/// Descriptions of the program that uses the library, each with its kind, in the order of their registration.
static REGISTERED: RwLock<Vec<(&'static str, Preset)>> = RwLock::new(Vec::new());

/// All presets of a kind: shipped, then registered.
pub(crate) fn all<T: DescriptionKind>() -> Vec<Preset> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let of_kind = registered.iter().filter(|(kind, _)| *kind == T::KIND).map(|(_, preset)| *preset);
    T::presets().iter().copied().chain(of_kind).collect()
}

/// Makes a machine or a design known by name to every command of this process. A relative base in its text must be a
/// preset.
///
/// # Errors
/// Returns an error if a preset has this name already, or if the text is not a whole and consistent description.
pub fn register<T: DescriptionKind>(preset: Preset) -> Result<(), crate::ConfigError> {
    let Preset { name, text } = preset;
    if all::<T>().iter().any(|known| known.name == name) {
        return Err(crate::ConfigError::NameTaken { kind: T::KIND, name: name.to_owned() });
    }
    crate::description::Description::<T>::parse(name, text)?.check()?;
    REGISTERED.write().unwrap_or_else(PoisonError::into_inner).push((T::KIND, preset));
    Ok(())
}

macro_rules! presets {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../presets/", $folder, "/", $name, ".toml")) }),+]
    };
}

/// Machines, in list order.
pub(crate) const MACHINES: &[Preset] = presets!(
    "machines":
    "hmg-4x4",
    "hmg-4x4-wide",
    "hmg-1x4",
    "numa-1",
    "numa-2",
    "numa-4",
    "numa-8",
    "numa-hypothetical-2",
    "numa-hypothetical-4",
    "numa-hypothetical-8",
    "v100",
    "h100",
    "h100-sxm",
    "mi300a",
    "dgx-h100",
    "dgx-h200",
    "dgx-b200",
    "gb200-nvl72",
    "gh200",
    "mi300x-8",
    "mi350x-8",
    "gps-1",
    "gps-4-pcie3",
    "gps-4-pcie4",
    "gps-4-pcie5",
    "gps-4-pcie6",
    "gps-4-nvlink",
    "gps-16-pcie6",
    "gps-16-pcie6-tree",
    "umh-1-pcie",
    "umh-2-pcie",
    "umh-4-pcie",
    "umh-1-nvlink",
    "umh-2-nvlink",
    "umh-4-nvlink",
    "chiplet-2",
    "chiplet-4",
    "chiplet-6",
    "chiplet-7",
    "chiplet-8",
    "chiplet-16",
    "monolithic-2",
    "monolithic-4",
    "monolithic-6",
    "monolithic-7",
    "monolithic-8",
    "monolithic-16"
);
