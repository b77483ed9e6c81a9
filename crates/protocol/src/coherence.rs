//! Interface between a valid/invalid L2 protocol and its host: [`ValidInvalid`] names the types on both sides.
//!
//! A host (the timing model, the explorer) keeps the state for each L2: lines, pending misses with their waiters
//! and parked requests, and directory entries by region. For each event it passes the relevant slot by value to
//! [`Coherence::step`], and stores the result afterwards. A protocol relies on these host duties:
//!
//! 1. Channels between two modules deliver in the order declared by the protocol: [`Coherence::channels`].
//! 2. Each L2 has at most one pending miss per line, which grows by the bytes requested later. When some bytes
//!    arrive, the host issues [`L2Event::Fill`], then [`L2Event::Serve`] for each waiter in arrival order, for the
//!    waiter's bytes that have arrived. After the miss's last bytes ([`LineSlot::pending`] is `None`), each parked
//!    request runs again as [`L2Event::Request`], in order, and no other request for the line runs in between. An
//!    [`L2Event::Flush`] refused in the meantime runs again between the waiters and the parked requests; its release
//!    waits for the write-back it sends.
//! 3. A request refused with [`Refusal::Stall`] parks on the line's pending miss. A request behind a parked request
//!    for the line parks too. A store may wait at an L2 for a credit: later requests on its channel
//!    ([`Channels::up`]) wait behind the store.
//! 4. A line to be evicted is offered as [`L2Event::Evict`]; if refused, it stays. A directory entry to be evicted is
//!    offered as [`L2Event::ReplaceEntry`], which evicts lines along with it if [`Coherence::tracks_own`] is set. An
//!    invalidation is a single [`L2Event::InvalidateRegion`], then an [`L2Event::InvalidateLine`] for each present line
//!    in the region.
//! 5. A miss still pending when its class is invalidated is marked by [`Pending::invalidate`].
//! 6. A request that bypasses an L2 ([`bypasses_l2`]) neither parks there nor waits for parked requests.

use crate::broken_rule::BrokenRule;
use crate::data::Data;
use crate::directory::Sharers;
use crate::effects::{Delivery, Effects, Types};
use crate::options::{HomeL2, ProtocolFacts, ProtocolOptions};
use crate::plan::{Phase, Sync};
use crate::topology::{Class, Homes, ModuleSet, Topology};
use tombolo_types::{Line, Mask, ModuleId, Promise, Scope};

/// The classes of messages between modules and their delivery orders, as declared by a protocol
/// ([`Coherence::channels`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// Reads, writes, atomics and downgrades toward a home.
    pub up: Delivery,
    /// Fills from a home, and its invalidations.
    pub down: Delivery,
    /// Set when fills and invalidations share a class: an invalidation never overtakes an earlier fill.
    pub fills_stay_ahead: bool,
    /// Results of atomics, and the requests and acknowledgments for acquires and releases.
    pub control: Delivery,
}

/// The point at which accesses by several modules to a line meet: its contents at an access's arrival decide the
/// access's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderingPoint {
    /// The L2 at the line's system home.
    HomeL2,
    /// The memory at the line's system home. Every L2 lies between an SM and this memory, including the home's L2.
    Memory {
        /// Set when requests from other modules look up the home's L2 on their path.
        by_home_l2: bool,
    },
}

impl OrderingPoint {
    /// True if the ordering point is memory.
    pub fn is_memory(self) -> bool {
        matches!(self, OrderingPoint::Memory { .. })
    }
}

/// True if a request by `from` bypasses the L2 at `at` without a lookup, so that neither its line nor its miss
/// matters. The request waits for nothing in this L2, and nothing in this L2 waits for the request.
#[inline]
pub fn bypasses_l2(protocol: &impl Coherence, at: ModuleId, homes: Homes, from: Requester) -> bool {
    let passes = protocol.ordering_point() == OrderingPoint::Memory { by_home_l2: false };
    passes && at == homes.system && from != Requester::Local
}

/// A request's sender: the next level down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Requester {
    /// An SM in this module.
    Local,
    /// Another module: for a system home in a hierarchical protocol, the GPU home in the requesting GPU.
    Module(ModuleId),
}

