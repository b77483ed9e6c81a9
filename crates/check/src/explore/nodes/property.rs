//! Invariants for every protocol with clients and homes, checked at every state for clients without a transaction:
//!
//! - A block has at most a single owner, and a client in M or E is its only holder.
//! - An idle home knows each holder and the owner.
//! - Written bytes are held bytes; an L2 has lines only from blocks below it.

use super::super::sm::SmHost;
use super::super::state::Violation;
use super::NodeMachine;
use super::state::{BlockValues, NodeMessage, NodeState};
use crate::litmus::{FinalState, Location, Value};
use tombolo_protocol::Data;
use tombolo_protocol::client_home::{ClientView, Node, Nodes};
use tombolo_types::{Mask, ModuleId};

impl<P: Nodes> NodeMachine<'_, P> {
    pub(super) fn violation_in(&self, state: &NodeState<P>, is_final: bool) -> Option<Violation> {
        let done = (0..state.fronts.threads.len()).all(|thread| self.instruction(state, thread).is_none());
        let rests = state.messages.is_empty()
            && state.merges.is_empty()
            && state.waiting().next().is_none()
            && state.fronts.registers.iter().all(|register| register.awaits.is_none())
            && !state.slots.iter().any(P::is_busy);
        let stuck = is_final && !(done && rests);
        let of_blocks = || (0..self.blocks).find_map(|block| self.block_violation(state, block));
        state.broken.or_else(|| stuck.then_some(Violation::Deadlock)).or_else(of_blocks)
    }

    fn clients(&self) -> impl Iterator<Item = ModuleId> + use<P> {
        (0..self.clients).map(ModuleId)
    }

    fn standing(&self, state: &NodeState<P>, client: ModuleId, block: usize) -> ClientView<Mask> {
        P::client_view(&state.slots[self.client_index(client.0, block)])
    }

    fn above(&self, state: &NodeState<P>, client: ModuleId, block: usize) -> Mask {
        P::above(&state.slots[self.client_index(client.0, block)]).copied().unwrap_or_default()
    }

    fn block_violation(&self, state: &NodeState<P>, block: usize) -> Option<Violation> {
        // A client with a transaction in flight grants no access to the block; the home may already know about its end.
        let at_rest = |client: ModuleId| !P::is_busy(&state.slots[self.client_index(client.0, block)]);
        let all = || self.clients().map(|client| (client, self.standing(state, client, block)));
        let standings = || all().filter(|(client, _)| at_rest(*client));
        let wrong = |what| Some(Violation::Unexpected(what));
        if standings().filter(|(_, at)| at.owns).count() > 1 {
            return wrong("two clients answer for one block");
        }
        if standings().any(|(_, at)| at.excludes) && standings().filter(|(_, at)| at.holds).count() > 1 {
            return wrong("a client holds a block that another holds alone");
        }
        if all().any(|(_, at)| !at.holds && !at.dirty.is_empty()) {
            return wrong("a client has written bytes that it does not hold");
        }
        let has_above = |client| !self.above(state, client, block).is_empty();
        if all().any(|(client, at)| !at.holds && has_above(client)) {
            return wrong("an L2 holds lines of a block that is not below it");
        }
        let home = &state.slots[self.home_index(block)];
        if P::is_busy(home) {
            return None;
        }
        let known = P::known(home);
        for (client, at) in standings() {
            if at.holds && !known.holders.contains(client) {
                return wrong("a client holds a block unknown to its home");
            }
            if at.owns && known.owner != Some(client) {
                return wrong("a home takes another for the owner of a block");
            }
        }
        let of_block = |message: &NodeMessage<P::Message<BlockValues>>| match message {
            NodeMessage::Between { block: of, .. } => *of as usize == block,
            NodeMessage::Request(_) | NodeMessage::Fill { .. } => false,
        };
        // A client that left silently is still recorded as owner, and asks again like a client without data.
        let shares = |owner: ModuleId| {
            let at = self.standing(state, owner, block);
            at.holds && !at.owns && at_rest(owner)
        };
        if !state.messages.iter().any(of_block) && known.owner.is_some_and(shares) {
            return wrong("a home takes a client for the owner that only shares the block");
        }
        None
    }

    /// Possible final memory contents if every client wrote back at run end: the owner's bytes, followed by the bytes
    /// of all further clients in any order.
    pub(super) fn endings(&self, state: &NodeState<P>) -> Vec<FinalState> {
        let mut memories = vec![state.memory.clone()];
        for block in 0..self.blocks {
            let of = |owns: bool| {
                let all = self.clients().map(|client| (client, self.standing(state, client, block)));
                let chosen = all.filter(move |(_, at)| at.owns == owns && !at.dirty.is_empty());
                chosen.map(|(client, at)| (at.dirty, self.contents(state, client, block))).collect::<Vec<_>>()
            };
            let orders = orders(of(false));
            let mut next = Vec::new();
            for memory in &memories {
                for order in &orders {
                    let mut memory = memory.clone();
                    for (mask, data) in of(true).iter().chain(order) {
                        memory[block].merge(*data, *mask);
                    }
                    next.push(memory);
                }
            }
            next.dedup();
            memories = next;
        }
        memories.iter().map(|memory| self.ending(state, memory)).collect()
    }

    /// A client's block contents, in the form sent by a flush.
    fn contents(&self, state: &NodeState<P>, client: ModuleId, block: usize) -> BlockValues {
        P::contents(&state.slots[self.index(Node::Client(client), block)])
    }

    fn ending(&self, state: &NodeState<P>, memory: &[BlockValues]) -> FinalState {
        let values: Vec<Value> = (0..self.scene.program.locations.len())
            .map(|location| {
                let at = self.scene.layout.cell(Location(location as u16));
                memory[self.block(at.line)].0[self.first_cell(at.line) + at.cell as usize]
            })
            .collect();
        self.scene.final_state(&state.fronts, &values)
    }
}

/// Every merge order for the given byte sets; a single order if no two sets overlap.
fn orders(parts: Vec<(Mask, BlockValues)>) -> Vec<Vec<(Mask, BlockValues)>> {
    let meet = parts.iter().enumerate().any(|(at, one)| parts[..at].iter().any(|other| one.0.overlaps(other.0)));
    if !meet {
        return vec![parts];
    }
    let mut all = vec![Vec::new()];
    for part in parts {
        let longer = all.iter().flat_map(|order: &Vec<(Mask, BlockValues)>| {
            (0..=order.len()).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, part);
                longer
            })
        });
        all = longer.collect();
    }
    all
}
