//! Requests at a slice: accepted, parked or queued, stepped through the protocol, forwarded and answered.

use super::host::{InputQueue, NoMshr, RequestAttempt, SliceWithContext};
use super::{Admission, DramFetch, Miss, Slice, SliceRequest, StepResult, Waiter, keeps_to_edges};
use crate::fabric::packet::Packet;
use crate::l2::departure::Departure;
use crate::l2::mshr::EntryId;
use crate::l2::outstanding::Tickets;
use crate::message::{Flag, LineRequest, Message, ReplyDestination};
use crate::module::actions::Actions;
use crate::module::context::SliceContext;
use crate::observe::latency::{LatencyBelow, ModuleLatency, Note, ReplyLatency, short};
use crate::observe::value_probe::Contents;
use tombolo_protocol::host::{self, StepOutcome};
use tombolo_protocol::{Class, Coherence, L2Event, LineSlot, Pending, Refusal, Reply, Request, Requester};
use tombolo_types::{Bytes, Line, Mask, ModuleId, Ps};

/// Reply to a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadReply<D> {
    pub(super) line: Line,
    pub(super) mask: Mask,
    pub(super) data: D,
    /// Module that served the read.
    pub(super) by: ModuleId,
    /// Latency since the read's arrival at this slice, and the unloaded link part.
    pub(super) time: LatencyBelow,
    pub(super) unloaded: u32,
}

impl<D: Contents> Slice<D> {
    pub(super) fn offer<C: Coherence>(
        &mut self,
        item: SliceRequest<D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let mut queue =
            InputQueue { level: item.level(), ready, here: SliceWithContext { slice: self, context: here } };
        if host::offer(&mut queue, item) {
            here.shared.stats.queued += 1;
            self.queued += 1;
        }
    }

    /// Accepts a request or parks the request on its line's miss. Reports a failure if no MSHR is available.
    pub(super) fn take<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Admission {
        match self.arrive_at_l2(item, ready, None, here) {
            Ok(host::Admission::Admitted) => Admission::Accepted,
            Ok(host::Admission::AwaitsCredit) => {
                self.wait_for_credit(*item, here);
                Admission::Accepted
            }
            Err(NoMshr) => Admission::NoMshr,
        }
    }

    /// Like `take`, but leaves a request that lacks a store credit unqueued. `follows`: on a retry, true if an older
    /// store in the request's lane still waits for a credit.
    #[inline]
    pub(super) fn arrive_at_l2<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        ready: Ps,
        follows: Option<bool>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Result<host::Admission, NoMshr> {
        let config = here.config;
        let entry = if item.passes_l2(here) { None } else { self.mshr.find(item.body.line) };
        let here = SliceWithContext { slice: self, context: here };
        host::take(&config.protocol, &mut RequestAttempt { here, item, ready, entry, follows })
    }

    pub(super) fn park<C: Coherence>(
        &mut self,
        entry: EntryId,
        item: SliceRequest<D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        here.shared.stats.parks += 1;
        self.mshr.park(entry, item);
    }

    /// Performs the protocol step for a request.
    pub(super) fn run<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        entry: Option<EntryId>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Result<StepOutcome, NoMshr> {
        let line_id = item.body.line;
        let mut before = if item.passes_l2(here) {
            LineSlot { line_id, homes: item.homes, line: None, pending: None, entry: None }
        } else {
            self.slot(line_id, item.homes, entry)
        };
        if item.from() != Requester::Local || !item.is_read() || here.config.protocol.tracks_own() {
            self.view_entry(&mut before, here);
        }
        let (mut after, mut actions) = (before, Actions::default());
        let event = L2Event::Request { from: item.from(), request: item.body.request };
        match here.config.protocol.step(&here.config.map, here.config.module, &mut after, event, &mut actions) {
            Ok(()) => {}
            Err(Refusal::Stall) => return Ok(StepOutcome::Stalled),
            Err(Refusal::Unexpected(why)) => panic!("{}, {}: {why}", here.config.module, item.body.line),
        }
        debug_assert!(keeps_to_edges(&before, &actions, here), "{}, {line_id}: {event:?}", here.config.module);
        let misses = before.pending.is_none() && after.pending.is_some();
        if misses && !self.has_miss_room(item, here) {
            return Err(NoMshr);
        }
        if let (Some(mask), false) = (actions.wait, misses)
            && !self.merge(entry, Waiter { mask, ..waiter(item, here) })
        {
            return Ok(StepOutcome::Stalled);
        }
        self.commit(item, StepResult { before: &before, after: &after, actions: &actions }, ready, here);
        Ok(StepOutcome::Accepted)
    }

