//! Partial-order reduction: selects a sufficient subset from the steps enabled in a state.
//!
//! Steps interact in *slots*, each for an L2 and a region, and in SMs. Delivering a message changes only its
//! destination and appends to channels; an appended message behind an earlier message can be delivered only afterwards.
//! Thus the steps of some slots and SMs may come before all others, if no step outside can give them a further message
//! to deliver, or mark their messages for its release, without first waiting for a step inside. Parts with this
//! property are closed (persistent sets; Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems",
//! 1996):
//!
//! - with a slot, every thread that may still send an access through it, mark messages from its steps, or invalidate
//!   the L2. Also the slots with a request to forward to it, and the home above while it may send a message down ahead
//!   of the channel's contents;
//! - with an SM, its threads; the slot that may fill a miss met in the L1 by a thread's next access; the L2 on which a
//!   plan from a thread in the SM is about to act;
//! - with a waiting thread, slots through which the awaited message must come.
//!
//! A read with immediate forwarding on a miss takes place at all slots on the path together: they form a single unit.
//!
//! A step that lets a release begin may come early without commuting with sends by other steps: the release does not
//! wait for messages sent later, and a thread may always wait longer than it must. A mark passed on to a step's
//! messages, or to earlier messages about its region, adds nothing: the wait ends with the last marked message, in any
//! order. L2s that send unsolicited messages (write-backs, downgrades, evictions at any time) are not distinguished: a
//! slot comes with all slots in the region.

use super::MAX_THREADS;
use super::config::Evictions;
use super::machine::Machine;
use super::sm::SmHost;
use super::state::{
    AwaitedResult, Channel, HoldReason, MachineState, MessageBody, PostedRequest, RequestSource, SlotSet,
};
use super::step::Step;
use super::sync::PlanHost;
use super::values::mask_of;
use crate::litmus::{Instruction, Register};
use tombolo_protocol::front::Stage;
use tombolo_protocol::l1::{self, Load};
use tombolo_protocol::{Coherence, Request};
use tombolo_types::ModuleId;

/// A set of slots and SMs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SlotSmSet {
    /// Bit `module × regions + region`.
    slots: SlotSet,
    /// Bit `i` is the explorer's SM `i`.
    sms: u8,
}

/// Progress status of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadProgress {
    /// The thread is done.
    Done,
    /// The thread can execute a step, or a request from its own plan is in flight.
    Ready,
    /// The thread waits for steps in this part, and possibly for further steps.
    Waits(SlotSmSet),
    /// The thread waits for the remaining threads in the CTA, which share the SM.
    Barrier,
}

/// Facts computed once per state.
struct StateFacts<'a> {
    state: &'a MachineState,
    standings: [ThreadProgress; MAX_THREADS],
    /// Per thread: slots on the paths for all possible future accesses by the thread.
    passed: [SlotSet; MAX_THREADS],
    /// Slots with steps that may send a message awaited by a release.
    sending: SlotSet,
    /// Slots with an arriving or held request for possible forwarding.
    passing: SlotSet,
    /// For each read that is forwarded immediately on a miss: the slot at the next hop, and all slots on the remaining
    /// path.
    running: Vec<(SlotSet, SlotSet)>,
}

