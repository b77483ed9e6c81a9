//! Partial order: of the steps a state can take, a part that is enough.
//!
//! Steps meet in *slots*, one for each L2 and region, and in SMs. A message is taken at its destination and
//! changes nothing else, except that it appends to channels; what it appends behind another message can be
//! taken only after that. So the steps of some slots and SMs may come before everything else, if nothing
//! outside can give them another message to take, or mark what they send for its release, without waiting for
//! one of them first. Such parts are closed (persistent sets; Godefroid, "Partial-Order Methods for the
//! Verification of Concurrent Systems", 1996):
//!
//! - with a slot, every thread that may still send an access through it, mark what its steps send, or invalidate
//!   its L2. Also the slots that have a request to pass on to it, and the home above while it may send down what
//!   precedes all in the channel;
//! - with an SM, its threads; the slot that may fill a miss that a thread's next access meets in the L1; the L2
//!   that a plan of one of its threads is about to act on;
//! - with a thread that waits, slots through which what it waits for must come.
//!
//! A read that is sent on at once when it finds nothing takes place at all slots of its way together: they belong to it
//! as one.
//!
//! A step that lets a release begin may come early though others' sends do not commute with that: what is
//! sent later is not waited for, and a thread that need not wait still may. A mark that is handed on, to what a step sends
//! or to what was sent of its region, adds nothing: the wait ends with the last of them, in whichever order. L2s that send
//! unasked (write-backs, downgrades, evictions at any time) are not told apart: a slot comes with all others of its region.

use super::MAX_THREADS;
use super::config::Evictions;
use super::machine::Machine;
use super::sm::OnSms;
use super::state::{Awaited, Body, Channel, Hold, Posted, SlotSet, Source, State};
use super::step::Step;
use super::sync::Syncs;
use super::values::mask_of;
use crate::litmus::{Instruction, Operand, Register, Update};
use tombolo_protocol::front::Stage;
use tombolo_protocol::l1::{self, Load};
use tombolo_protocol::{Coherence, Request};
use tombolo_types::ModuleId;

/// A set of slots and SMs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    /// Bit `module × regions + region`.
    slots: SlotSet,
    /// Bit `i` is the explorer's SM `i`.
    sms: u8,
}

/// What a thread can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is done.
    Done,
    /// It can take a step, or a request of its own plan is under way.
    Ready,
    /// It waits for steps of this part, and possibly for others.
    Waits(Part),
    /// It waits for the other threads of its CTA, which share its SM.
    Barrier,
}

/// What is worked out once for a state.
struct Scene<'a> {
    state: &'a State,
    standings: [Standing; MAX_THREADS],
    /// Slots of lines that each thread may still access: all that those accesses pass.
    passed: [SlotSet; MAX_THREADS],
    /// Slots whose steps may send what a release waits for.
    sending: SlotSet,
    /// Slots that have a request, or hold one, that they may pass on.
    passing: SlotSet,
    /// For each read that is sent on at once where it finds nothing: the slot it is about to reach, and all that it
    /// may then pass.
    running: Vec<(SlotSet, SlotSet)>,
}

