//! Samples in place of whole programs, in every command with sampling.

use crate::{SMALL, TINY, json, outcome, small_compare, small_run, stderr, stdout};
use serde_json::Value;
use std::fs;

/// A workload with equal launches, more than a sample needs.
const LONG: &str = "triad,elements=524288,iterations=200";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is a number"))
}

#[test]
fn a_sampled_run_says_how_far_its_time_may_be_off() {
    let words = small_run(&["--design", "hmg", "--workload", LONG]);
    let (whole, sampled) =
        (json(&[&words[..], &["--json"]].concat()), json(&[&words[..], &["--sample", "--json"]].concat()));
    let sampling = &sampled["sampling"];
    let (told, truth, error) = (number(&sampled["time_s"]), number(&whole["time_s"]), number(&sampling["error_s"]));
    assert!((told - truth).abs() <= error && error < 0.1 * truth, "{told} ± {error} where it takes {truth}");
    assert_eq!((&sampling["launches"], &sampling["whole"]), (&200.into(), &Value::Null));
    assert!(number(&sampling["launches_run"]) < 100.0, "{sampling}");
    let part = |name: &str| number(&sampled["time"][name]);
    let sum: f64 = ["kernels_s", "copies_s", "host_s", "launches_s"].map(part).iter().sum();
    assert!((sum - part("whole_s")).abs() < 1e-12 && part("whole_s") == told, "{}", sampled["time"]);
    let shown = stdout(&outcome(&[&words[..], &["--sample"]].concat()));
    assert!(shown.contains('±') && shown.contains("of 200 launches"), "{shown}");
    assert!(whole.get("sampling").is_none(), "nobody asked for a sample");
}

#[test]
fn where_a_sample_does_not_apply_the_run_is_whole_and_says_so() {
    let words = small_run(&["--design", "hmg", "--workload", TINY, "--json"]);
    let (whole, sampled) = (json(&words), json(&[&words[..], &["--sample"]].concat()));
    assert_eq!((&sampled["digest"], &sampled["time"]), (&whole["digest"], &whole["time"]));
    assert!(
        sampled["sampling"]["whole"].as_str().is_some_and(|why| why.contains("launches")),
        "{}",
        sampled["sampling"]
    );
    assert!(sampled["notes"].to_string().contains("no sample applies under hmg"), "{}", sampled["notes"]);
    assert_eq!(number(&sampled["sampling"]["error_s"]), 0.0);
}

#[test]
fn what_needs_the_whole_program_is_refused_with_a_sample() {
    for other in [&["--check"][..], &["--latency"], &["--timeline", "x.json"], &["--boundaries", "x.json"]] {
        let output = outcome(&[&small_run(&["--design", "hmg", "--workload", TINY, "--sample"])[..], other].concat());
        assert_eq!(output.status.code(), Some(2), "{other:?}");
        assert!(stderr(&output).contains("--sample"), "{other:?}: {}", stderr(&output));
    }
}

#[test]
fn speed_ups_of_samples_carry_the_errors_of_both_runs() {
    let words = small_compare(&["--designs", "no-remote-caching,hmg", "--workload", LONG, TINY]);
    let (whole, sampled) =
        (json(&[&words[..], &["--json"]].concat()), json(&[&words[..], &["--sample", "--json"]].concat()));
    let of = |document: &Value, key: &str, workload: &str| number(&document[key][workload]["hmg"]);
    let (told, truth) = (of(&sampled, "speedups", LONG), of(&whole, "speedups", LONG));
    let error = of(&sampled, "speedup_errors", LONG);
    assert!((told - truth).abs() <= error && error > 0.0, "{told} ± {error} where it is {truth}");
    assert_eq!(of(&sampled, "speedup_errors", TINY), 0.0, "it ran whole");
    assert_eq!(of(&sampled, "speedups", TINY), of(&whole, "speedups", TINY));
    let off = (number(&sampled["geometric_means"]["hmg"]) - number(&whole["geometric_means"]["hmg"])).abs();
    assert!(off <= number(&sampled["geometric_mean_errors"]["hmg"]), "{off}");
    assert!(sampled["runs"].as_array().is_some_and(|runs| runs.iter().all(|run| run["sampling"].is_object())));
    assert!(whole.get("speedup_errors").is_none() && whole["runs"][0].get("sampling").is_none());
    let shown = stdout(&outcome(&[&words[..], &["--sample"]].concat()));
    assert_eq!(shown.lines().filter(|line| line.contains(" ± ")).count(), 2 + sampled_notes(&sampled), "{shown}");
}

/// Counts the notes that report an error bound.
fn sampled_notes(document: &Value) -> usize {
    let notes = document["notes"].as_array().expect("a list");
    notes.iter().filter(|note| note.as_str().is_some_and(|note| note.contains(" ± "))).count()
}

#[test]
fn a_sampled_sweep_has_ranges_and_keeps_its_results_apart_from_whole_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let base = ["--designs", "no-remote-caching,hmg", "--workload", LONG, "--baseline", "no-remote-caching"];
    let words = [&base[..], &["--vary", "gpu_link.rate=100GB/s,200GB/s", "--out", out]].concat();
    let sweep = [&["sweep"], &SMALL[..], &words[..], &["--json"]].concat();
    let sampled = json(&[&sweep[..], &["--sample"]].concat());
    let cell = |document: &Value| document["figures"][0]["evidence"]["cells"].as_array().expect("a list").clone();
    let ranged = cell(&sampled).into_iter().filter(|cell| cell["range"].is_array()).count();
    assert_eq!(ranged, 3, "all but that of the baseline over itself: {}", sampled["figures"][0]["evidence"]);
    assert!(sampled["figures"][0]["evidence"]["repeated"].as_str().is_some_and(|over| over.contains("samples")));
    let table = fs::read_to_string(folder.path().join("results.csv")).expect("a table");
    assert!(table.lines().next().is_some_and(|head| head.contains("sampling.error_s")), "{table}");
    let points = || fs::read_dir(folder.path().join("points")).expect("a folder").count();
    let before = points();
    let whole = json(&sweep);
    assert!(points() > before, "a whole run is another result");
    assert!(cell(&whole).iter().all(|cell| cell["range"].is_null()), "{}", whole["figures"][0]["evidence"]);
}

#[test]
fn a_paper_is_reproduced_from_samples_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let document = json(&["reproduce", "hmg", "--figure", "hardware-cost", "--sample", "--json", "--out", out]);
    assert_eq!(document["paper"], "hmg");
}
