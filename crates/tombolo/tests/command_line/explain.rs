//! `explain`: designs side by side, and their differences.

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
fn legs_of_loads_stand_side_by_side_and_change_no_time() {
    let followed = json(&explain(&[&PAIR[..], &["--latency", "--json"]].concat()));
    let plain = json(&explain(&[&PAIR[..], &["--json"]].concat()));
    for (one, other) in followed["designs"].as_array().expect("a list").iter().zip(plain["designs"].as_array().unwrap())
    {
        assert_eq!(one["time"], other["time"]);
        assert!(one["stalls"]["queued"].is_object() && other["latency"].is_null());
        for (name, served) in one["latency"].as_object().expect("loads by who served them") {
            let legs: f64 = served["legs_ns"].as_object().expect("legs").values().filter_map(|leg| leg.as_f64()).sum();
            let mean = served["mean_ns"].as_f64().expect("a mean");
            assert!((legs - mean).abs() < 1e-3 * mean.max(1.0), "{name}: {legs} of {mean}");
        }
    }
    assert_eq!(followed["differences"], plain["differences"]);
    let output = outcome(&explain(&[&PAIR[..], &["--latency"]].concat()));
    let text = stdout(&output);
    let legs = text.split("leg of the mean load (ns)").nth(1).expect("a table of legs");
    let column = |line: &str| line.split_whitespace().next_back().and_then(|cell| cell.parse::<f64>().ok());
    let numbers: Vec<f64> = legs.lines().skip(1).map_while(column).collect();
    let (all, parts) = numbers.split_last().expect("legs and their sum");
    assert!(parts.len() >= 4 && (parts.iter().sum::<f64>() - all).abs() < 0.06 * 9.0, "{text}");
}

#[test]
fn one_design_is_nothing_to_explain() {
    let output = outcome(&explain(&["--designs", "hmg", "--workload", TINY]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("give two at least"), "{}", stderr(&output));
}
