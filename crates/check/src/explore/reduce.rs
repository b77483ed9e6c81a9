//! Reductions: fewer states, identical outcomes.
//!
//! **Forget.** A copy that no remaining load or atomic can reach is dropped, equivalent to an eviction. A directory
//! entry that no remaining access can reach is dropped, equivalent to a replacement. A copy at a system home that is
//! the ordering point is also dropped if it equals memory, because the next access finds identical bytes in memory.
//!
//! **Eager.** The search executes a step at once, without alternatives, under two conditions. No other step can observe
//! the early execution. The early execution permits later steps earlier, and forces none. Eager steps:
//!
//! - a thread alone on its SM completes an acquire, or issues an access to a line without a pending fill in the L1. No
//!   other thread uses the L1, and the request may stay in the channel for an arbitrary time. A thread with neighbours
//!   on the SM also completes an acquire at once if the L1 is empty. The thread issues an access at once if none of the
//!   neighbours' future instructions interacts with the access;
//! - the result of an atomic arrives: only a register changes;
//! - a fill arrives at an L1, while no load beyond `.cta` to the line may follow. Later loads within `.cta` have two
//!   branches anyway: the line is present, or evicted. Loads beyond `.cta` never hit a copy, but may join the miss.
//!   Requirement: the L1 installs no data after a later access during the miss
//!   ([`fills_are_plain`](super::probe::fills_are_plain)). Without this property, or without evictions, no load to the
//!   line may follow at all;
//! - an invalidation arrives at an L2 with neither a copy nor a directory entry, or an acquire's invalidation at an
//!   empty cache. The sender's wait then ends, or continues for invalidations already in flight;
//! - a read arrives at an empty L2 slot below the home, as the last access to this slot: the L2 only forwards the read;
//! - the fill for such a read arrives, if it is the first in the channel;
//! - memory's reply arrives, if slots never change during a miss: the request could have been equally late. Excluded if
//!   memory is the ordering point, because other modules write to memory in the meantime;
//! - a read arrives that an L2 has forwarded (see Postpone).
//!
//! **Postpone.** A request stays in the channel if the destination would only park the request. Both waits are
//! equivalent: a parked request blocks later requests to the slot, and these requests may stay in their channels too. A
//! read that misses in an L2 is therefore delivered only when the channel to the next level is empty. The L2s then
//! forward the read as far as possible, because before its delivery the read could have waited in front of the first
//! L2. Two requirements: a slot never changes during a miss ([`misses_are_plain`](super::probe::misses_are_plain)), and
//! no L2 sends unsolicited messages (write-backs, downgrades) on the path to the home.
//!
//! **Pages.** A page change waits until no access from its modules is in flight, and then happens in a single step. The
//! real change begins earlier: modules refuse new accesses while older accesses drain. A refused access only waits, and
//! any thread may wait in any case. During the change no module uses the page, so no module sees a half copied page. A
//! module with a late mapping only continues late. A request in flight thus pins its line's home: the reductions above
//! rely on this. No reduction issues an access early on these machines, because the access would pin its page. Broken
//! page rules show their effect between the steps of a change: with a broken page rule nothing is reduced.
//!
//! A cycle of eager steps would exclude all other steps forever. No such cycle exists: each eager step consumes a
//! message, or an instruction in a program without loops.

use super::config::Evictions;
use super::machine::Machine;
use super::sm::SmHost;
use super::sm::operation;
use super::state::{Channel, ChannelMessage, HoldReason, MachineState, MessageBody, PostedRequest, SlotSet};
use super::step::Step;
use super::values::cells;
use crate::litmus::Instruction;
use std::cell::OnceCell;
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
    /// Lines that the thread may load at a scope beyond `.cta`.
    far_loads: LineSet,
    /// Lines that the thread may load or update.
    reads: LineSet,
    /// Lines that the thread may access.
    accesses: LineSet,
    /// Possible effects of the thread's acquires and releases on caches.
    syncs: SyncEffects,
}

/// Possible effects of acquires and releases on caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SyncEffects {
    /// A release: its wait marks messages sent by L2s.
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
    /// Slots with accesses of any kind. All unissued accesses of a thread to a line count as one access.
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

