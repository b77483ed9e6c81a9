//! Checked descriptions of machines, and the reader for all descriptions.
//!
//! A machine (hardware: [`MachineConfig`]) is a TOML file. A design (a memory system: crate `design`) is a TOML
//! file too, and this crate's reader reads both. Files are parsed into a tree that records the line of every value.
//! A file may build on another file (`base = "hmg-4x4"`), and settings (`l2.bytes=6MB`) replace values in the tree.
//! The result is converted to plain integers with units in their types, checked, and, if requested, scaled by an
//! exact fraction. This crate resolves every value that a simulation needs, so downstream crates never read text.
//!
//! ```
//! let mut hmg = tombolo_machine::machine("hmg-4x4")?;
//! hmg.set("gpu_link.rate", "400GB/s")?;
//! let small = hmg.check()?.scaled("1/16".parse()?)?;
//! assert_eq!((small.topology.sms(), small.gpu_link.rate.0), (32, 25_000_000_000));
//! # Ok::<(), tombolo_machine::ConfigError>(())
//! ```
//!
//! Not in this crate: designs (crate `design`), and the timing model (crate `model`).
//!
//! Units in files:
//! - Sizes `128B`, `64KB`, `3MB`, `8GB`, `1TB` are binary (1 KB = 1024 B).
//! - Rates `512GB/s`, `2TB/s` are decimal; `64B/cycle` counts cycles of the SM clock; `infinite` means no limit.
//! - Times are `12ns` (or ps, us, ms, s), or `28 cycles` of the SM clock.
//! - Frequencies are `1.3GHz`, fractions `1/2`, energies `3.92pJ` (or nJ, fJ, aJ).
//!
//! Read [`mod@machine`] next, then `presets/machines/hmg-4x4.toml`.

mod blame;
mod caches;
mod check;
pub mod coherent_host;
pub mod description;
pub mod directory_cost;
mod energy;
pub mod error;
mod fabric;
mod host_check;
pub mod machine;
mod memory;
pub mod preset;
pub mod record;
mod resolved;
mod routes;
pub mod scale;
pub mod section;
pub mod sharing;
pub mod spelling;
pub mod sram;
pub mod tree;

pub use check::{Conflict, MISS_LEVELS, MISS_LIMIT};
pub use coherent_host::CoherentHost;
pub use description::{
    DescribedValue, Description, DescriptionKind, OptionalSection, PresetSummary, list, list_machines, machine,
};
pub use error::ConfigError;
pub use machine::MachineConfig;
pub use quantity::{Fraction, ValueForm};
pub use resolved::ResolvedValue;
pub use routes::{DirectedLink, Routes};
pub use scale::MachineScale;
pub use section::Key;
pub use tombolo_types::{choice, quantity};
