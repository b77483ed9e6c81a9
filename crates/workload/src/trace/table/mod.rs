//! Traces as tables: text with comma-separated values, a row per operation, written by a script or exported from a
//! recording.
//!
//! The first row names the columns, in any order; a column that a table does not need is left out, and an empty field has
//! the column's default. Lines that begin with `#` are comments. A packed table is read as well.
//!
//! | column | contents | default |
//! | --- | --- | --- |
//! | `operation` | see below | none |
//! | `kernel` | name of the kernel; empty for the host's operations | none |
//! | `launch` | number that tells launches of one kernel apart | 0 |
//! | `gpu` | GPU that runs the CTA; empty in a launch on the whole machine | empty |
//! | `stream` | stream of the launch | 0 |
//! | `cta`, `warp` | numbers of the CTA on its GPU, and of the warp in its CTA | 0 |
//! | `order` | `weak`, `relaxed`, `acquire`, `release`, `acq_rel`, `sc` | the weakest that the operation may have; `acquire` for a wait, `acq_rel` for a fence |
//! | `scope` | `cta`, `gpu`, `sys`; stated unless the order is weak | none |
//! | `array` | name of an array; the address is then an offset | none |
//! | `address` | address or offset in bytes, decimal or with `0x` | 0 |
//! | `bytes` | bytes accessed from the address on; 0 if no lane accesses any | none |
//! | `flag` | name of the event that a store or an atomic leaves, or that a wait awaits | none |
//! | `count` | instructions (arithmetic), passes (`shared`), results back (`use`), bytes an element (`array`) | 1 |
//! | `chain` | arithmetic: instructions by which the warp's dependent chain grows | `count` |
//! | `links` | arithmetic: `joins` the chain before it, is `awaited` by the next operation, `joins+awaited`, `none` | `joins+awaited` |
//! | `threads`, `registers`, `shared_bytes` | threads a CTA, registers a thread, scratchpad bytes a CTA; read in the launch's first row | 32 a warp, 0, 0 |
//!
//! Operations of a warp, in the order of their rows:
//!
//! - `load`, `store`, `atom` (the old value returns), `red` (nothing returns): accesses. `and`: further bytes of the
//!   instruction in the row before.
//! - `wait`: polls the flag's address until the store that leaves the event is visible. The kernel is then cooperative:
//!   all its CTAs are resident at once. Each awaited event is left by one store of the same launch.
//! - `fence`. `barrier`: of the CTA. `shared`: an access to the scratchpad.
//! - `use`: waits for the result of the load or `atom` that stands `count` results back.
//! - `fp32`, `int`, `fp64`, `special`, `tensor`, `other`: arithmetic.
//!
//! Operations of the host, in order with the first rows of launches:
//!
//! - `copy-to-device`, `copy-to-host`: of `bytes` bytes. `host-write`, `host-read`: the host accesses device memory; it
//!   takes no time. Without such a row, the host has written what is copied before the first launch, and reads what is
//!   copied behind the last. `synchronize`: waits for all streams.
//! - `array`: size and element of an array. An array without this row ends with the last byte that is accessed.
//!
//! Arrays begin on 2 MB pages of their own, in the order in which they are named. Either every access names an array, or
//! none does.

mod reader;
mod row;
mod writer;

pub(super) use reader::TableProgram;
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

/// Words of a table: its columns, and its operations.
pub fn spellings() -> (Vec<&'static str>, Vec<&'static str>) {
    let of_warps = row::ACCESSES.iter().map(|(word, _)| *word).chain(row::PLAIN);
    let arithmetic = ARITHMETIC.iter().map(|(word, _)| *word);
    let of_host = row::HOST_OPERATIONS.iter().map(|(word, _)| *word);
    (row::Column::ALL.iter().map(|column| column.name()).collect(), of_warps.chain(arithmetic).chain(of_host).collect())
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
