//! Comparisons as studies, and sweeps without a file.

use crate::{SMALL, TINY, json, outcome, small_compare, stderr, stdout, tombolo};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// A second workload, small enough for a test.
const OTHER: &str = "triad,elements=65536,iterations=2";

/// Arguments for `compare` with two designs, into a folder.
fn into<'a>(folder: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let out = folder.to_str().expect("UTF-8");
    small_compare(&[&["--designs", "nhcc,hmg", "--workload", TINY, OTHER, "--out", out], more].concat())
}

/// Arguments for `sweep` without a file, into a folder.
fn swept<'a>(folder: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let out = folder.to_str().expect("UTF-8");
    [&["sweep"], &SMALL[..], &["--designs", "nhcc,hmg", "--workload", TINY, "--out", out], more].concat()
}

/// Returns the finished points, each with its write time.
fn points(folder: &Path) -> BTreeMap<String, SystemTime> {
    let Ok(entries) = fs::read_dir(folder.join("points")) else { return BTreeMap::new() };
    let entries = entries.map(|entry| entry.expect("readable"));
    let named = entries.map(|entry| (entry.file_name().into_string().expect("UTF-8"), entry));
    let whole = named.filter(|(name, _)| name.ends_with(".json"));
    whole.map(|(name, entry)| (name, entry.metadata().and_then(|found| found.modified()).expect("a file"))).collect()
}

/// Returns the rows of a table, by column.
fn table(folder: &Path, name: &str) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    // Workload labels contain commas, and are quoted.
    let lines: Vec<String> = text.lines().map(|line| line.replace(TINY, "tiny").replace(OTHER, "other")).collect();
    let head = cells(&lines[0]);
    let row = |line: &String| {
        let cells = cells(line);
        assert_eq!(cells.len(), head.len(), "{name}: {line}");
        head.iter().cloned().zip(cells).collect()
    };
    lines[1..].iter().map(row).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} = {:?}", row[column]))
}

#[test]
fn a_comparison_into_a_folder_is_a_study_with_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("compared");
    let first = outcome(&into(&out, &[]));
    assert!(first.status.success(), "{}", stderr(&first));
    assert!(stdout(&first).contains(&format!("page: {}", out.join("report.html").display())));
    let before = points(&out);
    assert_eq!(before.len(), 4);
    let again = json(&into(&out, &["--json"]));
    assert_eq!(points(&out), before, "a finished point is not run again");
    let alone = json(&small_compare(&["--designs", "nhcc,hmg", "--workload", TINY, OTHER, "--json"]));
    assert_eq!(again["speedups"], alone["speedups"], "what is printed is the same");
    let document: Value =
        serde_json::from_str(&fs::read_to_string(out.join("report.json")).expect("there")).expect("whole");
    let rows = document["figures"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows[0]["values"][1], alone["speedups"][TINY]["hmg"]);
    assert_eq!(rows[2]["values"][1], alone["geometric_means"]["hmg"]);
    assert_eq!(document["figures"][0]["title"], "Speed-up over nhcc on hmg-4x4 (time: region)");
    let experiment = document["provenance"]["experiments"][0]["text"].as_str().expect("a file");
    let file = folder.path().join("again.toml");
    fs::write(&file, experiment).expect("written");
    let words = ["sweep", file.to_str().expect("UTF-8"), "--out", out.to_str().expect("UTF-8"), "--json"];
    assert_eq!(json(&words)["figures"][0]["rows"], document["figures"][0]["rows"], "its file is an experiment");
    assert_eq!(points(&out), before, "of the same points");
}

