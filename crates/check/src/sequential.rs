//! Sequential consistency: final states for all interleavings of a program's threads over a single memory.

use crate::litmus::{FinalState, Instruction, Program, Thread, Value};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Computes the final states of `program` under sequential consistency. Returns `None` if the interleavings reach more
/// than `limit` states. Barriers and kernel boundaries wait exactly as in the model. Loops are executed.
pub fn interleavings(program: &Program, limit: usize) -> Option<BTreeSet<FinalState>> {
    let start = SequentialMachine::new(program);
    let mut seen = FxHashSet::from_iter([start.clone()]);
    let mut open = vec![start];
    let mut ended = BTreeSet::new();
    while let Some(machine) = open.pop() {
        if machine.has_ended(program) {
            ended.insert(program.final_state(&machine.registers, &machine.memory));
        }
        for next in (0..program.threads.len()).filter_map(|thread| machine.step(program, thread)) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
        if seen.len() > limit {
            return None;
        }
    }
    Some(ended)
}

/// Threads over a single memory without caches.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SequentialMachine {
    threads: Vec<ThreadPosition>,
    registers: Vec<Vec<Value>>,
    memory: Vec<Value>,
}

/// Position of a thread.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct ThreadPosition {
    /// Index of the thread's next instruction.
    next: usize,
    /// Kernel boundaries passed.
    kernel: usize,
    /// Barriers passed in the current kernel.
    barriers: usize,
}

impl SequentialMachine {
    fn new(program: &Program) -> SequentialMachine {
        let initial = |thread: &Thread| thread.registers.iter().map(|register| register.initial).collect();
        SequentialMachine {
            threads: vec![ThreadPosition::default(); program.threads.len()],
            registers: program.threads.iter().map(initial).collect(),
            memory: program.locations.iter().map(|location| location.initial).collect(),
        }
    }

