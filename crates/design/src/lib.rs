//! Designs: memory systems, each one option on every axis.
//!
//! An axis is a file here: its options, the keys that each of them reads, and what it builds. A design is a TOML file that
//! picks one option an axis (`links = "turning"`, or a table `[links]` with `kind = "turning"` and keys of that option).
//! Designs that ship are in `presets`. [`DesignConfig::build`] is the one place where options become what a model needs.
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
//! | a capacity policy | in `capacity` | its table |
//! | another option | - | the axis, beside its declaration |
//! | a design | in `presets` | `preset.rs` |
//!
//! Not here: how an option acts. Rules of values are in crate `protocol`, times in crate `model`, and which page goes where
//! is decided from a program's streams in crate `system`.
//!
//! Read `axis.rs` next, then `links.rs`.

mod axis;
pub mod boundary;
mod built;
pub mod capacity;
pub mod coherence;
pub mod elision;
pub mod links;
pub mod placement;
pub mod polls;
mod preset;
pub mod promises;
pub mod scheduling;
mod settings;
pub mod subscribed;
pub mod write_policy;

pub use axis::{Axis, Keyed};
pub use boundary::Boundary;
pub use built::{Built, Unfit};
pub use capacity::Capacity;
pub use coherence::Coherence;
pub use elision::Elision;
pub use links::Links;
pub use placement::Placement;
pub use polls::Polls;
pub use promises::Promises;
pub use scheduling::Scheduling;
pub use settings::apply;
pub use write_policy::WritePolicy;

use serde::{Serialize, Serializer};
use std::sync::LazyLock;
use tombolo_machine::description::{NO_DESCRIPTION, list};
use tombolo_machine::preset::Preset;
use tombolo_machine::quantity::{Plain, Quantity};
use tombolo_machine::section::{Reader, names};
use tombolo_machine::spelling::AxisInfo;
use tombolo_machine::tree::Table;
use tombolo_machine::{ConfigError, Conflict, Described, Description, Key, Listed};

/// Declares the axes: the configuration, its reader, its record and its documentation. A file must choose on each axis, unless
/// a default follows it.
macro_rules! axes {
    ($($(#[doc = $doc:literal])+ $axis:ident: $Axis:ty $(= $default:expr)?),+ $(,)?) => {
        /// A memory system, checked.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct DesignConfig {
            /// Name of the preset, or of the user's file.
            pub name: String,
            /// One line for lists.
            pub description: String,
            $($(#[doc = $doc])+ pub $axis: $Axis,)+
            /// What a program may rely on.
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

            /// The first option that cannot stand beside the others, with the reason.
            fn conflict(&self) -> Option<Conflict> {
                None
                    $(.or_else(|| Axis::conflict(&self.$axis, stringify!($axis), self)))+
                    .or_else(|| promises::conflict(self))
            }
        }

        impl Serialize for DesignConfig {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let mut fields = serializer.serialize_struct("DesignConfig", 3 + AXES.len())?;
                fields.serialize_field("name", &self.name)?;
                fields.serialize_field("description", &self.description)?;
                $(fields.serialize_field(stringify!($axis), &axis::Written(&self.$axis))?;)+
                fields.serialize_field("promises", &self.promises.print())?;
                fields.end()
            }
        }

        /// The names of the axes, in the order of files.
        pub const AXES: &[&str] = &[$(stringify!($axis)),+];

        /// The keys of each axis, in the order of [`AXES`].
        static KEYS: LazyLock<Vec<Vec<Key>>> =
            LazyLock::new(|| vec![$(axis::section::<$Axis>(concat!($($doc),+).trim_ascii_start(), || {
                let default: Option<$Axis> = axis::default!($($default)?);
                default.map(|axis| Plain::Text(Axis::written(&axis).0.to_owned()))
            })),+]);

        fn axes() -> Vec<AxisInfo> {
            vec![$(AxisInfo { name: stringify!($axis), options: <$Axis as Axis>::options() }),+]
        }
    };
}

axes! {
    /// Who keeps caches coherent, and how.
    coherence: Coherence,
    /// Who removes needless synchronisation at kernel boundaries.
    elision: Elision,
    /// When a kernel's stores are released, where nothing is elided.
    boundary: Boundary = Boundary::EndThenLaunch(boundary::EndThenLaunch {}),
    /// When an L1 passes a store on.
    l1_write: WritePolicy,
    /// When an L2 passes a store on.
    l2_write: WritePolicy,
    /// When the cache in front of memory (L3), where a machine has one, passes a store on.
    l3_write: WritePolicy = WritePolicy::Back(write_policy::Back {}),
    /// L1 caches under an acquiring poll that has not found its flag.
    polls: Polls = Polls::KeepL1(polls::KeepL1 {}),
    /// How an L2's ways are shared between data of its own module and of others.
    capacity: Capacity,
    /// Which module a page's memory is on.
    placement: Placement,
    /// Which module runs a CTA.
    scheduling: Scheduling,
    /// What the links between modules and GPUs can do.
    links: Links,
}

/// The keys outside any axis.
const OWN_KEYS: &[Key] = &[
    Key::required::<String>("name", "Name of the preset, or of the user's file."),
    Key::optional::<String>("description", "One line for lists.", || Some(NO_DESCRIPTION.to_owned().print())),
    Key::required::<Promises>("promises", "What a program may rely on."),
];

/// Earlier spellings, each with today's.
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

impl Described for DesignConfig {
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

    fn read(tree: &Table) -> Result<DesignConfig, ConfigError> {
        let reader = Reader { table: tree, section: "", clock: axis::clock() };
        reader.refuse_unknown(&[&names(OWN_KEYS)[..], AXES].concat())?;
        let design = DesignConfig::from_file(&reader)?;
        design.conflict().map_or(Ok(design), |conflict| Err(conflict.at(tree)))
    }
}

/// The description of the design called `name`: a preset, or the path of a `.toml` file.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn design(name: &str) -> Result<Description<DesignConfig>, ConfigError> {
    Description::named(name)
}

/// The designs that ship.
pub fn list_designs() -> Vec<Listed> {
    list::<DesignConfig>()
}
