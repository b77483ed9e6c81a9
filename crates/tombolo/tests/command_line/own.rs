//! The crate `examples/own`: a program, a protocol, an observer, a machine and designs of a user are known to every
//! command.

use crate::{stderr, stdout};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the example's command line.
fn own(arguments: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_tombolo")).with_file_name("examples").join("own");
    Command::new(program).args(arguments).output().expect("the example is built with the tests")
}

fn document(arguments: &[&str]) -> Value {
    let output = own(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[test]
fn a_program_a_machine_and_a_design_of_a_crate_are_run_compared_and_checked() {
    let program = "distant-sum,elements=65536,launches=2";
    let on = ["--machine", "two-boards", "--scale", "1/16", "--workload", program];
    let run = document(&[&["run", "--design", "careful-hmg", "--check", "--json"], &on[..]].concat());
    assert_eq!((&run["machine"], &run["design"]), (&"two-boards".into(), &"careful-hmg".into()));
    assert_eq!(run["check"]["violations"], 0);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display().to_string();
    let compare = ["compare", "--designs", "hmg,careful-hmg", "--out", out.as_str()];
    let compared = stdout(&own(&[&compare[..], &on[..]].concat()));
    assert!(compared.contains("distant-sum") && compared.contains("careful-hmg"), "{compared}");
    // A changed program must not meet results of its former self: the executable is part of their key.
    let kept =
        std::fs::read_dir(folder.path().join("points")).expect("a folder").map(|file| file.expect("readable").path());
    let kept: Vec<String> = kept.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    assert!(kept.iter().any(|text| text.contains("[\"program\",")), "{kept:?}");
    let explained = own(&[&["explain", "--designs", "no-remote-caching,careful-hmg"], &on[..]].concat());
    assert!(explained.status.success(), "{}", stderr(&explained));
}

#[test]
fn an_observer_of_a_crate_sees_a_run_whose_times_it_does_not_change() {
    let on = ["--machine", "two-boards", "--scale", "1/16", "--workload", "distant-sum,elements=65536,launches=2"];
    let plain = document(&[&["run", "--design", "careful-hmg", "--json"], &on[..]].concat());
    let run = |more: &[&str]| {
        let observe = ["run", "--design", "careful-hmg", "--json", "--observe", "page-sharing"];
        document(&[&observe, &on[..], more].concat())
    };
    let observed = run(&[]);
    assert_eq!((&observed["digest"], &observed["cycles"]), (&plain["digest"], &plain["cycles"]));
    let told = &observed["observed"]["page-sharing"];
    // Each GPU sums elements that the other GPU has written: both use every page.
    let pages = told["pages_by_users"].as_object().expect("counts by number of users");
    assert_eq!(pages.keys().collect::<Vec<_>>(), ["2"], "{told}");
    // Every byte that a module sends arrives at another module.
    let sum = |bytes: &mut dyn Iterator<Item = &Value>| bytes.filter_map(Value::as_u64).sum::<u64>();
    let received = sum(&mut told["received_bytes"].as_object().expect("bytes by module").values());
    let is_sender = |link: &&Value| {
        let name = link["name"].as_str().expect("a name");
        name.starts_with("module") && name.ends_with(".out")
    };
    let links = observed["links"].as_array().expect("a list");
    let sent = sum(&mut links.iter().filter(is_sender).map(|link| &link["bytes"]));
    assert!(received > 0 && received == sent, "{received} of {sent} bytes");
    // Observers combine, and no number of threads changes this report.
    let both = run(&["--check", "--latency", "--threads", "2"]);
    assert_eq!((&both["observed"]["page-sharing"], &both["check"]["violations"]), (told, &0.into()));
    let text = stdout(&own(&[&["run", "--design", "careful-hmg", "--observe", "page-sharing"], &on[..]].concat()));
    assert!(text.contains("observed page-sharing.pages_by_users."), "{text}");
    let unknown = own(&[&["run", "--design", "careful-hmg", "--observe", "sharing"], &on[..]].concat());
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("there are page-sharing"), "{}", stderr(&unknown));
}

#[test]
fn what_a_crate_adds_is_listed_and_shown_and_the_design_is_verified() {
    let listed = document(&["list", "workloads", "--json"]);
    let found = listed.as_array().expect("a list").iter().find(|one| one["name"] == "distant-sum").expect("listed");
    assert_eq!(found["suite"], "registered");
    assert!(stdout(&own(&["list", "machines"])).contains("two-boards"));
    assert!(stdout(&own(&["show", "design", "careful-hmg"])).contains("l2_write"));
    let checked = own(&["check", "--design", "careful-hmg", "--timed", "20", "--json"]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    assert!(stdout(&own(&["list", "designs"])).contains("careful-hmg"));
}

/// Folder with shipped tests, given by their folder and name.
fn shipped_tests(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../check/tests/data");
    for name in names {
        let file = data.join(format!("{name}.litmus"));
        std::fs::copy(&file, folder.path().join(file.file_name().expect("a file"))).expect("a shipped test");
    }
    folder
}

/// Verdicts of an exploration of these shipped tests under a design of the example.
fn verdicts(design: &str, names: &[&str]) -> Vec<Value> {
    let folder = shipped_tests(names);
    let shapes = folder.path().display().to_string();
    let explored = document(&["check", "--design", design, "--litmus", &shapes, "--json"]);
    let tests = explored["designs"][0]["tests"].as_array().expect("a list");
    tests.iter().map(|test| test["verdict"].clone()).collect()
}

#[test]
fn msi_of_a_crate_is_timed_checked_attacked_and_explored_with_a_host() {
    let on = ["--machine", "umh-2-nvlink", "--workload", "reduction", "--scale", "1/16"];
    let run = |design: &str| document(&[&["run", "--design", design, "--check", "--json"], &on[..]].concat());
    let (msi, umh) = (run("msi"), run("umh"));
    assert_eq!((&msi["check"]["violations"], &umh["check"]["violations"]), (&0.into(), &0.into()));
    let states = msi["blocks"]["states"].as_object().expect("blocks by state");
    assert_eq!(states.keys().collect::<Vec<_>>(), ["I", "M", "S"]);
    // MSI knows no exclusive clean state and no transfer between GPUs: it sends more bytes than NMOESI.
    assert_eq!(msi["blocks"]["from_peers"], 0);
    let bytes = |record: &Value| record["blocks"]["data_bytes"].as_u64().expect("a count");
    assert!(bytes(&msi) > bytes(&umh), "{} and {}", bytes(&msi), bytes(&umh));
    let tests = [
        "shapes/MP.gpu",
        "shapes/MP.sys",
        "shapes/CoRWR.sys",
        "shapes/Atomics.gpu",
        "kernels/K-MP",
        "kernels/K-Both-Write",
        "host/CoWR+host.sys",
        "host/MP+host-writes.sys",
        "host/Atomics+host.sys",
    ];
    assert_eq!(verdicts("msi", &tests), ["ok"; 9]);
    let attacked = own(&["check", "--design", "msi", "--timed", "100"]);
    assert!(attacked.status.success(), "{}", stderr(&attacked));
}

#[test]
fn a_protocol_of_a_crate_is_timed_checked_attacked_and_explored() {
    let on = ["--machine", "two-boards", "--scale", "1/64", "--workload", "distant-sum,elements=65536"];
    let run = document(&[&["run", "--design", "gpu-directory", "--check", "--json"], &on[..]].concat());
    assert_eq!((&run["design"], &run["check"]["violations"]), (&"gpu-directory".into(), &0.into()));
    assert_eq!(verdicts("gpu-directory", &["shapes/MP.gpu", "shapes/MP.sys"]), ["ok"; 2]);
    let attacked = own(&["check", "--design", "gpu-directory", "--timed", "50"]);
    assert!(attacked.status.success(), "{}", stderr(&attacked));
    let unknown = own(&[
        "run",
        "--machine",
        "two-boards",
        "--design",
        "gpu-directory",
        "--set",
        "coherence=gpu",
        "--workload",
        "triad",
    ]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("\"nmoesi\", \"gpu-directory\", \"msi\""), "{}", stderr(&unknown));
}
