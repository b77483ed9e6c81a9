//! A folder as a trace: which of its files is the list of kernels.

use super::container::SUFFIXES;
use super::error::TraceError;
use super::foreign::{PER_WARP_FOLDER, RAW_FOLDER, UNLISTED};
use std::path::{Path, PathBuf};

/// Name of the list in the folder of an NVBit trace.
const LIST: &str = "kernelslist.g";
/// What a list's name begins with; tracers append the CUDA context.
const LIST_STEM: &str = "kernelslist";

/// The list of the folder: `kernelslist.g`, or the only one of a CUDA context.
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

/// Names of the folder's files in order; those that are no UTF-8 have no meaning here.
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

/// The error of a folder without a list.
fn what_else(folder: &Path, names: &[String]) -> TraceError {
    let any = |ending: &str| names.iter().any(|name| unpacked(name).ends_with(ending));
    if any(".traceg") {
        UNLISTED.at(folder)
    } else if any(".trace") || names.iter().any(|name| name.starts_with(LIST_STEM)) {
        RAW_FOLDER.at(folder)
    } else if any(".tracez") {
        PER_WARP_FOLDER.at(folder)
    } else {
        let expected = "a folder with a trace has a file kernelslist.g";
        TraceError::NotATrace { path: folder.to_owned(), expected }
    }
}

/// A file's name without its packer's ending.
pub(super) fn unpacked(name: &str) -> &str {
    SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}
