//! SMs: threads, their stages and the L1, hosting [`tombolo_protocol::front`] and [`tombolo_protocol::l1`].

use super::host::{L1Fill, L1Slots, WaitingRegister};
use super::memory_system::MemorySystem;
use super::state::{AwaitedResult, FrontEnds, RegisterState, Violation};
use super::sync::PlanHost;
use super::values::{Values, mask_of};
use crate::litmus::{BarrierRole, Instruction, Location, Operand, Register, ThreadPlacement, Update, Value};
use tombolo_protocol::front::{self, Stage, ThreadOperation};
use tombolo_protocol::host;
use tombolo_protocol::l1::{self, L1Pending, Load};
use tombolo_protocol::{Protocol, Request};
use tombolo_types::{Mask, Order, Scope};

/// Maximum local instructions per thread at a time: a program above it loops without memory accesses. Assumed: litmus
/// tests compute a few values.
const LOCAL_STEPS: usize = 1000;

/// Threads on SMs, independent from the memory system below.
pub(super) trait SmHost: MemorySystem {
    /// The current instruction, or `None` when the thread is done.
    fn instruction(&self, state: &Self::State, thread: usize) -> Option<&Instruction> {
        self.scene().instruction(self.fronts(state), thread)
    }

    /// The current stage of a memory operation or fence.
    fn stage(&self, state: &Self::State, thread: usize) -> Option<Stage> {
        self.scene().stage(self.fronts(state), thread)
    }

    /// Advances every thread until it needs an explicit step: executes register instructions, passes completed waits
    /// and plans with all acknowledgments. No other thread can observe these actions, and an early execution only makes
    /// the thread faster; each thread can always be late by itself.
    fn settle(&self, state: &mut Self::State) {
        loop {
            for thread in 0..self.fronts(state).threads.len() {
                for _ in 0..LOCAL_STEPS {
                    if !(self.run_local(state, thread) || self.pass_stage(state, thread)) {
                        break;
                    }
                }
            }
            if !self.pass_barriers(state) && !self.pass_boundary(state) {
                return;
            }
        }
    }

    /// Runs a single register instruction if its inputs and output register are ready.
    fn run_local(&self, state: &mut Self::State, thread: usize) -> bool {
        let Some(instruction) = self.instruction(state, thread) else { return false };
        let pc = self.fronts(state).threads[thread].pc + 1;
        let next = match *instruction {
            Instruction::Move { into, value } => {
                let Some(value) = self.value(state, thread, value) else { return false };
                self.set(state, thread, into, value).then_some(pc)
            }
            Instruction::Compute { operation, into, left, right } => {
                let (Some(left), Some(right)) = (self.value(state, thread, left), self.value(state, thread, right))
                else {
                    return false;
                };
                self.set(state, thread, into, operation.apply(left, right)).then_some(pc)
            }
            Instruction::Branch { comparison, left, right, target } => {
                let (Some(left), Some(right)) = (self.value(state, thread, left), self.value(state, thread, right))
                else {
                    return false;
                };
                Some(if comparison.holds(left, right) { target as u16 } else { pc })
            }
            Instruction::Jump { target } => Some(target as u16),
            Instruction::Load { .. }
            | Instruction::Store { .. }
            | Instruction::Atomic { .. }
            | Instruction::Fence { .. }
            | Instruction::Barrier { .. }
            | Instruction::KernelBoundary => None,
        };
        let Some(next) = next else { return false };
        self.fronts_mut(state).threads[thread].pc = next;
        true
    }

    fn value(&self, state: &Self::State, thread: usize, operand: Operand) -> Option<Value> {
        match operand {
            Operand::Value(value) => Some(value),
            Operand::Register(register) => {
                let register = self.fronts(state).registers[self.scene().flat(thread, register) as usize];
                register.awaits.is_none().then_some(register.value)
            }
        }
    }

    /// Sets a register unless it still awaits an older result.
    fn set(&self, state: &mut Self::State, thread: usize, into: Register, value: Value) -> bool {
        let into = self.scene().flat(thread, into);
        let register = &mut self.fronts_mut(state).registers[into as usize];
        if register.awaits.is_some() {
            return false;
        }
        register.value = value;
        true
    }

