//! Bad input: exit status 2, a message with the error and the allowed values, and no printed output.

use crate::{SMALL, TINY, outcome, small_compare, small_run, stderr, stdout};

/// Checks that `arguments` are refused, with every element of `expected` in the message.
fn refused(arguments: &[&str], expected: &[&str]) {
    let output = outcome(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    assert_eq!(stdout(&output), "", "{arguments:?}");
    for part in expected {
        assert!(stderr(&output).contains(part), "{arguments:?}: {part:?} is not in {}", stderr(&output));
    }
}

#[test]
fn an_unknown_name_gets_a_suggestion_and_the_list() {
    refused(
        &["run", "--machine", "hmg-4x5", "--design", "hmg", "--workload", TINY],
        &["no machine is called \"hmg-4x5\"", "did you mean hmg-4x4?", "v100"],
    );
    refused(
        &small_run(&["--design", "hmgg", "--workload", TINY]),
        &["no design is called \"hmgg\"", "did you mean hmg?", "nhcc"],
    );
    refused(
        &small_run(&["--design", "hmg", "--workload", "pathfindr"]),
        &["no workload is called \"pathfindr\"", "did you mean pathfinder?", "triad"],
    );
}

#[test]
fn a_wrong_parameter_names_its_workload_and_what_is_allowed() {
    let with = |workload| small_run(&["--design", "hmg", "--workload", workload]);
    refused(&with("triad,size=4"), &["triad", "size", "elements"]);
    refused(&with("triad,elements=0"), &["triad", "elements=0", "from 1"]);
    refused(&with("triad,elements=1,elements=2"), &["triad", "elements", "twice"]);
    refused(&with("elements=4"), &["workload elements=4", "follows its workload"]);
    refused(&with("triad,nw"), &["triad,nw", "one workload"]);
    refused(&with("mst,ctas=16384"), &["mst", "ctas=16384", "16383"]);
    let whole = ["run", "--machine", "hmg-1x4", "--design", "hmg", "--workload"];
    let large = [&whole[..], &["im2col,side=8192,filter=6"]].concat();
    refused(&large, &["im2col: 2412970884 elements of columns exceed 2^31 - 1"]);
    let crowded = [&whole[..], &["dmr,side=80,room=1"]].concat();
    refused(&crowded, &["more triangles than the", "raise `room`"]);
}

#[test]
fn a_wrong_setting_names_its_key_its_value_and_what_is_allowed() {
    let with = |setting| small_run(&["--design", "hmg", "--workload", TINY, "--set", setting]);
    refused(&with("l2.byte=6MB"), &["l2.byte=6MB", "did you mean l2.bytes?", "l2.ways"]);
    refused(&with("l2.bytes=many"), &["l2.bytes = many", "expected"]);
    refused(&with("l2"), &["setting \"l2\"", "expected path=value"]);
    refused(&with("coherence=mesi"), &["coherence = mesi", "\"nhcc\""]);
}

#[test]
fn a_wrong_number_says_what_is_allowed() {
    let with = |flag, value| small_run(&["--design", "hmg", "--workload", TINY, flag, value]);
    refused(&with("--threads", "0"), &["--threads", "1..=1024"]);
    let at = |scale| ["run", "--machine", "hmg-4x4", "--design", "hmg", "--workload", TINY, "--scale", scale];
    refused(&at("2"), &["--scale", "above 0 and at most 1"]);
    refused(&at("fast"), &["--scale", "fast", "1/16"]);
}

#[test]
fn a_comparison_needs_distinct_designs_and_a_baseline_among_them() {
    let with = |more: &[&'static str]| small_compare(&[&["--workload", TINY], more].concat());
    refused(&with(&["--designs", "hmg,nhcc,hmg"]), &["--designs hmg", "twice"]);
    refused(
        &with(&["--designs", "hmg,nhcc", "--baseline", "nhc"]),
        &["--baseline nhc", "did you mean nhcc?", "these are hmg, nhcc"],
    );
    let twice = small_compare(&["--designs", "hmg", "--workload", TINY, TINY]);
    refused(&twice, &["--workload", "twice"]);
}

#[test]
fn a_run_takes_a_workload_or_a_trace() {
    refused(&small_run(&["--design", "hmg"]), &["--workload", "--trace"]);
    refused(&small_run(&["--design", "hmg", "--workload", TINY, "--trace", "x"]), &["cannot be used with"]);
}

#[test]
fn what_is_no_trace_is_named() {
    refused(&small_run(&["--design", "hmg", "--trace", "no/such/trace"]), &["no/such/trace"]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    refused(&["trace", "info", path], &[path, "kernelslist.g"]);
    let file = folder.path().join("file.tombolo");
    std::fs::write(&file, "not a trace").expect("written");
    let file = file.to_str().expect("UTF-8");
    refused(&["trace", "info", file], &[file]);
    refused(&["trace", "import", file, "-o", &format!("{file}.out")], &[file]);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing was written");
}

#[test]
fn a_kernel_that_waits_for_ctas_without_room_is_refused() {
    let crowd = ["--design", "hmg", "--workload", "mst,nodes=64,ctas=2048", "--set", "sm.ctas=1"];
    refused(&[&["run", "--machine", "hmg-1x4"], &crowd[..]].concat(), &["CTAs wait for each other", "hmg-1x4"]);
}

#[test]
fn what_a_scale_has_made_too_small_is_told_with_it() {
    let grid = ["run", "--machine", "hmg-1x4", "--design", "hmg", "--workload", "hotspot,columns=2", "--scale", "1/16"];
    refused(&grid, &["hotspot: a grid of one column has no neighbours, at scale 1/16"]);
}

#[test]
fn unknown_commands_flags_and_lists_are_refused() {
    refused(&["simulate"], &["simulate"]);
    refused(&["list", "protocols"], &["protocols", "designs"]);
    refused(&[&["run"], &SMALL[..], &["--turbo"]].concat(), &["--turbo"]);
}

#[test]
fn a_search_of_scales_needs_what_a_suite_has_and_a_bound() {
    let with = |more: &[&'static str]| [&["scale", "--machine", "hmg-4x4", "--designs", "hmg"], more].concat();
    refused(&with(&["--suite", "hgm"]), &["hgm", "hmg"]);
    refused(&with(&["--suite", "hmg", "--only", "msst"]), &["--only msst", "did you mean mst?"]);
    refused(&with(&["--suite", "hmg", "--within", "0"]), &["--within", "above 0"]);
    refused(&with(&["--workload", TINY, "--baseline", "nhcc"]), &["--baseline nhcc", "these are hmg"]);
}
