//! Comparison of the model's answers with outcomes from an H100.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tombolo_check::verify::{ModelOutcomes, Observations, answers, compare, read_tests};

/// Thread count, suited to the smallest machine for test runs.
const THREADS: usize = 2;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/h100")
}

fn answered() -> Vec<ModelOutcomes> {
    answers(&read_tests(&data().join("tests")).expect("the folder holds tests"), THREADS, &())
}

/// Outcomes with their names sorted, and a flag for sequential consistency.
type Allowed = BTreeMap<BTreeSet<String>, bool>;

/// Allowed outcomes in the table, by name of the test's file.
fn table() -> BTreeMap<String, Allowed> {
    let text = std::fs::read_to_string(data().join("outcomes.csv")).expect("it ships");
    let mut tests: BTreeMap<String, Allowed> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [test, placement, outcome, allowed, sequential, _] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("six cells: {line}")
        };
        let outcomes = tests.entry(format!("{test}@{placement}").replace(':', "_")).or_default();
        if allowed == "1" {
            outcomes.insert(outcome.split(' ').map(str::to_owned).collect(), sequential == "1");
        }
    }
    tests
}

#[test]
fn answers_are_those_of_the_table() {
    let (answers, table) = (answered(), table());
    assert_eq!((answers.len(), table.len()), (301, 301));
    for answer in &answers {
        assert!(answer.is_complete(), "{}: {:?}", answer.stem(), answer.reason);
        let named = |outcome: &str| outcome.split(' ').map(str::to_owned).collect::<BTreeSet<String>>();
        let is_sequential = |known: Option<bool>| known.expect("the interleavings are few");
        let found: Allowed =
            answer.outcomes.iter().map(|one| (named(&one.outcome), is_sequential(one.sequential))).collect();
        assert_eq!(Some(&found), table.get(answer.stem()), "{}", answer.stem());
    }
}

#[test]
fn what_the_device_showed_against_the_model_is_what_its_assembler_makes() {
    let observed = Observations::read(&data().join("outcomes.csv")).expect("it ships");
    let comparison = compare(&answered(), &observed).expect("the rows are of the tests");
    assert_eq!((comparison.tests, comparison.left_out.len(), comparison.without_rows.len()), (301, 0, 0));
    let merged: BTreeSet<&str> = comparison.not_allowed.iter().map(|one| one.test.as_str()).collect();
    let shapes = ["shapes:MP+readers+reload.sys", "shapes:MP+region.sys", "shapes:MP+reload.sys"];
    assert_eq!(merged, BTreeSet::from_iter(shapes.into_iter().chain(["MP+poll"])));
    let never = |test: &str, placement: &str| {
        let rows =
            comparison.not_observed.iter().filter(|one| (&one.test[..], &one.placement[..]) == (test, placement));
        rows.map(|one| (one.outcome.as_str(), one.sequential)).collect::<Vec<_>>()
    };
    assert_eq!(never("2+2W+far.gpu", "diffcta"), [("[x]=1 [y]=1", Some(false))]);
    assert_eq!(never("MP+far.gpu", "diffcta"), []);
}
