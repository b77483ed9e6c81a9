//! Latency accounting at a slice: queueing and service time here, and latency below, for the latency record in a
//! reply. Purely observational: it influences no simulated time.

use super::{Slice, SliceRequest, Waiter};
use crate::l2::mshr::EntryId;
use crate::module::context::SliceContext;
use crate::observe::latency::{LatencyBelow, ModuleLatency, Stamp};
use crate::observe::value_probe::Contents;
use tombolo_types::{Bytes, Mask, ModuleId, Ps};

impl<D: Contents> SliceRequest<D> {
    /// Time spent in earlier slices on this read's path.
    pub(super) fn forwarded_latency(&self) -> ModuleLatency {
        if self.is_read() { self.body.tickets.held() } else { ModuleLatency::default() }
    }
}

impl<D: Contents> Slice<D> {
    /// Service time for a lookup on an idle slice, including the transfer of `bytes`.
    fn look_up_time<C>(&self, bytes: u64, here: &SliceContext<'_, '_, C, D>) -> Ps {
        self.port.span(Bytes(bytes)).max(self.request.time()) + here.config.machine.l2.hit_latency
    }

    /// Latency in this slice for a request that departs at `leaves`, including the transfer of `bytes`, plus the time
    /// in earlier slices.
    pub(super) fn latency_until<C>(
        &self,
        leaves: Ps,
        item: &SliceRequest<D>,
        bytes: u64,
        here: &SliceContext<'_, '_, C, D>,
    ) -> ModuleLatency {
        if !here.config.follows_loads() {
            return ModuleLatency::default();
        }
        let time = Ps(Stamp::of(leaves).after(item.arrived).into());
        ModuleLatency::slice(time, self.look_up_time(bytes, here)).and(item.forwarded_latency())
    }

    /// Latency record for a waiting read. Its bytes arrived at `ready`, `below` after the request was sent, and depart
    /// at `leaves`.
    pub(super) fn waiter_latency<C>(
        &self,
        waiter: &Waiter,
        (ready, leaves): (Ps, Ps),
        below: LatencyBelow,
        here: &SliceContext<'_, '_, C, D>,
    ) -> LatencyBelow {
        if !here.config.follows_loads() {
            return LatencyBelow::default();
        }
        let since_arrival = Stamp::of(ready).after(waiter.arrived);
        let bytes = u64::from(waiter.mask.grains()) * here.config.machine.line.grain();
        let passing = self.port.span(Bytes(bytes));
        let (below, idle) = if since_arrival >= below.sum() {
            (below, self.look_up_time(0, here) + passing)
        } else {
            (below.share(since_arrival), passing)
        };
        let whole = Stamp::of(leaves).after(waiter.arrived);
        let here = ModuleLatency::slice(Ps(whole.saturating_sub(below.sum()).into()), idle);
        LatencyBelow { inside: below.inside.and(here), ..below }
    }

    /// Records the departure time of a read sent to another module for an MSHR.
    pub(super) fn note_sent<C>(&mut self, register: EntryId, leaves: Ps, here: &SliceContext<'_, '_, C, D>) {
        if here.config.follows_loads() {
            self.sent.set(register, Stamp::of(leaves));
        }
    }

    /// Splits the latency since a miss's last read departed: the reply from `source`, complete at `ready`, already
    /// explains `time`. Also returns the unloaded link latency in this time. `by`: the module that served the read.
    pub(super) fn latency_below<C>(
        &self,
        (source, by): (ModuleId, ModuleId),
        (mask, register): (Mask, EntryId),
        (time, ready): (LatencyBelow, Ps),
        here: &SliceContext<'_, '_, C, D>,
    ) -> (LatencyBelow, u32) {
        let (config, own) = (here.config, here.config.module);
        if !config.follows_loads() {
            return (LatencyBelow::default(), 0);
        }
        let whole = Stamp::of(ready).after(self.sent.get(register));
        let link = time.link.saturating_add(whole.saturating_sub(time.sum()));
        let further = if by == source { 0 } else { config.trip(source, by, mask) };
        (LatencyBelow { link, ..time }, config.trip(own, source, mask).saturating_add(further))
    }
}
