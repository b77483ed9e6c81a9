//! `validate`: simulated beside measured times.

use crate::{json, outcome, stderr, stdout};
use std::fs;

/// Runs `validate` on a table of these rows.
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
    ] {
        let (_folder, path) = table(rows);
        let output = outcome(&["validate", "--measured", &path]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}
