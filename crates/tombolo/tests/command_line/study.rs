//! Sweeps and reproductions: stored, resumed and shared results, and refusals.

use crate::{interruptible, json, outcome, stderr, stdout, tombolo};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

/// An experiment with twelve short points.
const SPEC: &str = r#"
id = "small"
title = "A small sweep"
caption = "Of nothing in particular."
machines = ["hmg-4x4"]
designs = ["nhcc", "hmg"]
workloads = ["pathfinder,columns=65536,rows=60", "triad,elements=65536,iterations=2"]
scale = "1/32"
rows = "step"
columns = "design"
mean = "geometric"

[[metric]]
name = "speed-up"
value = ["time_s"]
relative = "speed-up"
to = { design = "no-remote-caching", step = "none" }

[chart]
kind = "lines"

[[axis]]
name = "bandwidth"
step = [
    { label = "100", set = ["gpu_link.rate=100GB/s"] },
    { label = "400", set = ["gpu_link.rate=400GB/s"] },
]

[[claim]]
id = "faster-links-help"
kind = "direction"
text = "Faster links help"
of = [{ row = "400", columns = ["hmg"] }]
to = [{ row = "100", columns = ["hmg"] }]
above = 1.0

[[repeat]]
seeds = [2]
"#;

/// A folder with an experiment file.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(spec: &str) -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("spec.toml"), spec).expect("written");
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn words(&self, out: &str, more: &[&str]) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        let words = ["sweep".to_owned(), path("spec.toml"), "--out".to_owned(), path(out)];
        words.into_iter().chain(more.iter().map(|word| (*word).to_owned())).collect()
    }

    fn sweep(&self, out: &str, more: &[&str]) -> Output {
        let words = self.words(out, more);
        outcome(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the finished points, each with its write time.
    fn points(&self, out: &str) -> BTreeMap<PathBuf, std::time::SystemTime> {
        let Ok(entries) = fs::read_dir(self.path(out).join("points")) else { return BTreeMap::new() };
        let files = entries.map(|entry| entry.expect("readable").path());
        let whole = files.filter(|file| file.extension().is_some_and(|end| end == "json"));
        whole
            .map(|file| (file.clone(), fs::metadata(&file).and_then(|found| found.modified()).expect("a file")))
            .collect()
    }
}

/// Returns the document without command line and provenance.
fn document(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).expect("one document");
    value["command"].take();
    value["provenance"].take();
    value
}

#[test]
fn a_sweep_killed_three_times_ends_with_identical_results() {
    let bench = Bench::new(SPEC);
    let whole = bench.sweep("whole", &["--threads", "1"]);
    assert!(whole.status.success(), "{}", stderr(&whole));
    let (mut written, total) = (bench.points("killed"), bench.points("whole").len());
    for kill in 1..=3 {
        let words = bench.words("killed", &["--threads", "1"]);
        let mut child = tombolo(&words.iter().map(String::as_str).collect::<Vec<_>>()).spawn().expect("it starts");
        let patience = Instant::now() + Duration::from_secs(60);
        while bench.points("killed").len() < kill * total / 4 && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("it is killed");
        child.wait().expect("a child");
        let now = bench.points("killed");
        assert!(written.iter().all(|(file, at)| now.get(file) == Some(at)), "a finished point is not run again");
        assert!(now.len() < total, "it was killed before its end");
        assert!(!bench.path("killed").join("results.csv").exists(), "no table of a part");
        written = now;
    }
    assert!(!written.is_empty(), "something was finished before the last kill");
    assert!(bench.sweep("killed", &["--threads", "2"]).status.success());
    let after = bench.points("killed");
    assert!(written.iter().all(|(file, at)| after.get(file) == Some(at)), "a finished point is not run again");
    assert_eq!(bench.read("killed/results.csv"), bench.read("whole/results.csv"));
    assert_eq!(fs::read(bench.path("killed/results.parquet")).ok(), fs::read(bench.path("whole/results.parquet")).ok());
    assert_eq!(document(&bench.read("killed/report.json")), document(&bench.read("whole/report.json")));
}

