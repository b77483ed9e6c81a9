//! `show`: values with their sources, differences, parameters and footprints, counters.

use crate::{json, outcome, stderr, stdout};
use serde_json::Value;

/// Returns the names printed by `list`.
fn names(what: &str) -> Vec<String> {
    let listed = json(&["list", what, "--json"]);
    let of = |one: &Value| one["name"].as_str().expect("a name").to_owned();
    listed.as_array().expect("a list").iter().map(of).collect()
}

/// Returns the list entry with the given `path`.
fn at<'a>(list: &'a Value, path: &str) -> &'a Value {
    let found = list.as_array().and_then(|all| all.iter().find(|one| one["path"] == path));
    found.unwrap_or_else(|| panic!("{path} is not in {list}"))
}

#[test]
fn every_value_that_ships_is_shown_with_its_source_and_its_line() {
    for kind in ["machine", "design"] {
        for name in names(&format!("{kind}s")) {
            let shown = json(&["show", kind, &name, "--json"]);
            assert_eq!((&shown["kind"], &shown["name"]), (&Value::from(kind), &Value::from(name.as_str())));
            for one in shown["values"].as_array().expect("a list") {
                let (from, source) = (one["from"].as_str().expect("a word"), one["source"].as_str().expect("text"));
                assert!(from == "default" || from.starts_with("preset ") && source.len() > 2, "{name}: {one}");
            }
        }
    }
}

#[test]
fn sources_are_printed_where_they_are_asked_for() {
    let line = |more: &[&str]| {
        let text = stdout(&outcome(&[&["show", "machine", "numa-2"], more].concat()));
        text.lines().find(|line| line.starts_with("l2.ways ")).expect("a row").to_owned()
    };
    assert_eq!(line(&[]).split_whitespace().collect::<Vec<_>>(), ["l2.ways", "16"]);
    assert!(line(&["--sources"]).contains("preset machines/numa-4.toml:"), "{}", line(&["--sources"]));
}

#[test]
fn a_file_of_ones_own_is_shown_with_its_own_lines_and_those_of_its_base() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "base = \"hmg-4x4\"\n[l2]\nbytes = \"6MB\" # Source: a guess\n").expect("written");
    let path = path.to_str().expect("UTF-8");
    let values = json(&["show", "machine", path, "--json"])["values"].clone();
    let bytes = at(&values, "l2.bytes");
    assert_eq!((&bytes["value"], &bytes["source"]), (&Value::from("6MB"), &Value::from("a guess")));
    assert_eq!(bytes["from"], format!("{path}:3"));
    assert!(at(&values, "l2.ways")["from"].as_str().is_some_and(|from| from.starts_with("preset machines/hmg-4x4")));
    let differing = json(&["show", "machine", path, "--diff", "hmg-4x4", "--json"]);
    let differences = differing["differences"].as_array().expect("a list");
    assert_eq!((differences.len(), &differing["other"]), (1, &Value::from("hmg-4x4")));
    assert_eq!((&differences[0]["path"], &differences[0]["other"]["value"]), (&"l2.bytes".into(), &"3MB".into()));
}

#[test]
fn what_differs_stands_side_by_side() {
    let diff = ["show", "machine", "hmg-4x4", "--diff", "hmg-4x4-wide"];
    let text = stdout(&outcome(&diff));
    let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["machine", "hmg-4x4", "hmg-4x4-wide"]);
    assert!(words.contains(&vec!["gpu_link.rate", "100GB/s", "200GB/s"]), "{text}");
    let sourced = stdout(&outcome(&[&diff[..], &["--sources"]].concat()));
    assert!(sourced.lines().any(|line| line.contains("preset machines/hmg-4x4-wide.toml:")), "{sourced}");
    let same = stdout(&outcome(&["show", "machine", "v100", "--diff", "v100"]));
    assert_eq!(same, "v100 and v100 have the same values\n");
}

#[test]
fn a_workload_is_shown_with_what_it_asks_of_a_machine() {
    let on = ["show", "workload", "jacobi,columns=1024,rows=1026", "--machine", "gps-4-pcie3"];
    let shown = json(&[&on[..], &["--json"]].concat());
    let (asked, kernels) = (&shown["on_machine"], &shown["on_machine"]["kernels"]);
    // Two planes of 4-byte floats, and norms. With 1024 threads per CTA an SM holds two CTAs, and the 80 SMs of a GPU
    // share 256 CTAs.
    assert!((asked["footprint_over_l2"].as_f64().expect("a number") - 2.0 * 1.0019531 * 4.0 / 4.0 / 6.0).abs() < 1e-3);
    let of = |key: &str| kernels[0][key].as_u64().expect("a number");
    assert_eq!(["launches", "ctas", "resident", "waves"].map(of), [10, 32 * 32, 2, 2]);
    assert!(stdout(&outcome(&on)).contains("CTAs an SM holds"));
    let refused = outcome(&[&on[..4], &["v99"]].concat());
    assert!(stderr(&refused).contains("v99"), "{}", stderr(&refused));
}

#[test]
fn a_workload_is_shown_with_ranges_and_footprints() {
    let shown = json(&["show", "workload", "triad", "--json"]);
    assert_eq!((&shown["suite"], &shown["footprints"].as_array().map(Vec::len)), (&Value::from("micro"), &Some(1)));
    assert_eq!(shown["footprints"][0]["bytes"], 3 * 8 * 33_554_432_u64);
    let elements = &shown["parameters"][0];
    assert_eq!(elements["allowed"], "a whole number from 1 to 1073741824");
    assert!(elements["source"].as_str().is_some_and(|source| source.contains("BabelStream")));
    let asked = json(&["show", "workload", "triad,elements=4096", "--scale", "1/4", "--json"]);
    let footprint = &asked["footprints"][1];
    assert_eq!((&footprint["bytes"], &footprint["scale"]), (&Value::from(3 * 8 * 1024), &Value::from("1/4")));
    let text = stdout(&outcome(&["show", "workload", "bfs", "--scale", "1/64"]));
    assert!(text.starts_with("lonestar-bfs, bfs (lonestar): ") && text.contains("at scale 1/64"), "{text}");
}

#[test]
fn counters_are_shown_with_their_units_and_found_by_a_part_of_their_path() {
    let all = json(&["show", "counters", "--json"]);
    assert_eq!(at(&all, "dram.read_bytes")["unit"], "B");
    assert!(all.as_array().expect("a list").iter().all(|one| one["about"].as_str().is_some_and(|text| text.len() > 5)));
    let text = stdout(&outcome(&["show", "counters", "l2.hits"]));
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains("L2 hits") && text.contains("Of the L2 loads"), "{text}");
    let link = stdout(&outcome(&["show", "counters", "links.gpu0.out.bytes"]));
    assert!(link.starts_with("links.*.bytes"), "{link}");
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    for (arguments, expected) in [
        (&["show", "machine", "hmg-4x5"][..], "did you mean hmg-4x4?"),
        (&["show", "machine", "hmg-4x4", "--diff", "v10"], "did you mean v100?"),
        (&["show", "design", "hmgg"], "did you mean hmg?"),
        (&["show", "workload", "triadd"], "did you mean triad?"),
        (&["show", "workload", "triad,elements=0"], "a whole number from 1"),
        (&["show", "workload", "trace:x"], "tombolo trace info"),
        (&["show", "counters", "l9"], "counter l9"),
        (&["show", "protocol", "hmg"], "unrecognized subcommand 'protocol'"),
    ] {
        let output = outcome(arguments);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}
