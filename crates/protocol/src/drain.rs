//! What a release waits for: which of the stores and invalidations on their way, and what a wait moves on to.
//!
//! The explorer keeps on each message who waits for it, and asks [`Wait::includes`] and [`moves_on`]. The timing model
//! counts what is on its way in [`Pool`]s, and asks which of them a store is in ([`Leg::pools`]), which an action waits
//! for ([`Pool::is_awaited_by`]) and which are told of a store that was taken ([`StoreTaken`]). A test over random
//! sends, acknowledgments and waits holds the counts to the marks (`crates/model/tests/drains.rs`).

use crate::broken_rule::BrokenRule;
use crate::coherence::Coherence;
use crate::plan::Action;
use crate::topology::{Homes, Topology};
use std::ops::BitAnd;
use tombolo_types::ModuleId;

/// Who has sent something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// An SM, by a number of the host's.
    Sm(u16),
    /// The L2 of a module.
    Module(ModuleId),
}

/// What has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A store, an atomic or bytes written back.
    Store,
    /// An invalidation.
    Invalidation,
}

/// Something that was sent and that has not been taken: on a link, or parked where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// What.
    pub what: What,
    /// By whom.
    pub from: Sender,
    /// To the L2 of which module.
    pub to: ModuleId,
    /// The line of a store, the region of an invalidation, by a number of the host's.
    pub place: u64,
}

/// A wait that begins: for all that it includes and that is on its way now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A release's first step, a kernel's last: for what an SM has posted.
    Posted(u16),
    /// A phase's action at a member.
    Phase {
        /// The member.
        at: ModuleId,
        /// What it does.
        action: Action,
    },
    /// A release, for the bytes of a line that it has had written back.
    WrittenBack {
        /// By which module.
        at: ModuleId,
        /// The line.
        line: u64,
    },
    /// Whoever waits for an invalidation that a GPU home has taken, for those that it has sent of the region itself. An
    /// entry replaced a moment before has left none to forward, and its own may still be on their way.
    TakenOn {
        /// The GPU home.
        at: ModuleId,
        /// The region.
        region: u64,
    },
}

impl Wait {
    /// Whether it is for something on its way.
    pub fn includes(self, topology: &impl Topology, sent: &Sent) -> bool {
        let by = |module| sent.from == Sender::Module(module);
        match (self, sent.what) {
            (Wait::Posted(sm), What::Store) => sent.from == Sender::Sm(sm),
            (Wait::Phase { at, action }, what) => {
                let beyond = topology.gpu_of(at) != topology.gpu_of(sent.to);
                by(at) && drains(action, what) && action.awaits(beyond)
            }
            (Wait::WrittenBack { at, line }, What::Store) => by(at) && sent.place == line,
            (Wait::TakenOn { at, region }, What::Invalidation) => by(at) && sent.place == region,
            (Wait::Posted(_) | Wait::WrittenBack { .. }, What::Invalidation) | (Wait::TakenOn { .. }, What::Store) => {
                false
            }
        }
    }
}

/// Whether an action waits for things of this kind.
fn drains(action: Action, what: What) -> bool {
    match action {
        Action::DrainStores(_) | Action::PassOnStores | Action::Flush | Action::AwaitStores => what == What::Store,
        Action::DrainInvalidations(_) => what == What::Invalidation,
        Action::Invalidate(_) | Action::Merge { .. } => false,
    }
}

/// Who waits for what a store has become, of those who `waited` for it where it was taken and sent on: those whose phase
/// waits `to_the_end` ([`Action::awaits_to_the_end`]).
pub fn moves_on<S: BitAnd<Output = S> + Default>(protocol: &impl Coherence, waited: S, to_the_end: S) -> S {
    if protocol.broken(BrokenRule::StoreEndsAtGpuHome) { S::default() } else { waited & to_the_end }
}

/// Which invalidations somebody who waits for one that was taken waits for from then on: [`Wait::TakenOn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenOn {
    /// All that were sent of the region.
    All,
    /// A broken rule: those that were sent as it was taken.
    Forwarded,
    /// A broken rule: none.
    Nothing,
}

/// What an invalidation is waited for where it is taken.
pub fn taken_on(protocol: &impl Coherence) -> TakenOn {
    if protocol.broken(BrokenRule::InvalidationTakenEarly) {
        TakenOn::Nothing
    } else if protocol.broken(BrokenRule::ReplacementNotAwaited) {
        TakenOn::Forwarded
    } else {
        TakenOn::All
    }
}

/// Operations that a module has sent and that are taken together, as far as a drain can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pool {
    /// Stores of this module's own account to a module of its GPU.
    Stores,
    /// Those to a module of another GPU.
    StoresBeyond,
    /// Stores of other modules that this one, their GPU home, has sent on to another GPU.
    ForwardedStores,
    /// Stores of its own account that go by a GPU home, until they are taken at the end of their way.
    StoresToTheEnd,
    /// Invalidations to a module of its GPU.
    Invalidations,
    /// Invalidations to another GPU, until they are taken by all that it concerns there.
    InvalidationsBeyond,
}

