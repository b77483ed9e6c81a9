//! Parser for a single instruction.

use super::condition::ComparisonOperator;
use super::error::LitmusError;
use super::lexer::TokenKind;
use super::modifier::{ATOMIC, LOAD, REDUCTION, STORE, listed};
use super::parser::Parser;
use super::program::{Arithmetic, Instruction, Location, Operand, Update};
use super::ptx;
use super::value_type::AtomicKind;
use tombolo_types::Order;

/// Rule violated by a reduction with an operation reserved for atomics.
const NO_RESULT: &str = "a reduction returns nothing: its operations are .add, .and, .or, .xor, .min, .max, .inc, .dec";
/// Rule violated by a reduction with acquire semantics.
const NOTHING_ACQUIRED: &str = "a reduction returns nothing that could acquire: its semantics are .relaxed, .release";
/// Reason why other fences are rejected.
const ONE_PROXY: &str = "accesses go through the generic proxy";

/// Operation in an atomic or a reduction, without operands.
#[derive(Clone, Copy)]
enum AtomicOperation {
    Apply(Arithmetic),
    Exchange,
    CompareAndSwap,
}

impl AtomicOperation {
    fn named(name: &str) -> Option<AtomicOperation> {
        match name {
            "exch" => Some(AtomicOperation::Exchange),
            "cas" => Some(AtomicOperation::CompareAndSwap),
            _ => {
                let known = Arithmetic::OF_ATOMICS.iter().find(|(_, known)| *known == name);
                known.map(|(operation, _)| AtomicOperation::Apply(*operation))
            }
        }
    }

    /// True for an operation reserved for atomics, because it makes sense only with a result.
    fn is_of_results(self) -> bool {
        match self {
            AtomicOperation::Apply(_) => false,
            AtomicOperation::Exchange | AtomicOperation::CompareAndSwap => true,
        }
    }

    fn kind(self) -> AtomicKind {
        match self {
            AtomicOperation::Apply(operation) => AtomicKind::of_operation(operation),
            AtomicOperation::Exchange => AtomicKind::Bits,
            AtomicOperation::CompareAndSwap => AtomicKind::CompareAndSwap,
        }
    }
}

/// True for a semantics keyword that acquires.
fn is_acquire(word: &str) -> bool {
    ATOMIC.iter().any(|(known, semantics)| *known == word && semantics.acquires())
}

impl Parser {
    /// Parses the next instruction of thread `thread`.
    pub(super) fn statement(&mut self, thread: usize) -> Result<Instruction, LitmusError> {
        let at = self.at;
        let mnemonic = self.word("an instruction")?;
        match mnemonic.as_str() {
            "ld" if !self.sees(".") => self.move_value(thread),
            "ld" => self.load(thread),
            "st" => self.store(thread),
            "atom" => self.atomic(thread, true),
            "red" => self.atomic(thread, false),
            "fence" | "membar" => self.fence(thread, &mnemonic, at),
            "bar" | "barrier" => self.barrier(thread, mnemonic, at),
            "kernel" => self.kernel_boundary(),
            "goto" => {
                self.label_reference(thread)?;
                Ok(Instruction::Jump { target: 0 })
            }
            "add" | "sub" | "mul" | "div" => self.compute(thread, &mnemonic, at),
            other => self.branch_or_refuse(thread, other, at),
        }
    }

    fn branch_or_refuse(&mut self, thread: usize, name: &str, at: usize) -> Result<Instruction, LitmusError> {
        if let Some((comparison, _, _)) = ComparisonOperator::ALL.iter().find(|(_, _, branch)| *branch == name) {
            return self.branch(thread, *comparison);
        }
        Err(match ptx::instruction(name) {
            Some(reason) => self.unsupported(at, name, reason),
            None => self
                .expected_at(at, "an instruction (ld, st, atom, red, fence, membar, bar, kernel, add, beq, goto, …)"),
        })
    }

    /// Parses `ld` without a dot: moves a value into a register, or performs a weak load from a location in brackets.
    fn move_value(&mut self, thread: usize) -> Result<Instruction, LitmusError> {
        let into = self.register(thread)?;
        self.expect(",")?;
        if self.sees("[") {
            return Ok(Instruction::Load { order: Order::WEAK, into, location: self.address(thread)? });
        }
        Ok(Instruction::Move { into, value: self.operand(thread)? })
    }

    fn load(&mut self, thread: usize) -> Result<Instruction, LitmusError> {
        let order = self.access_order(thread, LOAD)?;
        let (type_at, written) = (self.at, self.optional_type());
        let into = self.register(thread)?;
        self.expect(",")?;
        let location = self.address(thread)?;
        self.give_type(location, written, type_at)?;
        Ok(Instruction::Load { order, into, location })
    }

    fn store(&mut self, thread: usize) -> Result<Instruction, LitmusError> {
        let order = self.access_order(thread, STORE)?;
        let (type_at, written) = (self.at, self.optional_type());
        let location = self.address(thread)?;
        self.give_type(location, written, type_at)?;
        self.expect(",")?;
        let value = self.operand_for(thread, location)?;
        Ok(Instruction::Store { order, location, value })
    }

