//! The frame of a litmus file: initial values, placements, rows of instructions.
//!
//! Instructions are read in `statement`, the final condition in `formula`; all three share the [`Parser`].

use super::Litmus;
use super::error::{LitmusError, Place};
use super::lexer::{Kind, Token, lex};
use super::program::{
    Instruction, Location, LocationDeclaration, Placement, Program, Register, RegisterDeclaration, Thread, Value,
};
use std::sync::Arc;
use tombolo_types::GpuId;

pub(super) fn parse(file: &str, text: &str) -> Result<Litmus, LitmusError> {
    let file: Arc<str> = file.into();
    let lexed = lex(&file, text)?;
    let program = Program { name: lexed.name, locations: Vec::new(), threads: Vec::new() };
    Parser { file, tokens: lexed.tokens, at: 0, program, labels: Vec::new(), jumps: Vec::new() }.test()
}

/// A register's initial value, kept until the threads are known.
struct RegisterInit {
    /// Index of the token that names the thread.
    at: usize,
    thread: u32,
    register: String,
    value: Value,
}

/// A label and the instruction it stands before.
struct Label {
    thread: usize,
    name: String,
    target: usize,
}

/// A branch whose target is not resolved yet.
struct Jump {
    thread: usize,
    instruction: usize,
    label: String,
    /// Index of the token that names the label.
    at: usize,
}

/// Reads tokens from left to right. `at` never passes the final [`Kind::End`].
pub(super) struct Parser {
    file: Arc<str>,
    tokens: Vec<Token>,
    pub(super) at: usize,
    program: Program,
    labels: Vec<Label>,
    jumps: Vec<Jump>,
}

/// Tokens.
impl Parser {
    pub(super) fn peek(&self) -> &Kind {
        &self.tokens[self.at].kind
    }

