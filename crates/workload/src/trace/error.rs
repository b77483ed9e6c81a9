//! What can be wrong with a trace, with the place and what was expected there.

use std::io;
use std::path::{Path, PathBuf};
use tombolo_types::stream::StreamError;

/// A trace could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system, or a decompressor, refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried, as a verb with its object.
        action: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The text of a trace is not as its format says.
    #[error("{}:{line}: expected {expected}, found {found}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Line of the decompressed text, from 1.
        line: u64,
        /// What may stand there.
        expected: String,
        /// What does.
        found: String,
    },
    /// A list of kernels names a file that does not exist.
    #[error("{}:{line}: names the kernel trace `{name}`, but none of these is a file: {tried}", list.display())]
    NoKernelFile {
        /// The list.
        list: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// The name as the list gives it.
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
        /// Thread blocks in the file.
        found: u64,
        /// Thread blocks of the grid.
        expected: u64,
        /// Thread blocks that may be absent.
        most: u64,
        /// The first few that are missing, as `x,y,z`.
        missing: String,
    },
    /// The path leads to nothing that is a trace.
    #[error("{}: is no trace: {expected}", path.display())]
    NotATrace {
        /// The path.
        path: PathBuf,
        /// What would be one.
        expected: &'static str,
    },
    /// A file or a folder of another kind, which is known.
    #[error("{}: is {what}; {remedy}", path.display())]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// What makes a trace of it.
        remedy: &'static str,
    },
    /// A folder has several lists of kernels and none with the usual name.
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
        /// Byte of the file, from 0.
        offset: u64,
        /// What is wrong there.
        message: String,
    },
    /// A native trace of another version of the format.
    #[error("{}: is a native trace of version {found}; this program reads versions {oldest} to {newest}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The oldest version read here.
        oldest: u32,
        /// The newest.
        newest: u32,
    },
    /// The machine's warps are too narrow for the trace's.
    #[error("{}: was recorded with warps of {recorded} lanes, which do not fit a machine's warps of {wanted}", path.display())]
    WarpWidth {
        /// The file.
        path: PathBuf,
        /// Lanes of a warp of the machine.
        wanted: u32,
        /// Lanes of a warp of the trace.
        recorded: u32,
    },
    /// A program to be written could not be decoded.
    #[error("thread block {cta} of kernel {kernel}: {source}")]
    Stream {
        /// Index of the kernel.
        kernel: u32,
        /// Index of the CTA.
        cta: u32,
        /// The reason.
        source: StreamError,
    },
}

impl TraceError {
    /// An [`TraceError::Io`] for `path`, to be used with `map_err`.
    pub(super) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> TraceError + use<> {
        let path = path.to_owned();
        move |source| TraceError::Io { path, action, source }
    }
}

/// A piece of text is not what its place calls for. Its reader adds file and line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) expected: String,
    pub(super) found: String,
}

impl Mismatch {
    /// `found` is quoted, cut short and made printable.
    #[cold]
    pub(super) fn new(expected: impl Into<String>, found: &[u8]) -> Mismatch {
        Mismatch { expected: expected.into(), found: quoted(found) }
    }

    /// The text ended where something should stand.
    #[cold]
    pub(super) fn end(expected: impl Into<String>) -> Mismatch {
        Mismatch { expected: expected.into(), found: "the end of the line".to_owned() }
    }

    pub(super) fn at(self, path: &Path, line: u64) -> TraceError {
        TraceError::Text { path: path.to_owned(), line, expected: self.expected, found: self.found }
    }
}

/// `text` for a message: in backquotes, at most 60 characters, control characters and invalid UTF-8 escaped.
pub(super) fn quoted(text: &[u8]) -> String {
    const MOST: usize = 60;
    let cut = &text[..text.len().min(MOST * 4)];
    let shown: String = String::from_utf8_lossy(cut).chars().flat_map(char::escape_debug).take(MOST).collect();
    let dots = if text.len() > MOST { "…" } else { "" };
    format!("`{shown}{dots}`")
}
