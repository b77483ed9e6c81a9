//! Traces in every place that accepts a workload.

use crate::{TINY, json, outcome, small_compare, small_run, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Records a workload to a trace file in a folder, and returns its path.
fn recorded(folder: &Path, name: &str, workload: &str) -> String {
    let path = folder.join(name);
    let path = path.to_str().expect("UTF-8").to_owned();
    let output = outcome(&["trace", "record", "--workload", workload, "--scale", "1/32", "-o", &path]);
    assert!(output.status.success(), "{}", stderr(&output));
    path
}

#[test]
fn a_trace_is_a_workload_of_run_and_of_compare() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = recorded(folder.path(), "tiny.tombolo", TINY);
    let word = format!("trace:{path}");
    let run = json(&small_run(&["--design", "hmg", "--workload", &word, "--json"]));
    let alias = json(&small_run(&["--design", "hmg", "--trace", &path, "--json"]));
    let original = json(&small_run(&["--design", "hmg", "--workload", TINY, "--json"]));
    assert_eq!((&run["digest"], &run["workload"]), (&original["digest"], &word.as_str().into()));
    assert_eq!((&alias["digest"], &alias["workload"]), (&run["digest"], &run["workload"]));
    let both = format!("{word},{TINY}");
    let comparison = json(&small_compare(&["--designs", "nhcc,hmg", "--workload", &both, "--json"]));
    assert_eq!(comparison["workloads"], serde_json::json!([word, TINY]));
    assert_eq!(comparison["speedups"][&word], comparison["speedups"][TINY]);
    assert_eq!(comparison["notes"].as_array().map(Vec::len), Some(1), "{}", comparison["notes"]);
    let text = stdout(&outcome(&small_compare(&["--designs", "nhcc,hmg", "--workload", &word])));
    assert_eq!(text.matches("a trace stays as it was recorded").count(), 1, "{text}");
}

#[test]
fn a_trace_of_a_real_gpu_is_compared_too() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../workload/tests/data/traces/vectoradd-a100");
    let word = format!("trace:{shipped}");
    let comparison = json(&["compare", "--machine", "hmg-4x4", "--designs", "nhcc,hmg", "--workload", &word, "--json"]);
    assert!(comparison["speedups"][&word]["hmg"].as_f64().is_some_and(|speedup| speedup > 0.0));
}

#[test]
fn a_path_with_a_comma_goes_in_quotes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = recorded(folder.path(), "a, b=1.tombolo", TINY);
    let word = format!("trace:\"{path}\"");
    let quoted = json(&small_run(&["--design", "hmg", "--workload", &word, "--json"]));
    let alias = json(&small_run(&["--design", "hmg", "--trace", &path, "--json"]));
    assert_eq!((&quoted["digest"], &alias["workload"]), (&alias["digest"], &word.as_str().into()));
    let output = outcome(&small_run(&["--design", "hmg", "--workload", &word[..word.len() - 1], "--json"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a double quote is not closed"), "{}", stderr(&output));
}

#[test]
fn what_is_no_trace_or_cannot_be_asked_of_one_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = recorded(folder.path(), "tiny.tombolo", TINY);
    let word = format!("trace:{path}");
    let refused = |workload: &str, more: &[&str], reason: &str| {
        for command in [small_run(&["--design", "hmg"]), small_compare(&["--designs", "hmg"])] {
            let output = outcome(&[&command[..], &["--workload", workload], more].concat());
            assert_eq!(output.status.code(), Some(2), "{workload}");
            assert!(stderr(&output).contains(reason), "{workload}: {}", stderr(&output));
        }
    };
    refused("trace:", &[], "a path follows");
    refused("trace:no/such/trace", &[], "no/such/trace");
    refused(
        folder.path().to_str().map(|path| format!("trace:{path}")).as_deref().expect("UTF-8"),
        &[],
        "kernelslist.g",
    );
    refused(&format!("{word},elements=4"), &[], "a trace takes no parameters");
    refused(&word, &["--out", &path], "the command reads this file");
}

#[test]
fn a_sweep_takes_traces_and_keeps_results_by_what_they_hold() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = recorded(folder.path(), "one.tombolo", TINY);
    let (spec, out) = (folder.path().join("spec.toml"), folder.path().join("out"));
    let text = format!(
        "id = \"traced\"\ntitle = \"Traces\"\ncaption = \"Of a file.\"\nmachines = [\"hmg-4x4\"]\n\
         designs = [\"nhcc\", \"hmg\"]\nworkloads = ['trace:{path}']\nrows = \"workload\"\ncolumns = \"design\"\n\
         metric = [{{ name = \"speed-up\", value = [\"time_s\"], relative = \"speed-up\", to = {{ design = \"nhcc\" }} }}]\n\
         chart = {{ kind = \"bars\" }}\n"
    );
    fs::write(&spec, text).expect("written");
    let words = ["sweep", spec.to_str().expect("UTF-8"), "--out", out.to_str().expect("UTF-8"), "--json"];
    let points = || fs::read_dir(out.join("points")).map(|entries| entries.count()).unwrap_or(0);
    let whole = |more: &[&str]| -> Value { json(&[&words[..], more].concat()) };
    let first = whole(&[]);
    assert_eq!((first["time"].as_str(), points()), (Some("region"), 2));
    assert_eq!(first["figures"][0]["rows"][0]["label"], format!("trace:{path}"));
    assert_eq!(first["figures"][0]["title"], "Traces (time: region)");
    let again = whole(&["--time", "whole"]);
    assert_eq!((again["time"].as_str(), points()), (Some("whole"), 2), "the same results tell every time");
    assert_ne!(again["figures"][0]["rows"], first["figures"][0]["rows"]);
    // Different contents at the same path are a new workload; equal contents under a new name are not.
    fs::copy(recorded(folder.path(), "two.tombolo", "triad,elements=65536,iterations=1"), &path).expect("copied");
    whole(&[]);
    assert_eq!(points(), 4);
    fs::write(&spec, fs::read_to_string(&spec).expect("there").replace("one.tombolo", "two.tombolo")).expect("written");
    whole(&[]);
    assert_eq!(points(), 4);
}

