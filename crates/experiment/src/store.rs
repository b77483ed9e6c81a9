//! A folder with finished results: a file per result, named by the result's key, and either complete or absent.
//!
//! A result is written to a separate file, synced, and renamed into place. A process killed at any moment leaves
//! complete results, and at most a partial file that no reader opens. Any number of processes may share a folder. The
//! checksum reveals a damaged file, and its point then runs again.

use crate::error::StoreError;
use crate::launches::Launches;
use crate::point::{Identity, Key, Point};
use crate::point_result::PointResult;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age beyond which a partial file is abandoned. Source: assumed; writing a result takes milliseconds.
const STALE: Duration = Duration::from_secs(600);
/// Prefix and extension of a partial file's name.
const HIDDEN: &str = ".tombolo-";
const PART: &str = "part";

/// File contents: the text for a [`StoredResult`], and a checksum.
#[derive(Serialize, Deserialize)]
struct ResultFile {
    blake3: String,
    kept: Box<RawValue>,
}

/// A result together with the point's identity.
#[derive(Serialize, Deserialize)]
struct StoredResult {
    point: Identity,
    outcome: PointResult,
    /// Launches of a simulation.
    #[serde(default)]
    launches: Launches,
}

/// Outcome of a lookup in the folder.
#[derive(Debug)]
pub enum Lookup {
    /// A stored result.
    Result(Box<PointResult>),
    /// No file.
    Nothing,
    /// A damaged file, with the reason; treated like a missing file.
    Damaged(String),
}

/// The results folder.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    points: PathBuf,
}

impl Store {
    /// Opens the results folder, or creates a missing folder.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created or written.
    pub fn open(folder: &Path) -> Result<Store, StoreError> {
        let points = folder.join("points");
        fs::create_dir_all(&points).map_err(|error| failed(&points, "make the folder", error))?;
        let store = Store { folder: folder.to_owned(), points };
        store.sweep();
        part()
            .tempfile_in(&store.points)
            .map_err(|error| failed(&store.points, "create a file in the folder", error))?;
        Ok(store)
    }

    /// Returns the folder's path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes old partial files left by killed processes, in the folder and among the points. Files that cannot be
    /// removed do no harm.
    fn sweep(&self) {
        let folders = [&self.points, &self.folder].into_iter().filter_map(|folder| fs::read_dir(folder).ok());
        for entry in folders.flatten().flatten() {
            let old = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
            // Files with a different prefix belong to the user.
            let ours = entry.file_name().to_string_lossy().starts_with(HIDDEN);
            let is_part = ours && entry.path().extension().is_some_and(|end| end == PART);
            if is_part && old().is_some_and(|age| age > STALE) {
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// Returns the path of a point's file.
    pub fn file(&self, key: &Key) -> PathBuf {
        self.points.join(format!("{key}.json"))
    }

    /// Looks up the result of a point.
    ///
    /// # Errors
    /// Returns an error if the file exists and cannot be read.
    pub fn load(&self, key: &Key) -> Result<Lookup, StoreError> {
        let path = self.file(key);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lookup::Nothing),
            Err(error) => return Err(failed(&path, "read the file", error)),
        };
        Ok(match open(&bytes, key) {
            Ok(outcome) => Lookup::Result(Box::new(outcome)),
            Err(reason) => Lookup::Damaged(format!("{}: {reason}; its point runs again", path.display())),
        })
    }

    /// Stores a point's result under the point's key.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; no file remains under its name in this case.
    pub fn save(&self, point: &Point, outcome: &PointResult) -> Result<(), StoreError> {
        let launches = match outcome {
            PointResult::Simulation(record) => Launches::of(&record.kernels),
            PointResult::Sharing(_) | PointResult::Arrays(_) => Launches::default(),
        };
        let kept = StoredResult { point: point.identity().clone(), outcome: outcome.clone(), launches };
        let kept = serde_json::value::to_raw_value(&kept).expect("its keys are strings");
        let sealed = ResultFile { blake3: blake3::hash(kept.get().as_bytes()).to_hex().to_string(), kept };
        let bytes = serde_json::to_vec(&sealed).expect("its keys are strings");
        write_whole(&self.file(point.key()), &bytes)
    }

    /// Returns the seconds taken by points of each recording in their last run: a hint for ordering and estimates.
    pub(crate) fn costs(&self) -> BTreeMap<String, f64> {
        let text = fs::read(self.folder.join("costs.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Stores [`Store::costs`].
    pub(crate) fn save_costs(&self, costs: &BTreeMap<String, f64>) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec_pretty(costs).expect("its keys are strings");
        write_whole(&self.folder.join("costs.json"), &bytes)
    }
}

/// Parses the outcome in a file, or describes the damage.
fn open(bytes: &[u8], key: &Key) -> Result<PointResult, String> {
    let sealed: ResultFile = serde_json::from_slice(bytes).map_err(|error| format!("not a result: {error}"))?;
    if blake3::hash(sealed.kept.get().as_bytes()).to_hex().as_str() != sealed.blake3 {
        return Err("its checksum is wrong".to_owned());
    }
    let kept: StoredResult =
        serde_json::from_str(sealed.kept.get()).map_err(|error| format!("not a result: {error}"))?;
    let StoredResult { point, mut outcome, launches } = kept;
    if point.key() != *key {
        return Err("it is the result of another point".to_owned());
    }
    if let PointResult::Simulation(record) = &mut outcome {
        record.kernels = launches.records().map_err(|reason| format!("not a result: {reason}"))?;
    }
    Ok(outcome)
}

fn failed(path: &Path, action: &'static str, error: io::Error) -> StoreError {
    StoreError { path: path.to_owned(), action, error }
}

/// Returns a builder for partial files.
fn part() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(HIDDEN).suffix(".part");
    builder
}

/// Writes `bytes` to `path` atomically: readers see the old file or the new file, never a partial file.
///
/// # Errors
/// Returns an error if the file cannot be written; the old file stays.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let folder = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let mut builder = part();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Permissions for a new file from any program, before the process's umask applies.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut part = builder.tempfile_in(folder).map_err(|error| failed(path, "create the file", error))?;
    let written = part.write_all(bytes).and_then(|()| part.as_file().sync_all());
    written.map_err(|error| failed(path, "write the file", error))?;
    part.persist(path).map_err(|error| failed(path, "put the file in place", error.error))?;
    // The name survives a power loss only after the folder is synced. On systems without folder sync, durability
    // depends on the system.
    drop(fs::File::open(folder).and_then(|folder| folder.sync_all()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn old_parts_are_removed_and_files_of_the_user_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let points = Store::open(folder.path()).unwrap().points;
        let made = |path: PathBuf, age: Duration| {
            let file = fs::File::create(&path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            path
        };
        let old = STALE * 2;
        let stale = [folder.path(), &points].map(|place| made(place.join(".tombolo-a.part"), old));
        let kept = [
            made(folder.path().join(".tombolo-b.part"), Duration::ZERO),
            made(folder.path().join("spare.part"), old),
            made(points.join(".tombolo-c.json"), old),
        ];
        Store::open(folder.path()).unwrap();
        assert!(stale.iter().all(|path| !path.exists()), "{stale:?}");
        assert!(kept.iter().all(|path| path.exists()), "{kept:?}");
    }
}
