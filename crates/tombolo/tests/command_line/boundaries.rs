//! Kernel boundaries: reported counts, and detection of wrong labels in a checked run.

use crate::{json, outcome, stdout};
use serde_json::Value;
use std::fs;

/// Stencils read halos from their neighbours: labels that leave out halos are therefore wrong.
const HALOS: [&str; 4] = ["--machine", "chiplet-4", "--workload", "hotspot,columns=128,rows=128,pyramid=2,steps=4"];

fn count(record: &Value, name: &str) -> u64 {
    record["elision"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {}", record["elision"]))
}

#[test]
fn the_file_of_boundaries_adds_up_to_the_record() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("boundaries.json");
    let path = file.to_str().expect("a path of text");
    for design in ["cpelide", "cpelide-home-aware", "viper"] {
        let record = json(&[&["run", "--design", design, "--boundaries", path, "--json"], &HALOS[..]].concat());
        let text = fs::read_to_string(&file).expect("it was written");
        let written: Value = serde_json::from_str(&text).expect("it is JSON");
        let boundaries = written["boundaries"].as_array().expect("a list");
        let modules = || boundaries.iter().flat_map(|at| at["modules"].as_array().expect("a list"));
        let told = |name: &str| modules().filter(|module| module[name] == true).count() as u64;
        let sum = |name: &str| modules().map(|module| module[name].as_u64().expect("a number")).sum::<u64>();
        assert_eq!((told("flush"), told("invalidate")), (count(&record, "flushes"), count(&record, "invalidations")));
        assert_eq!(told("needed_flush"), count(&record, "needed_flushes"));
        assert_eq!(told("needed_invalidate"), count(&record, "needed_invalidations"));
        assert_eq!(sum("flushed_lines"), count(&record, "flushed_lines"));
        assert_eq!(sum("dropped_lines"), count(&record, "dropped_lines"));
        assert!(count(&record, "needed_flushes") <= count(&record, "flushes"), "{design}");
        assert!(count(&record, "needed_invalidations") <= count(&record, "invalidations"), "{design}");
        let launches = boundaries.iter().filter(|at| at["at"] == "launch").count() as u64;
        assert_eq!(count(&record, "boundaries"), launches + 1);
        let why = modules().flat_map(|module| module["why"].as_array().expect("a list"));
        let reasons = why.filter(|why| why["arrays"].is_array()).count();
        assert_eq!(reasons == 0, design == "viper", "a table says why, by array");
    }
}

#[test]
fn what_is_recorded_of_boundaries_leaves_the_result_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("boundaries.json");
    let path = file.to_str().expect("a path of text");
    let plain = json(&[&["run", "--design", "viper", "--json"], &HALOS[..]].concat());
    let logged =
        json(&[&["run", "--design", "viper", "--boundaries", path, "--threads", "2", "--json"], &HALOS[..]].concat());
    assert_eq!(plain["time_s"], logged["time_s"]);
    assert!(plain["elision"].is_null() && logged["elision"].is_object());
}

#[test]
fn wrong_labels_are_seen_with_their_array_module_and_range() {
    let checked = |labels: &str| {
        let labels = format!("elision.labels={labels}");
        outcome(&[&["run", "--design", "cpelide", "--check", "--set", labels.as_str()], &HALOS[..]].concat())
    };
    for sound in ["modes", "ranges", "exact"] {
        let outcome = checked(sound);
        assert_eq!(outcome.status.code(), Some(0), "{sound}: {}", stdout(&outcome));
    }
    for unsound in ["split", "asserted"] {
        let outcome = checked(unsound);
        let text = stdout(&outcome);
        assert_eq!(outcome.status.code(), Some(1), "{unsound}: {text}");
        let place = text.lines().find(|line| line.contains(", bytes ")).expect("a place");
        assert!(place.contains("temperature1, bytes") && place.contains(": module"), "{place}");
    }
}
