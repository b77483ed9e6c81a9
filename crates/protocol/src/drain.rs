//! Release drains: the set of stores and invalidations in flight that a release waits for, and the successors of a
//! wait.
//!
//! The explorer marks each message with its waiting releases, and calls [`Wait::includes`] and [`continuing_waits`]. The
//! timing model counts messages in flight in [`Pool`]s. It looks up the pools for a store ([`StoreRoute::pools`]), the
//! pools an action waits for ([`Pool::is_awaited_by`]), and the pools to decrement when a store is acknowledged
//! ([`AcknowledgedStore`]). A test over random sends, acknowledgments and waits compares the counts with the marks
//! (`crates/model/tests/model/drains.rs`).

use crate::broken_rule::BrokenRule;
use crate::coherence::Coherence;
use crate::plan::Action;
use crate::topology::{Homes, Topology};
use std::ops::BitAnd;
use tombolo_types::ModuleId;

/// A message's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// An SM, with a host-defined number.
    Sm(u16),
    /// A module's L2.
    Module(ModuleId),
}

/// The kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A store, an atomic or a write-back.
    Store,
    /// An invalidation.
    Invalidation,
}

/// A message sent but not yet acknowledged: on a link, or parked at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageInFlight {
    /// The kind of message.
    pub kind: MessageKind,
    /// The sender.
    pub from: Sender,
    /// The module whose L2 receives the message.
    pub to: ModuleId,
    /// A host-defined number: the line for a store, the region for an invalidation.
    pub key: u64,
}

/// A wait that begins now, for all included messages in flight at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A release's first step, or a kernel's last: waits for an SM's posted stores.
    Posted(u16),
    /// A phase's action at a member.
    Phase {
        /// The member.
        at: ModuleId,
        /// The member's action.
        action: Action,
    },
    /// A release's wait for a line's bytes that it caused to be written back.
    WrittenBack {
        /// The module that writes back.
        at: ModuleId,
        /// The line.
        line: u64,
    },
    /// The successor wait after a GPU home has accepted an invalidation: waits for the home's own invalidations in
    /// the region. An entry replaced a moment before has no sharer left to forward to, and its invalidations may
    /// still be in flight.
    Successor {
        /// The GPU home.
        at: ModuleId,
        /// The region.
        region: u64,
    },
}

impl Wait {
    /// True if the wait includes this message in flight.
    pub fn includes(self, topology: &impl Topology, sent: &MessageInFlight) -> bool {
        let by = |module| sent.from == Sender::Module(module);
        match (self, sent.kind) {
            (Wait::Posted(sm), MessageKind::Store) => sent.from == Sender::Sm(sm),
            (Wait::Phase { at, action }, what) => {
                let beyond = topology.gpu_of(at) != topology.gpu_of(sent.to);
                by(at) && drains(action, what) && action.awaits(beyond)
            }
            (Wait::WrittenBack { at, line }, MessageKind::Store) => by(at) && sent.key == line,
            (Wait::Successor { at, region }, MessageKind::Invalidation) => by(at) && sent.key == region,
            (Wait::Posted(_) | Wait::WrittenBack { .. }, MessageKind::Invalidation)
            | (Wait::Successor { .. }, MessageKind::Store) => false,
        }
    }
}

/// True if an action waits for messages in this category.
fn drains(action: Action, what: MessageKind) -> bool {
    match action {
        Action::DrainStores(_) | Action::ForwardStores | Action::Flush | Action::AwaitStores => {
            what == MessageKind::Store
        }
        Action::DrainInvalidations(_) => what == MessageKind::Invalidation,
        Action::Invalidate(_) | Action::Merge { .. } => false,
    }
}

/// The waits that continue past a store's acknowledgment at an intermediate home: the subset of `waited`, the waits
/// for the store, whose phase waits `to_the_end` ([`Action::awaits_to_the_end`]).
pub fn continuing_waits<S: BitAnd<Output = S> + Default>(protocol: &impl Coherence, waited: S, to_the_end: S) -> S {
    if protocol.broken(BrokenRule::StoreEndsAtGpuHome) { S::default() } else { waited & to_the_end }
}

/// The invalidations that a wait continues with after an awaited invalidation is accepted: [`Wait::Successor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessorWait {
    /// All invalidations sent for the region.
    All,
    /// Broken rule: only the invalidations sent at acceptance.
    Forwarded,
    /// Broken rule: none.
    Nothing,
}

/// The successor wait for an invalidation that a GPU home has accepted.
pub fn successor_wait(protocol: &impl Coherence) -> SuccessorWait {
    if protocol.broken(BrokenRule::InvalidationTakenEarly) {
        SuccessorWait::Nothing
    } else if protocol.broken(BrokenRule::ReplacementNotAwaited) {
        SuccessorWait::Forwarded
    } else {
        SuccessorWait::All
    }
}

/// A group of operations sent by a module that a drain need not distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pool {
    /// This module's own stores to a module in its GPU.
    Stores,
    /// This module's own stores to a module in another GPU.
    StoresBeyond,
    /// Stores from other modules that this module, their GPU home, has forwarded to another GPU.
    ForwardedStores,
    /// This module's own stores through a GPU home, counted until acknowledged at the end of their path.
    StoresToTheEnd,
    /// Invalidations to a module in its GPU.
    Invalidations,
    /// Invalidations to another GPU, counted until acknowledged by all affected modules there.
    InvalidationsBeyond,
}

