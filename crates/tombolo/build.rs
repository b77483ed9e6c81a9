//! Passes the repository's commit to the program. Outside a repository, for example in an archive, the commit is
//! `unknown`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Text in place of the commit for a build without a repository.
const UNKNOWN: &str = "unknown";

/// Repository files that change with the commit, or with the reference used to look up the commit.
const WATCHED: [&str; 3] = ["HEAD", "logs/HEAD", "packed-refs"];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed=build.rs");
    let own = is_own_repository(&here);
    let git = |words: &[&str]| own.then(|| git(&here, words)).flatten();
    // A watched file that does not exist would trigger this script in every build.
    let reference = git(&["symbolic-ref", "-q", "HEAD"]);
    for name in WATCHED.into_iter().chain(reference.as_deref()) {
        let path = git(&["rev-parse", "--git-path", name]).map(|path| here.join(path));
        if let Some(path) = path.filter(|path| path.is_file()) {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    let told = |format| git(&["show", "-s", format, "HEAD"]).unwrap_or_else(|| UNKNOWN.to_owned());
    println!("cargo:rustc-env=TOMBOLO_COMMIT={}", told("--format=%H"));
    println!("cargo:rustc-env=TOMBOLO_COMMIT_DATE={}", told("--format=%cs"));
}

/// True if the repository around `here` belongs to this workspace, and is not a surrounding repository that contains a
/// copy.
fn is_own_repository(here: &Path) -> bool {
    let root = git(here, &["rev-parse", "--show-toplevel"]).and_then(|root| Path::new(&root).canonicalize().ok());
    root.is_some() && root == here.join("../..").canonicalize().ok()
}

/// Returns the output of git; `None` if git is missing or fails.
fn git(here: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(here).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