#[test]
fn a_sweep_names_the_line_of_a_trace_that_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = folder.path().join("spec.toml");
    let text = "id = \"a\"\ntitle = \"\"\ncaption = \"\"\nmachines = [\"hmg-4x4\"]\ndesigns = [\"hmg\"]\n\
                workloads = [\"trace:no/such\"]\nrows = \"workload\"\ncolumns = \"design\"\n\
                metric = [{ name = \"t\", value = [\"time_s\"] }]\nchart = { kind = \"bars\" }\n";
    fs::write(&spec, text).expect("written");
    let output = outcome(&["sweep", spec.to_str().expect("UTF-8"), "--out", "/no/such/folder"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("spec.toml:6: workloads = \"trace:no/such\": "), "{}", stderr(&output));
}

/// Folder with a script that writes a ring all-reduce as a table, and the table of four GPUs.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traces");

#[test]
fn a_table_of_four_gpus_runs_under_every_kind_of_sharing_with_right_values() {
    let trace = format!("trace:{EXAMPLES}/ring-4.csv");
    for (machine, design) in [("gps-4-pcie4", "peer"), ("gps-4-pcie4", "gps"), ("hmg-4x4", "hmg")] {
        let run = json(&["run", "--machine", machine, "--design", design, "--workload", &trace, "--check", "--json"]);
        let check = &run["check"];
        assert_eq!(check["violations"], 0, "{design}: {check}");
        assert!(check["loads"].as_u64().is_some_and(|loads| loads > 0), "{design}: {check}");
    }
    let info = json(&["trace", "info", &format!("{EXAMPLES}/ring-4.csv"), "--json"]);
    let kernels = (&info["kernels"][0]["name"], &info["kernels"][1]["name"]);
    assert_eq!((&info["format"], kernels), (&"table".into(), (&"fill".into(), &"ring".into())));
}

#[test]
fn an_exported_trace_runs_as_the_trace_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let native = recorded(folder.path(), "tiny.tombolo", TINY);
    let table = folder.path().join("tiny.csv").display().to_string();
    let output = outcome(&["trace", "export", &native, "-o", &table]);
    assert!(output.status.success(), "{}", stderr(&output));
    let cycles = |path: &str| {
        let run = json(&small_run(&["--design", "hmg", "--trace", path, "--json"]));
        run["cycles"].clone()
    };
    assert_eq!(cycles(&table), cycles(&native));
}
