//! Pages that move: programs keep the memory model while their pages move from GPU to GPU, to the host and back, by the
//! driver's rules. A shipped test catches each broken rule.

use crate::shapes::{STARTS, Test, across_kernels, atomics, cowr, cowr_after_load, explore, mp, mp_by_reduction, sb};
use std::collections::BTreeSet;
use tombolo_check::explore::{
    Config, ExplorationVerdict as Explored, PlacementParameters, Reductions, Sharing, UnrequestedChanges, layouts,
};
use tombolo_check::verify::{Budget, Case, Design, TestVerdict, verify};
use tombolo_protocol::paging::{BrokenPaging, OnFault, Paging};
use tombolo_protocol::vi::WritePolicy;

/// Thread count, suited to the smallest machine for test runs.
const THREADS: usize = 2;

const DESIGNS: [&str; 8] = [
    "memory-side+paging",
    "memory-side+back+paging",
    "peer+back+paging",
    "memory-side+back+paging-remote",
    "memory-side+back+paging-duplicates",
    "memory-side+back+paging-everybody",
    "peer+back+published",
    "peer+back+published-on-read",
];

const WRITES: [WritePolicy; 2] = [WritePolicy::Through, WritePolicy::Back];

/// The rules for the keywords `paging`, `paging-remote`, `paging-duplicates` and `paging-everybody`.
fn rules() -> [Paging; 4] {
    let faults = Paging::default();
    let remote = Paging { on_fault: OnFault::MapRemotely, ..faults };
    [faults, remote, Paging { duplicates: true, ..faults }, Paging { everybody: true, ..faults }]
}

#[test]
fn moving_pages_keep_the_model() {
    explore_moving_pages(&Budget { states_of_placement: 300, states_of_test: 450, walks: 0, ..Budget::default() }, 1);
}

#[test]
#[ignore = "deep: 6,000 states a test"]
fn moving_pages_keep_the_model_within_a_larger_budget() {
    explore_moving_pages(
        &Budget { states_of_placement: 4_000, states_of_test: 6_000, walks: 2, ..Budget::default() },
        10,
    );
}

/// Explores every shipped test under every design with moving pages; requires at least `ended` complete tests per
/// design. Prints the number of completed tests and explored states per design.
fn explore_moving_pages(budget: &Budget, ended: usize) {
    let designs = DESIGNS.map(|words| Design::configured(words).expect("it is listed"));
    let cases = [Case::core(), Case::shapes(), Case::kernels()].concat();
    for design in verify(&designs, &cases, *budget, THREADS, &()) {
        for test in &design.tests {
            let told = (test.reason.as_deref().unwrap_or_default(), test.trace.as_deref().unwrap_or_default());
            let fine = matches!(test.verdict, TestVerdict::Ok | TestVerdict::Bounded);
            assert!(fine, "{} under {}: {}\n{}", test.name, design.design, told.0, told.1);
        }
        let (ok, states) = (design.count(TestVerdict::Ok), design.tests.iter().map(|test| test.states).sum::<u64>());
        println!("{}: {ok} of {} to the end, {states} states", design.design, design.tests.len());
        assert!(ok >= ended, "{}: {ok}", design.design);
    }
}

/// Atomic page changes alone, and together with the reductions that assume a fixed home while a request is in flight.
const WITH_WHOLE_CHANGES: [Reductions; 2] = [Reductions { pages: true, ..Reductions::NONE }, Reductions::ALL];

/// Explores a test step by step and with atomic changes: no violation occurs, and both reach equal outcomes.
fn assert_same(test: &Test, gpus: u8, sharing: Sharing, moves: u8) -> [usize; 3] {
    let shape = PlacementParameters {
        gpus,
        modules_per_gpu: 1,
        sharing,
        gpu_homes: false,
        shared_sms: true,
        host_memory: false,
    };
    let (mut states, wishes) = ([0; 3], UnrequestedChanges { moves, ..UnrequestedChanges::default() });
    for (paging, write) in rules().into_iter().flat_map(|rules| WRITES.map(|write| (rules, write))) {
        for (layout, start) in layouts(&test.program, shape).iter().flat_map(|at| STARTS.map(|start| (at, start))) {
            let mut outcomes = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
            for (index, reductions) in [Reductions::NONE].into_iter().chain(WITH_WHOLE_CHANGES).enumerate() {
                let mut config = Config {
                    paging: Some(paging),
                    unrequested: wishes,
                    start,
                    reductions,
                    ..Config::new("memory-side")
                };
                config.options.write = write;
                let report = explore(test, layout, &config);
                let trace = report.trace.unwrap_or_default();
                assert_eq!(report.verdict, Explored::Clean, "{} at {layout} under {config:?}\n{trace}", test.name);
                states[index] += report.states;
                outcomes[index] = report.outcomes;
            }
            assert_eq!(outcomes[0], outcomes[1], "{} at {layout} under {paging:?}", test.name);
            assert_eq!(outcomes[0], outcomes[2], "{} at {layout} under {paging:?}", test.name);
        }
    }
    states
}

