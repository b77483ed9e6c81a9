//! Printed results for runs and comparisons.

use crate::{TINY, json, outcome, small_compare, small_run, stderr, stdout};
use serde_json::Value;

const DESIGNS: &str = "no-remote-caching,software-flat,software-hierarchical,nhcc,hmg,ideal";

fn digest(arguments: &[&str]) -> String {
    json(arguments)["digest"].as_str().expect("a digest").to_owned()
}

#[test]
fn a_record_has_every_key_that_scripts_rely_on() {
    let record = json(&small_run(&["--design", "hmg", "--workload", TINY, "--json"]));
    for text in ["tombolo", "machine", "design", "workload", "scale", "digest"] {
        assert!(record[text].is_string(), "{text}");
    }
    for number in ["time_s", "cycles", "warp_instructions", "memory_instructions", "transactions"] {
        assert!(record[number].as_f64().is_some_and(|value| value > 0.0), "{number}");
    }
    for (part, keys) in [
        ("l1", &["accesses", "hits"][..]),
        ("l2", &["accesses", "hits"]),
        ("dram", &["read_bytes", "write_bytes"]),
        ("memory_cache", &["accesses", "reads", "writes", "hits", "merges", "misses", "evictions", "write_backs"]),
        ("coherence", &["invalidations_by_store", "invalidations_by_eviction", "evictions", "writebacks"]),
        ("energy_pj", &["l1i", "l1", "scratchpad", "l2", "l3", "crossbar", "dram", "module_links", "gpu_links"]),
        ("stalls", &["warp_slot_cycles", "issue", "gpu", "store_credit", "kernel_boundary", "idle"]),
        ("host", &["wall_s", "warp_instructions_per_s", "peak_rss_bytes", "threads"]),
    ] {
        keys.iter().for_each(|key| assert!(record[part][key].is_number(), "{part}.{key}"));
    }
    let links = record["links"].as_array().expect("a list");
    assert!(links.iter().all(|link| link["name"].is_string() && link["bytes"].is_u64()));
    assert!(links.iter().any(|link| link["utilization"].as_f64().is_some_and(|share| share > 0.0)));
    assert_eq!((&record["scale"], &record["workload"]), (&Value::from("1/32"), &Value::from(TINY)));
}

#[test]
fn a_digest_does_not_depend_on_threads_under_any_design() {
    let mut digests = Vec::new();
    for design in DESIGNS.split(',') {
        let with =
            |threads| digest(&small_run(&["--design", design, "--workload", TINY, "--threads", threads, "--json"]));
        let alone = with("1");
        for threads in ["2", "3", "4", "8"] {
            assert_eq!(with(threads), alone, "{design} on {threads} threads");
        }
        digests.push(alone);
    }
    digests.sort();
    digests.dedup();
    assert!(digests.len() > 4, "a digest that designs hardly change says little: {digests:?}");
}

#[test]
fn a_recorded_workload_replays_with_the_digest_of_the_workload() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tiny.tombolo");
    let file = file.to_str().expect("UTF-8");
    let recorded = outcome(&["trace", "record", "--workload", TINY, "--scale", "1/32", "-o", file]);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let run = |source: [&'static str; 1], name| digest(&small_run(&["--design", "nhcc", source[0], name, "--json"]));
    assert_eq!(run(["--trace"], file), run(["--workload"], TINY));
    let info = json(&["trace", "info", file, "--json"]);
    assert_eq!(info["name"], "pathfinder");
    assert_eq!(info["setup"]["written_bytes"], info["copies_to_device"]["bytes"]);
    assert_eq!(info["results"]["read_bytes"], info["copies_to_host"]["bytes"]);
    let text = stdout(&outcome(&["trace", "info", file]));
    assert!(text.contains("native trace") && text.contains("the host before the first command: reads 0 B"), "{text}");
}

