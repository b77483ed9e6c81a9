//! Published pages: the queue in each module and its outgoing messages, by the rules in
//! [`tombolo_protocol::publication`].
//!
//! An entry may be sent at any time: this covers queues with any capacity and any eviction rule. Messages about a line
//! arrive in order at each subscriber, through the line's channel. A module publishes to the subscribers in its
//! mapping.

use super::l2::CurrentRequest;
use super::machine::Machine;
use super::paging::PageStep;
use super::state::{
    AwaitedResult, Channel, ChannelMessage, MachineState, MessageBody, PostedRequest, RequestSource, Violation,
};
use super::step::Step;
use super::values::{Values, WHOLE_LINE};
use tombolo_protocol::paging::Holder;
use tombolo_protocol::plan::Action;
use tombolo_protocol::publication::{
    PendingPublications, Publication, PublicationDecision, PublicationEntry, QueueDecision, Subscribers,
};
use tombolo_protocol::{Coherence, Request};
use tombolo_types::{ModuleId, Scope};

/// A module's queue entry for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueueEntry {
    /// Module that owns the queue.
    pub(super) module: ModuleId,
    /// The line.
    pub(super) line: u8,
    entry: PublicationEntry<Values>,
    /// Set if the entry was sent and stayed in the queue.
    is_sent: bool,
}