impl Pool {
    /// All pools, in discriminant order.
    pub const ALL: [Pool; 6] = [
        Pool::Stores,
        Pool::StoresBeyond,
        Pool::ForwardedStores,
        Pool::StoresToTheEnd,
        Pool::Invalidations,
        Pool::InvalidationsBeyond,
    ];

    /// The pool for invalidations to a module in another GPU (`beyond`) or in this GPU.
    pub fn of_invalidations(beyond: bool) -> Pool {
        if beyond { Pool::InvalidationsBeyond } else { Pool::Invalidations }
    }

    /// True if a phase's action waits for this pool.
    pub fn is_awaited_by(self, action: Action) -> bool {
        match self {
            Pool::Stores => drains(action, MessageKind::Store) && action.awaits(false),
            Pool::StoresBeyond | Pool::ForwardedStores => drains(action, MessageKind::Store) && action.awaits(true),
            // Forwarded stores go straight to their system home.
            Pool::StoresToTheEnd => {
                matches!(action, Action::DrainStores(_) | Action::Flush | Action::AwaitStores)
                    && action.awaits_to_the_end()
            }
            Pool::Invalidations => drains(action, MessageKind::Invalidation) && action.awaits(false),
            Pool::InvalidationsBeyond => drains(action, MessageKind::Invalidation) && action.awaits(true),
        }
    }

    /// True if the operations occupy space among an L2's posted stores.
    pub fn takes_room(self) -> bool {
        matches!(self, Pool::Stores | Pool::StoresBeyond | Pool::ForwardedStores)
    }
}

/// A store's route out of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRoute {
    /// Forwarded for another module, whose GPU home is this module.
    Forwarded,
    /// To another GPU.
    Beyond,
    /// To its system home in this GPU, or to memory if this module is the system home.
    Home,
    /// To its GPU home, which forwards the store.
    ByGpuHome,
}

impl StoreRoute {
    /// The route on which a store issued by `origin` leaves `at`. `homes`: the line's homes, as seen by `at`.
    pub fn of(
        topology: &impl Topology,
        hierarchical: bool,
        (at, origin): (ModuleId, ModuleId),
        homes: Homes,
    ) -> StoreRoute {
        let target = homes.next(at, hierarchical);
        if origin != at {
            StoreRoute::Forwarded
        } else if target.is_some_and(|target| topology.gpu_of(target) != topology.gpu_of(at)) {
            StoreRoute::Beyond
        } else if target.is_none_or(|target| target == homes.system) {
            StoreRoute::Home
        } else {
            StoreRoute::ByGpuHome
        }
    }

    /// The pool that counts the store up to its next hop's acknowledgment, and the pool that counts it up to the
    /// path's end.
    pub fn pools(self) -> (Pool, Option<Pool>) {
        match self {
            StoreRoute::Forwarded => (Pool::ForwardedStores, None),
            StoreRoute::Beyond => (Pool::StoresBeyond, None),
            StoreRoute::Home => (Pool::Stores, None),
            StoreRoute::ByGpuHome => (Pool::Stores, Some(Pool::StoresToTheEnd)),
        }
    }
}

/// An acknowledged store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcknowledgedStore {
    /// The module that issued the store.
    pub origin: ModuleId,
    /// The module that sent the store to the acknowledging module.
    pub from: ModuleId,
    /// Set when the acknowledging module is in another GPU.
    pub beyond: bool,
    /// Set when the store was acknowledged at its line's system home.
    pub at_home: bool,
    /// Set when the store goes no further.
    pub ends: bool,
}

impl AcknowledgedStore {
    /// The sender's pool to decrement, and the origin's pool if the store's path has ended and is counted there.
    pub fn pools_to_decrement(self, protocol: &impl Coherence) -> (Pool, Option<Pool>) {
        let hop = match (self.origin == self.from, self.beyond) {
            (true, false) => Pool::Stores,
            (true, true) => Pool::StoresBeyond,
            (false, _) => Pool::ForwardedStores,
        };
        // Under the broken rule, the path's end is reported when the GPU home accepts the store, and never again.
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
    fn a_gpu_drain_ignores_messages_that_have_left_the_gpu() {
        assert_eq!(awaited(Action::DrainStores(Scope::Gpu)), [Pool::Stores]);
        assert_eq!(awaited(Action::DrainInvalidations(Scope::Gpu)), [Pool::Invalidations]);
        assert_eq!(awaited(Action::ForwardStores), [Pool::StoresBeyond, Pool::ForwardedStores]);
    }

    #[test]
    fn a_system_drain_waits_for_every_pool_of_its_kind() {
        assert_eq!(awaited(Action::DrainStores(Scope::Sys)), Pool::ALL[..4]);
        assert_eq!(awaited(Action::AwaitStores), Pool::ALL[..4]);
        assert_eq!(awaited(Action::DrainInvalidations(Scope::Sys)), Pool::ALL[4..]);
    }
}
