//! Litmus tests: the shipped tests, and tests in a user's files.

use super::case::Case;
use crate::litmus::{Litmus, TextPosition, parse};
use std::io;
use std::path::{Path, PathBuf};

/// File extension of litmus tests.
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

/// Tests for effects that a kernel observes from earlier kernels, by file name.
pub(super) const KERNELS: &[(&str, &str)] = shipped!["kernels":
    "K-Atomic-Read.litmus",
    "K-Atomics+weak.litmus",
    "K-Atomics.litmus",
    "K-Beside.litmus",
    "K-Both-Write.litmus",
    "K-Both.litmus",
    "K-CoWW.litmus",
    "K-Halo.litmus",
    "K-Idle.litmus",
    "K-Keep.litmus",
    "K-MP+readers.litmus",
    "K-MP+reload.litmus",
    "K-MP.litmus",
    "K-SB.litmus",
    "K-Twice.litmus",
    "K-WRC.litmus",
];

/// Shapes that expose a broken rule in a protocol, at the relevant scopes, by file name.
pub(super) const SHAPES: &[(&str, &str)] = shipped!["shapes":
    "Atomics.gpu.litmus",
    "Atomics.sys.litmus",
    "CoRWR+atom.gpu.litmus",
    "CoRWR+atom.sys.litmus",
    "CoRWR+red.gpu.litmus",
    "CoRWR.gpu.litmus",
    "CoRWR.sys.litmus",
    "CoWR+atom.gpu.litmus",
    "CoWR+neighbour.gpu.litmus",
    "CoWR.gpu.litmus",
    "CoWR.sys.litmus",
    "CoWW+release-beside.sys.litmus",
    "CoWW+remote-atoms.gpu.litmus",
    "Flush+neighbour.gpu.litmus",
    "Flush.gpu.litmus",
    "Flush.sys.litmus",
    "ISA2.sys.litmus",
    "LB+atom.gpu.litmus",
    "LB+atom.sys.litmus",
    "LB+barrier.sys.litmus",
    "LB+red.gpu.litmus",
    "LB+release.gpu.litmus",
    "LB+release.sys.litmus",
    "MP+atom.gpu.litmus",
    "MP+neighbour.sys.litmus",
    "MP+reader.gpu.litmus",
    "MP+reader.sys.litmus",
    "MP+readers+reload.sys.litmus",
    "MP+readers.gpu.litmus",
    "MP+readers.sys.litmus",
    "MP+red.gpu.litmus",
    "MP+red.sys.litmus",
    "MP+region.sys.litmus",
    "MP+reload.gpu.litmus",
    "MP+reload.sys.litmus",
    "MP.gpu.litmus",
    "MP.sys.litmus",
    "WRC+atom.sys.litmus",
    "WRC+gpu.sys.litmus",
    "WRC+near.sys.litmus",
    "WRC.gpu.litmus",
    "WRC.sys.litmus",
];

/// Threads that wait in a loop, by file name.
pub(super) const POLLING: &[(&str, &str)] = shipped!["polling":
    "Polling+atom.gpu.litmus",
    "Polling.gpu.litmus",
    "Polling.sys.litmus",
];

/// Tests for requests that lack a resource if resources are limited, by file name.
pub(super) const QUEUES: &[(&str, &str)] = shipped!["queues":
    "CoWR+queue.gpu.litmus",
];

/// Tests with threads on the host, by file name. Source: see `tests/data/host/README.md`.
pub(super) const HOST: &[(&str, &str)] = shipped!["host":
    "2+2W+host+relaxed.sys.litmus",
    "2+2W+host.sys.litmus",
    "Atomics+host-cas.sys.litmus",
    "Atomics+host-red.sys.litmus",
    "Atomics+host.gpu.litmus",
    "Atomics+host.sys.litmus",
    "CoRR+host-reads+weak.litmus",
    "CoRR+host-reads.sys.litmus",
    "CoRR+host-writes.sys.litmus",
    "CoRW+host-writes.sys.litmus",
    "CoRW+host.sys.litmus",
    "CoRWR+host.sys.litmus",
    "CoWR+host-writes.sys.litmus",
    "CoWR+host.sys.litmus",
    "IRIW+host-reads+acquire.sys.litmus",
    "IRIW+host-reads.sys.litmus",
    "IRIW+host-writes.sys.litmus",
    "K-host+atom.litmus",
    "K-host+beside.litmus",
    "K-host+debt.litmus",
    "K-host+empty.litmus",
    "K-host+flag-reads.litmus",
    "K-host+flag-writes.litmus",
    "K-host+over-own.litmus",
    "K-host+over.litmus",
    "K-host+overwrite.litmus",
    "K-host+owner.litmus",
    "K-host+read.litmus",
    "K-host+reload-gpu.litmus",
    "K-host+reload.litmus",
    "K-host+updates.litmus",
    "K-host+whole.litmus",
    "K-host+words.litmus",
    "K-host+write.litmus",
    "K-host+writers.litmus",
    "LB+host+relaxed.sys.litmus",
    "LB+host-acquires.sys.litmus",
    "LB+host-releases.sys.litmus",
    "MP+host-between+atom.sys.litmus",
    "MP+host-reads+atom.sys.litmus",
    "MP+host-reads+reload.sys.litmus",
    "MP+host-reads.gpu.litmus",
    "MP+host-reads.sys.litmus",
    "MP+host-writes+atom.sys.litmus",
    "MP+host-writes+own.sys.litmus",
    "MP+host-writes+reload.sys.litmus",
    "MP+host-writes+weak.litmus",
    "MP+host-writes.gpu.litmus",
    "MP+host-writes.sys.litmus",
    "R+host-reads+release.sys.litmus",
    "R+host-reads.sys.litmus",
    "R+host-writes.sys.litmus",
    "S+host-acquires.sys.litmus",
    "S+host-releases.sys.litmus",
    "SB+host+relaxed.sys.litmus",
    "SB+host.gpu.litmus",
    "SB+host.sys.litmus",
    "WRC+host-between.sys.litmus",
    "WRC+host-reads.sys.litmus",
    "WRC+host-writes.sys.litmus",
];

