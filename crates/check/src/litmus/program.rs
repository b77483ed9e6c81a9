//! The program of a litmus test, as the axiomatic model and an operational explorer both take it.
//!
//! Registers are dense per thread, locations dense per program, branch targets indices into the thread's
//! code: executing an instruction looks nothing up by name.

use super::condition::Comparison;
use super::value_type::ValueType;
use tombolo_types::{GpuId, Order, Scope};

/// What a register or a location holds. Arithmetic wraps.
pub type Value = i64;

/// A register of one thread: an index into [`Thread::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u16);

/// A memory location: an index into [`Program::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(pub u16);

/// Where a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// In a CTA of a GPU.
    Cta {
        /// The GPU.
        gpu: GpuId,
        /// The CTA, numbered within its GPU.
        cta: u16,
    },
    /// On the host, the CPU that launches the kernels. A host thread has no GPU and shares no CTA, with other host threads
    /// neither: its strong accesses are `.sys`.
    Host,
}

impl Placement {
    /// Its GPU, which the host is not.
    pub fn gpu(self) -> Option<GpuId> {
        match self {
            Placement::Cta { gpu, .. } => Some(gpu),
            Placement::Host => None,
        }
    }

    /// Whether it is the host.
    pub fn is_host(self) -> bool {
        self == Placement::Host
    }

    /// Whether two threads placed here and at `other` are of one CTA.
    pub fn shares_cta(self, other: Placement) -> bool {
        self == other && !self.is_host()
    }

    /// Whether the `scope` of a thread placed here holds another thread, placed at `other`.
    pub fn reaches(self, scope: Scope, other: Placement) -> bool {
        match scope {
            Scope::Cta => self.shares_cta(other),
            Scope::Gpu => self.gpu().is_some() && self.gpu() == other.gpu(),
            Scope::Sys => true,
        }
    }
}

/// An input of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The value of a register of the same thread.
    Register(Register),
    /// A constant.
    Value(Value),
}

impl Operand {
    /// Its value, given the thread's registers.
    pub fn value(self, registers: &[Value]) -> Value {
        match self {
            Operand::Register(register) => registers[register.0 as usize],
            Operand::Value(value) => value,
        }
    }
}