#[test]
fn a_report_says_what_made_it_and_of_which_experiment() {
    let bench = Bench::new(SPEC);
    let output = bench.sweep("out", &["--threads", "2", "--json"]);
    let printed: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let kept: Value = serde_json::from_str(&bench.read("out/report.json")).expect("one document");
    assert_eq!(printed["provenance"], kept["provenance"]);
    let made = &kept["provenance"];
    assert_eq!((&made["seeds"], &made["threads"]), (&serde_json::json!([1, 2]), &Value::from(2)));
    assert_eq!((&made["experiments"][0]["text"], &made["command"]), (&Value::from(SPEC), &kept["command"]));
    let page = bench.read("out/report.html");
    assert!(page.contains("What made it, and where") && page.contains("faster-links-help"));
    assert!(page.contains(made["commit"].as_str().expect("a word")) && page.contains("id = &quot;small&quot;"));
    let points = bench.points("out");
    for text in points.keys().map(|file| fs::read_to_string(file).expect("a point")) {
        assert!(!text.contains("provenance") && !text.contains("commit"), "{text}");
    }
}

#[test]
#[cfg(unix)]
fn an_interrupt_says_where_to_go_on() {
    let bench = Bench::new(SPEC);
    let words = bench.words("out", &["--threads", "1"]);
    let mut command = interruptible(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let child = command.stderr(std::process::Stdio::piped()).spawn().expect("it starts");
    let patience = Instant::now() + Duration::from_secs(60);
    while bench.points("out").is_empty() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("every Unix has it").success());
    let output = child.wait_with_output().expect("a child");
    assert_eq!(output.status.code(), Some(130), "it was still running");
    assert!(stderr(&output).contains("interrupted: what is finished is in"), "{}", stderr(&output));
    assert!(bench.sweep("out", &[]).status.success());
}

#[test]
fn a_damaged_point_is_told_and_run_again() {
    let bench = Bench::new(SPEC);
    assert!(bench.sweep("out", &[]).status.success());
    let table = bench.read("out/results.csv");
    let files: Vec<PathBuf> = bench.points("out").into_keys().collect();
    let text = fs::read_to_string(&files[0]).expect("a point");
    fs::write(&files[0], text.replacen("\"cycles\":", "\"cycles\":1", 1)).expect("written");
    fs::write(&files[1], &text[..text.len() / 2]).expect("written");
    fs::copy(&files[3], &files[2]).expect("copied");
    fs::write(bench.path("out/costs.json"), "not JSON").expect("written");
    let again = bench.sweep("out", &[]);
    assert!(again.status.success(), "{}", stderr(&again));
    for (file, reason) in files.iter().zip(["checksum is wrong", "not a result", "result of another point"]) {
        let name = file.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let told = stderr(&again).lines().any(|line| line.contains(name) && line.contains(reason));
        assert!(told, "{name}: {reason} is not in {}", stderr(&again));
    }
    assert_eq!(bench.read("out/results.csv"), table);
}

