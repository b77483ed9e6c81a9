//! Standard output, which may close early, and files that are written whole or not at all.

use crate::failure::Failure;
use serde::Serialize;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Where an answer goes.
#[derive(clap::Args)]
pub(crate) struct OutputArguments {
    /// Prints one JSON document instead of text
    #[arg(long)]
    json: bool,
    /// Also writes the JSON document to FILE, whole or not at all
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl OutputArguments {
    /// An error, before any work is done, where the file could not be written.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.out.as_deref().map_or(Ok(()), probe)
    }

    /// Writes `answer` to the file, if `whole`, then prints it as asked.
    pub(crate) fn give<T: Serialize>(
        &self,
        answer: &T,
        whole: bool,
        text: impl FnOnce(bool) -> String,
    ) -> Result<(), Failure> {
        match &self.out {
            Some(path) if whole => write_whole(path, json(answer).as_bytes())?,
            Some(path) => complain(&format!("{}: not written, because a run failed", path.display())),
            None => {}
        }
        show(self.json, answer, text)
    }
}

/// Prints `answer` as JSON, or as the text that `text` makes of whether colours are welcome.
pub(crate) fn show<T: Serialize>(as_json: bool, answer: &T, text: impl FnOnce(bool) -> String) -> Result<(), Failure> {
    if as_json { print(&json(answer)) } else { print(&text(colours_welcome())) }
}

/// A document on several lines, with a line end.
fn json<T: Serialize>(answer: &T) -> String {
    let mut text = serde_json::to_string_pretty(answer).expect("keys are strings and nothing else can fail");
    text.push('\n');
    text
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Stdout)
}

/// One line to standard error. Where even that is closed there is nobody to tell.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Colours only on a terminal, and not against <https://no-color.org>.
fn colours_welcome() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// Whether a device, a pipe or a socket is at `path`: written in place, for nothing can be put beside it.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The file that a link at `path` leads to, so that writing replaces that and not the link.
fn target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// An error where `path` could not be written: better now than after the run.
pub(crate) fn probe(path: &Path) -> Result<(), Failure> {
    let failed = |action| move |error| Failure::File { path: path.to_owned(), action, error };
    if is_special(path) {
        return Ok(());
    }
    let refused = |kind, text: &str| Err(failed("write")(io::Error::new(kind, text)));
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return refused(io::ErrorKind::IsADirectory, "it is a folder"),
        Ok(found) if found.permissions().readonly() => {
            return refused(io::ErrorKind::PermissionDenied, "it is read-only");
        }
        _ => {}
    }
    let target = target(path);
    drop(beside(&target).map_err(failed("create a file in its folder"))?);
    Ok(())
}

/// A file without a final name in the folder of `target`.
fn beside(target: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tombolo-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any other new file: the user's mask decides.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder(target))
}

/// Writes `bytes` to `path`: readers see the old file or the new one, never a part.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |action| move |error| Failure::File { path: path.to_owned(), action, error };
    if is_special(path) {
        return fs::write(path, bytes).map_err(failed("write"));
    }
    let target = target(path);
    let mut file = beside(&target).map_err(failed("create a file in its folder"))?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(failed("write"))?;
    file.persist(&target).map_err(|refused| failed("put in place")(refused.error))?;
    Ok(())
}
