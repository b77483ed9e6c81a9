//! Protocols between the L2 caches of modules, written as rules.
//!
//! A protocol states what differs between protocols: which lines an L2 may keep, whether requests go by a
//! representative of each GPU, whether homes keep a directory, and what acquire and release do. The flow of loads, stores,
//! atomics and invalidations is shared. A protocol with another flow implements [`Coherence`] and [`ProtocolFamily`].
//!
//! A protocol between caches that answer each other, with an owner that supplies what memory lacks, implements
//! [`client_home::Nodes`] and is registered as [`ClientHome`]. Its caches hold blocks of host memory in GPU memory, as under
//! NMOESI. `examples/own/src/msi.rs` is MSI: states, messages, and a directory next to host memory.
//!
//! The simulator and the model checker run the same rules: `run --check`, `check` and `check --timed` judge a registered
//! protocol against the memory model that it promises, and its broken rules are tried like those of shipped protocols.
//!
//! Flat software coherence as rules, registered under a name that a design's `coherence` can name:
//! ```
//! use tombolo::protocol::*;
//!
//! #[derive(Clone, Copy)]
//! struct DropAll;
//!
//! impl Rules for DropAll {
//!     const HIERARCHICAL: bool = false;
//!     const DIRECTORY: bool = false;
//!     const PROMISE: Promise = Promise::Ptx;
//!     const ABOUT: &'static str = "an acquire drops the L2";
//!     const CHOICES: &'static [Choice] = &[];
//!
//!     fn caches(_: Class, _: &ProtocolOptions) -> bool {
//!         true
//!     }
//!
//!     fn holds(_: &ProtocolOptions) -> RetainedLines {
//!         RetainedLines::All
//!     }
//!
//!     fn acquire(sync: Sync, _: &ProtocolOptions) -> &'static [Phase] {
//!         const OWN: Phase = Phase::new(Members::Own, Action::Invalidate(ClassSet::ALL));
//!         const ALL: Phase = Phase::new(Members::All, Action::Invalidate(ClassSet::ALL));
//!         match sync {
//!             Sync::Thread(Scope::Cta) => &[],
//!             Sync::Thread(Scope::Gpu | Scope::Sys) => &[OWN],
//!             Sync::Kernel => &[ALL],
//!         }
//!     }
//!
//!     fn release(sync: Sync, _: &ProtocolOptions) -> &'static [Phase] {
//!         const OWN: Phase = Phase::new(Members::Own, Action::DrainStores(Scope::Sys));
//!         const ALL: Phase = Phase::new(Members::All, Action::DrainStores(Scope::Sys));
//!         match sync {
//!             Sync::Thread(Scope::Cta) => &[],
//!             Sync::Thread(Scope::Gpu | Scope::Sys) => &[OWN],
//!             Sync::Kernel => &[ALL],
//!         }
//!     }
//! }
//!
//! /// The command line with the protocol, and a design of that name that uses it.
//! fn command_line() -> std::process::ExitCode {
//!     let design = "base = \"software-flat\"\ncoherence = \"drop-all\"\n";
//!     tombolo::App::new().protocol::<DropAll>("drop-all").design("drop-all", design).execute()
//! }
//! ```

pub use tombolo_protocol::block::{BlockData, ByteSet};
pub use tombolo_protocol::client_home;
pub use tombolo_protocol::coherence::{Coherence, LineSlot, OrderingPoint, Protocol, Refusal};
pub use tombolo_protocol::effects::{Delivery, Effects};
pub use tombolo_protocol::elision::RetainedLines;
pub use tombolo_protocol::options::{BulkInvalidation, Choice, ProtocolFacts, ProtocolOptions, WritePolicy};
pub use tombolo_protocol::plan::{Action, Members, Phase, Sync};
pub use tombolo_protocol::registry::{ClientHome, NameTaken, ProtocolFamily};
pub use tombolo_protocol::topology::{Class, ClassSet};
pub use tombolo_protocol::vi::{Rules, Vi};
pub use tombolo_types::{ModuleId, ModuleSet, Promise, Scope};

/// Makes a protocol known by its name to the simulator, the model checker and the attack of the timing model.
///
/// # Errors
/// Fails if a protocol has this name already.
pub(crate) fn register<F: ProtocolFamily>(name: &'static str) -> Result<(), NameTaken> {
    tombolo_protocol::registry::register::<F>(name)?;
    tombolo_system::run::register::<F>(name);
    tombolo_check::explore::register::<F>(name);
    tombolo_attack::register::<F>(name);
    Ok(())
}