    /// True if a request may start a miss: an MSHR is free, and the GPU's port has room if the line's home is beyond the GPU.
    fn has_miss_room<C: Coherence>(&self, item: &SliceRequest<D>, here: &SliceContext<'_, '_, C, D>) -> bool {
        self.registers.has_room(item.level()) && (self.outgoing.has_room() || !here.config.is_beyond(item.homes.system))
    }

    /// True if a request without a pending miss is a read that must miss while no MSHR is available. An absent line is
    /// always read from the level above.
    pub(super) fn lacks_register<C: Coherence>(
        &self,
        item: &SliceRequest<D>,
        here: &SliceContext<'_, '_, C, D>,
    ) -> bool {
        item.is_read()
            && !self.has_miss_room(item, here)
            && self.cache.peek(item.body.line).is_none()
            && !here.config.protocol.forwards_reads(Class::of(&here.config.map, here.config.module, item.homes))
            && !item.reads_at_memory(here)
    }

    /// Adds a read to a pending miss; returns false if the miss already has the maximum number of waiters. Reads to
    /// further sectors extend the miss.
    pub(super) fn merge(&mut self, entry: Option<EntryId>, waiter: Waiter) -> bool {
        entry.is_some_and(|entry| self.mshr.push_waiter(entry, waiter))
    }