/// A request that travels toward a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request<D: Data> {
    /// A read.
    Read {
        /// Requested bytes, in whole sectors.
        mask: Mask,
        /// `Cta` for a weak load.
        scope: Scope,
    },
    /// A store, or dirty bytes on the path to their home.
    Write {
        /// Bytes written.
        mask: Mask,
        /// `Cta` for a weak store.
        scope: Scope,
        /// The line's new contents in `mask`.
        data: D,
        /// Set when the sender keeps a copy and must be tracked as a sharer.
        tracked: bool,
    },
    /// A read-modify-write, performed at its scope's home.
    Atomic {
        /// Bytes updated.
        mask: Mask,
        /// Scope.
        scope: Scope,
        /// The operation.
        update: D::Update,
        /// Set when the requester needs the old value.
        returns: bool,
    },
}

/// A reply to a [`Requester`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<D: Data> {
    /// The bytes for a read.
    Fill {
        /// Bytes carried.
        mask: Mask,
        /// Contents in `mask`.
        data: D,
    },
    /// The contents before an atomic; sent straight to the issuing SM without changing any cache on the path.
    Old {
        /// Previous contents.
        data: D,
    },
}

/// A line in an L2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LineState<D> {
    /// Readable bytes.
    pub valid: Mask,
    /// Bytes newer than the next level's copy; a subset of `valid`.
    pub dirty: Mask,
    /// Contents.
    pub data: D,
}

/// A miss in flight: at least one read for a line, each with its own sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pending {
    /// Bytes requested but not yet received.
    pub mask: Mask,
    /// Subset of `mask` requested before the line's class was invalidated: these bytes serve their waiters and
    /// never install.
    pub stale: Mask,
    /// The smallest scope among the reads sent.
    pub scope: Scope,
}

impl Pending {
    /// A miss with a single read sent, for `mask`.
    pub fn started(mask: Mask, scope: Scope) -> Pending {
        Pending { mask, stale: Mask::NONE, scope }
    }

    /// Extends the miss by another read, for bytes not yet in flight.
    pub fn extended(pending: Option<Pending>, mask: Mask, scope: Scope) -> Pending {
        match pending {
            None => Pending::started(mask, scope),
            Some(Pending { mask: earlier, stale, scope: least }) => {
                Pending { mask: earlier | mask, stale, scope: least.min(scope) }
            }
        }
    }

    /// The remaining miss after `mask` has arrived; `None` if nothing remains.
    pub fn remaining(self, mask: Mask) -> Option<Pending> {
        let left = Pending { mask: self.mask & !mask, stale: self.stale & !mask, scope: self.scope };
        (!left.mask.is_empty()).then_some(left)
    }

    /// Records that the line's class was invalidated: no byte in flight installs any more.
    pub fn invalidate(&mut self) {
        self.stale = self.mask;
    }
}

/// The host's state for a line at an L2, including the directory entry for the line's region.
#[derive(Clone, Copy, Debug)]
pub struct LineSlot<D: Data> {
    /// The line (for a region event, any line in the region).
    pub line_id: Line,
    /// The line's homes as seen by this module.
    pub homes: Homes,
    /// The line, if present. Setting it to `Some` installs the line; setting it to `None` drops the line.
    pub line: Option<LineState<D>>,
    /// The miss, if pending. Steps set it: requests start and extend it, fills end it.
    pub pending: Option<Pending>,
    /// The entry, if present. Setting it to `Some` allocates the entry; setting it to `None` frees the entry. The
    /// host may skip the lookup for a fill, and for a read by its own SMs unless [`Coherence::tracks_own`] is set:
    /// Table I does nothing then.
    pub entry: Option<Sharers>,
}

