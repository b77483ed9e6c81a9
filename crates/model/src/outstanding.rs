//! What a module has sent and others have not yet taken: stores and invalidations, by what waits for them.
//!
//! A release waits for all that has been sent before it and is taken at its scope (`protocol::plan`), so what is over
//! sooner at one scope than at another is counted in pools of their own. A store that goes by a GPU home is in two:
//! until the GPU home has taken it, and until the system home has.

use crate::credits::{Credits, Generation};
use crate::latency::Inside;
use std::collections::VecDeque;
use tombolo_protocol::drain::Pool;
use tombolo_types::{ModuleId, Ps};

/// The handles of a store on its way, with the module that sent it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tickets {
    /// To where it goes next; from an SM, the SM's credit.
    pub hop: Generation,
    /// To the end of its way, where that is further: the first sender's.
    pub end: Generation,
}

impl Tickets {
    /// Of a read, which has none: what a slice that has passed it on took, in their place.
    pub fn of_read(held: Inside) -> Tickets {
        Tickets { hop: Generation::numbered(held.slice_queue), end: Generation::numbered(held.slice) }
    }

    /// What slices that have passed a read on took.
    pub fn held(self) -> Inside {
        Inside { slice_queue: self.hop.number(), slice: self.end.number(), ..Inside::default() }
    }
}

/// Somebody who waits for a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A phase at this module: which of the controller's joins.
    Join(u32),
    /// A system home of another GPU, whose invalidation this module has taken as GPU home.
    Home {
        /// Which.
        module: ModuleId,
        /// Its ticket.
        ticket: Generation,
        /// When the invalidation was wholly here.
        ready: Ps,
    },
}

/// The operations of one pool, with those who wait for them.
#[derive(Clone, Debug)]
struct Operations {
    credits: Credits,
    /// Waiters of its drains, oldest first.
    askers: VecDeque<Asker>,
}

/// All that a module has sent and that is not taken yet.
#[derive(Clone, Debug)]
pub struct Outstanding {
    pools: [Operations; Pool::ALL.len()],
    /// Posted stores of its own account, and of others, that an L2 may have under way.
    limit: u32,
}

impl Outstanding {
    /// Nothing is under way; `limit`: posted stores that may be, of its own account and of others.
    pub fn new(limit: u32) -> Outstanding {
        let empty = Operations { credits: Credits::new(u32::MAX), askers: VecDeque::new() };
        Outstanding { pools: std::array::from_fn(|_| empty.clone()), limit }
    }

    /// Whether one more store may be posted, on the module's own account or (`forwarded`) for another.
    #[inline]
    pub fn has_room(&self, forwarded: bool) -> bool {
        let out = |pool: Pool| self.pools[pool as usize].credits.out();
        let out = if forwarded { out(Pool::ForwardedStores) } else { out(Pool::Stores) + out(Pool::StoresBeyond) };
        out < self.limit
    }

    /// One more is on its way, even where there is no room: dirty bytes on their way out must not be refused.
    #[inline]
    pub fn send(&mut self, pool: Pool) -> Generation {
        self.pools[pool as usize].credits.take()
    }

    /// One has been taken. Ask [`Outstanding::pop_drained`] afterwards.
    #[inline]
    pub fn taken(&mut self, pool: Pool, ticket: Generation) {
        self.pools[pool as usize].credits.give_back(ticket);
    }

    /// How many of a pool are under way.
    pub fn count(&self, pool: Pool) -> u32 {
        self.pools[pool as usize].credits.out()
    }

    /// `asker` waits for all of a pool that is under way. Ask [`Outstanding::pop_drained`] afterwards.
    pub fn drain(&mut self, pool: Pool, asker: Asker) {
        let pool = &mut self.pools[pool as usize];
        pool.credits.drain();
        pool.askers.push_back(asker);
    }

    /// Whose wait is over, once each.
    #[inline]
    pub fn pop_drained(&mut self, pool: Pool) -> Option<Asker> {
        let pool = &mut self.pools[pool as usize];
        pool.credits.pop_drained()?;
        Some(pool.askers.pop_front().expect("somebody waits for each drain"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_by_a_gpu_home_ends_two_waits_one_after_the_other() {
        let mut outstanding = Outstanding::new(1);
        let (hop, end) = (outstanding.send(Pool::Stores), outstanding.send(Pool::StoresToTheEnd));
        outstanding.drain(Pool::Stores, Asker::Join(0));
        outstanding.drain(Pool::StoresToTheEnd, Asker::Join(1));
        assert!(!outstanding.has_room(false) && outstanding.has_room(true));
        outstanding.taken(Pool::Stores, hop);
        assert_eq!(outstanding.pop_drained(Pool::Stores), Some(Asker::Join(0)));
        assert!(outstanding.has_room(false));
        assert_eq!(outstanding.pop_drained(Pool::StoresToTheEnd), None);
        outstanding.taken(Pool::StoresToTheEnd, end);
        assert_eq!(outstanding.pop_drained(Pool::StoresToTheEnd), Some(Asker::Join(1)));
    }
}