    pub(super) fn peek_second(&self) -> &Kind {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    pub(super) fn step(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    pub(super) fn sees(&self, symbol: &str) -> bool {
        matches!(self.peek(), Kind::Symbol(found) if *found == symbol)
    }

    pub(super) fn sees_word(&self, word: &str) -> bool {
        matches!(self.peek(), Kind::Word(found) if found == word)
    }

    /// Takes `symbol` if it comes next.
    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let found = self.sees(symbol);
        if found {
            self.step();
        }
        found
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), LitmusError> {
        if self.take(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    pub(super) fn word(&mut self, expected: &str) -> Result<String, LitmusError> {
        let Kind::Word(word) = self.peek() else { return Err(self.expected(expected)) };
        let word = word.clone();
        self.step();
        Ok(word)
    }

    /// An integer with an optional minus sign.
    pub(super) fn integer(&mut self, expected: &str) -> Result<Value, LitmusError> {
        let first = self.at;
        let negative = self.take("-");
        let Kind::Number(number) = *self.peek() else {
            self.at = first;
            return Err(self.expected(expected));
        };
        self.step();
        Ok(if negative { -number } else { number })
    }

    /// An integer that `T` can hold.
    fn small<T: TryFrom<Value>>(&mut self, expected: &str) -> Result<T, LitmusError> {
        let at = self.at;
        T::try_from(self.integer(expected)?).map_err(|_| self.expected_at(at, expected))
    }

    pub(super) fn expected(&self, expected: &str) -> LitmusError {
        self.expected_at(self.at, expected)
    }

    pub(super) fn expected_at(&self, at: usize, expected: &str) -> LitmusError {
        let found = self.tokens[at].kind.to_string();
        LitmusError::Syntax { place: self.place(at), expected: expected.to_owned(), found }
    }

    /// The construct that starts at token `at` is known, but not supported.
    pub(super) fn unsupported(&self, at: usize, name: &str) -> LitmusError {
        LitmusError::Unsupported { place: self.place(at), name: name.to_owned() }
    }

    fn place(&self, at: usize) -> Place {
        let token = &self.tokens[at];
        Place { file: self.file.clone(), line: token.line, column: token.column }
    }
}

/// Names.
impl Parser {
    /// The number of a thread, written `P0` or `0`.
    pub(super) fn thread_number(&mut self) -> Result<u32, LitmusError> {
        const EXPECTED: &str = "a thread (P0, P1, …)";
        let Kind::Word(word) = self.peek() else { return self.small(EXPECTED) };
        let number = word.strip_prefix('P').and_then(|digits| digits.parse().ok());
        let number = number.ok_or_else(|| self.expected(EXPECTED))?;
        self.step();
        Ok(number)
    }

    /// The index of thread `number`, which the token `at` names.
    pub(super) fn thread_index(&self, number: u32, at: usize) -> Result<usize, LitmusError> {
        let found = self.program.threads.iter().position(|thread| thread.number == number);
        found.ok_or_else(|| {
            let known: Vec<String> = self.program.threads.iter().map(|thread| format!("P{}", thread.number)).collect();
            self.expected_at(at, &format!("a thread of this test ({})", known.join(", ")))
        })
    }

    /// A register of thread `thread`, declared here where it was not.
    pub(super) fn register(&mut self, thread: usize) -> Result<Register, LitmusError> {
        let at = self.at;
        let name = self.register_name()?;
        self.register_named(thread, name, at)
    }

    fn register_name(&mut self) -> Result<String, LitmusError> {
        const EXPECTED: &str = "a register (r0, r1, …)";
        let at = self.at;
        let name = self.word(EXPECTED)?;
        if is_register(&name) { Ok(name) } else { Err(self.expected_at(at, EXPECTED)) }
    }

    fn register_named(&mut self, thread: usize, name: String, at: usize) -> Result<Register, LitmusError> {
        let registers = &mut self.program.threads[thread].registers;
        let index = registers.iter().position(|register| register.name == name).unwrap_or_else(|| {
            registers.push(RegisterDeclaration { name, initial: 0 });
            registers.len() - 1
        });
        u16::try_from(index).map(Register).map_err(|_| self.expected_at(at, "at most 65536 registers a thread"))
    }

    /// How many registers of a thread have been named.
    pub(super) fn registers_of(&self, thread: usize) -> usize {
        self.program.threads[thread].registers.len()
    }

    /// A location that has been named before.
    pub(super) fn known_location(&mut self) -> Result<Location, LitmusError> {
        let (at, known) = (self.at, self.program.locations.len());
        let location = self.location()?;
        if usize::from(location.0) < known { Ok(location) } else { Err(self.expected_at(at, "a location of the test")) }
    }

    /// A location, declared here where it was not.
    pub(super) fn location(&mut self) -> Result<Location, LitmusError> {
        const EXPECTED: &str = "a location";
        let at = self.at;
        let name = self.word(EXPECTED)?;
        if is_register(&name) {
            return Err(self.unsupported(at, "address in a register"));
        }
        if self.sees("[") {
            return Err(self.unsupported(at, "array"));
        }
        let locations = &mut self.program.locations;
        let index = locations.iter().position(|location| location.name == name).unwrap_or_else(|| {
            locations.push(LocationDeclaration { name, initial: 0 });
            locations.len() - 1
        });
        u16::try_from(index).map(Location).map_err(|_| self.expected_at(at, "at most 65536 locations"))
    }
}

/// Whether `name` names a register: `r` and a number.
pub(super) fn is_register(name: &str) -> bool {
    name.strip_prefix('r')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The frame of the file.
impl Parser {
    fn test(mut self) -> Result<Litmus, LitmusError> {
        while *self.peek() == Kind::Text {
            self.step();
        }
        let registers = self.init()?;
        self.placements()?;
        for init in registers {
            let thread = self.thread_index(init.thread, init.at)?;
            let register = self.register_named(thread, init.register, init.at)?;
            self.program.threads[thread].registers[register.0 as usize].initial = init.value;
        }
        while !self.at_condition()? {
            self.row()?;
        }
        self.resolve_jumps()?;
        self.check_boundaries()?;
        let condition = self.condition()?;
        Ok(Litmus { program: self.program, condition })
    }

    /// `{ x=0; P0:r0=0; }`. What is set twice keeps the last value.
    fn init(&mut self) -> Result<Vec<RegisterInit>, LitmusError> {
        self.expect("{")?;
        let mut registers = Vec::new();
        while !self.take("}") {
            if self.take(";") {
                continue;
            }
            let at = self.at;
            if *self.peek_second() == Kind::Symbol(":") {
                registers.push(self.init_register(at)?);
            } else {
                self.init_location(at)?;
            }
            if !self.sees("}") {
                self.expect(";")?;
            }
        }
        self.take(";");
        Ok(registers)
    }

    fn init_register(&mut self, at: usize) -> Result<RegisterInit, LitmusError> {
        let thread = self.thread_number()?;
        self.expect(":")?;
        let register = self.register_name()?;
        self.expect("=")?;
        let value = self.init_value()?;
        Ok(RegisterInit { at, thread, register, value })
    }

    fn init_location(&mut self, at: usize) -> Result<(), LitmusError> {
        let location = self.location()?;
        if self.sees("@") {
            return Err(self.unsupported(at, "alias"));
        }
        self.expect("=")?;
        self.program.locations[location.0 as usize].initial = self.init_value()?;
        Ok(())
    }

    fn init_value(&mut self) -> Result<Value, LitmusError> {
        if self.sees("&") || matches!(self.peek(), Kind::Word(_)) {
            return Err(self.unsupported(self.at, "address as an initial value"));
        }
        self.integer("an integer")
    }

    /// `P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;`
    fn placements(&mut self) -> Result<(), LitmusError> {
        loop {
            let at = self.at;
            let number = self.thread_number()?;
            if self.program.threads.iter().any(|thread| thread.number == number) {
                return Err(self.expected_at(at, "a thread that is not placed yet"));
            }
            self.expect("@")?;
            self.keyword("cta")?;
            let cta = self.small("a CTA number of 0 to 65535")?;
            self.expect(",")?;
            self.keyword("gpu")?;
            let gpu = GpuId(self.small("a GPU number of 0 to 255")?);
            let placement = Placement { gpu, cta };
            self.program.threads.push(Thread { number, placement, registers: Vec::new(), code: Vec::new() });
            if !self.take("|") {
                return self.expect(";");
            }
        }
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), LitmusError> {
        if !self.sees_word(keyword) {
            return Err(self.expected(&format!("`{keyword}`")));
        }
        self.step();
        Ok(())
    }

    /// Whether the rows are over.
    fn at_condition(&self) -> Result<bool, LitmusError> {
        match self.peek() {
            Kind::Word(word) => match word.as_str() {
                "exists" | "forall" | "not" => Ok(true),
                "filter" | "locations" | "final" => Err(self.unsupported(self.at, word)),
                _ => Ok(false),
            },
            Kind::Symbol("~") => Ok(true),
            Kind::End => Err(self.expected("a row of instructions, `exists`, `~exists` or `forall`")),
            Kind::Symbol(_) | Kind::Number(_) | Kind::Text => Ok(false),
        }
    }

    /// One row: a cell for each thread.
    fn row(&mut self) -> Result<(), LitmusError> {
        let mut thread = 0;
        loop {
            if thread == self.program.threads.len() {
                return Err(self.expected("`;`: there are no more threads"));
            }
            self.cell(thread)?;
            if self.take(";") {
                return Ok(());
            }
            if !self.take("|") {
                return Err(self.expected("`|` or `;`"));
            }
            thread += 1;
        }
    }

    /// Labels, then at most one instruction.
    fn cell(&mut self, thread: usize) -> Result<(), LitmusError> {
        while *self.peek_second() == Kind::Symbol(":") {
            self.label(thread)?;
        }
        if !self.sees("|") && !self.sees(";") {
            let instruction = self.statement(thread)?;
            self.program.threads[thread].code.push(instruction);
        }
        Ok(())
    }

    fn label(&mut self, thread: usize) -> Result<(), LitmusError> {
        let at = self.at;
        let name = self.word("a label or an instruction")?;
        if self.labels.iter().any(|label| label.thread == thread && label.name == name) {
            return Err(self.expected_at(at, "a label that the thread does not have yet"));
        }
        let target = self.program.threads[thread].code.len();
        self.labels.push(Label { thread, name, target });
        self.expect(":")
    }

    /// A reference to a label by the instruction that is read now; resolved when all rows are read.
    pub(super) fn label_reference(&mut self, thread: usize) -> Result<(), LitmusError> {
        let at = self.at;
        let label = self.word("a label")?;
        let instruction = self.program.threads[thread].code.len();
        self.jumps.push(Jump { thread, instruction, label, at });
        Ok(())
    }

    /// A boundary is one of the whole machine: every thread passes all of them.
    fn check_boundaries(&self) -> Result<(), LitmusError> {
        let count = |thread: &Thread| thread.code.iter().filter(|one| **one == Instruction::KernelBoundary).count();
        let counts: Vec<usize> = self.program.threads.iter().map(count).collect();
        let same = counts.iter().all(|count| *count == counts[0]);
        if same { Ok(()) } else { Err(self.expected("as many rows of `kernel.boundary` in every thread")) }
    }

    fn resolve_jumps(&mut self) -> Result<(), LitmusError> {
        for jump in std::mem::take(&mut self.jumps) {
            let label = self.labels.iter().find(|label| label.thread == jump.thread && label.name == jump.label);
            let to = label.ok_or_else(|| self.expected_at(jump.at, "a label of the same thread"))?.target;
            match &mut self.program.threads[jump.thread].code[jump.instruction] {
                Instruction::Branch { target, .. } | Instruction::Jump { target } => *target = to,
                other => unreachable!("{other:?} names no label"),
            }
        }
        Ok(())
    }
}