#[test]
fn two_processes_may_share_a_folder() {
    let bench = Bench::new(SPEC);
    let words = bench.words("out", &["--threads", "1"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut children: Vec<_> =
        (0..2).map(|_| tombolo(&words).stdout(std::process::Stdio::null()).spawn().expect("it starts")).collect();
    assert!(children.iter_mut().all(|child| child.wait().expect("a child").success()));
    let shared = bench.read("out/results.csv");
    assert!(bench.sweep("alone", &[]).status.success());
    assert_eq!(shared, bench.read("alone/results.csv"));
}

#[test]
fn shards_make_what_a_whole_sweep_makes() {
    let bench = Bench::new(SPEC);
    for shard in ["0/3", "2/3", "1/3"] {
        assert!(bench.sweep("out", &["--shard", shard]).status.success());
    }
    let before = bench.points("out");
    assert!(!bench.path("out/results.csv").exists(), "a part makes no table");
    assert!(bench.sweep("out", &[]).status.success());
    assert_eq!(bench.points("out"), before, "nothing was left to run");
    let script = bench.sweep("cluster", &["--engine", "slurm", "--jobs", "3", "--threads", "1"]);
    assert!(script.status.success(), "{}", stderr(&script));
    let text = bench.read("cluster/sweep.sbatch");
    assert!(
        text.contains("\ncd ")
            && text.contains("#SBATCH --array=0-2")
            && text.contains("--shard \"$SLURM_ARRAY_TASK_ID/3\""),
        "{text}"
    );
    let in_vain = [
        ("--shard 0/3 --json", "leave --json out"),
        ("--engine slurm --json", "leave --json out"),
        ("--shard 0/3 --strict", "leave --strict out"),
        ("--engine slurm --shard 0/3", "leave --shard out"),
        ("--jobs 3", "without --engine slurm"),
    ];
    for (words, reason) in in_vain {
        let refused = bench.sweep("none", &words.split(' ').collect::<Vec<_>>());
        assert_eq!(refused.status.code(), Some(2), "{words}");
        assert!(stderr(&refused).contains(reason), "{}", stderr(&refused));
    }
}

#[test]
fn a_shard_tells_of_points_that_cannot_be() {
    let bench = Bench::new(&SPEC.replace("gpu_link.rate=400GB/s", "l2.ways=4096"));
    let first = bench.sweep("out", &["--shard", "0/2"]);
    assert_eq!(first.status.code(), Some(2));
    assert!(stderr(&first).contains("l2.ways"), "{}", stderr(&first));
    assert!(bench.sweep("out", &["--shard", "1/2"]).status.success(), "told once");
}

#[test]
fn a_point_that_cannot_be_is_told_and_the_rest_is_done() {
    let bench = Bench::new(&SPEC.replace("gpu_link.rate=400GB/s", "l2.ways=4096"));
    let output = bench.sweep("out", &["--json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("l2.ways"), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let rows = document["figures"][0]["rows"].as_array().expect("rows");
    assert!(rows[0]["values"].as_array().is_some_and(|values| values.iter().all(Value::is_number)), "{rows:?}");
    assert!(rows[1]["values"].as_array().is_some_and(|values| values.iter().all(Value::is_null)), "{rows:?}");
    assert_eq!(document["claims"][0]["verdict"], "fails");
    assert!(document["failures"].as_array().is_some_and(|failures| failures.len() == 4), "{}", document["failures"]);
}

#[test]
fn a_run_that_cannot_be_compared_is_told_with_its_numbers() {
    let bench = Bench::new(&SPEC.replace("pathfinder,columns=65536,rows=60", "memcopy,mib=1,direction=h2d"));
    let output = bench.sweep("out", &["--json"]);
    assert_eq!(output.status.code(), Some(2));
    let expected =
        "small, speed-up: time.region_s is 0, and 0 of memcopy,mib=1,direction=h2d on hmg-4x4 under no-remote-caching";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert!(document["failures"].as_array().is_some_and(|failures| failures.len() == 4), "{}", document["failures"]);
}

#[test]
fn what_a_machine_costs_is_normalised_repeated_and_told_as_what_is_measured() {
    let spec = r#"
id = "cost"
title = "What directories cost"
caption = "By their entries."
machines = ["hmg-4x4"]
designs = ["hmg"]
workloads = ["triad,elements=65536,iterations=1"]
scale = "1/32"
rows = "step"
columns = "metric"

[[metric]]
name = "storage"
value = ["hardware.directory_storage_kb"]
relative = "ratio"
to = { step = "none" }

[chart]
kind = "bars"

[[axis]]
name = "entries"
step = [{ label = "twice", set = ["directory.entries=24576"] }]

[[claim]]
id = "entries-cost"
kind = "direction"
text = "Entries cost storage"
of = [{ row = "twice", columns = ["storage"] }]
above = 1.5

[[repeat]]
assumed = ["l2.mshrs"]
"#;
    let of = |spec: &str| {
        let bench = Bench::new(spec);
        let output = bench.sweep("out", &["--json"]);
        (output.status.code(), stderr(&output), document(&stdout(&output)))
    };
    let (status, told, whole) = of(spec);
    assert_eq!(status, Some(0), "{told}");
    assert_eq!(whole["figures"][0]["rows"][0]["values"][0], 2.0, "normalised");
    let absolute = spec.replace("relative = \"ratio\"\nto = { step = \"none\" }", "");
    let absolute = absolute.replace("directory_storage_kb", "directory_reach_mb");
    let absolute = absolute.replace("l2.mshrs", "directory.lines_per_entry");
    let (status, told, whole) = of(&absolute);
    assert_eq!(status, Some(0), "{told}");
    let claim = &whole["claims"][0];
    let repeated = claim["repetitions"].as_array().expect("a list");
    assert_eq!(repeated.len(), 2, "halved and doubled");
    assert!(repeated.iter().all(|one| one["measured"] != claim["measured"]), "{claim}");
    let (status, told, whole) = of(&spec.replace("24576", "100"));
    assert_eq!(status, Some(2));
    assert!(told.contains("hmg-4x4 with directory.entries=100"), "{told}");
    assert_eq!(whole["failures"].as_array().map(Vec::len), Some(3), "also halved and doubled: {}", whole["failures"]);
}

#[test]
fn workloads_that_are_not_run_again_say_nothing_of_a_direction() {
    let spec = SPEC.replace("rows = \"step\"", "rows = \"design\"");
    let spec = spec.replace("columns = \"design\"", "columns = \"workload\"").replace("mean = \"geometric\"\n", "");
    let spec = spec.replace("workloads = [", "workloads = [\"triad,elements=4096,iterations=1\", ");
    let (axis, after) = (spec.find("[[axis]]").expect("axes"), spec.find("[[claim]]").expect("claims"));
    let spec = spec.replace(&spec[axis..after], "").replace(", step = \"none\"", "");
    let spec = spec.replace("{ row = \"400\", columns = [\"hmg\"] }", "{ row = \"hmg\", columns = [\"WORKLOAD\"] }");
    let spec = spec.replace("to = [{ row = \"100\", columns = [\"hmg\"] }]\nabove = 1.0", "above = 0.1");
    let spec = spec.replace("seeds = [2]", "seeds = [2]\nonly = [\"triad,elements=4096,iterations=1\"]");
    for (of, repetitions) in [("triad,elements=4096,iterations=1", 1), ("pathfinder,columns=65536,rows=60", 0)] {
        let bench = Bench::new(&spec.replace("WORKLOAD", of));
        let output = bench.sweep("out", &["--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let claim = &document(&stdout(&output))["claims"][0];
        assert_eq!(claim["verdict"], "holds", "{claim}");
        assert_eq!(claim["repetitions"].as_array().map_or(0, Vec::len), repetitions, "{claim}");
    }
}

#[test]
fn an_assumed_value_is_halved_as_the_experiment_sets_it() {
    let spec = SPEC.replace("scale = \"1/32\"", "scale = \"1/32\"\nset = [\"machine.gpu_link.latency=2us\"]");
    let bench = Bench::new(&spec.replace("seeds = [2]", "assumed = [\"gpu_link.latency\"]"));
    let output = bench.sweep("out", &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = bench.read("out/results.csv");
    let head = table.lines().next().expect("a head");
    let columns = ",set.gpu_link.latency,set.gpu_link.latency.text,set.gpu_link.rate,set.gpu_link.rate.text,";
    assert!(head.contains(columns) && !head.contains("machine."), "{head}");
    let halved = [("0.000001", "1us"), ("0.000002", "2us"), ("0.000004", "4us")];
    let has =
        |(seconds, latency): &(&str, &str)| table.contains(&format!(",{seconds},{latency},100000000000,100GB/s,"));
    assert!(halved.iter().all(has), "{table}");
}

#[test]
fn a_memory_too_small_is_told_of_the_points_that_have_it() {
    let spec = SPEC.replace("triad,elements=65536", "triad,elements=8388608");
    let spec =
        spec.replace("gpu_link.rate=100GB/s", "dram.bytes=2MB").replace("gpu_link.rate=400GB/s", "dram.bytes=1GB");
    let bench = Bench::new(&spec);
    assert!(bench.sweep("out", &[]).status.success());
    let (mut told, mut silent) = (0, 0);
    for point in bench.points("out").into_keys() {
        let text = fs::read_to_string(point).expect("a point");
        let kept: Value = serde_json::from_str(&text).expect("JSON");
        let notes = kept["kept"]["outcome"].to_string().contains("its arrays take");
        // Memory size at scale 1/32.
        let small = kept["kept"]["point"]["machine"]["dram"]["bytes"] == 65536;
        assert!(!notes || small, "{text}");
        *(if notes { &mut told } else { &mut silent }) += 1;
    }
    assert!(told > 0 && silent > 0, "{told} and {silent}");
}

#[test]
fn a_sweep_has_the_keys_that_scripts_rely_on() {
    let bench = Bench::new(SPEC);
    let words = bench.words("out", &["--json"]);
    let document = json(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((&document["paper"], &document["scale"]), (&"small".into(), &"quick (1/32)".into()));
    let claim = &document["claims"][0];
    for key in ["id", "kind", "text", "paper", "measured", "unit", "verdict"] {
        assert!(claim.get(key).is_some(), "{key}");
    }
    let repetitions = claim["repetitions"].as_array().expect("a list");
    assert_eq!(repetitions.len(), 1, "another seed");
    assert_eq!(repetitions[0]["unchanged"], claim["measured"], "all workloads are run again");
    assert_eq!((&repetitions[0]["holds"], &repetitions[0]["agrees"]), (&true.into(), &true.into()), "links are busy");
    let figure = &document["figures"][0];
    assert_eq!(figure["columns"], serde_json::json!(["bandwidth", "nhcc", "hmg"]));
    let table = bench.read("out/results.csv");
    let heads: Vec<&str> = table.lines().next().expect("a head").split(',').collect();
    assert!(["key", "design", "time_s", "l2.hits", "digest"].iter().all(|head| heads.contains(head)), "{heads:?}");
    assert!(!heads.iter().any(|head| head.starts_with("host")), "what differs from run to run is left out");
}

/// Speed-ups have stacks underneath, each with the height of the time ratio to the baseline; a failing claim is
/// reported with the largest differences.
#[test]
fn speedups_have_stacks_under_them_and_claims_that_fail_are_explained() {
    let numbers = |row: &Value| -> Vec<f64> {
        row["values"].as_array().expect("values").iter().map(|value| value.as_f64().expect("a number")).collect()
    };
    let one = SPEC.replace(", \"triad,elements=65536,iterations=2\"", "").replace("above = 1.0", "above = 100.0");
    let each = one.replace("rows = \"step\"", "rows = \"workload\"").replace(", step = \"none\"", "");
    let each = format!("{}{}", each.split_once("[[axis]]").expect("an axis").0, "[[repeat]]\nseeds = [2]\n");
    for (spec, labels) in [
        (&one, &["baseline", "100, nhcc", "100, hmg", "400, nhcc", "400, hmg"][..]),
        (&each, &["baseline", "nhcc", "hmg"][..]),
    ] {
        let bench = Bench::new(spec);
        let words = bench.words("out", &["--json"]);
        let document = json(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let rows = |figure: usize| document["figures"][figure]["rows"].as_array().expect("rows").clone();
        let stacks = &document["figures"][1];
        assert_eq!((&stacks["id"], &stacks["chart"]["kind"]), (&"small-stalls".into(), &"stacked".into()));
        assert_eq!(rows(1).iter().map(|row| row["label"].as_str().expect("text")).collect::<Vec<_>>(), labels);
        let is_summary = |row: &Value| row["summary"].as_bool().expect("a flag");
        let speedups = rows(0).iter().filter(|row| !is_summary(row)).flat_map(numbers).collect::<Vec<_>>();
        let times = std::iter::once(100.0).chain(speedups.iter().map(|speedup| 100.0 / speedup)).collect::<Vec<_>>();
        let heights: Vec<f64> = rows(1).iter().map(|row| numbers(row).iter().sum()).collect();
        assert_eq!(times.len(), heights.len());
        assert!(times.iter().zip(&heights).all(|(time, height)| (time - height).abs() < 1.0), "{times:?}, {heights:?}");
        let runs = &document["runs"]["rows"];
        let cells = stacks["evidence"]["cells"].as_array().expect("one a part");
        let last = cells.last().expect("a part")["run"].as_u64().expect("its run") as usize;
        let command = runs[last]["command"].as_str().expect("a command");
        assert!(command.starts_with("tombolo run --machine hmg-4x4 --design hmg --workload pathfinder,"), "{command}");
        if let Some(claim) = document["claims"].get(0) {
            let cause = claim["cause"].as_str().expect("it fails");
            assert!(cause.starts_with("of the time of 100, 100 -> 400: "), "{cause}");
        }
    }
}

/// Checks the refusal for a changed experiment: the message contains every element in `expected`, and no file is
/// written.
fn refused(from: &str, to: &str, expected: &[&str]) {
    let bench = Bench::new(&SPEC.replacen(from, to, 1));
    let output = bench.sweep("out", &[]);
    assert_eq!(output.status.code(), Some(2), "{to}");
    for part in expected {
        assert!(stderr(&output).contains(part), "{to}: {part:?} is not in {}", stderr(&output));
    }
    assert!(!bench.path("out").exists(), "nothing is written");
}

#[test]
fn a_wrong_spec_names_its_line_its_value_and_what_is_allowed() {
    refused("caption =", "captain =", &["spec.toml:4: captain", "`caption`"]);
    refused("rows = \"step\"", "rows = \"steps\"", &["spec.toml:9: ", "\"steps\"", "did you mean step?"]);
    refused("[\"nhcc\", \"hmg\"]", "[\"nhcc\", \"hmgg\"]", &["spec.toml:6: designs = \"hmgg\"", "did you mean hmg?"]);
    refused("triad,elements", "triad,element", &["spec.toml:7: workloads = ", "elements"]);
    refused("scale = \"1/32\"", "scale = \"1/33\"", &["scale 1/33", "1/32"]);
    refused("\"time_s\"", "\"times\"", &["spec.toml:15: metric.value = \"times\"", "did you mean time_s?"]);
    refused("gpu_link.rate=100GB/s", "gpu_link.rat=100GB/s", &["spec.toml:25: set = ", "did you mean gpu_link.rate?"]);
    refused("row = \"400\"", "row = \"401\"", &["spec.toml:33: claim.row = \"401\"", "did you mean", "400"]);
    refused("mean = \"geometric\"", "", &["rows", "only workloads have a mean"]);
    refused("id = \"small\"", "id = ", &["spec.toml:2: "]);
    refused("id = \"small\"", "id = \"../small\"", &["id", "names a folder"]);
    refused("gpu_link.rate=100GB/s", "gpu_link.rate=fast", &["spec.toml:25: set = ", "expected a rate above zero"]);
    refused("above = 1.0", "above = nan", &["faster-links-help", "must be finite"]);
    let mechanism = |kind: &str| format!("kind = \"{kind}\"\nmechanism = \"exchange-gains-nothing\"");
    refused("kind = \"direction\"", &mechanism("magnitude"), &["judged as a `mechanism` or a `direction`"]);
    let published = "[[published]]\nrow = \"100\"\ncolumn = \"hmg\"\nvalue = inf\nsource = \"none\"\n\n[[repeat]]";
    refused("[[repeat]]", published, &["published = \"100\"", "must be finite"]);
    refused("machines = [\"hmg-4x4\"]", "machines = []", &["machines", "at least one is needed"]);
    let steps = SPEC.split_once("step = [").and_then(|(_, after)| after.split_once("\n]")).expect("steps").0;
    refused(steps, "", &["axis.step", "at least one is needed"]);
    refused("\"time_s\"", "\"links.gpu0.out.byte\"", &["no counter has this path", "links.gpuN.out.bytes"]);
    let assumed = |path: &str| format!("seeds = [2]\nassumed = [\"{path}\"]");
    for path in ["gpu_link.rate", "machine.gpu_link.rate"] {
        refused("seeds = [2]", &assumed(path), &["repeat.assumed", "steps of an axis set it"]);
    }
    refused("seeds = [2]", &assumed("gpu_link.rat"), &["repeat.assumed", "no value there"]);
    refused("triad,elements=65536,iterations=2", "pathfinder,columns=65536,rows=60", &["stands for two"]);
}

#[test]
fn what_is_no_paper_and_no_figure_is_refused() {
    let output = outcome(&["reproduce", "hmgg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean hmg?"), "{}", stderr(&output));
    assert!(stderr(&outcome(&["reproduce", "all", "--figure", "8"])).contains("every paper has figures of its own"));
    assert!(stderr(&outcome(&["reproduce", "hmg", "--figure", "15"])).contains("no figure is called \"15\""));
}

#[test]
fn what_needs_no_simulation_is_reproduced_exactly() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let document = json(&["reproduce", "hmg", "--figure", "hardware-cost", "--strict", "--json", "--out", out]);
    let claims = document["claims"].as_array().expect("claims");
    assert!(claims.len() >= 4 && claims.iter().all(|claim| claim["verdict"] == "holds"), "{claims:?}");
    let shown = stdout(&outcome(&["reproduce", "hmg", "--figure", "hardware-cost", "--out", out]));
    assert!(shown.contains("55") && shown.contains("hardware-cost.html"), "{shown}");
    let page = std::fs::read_to_string(folder.path().join("hardware-cost.html")).expect("a page");
    assert!(page.contains("M + N - 2 sharers"), "it shows the claims");
    let (document, again) = (folder.path().join("hardware-cost.json"), folder.path().join("again.html"));
    assert!(
        outcome(&["report", document.to_str().expect("UTF-8"), "-o", again.to_str().expect("UTF-8")]).status.success()
    );
    assert_eq!(std::fs::read_to_string(again).expect("a page"), page, "`report` takes the document of a figure");
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_cannot_be_written_is_told() {
    let bench = Bench::new(SPEC);
    let words = bench.words("spec.toml", &[]);
    let output = outcome(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("spec.toml/points: cannot make the folder"), "{}", stderr(&output));
    assert!(Path::new(&bench.path("spec.toml")).is_file());
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_without_room_is_told_and_leaves_no_half_result() {
    let bench = Bench::new(SPEC);
    // The file size limit is one block: writes fail like on a full disk.
    let limited = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_tombolo")])
        .args(bench.words("out", &[]))
        .output()
        .expect("every Linux has a shell");
    assert_eq!(limited.status.code(), Some(2), "{}", stderr(&limited));
    assert!(stderr(&limited).contains("cannot write the file"), "{}", stderr(&limited));
    let left = fs::read_dir(bench.path("out/points")).expect("a folder").count();
    assert_eq!(left, 0, "neither results nor parts of them");
    assert!(bench.sweep("out", &[]).status.success(), "with room it goes on");
}

#[test]
fn a_step_may_have_a_machine_and_a_design_of_its_own() {
    let step = "{ label = \"400\", set = [\"gpu_link.rate=400GB/s\"] }";
    let own = SPEC.replace(step, "{ label = \"400\", machine = \"hmg-1x4\", design = \"ideal\" }");
    let bench = Bench::new(&own);
    let output = bench.sweep("out", &["--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document = document(&stdout(&output));
    let row = |index: usize| document["figures"][0]["rows"][index]["values"].as_array().expect("values").clone();
    assert_ne!(row(0)[0], row(0)[1], "the columns' designs differ");
    assert_eq!(row(1)[0], row(1)[1], "the step's design stands for both");
    let titles = document["configurations"].to_string();
    assert!(titles.contains("machine hmg-1x4") && titles.contains("design ideal"), "the report tells of them");
    refused(step, "{ label = \"400\", machine = \"hmg-9\" }", &["spec.toml:26: axis.step.machine = \"hmg-9\""]);
}

#[test]
fn a_baseline_that_names_a_design_has_it_whatever_the_step_has() {
    let step = "{ label = \"400\", set = [\"gpu_link.rate=400GB/s\"] }";
    let own = SPEC.replace(step, "{ label = \"400\", design = \"ideal\" }");
    let own = own.replace("design = \"no-remote-caching\", step = \"none\"", "design = \"no-remote-caching\"");
    assert!(!own.contains("step = \"none\""), "the baseline keeps the step");
    let bench = Bench::new(&own);
    let output = bench.sweep("out", &["--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let value = document(&stdout(&output))["figures"][0]["rows"][1]["values"][0].as_f64().expect("a number");
    assert!((value - 1.0).abs() > 1e-9, "ideal caching over itself would be 1");
}

#[test]
fn a_second_mean_stands_below_the_first() {
    let spec =
        SPEC.replace("rows = \"step\"", "rows = \"workload\"").replace("columns = \"design\"", "columns = \"step\"");
    let spec = spec.replace("designs = [\"nhcc\", \"hmg\"]", "designs = [\"hmg\"]");
    let spec = spec.replace("mean = \"geometric\"", "mean = \"geometric\"\nmean_beside = \"arithmetic\"");
    let spec = spec.replace("{ row = \"400\", columns = [\"hmg\"] }", "{ row = \"mean\", columns = [\"400\"] }");
    let spec = spec.replace("{ row = \"100\", columns = [\"hmg\"] }", "{ row = \"mean\", columns = [\"100\"] }");
    let bench = Bench::new(&spec);
    let output = bench.sweep("out", &["--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = document(&stdout(&output))["figures"][0]["rows"].as_array().expect("rows").clone();
    let labels: Vec<_> = rows.iter().map(|row| row["label"].as_str().expect("a label").to_owned()).collect();
    assert_eq!(labels[2..], ["geometric mean", "arithmetic mean"]);
    let value = |row: usize| rows[row]["values"][0].as_f64().expect("a number");
    assert!((value(2) - (value(0) * value(1)).sqrt()).abs() < 1e-12);
    assert!((value(3) - (value(0) + value(1)) / 2.0).abs() < 1e-12, "of the workloads alone");
}

#[test]
fn shares_that_follow_from_a_papers_table_are_reproduced_exactly() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("UTF-8");
    let document = json(&["reproduce", "numa-gpu", "--figure", "2", "--strict", "--json", "--out", out]);
    let claims = document["claims"].as_array().expect("claims");
    assert!(claims.len() == 5 && claims.iter().all(|claim| claim["verdict"] == "holds"), "{claims:?}");
}

#[test]
fn under_a_set_of_readings_claims_are_shown_with_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display().to_string();
    let words = ["reproduce", "hmg", "--figure", "hardware-cost", "--out", &out];
    let claims = |more: &[&str]| {
        let document = json(&[&words[..], &["--strict", "--json"], more].concat());
        let claims = document["claims"].as_array().expect("a list").clone();
        let told = |claim: &Value| format!("{} {}", claim["id"], claim["verdict"]).replace('"', "");
        (document["readings"].clone(), claims[0]["reading"].clone(), claims.iter().map(told).collect::<Vec<_>>())
    };
    let (readings, reading, told) = claims(&[]);
    assert_eq!((readings, reading), (Value::Null, Value::Null));
    assert!(told.contains(&"directory-bits holds".to_owned()), "{told:?}");
    let (readings, reading, told) = claims(&["--readings", "each-way"]);
    assert_eq!((readings, reading), ("each-way".into(), "each-way".into()));
    assert!(told.iter().all(|told| told.ends_with("@each-way shown")), "{told:?}");
    let text = stdout(&outcome(&[&words[..], &["--readings", "each-way"]].concat()));
    assert!(
        text.contains("hmg, readings each-way") && text.contains("Claims: identity, 5 of other readings"),
        "{text}"
    );
}

#[test]
fn an_unknown_set_of_readings_is_refused_with_the_sets_of_the_paper() {
    let refused = outcome(&["reproduce", "cpelide", "--readings", "artefact"]);
    assert_eq!(refused.status.code(), Some(2));
    let told = stderr(&refused);
    assert!(told.contains("did you mean artifact?") && told.contains("there are text, kernels, ctas, "), "{told}");
    let all = outcome(&["reproduce", "all", "--readings", "artifact"]);
    assert!(stderr(&all).contains("every paper has readings of its own"), "{}", stderr(&all));
    let listed = stdout(&outcome(&["list", "experiments"]));
    assert!(listed.contains("cpelide@artifact") && listed.contains("umh@virtual-gpu"), "{listed}");
    let shown = stdout(&outcome(&["show", "readings", "cpelide"]));
    assert!(shown.contains("elision.labels=asserted # CPElide's public simulator"), "{shown}");
    let help = stdout(&outcome(&["reproduce", "--help"]));
    assert!(help.contains("--readings <SET>") && help.contains("each-way"), "{help}");
}
