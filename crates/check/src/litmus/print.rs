//! Prints litmus tests in the reader's input syntax, and final states.

use super::Litmus;
use super::condition::{ComparisonOperator, Condition, Formula, Quantifier, Term};
use super::program::{
    Arithmetic, BarrierRole, FinalState, Instruction, Location, Operand, Program, Register, Thread, ThreadPlacement,
    Update, Value, WARP,
};
use super::value_type::AtomicKind;
use std::fmt;
use tombolo_types::{Order, Semantics};

impl fmt::Display for Litmus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}{}", self.program, NamedCondition(&self.program, &self.condition))
    }
}

/// Prints a program without a condition.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PTX {}", self.name)?;
        writeln!(f, "{{")?;
        for location in &self.locations {
            writeln!(f, "{}={};", location.name, location.initial)?;
        }
        for thread in &self.threads {
            for register in &thread.registers {
                writeln!(f, "P{}:{}={};", thread.number, register.name, register.initial)?;
            }
        }
        writeln!(f, "}}")?;
        let columns: Vec<Vec<String>> = self.threads.iter().map(|thread| self.column(thread)).collect();
        let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = columns.iter().map(|cells| cells.iter().map(String::len).max().unwrap_or(0)).collect();
        for row in 0..rows {
            for (index, (cells, width)) in columns.iter().zip(&widths).enumerate() {
                let cell = cells.get(row).map_or("", String::as_str);
                write!(f, "{} {cell:width$} ", if index == 0 { "" } else { "|" })?;
            }
            writeln!(f, ";")?;
        }
        Ok(())
    }
}

impl Program {
    /// Placement, labels and instructions of a thread, a cell each.
    fn column(&self, thread: &Thread) -> Vec<String> {
        let placement = match thread.placement {
            ThreadPlacement::Cta { gpu, cta } => format!("cta {cta},gpu {}", gpu.0),
            ThreadPlacement::Host => "host".to_owned(),
        };
        let mut cells = vec![format!("P{}@{placement}", thread.number)];
        let mut labels: Vec<usize> = thread.code.iter().filter_map(Instruction::target).collect();
        labels.sort_unstable();
        labels.dedup();
        for at in 0..=thread.code.len() {
            if labels.contains(&at) {
                cells.push(format!("LC{at:02}:"));
            }
            cells.extend(thread.code.get(at).map(|instruction| self.instruction(thread, instruction).to_string()));
        }
        cells
    }

    /// Displays `condition` with the names of this program.
    pub fn condition<'a>(&'a self, condition: &'a Condition) -> impl fmt::Display + 'a {
        NamedCondition(self, condition)
    }

    /// Displays `instruction` in `thread` with register and location names.
    pub fn instruction<'a>(&'a self, thread: &'a Thread, instruction: &'a Instruction) -> impl fmt::Display + 'a {
        NamedInstruction { program: self, thread, instruction }
    }
}

/// An instruction with the program and thread for its names.
struct NamedInstruction<'a> {
    program: &'a Program,
    thread: &'a Thread,
    instruction: &'a Instruction,
}

impl NamedInstruction<'_> {
    fn register(&self, register: Register) -> &str {
        &self.thread.registers[register.0 as usize].name
    }

    fn location(&self, location: Location) -> &str {
        &self.program.locations[location.0 as usize].name
    }

    fn operand(&self, operand: Operand) -> String {
        match operand {
            Operand::Register(register) => self.register(register).to_owned(),
            Operand::Value(value) => value.to_string(),
        }
    }

    /// Type suffix with a dot for a load from or a store to `location`; empty if the accesses have no type.
    fn access_type(&self, location: Location) -> String {
        let known = self.program.locations[location.0 as usize].value_type;
        known.map_or_else(String::new, |known| format!(".{}", known.name()))
    }

    /// Type suffix for an atomic on `location`, in the style of [`NamedInstruction::access_type`].
    fn atomic_type(&self, location: Location, update: Update) -> String {
        let known = self.program.locations[location.0 as usize].value_type;
        let written = known.and_then(|known| AtomicKind::of(update).type_of(known));
        written.map_or_else(String::new, |name| format!(".{name}"))
    }

    fn atomic(&self, order: Order, into: Option<Register>, location: Location, update: Update) -> String {
        let (order, value_type) = (suffix(order), self.atomic_type(location, update));
        let location = self.location(location);
        let (operation, inputs) = match update {
            Update::Apply(operation, operand) => (arithmetic(operation), self.operand(operand)),
            Update::Exchange(operand) => ("exch", self.operand(operand)),
            Update::CompareAndSwap { compare, new } => {
                ("cas", format!("{}, {}", self.operand(compare), self.operand(new)))
            }
        };
        match into {
            Some(into) => format!("atom{order}.{operation}{value_type} {}, {location}, {inputs}", self.register(into)),
            None => format!("red{order}.{operation}{value_type} {location}, {inputs}"),
        }
    }
}

