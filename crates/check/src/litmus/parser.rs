//! Parser for the frame of a litmus file: initial values, placements, rows of instructions.
//!
//! Instructions are parsed in `statement` and `barrier`, labels in `label`, the final condition in `formula`; all share the
//! [`Parser`].

use super::Litmus;
use super::barrier::BarrierUse;
use super::error::{LitmusError, TextPosition};
use super::label::Labels;
use super::lexer::{Token, TokenKind, lex};
use super::program::{
    Instruction, Location, LocationDeclaration, Operand, Program, Register, RegisterDeclaration, Thread,
    ThreadPlacement, Value,
};
use super::typing::Typing;
use super::value_type::ValueType;
use std::sync::Arc;
use tombolo_types::{GpuId, Scope};

pub(super) fn parse(file: &str, text: &str) -> Result<Litmus, LitmusError> {
    let file: Arc<str> = file.into();
    let lexed = lex(&file, text)?;
    let program = Program { name: lexed.name, locations: Vec::new(), threads: Vec::new() };
    let parser = Parser {
        file,
        tokens: lexed.tokens,
        at: 0,
        program,
        clusters: Vec::new(),
        labels: Labels::default(),
        aliases: Vec::new(),
        pointers: Vec::new(),
        typing: Typing::default(),
        barriers: Vec::new(),
    };
    parser.test()
}

/// Reason why a location has no parts.
pub(super) const ONE_VALUE: &str = "a location is one value of one size";

/// Reason why a second virtual address is rejected.
const VIRTUAL_ALIAS: &str = "another virtual address is ordered by fence.proxy.alias alone; a further name of one address is \
    `y aliases x`";

/// A register's initial value, kept until the threads are known.
struct RegisterInit {
    /// Token index for the thread's name.
    at: usize,
    thread: u32,
    register: String,
    value: Value,
}

/// A register with a location's address, recorded before the thread's placement.
struct Pointer {
    thread: u32,
    register: String,
    location: Location,
}

/// Reads tokens from left to right. `at` never passes the final [`TokenKind::End`].
pub(super) struct Parser {
    file: Arc<str>,
    tokens: Vec<Token>,
    pub(super) at: usize,
    pub(super) program: Program,
    /// Per thread: the cluster for the CTA, if the placement names any.
    clusters: Vec<Option<u16>>,
    pub(super) labels: Labels,
    /// Additional names for locations.
    aliases: Vec<(String, Location)>,
    pointers: Vec<Pointer>,
    pub(super) typing: Typing,
    pub(super) barriers: Vec<BarrierUse>,
}

/// Tokens.
impl Parser {
    pub(super) fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    pub(super) fn peek_second(&self) -> &TokenKind {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    pub(super) fn step(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    pub(super) fn sees(&self, symbol: &str) -> bool {
        matches!(self.peek(), TokenKind::Symbol(found) if *found == symbol)
    }

    pub(super) fn sees_word(&self, word: &str) -> bool {
        matches!(self.peek(), TokenKind::Word(found) if found == word)
    }

    /// Consumes `symbol` if it comes next.
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
        let TokenKind::Word(word) = self.peek() else { return Err(self.expected(expected)) };
        let word = word.clone();
        self.step();
        Ok(word)
    }

    /// Parses an integer with an optional minus sign.
    pub(super) fn integer(&mut self, expected: &str) -> Result<Value, LitmusError> {
        let first = self.at;
        let negative = self.take("-");
        let TokenKind::Number(number) = *self.peek() else {
            self.at = first;
            return Err(self.expected(expected));
        };
        self.step();
        Ok(if negative { -number } else { number })
    }

    /// Parses an integer within the range of `T`.
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

    /// Error for a known but unsupported construct that starts at token `at`.
    pub(super) fn unsupported(&self, at: usize, name: &str, reason: &'static str) -> LitmusError {
        LitmusError::Unsupported { place: self.place(at), name: name.to_owned(), reason }
    }

    pub(super) fn illegal(&self, at: usize, name: &str, reason: &str) -> LitmusError {
        LitmusError::Illegal { place: self.place(at), name: name.to_owned(), reason: reason.to_owned() }
    }

    fn place(&self, at: usize) -> TextPosition {
        let token = &self.tokens[at];
        TextPosition { file: self.file.clone(), line: token.line, column: token.column }
    }
}

/// Names.
impl Parser {
    /// Parses a thread number, written `P0` or `0`.
    pub(super) fn thread_number(&mut self) -> Result<u32, LitmusError> {
        const EXPECTED: &str = "a thread (P0, P1, …)";
        let TokenKind::Word(word) = self.peek() else { return self.small(EXPECTED) };
        let number = word.strip_prefix('P').and_then(|digits| digits.parse().ok());
        let number = number.ok_or_else(|| self.expected(EXPECTED))?;
        self.step();
        Ok(number)
    }

