//! The boundary between a protocol of valid/invalid L2s and its host: [`ValidInvalid`] names the types of both.
//!
//! A host (the timing model, the explorer) keeps for each L2: lines, pending misses with their waiters and
//! parked requests, directory entries by region. For each event it hands [`Coherence::step`] the slot the
//! event is about, by value, and afterwards stores what came back. The host's duties, which a protocol
//! relies on:
//!
//! 1. Channels between two modules deliver in the order that the protocol declares: [`Coherence::channels`].
//! 2. One pending miss per line and L2, which grows by the bytes of later requests. When bytes of it arrive:
//!    [`Event::Fill`], then [`Event::Serve`] for each waiter in order of arrival, of those of its bytes that have
//!    come. When that was the last of them ([`Slot::pending`] is `None`), each parked request runs again as
//!    [`Event::Request`], in order, and nothing else of that line in between. An [`Event::Flush`] that was refused
//!    meanwhile runs again between the waiters and the parked; its release waits for what it sends.
//! 3. A request refused with [`Refusal::Stall`] parks on the line's pending miss. A request behind a parked
//!    one of the same line parks too. A store may wait at an L2 for a credit: what follows it on its channel
//!    ([`Channels::up`]) waits behind it.
//! 4. A line that must make room is offered as [`Event::Evict`] (refused, it stays), a directory entry as
//!    [`Event::ReplaceEntry`], which takes lines with it where [`Coherence::tracks_own`]; an invalidation is [`Event::InvalidateRegion`] once and
//!    [`Event::InvalidateLine`] for each line of the region that is present.
//! 5. A miss that is pending when its class is invalidated is marked by [`Pending::invalidate`].
//! 6. A request that passes an L2 ([`passes_l2`]) neither parks there nor waits for what is parked.

use crate::broken_rule::BrokenRule;
use crate::data::Data;
use crate::directory::Sharers;
use crate::node::{Delivery, Effects, Types};
use crate::options::{Facts, Options};
use crate::plan::{Phase, Sync};
use crate::topology::{Class, Homes, ModuleSet, Topology};
use tombolo_types::{Line, Mask, ModuleId, Promise, Scope, Sectors};

/// The classes of messages between modules and the order that each keeps, as a protocol declares it
/// ([`Coherence::channels`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    /// Reads, writes, atomics and downgrades toward a home.
    pub up: Delivery,
    /// Fills from a home, and its invalidations.
    pub down: Delivery,
    /// Whether these are one class: an invalidation never passes the fill before it.
    pub fills_stay_ahead: bool,
    /// Results of atomics, and the requests and acknowledgments of acquires and releases.
    pub control: Delivery,
}

/// Where the accesses of several modules to one line meet: what is there when they come decides what they see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderingPoint {
    /// The L2 of the line's system home.
    HomeL2,
    /// The memory of the line's system home. Every L2 is below it, that of the home too.
    Memory {
        /// Whether requests of other modules look into the home's L2 on their way.
        by_home_l2: bool,
    },
}

impl OrderingPoint {
    /// Whether it is memory.
    pub fn is_memory(self) -> bool {
        matches!(self, OrderingPoint::Memory { .. })
    }
}

/// Whether a request of `from` passes the L2 of `at` without looking into it: neither its line nor its miss matters.
/// It waits for nobody there, and nobody for it.
#[inline]
pub fn passes_l2(protocol: &impl Coherence, at: ModuleId, homes: Homes, from: Requester) -> bool {
    let passes = protocol.ordering_point() == OrderingPoint::Memory { by_home_l2: false };
    passes && at == homes.system && from != Requester::Local
}

/// Who asked: the next level down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Requester {
    /// An SM of this module.
    Local,
    /// Another module: for a system home in a hierarchical protocol, the GPU home of its GPU.
    Module(ModuleId),
}

/// A request that travels toward a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request<D: Data> {
    /// Bytes wanted.
    Read {
        /// Bytes, in whole sectors.
        mask: Mask,
        /// `Cta` for a weak load.
        scope: Scope,
    },
    /// A store, or dirty bytes on their way home.
    Write {
        /// Bytes written.
        mask: Mask,
        /// `Cta` for a weak store.
        scope: Scope,
        /// The line's new contents in `mask`.
        data: D,
        /// Whether the sender keeps a copy and must be tracked as a sharer.
        tracked: bool,
    },
    /// A read-modify-write at the home of its scope.
    Atomic {
        /// Bytes updated.
        mask: Mask,
        /// Scope.
        scope: Scope,
        /// The operation.
        update: D::Update,
        /// Whether the old value is wanted.
        returns: bool,
    },
}

/// An answer to a [`Requester`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<D: Data> {
    /// The bytes of a read.
    Fill {
        /// Bytes carried.
        mask: Mask,
        /// Contents in `mask`.
        data: D,
    },
    /// The contents before an atomic; goes straight to the SM that issued it and changes no cache on its way.
    Old {
        /// Contents before.
        data: D,
    },
}

