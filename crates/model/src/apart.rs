//! SMs of a module that stand apart from it, in a partition of their own: what they and the rest of it tell each other goes by
//! message, at least [`least_delay`] ahead.

use crate::context::SmShared;
use crate::layout::Unit;
use crate::message::{Message, Out};
use crate::sides::SmSide;
use crate::site::Site;
use crate::watch::{Contents, Watch};
use tombolo_engine::Event;
use tombolo_machine::MachineConfig;
use tombolo_protocol::Protocol;
use tombolo_types::{ModuleId, Ps, SmId};

/// The least delay of a message between an SM and the rest of its module: the crossbar, or half of the way to the L2 TLB.
pub fn least_delay(machine: &MachineConfig) -> Ps {
    machine.crossbar.latency.min(crate::convert::to_l2_tlb(machine))
}

/// Some SMs of a module.
pub struct SmsApart<C, D: Contents> {
    site: Site<C, D>,
    side: SmSide<D>,
}

impl<C: Protocol, D: Contents> SmsApart<C, D> {
    /// SMs of the module at `site`.
    pub(crate) fn new(site: Site<C, D>, side: SmSide<D>) -> SmsApart<C, D> {
        SmsApart { site, side }
    }

    /// Whose they are.
    pub fn module(&self) -> ModuleId {
        self.site.module
    }

    /// They, and what they share.
    pub(crate) fn into_side(self) -> SmSide<D> {
        self.side
    }

    /// Handles an event of one of them.
    #[inline]
    pub fn handle(&mut self, sm: SmId, event: &Event<Message<D>>, out: &mut Out<'_, D>) {
        self.site.watch.handles(event.time, self.site.module, Unit::Sm(sm), &event.message);
        self.side.handle(sm, &event.message, &self.site, out);
    }

    /// Starts to load what an event of one of them will look at first into the host's caches.
    #[inline]
    pub fn prefetch(&self, sm: SmId, message: &Message<D>) {
        self.side.sm(sm).prefetch(message);
    }

    /// Starts to load what an event of one of them finds by what [`SmsApart::prefetch`] has loaded.
    #[inline]
    pub fn prefetch_found(&self, sm: SmId, message: &Message<D>) {
        self.side.sm(sm).prefetch_found(message);
    }
}

impl SmShared {
    /// Adds what other SMs of the module have counted apart from these.
    pub(crate) fn merge(&mut self, other: SmShared) {
        self.failure = self.failure.take().or(other.failure);
        self.latencies.merge(&other.latencies);
        self.counted.resize(self.counted.len().max(other.counted.len()), Default::default());
        for (mine, theirs) in self.counted.iter_mut().zip(&other.counted) {
            *mine = mine.and(theirs);
        }
    }
}
