//! Random programs with a single writer: the writer is fixed, and the publications from its GPU are drawn.
//!
//! The writer updates and stores to one or two locations, read by threads on different GPUs. A neighbour on the
//! writer's GPU releases to the system, and occasionally updates or loads the data locations. Thus the writer's stores
//! follow its own atomics, with a release by another thread in between. Some programs have two kernels; the boundary
//! also releases.

use super::{CUT, Dice};
use crate::litmus::{
    Arithmetic, Instruction, Location, LocationDeclaration, Operand, Program, Register, RegisterDeclaration, Thread,
    ThreadPlacement, Update, Value,
};
use tombolo_types::{GpuId, Order, Scope, Semantics};

/// The location of the neighbour's releasing stores, declared last.
const FLAG: &str = "f";
/// First value that the writer stores: above every sum of additions.
const FIRST: Value = 10;

/// Program `index` of the series `seed`.
pub fn program(seed: u64, index: u64) -> Program {
    let dice = &mut Dice::new(seed, index);
    let mut names: Vec<&str> = vec!["x"];
    names.extend(dice.percent(40).then_some("y"));
    let data = names.len();
    names.push(FLAG);
    let declared =
        names.into_iter().map(|name| LocationDeclaration { name: name.to_owned(), initial: 0, value_type: None });
    let readers = 1 + dice.below(2);
    let mut threads: Vec<Thread> = (0..readers as u32).map(|number| thread(number, number as u8, 0)).collect();
    threads.iter_mut().for_each(|thread| reader(thread, data, dice));
    for (cta, part) in [(0, writer as CodeGenerator), (dice.below(2) as u16, neighbour)] {
        let mut thread = thread(threads.len() as u32, readers as u8, cta);
        part(&mut thread, data, dice);
        threads.push(thread);
    }
    if dice.percent(CUT) {
        for thread in &mut threads {
            thread.code.insert(dice.below(thread.code.len() + 1), Instruction::KernelBoundary);
        }
    }
    Program { name: format!("one-writer-{seed}-{index}"), locations: declared.collect(), threads }
}

/// Generates the code for a thread, with a given number of data locations next to the flag.
type CodeGenerator = fn(&mut Thread, usize, &mut Dice);

fn thread(number: u32, gpu: u8, cta: u16) -> Thread {
    Thread { number, placement: ThreadPlacement::Cta { gpu: GpuId(gpu), cta }, registers: Vec::new(), code: Vec::new() }
}

fn any(data: usize, dice: &mut Dice) -> Location {
    Location(dice.below(data) as u16)
}

/// Loads the data once or twice, sometimes after an acquire of the flag.
fn reader(thread: &mut Thread, data: usize, dice: &mut Dice) {
    if dice.percent(30) {
        load(thread, Order::acquire(Scope::Sys), Location(data as u16));
    }
    for _ in 0..1 + dice.below(2) {
        let order = dice.pick(&[Order::WEAK, Order::WEAK, Order::relaxed(Scope::Gpu), Order::relaxed(Scope::Sys)]);
        load(thread, order, any(data, dice));
    }
}

/// Two to four accesses: updates, stores, and occasionally a load.
fn writer(thread: &mut Thread, data: usize, dice: &mut Dice) {
    for step in 0..2 + dice.below(3) as Value {
        let (location, ticket) = (any(data, dice), dice.below(100));
        match ticket {
            0..45 => update(thread, location, dice),
            45..90 => {
                let order = dice.pick(&[Order::WEAK, Order::relaxed(Scope::Gpu)]);
                let value = Operand::Value(FIRST + step);
                thread.code.push(Instruction::Store { order, location, value });
            }
            _ => load(thread, Order::WEAK, location),
        }
    }
}

/// A release to the system, sometimes after a data access, and sometimes followed by another release.
fn neighbour(thread: &mut Thread, data: usize, dice: &mut Dice) {
    match dice.below(10) {
        0..3 => update(thread, any(data, dice), dice),
        3..5 => load(thread, Order::relaxed(Scope::Gpu), any(data, dice)),
        _ => {}
    }
    let semantics = dice.pick(&[Semantics::AcquireRelease, Semantics::SequentiallyConsistent]);
    let fence = Instruction::Fence { order: Order::new(semantics, Scope::Sys) };
    let order = Order::new(Semantics::Release, Scope::Sys);
    let store = Instruction::Store { order, location: Location(data as u16), value: Operand::Value(1) };
    thread.code.push(dice.pick(&[fence, fence, store]));
    if dice.percent(40) {
        thread.code.push(fence);
    }
}

/// An atomic within the GPU: mostly an addition, mostly with a result.
fn update(thread: &mut Thread, location: Location, dice: &mut Dice) {
    let into = dice.percent(80).then(|| register(thread));
    let update = Update::Apply(Arithmetic::Add, Operand::Value(dice.pick(&[1, 2])));
    thread.code.push(Instruction::Atomic { order: Order::relaxed(Scope::Gpu), into, location, update });
}

fn load(thread: &mut Thread, order: Order, location: Location) {
    let into = register(thread);
    thread.code.push(Instruction::Load { order, into, location });
}

/// Declares a new register.
fn register(thread: &mut Thread) -> Register {
    let register = Register(thread.registers.len() as u16);
    thread.registers.push(RegisterDeclaration { name: format!("r{}", register.0), initial: 0 });
    register
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::parse;
    use std::collections::BTreeSet;

    #[test]
    fn stores_to_data_are_of_one_thread() {
        for index in 0..500 {
            let program = program(1, index);
            let flag = Location(program.locations.len() as u16 - 1);
            let stores = program.threads.iter().filter(|thread| {
                let is_data =
                    |one: &Instruction| matches!(one, Instruction::Store { location, .. } if *location != flag);
                thread.code.iter().any(is_data)
            });
            assert!(stores.count() <= 1, "{program}");
        }
    }

    #[test]
    fn a_store_often_follows_an_atomic_of_its_thread_and_location() {
        let follows = |program: &Program| {
            program.threads.iter().any(|thread| {
                let mut updated = BTreeSet::new();
                thread.code.iter().any(|instruction| match *instruction {
                    Instruction::Atomic { location, .. } => {
                        updated.insert(location);
                        false
                    }
                    Instruction::Store { location, .. } => updated.contains(&location),
                    _ => false,
                })
            })
        };
        let many = (0..1000).filter(|index| follows(&program(1, *index))).count();
        assert!(many > 300, "{many} of 1000");
    }

    #[test]
    fn a_program_reads_back_as_printed_and_its_seed_pins_it() {
        for index in 0..200 {
            let program = program(2, index);
            let text = format!("{program}exists x=0");
            assert_eq!(parse("random", &text).unwrap().program, program, "{text}");
        }
        assert_eq!(program(7, 41), program(7, 41));
        assert_ne!(program(7, 41).threads, program(8, 41).threads);
    }
}
