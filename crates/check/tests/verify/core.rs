//! The core tests and the kernel boundary tests under every protocol, to the end; with lines written back, the variants
//! and random programs, within a budget for every change. `tombolo check` explores these further.

use std::collections::BTreeMap;
use std::path::Path;
use tombolo_check::explore::PROTOCOLS;
use tombolo_check::verify::{
    Budget, Case, Design, DesignReport, EventReachability, ModelVerdict, PLACEMENTS_OF_RANDOM, ProgressObserver,
    TestVerdict, read_tests, verify,
};
use tombolo_protocol::BrokenRule;
use tombolo_protocol::catalogue::facts;
use tombolo_protocol::vi::{BulkInvalidation, ProtocolOptions, StoreAllocation, Tracks, WritePolicy};
use tombolo_types::Promise;

/// Thread count, suited to the smallest machine for test runs.
const THREADS: usize = 2;

fn design(protocol: &str, options: ProtocolOptions) -> Design {
    let promise = if protocol == "ideal" { Promise::Nothing } else { Promise::Ptx };
    Design::new(protocol, protocol, options, promise).expect("it is listed")
}

fn promising() -> Vec<Design> {
    let named = PROTOCOLS.iter().filter(|protocol| **protocol != "ideal");
    named.map(|protocol| design(protocol, ProtocolOptions::default())).collect()
}

fn within(states_of_test: u64) -> Budget {
    Budget { states_of_placement: 20_000, states_of_test, walks: 2, ..Budget::default() }
}

/// Asserts that no test fails and no test is skipped, and prints the explored state count.
fn assert_clean(reports: &[DesignReport]) {
    for design in reports {
        for test in &design.tests {
            let told = (test.reason.as_deref().unwrap_or_default(), test.trace.as_deref().unwrap_or_default());
            let fine = matches!(test.verdict, TestVerdict::Ok | TestVerdict::Bounded);
            assert!(fine, "{} under {}: {}\n{}", test.name, design.design, told.0, told.1);
            let forbidden = test.expected == Some(ModelVerdict::Forbidden);
            assert!(!(forbidden && test.event == EventReachability::Reached), "{} under {}", test.name, design.design);
        }
        let states: u64 = design.tests.iter().map(|test| test.states).sum();
        println!("{}: {} tests ok, {states} states", design.design, design.count(TestVerdict::Ok));
    }
}

/// Designs without a host; every test run explores their core tests to the end.
fn without_host() -> Vec<Design> {
    promising().into_iter().filter(|design| !facts(design.protocol()).expect("it is listed").host).collect()
}

#[test]
#[ignore = "deep: every test to its end"]
fn the_core_tests_keep_the_model_and_reach_what_interleaving_reaches() {
    let reports = verify(&without_host(), &Case::core(), Budget::default(), THREADS, &());
    assert_clean(&reports);
    for design in reports {
        assert_eq!(design.count(TestVerdict::Ok), 52, "{}: every test is explored to its end", design.design);
        let reached = design.tests.iter().filter(|test| test.event == EventReachability::Reached).count();
        assert!(reached >= 18, "{}: {reached} of the events that the model allows", design.design);
    }
}

#[test]
#[ignore = "deep: every test to its end"]
fn a_kernel_sees_what_the_kernels_before_it_have_written() {
    let reports = verify(&promising(), &Case::kernels(), Budget::default(), THREADS, &());
    assert_clean(&reports);
    for design in reports {
        assert_eq!(design.count(TestVerdict::Ok), 16, "{}: every test is explored to its end", design.design);
    }
    let mut designs = Vec::new();
    let all_but_ideal = || PROTOCOLS.iter().filter(|protocol| **protocol != "ideal");
    let back = ProtocolOptions { write: WritePolicy::Back, ..ProtocolOptions::default() };
    designs.extend(all_but_ideal().map(|protocol| design(protocol, back)));
    for write in [WritePolicy::Through, WritePolicy::Back] {
        let remote = ProtocolOptions { write, bulk: BulkInvalidation::Remote, ..ProtocolOptions::default() };
        designs.extend(["software-flat", "software-hierarchical"].map(|protocol| design(protocol, remote)));
    }
    let reports = verify(&designs, &Case::kernels(), within(6_000), THREADS, &());
    assert_clean(&reports);
}

