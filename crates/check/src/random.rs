//! Random litmus programs: a seed yields identical programs on every platform.
//!
//! Programs are stratified: [`STRATA`] consecutive indices visit every combination of thread, location and memory
//! operation counts once. Placements (1 to 4 GPUs, 1 or 2 CTAs each), semantics, scopes, fences and atomics are drawn
//! per program. Uniformly drawn programs would hardly ever synchronise. Therefore most programs agree on a scope that
//! contains all their threads, and most programs with several locations pass messages: the first location is data, the
//! remaining locations are flags, and some threads produce or consume.
//!
//! Some programs have two kernels, and half among these have three: boundaries cut every thread at a random position.
//!
//! Not generated: branches, barriers, division.

pub mod one_writer;

use crate::litmus::{
    Arithmetic, Instruction, Location, LocationDeclaration, Operand, Program, Register, RegisterDeclaration, Thread,
    ThreadPlacement, Update, Value,
};
use tombolo_types::{GpuId, Order, Scope, Semantics};

/// Maximum number of threads per program; the minimum is two.
pub const THREADS: usize = 4;
/// Maximum number of locations per program.
pub const LOCATIONS: usize = 3;
/// Maximum number of memory operations per program; the minimum is one per thread.
pub const OPERATIONS: usize = 10;

/// Percentage of programs cut by a kernel boundary.
const CUT: usize = 20;
/// Percentage of cut programs with a second cut.
const CUT_AGAIN: usize = 50;

/// Distinct combinations of threads, locations and memory operations. No program has more locations than operations.
pub const STRATA: u64 = {
    let mut strata = 0;
    while stratum_at(strata).is_some() {
        strata += 1;
    }
    strata
};

/// Size of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stratum {
    /// 2 to [`THREADS`].
    pub threads: usize,
    /// 1 to [`LOCATIONS`].
    pub locations: usize,
    /// Memory operations over all threads: from one per thread and location to [`OPERATIONS`].
    pub operations: usize,
}

/// The stratum at `index`, or `None` past the last.
const fn stratum_at(mut index: u64) -> Option<Stratum> {
    let mut threads = 2;
    while threads <= THREADS {
        let mut locations = 1;
        while locations <= LOCATIONS {
            let least = if threads > locations { threads } else { locations };
            let sizes = (OPERATIONS - least + 1) as u64;
            if index < sizes {
                return Some(Stratum { threads, locations, operations: least + index as usize });
            }
            index -= sizes;
            locations += 1;
        }
        threads += 1;
    }
    None
}

/// The stratum of program `index`.
pub fn stratum(index: u64) -> Stratum {
    stratum_at(index % STRATA).expect("every index below STRATA has a stratum")
}

/// Program `index` of the series `seed`.
pub fn program(seed: u64, index: u64) -> Program {
    let mut dice = Dice::new(seed, index);
    let mut program = ProgramDraft::new(stratum(index), &mut dice).finish();
    program.name = format!("random-{seed}-{index}");
    program
}

/// A stream of pseudo-random numbers. Source: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub struct Dice {
    state: u64,
}

impl Dice {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The stream for program `index`, independent from the numbers drawn for other programs.
    pub fn new(seed: u64, index: u64) -> Dice {
        let mut series = Dice { state: seed };
        let mut dice = Dice { state: series.next() ^ index.wrapping_mul(Dice::STEP) };
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Dice::STEP);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Draws a number below `end`, which is small: the bias is below 2^-50.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Returns true with a probability of `chance` percent.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// Picks an element from `from`, which is not empty.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Preferred role of a thread.
#[derive(Clone, Copy)]
enum ThreadRole {
    /// Writes data, then flags.
    Producer,
    /// Reads flags, then data.
    Consumer,
    /// Any operation in any order.
    Free,
}

impl ThreadRole {
    /// Percentages for loads and for stores among the operations; the remainder are atomics.
    fn mix(self) -> (usize, usize) {
        match self {
            ThreadRole::Producer => (10, 72),
            ThreadRole::Consumer => (72, 10),
            ThreadRole::Free => (42, 40),
        }
    }
}

/// A program under construction.
struct ProgramDraft<'a> {
    dice: &'a mut Dice,
    program: Program,
    operations: usize,
    /// Preferred scope for strong operations.
    scope: Scope,
    /// Set if the first location is data and the remaining locations are flags.
    messages: bool,
    /// Per location: percentage of strong accesses.
    strong: Vec<usize>,
    /// Percentage of operations preceded by a fence.
    fences: usize,
    /// The next constant to store: constants are distinct, therefore a final state identifies the write behind each
    /// value.
    fresh: Value,
}