/// An arithmetic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, rounded to zero. Division by zero gives zero (PTX leaves it open).
    Div,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl Arithmetic {
    /// Operations on registers with their mnemonics.
    pub const OF_REGISTERS: [(Arithmetic, &'static str); 4] =
        [(Arithmetic::Add, "add"), (Arithmetic::Sub, "sub"), (Arithmetic::Mul, "mul"), (Arithmetic::Div, "div")];

    /// Operations of atomics and reductions with their names. Source: PTX ISA, atom and red, whose `.inc`, `.dec`, `.min`
    /// and `.max` are not read.
    pub const OF_ATOMICS: [(Arithmetic, &'static str); 4] =
        [(Arithmetic::Add, "add"), (Arithmetic::And, "and"), (Arithmetic::Or, "or"), (Arithmetic::Xor, "xor")];

    /// The result; wraps on overflow.
    pub fn apply(self, left: Value, right: Value) -> Value {
        match self {
            Arithmetic::Add => left.wrapping_add(right),
            Arithmetic::Sub => left.wrapping_sub(right),
            Arithmetic::Mul => left.wrapping_mul(right),
            Arithmetic::Div if right == 0 => 0,
            Arithmetic::Div => left.wrapping_div(right),
            Arithmetic::And => left & right,
            Arithmetic::Or => left | right,
            Arithmetic::Xor => left ^ right,
        }
    }
}

/// What a read-modify-write makes of the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update {
    /// `old op operand`, an operation of [`Arithmetic::OF_ATOMICS`].
    Apply(Arithmetic, Operand),
    /// The operand.
    Exchange(Operand),
    /// `new` where the old value equals `compare`; else the old value is written back.
    CompareAndSwap {
        /// What the old value must equal.
        compare: Operand,
        /// What is written then.
        new: Operand,
    },
}

impl Default for Update {
    /// Writes zero.
    fn default() -> Update {
        Update::Exchange(Operand::Value(0))
    }
}

impl Update {
    /// The value written, given the old value and the thread's registers.
    pub fn apply(&self, old: Value, registers: &[Value]) -> Value {
        match *self {
            Update::Apply(operation, operand) => operation.apply(old, operand.value(registers)),
            Update::Exchange(operand) => operand.value(registers),
            Update::CompareAndSwap { compare, new } if compare.value(registers) == old => new.value(registers),
            Update::CompareAndSwap { .. } => old,
        }
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// `ld.weak`, `ld.relaxed`, `ld.acquire`.
    Load {
        /// Semantics and scope.
        order: Order,
        /// Where the value goes.
        into: Register,
        /// What is read.
        location: Location,
    },
    /// `st.weak`, `st.relaxed`, `st.release`.
    Store {
        /// Semantics and scope.
        order: Order,
        /// What is written.
        location: Location,
        /// The value.
        value: Operand,
    },
    /// `atom`, or `red` where nothing is returned.
    Atomic {
        /// Semantics and scope.
        order: Order,
        /// Where the old value goes; `None` for `red`.
        into: Option<Register>,
        /// What is read and written.
        location: Location,
        /// The new value.
        update: Update,
    },
    /// `fence.acq_rel`, `fence.sc`.
    Fence {
        /// Semantics and scope.
        order: Order,
    },
    /// `ld r, v` without a dot: moves a value into a register.
    Move {
        /// Where the value goes.
        into: Register,
        /// The value.
        value: Operand,
    },
    /// `add`, `sub`, `mul`, `div` on registers.
    Compute {
        /// The operation.
        operation: Arithmetic,
        /// Where the result goes.
        into: Register,
        /// First input.
        left: Operand,
        /// Second input.
        right: Operand,
    },
    /// `bar.cta.sync`: waits until every thread of the CTA that has not ended its kernel has arrived.
    Barrier {
        /// The barrier.
        id: u32,
    },
    /// `kernel.boundary`: what is before it belongs to one kernel, what is after it to the next, in every thread.
    ///
    /// All threads meet there, those of the host too. What the host does before its boundary comes before the next kernel is
    /// launched; what it does after comes after the kernel before has ended. Where no thread of a GPU has an instruction
    /// between two boundaries, no kernel is launched: there is host code alone.
    KernelBoundary,
    /// `beq` and its kin: goes to `target` where the comparison holds.
    Branch {
        /// The comparison.
        comparison: Comparison,
        /// Its left side.
        left: Operand,
        /// Its right side.
        right: Operand,
        /// Index into the thread's code; its length means the end.
        target: usize,
    },
    /// `goto`.
    Jump {
        /// Index into the thread's code; its length means the end.
        target: usize,
    },
}

impl Instruction {
    /// The location it accesses, if it does.
    pub fn location(&self) -> Option<Location> {
        match *self {
            Instruction::Load { location, .. }
            | Instruction::Store { location, .. }
            | Instruction::Atomic { location, .. } => Some(location),
            Instruction::Fence { .. }
            | Instruction::Move { .. }
            | Instruction::Compute { .. }
            | Instruction::Barrier { .. }
            | Instruction::KernelBoundary
            | Instruction::Branch { .. }
            | Instruction::Jump { .. } => None,
        }
    }

    /// Where it may go besides the next instruction.
    pub fn target(&self) -> Option<usize> {
        match *self {
            Instruction::Branch { target, .. } | Instruction::Jump { target } => Some(target),
            _ => None,
        }
    }
}

/// A register with its initial value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterDeclaration {
    /// Name: `r` and a number.
    pub name: String,
    /// Value before the first instruction.
    pub initial: Value,
}

/// A location with its initial value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationDeclaration {
    /// Name.
    pub name: String,
    /// Value before the first instruction.
    pub initial: Value,
    /// Type of its accesses; `None` where they are written without one.
    pub value_type: Option<ValueType>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The number in its name: `P0` has 0.
    pub number: u32,
    /// Where it runs.
    pub placement: Placement,
    /// Its registers, indexed by [`Register`].
    pub registers: Vec<RegisterDeclaration>,
    /// Its instructions.
    pub code: Vec<Instruction>,
}

/// A program: threads over shared locations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name.
    pub name: String,
    /// Locations, indexed by [`Location`].
    pub locations: Vec<LocationDeclaration>,
    /// Threads, in the order of their columns.
    pub threads: Vec<Thread>,
}

impl Program {
    /// Index in a [`FinalState`] of the first register of thread `thread` (an index).
    fn register_base(&self, thread: usize) -> usize {
        self.threads[..thread].iter().map(|thread| thread.registers.len()).sum()
    }

    /// Kernel boundaries that its threads pass.
    pub fn boundaries(&self) -> usize {
        let of = |thread: &Thread| thread.code.iter().filter(|step| **step == Instruction::KernelBoundary).count();
        self.threads.iter().map(of).max().unwrap_or(0)
    }

    /// Whether some thread is on the host.
    pub fn has_host(&self) -> bool {
        self.threads.iter().any(|thread| thread.placement.is_host())
    }

    /// Whether some branch goes backwards.
    pub fn has_loop(&self) -> bool {
        self.threads.iter().any(|thread| {
            thread.code.iter().enumerate().any(|(at, instruction)| instruction.target().is_some_and(|to| to <= at))
        })
    }

    /// Whether it has kernel boundaries, and nothing else by which one thread could order another: weak loads and stores.
    pub fn meets_at_boundaries_alone(&self) -> bool {
        let weak = |instruction: &Instruction| match instruction {
            Instruction::Load { order, .. } | Instruction::Store { order, .. } => *order == Order::WEAK,
            Instruction::Atomic { .. } | Instruction::Fence { .. } | Instruction::Barrier { .. } => false,
            Instruction::Move { .. }
            | Instruction::Compute { .. }
            | Instruction::KernelBoundary
            | Instruction::Branch { .. }
            | Instruction::Jump { .. } => true,
        };
        let mut code = self.threads.iter().flat_map(|thread| &thread.code);
        code.clone().all(weak) && code.any(|instruction| matches!(instruction, Instruction::KernelBoundary))
    }

    /// Number of memory operations (an atomic counts once).
    pub fn memory_operations(&self) -> usize {
        let code = self.threads.iter().flat_map(|thread| &thread.code);
        code.filter(|instruction| instruction.location().is_some()).count()
    }

    /// The final state in which the threads hold `registers[thread][register]` and the memory `memory[location]`.
    pub fn final_state<R: AsRef<[Value]>>(&self, registers: &[R], memory: &[Value]) -> FinalState {
        debug_assert_eq!(registers.len(), self.threads.len());
        debug_assert_eq!(memory.len(), self.locations.len());
        let values = registers.iter().flat_map(|registers| registers.as_ref()).chain(memory);
        FinalState(values.copied().collect())
    }
}

/// What every register and every location of a program hold when all threads have ended: the registers of
/// thread 0, of thread 1 and so on, then the locations. Read it with the program it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FinalState(pub Box<[Value]>);

impl FinalState {
    /// The value of `register` of thread `thread` (an index into [`Program::threads`]).
    pub fn register(&self, program: &Program, thread: usize, register: Register) -> Value {
        self.0[program.register_base(thread) + register.0 as usize]
    }

    /// The value of `location`.
    pub fn location(&self, program: &Program, location: Location) -> Value {
        self.0[self.0.len() - program.locations.len() + location.0 as usize]
    }
}