    /// Passes the current stage if the stage only waits and nothing remains to wait for, or begins the waiting.
    fn pass_stage(&self, state: &mut Self::State, thread: usize) -> bool {
        let Some(stage) = self.stage(state, thread) else { return false };
        let passed = match stage {
            Stage::AwaitLoads => self.has_results(state, thread),
            Stage::AwaitResult => {
                let into = self.instruction(state, thread).and_then(result_register);
                into.is_none_or(|into| {
                    self.fronts(state).registers[self.scene().flat(thread, into) as usize].awaits.is_none()
                })
            }
            Stage::Release(scope) => self.run_release(state, thread, scope),
            Stage::Acquire(scope) => {
                // The plan advances automatically; dropping the L1 afterwards is a separate step.
                self.begin_acquire(state, thread, scope);
                self.run_plan(state, thread);
                false
            }
            Stage::Issue => false,
        };
        if passed {
            self.next_stage(state, thread);
        }
        passed
    }

    /// True if no register of `thread` awaits a result.
    fn has_results(&self, state: &Self::State, thread: usize) -> bool {
        self.scene().registers_of(thread).all(|register| self.fronts(state).registers[register].awaits.is_none())
    }

    fn next_stage(&self, state: &mut Self::State, thread: usize) {
        let at = &mut self.fronts_mut(state).threads[thread];
        at.stage += 1;
        at.begun = false;
        at.plan = None;
        if self.stage(state, thread).is_none() {
            let at = &mut self.fronts_mut(state).threads[thread];
            at.stage = 0;
            at.pc += 1;
        }
    }

    /// Performs the last action of an acquire.
    fn finish_acquire(&self, state: &mut Self::State, thread: usize, scope: Scope) {
        if l1::acquire_invalidates(self.protocol(), scope) {
            self.invalidate_l1(state, self.scene().sm_of[thread]);
        }
        self.next_stage(state, thread);
    }

    fn invalidate_l1(&self, state: &mut Self::State, sm: u8) {
        let first = self.scene().l1_index(sm, 0);
        host::invalidate_bulk(&mut L1Slots(&mut self.fronts_mut(state).l1[first..first + self.scene().lines]));
    }

    /// True if the current access has its operands and a free destination register.
    fn can_issue(&self, state: &Self::State, thread: usize) -> bool {
        let free =
            |into: Register| self.fronts(state).registers[self.scene().flat(thread, into) as usize].awaits.is_none();
        match self.instruction(state, thread) {
            Some(Instruction::Load { into, .. }) => free(*into),
            Some(Instruction::Store { value, .. }) => self.value(state, thread, *value).is_some(),
            Some(Instruction::Atomic { into, update, .. }) => {
                into.is_none_or(free) && self.with_values(state, thread, *update).is_some()
            }
            _ => false,
        }
    }

    /// Issues the current access. Returns false, with no change, if it must wait.
    fn issue(&self, state: &mut Self::State, thread: usize, evict_first: bool) -> bool {
        let Some(instruction) = self.instruction(state, thread) else { return false };
        let order = |order| self.scene().order(thread, order);
        let issued = match *instruction {
            Instruction::Load { order: of, into, location } => {
                self.issue_load(state, thread, order(of), into, location, evict_first)
            }
            Instruction::Store { order: of, location, value } => {
                self.issue_store(state, thread, order(of), location, value)
            }
            Instruction::Atomic { order: of, into, location, update } => {
                self.issue_atomic(state, thread, order(of), into, location, update)
            }
            Instruction::Fence { .. }
            | Instruction::Move { .. }
            | Instruction::Compute { .. }
            | Instruction::Barrier { .. }
            | Instruction::KernelBoundary
            | Instruction::Branch { .. }
            | Instruction::Jump { .. } => false,
        };
        if issued {
            self.next_stage(state, thread);
        }
        issued
    }

    fn issue_load(
        &self,
        state: &mut Self::State,
        thread: usize,
        order: Order,
        into: Register,
        location: Location,
        evict_first: bool,
    ) -> bool {
        let (sm, at, register) =
            (self.scene().sm_of[thread], self.scene().layout.cell(location), self.scene().flat(thread, into));
        let index = self.scene().l1_index(sm, at.line);
        if self.fronts(state).registers[register as usize].awaits.is_some() {
            return false;
        }
        let mut slot = self.fronts(state).l1[index];
        if evict_first {
            slot.line = None;
        }
        let mask = self.protocol().options().sectors.widen(mask_of(at.cell));
        let result = l1::load(self.protocol(), &mut slot.line, || slot.pending, mask, order.scope);
        let awaits = Some(AwaitedResult::Load { line: at.line, cell: at.cell });
        match result {
            Load::Hit(data) => self.fronts_mut(state).registers[register as usize].value = data.0[at.cell as usize],
            Load::Stall => return false,
            Load::Wait { asked, .. } => {
                self.fronts_mut(state).registers[register as usize] = RegisterState { value: 0, awaits };
                if !asked.is_empty() {
                    slot.pending = Some(L1Pending::and(slot.pending, asked, order.scope));
                    self.post(state, sm, at.line, Request::Read { mask: asked, scope: order.scope }, None);
                }
            }
        }
        self.fronts_mut(state).l1[index] = slot;
        true
    }