    /// Carries out the actions of a protocol step.
    pub(super) fn commit<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        step: StepResult<'_, D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let StepResult { before, after, actions } = step;
        let line = item.body.line;
        count(item, before, actions, here);
        if item.body.is_published {
            here.note_received(&item.body);
            if passes_by(before, after, here) {
                return self.write_without_allocation(item, step, ready, here);
            }
        }
        let moved = moved(item, actions, here);
        let leaves =
            if item.passes_l2(here) { Departure::at(ready) } else { self.occupy(here.out.now(), ready, moved, here) };
        let room = self.keep_line(before, after, leaves, here);
        self.keep_entry(before, after, leaves, here);
        let register = self.keep_pending(item, step, here);
        // Written bytes have space only after the evicted line has departed.
        let mut accepted = leaves.time().max(room);
        let mut goes_on = false;
        let [first, second] = actions.forwards;
        if let Some((target, request)) = first {
            let (mut origin, mut flag) = (item.body.origin, item.body.flag);
            if second.is_some() {
                // Bytes written back ahead of the request: they are sent on this module's own behalf, without the
                // request's flag.
                (origin.module, flag) = (here.config.module, Flag::NONE);
            }
            goes_on |= !matches!(request, Request::Read { .. });
            let requester_mshr = register.unwrap_or_default();
            // Time spent here by a read without an MSHR, reported to the module that will reply.
            let held = if register.is_none() {
                self.latency_until(leaves.time(), item, 0, here)
            } else {
                ModuleLatency::default()
            };
            let body = LineRequest { requester_mshr, origin, flag, ..item.body };
            self.forward(body, (target, request), (leaves, held), here);
            if let Some((target, request)) = second {
                goes_on |= !matches!(request, Request::Read { .. });
                self.forward(LineRequest { requester_mshr, ..item.body }, (target, request), (leaves, held), here);
            }
        }
        if let Some(mask) = actions.fetch {
            let register = register.expect("bytes are fetched for a new miss");
            self.fetch(DramFetch { line, mask, register, latency: ModuleLatency::default() }, leaves, here);
        }
        if let Some((mask, data)) = actions.write {
            accepted = accepted.max(self.write_memory(line, (mask, data), leaves, here));
        }
        if let Some(request) = actions.to_memory {
            accepted = accepted.max(self.pass_to_memory(item, request, leaves, here));
        }
        let holds = here.uncore.publisher.is_some() && !actions.park && self.behind_l2(item, here);
        match actions.reply {
            Some(Reply::Old { data }) if holds => self.hold_answer(item, data, here),
            Some(Reply::Old { data }) => self.reply_old(item.body.origin, (line, data), leaves, here),
            Some(Reply::Fill { mask, data }) => {
                let inside = self.latency_until(leaves.time(), item, moved, here);
                let (by, time) = (here.config.module, LatencyBelow { inside, link: 0 });
                self.reply(waiter(item, here), ReadReply { line, mask, data, by, time, unloaded: 0 }, leaves, here);
            }
            None => {}
        }
        self.send_invalidations(line, actions, leaves, here);
        if !item.is_read() && !actions.park {
            here.flags_mut().learn(line, item.body.flag);
            self.acknowledge(item, !goes_on, accepted, here);
        }
    }

    /// Occupies the slice's port with a request and its `bytes`, available at `ready`, in the event at `now`. Returns
    /// the departure time after the lookup.
    pub(super) fn occupy<C: Coherence>(
        &mut self,
        now: Ps,
        ready: Ps,
        bytes: u64,
        here: &SliceContext<'_, '_, C, D>,
    ) -> Departure {
        let latency = here.config.machine.l2.hit_latency;
        Departure::at(ready).through_for(now, &mut self.port, Bytes(bytes), self.request).after(latency)
    }

    /// Stores the changed pending miss after a protocol step; returns its MSHR.
    fn keep_pending<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        step: StepResult<'_, D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Option<EntryId> {
        let pending = step.after.pending?;
        if step.before.pending.is_none() {
            let entry = self.start_miss(item, pending, step.actions, here);
            if step.after.line.is_some() {
                // A line with a pending miss must not be evicted.
                self.cache.set_pinned(item.body.line, true);
            }
            return Some(entry);
        }
        let entry = self.mshr.find(item.body.line)?;
        self.mshr.get_mut(entry).set_pending(pending);
        Some(entry)
    }

    pub(super) fn start_miss<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        pending: Pending,
        actions: &Actions<D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> EntryId {
        let line = item.body.line;
        self.registers.take(item.level());
        self.outgoing.start(here.config.is_beyond(item.homes.system));
        let class = Class::of(&here.config.map, here.config.module, item.homes);
        let Pending { mask, stale, scope } = pending;
        let miss = Miss { mask, stale, scope, homes: item.homes, class, flushes: false, level: item.level() as u8 };
        let entry = match actions.wait {
            Some(mask) => self.mshr.allocate_for(line, miss, Waiter { mask, ..waiter(item, here) }),
            None => self.mshr.allocate(line, miss),
        };
        let entry = entry.expect("room was checked before");
        self.clear_stall(line);
        if actions.park {
            self.park(entry, *item, here);
        }
        entry
    }

    /// Forwards a request caused by `body` to `target`. `held`: the time spent here, for a read without an MSHR.
    fn forward<C: Coherence>(
        &mut self,
        mut body: LineRequest<D>,
        (target, request): (ModuleId, Request<D>),
        (leaves, held): (Departure, ModuleLatency),
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let is_read = |request: &Request<D>| matches!(request, Request::Read { .. });
        if is_read(&request) != is_read(&body.request) {
            // Written-back bytes and reads for an atomic's line carry no flag. A write forwarded for an atomic keeps
            // the flag.
            body.flag = Flag::NONE;
        }
        body.request = request;
        match request {
            Request::Read { mask, .. } => {
                here.uncore.ways.read_sent(here.config.packet_sizes.answer(mask));
                here.shared.stats.inter_gpu_loads += u64::from(here.config.is_beyond(target));
                body.tickets = Tickets::of_read(held);
                self.note_sent(body.requester_mshr, leaves.time(), here);
            }
            Request::Write { .. } | Request::Atomic { .. } => {
                body.tickets = here.post(body.line, body.origin.module, body.tickets);
            }
        }
        here.send(leaves, target, Packet::Request(body));
    }

    /// Fetches bytes from memory as soon as the request has passed the slice's port.
    pub(super) fn fetch<C: Coherence>(
        &mut self,
        wanted: DramFetch,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let DramFetch { line, mask, register, .. } = wanted;
        if let Some(later) = leaves.later(here.out.now()) {
            return here.out.send(later, self.id, self.id, Message::Fetch { line, mask, register });
        }
        let read = here.read_memory(line, mask, leaves);
        let time = D::Note::of(read.time(leaves.time()));
        here.out.send(read.done, self.id, self.id, Message::Memory { line, mask, register, latency: time });
    }

    /// Writes to memory; returns the time at which the memory queue has accepted the bytes.
    pub(super) fn write_memory<C: Coherence>(
        &mut self,
        line: Line,
        (mask, data): (Mask, D),
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Ps {
        here.shared.memory.write(line, mask, data);
        here.store_memory(line, mask, leaves)
    }

    /// Replies to a waiting read. A reply to an SM reports the flag polled in the read; a reply to another module is
    /// preceded by all flags on the line.
    pub(super) fn reply<C: Coherence>(
        &mut self,
        to: Waiter,
        answer: ReadReply<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let ReadReply { line, mask, data, by, time, unloaded } = answer;
        let register = to.register;
        match to.from {
            Requester::Local => {
                let seen = here.flags().seen(line, to.flag) != Flag::NONE;
                here.deliver(leaves, to.sm, mask.grains(), |at| {
                    let crossbar = short(at.saturating_sub(leaves.time()));
                    let time = D::Note::of(ReplyLatency { crossbar, ..ReplyLatency::new(time, unloaded) });
                    Message::Fill { register, line, mask, data, seen, responder: by, latency: time }
                });
            }
            Requester::Module(sender) if here.config.answers_issuer(sender, line) => {
                // No L2 on the return path keeps the line: a GPU home forwarded the read, and the reply bypasses it.
                let seen = here.flags().seen(line, to.flag) != Flag::NONE;
                let inside = D::Note::of(time.inside.into());
                let answer = Packet::Answer { sm: to.sm, register, line, mask, data, seen, by, inside };
                here.send(leaves, to.module, answer);
            }
            Requester::Module(module) => {
                for flag in here.flags_mut().news(line, module) {
                    here.send(leaves, module, Packet::Flag { line, flag });
                }
                let (inside, link) = (D::Note::of(time.inside.into()), D::Note::of(time.link));
                here.send(leaves, module, Packet::Fill { register, line, mask, data, by, inside, link });
            }
        }
    }

    /// Replies to an atomic with the line's previous contents.
    fn reply_old<C: Coherence>(
        &mut self,
        origin: ReplyDestination,
        (line, data): (Line, D),
        leaves: Departure,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let by = here.config.module;
        if origin.module == by {
            let ReplyDestination { sm, warp, result, .. } = origin;
            here.deliver(leaves, sm, 1, |_| Message::AtomicResult { warp, result, data, responder: by });
        } else {
            let back = here.config.next_back(line, origin.module);
            here.send(leaves, back, Packet::AtomicResult { origin, line, data, by });
        }
    }

    /// Acknowledges a store to its sender, effective at `at`. `ends`: true if the store is not forwarded any further.
    pub(super) fn acknowledge<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        ends: bool,
        at: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        match item.from() {
            Requester::Local => here.return_store(item.body.origin.sm, item.body.tickets.hop, at),
            Requester::Module(module) if item.body.is_published => here.acknowledge_publication(&item.body, module, at),
            Requester::Module(module) => here.acknowledge(&item.body, module, ends, at),
        }
    }
}

