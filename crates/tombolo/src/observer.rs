//! Observers of a user's crate. A run reports launches, memory accesses, synchronisation and packet arrivals to each
//! observer, and takes the same time as without observers.
//!
//! A type implements [`Observer`] with a method for each kind of event to observe.
//! [`App::observer`](crate::App::observer) names the type for `run --observe NAME`: after the run, the observer is
//! serialised into the run's document as `observed.NAME`.
//! [`Simulation::observe`](crate::simulation::Simulation::observe) adds an observer to a run from Rust. Observers, checks,
//! latencies, timelines and boundaries combine freely.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use tombolo::observer::{LineAccess, Observer, WarpPlace};
//! use tombolo::simulation::{Setup, Simulation};
//!
//! /// Bytes stored by each GPU.
//! #[derive(Default)]
//! struct StoredBytes(std::collections::BTreeMap<u8, u64>);
//!
//! impl Observer for StoredBytes {
//!     fn stored(&mut self, by: WarpPlace, access: LineAccess) {
//!         *self.0.entry(by.gpu.0).or_default() += u64::from(access.bytes);
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let spec = Setup::new("hmg-4x4", "hmg").scale("1/32").workload("triad,elements=65536,iterations=2")?;
//! let stored = Arc::new(Mutex::new(StoredBytes::default()));
//! Simulation::new(&spec).observe(stored.clone()).run()?;
//! // Two launches each store 8 bytes per element of the scaled input.
//! assert_eq!(stored.lock().unwrap().0.values().sum::<u64>(), 2 * 8 * 65536 / 32);
//! # Ok(())
//! # }
//! ```

use crate::failure::CommandFailure;
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

pub use tombolo_system::observer::{LineAccess, Observer, PacketArrival, SharedObserver, WarpPlace};
pub use tombolo_types::{GpuId, Mask, ModuleId, Ps, Scope, SmId};

/// A named observer of a single run, and its report.
pub(crate) struct Observation {
    pub(crate) name: &'static str,
    pub(crate) observer: SharedObserver,
    /// Serialises the observer.
    report: Box<dyn Fn() -> serde_json::Result<Value>>,
}

impl Observation {
    fn new<O: Observer + Default + Serialize + 'static>(name: &'static str) -> Observation {
        let observer = Arc::new(Mutex::new(O::default()));
        let told = Arc::clone(&observer);
        let report = move || serde_json::to_value(&*told.lock().unwrap_or_else(PoisonError::into_inner));
        Observation { name, observer, report: Box::new(report) }
    }

    /// Serialises the observer after the run.
    pub(crate) fn report(&self) -> Result<Value, CommandFailure> {
        (self.report)().map_err(|error| wrong(self.name, format!("it cannot be written as JSON: {error}")))
    }
}

/// An observer's name, and the function that creates an observer for a run.
type Maker = (&'static str, fn(&'static str) -> Observation);

/// Registered observers, in the order of their registration.
static REGISTERED: RwLock<Vec<Maker>> = RwLock::new(Vec::new());

fn wrong(name: &str, reason: String) -> CommandFailure {
    CommandFailure::Argument { flag: "--observe", value: name.to_owned(), reason }
}

/// Makes an observer known by its name.
///
/// # Errors
/// Fails if an observer has this name already.
pub(crate) fn register<O: Observer + Default + Serialize + 'static>(name: &'static str) -> Result<(), CommandFailure> {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if registered.iter().any(|(known, _)| *known == name) {
        return Err(wrong(name, "an observer of this name is there already".to_owned()));
    }
    registered.push((name, Observation::new::<O>));
    Ok(())
}

/// Reason for refusing a name other than the `known` names.
fn unknown(known: &[&str]) -> String {
    let there = if known.is_empty() { "there is none".to_owned() } else { format!("there are {}", known.join(", ")) };
    format!("no observer has this name; {there}, and a crate of your own adds them (`App::observer`)")
}

/// A new observer of each name.
///
/// # Errors
/// Fails if no observer has a name; the message lists all names.
pub(crate) fn observations(names: &[String]) -> Result<Vec<Observation>, CommandFailure> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let make = |name: &String| match registered.iter().find(|(known, _)| known == name) {
        Some((known, make)) => Ok(make(known)),
        None => Err(wrong(name, unknown(&registered.iter().map(|(known, _)| *known).collect::<Vec<_>>()))),
    };
    names.iter().map(make).collect()
}
