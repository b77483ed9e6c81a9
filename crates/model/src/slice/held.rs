//! How long a slice holds reads, and what passes below it: what it says of an answer. It decides nothing.

use super::{Item, Slice, Waiter};
use crate::context::SliceContext;
use crate::latency::{Below, Inside, Stamp};
use crate::mshr::EntryId;
use crate::watch::Contents;
use tombolo_types::{Bytes, Mask, ModuleId, Ps};

impl<D: Contents> Item<D> {
    /// What slices that have passed it on took.
    pub(super) fn held(&self) -> Inside {
        if self.is_read() { self.body.tickets.held() } else { Inside::default() }
    }
}

impl<D: Contents> Slice<D> {
    /// What a request that is looked up takes on an idle slice, with the bytes that it moves.
    fn look_up_time<C>(&self, bytes: u64, here: &SliceContext<'_, '_, C, D>) -> Ps {
        self.port.span(Bytes(bytes)).max(self.request.time()) + here.site.machine.l2.hit_latency
    }

    /// What a request that leaves at `leaves` took here, having moved `bytes`, and before.
    pub(super) fn held_until<C>(
        &self,
        leaves: Ps,
        item: &Item<D>,
        bytes: u64,
        here: &SliceContext<'_, '_, C, D>,
    ) -> Inside {
        if !here.site.follows_loads() {
            return Inside::default();
        }
        let time = Ps(Stamp::of(leaves).after(item.arrived).into());
        Inside::slice(time, self.look_up_time(bytes, here)).and(item.held())
    }

    /// What a waiter waited for whose bytes came at `ready`, `below` after they were asked for, and leave at `leaves`.
    pub(super) fn waited<C>(
        &self,
        waiter: &Waiter,
        (ready, leaves): (Ps, Ps),
        below: Below,
        here: &SliceContext<'_, '_, C, D>,
    ) -> Below {
        if !here.site.follows_loads() {
            return Below::default();
        }
        let since_arrival = Stamp::of(ready).after(waiter.arrived);
        let bytes = u64::from(waiter.mask.grains()) * here.site.machine.line.grain();
        let passing = self.port.span(Bytes(bytes));
        let (below, idle) = if since_arrival >= below.sum() {
            (below, self.look_up_time(0, here) + passing)
        } else {
            (below.share(since_arrival), passing)
        };
        let whole = Stamp::of(leaves).after(waiter.arrived);
        let here = Inside::slice(Ps(whole.saturating_sub(below.sum()).into()), idle);
        Below { inside: below.inside.and(here), ..below }
    }

    /// A read has left for another module at `leaves`, on account of a miss register.
    pub(super) fn note_sent<C>(&mut self, register: EntryId, leaves: Ps, here: &SliceContext<'_, '_, C, D>) {
        if here.site.follows_loads() {
            self.sent.set(register, Stamp::of(leaves));
        }
    }

    /// What passed since the last read of a miss left, of which the answer of `source`, wholly here at `ready`, tells `time`;
    /// and what of that an idle link takes. `by`: the module that has answered first.
    pub(super) fn passed<C>(
        &self,
        (source, by): (ModuleId, ModuleId),
        (mask, register): (Mask, EntryId),
        (time, ready): (Below, Ps),
        here: &SliceContext<'_, '_, C, D>,
    ) -> (Below, u32) {
        let (site, own) = (here.site, here.site.module);
        if !site.follows_loads() {
            return (Below::default(), 0);
        }
        let whole = Stamp::of(ready).after(self.sent.get(register));
        let link = time.link.saturating_add(whole.saturating_sub(time.sum()));
        let further = if by == source { 0 } else { site.trip(source, by, mask) };
        (Below { link, ..time }, site.trip(own, source, mask).saturating_add(further))
    }
}
