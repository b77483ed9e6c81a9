//! Parts of a module that stand apart from it, each in a partition of its own: SMs, and groups of slices. What they and the rest
//! of it tell each other goes by message, at least [`least_delay`] ahead.

use crate::below::{Below, L2};
use crate::context::{SliceView, SmShared};
use crate::layout::Unit;
use crate::message::{Message, Out};
use crate::sides::{SliceSide, SmSide};
use crate::site::Site;
use crate::uncore::Uncore;
use crate::watch::{Contents, Watch};
use tombolo_engine::Event;
use tombolo_machine::MachineConfig;
use tombolo_protocol::Protocol;
use tombolo_types::{Ps, SmId};

/// The least delay of a message between two parts of a module: the crossbar, or half of the way to the L2 TLB.
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

/// Some groups of slices of a module that has no other beside it.
pub struct SlicesApart<C: Below<D>, D: Contents> {
    site: Site<C, D>,
    side: SliceSide<C, D>,
    /// That of a module which sends nothing to others: it stays idle.
    uncore: Uncore<D>,
}

impl<C: Below<D>, D: Contents> SlicesApart<C, D> {
    /// Slices of the module at `site`.
    pub(crate) fn new(site: Site<C, D>, side: SliceSide<C, D>, uncore: Uncore<D>) -> SlicesApart<C, D> {
        SlicesApart { site, side, uncore }
    }

    /// They, and what they share.
    pub(crate) fn into_side(self) -> SliceSide<C, D> {
        self.side
    }

    /// Handles an event of one of them.
    #[inline]
    pub fn handle(&mut self, slice: u16, event: &Event<Message<D>>, out: &mut Out<'_, D>) {
        let SlicesApart { site, side, uncore } = self;
        site.watch.handles(event.time, site.module, Unit::Slice(slice), &event.message);
        side.handle(slice, &event.message, (site, uncore), out);
    }

    /// Starts to load what an event of one of them will look at first into the host's caches.
    #[inline]
    pub fn prefetch(&self, slice: u16, message: &Message<D>) {
        let (one, view) = self.view(slice);
        one.prefetch(message, view);
    }

    /// Starts to load what an event of one of them finds by what [`SlicesApart::prefetch`] has loaded.
    #[inline]
    pub fn prefetch_found(&self, slice: u16, message: &Message<D>) {
        let (one, view) = self.view(slice);
        one.prefetch_found(message, view);
    }

    fn view(&self, slice: u16) -> (&C::Slice, SliceView<'_, C, D>) {
        let (one, shared) = self.side.slice(slice);
        (one, SliceView { site: &self.site, shared, uncore: &self.uncore })
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
