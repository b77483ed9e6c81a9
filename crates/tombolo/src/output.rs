//! Standard output, which may close early, and files written atomically: complete, or not at all.

use crate::failure::CommandFailure;
use crate::provenance::WithProvenance;
use crate::session;
use serde::Serialize;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use tempfile::TempDir;
use tombolo_experiment::shell::quoted;
use tombolo_report::document::Provenance;

/// Arguments that select the output.
#[derive(clap::Args)]
pub(crate) struct OutputArguments {
    /// Prints a JSON document instead of text
    #[arg(long = "json")]
    json: bool,
    /// Also writes the JSON document to FILE, atomically
    #[arg(long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
}

impl OutputArguments {
    /// Creates an output to standard output, in JSON or text, and optionally to a JSON file.
    pub(crate) fn new(json: bool, out: Option<PathBuf>) -> OutputArguments {
        OutputArguments { json, out }
    }

    /// Returns an error if `flag` writes to the file already named by `--out`.
    pub(crate) fn refuse_same(&self, flag: &'static str, other: &Path) -> Result<(), CommandFailure> {
        match &self.out {
            Some(out) if out == other => {
                let value = other.display().to_string();
                Err(CommandFailure::Argument { flag, value, reason: "--out writes the same file".to_owned() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns an error, before any work starts, if the file is not writable or is among `inputs`.
    pub(crate) fn check<P: AsRef<Path>>(&self, inputs: impl IntoIterator<Item = P>) -> Result<(), CommandFailure> {
        let Some(out) = &self.out else { return Ok(()) };
        refuse_input("--out", out, inputs)?;
        probe(out)
    }

    /// Writes `answer` and its provenance to the file if `whole` is set, then prints it in the requested format.
    pub(crate) fn give<T: Serialize>(
        &self,
        answer: &T,
        provenance: Provenance,
        whole: bool,
        text: impl FnOnce(bool) -> String,
    ) -> Result<(), CommandFailure> {
        let answer = &WithProvenance { answer, provenance };
        match &self.out {
            Some(path) if whole => write_whole(path, json(answer).as_bytes())?,
            Some(path) => complain(&format!("{}: not written, because a run failed", path.display())),
            None => {}
        }
        show(self.json, answer, text)
    }
}

/// Prints `answer` as JSON, or otherwise the result of `text`, whose argument is true if colours are allowed.
pub(crate) fn show<T: Serialize>(
    as_json: bool,
    answer: &T,
    text: impl FnOnce(bool) -> String,
) -> Result<(), CommandFailure> {
    if as_json { print(&json(answer)) } else { print(&text(colours_welcome())) }
}

/// Formats a document on several lines, with a final newline.
fn json<T: Serialize>(answer: &T) -> String {
    let mut text = serde_json::to_string_pretty(answer).expect("keys are strings and nothing else can fail");
    text.push('\n');
    text
}

fn print(text: &str) -> Result<(), CommandFailure> {
    if let Some(session) = session::current() {
        session.print(text);
        return Ok(());
    }
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader closed the pipe; this is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(CommandFailure::Stdout),
    }
}

/// Returns the command line, quoted for a shell, as the command that reproduces a page.
pub(crate) fn command_line() -> String {
    let words: Vec<String> = match session::current() {
        Some(session) => session.words().iter().map(|word| quoted(word)).collect(),
        None => std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy())).collect(),
    };
    std::iter::once("tombolo".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Prints lines to standard error, without terminal control characters. Errors are ignored, because no channel remains
/// to report them.
pub(crate) fn complain(text: &str) {
    let plain = text.replace(|c: char| c.is_control() && c != '\n', " ");
    if let Some(session) = session::current() {
        session.message(plain);
        return;
    }
    let _ = writeln!(io::stderr().lock(), "{plain}");
}

/// True if colours are allowed: on a terminal only, and unless disabled per <https://no-color.org>.
fn colours_welcome() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// Devices, pipes and sockets opened by [`probe`] but not yet written. They stay open, because a pipe closed in between
/// would end for its reader.
static OPEN_SPECIAL_FILES: Mutex<Vec<(PathBuf, fs::File)>> = Mutex::new(Vec::new());

/// True if `path` is a device, a pipe or a socket. They are written in place, because no temporary file can be placed
/// next to them.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Opens a special file without waiting for a reader: a pipe without a reader is an error.
fn open_special(path: &Path) -> Result<fs::File, CommandFailure> {
    let failed = |error| CommandFailure::File { path: path.to_owned(), action: "write", error };
    let mut options = fs::File::options();
    options.write(true);
    #[cfg(unix)]
    {
        use rustix::fs::{OFlags, fcntl_setfl};
        use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
        let kind = fs::metadata(path).map_err(failed)?.file_type();
        if kind.is_block_device() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is a block device")));
        }
        options.custom_flags(OFlags::NONBLOCK.bits() as i32);
        let file = options.open(path).map_err(|error| match kind.is_fifo() && no_reader(&error) {
            true => failed(io::Error::new(error.kind(), "it is a pipe that nobody reads")),
            false => failed(error),
        })?;
        // From this point on, writes wait for a slow reader.
        fcntl_setfl(&file, OFlags::empty()).map_err(|error| failed(error.into()))?;
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path).map_err(failed)
}

/// True if a pipe could not be opened for lack of a reader.
#[cfg(unix)]
fn no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

/// Returns an error if `path` is not writable: an early error is better than an error after the run.
pub(crate) fn probe(path: &Path) -> Result<(), CommandFailure> {
    if !is_special(path) {
        return TemporaryFile::beside(path).map(drop);
    }
    let file = open_special(path)?;
    OPEN_SPECIAL_FILES.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), file));
    Ok(())
}