/// An event at an L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L2Event<D: Data> {
    /// A request from the next level down arrives.
    Request {
        /// The sender.
        from: Requester,
        /// The request.
        request: Request<D>,
    },
    /// Bytes for this L2's own miss arrive from the next level up or from memory: the bytes for one read.
    Fill {
        /// Bytes carried.
        mask: Mask,
        /// Contents.
        data: D,
    },
    /// A read that waited for bytes just received is served.
    Serve {
        /// The sender.
        from: Requester,
        /// The waiter's bytes that arrived.
        mask: Mask,
        /// The fill's contents.
        data: D,
    },
    /// A home invalidates this line's region; the step ignores the slot's line.
    InvalidateRegion,
    /// This line is in a region or a class under invalidation.
    InvalidateLine,
    /// The line must be evicted. Refused while its own miss is pending: the host must pick another victim. A clean
    /// line need not be offered if the protocol sends homes no message ([`Coherence::downgrades`]): its eviction is
    /// silent.
    Evict {
        /// Set when no other line in the region is present or pending here.
        last_of_region: bool,
    },
    /// The directory entry must be evicted.
    ReplaceEntry,
    /// A sharer has dropped the region.
    Downgrade {
        /// The sharer.
        from: ModuleId,
    },
    /// A release writes back dirty lines. Refused while the line's own miss is pending: the release waits. A line
    /// homed in this module need not be offered if its L2 is the ordering point: nothing happens to it.
    Flush,
}

/// A home's reason for an invalidation, used only in statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidationCause {
    /// A store or an atomic to shared data.
    Store,
    /// Replacement of a directory entry.
    DirectoryEviction,
    /// An invalidation forwarded by a GPU home.
    Forwarded,
}

/// A message between L2s. Replies travel on the `down` channel, or straight to the SM: [`Reply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L2Message<D: Data> {
    /// A request sent a level up, on the `up` channel.
    Request(Request<D>),
    /// The current read, forwarded to its home on the `up` channel. The home answers the issuing SM; this L2 keeps
    /// no state for the read.
    Bypassed(Request<D>),
    /// The line's region is invalid; sent on the `down` channel.
    Invalidate(InvalidationCause),
    /// The sender has dropped the line's region; sent on the `up` channel.
    Downgrade,
}

/// An L2's access to its module's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAccess<D: Data> {
    /// Reads the bytes; [`L2Event::Fill`] follows.
    Read(Mask),
    /// Writes the bytes.
    Write(Mask, D),
    /// Passes the current request to memory, after all earlier reads and writes. Memory answers as the home's L2
    /// would: a read with its bytes, an atomic with the previous bytes. This L2 keeps no state for the request.
    Request(Request<D>),
}

/// The way the current request is held on the line's pending miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// A read waits for this subset of its bytes.
    Wait(Mask),
    /// The request runs again when the miss is done.
    Park,
}

/// The types for protocols whose L2s hold valid or invalid lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValidInvalid;

impl<D: Data> Types<D> for ValidInvalid {
    type Node = ModuleId;
    type Message = L2Message<D>;
    type Answer = Reply<D>;
    type Access = MemoryAccess<D>;
    type Hold = Hold;
}

/// Refusal to accept a request at this time. The state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Wait for the line's pending miss.
    Stall,
    /// Illegal event: the protocol or its host is broken.
    Unexpected(&'static str),
}

/// Protocol queries that do not depend on the kind of cache: used by plan controllers, and by SMs through
/// [`SmRules`](crate::sm_rules::SmRules).
pub trait Protocol: Copy + Send + std::marker::Sync + 'static {
    /// The protocol family, which owns the message types: its [`Types`] with any contents.
    type Types: Copy + Send + std::marker::Sync + 'static;

    /// Static facts used by lists and designs.
    const FACTS: ProtocolFacts;
    /// True if a broken rule may be set; if false, L2s have no code for broken rules.
    const BREAKABLE: bool;

    /// The acquire's phases beyond the L1.
    fn acquire(&self, sync: Sync) -> &'static [Phase];

    /// The release's phases beyond the SM.
    fn release(&self, sync: Sync) -> &'static [Phase];

    /// The chosen options.
    fn options(&self) -> &ProtocolOptions;

    /// The guaranteed memory-model promise.
    fn promise(&self) -> Promise {
        Self::FACTS.promise_with(self.options())
    }

    /// The deliberately broken rule, if any.
    #[inline]
    fn broken_rule(&self) -> Option<BrokenRule> {
        if Self::BREAKABLE { self.options().broken_rule } else { None }
    }

    /// True if `rule` is the broken rule.
    fn broken(&self, rule: BrokenRule) -> bool {
        self.broken_rule() == Some(rule)
    }
}

