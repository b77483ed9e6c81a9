//! What a design chooses within a valid/invalid protocol: when stores leave an L2, what bulk invalidation drops.

use crate::broken_rule::BrokenRule;
use crate::elision::Holds;
use crate::nmoesi::NmoesiOptions;
use crate::topology::Class;
use crate::transfer::BrokenTransfer;
use tombolo_types::{Promise, Sectors};

/// When a store leaves an L2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WritePolicy {
    /// At once.
    #[default]
    Through,
    /// When evicted or released; stores beyond `.cta` go through to the home of their scope.
    Back,
}

/// Which lines of an L2 a software bulk invalidation drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BulkInvalidation {
    /// All of them: HMG, section VI, read literally.
    #[default]
    All,
    /// Those whose home may be newer.
    Remote,
    /// None, and nothing is released: NUMA-GPU's upper bound in Figure 9, which promises nothing.
    None,
}

/// What a store does to an L2 and a directory where it finds no copy and no entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StoreAllocation {
    /// Its bytes stay in each L2 that it passes, and homes record who sent it: HMG, Table I, read literally.
    #[default]
    Literal,
    /// Its bytes stay at its system home alone, and homes record nobody for it: only readers are sharers.
    SharersOnly,
}

/// Which regions a home's directory has entries for. What each does to an entry: [`crate::directory::transition`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tracks {
    /// Those that another module or GPU shares: HMG, Table I.
    #[default]
    Shared,
    /// Also those of which its own L2 holds a line, whoever put it there. An entry that is replaced takes these lines with
    /// it. CPElide's HMG, read so: it says how many lines an entry covers and not which.
    All,
}

/// Where lines of other modules are read and written, where memory is the ordering point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Remote {
    /// At the memory of their home: no L2 is looked into, and an L2 holds lines of its own module alone.
    #[default]
    Memory,
    /// In the own L2, which holds what its SMs touch; then in that of their home, then at its memory.
    Cached,
}

/// State of an L1 behind an acquiring poll that has not found its flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Polls {
    /// Kept: only the poll that finds the flag acquires.
    #[default]
    KeepL1,
    /// Dropped, as behind every acquiring load.
    DropL1,
}

/// What a user may choose of a protocol, where it makes a difference there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// [`Options::bulk`].
    BulkInvalidation,
    /// [`Options::downgrade`].
    Downgrade,
    /// [`Options::keep_l1`].
    KeepL1,
    /// [`Options::write`].
    WriteBack,
    /// [`Options::remote`].
    Remote,
    /// [`NmoesiOptions::peer_transfer`].
    PeerTransfer,
    /// [`NmoesiOptions::silent_eviction`].
    SilentEviction,
    /// [`NmoesiOptions::kernel_end`].
    KernelEnd,
}

/// What is known of a protocol before it runs.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// One line for lists.
    pub about: &'static str,
    /// What it guarantees with the default options.
    pub promise: Promise,
    /// Whether homes keep a directory of sharers.
    pub directory: bool,
    /// Whether its machine has a host, with a cache of its own, beside the GPUs.
    pub host: bool,
    /// Whether what leaves a GPU goes by a module of it that stands for all: its L2 holds lines for the others.
    pub hierarchical: bool,
    /// Whether lines of this class may live in an L2.
    pub caches: fn(Class, &Options) -> bool,
    /// What a module's L2 may hold dirty or stale at a kernel's boundary.
    pub holds: fn(&Options) -> Holds,
    /// What may be chosen.
    pub choices: &'static [Choice],
}

impl Facts {
    /// Whether `choice` makes a difference.
    pub fn offers(&self, choice: Choice) -> bool {
        self.choices.contains(&choice)
    }

    /// What it guarantees with these options.
    pub fn promise_with(&self, options: &Options) -> Promise {
        if options.bulk == BulkInvalidation::None { Promise::Nothing } else { self.promise }
    }
}

/// Choices that HMG leaves to the implementation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// L2 write policy. HMG evaluates write-through (section VI).
    pub write: WritePolicy,
    /// Whether an L2 that drops its last line of a region tells the home. HMG evaluates silent eviction.
    pub downgrade: bool,
    /// Which lines a bulk invalidation drops.
    pub bulk: BulkInvalidation,
    /// Whether L1s are never invalidated: a variant of the ideal, which promises nothing.
    pub keep_l1: bool,
    /// What a store does where it finds no copy and no entry.
    pub stores: StoreAllocation,
    /// Which regions a directory has entries for.
    pub tracks: Tracks,
    /// Where lines of other modules are read and written.
    pub remote: Remote,
    /// How lines are divided: what misses is asked for in whole sectors.
    pub sectors: Sectors,
    /// State of an L1 behind a failed poll.
    pub polls: Polls,
    /// What is chosen within NMOESI.
    pub nmoesi: NmoesiOptions,
    /// The broken rule, if any.
    pub broken_rule: Option<BrokenRule>,
    /// The broken rule of transfers between host and device, if any.
    pub broken_transfer: Option<BrokenTransfer>,
}
