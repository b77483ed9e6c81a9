//! Acquires and releases beyond the SM: the host of [`tombolo_protocol::plan`].
//!
//! Each release phase marks the awaited stores and invalidations within its scope. A mark moves on to a message's
//! consequences: from a store to the store forwarded by a GPU home, from an invalidation to all messages sent by a GPU
//! home for the region. The phase ends with the last mark, the earliest possible acknowledgment.

use super::memory_system::MemorySystem;
use super::sm::SmHost;
use super::state::ThreadState;
use crate::litmus::Instruction;
use tombolo_protocol::plan::Sync;
use tombolo_protocol::{Collector, PhasePlan, Protocol, Topology, l1};
use tombolo_types::{ModuleId, Scope};

/// Plans, independent from the memory system below the L1s.
pub(super) trait PlanHost: MemorySystem {
    /// Runs a release: first the L2 must have served every request posted by the SM, then the plan runs.
    fn run_release(&self, state: &mut Self::State, thread: usize, scope: Scope) -> bool {
        let sm = self.scene().sm_of[thread];
        if !self.fronts(state).threads[thread].begun {
            self.fronts_mut(state).threads[thread].begun = true;
            self.await_posted(state, thread, sm);
        }
        if self.fronts(state).threads[thread].plan.is_none() {
            if self.awaits_posted(state, thread, sm) {
                return false;
            }
            let plan = self.protocol().release(Sync::Thread(scope));
            self.begin_plan(state, thread, plan);
        }
        self.run_plan(state, thread)
    }

    fn begin_acquire(&self, state: &mut Self::State, thread: usize, scope: Scope) {
        if self.fronts(state).threads[thread].plan.is_none() {
            let plan = self.protocol().acquire(Sync::Thread(scope));
            self.begin_plan(state, thread, plan);
        }
    }

    fn begin_plan(&self, state: &mut Self::State, thread: usize, plan: impl Into<PhasePlan>) {
        self.fronts_mut(state).threads[thread].begun = true;
        let issuer = self.scene().sms[self.scene().sm_of[thread] as usize].module;
        let mut plan = Collector::new(plan, issuer);
        self.begin_phase(state, thread, &mut plan);
        self.fronts_mut(state).threads[thread].plan = Some(plan);
    }

    fn begin_phase(&self, state: &mut Self::State, thread: usize, plan: &mut Collector) {
        let mut asked = Vec::new();
        plan.begin_phase(self.scene().layout, |member, action| asked.push((member, action)));
        for (member, action) in asked {
            self.fronts_mut(state).threads[thread].owed.add(member);
            self.ask(state, thread, member, action);
        }
    }

    /// Collects acknowledgments; returns true when the plan is complete. An acknowledgment is accepted at the earliest
    /// possible time: a waiting thread can be late by itself.
    fn run_plan(&self, state: &mut Self::State, thread: usize) -> bool {
        let Some(mut plan) = self.fronts(state).threads[thread].plan else { return false };
        let mut complete = self.fronts(state).threads[thread].owed.is_empty();
        let mut member = 0;
        while member < self.scene().layout.modules() {
            let module = ModuleId(member);
            member += 1;
            let is_owed = self.fronts(state).threads[thread].owed.contains(module);
            if !is_owed || self.owes(state, thread, module) {
                continue;
            }
            self.fronts_mut(state).threads[thread].owed.remove(module);
            if plan.acknowledge() {
                self.begin_phase(state, thread, &mut plan);
                complete = self.fronts(state).threads[thread].owed.is_empty();
                member = 0;
            }
        }
        self.fronts_mut(state).threads[thread].plan = Some(plan);
        complete
    }

    /// Admits all threads to the next kernel: every SM's stores are served, then the plan for the boundary's release
    /// runs, then the plan for its acquire, and every L1 is dropped. The first waiting thread represents the command
    /// processor. Returns true if the threads have passed.
    fn pass_boundary(&self, state: &mut Self::State) -> bool {
        let count = self.scene().program.threads.len();
        let Some(first) = (0..count).find(|&thread| self.is_at_boundary(state, thread)) else { return false };
        let has_arrived = |thread| match self.instruction(state, thread) {
            Some(Instruction::KernelBoundary) | None => self.has_results(state, thread),
            Some(_) => false,
        };
        if !(0..count).all(has_arrived) || !self.has_run_boundary(state, first) {
            return false;
        }
        if l1::acquire_invalidates(self.protocol(), Scope::Sys) {
            for sm in 0..self.scene().sms.len() as u8 {
                self.invalidate_l1(state, sm);
            }
        }
        self.fronts_mut(state).arrivals.fill(0);
        let pc = self.fronts(state).threads[first].pc;
        self.fronts_mut(state).threads[first] = ThreadState { pc, ..ThreadState::default() };
        for thread in 0..count {
            let passes = self.is_at_boundary(state, thread);
            self.fronts_mut(state).threads[thread].pc += u16::from(passes);
        }
        true
    }

    /// True if `thread` waits for its next kernel.
    fn is_at_boundary(&self, state: &Self::State, thread: usize) -> bool {
        matches!(self.instruction(state, thread), Some(Instruction::KernelBoundary))
    }

    /// Advances a boundary to the furthest possible point: the SMs' stores, then the plans for the end of the kernel
    /// and for the next launch. The thread's stage is 0 during the wait for stores, then the index of the current plan
    /// plus 1.
    fn has_run_boundary(&self, state: &mut Self::State, first: usize) -> bool {
        let sms = || 0..self.scene().sms.len() as u8;
        if !self.fronts(state).threads[first].begun {
            sms().for_each(|sm| self.await_posted(state, first, sm));
            self.fronts_mut(state).threads[first].begun = true;
        }
        if self.fronts(state).threads[first].stage == 0 {
            if sms().any(|sm| self.awaits_posted(state, first, sm)) {
                return false;
            }
        } else if !self.run_plan(state, first) {
            return false;
        }
        let number = self.scene().boundaries_passed(self.fronts(state), first);
        loop {
            let index = self.fronts(state).threads[first].stage;
            if !self.copies_are_over(state, number, index) {
                return false;
            }
            let Some(plan) = self.plan_at_boundary(number, index) else { return true };
            self.fronts_mut(state).threads[first].stage += 1;
            self.begin_plan(state, first, plan);
            if !self.run_plan(state, first) {
                return false;
            }
        }
    }

    /// True if the acquire's current plan is complete, and the L1 may be invalidated.
    fn acquire_is_ready(&self, state: &Self::State, thread: usize) -> bool {
        let at = &self.fronts(state).threads[thread];
        at.plan.is_some() && at.owed.is_empty()
    }
}

impl<B: MemorySystem> PlanHost for B {}
