//! Derives the model's version from its sources, which keeps results from different sources apart. Also lists the
//! experiments shipped with the program: adding an experiment is adding a file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Crates whose sources decide the result of a run.
const MODEL: [&str; 8] = ["types", "engine", "protocol", "workload", "machine", "metrics", "model", "system"];
/// Sources in this crate that also decide results: how a program is recorded, placed and run, and the format in which
/// results are stored.
const OWN: [&str; 3] = ["workload.rs", "campaign.rs", "point_result.rs"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo:rustc-env=TOMBOLO_MODEL_VERSION={}", model_version(&here.join(".."))?);
    fs::write(out.join("presets.rs"), presets(&here.join("presets"))?)
}

/// Returns a hash over the names and texts of all model sources.
fn model_version(crates: &Path) -> io::Result<String> {
    let mut sources = Vec::new();
    for name in MODEL {
        let folder = crates.join(name).join("src");
        println!("cargo:rerun-if-changed={}", folder.display());
        sources.extend(files(&folder)?);
    }
    for name in OWN {
        let file = crates.join("experiment/src").join(name);
        println!("cargo:rerun-if-changed={}", file.display());
        sources.push(file);
    }
    let mut hasher = blake3::Hasher::new();
    for file in sources {
        let text = fs::read(&file)?;
        let name = file.strip_prefix(crates).expect("it was found below").to_string_lossy().into_owned();
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        hasher.update(&(text.len() as u64).to_le_bytes()).update(&text);
    }
    Ok(hasher.finalize().to_hex()[..16].to_owned())
}

/// Returns the source text of a Rust list with one (group, name, text) entry per experiment file.
fn presets(folder: &Path) -> io::Result<String> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut list = String::from("&[\n");
    for file in files(folder)?.iter().filter(|file| file.extension().is_some_and(|end| end == "toml")) {
        let word = |path: Option<&std::ffi::OsStr>| path.expect("a file has both").to_string_lossy().into_owned();
        let group = word(file.parent().and_then(Path::file_name));
        let name = word(file.file_stem());
        let path = file.to_string_lossy();
        writeln!(list, "Preset {{ group: {group:?}, name: {name:?}, text: include_str!({path:?}) }},")
            .expect("memory takes it");
    }
    list.push(']');
    Ok(list)
}

/// Returns every file below `folder`, sorted by name.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    found.sort();
    Ok(found)
}