/// A cache-coherence protocol between the modules' L2 caches, whose lines are valid or invalid.
pub trait Coherence: Protocol<Types = ValidInvalid> {
    /// Performs a single transition at module `at`'s L2 (and directory).
    ///
    /// # Errors
    /// [`Refusal::Stall`] leaves the slot unchanged; the host parks the request.
    fn step<D: Data>(
        &self,
        topology: &impl Topology,
        at: ModuleId,
        slot: &mut LineSlot<D>,
        event: L2Event<D>,
        effects: &mut impl Effects<ValidInvalid, D>,
    ) -> Result<(), Refusal>;

    /// True if lines in this class may live in the L2 at all.
    fn caches(&self, class: Class) -> bool;

    /// True if reads of uncacheable lines are forwarded to their home ([`L2Message::Bypassed`]).
    fn passes_reads(&self) -> bool;

    /// True if an L2 forwards reads of lines in this class to their home, and keeps no state for them.
    #[inline]
    fn forwards_reads(&self, class: Class) -> bool {
        self.passes_reads() && !self.caches(class)
    }

    /// True if `home`, the system home of `line`, answers a read that module `sender` sent at the issuing SM: the
    /// sender's L2 has forwarded the read.
    #[inline]
    fn answers_issuer(&self, topology: &impl Topology, home: ModuleId, sender: ModuleId, line: Line) -> bool {
        if !self.passes_reads() {
            return false;
        }
        let gpu = topology.gpu_of(sender);
        let gpu_home = if topology.gpu_of(home) == gpu { home } else { topology.remote_gpu_home(gpu, line) };
        self.forwards_reads(Class::of(topology, sender, Homes { system: home, gpu: gpu_home }))
    }

    /// The point at which accesses by several modules to a line meet.
    fn ordering_point(&self) -> OrderingPoint;

    /// True if the L2 at a line's home is only snooped: other modules' requests go on to the memory behind this L2.
    fn home_is_snooped(&self) -> bool {
        self.options().home_l2 == HomeL2::Snooped
    }

    /// True if memory answers other modules' requests: as the ordering point, or behind a snooped home L2.
    fn memory_answers(&self) -> bool {
        self.ordering_point().is_memory() || self.home_is_snooped()
    }

    /// True if requests route through the GPU home.
    fn is_hierarchical(&self) -> bool;

    /// True if a directory tracks sharers.
    fn has_directory(&self) -> bool;

    /// True if a home's directory also has entries for lines in its own L2.
    fn tracks_own(&self) -> bool;

    /// True if an L2 may hold dirty bytes.
    fn writes_back(&self) -> bool;

    /// True if an L2 notifies the home after dropping its last line in a region.
    fn downgrades(&self) -> bool;

    /// Delivery order for messages between modules. Source: HMG, section IV: without transient states, ordered
    /// channels are required. The paper orders all `down` messages; order within each region is enough, because a
    /// release waits until every invalidation is acknowledged.
    #[inline]
    fn channels(&self) -> Channels {
        Channels {
            // If a later request for the same region overtook a downgrade, the downgrade would erase the new
            // sharer.
            up: if self.downgrades() { Delivery::FifoPerRegion } else { Delivery::FifoPerLine },
            down: Delivery::FifoPerRegion,
            fills_stay_ahead: !self.broken(BrokenRule::InvalidationPassesFill),
            control: Delivery::Unordered,
        }
    }

    /// The receivers for requests and downgrades from module `at`'s L2, which sees these homes for a line: the next
    /// level up, or no module if memory is next. An L2 replies only to modules for which it is in this set.
    #[inline]
    fn next_level(&self, at: ModuleId, homes: Homes) -> ModuleSet {
        homes.next(at, self.is_hierarchical()).into_iter().collect()
    }

    /// The possible targets when module `at`'s L2 invalidates a line whose region has this entry: the named
    /// modules, and the GPU homes in the named GPUs. Without an entry the set is empty.
    #[inline]
    fn invalidation_targets(&self, topology: &impl Topology, at: ModuleId, line: Line, entry: Sharers) -> ModuleSet {
        entry.iter().map(|sharer| sharer.module(topology, at, line)).collect()
    }
}
