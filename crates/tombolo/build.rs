//! Tells the program which commit of the repository it is built from, where it is built from one: `unknown` elsewhere, as
//! from an archive.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the program says where there is no repository.
const UNKNOWN: &str = "unknown";

/// Files of a repository that change with the commit, or with which of them is looked up.
const WATCHED: [&str; 3] = ["HEAD", "logs/HEAD", "packed-refs"];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed=build.rs");
    let own = is_own_repository(&here);
    let git = |words: &[&str]| own.then(|| git(&here, words)).flatten();
    // A file that is not there would have this run at every build.
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

/// Whether the repository around `here` is that of this workspace, and not one that a copy of it lies in.
fn is_own_repository(here: &Path) -> bool {
    let root = git(here, &["rev-parse", "--show-toplevel"]).and_then(|root| Path::new(&root).canonicalize().ok());
    root.is_some() && root == here.join("../..").canonicalize().ok()
}

/// What git prints, where it does and is there.
fn git(here: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(here).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
