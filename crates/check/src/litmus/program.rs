//! A litmus test's program, the input for the axiomatic model and for operational explorers.
//!
//! Registers are dense per thread, locations dense per program, branch targets indices into the thread's code:
//! executing an instruction needs no lookup by name.

use super::condition::ComparisonOperator;
use super::value_type::ValueType;
use tombolo_types::{GpuId, Order, Scope};

/// Value of a register or a location. Arithmetic wraps.
pub type Value = i64;

/// A register of a thread: an index into [`Thread::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u16);

/// A memory location: an index into [`Program::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(pub u16);

/// Placement of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadPlacement {
    /// In a CTA on a GPU.
    Cta {
        /// The GPU.
        gpu: GpuId,
        /// The CTA, numbered within its GPU.
        cta: u16,
    },
    /// On the host, the CPU that launches the kernels. A host thread has no GPU and shares a CTA with no thread, not
    /// even with further host threads: its strong accesses are `.sys`.
    Host,
}

impl ThreadPlacement {
    /// GPU of the placement; `None` for the host.
    pub fn gpu(self) -> Option<GpuId> {
        match self {
            ThreadPlacement::Cta { gpu, .. } => Some(gpu),
            ThreadPlacement::Host => None,
        }
    }

    /// True for the host.
    pub fn is_host(self) -> bool {
        self == ThreadPlacement::Host
    }

    /// True if two threads placed at `self` and at `other` share a CTA.
    pub fn shares_cta(self, other: ThreadPlacement) -> bool {
        self == other && !self.is_host()
    }

    /// True if the `scope` of a thread placed at `self` includes a second thread, placed at `other`.
    pub fn reaches(self, scope: Scope, other: ThreadPlacement) -> bool {
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
    /// The value of a register in the executing thread.
    Register(Register),
    /// A constant.
    Value(Value),
}

impl Operand {
    /// Value of the operand, given the thread's registers.
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
    /// Quotient, rounded to zero. Division by zero gives zero (PTX leaves it undefined).
    Div,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The smaller value.
    Min,
    /// The larger value.
    Max,
    /// One more than the left value; zero if the left value is at least the right value. Both are unsigned.
    Increment,
    /// One less than the left value; the right value if the left value is zero or larger than the right value. Both
    /// are unsigned.
    Decrement,
}

impl Arithmetic {
    /// Operations on registers with their mnemonics.
    pub const OF_REGISTERS: [(Arithmetic, &'static str); 4] =
        [(Arithmetic::Add, "add"), (Arithmetic::Sub, "sub"), (Arithmetic::Mul, "mul"), (Arithmetic::Div, "div")];

    /// Operations for atomics and reductions with their names. Source: PTX ISA, atom and red.
    pub const OF_ATOMICS: [(Arithmetic, &'static str); 8] = [
        (Arithmetic::Add, "add"),
        (Arithmetic::And, "and"),
        (Arithmetic::Or, "or"),
        (Arithmetic::Xor, "xor"),
        (Arithmetic::Min, "min"),
        (Arithmetic::Max, "max"),
        (Arithmetic::Increment, "inc"),
        (Arithmetic::Decrement, "dec"),
    ];

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
            Arithmetic::Min => left.min(right),
            Arithmetic::Max => left.max(right),
            Arithmetic::Increment if left as u64 >= right as u64 => 0,
            Arithmetic::Increment => left.wrapping_add(1),
            Arithmetic::Decrement if left == 0 || left as u64 > right as u64 => right,
            Arithmetic::Decrement => left.wrapping_sub(1),
        }
    }
}

/// Function that a read-modify-write applies to the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update {
    /// `old op operand`, an operation from [`Arithmetic::OF_ATOMICS`].
    Apply(Arithmetic, Operand),
    /// The operand.
    Exchange(Operand),
    /// `new` if the old value equals `compare`; else the old value is written back.
    CompareAndSwap {
        /// Value compared with the old value.
        compare: Operand,
        /// Value written on equality.
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
    /// The written value, given the old value and the thread's registers.
    pub fn apply(&self, old: Value, registers: &[Value]) -> Value {
        match *self {
            Update::Apply(operation, operand) => operation.apply(old, operand.value(registers)),
            Update::Exchange(operand) => operand.value(registers),
            Update::CompareAndSwap { compare, new } if compare.value(registers) == old => new.value(registers),
            Update::CompareAndSwap { .. } => old,
        }
    }
}

/// Threads per warp: each of a test's threads stands for a warp. Source: PTX ISA, `WARP_SZ`.
pub const WARP: u32 = 32;

/// Effect of a barrier on the arriving thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BarrierRole {
    /// `sync`: the thread waits until the barrier opens.
    Sync,
    /// `arrive`: the thread continues at once.
    Arrive,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// `ld.weak`, `ld.relaxed`, `ld.acquire`.
    Load {
        /// Semantics and scope.
        order: Order,
        /// Destination register.
        into: Register,
        /// Location read.
        location: Location,
    },
    /// `st.weak`, `st.relaxed`, `st.release`.
    Store {
        /// Semantics and scope.
        order: Order,
        /// Location written.
        location: Location,
        /// The value.
        value: Operand,
    },
    /// `atom`, or `red` if no value is returned.
    Atomic {
        /// Semantics and scope.
        order: Order,
        /// Destination register for the old value; `None` for `red`.
        into: Option<Register>,
        /// Location read and written.
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
        /// Destination register.
        into: Register,
        /// The value.
        value: Operand,
    },
    /// `add`, `sub`, `mul`, `div` on registers.
    Compute {
        /// The operation.
        operation: Arithmetic,
        /// Destination register.
        into: Register,
        /// First input.
        left: Operand,
        /// Second input.
        right: Operand,
    },
    /// `bar.cta.sync`, `bar.cta.arrive`.
    Barrier {
        /// The barrier of the CTA.
        id: u32,
        /// Effect on the arriving thread.
        role: BarrierRole,
        /// Arrivals that open the barrier. `None`: those of every thread in the CTA, except for threads with an ended
        /// kernel.
        count: Option<u32>,
    },
    /// `kernel.boundary`: in every thread, instructions before it belong to a kernel, later instructions to the next
    /// kernel.
    ///
    /// All threads meet at a boundary, including host threads. Host instructions before a boundary precede the launch
    /// of the next kernel; host instructions after a boundary follow the previous kernel's end. If no GPU thread has an
    /// instruction between two boundaries, no kernel is launched: only host code executes.
    KernelBoundary,
    /// `beq` and its variants: branches to `target` if the comparison holds.
    Branch {
        /// The comparison.
        comparison: ComparisonOperator,
        /// Left operand.
        left: Operand,
        /// Right operand.
        right: Operand,
        /// Index into the thread's code; the code length means the end.
        target: usize,
    },
    /// `goto`.
    Jump {
        /// Index into the thread's code; the code length means the end.
        target: usize,
    },
}

impl Instruction {
    /// Location accessed by the instruction, if any.
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