#[test]
fn a_page_that_moves_at_once_reaches_what_its_steps_reach() {
    let small = [cowr("sys"), cowr_after_load("sys"), atomics("sys"), across_kernels("K-MP+reload")];
    for test in &small {
        println!("{}: {:?} states", test.name, assert_same(test, 2, Sharing::Apart, 2));
    }
}

#[test]
#[ignore = "deep: ten seconds"]
fn a_page_that_moves_at_once_reaches_what_its_steps_reach_of_messages() {
    for test in [mp("sys"), mp("gpu"), mp_by_reduction("sys"), sb("sys")] {
        println!("{}: {:?} states", test.name, assert_same(&test, 2, Sharing::Page, 2));
    }
    println!("three GPUs: {:?} states", assert_same(&across_kernels("K-MP"), 3, Sharing::Apart, 2));
}

/// Pinned state counts, to detect changes in the rules or in the explorer: full, with atomic changes, with all
/// reductions.
#[test]
fn the_number_of_states_is_what_it_was() {
    let pinned = [
        (cowr("sys"), Sharing::Apart, [33_952, 9_463, 6_420]),
        (mp("sys"), Sharing::Page, [87_813, 23_604, 10_722]),
        (across_kernels("K-MP"), Sharing::Apart, [6_602, 1_676, 1_280]),
    ];
    for (test, sharing, states) in pinned {
        assert_eq!(assert_same(&test, 2, sharing, 1), states, "{}", test.name);
    }
}

/// Broken rules for unpublished pages, each with a design and exposing tests.
const SEEN: [(BrokenPaging, &str, &[&str]); 13] = [
    (BrokenPaging::TranslationKept, "memory-side+paging", &["Atomics.sys", "CoWR.gpu", "K-MP+reload"]),
    (BrokenPaging::LoadsNotAwaited, "memory-side+paging", &["K-MP+reload"]),
    (BrokenPaging::StoresNotAwaited, "memory-side+paging-remote", &["CoWR.gpu", "K-MP+reload"]),
    (BrokenPaging::NotWrittenBack, "memory-side+back+paging", &["Atomics.sys", "CoWR.gpu", "K-MP+reload"]),
    (BrokenPaging::LinesKept, "memory-side+paging", &["Atomics.sys", "CoWR.gpu", "K-MP+reload"]),
    (BrokenPaging::CopiedEarly, "memory-side+paging", &["Atomics.sys", "CoWR.gpu", "K-MP+reload"]),
    (BrokenPaging::MappedEarly, "memory-side+paging", &["Atomics.sys", "CoWR.gpu", "K-MP+reload"]),
    (BrokenPaging::ReadersKept, "memory-side+paging-duplicates", &["K-MP+reload"]),
    (BrokenPaging::CopyLinesKept, "memory-side+paging-duplicates", &["K-MP+reload"]),
    (BrokenPaging::WritersKept, "memory-side+paging-duplicates", &["CoWR.sys", "MP.sys", "K-MP+reload"]),
    (BrokenPaging::ArrivalUnknown, "memory-side+paging-everybody", &["Atomics.sys", "CoWR.gpu", "K-MP+reload"]),
    (BrokenPaging::MapNotAwaited, "memory-side+paging-duplicates", &["CoWR.gpu", "K-MP+reload"]),
    (BrokenPaging::ServedAsFaulted, "memory-side+paging", &["K-MP+reload"]),
];

#[test]
fn broken_rules_of_moving_pages_are_caught_by_tests_that_ship() {
    let all = BrokenPaging::ALL.into_iter().filter(|rule| !rule.is_of_published());
    assert!(all.eq(SEEN.map(|(broken, ..)| broken)));
    let budget = Budget { states_of_placement: 30_000, states_of_test: 150_000, walks: 0, ..Budget::default() };
    let all = Case::shipped();
    for (broken, words, tests) in SEEN {
        let whole = Design::configured(words).expect("it is listed");
        let design = whole.breaking_paging(broken);
        let cases: Vec<Case> = all.iter().filter(|case| tests.contains(&case.stem())).cloned().collect();
        assert_eq!(cases.len(), tests.len(), "{tests:?} ship");
        for test in &verify(&[design], &cases, budget, THREADS, &())[0].tests {
            let seen_as = test.reason.as_deref().unwrap_or_default();
            println!("{broken:?} under {words}: {} as {seen_as}, {} states", test.name, test.states);
            assert_eq!(test.verdict, TestVerdict::Violation, "{broken:?} passes {} under {words}", test.name);
        }
    }
}