#[test]
#[ignore = "deep: 10,000 states a test"]
fn the_shapes_are_forbidden_and_never_reached() {
    let back = ProtocolOptions { write: WritePolicy::Back, ..ProtocolOptions::default() };
    let named = PROTOCOLS.iter().filter(|protocol| **protocol != "ideal");
    let designs = promising().into_iter().chain(named.map(|protocol| design(protocol, back)));
    let reports = verify(&designs.collect::<Vec<_>>(), &Case::shapes(), within(10_000), THREADS, &());
    assert_clean(&reports);
    for design in &reports {
        assert_eq!(design.tests.len(), 42);
        assert!(design.tests.iter().all(|test| test.expected == Some(ModelVerdict::Forbidden)), "{}", design.design);
    }
}

#[test]
fn a_polling_load_sees_the_store_in_the_end() {
    let ideal = design("ideal", ProtocolOptions { l1_coherent: false, ..ProtocolOptions::default() });
    let reports = verify(&[promising(), vec![ideal]].concat(), &Case::polling(), Budget::default(), THREADS, &());
    let (ideal, promising) = reports.split_last().expect("there are designs");
    assert_clean(promising);
    for design in promising {
        assert_eq!(design.count(TestVerdict::Ok), 3, "{}", design.design);
        assert!(design.tests.iter().all(|test| test.expected.is_none()), "the model is not queried");
    }
    assert!(ideal.tests.iter().all(|test| test.verdict == TestVerdict::NotPromised));
}

#[test]
fn the_core_tests_keep_the_model_where_lines_are_written_back() {
    written_back(60);
}

#[test]
#[ignore = "deep: 800 states a test"]
fn the_core_tests_keep_the_model_where_lines_are_written_back_within_a_larger_budget() {
    written_back(800);
}

fn written_back(states: u64) {
    let options = ProtocolOptions { write: WritePolicy::Back, ..ProtocolOptions::default() };
    let named = PROTOCOLS.iter().filter(|protocol| **protocol != "ideal");
    let designs: Vec<Design> = named.map(|protocol| design(protocol, options)).collect();
    assert_clean(&verify(&designs, &Case::core(), within(states), THREADS, &()));
}

#[test]
fn the_core_tests_keep_the_model_where_only_readers_are_sharers() {
    readers_are_sharers(75, 250);
}

#[test]
#[ignore = "deep: 6,000 states a test"]
fn the_core_tests_keep_the_model_where_only_readers_are_sharers_within_a_larger_budget() {
    readers_are_sharers(2_000, 6_000);
}

/// `core`, `kernels`: states per core test, and per kernel boundary test.
fn readers_are_sharers(core: u64, kernels: u64) {
    let writes = [WritePolicy::Through, WritePolicy::Back];
    let options = writes.map(|write| ProtocolOptions {
        write,
        stores: StoreAllocation::SharersOnly,
        ..ProtocolOptions::default()
    });
    let designs: Vec<Design> =
        options.iter().flat_map(|options| ["nhcc", "hmg"].map(|protocol| design(protocol, *options))).collect();
    assert_clean(&verify(&designs, &Case::core(), within(core), THREADS, &()));
    assert_clean(&verify(&designs, &Case::kernels(), within(kernels), THREADS, &()));
}

#[test]
fn the_core_tests_keep_the_model_where_directories_track_all_that_their_l2_holds() {
    directories_track_all(&["nhcc+back", "hmg", "hmg+back+downgrade"], 30, 80);
}

#[test]
#[ignore = "deep: 2,000 states a test"]
fn the_core_tests_keep_the_model_where_directories_track_all_within_a_larger_budget() {
    let configurations = ["nhcc", "hmg", "nhcc+back", "hmg+back", "hmg+downgrade", "hmg+back+downgrade"];
    directories_track_all(&configurations, 600, 2_000);
}

