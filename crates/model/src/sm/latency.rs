//! Latency breakdown for an SM's loads, by leg. Purely observational: it influences no simulated time.

use super::stalls::StallCause;
use super::{FillMessage, Sm};
use crate::module::context::SmContext;
use crate::observe::latency::{Leg, Legs, LoadServer, ModuleLatency, ReplyLatency, Stamp, share, short};
use crate::observe::stall::Stall;
use crate::observe::value_probe::Contents;
use tombolo_types::Ps;

/// Departure times for a transaction leaving the L1.
#[derive(Clone, Copy, Debug)]
pub(super) struct DepartureTimes {
    /// Completion time for the L1 lookup.
    pub(super) found: Ps,
    /// Completion time at the port.
    pub(super) sent: Ps,
    /// Completion time for the transaction's address translation.
    pub(super) translated: Ps,
    /// Crossbar latency.
    pub(super) crossing: Ps,
}

impl DepartureTimes {
    /// Arrival time at the slice.
    pub(super) fn reaches(self) -> Ps {
        self.sent.max(self.translated) + self.crossing
    }

    /// Departure time without translation, and completion time of the translation.
    pub(super) fn translation(self) -> (Ps, Ps) {
        (self.sent, self.translated)
    }
}

/// Request-side latency for a read: time spent per leg, from the event to the slice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestLatency {
    since: Stamp,
    l1: u32,
    tlb: u32,
    crossbar: u32,
}

impl RequestLatency {
    /// Record for a read issued in the event at `now`.
    #[inline]
    pub(super) fn new(now: Ps, departs: DepartureTimes) -> RequestLatency {
        let DepartureTimes { found, sent, translated, crossing } = departs;
        RequestLatency {
            since: Stamp::of(now),
            l1: short(found - now),
            tlb: short(translated.saturating_sub(sent)),
            crossbar: short(sent - found + crossing),
        }
    }
}

/// Complete latency record for an answered read.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadLatency {
    pub(super) served: LoadServer,
    stall: Stall,
    legs: Legs,
    /// Total latency from the issue event to the reply: the sum over all legs.
    whole: u32,
}

impl LoadLatency {
    /// Stall category for waits on this read, with its queueing share.
    #[inline]
    pub(super) fn stall_cause(&self) -> StallCause {
        let queues = [Leg::LinkQueue, Leg::SliceQueue, Leg::DramQueue].map(|leg| self.legs[leg as usize]);
        let whole = if queues == [0; 3] { 0 } else { self.whole };
        StallCause { stall: self.stall, queues, whole }
    }

    /// Splits `waited`, the summed wait of all loads merged into this read, over the legs, in picoseconds.
    #[inline]
    pub(super) fn share(&self, waited: u64) -> [u64; Leg::ALL.len()] {
        share(self.legs, waited, self.whole)
    }
}

impl<D: Contents> Sm<D> {
    /// Builds the latency record for a reply. Time not attributed to any component counts as crossbar latency, or as
    /// link latency if another module has replied. Returns an empty record if loads are not followed.
    #[inline]
    pub(super) fn load_latency(&self, fill: &FillMessage<D>, here: &SmContext<'_, '_, D>) -> LoadLatency {
        let FillMessage { register, mask, responder: by, latency: time, .. } = *fill;
        let stall = here.shared.stall_of(by);
        if !here.config.follows_loads() {
            return LoadLatency { served: LoadServer::L1, stall, legs: Legs::default(), whole: 0 };
        }
        let RequestLatency { since, l1, tlb, crossbar } = self.request_latencies.get(register);
        let ReplyLatency { inside, mut link_queue, mut link_wire, crossbar: back } = time;
        let whole = Stamp::of(here.out.now()).since(since);
        let mut crossbar = crossbar.saturating_add(back);
        let known = [l1, tlb, crossbar, link_queue, link_wire, inside.sum()].into_iter().map(u64::from).sum::<u64>();
        let rest = u64::from(whole).saturating_sub(known) as u32;
        if by == self.module {
            crossbar += rest;
        } else if rest > 0 {
            let idle = here.config.trip(self.module, by, mask).saturating_sub(link_wire);
            link_wire += rest.min(idle);
            link_queue += rest.saturating_sub(idle);
        }
        let ModuleLatency { slice_queue, slice, dram_queue, bank } = inside;
        let served = match stall {
            Stall::Host => LoadServer::Host,
            Stall::Gpu => LoadServer::Gpu,
            Stall::Module => LoadServer::Module,
            _ if dram_queue > 0 || bank > 0 => LoadServer::Dram,
            _ => LoadServer::OwnL2,
        };
        let mut legs = [tlb, l1, crossbar, slice_queue, slice, link_queue, link_wire, dram_queue, bank];
        if known > whole.into() {
            // Extended miss: the earlier request recorded more time than the latest request took.
            legs = share(legs, whole.into(), u32::try_from(known).unwrap_or(u32::MAX)).map(|leg| leg as u32);
        }
        LoadLatency { served, stall, legs, whole }
    }
}
