//! Machines and designs of points, each built once: points in a plan differ in their workload more often than in their
//! system.

use crate::error::PointError;
use crate::point::SharedConfig;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tombolo_design::DesignConfig;
use tombolo_machine::{MachineConfig, MachineScale};

/// A scaled machine, and a design.
pub(crate) type System = (SharedConfig<MachineConfig>, SharedConfig<DesignConfig>);

/// Plan indices of a machine and a design, the settings, and the scale.
type Key = ((usize, usize), Vec<String>, String);

/// Systems built up to now.
#[derive(Default)]
pub(crate) struct Systems(Mutex<BTreeMap<Key, System>>);

impl Systems {
    /// Returns the system for a machine and a design, by index, with settings and at a scale. `build` creates the
    /// system on first use.
    ///
    /// # Errors
    /// Returns the errors from `build`. Errors are not cached.
    pub(crate) fn get_or_build(
        &self,
        at: (usize, usize),
        settings: &[String],
        scale: MachineScale,
        build: impl FnOnce() -> Result<System, PointError>,
    ) -> Result<System, PointError> {
        let key = (at, settings.to_vec(), scale.to_string());
        let built = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(system) = built().get(&key) {
            return Ok(system.clone());
        }
        let system = build()?;
        built().insert(key, system.clone());
        Ok(system)
    }
}