/// `core`, `kernels`: states per core test, and per kernel boundary test.
fn directories_track_all(configurations: &[&str], core: u64, kernels: u64) {
    let tracking = |name: &&str| Design::configured(&format!("{name}+track-all")).expect("it is listed");
    let designs: Vec<Design> = configurations.iter().map(tracking).collect();
    assert_clean(&verify(&designs, &Case::core(), within(core), THREADS, &()));
    assert_clean(&verify(&designs, &Case::kernels(), within(kernels), THREADS, &()));
}

/// Bytes dropped by a replaced entry must be written back: their loss is detected.
#[test]
fn a_replaced_entry_that_loses_dirty_bytes_is_caught() {
    for protocol in ["nhcc", "hmg"] {
        let broken = |tracks| ProtocolOptions {
            write: WritePolicy::Back,
            broken_rule: Some(BrokenRule::DirtyEvictionLost),
            tracks,
            ..ProtocolOptions::default()
        };
        let designs = [Tracks::Shared, Tracks::All].map(|tracks| design(protocol, broken(tracks)));
        for report in verify(&designs, &Case::core(), within(1_500), THREADS, &()) {
            assert!(report.tests.iter().any(|test| test.verdict == TestVerdict::Violation), "{}", report.design);
        }
    }
}

#[test]
fn variants_keep_the_model() {
    verify_variants(6, 60);
}

#[test]
#[ignore = "deep: 400 states a test"]
fn variants_keep_the_model_within_a_larger_budget() {
    verify_variants(1, 400);
}

/// Every variant at a multiple of `step`, within the given state count.
fn verify_variants(step: usize, states: u64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/litmus/variants");
    let variants = read_tests(&folder).expect("they are well-formed");
    assert_eq!(variants.len(), 183);
    let variants: Vec<Case> = variants.into_iter().step_by(step).collect();
    assert_clean(&verify(&promising(), &variants, within(states), THREADS, &()));
}

#[test]
fn random_programs_keep_the_model() {
    let programs: Vec<Case> = (0..100).map(|index| Case::random(7, index, PLACEMENTS_OF_RANDOM)).collect();
    let budget = Budget { states_of_random: 200, walks: 3, ..Budget::default() };
    assert_clean(&verify(&promising(), &programs, budget, THREADS, &()));
}

#[test]
fn ideal_promises_nothing_and_is_seen_to_violate() {
    let reports = verify(&[design("ideal", ProtocolOptions::default())], &Case::core(), within(4_000), THREADS, &());
    let tests = &reports[0].tests;
    assert!(tests.iter().all(|test| test.verdict == TestVerdict::NotPromised));
    let seen = tests.iter().filter(|test| test.trace.is_some()).count();
    assert!(seen >= 2, "{seen} tests show a violation");
}

#[test]
fn designs_that_are_explored_alike_share_their_explorations() {
    struct ProgressLog(std::sync::Mutex<Vec<String>>);
    impl ProgressObserver for ProgressLog {
        fn started(&self, _: &str, _: &str) {}
        fn finished(&self, test: &str, design: &str) {
            self.0.lock().unwrap().push(format!("{test} {design}"));
        }
    }
    let named = |name, options| Design::new(name, "hmg", options, Promise::Ptx).expect("it is listed");
    let back = ProtocolOptions { write: WritePolicy::Back, ..ProtocolOptions::default() };
    let designs =
        [named("one", ProtocolOptions::default()), named("other", back), named("twin", ProtocolOptions::default())];
    let cases: Vec<Case> = (0..3).map(|index| Case::random(3, index, 2)).collect();
    let heard = ProgressLog(std::sync::Mutex::default());
    let together = verify(&designs, &cases, Budget::default(), 2, &heard);
    for (design, report) in designs.iter().zip(&together) {
        let alone = verify(std::slice::from_ref(design), &cases, Budget::default(), 1, &());
        let told = |report: &DesignReport| report.tests.iter().map(|test| test.states).collect::<Vec<_>>();
        assert_eq!((&report.design, told(report)), (&design.name, told(&alone[0])));
    }
    let mut heard = heard.0.into_inner().unwrap();
    heard.sort();
    heard.dedup();
    assert_eq!(heard.len(), 9);
}