    /// Location that the instruction loads from, if any; an atomic loads and stores.
    pub fn loads_from(&self) -> Option<Location> {
        if matches!(self, Instruction::Store { .. }) { None } else { self.location() }
    }

    /// Location that the instruction stores to, if any; an atomic loads and stores.
    pub fn stores_to(&self) -> Option<Location> {
        if matches!(self, Instruction::Load { .. }) { None } else { self.location() }
    }

    /// Register set by the instruction, if any.
    pub fn sets(&self) -> Option<Register> {
        match *self {
            Instruction::Load { into, .. } | Instruction::Move { into, .. } | Instruction::Compute { into, .. } => {
                Some(into)
            }
            Instruction::Atomic { into, .. } => into,
            Instruction::Store { .. }
            | Instruction::Fence { .. }
            | Instruction::Barrier { .. }
            | Instruction::KernelBoundary
            | Instruction::Branch { .. }
            | Instruction::Jump { .. } => None,
        }
    }

    /// Registers read by the instruction.
    pub fn reads(&self) -> impl Iterator<Item = Register> + use<> {
        let register = |input| match input {
            Operand::Register(register) => Some(register),
            Operand::Value(_) => None,
        };
        let registers = match *self {
            Instruction::Store { value, .. }
            | Instruction::Move { value, .. }
            | Instruction::Atomic { update: Update::Apply(_, value) | Update::Exchange(value), .. } => {
                [register(value), None]
            }
            Instruction::Atomic { update: Update::CompareAndSwap { compare, new }, .. } => {
                [register(compare), register(new)]
            }
            Instruction::Compute { left, right, .. } | Instruction::Branch { left, right, .. } => {
                [register(left), register(right)]
            }
            Instruction::Load { .. }
            | Instruction::Fence { .. }
            | Instruction::Barrier { .. }
            | Instruction::KernelBoundary
            | Instruction::Jump { .. } => [None, None],
        };
        registers.into_iter().flatten()
    }

    /// Possible successor in addition to the next instruction.
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
    /// Type of the accesses; `None` if they are written without a type.
    pub value_type: Option<ValueType>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Number in the thread's name: `P0` has 0.
    pub number: u32,
    /// Placement of the thread.
    pub placement: ThreadPlacement,
    /// Registers of the thread, indexed by [`Register`].
    pub registers: Vec<RegisterDeclaration>,
    /// Instructions of the thread.
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
    /// Index in a [`FinalState`] for the first register in thread `thread` (an index).
    fn register_base(&self, thread: usize) -> usize {
        self.threads[..thread].iter().map(|thread| thread.registers.len()).sum()
    }

    /// Kernel boundaries per thread.
    pub fn boundaries(&self) -> usize {
        let of = |thread: &Thread| thread.code.iter().filter(|step| **step == Instruction::KernelBoundary).count();
        self.threads.iter().map(of).max().unwrap_or(0)
    }

    /// True if some thread is on the host.
    pub fn has_host(&self) -> bool {
        self.threads.iter().any(|thread| thread.placement.is_host())
    }

    /// True if some branch goes backwards.
    pub fn has_loop(&self) -> bool {
        self.threads.iter().any(|thread| {
            thread.code.iter().enumerate().any(|(at, instruction)| instruction.target().is_some_and(|to| to <= at))
        })
    }

    /// True if kernel boundaries are the only means for ordering threads: all accesses are weak loads and stores.
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

    /// The final state with register contents `registers[thread][register]` and memory contents `memory[location]`.
    pub fn final_state<R: AsRef<[Value]>>(&self, registers: &[R], memory: &[Value]) -> FinalState {
        debug_assert_eq!(registers.len(), self.threads.len());
        debug_assert_eq!(memory.len(), self.locations.len());
        let values = registers.iter().flat_map(|registers| registers.as_ref()).chain(memory);
        FinalState(values.copied().collect())
    }
}

/// Contents of every register and every location in a program after all threads have ended: the registers in thread 0,
/// then thread 1 and further threads, then the locations. Interpretation requires the corresponding program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FinalState(pub Box<[Value]>);

impl FinalState {
    /// The value of `register` in thread `thread` (an index into [`Program::threads`]).
    pub fn register(&self, program: &Program, thread: usize, register: Register) -> Value {
        self.0[program.register_base(thread) + register.0 as usize]
    }

    /// The value of `location`.
    pub fn location(&self, program: &Program, location: Location) -> Value {
        self.0[self.0.len() - program.locations.len() + location.0 as usize]
    }
}
