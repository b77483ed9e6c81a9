//! A folder of finished results: one file each, named after what decides it, whole or not there.
//!
//! A result is written to a file of its own, synced, and renamed into place, so that a process that is killed at any
//! moment leaves whole results and at most a part that nothing reads. Any number of processes may share a folder.
//! A file that was damaged is noticed by its checksum and its point runs again.

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

/// Age at which a part that was not finished belongs to nobody. Source: assumed; writing one takes milliseconds.
const STALE: Duration = Duration::from_secs(600);
/// Beginning and ending of a part's name.
const HIDDEN: &str = ".tombolo-";
const PART: &str = "part";

/// What a file holds: the text of a [`Kept`], and its checksum.
#[derive(Serialize, Deserialize)]
struct Sealed {
    blake3: String,
    kept: Box<RawValue>,
}

/// A result and what it is of.
#[derive(Serialize, Deserialize)]
struct Kept {
    point: Identity,
    outcome: PointResult,
    /// Of a simulation.
    #[serde(default)]
    launches: Launches,
}

/// What the folder has of a point.
#[derive(Debug)]
pub enum Found {
    /// Its result.
    Result(Box<PointResult>),
    /// Nothing.
    Nothing,
    /// A file that is damaged: why. It counts as nothing.
    Damaged(String),
}

/// The folder.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    points: PathBuf,
}

impl Store {
    /// Opens or makes the folder.
    ///
    /// # Errors
    /// It cannot be made or written.
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

    /// The folder's path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes old parts of processes that were killed, of points and of what stands beside them. What cannot be removed
    /// does no harm.
    fn sweep(&self) {
        let folders = [&self.points, &self.folder].into_iter().filter_map(|folder| fs::read_dir(folder).ok());
        for entry in folders.flatten().flatten() {
            let old = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
            // What begins otherwise is the user's.
            let ours = entry.file_name().to_string_lossy().starts_with(HIDDEN);
            let is_part = ours && entry.path().extension().is_some_and(|end| end == PART);
            if is_part && old().is_some_and(|age| age > STALE) {
                drop(fs::remove_file(entry.path()));
            }
        }
    }

    /// The file of a point.
    pub fn file(&self, key: &Key) -> PathBuf {
        self.points.join(format!("{key}.json"))
    }

    /// What there is of a point.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn load(&self, key: &Key) -> Result<Found, StoreError> {
        let path = self.file(key);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(failed(&path, "read the file", error)),
        };
        Ok(match open(&bytes, key) {
            Ok(outcome) => Found::Result(Box::new(outcome)),
            Err(reason) => Found::Damaged(format!("{}: {reason}; its point runs again", path.display())),
        })
    }

    /// Keeps the result of a point.
    ///
    /// # Errors
    /// It cannot be written; nothing is left under its name then.
    pub fn save(&self, point: &Point, outcome: &PointResult) -> Result<(), StoreError> {
        let launches = match outcome {
            PointResult::Simulation(record) => Launches::of(&record.kernels),
            PointResult::Sharing(_) | PointResult::Arrays(_) => Launches::default(),
        };
        let kept = Kept { point: point.identity().clone(), outcome: outcome.clone(), launches };
        let kept = serde_json::value::to_raw_value(&kept).expect("its keys are strings");
        let sealed = Sealed { blake3: blake3::hash(kept.get().as_bytes()).to_hex().to_string(), kept };
        let bytes = serde_json::to_vec(&sealed).expect("its keys are strings");
        write_whole(&self.file(point.key()), &bytes)
    }

    /// Seconds that points of each recording took when they last ran: advice for order and estimates.
    pub(crate) fn costs(&self) -> BTreeMap<String, f64> {
        let text = fs::read(self.folder.join("costs.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Keeps [`Store::costs`].
    pub(crate) fn save_costs(&self, costs: &BTreeMap<String, f64>) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec_pretty(costs).expect("its keys are strings");
        write_whole(&self.folder.join("costs.json"), &bytes)
    }
}

/// The outcome in a file, or what is wrong with it.
fn open(bytes: &[u8], key: &Key) -> Result<PointResult, String> {
    let sealed: Sealed = serde_json::from_slice(bytes).map_err(|error| format!("not a result: {error}"))?;
    if blake3::hash(sealed.kept.get().as_bytes()).to_hex().as_str() != sealed.blake3 {
        return Err("its checksum is wrong".to_owned());
    }
    let kept: Kept = serde_json::from_str(sealed.kept.get()).map_err(|error| format!("not a result: {error}"))?;
    let Kept { point, mut outcome, launches } = kept;
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

/// Makes files for parts.
fn part() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(HIDDEN).suffix(".part");
    builder
}

/// Writes `bytes` to `path`: readers see the old file or the new one, never a part.
///
/// # Errors
/// It cannot be written; the old file stays.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let folder = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let mut builder = part();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // What any program's new file gets: the process's mask takes its part of it.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut part = builder.tempfile_in(folder).map_err(|error| failed(path, "create the file", error))?;
    let written = part.write_all(bytes).and_then(|()| part.as_file().sync_all());
    written.map_err(|error| failed(path, "write the file", error))?;
    part.persist(path).map_err(|error| failed(path, "put the file in place", error.error))?;
    // The name is only safe from a loss of power when the folder is synced; where a system cannot, it is as safe as
    // that system makes it.
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