/// Remaining actions from each instruction of `code` onward, with an empty element after the last instruction.
/// `line_of` returns the line for an instruction's location, `syncs` the synchronisation effects.
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

    /// Adds future write-backs: dirty bytes visit every slot on the path to the home, except the slot with the copy.
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
        self.region_lines[usize::from(self.region(line))] << self.l2_index(module, 0)
    }

    /// True if an access may still reach some line of the region at `module`. Otherwise the home's record of a copy at
    /// `module` is irrelevant: without a later reader a missing invalidation has no effect.
    pub(super) fn is_visited(&self, state: &MachineState, module: ModuleId, line: u8) -> bool {
        self.outlook(state).visited & self.slots_of_region(module, line) != 0
    }

    /// Forgets copies that no remaining access can see. Returns true if an L2 had state to forget.
    pub(super) fn forget(&self, state: &mut MachineState) -> bool {
        self.forget_in_l1s(state);
        let mut forgotten = !self.protocol.memory_answers() && self.clear_homes(state);
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
                    // Accesses to a sharer's copy would count here too, because their path ends at the home. Without
                    // such accesses an invalidation has no effect.
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
                    // No load to this line follows, so the fill need not install its data. The same marks in all such
                    // states let equivalent states compare equal.
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

    /// True if L2s forward missing reads at once, as far as possible (see Postpone). Excluded if L2s may send
    /// unsolicited messages on the path to the home.
    pub(super) fn runs_through(&self) -> bool {
        let reductions = self.config.reductions;
        let sends_unasked = self.config.writes_back() || self.protocol.downgrades();
        reductions.postpone && reductions.eager && self.plain_misses && !sends_unasked
    }

    /// True if the slot holds a clean copy without effect on any remaining access or on the outcome.
    fn is_forgotten(&self, state: &MachineState, outlook: &RemainingAccesses, module: ModuleId, line: u8) -> bool {
        let Some(copy) = state.l2[self.l2_index(module, line)].line else { return false };
        let waited = state.held.iter().any(|held| held.module == module && held.line == line);
        // Final contents at the ordering point are part of the outcome.
        let memory = state.memory[self.memory_index(Holder::Module(module), line)];
        let is_home = self.class(module, line) == Class::Own;
        let is_end = is_home && !self.protocol.ordering_point().is_memory();
        let is_last = is_end && cells(copy.valid).any(|cell| copy.data.0[cell] != memory.0[cell]);
        // If L2s send downgrades, dropping a line may send a message: then any access to the region counts. A store that
        // passes a snooped home drops its copy.
        let is_snooped = is_home && self.protocol.home_is_snooped();
        let looked_at = if self.protocol.downgrades() || is_snooped {
            outlook.visited & self.slots_of_region(module, line) != 0
        } else {
            outlook.read >> self.l2_index(module, line) & 1 != 0
        };
        copy.dirty.is_empty() && !waited && !is_last && !looked_at
    }

    /// Adds all variants of one eager step (with and without evictions) to the empty list `steps`; none if no step is
    /// eager.
    pub(super) fn eager_steps(&self, state: &MachineState, steps: &mut Vec<Step>) {
        for thread in 0..state.fronts.threads.len() {
            if self.is_eager_thread(state, thread) {
                self.steps_of(state, thread, steps);
                if !steps.is_empty() {
                    return;
                }
            }
        }
        let outlook = OnceCell::new();
        let outlook = || outlook.get_or_init(|| self.outlook(state));
        for (index, message) in state.messages.iter().enumerate() {
            let is_first = || !state.messages[..index].iter().any(|earlier| earlier.channel == message.channel);
            if self.is_eager_message(state, message, &outlook) && is_first() {
                self.delivery_steps(state, message.channel, steps);
                if !steps.is_empty() {
                    return;
                }
            }
        }
    }

    fn is_eager_thread(&self, state: &MachineState, thread: usize) -> bool {
        if self.loops {
            return false;
        }
        match (self.stage(state, thread), self.instruction(state, thread)) {
            (Some(Stage::Acquire(_)), _) => {
                self.is_alone(state, thread) || self.l1_is_empty(state, self.scene.sm_of[thread])
            }
            // Not on machines with moving pages: an access in flight pins its page.
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

    /// The other unfinished threads on the SM of `thread`.
    fn mates(&self, state: &MachineState, thread: usize) -> impl Iterator<Item = usize> {
        let shares = move |&other: &usize| other != thread && self.scene.sm_of[other] == self.scene.sm_of[thread];
        (0..state.fronts.threads.len()).filter(shares).filter(|&other| self.instruction(state, other).is_some())
    }

    fn is_alone(&self, state: &MachineState, thread: usize) -> bool {
        self.mates(state, thread).next().is_none()
    }

    /// True if no future instruction in the SM's other threads interacts with the current access: no access to the
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

    /// True if `message`, the first in the channel, may be delivered immediately; `outlook` gives the remaining accesses
    /// in `state`.
    fn is_eager_message<'o>(
        &self,
        state: &MachineState,
        message: &ChannelMessage,
        outlook: &impl Fn() -> &'o RemainingAccesses,
    ) -> bool {
        let line = message.line;
        match (message.channel, message.body) {
            (Channel::Result { .. }, _) => true,
            (Channel::Memory { .. }, _) => self.plain_misses && !self.protocol.memory_answers(),
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
                state.l2[slot].line.is_none() && outlook().visited >> slot & 1 == 0
            }
            (Channel::ToL2 { .. } | Channel::Up { .. }, MessageBody::Request(posted)) => {
                matches!(posted.request, Request::Read { .. })
                    && !self.runs_through()
                    && self
                        .visits(state, message.channel)
                        .is_some_and(|(module, line)| self.passes_alone(state, outlook, module, line))
            }
            _ => false,
        }
    }

    /// True if the slot is empty and below the home, and no access besides the arriving read may still reach the slot.
    fn passes_alone<'o>(
        &self,
        state: &MachineState,
        outlook: &impl Fn() -> &'o RemainingAccesses,
        module: ModuleId,
        line: u8,
    ) -> bool {
        let index = self.l2_index(module, line);
        let slot = state.l2[index];
        self.class(module, line) != Class::Own
            && slot.line.is_none()
            && slot.pending.is_none()
            && outlook().visited_again >> index & 1 == 0
    }
}
