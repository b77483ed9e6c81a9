//! What plain interleaving over one memory reaches, the axiomatic model allows.

use std::collections::BTreeSet;
use std::path::Path;
use tombolo_check::axiomatic::{Limits, outcomes};
use tombolo_check::litmus::{Assignments, FinalState, Instruction, Program, Value, read};
use tombolo_check::random;

/// A program that runs on one memory without caches.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Machine {
    next: Vec<usize>,
    registers: Vec<Vec<Value>>,
    memory: Vec<Value>,
}

impl Machine {
    fn new(program: &Program) -> Machine {
        let initial =
            |thread: &tombolo_check::litmus::Thread| thread.registers.iter().map(|register| register.initial).collect();
        Machine {
            next: vec![0; program.threads.len()],
            registers: program.threads.iter().map(initial).collect(),
            memory: program.locations.iter().map(|location| location.initial).collect(),
        }
    }

    /// Whether every thread has come to the kernel's boundary at which `thread` stands, or passed it.
    fn all_have_come(&self, program: &Program, thread: usize) -> bool {
        let boundaries = |code: &[Instruction]| code.iter().filter(|one| **one == Instruction::KernelBoundary).count();
        let passed = |thread: usize| boundaries(&program.threads[thread].code[..self.next[thread]]);
        let stands =
            |thread: usize| program.threads[thread].code.get(self.next[thread]) == Some(&Instruction::KernelBoundary);
        let has_come =
            |other: usize| passed(other) > passed(thread) || passed(other) == passed(thread) && stands(other);
        (0..program.threads.len()).all(has_come)
    }

    /// Executes one instruction of `thread`; `None` where it has ended, or waits.
    fn step(&self, program: &Program, thread: usize) -> Option<Machine> {
        let instruction = program.threads[thread].code.get(self.next[thread])?;
        let mut after = self.clone();
        after.next[thread] += 1;
        let registers = &mut after.registers[thread];
        match instruction {
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
                    after.next[thread] = *target;
                }
            }
            Instruction::Jump { target } => after.next[thread] = *target,
            Instruction::Fence { .. } => {}
            Instruction::KernelBoundary => return self.all_have_come(program, thread).then_some(after),
            Instruction::Barrier { .. } => panic!("no test of the corpus has a barrier"),
        }
        Some(after)
    }
}

/// Final states of all interleavings.
fn interleavings(program: &Program) -> BTreeSet<FinalState> {
    let mut seen = BTreeSet::from([Machine::new(program)]);
    let mut open = vec![Machine::new(program)];
    let mut ended = BTreeSet::new();
    while let Some(machine) = open.pop() {
        let next: Vec<Machine> =
            (0..program.threads.len()).filter_map(|thread| machine.step(program, thread)).collect();
        if next.is_empty() {
            ended.insert(program.final_state(&machine.registers, &machine.memory));
        }
        open.extend(next.into_iter().filter(|machine| seen.insert(machine.clone())));
    }
    ended
}

#[test]
fn interleavings_of_random_programs_are_allowed() {
    for index in 0..500 {
        let program = random::program(5, index);
        let Ok(allowed) = outcomes(&program, &Limits { candidates: 20_000 }) else { continue };
        for state in &interleavings(&program) {
            let shown = Assignments { program: &program, state };
            assert!(allowed.contains(state), "{program}\n{shown}");
        }
    }
}

#[test]
fn interleaving_reaches_thirteen_allowed_events_of_the_corpus_and_no_forbidden_one() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/litmus");
    let expected = std::fs::read_to_string(corpus.join("expected.csv")).unwrap();
    let mut reached = 0;
    for line in expected.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let litmus = read(&corpus.join(fields[0])).unwrap();
        let event = interleavings(&litmus.program).iter().any(|state| litmus.condition.event(&litmus.program, state));
        assert!(!event || fields[2] == "allowed", "{}", fields[0]);
        reached += u32::from(event);
    }
    assert_eq!(reached, 13);
}
