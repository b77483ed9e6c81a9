//! `explain`: designs side by side, and what differs.

use crate::{SMALL, TINY, json, outcome, stderr, stdout};

const PAIR: [&str; 4] = ["--designs", "no-remote-caching,hmg", "--workload", TINY];

fn explain<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["explain"], &SMALL[..], more].concat()
}

#[test]
fn a_design_is_explained_by_the_classes_of_its_time() {
    let document = json(&explain(&[&PAIR[..], &["--json"]].concat()));
    let designs = document["designs"].as_array().expect("a list");
    assert_eq!(designs.iter().map(|one| &one["design"]).collect::<Vec<_>>(), ["no-remote-caching", "hmg"]);
    for one in designs {
        let stalls = one["stalls"].as_object().expect("a stack");
        let whole = stalls["warp_slot_cycles"].as_u64().expect("a count");
        assert_eq!(stalls.values().filter_map(|cycles| cycles.as_u64()).sum::<u64>(), 2 * whole);
        assert!(one["time"]["region_s"].as_f64().is_some_and(|time| time > 0.0));
    }
    let differences = document["differences"].as_array().expect("a list");
    let growth: Vec<f64> = (differences.iter())
        .map(|one| one["to"].as_f64().expect("a share") - one["from"].as_f64().expect("a share"))
        .collect();
    assert!(growth.is_sorted_by(|one, next| one.abs() >= next.abs()), "{growth:?}");
    let time = |design: usize| designs[design]["time"]["region_s"].as_f64().expect("a time");
    let sum: f64 = growth.iter().sum();
    assert!((sum - (time(1) / time(0) - 1.0)).abs() < 0.01, "{sum}");
    for one in differences {
        assert!(one["design"] == "hmg" && one["class"].is_string() && one["text"].is_string());
        assert!(one["counter"].is_string() || one["counter"].is_null());
    }
}

#[test]
fn people_see_stacks_side_by_side_and_what_differs() {
    let output = outcome(&explain(&PAIR));
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).map(str::to_owned).expect("a row");
    assert!(row("class").ends_with("no-remote-caching     hmg"), "{text}");
    assert!(row("all").contains("100.0 %"), "{text}");
    assert!(text.contains("hmg against no-remote-caching\n") && text.contains(" -> "), "{text}");
}

#[test]
fn one_design_is_nothing_to_explain() {
    let output = outcome(&explain(&["--designs", "hmg", "--workload", TINY]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("give two at least"), "{}", stderr(&output));
}
