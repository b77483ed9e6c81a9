//! One slice of a module's L2 with its part of the coherence directory: the host of the protocol.
//!
//! State changes when a request arrives; what leaves is delayed by the slice's port and access time. A
//! request that lacks a miss register or a store credit waits in the input queue of its level, and requests
//! behind it wait with it; one whose line has a miss pending parks on that miss. Both run again when what
//! they lack is freed, inside the event that frees it.
//!
//! Levels keep the machine free of deadlock: a request depends only on resources that higher levels may
//! still take. Level 0 comes from this module's SMs, level 1 from another module to this GPU home, level 2
//! to this system home, where memory always answers.

use crate::cache::{Cache, Class as CacheClass, Ways};
use crate::credits::Generation;
use crate::directory::Directory;
use crate::message::{Flag, LineRequest, Message, Origin, Packet, Route};
use crate::mshr::{EntryId, Mshr, MshrConfig};
use crate::outcome::Outcome;
use crate::uncore::{Out, Uncore};
use std::collections::VecDeque;
use tombolo_engine::Round;
use tombolo_protocol::coherence::Cause;
use tombolo_protocol::{
    Class, ClassSet, Coherence, Data, Event, LineState, Pending, Refusal, Reply, Request, Requester, Sharers, Slot,
    Topology,
};
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Ps, Serializer};

/// Levels of requests, least first.
const LEVELS: usize = 3;

/// A request at a slice.
#[derive(Clone, Copy, Debug)]
struct Item<D: Data> {
    from: Requester,
    body: LineRequest<D>,
}

/// A pending miss.
#[derive(Clone, Copy, Debug)]
struct Miss {
    pending: Pending,
    class: Class,
    /// The flag its read looks for at the next level.
    flag: Flag,
    /// A release waits for the line's dirty bytes, which leave after the fill: the store credit it waits for.
    flush: Option<Generation>,
}

/// A read that waits for a miss.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    from: Requester,
    origin: Origin,
    mask: Mask,
    flag: Flag,
}

/// The bytes of a line that answer a read.
#[derive(Clone, Copy, Debug)]
struct Bytes<D> {
    line: Line,
    mask: Mask,
    data: D,
    /// Whether the flag the read looked for was seen.
    satisfied: bool,
}

/// What a step of the protocol made of a slot.
#[derive(Clone, Copy)]
struct Step<D: Data> {
    before: Slot<D>,
    after: Slot<D>,
    outcome: Outcome<D>,
}

/// Whether a request could be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Yes,
    NoRoom,
}

/// One L2 slice.
pub struct Slice<D: Data> {
    id: ComponentId,
    cache: Cache<LineState<D>>,
    directory: Directory<Sharers>,
    mshr: Mshr<Miss, Waiter, Item<D>>,
    mshrs: u32,
    queues: [VecDeque<Item<D>>; LEVELS],
    port: Serializer,
}

impl<D: Data> Slice<D> {
    /// An empty slice.
    pub fn new<C: Coherence>(id: ComponentId, uncore: &Uncore<C, D>) -> Slice<D> {
        let machine = &uncore.machine;
        Slice {
            id,
            cache: Cache::new(crate::convert::l2_slice(machine)),
            directory: Directory::new(crate::convert::directory_slice(machine)),
            mshr: Mshr::new(MshrConfig { entries: machine.l2.mshrs, merges: machine.l2.merges }),
            mshrs: machine.l2.mshrs,
            queues: Default::default(),
            port: Serializer::new(uncore.slice_rate()),
        }
    }

    /// Starts to load what an event about `line` will read into the host's caches.
    pub fn prefetch(&self, line: Line, round: Round) {
        match round {
            Round::First => {
                self.cache.prefetch(line);
                self.mshr.prefetch(line);
            }
            Round::Second => {
                self.cache.prefetch_slot(line);
                self.mshr.prefetch_entry(line);
            }
            Round::Third => {}
        }
    }

