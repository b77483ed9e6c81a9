//! The L2s, directories, memories and links: the host side of [`Coherence::step`].

use super::host::{EntryReplacement, L2Arrival, L2Classes, L2Fill, L2Flush, L2Line};
use super::machine::Machine;
use super::state::{
    ASIDE, Channel, ChannelMessage, HeldRequest, HoldReason, MachineState, MessageBody, PostedRequest, RequestSource,
    ThreadSet, Violation,
};
use super::values::Values;
use tombolo_protocol::coherence::{self, Channels, MemoryAccess};
use tombolo_protocol::drain::{self, MessageInFlight, MessageKind, Sender, SuccessorWait, Wait};
use tombolo_protocol::effects::Delivery;
use tombolo_protocol::host::{self, Admission};
use tombolo_protocol::paging::Holder;
use tombolo_protocol::{
    Action as PlanAction, Coherence, Data, Effects, L2Event, LineSlot, ModuleSet, Refusal, Reply, Request, Requester,
    Topology, ValidInvalid,
};
use tombolo_types::{Line, Mask, ModuleId};

/// The request that a protocol step handles.
#[derive(Clone, Copy)]
pub(super) struct CurrentRequest {
    pub(super) source: RequestSource,
    pub(super) posted: PostedRequest,
}

/// Carries out the effects of a protocol step at an L2.
struct L2Effects<'a> {
    state: &'a mut MachineState,
    at: ModuleId,
    line: u8,
    /// Index of the line's bytes in the module's memory.
    memory: usize,
    /// Ordering lane for upward messages: messages in a lane stay in order with this line's messages.
    lane: u8,
    region: u8,
    channels: Channels,
    /// Possible request destinations from this L2, according to the protocol's declaration.
    above: ModuleSet,
    /// Modules that this L2 may invalidate.
    named: ModuleSet,
    hand: Option<CurrentRequest>,
    /// Threads with releases waiting for messages that the current request forwards.
    watched: ThreadSet,
    effects: u32,
}

impl L2Effects<'_> {
    fn post(&mut self, channel: Channel, body: MessageBody) {
        self.effects += 1;
        self.state.messages.push(ChannelMessage { channel, line: self.line, body });
    }

    fn other_module(&mut self, to: ModuleId) -> ModuleId {
        self.demand(to != self.at, "a module sends to itself");
        to
    }

    /// Checks a rule for every protocol; the independence proof for steps at different L2s rests on this rule.
    fn demand(&mut self, holds: bool, else_wrong: &'static str) {
        if !holds {
            self.state.break_with(Violation::Unexpected(else_wrong));
        }
    }

    /// Holds the current request at this L2.
    fn keep(&mut self, how: impl FnOnce(CurrentRequest) -> HoldReason) {
        self.effects += 1;
        match self.hand {
            Some(hand) => {
                self.state.held.push(HeldRequest {
                    module: self.at,
                    line: self.line,
                    source: hand.source,
                    how: how(hand),
                });
            }
            None => self.state.break_with(Violation::Unexpected("no request is at hand to be held")),
        }
    }

    /// Memory serves a request in place of the L2. The reply waits in a separate channel.
    fn take_at_memory(&mut self, request: Request<Values>) {
        let memory = &mut self.state.memory[self.memory];
        match request {
            Request::Read { mask, .. } => {
                let data = *memory;
                self.answer(Reply::Fill { mask, data });
            }
            Request::Write { mask, data, .. } => memory.merge(data, mask),
            Request::Atomic { mask, update, returns, .. } => {
                let data = memory.update(update, mask);
                if returns {
                    self.answer(Reply::Old { data });
                }
            }
        }
    }
}