    fn issue_store(
        &self,
        state: &mut Self::State,
        thread: usize,
        order: Order,
        location: Location,
        value: Operand,
    ) -> bool {
        let Some(value) = self.value(state, thread, value) else { return false };
        let (sm, at) = (self.scene().sm_of[thread], self.scene().layout.cell(location));
        let mut data = Values::default();
        data.0[at.cell as usize] = value;
        let mask = mask_of(at.cell);
        let index = self.scene().l1_index(sm, at.line);
        let slot = &mut self.fronts_mut(state).l1[index];
        l1::store(self.protocol(), &mut slot.line, &mut slot.pending, mask, data);
        self.post(state, sm, at.line, Request::Write { mask, scope: order.scope, data, tracked: true }, None);
        true
    }

    fn issue_atomic(
        &self,
        state: &mut Self::State,
        thread: usize,
        order: Order,
        into: Option<Register>,
        location: Location,
        update: Update,
    ) -> bool {
        let Some(update) = self.with_values(state, thread, update) else { return false };
        let result = into.map(|into| self.scene().flat(thread, into));
        let (sm, at) = (self.scene().sm_of[thread], self.scene().layout.cell(location));
        if let Some(register) = result {
            if self.fronts(state).registers[register as usize].awaits.is_some() {
                return false;
            }
            let awaits = Some(AwaitedResult::Atomic { line: at.line, cell: at.cell });
            self.fronts_mut(state).registers[register as usize] = RegisterState { value: 0, awaits };
        }
        let index = self.scene().l1_index(sm, at.line);
        let slot = &mut self.fronts_mut(state).l1[index];
        let mask = mask_of(at.cell);
        l1::atomic(self.protocol(), &mut slot.line, &mut slot.pending, mask);
        let request = Request::Atomic { mask, scope: order.scope, update, returns: result.is_some() };
        self.post(state, sm, at.line, request, result);
        true
    }

    /// The update with operand values in place of registers. Returns `None` if an operand register still awaits a
    /// value.
    fn with_values(&self, state: &Self::State, thread: usize, update: Update) -> Option<Update> {
        let value = |operand| self.value(state, thread, operand).map(Operand::Value);
        Some(match update {
            Update::Apply(operation, operand) => Update::Apply(operation, value(operand)?),
            Update::Exchange(operand) => Update::Exchange(value(operand)?),
            Update::CompareAndSwap { compare, new } => {
                Update::CompareAndSwap { compare: value(compare)?, new: value(new)? }
            }
        })
    }

    /// The fill for an L1 miss arrives: every load with a pending register receives a value.
    fn take_l1_fill(&self, state: &mut Self::State, sm: u8, line: u8, mask: Mask, data: Values) {
        let index = self.scene().l1_index(sm, line);
        let Some(pending) = self.fronts(state).l1[index].pending else {
            self.wrong(state, Violation::Unexpected("a fill that no L1 waits for"));
            return;
        };
        let waiting = self.loading(state, sm, line);
        let FrontEnds { l1, registers, .. } = self.fronts_mut(state);
        let (protocol, slot) = (self.protocol(), &mut l1[index]);
        host::fill(protocol, &mut L1Fill { protocol, slot, registers, waiting, pending, mask, data }, mask);
    }

    /// Registers in an SM's threads with a pending load of `line`.
    fn loading(&self, state: &Self::State, sm: u8, line: u8) -> Vec<WaitingRegister> {
        let threads = (0..self.fronts(state).threads.len()).filter(|&thread| self.scene().sm_of[thread] == sm);
        let awaiting = |register: usize| match self.fronts(state).registers[register].awaits {
            Some(AwaitedResult::Load { line: from, cell }) if from == line => {
                Some(WaitingRegister::new(register, cell))
            }
            Some(AwaitedResult::Load { .. } | AwaitedResult::Atomic { .. }) | None => None,
        };
        threads.flat_map(|thread| self.scene().registers_of(thread)).filter_map(awaiting).collect()
    }