impl<P: Coherence> Machine<'_, P> {
    /// Reduces `steps` to the smallest sufficient part; keeps all steps if no smaller part is found.
    pub(super) fn keep_sufficient_steps(&self, state: &MachineState, steps: &mut Vec<Step>) {
        if self.loops || steps.len() < 2 {
            return;
        }
        let scene = self.scene(state);
        // A waiting thread has no step; a part with only waiting threads would appear as a final state.
        let waits = |step: &Step| match *step {
            Step::Thread { thread, .. } => scene.standings[thread as usize] != ThreadProgress::Ready,
            Step::Deliver { .. }
            | Step::Overtake { .. }
            | Step::Evict { .. }
            | Step::Replace { .. }
            | Step::Copy { .. }
            | Step::Page(_) => false,
        };
        steps.retain(|step| !waits(step));
        let nodes: Vec<SlotSmSet> = steps.iter().map(|step| self.node(state, *step)).collect();
        let mut best: Option<(usize, SlotSmSet)> = None;
        for (index, (step, seed)) in steps.iter().zip(&nodes).enumerate() {
            let must_happen = matches!(step, Step::Thread { .. } | Step::Deliver { .. });
            if !must_happen || nodes[..index].contains(seed) {
                continue;
            }
            let Some(part) = self.closed(&scene, *seed, &nodes) else { continue };
            let size = nodes.iter().filter(|node| part.holds(**node)).count();
            if best.is_none_or(|(least, _)| size < least) {
                best = Some((size, part));
            }
            if size == 1 {
                break;
            }
        }
        if let Some((size, part)) = best
            && size < steps.len()
        {
            let mut node = nodes.iter();
            steps.retain(|_| node.next().is_some_and(|node| part.holds(*node)));
        }
    }

    fn scene<'a>(&self, state: &'a MachineState) -> StateFacts<'a> {
        let (mut standings, mut passed) = ([ThreadProgress::Done; MAX_THREADS], [0; MAX_THREADS]);
        for thread in 0..state.fronts.threads.len() {
            standings[thread] = self.standing(state, thread);
            let accesses = self.accesses_left(state, thread);
            let lines = (0..self.scene.lines as u8).filter(|line| accesses >> line & 1 != 0);
            let module = self.scene.sms[self.scene.sm_of[thread] as usize].module;
            passed[thread] = lines.fold(0, |slots, line| slots | self.region_path_of(module, line));
        }
        let mut scene = StateFacts { state, standings, passed, sending: 0, passing: 0, running: Vec::new() };
        for (index, entry) in state.entries.iter().enumerate() {
            // A replaced entry without sharers only causes messages that L2s send unsolicited.
            scene.sending |= SlotSet::from(entry.is_some_and(|sharers| !sharers.is_empty())) << index;
        }
        let posts = |request: &Request<_>| !matches!(request, Request::Read { .. });
        for message in &state.messages {
            let to = match message.channel {
                Channel::ToL2 { sm, .. } => self.scene.sms[sm as usize].module,
                Channel::Up { to, .. } => to,
                _ => continue,
            };
            let slot = self.slot(to, message.line);
            scene.passing |= slot;
            let MessageBody::Request(posted) = &message.body else { continue };
            if posts(&posted.request) {
                scene.sending |= slot;
            }
            if self.may_run_through(posted) {
                scene.running.push((slot, self.region_path_of(to, message.line)));
            }
        }
        for held in &state.held {
            let slot = self.slot(held.module, held.line);
            if let HoldReason::Park(posted) = &held.how {
                scene.passing |= slot;
                scene.sending |= if posts(&posted.request) { slot } else { 0 };
            }
        }
        if self.sends_unasked() {
            scene.sending = SlotSet::MAX;
        }
        scene
    }

    /// True if L2s may send messages spontaneously, without an incoming message.
    fn sends_unasked(&self) -> bool {
        let spontaneous = self.config.evictions == Evictions::Spontaneous;
        spontaneous || self.config.writes_back() || self.protocol.downgrades()
    }

    fn slot(&self, module: ModuleId, line: u8) -> SlotSet {
        1 << self.entry_index(module, line)
    }

    /// All slots for a line's region.
    fn region_slots(&self, line: u8) -> SlotSet {
        self.region_entries[usize::from(self.region(line))]
    }

    /// All slots at an L2.
    fn slots_of(&self, module: ModuleId) -> SlotSet {
        let first = module.0 as usize * self.regions;
        (first..first + self.regions).fold(0, |slots, index| slots | 1 << index)
    }

    /// The slots and SMs to which a step belongs.
    fn node(&self, state: &MachineState, step: Step) -> SlotSmSet {
        let at = |module, line| SlotSmSet { slots: self.slot(module, line), sms: 0 };
        match step {
            Step::Thread { thread, .. } => self.sm_part(thread as usize),
            Step::Deliver { channel, .. } | Step::Overtake { channel } => {
                let message = state.messages.iter().find(|message| message.channel == channel);
                let line = message.map_or(0, |message| message.line);
                let runs = message.is_some_and(|message| match &message.body {
                    MessageBody::Request(posted) => self.may_run_through(posted),
                    _ => false,
                });
                let taken = |module| {
                    if runs { SlotSmSet { slots: self.region_path_of(module, line), sms: 0 } } else { at(module, line) }
                };
                match channel {
                    Channel::ToL2 { sm, .. } => taken(self.scene.sms[sm as usize].module),
                    Channel::Up { to, .. } => taken(to),
                    Channel::Down { to, .. } => at(to, line),
                    Channel::Memory { module, .. } => at(module, line),
                    Channel::ToSm { sm, .. } => SlotSmSet { slots: 0, sms: 1 << sm },
                    Channel::Result { register } => self.sm_part(self.thread_of(register)),
                    Channel::Plan { thread, module } => {
                        SlotSmSet { slots: self.slots_of(module), ..self.sm_part(thread as usize) }
                    }
                }
            }
            Step::Evict { module, line } | Step::Replace { module, line } => at(module, line),
            Step::Page(_) | Step::Copy { .. } => SlotSmSet::ALL,
        }
    }

    /// True if a request may start a read that is forwarded immediately.
    fn may_run_through(&self, posted: &PostedRequest) -> bool {
        self.runs_through() && !matches!(posted.request, Request::Write { .. })
    }

    fn sm_part(&self, thread: usize) -> SlotSmSet {
        SlotSmSet { slots: 0, sms: 1 << self.scene.sm_of[thread] }
    }

    fn thread_of(&self, register: u16) -> usize {
        self.scene.register_base.partition_point(|&base| base <= register) - 1
    }

    /// The least closed part that contains `part`; `None` if the part includes every node in `nodes`.
    fn closed(&self, scene: &StateFacts<'_>, mut part: SlotSmSet, nodes: &[SlotSmSet]) -> Option<SlotSmSet> {
        loop {
            if nodes.iter().all(|node| part.holds(*node)) {
                return None;
            }
            let before = part;
            if self.sends_unasked() {
                for line in 0..self.scene.lines as u8 {
                    let region = self.region_slots(line);
                    part.slots |= if part.slots & region != 0 { region } else { 0 };
                }
            }
            for thread in 0..scene.state.fronts.threads.len() {
                self.close_thread(scene, thread, &mut part);
            }
            for module in self.modules() {
                for line in 0..self.scene.lines as u8 {
                    if part.slots & self.slot(module, line) != 0 {
                        part.slots |= self.sources(scene, module, line);
                    }
                }
            }
            for (reached, passed) in &scene.running {
                part.slots |= if part.slots & reached != 0 { *passed } else { 0 };
            }
            if part == before {
                return Some(part);
            }
        }
    }

    /// Adds a thread that interacts with the part, together with the thread's own interactions.
    fn close_thread(&self, scene: &StateFacts<'_>, thread: usize, part: &mut SlotSmSet) {
        let standing = scene.standings[thread];
        if standing == ThreadProgress::Done {
            return;
        }
        let asked = self.requested_slots(scene.state, thread);
        let syncs = self.syncs_left(scene.state, thread);
        let sm = self.sm_part(thread);
        let meets = part.sms & sm.sms != 0
            || part.slots & (scene.passed[thread] | asked) != 0
            || (syncs.releases && part.slots & scene.sending != 0)
            || (syncs.invalidates && part.slots != 0);
        if !meets {
            return;
        }
        match standing {
            ThreadProgress::Waits(on) if on == SlotSmSet::default() => *part = SlotSmSet::ALL,
            ThreadProgress::Waits(on) => part.add(on),
            ThreadProgress::Done | ThreadProgress::Ready | ThreadProgress::Barrier => part.add(sm),
        }
        if part.sms & sm.sms != 0 {
            part.slots |= asked | self.fill_slot(scene.state, thread);
        }
    }

    /// Slots that may send an immediately deliverable message to this line's slot.
    fn sources(&self, scene: &StateFacts<'_>, module: ModuleId, line: u8) -> SlotSet {
        let mut slots = 0;
        if scene.passing & self.region_slots(line) != 0 {
            for below in self.modules().filter(|&below| below != module) {
                let slot = self.slot(below, line) & scene.passing;
                slots |= if slot != 0 && self.passes(below, module, line) { slot } else { 0 };
            }
        }
        let homes = self.homes_of(module, line);
        for from in self.modules().filter(|&from| from != module) {
            // The modules above are all homes.
            let is_home = from == homes.gpu || from == homes.system;
            let may_send = is_home || self.named(scene.state, from, line).contains(module);
            if may_send && self.may_send_down(scene.state, from, module, line) {
                slots |= self.slot(from, line);
            }
        }
        slots
    }

    /// True if the L2 in `from` may send a fill or an invalidation to the L2 in `module` before a new message arrives
    /// from there, while the channel contains no earlier message.
    fn may_send_down(&self, state: &MachineState, from: ModuleId, module: ModuleId, line: u8) -> bool {
        let region = self.region(line);
        let is_one_channel = self.protocol.channels().fills_stay_ahead;
        let mut asks = false;
        for message in &state.messages {
            match message.channel {
                Channel::Down { from: sender, to, region: of }
                    if is_one_channel && (sender, to, of) == (from, module, region) =>
                {
                    return false;
                }
                Channel::Up { from: sender, to, .. } if (sender, to) == (module, from) => {
                    asks |= self.region(message.line) == region;
                }
                _ => {}
            }
        }
        asks || self.named(state, from, line).contains(module)
            || (self.lines_of_region(line)).any(|line| state.l2[self.l2_index(module, line)].pending.is_some())
            || state.held.iter().any(|held| {
                held.module == from && held.source == RequestSource::Module(module) && self.region(held.line) == region
            })
    }

    /// The slot that may fill the pending miss met in the L1 by a thread's next access.
    fn fill_slot(&self, state: &MachineState, thread: usize) -> SlotSet {
        if self.stage(state, thread) != Some(Stage::Issue) {
            return 0;
        }
        let Some(location) = self.instruction(state, thread).and_then(Instruction::location) else { return 0 };
        let (sm, line) = (self.scene.sm_of[thread], self.scene.layout.cell(location).line);
        let is_met = state.fronts.l1[self.scene.l1_index(sm, line)].pending.is_some();
        if is_met { self.slot(self.answering_module(state, self.scene.sms[sm as usize].module, line), line) } else { 0 }
    }

    fn standing(&self, state: &MachineState, thread: usize) -> ThreadProgress {
        let Some(instruction) = self.instruction(state, thread) else { return ThreadProgress::Done };
        let all = || self.awaited(state, thread, self.scene.registers_of(thread));
        let own = || {
            let registers = mentioned(instruction).map(|one| self.scene.flat(thread, one) as usize);
            ThreadProgress::Waits(self.awaited(state, thread, registers).unwrap_or_default())
        };
        match self.stage(state, thread) {
            None if self.is_at_boundary(state, thread) => self.standing_at_boundary(state, thread),
            None | Some(Stage::AwaitResult) => own(),
            Some(Stage::AwaitLoads) => ThreadProgress::Waits(all().unwrap_or_default()),
            Some(Stage::Issue) if matches!(instruction, Instruction::Barrier { .. }) => ThreadProgress::Barrier,
            Some(Stage::Issue) if !self.can_issue(state, thread) => own(),
            Some(Stage::Issue) => match self.stalled_on(state, thread, instruction) {
                None => ThreadProgress::Ready,
                Some(line) => ThreadProgress::Waits(self.next_fill_part(state, thread, line)),
            },
            Some(Stage::Acquire(_) | Stage::Release(_)) => self.standing_in_plan(state, thread),
        }
    }

    fn standing_in_plan(&self, state: &MachineState, thread: usize) -> ThreadProgress {
        match self.watched(state, thread) {
            Some(part) if self.requested_slots(state, thread) == 0 => ThreadProgress::Waits(part),
            Some(_) | None => ThreadProgress::Ready,
        }
    }

    /// At a kernel boundary a thread waits first for threads that have not arrived, then for results awaited by arrived
    /// threads, then for the first thread, which runs the plans.
    fn standing_at_boundary(&self, state: &MachineState, thread: usize) -> ThreadProgress {
        for other in 0..state.fronts.threads.len() {
            let is_done = self.instruction(state, other).is_none();
            if !is_done && !self.is_at_boundary(state, other) {
                return ThreadProgress::Waits(self.sm_part(other));
            }
            if let Some(part) = self.awaited(state, other, self.scene.registers_of(other)) {
                return ThreadProgress::Waits(part);
            }
        }
        let first = (0..state.fronts.threads.len()).find(|&thread| self.is_at_boundary(state, thread));
        match first {
            Some(first) if first != thread => ThreadProgress::Waits(self.sm_part(first)),
            _ => self.standing_in_plan(state, thread),
        }
    }

    /// The line with a pending miss for which a load must wait. No other instruction with complete operands waits.
    fn stalled_on(&self, state: &MachineState, thread: usize, instruction: &Instruction) -> Option<u8> {
        let Instruction::Load { order, location, .. } = *instruction else { return None };
        let at = self.scene.layout.cell(location);
        let mut slot = state.fronts.l1[self.scene.l1_index(self.scene.sm_of[thread], at.line)];
        let mask = self.protocol.options().sectors.widen(mask_of(at.cell));
        let load = l1::load(&self.protocol, &mut slot.line, || slot.pending, mask, order.scope);
        (load == Load::Stall).then_some(at.line)
    }

    /// The slots that the requests from the thread's plan are about to reach.
    fn requested_slots(&self, state: &MachineState, thread: usize) -> SlotSet {
        let slots = state.messages.iter().map(|message| match message.channel {
            Channel::Plan { thread: of, module } if of as usize == thread => self.slots_of(module),
            _ => 0,
        });
        slots.fold(0, |all, slots| all | slots)
    }

    /// Part that delivers the result for the first waiting register in `registers`.
    fn awaited(
        &self,
        state: &MachineState,
        thread: usize,
        mut registers: impl Iterator<Item = usize>,
    ) -> Option<SlotSmSet> {
        registers.find_map(|register| match state.fronts.registers[register].awaits? {
            AwaitedResult::Load { line, .. } => Some(self.next_fill_part(state, thread, line)),
            AwaitedResult::Atomic { line, .. } => {
                let result = Channel::Result { register: register as u16 };
                let arrives = state.messages.iter().any(|message| message.channel == result);
                let module = self.scene.sms[self.scene.sm_of[thread] as usize].module;
                Some(if arrives { self.sm_part(thread) } else { self.next_slots_on_path(state, module, line) })
            }
        })
    }

    /// Part through which the fill for an L1 miss must come next.
    fn next_fill_part(&self, state: &MachineState, thread: usize, line: u8) -> SlotSmSet {
        let sm = self.scene.sm_of[thread];
        if state.messages.iter().any(|message| message.channel == Channel::ToSm { sm, line }) {
            return self.sm_part(thread);
        }
        self.next_slots_on_path(state, self.scene.sms[sm as usize].module, line)
    }

    /// Slots on the upward path from `module` that a message about `line` is about to reach: an unanswered request from
    /// `module` needs a step in at least a single slot from this set.
    fn next_slots_on_path(&self, state: &MachineState, module: ModuleId, line: u8) -> SlotSmSet {
        let reached =
            state.messages.iter().filter(|message| message.line == line).map(|message| match message.channel {
                Channel::ToL2 { sm, .. } => self.slot(self.scene.sms[sm as usize].module, line),
                Channel::Up { to, .. } | Channel::Down { to, .. } => self.slot(to, line),
                Channel::Memory { module, .. } => self.slot(module, line),
                Channel::ToSm { .. } | Channel::Result { .. } | Channel::Plan { .. } => 0,
            });
        let reached = reached.fold(0, |all, slot| all | slot);
        SlotSmSet { slots: reached & self.region_path_of(module, line), sms: 0 }
    }

    /// Part for serving the first message or request awaited by the thread's release; `None` if there is none.
    fn watched(&self, state: &MachineState, thread: usize) -> Option<SlotSmSet> {
        let is_watched = |threads: u8| threads >> thread & 1 != 0;
        let in_flight = state.messages.iter().find_map(|message| {
            let (to, watched) = match (message.channel, &message.body) {
                (Channel::ToL2 { sm, .. }, MessageBody::Request(posted)) => {
                    (self.scene.sms[sm as usize].module, posted.watched)
                }
                (Channel::Up { to, .. }, MessageBody::Request(posted)) => (to, posted.watched),
                (Channel::Down { to, .. }, MessageBody::Invalidate { watched }) => (to, *watched),
                _ => return None,
            };
            is_watched(watched).then(|| SlotSmSet { slots: self.slot(to, message.line), sms: 0 })
        });
        in_flight.or_else(|| {
            state.held.iter().find_map(|held| {
                let watched = match &held.how {
                    HoldReason::Park(posted) => posted.watched,
                    HoldReason::Flush(threads) => *threads,
                    HoldReason::Wait(_) => 0,
                };
                is_watched(watched).then(|| self.next_slots_on_path(state, held.module, held.line))
            })
        })
    }
}

impl SlotSmSet {
    /// All slots and SMs.
    const ALL: SlotSmSet = SlotSmSet { slots: SlotSet::MAX, sms: u8::MAX };

    fn holds(self, node: SlotSmSet) -> bool {
        node.slots & !self.slots == 0 && node.sms & !self.sms == 0
    }

    fn add(&mut self, other: SlotSmSet) {
        self.slots |= other.slots;
        self.sms |= other.sms;
    }
}

/// Registers that an instruction reads or writes: it waits for each register.
fn mentioned(instruction: &Instruction) -> impl Iterator<Item = Register> {
    instruction.sets().into_iter().chain(instruction.reads())
}
