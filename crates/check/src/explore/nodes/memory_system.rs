//! Interface between clients and the threads above them.

use super::super::memory_system::MemorySystem;
use super::super::scene::Scene;
use super::super::state::{FlatRegister, FrontEnds, Violation};
use super::super::values::Values;
use super::NodeMachine;
use super::state::{ClientRequest, Merge, NodeMessage, NodeState};
use tombolo_protocol::client_home::Nodes;
use tombolo_protocol::{Action, PhasePlan, Request};
use tombolo_types::ModuleId;

impl<P: Nodes> MemorySystem for NodeMachine<'_, P> {
    type Protocol = P;
    type State = NodeState<P>;

    fn protocol(&self) -> &P {
        &self.protocol
    }

    fn scene(&self) -> &Scene<'_> {
        &self.scene
    }

    fn fronts<'s>(&self, state: &'s NodeState<P>) -> &'s FrontEnds {
        &state.fronts
    }

    fn fronts_mut<'s>(&self, state: &'s mut NodeState<P>) -> &'s mut FrontEnds {
        &mut state.fronts
    }

    fn wrong(&self, state: &mut NodeState<P>, violation: Violation) {
        state.break_with(violation);
    }

    fn post(&self, state: &mut NodeState<P>, sm: u8, line: u8, request: Request<Values>, result: Option<FlatRegister>) {
        state.messages.push(NodeMessage::Request(ClientRequest { sm: Some(sm), line, request, result, watched: 0 }));
    }

    fn await_posted(&self, state: &mut NodeState<P>, thread: usize, sm: u8) {
        let (waiting, messages) = state.waiting_mut();
        let under_way = messages.iter_mut().filter_map(|message| match message {
            NodeMessage::Request(asked) => Some(asked),
            NodeMessage::Between { .. } | NodeMessage::Fill { .. } => None,
        });
        for asked in under_way.chain(waiting).filter(|asked| asked.sm == Some(sm)) {
            if is_store(asked) {
                asked.watched |= 1 << thread;
            }
        }
    }

    fn awaits_posted(&self, state: &NodeState<P>, thread: usize, sm: u8) -> bool {
        let waits = |asked: &ClientRequest| asked.sm == Some(sm) && asked.watched >> thread & 1 != 0;
        state.waiting().any(waits)
            || state.messages.iter().any(|message| matches!(message, NodeMessage::Request(asked) if waits(asked)))
    }

    fn ask(&self, state: &mut NodeState<P>, thread: usize, member: ModuleId, action: Action) {
        let Action::Merge { all } = action else {
            state.break_with(Violation::Unexpected("a client was asked for what L2s of lines do"));
            return;
        };
        for block in 0..self.blocks as u8 {
            state.merges.push(Merge { thread: thread as u8, client: member.0, block, all });
        }
    }

    fn owes(&self, state: &NodeState<P>, thread: usize, member: ModuleId) -> bool {
        self.protocol.awaits_merges()
            && state.merges.iter().any(|merge| merge.thread as usize == thread && merge.client == member.0)
    }

    fn copies_are_over(&self, _: &mut NodeState<P>, _: usize, _: u8) -> bool {
        true
    }

    fn plan_at_boundary(&self, number: usize, index: u8) -> Option<PhasePlan> {
        self.boundaries[number].get(index as usize).copied()
    }
}

/// True if a release waits for the request.
fn is_store(asked: &ClientRequest) -> bool {
    match asked.request {
        Request::Write { .. } | Request::Atomic { .. } => true,
        Request::Read { .. } => false,
    }
}