impl Pool {
    /// All pools, in the order of their discriminants.
    pub const ALL: [Pool; 6] = [
        Pool::Stores,
        Pool::StoresBeyond,
        Pool::ForwardedStores,
        Pool::StoresToTheEnd,
        Pool::Invalidations,
        Pool::InvalidationsBeyond,
    ];

    /// The pool of invalidations to a module of another GPU or (not `beyond`) of this one.
    pub fn of_invalidations(beyond: bool) -> Pool {
        if beyond { Pool::InvalidationsBeyond } else { Pool::Invalidations }
    }

    /// Whether a phase's action waits for these.
    pub fn is_awaited_by(self, action: Action) -> bool {
        match self {
            Pool::Stores => drains(action, What::Store) && action.awaits(false),
            Pool::StoresBeyond | Pool::ForwardedStores => drains(action, What::Store) && action.awaits(true),
            // What is passed on goes straight to its system home.
            Pool::StoresToTheEnd => {
                matches!(action, Action::DrainStores(_) | Action::Flush | Action::AwaitStores)
                    && action.awaits_to_the_end()
            }
            Pool::Invalidations => drains(action, What::Invalidation) && action.awaits(false),
            Pool::InvalidationsBeyond => drains(action, What::Invalidation) && action.awaits(true),
        }
    }

    /// Whether the operations occupy room among the posted stores of an L2.
    pub fn takes_room(self) -> bool {
        matches!(self, Pool::Stores | Pool::StoresBeyond | Pool::ForwardedStores)
    }
}

/// How a store leaves a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leg {
    /// For another module, whose GPU home this one is.
    Forwarded,
    /// To another GPU.
    Beyond,
    /// To its system home in this GPU; to memory where that is this module.
    Home,
    /// To its GPU home, which sends it on.
    ByGpuHome,
}

impl Leg {
    /// How a store of `origin` leaves `at`. `homes`: of its line, as `at` sees them.
    pub fn of(topology: &impl Topology, hierarchical: bool, (at, origin): (ModuleId, ModuleId), homes: Homes) -> Leg {
        let target = homes.next(at, hierarchical);
        if origin != at {
            Leg::Forwarded
        } else if target.is_some_and(|target| topology.gpu_of(target) != topology.gpu_of(at)) {
            Leg::Beyond
        } else if target.is_none_or(|target| target == homes.system) {
            Leg::Home
        } else {
            Leg::ByGpuHome
        }
    }

    /// The pool in which it is counted until it is taken where it goes next, and the one until the end of its way.
    pub fn pools(self) -> (Pool, Option<Pool>) {
        match self {
            Leg::Forwarded => (Pool::ForwardedStores, None),
            Leg::Beyond => (Pool::StoresBeyond, None),
            Leg::Home => (Pool::Stores, None),
            Leg::ByGpuHome => (Pool::Stores, Some(Pool::StoresToTheEnd)),
        }
    }
}

/// A store that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTaken {
    /// Whose account it is of.
    pub origin: ModuleId,
    /// Who sent it where it was taken.
    pub from: ModuleId,
    /// Whether that is a module of another GPU.
    pub beyond: bool,
    /// Whether it was taken at its line's system home.
    pub at_home: bool,
    /// Whether it goes no further.
    pub ends: bool,
}

impl StoreTaken {
    /// The sender's pool that is told, and that of the origin where the store's way has ended and is counted there.
    pub fn told(self, protocol: &impl Coherence) -> (Pool, Option<Pool>) {
        let hop = match (self.origin == self.from, self.beyond) {
            (true, false) => Pool::Stores,
            (true, true) => Pool::StoresBeyond,
            (false, _) => Pool::ForwardedStores,
        };
        // Broken, the end is told of as the GPU home takes the store, and not again.
        let early = protocol.broken(BrokenRule::StoreEndsAtGpuHome);
        let ends = if early { self.origin == self.from } else { self.ends };
        let by_gpu_home = self.origin != self.from || !self.at_home;
        (hop, (ends && by_gpu_home).then_some(Pool::StoresToTheEnd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::Scope;

    fn awaited(action: Action) -> Vec<Pool> {
        Pool::ALL.into_iter().filter(|pool| pool.is_awaited_by(action)).collect()
    }

    #[test]
    fn a_drain_of_one_gpu_leaves_alone_what_has_left_it() {
        assert_eq!(awaited(Action::DrainStores(Scope::Gpu)), [Pool::Stores]);
        assert_eq!(awaited(Action::DrainInvalidations(Scope::Gpu)), [Pool::Invalidations]);
        assert_eq!(awaited(Action::PassOnStores), [Pool::StoresBeyond, Pool::ForwardedStores]);
    }

    #[test]
    fn a_drain_of_the_system_waits_for_all_of_its_kind() {
        assert_eq!(awaited(Action::DrainStores(Scope::Sys)), Pool::ALL[..4]);
        assert_eq!(awaited(Action::AwaitStores), Pool::ALL[..4]);
        assert_eq!(awaited(Action::DrainInvalidations(Scope::Sys)), Pool::ALL[4..]);
    }
}
