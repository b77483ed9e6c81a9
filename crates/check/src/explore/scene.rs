//! A program laid out on a machine: threads, their SMs, registers and instruction stages. Nothing here depends on the
//! memory system below the L1s.

use super::layout::{ProgramLayout, Sm};
use super::sm::operation;
use super::state::{FlatRegister, FrontEnds, L1Slot, RegisterState, ThreadState};
use crate::litmus::{BarrierRole, FinalState, Instruction, Program, Register, Thread, ThreadPlacement, Value};
use tombolo_protocol::Protocol;
use tombolo_protocol::front::{self, Stage};
use tombolo_types::Order;

/// Data that stays constant while a program runs.
pub(super) struct Scene<'a> {
    pub(super) program: &'a Program,
    pub(super) layout: &'a ProgramLayout,
    /// SMs on which threads run.
    pub(super) sms: Vec<Sm>,
    /// Index in `sms` of each thread's SM.
    pub(super) sm_of: Vec<u8>,
    /// First [`FlatRegister`] of each thread.
    pub(super) register_base: Vec<FlatRegister>,
    /// Number of lines that hold the program's locations.
    pub(super) lines: usize,
    /// Barriers at which some thread arrives without waiting, by CTA and number.
    barriers: Vec<(ThreadPlacement, u32)>,
    /// Stages of each instruction, by thread.
    stages: Vec<Vec<[Option<Stage>; front::MAX_STAGES]>>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(protocol: &impl Protocol, program: &'a Program, layout: &'a ProgramLayout) -> Scene<'a> {
        let mut sms = layout.threads.clone();
        sms.sort_unstable();
        sms.dedup();
        let index = |sm: &Sm| sms.iter().position(|other| other == sm).expect("every thread's SM is in the list");
        let sm_of = layout.threads.iter().map(|sm| index(sm) as u8).collect();
        let mut next = 0;
        let register_base = program.threads.iter().map(|thread| {
            let base = next;
            next += thread.registers.len() as FlatRegister;
            base
        });
        let register_base = register_base.collect();
        let lines = layout.lines(program.locations.len());
        let stages_of =
            |thread: &Thread| thread.code.iter().map(|instruction| stages(protocol, thread, instruction)).collect();
        let stages = program.threads.iter().map(stages_of).collect();
        let arriving = |thread: &'a Thread| {
            thread.code.iter().filter_map(|instruction| match *instruction {
                Instruction::Barrier { id, role: BarrierRole::Arrive, .. } => Some((thread.placement, id)),
                _ => None,
            })
        };
        let mut barriers: Vec<(ThreadPlacement, u32)> = program.threads.iter().flat_map(arriving).collect();
        barriers.sort_unstable();
        barriers.dedup();
        Scene { program, layout, sms, sm_of, register_base, lines, barriers, stages }
    }

    /// Threads, registers and L1s before the first instruction.
    pub(super) fn initial(&self) -> FrontEnds {
        let registers = self.program.threads.iter().flat_map(|thread| &thread.registers);
        let registers = registers.map(|register| RegisterState { value: register.initial, awaits: None });
        FrontEnds {
            threads: vec![ThreadState::default(); self.program.threads.len()],
            registers: registers.collect(),
            l1: vec![L1Slot::default(); self.sms.len() * self.lines],
            arrivals: vec![0; self.barriers.len()],
        }
    }

    /// Index of a barrier's arrivals in [`FrontEnds::arrivals`]; `None` if every thread waits at this barrier.
    pub(super) fn arrivals_at(&self, cta: ThreadPlacement, barrier: u32) -> Option<usize> {
        self.barriers.binary_search(&(cta, barrier)).ok()
    }

    /// Final state of the program: the registers in `fronts`, and the locations' values in `memory`.
    pub(super) fn final_state(&self, fronts: &FrontEnds, memory: &[Value]) -> FinalState {
        let registers: Vec<Vec<Value>> = (self.program.threads.iter().zip(&self.register_base))
            .map(|(thread, &base)| {
                (0..thread.registers.len()).map(|i| fronts.registers[base as usize + i].value).collect()
            })
            .collect();
        self.program.final_state(&registers, memory)
    }

    pub(super) fn flat(&self, thread: usize, register: Register) -> FlatRegister {
        self.register_base[thread] + register.0
    }

    /// The registers of a thread.
    pub(super) fn registers_of(&self, thread: usize) -> std::ops::Range<usize> {
        let base = self.register_base[thread] as usize;
        base..base + self.program.threads[thread].registers.len()
    }

    pub(super) fn l1_index(&self, sm: u8, line: u8) -> usize {
        sm as usize * self.lines + line as usize
    }

    /// Current instruction of `thread`; `None` after the last.
    pub(super) fn instruction(&self, fronts: &FrontEnds, thread: usize) -> Option<&'a Instruction> {
        self.program.threads[thread].code.get(fronts.threads[thread].pc as usize)
    }

    /// Current stage of the thread's memory operation or fence; `None` at any other instruction.
    pub(super) fn stage(&self, fronts: &FrontEnds, thread: usize) -> Option<Stage> {
        let at = &fronts.threads[thread];
        *self.stages[thread].get(at.pc as usize)?.get(at.stage as usize)?
    }

    /// Effective memory order of an access: `order` on a GPU, and always [`front::ON_HOST`] on the host.
    pub(super) fn order(&self, thread: usize, order: Order) -> Order {
        of_placement(&self.program.threads[thread], order)
    }

    /// Number of kernel boundaries that `thread` has passed.
    pub(super) fn boundaries_passed(&self, fronts: &FrontEnds, thread: usize) -> usize {
        let before = &self.program.threads[thread].code[..fronts.threads[thread].pc as usize];
        before.iter().filter(|instruction| **instruction == Instruction::KernelBoundary).count()
    }
}

fn of_placement(thread: &Thread, order: Order) -> Order {
    if thread.placement.is_host() { front::ON_HOST } else { order }
}

/// The stages of an instruction; empty unless it is a memory operation or fence.
fn stages(protocol: &impl Protocol, thread: &Thread, instruction: &Instruction) -> [Option<Stage>; front::MAX_STAGES] {
    let mut stages = [None; front::MAX_STAGES];
    if let Some((operation, order)) = operation(instruction) {
        let of_operation = front::stages(protocol, operation, of_placement(thread, order));
        for (index, stage) in stages.iter_mut().enumerate() {
            *stage = of_operation.get(index);
        }
    }
    stages
}
