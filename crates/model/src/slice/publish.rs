//! Published pages at a slice: what the write queue does ahead of the L2 and behind it, and what others publish here.
//!
//! Decided by [`tombolo_protocol::publication`]; the queue with what is under way is the module's, in [`crate::publisher`].

use super::request::{Answer, bytes_of, waiter};
use super::{Item, Slice, Step};
use crate::context::{SliceContext, UncoreContext};
use crate::departure::Departure;
use crate::drains::LEG_OF_PUBLICATIONS;
use crate::latency::Below;
use crate::message::{Flag, LineRequest, Message, Origin};
use crate::mshr::EntryId;
use crate::outstanding::Tickets;
use crate::packet::Packet;
use crate::publisher::{Drained, HeldAnswer};
use crate::watch::Contents;
use tombolo_protocol::host::Tried;
use tombolo_protocol::plan::Action;
use tombolo_protocol::publication::{Before, Behind, Entry, Publication, Subscribers};
use tombolo_protocol::{Coherence, Event, Request, Requester, Slot};
use tombolo_types::{Line, Mask, ModuleId, Ps, Scope, SmId};

impl<D: Contents> Item<D> {
    /// To whom a request is published: one of an SM of this module, or of another module on its way to the page's home.
    fn subscribers<C>(&self, here: &SliceContext<'_, '_, C, D>) -> Option<Subscribers> {
        if self.body.is_published {
            return None;
        }
        here.subscribers(self.body.line)
    }

    /// Whether a store or an atomic of this module's SMs that is published may be taken; `None`: it is not published.
    pub(super) fn publication_has_room<C: Coherence>(&self, here: &SliceContext<'_, '_, C, D>) -> Option<bool> {
        if self.from() != Requester::Local || self.is_read() {
            return None;
        }
        let (subscribers, publisher) = (self.subscribers(here)?, here.uncore.publisher.as_ref()?);
        let (line, request) = (self.body.line, &self.body.request);
        let before = publisher.rules.before(subscribers, here.site.module, request, &publisher.publishing(line));
        Some(match request {
            _ if before == Before::Waits => false,
            Request::Write { .. } | Request::Read { .. } => publisher.queue.has_room(line),
            Request::Atomic { .. } => here.uncore.drains.has_room(false),
        })
    }
}

impl<D: Contents> Slice<D> {
    /// What the queue does with a request of this module's SMs before the L2 sees it; `None`: the L2 takes it.
    pub(super) fn before_l2<C: Coherence>(
        &mut self,
        item: &Item<D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) -> Option<Tried> {
        if item.from() != Requester::Local {
            return None;
        }
        let (subscribers, line) = (item.subscribers(here)?, item.body.line);
        let publisher = here.uncore.publisher.as_mut()?;
        let is_here = subscribers.contains(here.site.module);
        let request = &item.body.request;
        if let Request::Read { mask, .. } = *request {
            publisher.read(line, mask);
        }
        let before = publisher.rules.before(subscribers, here.site.module, request, &publisher.publishing(line));
        match before {
            Before::Passes | Before::PassesBehindEntry => {
                let publisher = here.uncore.publisher.as_mut()?;
                match request {
                    Request::Read { .. } => publisher.stats.remote_loads += u64::from(!is_here),
                    Request::Atomic { returns: true, .. } if !is_here => publisher.asks(line),
                    Request::Write { .. } | Request::Atomic { .. } => {}
                }
                if before == Before::PassesBehindEntry {
                    let cause = if item.is_read() { Drained::Load } else { Drained::Atomic };
                    here.at_uncore().publish_entry(line, cause);
                }
                None
            }
            Before::Answered(data) => {
                let Request::Read { mask, .. } = *request else { return None };
                publisher.stats.forwards += 1;
                let bytes = u64::from(mask.grains()) * here.site.machine.line.grain();
                let leaves = self.occupy(here.out.now(), ready, bytes, here);
                here.shared.stats.reads += 1;
                let inside = self.held_until(leaves.time(), item, bytes, here);
                let (by, time) = (here.site.module, Below { inside, link: 0 });
                self.reply(waiter(item, here), Answer { line, mask, data, by, time, wire: 0 }, leaves, here);
                Some(Tried::Taken)
            }
            Before::IsAdded | Before::WasAdded => {
                self.take_past(item, ready, here);
                here.at_uncore().add_to_queue(line, request);
                Some(Tried::Taken)
            }
            Before::IsSent { behind_entry } => {
                self.take_past(item, ready, here);
                if behind_entry {
                    here.at_uncore().publish_entry(line, Drained::Atomic);
                }
                here.at_uncore().publish_atomic(subscribers, &item.body);
                Some(Tried::Taken)
            }
            Before::Waits => panic!("{}, {line}: what waits was taken", here.site.module),
        }
    }

