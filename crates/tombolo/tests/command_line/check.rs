//! Printed output and exit status for `check`.

use crate::{json, outcome, stderr, stdout};
use serde_json::Value;
use std::path::PathBuf;

/// A temporary folder with litmus tests, which is removed on drop.
struct Tests(tempfile::TempDir);

impl Tests {
    fn new(files: &[(&str, &str)]) -> Tests {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("created");
            std::fs::write(path, text).expect("written");
        }
        Tests(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn folder(&self) -> &str {
        self.0.path().to_str().expect("UTF-8")
    }
}

const MESSAGE: &str = "PTX message\n{x=0; y=0;}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n\
    st.weak x,1 | ld.acquire.gpu r0,y ;\n st.release.gpu y,1 | ld.weak r1,x ;\n\
    ~exists (P1:r0 == 1 /\\ P1:r1 == 0)\n";
const SPINNING: &str = "PTX spinning\n{x=0;}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n\
    st.relaxed.gpu x,1 | LC00: ;\n | ld.relaxed.gpu r0,x ;\n | bne r0,1,LC00 ;\nexists P1:r0 == 1\n";
const PROXY: &str = "PTX proxy\n{x=0;}\n P0@cta 0,gpu 0 ;\n fence.proxy.alias ;\nexists x == 0\n";

fn tests(document: &Value, design: usize) -> &Vec<Value> {
    document["designs"][design]["tests"].as_array().expect("a list")
}

#[test]
fn copies_that_overlap_with_kernels_are_refused() {
    let overlapping = "base = \"memcpy\"\nplacement.kind = \"duplicated\"\nplacement.overlap = true\n";
    let files = Tests::new(&[("own.toml", overlapping)]);
    let own = files.path("own.toml");
    let output = outcome(&["check", "--design", own.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("copies that overlap with kernels are not explored"), "{}", stderr(&output));
}

/// Runs `check` and returns exit status and document.
fn checked(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = outcome(&[&["check", "--json"], arguments].concat());
    let document = serde_json::from_slice(&output.stdout);
    (output.status.code(), document.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output))))
}

#[test]
fn a_folder_is_checked_under_every_design_asked_for() {
    let files = Tests::new(&[("message.litmus", MESSAGE), ("below/proxy.litmus", PROXY), ("spin.litmus", SPINNING)]);
    let designs = ["--design", "hmg", "--design", "ideal"];
    let (status, document) = checked(&[&designs[..], &["--litmus", files.folder()]].concat());
    assert_eq!(status, Some(2), "a test is unsupported");
    assert_eq!((&document["violations"], &document["bounded"]), (&Value::from(0), &Value::from(0)));
    assert_eq!(document["unsupported"], 2);
    let names: Vec<&Value> = tests(&document, 0).iter().map(|test| &test["name"]).collect();
    assert_eq!(names, ["proxy", "message", "spinning"], "in order of their paths");
    let message = &tests(&document, 0)[1];
    assert_eq!(message["file"], files.path("message.litmus").to_str().expect("UTF-8"));
    assert_eq!((&message["event"], &message["expected"]), (&Value::from("unreached"), &Value::from("forbidden")));
    assert_eq!(message["verdict"], "ok");
    assert!(message["states"].as_u64().is_some_and(|states| states > 1000));
    let outcomes = message["outcomes"].as_array().expect("a list");
    assert_eq!(outcomes.len(), 3);
    assert!(outcomes.iter().all(|outcome| outcome["P1:r0"].is_i64() && outcome["[x]"] == 1));
    assert_eq!(tests(&document, 0)[0]["verdict"], "unsupported");
    assert_eq!(tests(&document, 0)[0]["expected"], Value::Null);
    assert_eq!(tests(&document, 0)[2]["verdict"], "ok", "a loop that only polls");
}

#[test]
fn ideal_is_not_promised_and_seen_to_violate() {
    let files = Tests::new(&[("message.litmus", MESSAGE)]);
    let document = json(&["check", "--design", "ideal", "--litmus", files.folder(), "--json"]);
    let message = &tests(&document, 0)[0];
    assert_eq!((&message["verdict"], &message["event"]), (&Value::from("not promised"), &Value::from("reached")));
    assert!(message["trace"].as_str().is_some_and(|trace| trace.contains("forbidden outcome")));
}