    fn next<'a>(&self, program: &'a Program, thread: usize) -> Option<&'a Instruction> {
        program.threads[thread].code.get(self.threads[thread].next)
    }

    fn has_ended(&self, program: &Program) -> bool {
        (0..program.threads.len()).all(|thread| self.next(program, thread).is_none())
    }

    /// True when every thread has arrived at the kernel boundary at which `thread` waits.
    fn kernel_is_over(&self, program: &Program, thread: usize) -> bool {
        let kernel = self.threads[thread].kernel;
        (0..program.threads.len()).all(|other| match self.next(program, other) {
            None => true,
            Some(Instruction::KernelBoundary) => self.threads[other].kernel >= kernel,
            Some(_) => self.threads[other].kernel > kernel,
        })
    }

    /// True when every thread in the CTA has arrived at the barrier at which `thread` waits, or has ended the kernel.
    fn barrier_is_open(&self, program: &Program, thread: usize) -> bool {
        let own = self.threads[thread];
        let placement = program.threads[thread].placement;
        let mates = (0..program.threads.len()).filter(|&other| program.threads[other].placement.shares_cta(placement));
        mates.into_iter().all(|mate| {
            let progress = self.threads[mate];
            let is_here = progress.kernel == own.kernel;
            match self.next(program, mate) {
                None => true,
                Some(Instruction::KernelBoundary) => is_here,
                Some(Instruction::Barrier { .. }) => is_here && progress.barriers >= own.barriers,
                Some(_) => is_here && progress.barriers > own.barriers,
            }
        })
    }

    /// Executes the next instruction of `thread`; returns `None` if the thread has ended or must wait.
    fn step(&self, program: &Program, thread: usize) -> Option<SequentialMachine> {
        let instruction = self.next(program, thread)?;
        let mut after = self.clone();
        let progress = &mut after.threads[thread];
        progress.next += 1;
        let registers = &mut after.registers[thread];
        match *instruction {
            Instruction::Load { into, location, .. } => {
                registers[usize::from(into.0)] = after.memory[usize::from(location.0)];
            }
            Instruction::Store { location, value, .. } => {
                after.memory[usize::from(location.0)] = value.value(registers);
            }
            Instruction::Atomic { into, location, update, .. } => {
                let cell = &mut after.memory[usize::from(location.0)];
                let old = *cell;
                *cell = update.apply(old, registers);
                if let Some(into) = into {
                    registers[usize::from(into.0)] = old;
                }
            }
            Instruction::Move { into, value } => registers[usize::from(into.0)] = value.value(registers),
            Instruction::Compute { operation, into, left, right } => {
                registers[usize::from(into.0)] = operation.apply(left.value(registers), right.value(registers));
            }
            Instruction::Branch { comparison, left, right, target } => {
                if comparison.holds(left.value(registers), right.value(registers)) {
                    progress.next = target;
                }
            }
            Instruction::Jump { target } => progress.next = target,
            Instruction::Fence { .. } => {}
            Instruction::KernelBoundary => {
                (progress.kernel, progress.barriers) = (progress.kernel + 1, 0);
                return self.kernel_is_over(program, thread).then_some(after);
            }
            Instruction::Barrier { .. } => {
                progress.barriers += 1;
                return self.barrier_is_open(program, thread).then_some(after);
            }
        }
        Some(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::parse;

    /// Register values for all threads at the ends of `rows`.
    fn ends(placements: &str, rows: &str) -> Vec<Vec<Value>> {
        let text = format!("PTX test {{x=0; y=0;}} {placements} ; {rows} exists x=0");
        let program = parse("test", &text).unwrap_or_else(|error| panic!("{error}")).program;
        let states = interleavings(&program, 10_000).expect("it is small");
        let registers = |state: &FinalState| state.0[..state.0.len() - program.locations.len()].to_vec();
        states.iter().map(registers).collect()
    }

    #[test]
    fn two_stores_are_not_both_overtaken() {
        let rows = "st.weak x, 1 | st.weak y, 1 ; ld.weak r0, y | ld.weak r0, x ;";
        assert_eq!(ends("P0@cta 0,gpu 0 | P1@cta 1,gpu 0", rows), [[0, 1], [1, 0], [1, 1]]);
    }

    #[test]
    fn a_barrier_waits_for_the_threads_of_its_cta() {
        let rows = "st.weak x, 1 | bar.cta.sync 0 ; bar.cta.sync 0 | ld.weak r0, x ;";
        assert_eq!(ends("P0@cta 0,gpu 0 | P1@cta 0,gpu 0", rows), [[1]]);
        assert_eq!(ends("P0@cta 0,gpu 0 | P1@cta 1,gpu 0", rows), [[0], [1]]);
    }

    #[test]
    fn a_thread_that_has_ended_its_kernel_is_not_waited_for() {
        let rows = "kernel.boundary | bar.cta.sync 0 ; bar.cta.sync 0 | kernel.boundary ; | bar.cta.sync 0 ;
            st.weak x, 1 | ld.weak r0, x ;";
        assert_eq!(ends("P0@cta 0,gpu 0 | P1@cta 0,gpu 0", rows), [[0], [1]]);
    }

    #[test]
    fn a_thread_that_has_yet_to_enter_the_kernel_is_waited_for() {
        let rows =
            "kernel.boundary | kernel.boundary ; bar.cta.sync 0 | st.weak x, 1 ; ld.weak r0, x | bar.cta.sync 0 ;";
        assert_eq!(ends("P0@cta 0,gpu 0 | P1@cta 0,gpu 0", rows), [[1]]);
    }

    #[test]
    fn boundaries_are_passed_one_after_the_other() {
        let rows =
            "kernel.boundary | kernel.boundary ; st.weak x, 1 | st.weak x, 2 ; kernel.boundary | kernel.boundary ;
            ld.weak r0, x | st.weak x, 3 ;";
        assert_eq!(ends("P0@cta 0,gpu 0 | P1@cta 1,gpu 0", rows), [[1], [2], [3]]);
    }

    #[test]
    fn a_kernel_comes_after_the_kernels_before_it() {
        let rows = "st.weak x, 1 | kernel.boundary ; kernel.boundary | ld.weak r0, x ;";
        assert_eq!(ends("P0@cta 0,gpu 0 | P1@cta 1,gpu 0", rows), [[1]]);
    }

    #[test]
    fn a_limit_of_states_ends_the_search() {
        let text = "PTX test {x=0;} P0@cta 0,gpu 0 ; st.weak x, 1 ; st.weak x, 2 ; exists x=0";
        let program = parse("test", text).unwrap_or_else(|error| panic!("{error}")).program;
        assert!(interleavings(&program, 2).is_none() && interleavings(&program, 3).is_some());
    }
}
