//! Reads one instruction.

use super::condition::Comparison;
use super::error::LitmusError;
use super::lexer::Kind;
use super::parser::{Parser, is_register};
use super::program::{Arithmetic, Instruction, Operand, Update};
use tombolo_types::{Order, Scope, Semantics};

const LOAD: [Semantics; 3] = [Semantics::Weak, Semantics::Relaxed, Semantics::Acquire];
const STORE: [Semantics; 3] = [Semantics::Weak, Semantics::Relaxed, Semantics::Release];
const ATOMIC: [Semantics; 4] = [Semantics::Relaxed, Semantics::Acquire, Semantics::Release, Semantics::AcquireRelease];
const FENCE: [Semantics; 2] = [Semantics::AcquireRelease, Semantics::SequentiallyConsistent];
const SCOPES: [Scope; 3] = [Scope::Cta, Scope::Gpu, Scope::Sys];

/// Instructions of the wider corpus that go through another proxy.
const PROXIES: [&str; 6] = ["tld", "suld", "cold", "sust", "suatom", "sured"];

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
            "fence" => self.fence(at),
            "bar" => self.barrier(at),
            "kernel" => self.kernel_boundary(),
            "goto" => {
                self.label_reference(thread)?;
                Ok(Instruction::Jump { target: 0 })
            }
            "add" | "sub" | "mul" | "div" => self.compute(thread, &mnemonic, at),
            proxy if PROXIES.contains(&proxy) => Err(self.unsupported(at, proxy)),
            branch => {
                match Comparison::ALL.iter().find(|(_, _, name)| *name == branch) {
                    Some((comparison, _, _)) => self.branch(thread, *comparison),
                    None => Err(self
                        .expected_at(at, "an instruction (ld, st, atom, red, fence, bar, kernel, add, beq, goto, …)")),
                }
            }
        }
    }

    fn move_value(&mut self, thread: usize) -> Result<Instruction, LitmusError> {
        let into = self.register(thread)?;
        self.expect(",")?;
        Ok(Instruction::Move { into, value: self.operand(thread)? })
    }

    fn load(&mut self, thread: usize) -> Result<Instruction, LitmusError> {
        let order = self.order(&LOAD)?;
        let into = self.register(thread)?;
        self.expect(",")?;
        Ok(Instruction::Load { order, into, location: self.location()? })
    }

    fn store(&mut self, thread: usize) -> Result<Instruction, LitmusError> {
        let order = self.order(&STORE)?;
        let location = self.location()?;
        self.expect(",")?;
        Ok(Instruction::Store { order, location, value: self.operand(thread)? })
    }

    /// `atom`, or `red` where nothing is `returned`.
    fn atomic(&mut self, thread: usize, returned: bool) -> Result<Instruction, LitmusError> {
        let order = self.order(&ATOMIC)?;
        self.expect(".")?;
        let at = self.at;
        let name = self.word("an operation")?;
        let arithmetic = Arithmetic::ALL.iter().find(|(_, known)| *known == name);
        if arithmetic.is_none() && !(returned && ["cas", "exch"].contains(&name.as_str())) {
            let more = if returned { ", cas, exch" } else { "" };
            return Err(self.expected_at(at, &format!("an operation (add, sub, mul, div, and, or, xor{more})")));
        }
        let mut into = None;
        if returned {
            into = Some(self.register(thread)?);
            self.expect(",")?;
        }
        let location = self.location()?;
        self.expect(",")?;
        let first = self.operand(thread)?;
        let update = match arithmetic {
            Some((operation, _)) => Update::Apply(*operation, first),
            None if name == "exch" => Update::Exchange(first),
            None => {
                self.expect(",")?;
                Update::CompareAndSwap { compare: first, new: self.operand(thread)? }
            }
        };
        Ok(Instruction::Atomic { order, into, location, update })
    }

    fn fence(&mut self, at: usize) -> Result<Instruction, LitmusError> {
        if let (Kind::Symbol("."), Kind::Word(word)) = (self.peek(), self.peek_second())
            && word == "proxy"
        {
            return Err(self.unsupported(at, "fence.proxy"));
        }
        Ok(Instruction::Fence { order: self.order(&FENCE)? })
    }

    fn barrier(&mut self, at: usize) -> Result<Instruction, LitmusError> {
        let mut name = String::from("bar");
        while self.take(".") {
            name = format!("{name}.{}", self.word("a part of `bar.cta.sync`")?);
        }
        if name != "bar.cta.sync" {
            return Err(self.unsupported(at, &name));
        }
        if matches!(self.peek(), Kind::Word(word) if is_register(word)) {
            return Err(self.unsupported(at, "bar.cta.sync with a register"));
        }
        const EXPECTED: &str = "a barrier of 0 to 4294967295";
        let id_at = self.at;
        let id = u32::try_from(self.integer(EXPECTED)?).map_err(|_| self.expected_at(id_at, EXPECTED))?;
        if self.sees(",") {
            return Err(self.unsupported(at, "bar.cta.sync with a thread count"));
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

    /// `.semantics.scope`, or `.weak` alone.
    fn order(&mut self, allowed: &[Semantics]) -> Result<Order, LitmusError> {
        let semantics = self.modifier(allowed)?;
        if semantics == Semantics::Weak {
            return Ok(Order::WEAK);
        }
        Ok(Order::new(semantics, self.modifier(&SCOPES)?))
    }

    /// A dot and one of `allowed`, by the name it displays as.
    fn modifier<T: Copy + ToString>(&mut self, allowed: &[T]) -> Result<T, LitmusError> {
        let names: Vec<String> = allowed.iter().map(|one| format!(".{}", one.to_string())).collect();
        let expected = names.join(", ");
        if !self.take(".") {
            return Err(self.expected(&expected));
        }
        let at = self.at;
        let word = self.word(&expected)?;
        let found = allowed.iter().find(|one| one.to_string() == word);
        found.copied().ok_or_else(|| self.expected_at(at, &expected))
    }

    fn operand(&mut self, thread: usize) -> Result<Operand, LitmusError> {
        if matches!(self.peek(), Kind::Word(_)) {
            return self.register(thread).map(Operand::Register);
        }
        self.integer("a register or an integer").map(Operand::Value)
    }
}