#[test]
#[ignore = "deep: 41 broken rules"]
fn every_mutant_of_a_design_is_caught_with_its_chart() {
    let output = outcome(&["check", "--design", "hmg", "--mutants", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let mutants = document["mutants"].as_array().expect("a list");
    assert!(mutants.len() >= 15);
    for mutant in mutants {
        assert_eq!((&mutant["caught"], &mutant["protocol"]), (&Value::from(true), &Value::from("hmg")), "{mutant}");
        let (by, first) = (&mutant["by"], &mutant["by"]["first"]);
        assert!(by["tests"].as_u64().is_some_and(|tests| (1..=3).contains(&tests)), "{mutant}");
        let tried = if by["tests"] == 3 { 0 } else { 60 };
        assert!(by["random"].is_u64() && by["random_tried"] == tried, "random programs are tried where tests are few");
        assert!(mutant["name"].is_string() && first["test"].is_string() && first["placement"].is_string(), "{mutant}");
        assert!(
            first["seen_as"].is_string() && ["cold", "warm"].map(Value::from).contains(&first["start"]),
            "{mutant}"
        );
        assert!(mutant["trace"].as_str().is_some_and(|trace| trace.contains("L2 m0")), "{mutant}");
    }
}

#[test]
fn a_design_of_ones_own_is_checked_by_its_path() {
    let files = Tests::new(&[("message.litmus", MESSAGE), ("own.toml", "base = \"hmg\"\nl2_write = \"back\"\n")]);
    let own = files.path("own.toml");
    let document = json(&["check", "--design", own.to_str().expect("UTF-8"), "--litmus", files.folder(), "--json"]);
    assert_eq!(tests(&document, 0)[0]["verdict"], "ok");
}

#[test]
fn a_promise_of_kernel_boundaries_is_held_to_programs_that_use_nothing_else() {
    let kernels = "PTX kernels\n{x=0;}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 1 ;\n st.weak x,1 | ;\n\
        kernel.boundary | kernel.boundary ;\n | ld.weak r0,x ;\n~exists (P1:r0 == 0)\n";
    let own = "base = \"software-flat\"\npromises = [\"kernel-boundary\"]\n";
    let files = Tests::new(&[("kernels.litmus", kernels), ("message.litmus", MESSAGE), ("own.toml", own)]);
    let path = files.path("own.toml");
    let document = json(&["check", "--design", path.to_str().expect("UTF-8"), "--litmus", files.folder(), "--json"]);
    let verdicts: Vec<&Value> = tests(&document, 0).iter().map(|test| &test["verdict"]).collect();
    assert_eq!(verdicts, ["ok", "not promised"]);
}

#[test]
fn a_design_without_a_rule_to_break_has_no_mutants() {
    let output = outcome(&["check", "--design", "ideal", "--mutants"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--mutants ideal: there is no rule"), "{}", stderr(&output));
}

#[test]
fn random_programs_are_the_same_for_the_same_seed() {
    let run = |seed| {
        let mut document = json(&["check", "--design", "nhcc", "--random", "3", "--seed", seed, "--json"]);
        document["host"].take();
        document["provenance"].take();
        document
    };
    let document = run("7");
    assert_eq!(document, run("7"));
    assert_ne!(document, run("8"));
    assert_eq!(tests(&document, 0).len(), 3);
    assert!(tests(&document, 0).iter().all(|test| test["expected"] == "forbidden" && test["event"] == "unreached"));
}

#[test]
fn a_table_is_printed_for_people() {
    let files = Tests::new(&[("message.litmus", MESSAGE)]);
    let output = outcome(&["check", "--design", "hmg", "--litmus", files.folder()]);
    assert!(output.status.success() && stderr(&output) == "1 test to go\n", "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("message") && text.contains("unreached") && text.contains("3 of 3"), "{text}");
}

#[test]
fn a_test_that_is_too_long_to_explore_is_told_and_no_violation() {
    let rows = " ld.weak r0,x ;\n".repeat(501);
    let long = format!("PTX long\n{{x=0;}}\n P0@cta 0,gpu 0 ;\n{rows}exists P0:r0 == 1\n");
    let files = Tests::new(&[("long.litmus", &long)]);
    let (status, document) = checked(&["--design", "hmg", "--litmus", files.folder()]);
    assert_eq!((status, &document["violations"]), (Some(2), &Value::from(0)));
    let test = &tests(&document, 0)[0];
    assert!(test.to_string().contains("501 instructions in a thread; at most 500"), "{test}");
    assert_eq!(test["verdict"], "unsupported", "{test}");
}

#[test]
fn a_test_with_a_host_thread_is_unsupported_where_the_machine_has_no_host() {
    let with_host = MESSAGE.replace("cta 1,gpu 0", "host").replace(".gpu", ".sys");
    let files =
        Tests::new(&[("host.litmus", &with_host), ("narrow.litmus", &with_host.replace("acquire.sys", "acquire.gpu"))]);
    let path = files.path("host.litmus");
    let (status, document) = checked(&["--design", "hmg", "--litmus", path.to_str().expect("UTF-8")]);
    let test = &tests(&document, 0)[0];
    assert_eq!((status, &test["verdict"]), (Some(2), &Value::from("unsupported")), "{test}");
    let reason = "it has host threads, and the machine of hmg has no host to run them";
    assert_eq!(test["reason"], reason);
    let (_, document) = checked(&["--design", "hmg", "--litmus", files.folder()]);
    let narrow = &tests(&document, 0)[1];
    assert_eq!(narrow["verdict"], "unreadable");
    assert!(narrow["reason"].to_string().contains("narrow.litmus:4:26: expected sys: a host thread"), "{narrow}");
}

#[test]
fn an_unreadable_test_of_many_is_a_row_and_the_others_are_run() {
    let wrong = MESSAGE.replace("st.weak x,1", "st.strong x,1");
    let files = Tests::new(&[("a.litmus", &wrong), ("b.litmus", MESSAGE), ("c.litmus", "")]);
    std::fs::write(files.path("d.litmus"), [MESSAGE.as_bytes(), b"\xff"].concat()).expect("written");
    std::fs::create_dir(files.path("e.litmus")).expect("created");
    let (status, document) = checked(&["--design", "hmg", "--design", "nhcc", "--litmus", files.folder()]);
    assert_eq!(status, Some(2));
    assert_eq!((&document["unreadable"], &document["unsupported"]), (&Value::from(8), &Value::from(0)));
    for design in 0..2 {
        let verdicts: Vec<&Value> = tests(&document, design).iter().map(|test| &test["verdict"]).collect();
        assert_eq!(verdicts, ["unreadable", "ok", "unreadable", "unreadable", "unreadable"]);
    }
    let unread = &tests(&document, 0)[0];
    assert_eq!((&unread["name"], &unread["event"]), (&Value::from("a"), &Value::from("unreached")));
    assert_eq!((&unread["expected"], &unread["states"]), (&Value::Null, &Value::from(0)));
    let place = format!("{}:4:4: expected .weak", files.path("a.litmus").display());
    assert!(unread["reason"].as_str().is_some_and(|reason| reason.starts_with(&place)), "{unread}");
    assert_eq!(document["notes"].as_array().map(Vec::len), Some(5), "one for each and how many");
}

#[test]
fn what_was_not_run_is_told_on_standard_error_and_may_be_accepted() {
    let files = Tests::new(&[("message.litmus", MESSAGE), ("proxy.litmus", PROXY), ("none.litmus", "")]);
    let run = |more: &[&str]| outcome(&[&["check", "--design", "hmg", "--litmus", files.folder()], more].concat());
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stdout(&refused).contains("3 of 3"), "the table is printed: {}", stdout(&refused));
    for part in ["none.litmus:1:1: expected", "2 of 3 tests were not run: 1 unreadable, 1 unsupported", "--partial"] {
        assert!(stderr(&refused).contains(part), "{part}: {}", stderr(&refused));
    }
    let accepted = run(&["--partial"]);
    assert_eq!(accepted.status.code(), Some(0));
    assert!(stderr(&accepted).contains("warning: 2 of 3 tests were not run"), "{}", stderr(&accepted));
}

#[test]
fn the_document_is_written_to_its_file_too_where_a_test_is_unreadable() {
    let files = Tests::new(&[("message.litmus", MESSAGE), ("none.litmus", "")]);
    let out = files.path("out.json");
    let out = out.to_str().expect("UTF-8");
    let (status, document) = checked(&["--design", "hmg", "--litmus", files.folder(), "--out", out]);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(out).expect("written")).expect("one document");
    assert_eq!((status, written), (Some(2), document));
}

#[test]
fn answers_that_are_no_verdict_of_the_model_leave_the_status_at_zero() {
    let files = Tests::new(&[("message.litmus", MESSAGE)]);
    let (status, document) = checked(&["--design", "ideal", "--litmus", files.folder()]);
    assert_eq!((status, &tests(&document, 0)[0]["verdict"]), (Some(0), &Value::from("not promised")));
    assert_eq!(document["notes"], Value::Array(Vec::new()));
}

#[test]
fn a_path_without_tests_and_wrong_arguments_are_refused_before_anything_is_run() {
    let refused = |arguments: &[&str], expected: &[&str]| {
        let output = outcome(&[&["check"], arguments].concat());
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{arguments:?}");
        for part in expected {
            assert!(stderr(&output).contains(part), "{part:?} is not in {}", stderr(&output));
        }
    };
    let files = Tests::new(&[("message.litmus", MESSAGE), ("none/notes.txt", "")]);
    let none = files.path("none");
    refused(&["--litmus", none.to_str().expect("UTF-8")], &["at least one file that ends in .litmus"]);
    refused(&["--litmus", "no/such/file"], &["no/such/file", "cannot be read"]);
    refused(&["--design", "hmgg"], &["no design is called \"hmgg\"", "did you mean hmg?"]);
    refused(&["--design", "hmg", "--design", "hmg"], &["--design hmg", "twice"]);
    refused(&["--random", "0"], &["--random", "1..=1000000"]);
    refused(&["--seed", "2"], &["--random", "--timed"]);
    refused(&["--timed", "0"], &["--timed"]);
}

#[test]
fn timed_runs_are_told_by_design_and_the_same_at_any_number_of_threads() {
    let run = |threads| {
        let arguments = ["check", "--timed", "40", "--design", "hmg", "--design", "ideal", "--seed", "3", "--threads"];
        json(&[&arguments[..], &[threads, "--json"]].concat())["timed"].take()
    };
    let timed = run("1");
    assert_eq!(timed, run("2"));
    assert_eq!((&timed[0]["verdict"], &timed[0]["runs"]), (&Value::from("ok"), &Value::from(40)));
    assert_eq!(timed[1]["verdict"], "not promised");
}

#[test]
fn what_no_stream_expresses_is_not_run_in_time_and_said() {
    let branching = MESSAGE.replace("st.weak x,1 |", "beq r9,1,LC00 |").replace(" ~exists", " LC00: | ;\n ~exists");
    let host = MESSAGE.replace("cta 1,gpu 0", "host").replace(".gpu", ".sys");
    let files = [
        ("message.litmus", MESSAGE),
        ("proxy.litmus", PROXY),
        ("branching.litmus", &branching),
        ("host.litmus", &host),
    ];
    let tests = Tests::new(&files);
    let arguments = ["check", "--timed", "9", "--design", "nhcc", "--litmus", tests.folder(), "--json", "--partial"];
    let report = json(&arguments)["timed"][0].take();
    assert_eq!(report["verdict"], "ok");
    assert_eq!(report["not_run"].as_array().expect("a list").len(), 3, "{report}");
    assert!(report["not_run"].to_string().contains("no stream expresses host threads"), "{report}");
}

/// Runs `check --model` and returns exit status and document.
fn modelled(arguments: &[&str]) -> (Option<i32>, Value) {
    checked(&[&["--model"], arguments].concat())
}

#[test]
fn the_model_lists_its_outcomes_and_which_are_sequentially_consistent() {
    let typed =
        MESSAGE.replace("st.release.gpu", "st.release.gpu.global.u32").replace("acquire.gpu", "relaxed.gpu.u32");
    let files = Tests::new(&[("MP@far.litmus", &typed), ("below/proxy.litmus", PROXY), ("broken.litmus", "")]);
    let (status, document) = modelled(&[files.folder()]);
    assert_eq!(status, Some(2), "two tests have no answer");
    let tests = document["tests"].as_array().expect("a list");
    let verdicts: Vec<&Value> = tests.iter().map(|test| &test["verdict"]).collect();
    assert_eq!(verdicts, ["ok", "unsupported", "unreadable"], "in order of their paths");
    let message = &tests[0];
    assert_eq!((&message["expected"], &message["name"]), (&Value::from("allowed"), &Value::from("message")));
    let outcomes = message["outcomes"].as_array().expect("a list");
    let listed: Vec<(&str, &Value, &Value)> = outcomes
        .iter()
        .map(|one| (one["outcome"].as_str().expect("text"), &one["sequential"], &one["event"]))
        .collect();
    let (yes, no) = (&Value::from(true), &Value::from(false));
    assert_eq!(
        listed,
        [
            ("P1:r0=0 P1:r1=0 [x]=1 [y]=1", yes, no),
            ("P1:r0=0 P1:r1=1 [x]=1 [y]=1", yes, no),
            ("P1:r0=1 P1:r1=0 [x]=1 [y]=1", no, yes),
            ("P1:r0=1 P1:r1=1 [x]=1 [y]=1", yes, no),
        ]
    );
    assert_eq!(outcomes[0]["values"]["P1:r1"], 0);
    assert_eq!(modelled(&[files.folder(), "--partial"]).0, Some(0));
    let text = stdout(&outcome(&["check", "--model", files.path("MP@far.litmus").to_str().expect("UTF-8")]));
    assert!(text.contains("P1:r0=1 P1:r1=0") && text.contains("sequentially consistent"), "{text}");
}

#[test]
fn observations_are_held_to_the_model() {
    let files = Tests::new(&[
        ("MP@far.litmus", MESSAGE),
        ("seen.csv", "test,placement,outcome,count\nMP,far,P1:r0=1 P1:r1=0,3\nMP,far,P1:r0=0 P1:r1=0,5\n"),
        ("fine.csv", "count,outcome,placement,test\n5,P1:r0=0 P1:r1=0,far,MP\n"),
        ("strange.csv", "count,outcome,placement,test\n5,P1:r0=0,near,MP\n"),
        ("wrong.csv", "test,placement,outcome\n"),
    ]);
    let run = |table: &str| {
        let table = files.path(table);
        let file = files.path("MP@far.litmus");
        let paths = [file.to_str().expect("UTF-8"), "--observed", table.to_str().expect("UTF-8")];
        modelled(&paths)
    };
    let (status, document) = run("seen.csv");
    assert_eq!(status, Some(1), "what the model forbids was seen");
    let observed = &document["observed"];
    assert_eq!(observed["not_allowed"][0]["outcome"], "P1:r0=1 P1:r1=0");
    assert_eq!(observed["not_allowed"][0]["count"], 3);
    let unseen: Vec<&Value> =
        observed["not_observed"].as_array().expect("a list").iter().map(|one| &one["outcome"]).collect();
    assert_eq!(unseen, ["P1:r0=0 P1:r1=1", "P1:r0=1 P1:r1=1"]);
    assert_eq!(run("fine.csv").0, Some(0), "what was not seen proves nothing");
    let (status, document) = run("strange.csv");
    assert_eq!(status, Some(2));
    assert_eq!(document["observed"]["left_out"][0]["reason"], "there is no file MP@near.litmus");
    let table = files.path("wrong.csv");
    let failed = outcome(&["check", "--model", files.folder(), "--observed", table.to_str().expect("UTF-8")]);
    assert_eq!(failed.status.code(), Some(2));
    assert!(stderr(&failed).contains("found no column count"), "{}", stderr(&failed));
}

#[test]
fn the_model_takes_no_design() {
    let files = Tests::new(&[("message.litmus", MESSAGE)]);
    for other in [&["--design", "hmg"][..], &["--random", "3"], &["--mutants"], &["--timed"], &["--seed", "7"]] {
        let output = outcome(&[&["check", "--model", files.folder()], other].concat());
        assert_eq!(output.status.code(), Some(2), "{other:?}");
    }
    assert_eq!(outcome(&["check", "--observed", "seen.csv"]).status.code(), Some(2), "it goes with --model");
}