    /// Index of thread `number`, named by the token `at`.
    pub(super) fn thread_index(&self, number: u32, at: usize) -> Result<usize, LitmusError> {
        let found = self.program.threads.iter().position(|thread| thread.number == number);
        found.ok_or_else(|| {
            let known: Vec<String> = self.program.threads.iter().map(|thread| format!("P{}", thread.number)).collect();
            self.expected_at(at, &format!("a thread of this test ({})", known.join(", ")))
        })
    }

    /// Parses a register name in thread `thread`, and declares the register if it is new.
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
        if self.pointed(thread, &name).is_some() {
            return Err(self.unsupported(
                at,
                "value of an address",
                "a register that holds an address is read as one alone",
            ));
        }
        let registers = &mut self.program.threads[thread].registers;
        let index = registers.iter().position(|register| register.name == name).unwrap_or_else(|| {
            registers.push(RegisterDeclaration { name, initial: 0 });
            registers.len() - 1
        });
        u16::try_from(index).map(Register).map_err(|_| self.expected_at(at, "at most 65536 registers a thread"))
    }

    /// True if thread `thread` is on the host.
    pub(super) fn is_on_host(&self, thread: usize) -> bool {
        self.program.threads[thread].placement.is_host()
    }

    /// Number of registers named in a thread up to this point.
    pub(super) fn registers_of(&self, thread: usize) -> usize {
        self.program.threads[thread].registers.len()
    }

    /// Parses the name of an already known location.
    pub(super) fn known_location(&mut self) -> Result<Location, LitmusError> {
        let (at, known) = (self.at, self.program.locations.len());
        let location = self.location()?;
        if usize::from(location.0) < known { Ok(location) } else { Err(self.expected_at(at, "a location of the test")) }
    }

    /// The location whose address is held by `register` in thread `thread`.
    fn pointed(&self, thread: usize, register: &str) -> Option<Location> {
        let number = self.program.threads[thread].number;
        let mut pointers = self.pointers.iter();
        let found = pointers.find(|pointer| pointer.thread == number && pointer.register == register);
        found.map(|pointer| pointer.location)
    }

    /// Parses the location accessed by thread `thread`: `x`, `[x]`, or `[r1]` if the register holds an address.
    pub(super) fn address(&mut self, thread: usize) -> Result<Location, LitmusError> {
        let bracketed = self.take("[");
        let pointed = match self.peek() {
            TokenKind::Word(word) => self.pointed(thread, word),
            _ => None,
        };
        let location = match pointed {
            Some(location) => {
                self.step();
                self.refuse_parts()?;
                location
            }
            None => self.location()?,
        };
        if bracketed {
            self.expect("]")?;
        }
        Ok(location)
    }

    /// Parses a location name, and declares the location if it is new.
    pub(super) fn location(&mut self) -> Result<Location, LitmusError> {
        const EXPECTED: &str = "a location";
        let at = self.at;
        let name = self.word(EXPECTED)?;
        if is_register(&name) {
            return Err(self.unsupported(
                at,
                "address in a register",
                "no initial value gives the register an address",
            ));
        }
        self.refuse_parts()?;
        if let Some((_, location)) = self.aliases.iter().find(|(alias, _)| *alias == name) {
            return Ok(*location);
        }
        let locations = &mut self.program.locations;
        let index = locations.iter().position(|location| location.name == name).unwrap_or_else(|| {
            locations.push(LocationDeclaration { name, initial: 0, value_type: None });
            locations.len() - 1
        });
        u16::try_from(index).map(Location).map_err(|_| self.expected_at(at, "at most 65536 locations"))
    }

    /// Returns an error if an index or an offset follows a location or an address.
    fn refuse_parts(&self) -> Result<(), LitmusError> {
        let name = match self.peek() {
            TokenKind::Symbol("[") => "array",
            TokenKind::Symbol("+") => "offset",
            _ => return Ok(()),
        };
        Err(self.unsupported(self.at, name, ONE_VALUE))
    }

    /// Type of the accesses to `location`, according to the text parsed up to this point.
    pub(super) fn value_type(&self, location: Location) -> Option<ValueType> {
        self.program.locations[usize::from(location.0)].value_type
    }