    /// A store or an atomic ends in the queue: its SM hears that it has been taken.
    fn take_past<C: Coherence>(&mut self, item: &Item<D>, ready: Ps, here: &mut SliceContext<'_, '_, C, D>) {
        let mask = bytes_of(item);
        let bytes = u64::from(mask.grains()) * here.site.machine.line.grain();
        let leaves = self.occupy(here.out.now(), ready, bytes, here);
        match item.body.request {
            Request::Atomic { .. } => here.shared.stats.atomics += 1,
            Request::Write { .. } | Request::Read { .. } => here.shared.stats.writes += 1,
        }
        here.flags_mut().learn(item.body.line, item.body.flag);
        self.acknowledge(item, true, leaves.time(), here);
    }

    /// What was published goes to memory and takes no place in this L2: as it is stored here its line is evicted at once.
    pub(super) fn write_past<C: Coherence>(
        &mut self,
        item: &Item<D>,
        step: Step<'_, D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        let line = item.body.line;
        let mask = bytes_of(item);
        let bytes = u64::from(mask.grains()) * here.site.machine.line.grain();
        let leaves = self.occupy(here.out.now(), ready, bytes, here);
        let mut taken = leaves.time();
        if let Some((mask, data)) = step.actions.write {
            taken = taken.max(self.write_memory(line, (mask, data), leaves, here));
        }
        if let Some(state) = step.after.line.filter(|state| !state.dirty.is_empty()) {
            let mut slot = Slot { line: Some(state), ..*step.before };
            let actions = self.step(&mut slot, Event::Evict { last_of_region: false }, here);
            taken = taken.max(self.send_written_back((line, None), &actions, leaves, here).1);
        }
        self.acknowledge(item, true, taken, here);
    }

    /// What is published of a request that this L2 has taken. Returns whether its answer waits for that.
    pub(super) fn behind_l2<C: Coherence>(&mut self, item: &Item<D>, here: &mut SliceContext<'_, '_, C, D>) -> bool {
        let (line, at) = (item.body.line, here.site.module);
        let Some(subscribers) = item.subscribers(here).filter(|subscribers| subscribers.contains(at)) else {
            return false;
        };
        let Some(publisher) = &here.uncore.publisher else { return false };
        let own = item.from() == Requester::Local;
        match publisher.rules.behind(own, &item.body.request) {
            Behind::Nothing => false,
            Behind::IsAdded => {
                here.at_uncore().add_to_queue(line, &item.body.request);
                false
            }
            Behind::IsSent { behind_entry, answer_waits } => {
                if behind_entry {
                    here.at_uncore().publish_entry(line, Drained::Atomic);
                }
                let Request::Atomic { mask, scope, returns, .. } = item.body.request else { return false };
                // An atomic that leaves there what it has left here.
                let update = self.contents(line, here).exchange(mask);
                let request = Request::Atomic { mask, scope, update, returns: false };
                here.at_uncore().publish_atomic(subscribers, &LineRequest { request, ..item.body });
                answer_waits && returns
            }
        }
    }

    /// Holds the result of an atomic of another module back until all have the value that it left.
    pub(super) fn hold_answer<C: Coherence>(&mut self, item: &Item<D>, data: D, here: &mut SliceContext<'_, '_, C, D>) {
        let LineRequest { line, origin, .. } = item.body;
        if let Some(publisher) = &mut here.uncore.publisher {
            publisher.hold(HeldAnswer { line, origin, data });
        }
    }

    /// What this module has of a line.
    fn contents<C: Coherence>(&self, line: Line, here: &SliceContext<'_, '_, C, D>) -> D {
        let mut data = here.shared.memory.read(line);
        if let Some(state) = self.cache.peek(line) {
            data.merge(state.data, state.valid);
        }
        data
    }

    /// Has the entry leave that an atomic of its line waits for.
    pub(super) fn hurry<C: Coherence>(&mut self, item: &Item<D>, here: &mut SliceContext<'_, '_, C, D>) {
        let is_atomic = matches!(item.body.request, Request::Atomic { .. });
        if is_atomic && item.from() == Requester::Local && item.subscribers(here).is_some() {
            here.at_uncore().publish_entry(item.body.line, Drained::Atomic);
        }
    }
}

impl<C, D: Contents> SliceContext<'_, '_, C, D> {
    /// The subscribers of a line to whom this module publishes: several, or none.
    #[inline]
    pub fn subscribers(&self, line: Line) -> Option<Subscribers> {
        self.uncore.publisher.as_ref()?;
        self.site.map.subscribers(line).filter(|subscribers| subscribers.are_several())
    }

    /// What another module has published is here.
    pub(super) fn note_received(&mut self, body: &LineRequest<D>) {
        let grain = self.site.machine.line.grain();
        if let (Some(publisher), Request::Write { mask, .. }) = (&mut self.uncore.publisher, body.request) {
            publisher.received(body.line, mask, grain);
        }
    }

    /// Tells a publisher that what it has published has been taken here at `at`.
    pub(super) fn acknowledge_publication(&mut self, body: &LineRequest<D>, from: ModuleId, at: Ps) {
        let back = at + self.site.notice_latency(from);
        let delivered = Message::Delivered { ticket: body.tickets.hop, line: body.line };
        self.out.send(back, self.id, self.site.layout.controller(from), delivered);
    }
}

