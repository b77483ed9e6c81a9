//! Possible next steps on a machine with clients and homes.

use super::super::config::Evictions;
use super::super::sm::SmHost;
use super::super::sync::PlanHost;
use super::super::values::WHOLE_LINE;
use super::NodeMachine;
use super::state::{BlockValues, ClientRequest, NodeChannel, NodeMessage, NodeState};
use crate::litmus::Instruction;
use tombolo_protocol::Request;
use tombolo_protocol::client_home::{MessageClass, Node, Nodes};
use tombolo_protocol::front::Stage;
use tombolo_protocol::l1::L1Pending;
use tombolo_types::Scope;

/// Sender, receiver and class of messages in a queue.
type QueueKey = (Node, Node, MessageClass);

/// A single step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::explore) enum NodeStep {
    /// A thread runs the current stage.
    Thread {
        thread: u8,
        /// Set if the thread's L1 evicts the line first.
        evict_first: bool,
    },
    /// A message arrives; `at` is its index among all messages.
    Deliver {
        at: u16,
        /// Eviction at the destination just before the arrival.
        first: DeliveryEviction,
    },
    /// A client evicts a block.
    Evict { client: u8, block: u8 },
}

/// Eviction at the client that receives a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::explore) enum DeliveryEviction {
    Nothing,
    /// The L2 evicts the block's lines.
    Above,
    /// The client evicts the block.
    Block,
}

