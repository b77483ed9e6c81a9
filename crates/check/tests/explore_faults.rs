//! Every broken rule is caught under every protocol that has the rule.

mod explore_shapes;

use explore_shapes::{
    STARTS, Test, atomics, cowr, cowr_after_load, explore, isa2, layouts_of, mp, mp_second_reader, polling, spread, wrc,
};
use tombolo_check::explore::{Config, Evictions, Layout, Sharing, Start, Verdict, Violation};
use tombolo_protocol::Fault;
use tombolo_protocol::vi::WritePolicy;

const ALL: &[&str] = &["no-remote-caching", "software-flat", "software-hierarchical", "nhcc", "hmg"];
const SOFTWARE: &[&str] = &["no-remote-caching", "software-flat", "software-hierarchical"];
const DIRECTORY: &[&str] = &["nhcc", "hmg"];

/// The protocols that have the rule that `fault` breaks, and a shape that shows it.
fn catcher(fault: Fault) -> (&'static [&'static str], Test) {
    match fault {
        Fault::AcquireKeepsL1 | Fault::ReleaseSkipsStores => (ALL, mp("gpu")),
        // With a directory an acquire leaves the L2 alone.
        Fault::AcquireKeepsL2 => (SOFTWARE, mp("gpu")),
        // Every load finds what its own path has brought last, so no order is lost; what is lost is that a
        // polling load ever sees the store.
        Fault::LoadIgnoresScope => (ALL, polling("gpu")),
        Fault::ReleaseSkipsInvalidations => (DIRECTORY, mp("gpu")),
        Fault::ReleaseDrainsOwnHomesOnly => (DIRECTORY, wrc("sys")),
        Fault::ReleaseMarkedByIssuer => (DIRECTORY, mp("sys")),
        Fault::SystemReleaseDrainsOwnModuleOnly => (&["software-hierarchical", "hmg"], isa2()),
        Fault::SharerNotRecorded | Fault::StoreKeepsSharers | Fault::SilentDirectoryEviction => (DIRECTORY, mp("gpu")),
        Fault::SharerRecordedAtRequest => (DIRECTORY, cowr_after_load("gpu")),
        Fault::InvalidationNotForwarded => (&["hmg"], mp("gpu")),
        Fault::AtomicBelowHome => (ALL, atomics("gpu")),
        Fault::DirtyEvictionLost => (ALL, cowr("gpu")),
        Fault::FillSurvivesAcquire | Fault::LoadMergesAcrossAcquire => (ALL, mp_second_reader("gpu")),
        Fault::StoreKeepsFill | Fault::StorePassesMiss => (ALL, cowr_after_load("gpu")),
    }
}

fn config(protocol: &'static str, fault: Fault, start: Start) -> Config {
    let mut config = Config { start, max_states: 20_000, ..Config::new(protocol) }.with_fault(fault);
    if fault == Fault::DirtyEvictionLost {
        config.options.write = WritePolicy::Back;
    }
    if fault == Fault::LoadIgnoresScope {
        // An eviction would end the wait by chance.
        config.evictions = Evictions::Never;
    }
    config
}

/// The first layout and start in which the fault is seen.
fn caught(test: &Test, protocol: &'static str, fault: Fault) -> Option<(Layout, Start, Violation)> {
    spread(layouts_of(test, Sharing::Apart, true), 48).into_iter().find_map(|layout| {
        STARTS.into_iter().find_map(|start| match explore(test, &layout, &config(protocol, fault, start)).verdict {
            Verdict::Violated(violation) => Some((layout.clone(), start, violation)),
            Verdict::Clean | Verdict::Bounded => None,
        })
    })
}

#[test]
fn every_broken_rule_is_caught() {
    println!("| broken rule | protocol | test | where | start | seen as |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for fault in Fault::ALL {
        let (protocols, test) = catcher(fault);
        for protocol in protocols {
            let found = caught(&test, protocol, fault);
            let (layout, start, violation) = found.unwrap_or_else(|| panic!("{fault:?} passes under {protocol}"));
            println!("| {fault:?} | {protocol} | {} | {layout} | {start:?} | {violation} |", test.name);
        }
    }
}

#[test]
fn the_same_tests_pass_where_no_rule_is_broken() {
    for fault in Fault::ALL {
        let (protocols, test) = catcher(fault);
        for protocol in protocols {
            let layout = &layouts_of(&test, Sharing::Apart, true)[0];
            for start in STARTS {
                let mut config = config(protocol, fault, start);
                config.options.fault = None;
                let report = explore(&test, layout, &config);
                assert_eq!(report.verdict, Verdict::Clean, "{} under {protocol}", test.name);
            }
        }
    }
}

#[test]
fn a_violation_is_shown_as_a_chart() {
    let test = mp("gpu");
    let (layout, start, _) = caught(&test, "hmg", Fault::AcquireKeepsL1).expect("a plain message passing shows it");
    let report = explore(&test, &layout, &config("hmg", Fault::AcquireKeepsL1, start));
    let chart = report.trace.expect("a violation has a trace");
    assert!(chart.contains("--->|") && chart.contains("P1: ld.acquire.gpu r0, y"), "{chart}");
    assert!(chart.contains("forbidden outcome: "), "{chart}");
    println!("{chart}");
}
