//! Reads one instruction.

use super::condition::Comparison;
use super::error::LitmusError;
use super::lexer::Kind;
use super::modifier::{ATOMIC, LOAD, STORE, listed};
use super::parser::{Parser, is_register};
use super::program::{Arithmetic, Instruction, Operand, Update};
use super::ptx;
use tombolo_types::Order;

/// Parts of PTX's names of barriers.
const BARRIER_PARTS: [&str; 14] = [
    "cta", "cluster", "warp", "sync", "arrive", "wait", "red", "aligned", "acquire", "release", "relaxed", "popc",
    "and", "or",
];
/// Spellings of the barrier of a whole CTA. Source: PTX ISA, bar and barrier: `.cta` may be left out, and `bar` is
/// `barrier` with `.aligned`.
const CTA_BARRIERS: [&str; 6] = [
    "bar.cta.sync",
    "bar.sync",
    "barrier.cta.sync",
    "barrier.sync",
    "barrier.cta.sync.aligned",
    "barrier.sync.aligned",
];
/// Why other barriers are not taken.
const WHOLE_CTA: &str = "a barrier is one of a whole CTA, `bar.cta.sync` and its number";
/// Why other fences are not taken.
const ONE_PROXY: &str = "accesses go through the generic proxy";

impl Parser {
    /// Reads the next instruction of thread `thread`.
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
        if let Some((comparison, _, _)) = Comparison::ALL.iter().find(|(_, _, branch)| *branch == name) {
            return self.branch(thread, *comparison);
        }
        Err(match ptx::instruction(name) {
            Some(reason) => self.unsupported(at, name, reason),
            None => self
                .expected_at(at, "an instruction (ld, st, atom, red, fence, membar, bar, kernel, add, beq, goto, …)"),
        })
    }

    /// `ld` without a dot: a value into a register, or a weak load where a location stands in brackets.
    fn move_value(&mut self, thread: usize) -> Result<Instruction, LitmusError> {
        let into = self.register(thread)?;
        self.expect(",")?;
        if self.sees("[") {
            return Ok(Instruction::Load { order: Order::WEAK, into, location: self.address()? });
        }
        Ok(Instruction::Move { into, value: self.operand(thread)? })
    }

    fn load(&mut self, thread: usize) -> Result<Instruction, LitmusError> {
        let order = self.access_order(thread, LOAD)?;
        let into = self.register(thread)?;
        self.expect(",")?;
        Ok(Instruction::Load { order, into, location: self.address()? })
    }

    fn store(&mut self, thread: usize) -> Result<Instruction, LitmusError> {
        let order = self.access_order(thread, STORE)?;
        let location = self.address()?;
        self.expect(",")?;
        Ok(Instruction::Store { order, location, value: self.operand(thread)? })
    }

    /// `atom`, or `red` where nothing is `returned`.
    fn atomic(&mut self, thread: usize, returned: bool) -> Result<Instruction, LitmusError> {
        let behind_name = self.at;
        let order = self.atomic_order(thread)?;
        let name = self.operation(returned, self.at == behind_name)?;
        let mut into = None;
        if returned {
            into = Some(self.register(thread)?);
            self.expect(",")?;
        }
        let location = self.address()?;
        self.expect(",")?;
        let first = self.operand(thread)?;
        let update = match Arithmetic::ALL.iter().find(|(_, known)| *known == name) {
            Some((operation, _)) => Update::Apply(*operation, first),
            None if name == "exch" => Update::Exchange(first),
            None => {
                self.expect(",")?;
                Update::CompareAndSwap { compare: first, new: self.operand(thread)? }
            }
        };
        Ok(Instruction::Atomic { order, into, location, update })
    }

    /// A dot and the name of an atomic's operation; semantics or a scope could come in its place where it is the `first`.
    fn operation(&mut self, returned: bool, first: bool) -> Result<String, LitmusError> {
        let (semantics, more) = (listed(ATOMIC), if returned { ", cas, exch" } else { "" });
        let before = if first { format!("{semantics}, a scope or ") } else { String::new() };
        let expected = format!("{before}an operation (add, sub, mul, div, and, or, xor{more})");
        self.refuse_modifiers_of_ptx()?;
        if !self.take(".") {
            return Err(self.expected(&expected));
        }
        let at = self.at;
        let name = self.word(&expected)?;
        let is_known = Arithmetic::ALL.iter().any(|(_, known)| *known == name)
            || returned && ["cas", "exch"].contains(&name.as_str());
        if !is_known {
            return Err(self.expected_at(at, &expected));
        }
        self.refuse_modifiers_of_ptx()?;
        Ok(name)
    }

    fn fence(&mut self, thread: usize, name: &str, at: usize) -> Result<Instruction, LitmusError> {
        if self.sees_modifier("proxy") {
            return Err(self.unsupported(at, &format!("{name}.proxy"), ONE_PROXY));
        }
        let order = if name == "membar" { self.membar_order(thread)? } else { self.fence_order(thread)? };
        self.refuse_modifiers_of_ptx()?;
        Ok(Instruction::Fence { order })
    }

    fn barrier(&mut self, thread: usize, mut name: String, at: usize) -> Result<Instruction, LitmusError> {
        if self.is_on_host(thread) {
            return Err(self.expected_at(at, "no barrier: a host thread has no CTA to meet"));
        }
        while self.take(".") {
            let part_at = self.at;
            let part = self.word("a part of `bar.cta.sync`")?;
            if !BARRIER_PARTS.contains(&part.as_str()) && ptx::modifier(&part).is_none() {
                return Err(self.expected_at(part_at, "a part of `bar.cta.sync`"));
            }
            name = format!("{name}.{part}");
        }
        if !CTA_BARRIERS.contains(&name.as_str()) {
            return Err(self.unsupported(at, &name, WHOLE_CTA));
        }
        if matches!(self.peek(), Kind::Word(word) if is_register(word)) {
            return Err(self.unsupported(at, &format!("{name} with a register"), WHOLE_CTA));
        }
        const EXPECTED: &str = "a barrier of 0 to 4294967295";
        let id_at = self.at;
        let id = u32::try_from(self.integer(EXPECTED)?).map_err(|_| self.expected_at(id_at, EXPECTED))?;
        if self.sees(",") {
            return Err(self.unsupported(at, &format!("{name} with a thread count"), WHOLE_CTA));
        }
        Ok(Instruction::Barrier { id })
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
        let known = Arithmetic::ALL.iter().find(|(_, known)| *known == name);
        let (operation, _) = *known.ok_or_else(|| self.expected_at(at, "add, sub, mul or div"))?;
        self.refuse_modifiers_of_ptx()?;
        let into = self.register(thread)?;
        self.expect(",")?;
        let left = self.operand(thread)?;
        self.expect(",")?;
        Ok(Instruction::Compute { operation, into, left, right: self.operand(thread)? })
    }

    fn branch(&mut self, thread: usize, comparison: Comparison) -> Result<Instruction, LitmusError> {
        let left = self.operand(thread)?;
        self.expect(",")?;
        let right = self.operand(thread)?;
        self.expect(",")?;
        self.label_reference(thread)?;
        Ok(Instruction::Branch { comparison, left, right, target: 0 })
    }

    fn operand(&mut self, thread: usize) -> Result<Operand, LitmusError> {
        if matches!(self.peek(), Kind::Word(_)) {
            return self.register(thread).map(Operand::Register);
        }
        self.integer("a register or an integer").map(Operand::Value)
    }
}
