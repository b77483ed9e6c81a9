//! Traces given by a folder: finds the file with the kernel list.

use super::container::SUFFIXES;
use super::error::TraceError;
use super::foreign::{RAW_FOLDER, UNLISTED};
use std::path::{Path, PathBuf};

/// Name of the kernel list in an NVBit trace's folder.
const LIST: &str = "kernelslist.g";
/// Common prefix of list names; tracers append the CUDA context.
const LIST_STEM: &str = "kernelslist";

/// Finds the folder's list: `kernelslist.g`, or the only list of a CUDA context.
pub(super) fn list(folder: &Path) -> Result<PathBuf, TraceError> {
    let usual = folder.join(LIST);
    if usual.is_file() {
        return Ok(usual);
    }
    let names = names(folder)?;
    let lists: Vec<&str> = names.iter().map(String::as_str).filter(|name| is_list(name)).collect();
    match lists[..] {
        [] => Err(what_else(folder, &names)),
        [list] => Ok(folder.join(list)),
        _ => Err(TraceError::SeveralLists { path: folder.to_owned(), lists: lists.join(", ") }),
    }
}

/// Names of the other lists in the folder of `list`; empty if `list` itself is not named like a list.
pub(super) fn other_list_names(list: &Path) -> Vec<String> {
    let folder = list.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let own = list.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut names = names(folder).unwrap_or_default();
    names.retain(|name| is_list(name) && name != own);
    if is_list(own) { names } else { Vec::new() }
}

/// Sorted file names in the folder. Names without valid UTF-8 are ignored.
fn names(folder: &Path) -> Result<Vec<String>, TraceError> {
    let entries = std::fs::read_dir(folder).map_err(TraceError::io(folder, "list"))?;
    let files = entries.filter_map(|entry| entry.ok().filter(|entry| entry.path().is_file()));
    let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

fn is_list(name: &str) -> bool {
    name.starts_with(LIST_STEM) && name.ends_with(".g")
}

/// The error for a folder without a list, depending on the files found instead.
fn what_else(folder: &Path, names: &[String]) -> TraceError {
    let any = |ending: &str| names.iter().any(|name| unpacked(name).ends_with(ending));
    if any(".traceg") || any(".tracez") {
        UNLISTED.at(folder)
    } else if any(".trace") || names.iter().any(|name| name.starts_with(LIST_STEM)) {
        RAW_FOLDER.at(folder)
    } else {
        let expected = "a folder with a trace has a file kernelslist.g";
        TraceError::NotATrace { path: folder.to_owned(), expected }
    }
}

/// A file's name without the packer's suffix.
pub(super) fn unpacked(name: &str) -> &str {
    SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}