    pub(super) fn value_type_mut(&mut self, location: Location) -> &mut Option<ValueType> {
        &mut self.program.locations[usize::from(location.0)].value_type
    }
}

/// Cluster scope.
impl Parser {
    /// Resolves `.cluster` for thread `thread` among the threads in this test. A CTA without a named cluster forms its
    /// own cluster, like a kernel launched without clusters: then `.cta` selects exactly its threads. If the cluster
    /// contains all CTAs that the test places on the GPU, `.gpu` is equivalent.
    pub(super) fn cluster_scope(&self, thread: usize, at: usize) -> Result<Scope, LitmusError> {
        let threads = &self.program.threads;
        let own = threads[thread].placement;
        let other_ctas = || {
            (0..threads.len()).filter(|&other| {
                let placement = threads[other].placement;
                placement.gpu() == own.gpu() && placement != own
            })
        };
        let is_mate = |other: usize| self.clusters[thread].is_some() && self.clusters[other] == self.clusters[thread];
        let mates = other_ctas().filter(|&other| is_mate(other)).count();
        if mates == 0 {
            Ok(Scope::Cta)
        } else if mates == other_ctas().count() {
            Ok(Scope::Gpu)
        } else {
            Err(self.unsupported(at, "cluster", "some CTAs of the GPU are in it with others, and some are not"))
        }
    }

    /// Parses the cluster in a placement, if any is named. All threads in a CTA share it.
    fn cluster(&mut self) -> Result<Option<u16>, LitmusError> {
        if !self.sees_word("cluster") {
            return Ok(None);
        }
        self.step();
        let cluster = self.small("a cluster number of 0 to 65535")?;
        self.expect(",")?;
        Ok(Some(cluster))
    }
}

