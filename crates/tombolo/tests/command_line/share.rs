//! `share`: ranking of memory-sharing policies between GPUs.

use crate::{json, outcome, stderr, stdout};
use serde_json::Value;

/// A machine with four GPUs, small enough for a test.
const FOUR: [&str; 4] = ["--machine", "gps-4-pcie4", "--scale", "1/16"];
/// A stencil that remains small on a scaled machine.
const STENCIL: &str = "stencil2d,columns=4096,rows=512,iterations=2";
/// Design used on one GPU, and for peer loads.
const PLAIN: &str = "numa-memory-side";

fn share<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["share"], &FOUR[..], more].concat()
}

fn row<'a>(document: &'a Value, design: &str) -> &'a Value {
    let rows = document["ranking"].as_array().expect("a list");
    rows.iter().find(|row| row["design"] == design).unwrap_or_else(|| panic!("{design} is ranked"))
}

/// Returns the region time of a run, in seconds.
fn region(design: &str, settings: &[&str], workload: &str) -> f64 {
    let set = settings.iter().flat_map(|setting| ["--set", *setting]);
    let run = ["--design", design, "--workload", workload, "--json"];
    let arguments: Vec<&str> = ["run"].into_iter().chain(FOUR).chain(run).chain(set).collect();
    json(&arguments)["time"]["region_s"].as_f64().expect("a time")
}

#[test]
fn ways_are_ranked_over_one_gpu_of_the_machine() {
    let document = json(&share(&["--workload", STENCIL, "--json"]));
    let rows = document["ranking"].as_array().expect("a list");
    let times: Vec<f64> = rows.iter().map(|row| row["time_s"].as_f64().expect("a time")).collect();
    assert!(times.is_sorted(), "{times:?}");
    for row in rows {
        assert_eq!(row["bound"], row["design"] == "infinite-bandwidth");
        ["faults_s", "copies_s", "speedup"].iter().for_each(|key| assert!(row[key].is_number(), "{key} of {row}"));
        assert!(row.get("remote_stall_s").is_some() && row["link_bytes"]["gpu0.out"].is_u64(), "{row}");
    }
    let plain = row(&document, PLAIN);
    assert_eq!(plain["time_s"], region(PLAIN, &[], STENCIL));
    let alone = region(PLAIN, &["topology.gpus=1"], STENCIL);
    assert_eq!(document["one_gpu"]["time_s"], alone);
    let speedup = plain["speedup"].as_f64().expect("a number");
    assert!((speedup - alone / plain["time_s"].as_f64().expect("a time")).abs() < 1e-12);
    assert!(document["advice"].as_array().is_some_and(|advice| !advice.is_empty()));
    let overlapped = &document["overlapped"];
    assert_eq!(overlapped["kernels_s"], row(&document, "infinite-bandwidth")["time_s"]);
    let sent = |reader: u64| {
        let rows = document["exchange"].as_array().expect("a list").iter().filter(|row| row["reader"] == reader);
        rows.map(|row| row["bytes"].as_u64().expect("a number")).sum::<u64>()
    };
    // Inner GPUs have two neighbours, and the stencil's exchange is symmetric.
    assert_eq!(overlapped["exchange_bytes"], (0..4).map(sent).max().expect("GPUs"));
}

#[test]
fn at_the_break_even_the_best_two_take_as_long() {
    // Copies pay for their calls at any rate, and directories pay for each line that crosses.
    let workload = "hotspot,columns=512,rows=512,pyramid=2,steps=4";
    let document = json(&share(&["--workload", workload, "--json"]));
    let [a, b, rate] = ["a", "b", "rate"].map(|key| document["break_even"][key].as_str().expect("they change places"));
    let link = format!("gpu_link.rate={rate}");
    let [first, second] = [a, b].map(|design| region(design, &[&link], workload));
    assert!((first / second - 1.0).abs() < 0.02, "{a} takes {first}, {b} takes {second} at {rate}");
    let times = [a, b].map(|design| row(&document, design)["time_s"].as_f64().expect("a time"));
    assert!(times[0] <= times[1], "a is ahead on the machine as it is");
}

#[test]
fn a_ranking_does_not_depend_on_threads() {
    let with = |threads| {
        let mut document = json(&share(&["--workload", "spmv", "--threads", threads, "--json"]));
        let fields = document.as_object_mut().expect("an object");
        ["host", "provenance"].iter().for_each(|key| _ = fields.remove(*key));
        document
    };
    assert_eq!(with("1"), with("3"));
}

#[test]
fn a_way_that_the_machine_cannot_carry_is_left_out_with_the_reason() {
    let settings = ["--set", "design.elision=cpelide"];
    let arguments = [&share(&["--workload", STENCIL, "--json"])[..], &settings].concat();
    let document = json(&arguments);
    let notes = document["notes"].as_array().expect("a list");
    let left_out = |design: &str| {
        let begins = format!("{design} is left out: ");
        notes.iter().any(|note| note.as_str().is_some_and(|note| note.starts_with(&begins)))
    };
    assert!(left_out("memcpy") && left_out("unified-memory"), "{notes:?}");
    assert!(row(&document, PLAIN)["time_s"].is_number());
    assert!(document["overlapped"].is_null(), "infinite-bandwidth is left out too");
    assert_eq!(document["set"], serde_json::json!(["design.elision=cpelide"]));
}

#[test]
fn one_gpu_shares_with_nobody() {
    let output = outcome(&["share", "--machine", "v100", "--workload", "triad"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--machine v100: it has one GPU, which shares with nobody"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_trace_is_said_to_be_cut() {
    let trace = "trace:../workload/tests/data/traces/vectoradd-a100";
    let output = outcome(&["share", "--machine", "gps-4-pcie4", "--set", "topology.gpus=2", "--workload", trace]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("its grids are cut in contiguous blocks"), "{text}");
    assert!(text.contains("addresses from 0x"), "{text}");
}
