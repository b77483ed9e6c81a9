//! Design choices within a protocol: for example, the time at which stores leave an L2, and the lines dropped by a
//! bulk invalidation.

use crate::broken_rule::BrokenRule;
pub use crate::choice::Choice;
use crate::elision::RetainedLines;
use crate::nmoesi::{KernelEnd, NmoesiOptions};
use crate::topology::Class;
use crate::transfer::BrokenTransfer;
use tombolo_types::{Promise, Sectors, choice};
pub use tombolo_types::{StoreAllocation, Tracks};

choice! {
    /// The time at which a cache forwards a store; in an L2, stores beyond `.cta` go through to their scope's home.
    pub enum WritePolicy: Default {
        /// At once; its lines stay clean.
        Through = "through",
        /// On eviction or release; its lines may be dirty.
        Back = "back",
    }
}

choice! {
    /// The lines dropped from an L2 by a software bulk invalidation.
    pub enum BulkInvalidation: Default {
        /// All lines: HMG, section VI, read literally.
        All = "all",
        /// Lines whose home may be newer.
        Remote = "remote",
        /// No lines, and no release either: NUMA-GPU's upper bound in Figure 9, which promises nothing.
        None = "none",
    }
}

choice! {
    /// The place at which other modules' lines are read and written under VIPER.
    pub enum Remote: Default {
        /// At the home's memory: no L2 is looked up, and an L2 holds only lines from its own module. Source:
        /// CPElide, section V: remote reads are not cached.
        Memory = "memory",
        /// In the own L2, which holds lines touched by its SMs; then in the home's L2, then at the home's memory.
        /// Source: CPElide's public simulator.
        Cached = "cached",
        /// At the home's L2, which holds only lines from its own module. Source: assumed; a bound: with a single L2 for a
        /// line, no kernel boundary needs an operation.
        Home = "home",
    }
}

choice! {
    /// Requests from other modules at the L2 of their line's home, if this L2 is the ordering point.
    pub enum HomeL2: Default {
        /// The L2 serves them.
        Serves = "serves",
        /// They go on to memory, after the line's dirty bytes; a store or an atomic also drops the line's copy. Source:
        /// UMH, section 6.1.2: under zero-copy every access from the GPUs' L2 caches is made to the host memory.
        Snooped = "snooped",
    }
}

choice! {
    /// Effect of a store that misses in a write-back L2.
    pub enum StoreMiss: Default {
        /// The L2 keeps the written bytes alone.
        Mask = "mask",
        /// The L2 also fetches the rest of the written sectors. Source: UMH, Table II: a store by a GPU to an absent
        /// line sends a read request.
        Fetch = "fetch",
    }
}

choice! {
    /// L1 state after an acquiring poll that has not found its flag.
    pub enum Polls: Default {
        /// Kept: only the poll that finds the flag acquires. Source: assumed for the papers' protocols; no paper
        /// covers failed polls.
        KeepL1 = "keep-l1",
        /// Dropped by every acquiring poll beyond `.cta`. Source: SASS of an H100, with CCTL.IVALL in the loop, as in
        /// grid.sync().
        DropL1 = "drop-l1",
    }
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
    /// Returns true if pages may move: an L2 holds only lines from its own module's memory, and all accesses to these
    /// lines meet there.
    pub pages_may_move: fn(ProtocolOptions) -> bool,
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
        let nothing = options.bulk == BulkInvalidation::None || options.nmoesi.kernel_end == KernelEnd::Nothing;
        if nothing { Promise::Nothing } else { self.promise }
    }
}

/// Choices that HMG leaves to the implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProtocolOptions {
    /// L2 write policy. HMG evaluates write-through (section VI).
    pub write: WritePolicy,
    /// Set when an L2 notifies the home after dropping its last line in a region. HMG evaluates silent eviction.
    pub downgrade: bool,
    /// The lines dropped by a bulk invalidation.
    pub bulk: BulkInvalidation,
    /// Set when L1s obey acquires; unset in a variant of the ideal, which promises nothing.
    pub l1_coherent: bool,
    /// The effect of a store that finds neither copy nor entry.
    pub stores: StoreAllocation,
    /// The regions with entries in a directory.
    pub tracks: Tracks,
    /// The place at which other modules' lines are read and written.
    pub remote: Remote,
    /// Requests from other modules at their line's home.
    pub home_l2: HomeL2,
    /// Effect of a store that misses in a write-back L2.
    pub store_miss: StoreMiss,
    /// Sector layout: a miss always requests whole sectors of its line.
    pub sectors: Sectors,
    /// Aligned parts of a line that an L2 fetches from memory as a whole, without bytes that it has or awaits.
    pub fetches: Sectors,
    /// L1 state after a failed poll.
    pub polls: Polls,
    /// Choices within NMOESI.
    pub nmoesi: NmoesiOptions,
    /// The broken rule, if any.
    pub broken_rule: Option<BrokenRule>,
    /// The broken rule for transfers between host and device, if any.
    pub broken_transfer: Option<BrokenTransfer>,
}

impl Default for ProtocolOptions {
    fn default() -> ProtocolOptions {
        ProtocolOptions {
            write: WritePolicy::default(),
            downgrade: false,
            bulk: BulkInvalidation::default(),
            l1_coherent: true,
            stores: StoreAllocation::default(),
            tracks: Tracks::default(),
            remote: Remote::default(),
            home_l2: HomeL2::default(),
            store_miss: StoreMiss::default(),
            sectors: Sectors::default(),
            fetches: Sectors::new(1),
            polls: Polls::default(),
            nmoesi: NmoesiOptions::default(),
            broken_rule: None,
            broken_transfer: None,
        }
    }
}