/// True if `name` is a register name: `r` and a number.
pub(super) fn is_register(name: &str) -> bool {
    name.strip_prefix('r')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Frame of the file.
impl Parser {
    fn test(mut self) -> Result<Litmus, LitmusError> {
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
        self.check_types()?;
        self.check_barriers()?;
        self.pass_locations()?;
        let condition = self.condition()?;
        Ok(Litmus { program: self.program, condition })
    }

    /// Parses `{ x=0; P0:r0=0; }`. A repeated assignment overrides the earlier value.
    fn init(&mut self) -> Result<Vec<RegisterInit>, LitmusError> {
        self.expect("{")?;
        let mut registers = Vec::new();
        while !self.take("}") {
            if self.take(";") {
                continue;
            }
            let at = self.at;
            if *self.peek_second() == TokenKind::Symbol(":") {
                registers.extend(self.init_register(at)?);
            } else if matches!(self.peek_second(), TokenKind::Word(word) if word == "aliases") {
                self.init_alias(at)?;
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

    /// Parses `P0:r0=1`, or `P0:r0=x` and `P0:r0=&x`, the address of a location.
    fn init_register(&mut self, at: usize) -> Result<Option<RegisterInit>, LitmusError> {
        let thread = self.thread_number()?;
        self.expect(":")?;
        let register = self.register_name()?;
        self.expect("=")?;
        self.pointers.retain(|pointer| pointer.thread != thread || pointer.register != register);
        if self.take("&") || matches!(self.peek(), TokenKind::Word(_)) {
            let location = self.location()?;
            self.pointers.push(Pointer { thread, register, location });
            return Ok(None);
        }
        let value = self.integer("an integer or the address of a location")?;
        Ok(Some(RegisterInit { at, thread, register, value }))
    }

    /// Parses `y aliases x`: an additional name for the address of `x`.
    fn init_alias(&mut self, at: usize) -> Result<(), LitmusError> {
        const EXPECTED: &str = "a name that no location has yet";
        let alias = self.word(EXPECTED)?;
        let is_known = self.program.locations.iter().any(|location| location.name == alias)
            || self.aliases.iter().any(|(known, _)| *known == alias);
        if is_known || is_register(&alias) {
            return Err(self.expected_at(at, EXPECTED));
        }
        self.step();
        let location = self.known_location()?;
        self.aliases.push((alias, location));
        Ok(())
    }

    fn init_location(&mut self, at: usize) -> Result<(), LitmusError> {
        let location = self.location()?;
        if self.sees("@") {
            return Err(self.unsupported(at, "alias", VIRTUAL_ALIAS));
        }
        self.expect("=")?;
        if self.sees("&") || matches!(self.peek(), TokenKind::Word(_)) {
            return Err(self.unsupported(self.at, "address as an initial value", "registers alone hold addresses"));
        }
        let value_at = self.at;
        let value = self.integer("an integer")?;
        self.note_value(location, Operand::Value(value), value_at);
        self.program.locations[location.0 as usize].initial = value;
        Ok(())
    }

    /// Parses `P0@cta 0,gpu 0 | P1@cta 1,cluster 0,gpu 0 | P2@host ;`
    fn placements(&mut self) -> Result<(), LitmusError> {
        loop {
            let at = self.at;
            let number = self.thread_number()?;
            if self.program.threads.iter().any(|thread| thread.number == number) {
                return Err(self.expected_at(at, "a thread that is not placed yet"));
            }
            self.expect("@")?;
            let (placement, cluster) = self.placement()?;
            self.clusters.push(cluster);
            self.program.threads.push(Thread { number, placement, registers: Vec::new(), code: Vec::new() });
            if !self.take("|") {
                return self.expect(";");
            }
        }
    }

    /// Parses `cta 1,cluster 0,gpu 0` or `host`: the placement of a thread, and the cluster if any is named.
    fn placement(&mut self) -> Result<(ThreadPlacement, Option<u16>), LitmusError> {
        if self.sees_word("host") {
            self.step();
            return Ok((ThreadPlacement::Host, None));
        }
        if !self.sees_word("cta") {
            return Err(self.expected("`cta` or `host`"));
        }
        self.step();
        let cta = self.small("a CTA number of 0 to 65535")?;
        self.expect(",")?;
        let (cluster_at, cluster) = (self.at, self.cluster()?);
        self.keyword("gpu")?;
        let gpu = GpuId(self.small("a GPU number of 0 to 255")?);
        let placement = ThreadPlacement::Cta { gpu, cta };
        let mate = self.program.threads.iter().position(|thread| thread.placement.shares_cta(placement));
        if mate.is_some_and(|mate| self.clusters[mate] != cluster) {
            return Err(self.expected_at(cluster_at, "the cluster that the other threads of this CTA name"));
        }
        Ok((placement, cluster))
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), LitmusError> {
        if !self.sees_word(keyword) {
            return Err(self.expected(&format!("`{keyword}`")));
        }
        self.step();
        Ok(())
    }

    /// True at the end of the rows.
    fn at_condition(&self) -> Result<bool, LitmusError> {
        match self.peek() {
            TokenKind::Word(word) => match word.as_str() {
                "exists" | "forall" | "not" | "locations" => Ok(true),
                "filter" | "final" => {
                    Err(self.unsupported(self.at, word, "a test ends with one condition on all its final states"))
                }
                _ => Ok(false),
            },
            TokenKind::Symbol("~") => Ok(true),
            TokenKind::End => Err(self.expected("a row of instructions, `exists`, `~exists` or `forall`")),
            TokenKind::Symbol(_) | TokenKind::Number(_) | TokenKind::Text => Ok(false),
        }
    }

    /// Skips `locations [x; P0:r0;]`: additional values printed by other tools with the condition's values.
    fn pass_locations(&mut self) -> Result<(), LitmusError> {
        if !self.sees_word("locations") {
            return Ok(());
        }
        self.step();
        self.expect("[")?;
        while !self.take("]") {
            self.variable()?;
            if !self.sees("]") {
                self.expect(";")?;
            }
        }
        // The condition, or a construct that may precede it.
        self.at_condition().map(drop)
    }

    /// Parses a row: a cell for each thread.
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

    /// Parses labels, then at most a single instruction.
    fn cell(&mut self, thread: usize) -> Result<(), LitmusError> {
        while *self.peek_second() == TokenKind::Symbol(":") {
            self.label(thread)?;
        }
        if !self.sees("|") && !self.sees(";") {
            let instruction = self.statement(thread)?;
            self.program.threads[thread].code.push(instruction);
        }
        Ok(())
    }

    /// Checks boundary counts. A boundary applies to the whole machine: every thread passes all boundaries.
    fn check_boundaries(&self) -> Result<(), LitmusError> {
        let count = |thread: &Thread| thread.code.iter().filter(|one| **one == Instruction::KernelBoundary).count();
        let counts: Vec<usize> = self.program.threads.iter().map(count).collect();
        let same = counts.iter().all(|count| *count == counts[0]);
        if same { Ok(()) } else { Err(self.expected("as many rows of `kernel.boundary` in every thread")) }
    }
}
