//! Designs: memory systems, described by a single option on every axis.
//!
//! An axis is a file in this crate, or an enum in crate `protocol`: its options, the keys that each option reads, and
//! the values it builds. A
//! design is a TOML file that chooses an option per axis (`links = "turning"`, or a table `[links]` with
//! `kind = "turning"` and the option's keys). Shipped designs are in `presets`. [`DesignConfig::build`] is the only
//! place that converts options into a model's inputs.
//!
//! ```
//! let mut hmg = tombolo_design::design("hmg")?;
//! hmg.set("links", "turning")?;
//! hmg.set("links.sample_time", "2500")?;
//! assert_eq!(hmg.check()?.links.sample_time(), 2500);
//! # Ok::<(), tombolo_machine::ConfigError>(())
//! ```
//!
//! | to add | new file | one line in |
//! | --- | --- | --- |
//! | a coherence protocol | in crate `protocol` | its catalogue: it is an option of the axis at once |
//! | an option of a protocol | - | `choice.rs` in crate `protocol`: its key, and the explorer's keywords |
//! | a capacity policy | in `capacity` | its table |
//! | another option | - | the axis, beside its declaration |
//! | a design | in `presets` | `preset.rs` |
//!
//! Not in this crate: the effect of an option. Rules about values are in crate `protocol`, times in crate `model`,
//! and crate `system` decides page locations from a program's streams.
//!
//! Read `axis.rs` next, then `links.rs`.

mod axis;
pub mod capacity;
pub mod coherence;
pub mod elision;
pub mod links;
mod model_input;
pub mod placement;
mod preset;
pub mod promises;
pub mod scheduling;
mod settings;
pub mod subscriptions;
mod write_policy;

pub use axis::{AxisOption, DesignAxis};
pub use capacity::Capacity;
pub use coherence::Coherence;
pub use elision::Elision;
pub use links::Links;
pub use model_input::{BuildError, ModelInput};
pub use placement::Placement;
pub use promises::Promises;
pub use scheduling::Scheduling;
pub use settings::apply;
pub use tombolo_protocol::elision::ReleaseTime;
pub use tombolo_protocol::options::{Polls, WritePolicy};

use serde::{Serialize, Serializer};
use std::sync::LazyLock;
use tombolo_machine::description::{NO_DESCRIPTION, list};
use tombolo_machine::preset::Preset;
use tombolo_machine::quantity::{Quantity, RecordValue};
use tombolo_machine::record::SerializedValue;
use tombolo_machine::section::{Reader, names};
use tombolo_machine::spelling::AxisInfo;
use tombolo_machine::tree::ConfigTable;
use tombolo_machine::{ConfigError, Conflict, Description, DescriptionKind, Key, PresetSummary};

