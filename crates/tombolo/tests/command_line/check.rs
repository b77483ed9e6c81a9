//! What `check` prints, and its exit status.

use crate::{json, outcome, stderr, stdout};
use serde_json::Value;
use std::path::PathBuf;

/// A folder of litmus tests that is gone with the value.
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
fn a_folder_is_checked_under_every_design_asked_for() {
    let files = Tests::new(&[("message.litmus", MESSAGE), ("below/proxy.litmus", PROXY), ("spin.litmus", SPINNING)]);
    let document = json(&["check", "--design", "hmg", "--design", "ideal", "--litmus", files.folder(), "--json"]);
    assert_eq!((&document["violations"], &document["bounded"]), (&Value::from(0), &Value::from(0)));
    assert_eq!(document["unsupported"], 4);
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
    assert!(tests(&document, 0)[2]["reason"].as_str().is_some_and(|reason| reason.contains("loop")));
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
fn every_mutant_of_a_design_is_caught_with_its_chart() {
    let output = outcome(&["check", "--design", "hmg", "--mutants", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let mutants = document["mutants"].as_array().expect("a list");
    assert!(mutants.len() >= 15);
    for mutant in mutants {
        assert_eq!((&mutant["caught"], &mutant["protocol"]), (&Value::from(true), &Value::from("hmg")), "{mutant}");
        assert!(
            mutant["name"].is_string() && mutant["by"]["test"].is_string() && mutant["by"]["placement"].is_string()
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
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("message") && text.contains("unreached") && text.contains("3 of 3"), "{text}");
}

#[test]
fn a_test_that_is_too_long_to_explore_is_told_and_no_violation() {
    let rows = " ld.weak r0,x ;\n".repeat(501);
    let long = format!("PTX long\n{{x=0;}}\n P0@cta 0,gpu 0 ;\n{rows}exists P0:r0 == 1\n");
    let files = Tests::new(&[("long.litmus", &long)]);
    let document = json(&["check", "--design", "hmg", "--litmus", files.folder(), "--json"]);
    let test = &tests(&document, 0)[0];
    assert!(test.to_string().contains("501 instructions in a thread; at most 500"), "{test}");
    assert_eq!(test["verdict"], "unsupported", "{test}");
}

#[test]
fn what_is_no_test_is_refused_with_file_line_and_what_was_expected() {
    let refused = |arguments: &[&str], expected: &[&str]| {
        let output = outcome(&[&["check"], arguments].concat());
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{arguments:?}");
        for part in expected {
            assert!(stderr(&output).contains(part), "{part:?} is not in {}", stderr(&output));
        }
    };
    let wrong = MESSAGE.replace("st.weak x,1", "st.strong x,1");
    let files = Tests::new(&[("message.litmus", MESSAGE), ("wrong.litmus", &wrong), ("none/notes.txt", "")]);
    refused(&["--litmus", files.folder()], &["wrong.litmus:4:", "expected .weak, .relaxed, .release"]);
    let typo = Tests::new(&[("typo.litmus", &MESSAGE.replace("P1:r1 ==", "P1:r11 =="))]);
    refused(&["--litmus", typo.folder()], &["typo.litmus:6:", "expected a register that the thread has", "r11"]);
    let typo = Tests::new(&[("typo.litmus", &MESSAGE.replace("P1:r1 == 0", "z == 0"))]);
    refused(&["--litmus", typo.folder()], &["typo.litmus:6:", "expected a location of the test"]);
    let none = files.path("none");
    refused(&["--litmus", none.to_str().expect("UTF-8")], &["at least one file that ends in .litmus"]);
    refused(&["--litmus", "no/such/file"], &["no/such/file", "cannot be read"]);
    refused(&["--design", "hmgg"], &["no design is called \"hmgg\"", "did you mean hmg?"]);
    refused(&["--design", "hmg", "--design", "hmg"], &["--design hmg", "twice"]);
    refused(&["--random", "0"], &["--random", "1..=1000000"]);
    refused(&["--seed", "1"], &["--random"]);
}
