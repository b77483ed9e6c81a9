//! Protocols with direct transfers between caches, on GPUs and a host: every shipped test to the end, with every
//! option; the explorer's own reduction; queues with a single slot; an L2 that evicts at any time.

use crate::shapes::{Test, across_kernels, mp, sb, six, wrc};
use tombolo_check::explore::{
    ClientResources, Config, Evictions, ExplorationVerdict, PlacementParameters, ProgramLayout, Reductions, Report,
    Sharing, Start,
};
use tombolo_check::explore::{gpus_of, layouts, run};
use tombolo_check::litmus::{self, FinalState, parse};
use tombolo_check::verify::{Budget, Case, Design, DesignReport, verify};

/// Thread count, suited to the smallest machine for test runs.
const THREADS: usize = 2;

fn explored(configuration: &str, cases: &[Case], budget: Budget) -> DesignReport {
    let design = Design::configured(configuration).expect("it is listed");
    let report = verify(&[design], cases, budget, THREADS, &()).pop().expect("one design was asked for");
    for test in &report.tests {
        let told = (test.reason.as_deref().unwrap_or_default(), test.trace.as_deref().unwrap_or_default());
        let fine = matches!(test.verdict.word(), "ok" | "bounded");
        assert!(fine, "{} under {configuration}: {}\n{}", test.name, told.0, told.1);
    }
    let states: u64 = report.tests.iter().map(|test| test.states).sum();
    println!("{configuration}: {} tests, {states} states", report.tests.len());
    report
}

fn bounded(report: &DesignReport) -> Vec<&str> {
    let bounded = report.tests.iter().filter(|test| test.verdict.word() == "bounded");
    bounded.map(|test| test.name.as_str()).collect()
}

fn within(states_of_test: u64) -> Budget {
    Budget { states_of_placement: 20_000, states_of_test, walks: 2, ..Budget::default() }
}

/// `tombolo check --design umh` explores the tests to the end, except for those listed in `docs/verification.md`.
#[test]
fn the_core_tests_and_the_shapes_hold_within_a_budget() {
    explored("nmoesi", &[Case::core(), Case::shapes()].concat(), within(300));
}

#[test]
#[ignore = "deep: 10,000 states a test"]
fn the_core_tests_and_the_shapes_hold_within_a_larger_budget() {
    explored("nmoesi", &[Case::core(), Case::shapes()].concat(), within(10_000));
}

#[test]
fn kernels_and_polling_hold_to_their_end() {
    for configuration in ["nmoesi", "nmoesi+no-peers", "nmoesi+flush-all"] {
        let report = explored(configuration, &[Case::kernels(), Case::polling()].concat(), Budget::default());
        assert_eq!(bounded(&report), Vec::<&str>::new(), "{configuration}");
    }
}

#[test]
fn host_threads_hold_under_every_option_within_a_budget() {
    explore_host_threads(300, 30);
}

#[test]
#[ignore = "deep: 20,000 states a test"]
fn host_threads_hold_under_every_option_within_a_larger_budget() {
    explore_host_threads(20_000, 5_000);
}

/// Explores the host's tests: by default within `states` per test, and with other options within `states_of_option`.
fn explore_host_threads(states: u64, states_of_option: u64) {
    explored("nmoesi", &Case::host(), within(states));
    for configuration in ["nmoesi+no-peers", "nmoesi+flush-all", "nmoesi+no-peers+flush-all", "nmoesi+told-evictions"] {
        explored(configuration, &[Case::host(), Case::kernels()].concat(), within(states_of_option));
    }
}

/// Every placement for a test, from cold and from warm caches, with every assignment from locations to blocks.
fn places(test: &Test) -> Vec<(ProgramLayout, Start)> {
    let gpus = gpus_of(&test.program).max(1);
    let of = |sharing| PlacementParameters {
        gpus,
        modules_per_gpu: 1,
        sharing,
        gpu_homes: false,
        shared_sms: true,
        host_memory: true,
    };
    let all = Sharing::OF_BLOCKS.into_iter().flat_map(|sharing| layouts(&test.program, of(sharing)));
    all.flat_map(|layout| [Start::Cold, Start::Warm].map(|start| (layout.clone(), start))).collect()
}

