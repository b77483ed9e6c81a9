//! Separate times for kernels, copies and launches, and the choice of the compared time.

use crate::{TINY, json, outcome, small_compare, stderr, stdout};
use serde_json::Value;

/// A machine with copies over PCI Express, and a workload with two launches whose copies take most of the time.
const COPIED: [&str; 4] = ["--machine", "h100", "--workload", "triad,elements=1048576,iterations=2"];

fn compared(more: &[&str]) -> Value {
    json(&[&["compare", "--designs", "hmg,ideal", "--baseline", "ideal", "--json"], &COPIED[..], more].concat())
}

fn hmg_over_ideal(comparison: &Value) -> f64 {
    comparison["speedups"][COPIED[3]]["hmg"].as_f64().expect("a speed-up")
}

#[test]
fn the_parts_of_a_run_add_up_to_its_time() {
    let record = json(&[&["run", "--design", "hmg", "--json"], &COPIED[..]].concat());
    let part = |name: &str| record["time"][name].as_f64().expect("a time");
    let sum: f64 = ["kernels_s", "copies_s", "host_s", "launches_s"].map(part).iter().sum();
    assert!((sum - part("whole_s")).abs() < 1e-15, "{}", record["time"]);
    assert_eq!(record["time_s"], record["time"]["whole_s"]);
    // The first launch, then a dependent launch; copies of three arrays at 63 GB/s.
    assert!((part("launches_s") - 5.4e-6).abs() < 1e-10, "{}", record["time"]);
    let rows = record["kernels"].as_array().expect("rows");
    let at = |row: usize, name: &str| rows[row][name].as_f64().expect("a time");
    assert!((part("region_s") - (at(1, "end_s") - at(0, "start_s"))).abs() < 1e-15);
    assert!(part("copies_s") > part("region_s") && part("region_s") > part("kernels_s"), "{}", record["time"]);
    assert_eq!((&rows[0]["gpu"], &rows[0]["stream"], rows.len()), (&"gpu0".into(), &0.into(), 2));
    let transactions: u64 = rows.iter().filter_map(|row| row["transactions"].as_u64()).sum();
    assert_eq!(Some(transactions), record["transactions"].as_u64());
    assert_eq!(record["gpus"][0]["transactions"], record["transactions"]);
    assert!(record["notes"].is_array());
}

#[test]
fn a_run_prints_its_parts_and_where_asked_its_launches() {
    let words = [&["run", "--design", "hmg"], &COPIED[..]].concat();
    let plain = stdout(&outcome(&words));
    let time = plain.lines().find(|line| line.starts_with("time")).expect("a line of the time");
    for part in [" us = ", " kernels + 5.4 launches + ", " copies ("] {
        assert!(time.contains(part), "{time}");
    }
    assert!(!plain.contains("stream"), "{plain}");
    let rows = stdout(&outcome(&[&words[..], &["--kernels"]].concat()));
    assert_eq!(rows.lines().filter(|line| line.contains("gpu0") && line.contains("triad")).count(), 2, "{rows}");
}

#[test]
fn designs_are_compared_by_the_region_that_copies_do_not_hide() {
    let [region, kernels, whole] = ["region", "kernels", "whole"].map(|time| compared(&["--time", time]));
    assert_eq!(compared(&[])["speedups"], region["speedups"], "the region is what is compared unless said otherwise");
    for (comparison, word) in [(&region, "region"), (&kernels, "kernels"), (&whole, "whole")] {
        assert_eq!(comparison["time"], word);
        let time = |run: usize| comparison["runs"][run]["time"][format!("{word}_s")].as_f64().expect("a time");
        assert!((hmg_over_ideal(comparison) - time(1) / time(0)).abs() < 1e-12, "{word}");
    }
    let gain = |comparison| (hmg_over_ideal(comparison) - 1.0).abs();
    let (hidden, seen) = (gain(&whole), gain(&region));
    assert!(seen > 0.005 && seen > 10.0 * hidden, "copies hide most of it: {hidden} of {seen}");
    assert!(gain(&kernels) > gain(&region), "launches between kernels hide a little");
}

#[test]
fn the_title_says_which_time_is_compared() {
    let title = |more: &[&str]| {
        let words = ["--designs", "nhcc,hmg", "--workload", "triad,elements=4096,iterations=1"];
        let text = stdout(&outcome(&small_compare(&[&words[..], more].concat())));
        text.lines().next().expect("a title").to_owned()
    };
    assert!(title(&[]).ends_with("speed-up over nhcc, of the region from the first kernel to the end of the last"));
    assert!(title(&["--time", "kernels"]).ends_with("speed-up over nhcc, of the kernels alone"));
    assert!(title(&["--time", "whole"]).ends_with("speed-up over nhcc, of the whole program"));
    let output = outcome(&small_compare(&["--designs", "hmg", "--workload", TINY, "--time", "copies"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("region, kernels, ctas, drained, whole"), "{}", stderr(&output));
}

#[test]
fn a_program_without_kernels_is_compared_as_a_whole_alone() {
    let words = ["compare", "--machine", "v100", "--designs", "hmg,ideal", "--workload", "memcopy,mib=1,direction=h2d"];
    let output = outcome(&words);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no kernel runs; --time whole compares all"), "{}", stderr(&output));
    let whole = json(&[&words[..], &["--time", "whole", "--json"]].concat());
    assert_eq!(whole["geometric_means"]["ideal"], 1.0);
}

#[test]
fn a_comparison_tells_each_note_once() {
    let notes = |more: &[&str]| {
        let words = ["--scale", "1/4", "--designs", "nhcc,hmg", "--workload", "triad,elements=1000000,iterations=1"];
        let comparison = json(&[&["compare", "--machine", "hmg-1x4", "--json"], &words[..], more].concat());
        comparison["notes"].as_array().expect("a list").clone()
    };
    assert_eq!(notes(&[]).len(), 0);
    let noted = notes(&["--set", "dram.bytes=1MB", "--set", "page_bytes=64KB"]);
    assert!(noted.len() == 1 && noted[0].as_str().is_some_and(|note| note.contains("its arrays take")), "{noted:?}");
}