#[test]
fn tables_of_a_comparison_are_tidy() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(outcome(&into(folder.path(), &["--set", "l2.ways=8", "--baseline", "hmg"])).status.success());
    let results = table(folder.path(), "results.csv");
    assert_eq!(results.len(), 4);
    for row in &results {
        assert_eq!((number(row, "scale"), number(row, "seed"), number(row, "set.l2.ways")), (1.0 / 32.0, 1.0, 8.0));
        let base = results.iter().find(|base| base["key"] == row["baseline_key"]).expect("its baseline is a row");
        assert_eq!((base["design"].as_str(), &base["workload"]), ("hmg", &row["workload"]));
        let speedup = number(base, "time.region_s") / number(row, "time.region_s");
        assert!((number(row, "speedup") - speedup).abs() < 1e-12);
        assert!(row["baseline"].contains("under hmg with l2.ways=8"), "{}", row["baseline"]);
        assert!(row.keys().all(|name| !name.starts_with("links.") && !name.starts_with("gpus.")));
        let of = |name: &str| {
            table(folder.path(), name).into_iter().filter(|one| one["key"] == row["key"]).collect::<Vec<_>>()
        };
        let sum = |name: &str, column: &str| of(name).iter().map(|one| number(one, column)).sum::<f64>();
        assert_eq!(of("kernels.csv").len() as f64, number(row, "kernel_launches"));
        assert!(
            of("kernels.csv")
                .iter()
                .all(|launch| launch["gpu"] == "all" && ["pathfinder", "triad"].contains(&&*launch["name"]))
        );
        assert_eq!(sum("kernels.csv", "warp_instructions"), number(row, "warp_instructions"));
        assert_eq!((of("gpus.csv").len(), of("modules.csv").len(), of("links.csv").len()), (4, 16, 24));
        assert_eq!(sum("gpus.csv", "transactions"), number(row, "transactions"));
        assert_eq!(sum("modules.csv", "dram_read_bytes"), number(row, "dram.read_bytes"));
        let slots = |name| sum(name, "stalls.warp_slot_cycles");
        assert!((slots("modules.csv") - slots("gpus.csv")).abs() <= 16.0, "but for what is rounded");
    }
    for name in ["results", "kernels", "gpus", "modules", "links"] {
        let bytes = fs::read(folder.path().join(format!("{name}.parquet"))).expect("there");
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{name}");
    }
}

#[test]
fn a_comparison_that_is_killed_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (killed, whole) = (folder.path().join("killed"), folder.path().join("whole"));
    assert!(outcome(&into(&whole, &["--threads", "1"])).status.success());
    let mut child = tombolo(&into(&killed, &["--threads", "1"])).spawn().expect("it starts");
    let patience = Instant::now() + Duration::from_secs(60);
    while points(&killed).is_empty() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("it is killed");
    child.wait().expect("a child");
    let before = points(&killed);
    assert!((1..4).contains(&before.len()) && !killed.join("report.html").exists(), "{before:?}");
    assert!(outcome(&into(&killed, &[])).status.success());
    let after = points(&killed);
    assert!(before.iter().all(|(file, at)| after.get(file) == Some(at)), "a finished point is not run again");
    for name in ["results.csv", "kernels.csv", "modules.csv"] {
        let read = |folder: &Path| fs::read_to_string(folder.join(name)).expect("there");
        assert_eq!(read(&killed), read(&whole), "{name}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "mine").expect("written");
    let output = outcome(&into(&file.join("folder"), &[]));
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(stderr(&output).contains("cannot make the folder"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(file).expect("there"), "mine");
}

#[test]
fn a_report_of_a_comparisons_document_shows_its_speed_ups() {
    let folder = tempfile::tempdir().expect("a folder");
    let (document, page) = (folder.path().join("compared.json"), folder.path().join("page.html"));
    let words = ["--designs", "nhcc,hmg", "--workload", TINY, "--kernels", "--out", document.to_str().expect("UTF-8")];
    let printed = stdout(&outcome(&small_compare(&words)));
    assert!(printed.contains("Kernels, by time"), "{printed}");
    let of = ["report", document.to_str().expect("UTF-8"), "-o", page.to_str().expect("UTF-8")];
    let output = outcome(&of);
    assert!(output.status.success(), "{}", stderr(&output));
    let html = fs::read_to_string(&page).expect("written");
    let text = fs::read_to_string(&document).expect("there");
    let compared: Value = serde_json::from_str(&text).expect("whole");
    assert!(html.contains("Speed-up over nhcc on hmg-4x4 (time: region)") && html.contains("geometric mean"));
    assert!(html.contains(compared["provenance"]["commit"].as_str().expect("a word")));
    let launches = compared["kernels"].as_array().expect("a list");
    assert_eq!((launches.len(), launches[1]["design"].as_str()), (2, Some("hmg")));
    assert_eq!(
        launches[0]["kernels"].as_array().map(Vec::len),
        compared["runs"][0]["kernel_launches"].as_u64().map(|n| n as usize)
    );
    fs::write(&document, text.replace("\"baseline\"", "\"base\"")).expect("written");
    let refused = outcome(&of);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("not a comparison's document: missing field `baseline`"), "{}", stderr(&refused));
}

#[test]
fn designs_are_processes_of_one_timeline() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("timeline.json");
    let words = ["--designs", "nhcc,hmg", "--workload", TINY, "--json", "--timeline", path.to_str().expect("UTF-8")];
    let compared = json(&small_compare(&words));
    let trace: Value = serde_json::from_str(&fs::read_to_string(&path).expect("there")).expect("whole");
    let events = trace["traceEvents"].as_array().expect("a list of events");
    let names: Vec<_> = events.iter().filter(|event| event["name"] == "process_name").collect();
    let name = |at: usize| names[at]["args"]["name"].as_str().expect("a name").to_owned();
    assert_eq!([name(0), name(1)], [format!("{TINY} under nhcc"), format!("{TINY} under hmg")]);
    for (pid, run) in (1..).zip(compared["runs"].as_array().expect("runs")) {
        let of = |what: &str| -> u64 {
            let slices = events.iter().filter(|event| event["ph"] == "X" && event["pid"] == pid);
            slices.map(|slice| slice["args"][what].as_u64().expect("a count")).sum()
        };
        let dram = &run["dram"];
        let bytes = dram["read_bytes"].as_u64().zip(dram["write_bytes"].as_u64()).map(|(read, written)| read + written);
        assert_eq!(Some(of("gpu_dram_bytes")), bytes, "kernels moved all there is");
    }
    let same = [&words[..6], &[path.to_str().expect("UTF-8"), "--out", path.to_str().expect("UTF-8")]].concat();
    assert!(stderr(&outcome(&small_compare(&same))).contains("--out writes the same file"));
}

