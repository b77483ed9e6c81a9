//! Reductions: fewer states, identical outcomes.
//!
//! **Forget.** A copy that no remaining load or atomic can reach is dropped, equivalent to an eviction. A directory
//! entry that no remaining access can reach is dropped, equivalent to a replacement. A copy at a system home that is
//! the ordering point is also dropped if it equals memory, because the next access finds identical bytes in memory.
//!
//! **Eager.** A step is executed alone, before all other steps, if no possible earlier step can observe the difference,
//! and an early execution only lets later steps come early, without forcing them:
//!
//! - a thread that is alone on its SM issues, or completes an acquire, unless a fill for this line is still to come. No
//!   other thread uses its L1, and a request may stay in the channel for an arbitrary time. This also applies to a
//!   thread if its access is disjoint from all future instructions of the SM's remaining threads;
//! - the result of an atomic: it only sets a register;
//! - a fill in flight to an SM, if an L1 discards the data for a miss that a later access has passed
//!   ([`fills_are_plain`](super::probe::fills_are_plain)): a later access may find the line evicted again. Excluded
//!   while a load beyond `.cta` to this line may follow, which could merge with the miss but cannot hit a present copy;
//! - an invalidation that meets neither a copy nor an entry, and an acquire's invalidation that meets an empty cache:
//!   the invalidation only ends a wait, or delegates the wait to invalidations already in flight;
//! - a read that is the last access to an L2 slot below the home, without a copy there: it passes;
//! - the fill for this read, if it is the first in the channel;
//! - memory's reply, if no step happens before its arrival: the requester could have been equally late. Excluded if
//!   memory is the ordering point, because other modules write to memory in the meantime;
//! - a read that an L2 has forwarded (`Postpone`).
//!
//! **Postpone.** A request that the destination would only park stays in the channel: it waits equally well there, and
//! requests kept from the slot by a parked request can stay away by themselves. For this reason a read that misses in
//! an L2 is delivered only when immediate forwarding is possible, and is then forwarded to the furthest possible slot:
//! until then the read could have stayed in front of the L2. No step may happen at a slot while its miss is in flight,
//! a property that [`misses_are_plain`](super::probe::misses_are_plain) tests; and no L2 may send unsolicited messages
//! along this path.
//!
//! **Pages.** A page with a pending change waits until no access from its modules is in flight, and then changes in a
//! single step. An earlier refusal would only have prevented exactly these accesses in the meantime. While no module
//! uses the page, no module sees a half copied page, and a module with a late mapping may equally continue late. A
//! request in flight thus pins its line's home, an assumption behind the reductions above. No reduction issues an
//! access early, because an early access would pin a page. A broken rule takes effect between these steps: then nothing
//! is reduced.
//!
//! A cycle of steps executed alone would exclude all remaining steps forever. No such cycle exists: each step uses up a
//! message, or an instruction in a program without loops.

use super::config::Evictions;
use super::machine::Machine;
use super::sm::SmHost;
use super::sm::operation;
use super::state::{Channel, ChannelMessage, HoldReason, MachineState, MessageBody, PostedRequest, SlotSet};
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

/// Possible future actions of a thread from an instruction onward, over all branch outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RemainingActions {
    /// Lines that the thread may load.
    loads: LineSet,
    /// Lines that the thread may load beyond `.cta`.
    far_loads: LineSet,
    /// Lines that the thread may load or update.
    reads: LineSet,
    /// Lines that the thread may access.
    accesses: LineSet,
    /// Possible effects of synchronisation on remote L2s.
    syncs: SyncEffects,
}

/// Possible effects of synchronisation at L2s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SyncEffects {
    /// A release: it marks messages sent by L2s.
    pub(super) releases: bool,
    /// An acquire that invalidates L2s.
    pub(super) invalidates: bool,
    /// An acquire that invalidates the L1.
    drops_l1: bool,
}

impl SyncEffects {
    fn and(self, other: SyncEffects) -> SyncEffects {
        SyncEffects {
            releases: self.releases || other.releases,
            invalidates: self.invalidates || other.invalidates,
            drops_l1: self.drops_l1 || other.drops_l1,
        }
    }
}

impl RemainingActions {
    fn and(self, other: RemainingActions) -> RemainingActions {
        RemainingActions {
            loads: self.loads | other.loads,
            far_loads: self.far_loads | other.far_loads,
            reads: self.reads | other.reads,
            accesses: self.accesses | other.accesses,
            syncs: self.syncs.and(other.syncs),
        }
    }
}