impl fmt::Display for NamedInstruction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.instruction {
            Instruction::Load { order, into, location } => {
                let value_type = self.access_type(location);
                write!(f, "ld{}{value_type} {}, {}", suffix(order), self.register(into), self.location(location))
            }
            Instruction::Store { order, location, value } => {
                let value_type = self.access_type(location);
                write!(f, "st{}{value_type} {}, {}", suffix(order), self.location(location), self.operand(value))
            }
            Instruction::Atomic { order, into, location, update } => {
                f.write_str(&self.atomic(order, into, location, update))
            }
            Instruction::Fence { order } => write!(f, "fence{}", suffix(order)),
            Instruction::Move { into, value } => write!(f, "ld {}, {}", self.register(into), self.operand(value)),
            Instruction::Compute { operation, into, left, right } => {
                let (left, right) = (self.operand(left), self.operand(right));
                write!(f, "{} {}, {left}, {right}", arithmetic(operation), self.register(into))
            }
            Instruction::Barrier { id, role, count } => {
                let role = match role {
                    BarrierRole::Sync => "sync",
                    BarrierRole::Arrive => "arrive",
                };
                write!(f, "bar.cta.{role} {id}")?;
                count.map_or(Ok(()), |count| write!(f, ", {}", count * WARP))
            }
            Instruction::KernelBoundary => f.write_str("kernel.boundary"),
            Instruction::Branch { comparison, left, right, target } => {
                let (_, branch) = comparison_names(comparison);
                write!(f, "{branch} {}, {}, LC{target:02}", self.operand(left), self.operand(right))
            }
            Instruction::Jump { target } => write!(f, "goto LC{target:02}"),
        }
    }
}

fn suffix(order: Order) -> String {
    match order.semantics {
        Semantics::Weak => ".weak".to_owned(),
        semantics => format!(".{semantics}.{}", order.scope),
    }
}

fn arithmetic(operation: Arithmetic) -> &'static str {
    let known = Arithmetic::OF_REGISTERS.iter().chain(&Arithmetic::OF_ATOMICS).find(|(known, _)| *known == operation);
    known.expect("the table holds every operation").1
}

fn comparison_names(comparison: ComparisonOperator) -> (&'static str, &'static str) {
    let known = ComparisonOperator::ALL.iter().find(|(known, _, _)| *known == comparison);
    let (_, symbol, branch) = known.expect("the table holds every comparison");
    (symbol, branch)
}

/// A condition with the program for its names.
struct NamedCondition<'a>(&'a Program, &'a Condition);

impl fmt::Display for NamedCondition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quantifier = match self.1.quantifier {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::Forall => "forall",
        };
        write!(f, "{quantifier} ")?;
        self.formula(f, &self.1.formula)
    }
}

impl NamedCondition<'_> {
    fn formula(&self, f: &mut fmt::Formatter<'_>, formula: &Formula) -> fmt::Result {
        match formula {
            Formula::Compare(comparison, left, right) => {
                let (symbol, _) = comparison_names(*comparison);
                write!(f, "{} {symbol} {}", self.term(*left), self.term(*right))
            }
            Formula::Not(inner) => {
                f.write_str("~(")?;
                self.formula(f, inner)?;
                f.write_str(")")
            }
            Formula::And(parts) => self.joined(f, parts, "/\\"),
            Formula::Or(parts) => self.joined(f, parts, "\\/"),
        }
    }

    fn joined(&self, f: &mut fmt::Formatter<'_>, parts: &[Formula], by: &str) -> fmt::Result {
        f.write_str("(")?;
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                write!(f, " {by} ")?;
            }
            self.formula(f, part)?;
        }
        f.write_str(")")
    }

    fn term(&self, term: Term) -> String {
        match term {
            Term::Register(thread, register) => {
                let thread = &self.0.threads[thread];
                format!("P{}:{}", thread.number, thread.registers[register.0 as usize].name)
            }
            Term::Location(location) => format!("[{}]", self.0.locations[location.0 as usize].name),
            Term::Value(value) => value.to_string(),
        }
    }
}

/// Displays a final state as `P0:r0=1; [x]=2`.
pub struct Assignments<'a> {
    /// The program that reached the state.
    pub program: &'a Program,
    /// The final state.
    pub state: &'a FinalState,
}

impl Assignments<'_> {
    /// Every register (`P0:r0`) and location (`[x]`) with a value, in the order of the state.
    pub fn entries(&self) -> impl Iterator<Item = (String, Value)> + '_ {
        let registers = self.program.threads.iter().flat_map(|thread| {
            thread.registers.iter().map(move |register| format!("P{}:{}", thread.number, register.name))
        });
        let locations = self.program.locations.iter().map(|location| format!("[{}]", location.name));
        registers.chain(locations).zip(self.state.0.iter().copied())
    }
}

impl fmt::Display for Assignments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.entries().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}