impl<P: Coherence> Machine<'_, P> {
    /// Rules and subscribers for a published page, as seen by module `at`; `None` for any other page.
    fn published(&self, state: &MachineState, at: ModuleId, line: u8) -> Option<(Publication, Subscribers)> {
        let subscribers = Subscribers::new(self.sees(state, at, line)?.subscribers)?;
        self.config.publication.map(|rules| (rules, subscribers))
    }

    fn entry(state: &MachineState, at: ModuleId, line: u8) -> Option<PublicationEntry<Values>> {
        let here = |queued: &&QueueEntry| queued.module == at && queued.line == line;
        state.queues.iter().find(here).map(|queued| queued.entry)
    }

    /// Outstanding publications from `at` for a line.
    fn publishing(&self, state: &MachineState, at: ModuleId, line: u8) -> PendingPublications<Values> {
        let is_sent = |message: &ChannelMessage| {
            let MessageBody::Request(posted) = &message.body else { return false };
            let from = matches!(message.channel, Channel::Up { from, .. } if from == at);
            posted.published && from && message.line == line
        };
        PendingPublications {
            entry: Self::entry(state, at, line),
            under_way: state.messages.iter().any(is_sent),
            unanswered: self.has_unanswered(state, at, line),
        }
    }

    /// True if an atomic on a line has passed the L2 of its module `at`, but still lacks a result.
    fn has_unanswered(&self, state: &MachineState, at: ModuleId, line: u8) -> bool {
        let here = (0..state.fronts.threads.len()).filter(|&thread| self.module_of(thread) == at);
        let mut registers = here.flat_map(|thread| self.scene.registers_of(thread));
        registers.any(|register| {
            let before_l2 = |message: &ChannelMessage| match (message.channel, &message.body) {
                (Channel::ToL2 { .. }, MessageBody::Request(posted)) => {
                    posted.result.map(usize::from) == Some(register)
                }
                _ => false,
            };
            let awaits = state.fronts.registers[register].awaits;
            matches!(awaits, Some(AwaitedResult::Atomic { line: of, .. }) if of == line)
                && !state.messages.iter().any(before_l2)
        })
    }

    /// An SM posts a request.
    pub(super) fn note_issued(&self, state: &mut MachineState, at: ModuleId, line: u8, request: &Request<Values>) {
        if self.published(state, at, line).is_some_and(|(rules, _)| rules.adds_at_issue()) {
            Self::add(state, at, line, request);
        }
    }

    /// A request from an SM or a module reaches the L2 in `at`. Returns true if the request never reaches the L2
    /// itself.
    pub(super) fn passes_queue(&self, state: &mut MachineState, at: ModuleId, line: u8, hand: &CurrentRequest) -> bool {
        let RequestSource::Sm(sm) = hand.source else { return false };
        let Some((rules, subscribers)) = self.published(state, at, line) else { return false };
        if self.scene.sms[sm as usize].module != at {
            return false;
        }
        let PostedRequest { request, .. } = hand.posted;
        match rules.before(subscribers, at, &request, &self.publishing(state, at, line)) {
            QueueDecision::Passes => false,
            QueueDecision::PassesBehindEntry => {
                self.send_entry(state, at, line);
                false
            }
            QueueDecision::IsAdded => {
                Self::add(state, at, line, &request);
                true
            }
            QueueDecision::WasAdded => true,
            QueueDecision::Answered(data) => {
                let Request::Read { mask, .. } = request else { return false };
                let channel = Channel::ToSm { sm, line };
                state.messages.push(ChannelMessage { channel, line, body: MessageBody::Fill { mask, data } });
                true
            }
            QueueDecision::IsSent { behind_entry } => {
                if behind_entry {
                    self.send_entry(state, at, line);
                }
                self.send(state, at, line, PostedRequest { result: None, ..hand.posted });
                true
            }
            QueueDecision::Waits => {
                state.break_with(Violation::Unexpected("a request that waits was delivered"));
                true
            }
        }
    }

    /// True if the first message in a channel waits before the module's L2.
    pub(super) fn waits_before_l2(&self, state: &MachineState, channel: Channel) -> bool {
        let Channel::ToL2 { sm, line } = channel else { return false };
        let (at, mut messages) = (self.scene.sms[sm as usize].module, state.messages.iter());
        let Some((rules, subscribers)) = self.published(state, at, line) else { return false };
        let first = messages.find(|message| message.channel == channel).map(|message| message.body);
        let Some(MessageBody::Request(PostedRequest { request, .. })) = first else { return false };
        rules.before(subscribers, at, &request, &self.publishing(state, at, line)) == QueueDecision::Waits
    }

    /// The L2 in `at` has served a request.
    pub(super) fn note_taken(&self, state: &mut MachineState, at: ModuleId, line: u8, hand: &CurrentRequest) {
        let Some((rules, subscribers)) = self.published(state, at, line) else { return };
        if hand.posted.published || !subscribers.contains(at) {
            return;
        }
        let own = matches!(hand.source, RequestSource::Sm(sm) if self.scene.sms[sm as usize].module == at);
        let request = hand.posted.request;
        match rules.behind(own, &request) {
            PublicationDecision::Nothing => {}
            PublicationDecision::IsAdded => Self::add(state, at, line, &request),
            PublicationDecision::IsSent { behind_entry, answer_waits } => {
                if behind_entry {
                    self.send_entry(state, at, line);
                }
                let Request::Atomic { mask, .. } = request else { return };
                let data = self.contents_at(state, Holder::Module(at), line);
                let request = Request::Write { mask, scope: Scope::Cta, data, tracked: false };
                let result = hand.posted.result.filter(|_| answer_waits);
                self.send(state, at, line, PostedRequest { request, result, ..hand.posted });
            }
        }
    }

    /// Adds a store to the queue of `at`.
    fn add(state: &mut MachineState, at: ModuleId, line: u8, request: &Request<Values>) {
        let Request::Write { mask, data, .. } = *request else { return };
        let entry = PublicationEntry::added(Self::entry(state, at, line), mask, data);
        state.queues.retain(|queued| queued.module != at || queued.line != line);
        state.queues.push(QueueEntry { module: at, line, entry, is_sent: false });
    }

    /// Sends the queue entry of `at` for a line, if any.
    pub(super) fn send_entry(&self, state: &mut MachineState, at: ModuleId, line: u8) {
        let Some(entry) = Self::entry(state, at, line) else { return };
        let Some((rules, subscribers)) = self.published(state, at, line) else {
            return self.discard_entry(state, at, line);
        };
        state.queues.retain_mut(|queued| {
            let is_here = queued.module == at && queued.line == line;
            !is_here || !rules.closes() && !std::mem::replace(&mut queued.is_sent, true)
        });
        let holds = subscribers.contains(at).then(|| self.contents_at(state, Holder::Module(at), line));
        let PublicationEntry { mask, data } = rules.sent(entry, WHOLE_LINE, holds);
        let request = Request::Write { mask, scope: Scope::Cta, data, tracked: false };
        self.send(state, at, line, PostedRequest { request, result: None, passed: None, watched: 0, published: true });
    }

    /// Discards the queue entry of `at` for a line in a page whose publication has ended. Such an entry is a violation,
    /// unless a page rule is broken.
    fn discard_entry(&self, state: &mut MachineState, at: ModuleId, line: u8) {
        state.queues.retain(|queued| queued.module != at || queued.line != line);
        if self.paging.is_some_and(|rules| rules.broken.is_none()) {
            state.break_with(Violation::Unexpected("an entry of a page that is not published"));
        }
    }

    /// True if the queue of `module` has an entry for a page.
    pub(super) fn has_entries(&self, state: &MachineState, page: u8, module: ModuleId) -> bool {
        state.queues.iter().any(|queued| queued.module == module && self.region(queued.line) == page)
    }

    /// Sends a store or an atomic to every other subscriber.
    fn send(&self, state: &mut MachineState, at: ModuleId, line: u8, posted: PostedRequest) {
        let Some((rules, subscribers)) = self.published(state, at, line) else { return };
        let targets = rules.targets(subscribers, at);
        let request = match posted.request {
            Request::Atomic { mask, update, .. } => Request::Atomic { mask, scope: Scope::Gpu, update, returns: false },
            request => request,
        };
        for to in self.modules().filter(|module| targets.contains(*module)) {
            let channel = Channel::Up { from: at, to, lane: self.lane(line) };
            let posted = PostedRequest { request, passed: None, watched: 0, published: true, ..posted };
            state.messages.push(ChannelMessage { channel, line, body: MessageBody::Request(posted) });
        }
    }

    /// Executes an action in a release phase at a member: empties the queue if the rules demand it.
    pub(super) fn empty_queue(&self, state: &mut MachineState, at: ModuleId, action: Action) {
        if !self.config.publication.is_some_and(|rules| rules.empties_queue(action)) {
            return;
        }
        (0..self.scene.lines as u8).for_each(|line| self.send_entry(state, at, line));
    }

    /// Adds a step per queue entry, because each may be sent.
    pub(super) fn queue_steps(&self, state: &MachineState, steps: &mut Vec<Step>) {
        let step = |&QueueEntry { module, line, .. }: &QueueEntry| Step::Page(PageStep::Publish { module, line });
        steps.extend(state.queues.iter().map(step));
    }

    /// True if a channel's message waits: an atomic's result waits until every subscriber has received the new value.
    pub(super) fn awaits_value(&self, state: &MachineState, channel: Channel) -> bool {
        let Channel::Result { register } = channel else { return false };
        state.messages.iter().any(|message| match &message.body {
            MessageBody::Request(posted) => posted.published && posted.result == Some(register),
            _ => false,
        })
    }
}