impl Effects<ValidInvalid, Values> for L2Effects<'_> {
    fn send(&mut self, to: ModuleId, message: coherence::L2Message<Values>) {
        let to = self.other_module(to);
        let up = Channel::Up { from: self.at, to, lane: self.lane };
        match message {
            coherence::L2Message::Request(request) => {
                self.demand(self.above.contains(to), "a request to a module that is not the next level up");
                let result = match request {
                    Request::Atomic { .. } => self.hand.and_then(|hand| hand.posted.result),
                    Request::Read { .. } | Request::Write { .. } => None,
                };
                let mut posted = PostedRequest { request, result, passed: None, watched: 0, published: false };
                posted.watched = if is_awaited(&posted) { self.watched } else { 0 };
                self.post(up, MessageBody::Request(posted));
            }
            coherence::L2Message::Bypassed(request) => {
                self.demand(self.above.contains(to), "a read passed on to a module that is not the next level up");
                let Some(hand) = self.hand else {
                    self.state.break_with(Violation::Unexpected("no read is at hand to be passed on"));
                    return;
                };
                let posted = PostedRequest { request, passed: Some(hand.source), ..hand.posted };
                self.post(up, MessageBody::Request(posted));
            }
            coherence::L2Message::Invalidate(_) => {
                self.demand(self.named.contains(to), "an invalidation to a module that the directory does not name");
                let region = self.region | if self.channels.fills_stay_ahead { 0 } else { ASIDE };
                self.post(Channel::Down { from: self.at, to, region }, MessageBody::Invalidate { watched: 0 });
            }
            coherence::L2Message::Downgrade => {
                self.demand(self.above.contains(to), "a downgrade to a module that is not the next level up");
                self.post(up, MessageBody::Downgrade);
            }
        }
    }

    fn answer(&mut self, reply: Reply<Values>) {
        let Some(hand) = self.hand else {
            self.state.break_with(Violation::Unexpected("a reply to nobody"));
            return;
        };
        match (reply, hand.source) {
            (Reply::Fill { mask, data }, RequestSource::Sm(sm)) => {
                self.post(Channel::ToSm { sm, line: self.line }, MessageBody::Fill { mask, data });
            }
            (Reply::Fill { mask, data }, RequestSource::Module(to)) => {
                let to = self.other_module(to);
                self.post(Channel::Down { from: self.at, to, region: self.region }, MessageBody::Fill { mask, data });
            }
            (Reply::Fill { .. }, RequestSource::Prefetch) => self.effects += 1,
            (Reply::Old { data }, _) => match hand.posted.result {
                Some(register) => self.post(Channel::Result { register }, MessageBody::Old(data)),
                None => self.state.break_with(Violation::Unexpected("a result that nobody wants")),
            },
        }
    }

    fn memory(&mut self, access: MemoryAccess<Values>) {
        self.effects += 1;
        match access {
            MemoryAccess::Read(mask) => {
                // Memory serves a line's requests in order, therefore the current contents are the reply.
                let data = self.state.memory[self.memory];
                self.post(Channel::Memory { module: self.at, line: self.line }, MessageBody::Fill { mask, data });
            }
            MemoryAccess::Write(mask, data) => self.state.memory[self.memory].merge(data, mask),
            MemoryAccess::Request(request) => self.take_at_memory(request),
        }
    }

    fn hold(&mut self, how: coherence::Hold) {
        match how {
            coherence::Hold::Wait(mask) => {
                let is_read = self.hand.is_some_and(|hand| matches!(hand.posted.request, Request::Read { .. }));
                self.demand(is_read, "only a read waits for a fill");
                self.keep(|_| HoldReason::Wait(mask));
            }
            coherence::Hold::Park => self.keep(|hand| HoldReason::Park(hand.posted)),
        }
    }
}

