//! `validate`: comparison between simulated and measured times.

use crate::{json, outcome, stderr, stdout};
use std::fs;

/// Creates a table file with the given rows, and returns its path.
fn table(rows: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("times.csv");
    fs::write(&path, format!("kernel_name,problem_size,min_ms\n{rows}")).expect("written");
    let path = path.to_str().expect("UTF-8").to_owned();
    (folder, path)
}

#[test]
fn rows_and_errors_are_one_document() {
    let (_folder, path) = table("memcopy_h2d,64MB,1.0\nvectoradd,1024,0.0042\n");
    let answer = json(&["validate", "--measured", &path, "--json"]);
    let rows = answer["rows"].as_array().expect("rows");
    assert_eq!(
        (rows.len(), rows[0]["benchmark"].as_str(), rows[1]["size"].as_str()),
        (2, Some("memcopy_h2d"), Some("1024"))
    );
    let apart = |row: &serde_json::Value| {
        let time = |key: &str| row[key].as_f64().expect("a time");
        (time("simulated_ms") - time("measured_ms")).abs()
    };
    let weighted = rows.iter().map(apart).sum::<f64>() / 1.0042;
    let found = answer["summary"]["overall"]["weighted"].as_f64().expect("an error");
    assert!((found - weighted).abs() < 1e-9, "{found} {weighted}");
}

#[test]
fn the_page_has_a_point_a_row() {
    let (folder, path) = table("memcopy_h2d,64MB,1.0\n");
    let page = folder.path().join("page.html");
    let output = outcome(&["validate", "--measured", &path, "--out", page.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("memcopy_h2d"));
    assert!(fs::read_to_string(page).expect("written").contains("memcopy_h2d 64MB"));
}

#[test]
fn a_wrong_table_is_refused_with_its_line() {
    for (rows, expected) in [
        ("memcopy,1MB,1\n", "times.csv:2: no benchmark is called memcopy"),
        ("relu,64,-1\n", "times.csv:2: min_ms is \"-1\"; expected a time above 0"),
        ("relu,64,1\nrelu,8\n", "times.csv:3: 2 cells; the heading has 3"),
        ("relu,64,1\nfloydwarshall,20000_nodes,1\n", "times.csv:3: floydwarshall 20000_nodes: "),
        ("floydwarshall,5000000000_nodes,1\n", "times.csv:2: floydwarshall 5000000000_nodes: "),
    ] {
        let (_folder, path) = table(rows);
        let output = outcome(&["validate", "--measured", &path]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}

#[test]
#[ignore = "deep: every probe"]
fn probes_stand_beside_what_was_published() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let path = page.to_str().expect("UTF-8");
    let answer = json(&["validate", "--probes", "--json", "--out", path]);
    let probes = answer["probes"].as_array().expect("probes");
    let of = |machine| probes.iter().filter(|probe| probe["machine"] == machine).count();
    let counts = ["v100", "h100", "h100-sxm", "dgx-h100"].map(of);
    assert_eq!(counts, [12, 19, 45, 3]);
    for probe in probes {
        let value = |key: &str| probe[key].as_f64().expect("a number");
        let is_near = (0.85..=1.15).contains(&(value("simulated") / value("published")));
        assert_ne!(is_near, probe["why"].is_string(), "{probe}");
    }
    assert!(fs::read_to_string(page).expect("written").contains("h100: DRAM, latency"));
}

#[test]
fn probes_of_a_machine_without_any_are_refused_with_the_machines_that_have_some() {
    let output = outcome(&["validate", "--probes", "--machine", "hmg-4x4"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("expected one of dgx-h100, h100, h100-sxm, v100"), "{}", stderr(&output));
}

#[test]
fn a_machine_of_several_gpus_is_validated_by_what_crosses_its_links() {
    let answer = json(&["validate", "--machine", "dgx-h100", "--json"]);
    let probes = answer["probes"].as_array().expect("probes");
    let names: Vec<_> = probes.iter().map(|probe| probe["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["peer GPU, read", "peer GPU, write", "peer GPU, copy"]);
    let table = outcome(&["validate", "--machine", "dgx-h100", "--benchmarks", "none"]);
    assert!(stderr(&table).contains("--machine dgx-h100: no measured times"), "{}", stderr(&table));
}

/// Settings for a machine too small for a stream.
const FEW: [&str; 10] = [
    "--set",
    "topology.sms_per_module=1",
    "--set",
    "sm.ctas=4",
    "--set",
    "sm.posted_stores=16",
    "--set",
    "l2.bytes=64KB",
    "--set",
    "l2.posted_stores=64",
];

#[test]
fn a_sampled_row_says_how_far_it_may_be_off() {
    let (_folder, path) = table("vectoradd,262144,0.01\nvectoradd,1024,0.0042\n");
    let arguments = [&["validate", "--measured", &path][..], &FEW].concat();
    let answer = json(&[&arguments[..], &["--json"]].concat());
    let number = |row: usize, key: &str| answer["rows"][row][key].as_f64().expect("a number");
    assert_eq!((&answer["rows"][0]["sampled"], &answer["rows"][1]["sampled"]), (&true.into(), &false.into()));
    let share = number(0, "sampling_error_ms") / number(0, "simulated_ms");
    assert!(share > 0.0 && share < 0.2, "{share}");
    assert_eq!(number(1, "sampling_error_ms"), 0.0);
    let shown = stdout(&outcome(&arguments));
    assert_eq!(shown.matches('±').count(), 1, "{shown}");
}

#[test]
fn a_table_belongs_to_its_machine_unless_it_is_named() {
    let refused = outcome(&["validate", "--machine", "v100", "--benchmarks", "relu"]);
    assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(2), ""));
    let said = stderr(&refused);
    assert!(
        said.contains("--machine v100") && said.contains("mi300a and h100-sxm") && said.contains("--measured"),
        "{said}"
    );
    let unknown = outcome(&["validate", "--measured", "mi300a", "--benchmarks", "none"]);
    assert!(stderr(&unknown).contains("--benchmarks none"), "the shipped table was read: {}", stderr(&unknown));
    let missing = outcome(&["validate", "--machine", "v100", "--measured", "times-of-v100.csv"]);
    assert!(stderr(&missing).contains("times-of-v100.csv"), "{}", stderr(&missing));
}

#[test]
fn a_machine_that_was_measured_is_compared_with_its_own_times() {
    let few = "topology.sms_per_module=4";
    let answer = json(&["validate", "--machine", "h100-sxm", "--benchmarks", "memcopy_d2d", "--set", few, "--json"]);
    assert_eq!((answer["machine"].as_str(), answer["design"].as_str()), (Some("h100-sxm"), Some("h100")));
    let rows = answer["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["size"] == "1MB" && row["measured_ms"] == 0.003488), "{rows:?}");
    assert!(rows.iter().all(|row| row["simulated_ms"].as_f64() > Some(0.0)), "{rows:?}");
}
