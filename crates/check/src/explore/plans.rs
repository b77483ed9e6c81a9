//! `MemorySystem` for the machine with valid/invalid L2s: requests from SMs to L2s, and the L2s' actions in the plans
//! of acquires and releases.

use super::boundaries::BoundarySteps;
use super::machine::Machine;
use super::memory_system::MemorySystem;
use super::scene::Scene;
use super::state::{
    Channel, ChannelMessage, FlatRegister, FrontEnds, MachineState, MessageBody, PostedRequest, RequestSource,
    Violation,
};
use super::values::{Values, WHOLE_LINE};
use crate::litmus::Instruction;
use tombolo_protocol::drain::Wait;
use tombolo_protocol::l1::L1Pending;
use tombolo_protocol::{Action, BrokenRule, Coherence, PhasePlan, Request};
use tombolo_types::{ModuleId, Scope};

impl<P: Coherence> MemorySystem for Machine<'_, P> {
    type Protocol = P;
    type State = MachineState;

    fn protocol(&self) -> &P {
        &self.protocol
    }

    fn scene(&self) -> &Scene<'_> {
        &self.scene
    }

    fn fronts<'s>(&self, state: &'s MachineState) -> &'s FrontEnds {
        &state.fronts
    }

    fn fronts_mut<'s>(&self, state: &'s mut MachineState) -> &'s mut FrontEnds {
        &mut state.fronts
    }

    fn wrong(&self, state: &mut MachineState, violation: Violation) {
        state.break_with(violation);
    }

    fn post(&self, state: &mut MachineState, sm: u8, line: u8, request: Request<Values>, result: Option<FlatRegister>) {
        let module = self.scene.sms[sm as usize].module;
        self.note_issued(state, module, line, &request);
        if let Request::Write { mask, .. } | Request::Atomic { mask, .. } = request {
            self.note_stored(state, module, line, mask);
        }
        let body = MessageBody::Request(PostedRequest { request, result, passed: None, watched: 0, published: false });
        state.messages.push(ChannelMessage { channel: Channel::ToL2 { sm, line }, line, body });
    }

    fn await_posted(&self, state: &mut MachineState, thread: usize, sm: u8) {
        self.wait(state, 1 << thread, Wait::Posted(sm.into()));
    }

    fn awaits_posted(&self, state: &MachineState, thread: usize, sm: u8) -> bool {
        state.watched_from_sm(sm) >> thread & 1 != 0
    }

    fn ask(&self, state: &mut MachineState, thread: usize, member: ModuleId, action: Action) {
        if self.left_out(state, thread, member, action) {
            return;
        }
        if self.acts_at_once(state, member, action) {
            self.act(state, member, thread, action);
        } else {
            let channel = Channel::Plan { thread: thread as u8, module: member };
            state.messages.push(ChannelMessage { channel, line: 0, body: MessageBody::Act(action) });
        }
    }

    /// An awaited message carries a mark with the waiting thread, but without the member. Every member therefore owes
    /// its acknowledgment until the last awaited message has arrived. Marks with members would not end the phase
    /// earlier.
    fn owes(&self, state: &MachineState, thread: usize, module: ModuleId) -> bool {
        let asked = Channel::Plan { thread: thread as u8, module };
        state.watched() >> thread & 1 != 0 || state.messages.iter().any(|message| message.channel == asked)
    }

    fn copies_are_over(&self, state: &mut MachineState, number: usize, index: u8) -> bool {
        index < self.plans_at_end(number) || self.run_copies(state, number)
    }

    /// Plan `index` of a boundary: first the plans at the kernel's end, then the plans before the next launch.
    fn plan_at_boundary(&self, number: usize, index: u8) -> Option<PhasePlan> {
        let BoundarySteps { end, launch } = self.boundaries[number];
        let ended = self.plans_at_end(number);
        if index < ended { end.plan(&self.protocol, index) } else { launch.plan(&self.protocol, index - ended) }
    }
}

impl<P: Coherence> Machine<'_, P> {
    /// Number of plans that end a kernel at a boundary.
    fn plans_at_end(&self, number: usize) -> u8 {
        let plan = |index: &u8| self.boundaries[number].end.plan(&self.protocol, *index);
        (0..).take_while(|index| plan(index).is_some()).count() as u8
    }

    /// True if the action needs no message to the member. Such an action changes no cache, so an immediate execution
    /// only lets the thread continue earlier.
    fn acts_at_once(&self, state: &MachineState, member: ModuleId, action: Action) -> bool {
        match action {
            Action::Invalidate(_) => false,
            Action::DrainInvalidations(_) | Action::AwaitStores | Action::Merge { .. } => true,
            Action::DrainStores(_) | Action::ForwardStores | Action::Flush => {
                (0..self.scene.lines as u8)
                    .all(|line| state.l2[self.l2_index(member, line)].line.is_none_or(|line| line.dirty.is_empty()))
                    && !self.config.writes_back()
            }
        }
    }

    /// True if a broken release skips this member's action. Under [`BrokenRule::ReleaseDrainsOwnHomesOnly`] a release
    /// drains invalidations only at homes of lines that the releasing thread has written. Plans do not know these
    /// lines; the explorer finds them in the program.
    fn left_out(&self, state: &MachineState, thread: usize, member: ModuleId, action: Action) -> bool {
        let drains = matches!(action, Action::DrainInvalidations(_));
        if !drains || !self.protocol.broken(BrokenRule::ReleaseDrainsOwnHomesOnly) {
            return false;
        }
        let issuer = self.scene.sms[self.scene.sm_of[thread] as usize].module;
        let before = &self.scene.program.threads[thread].code[..state.fronts.threads[thread].pc as usize];
        let written = before.iter().filter(|instruction| !matches!(instruction, Instruction::Load { .. }));
        let written = written.filter_map(|instruction| instruction.location());
        let mut lines = written.map(|at| self.scene.layout.cell(at).line);
        !lines.any(|line| {
            let homes = self.homes_of(issuer, line);
            homes.system == member || homes.gpu == member
        })
    }

    /// Warms the L1 of `sm`: a load through the protocol installs the line.
    pub(super) fn prefetch_l1(&self, state: &mut MachineState, sm: u8, line: u8) {
        let mask = WHOLE_LINE;
        let module = self.scene.sms[sm as usize].module;
        let index = self.scene.l1_index(sm, line);
        state.fronts.l1[index].pending = Some(L1Pending::of(mask, Scope::Cta));
        let request = Request::Read { mask, scope: Scope::Cta };
        self.take_posted(
            state,
            module,
            line,
            RequestSource::Sm(sm),
            PostedRequest { request, result: None, passed: None, watched: 0, published: false },
        );
        self.run_down(state);
    }
}
