//! The version, the provenance in documents, shell completion, and the citation.

use crate::{TINY, json, outcome, small_compare, small_run, stdout, tombolo};
use serde_json::{Value, json as value};
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns git's output about the repository with these tests; `None` without a repository.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn the_version_names_the_commit_and_in_full_its_day_and_the_model() {
    let (short, long) = (stdout(&outcome(&["-V"])), stdout(&outcome(&["--version"])));
    let line = long.lines().next().expect("a line");
    assert_eq!(line, format!("tombolo {}", env!("CARGO_PKG_VERSION")));
    assert!(short.starts_with(&format!("{line} (")) && short.lines().count() == 1, "{short}");
    let of = |word: &str| {
        let line = long.lines().find_map(|line| line.strip_prefix(word));
        line.unwrap_or_else(|| panic!("no {word} in {long}")).trim().to_owned()
    };
    let (commit, date, model) = (of("commit"), of("date"), of("model"));
    assert_eq!(model.len(), 16);
    // The program may come from an earlier commit than the tests, but this commit must exist.
    let exists = git(&["cat-file", "-t", &commit]).is_some_and(|kind| kind == "commit");
    let own =
        git(&["rev-parse", "--show-toplevel"]).is_some_and(|root| Path::new(&root).join("crates/tombolo").is_dir());
    assert!(if own { exists && date.len() == "2026-11-25".len() } else { commit == "unknown" }, "{long}");
}

#[test]
fn every_shell_gets_a_script_that_knows_commands_and_names() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&outcome(&["completion", shell]));
        for word in ["reproduce", "hmg-4x4", "software-flat", "pathfinder"] {
            // The script generators for two shells do not complete any values.
            let expected = !(word != "reproduce" && ["elvish", "powershell"].contains(&shell));
            assert!(script.contains(word) || !expected, "{word} is not in {shell}'s");
        }
    }
    assert_eq!(outcome(&["completion", "cmd"]).status.code(), Some(2));
}

#[test]
#[cfg(unix)]
fn bash_completes_what_ships() {
    let script = stdout(&outcome(&["completion", "bash"]));
    let complete = format!(
        "{script}\nCOMP_WORDS=(tombolo run --machine hmg-4x4-w); COMP_CWORD=3\n_tombolo tombolo hmg-4x4-w --machine\n\
         echo \"${{COMPREPLY[*]}}\""
    );
    let Ok(output) = Command::new("bash").args(["-c", &complete]).stdin(Stdio::null()).output() else { return };
    assert_eq!(stdout(&output).trim(), "hmg-4x4-wide");
    // Completed names are only suggestions: file paths are still accepted.
    let file = tombolo(&["show", "machine", "no/such.toml"]).output().expect("the program starts");
    assert!(String::from_utf8_lossy(&file.stderr).contains("no/such.toml: "));
}

#[test]
fn the_citation_is_of_this_version_and_licence() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let citation = std::fs::read_to_string(root.join("CITATION.cff")).expect("it ships");
    let value = |key: &str| citation.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    assert_eq!((value("cff-version"), value("type")), (Some("1.2.0"), Some("software")));
    assert_eq!(value("version"), Some(env!("CARGO_PKG_VERSION")));
    assert!(value("message").is_some() && value("title") == Some("\"Tombolo\""));
    assert!(citation.contains("\nauthors:\n  - name: \"The Tombolo authors\"\n"));
    assert!(citation.contains("\nlicense:\n  - MIT\n  - Apache-2.0\n"));
}

#[test]
fn every_document_says_what_made_it_and_where() {
    let commands = [
        small_run(&["--design", "hmg", "--workload", TINY, "--threads", "2", "--json"]),
        small_compare(&["--designs", "hmg,nhcc", "--workload", TINY, "--threads", "2", "--json"]),
        vec!["check", "--design", "nhcc", "--random", "2", "--seed", "1", "--threads", "2", "--json"],
        vec!["validate", "--benchmarks", "fir", "--threads", "2", "--json"],
    ];
    let version = stdout(&outcome(&["--version"]));
    for command in commands {
        let document = json(&command);
        let made = document["provenance"].as_object().unwrap_or_else(|| panic!("{command:?}"));
        let text = |key: &str| made[key].as_str().unwrap_or_else(|| panic!("{key} of {command:?}"));
        assert_eq!((&document["tombolo"], text("tombolo")), (&Value::from(text("tombolo")), env!("CARGO_PKG_VERSION")));
        for key in ["commit", "commit_date", "model"] {
            assert!(version.contains(text(key)), "{key}");
        }
        assert!(text("command").starts_with(&format!("tombolo {} ", command[0])), "{}", text("command"));
        assert!(text("date").len() == 10 && text("date") > "2026-01-01", "{}", text("date"));
        assert_eq!((text("os"), text("architecture")), (std::env::consts::OS, std::env::consts::ARCH));
        assert!(made["cores"].as_u64().is_some_and(|cores| cores > 0));
        assert_eq!((&made["threads"], &made["seeds"]), (&value!(2), &value!([1])), "{command:?}");
    }
}