impl<P: Coherence> Machine<'_, P> {
    pub(super) fn l2_index(&self, module: ModuleId, line: u8) -> usize {
        module.0 as usize * self.scene.lines + line as usize
    }

    pub(super) fn entry_index(&self, module: ModuleId, line: u8) -> usize {
        module.0 as usize * self.regions + self.region(line) as usize
    }

    /// The upward channel for a line's messages: a channel per line or per region, as declared.
    pub(super) fn lane(&self, line: u8) -> u8 {
        match self.protocol.channels().up {
            Delivery::FifoPerLine => line,
            Delivery::FifoPerRegion => self.region(line),
            Delivery::Fifo | Delivery::Unordered => unreachable!("no protocol declares it for requests"),
        }
    }

    /// Performs a protocol step at a slot.
    pub(super) fn step(
        &self,
        state: &mut MachineState,
        at: ModuleId,
        line: u8,
        event: L2Event<Values>,
        hand: Option<CurrentRequest>,
    ) -> Result<(), Refusal> {
        let (index, entry) = (self.l2_index(at, line), self.entry_index(at, line));
        let mut slot = LineSlot {
            line_id: Line(u64::from(line)),
            homes: self.homes_now(state, at, line),
            line: state.l2[index].line,
            pending: state.l2[index].pending,
            entry: state.entries[entry],
        };
        let region = self.region(line);
        let above = self.protocol.next_level(at, slot.homes);
        let named = self.named(state, at, line);
        let waited = hand.map_or(0, |hand| hand.posted.watched);
        let watched = drain::continuing_waits(&self.protocol, waited, state.waiting_to_the_end());
        let (lane, memory) = (self.lane(line), self.memory_index(Holder::Module(at), line));
        let mut sink = L2Effects {
            state,
            at,
            line,
            memory,
            lane,
            region,
            channels: self.protocol.channels(),
            above,
            named,
            hand,
            watched,
            effects: 0,
        };
        let result = self.protocol.step(self.scene.layout, at, &mut slot, event, &mut sink);
        let effects = sink.effects;
        let before = state.l2[index];
        let changed = slot.line != before.line || slot.pending != before.pending || slot.entry != state.entries[entry];
        match result {
            Ok(()) => {
                state.l2[index].line = slot.line;
                state.l2[index].pending = slot.pending;
                state.entries[entry] = slot.entry;
            }
            Err(Refusal::Unexpected(what)) => state.break_with(Violation::Unexpected(what)),
            Err(Refusal::Stall) if changed || effects > 0 => {
                state.break_with(Violation::Unexpected("a refusal that changed something"));
            }
            Err(Refusal::Stall) => {}
        }
        result
    }

    /// Performs a protocol step that must not be refused.
    pub(super) fn must_step(
        &self,
        state: &mut MachineState,
        at: ModuleId,
        line: u8,
        event: L2Event<Values>,
        hand: Option<CurrentRequest>,
    ) {
        if self.step(state, at, line, event, hand) == Err(Refusal::Stall) {
            state.break_with(Violation::Unexpected("an event that cannot wait was refused"));
        }
    }

    /// A request arrives at an L2, or is retried at this L2.
    pub(super) fn take_posted(
        &self,
        state: &mut MachineState,
        at: ModuleId,
        line: u8,
        source: RequestSource,
        posted: PostedRequest,
    ) {
        let hand = CurrentRequest { source, posted };
        if self.passes_queue(state, at, line, &hand) {
            return;
        }
        let l2 = L2Line { machine: self, state, at, line };
        let Ok(taken) = host::take(&self.protocol, &mut L2Arrival { l2, hand });
        assert_eq!(taken, Admission::Admitted, "a request that arrives has its credit");
    }

    /// The requester, as seen by the L2 in `at`.
    pub(super) fn requester(&self, at: ModuleId, source: RequestSource) -> Requester {
        match source {
            RequestSource::Module(module) => Requester::Module(module),
            RequestSource::Sm(sm) if self.scene.sms[sm as usize].module != at => {
                Requester::Module(self.scene.sms[sm as usize].module)
            }
            RequestSource::Sm(_) | RequestSource::Prefetch => Requester::Local,
        }
    }

    /// Bytes for an L2's own miss arrive.
    pub(super) fn take_fill(&self, state: &mut MachineState, at: ModuleId, line: u8, mask: Mask, data: Values) {
        let mut filling = L2Fill { l2: L2Line { machine: self, state, at, line }, mask, data };
        if let Some(held) = host::fill(&self.protocol, &mut filling, mask) {
            host::resume(&mut filling.l2, held);
        }
    }

    /// An invalidation for the region around `line` arrives, while the releases by `watched` wait for it. Each release
    /// then waits for every message about this region sent by this module.
    pub(super) fn take_invalidation(&self, state: &mut MachineState, at: ModuleId, line: u8, watched: ThreadSet) {
        let earlier = state.messages.len();
        let lines: Vec<u8> = self.lines_of_region(line).collect();
        let lines = lines.into_iter().map(|line| Line(u64::from(line)));
        let mut region = L2Line { machine: self, state: &mut *state, at, line };
        host::invalidate_region(&self.protocol, &mut region, Line(u64::from(line)), lines);
        let first = match drain::successor_wait(&self.protocol) {
            SuccessorWait::All => 0,
            SuccessorWait::Forwarded => earlier,
            SuccessorWait::Nothing => state.messages.len(),
        };
        let wait = Wait::Successor { at, region: u64::from(self.region(line)) };
        self.mark(&mut state.messages[first..], &mut [], watched, wait);
    }

    pub(super) fn take_downgrade(&self, state: &mut MachineState, at: ModuleId, line: u8, from: ModuleId) {
        self.must_step(state, at, line, L2Event::Downgrade { from }, None);
    }

    /// Evicts the line. Returns false, with no change, if the protocol keeps the line.
    pub(super) fn evict(&self, state: &mut MachineState, at: ModuleId, line: u8) -> bool {
        let in_use = |other: u8| {
            let slot = state.l2[self.l2_index(at, other)];
            slot.line.is_some() || slot.pending.is_some()
        };
        let last_of_region = !self.lines_of_region(line).any(|other| other != line && in_use(other));
        self.step(state, at, line, L2Event::Evict { last_of_region }, None) != Err(Refusal::Stall)
    }

    /// Evicts the directory entry for the line's region.
    pub(super) fn replace_entry(&self, state: &mut MachineState, at: ModuleId, line: u8) {
        let lines: Vec<u8> = self.lines_of_region(line).collect();
        let lines = lines.into_iter().map(|line| Line(u64::from(line)));
        let mut replaced = EntryReplacement(L2Line { machine: self, state, at, line });
        host::replace_entry(&self.protocol, &mut replaced, lines);
    }

    /// Performs the immediate part of a plan phase at a member, and marks the messages for which the thread then waits.
    pub(super) fn act(&self, state: &mut MachineState, at: ModuleId, thread: usize, action: PlanAction) {
        let bit = 1 << thread;
        self.empty_queue(state, at, action);
        match action {
            PlanAction::Invalidate(classes) => {
                host::invalidate_bulk(&mut L2Classes { machine: self, state, at, classes });
            }
            PlanAction::DrainStores(_) | PlanAction::ForwardStores | PlanAction::Flush => {
                let written_back = action.writes_back();
                for line in (0..self.scene.lines as u8).filter(|&line| written_back.contains(self.class(at, line))) {
                    self.flush_line(state, at, line, bit);
                }
                self.wait(state, bit, Wait::Phase { at, action });
            }
            PlanAction::Merge { .. } => {
                state.break_with(Violation::Unexpected("an L2 of lines was asked to merge blocks"));
            }
            PlanAction::DrainInvalidations(_) | PlanAction::AwaitStores => {
                self.wait(state, bit, Wait::Phase { at, action })
            }
        }
    }

    /// Makes the releases by `threads` wait for every in-flight message that `wait` includes.
    pub(super) fn wait(&self, state: &mut MachineState, threads: ThreadSet, wait: Wait) {
        let MachineState { messages, held, .. } = state;
        self.mark(messages, held, threads, wait);
    }

    fn mark(&self, messages: &mut [ChannelMessage], held: &mut [HeldRequest], threads: ThreadSet, wait: Wait) {
        let messages = messages.iter_mut().filter_map(|message| self.sent(message));
        let parked = held.iter_mut().filter_map(|held| self.parked(held));
        for (sent, watched) in messages.chain(parked) {
            if wait.includes(self.scene.layout, &sent) {
                *watched |= threads;
            }
        }
    }

    /// Classifies a message for waiting releases, and returns the set of waiting threads.
    fn sent<'m>(&self, message: &'m mut ChannelMessage) -> Option<(MessageInFlight, &'m mut ThreadSet)> {
        let ChannelMessage { channel, line, body } = message;
        let forgotten = self.config.publication.is_some_and(|rules| !rules.awaits_delivery());
        if forgotten && matches!(body, MessageBody::Request(posted) if posted.published) {
            return None;
        }
        let (from, to, what, place, watched) = match (*channel, body) {
            (Channel::ToL2 { sm, .. }, MessageBody::Request(posted)) => {
                let to = self.scene.sms[sm as usize].module;
                (Sender::Sm(sm.into()), to, store(posted)?, *line, &mut posted.watched)
            }
            (Channel::Up { from, to, .. }, MessageBody::Request(posted)) => {
                (Sender::Module(from), to, store(posted)?, *line, &mut posted.watched)
            }
            (Channel::Down { from, to, region }, MessageBody::Invalidate { watched }) => {
                (Sender::Module(from), to, MessageKind::Invalidation, region & !ASIDE, watched)
            }
            _ => return None,
        };
        Some((MessageInFlight { kind: what, from, to, key: place.into() }, watched))
    }

    /// Classifies a parked request for waiting releases, in the manner of `sent`.
    fn parked<'h>(&self, held: &'h mut HeldRequest) -> Option<(MessageInFlight, &'h mut ThreadSet)> {
        let from = match held.source {
            RequestSource::Sm(sm) => Sender::Sm(sm.into()),
            RequestSource::Module(module) => Sender::Module(module),
            RequestSource::Prefetch => return None,
        };
        let HoldReason::Park(posted) = &mut held.how else { return None };
        let sent = MessageInFlight { kind: store(posted)?, from, to: held.module, key: held.line.into() };
        Some((sent, &mut posted.watched))
    }

    /// Writes back a line for the releases by `threads`, immediately or after the miss completes.
    pub(super) fn flush_line(&self, state: &mut MachineState, at: ModuleId, line: u8, threads: ThreadSet) {
        if state.l2[self.l2_index(at, line)].line.is_none() {
            return;
        }
        let l2 = L2Line { machine: self, state: &mut *state, at, line };
        host::flush(&self.protocol, &mut L2Flush { l2, threads });
    }

    pub(super) fn lines_of_region(&self, line: u8) -> impl Iterator<Item = u8> {
        let region = self.region(line);
        (0..self.scene.lines as u8).filter(move |&other| self.region(other) == region)
    }

    pub(super) fn modules(&self) -> impl Iterator<Item = ModuleId> + use<P> {
        (0..self.scene.layout.modules()).map(ModuleId)
    }
}

/// Classifies a request for waiting releases: `None` for a read.
fn store(posted: &PostedRequest) -> Option<MessageKind> {
    is_awaited(posted).then_some(MessageKind::Store)
}

/// True if a release waits for the request.
pub(super) fn is_awaited(posted: &PostedRequest) -> bool {
    match posted.request {
        Request::Write { .. } | Request::Atomic { .. } => true,
        Request::Read { .. } => false,
    }
}
