//! What this program is: version, commit, and the version of the model that decides results.

use std::sync::LazyLock;
use tombolo_experiment::MODEL_VERSION;

/// Version of the program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit that it is built from; `unknown` where it is not built from a repository.
pub(crate) const COMMIT: &str = env!("TOMBOLO_COMMIT");
/// Day of that commit, such as `2026-11-25`; `unknown` likewise.
pub(crate) const COMMIT_DATE: &str = env!("TOMBOLO_COMMIT_DATE");

/// Letters of a commit that people are shown. Source: enough for repositories of billions of objects.
const LETTERS: usize = 12;

/// In a line: `0.1.0 (f17be3f12345)`.
pub(crate) static SHORT: LazyLock<String> =
    LazyLock::new(|| format!("{VERSION} ({})", COMMIT.get(..LETTERS).unwrap_or(COMMIT)));

/// In full, for those who cite or report.
pub(crate) static LONG: LazyLock<String> =
    LazyLock::new(|| format!("{VERSION}\ncommit {COMMIT}\ndate   {COMMIT_DATE}\nmodel  {MODEL_VERSION}"));
