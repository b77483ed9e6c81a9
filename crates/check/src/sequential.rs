//! Sequential consistency: final states for all interleavings of a program's threads over a single memory.

use crate::litmus::{BarrierRole, FinalState, Instruction, Program, Thread, ThreadPlacement, Value};
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
    barriers: Vec<PendingBarrier>,
}

/// Position of a thread.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct ThreadPosition {
    /// Index of the thread's next instruction.
    next: usize,
    /// Kernel boundaries passed.
    kernel: usize,
    /// True if the thread has arrived at the barrier of its next instruction, and waits.
    waits: bool,
}

/// A barrier of a CTA with arrivals since it last opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PendingBarrier {
    cta: ThreadPlacement,
    id: u32,
    kernel: usize,
    count: Option<u32>,
    arrived: u32,
}

impl SequentialMachine {
    fn new(program: &Program) -> SequentialMachine {
        let initial = |thread: &Thread| thread.registers.iter().map(|register| register.initial).collect();
        SequentialMachine {
            threads: vec![ThreadPosition::default(); program.threads.len()],
            registers: program.threads.iter().map(initial).collect(),
            memory: program.locations.iter().map(|location| location.initial).collect(),
            barriers: Vec::new(),
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

    /// Lets `thread`, which stands at a barrier, arrive there.
    fn arrive(&mut self, program: &Program, thread: usize, id: u32, count: Option<u32>) {
        let (cta, kernel) = (program.threads[thread].placement, self.threads[thread].kernel);
        let known = self.barriers.iter_mut().find(|known| (known.cta, known.id, known.kernel) == (cta, id, kernel));
        match known {
            Some(barrier) => barrier.arrived += 1,
            None => self.barriers.push(PendingBarrier { cta, id, kernel, count, arrived: 1 }),
        }
    }

    /// Opens every barrier with all its arrivals.
    fn open_barriers(&mut self, program: &Program) {
        while let Some(index) = self.barriers.iter().position(|barrier| self.is_full(program, *barrier)) {
            let opened = self.barriers.remove(index);
            for thread in 0..program.threads.len() {
                let is_there = program.threads[thread].placement == opened.cta
                    && self.threads[thread].kernel == opened.kernel
                    && matches!(self.next(program, thread), Some(Instruction::Barrier { id, .. }) if *id == opened.id);
                if is_there && self.threads[thread].waits {
                    self.threads[thread].waits = false;
                    self.threads[thread].next += 1;
                }
            }
        }
        // The order of arrival matters no longer.
        self.barriers.sort_unstable_by_key(|barrier| (barrier.cta, barrier.id, barrier.kernel));
    }

    /// True if as many threads have arrived at a barrier as it counts, or, without a count, as have not ended its kernel.
    fn is_full(&self, program: &Program, barrier: PendingBarrier) -> bool {
        let lives = |&thread: &usize| match self.next(program, thread) {
            None => false,
            Some(Instruction::KernelBoundary) => self.threads[thread].kernel < barrier.kernel,
            Some(_) => self.threads[thread].kernel <= barrier.kernel,
        };
        let mates = (0..program.threads.len()).filter(|&mate| program.threads[mate].placement == barrier.cta);
        barrier.arrived >= barrier.count.unwrap_or_else(|| mates.filter(lives).count() as u32)
    }

    /// Executes the next instruction of `thread`; returns `None` if the thread has ended or must wait.
    fn step(&self, program: &Program, thread: usize) -> Option<SequentialMachine> {
        let instruction = self.next(program, thread).filter(|_| !self.threads[thread].waits)?;
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
                progress.kernel += 1;
                self.kernel_is_over(program, thread).then_some(())?;
            }
            Instruction::Barrier { id, role, count } => {
                if role == BarrierRole::Sync {
                    (progress.next, progress.waits) = (progress.next - 1, true);
                }
                after.arrive(program, thread, id, count);
            }
        }
        after.open_barriers(program);
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
    fn a_barrier_with_a_count_waits_for_as_many_arrivals() {
        let placed = "P0@cta 0,gpu 0 | P1@cta 0,gpu 0";
        let rows = "st.weak x, 1 | bar.sync 0, 64 ; bar.arrive 0, 64 | ld.weak r0, x ; ld.weak r0, y | st.weak y, 1 ;";
        assert_eq!(ends(placed, rows), [[0, 1], [1, 1]], "P0 continues at once");
        let alone = "st.weak x, 1 | bar.sync 0, 32 ; bar.sync 0, 32 | ld.weak r0, x ;";
        assert_eq!(ends(placed, alone), [[0], [1]], "each opens the barrier for itself");
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