/// Returns the figures in a document, except the stacks under them.
fn compared(document: &serde_json::Value) -> Vec<&serde_json::Value> {
    let is_compared = |figure: &&serde_json::Value| figure["id"].as_str().is_some_and(|id| !id.ends_with("-stalls"));
    document["figures"].as_array().expect("figures").iter().filter(is_compared).collect()
}

#[test]
fn one_swept_setting_is_an_axis_and_two_are_a_family_of_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let rates = ["--vary", "gpu_link.rate=100GB/s,400GB/s"];
    let one = json(&swept(folder.path(), &[&rates[..], &["--json"]].concat()));
    let figure = &one["figures"][0];
    assert_eq!(figure["columns"], serde_json::json!(["gpu_link.rate", "nhcc", "hmg"]));
    assert_eq!((&figure["chart"]["kind"], &figure["chart"]["reference"]), (&"lines".into(), &1.0.into()));
    let two = [&rates[..], &["--vary", "l2.ways=8,16", "--json"]].concat();
    let two = json(&swept(folder.path(), &two));
    let figures = compared(&two);
    assert_eq!(figures.len(), 2, "one of each design");
    assert_eq!(figures[1]["columns"], serde_json::json!(["gpu_link.rate", "8", "16"]));
    assert_eq!(
        (&figures[1]["chart"]["x"], &figures[1]["chart"]["series"]),
        (&"gpu_link.rate".into(), &"l2.ways".into())
    );
    assert!(figures[1]["title"].as_str().is_some_and(|title| title.ends_with(": hmg")), "{}", figures[1]["title"]);
    let rows = table(folder.path(), "results.csv");
    assert_eq!(rows.len(), 8, "the baseline is one of them");
    assert!(rows.iter().all(|row| !row["set.gpu_link.rate"].is_empty() && !row["set.l2.ways"].is_empty()));
    let rates: BTreeSet<&str> = rows.iter().map(|row| row["set.gpu_link.rate"].as_str()).collect();
    assert!(rates.contains("100000000000") && rates.contains("400000000000"), "bytes a second: {rates:?}");
    assert!(rows.iter().all(|row| row["digest"].len() == 17 && row["digest"].starts_with('d')), "{rows:?}");
    let cell = |rate: &str, ways: &str| {
        let is_it = |row: &&BTreeMap<String, String>| {
            row["design"] == "hmg" && row["set.gpu_link.rate.text"] == rate && row["set.l2.ways"] == ways
        };
        number(rows.iter().find(is_it).expect("a row of each combination"), "speedup")
    };
    for (row, rate) in ["100GB/s", "400GB/s"].into_iter().enumerate() {
        for (column, ways) in ["8", "16"].into_iter().enumerate() {
            let drawn = figures[1]["rows"][row]["values"][column].as_f64().expect("a number");
            assert!((drawn - cell(rate, ways)).abs() < 1e-12, "{rate}, {ways}");
        }
    }
}