    /// A request of an SM of this module.
    pub fn local<C: Coherence>(&mut self, body: LineRequest<D>, uncore: &mut Uncore<C, D>, out: &mut Out<'_, D>) {
        self.offer(Item { from: Requester::Local, body }, out.now(), uncore, out);
    }

    /// What came over the links.
    pub fn arrive<C: Coherence>(
        &mut self,
        route: Route,
        packet: Packet<D>,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let ready = uncore.receive(out.now(), route.bytes);
        match packet {
            Packet::Request(body) => {
                self.offer(Item { from: Requester::Module(route.source), body }, ready, uncore, out);
            }
            Packet::Fill { line, mask, data, satisfied } => {
                self.fill(Bytes { line, mask, data, satisfied }, ready, uncore, out)
            }
            Packet::Invalidate { line, cause, ticket } => {
                self.invalidate(line, cause, ready, uncore, out);
                let to = uncore.layout.controller(route.source);
                let at = ready + uncore.notice_latency(route.source);
                out.send(at, self.id, to, Message::InvalidationTaken { ticket });
            }
            Packet::Downgrade { line } => {
                let mut slot = self.view(line, uncore);
                let before = slot;
                let event = Event::Downgrade { from: route.source };
                self.step(&mut slot, event, uncore);
                self.keep_entry(&before, &slot, ready, uncore, out);
            }
            Packet::Old { .. } | Packet::Act { .. } | Packet::Acted { .. } => {
                panic!("slice {:?} of {} got a packet for another component: {packet:?}", self.id, uncore.module)
            }
        }
    }

    /// Memory has answered a fetch.
    pub fn memory<C: Coherence>(&mut self, line: Line, mask: Mask, uncore: &mut Uncore<C, D>, out: &mut Out<'_, D>) {
        let data = uncore.read_memory(line);
        self.fill(Bytes { line, mask, data, satisfied: false }, out.now(), uncore, out);
    }

    /// Drops the lines of some classes; their misses on the way become stale.
    pub fn invalidate_classes<C: Coherence>(
        &mut self,
        classes: ClassSet,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        if uncore.protocol.writes_back() {
            self.drop_clean_lines(classes, uncore, out);
        } else {
            for class in Class::ALL.into_iter().filter(|class| classes.contains(*class)) {
                self.cache.invalidate_class(CacheClass::new(class as u8));
            }
        }
        let entries: Vec<EntryId> = self.mshr.entries().collect();
        for entry in entries {
            let miss = self.mshr.get_mut(entry);
            miss.pending.stale |= classes.contains(miss.class);
        }
    }

    /// Bulk invalidation where lines may be dirty: one by one, for dirty bytes stay.
    fn drop_clean_lines<C: Coherence>(&mut self, classes: ClassSet, uncore: &mut Uncore<C, D>, out: &mut Out<'_, D>) {
        let mut lines = Vec::new();
        self.cache.for_each_valid(|line, class, _| {
            if classes.0 >> class.id() & 1 != 0 {
                lines.push(line);
            }
        });
        for line in lines {
            let mut slot = self.view(line, uncore);
            let before = slot;
            self.step(&mut slot, Event::InvalidateLine, uncore);
            self.keep_line(&before, &slot, out.now(), uncore, out);
        }
    }

    /// Writes dirty lines back one level up.
    pub fn flush<C: Coherence>(&mut self, uncore: &mut Uncore<C, D>, out: &mut Out<'_, D>) {
        if !uncore.protocol.writes_back() {
            return;
        }
        let mut dirty = Vec::new();
        self.cache.for_each_valid(|line, _, state| {
            if !state.dirty.is_empty() {
                dirty.push(line);
            }
        });
        for line in dirty {
            match self.mshr.find(line) {
                Some(entry) => {
                    let flush = &mut self.mshr.get_mut(entry).flush;
                    flush.get_or_insert_with(|| uncore.own_stores.credits.take());
                }
                None => self.flush_line(line, None, uncore, out),
            }
        }
    }