#[test]
fn a_comparison_is_of_the_same_runs_that_run_makes() {
    let workloads = ["--workload", "triad,elements=4096,iterations=1,nw,length=256"];
    let more = [&["--designs", "nhcc,hmg", "--baseline", "hmg", "--threads", "2", "--json"], &workloads[..]].concat();
    let comparison = json(&small_compare(&more));
    let runs = comparison["runs"].as_array().expect("a list");
    assert_eq!(runs.len(), 4);
    for run in runs {
        let (design, workload) = (run["design"].as_str().expect("text"), run["workload"].as_str().expect("text"));
        let alone = digest(&small_run(&["--design", design, "--workload", workload, "--json"]));
        assert_eq!(run["digest"], alone.as_str(), "{workload} under {design}");
    }
    let times: Vec<f64> = runs.iter().map(|run| run["time_s"].as_f64().expect("a time")).collect();
    let speedup = |workload: &str, design: &str| comparison["speedups"][workload][design].as_f64().expect("a speed-up");
    let triad = speedup("triad,elements=4096,iterations=1", "nhcc");
    assert!((triad - times[1] / times[0]).abs() < 1e-9);
    assert_eq!(speedup("nw,length=256", "hmg"), 1.0);
    let mean = comparison["geometric_means"]["nhcc"].as_f64().expect("a mean");
    assert!((mean - (triad * speedup("nw,length=256", "nhcc")).sqrt()).abs() < 1e-9);
    assert_eq!((&comparison["baseline"], &comparison["failures"]), (&"hmg".into(), &serde_json::json!([])));
}

#[test]
fn a_result_names_what_was_set_for_it() {
    let set = ["--set", "l2.bytes=6MB", "--workload", TINY, "--json"];
    let run = json(&[&["run", "--machine", "hmg-4x4", "--scale", "1/32", "--design", "hmg"], &set[..]].concat());
    assert_eq!(run["set"], serde_json::json!(["l2.bytes=6MB"]));
    let compare = json(&small_compare(&[&["--designs", "nhcc,hmg"], &set[..]].concat()));
    assert_eq!(compare["set"], run["set"]);
    assert!(json(&small_compare(&["--designs", "hmg", "--workload", TINY, "--json"])).get("set").is_none());
}

#[test]
fn a_comparison_does_not_depend_on_threads() {
    let with = |threads| {
        let workloads = ["--workload", TINY, "triad,elements=4096"];
        let more = [&["--designs", DESIGNS, "--threads", threads, "--json"], &workloads[..]].concat();
        let comparison = json(&small_compare(&more));
        let runs = comparison["runs"].as_array().expect("a list").clone();
        runs.iter().map(|run| run["digest"].clone()).collect::<Vec<_>>()
    };
    let alone = with("1");
    assert_eq!(alone.len(), 12);
    assert_eq!(with("3"), alone);
    assert_eq!(with("16"), alone);
}

