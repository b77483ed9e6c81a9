//! `new`: writes a starting file for a user's own machine, design or workload, or a crate with a program.

use crate::failure::CommandFailure;
use crate::output::show;
use crate::template::{of_crate, of_described, of_workload};
use serde::Serialize;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tombolo_design::DesignConfig;
use tombolo_machine::{DescriptionKind, MachineConfig, list};

/// Arguments for `new`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// machine and design: NAME.toml, with every key and its meaning; workload: NAME.rs, a program for the crate
    /// `workload`, with instructions for its place; crate: a folder NAME, the command line with a program of its own
    #[arg(value_enum)]
    what: FileKind,
    /// Name and folder for the new file; an existing file is not replaced
    #[arg(value_name = "NAME")]
    name: PathBuf,
    /// Base of a machine or a design: a name of `list` [default: the first]
    #[arg(long = "base", value_name = "PRESET")]
    base: Option<String>,
    /// For a crate: the folder crates/tombolo of a checkout, on which it depends
    #[arg(long = "library", value_name = "DIR")]
    library: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FileKind {
    #[value(name = "machine")]
    Machine,
    #[value(name = "design")]
    Design,
    #[value(name = "workload")]
    Workload,
    #[value(name = "crate")]
    Crate,
}

impl Arguments {
    /// Writes the file, and prints its path.
    pub(crate) fn execute(&self) -> Result<ExitCode, CommandFailure> {
        let name = self.name()?;
        if self.library.is_some() && !matches!(self.what, FileKind::Crate) {
            return Err(self.refused("only a crate depends on the library".to_owned()));
        }
        let (ending, text) = match self.what {
            FileKind::Crate => return self.write_crate(&name),
            FileKind::Machine => ("toml", self.described::<MachineConfig>(&name)?),
            FileKind::Design => ("toml", self.described::<DesignConfig>(&name)?),
            FileKind::Workload => ("rs", self.workload(&name)?),
        };
        let file = if ending == "rs" { name.replace('-', "_") } else { name };
        let path = self.name.with_file_name(format!("{file}.{ending}"));
        write_new(&path, text.as_bytes())?;
        show(false, &(), |_| format!("wrote {}\n", path.display()))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes a crate's folder, and prints its path.
    fn write_crate(&self, name: &str) -> Result<ExitCode, CommandFailure> {
        self.refuse_base("a crate")?;
        if tombolo_programs::names().any(|known| known == name) {
            return Err(
                self.refused("a workload that ships has this name, and the crate's program would have it".to_owned())
            );
        }
        let Some(library) = &self.library else {
            return Err(self.refused("a crate needs --library DIR, the folder crates/tombolo of a checkout".to_owned()));
        };
        let wrong = |reason: String| CommandFailure::Argument {
            flag: "--library",
            value: library.display().to_string(),
            reason,
        };
        let folder = library.canonicalize().map_err(|error| wrong(error.to_string()))?;
        if !folder.join("Cargo.toml").is_file() || !folder.join("src/app.rs").is_file() {
            return Err(wrong("it is not the folder crates/tombolo of a checkout".to_owned()));
        }
        let failed = |error: io::Error| CommandFailure::File { path: self.name.clone(), action: "create", error };
        fs::create_dir(&self.name).and_then(|()| fs::create_dir(self.name.join("src"))).map_err(failed)?;
        for (file, text) in of_crate(name, &folder.to_string_lossy()) {
            write_new(&self.name.join(file), text.as_bytes())?;
        }
        show(false, &(), |_| format!("wrote {}: cargo run --release there\n", self.name.display()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn refuse_base(&self, what: &str) -> Result<(), CommandFailure> {
        let Some(base) = &self.base else { return Ok(()) };
        let reason = format!("{what} builds on none");
        Err(CommandFailure::Argument { flag: "--base", value: base.clone(), reason })
    }

    /// Returns the plain name given by the user, without folder and extension.
    fn name(&self) -> Result<String, CommandFailure> {
        let name = self.name.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = [".toml", ".rs"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name).to_owned();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits) {
            true => Ok(name),
            false => Err(self.refused("a name is lower-case letters, digits and hyphens, a letter first".to_owned())),
        }
    }

    fn described<T: DescriptionKind + Serialize>(&self, name: &str) -> Result<String, CommandFailure> {
        let shipped = list::<T>();
        if shipped.iter().any(|listed| listed.name == name) {
            return Err(self.refused(format!("a {} that ships has this name, and results go by name", T::KIND)));
        }
        let base = self.base.as_deref().unwrap_or(shipped[0].name);
        if base.ends_with(".toml") {
            let reason = format!("only a name of `list {}s` is taken here", T::KIND);
            return Err(CommandFailure::Argument { flag: "--base", value: base.to_owned(), reason });
        }
        of_described::<T>(name, base)
    }

    fn workload(&self, name: &str) -> Result<String, CommandFailure> {
        self.refuse_base("a workload")?;
        match tombolo_programs::names().any(|known| known == name) {
            true => Err(self.refused("a workload that ships has this name".to_owned())),
            false => Ok(of_workload(name)),
        }
    }

    fn refused(&self, reason: String) -> CommandFailure {
        CommandFailure::Argument { flag: "new", value: self.name.display().to_string(), reason }
    }
}

/// Writes a file that does not yet exist.
fn write_new(path: &Path, bytes: &[u8]) -> Result<(), CommandFailure> {
    let failed = |error: io::Error| CommandFailure::File { path: path.to_owned(), action: "create", error };
    let mut file = fs::File::create_new(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|error| {
        // This call created the file, and may therefore remove it.
        let _ = fs::remove_file(path);
        failed(error)
    })
}