/// A line in an L2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LineState<D> {
    /// Bytes that may be read.
    pub valid: Mask,
    /// Bytes newer than the next level's, a part of `valid`.
    pub dirty: Mask,
    /// Contents.
    pub data: D,
}

/// A miss on its way: one or more reads of a line, each of sectors of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pending {
    /// Bytes that have been asked for and have not come.
    pub mask: Mask,
    /// Of these, the bytes asked for before their class was invalidated: they serve their waiters and never install.
    pub stale: Mask,
    /// The least scope of the reads that were sent.
    pub scope: Scope,
}

impl Pending {
    /// A read of `mask` has been sent.
    pub fn of(mask: Mask, scope: Scope) -> Pending {
        Pending { mask, stale: Mask::NONE, scope }
    }

    /// The miss with one more read sent, of bytes that are not on their way yet.
    pub fn and(pending: Option<Pending>, mask: Mask, scope: Scope) -> Pending {
        match pending {
            None => Pending::of(mask, scope),
            Some(Pending { mask: earlier, stale, scope: least }) => {
                Pending { mask: earlier | mask, stale, scope: least.min(scope) }
            }
        }
    }

    /// What is still to come after `mask` has; `None` where nothing is.
    pub fn without(self, mask: Mask) -> Option<Pending> {
        let left = Pending { mask: self.mask & !mask, stale: self.stale & !mask, scope: self.scope };
        (!left.mask.is_empty()).then_some(left)
    }

    /// Its class is invalidated: nothing of it installs any more.
    pub fn invalidate(&mut self) {
        self.stale = self.mask;
    }
}

/// What the host holds of one line at one L2, and of the directory entry of its region.
#[derive(Clone, Copy, Debug)]
pub struct Slot<D: Data> {
    /// Which line (any line of the region for an event about a region).
    pub line_id: Line,
    /// Its homes as this module sees them.
    pub homes: Homes,
    /// The line, if present. Set to `Some` installs it, to `None` drops it.
    pub line: Option<LineState<D>>,
    /// The miss, if one is pending. Steps set it: requests start it and let it grow, fills end it.
    pub pending: Option<Pending>,
    /// The entry, if present. Set to `Some` allocates, to `None` frees it. The host need not look it up for a fill, nor
    /// for a read of its own SMs unless [`Coherence::tracks_own`]: Table I has nothing to do then.
    pub entry: Option<Sharers>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<D: Data> {
    /// A request from the next level down.
    Request {
        /// From whom.
        from: Requester,
        /// What.
        request: Request<D>,
    },
    /// Bytes of this L2's own miss have come, from the next level up or from memory: those of one read.
    Fill {
        /// Bytes carried.
        mask: Mask,
        /// Contents.
        data: D,
    },
    /// A read that waited for bytes that have just come.
    Serve {
        /// From whom.
        from: Requester,
        /// Those of its bytes that came.
        mask: Mask,
        /// The fill.
        data: D,
    },
    /// A home invalidates the region of this line; the slot's line is not looked at.
    InvalidateRegion,
    /// This line is in a region or a class being invalidated.
    InvalidateLine,
    /// The line must make room. Refused while its own miss is pending: another must. A clean line need not be offered
    /// where the protocol does not tell homes ([`Coherence::downgrades`]): it goes silently.
    Evict {
        /// Whether no other line of its region is present or pending here.
        last_of_region: bool,
    },
    /// The directory entry must make room.
    ReplaceEntry,
    /// A sharer has dropped the region.
    Downgrade {
        /// Which.
        from: ModuleId,
    },
    /// A release writes back dirty lines. Refused while the line's own miss is pending: the release waits. A line
    /// homed in this very module need not be offered where its L2 is the ordering point: nothing happens to it.
    Flush,
}

/// Why a home invalidates: for statistics only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A store or an atomic to shared data.
    Store,
    /// A directory entry was replaced.
    DirectoryEviction,
    /// Forwarded by a GPU home.
    Forwarded,
}

/// What L2s tell each other. Their answers go down the `down` channel, or to the SM: [`Reply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<D: Data> {
    /// A request, one level up, on the `up` channel.
    Request(Request<D>),
    /// The read at hand, sent on to its home, on the `up` channel. The home answers the SM that issued it: nothing of it
    /// is kept here.
    Passed(Request<D>),
    /// The line's region is invalid, on the `down` channel.
    Invalidate(Cause),
    /// The sender has dropped the line's region, on the `up` channel.
    Downgrade,
}

/// What an L2 wants of its module's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAccess<D: Data> {
    /// Reads the bytes; [`Event::Fill`] follows.
    Read(Mask),
    /// Writes the bytes.
    Write(Mask, D),
    /// Takes the request at hand, behind what was read and written before. Memory answers as the home's L2 would: a read
    /// with its bytes, an atomic with those before it. Nothing of it is kept here.
    Request(Request<D>),
}

/// How the request at hand is held on the line's pending miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// A read waits for these of its bytes.
    Wait(Mask),
    /// It runs again when the miss is done.
    Park,
}

