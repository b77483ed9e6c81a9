//! Small tests written for Tombolo, and the effects of PTX spellings, under every promising protocol.

use std::path::Path;
use tombolo_check::explore::PROTOCOLS;
use tombolo_check::verify::{
    Budget, Case, Design, DesignReport, EventReachability, ModelVerdict, TestReport, TestVerdict, read_tests, verify,
};

/// Thread count, suited to the smallest machine for test runs.
const THREADS: usize = 2;

fn reports(cases: &[Case], budget: Budget) -> Vec<DesignReport> {
    let promising = PROTOCOLS.iter().filter(|protocol| **protocol != "ideal");
    let designs: Vec<Design> = promising.map(|name| Design::configured(name).expect("it is listed")).collect();
    verify(&designs, cases, budget, THREADS, &())
}

fn tests(reports: &[DesignReport]) -> impl Iterator<Item = (&str, &TestReport)> {
    reports.iter().flat_map(|design| design.tests.iter().map(|test| (design.design.as_str(), test)))
}

#[test]
fn no_protocol_reaches_what_the_synthetic_tests_forbid() {
    explore_synthetic(3_000);
}

#[test]
#[ignore = "deep: 40,000 states a test"]
fn no_protocol_reaches_what_the_synthetic_tests_forbid_within_a_larger_budget() {
    explore_synthetic(40_000);
}

fn explore_synthetic(states: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/synthetic");
    let expected = std::fs::read_to_string(folder.join("expected.csv")).expect("it is there");
    let expected: Vec<(&str, &str)> = expected.lines().skip(1).filter_map(|line| line.split_once(',')).collect();
    let cases = read_tests(&folder).expect("the folder holds tests");
    assert_eq!(cases.len(), expected.len());
    let reports = reports(&cases, Budget { states_of_placement: 20_000, states_of_test: states, ..Budget::default() });
    for design in &reports {
        for (test, (file, event)) in design.tests.iter().zip(&expected) {
            let told = format!("{file} under {}: {:?} {:?}", design.design, test.reason, test.trace);
            assert!(test.file.as_deref().is_some_and(|read| read.ends_with(file)), "{told}");
            let model = if *event == "allowed" { ModelVerdict::Allowed } else { ModelVerdict::Forbidden };
            assert_eq!(test.expected, Some(model), "{told}");
            assert!(matches!(test.verdict, TestVerdict::Ok | TestVerdict::Bounded), "{told}");
        }
    }
}

/// A message from P0 to P1: the data must arrive together with the flag.
fn message(placements: &str, store: &str, load: &str) -> Case {
    let text = format!(
        "PTX test\n{{x=0; y=0;}}\n {placements} ;\n st.weak x,1 | {load} ;\n {store} | ld.weak r1,x ;\n\
         ~exists (P1:r0 == 1 /\\ P1:r1 == 0)\n"
    );
    Case::parse("test.litmus", &text)
}

#[test]
fn a_message_keeps_its_data_behind_fences_of_one_direction() {
    let rows = ("fence.release.gpu | ;\n st.relaxed.gpu y,1", "ld.relaxed.gpu r0,y ;\n | fence.acquire.gpu");
    let case = message("P0@cta 0,gpu 0 | P1@cta 1,gpu 0", rows.0, rows.1);
    for (design, test) in tests(&reports(&[case], Budget::default())) {
        assert_eq!((test.verdict, test.expected), (TestVerdict::Ok, Some(ModelVerdict::Forbidden)), "{design}");
    }
}

#[test]
fn a_message_keeps_its_data_between_ctas_of_a_cluster_alone() {
    let case = |placements| message(placements, "st.release.cluster y,1", "ld.acquire.cluster r0,y");
    let together = case("P0@cta 0,cluster 0,gpu 0 | P1@cta 1,cluster 0,gpu 0");
    let apart = case("P0@cta 0,gpu 0 | P1@cta 1,gpu 0");
    let reports = reports(&[together, apart], Budget::default());
    for design in &reports {
        let [together, apart] = &design.tests[..] else { panic!("two tests") };
        assert_eq!(
            (together.verdict, together.expected),
            (TestVerdict::Ok, Some(ModelVerdict::Forbidden)),
            "{}",
            design.design
        );
        assert_eq!(
            (apart.verdict, apart.expected),
            (TestVerdict::Ok, Some(ModelVerdict::Allowed)),
            "{}",
            design.design
        );
    }
    assert!(tests(&reports).any(|(_, test)| test.event == EventReachability::Reached), "some L1 keeps the data stale");
}