/// Declares the axes with the derived configuration, reader, record and documentation. A file must choose an option
/// on each axis, unless the declaration gives a default.
macro_rules! axes {
    ($($(#[doc = $doc:literal])+ $axis:ident: $Axis:ty $(= $default:expr)?),+ $(,)?) => {
        /// A checked memory system.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct DesignConfig {
            /// Name of the preset, or of the user's file.
            pub name: String,
            /// A one-line description for lists.
            pub description: String,
            $($(#[doc = $doc])+ pub $axis: $Axis,)+
            /// The guarantees that a program may rely on.
            pub promises: Promises,
        }

        impl DesignConfig {
            fn from_file(file: &Reader<'_>) -> Result<DesignConfig, ConfigError> {
                Ok(DesignConfig {
                    name: file.get("name", None)?,
                    description: file.get("description", Some(NO_DESCRIPTION.to_owned()))?,
                    $($axis: axis::read(file, stringify!($axis), axis::default!($($default)?))?,)+
                    promises: file.get("promises", None)?,
                })
            }

            /// The first conflict between two options, with the reason.
            fn conflict(&self) -> Option<Conflict> {
                None
                    $(.or_else(|| DesignAxis::conflict(&self.$axis, stringify!($axis), self)))+
                    .or_else(|| promises::conflict(self))
            }
        }

        impl Serialize for DesignConfig {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let mut fields = serializer.serialize_struct("DesignConfig", 3 + AXES.len())?;
                fields.serialize_field("name", &self.name)?;
                fields.serialize_field("description", &self.description)?;
                $(fields.serialize_field(stringify!($axis), &axis::AxisRecord(&self.$axis))?;)+
                fields.serialize_field("promises", &SerializedValue(self.promises.print()))?;
                fields.end()
            }
        }

        /// The names of all axes, in the order used in files.
        pub const AXES: &[&str] = &[$(stringify!($axis)),+];

        /// The keys for each axis, in the order of [`AXES`].
        static KEYS: LazyLock<Vec<Vec<Key>>> =
            LazyLock::new(|| vec![$(axis::section::<$Axis>(concat!($($doc),+).trim_ascii_start(), || {
                let default: Option<$Axis> = axis::default!($($default)?);
                default.map(|axis| RecordValue::Text(DesignAxis::written(&axis).0.to_owned()))
            })),+]);

        fn axes() -> Vec<AxisInfo> {
            vec![$(AxisInfo { name: stringify!($axis), options: <$Axis as DesignAxis>::options() }),+]
        }
    };
}

axes! {
    /// Coherence protocol of the caches.
    coherence: Coherence,
    /// Removal of needless synchronisation at kernel boundaries.
    elision: Elision,
    /// Release time for a kernel's stores, if nothing is elided.
    boundary: ReleaseTime = ReleaseTime::EndThenLaunch,
    /// When an L1 forwards a store.
    l1_write: WritePolicy,
    /// When an L2 forwards a store.
    l2_write: WritePolicy,
    /// When the cache in front of memory (L3), if the machine has one, forwards a store.
    l3_write: WritePolicy = WritePolicy::Back,
    /// L1 caches under an acquiring poll that has not found its flag.
    polls: Polls = Polls::KeepL1,
    /// Division of an L2's ways between local data and remote data.
    capacity: Capacity,
    /// Module whose memory holds a page.
    placement: Placement,
    /// Module that runs a CTA.
    scheduling: Scheduling,
    /// Ability of links between modules and GPUs.
    links: Links,
}

axis::word_axis!(ReleaseTime);
axis::word_axis!(Polls);

/// The keys outside any axis.
const OWN_KEYS: &[Key] = &[
    Key::required::<String>("name", "Name of the preset, or of the user's file."),
    Key::optional::<String>("description", "One line for lists.", || Some(NO_DESCRIPTION.to_owned().print())),
    Key::required::<Promises>("promises", "What a program may rely on."),
];

/// Earlier spellings, each with the current spelling.
const ALIASES: &[(&str, &str)] = &[
    ("l2_capacity", "capacity"),
    ("cta_scheduling", "scheduling"),
    ("sample_time", "links.sample_time"),
    ("switch_time", "links.switch_time"),
    ("invalidate", "coherence.invalidate"),
    ("downgrade", "coherence.downgrade"),
    ("l1_coherent", "coherence.l1_coherent"),
    ("partition_sample", "capacity.sample_time"),
    ("partition_reset", "capacity.reset"),
];

impl DescriptionKind for DesignConfig {
    const KIND: &'static str = "design";

    fn sections() -> Vec<(&'static str, &'static [Key])> {
        let axes = AXES.iter().zip(KEYS.iter()).map(|(axis, keys)| (*axis, &keys[..]));
        std::iter::once(("", OWN_KEYS)).chain(axes).collect()
    }

    fn axes() -> Vec<AxisInfo> {
        axes()
    }

    fn aliases() -> &'static [(&'static str, &'static str)] {
        ALIASES
    }

    fn presets() -> &'static [Preset] {
        preset::DESIGNS
    }

    fn read(tree: &ConfigTable) -> Result<DesignConfig, ConfigError> {
        let reader = Reader { table: tree, section: "", clock: axis::clock() };
        reader.refuse_unknown(&[&names(OWN_KEYS)[..], AXES].concat())?;
        let design = DesignConfig::from_file(&reader)?;
        design.conflict().map_or(Ok(design), |conflict| Err(conflict.at(tree)))
    }
}

/// The description for the design called `name`: a preset, or the path to a `.toml` file.
///
/// # Errors
/// Fails if the design does not exist, or cannot be read.
pub fn design(name: &str) -> Result<Description<DesignConfig>, ConfigError> {
    Description::named(name)
}

/// The shipped designs.
pub fn list_designs() -> Vec<PresetSummary> {
    list::<DesignConfig>()
}
