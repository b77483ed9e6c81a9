//! Design choices within a protocol: for example, the time at which stores leave an L2, and the lines dropped by a
//! bulk invalidation.

use crate::broken_rule::BrokenRule;
use crate::elision::RetainedLines;
use crate::nmoesi::NmoesiOptions;
use crate::topology::Class;
use crate::transfer::BrokenTransfer;
use tombolo_types::{Promise, Sectors};

/// The time at which a store leaves an L2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WritePolicy {
    /// Immediately.
    #[default]
    Through,
    /// On eviction or release; stores beyond `.cta` go through to their scope's home.
    Back,
}

/// The lines dropped from an L2 by a software bulk invalidation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BulkInvalidation {
    /// All lines: HMG, section VI, read literally.
    #[default]
    All,
    /// Lines whose home may be newer.
    Remote,
    /// No lines, and no release either: NUMA-GPU's upper bound in Figure 9, which promises nothing.
    None,
}

/// The effect of a store on an L2 without a copy, and on a directory without an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StoreAllocation {
    /// The bytes stay in each L2 on the path, and homes record the sender: HMG, Table I, read literally.
    #[default]
    Literal,
    /// The bytes stay at the system home only, and homes record no sender: only readers are sharers.
    SharersOnly,
}

/// The regions that have entries in a home's directory. Effect on an entry: [`crate::directory::transition`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tracks {
    /// Regions shared by another module or GPU: HMG, Table I.
    #[default]
    Shared,
    /// Additionally, regions with a line in the home's own L2, installed by any requester. A replaced entry evicts
    /// these lines along with it. This is a reading of CPElide's HMG, which gives the number of lines per entry but
    /// not the lines.
    All,
}

/// The place at which other modules' lines are read and written, if memory is the ordering point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Remote {
    /// At the home's memory: no L2 is looked up, and an L2 holds only lines from its own module.
    #[default]
    Memory,
    /// In the own L2, which holds lines touched by its SMs; then in the home's L2, then at the home's memory.
    Cached,
}

/// L1 state after an acquiring poll that has not found its flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Polls {
    /// Kept: only the poll that finds the flag acquires.
    #[default]
    KeepL1,
    /// Dropped, as after every acquiring load.
    DropL1,
}

/// A protocol option open to the user, if it has any effect on the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// [`ProtocolOptions::bulk`].
    BulkInvalidation,
    /// [`ProtocolOptions::downgrade`].
    Downgrade,
    /// [`ProtocolOptions::keep_l1`].
    KeepL1,
    /// [`ProtocolOptions::write`].
    WriteBack,
    /// [`ProtocolOptions::remote`].
    Remote,
    /// [`NmoesiOptions::peer_transfer`].
    PeerTransfer,
    /// [`NmoesiOptions::silent_eviction`].
    SilentEviction,
    /// [`NmoesiOptions::kernel_end`].
    KernelEnd,
}

/// Facts known about a protocol before it runs.
#[derive(Clone, Copy, Debug)]
pub struct ProtocolFacts {
    /// A one-line description for lists.
    pub about: &'static str,
    /// The promise guaranteed with default options.
    pub promise: Promise,
    /// Set when homes keep a directory of sharers.
    pub directory: bool,
    /// Set when the machine includes a host, with its own cache, besides the GPUs.
    pub host: bool,
    /// Set when traffic leaving a GPU routes through a representative module, whose L2 holds lines for the whole
    /// GPU.
    pub hierarchical: bool,
    /// Returns true if lines in this class may live in an L2.
    pub caches: fn(Class, &ProtocolOptions) -> bool,
    /// Dirty or stale contents possible in a module's L2 at a kernel boundary.
    pub holds: fn(&ProtocolOptions) -> RetainedLines,
    /// The options open to the user.
    pub choices: &'static [Choice],
}

impl ProtocolFacts {
    /// True if `choice` has any effect.
    pub fn offers(&self, choice: Choice) -> bool {
        self.choices.contains(&choice)
    }

    /// The promise guaranteed with these options.
    pub fn promise_with(&self, options: &ProtocolOptions) -> Promise {
        if options.bulk == BulkInvalidation::None { Promise::Nothing } else { self.promise }
    }
}

/// Choices that HMG leaves to the implementation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProtocolOptions {
    /// L2 write policy. HMG evaluates write-through (section VI).
    pub write: WritePolicy,
    /// Set when an L2 notifies the home after dropping its last line in a region. HMG evaluates silent eviction.
    pub downgrade: bool,
    /// The lines dropped by a bulk invalidation.
    pub bulk: BulkInvalidation,
    /// Set when L1s are never invalidated: a variant of the ideal, which promises nothing.
    pub keep_l1: bool,
    /// The effect of a store that finds neither copy nor entry.
    pub stores: StoreAllocation,
    /// The regions with entries in a directory.
    pub tracks: Tracks,
    /// The place at which other modules' lines are read and written.
    pub remote: Remote,
    /// Sector layout: a miss always requests whole sectors of its line.
    pub sectors: Sectors,
    /// L1 state after a failed poll.
    pub polls: Polls,
    /// Choices within NMOESI.
    pub nmoesi: NmoesiOptions,
    /// The broken rule, if any.
    pub broken_rule: Option<BrokenRule>,
    /// The broken rule for transfers between host and device, if any.
    pub broken_transfer: Option<BrokenTransfer>,
}