impl<P: Coherence> Machine<'_, P> {
    /// The smallest part of `steps` found that is enough; all of them where none is.
    pub(super) fn enough(&self, state: &State, mut steps: Vec<Step>) -> Vec<Step> {
        if self.loops || steps.len() < 2 {
            return steps;
        }
        let scene = self.scene(state);
        // A thread that must wait has no step; a part of such alone would be an end that is none.
        let waits = |step: &Step| match *step {
            Step::Thread { thread, .. } => scene.standings[thread as usize] != Standing::Ready,
            Step::Deliver { .. }
            | Step::Overtake { .. }
            | Step::Evict { .. }
            | Step::Replace { .. }
            | Step::Page(_) => false,
        };
        steps.retain(|step| !waits(step));
        let nodes: Vec<Part> = steps.iter().map(|step| self.node(state, *step)).collect();
        let mut best: Option<(usize, Part)> = None;
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
        steps
    }

    fn scene<'a>(&self, state: &'a State) -> Scene<'a> {
        let (mut standings, mut passed) = ([Standing::Done; MAX_THREADS], [0; MAX_THREADS]);
        for thread in 0..state.fronts.threads.len() {
            standings[thread] = self.standing(state, thread);
            let accesses = self.accesses_left(state, thread);
            let lines = (0..self.scene.lines as u8).filter(|line| accesses >> line & 1 != 0);
            let module = self.scene.sms[self.scene.sm_of[thread] as usize].module;
            passed[thread] = lines.fold(0, |slots, line| slots | self.region_path_of(module, line));
        }
        let mut scene = Scene { state, standings, passed, sending: 0, passing: 0, running: Vec::new() };
        for (index, entry) in state.entries.iter().enumerate() {
            // What a replaced entry without sharers sends, L2s send unasked.
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
            let Body::Posted(posted) = &message.body else { continue };
            if posts(&posted.request) {
                scene.sending |= slot;
            }
            if self.may_run_through(posted) {
                scene.running.push((slot, self.region_path_of(to, message.line)));
            }
        }
        for held in &state.held {
            let slot = self.slot(held.module, held.line);
            if let Hold::Park(posted) = &held.how {
                scene.passing |= slot;
                scene.sending |= if posts(&posted.request) { slot } else { 0 };
            }
        }
        if self.sends_unasked() {
            scene.sending = SlotSet::MAX;
        }
        scene
    }

    /// Whether L2s may send what no message makes them send.
    fn sends_unasked(&self) -> bool {
        let spontaneous = self.config.evictions == Evictions::Spontaneous;
        spontaneous || self.config.writes_back() || self.protocol.downgrades()
    }

    fn slot(&self, module: ModuleId, line: u8) -> SlotSet {
        1 << self.entry_index(module, line)
    }

    /// All slots of a line's region.
    fn region_slots(&self, line: u8) -> SlotSet {
        self.modules().fold(0, |slots, module| slots | self.slot(module, line))
    }

    /// All slots of an L2.
    fn slots_of(&self, module: ModuleId) -> SlotSet {
        let first = module.0 as usize * self.regions;
        (first..first + self.regions).fold(0, |slots, index| slots | 1 << index)
    }

    /// The slots and SMs that a step belongs to.
    fn node(&self, state: &State, step: Step) -> Part {
        let at = |module, line| Part { slots: self.slot(module, line), sms: 0 };
        match step {
            Step::Thread { thread, .. } => self.sm_part(thread as usize),
            Step::Deliver { channel, .. } | Step::Overtake { channel } => {
                let message = state.messages.iter().find(|message| message.channel == channel);
                let line = message.map_or(0, |message| message.line);
                let runs = message.is_some_and(|message| match &message.body {
                    Body::Posted(posted) => self.may_run_through(posted),
                    _ => false,
                });
                let taken = |module| {
                    if runs { Part { slots: self.region_path_of(module, line), sms: 0 } } else { at(module, line) }
                };
                match channel {
                    Channel::ToL2 { sm, .. } => taken(self.scene.sms[sm as usize].module),
                    Channel::Up { to, .. } => taken(to),
                    Channel::Down { to, .. } => at(to, line),
                    Channel::Memory { module, .. } => at(module, line),
                    Channel::ToSm { sm, .. } => Part { slots: 0, sms: 1 << sm },
                    Channel::Result { register } => self.sm_part(self.thread_of(register)),
                    Channel::Plan { thread, module } => {
                        Part { slots: self.slots_of(module), ..self.sm_part(thread as usize) }
                    }
                }
            }
            Step::Evict { module, line } | Step::Replace { module, line } => at(module, line),
            Step::Page(_) => Part::ALL,
        }
    }

    /// Whether a request may start a read that is sent on at once.
    fn may_run_through(&self, posted: &Posted) -> bool {
        self.runs_through() && !matches!(posted.request, Request::Write { .. })
    }

    fn sm_part(&self, thread: usize) -> Part {
        Part { slots: 0, sms: 1 << self.scene.sm_of[thread] }
    }

    fn thread_of(&self, register: u16) -> usize {
        self.scene.register_base.partition_point(|&base| base <= register) - 1
    }

    /// The least closed part that holds `part`; `None` where that holds all of `nodes`.
    fn closed(&self, scene: &Scene<'_>, mut part: Part, nodes: &[Part]) -> Option<Part> {
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

    /// Adds a thread that meets the part, and what it meets itself.
    fn close_thread(&self, scene: &Scene<'_>, thread: usize, part: &mut Part) {
        let standing = scene.standings[thread];
        if standing == Standing::Done {
            return;
        }
        let asked = self.asked_slots(scene.state, thread);
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
            Standing::Waits(on) if on == Part::default() => *part = Part::ALL,
            Standing::Waits(on) => part.add(on),
            Standing::Done | Standing::Ready | Standing::Barrier => part.add(sm),
        }
        if part.sms & sm.sms != 0 {
            part.slots |= asked | self.touched(scene.state, thread);
        }
    }

    /// Slots that may send a slot of this line a message that could be taken at once.
    fn sources(&self, scene: &Scene<'_>, module: ModuleId, line: u8) -> SlotSet {
        let mut slots = 0;
        if scene.passing & self.region_slots(line) != 0 {
            for below in self.modules().filter(|&below| below != module) {
                let slot = self.slot(below, line) & scene.passing;
                slots |= if slot != 0 && self.passes(below, module, line) { slot } else { 0 };
            }
        }
        let homes = self.homes_of(module, line);
        for from in self.modules().filter(|&from| from != module) {
            // Those above are among the homes.
            let is_home = from == homes.gpu || from == homes.system;
            let may_send = is_home || self.named(scene.state, from, line).contains(module);
            if may_send && self.may_send_down(scene.state, from, module, line) {
                slots |= self.slot(from, line);
            }
        }
        slots
    }

    /// Whether the L2 of `from` may send that of `module` a fill or an invalidation before anything new comes from there,
    /// with nothing in the channel before it.
    fn may_send_down(&self, state: &State, from: ModuleId, module: ModuleId, line: u8) -> bool {
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
                held.module == from && held.source == Source::Module(module) && self.region(held.line) == region
            })
    }

    /// The slot that may fill the miss that the next access of a thread meets in its L1.
    fn touched(&self, state: &State, thread: usize) -> SlotSet {
        if self.stage(state, thread) != Some(Stage::Issue) {
            return 0;
        }
        let Some(location) = self.instruction(state, thread).and_then(Instruction::location) else { return 0 };
        let (sm, line) = (self.scene.sm_of[thread], self.scene.layout.cell(location).line);
        let is_met = state.fronts.l1[self.scene.l1_index(sm, line)].pending.is_some();
        if is_met { self.slot(self.answers(state, self.scene.sms[sm as usize].module, line), line) } else { 0 }
    }

    fn standing(&self, state: &State, thread: usize) -> Standing {
        let Some(instruction) = self.instruction(state, thread) else { return Standing::Done };
        let all = || self.awaited(state, thread, self.scene.registers_of(thread));
        let own = || {
            let registers = mentioned(instruction).map(|one| self.scene.flat(thread, one) as usize);
            Standing::Waits(self.awaited(state, thread, registers).unwrap_or_default())
        };
        match self.stage(state, thread) {
            None if self.is_at_boundary(state, thread) => self.standing_at_boundary(state, thread),
            None | Some(Stage::AwaitResult) => own(),
            Some(Stage::AwaitLoads) => Standing::Waits(all().unwrap_or_default()),
            Some(Stage::Issue) if matches!(instruction, Instruction::Barrier { .. }) => Standing::Barrier,
            Some(Stage::Issue) if !self.can_issue(state, thread) => own(),
            Some(Stage::Issue) => match self.stalled_on(state, thread, instruction) {
                None => Standing::Ready,
                Some(line) => Standing::Waits(self.fill_on_its_way(state, thread, line)),
            },
            Some(Stage::Acquire(_) | Stage::Release(_)) => self.standing_in_plan(state, thread),
        }
    }

    fn standing_in_plan(&self, state: &State, thread: usize) -> Standing {
        match self.watched(state, thread) {
            Some(part) if self.asked_slots(state, thread) == 0 => Standing::Waits(part),
            Some(_) | None => Standing::Ready,
        }
    }

    /// At a kernel boundary a thread waits for one that has not come, then for what one that has come awaits, then
    /// for the first, which runs the plans.
    fn standing_at_boundary(&self, state: &State, thread: usize) -> Standing {
        for other in 0..state.fronts.threads.len() {
            let is_done = self.instruction(state, other).is_none();
            if !is_done && !self.is_at_boundary(state, other) {
                return Standing::Waits(self.sm_part(other));
            }
            if let Some(part) = self.awaited(state, other, self.scene.registers_of(other)) {
                return Standing::Waits(part);
            }
        }
        let first = (0..state.fronts.threads.len()).find(|&thread| self.is_at_boundary(state, thread));
        match first {
            Some(first) if first != thread => Standing::Waits(self.sm_part(first)),
            _ => self.standing_in_plan(state, thread),
        }
    }

    /// The line whose pending miss a load must wait for. Nothing else that has its operands waits.
    fn stalled_on(&self, state: &State, thread: usize, instruction: &Instruction) -> Option<u8> {
        let Instruction::Load { order, location, .. } = *instruction else { return None };
        let at = self.scene.layout.cell(location);
        let mut slot = state.fronts.l1[self.scene.l1_index(self.scene.sm_of[thread], at.line)];
        let mask = self.protocol.sectors().widen(mask_of(at.cell));
        let load = l1::load(&self.protocol, &mut slot.line, || slot.pending, mask, order.scope);
        (load == Load::Stall).then_some(at.line)
    }

    /// The slots that requests of the thread's plan are about to reach.
    fn asked_slots(&self, state: &State, thread: usize) -> SlotSet {
        let slots = state.messages.iter().map(|message| match message.channel {
            Channel::Plan { thread: of, module } if of as usize == thread => self.slots_of(module),
            _ => 0,
        });
        slots.fold(0, |all, slots| all | slots)
    }

    /// Where the first of these registers that awaits a result has it come from.
    fn awaited(&self, state: &State, thread: usize, mut registers: impl Iterator<Item = usize>) -> Option<Part> {
        registers.find_map(|register| match state.fronts.registers[register].awaits? {
            Awaited::Load { line, .. } => Some(self.fill_on_its_way(state, thread, line)),
            Awaited::Atomic { line, .. } => {
                let result = Channel::Result { register: register as u16 };
                let arrives = state.messages.iter().any(|message| message.channel == result);
                let module = self.scene.sms[self.scene.sm_of[thread] as usize].module;
                Some(if arrives { self.sm_part(thread) } else { self.on_its_way(state, module, line) })
            }
        })
    }

    /// Where the fill of an L1's miss must come through next.
    fn fill_on_its_way(&self, state: &State, thread: usize, line: u8) -> Part {
        let sm = self.scene.sm_of[thread];
        if state.messages.iter().any(|message| message.channel == Channel::ToSm { sm, line }) {
            return self.sm_part(thread);
        }
        self.on_its_way(state, self.scene.sms[sm as usize].module, line)
    }

    /// The slots of the path from `module` up that a message of `line` is about to reach: one of them is what a
    /// request of `module` that has no answer yet needs.
    fn on_its_way(&self, state: &State, module: ModuleId, line: u8) -> Part {
        let reached =
            state.messages.iter().filter(|message| message.line == line).map(|message| match message.channel {
                Channel::ToL2 { sm, .. } => self.slot(self.scene.sms[sm as usize].module, line),
                Channel::Up { to, .. } | Channel::Down { to, .. } => self.slot(to, line),
                Channel::Memory { module, .. } => self.slot(module, line),
                Channel::ToSm { .. } | Channel::Result { .. } | Channel::Plan { .. } => 0,
            });
        let reached = reached.fold(0, |all, slot| all | slot);
        Part { slots: reached & self.region_path_of(module, line), sms: 0 }
    }

    /// Where the first thing that the thread's release waits for must be taken; `None` if there is none.
    fn watched(&self, state: &State, thread: usize) -> Option<Part> {
        let is_watched = |threads: u8| threads >> thread & 1 != 0;
        let in_flight = state.messages.iter().find_map(|message| {
            let (to, watched) = match (message.channel, &message.body) {
                (Channel::ToL2 { sm, .. }, Body::Posted(posted)) => {
                    (self.scene.sms[sm as usize].module, posted.watched)
                }
                (Channel::Up { to, .. }, Body::Posted(posted)) => (to, posted.watched),
                (Channel::Down { to, .. }, Body::Invalidate { watched }) => (to, *watched),
                _ => return None,
            };
            is_watched(watched).then(|| Part { slots: self.slot(to, message.line), sms: 0 })
        });
        in_flight.or_else(|| {
            state.held.iter().find_map(|held| {
                let watched = match &held.how {
                    Hold::Park(posted) => posted.watched,
                    Hold::Flush(threads) => *threads,
                    Hold::Wait(_) => 0,
                };
                is_watched(watched).then(|| self.on_its_way(state, held.module, held.line))
            })
        })
    }
}

