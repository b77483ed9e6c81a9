//! Requests at a slice: taken, parked or queued, stepped through the protocol, sent on and answered.

use super::{Item, Miss, Slice, Step, Taken, Waiter};
use crate::departure::Departure;
use crate::message::{Flag, LineRequest, Message, Origin, Out, Packet};
use crate::mshr::EntryId;
use crate::outcome::Outcome;
use crate::uncore::Uncore;
use crate::watch::Contents;
use tombolo_protocol::{Class, Coherence, Event, Pending, Refusal, Reply, Request, Requester, Slot};
use tombolo_types::{Bytes, Line, Mask, ModuleId, Ps};

impl<D: Contents> Slice<D> {
    pub(super) fn offer<C: Coherence>(
        &mut self,
        item: Item<D>,
        ready: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let level = item.level();
        if !self.queues[level].is_empty() || self.take(&item, ready, uncore, out) == Taken::NoRoom {
            uncore.stats.queued += 1;
            self.queues[level].push_back(item);
            uncore.queued[self.index] += 1;
        }
    }

    /// Takes a request, parks it on its line's miss, or finds that it lacks a resource.
    pub(super) fn take<C: Coherence>(
        &mut self,
        item: &Item<D>,
        ready: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Taken {
        let line = item.body.line;
        let entry = self.mshr.find(line);
        if let Some(entry) = entry
            && self.mshr.has_parked(entry)
        {
            self.park(entry, *item, uncore);
            return Taken::Yes;
        }
        if entry.is_none() && self.lacks_register(item, uncore) {
            self.starved[item.level()] = Some(line);
            return Taken::NoRoom;
        }
        if !item.credit_left(uncore) {
            return Taken::NoRoom;
        }
        self.run(item, entry, ready, uncore, out)
    }

    pub(super) fn park<C: Coherence>(&mut self, entry: EntryId, item: Item<D>, uncore: &mut Uncore<C, D>) {
        uncore.stats.parks += 1;
        self.mshr.park(entry, item);
    }

    /// One step of the protocol for a request.
    pub(super) fn run<C: Coherence>(
        &mut self,
        item: &Item<D>,
        entry: Option<EntryId>,
        ready: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) -> Taken {
        let mut before = self.view_line(item.body.line, item.homes, entry);
        if item.from != Requester::Local || !item.is_read() {
            self.view_entry(&mut before, uncore);
        }
        let mut step = Step { before, after: before, outcome: Outcome::default() };
        let event = Event::Request { from: item.from, request: item.body.request };
        match uncore.site.protocol.step(&uncore.site.map, uncore.site.module, &mut step.after, event, &mut step.outcome)
        {
            Ok(()) => {}
            Err(Refusal::Stall) => {
                let entry = entry.expect("a protocol stalls only on a pending miss");
                self.park(entry, *item, uncore);
                return Taken::Yes;
            }
            Err(Refusal::Unexpected(why)) => panic!("{}, {}: {why}", uncore.site.module, item.body.line),
        }
        let misses = before.pending.is_none() && step.after.pending.is_some();
        if misses && !self.registers.has_room(item.level()) {
            return Taken::NoRoom;
        }
        if step.outcome.wait && !misses && !self.merge(entry, item) {
            let entry = entry.expect("a request that merges has a miss to merge with");
            self.park(entry, *item, uncore);
            return Taken::Yes;
        }
        self.commit(item, &step, ready, uncore, out);
        Taken::Yes
    }

    /// Whether a request without a pending miss is a read that must miss and finds no register: a line that is not
    /// here is always read from above.
    fn lacks_register<C: Coherence>(&self, item: &Item<D>, uncore: &Uncore<C, D>) -> bool {
        item.is_read()
            && !self.registers.has_room(item.level())
            && self.cache.peek(item.body.line).is_none()
            && !(uncore.site.protocol.passes_reads() && item.homes.system != uncore.site.module)
    }

    pub(super) fn merge(&mut self, entry: Option<EntryId>, item: &Item<D>) -> bool {
        entry.is_some_and(|entry| self.mshr.push_waiter(entry, waiter(item)))
    }

    /// Does what a step asked for.
    pub(super) fn commit<C: Coherence>(
        &mut self,
        item: &Item<D>,
        step: &Step<D>,
        ready: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let Step { before, after, outcome } = step;
        let line = item.body.line;
        count(item, before, outcome, uncore);
        let leaves = self.occupy(out.now(), ready, moved(item, outcome, uncore), uncore);
        let room = self.keep_line(before, after, leaves, uncore, out);
        self.keep_entry(before, after, leaves, uncore, out);
        let mut register = None;
        if before.pending.is_none()
            && let Some(pending) = after.pending
        {
            let class = Class::of(&uncore.site.map, uncore.site.module, after.homes);
            register = Some(self.start_miss(item, pending, class, outcome, uncore));
        }
        // What it wrote has a place when the line that was there has left.
        let mut accepted = leaves.time().max(room);
        let mut goes_on = false;
        let [first, second] = outcome.forwards;
        if let Some((target, request)) = first {
            let (mut origin, mut flag) = (item.body.origin, item.body.flag);
            if second.is_some() {
                // Bytes written back ahead of what the request causes: of this module's own account, and no flag of its.
                (origin.module, flag) = (uncore.site.module, Flag::NONE);
            }
            goes_on |= !matches!(request, Request::Read { .. });
            let asker = register.unwrap_or_default();
            self.forward(LineRequest { asker, origin, flag, ..item.body }, request, target, leaves, uncore, out);
            if let Some((target, request)) = second {
                goes_on |= !matches!(request, Request::Read { .. });
                self.forward(LineRequest { asker, ..item.body }, request, target, leaves, uncore, out);
            }
        }
        if let Some(mask) = outcome.fetch {
            let register = register.expect("bytes are fetched for a new miss");
            self.fetch(line, mask, register, leaves, uncore, out);
        }
        if let Some((mask, data)) = outcome.write {
            accepted = accepted.max(self.write_memory(line, (mask, data), leaves, uncore, out));
        }
        if let Some(reply) = outcome.reply {
            self.reply(waiter(item), line, reply, leaves, uncore, out);
        }
        self.send_invalidations(line, outcome, None, leaves, uncore, out);
        if !item.is_read() && !outcome.park {
            uncore.flags.learn(line, item.body.flag);
            self.acknowledge(item, !goes_on, accepted, uncore, out);
        }
    }

    /// The slice's port takes a request and passes its `bytes`, which are there at `ready`, in the event at `now`; returns
    /// when what they cause leaves after its lookup.
    pub(super) fn occupy<C: Coherence>(&mut self, now: Ps, ready: Ps, bytes: u64, uncore: &Uncore<C, D>) -> Departure {
        let latency = uncore.site.machine.l2.hit_latency;
        Departure::at(ready).through_for(now, &mut self.port, Bytes(bytes), self.request).after(latency)
    }

    pub(super) fn start_miss<C: Coherence>(
        &mut self,
        item: &Item<D>,
        pending: Pending,
        class: Class,
        outcome: &Outcome<D>,
        uncore: &mut Uncore<C, D>,
    ) -> EntryId {
        let line = item.body.line;
        self.registers.take(item.level());
        let miss = Miss { pending, homes: item.homes, class, flushes: false, level: item.level };
        let entry = if outcome.wait {
            self.mshr.allocate_for(line, miss, waiter(item))
        } else {
            self.mshr.allocate(line, miss)
        };
        let entry = entry.expect("room was checked before");
        self.feed(line);
        // A line whose own miss is pending must not make room.
        self.cache.set_pinned(line, true);
        if outcome.park {
            self.park(entry, *item, uncore);
        }
        entry
    }

    /// Sends `request` on, which `body` has caused.
    fn forward<C: Coherence>(
        &mut self,
        mut body: LineRequest<D>,
        request: Request<D>,
        target: ModuleId,
        leaves: Departure,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let is_read = |request: &Request<D>| matches!(request, Request::Read { .. });
        if is_read(&request) != is_read(&body.request) {
            // Bytes written back, or the read of an atomic's line. What an atomic wrote leaves its flag further up, too.
            body.flag = Flag::NONE;
        }
        body.request = request;
        match request {
            Request::Read { mask, .. } => {
                uncore.ways.read_sent(uncore.site.weights.answer(mask));
                uncore.stats.inter_gpu_loads += u64::from(uncore.site.is_beyond(target));
            }
            Request::Write { .. } | Request::Atomic { .. } => {
                body.tickets = uncore.post(body.line, body.origin.module, body.tickets, target);
            }
        }
        uncore.send(leaves, target, Packet::Request(body), out, self.id);
    }

    /// Has memory read bytes of a line, as soon as the slice's port lets the request pass.
    pub(super) fn fetch<C: Coherence>(
        &mut self,
        line: Line,
        mask: Mask,
        register: EntryId,
        leaves: Departure,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        if let Some(later) = leaves.later(out.now()) {
            return out.send(later, self.id, self.id, Message::Fetch { line, mask, register });
        }
        let bytes = u64::from(mask.grains()) * uncore.site.machine.line.grain();
        uncore.stats.memory_read_bytes += bytes;
        let done = uncore.memory.fetch(out.now(), leaves, line, Bytes(bytes));
        out.send(done, self.id, self.id, Message::Memory { line, mask, register });
    }

    /// Writes to memory; returns when its queue has taken the bytes.
    pub(super) fn write_memory<C: Coherence>(
        &mut self,
        line: Line,
        (mask, data): (Mask, D),
        leaves: Departure,
        uncore: &mut Uncore<C, D>,
        out: &Out<'_, D>,
    ) -> Ps {
        let bytes = u64::from(mask.grains()) * uncore.site.machine.line.grain();
        uncore.stats.memory_write_bytes += bytes;
        uncore.memory.write(line, mask, data);
        uncore.memory.store(out.now(), leaves, line, Bytes(bytes))
    }

    /// Answers a waiter: with what of which line. What leaves for an SM says whether the flag it looked for is known; what
    /// leaves for another module brings all flags of the line.
    pub(super) fn reply<C: Coherence>(
        &mut self,
        to: Waiter,
        line: Line,
        reply: Reply<D>,
        leaves: Departure,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        match (reply, to.from) {
            (Reply::Fill { mask, data }, Requester::Local) => {
                let bytes = u64::from(mask.grains()) * uncore.site.machine.line.grain();
                let at = uncore.deliver(out.now(), leaves, to.origin.sm, bytes, self.id);
                let sm = uncore.site.layout.sm(uncore.site.module, to.origin.sm);
                let satisfied = uncore.flags.knows(to.flag);
                let register = to.origin.register;
                out.send(at, self.id, sm, Message::Fill { register, line, mask, data, satisfied });
            }
            (Reply::Fill { mask, data }, Requester::Module(module)) if uncore.site.protocol.passes_reads() => {
                let satisfied = uncore.flags.knows(to.flag);
                let answer = Packet::Answer { origin: to.origin, line, mask, data, satisfied };
                uncore.send(leaves, module, answer, out, self.id);
            }
            (Reply::Fill { mask, data }, Requester::Module(module)) => {
                for flag in uncore.flags.news(line, module) {
                    uncore.send(leaves, module, Packet::Flag { line, flag }, out, self.id);
                }
                let register = to.asker;
                uncore.send(leaves, module, Packet::Fill { register, line, mask, data }, out, self.id);
            }
            (Reply::Old { data }, _) if to.origin.module == uncore.site.module => {
                let Origin { sm, warp, result, .. } = to.origin;
                let at = uncore.deliver(out.now(), leaves, sm, uncore.site.machine.line.grain(), self.id);
                out.send(
                    at,
                    self.id,
                    uncore.site.layout.sm(uncore.site.module, sm),
                    Message::Old { warp, result, data },
                );
            }
            (Reply::Old { data }, _) => {
                let back = uncore.site.next_back(line, to.origin.module);
                uncore.send(leaves, back, Packet::Old { origin: to.origin, line, data }, out, self.id);
            }
        }
    }

    /// Tells the sender of a store that it has been taken, in effect at `at`; `ends`: and that it goes no further.
    pub(super) fn acknowledge<C: Coherence>(
        &mut self,
        item: &Item<D>,
        ends: bool,
        at: Ps,
        uncore: &mut Uncore<C, D>,
        out: &mut Out<'_, D>,
    ) {
        match item.from {
            Requester::Local => uncore.return_store(item.body.origin.sm, item.body.tickets.hop, at, out, self.id),
            Requester::Module(module) => uncore.acknowledge(&item.body, module, ends, at, out, self.id),
        }
    }
}

fn waiter<D: Contents>(item: &Item<D>) -> Waiter {
    let mask = match item.body.request {
        Request::Read { mask, .. } | Request::Write { mask, .. } | Request::Atomic { mask, .. } => mask,
    };
    Waiter { from: item.from, origin: item.body.origin, mask, flag: item.body.flag, asker: item.body.asker }
}

/// Bytes that a request moves through the slice.
fn moved<C: Coherence, D: Contents>(item: &Item<D>, outcome: &Outcome<D>, uncore: &Uncore<C, D>) -> u64 {
    let mask = match (item.body.request, outcome.reply) {
        (_, Some(Reply::Fill { mask, .. })) => mask,
        (Request::Write { mask, .. } | Request::Atomic { mask, .. }, _) => mask,
        (Request::Read { .. }, _) => return 0,
    };
    u64::from(mask.grains()) * uncore.site.machine.line.grain()
}

fn count<C: Coherence, D: Contents>(item: &Item<D>, before: &Slot<D>, outcome: &Outcome<D>, uncore: &mut Uncore<C, D>) {
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
        Request::Atomic { .. } if outcome.park => {}
        Request::Atomic { .. } => {
            let passes = outcome.forwards.iter().flatten().any(|(_, sent)| matches!(sent, Request::Atomic { .. }));
            stats.atomics += u64::from(!passes);
            stats.atomics_passed += u64::from(passes);
        }
    }
}