/// The types of protocols whose L2s hold lines that are valid or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValidInvalid;

impl<D: Data> Types<D> for ValidInvalid {
    type Node = ModuleId;
    type Message = Message<D>;
    type Answer = Reply<D>;
    type Access = MemoryAccess<D>;
    type Hold = Hold;
}

/// A request that cannot be taken now. No state has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Wait for the line's pending miss.
    Stall,
    /// Must not happen: the protocol or its host is broken.
    Unexpected(&'static str),
}

/// What is asked of a protocol whatever its caches are: by threads, by L1s, by those who run its plans.
pub trait Protocol: Copy + Send + std::marker::Sync + 'static {
    /// The family that it belongs to, which owns its types: its [`Types`] with any contents.
    type Types: Copy + Send + std::marker::Sync + 'static;

    /// What lists and designs know of it.
    const FACTS: Facts;
    /// Whether it may have a broken rule: if not, nothing of those is in the code.
    const BREAKABLE: bool;

    /// What an acquire does beyond the L1, step by step.
    fn acquire(&self, sync: Sync) -> &'static [Phase];

    /// What a release does beyond the SM, step by step.
    fn release(&self, sync: Sync) -> &'static [Phase];

    /// What is chosen of it.
    fn options(&self) -> &Options;

    /// How lines are divided for the reads that fill them.
    #[inline]
    fn sectors(&self) -> Sectors {
        self.options().sectors
    }

    /// Whether an acquire beyond the CTA invalidates the L1.
    #[inline]
    fn invalidates_l1(&self) -> bool {
        !self.options().keep_l1
    }

    /// What it guarantees.
    fn promise(&self) -> Promise {
        Self::FACTS.promise_with(self.options())
    }

    /// The rule that is broken on purpose, if any.
    #[inline]
    fn broken_rule(&self) -> Option<BrokenRule> {
        if Self::BREAKABLE { self.options().broken_rule } else { None }
    }

    /// Whether `rule` is the broken rule.
    fn broken(&self, rule: BrokenRule) -> bool {
        self.broken_rule() == Some(rule)
    }
}

/// A cache-coherence protocol between the L2 caches of the modules, whose lines are valid or not.
pub trait Coherence: Protocol<Types = ValidInvalid> {
    /// One transition of the L2 (and directory) of module `at`.
    ///
    /// # Errors
    /// [`Refusal::Stall`] leaves everything as it was; the host parks the request.
    fn step<D: Data>(
        &self,
        topology: &impl Topology,
        at: ModuleId,
        slot: &mut Slot<D>,
        event: Event<D>,
        effects: &mut impl Effects<ValidInvalid, D>,
    ) -> Result<(), Refusal>;

    /// Whether lines of this class may live in the L2 at all.
    fn caches(&self, class: Class) -> bool;

    /// Whether reads of lines that an L2 may not hold are passed on ([`Message::Passed`]).
    fn passes_reads(&self) -> bool;

    /// Where the accesses of several modules to one line meet.
    fn ordering_point(&self) -> OrderingPoint;

    /// Whether requests go by the GPU home.
    fn is_hierarchical(&self) -> bool;

    /// Whether a directory tracks sharers.
    fn has_directory(&self) -> bool;

    /// Whether a home's directory also has entries for what its own L2 holds.
    fn tracks_own(&self) -> bool;

    /// Whether an L2 may hold dirty bytes.
    fn writes_back(&self) -> bool;

    /// Whether an L2 tells the home when it drops its last line of a region.
    fn downgrades(&self) -> bool;

    /// The order that messages between modules keep. Source: HMG, section IV: no transient states needs ordered channels.
    /// The paper orders all of `down`; that each region keeps its order is enough, since a release waits until every
    /// invalidation has been taken.
    #[inline]
    fn channels(&self) -> Channels {
        Channels {
            // A downgrade that a later request of its region overtook would erase the sharer that this request makes.
            up: if self.downgrades() { Delivery::FifoPerRegion } else { Delivery::FifoPerLine },
            down: Delivery::FifoPerRegion,
            fills_stay_ahead: !self.broken(BrokenRule::InvalidationPassesFill),
            control: Delivery::Unordered,
        }
    }

    /// To whom the L2 of `at`, which sees these homes of a line, may send requests of it, and tell that it has dropped its
    /// region: the next level up; nobody where that is memory. It answers those alone for whom it is above.
    #[inline]
    fn above(&self, at: ModuleId, homes: Homes) -> ModuleSet {
        homes.next(at, self.is_hierarchical()).into_iter().collect()
    }

    /// Whom the L2 of `at` may invalidate for a line while the entry of its region is this: the modules that it names, and
    /// the GPU homes of the GPUs that it names. Nobody where there is no entry.
    #[inline]
    fn named(&self, topology: &impl Topology, at: ModuleId, line: Line, entry: Sharers) -> ModuleSet {
        entry.iter().map(|sharer| sharer.module(topology, at, line)).collect()
    }
}
