//! Files are written atomically: complete, or not at all.

use crate::{TINY, interruptible, json, outcome, small_run, stderr};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Runs `run --out` with the tiny workload.
fn run_into(path: &Path) -> std::process::Output {
    outcome(&small_run(&["--design", "hmg", "--workload", TINY, "--out", path.to_str().expect("UTF-8")]))
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).expect("a folder").count()
}

#[test]
fn a_result_replaces_what_was_there_and_nothing_stays_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("result.json");
    fs::write(&path, "old").expect("written");
    let output = run_into(&path);
    assert!(output.status.success(), "{}", stderr(&output));
    let record: Value = serde_json::from_str(&fs::read_to_string(&path).expect("there")).expect("whole");
    assert_eq!(record["design"], "hmg");
    assert_eq!(files(folder.path()), 1);
}

#[test]
#[cfg(unix)]
fn a_link_stays_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "old").expect("written");
    std::os::unix::fs::symlink(&file, &link).expect("linked");
    assert!(run_into(&link).status.success());
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert!(fs::read_to_string(&file).expect("there").starts_with('{'));
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("no").join("result.json");
    for path in [missing.as_path(), folder.path()] {
        let output = run_into(path);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty(), "nothing ran");
        assert!(stderr(&output).contains(path.to_str().expect("UTF-8")), "{}", stderr(&output));
        assert!(stderr(&output).contains("nothing was written"), "{}", stderr(&output));
    }
    assert_eq!(files(folder.path()), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_device_and_an_unwritable_folder_are_told() {
    for path in ["/dev/full", "/proc/result.json"] {
        let output = run_into(Path::new(path));
        assert_eq!(output.status.code(), Some(2), "{path}");
        assert!(stderr(&output).contains(path), "{}", stderr(&output));
    }
    assert!(fs::metadata("/dev/full").is_ok_and(|found| !found.is_file()), "a device stays a device");
}

#[test]
fn a_trace_of_narrow_warps_runs_with_idle_lanes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("narrow.tombolo");
    let path = path.to_str().expect("UTF-8");
    let recorded = outcome(&["trace", "record", "--workload", "triad,elements=65536,iterations=1", "-o", path]);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    // CTAs in the trace have 32 warps with 32 lanes; a compute unit has equally many slots, for warps with 64 lanes.
    let record = json(&["run", "--machine", "mi300a", "--design", "mi300a", "--trace", path, "--json"]);
    assert!(record["warp_instructions"].as_u64().is_some_and(|count| count > 65536 / 32));
}

#[test]
fn bad_input_leaves_the_old_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old.tombolo");
    fs::write(&path, "old").expect("written");
    let path = path.to_str().expect("UTF-8");
    let bad = ["trace", "record", "--workload", "triad,elements=none", "-o", path];
    assert_eq!(outcome(&bad).status.code(), Some(2));
    let bad = small_run(&["--design", "hmg", "--workload", "triad,elements=none", "--out", path]);
    assert_eq!(outcome(&bad).status.code(), Some(2));
    assert_eq!(fs::read_to_string(path).expect("there"), "old");
    assert_eq!(files(folder.path()), 1);
}

#[test]
fn a_file_that_is_read_is_never_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (graph, machine) = (place("roads.gr"), place("mine.toml"));
    let (roads, mine) = ("p sp 3 2\na 1 2 5\na 2 3 7\n", "base = \"hmg-1x4\"\n");
    fs::write(&graph, roads).expect("written");
    fs::write(&machine, mine).expect("written");
    let workload = format!("bfs,graph={graph}");
    // A different spelling of the path to the graph.
    let around = place("./roads.gr");
    let run = ["run", "--machine", &machine, "--design", "hmg", "--workload", &workload];
    let compare = ["compare", "--machine", &machine, "--designs", "hmg", "--workload", &workload, "--out", &machine];
    for arguments in [
        [&run[..], &["--out", &machine]].concat(),
        [&run[..], &["--out", &around]].concat(),
        [&run[..], &["--timeline", &graph]].concat(),
        compare.to_vec(),
        vec!["trace", "record", "--workload", &workload, "-o", &graph],
        vec!["trace", "import", &graph, "-o", &graph],
        vec!["report", &machine, "-o", &machine],
        vec!["validate", "--machine", &machine, "--out", &machine],
        vec!["validate", "--measured", &graph, "--out", &around],
    ] {
        let output = outcome(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("the command reads this file"), "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(
        (fs::read_to_string(graph).expect("there"), fs::read_to_string(machine).expect("there")),
        (roads.to_owned(), mine.to_owned())
    );
    assert_eq!(files(folder.path()), 2);
}

