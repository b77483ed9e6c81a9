//! Standard output, which may close early, and files that are written whole or not at all.

use crate::failure::Failure;
use crate::provenance::Made;
use serde::Serialize;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use tempfile::TempDir;
use tombolo_experiment::shell::quoted;
use tombolo_report::document::Provenance;

/// Where an answer goes.
#[derive(clap::Args)]
pub(crate) struct OutputArguments {
    /// Prints one JSON document instead of text
    #[arg(long = "json")]
    json: bool,
    /// Also writes the JSON document to FILE, whole or not at all
    #[arg(long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
}

impl OutputArguments {
    /// An answer that goes to standard output, as JSON or text, and as JSON to a file.
    pub(crate) fn new(json: bool, out: Option<PathBuf>) -> OutputArguments {
        OutputArguments { json, out }
    }

    /// An error where the file is also that of `flag`.
    pub(crate) fn refuse_same(&self, flag: &'static str, other: &Path) -> Result<(), Failure> {
        match &self.out {
            Some(out) if out == other => {
                let value = other.display().to_string();
                Err(Failure::Argument { flag, value, reason: "--out writes the same file".to_owned() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// An error, before any work is done, where the file could not be written, or is one of `inputs`.
    pub(crate) fn check<P: AsRef<Path>>(&self, inputs: impl IntoIterator<Item = P>) -> Result<(), Failure> {
        let Some(out) = &self.out else { return Ok(()) };
        refuse_input("--out", out, inputs)?;
        probe(out)
    }

    /// Writes `answer`, with what made it, to the file, if `whole`, then prints it as asked.
    pub(crate) fn give<T: Serialize>(
        &self,
        answer: &T,
        provenance: Provenance,
        whole: bool,
        text: impl FnOnce(bool) -> String,
    ) -> Result<(), Failure> {
        let answer = &Made { answer, provenance };
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
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads has seen enough; the answer is what it is.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(Failure::Stdout),
    }
}

/// The command line as given, for a shell: what makes a page again.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("tombolo".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Lines to standard error, without what would steer a terminal. Where even that is closed there is nobody to tell.
pub(crate) fn complain(text: &str) {
    let plain = text.replace(|c: char| c.is_control() && c != '\n', " ");
    let _ = writeln!(io::stderr().lock(), "{plain}");
}

/// Colours only on a terminal, and not against <https://no-color.org>.
fn colours_welcome() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
}

/// Devices, pipes and sockets that are opened and not yet written: a pipe that is closed in between ends for its reader.
static HELD: Mutex<Vec<(PathBuf, fs::File)>> = Mutex::new(Vec::new());

/// Whether a device, a pipe or a socket is at `path`: written in place, for nothing can be put beside it.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Opens what is special, without waiting for whoever may read it: a pipe that nobody reads is an error.
fn open_special(path: &Path) -> Result<fs::File, Failure> {
    let failed = |error| Failure::File { path: path.to_owned(), action: "write", error };
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
        // From here on a slow reader is waited for.
        fcntl_setfl(&file, OFlags::empty()).map_err(|error| failed(error.into()))?;
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path).map_err(failed)
}

/// Whether a pipe was not opened because nobody reads it.
#[cfg(unix)]
fn no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

/// An error where `path` could not be written: better now than after the run.
pub(crate) fn probe(path: &Path) -> Result<(), Failure> {
    if !is_special(path) {
        return Staged::beside(path).map(drop);
    }
    let file = open_special(path)?;
    HELD.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), file));
    Ok(())
}

/// What [`probe`] opened at `path`, or the same now.
fn special(path: &Path) -> Result<fs::File, Failure> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    match held.iter().position(|(known, _)| known == path) {
        Some(at) => Ok(held.swap_remove(at).1),
        None => open_special(path),
    }
}

/// An error where what is to be written at `out` would take the place of a file that the command reads.
pub(crate) fn refuse_input<P: AsRef<Path>>(
    flag: &'static str,
    out: &Path,
    inputs: impl IntoIterator<Item = P>,
) -> Result<(), Failure> {
    let Ok(written) = fs::canonicalize(out) else { return Ok(()) };
    let is_it = |input: P| fs::canonicalize(input).is_ok_and(|read| read.is_file() && read == written);
    if inputs.into_iter().any(is_it) {
        let reason = "the command reads this file".to_owned();
        return Err(Failure::Argument { flag, value: out.display().to_string(), reason });
    }
    Ok(())
}

/// Writes `bytes` to `path`: readers see the old file or the new one, never a part.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |action| move |error| Failure::File { path: path.to_owned(), action, error };
    if is_special(path) {
        return special(path)?.write_all(bytes).map_err(failed("write"));
    }
    let staged = Staged::beside(path)?;
    let write = || {
        let mut file = fs::File::create_new(staged.part())?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(failed("write"))?;
    staged.commit()
}

/// A place for a file that is not whole yet: a folder of its own beside the final one, removed in any case,
/// even where the user interrupts.
pub(crate) struct Staged {
    folder: TempDir,
    path: PathBuf,
}

/// The folders of files that are not whole yet.
static STAGED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Status of a program ended by an interrupt. Source: POSIX shells, 128 + SIGINT.
const INTERRUPTED: i32 = 130;

impl Staged {
    /// A place for what will be at `path`, which must be writable.
    pub(crate) fn beside(path: &Path) -> Result<Staged, Failure> {
        let failed = |action| move |error| Failure::File { path: path.to_owned(), action, error };
        let refused = |kind, text: &str| Err(failed("write")(io::Error::new(kind, text)));
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => return refused(io::ErrorKind::InvalidInput, "it is not a file"),
            Ok(found) if found.permissions().readonly() => {
                return refused(io::ErrorKind::PermissionDenied, "it is read-only");
            }
            _ => {}
        }
        tidy_when_interrupted();
        // A link stays: what it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
        let mut staged = STAGED.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::Builder::new().prefix(".tombolo-").tempdir_in(parent);
        let folder = folder.map_err(failed("create a file in its folder"))?;
        staged.push(folder.path().to_owned());
        Ok(Staged { folder, path })
    }

    /// Where to write it.
    pub(crate) fn part(&self) -> PathBuf {
        self.folder.path().join("part")
    }

    /// Puts it in place.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        let failed = |error| Failure::File { path: self.path.clone(), action: "put in place", error };
        fs::rename(self.part(), &self.path).map_err(failed)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        STAGED.lock().unwrap_or_else(PoisonError::into_inner).retain(|folder| folder != self.folder.path());
    }
}

/// Has an interrupt remove what is not whole.
fn tidy_when_interrupted() {
    static ONCE: Once = Once::new();
    // Where signals are ignored (nohup) or the system refuses, an interrupt leaves hidden folders and no half file under its name.
    ONCE.call_once(|| {
        let _ = ctrlc::try_set_handler(|| {
            let staged = STAGED.lock().unwrap_or_else(PoisonError::into_inner);
            staged.iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
            std::process::exit(INTERRUPTED);
        });
    });
}
