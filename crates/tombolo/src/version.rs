//! Program identity: version, commit, and a version for the model sources behind all results.

use std::sync::LazyLock;
use tombolo_experiment::MODEL_VERSION;

/// Version of the program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit of the build; `unknown` if the build has no repository.
pub(crate) const COMMIT: &str = env!("TOMBOLO_COMMIT");
/// Date of the commit in ISO format, for example `2026-11-25`; `unknown` without a repository.
pub(crate) const COMMIT_DATE: &str = env!("TOMBOLO_COMMIT_DATE");

/// Number of commit digits shown to people. Source: enough for repositories with billions of objects.
const LETTERS: usize = 12;

/// Version in a single line: `0.1.0 (f17be3f12345)`.
pub(crate) static SHORT: LazyLock<String> =
    LazyLock::new(|| format!("{VERSION} ({})", COMMIT.get(..LETTERS).unwrap_or(COMMIT)));

/// Full version, for citations and bug reports.
pub(crate) static LONG: LazyLock<String> =
    LazyLock::new(|| format!("{VERSION}\ncommit {COMMIT}\ndate   {COMMIT_DATE}\nmodel  {MODEL_VERSION}"));