    /// Parses `atom`, or `red` if `returned` is false.
    fn atomic(&mut self, thread: usize, returned: bool) -> Result<Instruction, LitmusError> {
        let behind_name = self.at;
        let allowed = if returned { ATOMIC } else { REDUCTION };
        let order = self.atomic_order(thread, allowed)?;
        let is_first = self.at == behind_name;
        let operation_at = self.at + 1;
        let operation = self.operation(returned, &listed(allowed), is_first)?;
        let (type_at, written) = (self.at, self.atomic_type(operation.kind())?);
        self.refuse_modifiers_of_ptx()?;
        let mut into = None;
        if returned {
            into = Some(self.register(thread)?);
            self.expect(",")?;
        }
        let location = self.address(thread)?;
        self.give_type(location, written, type_at)?;
        self.note_atomic(location, operation.kind(), operation_at);
        self.expect(",")?;
        let first = self.operand_for(thread, location)?;
        let update = match operation {
            AtomicOperation::Apply(operation) => Update::Apply(operation, first),
            AtomicOperation::Exchange => Update::Exchange(first),
            AtomicOperation::CompareAndSwap => {
                self.expect(",")?;
                Update::CompareAndSwap { compare: first, new: self.operand_for(thread, location)? }
            }
        };
        Ok(Instruction::Atomic { order, into, location, update })
    }

    /// Parses a dot and the name of an atomic's operation. If `first` is set, the error message also offers `semantics`
    /// or a scope as alternatives.
    fn operation(&mut self, returned: bool, semantics: &str, first: bool) -> Result<AtomicOperation, LitmusError> {
        let results: &[&str] = if returned { &["exch", "cas"] } else { &[] };
        let operations = Arithmetic::OF_ATOMICS.iter().map(|(_, name)| *name).chain(results.iter().copied());
        let operations = operations.collect::<Vec<&str>>().join(", ");
        let before = if first { format!("{semantics}, a scope or ") } else { String::new() };
        let expected = format!("{before}an operation ({operations})");
        self.refuse_modifiers_of_ptx()?;
        if !self.take(".") {
            return Err(self.expected(&expected));
        }
        let at = self.at;
        let name = self.word(&expected)?;
        match AtomicOperation::named(&name) {
            Some(operation) if returned || !operation.is_of_results() => Ok(operation),
            Some(_) => Err(self.illegal(at, &format!("red.{name}"), NO_RESULT)),
            None if !returned && is_acquire(&name) => Err(self.illegal(at, &format!("red.{name}"), NOTHING_ACQUIRED)),
            None if Arithmetic::OF_REGISTERS.iter().any(|(_, known)| *known == name) => {
                Err(self.illegal(at, &format!(".{name}"), &format!("the operations are {operations}")))
            }
            None => Err(self.expected_at(at, &expected)),
        }
    }

    fn fence(&mut self, thread: usize, name: &str, at: usize) -> Result<Instruction, LitmusError> {
        if self.sees_modifier("proxy") {
            return Err(self.unsupported(at, &format!("{name}.proxy"), ONE_PROXY));
        }
        let order = if name == "membar" { self.membar_order(thread)? } else { self.fence_order(thread)? };
        self.refuse_modifiers_of_ptx()?;
        Ok(Instruction::Fence { order })
    }

    fn kernel_boundary(&mut self) -> Result<Instruction, LitmusError> {
        const EXPECTED: &str = "`boundary`";
        self.expect(".")?;
        let at = self.at;
        match self.word(EXPECTED)?.as_str() {
            "boundary" => Ok(Instruction::KernelBoundary),
            _ => Err(self.expected_at(at, EXPECTED)),
        }
    }

    fn compute(&mut self, thread: usize, name: &str, at: usize) -> Result<Instruction, LitmusError> {
        let known = Arithmetic::OF_REGISTERS.iter().find(|(_, known)| *known == name);
        let (operation, _) = *known.ok_or_else(|| self.expected_at(at, "add, sub, mul or div"))?;
        self.type_of_registers(operation)?;
        let into = self.register(thread)?;
        self.expect(",")?;
        let left = self.operand(thread)?;
        self.expect(",")?;
        Ok(Instruction::Compute { operation, into, left, right: self.operand(thread)? })
    }

    /// Skips the type on a computation; the type must equal the registers' type. A product with a type also names its
    /// half.
    fn type_of_registers(&mut self, operation: Arithmetic) -> Result<(), LitmusError> {
        let is_product = operation == Arithmetic::Mul;
        let is_low = is_product && self.sees_modifier("lo");
        if is_low {
            self.step();
            self.step();
        }
        let at = self.at;
        let Some(written) = self.optional_type() else {
            self.refuse_modifiers_of_ptx()?;
            return if is_low { Err(self.expected(".s64")) } else { Ok(()) };
        };
        if is_product && !is_low {
            return Err(self.illegal(at, &format!("mul.{}", written.name()), "a product is .lo, .hi or .wide"));
        }
        if written.name() != "s64" {
            return Err(self.unsupported(at, &format!(".{}", written.name()), "registers compute in 64 bits, as .s64"));
        }
        self.refuse_modifiers_of_ptx()
    }

    fn branch(&mut self, thread: usize, comparison: ComparisonOperator) -> Result<Instruction, LitmusError> {
        let left = self.operand(thread)?;
        self.expect(",")?;
        let right = self.operand(thread)?;
        self.expect(",")?;
        self.label_reference(thread)?;
        Ok(Instruction::Branch { comparison, left, right, target: 0 })
    }

    /// Parses an operand for a write to `location`, or for a comparison with the location's value.
    fn operand_for(&mut self, thread: usize, location: Location) -> Result<Operand, LitmusError> {
        let at = self.at;
        let operand = self.operand(thread)?;
        self.note_value(location, operand, at);
        Ok(operand)
    }

    fn operand(&mut self, thread: usize) -> Result<Operand, LitmusError> {
        if matches!(self.peek(), TokenKind::Word(_)) {
            return self.register(thread).map(Operand::Register);
        }
        self.integer("a register or an integer").map(Operand::Value)
    }
}
