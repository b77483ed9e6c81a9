//! Stores and invalidations sent by a module's L2 to other modules: the pools with their counts, and the waiters for
//! acknowledgment.

use crate::l2::credits::Generation;
use crate::l2::outstanding::{DrainWaiter, Outstanding, Tickets};
use tombolo_protocol::drain::{Pool, StoreRoute};

/// Leg for a published store: to a module in another GPU, which accepts it.
pub(crate) const LEG_OF_PUBLICATIONS: StoreRoute = StoreRoute::Beyond;

/// Limits on the operations in flight from a module's L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainsConfig {
    /// Maximum number of the module's own posted stores; an equal limit applies to stores forwarded for other modules.
    pub stores: u32,
}

/// Pools that count a store until its acknowledgment, with the store's ticket in each pool.
pub(crate) fn counted(leg: StoreRoute, tickets: Tickets) -> impl Iterator<Item = (Pool, Generation)> {
    let (hop, end) = leg.pools();
    std::iter::once((hop, tickets.hop)).chain(end.map(|end| (end, tickets.end)))
}

/// Stores and invalidations in flight to other modules.
#[derive(Clone, Debug)]
pub struct Drains {
    outstanding: Outstanding,
}

impl Drains {
    /// State with nothing in flight.
    pub fn new(config: DrainsConfig) -> Drains {
        Drains { outstanding: Outstanding::new(config.stores) }
    }

    /// True if one more store may be posted, the module's own or (`forwarded`) another module's.
    #[inline]
    pub(crate) fn has_room(&self, forwarded: bool) -> bool {
        self.outstanding.has_room(forwarded)
    }

    /// Counts a store about to leave. `tickets`: the sender's tickets, kept if the store is forwarded.
    pub fn post(&mut self, leg: StoreRoute, tickets: Tickets) -> Tickets {
        let (hop, end) = leg.pools();
        // A forwarded store keeps its origin's ticket up to its final destination.
        let kept = if leg == StoreRoute::Forwarded { tickets.end } else { Generation::default() };
        let end = end.map_or(kept, |end| self.outstanding.send(end));
        Tickets { hop: self.outstanding.send(hop), end }
    }

    /// Counts an invalidation about to leave for a module in another GPU (`beyond`) or in this one.
    pub fn post_invalidation(&mut self, beyond: bool) -> Generation {
        self.outstanding.send(Pool::of_invalidations(beyond))
    }

    /// Invalidations in flight within this GPU.
    pub(crate) fn invalidations(&self) -> u32 {
        self.outstanding.count(Pool::Invalidations)
    }

    /// Makes a system home in another GPU wait for acknowledgment of the invalidations within this GPU; false if none
    /// is in flight. The wait covers all invalidations, although the region's own would suffice.
    pub fn await_invalidations(&mut self, home: DrainWaiter) -> bool {
        let waits = self.invalidations() > 0;
        if waits {
            self.outstanding.drain(Pool::Invalidations, home);
        }
        waits
    }

    /// Starts a wait by `waiter` for all operations now in flight in a pool. Call [`Drains::pop_drained`] afterwards.
    pub fn drain(&mut self, pool: Pool, waiter: DrainWaiter) {
        self.outstanding.drain(pool, waiter);
    }

    /// Acknowledges one operation. Call [`Drains::pop_drained`] afterwards.
    #[inline]
    pub fn taken(&mut self, pool: Pool, ticket: Generation) {
        self.outstanding.taken(pool, ticket);
    }

    /// Returns each waiter in a pool exactly once, when its wait is over.
    #[inline]
    pub fn pop_drained(&mut self, pool: Pool) -> Option<DrainWaiter> {
        self.outstanding.pop_drained(pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_posted_is_counted_until_all_its_pools_have_it_back() {
        for leg in [StoreRoute::Beyond, StoreRoute::Home, StoreRoute::ByGpuHome] {
            let mut drains = Drains::new(DrainsConfig { stores: 1 });
            let tickets = drains.post(leg, Tickets::default());
            assert!(!drains.has_room(false) && drains.has_room(true), "{leg:?}");
            let pools: Vec<_> = counted(leg, tickets).collect();
            for &(pool, ticket) in &pools {
                drains.drain(pool, DrainWaiter::Join(0));
                assert_eq!(drains.pop_drained(pool), None, "{leg:?}");
                drains.taken(pool, ticket);
                assert_eq!(drains.pop_drained(pool), Some(DrainWaiter::Join(0)), "{leg:?}");
            }
            assert!(drains.has_room(false), "{leg:?}");
        }
    }

    #[test]
    fn a_system_home_waits_only_where_invalidations_are_under_way() {
        let mut drains = Drains::new(DrainsConfig { stores: 1 });
        let ticket = drains.post_invalidation(false);
        assert!(drains.await_invalidations(DrainWaiter::Join(0)));
        drains.taken(Pool::Invalidations, ticket);
        assert_eq!(drains.pop_drained(Pool::Invalidations), Some(DrainWaiter::Join(0)));
        assert!(!drains.await_invalidations(DrainWaiter::Join(1)));
    }
}
