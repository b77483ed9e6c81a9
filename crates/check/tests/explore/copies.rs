//! Memory of which each module has its own copy, with copies behind kernels: programs with weak accesses that meet at
//! kernel boundaries keep the memory model. A shipped test catches each broken rule.

use tombolo_check::verify::{Budget, Case, Design, TestReport, TestVerdict, verify};
use tombolo_protocol::copies::BrokenCopies;

const THREADS: usize = 2;

fn reports(design: Design, tests: &[&str]) -> Vec<TestReport> {
    let cases: Vec<Case> =
        Case::kernels().into_iter().filter(|case| tests.is_empty() || tests.contains(&case.stem())).collect();
    assert!(tests.is_empty() || cases.len() == tests.len(), "{tests:?} ship");
    verify(&[design], &cases, Budget::default(), THREADS, &()).remove(0).tests
}

fn configured(words: &str) -> Design {
    Design::configured(words).unwrap_or_else(|error| panic!("{error}"))
}

/// States for all tests that are promised, per configuration, to detect changes in the rules or in the explorer.
const PINNED: [(&str, u64); 4] = [
    ("memory-side+back+copied", 31_962),
    ("memory-side+copied", 26_811),
    ("memory-side+back+copied-needed", 16_308),
    ("memory-side+copied-needed", 11_319),
];

#[test]
fn kernels_read_what_earlier_kernels_have_stored_on_any_gpu() {
    let explored = PINNED.map(|(words, _)| {
        let tests = reports(configured(words), &[]);
        let promised = || tests.iter().filter(|test| test.verdict != TestVerdict::NotPromised);
        for test in promised() {
            assert_eq!(test.verdict, TestVerdict::Ok, "{} under {words}: {:?}", test.name, test.reason);
        }
        assert_eq!(promised().count(), 12, "tests without strong accesses");
        (words, promised().map(|test| test.states).sum::<u64>())
    });
    assert_eq!(explored, PINNED);
}

#[test]
fn without_copies_a_kernel_reads_old_bytes() {
    let tests = reports(configured("memory-side+back+copied-nothing"), &["K-MP"]);
    assert_eq!(tests[0].verdict, TestVerdict::NotPromised);
    assert!(tests[0].outcomes.iter().any(|outcome| outcome.get("P1:r0") == Some(&0)), "{:?}", tests[0].outcomes);
}

#[test]
fn loads_find_the_latest_writer_of_a_page_and_miss_what_another_has_written() {
    let tests = reports(configured("memory-side+back+latest-writer"), &["K-MP", "K-Both-Write"]);
    let reaches =
        |test: &TestReport, name: &str, value| test.outcomes.iter().any(|found| found.get(name) == Some(&value));
    let named = |name: &str| tests.iter().find(|test| test.name == name).expect("it was run");
    assert!(!reaches(named("K-MP"), "P1:r0", 0), "the only writer is the latest");
    assert!(reaches(named("K-Both-Write"), "P0:r2", 0), "the other writer of the page is the latest");
}

/// Broken rules, each with exposing tests.
const SEEN: [(BrokenCopies, &[&str]); 5] = [
    (BrokenCopies::SourceSkipsL2, &["K-MP", "K-SB"]),
    (BrokenCopies::ReceiverKeepsLine, &["K-MP+reload", "K-Idle"]),
    (BrokenCopies::DirtyAfterCopy, &["K-CoWW"]),
    (BrokenCopies::WholeLineWritten, &["K-Both-Write", "K-Halo"]),
    (BrokenCopies::LaunchSkipsCopies, &["K-MP", "K-WRC"]),
];

#[test]
fn broken_rules_of_copies_are_caught_by_tests_that_ship() {
    assert_eq!(SEEN.map(|(rule, _)| rule), BrokenCopies::ALL);
    for (rule, tests) in SEEN {
        for test in reports(configured("memory-side+back+copied").breaking_copies(rule), tests) {
            assert_eq!(test.verdict, TestVerdict::Violation, "{} passes {}", rule.name(), test.name);
        }
    }
}