impl Part {
    /// Everything.
    const ALL: Part = Part { slots: SlotSet::MAX, sms: u8::MAX };

    fn holds(self, node: Part) -> bool {
        node.slots & !self.slots == 0 && node.sms & !self.sms == 0
    }

    fn add(&mut self, other: Part) {
        self.slots |= other.slots;
        self.sms |= other.sms;
    }
}

/// The registers that an instruction reads or writes: it waits for each of them.
fn mentioned(instruction: &Instruction) -> impl Iterator<Item = Register> {
    let of = |operand: Operand| match operand {
        Operand::Register(register) => Some(register),
        Operand::Value(_) => None,
    };
    let registers = match *instruction {
        Instruction::Load { into, .. } => [Some(into), None, None],
        Instruction::Store { value, .. } => [of(value), None, None],
        Instruction::Atomic { into, update, .. } => match update {
            Update::Apply(_, operand) | Update::Exchange(operand) => [into, of(operand), None],
            Update::CompareAndSwap { compare, new } => [into, of(compare), of(new)],
        },
        Instruction::Move { into, value } => [Some(into), of(value), None],
        Instruction::Compute { into, left, right, .. } => [Some(into), of(left), of(right)],
        Instruction::Branch { left, right, .. } => [of(left), of(right), None],
        Instruction::Fence { .. }
        | Instruction::Barrier { .. }
        | Instruction::KernelBoundary
        | Instruction::Jump { .. } => [None; 3],
    };
    registers.into_iter().flatten()
}