/// Threads that wait in a loop for the host, and host threads that wait for a GPU, by file name.
pub(super) const HOST_POLLING: &[(&str, &str)] = shipped!["host-polling":
    "Polling+host-reads.sys.litmus",
    "Polling+host-writes.sys.litmus",
];

/// The test called `name` in [`POLLING`].
pub(super) fn polling_test(name: &str) -> Litmus {
    named(POLLING, name)
}

/// The test called `name` in [`SHAPES`].
pub(super) fn shape_test(name: &str) -> Litmus {
    named(SHAPES, name)
}

fn named(tests: &[(&str, &str)], name: &str) -> Litmus {
    let shipped = tests.iter().find(|(file, _)| *file == format!("{name}.{ENDING}"));
    let (file, text) = shipped.expect("only shipped tests are asked for");
    parse(file, text).expect("a test reads every shipped file")
}

/// Reason why a path names no tests.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The path does not exist, or cannot be examined.
    #[error("{}: cannot be read: {source}", path.display())]
    Missing {
        /// Path as given.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A folder cannot be listed.
    #[error("{}: cannot be listed: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A folder without tests.
    #[error("{}: expected at least one file that ends in .{ENDING}, here or in a folder below", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

/// Reads the test in a file, or every `.litmus` file in a folder and its subfolders, in path order. An unreadable file
/// yields a case that states the reason, and the remaining files are still read.
///
/// # Errors
/// If `path` does not exist, or is a folder that cannot be listed or contains no test.
pub fn read_tests(path: &Path) -> Result<Vec<Case>, CorpusError> {
    let found = std::fs::metadata(path).map_err(|source| CorpusError::Missing { path: path.to_owned(), source })?;
    if !found.is_dir() {
        return Ok(vec![read_test(path)]);
    }
    let mut tests = Vec::new();
    collect(path, &mut tests).map_err(|source| CorpusError::Folder { path: path.to_owned(), source })?;
    if tests.is_empty() {
        return Err(CorpusError::Empty { path: path.to_owned() });
    }
    tests.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let read = |(path, trouble): (PathBuf, Option<String>)| match trouble {
        Some(reason) => unreadable(&path, &reason),
        None => read_test(&path),
    };
    Ok(tests.into_iter().map(read).collect())
}

fn read_test(path: &Path) -> Case {
    match text(path) {
        Ok(text) => Case::parse(&path.display().to_string(), &text),
        Err(reason) => unreadable(path, &reason),
    }
}

fn unreadable(path: &Path, reason: &str) -> Case {
    let file = path.display().to_string();
    Case::unreadable(&file, format!("{file}{reason}"))
}

/// The text of a regular file with limited size: a device would never end, and a pipe could block forever. Otherwise
/// the error text, to be appended to the path.
fn text(path: &Path) -> Result<String, String> {
    let cannot = |error: io::Error| format!(": cannot be read: {error}");
    let found = std::fs::metadata(path).map_err(cannot)?;
    if !found.is_file() || found.len() > LARGEST {
        return Err(format!(": cannot be read: a litmus test is a file of at most {LARGEST} bytes"));
    }
    String::from_utf8(std::fs::read(path).map_err(cannot)?).map_err(|error| {
        let (valid, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let place = TextPosition::behind(path.display().to_string().into(), &String::from_utf8_lossy(valid));
        format!(":{}:{}: expected text in UTF-8, found the byte 0x{:02x}", place.line, place.column, rest[0])
    })
}

/// Tests in a folder: each with its path, or with an error text to append to the path.
type TestPaths = Vec<(PathBuf, Option<String>)>;

/// Adds the test files in `folder` and below. Links to folders are not followed, because they may form a cycle.
fn collect(folder: &Path, tests: &mut TestPaths) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_test = path.extension().is_some_and(|ending| ending == ENDING);
        if !entry.file_type()?.is_dir() {
            tests.extend(is_test.then_some((path, None)));
            continue;
        }
        let before = tests.len();
        match collect(&path, tests) {
            Err(error) => tests.push((path, Some(format!(": cannot be listed: {error}")))),
            Ok(()) if is_test && tests.len() == before => {
                tests.push((path, Some(format!(": expected a file, found a folder without .{ENDING} files"))));
            }
            Ok(()) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::case::Obstacle;

    #[test]
    fn the_core_set_is_what_the_list_of_expectations_names() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/litmus");
        let expected = std::fs::read_to_string(folder.join("expected.csv")).unwrap();
        let listed: Vec<&str> = expected.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        let shipped: Vec<&str> = CORE.iter().map(|(file, _)| *file).collect();
        assert_eq!(shipped, listed);
        assert_eq!(Case::core().len(), 52);
        let lists = [
            ("kernels", KERNELS),
            ("shapes", SHAPES),
            ("polling", POLLING),
            ("host", HOST),
            ("host-polling", HOST_POLLING),
        ];
        for (name, shipped) in lists {
            assert_eq!(read_tests(&folder.with_file_name(name)).unwrap().len(), shipped.len(), "{name}");
        }
    }

    #[test]
    fn host_tests_have_host_threads_and_no_other_that_ships_has() {
        let has_host = |case: &Case| case.judge().is_ok_and(|judged| judged.program.has_host());
        assert!(Case::host().iter().all(has_host));
        assert!(!Case::shipped().iter().any(has_host));
    }

    #[test]
    fn a_folder_is_read_to_its_depths_in_order() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/litmus");
        let tests = read_tests(&folder).unwrap();
        assert_eq!(tests.len(), 52 + 183 + 11);
        assert!(tests.is_sorted_by(|one, other| one.file < other.file));
    }

    /// A folder that is deleted when the value is dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("tombolo-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn write(&self, file: &str, text: impl AsRef<[u8]>) {
            std::fs::write(self.0.join(file), text).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    const TEST: &str = "PTX test\n{x=0;}\n P0@cta 0,gpu 0 ;\n st.weak x,1 ;\nexists x==1\n";

    /// The reported obstacle for each unexecuted test, with the test's name.
    fn obstacles(folder: &Folder) -> Vec<(String, Option<String>)> {
        let told = |case: &Case| {
            let told = case.judge().err().map(|obstacle| match obstacle {
                Obstacle::Unreadable(reason) | Obstacle::Unsupported(reason) | Obstacle::Bounded(reason) => reason,
            });
            (case.name.clone(), told)
        };
        read_tests(&folder.0).unwrap().iter().map(told).collect()
    }

    #[test]
    fn what_cannot_be_read_says_why_and_the_others_are_read() {
        let folder = Folder::new("corpus");
        folder.write("a.litmus", TEST.replace("weak", "strong"));
        folder.write("b.litmus", "");
        folder.write("c.litmus", [TEST.as_bytes(), b"\xe9"].concat());
        folder.write("d.litmus", " ".repeat(LARGEST as usize + 1));
        folder.write("e.litmus", TEST);
        std::fs::create_dir_all(folder.0.join("f.litmus")).unwrap();
        let expected = [
            ("a", Some("a.litmus:4:5: expected .weak")),
            ("b", Some("b.litmus:1:1: expected `PTX` and the name of the test, found the end of the file")),
            ("c", Some("c.litmus:6:1: expected text in UTF-8, found the byte 0xe9")),
            ("d", Some("d.litmus: cannot be read: a litmus test is a file of at most 1048576 bytes")),
            ("test", None),
            ("f", Some("f.litmus: expected a file, found a folder without .litmus files")),
        ];
        let found = obstacles(&folder);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((name, told), (expected_name, expected)) in found.iter().zip(expected) {
            assert_eq!(name, expected_name);
            let agrees = match (told, expected) {
                (Some(told), Some(expected)) => told.contains(expected),
                (told, expected) => told.is_none() && expected.is_none(),
            };
            assert!(agrees, "{told:?} {expected:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_is_no_test_and_a_folder_named_like_a_test_is_searched() {
        let folder = Folder::new("links");
        std::os::unix::fs::symlink("nowhere", folder.0.join("a.litmus")).unwrap();
        std::fs::create_dir_all(folder.0.join("b.litmus")).unwrap();
        folder.write("b.litmus/within.litmus", TEST);
        let found = obstacles(&folder);
        assert!(found[0].1.as_deref().is_some_and(|told| told.contains("a.litmus: cannot be read")), "{found:?}");
        assert_eq!(found[1..], [("test".to_owned(), None)]);
    }

    #[test]
    fn a_path_without_tests_is_refused() {
        let folder = Folder::new("empty");
        assert!(read_tests(&folder.0).unwrap_err().to_string().contains("at least one file"));
        assert!(read_tests(&folder.0.join("none")).unwrap_err().to_string().contains("cannot be read"));
    }
}
