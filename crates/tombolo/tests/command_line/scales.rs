//! `scale`: the search for the smallest scale.

use crate::{TINY, json, outcome, stdout};

#[test]
fn the_smallest_scale_that_says_the_same_is_found_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let search =
        ["scale", "--machine", "hmg-4x4", "--designs", "no-remote-caching,hmg", "--workload", TINY, "--out", out];
    let answer = json(&[&search[..], &["--within", "100", "--json"]].concat());
    let found = &answer["workloads"][0];
    assert_eq!((&found["scale"], &found["ended"]), (&"1/32".into(), &"alike".into()), "{answer}");
    let tried: Vec<&str> =
        found["tried"].as_array().expect("a list").iter().filter_map(|one| one["scale"].as_str()).collect();
    assert_eq!(tried, ["1/32", "1/16"]);
    assert_eq!(found["error"], found["tried"][0]["difference"]["share"]);
    assert_eq!(answer["compare_limit_s"], answer["limit_s"], "{answer}");
    let text = stdout(&outcome(&[&search[..], &["--within", "100"]].concat()));
    assert!(text.contains("1/32, error") && text.contains("(alike within 100 %)"), "{text}");
}
