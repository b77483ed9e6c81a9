//! The list of a trace: `kernelslist.g`, the host's commands in order.
//!
//! A line is a host command (module [`command`]), the path of a kernel's trace, or a comment after `#` or `//`.
//! Anything else is an error: a skipped line would be a part of the program that is not simulated.

use super::command::{self, CommandTally, HostCommand};
use super::cursor::unquoted;
use super::tracez::is_tracez;
use crate::trace::container::{LineReader, SUFFIXES};
use crate::trace::error::{Mismatch, TraceError};
use crate::trace::folder::{other_list_names, unpacked};
use std::path::{Path, PathBuf};

/// Maximum number of other lists named in a note.
const MOST_LISTS: usize = 8;

/// A command in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListCommand {
    /// A copy between host and device.
    Copy {
        /// Device address.
        address: u64,
        /// Size in bytes.
        bytes: u64,
        /// True if device memory is the destination.
        to_device: bool,
    },
    /// The host or a stream waits for other streams.
    Wait,
    /// A kernel launch.
    Kernel {
        /// Path of the kernel's trace.
        path: PathBuf,
    },
}

/// A completely read list.
#[derive(Debug, Default)]
pub(super) struct CommandList {
    /// Simulated commands in order; at least one launches a kernel.
    pub(super) entries: Vec<ListCommand>,
    /// Notes about the other commands, and about other lists, for readers of results.
    pub(super) notes: Vec<String>,
    /// True if the path leads to a kernel's trace instead of a list.
    pub(super) single: bool,
}

impl CommandList {
    /// The list of the kernel trace at `path` alone.
    fn of_kernel(path: &Path) -> CommandList {
        let entries = vec![ListCommand::Kernel { path: path.to_owned() }];
        CommandList { entries, notes: Vec::new(), single: true }
    }

    /// Paths of the kernels' traces.
    pub(super) fn kernels(&self) -> impl Iterator<Item = &PathBuf> {
        self.entries.iter().filter_map(|entry| if let ListCommand::Kernel { path } = entry { Some(path) } else { None })
    }
}

/// Reads the list at `path`, or creates a list from a single kernel trace.
pub(super) fn read(path: &Path) -> Result<CommandList, TraceError> {
    let mut list = read_list(path)?;
    if !list.single {
        list.notes.extend(other_lists(path, &list));
    }
    Ok(list)
}

/// A note about further lists in the folder of the list at `path`. The tracer writes a list per CUDA context of a program. A
/// list without further kernels is a copy of this one.
fn other_lists(path: &Path, list: &CommandList) -> Option<String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let known: Vec<&PathBuf> = list.kernels().collect();
    let mut names = other_list_names(path);
    names.retain(|name| match read_list(&folder.join(name)) {
        Ok(other) => other.kernels().any(|kernel| !known.contains(&kernel)),
        Err(_) => true,
    });
    let count = names.len();
    if count > MOST_LISTS {
        names.truncate(MOST_LISTS);
        names.push("…".to_owned());
    }
    (count > 0).then(|| {
        format!(
            "{count} further lists in the folder, of other CUDA contexts, are not read: {}; name one to read it",
            names.join(", ")
        )
    })
}

fn read_list(path: &Path) -> Result<CommandList, TraceError> {
    if is_tracez(path)? {
        return Ok(CommandList::of_kernel(path));
    }
    let mut lines = LineReader::open(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut entries = Vec::new();
    let mut tally = CommandTally::default();
    let mut first = true;
    while let Some(line) = lines.next()? {
        let line = unquoted(uncommented(line));
        if line.is_empty() {
            continue;
        }
        if std::mem::take(&mut first) && is_header(line) {
            return Ok(CommandList::of_kernel(path));
        }
        match entry(line, folder, &mut tally) {
            Ok(entry) => entries.extend(entry),
            Err(LineError::Line(mismatch)) => return Err(lines.error(mismatch)),
            Err(LineError::Missing { name, tried }) => {
                return Err(TraceError::NoKernelFile { list: path.to_owned(), line: lines.line(), name, tried });
            }
        }
    }
    if !entries.iter().any(|entry| matches!(entry, ListCommand::Kernel { .. })) {
        let expected = "at least one line that names a kernel trace".to_owned();
        return Err(lines.error(Mismatch { expected, found: "the end of the list".to_owned() }));
    }
    Ok(CommandList { entries, notes: tally.notes(), single: false })
}

/// Strips the comment from `line`.
fn uncommented(line: &[u8]) -> &[u8] {
    if line.starts_with(b"//") {
        return b"";
    }
    let begins = |place: usize| line[place] == b'#' && (place == 0 || line[place - 1].is_ascii_whitespace());
    let end = (0..line.len()).find(|place| begins(*place)).unwrap_or(line.len());
    line[..end].trim_ascii_end()
}

/// True if `line` belongs to a kernel trace's header.
fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"-kernel") || line.starts_with(b"-") && line.contains(&b'=')
}

/// Reason for refusing a line.
enum LineError {
    /// The line is neither a command nor a path.
    Line(Mismatch),
    /// The line names a kernel trace that does not exist.
    Missing { name: String, tried: String },
}

/// Parses `line`, which is not empty, into a simulated command, if any.
fn entry(line: &[u8], folder: &Path, tally: &mut CommandTally) -> Result<Option<ListCommand>, LineError> {
    let text = std::str::from_utf8(line);
    let text = text.map_err(|_| LineError::Line(Mismatch::new("a file name in UTF-8, or a command", line)))?;
    if let Some(command) = command::parse(text).map_err(LineError::Line)? {
        tally.count(command, text);
        return Ok(match command {
            HostCommand::Copy { address, bytes, to_device, .. } => {
                Some(ListCommand::Copy { address, bytes, to_device })
            }
            HostCommand::Costless(_) => command::holds_up(text).then_some(ListCommand::Wait),
        });
    }
    match find(folder, text) {
        Ok(path) => Ok(Some(ListCommand::Kernel { path })),
        Err(tried) if looks_like_a_path(text) => Err(LineError::Missing { name: text.to_owned(), tried }),
        Err(_) => Err(LineError::Line(Mismatch::new(
            "the path of a kernel trace such as kernel-1.traceg, a command such as MemcpyHtoD, Memset or ncclAllReduce, \
             or a comment behind #",
            line,
        ))),
    }
}

/// True if `text` appears to be intended as the path of a kernel trace, although no such file exists.
fn looks_like_a_path(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    text.contains('/')
        || name.starts_with("kernel")
        || name.contains(".trace")
        || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Finds the file for `name`, with or without compression, regardless of the given suffix; an error lists the tried
/// paths.
fn find(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let plain = unpacked(name);
    let mut names = vec![name.to_owned(), plain.to_owned()];
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_end_lines_and_begin_behind_a_blank() {
        for (line, rest) in [
            ("kernel-1.traceg # the first", "kernel-1.traceg"),
            ("# kernel-1.traceg", ""),
            ("// kernel-1.traceg", ""),
            ("kernel#1.traceg", "kernel#1.traceg"),
            ("a//kernel-1.traceg", "a//kernel-1.traceg"),
        ] {
            assert_eq!(uncommented(line.as_bytes()), rest.as_bytes(), "{line}");
        }
    }
}
