//! Traces as tables: text with comma-separated values, a row per operation, written by a script or exported from a
//! recording.
//!
//! The first row names the columns, in any order; a column that a table does not need is left out, and an empty field has
//! the column's default. Lines that begin with `#` are comments. A packed table is read as well.
//!
//! [`TableBuilder`] takes the same rows from columns in memory.
//!
//! docs/traces.md lists columns and operations. Arrays begin on pages of their own, in the order in which rows name them.

mod columns;
mod program;
mod reader;
mod row;
mod writer;

pub use columns::{ColumnData, ColumnValues, TableBuilder};
pub(super) use program::TableProgram;
pub(super) use writer::write;

use super::container::LineReader;
use super::error::TraceError;
use std::path::Path;
use tombolo_types::stream::ComputeClass;

/// The column that every table has.
const OPERATION: &str = "operation";

/// Arithmetic operations: their words, by class.
const ARITHMETIC: [(&str, ComputeClass); 6] = [
    ("fp32", ComputeClass::Fp32),
    ("int", ComputeClass::Int),
    ("fp64", ComputeClass::Fp64),
    ("special", ComputeClass::Special),
    ("tensor", ComputeClass::Tensor),
    ("other", ComputeClass::Other),
];

/// Words of a table: names of columns, and operations.
pub fn spellings() -> (Vec<&'static str>, Vec<&'static str>) {
    let of_host = row::HOST_OPERATIONS.iter().map(|(word, _)| *word);
    (row::Column::ALL.iter().map(|column| column.name()).collect(), row::warp_words().chain(of_host).collect())
}

/// The word for arithmetic of `class`.
pub(super) fn class_word(class: ComputeClass) -> &'static str {
    ARITHMETIC[class as usize].0
}

/// True if the text at `path` begins with the columns of a table.
pub(super) fn is_table(path: &Path) -> Result<bool, TraceError> {
    let mut lines = LineReader::open(path)?;
    while let Some(line) = lines.next()? {
        if !line.is_empty() && !line.starts_with(b"#") {
            let mut names = line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            return Ok(names.any(|name| name.trim_ascii_start() == OPERATION.as_bytes()));
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_of_arithmetic_has_its_own_word() {
        for (word, class) in ARITHMETIC {
            assert_eq!(class_word(class), word);
        }
    }
}
