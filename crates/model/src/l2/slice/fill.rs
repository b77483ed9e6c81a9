//! Fills at a slice: install the bytes, serve the waiting reads, and retry the parked requests.

use super::host::{CompletedMiss, SliceFill, SliceWithContext};
use super::request::ReadReply;
use super::{LEVELS, ReplyBytes, Slice, SliceRequest, Waiter};
use crate::l2::cache::BulkClass;
use crate::l2::departure::Departure;
use crate::l2::mshr::EntryId;
use crate::module::actions::Actions;
use crate::module::context::{SliceContext, SliceView};
use crate::observe::latency::LatencyBelow;
use crate::observe::value_probe::Contents;
use std::collections::VecDeque;
use tombolo_protocol::host::{fill, resume};
use tombolo_protocol::{Class, Coherence, L2Event, LineSlot, Pending, Reply, Requester};
use tombolo_types::{Bytes, Line, Mask, ModuleId, Ps, Scope};

/// Bytes from a fill, together with the protocol's view of the line.
pub(super) struct FillData<D: Contents> {
    pub(super) slot: LineSlot<D>,
    pub(super) mask: Mask,
    pub(super) data: D,
    /// Replying module.
    pub(super) by: ModuleId,
    /// Departure time for data served from this fill.
    pub(super) leaves: Departure,
    /// Arrival time for the complete fill. `below`: latency since the request was sent; `wire`: its unloaded link
    /// latency.
    pub(super) ready: Ps,
    pub(super) below: LatencyBelow,
    pub(super) unloaded: u32,
}

impl<D: Contents> Slice<D> {
    /// Handles a fill for a pending miss. `entry`: the MSHR that waits for the bytes.
    pub(super) fn fill<C: Coherence>(
        &mut self,
        bytes: ReplyBytes<D>,
        entry: EntryId,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let ReplyBytes { line, mask, data, by, below, unloaded } = bytes;
        assert!(self.mshr.holds(entry, line), "{}: a fill of {line} nobody asked for", here.config.module);
        let weight = u64::from(mask.grains()) * here.config.machine.line.grain();
        here.shared.stats.fill_bytes += weight;
        // The request already paid for the lookup: arriving bytes continue as soon as they are written.
        let leaves = Departure::at(ready).through(here.out.now(), &mut self.port, Bytes(weight));
        let slot = self.slot(line, self.mshr.get(entry).homes, Some(entry));
        let filled = FillData { slot, mask, data, by, leaves, ready, below, unloaded };
        let config = here.config;
        let mut filling =
            SliceFill { here: SliceWithContext { slice: self, context: here }, entry, filled, served: false };
        let held = fill(&config.protocol, &mut filling, mask);
        let Some(held) = held else { return };
        let here = SliceWithContext { slice: self, context: here };
        let mut ended = CompletedMiss { here, line, ready };
        resume(&mut ended, held);
        let CompletedMiss { here: SliceWithContext { slice, context }, .. } = ended;
        slice.serve_queues(context);
    }

    /// Preloads a line from this module's memory as clean, before time zero. The protocol handles it like a fill
    /// without waiting reads.
    pub(crate) fn warm<C: Coherence>(&mut self, line: Line, mask: Mask, here: SliceView<'_, C, D>) {
        let config = here.config;
        let pending = Pending { mask, stale: Mask::NONE, scope: Scope::Cta };
        let before = self.view_line(line, config.homes(line), None);
        let mut slot = LineSlot { pending: Some(pending), ..before };
        let event = L2Event::Fill { mask, data: here.shared.memory.read(line) };
        let stepped = config.protocol.step(&config.map, config.module, &mut slot, event, &mut Actions::default());
        assert_eq!(stepped, Ok(()), "{}, {line}: a fill of what is pending", config.module);
        if let Some(state) = slot.line {
            let class = Class::of(&config.map, config.module, slot.homes);
            // Victims are clean too, because only clean lines were preloaded.
            self.cache.store(line, BulkClass::new(class as u8), state, here.uncore.ways.l2().local);
        }
    }

    /// Reserves the slice's port for another read of arrived bytes, after `passed`; returns the departure time.
    pub(super) fn read_again<C: Coherence>(
        &mut self,
        passed: Departure,
        mask: Mask,
        here: &SliceContext<'_, '_, C, D>,
    ) -> Departure {
        let bytes = u64::from(mask.grains()) * here.config.machine.line.grain();
        passed.through_for(here.out.now(), &mut self.port, Bytes(bytes), self.request)
    }

    /// Queues requests to a line that must miss again while the freed MSHR is reserved for a higher level. Each
    /// request waits for an MSHR at its own level, ahead of younger requests and ahead of credit-starved requests in
    /// its lane.
    pub(super) fn requeue_first<C: Coherence>(
        &mut self,
        items: &VecDeque<SliceRequest<D>>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        for level in 0..LEVELS {
            let mut of_level: VecDeque<SliceRequest<D>> =
                items.iter().filter(|item| item.level() == level).copied().collect();
            let Some(first) = of_level.front() else { continue };
            let later = self.uncredited[level].take_lane(self.lane(first.body.line, here));
            self.queued -= later.len() as u32;
            of_level.extend(later);
            here.shared.stats.queued += of_level.len() as u64;
            self.queued += of_level.len() as u32;
            self.starved[level] = None;
            self.queues[level].defer(&here.config.protocol, of_level.into_iter());
        }
    }

    /// Replies to a waiting read with the bytes that have arrived.
    pub(super) fn serve<C: Coherence>(
        &mut self,
        waiter: Waiter,
        filled: &FillData<D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let FillData { slot, data, by, leaves, ready, below, unloaded, .. } = *filled;
        let mut before = slot;
        if waiter.from != Requester::Local || here.config.protocol.tracks_own() {
            self.view_entry(&mut before, here);
        }
        let mut slot = before;
        let actions = self.step(&mut slot, L2Event::Serve { from: waiter.from, mask: waiter.mask, data }, here);
        let Some(Reply::Fill { mask, data }) = actions.reply else {
            panic!("{}, {}: a served read is answered by bytes", here.config.module, slot.line_id);
        };
        let time = self.waiter_latency(&waiter, (ready, leaves.time()), below, here);
        self.reply(waiter, ReadReply { line: slot.line_id, mask, data, by, time, unloaded }, leaves, here);
        self.keep_entry(&before, &slot, leaves, here);
    }
}
