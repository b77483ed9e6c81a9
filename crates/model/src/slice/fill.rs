//! Fills at a slice: install, serve those who waited, run what parked.

use super::{Arrived, Slice, Taken, Waiter};
use crate::context::SliceContext;
use crate::departure::Departure;
use crate::mshr::EntryId;
use crate::watch::Contents;
use std::collections::VecDeque;
use tombolo_protocol::{Coherence, Event, Requester, Slot};
use tombolo_types::{Bytes, Mask, Ps};

/// A line as a fill has left it, for those who waited.
struct Filled<'a, D: Contents> {
    slot: &'a Slot<D>,
    /// What has come.
    mask: Mask,
    data: D,
    leaves: Departure,
}

impl<D: Contents> Slice<D> {
    /// Bytes of a miss have come: installs them and serves who waited. Where they were the last, frees the register and
    /// runs what parked. `entry`: the register that waits for them.
    pub(super) fn fill<C: Coherence>(
        &mut self,
        bytes: Arrived<D>,
        entry: EntryId,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let Arrived { line, mask, data } = bytes;
        assert!(self.mshr.holds(entry, line), "{}: a fill of {line} nobody asked for", here.site.module);
        let weight = u64::from(mask.grains()) * here.site.machine.line.grain();
        // The lookup was the request's: what has come goes on as it is written.
        let leaves = Departure::at(ready).through(here.out.now(), &mut self.port, Bytes(weight));
        let before = self.view_line(line, self.mshr.get(entry).homes, Some(entry));
        let mut slot = before;
        self.step(&mut slot, Event::Fill { mask, data }, here);
        self.keep_line(&before, &slot, leaves, here);
        let filled = Filled { slot: &slot, mask, data, leaves };
        match slot.pending {
            Some(pending) => {
                self.mshr.get_mut(entry).set_pending(pending);
                self.cache.set_pinned(line, true);
                self.serve_some(entry, &filled, here);
            }
            None => {
                if before.line.is_some() {
                    self.cache.set_pinned(line, false);
                }
                self.end_miss(entry, &filled, ready, here);
            }
        }
    }

    /// Serves who waits for bytes that have come, while others are on their way.
    fn serve_some<C: Coherence>(
        &mut self,
        entry: EntryId,
        filled: &Filled<'_, D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let mut waiting = self.mshr.detach(entry);
        while let Some(waiter) = self.mshr.next_detached(&mut waiting) {
            let mask = waiter.mask;
            self.serve(Waiter { mask: mask & filled.mask, ..waiter }, filled, here);
            if !filled.mask.contains(mask) {
                self.mshr.attach(entry, Waiter { mask: mask & !filled.mask, ..waiter });
            }
        }
    }

    /// All bytes of a miss have come: serves who waited for the last, frees its register, runs what parked.
    fn end_miss<C: Coherence>(
        &mut self,
        entry: EntryId,
        filled: &Filled<'_, D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let line = filled.slot.line_id;
        let mut freed = self.mshr.free(entry);
        self.registers.give_back(usize::from(freed.payload.level));
        while let Some(waiter) = self.mshr.next_waiter(&mut freed) {
            self.serve(waiter, filled, here);
        }
        if freed.payload.flushes {
            let tickets = self.flushes.remove(&line);
            self.flush_line(line, tickets, here);
        }
        let mut waiting = VecDeque::new();
        while let Some(item) = self.mshr.next_parked(&mut freed) {
            match self.mshr.find(line) {
                // An earlier one of them missed again: the rest keep their order behind it.
                Some(entry) => self.mshr.park(entry, item),
                None if !waiting.is_empty() => waiting.push_back(item),
                None => {
                    if !item.credit_left(here) || self.run(&item, None, ready, here) == Taken::NoRoom {
                        waiting.push_back(item);
                    }
                }
            }
        }
        // It misses again, and the register that came free is kept for a higher level, or it lacks a store credit: it and
        // those behind it wait for one of theirs, ahead of what came to the slice after them.
        while let Some(item) = waiting.pop_back() {
            here.shared.stats.queued += 1;
            self.queues[item.level()].push_front(item);
            self.starved[item.level()] = None;
            here.shared.queued[self.index] += 1;
        }
        self.serve_queues(here);
    }

    /// Answers one who waited with those of its bytes that have come.
    fn serve<C: Coherence>(&mut self, waiter: Waiter, filled: &Filled<'_, D>, here: &mut SliceContext<'_, '_, C, D>) {
        let Filled { slot, data, leaves, .. } = *filled;
        if waiter.mask.is_empty() {
            return;
        }
        let mut before = *slot;
        if waiter.from != Requester::Local {
            self.view_entry(&mut before, here);
        }
        let mut slot = before;
        let actions = self.step(&mut slot, Event::Serve { from: waiter.from, mask: waiter.mask, data }, here);
        let reply = actions.reply.expect("a served read is answered");
        self.reply(waiter, (slot.line_id, reply), leaves, here);
        self.keep_entry(&before, &slot, leaves, here);
    }
}
