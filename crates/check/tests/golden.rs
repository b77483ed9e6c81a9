//! Results of the shipped tests under every configuration explored by the shipped designs, pinned in `golden.toml`:
//! states and outcomes within a small budget; in `golden-deep.toml` within a larger budget. A changed row indicates a
//! changed protocol or explorer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tombolo_check::verify::{Budget, Case, Design, DesignReport, TestReport, verify};

/// Thread count, suited to the smallest machine for test runs.
const THREADS: usize = 2;

/// If this variable is set, the file is written instead of compared.
const BLESS: &str = "TOMBOLO_BLESS";

const HEAD: &str = "\
# What the shipped tests come to, by configuration and test: the verdict, the states explored, the values of each
# outcome in the order of their names. A `bounded` row counts what came before its budget was spent.
# Rewritten by: TOMBOLO_BLESS=1 cargo test -p tombolo-check --test golden -- --include-ignored
";

/// Configurations that `tombolo check` explores by default. A test of the command compares the shipped designs with
/// this list.
const CONFIGURATIONS: [&str; 18] = [
    "no-remote-caching",
    "memory-side+back",
    "peer+back",
    "software-flat",
    "software-flat+back",
    "software-flat+back+remote",
    "software-flat+back+remote+fetch",
    "software-flat+back+remote+snooped+fetch",
    "software-flat+back+never",
    "software-hierarchical",
    "nhcc",
    "nhcc+back",
    "hmg",
    "viper+back",
    "viper+back+cached",
    "viper+back+cpelide",
    "viper+back+home-aware",
    "ideal",
];

/// Configuration explored on GPUs and a host, including the tests with host threads.
const WITH_HOST: &str = "nmoesi+back";

/// Key: configuration, then test.
type Rows = BTreeMap<(String, String), String>;

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file)
}

/// Rows cut by this budget contain `bounded`.
fn budget(states_of_placement: usize, states_of_test: u64) -> Budget {
    Budget { states_of_placement, states_of_test, walks: 0, ..Budget::default() }
}

fn row(test: &TestReport) -> String {
    let values = |outcome: &BTreeMap<String, i64>| -> String {
        outcome.values().map(i64::to_string).collect::<Vec<_>>().join(" ")
    };
    let outcomes: BTreeSet<String> = test.outcomes.iter().map(values).collect();
    let listed = Vec::from_iter(outcomes).join(", ");
    format!("{}, {} states: {listed}", test.verdict.word(), test.states)
}

fn rows(reports: &[DesignReport]) -> Rows {
    let rows_of = |report: &DesignReport| -> Vec<((String, String), String)> {
        let key = |test: &TestReport| (report.design.clone(), test.file.clone().expect("shipped tests are files"));
        report.tests.iter().map(|test| (key(test), row(test))).collect()
    };
    reports.iter().flat_map(rows_of).collect()
}

fn read(text: &str) -> Rows {
    let tables: BTreeMap<String, BTreeMap<String, String>> = toml::from_str(text).expect("the golden file is TOML");
    let rows = |(design, tests): (String, BTreeMap<String, String>)| {
        tests.into_iter().map(move |(test, row)| ((design.clone(), test), row))
    };
    tables.into_iter().flat_map(rows).collect()
}

fn write(rows: &Rows) -> String {
    let mut text = HEAD.to_owned();
    let mut heading = "";
    for ((design, test), row) in rows {
        if design != heading {
            write!(text, "\n[{design:?}]\n").expect("text has room");
            heading = design;
        }
        writeln!(text, "{test:?} = {row:?}").expect("text has room");
    }
    text
}

/// The differing rows, each with expected and actual content. Missing rows are shown explicitly.
fn differences(golden: &Rows, found: &Rows) -> Vec<String> {
    let keys: BTreeSet<_> = golden.keys().chain(found.keys()).collect();
    let differ = keys.into_iter().filter(|key| golden.get(*key) != found.get(*key));
    let shown = |rows: &Rows, key| rows.get(key).cloned().unwrap_or_else(|| "no row".to_owned());
    differ
        .map(|key| format!("{} {}\n  golden: {}\n  now:    {}", key.0, key.1, shown(golden, key), shown(found, key)))
        .collect()
}

#[test]
fn the_shipped_tests_come_to_what_is_pinned() {
    assert_pinned("golden.toml", &budget(400, 600));
}

#[test]
#[ignore = "deep: 15,000 states a test"]
fn the_shipped_tests_come_to_what_is_pinned_within_a_larger_budget() {
    assert_pinned("golden-deep.toml", &budget(10_000, 15_000));
}

fn assert_pinned(file: &str, budget: &Budget) {
    let designs = CONFIGURATIONS.map(|name| Design::configured(name).expect("it is listed"));
    let mut found = rows(&verify(&designs, &Case::shipped(), *budget, THREADS, &()));
    let with_host = Design::configured(WITH_HOST).expect("it is listed");
    let cases = [Case::shipped(), Case::host()].concat();
    found.extend(rows(&verify(&[with_host], &cases, *budget, THREADS, &())));
    let pinned = std::fs::read_to_string(golden(file)).map(|text| read(&text)).unwrap_or_default();
    let differences = differences(&pinned, &found);
    if std::env::var_os(BLESS).is_some_and(|value| value == "1") {
        std::fs::write(golden(file), write(&found)).expect("the golden file can be written");
        println!("{} of {} rows differed\n{}", differences.len(), found.len(), differences.join("\n"));
        return;
    }
    let shown = differences.join("\n");
    assert!(differences.is_empty(), "{} rows differ; {BLESS}=1 rewrites them\n{shown}", differences.len());
}

#[test]
fn a_row_that_differs_is_named_with_both_values() {
    let rows = |row: &str| Rows::from([(("hmg".to_owned(), "MP.litmus".to_owned()), row.to_owned())]);
    assert_eq!(differences(&rows("ok, 7 states: 0"), &rows("ok, 7 states: 0")), [""; 0]);
    let changed = differences(&rows("ok, 7 states: 0"), &rows("ok, 8 states: 0"));
    assert_eq!(changed, ["hmg MP.litmus\n  golden: ok, 7 states: 0\n  now:    ok, 8 states: 0"]);
    assert!(differences(&rows("ok, 7 states: 0"), &Rows::new())[0].ends_with("now:    no row"));
}

#[test]
fn rows_are_read_as_they_are_written() {
    let key = |design: &str, test: &str| (design.to_owned(), test.to_owned());
    let rows = Rows::from([
        (key("hmg", "Manual/MP+RMW.litmus"), "ok, 7 states: 0 1, 1 1".to_owned()),
        (key("software-flat+back", "K-MP.litmus"), "bounded, 9 states: -1".to_owned()),
    ]);
    assert_eq!(read(&write(&rows)), rows);
}
