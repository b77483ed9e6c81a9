//! Litmus tests: a small program over a few threads and locations, and a condition on its final states.
//!
//! [`read`] and [`parse`] turn the text form into a [`Litmus`]; its `Display` prints the text form again.
//!
//! **Spellings.** PTX defaults and synonyms:
//!
//! | text | meaning |
//! | --- | --- |
//! | `ld.volatile`, `st.volatile` | `.relaxed.sys` |
//! | `membar.cta`, `membar.gl`, `membar.sys` | `fence.sc` with scope `.cta`, `.gpu`, `.sys` |
//! | load or store without semantics | `.weak` |
//! | `atom` or `red` without semantics, without scope | `.relaxed`, `.gpu` |
//! | `fence` without semantics | `.acq_rel` |
//! | `.cluster` | `.cta` if the cluster contains a single CTA from the test; `.gpu` if it contains every CTA on the GPU; otherwise unsupported |
//!
//! **Types.** Integers with 8 to 64 bits. All accesses to a location have an equal size. Values do not wrap: a test
//! with a value outside its type's range is unsupported. The range for `.b32`, and for mixed `.u32` and `.s32`, is 0
//! to 2147483647. Typed arithmetic is `.s64`.
//!
//! **Extensions.** No assembler accepts these forms:
//!
//! | extension | meaning |
//! | --- | --- |
//! | `ld.weak r0, x` | `ld.weak.s64 r0, [x]`; likewise all accesses without a type |
//! | `ld r0, 1`; `add`, `sub`, `mul`, `div` without a type | `mov.s64`; `add.s64`, `sub.s64`, `mul.lo.s64`, `div.s64` |
//! | `beq r0, 1, LC00` and variants; `goto LC00` | `setp` and `@p bra`; `bra` |
//! | `kernel.boundary` | end of a kernel, in every thread ([`Instruction::KernelBoundary`]) |
//! | `P0@host` | host thread ([`ThreadPlacement::Host`]); scopes other than `.sys`, and barriers, are unreadable |
//! | `P0@cta 1,cluster 0,gpu 0` | a CTA in a cluster; a CTA without a named cluster forms its own |
//! | `bar.cta.sync 1, 64`, `bar.cta.arrive 1, 64` | as in PTX; a test's thread stands for a warp, so the count is a multiple of 32 ([`WARP`]) |
//! | `y aliases x;` among the initial values | a second name for an address; as in herd, a register may hold an address: `P1:r8=x;` |
//! | `y @ generic aliases x` | unsupported: only `fence.proxy.alias` orders two virtual addresses |
//!
//! **Rejected like ptxas 13.5 for sm_90**, with the rule in the error: acquiring, exchanging or comparing reductions;
//! `.sub`, `.mul`, `.div` in `atom` and `red`; illegal pairs of operation and type; scopes on `.weak` and `.volatile`;
//! barrier numbers above 15.

mod barrier;
pub mod condition;
pub mod error;
mod formula;
mod label;
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
    Arithmetic, BarrierRole, FinalState, Instruction, Location, LocationDeclaration, Operand, Program, Register,
    RegisterDeclaration, Thread, ThreadPlacement, Update, Value, WARP,
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
