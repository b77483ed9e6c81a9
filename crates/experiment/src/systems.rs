//! Machines and designs of points, each built once: points of one plan differ in their workload more often than in these.

use crate::error::PointError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tombolo_design::DesignConfig;
use tombolo_machine::{MachineConfig, Scale};

/// A machine, scaled, and a design.
pub(crate) type System = (Arc<MachineConfig>, Arc<DesignConfig>);

/// Indices of a machine and a design of a plan, settings, and a scale.
type Key = ((usize, usize), Vec<String>, String);

/// Systems built so far.
#[derive(Default)]
pub(crate) struct Systems(Mutex<BTreeMap<Key, System>>);

impl Systems {
    /// System of a machine and a design, by index, with settings at a scale. `build` makes it the first time.
    ///
    /// # Errors
    /// Those of `build`, which are not kept.
    pub(crate) fn get_or_build(
        &self,
        at: (usize, usize),
        settings: &[String],
        scale: Scale,
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
