//! Recorded programs: traces of real GPUs and recordings of workloads.
//!
//! Three formats are read: NVBit traces as written by Accel-Sim's tracer (`nvbit`), tables that a script writes
//! (`table`), and Tombolo's own format (`native`). A [`Program`] can be written as a table or in the own format. All open
//! as a [`Program`]. File contents are never trusted: a defect is returned in a [`TraceError`] with the location.
//!
//! Read next: `table/mod.rs`, `nvbit/mod.rs`, `native/mod.rs`. They share `container` (text, compressed or not), `folder`,
//! `foreign` (known files in unsupported formats), `info` and `error`.

mod container;
mod error;
mod folder;
mod footprint;
mod foreign;
mod info;
mod native;
mod nvbit;
mod table;

pub use error::TraceError;
pub use info::{CopySummary, HostSummary, KernelSummary, OpcodeCount, OperationCoverage, Spaces, TraceInfo};
pub use table::spellings as table_spellings;
pub use table::{ColumnData, ColumnValues, TableBuilder};

use info::Origin;
use native::NativeProgram;
use nvbit::NvbitProgram;
use std::path::{Path, PathBuf};
use table::TableProgram;
use tombolo_types::LineSize;
use tombolo_types::stream::Program;

/// Opens the trace at `path`: a native trace, a table, a folder with a `kernelslist.g`, a list, or a single kernel's
/// trace. The content decides, not the name.
///
/// Addresses are coalesced into lines of `line_size`. A trace keeps the recorded warps ([`Program::warp_width`]). A
/// machine with wider warps of `warp_width` lanes runs them with idle lanes; a machine with narrower warps is refused.
pub fn open(path: &Path, line_size: LineSize, warp_width: u32) -> Result<Box<dyn Program>, TraceError> {
    open_with_notes(path, line_size, warp_width).map(|(program, _)| program)
}

/// Like [`open`], and also returns notes for readers of results ([`TraceInfo::notes`]).
pub fn open_with_notes(
    path: &Path,
    line_size: LineSize,
    warp_width: u32,
) -> Result<(Box<dyn Program>, Vec<String>), TraceError> {
    let opened = OpenTrace::at(path, line_size)?;
    let recorded = opened.program().warp_width();
    if recorded > warp_width {
        return Err(TraceError::WarpWidth { path: path.to_owned(), wanted: warp_width, recorded });
    }
    let origin = opened.origin();
    let mut notes = info::notes(opened.program(), origin.as_ref());
    let unknown = origin.iter().flat_map(|origin| &origin.unknown_opcodes);
    notes.extend(unknown.map(|OpcodeCount { name, count }| {
        format!("opcode {name} ({count} warp instructions) is unknown: it only takes an issue slot")
    }));
    Ok(match opened {
        OpenTrace::Nvbit(program) => (Box::new(program), notes),
        OpenTrace::Native(program) => (Box::new(program), notes),
        OpenTrace::Table(program) => (Box::new(program), notes),
    })
}

/// Files to be read when the trace at `path` is opened, as far as the trace's list names files.
pub fn files(path: &Path) -> Vec<PathBuf> {
    let list = if path.is_dir() { folder::list(path).ok() } else { Some(path.to_owned()) };
    let Some(list) = list else { return Vec::new() };
    let head = container::open_file(&list).and_then(|mut file| container::head(&mut file, &list, native::MAGIC.len()));
    let kernels = match head {
        Ok(head) if head != native::MAGIC && !table::is_table(&list).unwrap_or(true) => nvbit::kernel_files(&list),
        _ => Vec::new(),
    };
    std::iter::once(list).chain(kernels).collect()
}

/// Summarises the trace at `path` in the trace's own line size: 128 bytes for NVBit traces.
pub fn info(path: &Path) -> Result<TraceInfo, TraceError> {
    let opened = OpenTrace::at_own_line_size(path)?;
    info::summarise(opened.program(), opened.origin().as_ref(), opened.format())
}

/// Converts the trace at `path` to the native format at `out`, completely or not at all. NVBit traces are coalesced
/// into 128-byte lines; [`open`] adapts the result to a machine with a different line size.
pub fn import(path: &Path, out: &Path) -> Result<(), TraceError> {
    let opened = OpenTrace::at_own_line_size(path)?;
    native::write(opened.program(), opened.origin().as_ref(), out)
}

/// Writes `program` in the native format to `out`, completely or not at all: after any failure, an existing file
/// remains unchanged.
pub fn write(program: &dyn Program, out: &Path) -> Result<(), TraceError> {
    native::write(program, None, out)
}

/// Writes the trace at `path` as a table, in the trace's own line size.
pub fn export(path: &Path, out: &Path) -> Result<(), TraceError> {
    table::write(OpenTrace::at_own_line_size(path)?.program(), out)
}

/// A trace in any format.
enum OpenTrace {
    Nvbit(NvbitProgram),
    Native(NativeProgram),
    Table(TableProgram),
}

impl OpenTrace {
    fn at(path: &Path, line_size: LineSize) -> Result<OpenTrace, TraceError> {
        OpenTrace::with(path, Some(line_size))
    }

    fn at_own_line_size(path: &Path) -> Result<OpenTrace, TraceError> {
        OpenTrace::with(path, None)
    }

    /// Opens a trace; a `line_size` of `None` selects the trace's own line size.
    fn with(path: &Path, line_size: Option<LineSize>) -> Result<OpenTrace, TraceError> {
        let metadata = std::fs::metadata(path).map_err(TraceError::io(path, "find"))?;
        let text_lines = line_size.unwrap_or(LineSize::B128);
        if metadata.is_dir() {
            return NvbitProgram::open(&folder::list(path)?, name(path), text_lines).map(OpenTrace::Nvbit);
        }
        let mut file = container::open_file(path)?;
        let head = container::head(&mut file, path, native::MAGIC.len())?;
        if head == native::MAGIC {
            return NativeProgram::open(path, &file, line_size).map(OpenTrace::Native);
        }
        if !nvbit::is_per_warp(path)? && table::is_table(path)? {
            return TableProgram::open(path, name(path), text_lines).map(OpenTrace::Table);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        NvbitProgram::open(path, name(folder.unwrap_or(path)), text_lines).map(OpenTrace::Nvbit)
    }

    fn program(&self) -> &dyn Program {
        match self {
            OpenTrace::Nvbit(program) => program,
            OpenTrace::Native(program) => program,
            OpenTrace::Table(program) => program,
        }
    }

    /// The format of a trace without an origin.
    fn format(&self) -> &'static str {
        match self {
            OpenTrace::Table(_) => "table",
            OpenTrace::Nvbit(_) | OpenTrace::Native(_) => "native",
        }
    }

    fn origin(&self) -> Option<Origin> {
        match self {
            OpenTrace::Nvbit(program) => Some(program.origin()),
            OpenTrace::Native(program) => program.origin().cloned(),
            OpenTrace::Table(_) => None,
        }
    }
}

/// The last component of a path, as a name for reports.
fn name(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy().into_owned()
}
