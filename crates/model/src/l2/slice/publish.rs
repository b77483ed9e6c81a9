//! Publication of written data at a slice: the write queue before and behind the L2, and publications received from
//! other modules.
//!
//! The rules are in [`tombolo_protocol::publication`]. The queue and its publications in flight belong to the module,
//! in [`crate::l2::publisher`].

use super::request::{ReadReply, bytes_of, waiter};
use super::{Slice, SliceRequest, StepResult};
use crate::fabric::packet::Packet;
use crate::l2::departure::Departure;
use crate::l2::drains::LEG_OF_PUBLICATIONS;
use crate::l2::mshr::EntryId;
use crate::l2::outstanding::Tickets;
use crate::l2::publisher::{DrainCause, HeldReply};
use crate::message::{Flag, LineRequest, Message, ReplyDestination};
use crate::module::context::{SliceContext, UncoreContext};
use crate::observe::latency::LatencyBelow;
use crate::observe::value_probe::Contents;
use tombolo_protocol::host::StepOutcome;
use tombolo_protocol::plan::Action;
use tombolo_protocol::publication::{Publication, PublicationDecision, PublicationEntry, QueueDecision, Subscribers};
use tombolo_protocol::{Coherence, L2Event, LineSlot, Request, Requester};
use tombolo_types::{Line, Mask, ModuleId, Ps, Scope, SmId};

impl<D: Contents> SliceRequest<D> {
    /// Subscribers to which this request is published. Applies to requests from this module's SMs, and to requests
    /// from other modules on their path to the page's home. `None` if the request is not published.
    fn subscribers<C>(&self, here: &SliceContext<'_, '_, C, D>) -> Option<Subscribers> {
        if self.body.is_published {
            return None;
        }
        here.subscribers(self.body.line)
    }

    /// True if the write queue can accept a published store or atomic from this module's SMs; `None` for an
    /// unpublished request.
    pub(super) fn publication_has_room<C: Coherence>(&self, here: &SliceContext<'_, '_, C, D>) -> Option<bool> {
        if self.from() != Requester::Local || self.is_read() {
            return None;
        }
        let (subscribers, publisher) = (self.subscribers(here)?, here.uncore.publisher.as_ref()?);
        let (line, request) = (self.body.line, &self.body.request);
        let has_room = match request {
            Request::Write { .. } | Request::Read { .. } => publisher.queue.has_room(line),
            Request::Atomic { .. } => here.uncore.drains.has_room(false),
        };
        // Many stores wait for room: the rules are asked only where there is some.
        let before = || publisher.rules.before(subscribers, here.config.module, request, &publisher.publishing(line));
        Some(has_room && before() != QueueDecision::Waits)
    }
}

impl<D: Contents> Slice<D> {
    /// Handles a request from this module's SMs in the write queue before the L2 sees it; `None`: the L2 must handle
    /// it.
    pub(super) fn before_l2<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Option<StepOutcome> {
        if item.from() != Requester::Local {
            return None;
        }
        let (subscribers, line) = (item.subscribers(here)?, item.body.line);
        let publisher = here.uncore.publisher.as_mut()?;
        let is_here = subscribers.contains(here.config.module);
        let request = &item.body.request;
        if let Request::Read { mask, .. } = *request {
            publisher.read(line, mask);
        }
        let before = publisher.rules.before(subscribers, here.config.module, request, &publisher.publishing(line));
        match before {
            QueueDecision::Passes | QueueDecision::PassesBehindEntry => {
                let publisher = here.uncore.publisher.as_mut()?;
                match request {
                    Request::Read { .. } => publisher.stats.remote_loads += u64::from(!is_here),
                    Request::Atomic { returns: true, .. } if !is_here => publisher.asks(line),
                    Request::Write { .. } | Request::Atomic { .. } => {}
                }
                if before == QueueDecision::PassesBehindEntry {
                    let cause = if item.is_read() { DrainCause::Load } else { DrainCause::Atomic };
                    here.at_uncore().publish_entry(line, cause);
                }
                None
            }
            QueueDecision::Answered(data) => {
                let Request::Read { mask, .. } = *request else { return None };
                publisher.stats.forwards += 1;
                let bytes = u64::from(mask.grains()) * here.config.machine.line.grain();
                let leaves = self.occupy(here.out.now(), ready, bytes, here);
                here.shared.stats.reads += 1;
                let inside = self.latency_until(leaves.time(), item, bytes, here);
                let (by, time) = (here.config.module, LatencyBelow { inside, link: 0 });
                self.reply(waiter(item, here), ReadReply { line, mask, data, by, time, unloaded: 0 }, leaves, here);
                Some(StepOutcome::Accepted)
            }
            QueueDecision::IsAdded | QueueDecision::WasAdded => {
                self.complete_in_queue(item, ready, here);
                here.at_uncore().add_to_queue(line, request);
                Some(StepOutcome::Accepted)
            }
            QueueDecision::IsSent { behind_entry } => {
                self.complete_in_queue(item, ready, here);
                if behind_entry {
                    here.at_uncore().publish_entry(line, DrainCause::Atomic);
                }
                here.at_uncore().publish_atomic(subscribers, &item.body);
                Some(StepOutcome::Accepted)
            }
            QueueDecision::Waits => panic!("{}, {line}: what waits was taken", here.config.module),
        }
    }