impl ProgramDraft<'_> {
    fn new(stratum: Stratum, dice: &mut Dice) -> ProgramDraft<'_> {
        let (gpus, ctas) = (dice.below(4) + 1, dice.below(2) + 1);
        let threads: Vec<Thread> = (0..stratum.threads)
            .map(|number| Thread {
                number: number as u32,
                placement: ThreadPlacement::Cta { gpu: GpuId(dice.below(gpus) as u8), cta: dice.below(ctas) as u16 },
                registers: Vec::new(),
                code: Vec::new(),
            })
            .collect();
        let messages = stratum.locations > 1 && dice.percent(70);
        let shares = |location| {
            if !messages {
                55
            } else if location == 0 {
                10
            } else {
                90
            }
        };
        let locations = ["x", "y", "z"].iter().take(stratum.locations).map(|name| LocationDeclaration {
            name: (*name).to_owned(),
            initial: 0,
            value_type: None,
        });
        ProgramDraft {
            program: Program { name: String::new(), locations: locations.collect(), threads },
            operations: stratum.operations,
            scope: Scope::Sys,
            messages,
            strong: (0..stratum.locations).map(shares).collect(),
            fences: dice.pick(&[0, 15, 40]),
            fresh: 0,
            dice,
        }
    }

    fn finish(mut self) -> Program {
        self.scope = self.common_scope();
        let threads = self.shares(self.program.threads.len());
        let mut locations = self.shares(self.program.locations.len());
        for (thread, count) in threads.into_iter().enumerate() {
            let part = self.part(thread);
            let mut accesses: Vec<usize> = (0..count).map(|_| self.draw(&mut locations)).collect();
            match part {
                ThreadRole::Producer => accesses.sort_unstable(),
                ThreadRole::Consumer => accesses.sort_unstable_by(|one, other| other.cmp(one)),
                ThreadRole::Free => {}
            }
            for location in accesses {
                self.operation(thread, part, Location(location as u16));
            }
        }
        if self.dice.percent(CUT) {
            self.cut();
            if self.dice.percent(CUT_AGAIN) {
                self.cut();
            }
        }
        self.program
    }

    /// Cuts every thread at a random position by a kernel boundary. The resulting parts may be empty.
    fn cut(&mut self) {
        for thread in &mut self.program.threads {
            thread.code.insert(self.dice.below(thread.code.len() + 1), Instruction::KernelBoundary);
        }
    }

    /// Chooses a thread's role. If messages are passed, the first thread produces and the last thread consumes.
    fn part(&mut self, thread: usize) -> ThreadRole {
        match thread {
            _ if !self.messages => ThreadRole::Free,
            0 => ThreadRole::Producer,
            _ if thread + 1 == self.program.threads.len() => ThreadRole::Consumer,
            _ => self.dice.pick(&[ThreadRole::Producer, ThreadRole::Consumer, ThreadRole::Free, ThreadRole::Free]),
        }
    }

    /// The least scope that contains all threads, or occasionally a random scope.
    fn common_scope(&mut self) -> Scope {
        if self.dice.percent(15) {
            return self.dice.pick(&Scope::ALL);
        }
        let first = self.program.threads[0].placement;
        let holds = |scope| self.program.threads.iter().all(|thread| first.reaches(scope, thread.placement));
        [Scope::Cta, Scope::Gpu].into_iter().find(|scope| holds(*scope)).unwrap_or(Scope::Sys)
    }

    /// Divides the operations into `parts` shares, each at least 1.
    fn shares(&mut self, parts: usize) -> Vec<usize> {
        let mut shares = vec![1; parts];
        for _ in parts..self.operations {
            shares[self.dice.below(parts)] += 1;
        }
        shares
    }

    /// Draws an index into `shares`, weighted by each remaining share, and decrements the chosen share.
    fn draw(&mut self, shares: &mut [usize]) -> usize {
        let mut ticket = self.dice.below(shares.iter().sum());
        let mut drawn = 0;
        while ticket >= shares[drawn] {
            ticket -= shares[drawn];
            drawn += 1;
        }
        shares[drawn] -= 1;
        drawn
    }

    fn operation(&mut self, thread: usize, part: ThreadRole, location: Location) {
        if !self.program.threads[thread].code.is_empty() && self.dice.percent(self.fences) {
            let semantics = self.dice.pick(&[Semantics::AcquireRelease, Semantics::SequentiallyConsistent]);
            let order = Order::new(semantics, self.drawn_scope());
            self.program.threads[thread].code.push(Instruction::Fence { order });
        }
        let (loads, stores) = part.mix();
        let ticket = self.dice.below(100);
        let instruction = if ticket < loads {
            let order = self.order(location, Semantics::Acquire);
            Instruction::Load { order, into: self.register(thread), location }
        } else if ticket < loads + stores {
            let order = self.order(location, Semantics::Release);
            Instruction::Store { order, location, value: self.stored(thread) }
        } else {
            self.atomic(thread, location)
        };
        self.program.threads[thread].code.push(instruction);
    }

    fn drawn_scope(&mut self) -> Scope {
        if self.dice.percent(70) { self.scope } else { self.dice.pick(&Scope::ALL) }
    }

    /// Weak, relaxed, or `synchronising` (acquire or release).
    fn order(&mut self, location: Location, synchronising: Semantics) -> Order {
        if !self.dice.percent(self.strong[usize::from(location.0)]) {
            return Order::WEAK;
        }
        let semantics = self.dice.pick(&[Semantics::Relaxed, synchronising, synchronising]);
        Order::new(semantics, self.drawn_scope())
    }

    fn atomic(&mut self, thread: usize, location: Location) -> Instruction {
        let semantics = [Semantics::Relaxed, Semantics::Acquire, Semantics::Release, Semantics::AcquireRelease];
        let (semantics, scope) = (self.dice.pick(&semantics), self.drawn_scope());
        let update = match self.dice.below(10) {
            0..4 => Update::Apply(Arithmetic::Add, Operand::Value(self.dice.pick(&[1, 1, 10]))),
            4 => {
                let operations = [Arithmetic::And, Arithmetic::Or, Arithmetic::Xor];
                Update::Apply(self.dice.pick(&operations), Operand::Value(self.dice.below(4) as Value))
            }
            5..7 => Update::Exchange(self.stored(thread)),
            _ => {
                let compare = Operand::Value(self.dice.below(self.fresh as usize + 1) as Value);
                Update::CompareAndSwap { compare, new: self.stored(thread) }
            }
        };
        // `red` supports only arithmetic, and acquires nothing.
        let returned = !matches!(update, Update::Apply(..)) || self.dice.percent(70);
        let into = returned.then(|| self.register(thread));
        let semantics = match semantics {
            Semantics::Acquire if !returned => Semantics::Relaxed,
            Semantics::AcquireRelease if !returned => Semantics::Release,
            drawn => drawn,
        };
        Instruction::Atomic { order: Order::new(semantics, scope), into, location, update }
    }

    /// Declares a new register.
    fn register(&mut self, thread: usize) -> Register {
        let registers = &mut self.program.threads[thread].registers;
        let register = Register(registers.len() as u16);
        registers.push(RegisterDeclaration { name: format!("r{}", register.0), initial: 0 });
        register
    }

    /// A new constant, or a value that depends on an earlier read.
    fn stored(&mut self, thread: usize) -> Operand {
        let registers = self.program.threads[thread].registers.len();
        if registers == 0 || self.dice.percent(80) {
            self.fresh += 1;
            return Operand::Value(self.fresh);
        }
        let read = Operand::Register(Register(self.dice.below(registers) as u16));
        if self.dice.percent(50) {
            return read;
        }
        let operation = self.dice.pick(&[Arithmetic::Add, Arithmetic::Sub, Arithmetic::Mul]);
        let right = Operand::Value(self.dice.below(3) as Value);
        let into = self.register(thread);
        self.program.threads[thread].code.push(Instruction::Compute { operation, into, left: read, right });
        Operand::Register(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::parse;
    use std::collections::BTreeSet;

    #[test]
    fn a_program_is_as_large_as_its_stratum() {
        for index in 0..3 * STRATA {
            let program = program(7, index);
            let stratum = stratum(index);
            assert_eq!(program.threads.len(), stratum.threads);
            assert_eq!(program.locations.len(), stratum.locations);
            assert_eq!(program.memory_operations(), stratum.operations);
            assert!(program.threads.iter().all(|thread| !thread.code.is_empty()));
        }
    }

    #[test]
    fn a_program_reads_back_as_printed() {
        for index in 0..STRATA {
            let program = program(1, index);
            let text = format!("{program}exists x=0");
            assert_eq!(parse("random", &text).unwrap().program, program, "{text}");
        }
    }

    #[test]
    fn every_instruction_semantics_and_scope_comes_up() {
        let mut seen = BTreeSet::new();
        for index in 0..300 * STRATA {
            let program = program(3, index);
            for thread in &program.threads {
                for instruction in &thread.code {
                    let text = program.instruction(thread, instruction).to_string();
                    seen.extend(text.split(' ').next().map(str::to_owned));
                }
            }
        }
        // 7 loads, 7 stores, 6 fences, a boundary, 3 computations; 12 orders of atom with 4 operations, cas and exch, 6
        // of red with 4 operations.
        assert_eq!(seen.len(), 7 + 7 + 6 + 1 + 3 + 12 * 6 + 6 * 4, "{seen:?}");
    }

    #[test]
    fn programs_have_one_to_three_kernels_and_their_threads_as_many() {
        let boundary = |instruction: &&Instruction| matches!(instruction, Instruction::KernelBoundary);
        let mut programs = [0; 3];
        for index in 0..1000 {
            let threads = program(5, index).threads;
            let boundaries: BTreeSet<usize> =
                threads.iter().map(|thread| thread.code.iter().filter(boundary).count()).collect();
            assert_eq!(boundaries.len(), 1, "program {index}");
            programs[boundaries.first().copied().unwrap()] += 1;
        }
        let [one, two, three] = programs;
        assert!(one > 750 && two > 70 && three > 70, "{programs:?}");
    }

    #[test]
    fn a_seed_pins_its_programs() {
        assert_eq!(program(7, 41), program(7, 41));
        assert_ne!(program(7, 41).threads, program(8, 41).threads);
        let mut dice = Dice { state: 0 };
        assert_eq!(dice.next(), 0xe220_a839_7b1d_cdaf, "first number of SplitMix64 from state 0");
    }
}