/// Returns the file opened by [`probe`] at `path`, or opens the file if it is not open.
fn special(path: &Path) -> Result<fs::File, CommandFailure> {
    let mut held = OPEN_SPECIAL_FILES.lock().unwrap_or_else(PoisonError::into_inner);
    match held.iter().position(|(known, _)| known == path) {
        Some(at) => Ok(held.swap_remove(at).1),
        None => open_special(path),
    }
}

/// Returns an error if the output `out` would replace a file that the command reads.
pub(crate) fn refuse_input<P: AsRef<Path>>(
    flag: &'static str,
    out: &Path,
    inputs: impl IntoIterator<Item = P>,
) -> Result<(), CommandFailure> {
    let Ok(written) = fs::canonicalize(out) else { return Ok(()) };
    let is_it = |input: P| fs::canonicalize(input).is_ok_and(|read| read.is_file() && read == written);
    if inputs.into_iter().any(is_it) {
        let reason = "the command reads this file".to_owned();
        return Err(CommandFailure::Argument { flag, value: out.display().to_string(), reason });
    }
    Ok(())
}

/// Writes `bytes` to `path` atomically: readers see the old file or the new file, never a partial file.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), CommandFailure> {
    let failed = |action| move |error| CommandFailure::File { path: path.to_owned(), action, error };
    if is_special(path) {
        return special(path)?.write_all(bytes).map_err(failed("write"));
    }
    let staged = TemporaryFile::beside(path)?;
    let write = || {
        let mut file = fs::File::create_new(staged.part())?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(failed("write"))?;
    staged.commit()
}

/// Temporary location for an incomplete file: a separate folder next to the final location. The folder is always
/// removed, even after an interrupt by the user.
pub(crate) struct TemporaryFile {
    folder: TempDir,
    path: PathBuf,
}

/// Folders with incomplete files.
static TEMPORARY_FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Exit status after an interrupt. Source: POSIX shells, 128 + SIGINT.
const INTERRUPTED: i32 = 130;

impl TemporaryFile {
    /// Creates a temporary location for the final file `path`, which must be writable.
    pub(crate) fn beside(path: &Path) -> Result<TemporaryFile, CommandFailure> {
        let failed = |action| move |error| CommandFailure::File { path: path.to_owned(), action, error };
        let refused = |kind, text: &str| Err(failed("write")(io::Error::new(kind, text)));
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => return refused(io::ErrorKind::InvalidInput, "it is not a file"),
            Ok(found) if found.permissions().readonly() => {
                return refused(io::ErrorKind::PermissionDenied, "it is read-only");
            }
            _ => {}
        }
        tidy_when_interrupted();
        // A symbolic link is kept, and its target is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        let mut staged = TEMPORARY_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::Builder::new().prefix(".tombolo-").tempdir_in(parent);
        let folder = folder.map_err(failed("create a file in its folder"))?;
        staged.push(folder.path().to_owned());
        Ok(TemporaryFile { folder, path })
    }

    /// Path to write the incomplete file to.
    pub(crate) fn part(&self) -> PathBuf {
        self.folder.path().join("part")
    }

    /// Moves the complete file to its final location.
    pub(crate) fn commit(self) -> Result<(), CommandFailure> {
        let failed = |error| CommandFailure::File { path: self.path.clone(), action: "put in place", error };
        fs::rename(self.part(), &self.path).map_err(failed)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        TEMPORARY_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|folder| folder != self.folder.path());
    }
}

/// Installs an interrupt handler that removes incomplete files, except in a session: there, an interrupt ends the command
/// through its errors.
fn tidy_when_interrupted() {
    if session::current().is_some() {
        return;
    }
    static ONCE: Once = Once::new();
    // If signals are ignored (nohup) or the system refuses a handler, an interrupt leaves hidden folders behind, but no
    // partial file under the final name.
    ONCE.call_once(|| {
        let _ = ctrlc::try_set_handler(|| {
            let staged = TEMPORARY_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
            staged.iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
            std::process::exit(INTERRUPTED);
        });
    });
}
