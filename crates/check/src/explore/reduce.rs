//! Reductions: fewer states, the same outcomes.
//!
//! **Forget.** A copy that no remaining load or atomic can reach is dropped, as if it had been evicted. A directory
//! entry that no remaining access can reach is dropped as if it had been replaced. So is a copy at a system home that is
//! the ordering point and equals memory, for the next access finds the same bytes there.
//!
//! **Eager.** A step is taken alone, before all others, where nothing that may still come before it can
//! tell the difference, and having it early only lets others go on early, which they need not:
//!
//! - a thread that is alone on its SM issues, or completes an acquire, unless a fill of the same line is
//!   still to come. Nobody else looks at its L1, and a request may stay in its channel as long as it likes. The same
//!   holds for one whose access is apart from all that the other threads of its SM have before them;
//! - the result of an atomic: it sets a register only;
//! - a fill on its way to an SM, where an L1 takes nothing of a miss that something has passed
//!   ([`fills_are_plain`](super::probe::fills_are_plain)): what comes later may find the line evicted again. Not while a load beyond `.cta` of
//!   its line may follow, which could merge with the miss, but hits nothing that is there;
//! - an invalidation that meets neither a copy nor an entry, and an acquire's that meets an empty cache: they only end a
//!   wait, or leave it to invalidations that are on their way already;
//! - a read that is the last access to its slot in an L2 below the home, where there is no copy: it passes;
//! - the fill of such a read, if it is the first in its channel;
//! - memory's answer, where nothing happens before it comes: who asked could have been as late. Not where memory is the
//!   ordering point: others write there meanwhile;
//! - a read that an L2 has sent on (`Postpone`).
//!
//! **Postpone.** A request that would only be held where it arrives stays in its channel: there it waits as well, and
//! whatever it would have kept from its slot can stay away by itself. For the same reason a read that finds
//! nothing in an L2 is taken there only when it can be sent on at once, and then is, as far as it goes: until then
//! it could have stayed before the L2. Nothing may happen at a slot while its miss is on its way, which
//! [`misses_are_plain`](super::probe::misses_are_plain) asks the protocol; and no L2 may send anything of itself on the same way.
//!
//! **Pages.** A page that is to change waits until its modules have nothing under way to it, and then changes in one step.
//! Had they refused it earlier they could have made no other accesses meanwhile than these; while nobody uses the page nobody
//! sees it half copied; and who is told late may as well go on late. So a request under way keeps the home of its line
//! where it is, which the reductions above take for granted. None of them issues an access early: that would keep its page.
//! A broken rule is broken between these steps: then nothing is reduced.
//!
//! A cycle of steps taken alone would leave all others out for ever. There is none: each uses up a message,
//! or an instruction of a program without loops.

use super::config::Evictions;
use super::machine::Machine;
use super::sm::OnSms;
use super::sm::operation;
use super::state::{Body, Channel, Hold, Message, Posted, SlotSet, State};
use super::step::Step;
use super::values::cells;
use crate::litmus::Instruction;
use tombolo_protocol::front::{self, Stage};
use tombolo_protocol::paging::Holder;
use tombolo_protocol::plan::Sync;
use tombolo_protocol::{Action, Class, Coherence, Request, l1};
use tombolo_types::{ModuleId, Scope};

/// A set of lines: bit `i` is line `i`.
pub(super) type LineSet = u8;

/// What a thread may still do from an instruction on, whatever its branches do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Remaining {
    /// Lines it may load.
    loads: LineSet,
    /// Lines it may load beyond `.cta`.
    far_loads: LineSet,
    /// Lines it may load or update.
    reads: LineSet,
    /// Lines it may access.
    accesses: LineSet,
    /// What it may do to others' L2s.
    syncs: Syncs,
}

/// What synchronisation may do at L2s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Syncs {
    /// A release: it marks what L2s have sent.
    pub(super) releases: bool,
    /// An acquire that invalidates L2s.
    pub(super) invalidates: bool,
    /// An acquire that invalidates the L1.
    drops_l1: bool,
}

impl Syncs {
    fn and(self, other: Syncs) -> Syncs {
        Syncs {
            releases: self.releases || other.releases,
            invalidates: self.invalidates || other.invalidates,
            drops_l1: self.drops_l1 || other.drops_l1,
        }
    }
}