impl<P: Nodes> NodeMachine<'_, P> {
    pub(super) fn possible(&self, state: &NodeState<P>) -> Vec<NodeStep> {
        if let Some(step) = self.eager_step(state) {
            return vec![step];
        }
        let mut steps = Vec::new();
        for thread in 0..state.fronts.threads.len() {
            self.steps_of(state, thread, &mut steps);
        }
        for at in self.first_messages(state) {
            self.deliveries(state, at, &mut steps);
        }
        if !steps.is_empty() && self.config.evictions != Evictions::Never {
            for client in 0..self.clients {
                for block in 0..self.blocks {
                    let slot = &state.slots[self.client_index(client, block)];
                    let unseen = self.protocol.evicts_silently(slot);
                    if P::client_view(slot).holds && !P::is_busy(slot) && !unseen {
                        steps.push(NodeStep::Evict { client, block: block as u8 });
                    }
                }
            }
        }
        steps
    }

    fn steps_of(&self, state: &NodeState<P>, thread: usize, steps: &mut Vec<NodeStep>) {
        let step = |evict_first| NodeStep::Thread { thread: thread as u8, evict_first };
        match self.stage(state, thread) {
            Some(Stage::Issue) if self.can_issue(state, thread) && self.is_in_turn(state, thread) => {
                let instruction = self.instruction(state, thread);
                let Some(location) = instruction.and_then(|instruction| instruction.location()) else { return };
                let line = self.scene.layout.cell(location).line;
                let slot = state.fronts.l1[self.scene.l1_index(self.scene.sm_of[thread], line)];
                steps.push(step(false));
                let is_load = matches!(instruction, Some(Instruction::Load { .. }));
                if self.config.evictions != Evictions::Never && slot.line.is_some() && is_load {
                    steps.push(step(true));
                }
            }
            Some(Stage::Acquire(_)) if self.acquire_is_ready(state, thread) => steps.push(step(false)),
            Some(Stage::Issue | Stage::Acquire(_) | Stage::AwaitLoads | Stage::AwaitResult | Stage::Release(_))
            | None => {}
        }
    }

    /// Checks the host core's turn: this core has at most a single access in flight.
    fn is_in_turn(&self, state: &NodeState<P>, thread: usize) -> bool {
        let sm = self.scene.sm_of[thread];
        if !self.is_host(sm) {
            return true;
        }
        let mut threads = (0..state.fronts.threads.len()).filter(|other| self.scene.sm_of[*other] == sm);
        let under_way = |asked: &ClientRequest| asked.sm == Some(sm);
        threads.all(|thread| self.has_results(state, thread))
            && !state.waiting().any(under_way)
            && !state.messages.iter().any(|message| matches!(message, NodeMessage::Request(asked) if under_way(asked)))
    }

    /// Indices of the messages with a possible next arrival.
    fn first_messages(&self, state: &NodeState<P>) -> Vec<u16> {
        let channels: Vec<NodeChannel> = state.messages.iter().map(|message| message.channel::<P>()).collect();
        let is_first = |at: usize| match channels[at] {
            NodeChannel::Between { class, .. } if !P::CHANNELS.keep_order(class) => true,
            channel => channels.iter().position(|other| *other == channel) == Some(at),
        };
        (0..channels.len()).filter(|at| is_first(*at)).map(|at| at as u16).collect()
    }

    fn deliveries(&self, state: &NodeState<P>, at: u16, steps: &mut Vec<NodeStep>) {
        let deliver = |first| NodeStep::Deliver { at, first };
        let (client, block) = match state.messages[at as usize] {
            NodeMessage::Request(ClientRequest { sm: Some(sm), line, .. }) => (self.client_of(sm), self.block(line)),
            NodeMessage::Between { to: Node::Client(client), block, .. } => (client.0, block as usize),
            NodeMessage::Between { to: Node::Home, block, ref message, .. } => {
                if P::class(message) != MessageClass::Request
                    || !P::is_busy(&state.slots[self.home_index(block as usize)])
                {
                    steps.push(deliver(DeliveryEviction::Nothing));
                }
                return;
            }
            NodeMessage::Request(ClientRequest { sm: None, .. }) | NodeMessage::Fill { .. } => {
                steps.push(deliver(DeliveryEviction::Nothing));
                return;
            }
        };
        let slot = &state.slots[self.client_index(client, block)];
        let busy = P::is_busy(slot);
        if matches!(state.messages[at as usize], NodeMessage::Request(_)) && self.stays_in_channel(busy) {
            return;
        }
        steps.push(deliver(DeliveryEviction::Nothing));
        if self.config.evictions != Evictions::Never && P::client_view(slot).holds && !busy {
            steps.push(deliver(DeliveryEviction::Block));
        }
        if self.config.evictions == Evictions::Spontaneous && P::above(slot).is_some_and(|above| !above.is_empty()) {
            steps.push(deliver(DeliveryEviction::Above));
        }
    }

    /// Finds a delivery that commutes with every possible earlier step; it is then executed immediately. If a home's
    /// messages to a client are unordered, a later message may be sent and overtake. With limited queue slots no
    /// delivery commutes, because it might have to wait. With limited client resources none does either: a freed
    /// resource goes to the requests that have arrived by then.
    pub(super) fn eager_step(&self, state: &NodeState<P>) -> Option<NodeStep> {
        let is_limited = self.config.slots.is_some() || self.config.room.is_some();
        if !self.config.reductions.eager || is_limited || state.broken.is_some() {
            return None;
        }
        let commutes = |at: &u16| match &state.messages[*at as usize] {
            NodeMessage::Between { message, to, block, .. } => match (P::class(message), to) {
                (MessageClass::Answer, _) => !self.meets(state, *at),
                // Any waiter for this message can be late by itself.
                (MessageClass::Down, Node::Client(_)) if P::only_notifies(message) => true,
                // A waiting client handles no further message for the block, except from a peer.
                (MessageClass::Down, Node::Client(client)) => {
                    let slot = &state.slots[self.client_index(client.0, *block as usize)];
                    P::CHANNELS.keep_order(MessageClass::Down) && P::is_busy(slot) && !self.meets(state, *at)
                }
                (MessageClass::Down, Node::Home) | (MessageClass::Request | MessageClass::Peer, _) => false,
            },
            NodeMessage::Request(_) | NodeMessage::Fill { .. } => false,
        };
        let at = self.first_messages(state).into_iter().find(commutes)?;
        Some(NodeStep::Deliver { at, first: DeliveryEviction::Nothing })
    }

    /// True if another unordered message is in flight to the same node and block.
    fn meets(&self, state: &NodeState<P>, at: u16) -> bool {
        let NodeMessage::Between { to, block, .. } = state.messages[at as usize] else { return false };
        state.messages.iter().enumerate().any(|(other, message)| match message {
            NodeMessage::Between { to: also, block: of, message, .. } => {
                let keeps_order = P::CHANNELS.keep_order(P::class(message));
                other != at as usize && *also == to && *of == block && !keeps_order
            }
            NodeMessage::Request(_) | NodeMessage::Fill { .. } => false,
        })
    }

    /// Executes a single `step`. Returns false if it must wait: then `state` is unusable.
    pub(super) fn execute_step(&self, step: NodeStep, state: &mut NodeState<P>) -> bool {
        let (queued, ends) = (self.queued(state), self.is_end(state, step));
        let taken = match step {
            NodeStep::Thread { thread, evict_first } => match self.stage(state, thread as usize) {
                Some(Stage::Acquire(scope)) => {
                    self.finish_acquire(state, thread as usize, scope);
                    true
                }
                _ => self.issue(state, thread as usize, evict_first),
            },
            NodeStep::Deliver { at, first } => self.deliver(state, at as usize, first),
            NodeStep::Evict { client, block } => self.evict(state, client, block as usize),
        };
        let fits = taken && (ends || self.fits(state, &queued));
        if fits {
            self.settle_all(state);
        }
        fits
    }

    pub(super) fn settle_all(&self, state: &mut NodeState<P>) {
        // A plan that continues may request merges, and a completed merge may let a plan continue.
        loop {
            self.run_merges(state);
            let before = state.merges.len();
            let at: Vec<(u16, u8)> = state.fronts.threads.iter().map(|thread| (thread.pc, thread.stage)).collect();
            self.settle(state);
            let after = state.fronts.threads.iter().map(|thread| (thread.pc, thread.stage));
            if state.merges.len() <= before && after.eq(at) {
                return;
            }
        }
    }

    fn deliver(&self, state: &mut NodeState<P>, at: usize, first: DeliveryEviction) -> bool {
        let message = state.messages.remove(at);
        let (client, block) = match message {
            NodeMessage::Request(ClientRequest { sm, line, .. }) => {
                (sm.map_or(0, |sm| self.client_of(sm)), self.block(line))
            }
            NodeMessage::Between { to: Node::Client(client), block, .. } => (client.0, block as usize),
            NodeMessage::Between { to: Node::Home, block, .. } => (0, block as usize),
            NodeMessage::Fill { line, .. } => (0, self.block(line)),
        };
        match first {
            DeliveryEviction::Nothing => {}
            DeliveryEviction::Above => self.evict_above(state, client, block),
            DeliveryEviction::Block => {
                if !self.evict(state, client, block) {
                    return false;
                }
            }
        }
        match message {
            NodeMessage::Request(asked) => {
                let busy = P::is_busy(&state.slots[self.client_index(client, block)]);
                if self.stays_in_channel(busy) {
                    return false;
                }
                self.offer(state, client, asked);
                true
            }
            NodeMessage::Between { from, to, block, message } => {
                self.deliver_between(state, (from, to, block), message)
            }
            NodeMessage::Fill { sm, line, mask, data } => {
                self.take_l1_fill(state, sm, line, mask, data);
                if self.is_host(sm) {
                    state.fronts.l1[self.scene.l1_index(sm, line)].line = None;
                }
                true
            }
        }
    }

    /// True if a request stays in the channel because its block is busy: delivery would only park the request, and
    /// later requests park behind the first. With limited resources the request may lack a resource, and later requests
    /// from the SM pass it.
    fn stays_in_channel(&self, is_busy: bool) -> bool {
        is_busy && self.config.room.is_none()
    }

    /// The queue of each message between nodes; empty if queues are unlimited.
    fn queued(&self, state: &NodeState<P>) -> Vec<QueueKey> {
        let queue = |message: &NodeMessage<P::Message<BlockValues>>| match *message {
            NodeMessage::Between { from, to, ref message, .. } => Some((from, to, P::class(message))),
            NodeMessage::Request(_) | NodeMessage::Fill { .. } => None,
        };
        let is_limited = self.config.slots.is_some();
        state.messages.iter().filter(|_| is_limited).filter_map(queue).collect()
    }

    /// True if all messages sent since the queues were as in `before` had room.
    fn fits(&self, state: &NodeState<P>, before: &[QueueKey]) -> bool {
        let Some(slots) = self.config.slots else { return true };
        let now = self.queued(state);
        let count = |queues: &[QueueKey], one: &QueueKey| queues.iter().filter(|other| *other == one).count();
        now.iter().all(|one| count(&now, one) <= (slots as usize).max(count(before, one)))
    }

    /// True if a client has room for another request to its home.
    pub(super) fn has_room(&self, state: &NodeState<P>, client: Node) -> bool {
        let Some(slots) = self.config.slots else { return true };
        let request = (client, Node::Home, MessageClass::Request);
        self.queued(state).iter().filter(|queue| **queue == request).count() < slots as usize
    }

    /// True if a step delivers a reply to a transaction: the resulting messages wait at the receiver for room.
    fn is_end(&self, state: &NodeState<P>, step: NodeStep) -> bool {
        let NodeStep::Deliver { at, .. } = step else { return false };
        match &state.messages[at as usize] {
            NodeMessage::Between { message, .. } => {
                matches!(P::class(message), MessageClass::Answer | MessageClass::Peer)
            }
            NodeMessage::Request(_) | NodeMessage::Fill { .. } => false,
        }
    }

    /// Installs a line in an L1, through a load.
    pub(super) fn warm_l1(&self, state: &mut NodeState<P>, sm: u8, line: u8) {
        let index = self.scene.l1_index(sm, line);
        state.fronts.l1[index].pending = Some(L1Pending::of(WHOLE_LINE, Scope::Cta));
        let request = Request::Read { mask: WHOLE_LINE, scope: Scope::Cta };
        state.messages.push(NodeMessage::Request(ClientRequest {
            sm: Some(sm),
            line,
            request,
            result: None,
            watched: 0,
        }));
    }

    /// Delivers every in-flight message, in some order.
    pub(super) fn run_down(&self, state: &mut NodeState<P>) {
        while !state.messages.is_empty() {
            state.canonicalise();
            let ready = self.first_messages(state).into_iter().find(|at| {
                let mut steps = Vec::new();
                self.deliveries(state, *at, &mut steps);
                !steps.is_empty()
            });
            let Some(at) = ready else {
                state.break_with(super::super::state::Violation::Deadlock);
                return;
            };
            self.deliver(state, at as usize, DeliveryEviction::Nothing);
        }
    }
}
