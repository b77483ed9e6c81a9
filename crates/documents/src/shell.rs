//! Runs the documents' commands, each document in its own folder.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Terminal width in columns assumed by documents. Source: the longest line in the documents.
const COLUMNS: &str = "120";

/// Shell function by which scripts find the program under its name.
const PROGRAM: &str = "tombolo() { \"$TOMBOLO\" \"$@\"; }";

/// Environment in which commands run.
pub(crate) struct Shell {
    /// Folder below which commands work; inside the repository, which lets `cargo` find the workspace.
    pub(crate) scratch: PathBuf,
    /// Path to the program.
    program: PathBuf,
}

impl Shell {
    /// A shell in which the command `tombolo` runs `program`.
    ///
    /// # Errors
    ///
    /// A program that does not exist.
    pub(crate) fn new(scratch: PathBuf, program: &Path) -> Result<Shell, String> {
        let program = program.canonicalize().map_err(|error| {
            format!("TOMBOLO: {}: {error}: expected the program, such as target/debug/tombolo", program.display())
        })?;
        Ok(Shell { scratch, program })
    }

    /// Creates the folder with the given name, without files from earlier runs.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub(crate) fn empty(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.scratch.join(name);
        clear(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// Runs `commands` and returns their output: standard output if they should succeed, both streams if they must
    /// fail.
    ///
    /// # Errors
    ///
    /// Commands that fail or succeed against expectation, with their output.
    pub(crate) fn run(&self, folder: &Path, commands: &str, fails: bool) -> Result<String, String> {
        let script = format!("set -euo pipefail\n{PROGRAM}\n{commands}");
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(folder);
        shell.env("TOMBOLO", &self.program).env("COLUMNS", COLUMNS).env("NO_COLOR", "1");
        let ended = shell.output().map_err(|error| format!("bash: {error}"))?;
        let [output, errors] = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        match (ended.status.success(), fails) {
            (true, false) => Ok(output),
            (false, true) => Ok(output + &errors),
            (true, true) => Err(format!("ended well, and must fail; printed:\n{output}{errors}")),
            (false, false) => Err(format!("{}; printed:\n{output}{errors}", ended.status)),
        }
    }
}

fn clear(folder: &Path) -> std::io::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A shell with a program that repeats its arguments.
    fn shell(test: impl FnOnce(&Shell, &Path)) {
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join("program");
        std::fs::write(&program, "#!/usr/bin/env bash\necho \"$@\"\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let shell = Shell::new(scratch.path().to_owned(), &program).unwrap();
        let folder = shell.empty("readme").unwrap();
        test(&shell, &folder);
    }

    #[test]
    fn the_program_is_found_by_its_name() {
        shell(|shell, folder| assert_eq!(shell.run(folder, "tombolo a\ntombolo b", false), Ok("a\nb\n".to_owned())));
    }

    #[test]
    fn the_first_command_that_fails_ends_the_rest() {
        shell(|shell, folder| {
            let fault = shell.run(folder, "tombolo a\nfalse\ntombolo b", false).unwrap_err();
            assert!(fault.ends_with("printed:\na\n"), "{fault}");
        });
    }

    #[test]
    fn errors_are_shown_of_what_must_fail() {
        shell(|shell, folder| {
            assert_eq!(shell.run(folder, "tombolo no >&2; exit 2", true), Ok("no\n".to_owned()));
            assert!(shell.run(folder, "tombolo yes", true).is_err());
        });
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let fault = Shell::new(scratch.path().to_owned(), Path::new("/no/tombolo")).err().unwrap();
        assert!(fault.contains("TOMBOLO: /no/tombolo"), "{fault}");
    }
}
