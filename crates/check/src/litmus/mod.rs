//! Litmus tests: a small program over a few threads and locations, and a condition on its final states.
//!
//! [`read`] and [`parse`] turn the text form into a [`Litmus`]; its `Display` prints the text form again.

pub mod condition;
pub mod error;
mod formula;
mod lexer;
mod modifier;
mod parser;
mod print;
pub mod program;
mod ptx;
mod statement;
mod typing;
mod value_type;

pub use condition::{ComparisonOperator, Condition, Formula, Quantifier, Term};
pub use error::{LitmusError, TextPosition};
pub use print::Assignments;
pub use program::{
    Arithmetic, FinalState, Instruction, Location, LocationDeclaration, Operand, Program, Register,
    RegisterDeclaration, Thread, ThreadPlacement, Update, Value,
};
pub use value_type::{Sign, ValueType};

use std::path::Path;

/// A program and the condition on its final states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Litmus {
    /// The program.
    pub program: Program,
    /// The condition on its final states.
    pub condition: Condition,
}

/// Parses the text of a litmus test. `file` names the text in error messages.
pub fn parse(file: &str, text: &str) -> Result<Litmus, LitmusError> {
    parser::parse(file, text)
}

/// Reads and parses a litmus file.
pub fn read(path: &Path) -> Result<Litmus, LitmusError> {
    let file = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| LitmusError::Unreadable { file: file.clone(), source })?;
    parse(&file, &text)
}