/// Accesses that may still reach L2 slots: bits by [`Machine::l2_index`].
#[derive(Clone, Copy, Debug, Default)]
struct RemainingAccesses {
    /// Slots with accesses of any kind; each thread with unissued accesses counts once per line.
    visited: SlotSet,
    /// Slots with more than a single access.
    visited_again: SlotSet,
    /// Slots with loads or atomics: only these observe a copy.
    read: SlotSet,
}

impl RemainingAccesses {
    fn visit(&mut self, slots: SlotSet, reads: bool) {
        self.visited_again |= self.visited & slots;
        self.visited |= slots;
        self.read |= if reads { slots } else { 0 };
    }
}

fn is_write(posted: &PostedRequest) -> bool {
    matches!(posted.request, Request::Write { .. })
}

/// Remaining actions from each instruction of `code` onward, and none after the last. `line_of` returns the line for an
/// instruction's location, `syncs` the synchronisation effects.
pub(super) fn remaining(
    code: &[Instruction],
    line_of: impl Fn(&Instruction) -> Option<u8>,
    syncs: impl Fn(&Instruction) -> SyncEffects,
) -> Vec<RemainingActions> {
    let mut from = vec![RemainingActions::default(); code.len() + 1];
    loop {
        let before = from.clone();
        for (at, instruction) in code.iter().enumerate().rev() {
            let accesses = line_of(instruction).map_or(0, |line| 1 << line);
            let only = |applies: bool| if applies { accesses } else { 0 };
            let own = RemainingActions {
                loads: only(matches!(instruction, Instruction::Load { .. })),
                far_loads: only(matches!(instruction, Instruction::Load { order, .. } if order.scope != Scope::Cta)),
                reads: only(!matches!(instruction, Instruction::Store { .. })),
                accesses,
                syncs: syncs(instruction),
            };
            let jump = instruction.target().map_or(RemainingActions::default(), |target| from[target]);
            from[at] = own.and(from[at + 1]).and(jump);
        }
        if from == before {
            return from;
        }
    }
}

/// Synchronisation effects of `instruction`, from stage `from` onward.
pub(super) fn syncs(protocol: &impl Coherence, instruction: &Instruction, from: usize) -> SyncEffects {
    if let Instruction::KernelBoundary = instruction {
        return SyncEffects {
            releases: true,
            invalidates: !protocol.acquire(Sync::Kernel).is_empty(),
            drops_l1: l1::acquire_invalidates(protocol, Scope::Sys),
        };
    }
    let Some((operation, order)) = operation(instruction) else { return SyncEffects::default() };
    let stages = front::stages(protocol, operation, order);
    let all = (from..front::MAX_STAGES).map_while(|index| stages.get(index)).map(|stage| match stage {
        Stage::Release(_) => SyncEffects { releases: true, ..SyncEffects::default() },
        Stage::Acquire(scope) => SyncEffects {
            releases: false,
            invalidates: !protocol.acquire(Sync::Thread(scope)).is_empty(),
            drops_l1: l1::acquire_invalidates(protocol, scope),
        },
        Stage::AwaitLoads | Stage::Issue | Stage::AwaitResult => SyncEffects::default(),
    });
    all.fold(SyncEffects::default(), SyncEffects::and)
}

