//! Help, lists, and outputs that close early.

use crate::{TINY, json, outcome, small_run, stderr, stdout, tombolo};
use std::process::Stdio;

#[test]
fn help_lists_every_command() {
    let help = outcome(&["--help"]);
    assert!(help.status.success());
    let commands = "run compare check reproduce sweep trace validate report list show new completion";
    for command in commands.split(' ') {
        assert!(stdout(&help).contains(&format!("\n  {command} ")), "{command} is missing in {}", stdout(&help));
        let own = outcome(&[command, "--help"]);
        assert!(own.status.success() && stdout(&own).contains("Usage: tombolo"), "{command}");
    }
}

#[test]
fn lists_name_what_ships() {
    for (what, expected) in [("machines", "hmg-4x4"), ("designs", "nhcc"), ("workloads", "pathfinder")] {
        assert!(stdout(&outcome(&["list", what])).lines().any(|line| line.starts_with(expected)), "{what}");
        let listed = json(&["list", what, "--json"]);
        let listed = listed.as_array().expect("a list");
        assert!(listed.iter().any(|one| one["name"] == expected), "{what}");
        assert!(listed.iter().all(|one| one["description"].as_str().is_some_and(|text| !text.is_empty())), "{what}");
    }
}

#[test]
fn experiments_are_listed_by_paper_and_figure() {
    let listed = stdout(&outcome(&["list", "experiments"]));
    for name in ["hmg ", "hmg/figure-8 ", "hmg/hardware-cost "] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{name} is missing in {listed}");
    }
}

#[test]
fn workloads_are_listed_with_sourced_parameters() {
    let listed = json(&["list", "workloads", "--json"]);
    for workload in listed.as_array().expect("a list") {
        let parameters = workload["parameters"].as_array().expect("every workload has some");
        assert!(parameters.iter().all(|one| one["source"].as_str().is_some_and(|text| !text.is_empty())), "{workload}");
    }
}

#[test]
fn a_list_has_a_line_for_each_and_workloads_their_suite() {
    for what in ["machines", "designs", "workloads", "experiments"] {
        let listed = json(&["list", what, "--json"]).as_array().map_or(0, Vec::len);
        assert_eq!(stdout(&outcome(&["list", what])).lines().count(), listed, "{what}");
    }
    let text = stdout(&outcome(&["list", "workloads"]));
    let triad = text.lines().find(|line| line.starts_with("triad ")).expect("a row");
    assert_eq!(triad.split_whitespace().take(4).collect::<Vec<_>>(), ["triad", "micro", "STREAM", "triad"]);
}

#[test]
fn workloads_are_listed_with_their_aliases() {
    let listed = json(&["list", "workloads", "--json"]);
    let of = |name: &str| listed.as_array().and_then(|all| all.iter().find(|one| one["name"] == name)).cloned();
    assert_eq!(of("lonestar-bfs").expect("it ships")["aliases"], serde_json::json!(["bfs"]));
    assert!(of("triad").expect("it ships").get("aliases").is_none());
    let text = stdout(&outcome(&["list", "workloads"]));
    assert!(text.lines().any(|line| line.starts_with("lonestar-bfs, bfs ")), "{text}");
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let list = ["list", "workloads"];
    let run = small_run(&["--design", "hmg", "--workload", TINY, "--json"]);
    for (arguments, said) in [(&list[..], ""), (&run, "1 run to go\n")] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = tombolo(arguments).stdout(writer).stderr(Stdio::piped()).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(stderr(&output), said);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_under_standard_output_is_told() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = tombolo(&["list", "designs"]).stdout(full).stderr(Stdio::piped()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("error: standard output: "), "{}", stderr(&output));
}

#[test]
fn no_colours_go_where_no_terminal_is_and_of_progress_a_line_at_the_start() {
    let output = outcome(&small_run(&["--design", "hmg", "--workload", "triad,elements=4096,iterations=1"]));
    assert!(output.status.success());
    assert!(!stdout(&output).contains('\x1b'));
    assert_eq!(stderr(&output), "1 run to go\n");
}

#[test]
fn the_main_command_of_the_readme_is_accepted() {
    let readme = include_str!("../../../../README.md").replace("\\\n", " ");
    let command = readme.lines().find_map(|line| line.strip_prefix("cargo run --release -- ")).expect("it has one");
    // A folder that cannot be created is refused last, before the first run.
    let file = tempfile::NamedTempFile::new().expect("a file");
    let folder = file.path().join("folder").display().to_string();
    let mut arguments: Vec<&str> = command.split_whitespace().collect();
    assert_eq!(arguments[arguments.len() - 2], "--out");
    *arguments.last_mut().expect("it has words") = &folder;
    let output = outcome(&arguments);
    assert!(stderr(&output).contains("folder/points: cannot make the folder"), "{}", stderr(&output));
}
