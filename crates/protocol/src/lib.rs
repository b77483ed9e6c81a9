//! Every rule that decides what a load may return, as pure functions.
//!
//! The timing model (`model`) and the explorer (`check`) drive *the same* functions: the one with real
//! arrays and queues, the other with tiny caches and every interleaving. What is timed is what is proved.
//! State lives in the host; a function sees one slot of it by value, changes that, and names its effects.
//! No time, no counters, no randomness here.
//!
//! - [`data`]: what a message carries: nothing when timing, values when checking. [`block`]: the same of blocks, and their bytes.
//! - [`node`]: what every protocol is made of: types of its own, four effects, channels. [`coherence`]: the boundary of
//!   valid/invalid caches: [`Coherence`], its types and refusals.
//! - [`vi`]: the flow of loads, stores, atomics and invalidations through valid/invalid L2 caches, shared
//!   by every protocol below; [`directory`] is Table I of HMG.
//! - [`no_remote_caching`], [`memory_side`], [`peer`], [`software_flat`], [`software_hierarchical`], [`nhcc`],
//!   [`hmg`], [`viper`], [`ideal`]: one protocol each: where a line may live, where a scope is served, what acquire and release do.
//! - [`nodes`]: the boundary of protocols whose caches answer each other, and the homes of their blocks. [`nmoesi`]: UMH's.
//! - [`options`]: what a design chooses within them. [`catalogue`]: all of them by name.
//! - [`host`]: what a host does around a step: parking, serving, filling, bulk invalidation, write-backs.
//!   [`drain`]: what a release waits for, and what a wait moves on to.
//! - [`l1`]: the write-through L1 under all of them. [`front`]: what a thread waits for. [`plan`]: the
//!   steps of an acquire or a release beyond the SM. [`boundary`]: those between two kernels, in order.
//! - [`elision`]: which modules take part in a boundary, decided by a table of what a kernel uses.
//! - [`paging`]: pages that move between memories: what is done before a page has another home. [`publication`]: pages with a
//!   replica at each subscriber, to whom stores are sent.
//! - [`transfer`]: copies and accesses of the host between kernels.
//! - [`broken_rule`]: deliberately broken rules, for showing that the explorer catches them.
//!
//! Read [`coherence`], then [`vi`], then [`hmg`].

pub mod block;
pub mod boundary;
pub mod broken_rule;
pub mod catalogue;
pub mod coherence;
pub mod data;
pub mod directory;
pub mod drain;
pub mod elision;
pub mod front;
pub mod hmg;
pub mod host;
pub mod ideal;
pub mod l1;
pub mod memory_side;
pub mod nhcc;
pub mod nmoesi;
pub mod no_remote_caching;
pub mod node;
pub mod nodes;
pub mod options;
pub mod paging;
pub mod peer;
pub mod plan;
pub mod publication;
pub mod software_flat;
pub mod software_hierarchical;
pub mod topology;
pub mod transfer;
pub mod vi;
pub mod viper;

pub use block::{BlockData, ByteSet};
pub use broken_rule::BrokenRule;
pub use catalogue::PROTOCOLS;
pub use coherence::{
    Coherence, Event, LineState, Pending, Protocol, Refusal, Reply, Request, Requester, Slot, ValidInvalid,
};
pub use data::Data;
pub use directory::Sharers;
pub use node::Effects;
pub use plan::{Action, Collector, Members, Phase, Plan};
pub use topology::{Class, ClassSet, Homes, ModuleSet, Topology};
