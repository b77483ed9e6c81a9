//! Possible next steps.

use super::config::Evictions;
use super::l2::is_awaited;
use super::machine::Machine;
use super::paging::PageStep;
use super::search::World;
use super::sm::SmHost;
use super::state::{Channel, MachineState, MessageBody, PostedRequest, RequestSource, Violation};
use super::sync::PlanHost;
use crate::litmus::FinalState;
use tombolo_protocol::front::Stage;
use tombolo_protocol::{Class, Coherence, Request, host};
use tombolo_types::ModuleId;

/// A step of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// A thread runs the current stage.
    Thread {
        /// The thread.
        thread: u8,
        /// Set if the thread's L1 evicts the line first.
        evict_first: bool,
    },
    /// The first message in a channel arrives.
    Deliver {
        /// The channel.
        channel: Channel,
        /// Set if the destination L2 evicts the line first.
        evict_first: bool,
        /// Set if this L2 replaces the directory entry first.
        replace_first: bool,
    },
    /// The second message in a channel arrives, because the first waits for a credit.
    Overtake {
        /// The channel.
        channel: Channel,
    },
    /// An L2 evicts a line.
    Evict {
        /// The L2.
        module: ModuleId,
        /// The line.
        line: u8,
    },
    /// A step in a page change.
    Page(PageStep),
    /// The sender of a copy reads the line, or the line arrives at the receiver.
    Copy {
        /// Index in the list of copies.
        index: u8,
    },
    /// An L2 replaces a directory entry.
    Replace {
        /// The L2.
        module: ModuleId,
        /// A line in the region.
        line: u8,
    },
}

impl<P: Coherence> World for Machine<'_, P> {
    type State = MachineState;
    type Step = Step;

    fn initial(&self) -> MachineState {
        self.start()
    }

    fn list_steps(&self, state: &MachineState, steps: &mut Vec<Step>) {
        steps.clear();
        if self.config.reductions.eager {
            self.eager_steps(state, steps);
            if !steps.is_empty() {
                return;
            }
        }
        self.thread_steps(state, steps);
        for channel in self.channels(state) {
            self.delivery_steps(state, channel, steps);
            if self.overtakes(state, channel) {
                steps.push(Step::Overtake { channel });
            }
        }
        self.write_backs(state, steps);
        self.page_steps(state, steps);
        steps.extend((0..state.copying.copies.len() as u8).map(|index| Step::Copy { index }));
        if !steps.is_empty() {
            self.spontaneous_steps(state, steps);
        }
        if self.config.reductions.partial_order {
            self.keep_sufficient_steps(state, steps);
        }
    }

    fn take(&self, step: Step, state: &mut MachineState) -> bool {
        if !self.execute_step(step, state) {
            return false;
        }
        let mut steps = Vec::new();
        while let Some(step) = self.forced_step(state, &mut steps) {
            if !self.execute_step(step, state) {
                state.break_with(Violation::Unexpected("a step that cannot wait was refused"));
            }
        }
        state.canonicalise();
        true
    }

    fn violation(&self, state: &MachineState, is_final: bool) -> Option<Violation> {
        self.violation_in(state, is_final)
    }

    fn final_states(&self, state: &MachineState) -> Vec<FinalState> {
        self.observers().into_iter().map(|observer| self.final_state(state, observer)).collect()
    }

    fn max_states(&self) -> usize {
        self.config.max_states
    }

    fn walks(&self) -> usize {
        self.config.walks
    }
}

