//! A protocol step at a node, and its effects.

use super::super::sm::SmHost;
use super::super::state::Violation;
use super::super::values::{CELLS, Cells, Values, WHOLE_LINE};
use super::NodeMachine;
use super::state::{BlockValues, CELLS_OF_BLOCK, ClientRequest, NodeMessage, NodeState, block_with, line_of};
use crate::litmus::Value;
use tombolo_protocol::client_home::{
    self, Answer, BlockEvent, ClientHomeTypes, Hold, HomeMemoryAccess, MessageClass, Node, Nodes,
};
use tombolo_protocol::effects::Effects;
use tombolo_protocol::{Data, Refusal, Request};
use tombolo_types::{Mask, ModuleId, Scope};

/// Carries out the effects of a protocol step.
struct NodeEffects<'a, P: Nodes> {
    state: &'a mut NodeState<P>,
    at: Node,
    block: usize,
    /// Set if the step read the node's memory.
    reads: bool,
    held: bool,
    reply: Option<Answer<BlockValues>>,
    effects: u32,
}

impl<P: Nodes> Effects<ClientHomeTypes<P>, BlockValues> for NodeEffects<'_, P> {
    fn send(&mut self, to: Node, message: P::Message<BlockValues>) {
        self.effects += 1;
        if to == self.at {
            self.state.break_with(Violation::Unexpected("a node sends to itself"));
        }
        let block = self.block as u8;
        self.state.messages.push(NodeMessage::Between { from: self.at, to, block, message });
    }

    fn answer(&mut self, answer: Answer<BlockValues>) {
        self.effects += 1;
        self.reply = Some(answer);
    }

    fn memory(&mut self, access: HomeMemoryAccess<BlockValues>) {
        self.effects += 1;
        match access {
            HomeMemoryAccess::Read => self.reads = true,
            HomeMemoryAccess::Write { set, data } => self.state.memory[self.block].merge(data, set),
            HomeMemoryAccess::WriteAll { data } => self.state.memory[self.block] = data,
        }
    }

    fn hold(&mut self, how: Hold) {
        self.effects += 1;
        match how {
            Hold::Park => self.held = true,
        }
    }
}

/// Predicts a step's result without executing the step.
struct StepPrediction {
    /// Set if the request starts a transaction and waits for it.
    parks: bool,
}

impl<P: Nodes> Effects<ClientHomeTypes<P>, BlockValues> for StepPrediction {
    fn send(&mut self, _: Node, _: P::Message<BlockValues>) {}

    fn answer(&mut self, _: Answer<BlockValues>) {}

    fn memory(&mut self, _: HomeMemoryAccess<BlockValues>) {}

    fn hold(&mut self, how: Hold) {
        match how {
            Hold::Park => self.parks = true,
        }
    }
}

/// Result of a step.
pub(super) struct StepResult {
    pub(super) held: bool,
    pub(super) reply: Option<Answer<BlockValues>>,
}