impl<P: Coherence> Machine<'_, P> {
    /// Lines that `thread` may still access, through accesses not issued yet.
    pub(super) fn accesses_left(&self, state: &MachineState, thread: usize) -> LineSet {
        self.remaining_of(state, thread).accesses
    }

    /// Future and current synchronisation effects of `thread`.
    pub(super) fn syncs_left(&self, state: &MachineState, thread: usize) -> SyncEffects {
        let at = state.fronts.threads[thread];
        let later = self.remaining[thread].get(at.pc as usize + 1).map_or(SyncEffects::default(), |later| later.syncs);
        let instruction = self.instruction(state, thread);
        let now = instruction.map(|now| syncs(&self.protocol, now, at.stage as usize));
        now.unwrap_or_default().and(later)
    }

    /// Actions that `thread` has not issued yet.
    fn remaining_of(&self, state: &MachineState, thread: usize) -> RemainingActions {
        let at = state.fronts.threads[thread].pc as usize;
        let is_access = self.instruction(state, thread).is_some_and(|instruction| instruction.location().is_some());
        let issued = is_access && matches!(self.stage(state, thread), Some(Stage::AwaitResult | Stage::Acquire(_)));
        self.remaining[thread][at + usize::from(issued)]
    }

    /// Actions that the threads on `sm` have not issued yet.
    fn remaining_on(&self, state: &MachineState, sm: u8) -> RemainingActions {
        let threads = (0..state.fronts.threads.len()).filter(|&thread| self.scene.sm_of[thread] == sm);
        threads.fold(RemainingActions::default(), |all, thread| all.and(self.remaining_of(state, thread)))
    }

    pub(super) fn module_of(&self, thread: usize) -> ModuleId {
        self.scene.sms[self.scene.sm_of[thread] as usize].module
    }

    /// Computes the remaining accesses per slot.
    fn outlook(&self, state: &MachineState) -> RemainingAccesses {
        let mut outlook = RemainingAccesses::default();
        for thread in 0..state.fronts.threads.len() {
            let (remaining, module) = (self.remaining_of(state, thread), self.module_of(thread));
            for line in (0..self.scene.lines as u8).filter(|line| remaining.accesses >> line & 1 != 0) {
                outlook.visit(self.path_of(module, line), remaining.reads >> line & 1 != 0);
            }
        }
        for message in &state.messages {
            let reads = matches!(&message.body, MessageBody::Request(posted) if !is_write(posted));
            match message.channel {
                Channel::ToL2 { sm, line } => {
                    outlook.visit(self.path_of(self.scene.sms[sm as usize].module, line), reads)
                }
                Channel::Up { to, .. } => outlook.visit(self.path_of(to, message.line), reads),
                _ => {}
            }
        }
        for held in &state.held {
            if let HoldReason::Park(posted) = &held.how {
                outlook.visit(self.path_of(held.module, held.line), !is_write(posted));
            }
        }
        if self.config.writes_back() {
            self.visit_by_write_backs(state, &mut outlook);
        }
        outlook
    }

    /// Dirty bytes pass every slot on their path except their own.
    fn visit_by_write_backs(&self, state: &MachineState, outlook: &mut RemainingAccesses) {
        for module in self.modules() {
            for line in 0..self.scene.lines as u8 {
                let own = self.l2_index(module, line);
                if state.l2[own].line.is_some_and(|copy| !copy.dirty.is_empty()) {
                    outlook.visit(self.path_of(module, line) & !(1 << own), false);
                }
            }
        }
    }

    /// Slots at `module` for all lines in the region around `line`.
    fn slots_of_region(&self, module: ModuleId, line: u8) -> SlotSet {
        self.lines_of_region(line).fold(0, |slots, line| slots | 1 << self.l2_index(module, line))
    }

    /// True if an access may still reach some line of the region at `module`. Otherwise a home's knowledge about a copy
    /// there makes no difference: a missing invalidation would mislead no reader.
    pub(super) fn is_visited(&self, state: &MachineState, module: ModuleId, line: u8) -> bool {
        self.outlook(state).visited & self.slots_of_region(module, line) != 0
    }

    /// Forgets copies that no remaining access can see. Returns true if an L2 had state to forget.
    pub(super) fn forget(&self, state: &mut MachineState) -> bool {
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
                    // The entry's sharers receive no access either: an invalidation would find no copy in use.
                    state.entries[entry] = None;
                    forgotten = true;
                }
            }
        }
        forgotten
    }

    fn forget_in_l1s(&self, state: &mut MachineState) {
        for sm in 0..self.scene.sms.len() as u8 {
            let loads = self.remaining_on(state, sm).loads;
            for line in (0..self.scene.lines as u8).filter(|line| loads >> line & 1 == 0) {
                let slot = &mut state.fronts.l1[self.scene.l1_index(sm, line)];
                slot.line = None;
                if let Some(pending) = &mut slot.pending {
                    // No later load checks if the miss may install its data.
                    pending.poisoned = pending.miss.mask;
                    pending.miss.invalidate();
                }
            }
        }
    }

    /// Evicts clean copies at system homes if equal to memory, while no request waits there. The eviction sends
    /// nothing, and the next access finds identical bytes.
    fn clear_homes(&self, state: &mut MachineState) -> bool {
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

    /// True if reads are forwarded immediately when they miss in an L2. Excluded if unsolicited L2 messages may travel
    /// along this path.
    pub(super) fn runs_through(&self) -> bool {
        let reductions = self.config.reductions;
        let sends_unasked = self.config.writes_back() || self.protocol.downgrades();
        reductions.postpone && reductions.eager && self.plain_misses && !sends_unasked
    }

    /// True if a clean copy exists that can no longer make a difference.
    fn is_forgotten(&self, state: &MachineState, outlook: &RemainingAccesses, module: ModuleId, line: u8) -> bool {
        let Some(copy) = state.l2[self.l2_index(module, line)].line else { return false };
        let waited = state.held.iter().any(|held| held.module == module && held.line == line);
        // Final contents at the ordering point are part of the outcome.
        let memory = state.memory[self.memory_index(Holder::Module(module), line)];
        let is_end = self.class(module, line) == Class::Own && !self.protocol.ordering_point().is_memory();
        let is_last = is_end && cells(copy.valid).any(|cell| copy.data.0[cell] != memory.0[cell]);
        // Dropping a line may send a message if L2s send downgrades.
        let looked_at = if self.protocol.downgrades() {
            outlook.visited & self.slots_of_region(module, line) != 0
        } else {
            outlook.read >> self.l2_index(module, line) & 1 != 0
        };
        copy.dirty.is_empty() && !waited && !is_last && !looked_at
    }

    /// Variants of some step suited for lone execution, if any.
    pub(super) fn eager_steps(&self, state: &MachineState) -> Vec<Step> {
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

    fn is_eager_thread(&self, state: &MachineState, thread: usize) -> bool {
        if self.loops {
            return false;
        }
        match (self.stage(state, thread), self.instruction(state, thread)) {
            (Some(Stage::Acquire(_)), _) => {
                self.is_alone(state, thread) || self.l1_is_empty(state, self.scene.sm_of[thread])
            }
            // On machines with moving pages, an access in flight pins its page.
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

    /// The unfinished threads on the SM of `thread`.
    fn mates(&self, state: &MachineState, thread: usize) -> impl Iterator<Item = usize> {
        let shares = move |&other: &usize| other != thread && self.scene.sm_of[other] == self.scene.sm_of[thread];
        (0..state.fronts.threads.len()).filter(shares).filter(|&other| self.instruction(state, other).is_some())
    }

    fn is_alone(&self, state: &MachineState, thread: usize) -> bool {
        self.mates(state, thread).next().is_none()
    }

    /// True if no future instruction in the SM's remaining threads interacts with the current access: no access to the
    /// line, no release that would wait for a store, no acquire that would drop the loaded data.
    fn is_apart(&self, state: &MachineState, thread: usize, access: &Instruction, line: u8) -> bool {
        let loads = !matches!(access, Instruction::Store { .. });
        let posts = !matches!(access, Instruction::Load { .. });
        self.mates(state, thread).all(|mate| {
            let syncs = self.syncs_left(state, mate);
            self.accesses_left(state, mate) >> line & 1 == 0 && !(posts && syncs.releases) && !(loads && syncs.drops_l1)
        })
    }

    fn l1_is_empty(&self, state: &MachineState, sm: u8) -> bool {
        (0..self.scene.lines as u8).all(|line| {
            let slot = state.fronts.l1[self.scene.l1_index(sm, line)];
            slot.line.is_none() && slot.pending.is_none()
        })
    }

    /// True if `message`, the first in the channel, may be delivered immediately.
    fn is_eager_message(&self, state: &MachineState, message: &ChannelMessage) -> bool {
        let line = message.line;
        match (message.channel, message.body) {
            (Channel::Result { .. }, _) => true,
            (Channel::Memory { .. }, _) => self.plain_misses && !self.protocol.ordering_point().is_memory(),
            (Channel::ToSm { sm, .. }, _) => {
                let RemainingActions { loads, far_loads, .. } = self.remaining_on(state, sm);
                let early = self.plain_fills && self.config.evictions != Evictions::Never;
                (if early { far_loads } else { loads }) >> line & 1 == 0
            }
            (Channel::Up { .. }, MessageBody::Request(PostedRequest { request: Request::Read { .. }, .. }))
                if self.runs_through() =>
            {
                true
            }
            (Channel::Down { to, .. }, MessageBody::Invalidate { .. }) => {
                state.entries[self.entry_index(to, line)].is_none()
                    && self.lines_of_region(line).all(|line| state.l2[self.l2_index(to, line)].line.is_none())
            }
            (Channel::Plan { module, .. }, MessageBody::Act(Action::Invalidate(_))) => {
                (0..self.scene.lines as u8).all(|line| {
                    let slot = state.l2[self.l2_index(module, line)];
                    slot.line.is_none() && slot.pending.is_none()
                })
            }
            (Channel::Down { to, .. }, MessageBody::Fill { .. }) => {
                let slot = self.l2_index(to, line);
                state.l2[slot].line.is_none() && self.outlook(state).visited >> slot & 1 == 0
            }
            (Channel::ToL2 { .. } | Channel::Up { .. }, MessageBody::Request(posted)) => {
                matches!(posted.request, Request::Read { .. })
                    && !self.runs_through()
                    && self
                        .visits(state, message.channel)
                        .is_some_and(|(module, line)| self.passes_alone(state, module, line))
            }
            _ => false,
        }
    }

    /// True if a read is the last visitor of an empty slot below the home.
    fn passes_alone(&self, state: &MachineState, module: ModuleId, line: u8) -> bool {
        let index = self.l2_index(module, line);
        let slot = state.l2[index];
        self.class(module, line) != Class::Own
            && slot.line.is_none()
            && slot.pending.is_none()
            && self.outlook(state).visited_again >> index & 1 == 0
    }
}