#[test]
fn a_failing_run_is_told_and_does_not_stop_the_rest() {
    let crowd = ["--workload", "mst,nodes=64,ctas=2048,triad,elements=4096", "--set", "sm.ctas=1"];
    let arguments = [&["compare", "--machine", "hmg-1x4", "--designs", "nhcc,hmg"], &crowd[..]].concat();
    let output = outcome(&arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("CTAs wait for each other"), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(table.contains("failed: mst,nodes=64,ctas=2048 under nhcc"), "{table}");
    let triad = table.lines().find(|line| line.starts_with("triad,elements=4096")).expect("a row");
    assert!(triad.contains("1.00"), "{table}");
    let mean = table.lines().find(|line| line.starts_with("geometric mean")).expect("a row");
    assert!(mean.contains("failed"), "a mean without all workloads is no mean: {table}");
}

#[test]
fn a_run_of_no_time_is_a_failure_with_its_reason() {
    let workloads = ["--workload", "memcopy,mib=1,direction=h2d,triad,elements=4096"];
    let arguments = [&["compare", "--machine", "hmg-1x4", "--designs", "nhcc,hmg"], &workloads[..]].concat();
    let output = outcome(&arguments);
    assert_eq!(output.status.code(), Some(2));
    let expected = "memcopy,mib=1,direction=h2d: takes no time on hmg-1x4";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn what_memory_or_a_scale_does_not_fit_is_told() {
    let with = |more: &[&str]| {
        let output = outcome(&[&["run", "--machine", "hmg-1x4", "--design", "hmg"], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let triad = ["--workload", "triad,elements=4000000,iterations=1", "--scale", "1/4"];
    assert_eq!(with(&triad), "1 run to go\n");
    let told = with(&[&triad[..], &["--set", "dram.bytes=4MB"]].concat());
    assert!(told.contains("its arrays take 24000000 bytes and the memory has 4194304"), "{told}");
    let folder = tempfile::tempdir().expect("a folder");
    let graph = folder.path().join("roads.gr");
    std::fs::write(&graph, "p sp 3 2\na 1 2 5\na 2 3 7\n").expect("written");
    let workload = format!("mst,graph={}", graph.display());
    let told = with(&["--workload", &workload, "--scale", "1/4"]);
    assert!(told.contains("the machine is scaled by 1/4, its input cannot be"), "{told}");
}

#[test]
fn a_scaled_trace_is_told_to_be_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tiny.tombolo");
    let file = file.to_str().expect("UTF-8");
    assert!(outcome(&["trace", "record", "--workload", TINY, "--scale", "1/32", "-o", file]).status.success());
    let output = outcome(&small_run(&["--design", "hmg", "--trace", file, "--json"]));
    assert!(stderr(&output).contains("warning: the machine is scaled by 1/32; a trace stays"), "{}", stderr(&output));
    let record: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert!(record["notes"][0].as_str().is_some_and(|note| note.contains("stays as it was recorded")));
}

#[test]
fn a_scale_that_would_cut_an_sm_is_rounded_and_told() {
    let run = ["run", "--machine", "hmg-4x4", "--scale", "1/33", "--design", "hmg", "--workload", TINY, "--json"];
    let output = outcome(&run);
    let record: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(record["scale"], Value::from("1/32"));
    assert!(stderr(&output).contains("note: --scale 1/33: runs at 1/32, the nearest"), "{}", stderr(&output));
    let whole = outcome(&["run", "--machine", "hmg-4x4", "--scale", "1/32", "--design", "hmg", "--workload", TINY]);
    assert!(!stderr(&whole).contains("the nearest"), "{}", stderr(&whole));
}

/// Arguments for `run` at full scale on a machine with one GPU.
fn one_gpu<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--machine", "hmg-1x4", "--design", "hmg"], more].concat()
}

#[test]
fn what_a_workload_rounds_is_in_the_heading_and_in_a_note() {
    let run = one_gpu(&["--workload", "bandwidth,kib=100,ctas=3"]);
    let text = stdout(&outcome(&run));
    let heading = "bandwidth,kib=100,ctas=3 (taken as kib=144) on hmg-1x4 under hmg at scale 1";
    assert!(text.starts_with(heading), "{text}");
    let record = json(&[&run[..], &["--json"]].concat());
    let note = "bandwidth,kib=100,ctas=3: `kib=100` is taken as 144: whole parts of 16 KiB, as many for each CTA";
    assert_eq!((&record["notes"][0], &record["workload"]), (&note.into(), &"bandwidth,kib=100,ctas=3".into()));
    let exact = stdout(&outcome(&one_gpu(&["--workload", "bandwidth,kib=96,ctas=3"])));
    assert!(exact.starts_with("bandwidth,kib=96,ctas=3 on hmg-1x4"), "{exact}");
}

#[test]
fn a_graph_of_a_file_is_searched_along_its_arcs() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = folder.path().join("chain.gr");
    let arcs: String = (2..=64).map(|node| format!("a {node} {} 1\n", node - 1)).collect();
    let text = [&b"\xef\xbb\xbfc caf\xe9\np sp 64 63\n"[..], arcs.as_bytes()].concat();
    std::fs::write(&graph, text).expect("written");
    let launches = |workload: &str, more: &str| {
        let workload = format!("{workload},graph={}{more}", graph.display());
        json(&one_gpu(&["--workload", &workload, "--json"]))["kernel_launches"].as_u64()
    };
    assert_eq!([launches("bfs", ""), launches("lonestar-bfs", ",symmetric=yes")], [Some(2), Some(65)]);
}