    /// Completes a store or an atomic in the write queue, with an acknowledgement to the requesting SM.
    fn complete_in_queue<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let mask = bytes_of(item);
        let bytes = u64::from(mask.grains()) * here.config.machine.line.grain();
        let leaves = self.occupy(here.out.now(), ready, bytes, here);
        match item.body.request {
            Request::Atomic { .. } => here.shared.stats.atomics += 1,
            Request::Write { .. } | Request::Read { .. } => here.shared.stats.writes += 1,
        }
        here.flags_mut().learn(item.body.line, item.body.flag);
        self.acknowledge(item, true, leaves.time(), here);
    }

    /// Writes a received publication to memory without allocation in this L2: the stored line is evicted immediately.
    pub(super) fn write_without_allocation<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        step: StepResult<'_, D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let line = item.body.line;
        let mask = bytes_of(item);
        let bytes = u64::from(mask.grains()) * here.config.machine.line.grain();
        let leaves = self.occupy(here.out.now(), ready, bytes, here);
        let mut taken = leaves.time();
        if let Some((mask, data)) = step.actions.write {
            taken = taken.max(self.write_memory(line, (mask, data), leaves, here));
        }
        if let Some(state) = step.after.line.filter(|state| !state.dirty.is_empty()) {
            let mut slot = LineSlot { line: Some(state), ..*step.before };
            let actions = self.step(&mut slot, L2Event::Evict { last_of_region: false }, here);
            taken = taken.max(self.send_written_back((line, None), &actions, leaves, here).1);
        }
        self.acknowledge(item, true, taken, here);
    }

    /// Publishes the effects of a request accepted by this L2. Returns true if its reply must wait for the
    /// publication.
    pub(super) fn behind_l2<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> bool {
        let (line, at) = (item.body.line, here.config.module);
        let Some(subscribers) = item.subscribers(here).filter(|subscribers| subscribers.contains(at)) else {
            return false;
        };
        let Some(publisher) = &here.uncore.publisher else { return false };
        let own = item.from() == Requester::Local;
        let behind = publisher.rules.behind(own, &item.body.request);
        if behind != PublicationDecision::Nothing {
            // A publication at once takes the request's flag along; later, no copy might leave for the subscribers.
            here.flags_mut().learn(line, item.body.flag);
        }
        match behind {
            PublicationDecision::Nothing => false,
            PublicationDecision::IsAdded => {
                here.at_uncore().add_to_queue(line, &item.body.request);
                false
            }
            PublicationDecision::IsSent { behind_entry, answer_waits } => {
                if behind_entry {
                    here.at_uncore().publish_entry(line, DrainCause::Atomic);
                }
                let Request::Atomic { mask, scope, returns, .. } = item.body.request else { return false };
                // Publish an exchange that stores the atomic's result at every subscriber.
                let update = self.contents(line, here).exchange(mask);
                let request = Request::Atomic { mask, scope, update, returns: false };
                here.at_uncore().publish_atomic(subscribers, &LineRequest { request, ..item.body });
                answer_waits && returns
            }
        }
    }

    /// Delays the result of another module's atomic until all subscribers have received the new value.
    pub(super) fn hold_answer<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        data: D,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let LineRequest { line, origin, .. } = item.body;
        if let Some(publisher) = &mut here.uncore.publisher {
            publisher.hold(HeldReply { line, origin, data });
        }
    }

    /// Contents of a line in this module: memory, overlaid with valid L2 bytes.
    fn contents<C: Coherence>(&self, line: Line, here: &SliceContext<'_, '_, C, D>) -> D {
        let mut data = here.shared.memory.read(line);
        if let Some(state) = self.cache.peek(line) {
            data.merge(state.data, state.valid);
        }
        data
    }

    /// Publishes a line's queue entry early if an atomic to this line waits for it.
    pub(super) fn publish_early<C: Coherence>(
        &mut self,
        item: &SliceRequest<D>,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let is_atomic = matches!(item.body.request, Request::Atomic { .. });
        if is_atomic && item.from() == Requester::Local && item.subscribers(here).is_some() {
            here.at_uncore().publish_entry(item.body.line, DrainCause::Atomic);
        }
    }
}