fn explore(test: &Test, layout: &ProgramLayout, config: &Config) -> Report {
    let forbidden = |state: &FinalState| test.allowed.as_ref().is_some_and(|allowed| !allowed.contains(state));
    run(&test.program, layout, config, &forbidden).expect("it is listed")
}

/// Tests that are small enough for exploration without reductions.
fn small() -> Vec<Test> {
    const HOST_WRITES: &str = "PTX host { x=0; y=0; } P0@host | P1@cta 0,gpu 0 ;
        st.weak x, 1 | ld.acquire.sys r0, y ; st.release.sys y, 1 | ld.weak r1, x ; exists (P1:r0 == 1)";
    const KERNELS: &str = "PTX kernels { x=0; y=0; } P0@cta 0,gpu 0 | P1@cta 0,gpu 1 | P2@host ;
        st.weak x, 1 | st.weak y, 1 | kernel.boundary ; kernel.boundary | kernel.boundary | ld.weak r0, x ;
        | ld.weak r1, x | ; exists (P2:r0 == 0)";
    let parsed = [HOST_WRITES, KERNELS].map(|text| Test::from(parse("test", text).expect("it is well-formed")));
    [mp("sys"), sb("sys")].into_iter().chain(parsed).collect()
}

/// Some larger tests.
fn larger() -> Vec<Test> {
    const HOST: [&str; 5] =
        ["K-host+beside", "K-host+over-own", "K-host+owner", "CoRR+host-reads.sys", "MP+host-reads+reload.sys"];
    let with_host = HOST.map(|name| {
        let file = format!("{}/tests/data/host/{name}.litmus", env!("CARGO_MANIFEST_DIR"));
        Test::from(litmus::read(file.as_ref()).expect("it is well-formed"))
    });
    let kernels = ["K-Both-Write", "K-MP+reload", "K-Halo"].map(across_kernels);
    six("sys").into_iter().chain([wrc("sys")]).chain(kernels).chain(with_host).collect()
}

/// State limit for an exploration that need not end. Source: assumed; exploring this many takes a tenth of a second.
const PART: usize = 60_000;

/// Each test with its state limit: small tests must end. Larger tests may stop at their limit without an error.
fn with_budgets() -> impl Iterator<Item = (Test, usize)> {
    let whole = Config::new("nmoesi").max_states;
    let small = small().into_iter().map(move |test| (test, whole));
    small.chain(larger().into_iter().map(|test| (test, PART)))
}

/// Asserts a clean result, and completion if the exploration must end.
fn assert_fine(report: &Report, states: usize, what: &str) {
    let fine =
        report.verdict == ExplorationVerdict::Clean || report.verdict == ExplorationVerdict::Bounded && states == PART;
    assert!(fine, "{what}: {:?}\n{}", report.verdict, report.trace.as_deref().unwrap_or_default());
}

#[test]
fn what_is_taken_at_once_hides_no_outcome() {
    compare_with_single_steps(with_budgets().take(1));
}

#[test]
#[ignore = "deep: larger tests too"]
fn what_is_taken_at_once_hides_no_outcome_of_larger_tests() {
    compare_with_single_steps(with_budgets().skip(1));
}

/// Explores each test with and without the reduction: outcomes are equal if both explorations end.
fn compare_with_single_steps(tests: impl Iterator<Item = (Test, usize)>) {
    for (test, max_states) in tests {
        for (layout, start) in places(&test) {
            let reduced = Config { start, ..Config::new("nmoesi") };
            let whole = Config { reductions: Reductions::NONE, max_states, ..reduced };
            let (whole, reduced) = (explore(&test, &layout, &whole), explore(&test, &layout, &reduced));
            let what = format!("{} {layout} {start:?}", test.name);
            assert_eq!(reduced.verdict, ExplorationVerdict::Clean, "{what}");
            assert_fine(&whole, max_states, &what);
            assert!(whole.outcomes.is_subset(&reduced.outcomes), "{what}");
            assert!(whole.verdict == ExplorationVerdict::Bounded || whole.outcomes == reduced.outcomes, "{what}");
        }
    }
}