#[test]
fn reports_do_not_depend_on_the_number_of_threads() {
    let cases: Vec<Case> = (0..12).map(|index| Case::random(3, index, 3)).collect();
    let budget = Budget { states_of_random: 500, walks: 4, ..Budget::default() };
    let summary = |threads| {
        let reports = verify(&promising(), &cases, budget, threads, &());
        let tests = reports.iter().flat_map(|design| &design.tests);
        tests.map(|test| (test.name.clone(), test.states, test.reached, test.verdict)).collect::<Vec<_>>()
    };
    assert_eq!(summary(1), summary(4));
}

#[test]
fn constructs_that_are_not_supported_are_named() {
    let parse = |row: &str| {
        let text = format!("PTX test\n{{x=0;}}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n{row}\nexists x==1\n");
        Case::parse("folder/test.litmus", &text)
    };
    let expected = BTreeMap::from([
        ("fence.proxy.alias | st.weak x,1 ;", "`fence.proxy` is not supported"),
        ("bar.warp.sync 1 | st.weak x,1 ;", "`bar.warp.sync` is not supported"),
        ("bar.sync 0, 64 | st.weak x,1 ;", "may never meet"),
    ]);
    for (row, reason) in expected {
        let reports = verify(&promising()[..1], &[parse(row)], Budget::default(), 1, &());
        let test = &reports[0].tests[0];
        assert_eq!(test.verdict, TestVerdict::Unsupported, "{row}");
        assert!(test.reason.as_deref().is_some_and(|told| told.contains(reason)), "{row}: {:?}", test.reason);
    }
}

#[test]
fn barriers_and_forward_branches_are_explored() {
    let text = "PTX test\n{x=0; y=0;}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n\
        ld.relaxed.gpu r0,y | st.weak x,1 ;\n bar.cta.sync 0 | bar.cta.sync 0 ;\n\
        bne r0,0,LC00 | ;\n ld.weak r1,x | ;\n LC00: | ;\nexists P0:r1==0\n";
    let case = Case::parse("test", text);
    let reports = verify(&promising(), &[case], Budget::default(), 1, &());
    assert_clean(&reports);
    assert!(reports.iter().all(|design| design.tests[0].expected == Some(ModelVerdict::Forbidden)));
}

/// Explores a test under each promising design, and returns the verdicts.
fn verdicts(text: &str) -> Vec<TestVerdict> {
    let reports = verify(&promising(), &[Case::parse("test", text)], Budget::default(), THREADS, &());
    reports.iter().map(|design| design.tests[0].verdict).collect()
}

#[test]
fn polling_loops_are_explored_and_other_loops_are_bounded() {
    let text = |poll: &str| {
        format!(
            "PTX test\n{{x=0; y=0;}}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 1 ;\n st.weak x,1 | LC00: ;\n\
             st.release.sys y,1 | {poll} ;\n | bne r0,1,LC00 ;\n | ld.weak r1,x ;\n~exists P1:r1 == 0\n"
        )
    };
    assert!(verdicts(&text("ld.acquire.sys r0,y")).iter().all(|verdict| *verdict == TestVerdict::Ok));
    let swaps = verdicts(&text("atom.acquire.sys.cas r0,y,1,1"));
    assert!(swaps.iter().all(|verdict| *verdict == TestVerdict::Bounded), "{swaps:?}");
}

#[test]
fn barriers_with_counts_and_arrivals_are_explored() {
    let text = |count: u32| {
        format!(
            "PTX test\n{{x=0; y=0;}}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 0,gpu 0 ;\n st.weak x,1 | st.weak y,1 | \
             bar.sync 1, {count} ;\n bar.arrive 1, {count} | bar.arrive 1, {count} | ld.weak r0,x ;\n\
             | | ld.weak r1,y ;\n~exists (P2:r0 == 0 \\/ P2:r1 == 0)\n"
        )
    };
    assert!(verdicts(&text(96)).iter().all(|verdict| *verdict == TestVerdict::Ok));
    // With two arrivals, a producer and the consumer may meet, and either both producers or one of them comes first.
    let undecided = verdicts(&text(64));
    assert!(undecided.iter().all(|verdict| *verdict == TestVerdict::Unsupported), "{undecided:?}");
}