impl<C, D: Contents> SliceContext<'_, '_, C, D> {
    /// Subscribers for a line that this module publishes; `None` unless there are several.
    #[inline]
    pub(crate) fn subscribers(&self, line: Line) -> Option<Subscribers> {
        self.uncore.publisher.as_ref()?;
        self.config.map.subscribers(line).filter(|subscribers| subscribers.are_several())
    }

    /// Records the arrival of a publication from another module.
    pub(super) fn note_received(&mut self, body: &LineRequest<D>) {
        let grain = self.config.machine.line.grain();
        if let (Some(publisher), Request::Write { mask, .. }) = (&mut self.uncore.publisher, body.request) {
            publisher.received(body.line, mask, grain);
        }
    }

    /// Acknowledges a publication, accepted at `at`, to its publisher.
    pub(super) fn acknowledge_publication(&mut self, body: &LineRequest<D>, from: ModuleId, at: Ps) {
        let back = at + self.config.notice_latency(from);
        let delivered = Message::Delivered { ticket: body.tickets.hop, line: body.line };
        self.out.send(back, self.id, self.config.layout.controller(from), delivered);
    }
}

impl<D: Contents> UncoreContext<'_, '_, D> {
    /// Adds a store to the write queue. A queue at its watermark drains while sending is possible.
    fn add_to_queue(&mut self, line: Line, request: &Request<D>) {
        let (Some(publisher), Request::Write { mask, data, .. }) = (&mut self.uncore.publisher, *request) else {
            return;
        };
        publisher.stats.stores += 1;
        publisher.stats.queue_hits += u64::from(publisher.queue.add(line, mask, data));
        self.drain_to_watermark();
    }

    /// Publishes the least recently added entries while the queue is at its watermark and another store credit is
    /// available.
    pub(crate) fn drain_to_watermark(&mut self) {
        while let Some(publisher) = &mut self.uncore.publisher
            && publisher.queue.is_at_watermark()
            && self.uncore.drains.has_room(false)
        {
            let Some(line) = publisher.queue.oldest() else { return };
            self.publish_entry(line, DrainCause::Watermark);
        }
    }

    /// Performs a release phase's action at this module: drains the complete queue if the rules require it.
    pub(crate) fn empty_queue(&mut self, action: Action) {
        if !self.uncore.publisher.as_ref().is_some_and(|publisher| publisher.rules.empties_queue(action)) {
            return;
        }
        while let Some(line) = self.uncore.publisher.as_mut().and_then(|publisher| publisher.queue.oldest()) {
            self.publish_entry(line, DrainCause::Release);
        }
        if let Some(publisher) = &mut self.uncore.publisher {
            publisher.released();
        }
    }

