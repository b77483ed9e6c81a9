//! Kernel boundaries elided by a table: programs with several kernels keep the memory model under every protocol, to
//! the end; programs with several kernels also catch a table's broken rules.

use tombolo_check::explore::{
    BoundaryPolicy, Config, ExplorationVerdict as Explored, PlacementParameters, Reductions, Sharing, layouts, run,
};
use tombolo_check::litmus::parse;
use tombolo_check::verify::{Budget, Case, Design, DesignReport, TestVerdict, verify};
use tombolo_protocol::elision::{BrokenElision, TableKind};
use tombolo_protocol::options::{ProtocolOptions, Remote, WritePolicy};

/// Thread count, suited to the smallest machine for test runs.
const THREADS: usize = 2;

/// Every protocol that supports elided boundaries, with the possible L2 options.
const CONFIGURATIONS: [&str; 15] = [
    "viper+back+cpelide",
    "viper+back+home-aware",
    "viper+home-aware",
    "viper+back+cached+cpelide",
    "viper+back+at-launch",
    "viper+back+cached+at-launch",
    "software-flat+cpelide",
    "software-flat+back+cpelide",
    "software-flat+back+remote+cpelide",
    "software-hierarchical+cpelide",
    "software-hierarchical+back+cpelide",
    "nhcc+cpelide",
    "nhcc+back+cpelide",
    "hmg+cpelide",
    "hmg+back+cpelide",
];

fn designs() -> Vec<Design> {
    CONFIGURATIONS.map(|words| Design::configured(words).expect("it is listed")).to_vec()
}

fn assert_clean(reports: &[DesignReport]) {
    for design in reports {
        for test in &design.tests {
            let told = (test.reason.as_deref().unwrap_or_default(), test.trace.as_deref().unwrap_or_default());
            let fine = matches!(test.verdict, TestVerdict::Ok | TestVerdict::Bounded);
            assert!(fine, "{} under {}: {}\n{}", test.name, design.design, told.0, told.1);
        }
        let states: u64 = design.tests.iter().map(|test| test.states).sum();
        println!(
            "{}: {} of {} to the end, {states} states",
            design.design,
            design.count(TestVerdict::Ok),
            design.tests.len()
        );
    }
}

#[test]
fn a_kernel_sees_what_kernels_before_it_have_written_where_boundaries_are_elided() {
    explore_kernels(2_000, 3);
}

#[test]
#[ignore = "deep: 60,000 states a test"]
fn a_kernel_sees_what_kernels_before_it_have_written_within_a_larger_budget() {
    explore_kernels(20_000, 6);
}

/// Explores programs with several kernels, within `states` per placement; requires at least `ended` complete tests per
/// design.
fn explore_kernels(states: usize, ended: usize) {
    let budget =
        Budget { states_of_placement: states, states_of_test: 3 * states as u64, walks: 2, ..Budget::default() };
    let reports = verify(&designs(), &Case::kernels(), budget, THREADS, &());
    assert_clean(&reports);
    for design in &reports {
        assert!(design.count(TestVerdict::Ok) >= ended, "{}: {}", design.design, design.count(TestVerdict::Ok));
    }
}

/// Broken rules detectable by programs with whole lines and a single stream, with an exposing configuration.
const SEEN: [(BrokenElision, &str); 12] = [
    (BrokenElision::StaleTakenAsValid, "viper+back+cached+cpelide"),
    (BrokenElision::SharedDirtyKept, "viper+back+cpelide"),
    (BrokenElision::RemoteWriteLeavesValid, "viper+back+cached+cpelide"),
    (BrokenElision::ReleaseSetsNotPresent, "viper+back+cached+cpelide"),
    (BrokenElision::ColumnsOfModuleZero, "viper+back+cached+cpelide"),
    (BrokenElision::TransitionBeforeColumns, "viper+back+cached+cpelide"),
    (BrokenElision::LocalBeforeRemote, "viper+back+cached+cpelide"),
    (BrokenElision::RemoteBeforeLocal, "viper+back+cached+cpelide"),
    (BrokenElision::StaleBytesForgotten, "viper+back+cached+cpelide"),
    (BrokenElision::OverlapTakenAsDisjoint, "viper+back+cpelide"),
    (BrokenElision::LiveRowRemoved, "viper+back+cached+cpelide"),
    (BrokenElision::StoresNotAwaited, "viper+back+home-aware"),
];

#[test]
fn broken_rules_of_tables_are_caught_by_programs_of_several_kernels() {
    let budget = Budget { states_of_placement: 20_000, states_of_test: 60_000, walks: 0, ..Budget::default() };
    let designs = SEEN.map(|(broken, words)| Design::configured(words).expect("it is listed").breaking(broken));
    for ((broken, _), report) in SEEN.iter().zip(verify(&designs, &Case::kernels(), budget, THREADS, &())) {
        let by = report.tests.iter().filter(|test| test.verdict == TestVerdict::Violation);
        let by: Vec<&str> = by.map(|test| test.name.as_str()).collect();
        println!("{broken:?}: {by:?}");
        assert!(!by.is_empty(), "{broken:?} is not seen");
    }
}

#[test]
fn what_reductions_leave_out_hides_nothing_where_boundaries_are_elided() {
    for (remote, decides) in [(Remote::Memory, TableKind::HomeAware), (Remote::Cached, TableKind::Cpelide)] {
        for text in [MESSAGE, OVER_AND_OVER] {
            let program = parse("test", text).expect("it is a test").program;
            let shape = PlacementParameters {
                gpus: 2,
                modules_per_gpu: 1,
                sharing: Sharing::Line,
                gpu_homes: false,
                shared_sms: false,
                host_memory: false,
            };
            for layout in layouts(&program, shape) {
                let outcomes = |reductions| {
                    let options = ProtocolOptions { write: WritePolicy::Back, remote, ..ProtocolOptions::default() };
                    let config = Config {
                        options,
                        boundary_policy: BoundaryPolicy::Table(decides),
                        reductions,
                        max_states: 400_000,
                        ..Config::new("viper")
                    };
                    let report = run(&program, &layout, &config, &|_| false).expect("viper is a protocol");
                    assert_eq!(report.verdict, Explored::Clean, "{layout}");
                    report.outcomes
                };
                assert_eq!(outcomes(Reductions::ALL), outcomes(Reductions::NONE), "{} {layout}", program.name);
            }
        }
    }
}

/// A store that another module reads, next to a store by the reader in the line.
const MESSAGE: &str = "PTX message { x=0; y=0; } P0@cta 0,gpu 0 | P1@cta 0,gpu 1 ;
    st.weak x, 1 | st.weak y, 1 ; kernel.boundary | kernel.boundary ; | ld.weak r0, x ; exists P1:r0 = 1";

/// A copy that becomes stale and is read again.
const OVER_AND_OVER: &str = "PTX again { x=0; } P0@cta 0,gpu 0 | P1@cta 0,gpu 1 ;
    ld.weak r0, x | ; kernel.boundary | kernel.boundary ; | st.weak x, 1 ; kernel.boundary | kernel.boundary ;
    ld.weak r1, x | ; exists P0:r1 = 1";
