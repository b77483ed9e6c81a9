//! What a module's L2 sends to others and waits for: in which pools a store is counted, and who waits for them.

use crate::credits::Generation;
use crate::outstanding::{Asker, Outstanding, Tickets};
use tombolo_protocol::drain::{Leg, Pool};

/// How what is published leaves: to a module of another GPU, which takes it.
pub const LEG_OF_PUBLICATIONS: Leg = Leg::Beyond;

/// Shape of what a module's L2 may have under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainsConfig {
    /// Posted stores of its own account, and as many of others.
    pub stores: u32,
}

/// The pools in which a store is counted until it is acknowledged, with its handle in each.
pub fn counted(leg: Leg, tickets: Tickets) -> impl Iterator<Item = (Pool, Generation)> {
    let (hop, end) = leg.pools();
    std::iter::once((hop, tickets.hop)).chain(end.map(|end| (end, tickets.end)))
}

/// Stores and invalidations on their way to other modules.
#[derive(Clone, Debug)]
pub struct Drains {
    outstanding: Outstanding,
}

impl Drains {
    /// Nothing is under way.
    pub fn new(config: DrainsConfig) -> Drains {
        Drains { outstanding: Outstanding::new(config.stores) }
    }

    /// Whether one more store may be posted, on the module's own account or (`forwarded`) for another.
    #[inline]
    pub fn has_room(&self, forwarded: bool) -> bool {
        self.outstanding.has_room(forwarded)
    }

    /// Counts a store about to leave. `tickets`: those of its sender, kept where it is forwarded.
    pub fn post(&mut self, leg: Leg, tickets: Tickets) -> Tickets {
        let (hop, end) = leg.pools();
        // A store that is forwarded keeps its origin's handle to the end of its way.
        let kept = if leg == Leg::Forwarded { tickets.end } else { Generation::default() };
        let end = end.map_or(kept, |end| self.outstanding.send(end));
        Tickets { hop: self.outstanding.send(hop), end }
    }

    /// Counts an invalidation about to leave, for a module of another GPU or (not `beyond`) of this one.
    pub fn post_invalidation(&mut self, beyond: bool) -> Generation {
        self.outstanding.send(Pool::of_invalidations(beyond))
    }

    /// Invalidations under way within this GPU.
    pub fn invalidations(&self) -> u32 {
        self.outstanding.count(Pool::Invalidations)
    }

    /// Has a system home of another GPU wait until the invalidations within this GPU are acknowledged; false where none is
    /// under way. That waits for all of them where those of the region would do.
    pub fn await_invalidations(&mut self, home: Asker) -> bool {
        let waits = self.invalidations() > 0;
        if waits {
            self.outstanding.drain(Pool::Invalidations, home);
        }
        waits
    }

    /// `asker` waits for all of a pool that is under way. Ask [`Drains::pop_drained`] afterwards.
    pub fn drain(&mut self, pool: Pool, asker: Asker) {
        self.outstanding.drain(pool, asker);
    }

    /// One has been acknowledged. Ask [`Drains::pop_drained`] afterwards.
    #[inline]
    pub fn taken(&mut self, pool: Pool, ticket: Generation) {
        self.outstanding.taken(pool, ticket);
    }

    /// Whose wait for a pool is over, once each.
    #[inline]
    pub fn pop_drained(&mut self, pool: Pool) -> Option<Asker> {
        self.outstanding.pop_drained(pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_posted_is_counted_until_all_its_pools_have_it_back() {
        for leg in [Leg::Beyond, Leg::Home, Leg::ByGpuHome] {
            let mut drains = Drains::new(DrainsConfig { stores: 1 });
            let tickets = drains.post(leg, Tickets::default());
            assert!(!drains.has_room(false) && drains.has_room(true), "{leg:?}");
            let pools: Vec<_> = counted(leg, tickets).collect();
            for &(pool, ticket) in &pools {
                drains.drain(pool, Asker::Join(0));
                assert_eq!(drains.pop_drained(pool), None, "{leg:?}");
                drains.taken(pool, ticket);
                assert_eq!(drains.pop_drained(pool), Some(Asker::Join(0)), "{leg:?}");
            }
            assert!(drains.has_room(false), "{leg:?}");
        }
    }

    #[test]
    fn a_system_home_waits_only_where_invalidations_are_under_way() {
        let mut drains = Drains::new(DrainsConfig { stores: 1 });
        let ticket = drains.post_invalidation(false);
        assert!(drains.await_invalidations(Asker::Join(0)));
        drains.taken(Pool::Invalidations, ticket);
        assert_eq!(drains.pop_drained(Pool::Invalidations), Some(Asker::Join(0)));
        assert!(!drains.await_invalidations(Asker::Join(1)));
    }
}
