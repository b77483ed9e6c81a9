//! The condition of a litmus test: a quantified boolean formula over a final state.

use super::program::{FinalState, Location, Program, Register, Value};

/// A comparison between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComparisonOperator {
    /// `==`, `beq`.
    Equal,
    /// `!=`, `bne`.
    NotEqual,
    /// `<`, `blt`.
    Less,
    /// `<=`, `ble`.
    LessEqual,
    /// `>`, `bgt`.
    Greater,
    /// `>=`, `bge`.
    GreaterEqual,
}

impl ComparisonOperator {
    /// Every comparison with a symbol for conditions and a mnemonic for branches.
    pub const ALL: [(ComparisonOperator, &'static str, &'static str); 6] = [
        (ComparisonOperator::Equal, "==", "beq"),
        (ComparisonOperator::NotEqual, "!=", "bne"),
        (ComparisonOperator::Less, "<", "blt"),
        (ComparisonOperator::LessEqual, "<=", "ble"),
        (ComparisonOperator::Greater, ">", "bgt"),
        (ComparisonOperator::GreaterEqual, ">=", "bge"),
    ];

    /// True if the comparison holds between `left` and `right`.
    pub fn holds(self, left: Value, right: Value) -> bool {
        match self {
            ComparisonOperator::Equal => left == right,
            ComparisonOperator::NotEqual => left != right,
            ComparisonOperator::Less => left < right,
            ComparisonOperator::LessEqual => left <= right,
            ComparisonOperator::Greater => left > right,
            ComparisonOperator::GreaterEqual => left >= right,
        }
    }
}

/// An operand in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// A register of a thread (an index into [`Program::threads`]).
    Register(usize, Register),
    /// A location.
    Location(Location),
    /// A constant.
    Value(Value),
}

impl Term {
    fn value(self, program: &Program, state: &FinalState) -> Value {
        match self {
            Term::Register(thread, register) => state.register(program, thread, register),
            Term::Location(location) => state.location(program, location),
            Term::Value(value) => value,
        }
    }
}

/// A boolean formula over a final state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// A comparison between two terms.
    Compare(ComparisonOperator, Term, Term),
    /// Negation.
    Not(Box<Formula>),
    /// Conjunction of two or more formulas.
    And(Vec<Formula>),
    /// Disjunction of two or more formulas.
    Or(Vec<Formula>),
}

impl Formula {
    /// True if the formula holds in `state`, a final state of `program`.
    pub fn holds(&self, program: &Program, state: &FinalState) -> bool {
        match self {
            Formula::Compare(comparison, left, right) => {
                comparison.holds(left.value(program, state), right.value(program, state))
            }
            Formula::Not(inner) => !inner.holds(program, state),
            Formula::And(parts) => parts.iter().all(|part| part.holds(program, state)),
            Formula::Or(parts) => parts.iter().any(|part| part.holds(program, state)),
        }
    }
}

/// Claim that a condition makes about the final states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Some final state satisfies the formula.
    Exists,
    /// No final state satisfies the formula.
    NotExists,
    /// All final states satisfy the formula.
    Forall,
}

/// A quantified formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The quantifier.
    pub quantifier: Quantifier,
    /// The formula.
    pub formula: Formula,
}

impl Condition {
    /// True if `state` shows the test's *event*: for `exists C` and `~exists C` the event is C, for `forall C` the
    /// event is not-C.
    pub fn event(&self, program: &Program, state: &FinalState) -> bool {
        match self.quantifier {
            Quantifier::Exists | Quantifier::NotExists => self.formula.holds(program, state),
            Quantifier::Forall => !self.formula.holds(program, state),
        }
    }
}