#[test]
fn arrivals_open_a_barrier_by_themselves_and_end_with_their_kernel() {
    let placed = "PTX test\n{x=0;}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 | P2@cta 0,gpu 0 ;\n";
    let arrivals = "st.weak x,1 | bar.sync 1 | bar.sync 1 ;\n bar.arrive 0, 64 | bar.sync 0, 64 | ld.weak r0,x ;\n\
        bar.arrive 0, 64 | | bar.sync 0, 64 ;\n bar.sync 1 | | ;\n~exists P2:r0 == 0\n";
    let next = "bar.arrive 0, 64 | | ;\n kernel.boundary | kernel.boundary | kernel.boundary ;\n\
        | st.weak x,1 | bar.sync 0, 64 ;\n | bar.sync 0, 64 | ld.weak r0,x ;\n~exists P2:r0 == 0\n";
    for rows in [arrivals, next] {
        let found = verdicts(&format!("{placed}{rows}"));
        assert!(found.iter().all(|verdict| *verdict == TestVerdict::Ok), "{found:?}: {rows}");
    }
}

#[test]
fn a_program_that_never_ends_is_no_violation_of_a_protocol() {
    let placed = "PTX test\n{x=0;}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n";
    let poll = "LC00: | ;\n ld.relaxed.gpu r0,x | {} ;\n bne r0,1,LC00 | {} ;\n{}exists x == 0\n";
    let texts = [
        "LC00: | ;\n goto LC00 | ;\nexists x == 0\n".to_owned(),
        "ld r0,0 | ;\n LC00: | ;\n bne r0,1,LC00 | ;\nexists x == 0\n".to_owned(),
        poll.replacen("{}", "", 3),
        poll.replacen("{}", "bar.sync 0", 1).replacen("{}", "st.relaxed.gpu x,1", 1).replacen(
            "{}",
            "bar.sync 0 | ;\n",
            1,
        ),
        poll.replacen("{}", "bar.sync 0", 1).replacen("{}", "st.relaxed.gpu x,1", 1).replacen("{}", "", 1),
    ];
    for text in texts {
        for verdict in verdicts(&format!("{placed}{text}")) {
            assert!([TestVerdict::Unsupported, TestVerdict::Bounded].contains(&verdict), "{verdict:?}: {text}");
        }
    }
}

#[test]
fn a_barrier_does_not_wait_for_who_stands_at_the_end_of_its_kernel() {
    let rows = [
        "bar.cta.sync 0 | kernel.boundary ;\n ld.weak r0,x | st.weak x,1 ;\n kernel.boundary | ;",
        "bar.cta.sync 0 | kernel.boundary ;\n ld.weak r0,x | st.weak x,1 ;\n kernel.boundary | bar.cta.sync 0 ;",
    ];
    for rows in rows {
        let text = format!("PTX test\n{{x=0;}}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n{rows}\n~exists P0:r0==1\n");
        let case = Case::parse("test", &text);
        let reports = verify(&promising(), &[case], Budget::default(), THREADS, &());
        assert_clean(&reports);
        for test in reports.iter().flat_map(|design| &design.tests) {
            assert_eq!((test.verdict, test.reached, test.allowed), (TestVerdict::Ok, 1, 1), "{rows}");
        }
    }
}

#[test]
fn barriers_that_may_never_meet_are_not_supported() {
    let verdict = |rows: &str| {
        let text = format!("PTX test\n{{x=0;}}\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n{rows}\nexists x==0\n");
        let case = Case::parse("test", &text);
        let reports = verify(&promising()[..1], &[case], Budget::default(), 1, &());
        (reports[0].tests[0].verdict, reports[0].tests[0].reason.clone())
    };
    let never = Some("barriers of a CTA may never meet".to_owned());
    assert_eq!(
        verdict("st.weak x,1 | ;\n bar.cta.sync 3 | bar.cta.sync 2 ;"),
        (TestVerdict::Unsupported, never.clone())
    );
    let skips = "ld.weak r0,x | st.weak x,1 ;\n beq r0,0,LC00 | ;\n bar.cta.sync 0 | bar.cta.sync 0 ;\n LC00: | ;";
    assert_eq!(verdict(skips), (TestVerdict::Ok, None));
    assert_eq!(verdict(&format!("{skips}\n bar.cta.sync 1 | ;")), (TestVerdict::Unsupported, never));
}