/// True if a received publication is not allocated here: the line is neither present nor pending.
fn passes_by<C: Coherence, D: Contents>(
    before: &LineSlot<D>,
    after: &LineSlot<D>,
    here: &SliceContext<'_, '_, C, D>,
) -> bool {
    let allocates = here.uncore.publisher.as_ref().is_none_or(|publisher| publisher.allocates);
    !allocates && before.line.is_none() && before.pending.is_none() && after.line.is_some() && after.pending.is_none()
}

/// Builds the waiter record for a read, including the MSHR that will receive the bytes.
pub(super) fn waiter<C: Coherence, D: Contents>(item: &SliceRequest<D>, here: &SliceContext<'_, '_, C, D>) -> Waiter {
    let SliceRequest { arrived, body: LineRequest { origin, flag, requester_mshr, .. }, .. } = *item;
    let from = item.from();
    let waits_there = match from {
        Requester::Local => true,
        Requester::Module(sender) => here.config.answers_issuer(sender, item.body.line),
    };
    let register = if waits_there { origin.register } else { requester_mshr };
    Waiter { from, module: origin.module, sm: origin.sm, register, mask: bytes_of(item), flag, arrived }
}

/// Bytes addressed in a request.
pub(super) fn bytes_of<D: Contents>(item: &SliceRequest<D>) -> Mask {
    match item.body.request {
        Request::Read { mask, .. } | Request::Write { mask, .. } | Request::Atomic { mask, .. } => mask,
    }
}

/// Number of bytes that a request moves through the slice's port.
fn moved<C: Coherence, D: Contents>(
    item: &SliceRequest<D>,
    actions: &Actions<D>,
    here: &SliceContext<'_, '_, C, D>,
) -> u64 {
    let mask = match (item.body.request, actions.reply) {
        (_, Some(Reply::Fill { mask, .. })) => mask,
        (Request::Write { mask, .. } | Request::Atomic { mask, .. }, _) => mask,
        (Request::Read { .. }, _) => return 0,
    };
    u64::from(mask.grains()) * here.config.machine.line.grain()
}

fn count<C: Coherence, D: Contents>(
    item: &SliceRequest<D>,
    before: &LineSlot<D>,
    actions: &Actions<D>,
    here: &mut SliceContext<'_, '_, C, D>,
) {
    let remote = u64::from(item.from() != Requester::Local);
    let passed = u64::from(item.passes_l2(here));
    let stats = &mut here.shared.stats;
    stats.passed += passed;
    match item.body.request {
        Request::Read { .. } => {
            let hit = u64::from(actions.wait.is_none() && actions.reply.is_some());
            stats.reads += 1;
            stats.read_hits += hit;
            stats.remote_reads += remote;
            stats.remote_read_hits += remote * hit;
            let sends = actions.fetch.is_some() || actions.forwards[0].is_some();
            stats.merges += u64::from(actions.wait.is_some() && before.pending.is_some() && !sends);
        }
        Request::Write { .. } => stats.writes += 1,
        Request::Atomic { .. } if actions.park => {}
        Request::Atomic { .. } => {
            let passes = actions.forwards.iter().flatten().any(|(_, sent)| matches!(sent, Request::Atomic { .. }));
            stats.atomics += u64::from(!passes);
            stats.atomics_passed += u64::from(passes);
        }
    }
}