    /// The result of an atomic arrives.
    fn take_result(&self, state: &mut Self::State, register: u16, data: Values) {
        let index = register as usize;
        match self.fronts(state).registers[index].awaits {
            Some(AwaitedResult::Atomic { cell, .. }) => {
                self.fronts_mut(state).registers[index] = RegisterState { value: data.0[cell as usize], awaits: None };
            }
            Some(AwaitedResult::Load { .. }) | None => {
                self.wrong(state, Violation::Unexpected("a result that no register awaits"));
            }
        }
    }

    /// Lets a thread arrive at a barrier without waiting, or opens a barrier for the threads that wait. Returns true if
    /// a thread has moved on.
    fn pass_barriers(&self, state: &mut Self::State) -> bool {
        for thread in 0..self.fronts(state).threads.len() {
            let Some(&Instruction::Barrier { id, role, count }) = self.instruction(state, thread) else { continue };
            let cta = self.scene().program.threads[thread].placement;
            let arrivals = self.scene().arrivals_at(cta, id);
            if role == BarrierRole::Arrive {
                if self.stage(state, thread) != Some(Stage::Issue) {
                    continue;
                }
                self.fronts_mut(state).arrivals[arrivals.expect("the thread arrives")] += 1;
                self.next_stage(state, thread);
                self.open_barrier(state, (cta, id), count);
                return true;
            }
            if self.open_barrier(state, (cta, id), count) {
                return true;
            }
        }
        false
    }

    /// Opens a barrier, given by its CTA and number, if all have arrived. Returns true if it opens.
    fn open_barrier(&self, state: &mut Self::State, (cta, id): (ThreadPlacement, u32), count: Option<u32>) -> bool {
        let arrivals = self.scene().arrivals_at(cta, id);
        let (waiting, alive) = self.at_barrier(state, cta, id);
        let passed = arrivals.map_or(0, |at| u32::from(self.fronts(state).arrivals[at]));
        let opens = front::barrier_opens(self.protocol(), waiting.len() as u32 + passed, count, alive);
        if opens {
            waiting.into_iter().for_each(|mate| self.next_stage(state, mate));
            if let Some(at) = arrivals {
                self.fronts_mut(state).arrivals[at] = 0;
            }
        }
        opens
    }

    /// The threads that wait at barrier `id` of a CTA, and the number of its threads that have not ended the kernel.
    fn at_barrier(&self, state: &Self::State, cta: ThreadPlacement, id: u32) -> (Vec<usize>, u32) {
        let threads = &self.scene().program.threads;
        let mates = || (0..threads.len()).filter(|&mate| threads[mate].placement == cta);
        let waits = |&mate: &usize| {
            let here = matches!(self.instruction(state, mate),
                Some(Instruction::Barrier { id: other, role: BarrierRole::Sync, .. }) if *other == id);
            here && self.stage(state, mate) == Some(Stage::Issue)
        };
        let lives = |&mate: &usize| !matches!(self.instruction(state, mate), Some(Instruction::KernelBoundary) | None);
        (mates().filter(waits).collect(), mates().filter(lives).count() as u32)
    }
}

impl<B: MemorySystem> SmHost for B {}

fn result_register(instruction: &Instruction) -> Option<Register> {
    match *instruction {
        Instruction::Load { into, .. } => Some(into),
        Instruction::Atomic { into, .. } => into,
        _ => None,
    }
}

/// Classifies an instruction for [`tombolo_protocol::front`]; `None` for register and control instructions.
pub(super) fn operation(instruction: &Instruction) -> Option<(ThreadOperation, Order)> {
    match *instruction {
        Instruction::Load { order, .. } => Some((ThreadOperation::Load, order)),
        Instruction::Store { order, .. } => Some((ThreadOperation::Store, order)),
        Instruction::Atomic { order, into: Some(_), .. } => Some((ThreadOperation::Atomic, order)),
        Instruction::Atomic { order, into: None, .. } => Some((ThreadOperation::Reduction, order)),
        Instruction::Fence { order } => Some((ThreadOperation::Fence, order)),
        Instruction::Barrier { .. } => Some((ThreadOperation::Barrier, Order::WEAK)),
        Instruction::Move { .. }
        | Instruction::Compute { .. }
        | Instruction::KernelBoundary
        | Instruction::Branch { .. }
        | Instruction::Jump { .. } => None,
    }
}
