//! Coherence rules as pure functions: every rule that decides a load's return value.
//!
//! The timing model (`model`) and the explorer (`check`) drive *the same* functions. The timing model supplies real
//! arrays and queues; the explorer supplies tiny caches and tries every interleaving. The timed protocol is
//! therefore exactly the verified protocol. State lives in the host: a function receives a single slot by value,
//! changes it, and names its effects. Time, counters and randomness are absent from this crate.
//!
//! - [`data`]: contents carried by messages: nothing when timing, values when checking. [`block`]: contents and
//!   byte sets for blocks.
//! - [`effects`]: building blocks shared by all protocols: protocol-owned types, four effects, channels.
//!   [`coherence`]: the interface to valid/invalid caches: [`Coherence`], its types and refusals.
//! - [`vi`]: the flow of loads, stores, atomics and invalidations through valid/invalid L2 caches, shared by every
//!   protocol listed next; [`directory`] implements HMG's Table I.
//! - [`no_remote_caching`], [`memory_side`], [`peer`], [`software_flat`], [`software_hierarchical`], [`nhcc`],
//!   [`hmg`], [`viper`], [`ideal`]: a protocol each. A protocol states the caches a line may live in, the node at
//!   which a scope is served, and the actions of acquire and release.
//! - [`client_home`]: the interface to protocols whose caches answer each other, and to block homes. [`nmoesi`]: UMH's
//!   protocol.
//! - [`options`]: design choices within a protocol. [`mod@choice`]: keys and keywords for the choices open to the user.
//!   [`catalogue`]: all protocols by name.
//! - [`host`]: host duties around a step: parking, serving, filling, bulk invalidation, write-backs. [`drain`]:
//!   operations awaited by a release, and their successors after forwarding.
//! - [`l1`]: the write-through L1 used under all protocols. [`front`]: events a thread waits for. [`sm_rules`]: a protocol's
//!   rules for both. [`plan`]: phases of an acquire or a release beyond the SM. [`boundary`]: ordered phases between two kernels.
//! - [`elision`]: selection of the modules that take part in a boundary, decided by a table of kernel footprints.
//! - [`paging`]: pages that migrate between memories, with the steps that precede a change of home.
//!   [`publication`]: pages replicated at each subscriber, with stores sent to every replica.
//! - [`copies`]: copies between GPUs behind kernels, for memory of which each GPU has its own copy.
//! - [`transfer`]: host copies and host accesses between kernels.
//! - [`broken_rule`]: deliberately broken rules, used to show that the explorer catches them.
//!
//! Suggested order: [`coherence`], then [`vi`], then [`hmg`].

pub mod block;
pub mod boundary;
pub mod broken_rule;
pub mod catalogue;
pub mod choice;
pub mod client_home;
pub mod coherence;
pub mod copies;
pub mod data;
pub mod directory;
pub mod drain;
pub mod effects;
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
pub mod options;
pub mod paging;
pub mod peer;
pub mod plan;
pub mod publication;
pub mod registry;
pub mod sm_rules;
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
    Coherence, L2Event, LineSlot, LineState, Pending, Protocol, Refusal, Reply, Request, Requester, ValidInvalid,
};
pub use data::Data;
pub use directory::Sharers;
pub use effects::Effects;
pub use plan::{Action, Collector, Members, Phase, PhasePlan};
pub use topology::{Class, ClassSet, Homes, ModuleSet, Topology};