impl Remaining {
    fn and(self, other: Remaining) -> Remaining {
        Remaining {
            loads: self.loads | other.loads,
            far_loads: self.far_loads | other.far_loads,
            reads: self.reads | other.reads,
            accesses: self.accesses | other.accesses,
            syncs: self.syncs.and(other.syncs),
        }
    }
}

/// What may still reach the slots of L2s: bits by [`Machine::l2_index`].
#[derive(Clone, Copy, Debug, Default)]
struct Outlook {
    /// Accesses of any kind; each thread with some left to issue counts once a line.
    visited: SlotSet,
    /// More than one.
    visited_again: SlotSet,
    /// Loads or atomics: only these look at a copy.
    read: SlotSet,
}

impl Outlook {
    fn visit(&mut self, slots: SlotSet, reads: bool) {
        self.visited_again |= self.visited & slots;
        self.visited |= slots;
        self.read |= if reads { slots } else { 0 };
    }
}

fn is_write(posted: &Posted) -> bool {
    matches!(posted.request, Request::Write { .. })
}

/// What remains from each instruction of `code` on, and nothing after the last. `line_of` says where an
/// instruction's location lies, `syncs` what it does as synchronisation.
pub(super) fn remaining(
    code: &[Instruction],
    line_of: impl Fn(&Instruction) -> Option<u8>,
    syncs: impl Fn(&Instruction) -> Syncs,
) -> Vec<Remaining> {
    let mut from = vec![Remaining::default(); code.len() + 1];
    loop {
        let before = from.clone();
        for (at, instruction) in code.iter().enumerate().rev() {
            let accesses = line_of(instruction).map_or(0, |line| 1 << line);
            let only = |applies: bool| if applies { accesses } else { 0 };
            let own = Remaining {
                loads: only(matches!(instruction, Instruction::Load { .. })),
                far_loads: only(matches!(instruction, Instruction::Load { order, .. } if order.scope != Scope::Cta)),
                reads: only(!matches!(instruction, Instruction::Store { .. })),
                accesses,
                syncs: syncs(instruction),
            };
            let jump = instruction.target().map_or(Remaining::default(), |target| from[target]);
            from[at] = own.and(from[at + 1]).and(jump);
        }
        if from == before {
            return from;
        }
    }
}

/// What `instruction`, from stage `from` on, does as synchronisation.
pub(super) fn syncs(protocol: &impl Coherence, instruction: &Instruction, from: usize) -> Syncs {
    if let Instruction::KernelBoundary = instruction {
        return Syncs {
            releases: true,
            invalidates: !protocol.acquire(Sync::Kernel).is_empty(),
            drops_l1: l1::acquire_invalidates(protocol, Scope::Sys),
        };
    }
    let Some((operation, order)) = operation(instruction) else { return Syncs::default() };
    let stages = front::stages(protocol, operation, order);
    let all = (from..front::MAX_STAGES).map_while(|index| stages.get(index)).map(|stage| match stage {
        Stage::Release(_) => Syncs { releases: true, ..Syncs::default() },
        Stage::Acquire(scope) => Syncs {
            releases: false,
            invalidates: !protocol.acquire(Sync::Thread(scope)).is_empty(),
            drops_l1: l1::acquire_invalidates(protocol, scope),
        },
        Stage::AwaitLoads | Stage::Issue | Stage::AwaitResult => Syncs::default(),
    });
    all.fold(Syncs::default(), Syncs::and)
}