    /// Publishes a line's queue entry, if any, to all remaining subscribers.
    fn publish_entry(&mut self, line: Line, cause: DrainCause) {
        let Some(publisher) = &mut self.uncore.publisher else { return };
        let Some(entry) = publisher.queue.remove(line) else { return };
        let subscribers = self.config.map.subscribers(line).expect("an entry leaves before its page changes");
        let rules = publisher.rules;
        let PublicationEntry { mask, data } = rules.sent(entry, Mask::ALL, None);
        let request = Request::Write { mask, scope: Scope::Cta, data, tracked: false };
        let body = self.publication(line, request);
        let sent = self.publish(rules, subscribers, &body);
        let Some(publisher) = &mut self.uncore.publisher else { return };
        publisher.entry_left(line, cause, sent);
    }

    /// Publishes an atomic, or the resulting value, to all remaining subscribers.
    fn publish_atomic(&mut self, subscribers: Subscribers, body: &LineRequest<D>) {
        let Some(publisher) = &mut self.uncore.publisher else { return };
        publisher.stats.atomics += 1;
        let rules = publisher.rules;
        let request = match body.request {
            Request::Atomic { mask, update, .. } => Request::Atomic { mask, scope: Scope::Gpu, update, returns: false },
            request => request,
        };
        let body = LineRequest { flag: body.flag, ..self.publication(body.line, request) };
        self.publish(rules, subscribers, &body);
    }

    /// Builds a request on this module's own behalf.
    fn publication(&self, line: Line, request: Request<D>) -> LineRequest<D> {
        let nobody = EntryId::default();
        let origin = ReplyDestination { module: self.config.module, sm: SmId(0), warp: 0, result: 0, register: nobody };
        LineRequest {
            line,
            request,
            origin,
            flag: Flag::NONE,
            tickets: Tickets::default(),
            requester_mshr: nobody,
            is_published: true,
        }
    }

    /// Sends a copy to each target after the subscriber lookup, and returns the number of copies. All publications for
    /// a line use the path from its slice and therefore stay in order.
    fn publish(&mut self, rules: Publication, subscribers: Subscribers, body: &LineRequest<D>) -> u32 {
        let (line, now, from) = (body.line, self.out.now(), self.config.module);
        let Some(publisher) = &mut self.uncore.publisher else { return 0 };
        let known = publisher.look_up(self.config.map.page(line), now);
        let leaves = Departure::at(now).after(known - now);
        let targets = rules.targets(subscribers, from);
        let id = std::mem::replace(&mut self.id, self.config.slice_of(from, line));
        for target in targets {
            let tickets = self.uncore.drains.post(LEG_OF_PUBLICATIONS, Tickets::default());
            let packet = Packet::Request(LineRequest { tickets, ..*body });
            self.count_publication(&packet, body);
            self.send(leaves, target, packet);
            for flag in self.news(line, target) {
                self.send(leaves, target, Packet::Flag { line, flag });
            }
        }
        self.id = id;
        targets.count()
    }

    /// Returns the flags on a line that `target` receives for the first time with this copy.
    fn news(&mut self, line: Line, target: ModuleId) -> Vec<Flag> {
        self.uncore.publisher.as_mut().map(|publisher| publisher.flags.news(line, target)).unwrap_or_default()
    }

    fn count_publication(&mut self, packet: &Packet<D>, body: &LineRequest<D>) {
        let bytes = self.config.packet_sizes.of(packet.facts().payload).0;
        let Some(publisher) = &mut self.uncore.publisher else { return };
        match body.request {
            Request::Write { mask, .. } => {
                let unwritten = u64::from((!mask).grains()) * self.config.machine.line.grain();
                publisher.line_sent(body.line, unwritten, bytes);
            }
            Request::Atomic { .. } | Request::Read { .. } => publisher.atomic_sent(body.line, bytes),
        }
    }

    /// Handles a subscriber's acknowledgement for a line, and releases delayed results.
    pub(crate) fn publication_taken(&mut self, line: Line) {
        let Some(publisher) = &mut self.uncore.publisher else { return };
        if !publisher.taken(line) {
            return;
        }
        let now = Departure::at(self.out.now());
        for HeldReply { line, origin, data, .. } in publisher.let_go(line) {
            let back = self.config.next_back(line, origin.module);
            let id = std::mem::replace(&mut self.id, self.config.slice_of(self.config.module, line));
            self.send(now, back, Packet::AtomicResult { origin, line, data, by: self.config.module });
            self.id = id;
        }
    }
}