#[test]
fn three_swept_settings_are_figures_of_the_third_and_a_heat_map_has_cells() {
    let folder = tempfile::tempdir().expect("a folder");
    let vary = ["--vary", "gpu_link.rate=100GB/s,400GB/s", "--vary", "l2.ways=8,16", "--vary", "directory.ways=4,8"];
    let document =
        json(&swept(folder.path(), &[&vary[..], &["--chart", "heat", "--baseline", "hmg", "--json"]].concat()));
    let figures = compared(&document);
    let titles: Vec<&str> = figures.iter().filter_map(|figure| figure["title"].as_str()?.split(": ").last()).collect();
    assert_eq!(
        titles,
        ["directory.ways 4, nhcc", "directory.ways 4, hmg", "directory.ways 8, nhcc", "directory.ways 8, hmg"]
    );
    assert!(figures.iter().all(
        |figure| figure["chart"]["kind"] == "heat" && figure["rows"].as_array().is_some_and(|rows| rows.len() == 2)
    ));
    assert!(
        figures[0]["caption"].as_str().is_some_and(|text| text.contains("time under hmg, nothing swept being set"))
    );
    assert_eq!(points(folder.path()).len(), 17, "16 combinations, and the baseline");
}

#[test]
fn what_is_wrong_of_a_sweep_without_a_file_is_told_by_its_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let refused = |more: &[&str], expected: &str| {
        let output = outcome(&swept(&out, more));
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(stderr(&output).contains(expected), "{more:?}: {}", stderr(&output));
        assert!(!out.exists(), "nothing is written");
    };
    refused(&["--vary", "l2.wais=8"], "--vary l2.wais=8: ");
    refused(&["--vary", "l2.wais=8"], "did you mean l2.ways?");
    refused(&["--vary", "l2.ways"], "expected KEY=A,B");
    refused(&["--vary", "l2.ways=8,8"], "8 is given twice");
    refused(&["--vary", "l2.ways=8", "--vary", "l2.ways=16"], "--vary l2.ways: it is varied twice");
    refused(&["--vary", "l2.ways=8", "--set", "l2.way=8"], "--set l2.way=8: ");
    refused(&["--vary", "l2.ways=8", "--baseline", "nhc"], "--baseline nhc: not one of --designs (did you mean nhcc?)");
    refused(&[], "--vary");
    let both = outcome(&["sweep", "spec.toml", "--machine", "hmg-4x4"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(stderr(&both).contains("cannot be used with"), "{}", stderr(&both));
    assert_eq!(outcome(&["sweep"]).status.code(), Some(2));
}

#[test]
fn the_file_of_the_documents_is_an_experiment() {
    let folder = tempfile::tempdir().expect("a folder");
    let usage = include_str!("../../../../docs/usage.md");
    let begin = usage.find("id = \"links\"").expect("it shows a file");
    let text = &usage[begin..begin + usage[begin..].find("```").expect("it ends")];
    let (file, out) = (folder.path().join("links.toml"), folder.path().join("out"));
    fs::write(&file, text).expect("written");
    let words = [file.to_str().expect("UTF-8"), "--engine", "slurm", "--out", out.to_str().expect("UTF-8")];
    let output = outcome(&[&["sweep"], &words[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("16 points"), "{}", stderr(&output));
}

#[test]
fn a_sweep_without_a_file_goes_to_a_cluster_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let more =
        ["--vary", "l2.ways=8,16", "--set", "l2.mshrs=64", "--chart", "heat", "--engine", "slurm", "--jobs", "2"];
    let output = outcome(&swept(folder.path(), &more));
    assert!(output.status.success(), "{}", stderr(&output));
    let script = fs::read_to_string(folder.path().join("sweep.sbatch")).expect("a script");
    let command = script.lines().find_map(|line| line.strip_prefix("exec ")).expect("a command");
    for part in ["--machine hmg-4x4", "--designs nhcc,hmg", "--vary l2.ways=8,16", "--set l2.mshrs=64", "--chart=heat"]
    {
        assert!(command.contains(part), "{part}: {command}");
    }
    let words: Vec<&str> = command.split(" --threads").next().expect("it is there").split(' ').skip(1).collect();
    let words = [&words[..], &["--shard", "0/2"]].concat();
    assert!(outcome(&words).status.success(), "the command of a job runs");
    assert_eq!(points(folder.path()).len(), 2, "of four and a baseline, the first part");
}