#[test]
fn a_trace_is_not_replaced_by_what_is_made_of_it() {
    let shipped = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../workload/tests/data/traces/vectoradd-a100"));
    let folder = tempfile::tempdir().expect("a folder");
    let parts = fs::read_dir(shipped).expect("it ships").map(|entry| entry.expect("readable").path());
    let parts: Vec<_> = parts.filter_map(|part| part.file_name().map(ToOwned::to_owned)).collect();
    for part in &parts {
        fs::copy(shipped.join(part), folder.path().join(part)).expect("copied");
    }
    let trace = folder.path().to_str().expect("UTF-8");
    let mut kernels = 0;
    for part in parts.iter().filter(|part| part.to_string_lossy().starts_with("kernel")) {
        let path = folder.path().join(part);
        let out = path.to_str().expect("UTF-8");
        for arguments in [
            vec!["trace", "import", trace, "-o", out],
            vec!["run", "--machine", "v100", "--design", "hmg", "--trace", trace, "--out", out],
        ] {
            let output = outcome(&arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            assert!(stderr(&output).contains("the command reads this file"), "{}", stderr(&output));
        }
        assert_eq!(fs::read(&path).ok(), fs::read(shipped.join(part)).ok());
        kernels += 1;
    }
    assert!(kernels > 1, "the list and a kernel at least");
}

#[test]
#[cfg(unix)]
fn an_interrupt_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.tombolo");
    let arguments = ["trace", "record", "--workload", "nw,length=32768", "-o", path.to_str().expect("UTF-8")];
    let mut child = interruptible(&arguments).spawn().expect("the program starts");
    while files(folder.path()) == 0 && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("every Unix has it").success());
    let status = child.wait().expect("a child");
    assert_eq!(status.code(), Some(130), "it was still recording");
    assert_eq!(files(folder.path()), 0);
}

/// Creates a named pipe.
#[cfg(target_os = "linux")]
fn pipe(folder: &Path) -> std::path::PathBuf {
    let pipe = folder.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("Linux has it").success());
    pipe
}

#[test]
#[cfg(target_os = "linux")]
fn a_pipe_that_nobody_reads_is_refused_before_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = pipe(folder.path());
    for flag in ["--out", "--timeline"] {
        let words = ["--design", "hmg", "--workload", TINY, flag, pipe.to_str().expect("UTF-8")];
        let output = outcome(&small_run(&words));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{flag}");
        assert!(stderr(&output).contains("it is a pipe that nobody reads"), "{}", stderr(&output));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_pipe_that_is_read_gets_the_whole_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = pipe(folder.path());
    let mut reader = std::process::Command::new("cat");
    let reader = reader.arg(&pipe).stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let words = ["--design", "hmg", "--workload", TINY, "--kernels", "--out", pipe.to_str().expect("UTF-8")];
    // The pipe has no reader until the reader process opens it.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while outcome(&small_run(&words)).status.code() != Some(0) {
        assert!(std::time::Instant::now() < patience, "the reader never came");
    }
    let read = reader.wait_with_output().expect("it ends").stdout;
    let record: Value = serde_json::from_slice(&read).expect("one whole document");
    assert_eq!(record["design"], "hmg");
}

#[test]
#[cfg(target_os = "linux")]
fn devices_that_take_anything_are_written_as_they_are() {
    for path in ["/dev/null", "/dev/stdout"] {
        let output = run_into(Path::new(path));
        assert!(output.status.success(), "{path}: {}", stderr(&output));
    }
}

#[test]
fn a_timeline_is_a_trace_of_the_same_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("timeline.json");
    let words = small_run(&["--design", "hmg", "--workload", TINY, "--json"]);
    let timed = [&words[..], &["--timeline", path.to_str().expect("UTF-8")]].concat();
    assert_eq!(json(&timed)["digest"], json(&words)["digest"]);
    let trace: Value = serde_json::from_str(&fs::read_to_string(&path).expect("there")).expect("whole");
    let events = trace["traceEvents"].as_array().expect("a list of events");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    let launches = json(&words)["kernel_launches"].as_u64().expect("a count") as usize;
    assert_eq!((of("M"), of("X")), (1 + 4, 4 * launches), "a run, with a track for each of four GPUs");
    let counted: std::collections::BTreeSet<&str> =
        events.iter().filter(|event| event["ph"] == "C").filter_map(|event| event["name"].as_str()).collect();
    for name in [
        "gpu0.out utilization",
        "gpu3 DRAM",
        "gpu1 L2 hits",
        "gpu2 warps",
        "gpu0 L1 misses",
        "module15.out utilization",
    ] {
        assert!(counted.contains(name), "{name}: {counted:?}");
    }
}

#[test]
fn observations_of_one_run_combine() {
    let folder = tempfile::tempdir().expect("a folder");
    let [timeline, boundaries] = ["timeline.json", "boundaries.json"].map(|name| folder.path().join(name));
    let words = small_run(&["--design", "hmg", "--workload", TINY, "--json"]);
    let paths = [timeline.to_str().expect("UTF-8"), boundaries.to_str().expect("UTF-8")];
    let all = ["--check", "--latency", "--timeline", paths[0], "--boundaries", paths[1]];
    let (plain, observed) = (json(&words), json(&[&words[..], &all].concat()));
    assert_eq!(observed["digest"], plain["digest"]);
    assert!(observed["check"]["loads"].as_u64().is_some_and(|loads| loads > 0) && plain["check"].is_null());
    assert!(observed["latency"].is_object() && plain["latency"].is_null());
    for path in paths {
        assert!(fs::metadata(path).expect("it is written").len() > 100, "{path}");
    }
}
