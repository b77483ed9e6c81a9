//! Litmus tests: those that ship, and those in a user's files.

use super::case::Case;
use crate::litmus::{Litmus, LitmusError, parse};
use std::io;
use std::path::{Path, PathBuf};

/// Ending of a litmus file.
const ENDING: &str = "litmus";
/// Largest file read, in bytes. Source: assumed, a thousand times the largest that ships.
const LARGEST: u64 = 1 << 20;

macro_rules! shipped {
    ($folder:literal: $($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../tests/data/", $folder, "/", $file)))),+]
    };
}

/// The core tests, by file name. Source: see `tests/data/litmus/README.md`.
pub(super) const CORE: &[(&str, &str)] = shipped!["litmus":
    "Manual/Atom-plus-location-weak_.litmus",
    "Manual/Atom-plus-location_.litmus",
    "Manual/Cause-base-strong.litmus",
    "Manual/CoRR-acquire-weak.litmus",
    "Manual/CoRR-relaxed-acquire-weak.litmus",
    "Manual/CoRR-weak-acquire.litmus",
    "Manual/CoRR-weak-weak.litmus",
    "Manual/CoRW-R.litmus",
    "Manual/CoWR-R.litmus",
    "Manual/CoWW-R.litmus",
    "Manual/CoWW-RR.litmus",
    "Manual/CoWW_.litmus",
    "Manual/Coherence-weak.litmus",
    "Manual/LB+NoThinAir-location_.litmus",
    "Manual/LB+RMW-b.litmus",
    "Manual/LB+RMW-c.litmus",
    "Manual/LB-dlb-no-fence-1.litmus",
    "Manual/LB-dlb-no-fence-2.litmus",
    "Manual/LB-dlb.litmus",
    "Manual/MP+RMW.litmus",
    "Manual/MP-3-transitive.litmus",
    "Manual/MP-cta.litmus",
    "Manual/MP-gpu.litmus",
    "Manual/MP-relaxed.litmus",
    "Manual/MP-sys-fence.litmus",
    "Manual/MP-sys.litmus",
    "Manual/Red-minus-location_.litmus",
    "Manual/SB+acq_rel-cta.litmus",
    "Manual/SB+sc-cta-outScope.litmus",
    "Manual/SB+sc-gpu-multiFence.litmus",
    "Manual/SB-weak.litmus",
    "Memalloy/IRIW1.litmus",
    "Memalloy/IRIW_gl_cta.litmus",
    "Memalloy/IRRWIW1.litmus",
    "Memalloy/IRRWIW2.litmus",
    "Memalloy/IRRWIW3.litmus",
    "Memalloy/IRRWIW4.litmus",
    "Memalloy/IRRWIW_uniproc.litmus",
    "Memalloy/RWC2.litmus",
    "Memalloy/WRC1.litmus",
    "Memalloy/WRC2.litmus",
    "Memalloy/WRR+2W.litmus",
    "Memalloy/WRR+2W2.litmus",
    "Memalloy/WRW+2W1.litmus",
    "Memalloy/WRW+2W2.litmus",
    "Memalloy/WRW+WR1.litmus",
    "Memalloy/WWC1.litmus",
    "Memalloy/WWC2.litmus",
    "Nvidia/Atom-SB-ld.litmus",
    "Nvidia/Atom-SB.litmus",
    "Nvidia/Co-Total-3-threads-scope-diff.litmus",
    "Nvidia/Release-acquire-pattern.litmus",
];

/// Tests of what one kernel sees of the kernels before it, by file name.
pub(super) const KERNELS: &[(&str, &str)] = shipped!["kernels":
    "K-Atomics+weak.litmus",
    "K-Atomics.litmus",
    "K-Both.litmus",
    "K-CoWW.litmus",
    "K-MP+readers.litmus",
    "K-MP+reload.litmus",
    "K-MP.litmus",
    "K-SB.litmus",
    "K-WRC.litmus",
];

/// The test of [`KERNELS`] of this name.
pub(super) fn kernel_test(name: &str) -> Litmus {
    let shipped = KERNELS.iter().find(|(file, _)| *file == format!("{name}.{ENDING}"));
    let (file, text) = shipped.expect("only shipped tests are asked for");
    parse(file, text).expect("a test reads every shipped file")
}

/// Why tests could not be taken from a path.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file is no litmus test, or cannot be read.
    #[error(transparent)]
    Litmus(#[from] LitmusError),
    /// A folder cannot be listed.
    #[error("{}: cannot be listed: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A folder without tests.
    #[error("{}: expected at least one file that ends in .{ENDING}, here or in a folder below", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

/// The tests of a file, or of every `.litmus` file in a folder and those below it, in order of their paths.
///
/// # Errors
/// The first file, in that order, that is no litmus test; an unreadable or empty folder.
pub fn read_tests(path: &Path) -> Result<Vec<Case>, CorpusError> {
    if !path.is_dir() {
        return Ok(vec![read_test(path)?]);
    }
    let mut files = Vec::new();
    collect(path, &mut files)?;
    if files.is_empty() {
        return Err(CorpusError::Empty { path: path.to_owned() });
    }
    files.sort_unstable();
    files.iter().map(|file| read_test(file)).collect()
}

fn read_test(path: &Path) -> Result<Case, CorpusError> {
    let file = path.display().to_string();
    let text = text(path).map_err(|source| LitmusError::Unreadable { file: file.clone(), source })?;
    Ok(Case::parse(&file, &text)?)
}

/// The text of a regular file that is not too large: a device would never end, a pipe keep us waiting.
fn text(path: &Path) -> io::Result<String> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() || found.len() > LARGEST {
        let reason = format!("a litmus test is a file of at most {LARGEST} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    std::fs::read_to_string(path)
}

/// Adds the test files in `folder` and below. Links to folders are not followed: they may lead back.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), CorpusError> {
    let failed = |source| CorpusError::Folder { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        if kind.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == ENDING) {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_set_is_what_the_list_of_expectations_names() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/litmus");
        let expected = std::fs::read_to_string(folder.join("expected.csv")).unwrap();
        let listed: Vec<&str> = expected.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        let shipped: Vec<&str> = CORE.iter().map(|(file, _)| *file).collect();
        assert_eq!(shipped, listed);
        assert_eq!(Case::core().len(), 52);
        let kernels = read_tests(&folder.with_file_name("kernels")).unwrap();
        assert_eq!(kernels.len(), Case::kernels().len());
    }

    #[test]
    fn a_folder_is_read_to_its_depths_in_order() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/litmus");
        let tests = read_tests(&folder).unwrap();
        assert_eq!(tests.len(), 52 + 183);
        assert!(tests.is_sorted_by(|one, other| one.file < other.file));
    }

    #[test]
    fn what_is_no_test_is_refused_by_name_and_line() {
        let folder = std::env::temp_dir().join(format!("tombolo-corpus-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(read_tests(&folder).unwrap_err().to_string().contains("at least one file"));
        std::fs::write(folder.join("a.litmus"), "PTX a\n{x=0;}\n P0@cta 0,gpu 0 ;\n st.strong x,1 ;\nexists x==1")
            .unwrap();
        let error = read_tests(&folder).unwrap_err().to_string();
        assert!(error.contains("a.litmus:4:") && error.contains("expected"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(read_tests(&folder).unwrap_err().to_string().contains("cannot be read"));
    }
}