impl<C, D: Contents> UncoreContext<'_, '_, C, D> {
    /// Adds a store to the queue. What is at its watermark makes room, as long as it may send.
    fn add_to_queue(&mut self, line: Line, request: &Request<D>) {
        let (Some(publisher), Request::Write { mask, data, .. }) = (&mut self.uncore.publisher, *request) else {
            return;
        };
        publisher.stats.stores += 1;
        publisher.stats.queue_hits += u64::from(publisher.queue.add(line, mask, data));
        self.drain_to_watermark();
    }

    /// The least recently added entries leave while the queue is at its watermark and one more store may be under way.
    pub fn drain_to_watermark(&mut self) {
        while let Some(publisher) = &mut self.uncore.publisher
            && publisher.queue.is_at_watermark()
            && self.uncore.drains.has_room(false)
        {
            let Some(line) = publisher.queue.oldest() else { return };
            self.publish_entry(line, Drained::Watermark);
        }
    }

    /// A member of a release's phase acts: all of the queue leaves where the rules say so.
    pub fn empty_queue(&mut self, action: Action) {
        if !self.uncore.publisher.as_ref().is_some_and(|publisher| publisher.rules.empties_queue(action)) {
            return;
        }
        while let Some(line) = self.uncore.publisher.as_mut().and_then(|publisher| publisher.queue.oldest()) {
            self.publish_entry(line, Drained::Release);
        }
        if let Some(publisher) = &mut self.uncore.publisher {
            publisher.released();
        }
    }

    /// Sends what the queue has of a line to every other subscriber, if anything.
    fn publish_entry(&mut self, line: Line, cause: Drained) {
        let Some(publisher) = &mut self.uncore.publisher else { return };
        let Some(entry) = publisher.queue.remove(line) else { return };
        let subscribers = self.site.map.subscribers(line).expect("an entry leaves before its page changes");
        let rules = publisher.rules;
        let Entry { mask, data } = rules.sent(entry, Mask::ALL, None);
        let request = Request::Write { mask, scope: Scope::Cta, data, tracked: false };
        let body = self.publication(line, request);
        let sent = self.publish(rules, subscribers, &body);
        let Some(publisher) = &mut self.uncore.publisher else { return };
        publisher.entry_left(line, cause, sent);
    }

    /// Sends an atomic, or the value that it left, to every other subscriber.
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

    /// A request of this module's own account.
    fn publication(&self, line: Line, request: Request<D>) -> LineRequest<D> {
        let nobody = EntryId::default();
        let origin = Origin { module: self.site.module, sm: SmId(0), warp: 0, result: 0, register: nobody };
        LineRequest {
            line,
            request,
            origin,
            flag: Flag::NONE,
            tickets: Tickets::default(),
            asker: nobody,
            is_published: true,
        }
    }

    /// Sends a copy to each of those whom it is for, as soon as they are looked up; returns to how many. What is sent of a
    /// line goes the way of its slice, and so in order.
    fn publish(&mut self, rules: Publication, subscribers: Subscribers, body: &LineRequest<D>) -> u32 {
        let (line, now, from) = (body.line, self.out.now(), self.site.module);
        let Some(publisher) = &mut self.uncore.publisher else { return 0 };
        let known = publisher.look_up(self.site.map.page(line), now);
        let leaves = Departure::at(now).after(known - now);
        let targets = rules.targets(subscribers, from);
        let id = std::mem::replace(&mut self.id, self.site.slice_of(from, line));
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

    /// Flags of a line that a copy for `target` brings there for the first time.
    fn news(&mut self, line: Line, target: ModuleId) -> Vec<Flag> {
        self.uncore.publisher.as_mut().map(|publisher| publisher.flags.news(line, target)).unwrap_or_default()
    }

    fn count_publication(&mut self, packet: &Packet<D>, body: &LineRequest<D>) {
        let bytes = self.site.weights.of(packet.facts().payload).0;
        let Some(publisher) = &mut self.uncore.publisher else { return };
        match body.request {
            Request::Write { mask, .. } => {
                let unwritten = u64::from((!mask).grains()) * self.site.machine.line.grain();
                publisher.line_sent(body.line, unwritten, bytes);
            }
            Request::Atomic { .. } | Request::Read { .. } => publisher.atomic_sent(body.line, bytes),
        }
    }

    /// A subscriber has taken what was published of a line: results that wait for it go.
    pub fn publication_taken(&mut self, line: Line) {
        let Some(publisher) = &mut self.uncore.publisher else { return };
        if !publisher.taken(line) {
            return;
        }
        let now = Departure::at(self.out.now());
        for HeldAnswer { line, origin, data, .. } in publisher.let_go(line) {
            let back = self.site.next_back(line, origin.module);
            let id = std::mem::replace(&mut self.id, self.site.slice_of(self.site.module, line));
            self.send(now, back, Packet::Old { origin, line, data, by: self.site.module });
            self.id = id;
        }
    }
}