#[test]
fn an_l2_that_makes_room_at_any_time_shows_nothing_new() {
    for test in small() {
        for (layout, start) in places(&test) {
            let at_access = Config { start, ..Config::new("nmoesi") };
            let any_time = Config { evictions: Evictions::Spontaneous, ..at_access };
            let (seldom, often) = (explore(&test, &layout, &at_access), explore(&test, &layout, &any_time));
            assert_eq!(often.verdict, ExplorationVerdict::Clean, "{} {layout}", test.name);
            assert_eq!(seldom.outcomes, often.outcomes, "{} {layout}", test.name);
        }
    }
}

/// No deadlock arises if a queue between two nodes has a single slot per message class, regardless of the block. No
/// outcome is reachable that is unreachable with unlimited queues.
#[test]
fn queues_of_one_slot_do_not_fill_up_for_good() {
    compare_with_one_slot(|| with_budgets().take(1));
}

#[test]
#[ignore = "deep: larger tests too"]
fn queues_of_one_slot_do_not_fill_up_for_good_in_larger_tests() {
    compare_with_one_slot(|| with_budgets().skip(1));
}

fn compare_with_one_slot<I: Iterator<Item = (Test, usize)>>(tests: impl Fn() -> I) {
    for peer_transfer in [true, false] {
        for (test, max_states) in tests() {
            for (layout, start) in places(&test) {
                let mut any = Config { start, ..Config::new("nmoesi") };
                any.options.nmoesi.peer_transfer = peer_transfer;
                let one = Config { slots: Some(1), max_states, ..any };
                let (any, one) = (explore(&test, &layout, &any), explore(&test, &layout, &one));
                let what = format!("{} {layout} {start:?}", test.name);
                assert_eq!(any.verdict, ExplorationVerdict::Clean, "{what}");
                assert_fine(&one, max_states, &what);
                assert!(one.outcomes.is_subset(&any.outcomes), "{what}");
            }
        }
    }
}

/// Client resources with one to three miss registers, with unlimited ways and with a single way.
fn scarce() -> impl Iterator<Item = ClientResources> {
    [None, Some(1)].into_iter().flat_map(|ways| (1..=3).map(move |registers| ClientResources { registers, ways }))
}

/// Asserts that clients with limited resources reach no outcome beyond the outcomes with unlimited resources.
fn shows_nothing_new(test: &Test, rooms: &[ClientResources], max_states: usize) {
    for (layout, start) in places(test) {
        let plenty = Config { start, ..Config::new("nmoesi") };
        let allowed = explore(test, &layout, &plenty);
        assert_eq!(allowed.verdict, ExplorationVerdict::Clean, "{} {layout} {start:?}", test.name);
        for &room in rooms {
            let report = explore(test, &layout, &Config { room: Some(room), max_states, walks: 10, ..plenty });
            let what = format!("{} {layout} {start:?} {room:?}", test.name);
            assert_fine(&report, max_states, &what);
            assert!(report.outcomes.is_subset(&allowed.outcomes), "{what}");
        }
    }
}

/// Requests without a register or a way keep the order of their block, and every request ends.
#[test]
fn few_registers_and_one_way_show_nothing_new() {
    let rooms: Vec<ClientResources> = scarce().collect();
    let file = format!("{}/tests/data/queues/CoWR+queue.gpu.litmus", env!("CARGO_MANIFEST_DIR"));
    let queue: Test = litmus::read(file.as_ref()).expect("it is well-formed").into();
    shows_nothing_new(&queue, &rooms[..1], PART);
}

#[test]
#[ignore = "deep: every room and larger tests"]
fn few_registers_and_one_way_show_nothing_new_in_larger_tests() {
    let rooms: Vec<ClientResources> = scarce().collect();
    small().iter().for_each(|test| shows_nothing_new(test, &rooms, PART));
    let one_of_each = [rooms[0], rooms[3]];
    larger().iter().for_each(|test| shows_nothing_new(test, &one_of_each, PART));
}
