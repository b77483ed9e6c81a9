//! Errors in a trace, with their location and the expected content.

use std::io;
use std::path::{Path, PathBuf};
use tombolo_types::stream::StreamError;

/// Reason for which a trace could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system, or a decompressor, refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The attempted action: a verb with an object.
        action: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A trace's text violates the format.
    #[error("{}:{line}: expected {expected}, found {found}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Line number in the decompressed text, from 1.
        line: u64,
        /// Content allowed at this place.
        expected: String,
        /// Content found at this place.
        found: String,
    },
    /// A row of columns in memory violates the format of tables.
    #[error("program {program}, {place}: expected {expected}, found {found}")]
    Row {
        /// Name of the program.
        program: String,
        /// The kernel and the row, from 0; or the operation of the host.
        place: String,
        /// Content allowed at this place.
        expected: String,
        /// Content found at this place.
        found: String,
    },
    /// The calling thread's [`tombolo_types::StopFlag`] was set.
    #[error("stopped")]
    Stopped,
    /// A list of kernels names a file that does not exist.
    #[error("{}:{line}: names the kernel trace `{name}`, but none of these is a file: {tried}", list.display())]
    NoKernelFile {
        /// Path of the list.
        list: PathBuf,
        /// Line number in the list, from 1.
        line: u64,
        /// The kernel file's name as given in the list.
        name: String,
        /// The paths tried, separated by commas.
        tried: String,
    },
    /// A kernel trace lacks too many thread blocks of its grid.
    #[error(
        "{}: holds {found} of the grid's {expected} thread blocks; one must be there, and at most {most} may be \
         absent; missing are {missing}",
        path.display()
    )]
    MissingBlocks {
        /// The file.
        path: PathBuf,
        /// Thread block count in the file.
        found: u64,
        /// Thread block count in the grid.
        expected: u64,
        /// Allowed number of absent thread blocks.
        most: u64,
        /// The first few missing thread blocks, as `x,y,z`.
        missing: String,
    },
    /// The path does not lead to a trace.
    #[error("{}: is no trace: {expected}", path.display())]
    NotATrace {
        /// The given path.
        path: PathBuf,
        /// Description of an acceptable path.
        expected: &'static str,
    },
    /// A file or folder in a known format that is not a supported trace.
    #[error("{}: is {what}; {remedy}", path.display())]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// Description for the file or folder.
        what: &'static str,
        /// Instruction for conversion into a trace.
        remedy: &'static str,
    },
    /// A folder has several lists of kernels, and none with the usual name.
    #[error("{}: holds several lists of kernels; name one of them: {lists}", path.display())]
    SeveralLists {
        /// The folder.
        path: PathBuf,
        /// The lists, separated by commas.
        lists: String,
    },
    /// A native trace is damaged.
    #[error("{}: damaged at byte {offset}: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Byte offset in the file, from 0.
        offset: u64,
        /// Description of the damage.
        message: String,
    },
    /// A native trace in an unsupported format version.
    #[error("{}: is a native trace of version {found}; this program reads versions {oldest} to {newest}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The file's format version.
        found: u32,
        /// Oldest supported version.
        oldest: u32,
        /// Newest supported version.
        newest: u32,
    },
    /// The machine's warps are narrower than the trace's warps.
    #[error("{}: was recorded with warps of {recorded} lanes, which do not fit a machine's warps of {wanted}", path.display())]
    WarpWidth {
        /// The file.
        path: PathBuf,
        /// Lanes per warp on the machine.
        wanted: u32,
        /// Lanes per warp in the trace.
        recorded: u32,
    },
    /// A CTA could not be decoded while its program was being written.
    #[error("thread block {cta} of kernel {kernel}: {source}")]
    Stream {
        /// Index of the kernel.
        kernel: u32,
        /// Index of the CTA.
        cta: u32,
        /// The decoding error.
        source: StreamError,
    },
}

impl TraceError {
    /// A [`TraceError::Io`] for `path`, for use with `map_err`.
    pub(super) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> TraceError + use<> {
        let path = path.to_owned();
        move |source| TraceError::Io { path, action, source }
    }
}

/// A piece of text in an unexpected form. The reader adds file and line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) expected: String,
    pub(super) found: String,
}

impl Mismatch {
    /// Creates a mismatch. `found` is quoted, shortened and made printable.
    #[cold]
    pub(super) fn new(expected: impl Into<String>, found: &[u8]) -> Mismatch {
        Mismatch { expected: expected.into(), found: quoted(found) }
    }

    /// Creates a mismatch for text with a premature end.
    #[cold]
    pub(super) fn end(expected: impl Into<String>) -> Mismatch {
        Mismatch { expected: expected.into(), found: "the end of the line".to_owned() }
    }

    pub(super) fn at(self, path: &Path, line: u64) -> TraceError {
        TraceError::Text { path: path.to_owned(), line, expected: self.expected, found: self.found }
    }
}

/// Formats `text` for a message: in backquotes, at most 60 characters, with control characters and invalid UTF-8
/// escaped.
pub(super) fn quoted(text: &[u8]) -> String {
    const MOST: usize = 60;
    let cut = &text[..text.len().min(MOST * 4)];
    let shown: String = String::from_utf8_lossy(cut).chars().flat_map(char::escape_debug).take(MOST).collect();
    let dots = if text.len() > MOST { "…" } else { "" };
    format!("`{shown}{dots}`")
}
