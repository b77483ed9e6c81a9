//! Stores and invalidations sent by a module and not yet acknowledged, counted in pools by the kind of wait.
//!
//! A release waits for all operations sent earlier, until they are accepted at the release's scope (`protocol::plan`).
//! Operations with different completion times per scope are therefore counted in separate pools. A store routed through
//! a GPU home is counted twice: until the GPU home has accepted it, and until the system home has. A wait covers only
//! the operations sent before it.

use crate::l2::credits::{Credits, Generation};
use crate::observe::latency::ModuleLatency;
use std::collections::VecDeque;
use tombolo_protocol::drain::Pool;
use tombolo_types::{ModuleId, Ps};

/// Tickets of a store in flight, held by the sending modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tickets {
    /// Ticket for the next hop; from an SM, the SM's credit.
    pub hop: Generation,
    /// The first sender's ticket for the final destination, if it lies beyond the next hop.
    pub end: Generation,
}

impl Tickets {
    /// Tickets for a read, which needs none: both fields carry the time spent at the forwarding slice instead.
    pub(crate) fn of_read(held: ModuleLatency) -> Tickets {
        Tickets { hop: Generation::numbered(held.slice_queue), end: Generation::numbered(held.slice) }
    }

    /// Time that a read spent at forwarding slices.
    pub(crate) fn held(self) -> ModuleLatency {
        ModuleLatency { slice_queue: self.hop.number(), slice: self.end.number(), ..ModuleLatency::default() }
    }
}

/// A waiter for a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainWaiter {
    /// A phase at this module, identified by the controller's join number.
    Join(u32),
    /// A system home in another GPU, whose invalidation this module received as GPU home.
    Home {
        /// The home module.
        module: ModuleId,
        /// Ticket for the acknowledgment.
        ticket: Generation,
        /// Time when the invalidation was completely received.
        ready: Ps,
    },
}

/// Operations in a pool, with their waiters.
#[derive(Clone, Debug)]
struct OperationPool {
    credits: Credits,
    /// Waiters for the pool's drains, oldest first.
    waiters: VecDeque<DrainWaiter>,
}

/// All operations from a module that are not yet acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    pools: [OperationPool; Pool::ALL.len()],
    /// Maximum number of posted stores in flight: for the module's own stores, and separately for forwarded stores.
    limit: u32,
}

impl Outstanding {
    /// State with nothing in flight; `limit`: maximum number of posted stores, own and forwarded each.
    pub(crate) fn new(limit: u32) -> Outstanding {
        let empty = OperationPool { credits: Credits::new(u32::MAX), waiters: VecDeque::new() };
        Outstanding { pools: std::array::from_fn(|_| empty.clone()), limit }
    }

    /// True if one more store may be posted, the module's own or (`forwarded`) another module's.
    #[inline]
    pub(crate) fn has_room(&self, forwarded: bool) -> bool {
        let out = |pool: Pool| self.pools[pool as usize].credits.out();
        let out = if forwarded { out(Pool::ForwardedStores) } else { out(Pool::Stores) + out(Pool::StoresBeyond) };
        out < self.limit
    }

    /// Counts an operation as sent, even without room, because write-backs of dirty bytes must not be refused.
    #[inline]
    pub(crate) fn send(&mut self, pool: Pool) -> Generation {
        self.pools[pool as usize].credits.take()
    }

    /// Acknowledges an operation. Call [`Outstanding::pop_drained`] afterwards.
    #[inline]
    pub(crate) fn taken(&mut self, pool: Pool, ticket: Generation) {
        self.pools[pool as usize].credits.give_back(ticket);
    }

    /// Number of operations in flight in a pool.
    pub(crate) fn count(&self, pool: Pool) -> u32 {
        self.pools[pool as usize].credits.out()
    }

    /// Starts a wait by `waiter` for all operations now in flight in a pool. Call [`Outstanding::pop_drained`]
    /// afterwards.
    pub(crate) fn drain(&mut self, pool: Pool, waiter: DrainWaiter) {
        let pool = &mut self.pools[pool as usize];
        pool.credits.drain();
        pool.waiters.push_back(waiter);
    }

    /// Returns each waiter exactly once, when its wait is over.
    #[inline]
    pub(crate) fn pop_drained(&mut self, pool: Pool) -> Option<DrainWaiter> {
        let pool = &mut self.pools[pool as usize];
        pool.credits.pop_drained()?;
        Some(pool.waiters.pop_front().expect("somebody waits for each drain"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_by_a_gpu_home_ends_two_waits_one_after_the_other() {
        let mut outstanding = Outstanding::new(1);
        let (hop, end) = (outstanding.send(Pool::Stores), outstanding.send(Pool::StoresToTheEnd));
        outstanding.drain(Pool::Stores, DrainWaiter::Join(0));
        outstanding.drain(Pool::StoresToTheEnd, DrainWaiter::Join(1));
        assert!(!outstanding.has_room(false) && outstanding.has_room(true));
        outstanding.taken(Pool::Stores, hop);
        assert_eq!(outstanding.pop_drained(Pool::Stores), Some(DrainWaiter::Join(0)));
        assert!(outstanding.has_room(false));
        assert_eq!(outstanding.pop_drained(Pool::StoresToTheEnd), None);
        outstanding.taken(Pool::StoresToTheEnd, end);
        assert_eq!(outstanding.pop_drained(Pool::StoresToTheEnd), Some(DrainWaiter::Join(1)));
    }
}