impl<P: Nodes> NodeMachine<'_, P> {
    /// Performs a protocol step. Returns `None`, with no change, if the step must wait.
    pub(super) fn step_at(
        &self,
        state: &mut NodeState<P>,
        at: Node,
        block: usize,
        event: BlockEvent<P::Message<BlockValues>, BlockValues>,
    ) -> Option<StepResult> {
        let index = self.index(at, block);
        let mut slot = state.slots[index].clone();
        let mut sink = NodeEffects { state, at, block, reads: false, held: false, reply: None, effects: 0 };
        let result = self.protocol.step(at, &mut slot, event, &mut sink);
        let NodeEffects { reads, held, reply, effects, .. } = sink;
        match result {
            Ok(()) => {}
            Err(Refusal::Unexpected(what)) => state.break_with(Violation::Unexpected(what)),
            Err(Refusal::Stall) if !P::is_busy(&state.slots[index]) => {
                state.break_with(Violation::Unexpected("a refusal where no transaction is under way"));
            }
            Err(Refusal::Stall) if slot != state.slots[index] || effects > 0 => {
                state.break_with(Violation::Unexpected("a refusal that changed something"));
            }
            Err(Refusal::Stall) => return None,
        }
        state.slots[index] = slot;
        if reads {
            let data = state.memory[block];
            self.step_at(state, at, block, BlockEvent::Read(data));
        }
        Some(StepResult { held, reply })
    }

    /// A client executes a request from a local SM, and may start a transaction and wait for the end. Returns false,
    /// with no change, if a transaction is already in flight.
    pub(super) fn run_request(&self, state: &mut NodeState<P>, client: u8, asked: ClientRequest) -> bool {
        let block = self.block(asked.line);
        let first = self.first_cell(asked.line);
        let event = BlockEvent::Request(of_block(asked.request, first));
        let Some(StepResult { held, reply }) = self.step_at(state, Node::Client(ModuleId(client)), block, event) else {
            return false;
        };
        if held {
            let index = self.client_index(client, block);
            state.held[index].push_front(asked);
            state.outstanding |= 1 << index;
        }
        match (reply, asked.sm) {
            (Some(Answer::Fill { set, data }), Some(sm)) => {
                let mask = Mask(set.0 >> first);
                state.messages.push(NodeMessage::Fill { sm, line: asked.line, mask, data: line_of(&data, first) });
            }
            (Some(Answer::Old { data }), Some(_)) => match asked.result {
                // No other event can affect the register.
                Some(register) => self.take_result(state, register, line_of(&data, first)),
                None => state.break_with(Violation::Unexpected("a result that nobody wants")),
            },
            (Some(_), None) | (None, _) => {}
        }
        true
    }

    /// True if a request would start a transaction.
    pub(super) fn starts_transaction(&self, state: &NodeState<P>, client: u8, asked: &ClientRequest) -> bool {
        let at = Node::Client(ModuleId(client));
        let block = self.block(asked.line);
        let mut slot = state.slots[self.index(at, block)].clone();
        let event = BlockEvent::Request(of_block(asked.request, self.first_cell(asked.line)));
        let mut trial = StepPrediction { parks: false };
        self.protocol.step(at, &mut slot, event, &mut trial).is_ok() && trial.parks
    }

    /// A node handles a message from another node. Returns false, with no change, if the message must wait.
    pub(super) fn deliver_between(
        &self,
        state: &mut NodeState<P>,
        (from, to, block): (Node, Node, u8),
        message: P::Message<BlockValues>,
    ) -> bool {
        let block = block as usize;
        let class = P::class(&message);
        let taken = self.step_at(state, to, block, BlockEvent::Message { from, message }).is_some();
        if !taken && class != MessageClass::Request {
            state.break_with(Violation::Unexpected("a node refuses what waits for nothing"));
        }
        if let (true, Node::Client(client)) = (taken, to) {
            self.settle_block(state, client.0, block);
        }
        taken
    }

    /// Evicts the block at a client.
    pub(super) fn evict(&self, state: &mut NodeState<P>, client: u8, block: usize) -> bool {
        let taken = self.step_at(state, Node::Client(ModuleId(client)), block, BlockEvent::Evict).is_some();
        if taken {
            state.occupied_ways &= !(1 << self.client_index(client, block));
            self.leave_if_gone(state, client, block);
        }
        taken
    }

    /// The L2 above a client evicts the lines of a block.
    pub(super) fn evict_above(&self, state: &mut NodeState<P>, client: u8, block: usize) {
        let node = Node::Client(ModuleId(client));
        let above = P::above(&state.slots[self.index(node, block)]).copied().unwrap_or_default();
        self.step_at(state, node, block, BlockEvent::EvictAbove(above));
    }

    /// Begins pending merges, and removes completed merges.
    pub(super) fn run_merges(&self, state: &mut NodeState<P>) {
        for merge in std::mem::take(&mut state.merges) {
            let (node, block) = (Node::Client(ModuleId(merge.client)), merge.block as usize);
            let index = self.index(node, block);
            if !P::is_busy(&state.slots[index]) {
                if !self.has_room(state, node) {
                    state.merges.push(merge);
                    continue;
                }
                self.step_at(state, node, block, BlockEvent::Merge { all: merge.all });
            }
            let busy = P::is_busy(&state.slots[index]);
            if self.protocol.owes(&state.slots[index]) || merge.all && busy {
                state.merges.push(merge);
            }
        }
    }

    /// Makes the host write every block, then loads each block into every GPU and every line into every L1, through the
    /// protocol itself. Memory then holds no data that any thread may read.
    pub(super) fn warm(&self, state: &mut NodeState<P>) {
        let written = std::mem::replace(&mut state.memory, vec![Cells([NOBODYS; CELLS_OF_BLOCK]); self.blocks]);
        let ask = |state: &mut NodeState<P>, client: u8, line: u8, request: Request<Values>| {
            self.offer(state, client, ClientRequest { sm: None, line, request, result: None, watched: 0 });
            self.run_down(state);
        };
        let mask = WHOLE_LINE;
        for line in 0..self.scene.lines as u8 {
            let data = line_of(&written[self.block(line)], self.first_cell(line));
            let host = self.scene.layout.gpus;
            ask(state, host, line, Request::Write { mask, scope: Scope::Sys, data, tracked: true });
        }
        for line in 0..self.scene.lines as u8 {
            for client in 0..self.scene.layout.gpus {
                ask(state, client, line, Request::Read { mask, scope: Scope::Cta });
            }
            for sm in (0..self.scene.sms.len() as u8).filter(|sm| !self.is_host(*sm)) {
                self.warm_l1(state, sm, line);
                self.run_down(state);
            }
        }
    }
}

/// A value that no test stores.
const NOBODYS: Value = Value::MIN;

/// Converts a request for a line with first cell `first` into a request for the block.
fn of_block(request: Request<Values>, first: usize) -> client_home::BlockRequest<BlockValues> {
    let shifted = |mask: Mask| Mask((mask.0 & ((1 << CELLS) - 1)) << first);
    match request {
        Request::Read { mask, scope } => client_home::BlockRequest::Read { set: shifted(mask), scope },
        Request::Write { mask, scope, data, tracked: _ } => {
            client_home::BlockRequest::Write { set: shifted(mask), scope, data: block_with(data, first) }
        }
        Request::Atomic { mask, scope, update, returns } => {
            client_home::BlockRequest::Atomic { set: shifted(mask), scope, update, returns }
        }
    }
}