impl<P: Coherence> Machine<'_, P> {
    /// Lines that `thread` may still access: those of accesses it has not issued yet.
    pub(super) fn accesses_left(&self, state: &State, thread: usize) -> LineSet {
        self.remaining_of(state, thread).accesses
    }

    /// What `thread` has before it, or under way, as synchronisation.
    pub(super) fn syncs_left(&self, state: &State, thread: usize) -> Syncs {
        let at = state.fronts.threads[thread];
        let later = self.remaining[thread].get(at.pc as usize + 1).map_or(Syncs::default(), |later| later.syncs);
        let instruction = self.instruction(state, thread);
        let now = instruction.map(|now| syncs(&self.protocol, now, at.stage as usize));
        now.unwrap_or_default().and(later)
    }

    /// What `thread` has not issued yet.
    fn remaining_of(&self, state: &State, thread: usize) -> Remaining {
        let at = state.fronts.threads[thread].pc as usize;
        let is_access = self.instruction(state, thread).is_some_and(|instruction| instruction.location().is_some());
        let issued = is_access && matches!(self.stage(state, thread), Some(Stage::AwaitResult | Stage::Acquire(_)));
        self.remaining[thread][at + usize::from(issued)]
    }

    /// What the threads of `sm` have not issued yet.
    fn remaining_on(&self, state: &State, sm: u8) -> Remaining {
        let threads = (0..state.fronts.threads.len()).filter(|&thread| self.scene.sm_of[thread] == sm);
        threads.fold(Remaining::default(), |all, thread| all.and(self.remaining_of(state, thread)))
    }

    pub(super) fn module_of(&self, thread: usize) -> ModuleId {
        self.scene.sms[self.scene.sm_of[thread] as usize].module
    }

    /// What may still reach which slots.
    fn outlook(&self, state: &State) -> Outlook {
        let mut outlook = Outlook::default();
        for thread in 0..state.fronts.threads.len() {
            let (remaining, module) = (self.remaining_of(state, thread), self.module_of(thread));
            for line in (0..self.scene.lines as u8).filter(|line| remaining.accesses >> line & 1 != 0) {
                outlook.visit(self.path_of(module, line), remaining.reads >> line & 1 != 0);
            }
        }
        for message in &state.messages {
            let reads = matches!(&message.body, Body::Posted(posted) if !is_write(posted));
            match message.channel {
                Channel::ToL2 { sm, line } => {
                    outlook.visit(self.path_of(self.scene.sms[sm as usize].module, line), reads)
                }
                Channel::Up { to, .. } => outlook.visit(self.path_of(to, message.line), reads),
                _ => {}
            }
        }
        for held in &state.held {
            if let Hold::Park(posted) = &held.how {
                outlook.visit(self.path_of(held.module, held.line), !is_write(posted));
            }
        }
        if self.config.writes_back() {
            self.visit_by_write_backs(state, &mut outlook);
        }
        outlook
    }

    /// Dirty bytes pass every slot of their way but their own.
    fn visit_by_write_backs(&self, state: &State, outlook: &mut Outlook) {
        for module in self.modules() {
            for line in 0..self.scene.lines as u8 {
                let own = self.l2_index(module, line);
                if state.l2[own].line.is_some_and(|copy| !copy.dirty.is_empty()) {
                    outlook.visit(self.path_of(module, line) & !(1 << own), false);
                }
            }
        }
    }

    /// Slots of all lines of the region of `line` at `module`.
    fn slots_of_region(&self, module: ModuleId, line: u8) -> SlotSet {
        self.lines_of_region(line).fold(0, |slots, line| slots | 1 << self.l2_index(module, line))
    }

    /// Whether an access may still reach some line of the region at `module`. While none does, it makes no
    /// difference whether a home knows of a copy there: an invalidation would find nobody to mislead.
    pub(super) fn is_visited(&self, state: &State, module: ModuleId, line: u8) -> bool {
        self.outlook(state).visited & self.slots_of_region(module, line) != 0
    }

    /// Forgets copies that no remaining access can see. Whether there was anything in an L2 to forget.
    pub(super) fn forget(&self, state: &mut State) -> bool {
        self.forget_in_l1s(state);
        let mut forgotten = !self.protocol.ordering_point().is_memory() && self.clear_homes(state);
        let outlook = self.outlook(state);
        for module in self.modules() {
            for line in 0..self.scene.lines as u8 {
                let slot = self.l2_index(module, line);
                if state.l2[slot].line.is_some() && self.is_forgotten(state, &outlook, module, line) {
                    state.l2[slot].line = None;
                    forgotten = true;
                }
                let entry = self.entry_index(module, line);
                if state.entries[entry].is_some() && outlook.visited & self.slots_of_region(module, line) == 0 {
                    // Its sharers are not visited either: an invalidation would meet nobody.
                    state.entries[entry] = None;
                    forgotten = true;
                }
            }
        }
        forgotten
    }

    fn forget_in_l1s(&self, state: &mut State) {
        for sm in 0..self.scene.sms.len() as u8 {
            let loads = self.remaining_on(state, sm).loads;
            for line in (0..self.scene.lines as u8).filter(|line| loads >> line & 1 == 0) {
                let slot = &mut state.fronts.l1[self.scene.l1_index(sm, line)];
                slot.line = None;
                if let Some(pending) = &mut slot.pending {
                    // Nothing asks any more whether it may install.
                    pending.poisoned = pending.miss.mask;
                    pending.miss.invalidate();
                }
            }
        }
    }

    /// Evicts what system homes hold and their memory holds too, while nobody waits for it there: that sends
    /// nothing, and the next access finds the same bytes.
    fn clear_homes(&self, state: &mut State) -> bool {
        let mut cleared = false;
        for line in 0..self.scene.lines as u8 {
            let Some(home) = self.holder(state, line).module() else { continue };
            let slot = state.l2[self.l2_index(home, line)];
            let memory = state.memory[self.memory_index(Holder::Module(home), line)];
            let is_clean = slot.line.is_some_and(|copy| {
                copy.dirty.is_empty() && cells(copy.valid).all(|cell| copy.data.0[cell] == memory.0[cell])
            });
            let waited = || state.held.iter().any(|held| held.module == home && held.line == line);
            if is_clean && slot.pending.is_none() && !waited() && !self.eviction_is_seen(state, home, line) {
                cleared |= self.evict(state, home, line);
            }
        }
        cleared
    }

    /// Whether reads are sent on at once when they find nothing in an L2: not where what an L2 sends unasked may be
    /// on the same way.
    pub(super) fn runs_through(&self) -> bool {
        let reductions = self.config.reductions;
        let sends_unasked = self.config.writes_back() || self.protocol.downgrades();
        reductions.postpone && reductions.eager && self.plain_misses && !sends_unasked
    }

    /// Whether there is a clean copy that makes no difference any more.
    fn is_forgotten(&self, state: &State, outlook: &Outlook, module: ModuleId, line: u8) -> bool {
        let Some(copy) = state.l2[self.l2_index(module, line)].line else { return false };
        let waited = state.held.iter().any(|held| held.module == module && held.line == line);
        // What the ordering point holds at the end is looked at.
        let memory = state.memory[self.memory_index(Holder::Module(module), line)];
        let is_end = self.class(module, line) == Class::Own && !self.protocol.ordering_point().is_memory();
        let is_last = is_end && cells(copy.valid).any(|cell| copy.data.0[cell] != memory.0[cell]);
        // Dropping a line may send something where L2s send downgrades.
        let looked_at = if self.protocol.downgrades() {
            outlook.visited & self.slots_of_region(module, line) != 0
        } else {
            outlook.read >> self.l2_index(module, line) & 1 != 0
        };
        copy.dirty.is_empty() && !waited && !is_last && !looked_at
    }

    /// The ways to take some step that may be taken alone, if there is one.
    pub(super) fn eager_steps(&self, state: &State) -> Vec<Step> {
        let mut steps = Vec::new();
        for thread in 0..state.fronts.threads.len() {
            if self.is_eager_thread(state, thread) {
                self.steps_of(state, thread, &mut steps);
                if !steps.is_empty() {
                    return steps;
                }
            }
        }
        for (index, message) in state.messages.iter().enumerate() {
            let is_first = || !state.messages[..index].iter().any(|earlier| earlier.channel == message.channel);
            if self.is_eager_message(state, message) && is_first() {
                self.delivery_steps(state, message.channel, &mut steps);
                if !steps.is_empty() {
                    return steps;
                }
            }
        }
        steps
    }

    fn is_eager_thread(&self, state: &State, thread: usize) -> bool {
        if self.loops {
            return false;
        }
        match (self.stage(state, thread), self.instruction(state, thread)) {
            (Some(Stage::Acquire(_)), _) => {
                self.is_alone(state, thread) || self.l1_is_empty(state, self.scene.sm_of[thread])
            }
            // Where pages move an access that is under way keeps its page where it is.
            (Some(Stage::Issue), Some(instruction)) if self.config.paging.is_none() => {
                let Some(location) = instruction.location() else { return false };
                let line = self.scene.layout.cell(location).line;
                state.fronts.l1[self.scene.l1_index(self.scene.sm_of[thread], line)].pending.is_none()
                    && self.can_issue(state, thread)
                    && (self.is_alone(state, thread) || self.is_apart(state, thread, instruction, line))
            }
            _ => false,
        }
    }

    /// The threads that share the SM of `thread` and are not done.
    fn mates(&self, state: &State, thread: usize) -> impl Iterator<Item = usize> {
        let shares = move |&other: &usize| other != thread && self.scene.sm_of[other] == self.scene.sm_of[thread];
        (0..state.fronts.threads.len()).filter(shares).filter(|&other| self.instruction(state, other).is_some())
    }

    fn is_alone(&self, state: &State, thread: usize) -> bool {
        self.mates(state, thread).next().is_none()
    }

    /// Whether nothing that the other threads of its SM have before them meets the access at hand: no access to its
    /// line, no release that would wait for a store, no acquire that would drop what is loaded.
    fn is_apart(&self, state: &State, thread: usize, access: &Instruction, line: u8) -> bool {
        let loads = !matches!(access, Instruction::Store { .. });
        let posts = !matches!(access, Instruction::Load { .. });
        self.mates(state, thread).all(|mate| {
            let syncs = self.syncs_left(state, mate);
            self.accesses_left(state, mate) >> line & 1 == 0 && !(posts && syncs.releases) && !(loads && syncs.drops_l1)
        })
    }

    fn l1_is_empty(&self, state: &State, sm: u8) -> bool {
        (0..self.scene.lines as u8).all(|line| {
            let slot = state.fronts.l1[self.scene.l1_index(sm, line)];
            slot.line.is_none() && slot.pending.is_none()
        })
    }

    /// Whether `message`, the first of its channel, may be delivered at once.
    fn is_eager_message(&self, state: &State, message: &Message) -> bool {
        let line = message.line;
        match (message.channel, message.body) {
            (Channel::Result { .. }, _) => true,
            (Channel::Memory { .. }, _) => self.plain_misses && !self.protocol.ordering_point().is_memory(),
            (Channel::ToSm { sm, .. }, _) => {
                let Remaining { loads, far_loads, .. } = self.remaining_on(state, sm);
                let early = self.plain_fills && self.config.evictions != Evictions::Never;
                (if early { far_loads } else { loads }) >> line & 1 == 0
            }
            (Channel::Up { .. }, Body::Posted(Posted { request: Request::Read { .. }, .. })) if self.runs_through() => {
                true
            }
            (Channel::Down { to, .. }, Body::Invalidate { .. }) => {
                state.entries[self.entry_index(to, line)].is_none()
                    && self.lines_of_region(line).all(|line| state.l2[self.l2_index(to, line)].line.is_none())
            }
            (Channel::Plan { module, .. }, Body::Act(Action::Invalidate(_))) => {
                (0..self.scene.lines as u8).all(|line| {
                    let slot = state.l2[self.l2_index(module, line)];
                    slot.line.is_none() && slot.pending.is_none()
                })
            }
            (Channel::Down { to, .. }, Body::Fill { .. }) => {
                let slot = self.l2_index(to, line);
                state.l2[slot].line.is_none() && self.outlook(state).visited >> slot & 1 == 0
            }
            (Channel::ToL2 { .. } | Channel::Up { .. }, Body::Posted(posted)) => {
                matches!(posted.request, Request::Read { .. })
                    && !self.runs_through()
                    && self
                        .visits(state, message.channel)
                        .is_some_and(|(module, line)| self.passes_alone(state, module, line))
            }
            _ => false,
        }
    }

    /// Whether a read is the last to visit a slot in which there is nothing, below the home.
    fn passes_alone(&self, state: &State, module: ModuleId, line: u8) -> bool {
        let index = self.l2_index(module, line);
        let slot = state.l2[index];
        self.class(module, line) != Class::Own
            && slot.line.is_none()
            && slot.pending.is_none()
            && self.outlook(state).visited_again >> index & 1 == 0
    }
}
