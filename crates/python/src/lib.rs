//! The native half of the Python package `tombolo`: commands in a session, Arrow tables, programs from columns.
//!
//! The Python half (`python/tombolo`) has the documented functions. It passes the words of a command line to [`execute`], and
//! reads the JSON document that comes back: the same document as on the command line.

#![warn(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, unreachable_pub)]

mod arrow;
mod buffer;
mod execute;
mod interrupt;
mod program;

use pyo3::prelude::*;

/// Native half of the package `tombolo`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::arrow::Columns;
    #[pymodule_export]
    use super::execute::{Failure, execute};
    #[pymodule_export]
    use super::program::ProgramBuilder;
}
