//! `new`: starting files, which the program must accept without any changes.

use crate::{TINY, outcome, stderr, stdout, tombolo};
use std::fs;
use std::path::Path;
use std::process::Output;

/// Runs `new` in a folder.
fn new(folder: &Path, words: &[&str]) -> Output {
    tombolo(&[&["new"], words].concat()).current_dir(folder).output().expect("the program starts")
}

#[test]
fn a_machine_and_a_design_of_ones_own_run_as_they_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    for words in [&["machine", "mine", "--base", "hmg-4x4"][..], &["design", "own", "--base", "hmg"]] {
        let output = new(folder.path(), words);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stdout(&output), format!("wrote {}.toml\n", words[1]));
    }
    let run = ["--machine", "mine.toml", "--design", "own.toml", "--scale", "1/32", "--workload", TINY];
    let output = tombolo(&[&["run"], &run[..]].concat()).current_dir(folder.path()).output().expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("on mine under own"), "{}", stdout(&output));
}

#[test]
fn a_workload_is_written_with_what_to_do_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(new(folder.path(), &["workload", "my-kernel"]).status.success());
    let text = fs::read_to_string(folder.path().join("my_kernel.rs")).expect("written");
    assert!(text.contains("table.rs") && text.contains("static MY_KERNEL = \"my-kernel\""), "{text}");
}

#[test]
fn a_crate_is_written_once_beside_a_library_that_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = env!("CARGO_MANIFEST_DIR");
    let output = new(folder.path(), &["crate", "my-study", "--library", library]);
    assert!(output.status.success(), "{}", stderr(&output));
    let read = |file: &str| fs::read_to_string(folder.path().join("my-study").join(file)).expect("written");
    assert!(read("Cargo.toml").contains("tombolo = { path = "), "{}", read("Cargo.toml"));
    assert!(read("src/main.rs").contains("tombolo::App::new()") && read("src/program.rs").contains("\"my-study\""));
    for (words, expected) in [
        (&["crate", "my-study", "--library", library][..], "exists"),
        (&["crate", "other"], "needs --library"),
        (&["crate", "other", "--library", "."], "not the folder crates/tombolo"),
        (&["crate", "other", "--library", "nowhere"], "--library nowhere"),
        (&["crate", "triad", "--library", library], "a workload that ships has this name"),
        (&["machine", "mine", "--library", library], "only a crate depends on the library"),
    ] {
        let output = new(folder.path(), words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else was written");
}

#[test]
fn what_is_there_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("mine.toml"), "old").expect("written");
    let output = new(folder.path(), &["machine", "mine"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("mine.toml") && stderr(&output).contains("exists"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(folder.path().join("mine.toml")).expect("there"), "old");
}

#[test]
fn bad_input_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for (words, expected) in [
        (&["machine", "hmg-4x4"][..], "a machine that ships has this name"),
        (&["design", "hmg"], "a design that ships has this name"),
        (&["workload", "triad"], "a workload that ships has this name"),
        (&["machine", "My Machine"], "lower-case letters"),
        (&["machine", ".."], "lower-case letters"),
        (&["machine", "mine", "--base", "hmg-4x5"], "did you mean hmg-4x4?"),
        (&["machine", "mine", "--base", "x.toml"], "only a name of `list machines`"),
        (&["workload", "mine", "--base", "triad"], "a workload builds on none"),
        (&["machine", "no/such/folder/mine"], "no/such/folder/mine.toml"),
        (&["protocol", "mine"], "machine"),
    ] {
        let output = new(folder.path(), words);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{words:?}");
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    assert_eq!(outcome(&["new"]).status.code(), Some(2));
}