    /// Writes one line back. `ticket`: a credit taken for it before, which comes back in any case.
    fn flush_line<C: Coherence>(
        &mut self,
        line: Line,
        ticket: Option<Generation>,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let before = self.view_line(line, None, uncore);
        let mut slot = before;
        let outcome = self.step(&mut slot, Event::Flush, uncore);
        self.keep_line(&before, &slot, out.now(), uncore, out);
        let unused = self.send_written_back(line, &outcome, ticket, out.now(), uncore, out);
        if let Some(ticket) = unused {
            // The fill's waiters left nothing to write: the release goes on.
            let to = uncore.layout.controller(uncore.module);
            out.send(out.now() + Ps(1), self.id, to, Message::Taken { ticket, forwarded: false });
        }
    }

    /// Runs what waits in the input queues for a store credit.
    pub fn serve_queues<C: Coherence>(&mut self, uncore: &mut Uncore<C, D>, out: &mut Out<'_, D>) {
        for level in (0..LEVELS).rev() {
            while let Some(&item) = self.queues[level].front() {
                let now = out.now();
                if self.take(item, now, uncore, out) == Taken::NoRoom {
                    break;
                }
                self.queues[level].pop_front();
            }
        }
    }

    /// Requests that wait for a resource, for a report of who waits for whom.
    pub fn waiting(&self) -> impl Iterator<Item = (&'static str, Line)> + '_ {
        let queued = self.queues.iter().flatten().map(|item| ("an input queue", item.body.line));
        let misses = self.mshr.entries().map(|entry| ("a pending miss", self.mshr.line(entry)));
        queued.chain(misses)
    }

    fn offer<C: Coherence>(&mut self, item: Item<D>, ready: Ps, uncore: &mut Uncore<C, D>, out: &mut Out<'_, D>) {
        let level = level(&item, uncore);
        if !self.queues[level].is_empty() || self.take(item, ready, uncore, out) == Taken::NoRoom {
            uncore.stats.queued += 1;
            self.queues[level].push_back(item);
        }
    }

    /// Takes a request, parks it on its line's miss, or finds that it lacks a resource.
    fn take<C: Coherence>(
        &mut self,
        item: Item<D>,
        ready: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Taken {
        let line = item.body.line;
        let entry = self.mshr.find(line);
        if let Some(entry) = entry
            && self.mshr.has_parked(entry)
        {
            self.park(entry, item, uncore);
            return Taken::Yes;
        }
        if !credit_left(&item, ready, uncore) {
            return Taken::NoRoom;
        }
        self.run(item, entry, true, ready, uncore, out)
    }

    fn park<C: Coherence>(&mut self, entry: EntryId, item: Item<D>, uncore: &mut Uncore<C, D>) {
        uncore.stats.parks += 1;
        self.mshr.park(entry, item);
    }

    /// One step of the protocol for a request. `limited`: whether the level's share of miss registers binds.
    fn run<C: Coherence>(
        &mut self,
        item: Item<D>,
        entry: Option<EntryId>,
        limited: bool,
        ready: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Taken {
        let local_read = item.from == Requester::Local && matches!(item.body.request, Request::Read { .. });
        let before = if local_read {
            self.view_line(item.body.line, entry, uncore)
        } else {
            self.view_with(item.body.line, entry, uncore)
        };
        let mut slot = before;
        let mut outcome = Outcome::default();
        let event = Event::Request { from: item.from, request: item.body.request };
        match uncore.protocol.step(&uncore.map, uncore.module, &mut slot, event, &mut outcome) {
            Ok(()) => {}
            Err(Refusal::Stall) => {
                let entry = entry.expect("a protocol stalls only on a pending miss");
                self.park(entry, item, uncore);
                return Taken::Yes;
            }
            Err(Refusal::Unexpected(why)) => panic!("{}, {}: {why}", uncore.module, item.body.line),
        }
        let misses = before.pending.is_none() && slot.pending.is_some();
        if misses && limited && self.mshr.used() >= self.share(level(&item, uncore)) {
            return Taken::NoRoom;
        }
        if outcome.wait && !misses && !self.merge(entry, &item) {
            let entry = entry.expect("a request that merges has a miss to merge with");
            self.park(entry, item, uncore);
            return Taken::Yes;
        }
        self.commit(item, Step { before, after: slot, outcome }, ready, uncore, out);
        Taken::Yes
    }

    /// Miss registers that a level may use, all in all.
    fn share(&self, level: usize) -> u32 {
        let reserved = (self.mshrs / 8).max(1);
        match level {
            0 => self.mshrs.saturating_sub(2 * reserved).max(1),
            1 => self.mshrs.saturating_sub(reserved).max(2),
            _ => self.mshrs,
        }
    }

    fn merge(&mut self, entry: Option<EntryId>, item: &Item<D>) -> bool {
        entry.is_some_and(|entry| self.mshr.push_waiter(entry, waiter(item)))
    }

    /// Does what a step asked for.
    fn commit<C: Coherence>(
        &mut self,
        item: Item<D>,
        step: Step<D>,
        ready: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let Step { before, after: slot, outcome } = step;
        let line = item.body.line;
        count(&item, &before, &outcome, uncore);
        let leaves = self.occupy(ready, moved(&item, &outcome, uncore), uncore);
        self.keep_line(&before, &slot, leaves, uncore, out);
        self.keep_entry(&before, &slot, leaves, uncore, out);
        if before.pending.is_none()
            && let Some(pending) = slot.pending
        {
            self.start_miss(item, pending, &outcome, uncore);
        }
        let is_store = !matches!(item.body.request, Request::Read { .. });
        let mut accepted = leaves;
        for (target, request) in outcome.forwards.into_iter().flatten() {
            self.forward(item, target, request, leaves, uncore, out);
        }
        if let Some(mask) = outcome.fetch {
            self.fetch(line, mask, leaves, uncore, out);
        }
        if let Some((mask, data)) = outcome.write {
            accepted = self.write_memory(line, mask, data, leaves, uncore);
        }
        if let Some(reply) = outcome.reply {
            let satisfied = uncore.seen(item.body.flag);
            self.reply(waiter(&item), (line, reply, satisfied), leaves, uncore, out);
        }
        self.send_invalidations(line, &outcome, None, leaves, uncore, out);
        if is_store && !outcome.park {
            uncore.see(item.body.flag);
            self.acknowledge(&item, accepted, uncore, out);
        }
    }

    /// The slice's port is busy with `bytes` from `ready`; returns when what they cause leaves.
    fn occupy<C: Coherence>(&mut self, ready: Ps, bytes: u64, uncore: &Uncore<C, D>) -> Ps {
        self.port.send(ready, tombolo_types::Bytes(bytes)) + uncore.machine.l2.hit_latency
    }

    fn start_miss<C: Coherence>(
        &mut self,
        item: Item<D>,
        pending: Pending,
        outcome: &Outcome<D>,
        uncore: &mut Uncore<C, D>,
    ) {
        let line = item.body.line;
        let class = Class::of(&uncore.map, uncore.module, uncore.map.homes(uncore.module, line));
        let flag = if outcome.wait { item.body.flag } else { Flag::NONE };
        let entry =
            self.mshr.allocate(line, Miss { pending, class, flag, flush: None }).expect("room was checked before");
        // A line whose own miss is pending must not make room.
        self.cache.set_pinned(line, true);
        if outcome.wait {
            let first = self.mshr.push_waiter(entry, waiter(&item));
            assert!(first, "a miss takes at least the request that caused it");
        }
        if outcome.park {
            self.park(entry, item, uncore);
        }
    }

    fn forward<C: Coherence>(
        &mut self,
        item: Item<D>,
        target: ModuleId,
        request: Request<D>,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let mut body = LineRequest { request, ..item.body };
        let own_request = std::mem::discriminant(&request) == std::mem::discriminant(&item.body.request);
        if !own_request {
            // Bytes written back ahead of it, or the read of an atomic's line.
            body.flag = Flag::NONE;
        }
        match request {
            Request::Read { .. } => {
                if uncore.map.gpu_of(target) != uncore.map.gpu_of(uncore.module) {
                    uncore.stats.inter_gpu_loads += 1;
                }
            }
            Request::Write { .. } | Request::Atomic { .. } => {
                let own = body.origin.module == uncore.module;
                let pool = if own { &mut uncore.own_stores } else { &mut uncore.forwarded_stores };
                body.ticket = pool.credits.take();
            }
        }
        uncore.send(leaves, target, Packet::Request(body), out, self.id);
    }

    fn fetch<C: Coherence>(
        &mut self,
        line: Line,
        mask: Mask,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let bytes = u64::from(mask.grains()) * uncore.machine.line.grain();
        uncore.stats.memory_read_bytes += bytes;
        let done = uncore.fetch(leaves, line, tombolo_types::Bytes(bytes));
        out.send(done, self.id, self.id, Message::Memory { line, mask });
    }

    /// Writes to memory; returns when its queue has taken the bytes.
    fn write_memory<C: Coherence>(
        &mut self,
        line: Line,
        mask: Mask,
        data: D,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
    ) -> Ps {
        let bytes = u64::from(mask.grains()) * uncore.machine.line.grain();
        uncore.stats.memory_write_bytes += bytes;
        uncore.write_memory(line, mask, data);
        uncore.store(leaves, line, tombolo_types::Bytes(bytes))
    }

    /// Answers a waiter: which line, with what, and whether the flag it looked for was seen.
    fn reply<C: Coherence>(
        &mut self,
        to: Waiter,
        (line, reply, satisfied): (Line, Reply<D>, bool),
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        match (reply, to.from) {
            (Reply::Fill { mask, data }, Requester::Local) => {
                let bytes = u64::from(mask.grains()) * uncore.machine.line.grain();
                let at = uncore.deliver(leaves, to.origin.sm, bytes);
                let sm = uncore.layout.sm(uncore.module, to.origin.sm);
                out.send(at, self.id, sm, Message::Fill { line, mask, data, satisfied });
            }
            (Reply::Fill { mask, data }, Requester::Module(module)) => {
                uncore.send(leaves, module, Packet::Fill { line, mask, data, satisfied }, out, self.id);
            }
            (Reply::Old { data }, _) if to.origin.module == uncore.module => {
                let Origin { sm, warp, result, .. } = to.origin;
                let at = uncore.deliver(leaves, sm, uncore.machine.line.grain());
                out.send(at, self.id, uncore.layout.sm(uncore.module, sm), Message::Old { warp, result, data });
            }
            (Reply::Old { data }, _) => {
                uncore.send(leaves, to.origin.module, Packet::Old { origin: to.origin, data }, out, self.id);
            }
        }
    }

    /// Sends the invalidations of a step. `original`: why, where they are forwarded.
    fn send_invalidations<C: Coherence>(
        &mut self,
        line: Line,
        outcome: &Outcome<D>,
        original: Option<Cause>,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        if outcome.invalidate == 0 {
            return;
        }
        let count = u64::from(outcome.invalidate.count_ones());
        match outcome.cause {
            Cause::Store => {
                uncore.stats.invalidations_by_store += count;
                uncore.stats.stores_on_shared += 1;
            }
            Cause::DirectoryEviction => uncore.stats.invalidations_by_eviction += count,
            Cause::Forwarded => uncore.stats.invalidations_forwarded += count,
        }
        uncore.stats.invalidation_bytes += count * uncore.machine.messages.control_bytes.0;
        let cause = original.unwrap_or(outcome.cause);
        for target in (0..32).filter(|bit| outcome.invalidate >> bit & 1 != 0).map(ModuleId) {
            let ticket = uncore.invalidations.credits.take();
            uncore.send(leaves, target, Packet::Invalidate { line, cause, ticket }, out, self.id);
        }
    }

    /// Tells the sender of a store that it has been taken, in effect at `at`.
    fn acknowledge<C: Coherence>(&mut self, item: &Item<D>, at: Ps, uncore: &mut Uncore<C, D>, out: &mut Out<'_, D>) {
        match item.from {
            Requester::Local => uncore.return_store(item.body.origin.sm, item.body.ticket, at, out, self.id),
            Requester::Module(module) => {
                let forwarded = item.body.origin.module != module;
                let to = uncore.layout.controller(module);
                let message = Message::Taken { ticket: item.body.ticket, forwarded };
                out.send(at + uncore.notice_latency(module), self.id, to, message);
            }
        }
    }

    /// The bytes of a miss have come: install, serve, free, run what parked.
    fn fill<C: Coherence>(&mut self, bytes: Bytes<D>, ready: Ps, uncore: &mut Uncore<C, D>, out: &mut Out<'_, D>) {
        let Bytes { line, mask, data, satisfied } = bytes;
        let entry =
            self.mshr.find(line).unwrap_or_else(|| panic!("{}: a fill of {line} nobody asked for", uncore.module));
        let flag = self.mshr.get(entry).flag;
        let weight = u64::from(mask.grains()) * uncore.machine.line.grain();
        let leaves = self.occupy(ready, weight, uncore);
        let before = self.view_line(line, Some(entry), uncore);
        let mut slot = before;
        self.step(&mut slot, Event::Fill { mask, data }, uncore);
        self.keep_line(&before, &slot, leaves, uncore, out);
        let mut freed = self.mshr.free(entry);
        if before.line.is_some() {
            self.cache.set_pinned(line, false);
        }
        while let Some(waiter) = self.mshr.next_waiter(&mut freed) {
            let seen = uncore.seen(waiter.flag) || (satisfied && waiter.flag == flag);
            self.serve(waiter, Bytes { satisfied: seen, ..bytes }, leaves, uncore, out);
        }
        if let Some(ticket) = freed.payload.flush {
            self.flush_line(line, Some(ticket), uncore, out);
        }
        while let Some(item) = self.mshr.next_parked(&mut freed) {
            match self.mshr.find(line) {
                // An earlier one of them missed again: the rest keep their order behind it.
                Some(entry) => self.mshr.park(entry, item),
                None => {
                    self.run(item, None, false, ready, uncore, out);
                }
            }
        }
        self.serve_queues(uncore, out);
    }

    fn serve<C: Coherence>(
        &mut self,
        waiter: Waiter,
        bytes: Bytes<D>,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let Bytes { line, data, satisfied, .. } = bytes;
        let before = match waiter.from {
            Requester::Local => self.view_line(line, None, uncore),
            Requester::Module(_) => self.view_with(line, None, uncore),
        };
        let mut slot = before;
        let outcome = self.step(&mut slot, Event::Serve { from: waiter.from, mask: waiter.mask, data }, uncore);
        let reply = outcome.reply.expect("a served read is answered");
        self.reply(waiter, (line, reply, satisfied), leaves, uncore, out);
        self.keep_entry(&before, &slot, leaves, uncore, out);
    }

    /// A home has invalidated a region.
    fn invalidate<C: Coherence>(
        &mut self,
        line: Line,
        cause: Cause,
        ready: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let before = self.view(line, uncore);
        let mut slot = before;
        let outcome = self.step(&mut slot, Event::InvalidateRegion, uncore);
        self.keep_entry(&before, &slot, ready, uncore, out);
        self.send_invalidations(line, &outcome, Some(cause), ready, uncore, out);
        for line in uncore.map.region_lines(line) {
            if self.cache.peek(line).is_none() {
                continue;
            }
            let before = self.view(line, uncore);
            let mut slot = before;
            self.step(&mut slot, Event::InvalidateLine, uncore);
            if slot.line.is_none() {
                match cause {
                    Cause::Store | Cause::Forwarded => uncore.stats.lines_invalidated_by_store += 1,
                    Cause::DirectoryEviction => uncore.stats.lines_invalidated_by_eviction += 1,
                }
            }
            self.keep_line(&before, &slot, ready, uncore, out);
        }
    }

    fn view<C: Coherence>(&mut self, line: Line, uncore: &Uncore<C, D>) -> Slot<D> {
        let entry = self.mshr.find(line);
        self.view_with(line, entry, uncore)
    }

    fn view_with<C: Coherence>(&mut self, line: Line, miss: Option<EntryId>, uncore: &Uncore<C, D>) -> Slot<D> {
        let mut slot = self.view_line(line, miss, uncore);
        let is_home = slot.homes.system == uncore.module || slot.homes.gpu == uncore.module;
        if is_home && uncore.protocol.has_directory() {
            slot.entry = self.directory.lookup(line).copied();
        }
        slot
    }

    /// The slot without its directory entry: for reads of this module's SMs, and for fills.
    fn view_line<C: Coherence>(&mut self, line: Line, miss: Option<EntryId>, uncore: &Uncore<C, D>) -> Slot<D> {
        Slot {
            line_id: line,
            homes: uncore.map.homes(uncore.module, line),
            line: self.cache.lookup(line).copied(),
            pending: miss.map(|entry| self.mshr.get(entry).pending),
            entry: None,
        }
    }

    /// A step that must not be refused.
    fn step<C: Coherence>(&mut self, slot: &mut Slot<D>, event: Event<D>, uncore: &Uncore<C, D>) -> Outcome<D> {
        let mut outcome = Outcome::default();
        if let Err(refusal) = uncore.protocol.step(&uncore.map, uncore.module, slot, event, &mut outcome) {
            panic!("{}, {}: {event:?} refused: {refusal:?}", uncore.module, slot.line_id);
        }
        outcome
    }

    /// Stores what became of the line.
    fn keep_line<C: Coherence>(
        &mut self,
        before: &Slot<D>,
        after: &Slot<D>,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let line = after.line_id;
        match (before.line, after.line) {
            (None, None) => {}
            (Some(old), Some(new)) => {
                if old != new {
                    *self.cache.peek_mut(line).expect("the line was just looked up") = new;
                }
            }
            (Some(_), None) => {
                self.cache.remove(line);
            }
            (None, Some(new)) => {
                let class = Class::of(&uncore.map, uncore.module, after.homes);
                let inserted = self.cache.insert(line, CacheClass::new(class as u8), new, Ways::ALL);
                // Where misses of their own pin every line of the set, the new one is the one that goes.
                let victim = inserted
                    .map_or(Some((line, new)), |inserted| inserted.victim.map(|victim| (victim.line, victim.state)));
                if let Some((victim, state)) = victim {
                    self.evict(victim, state, leaves, uncore, out);
                }
            }
        }
    }

    fn evict<C: Coherence>(
        &mut self,
        line: Line,
        state: LineState<D>,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        uncore.stats.evictions += 1;
        let asks = uncore.protocol.has_directory() && (uncore.protocol.downgrades() || !state.dirty.is_empty());
        let last_of_region = asks
            && !uncore
                .map
                .region_lines(line)
                .any(|other| self.cache.peek(other).is_some() || self.mshr.find(other).is_some());
        let homes = uncore.map.homes(uncore.module, line);
        let entry = if asks { self.directory.peek(line).copied() } else { None };
        let mut slot = Slot { line_id: line, homes, line: Some(state), pending: None, entry };
        let outcome = self.step(&mut slot, Event::Evict { last_of_region }, uncore);
        self.send_written_back(line, &outcome, None, leaves, uncore, out);
        if let Some(home) = outcome.downgrade {
            uncore.send(leaves, home, Packet::Downgrade { line }, out, self.id);
        }
    }

    /// Sends dirty bytes up on this module's own account. `ticket`: a credit taken for them before; returned
    /// where nothing was sent with it.
    fn send_written_back<C: Coherence>(
        &mut self,
        line: Line,
        outcome: &Outcome<D>,
        mut ticket: Option<Generation>,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Option<Generation> {
        let origin = Origin { module: uncore.module, sm: tombolo_types::SmId(0), warp: 0, result: 0 };
        for (target, request) in outcome.forwards.into_iter().flatten() {
            uncore.stats.writebacks += 1;
            let ticket = ticket.take().unwrap_or_else(|| uncore.own_stores.credits.take());
            let body = LineRequest { line, request, origin, flag: Flag::NONE, ticket };
            uncore.send(leaves, target, Packet::Request(body), out, self.id);
        }
        if let Some((mask, data)) = outcome.write {
            uncore.stats.writebacks += 1;
            self.write_memory(line, mask, data, leaves, uncore);
        }
        ticket
    }

    /// Stores what became of the directory entry.
    fn keep_entry<C: Coherence>(
        &mut self,
        before: &Slot<D>,
        after: &Slot<D>,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let line = after.line_id;
        match (before.entry, after.entry) {
            (None, None) => {}
            (Some(old), Some(new)) => {
                if old != new {
                    *self.directory.lookup(line).expect("the entry was just looked up") = new;
                }
            }
            (Some(_), None) => {
                self.directory.remove(line);
            }
            (None, Some(new)) => {
                if let Some(victim) = self.directory.insert(line, new) {
                    self.replace_entry(victim.region, victim.entry, leaves, uncore, out);
                }
            }
        }
    }

    fn replace_entry<C: Coherence>(
        &mut self,
        line: Line,
        sharers: Sharers,
        leaves: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        uncore.stats.directory_evictions += 1;
        uncore.stats.directory_evictions_shared += u64::from(!sharers.is_empty());
        let homes = uncore.map.homes(uncore.module, line);
        let mut slot = Slot { line_id: line, homes, line: None, pending: None, entry: Some(sharers) };
        let outcome = self.step(&mut slot, Event::ReplaceEntry, uncore);
        self.send_invalidations(line, &outcome, None, leaves, uncore, out);
    }
}

/// The level of a request.
fn level<C: Coherence, D: Data>(item: &Item<D>, uncore: &Uncore<C, D>) -> usize {
    match item.from {
        Requester::Local => 0,
        Requester::Module(_) if uncore.map.system_home(item.body.line) == uncore.module => 2,
        Requester::Module(_) => 1,
    }
}

/// Whether a store that may have to travel on finds a credit.
fn credit_left<C: Coherence, D: Data>(item: &Item<D>, now: Ps, uncore: &mut Uncore<C, D>) -> bool {
    let is_store = !matches!(item.body.request, Request::Read { .. });
    if !is_store || uncore.map.system_home(item.body.line) == uncore.module {
        return true;
    }
    let own = item.body.origin.module == uncore.module;
    let pool = if own { &mut uncore.own_stores } else { &mut uncore.forwarded_stores };
    pool.credits.available(now) > 0
}

fn waiter<D: Data>(item: &Item<D>) -> Waiter {
    let mask = match item.body.request {
        Request::Read { mask, .. } | Request::Write { mask, .. } | Request::Atomic { mask, .. } => mask,
    };
    Waiter { from: item.from, origin: item.body.origin, mask, flag: item.body.flag }
}

/// Bytes that a request moves through the slice.
fn moved<C: Coherence, D: Data>(item: &Item<D>, outcome: &Outcome<D>, uncore: &Uncore<C, D>) -> u64 {
    let mask = match (item.body.request, outcome.reply) {
        (_, Some(Reply::Fill { mask, .. })) => mask,
        (Request::Write { mask, .. } | Request::Atomic { mask, .. }, _) => mask,
        (Request::Read { .. }, _) => Mask::NONE,
    };
    u64::from(mask.grains()) * uncore.machine.line.grain()
}

fn count<C: Coherence, D: Data>(item: &Item<D>, before: &Slot<D>, outcome: &Outcome<D>, uncore: &mut Uncore<C, D>) {
    let remote = u64::from(item.from != Requester::Local);
    let stats = &mut uncore.stats;
    match item.body.request {
        Request::Read { .. } => {
            let hit = u64::from(outcome.reply.is_some());
            stats.reads += 1;
            stats.read_hits += hit;
            stats.remote_reads += remote;
            stats.remote_read_hits += remote * hit;
            stats.merges += u64::from(outcome.wait && before.pending.is_some());
        }
        Request::Write { .. } => stats.writes += 1,
        Request::Atomic { .. } => stats.atomics += u64::from(!outcome.park),
    }
}
