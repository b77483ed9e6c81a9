//! The list of a trace: `kernelslist.g`, the commands of the host in order.

use super::cursor::{decimal, hex};
use crate::trace::container::Lines;
use crate::trace::error::{Mismatch, TraceError};
use std::path::{Path, PathBuf};

/// Suffixes of compressed kernel traces.
const SUFFIXES: [&str; 2] = [".xz", ".zst"];

/// Most bytes of a copy: more than any memory holds, and little enough for its time to be counted.
const LARGEST_COPY: u64 = 1 << 48;

/// One command of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A copy between host and device.
    Copy {
        /// Device address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// Whether device memory is the destination.
        to_device: bool,
    },
    /// A kernel launch.
    Kernel {
        /// Its trace.
        path: PathBuf,
    },
}

/// Reads the list at `path`, or makes one of a single kernel trace. Lines of other commands are for other
/// tools and are skipped.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, TraceError> {
    let mut lines = Lines::open(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut entries = Vec::new();
    let mut kernels = 0;
    while let Some(line) = lines.next()? {
        if kernels == 0 && entries.is_empty() && line.starts_with(b"-kernel") {
            return Ok(vec![Entry::Kernel { path: path.to_owned() }]);
        }
        if line.starts_with(b"kernel") {
            let name = std::str::from_utf8(line).map_err(|_| Mismatch::new("a file name in UTF-8", line));
            let found = name.map(|name| find(folder, name).map_err(|tried| (name.to_owned(), tried)));
            match found.map_err(|mismatch| lines.error(mismatch))? {
                Ok(path) => entries.push(Entry::Kernel { path }),
                Err((name, tried)) => {
                    return Err(TraceError::NoKernelFile { list: path.to_owned(), line: lines.line(), name, tried });
                }
            }
            kernels += 1;
        } else if let Some(rest) = line.strip_prefix(b"Memcpy") {
            match copy(rest) {
                Ok(copy) => entries.extend(copy),
                Err(mismatch) => return Err(lines.error(mismatch)),
            }
        }
    }
    if kernels == 0 {
        let expected = "at least one line that names a kernel trace".to_owned();
        return Err(lines.error(Mismatch { expected, found: "the end of the list".to_owned() }));
    }
    Ok(entries)
}

/// The copy that `Memcpy` and `rest` stand for, or `None` for a direction that is not simulated.
fn copy(rest: &[u8]) -> Result<Option<Entry>, Mismatch> {
    const EXPECTED: &str = "MemcpyHtoD,<hexadecimal address>,<bytes, at most 2^48>";
    let mut fields = rest.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let to_device = match fields.next() {
        Some(b"HtoD") => true,
        Some(b"DtoH") => false,
        _ => return Ok(None),
    };
    let mut numbers = || {
        let address = hex(fields.next()?, 16)?;
        let bytes = decimal(fields.next()?).filter(|bytes| *bytes <= LARGEST_COPY)?;
        fields.next().is_none().then_some((address, bytes))
    };
    match numbers() {
        Some((address, bytes)) => Ok(Some(Entry::Copy { address, bytes, to_device })),
        None => Err(Mismatch::new(EXPECTED, rest)),
    }
}

/// The file that `name` means, compressed or not whatever the name says; else the paths tried.
fn find(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let plain = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    let mut names = vec![name.to_owned()];
    names.push(plain.to_owned());
    names.extend(SUFFIXES.map(|suffix| format!("{plain}{suffix}")));
    let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    if let Some(path) = paths.iter().find(|path| path.is_file()) {
        return Ok(path.clone());
    }
    let mut tried: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    tried.sort_unstable();
    tried.dedup();
    Err(tried.join(", "))
}
