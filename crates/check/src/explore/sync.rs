//! Acquires and releases beyond the SM: the host of [`tombolo_protocol::plan`].

use super::boundaries::Boundary;
use super::machine::Machine;
use super::state::{Body, Channel, Message, State, ThreadState};
use crate::litmus::Instruction;
use tombolo_protocol::drain::Wait;
use tombolo_protocol::plan::Sync;
use tombolo_protocol::{Action, BrokenRule, Coherence, Collector, Plan, Topology, l1};
use tombolo_types::{ModuleId, Scope};

impl<P: Coherence> Machine<'_, P> {
    /// First everything the SM has posted must have been taken by its L2, then the plan runs.
    pub(super) fn run_release(&self, state: &mut State, thread: usize, scope: Scope) -> bool {
        let (sm, bit) = (self.sm_of[thread], 1 << thread);
        if !state.threads[thread].begun {
            state.threads[thread].begun = true;
            self.wait(state, bit, Wait::Posted(sm.into()));
        }
        if state.threads[thread].plan.is_none() {
            if state.watched_from_sm(sm) & bit != 0 {
                return false;
            }
            let plan = self.protocol.release(Sync::Thread(scope));
            self.begin_plan(state, thread, plan);
        }
        self.run_plan(state, thread)
    }

    pub(super) fn begin_acquire(&self, state: &mut State, thread: usize, scope: Scope) {
        if state.threads[thread].plan.is_none() {
            let plan = self.protocol.acquire(Sync::Thread(scope));
            self.begin_plan(state, thread, plan);
        }
    }

    fn begin_plan(&self, state: &mut State, thread: usize, plan: impl Into<Plan>) {
        state.threads[thread].begun = true;
        let issuer = self.sms[self.sm_of[thread] as usize].module;
        let mut plan = Collector::new(plan, issuer);
        self.begin_phase(state, thread, &mut plan);
        state.threads[thread].plan = Some(plan);
    }

    fn begin_phase(&self, state: &mut State, thread: usize, plan: &mut Collector) {
        let mut asked = Vec::new();
        plan.begin_phase(self.layout, |member, action| asked.push((member, action)));
        for (member, action) in asked {
            state.threads[thread].owed |= 1 << member.0;
            if self.left_out(state, thread, member, action) {
                continue;
            }
            if self.acts_at_once(state, member, action) {
                self.act(state, member, thread, action);
            } else {
                let channel = Channel::Plan { thread: thread as u8, module: member };
                state.messages.push(Message { channel, line: 0, body: Body::Act(action) });
            }
        }
    }

    /// Whether a member's part may happen at once: it changes no cache, so that having it early only lets
    /// the thread go on early.
    fn acts_at_once(&self, state: &State, member: ModuleId, action: Action) -> bool {
        match action {
            Action::Invalidate(_) => false,
            Action::DrainInvalidations(_) | Action::AwaitStores => true,
            Action::DrainStores(_) | Action::PassOnStores | Action::Flush => {
                (0..self.lines as u8)
                    .all(|line| state.l2[self.l2_index(member, line)].line.is_none_or(|line| line.dirty.is_empty()))
                    && !self.config.writes_back()
            }
        }
    }

    /// [`BrokenRule::ReleaseDrainsOwnHomesOnly`]: the issuer asks only the homes of lines that its own thread
    /// has written. Which those are the plan cannot know; the host can.
    fn left_out(&self, state: &State, thread: usize, member: ModuleId, action: Action) -> bool {
        let drains = matches!(action, Action::DrainInvalidations(_));
        if !drains || !self.protocol.broken(BrokenRule::ReleaseDrainsOwnHomesOnly) {
            return false;
        }
        let issuer = self.sms[self.sm_of[thread] as usize].module;
        let before = &self.program.threads[thread].code[..state.threads[thread].pc as usize];
        let written = before.iter().filter(|instruction| !matches!(instruction, Instruction::Load { .. }));
        let mut lines = written.filter_map(|instruction| instruction.location()).map(|at| self.layout.cell(at).line);
        !lines.any(|line| {
            let homes = self.homes_of(issuer, line);
            homes.system == member || homes.gpu == member
        })
    }

    /// Collects what has been acknowledged; true when the plan is complete. An acknowledgment is taken as
    /// soon as it could be sent: what waits for it can be late by itself.
    pub(super) fn run_plan(&self, state: &mut State, thread: usize) -> bool {
        let Some(mut plan) = state.threads[thread].plan else { return false };
        let mut complete = state.threads[thread].owed == 0;
        let mut member = 0;
        while member < self.layout.modules() {
            let module = ModuleId(member);
            member += 1;
            if state.threads[thread].owed >> module.0 & 1 == 0 || self.owes(state, thread, module) {
                continue;
            }
            state.threads[thread].owed &= !(1 << module.0);
            if plan.acknowledge() {
                self.begin_phase(state, thread, &mut plan);
                complete = state.threads[thread].owed == 0;
                member = 0;
            }
        }
        state.threads[thread].plan = Some(plan);
        complete
    }

    /// Whether `module` cannot acknowledge yet. What the members of a phase wait for moves on to what it causes at
    /// other L2s, so they acknowledge together: that is when the phase ends in any case.
    fn owes(&self, state: &State, thread: usize, module: ModuleId) -> bool {
        let asked = Channel::Plan { thread: thread as u8, module };
        state.watched() >> thread & 1 != 0 || state.messages.iter().any(|message| message.channel == asked)
    }

    /// Lets all threads into the next kernel: every SM's stores are taken, then the plan of the boundary's release
    /// runs, then that of its acquire, and every L1 is dropped. The first thread that waits there stands for the
    /// command processor.
    pub(super) fn pass_boundary(&self, state: &mut State) {
        let threads = || 0..state.threads.len();
        let Some(first) = threads().find(|&thread| self.is_at_boundary(state, thread)) else { return };
        let has_arrived = |thread| match self.instruction(state, thread) {
            Some(Instruction::KernelBoundary) | None => self.has_results(state, thread),
            Some(_) => false,
        };
        if !threads().all(has_arrived) || !self.has_run_boundary(state, first) {
            return;
        }
        if l1::acquire_invalidates(&self.protocol, Scope::Sys) {
            for sm in 0..self.sms.len() as u8 {
                self.invalidate_l1(state, sm);
            }
        }
        state.threads[first] = ThreadState { pc: state.threads[first].pc, ..ThreadState::default() };
        for thread in 0..state.threads.len() {
            state.threads[thread].pc += u16::from(self.is_at_boundary(state, thread));
        }
        self.settle(state);
    }

    /// Whether `thread` waits for its next kernel.
    pub(super) fn is_at_boundary(&self, state: &State, thread: usize) -> bool {
        matches!(self.instruction(state, thread), Some(Instruction::KernelBoundary))
    }

    /// Runs a boundary as far as it goes: the SMs' stores, then the plans of the end of a kernel and of the next launch. The
    /// thread's stage is 0 while it waits for the stores, then one more than the place of the plan at hand.
    fn has_run_boundary(&self, state: &mut State, first: usize) -> bool {
        let bit = 1 << first;
        if !state.threads[first].begun {
            (0..self.sms.len() as u16).for_each(|sm| self.wait(state, bit, Wait::Posted(sm)));
            state.threads[first].begun = true;
        }
        if state.threads[first].stage == 0 {
            if (0..self.sms.len() as u8).any(|sm| state.watched_from_sm(sm) & bit != 0) {
                return false;
            }
        } else if !self.run_plan(state, first) {
            return false;
        }
        let boundary = self.boundary_of(state, first);
        while let Some(plan) = self.boundary_plan(boundary, state.threads[first].stage) {
            state.threads[first].stage += 1;
            self.begin_plan(state, first, plan);
            if !self.run_plan(state, first) {
                return false;
            }
        }
        true
    }

    /// The plan at `index` of those of a boundary: first those of a kernel's end, then those of the launch.
    fn boundary_plan(&self, Boundary { end, launch }: Boundary, index: u8) -> Option<Plan> {
        let at_end = |index| end.plan(&self.protocol, index);
        let ended = (0..).take_while(|index| at_end(*index).is_some()).count() as u8;
        if index < ended { at_end(index) } else { launch.plan(&self.protocol, index - ended) }
    }

    /// The boundary that `thread` waits at.
    fn boundary_of(&self, state: &State, thread: usize) -> Boundary {
        let before = &self.program.threads[thread].code[..state.threads[thread].pc as usize];
        let passed = before.iter().filter(|instruction| **instruction == Instruction::KernelBoundary).count();
        self.boundaries[passed]
    }

    /// Whether the plan of an acquire at hand has run, so that the L1 may be invalidated.
    pub(super) fn acquire_is_ready(&self, state: &State, thread: usize) -> bool {
        state.threads[thread].plan.is_some() && state.threads[thread].owed == 0
    }
}