impl<P: Coherence> Machine<'_, P> {
    pub(super) fn thread_steps(&self, state: &MachineState, steps: &mut Vec<Step>) {
        for thread in 0..state.fronts.threads.len() {
            self.steps_of(state, thread, steps);
        }
    }

    /// Adds the steps of a single thread.
    pub(super) fn steps_of(&self, state: &MachineState, thread: usize, steps: &mut Vec<Step>) {
        let step = |evict_first| Step::Thread { thread: thread as u8, evict_first };
        match self.stage(state, thread) {
            Some(Stage::Issue) if self.may_access(state, thread) => {
                let index = self.instruction(state, thread).and_then(|instruction| instruction.location());
                let Some(location) = index else { return };
                let slot = state.fronts.l1
                    [self.scene.l1_index(self.scene.sm_of[thread], self.scene.layout.cell(location).line)];
                steps.push(step(false));
                let evicts = self.config.evictions != Evictions::Never;
                if evicts && slot.line.is_some() && self.is_load(state, thread) {
                    steps.push(step(true));
                }
            }
            Some(Stage::Acquire(_)) if self.acquire_is_ready(state, thread) => steps.push(step(false)),
            Some(Stage::Issue | Stage::Acquire(_) | Stage::AwaitLoads | Stage::AwaitResult | Stage::Release(_))
            | None => {}
        }
    }

    fn is_load(&self, state: &MachineState, thread: usize) -> bool {
        matches!(self.instruction(state, thread), Some(crate::litmus::Instruction::Load { .. }))
    }

    /// The channels that contain a message, each listed once.
    pub(super) fn channels<'s>(&self, state: &'s MachineState) -> impl Iterator<Item = Channel> + use<'s, P> {
        state.messages.chunk_by(|one, next| one.channel == next.channel).map(|messages| messages[0].channel)
    }

    /// Variants for the delivery of the first message in a channel; none if the message must stay there for the moment.
    pub(super) fn delivery_steps(&self, state: &MachineState, channel: Channel, steps: &mut Vec<Step>) {
        if self.waits_for_publication(state, channel) {
            return;
        }
        let (mut evicts, mut replaces) = (false, false);
        if self.config.evictions != Evictions::Never {
            if let Some((module, line)) = self.visits(state, channel) {
                evicts = self.eviction_matters(state, channel, module, line);
            }
            replaces = self.replaceable(state, channel).is_some();
        }
        let postpones = self.config.reductions.postpone && self.plain_misses;
        for evict_first in [false, true] {
            let is_taken = evict_first <= evicts && (!postpones || self.admits(state, channel, evict_first));
            for replace_first in [false, true] {
                if is_taken && replace_first <= replaces {
                    steps.push(Step::Deliver { channel, evict_first, replace_first });
                }
            }
        }
    }

    /// True if the second request in a channel may arrive before the first, a store that waits for a credit at the
    /// destination. Without any overtaking, a waiting store behaves exactly like a store in flight: this adds no state.
    fn overtakes(&self, state: &MachineState, channel: Channel) -> bool {
        if !host::passes_waiting(&self.protocol, true) {
            return false;
        }
        let mut requests =
            state.messages.iter().filter(|message| message.channel == channel).map(|message| message.body);
        let is_read = |posted: &PostedRequest| matches!(posted.request, Request::Read { .. });
        match (requests.next(), requests.next()) {
            (Some(MessageBody::Request(first)), Some(MessageBody::Request(second))) => {
                is_awaited(&first) && host::passes_waiting(&self.protocol, is_read(&second))
            }
            _ => false,
        }
    }

    /// The directory entry whose replacement is tried before the first message of `channel`. Candidates precede a store
    /// or an atomic, and an invalidation for which a release waits, because the release must then also wait for
    /// messages caused by the replacement. A replacement before a read may equally come later, since invalidated
    /// modules may have evicted their copies. Exceptions: protocols with messages at evictions, or with readers
    /// recorded before their data leaves.
    fn replaceable(&self, state: &MachineState, channel: Channel) -> Option<(ModuleId, u8)> {
        let first = state.messages.iter().find(|message| message.channel == channel)?;
        let (module, matters) = match (channel, &first.body) {
            (Channel::Down { to, .. }, MessageBody::Invalidate { watched }) => (to, *watched != 0),
            (_, MessageBody::Request(posted)) => {
                let silent = !self.config.writes_back() && !self.protocol.downgrades();
                (self.visits(state, channel)?.0, is_awaited(posted) || !silent || !self.plain_misses)
            }
            (_, MessageBody::Downgrade) => (self.visits(state, channel)?.0, true),
            _ => return None,
        };
        (matters && state.entries[self.entry_index(module, first.line)].is_some()).then_some((module, first.line))
    }

    /// The L2 slot that a request in this channel reaches.
    pub(super) fn visits(&self, state: &MachineState, channel: Channel) -> Option<(ModuleId, u8)> {
        let line = state.messages.iter().find(|message| message.channel == channel)?.line;
        match channel {
            Channel::ToL2 { sm, .. } => Some((self.scene.sms[sm as usize].module, line)),
            Channel::Up { to, .. } => Some((to, line)),
            Channel::Down { .. }
            | Channel::ToSm { .. }
            | Channel::Memory { .. }
            | Channel::Result { .. }
            | Channel::Plan { .. } => None,
        }
    }

    /// Adds evictions of dirty bytes below the ordering point: the bytes must reach this point eventually, therefore
    /// these evictions must happen.
    fn write_backs(&self, state: &MachineState, steps: &mut Vec<Step>) {
        for module in self.modules() {
            for line in 0..self.scene.lines as u8 {
                let is_end = self.class(module, line) == Class::Own && !self.protocol.ordering_point().is_memory();
                let present = state.l2[self.l2_index(module, line)].line;
                if !is_end && present.is_some_and(|present| !present.dirty.is_empty()) {
                    steps.push(Step::Evict { module, line });
                }
            }
        }
    }

    /// Adds steps that may happen at any time but need not.
    fn spontaneous_steps(&self, state: &MachineState, steps: &mut Vec<Step>) {
        let all = self.config.evictions == Evictions::Spontaneous;
        let visible = self.config.options.downgrade && self.protocol.has_directory();
        if self.config.evictions == Evictions::Never || !(all || visible) {
            return;
        }
        for module in self.modules() {
            for line in 0..self.scene.lines as u8 {
                let present = state.l2[self.l2_index(module, line)].line;
                let step = Step::Evict { module, line };
                let counts = all || self.is_visited(state, module, line);
                if present.is_some() && counts && !steps.contains(&step) {
                    steps.push(step);
                }
                let first_of_region = self.lines_of_region(line).next() == Some(line);
                if all && first_of_region && state.entries[self.entry_index(module, line)].is_some() {
                    steps.push(Step::Replace { module, line });
                }
            }
        }
    }

    /// The step for lone execution in a single variant, after removal of irrelevant copies. None is taken at rest,
    /// because states at rest are checked for the copies they retain. `steps` is room for work.
    pub(super) fn forced_step(&self, state: &mut MachineState, steps: &mut Vec<Step>) -> Option<Step> {
        self.eager_unless_at_rest(state, steps);
        if steps.len() != 1 && self.config.reductions.forget && self.forget(state) {
            self.eager_unless_at_rest(state, steps);
        }
        if steps.len() == 1 { steps.first().copied() } else { None }
    }

    fn eager_unless_at_rest(&self, state: &MachineState, steps: &mut Vec<Step>) {
        steps.clear();
        let none = !self.config.reductions.eager || state.broken.is_some() || state.messages.is_empty();
        if !none {
            self.eager_steps(state, steps);
        }
    }

    /// Executes a single `step`. Returns false if it must wait: then `state` is unusable.
    pub(super) fn execute_step(&self, step: Step, state: &mut MachineState) -> bool {
        let taken = match step {
            Step::Thread { thread, evict_first } => match self.stage(state, thread as usize) {
                Some(Stage::Acquire(scope)) => {
                    self.finish_acquire(state, thread as usize, scope);
                    true
                }
                _ => self.issue(state, thread as usize, evict_first),
            },
            Step::Deliver { channel, evict_first, replace_first } => {
                if replace_first && let Some((module, line)) = self.replaceable(state, channel) {
                    self.replace_entry(state, module, line);
                }
                let evicted = match self.visits(state, channel) {
                    Some((module, line)) if evict_first => self.evict(state, module, line),
                    _ => true,
                };
                if evicted {
                    self.deliver(state, channel);
                }
                evicted
            }
            Step::Overtake { channel } => {
                self.deliver_at(state, channel, 1);
                true
            }
            Step::Evict { module, line } => self.evict(state, module, line),
            Step::Page(step) => self.take_page_step(state, step),
            Step::Copy { index } => {
                self.take_copy_step(state, index);
                true
            }
            Step::Replace { module, line } => {
                self.replace_entry(state, module, line);
                true
            }
        };
        if taken {
            self.settle(state);
            self.settle_pages(state);
        }
        taken
    }

    /// Delivers the first message in a channel.
    pub(super) fn deliver(&self, state: &mut MachineState, channel: Channel) {
        self.deliver_at(state, channel, 0);
    }

    /// Delivers a message in a channel, selected by its position.
    fn deliver_at(&self, state: &mut MachineState, channel: Channel, place: usize) {
        let mut places = (0..).zip(&state.messages).filter(|(_, message)| message.channel == channel);
        let Some((at, _)) = places.nth(place) else { return };
        let message = state.messages.remove(at);
        let line = message.line;
        match (channel, message.body) {
            (Channel::ToL2 { sm, .. }, MessageBody::Request(posted)) => {
                self.take_posted(state, self.scene.sms[sm as usize].module, line, RequestSource::Sm(sm), posted);
            }
            (Channel::Up { from, to, .. }, MessageBody::Request(posted)) => {
                self.take_posted(state, to, line, posted.passed.unwrap_or(RequestSource::Module(from)), posted);
            }
            (Channel::Up { from, to, .. }, MessageBody::Downgrade) => self.take_downgrade(state, to, line, from),
            (Channel::Down { to, .. }, MessageBody::Fill { mask, data }) => self.take_fill(state, to, line, mask, data),
            (Channel::Down { to, .. }, MessageBody::Invalidate { watched }) => {
                self.take_invalidation(state, to, line, watched);
            }
            (Channel::Memory { module, .. }, MessageBody::Fill { mask, data }) => {
                self.take_fill(state, module, line, mask, data);
            }
            (Channel::ToSm { sm, .. }, MessageBody::Fill { mask, data }) => {
                self.take_l1_fill(state, sm, line, mask, data)
            }
            (Channel::Result { register }, MessageBody::Old(data)) => self.take_result(state, register, data),
            (Channel::Plan { thread, module }, MessageBody::Act(action)) => {
                self.act(state, module, thread as usize, action)
            }
            _ => state.break_with(Violation::Unexpected("a message on a channel of another class")),
        }
    }
}
