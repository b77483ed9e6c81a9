//! The timing model under attack: designs that ship keep their promises, and broken rules are seen.

use std::ops::Range;
use tombolo_attack::{Attack, Target, TimedVerdict, attack, catch, shipped};
use tombolo_check::verify::Case;
use tombolo_machine::{DesignConfig, design, list_designs};
use tombolo_protocol::BrokenRule;

/// Runs a design: about half a minute of one core for all designs, with the checks of a test build.
const RUNS: u64 = 2_000;
/// Runs of the tests across GPUs alone, where a design has GPU homes.
const ACROSS: u64 = 4_000;

fn described(word: &str) -> DesignConfig {
    let mut tree = design(word.trim_end_matches("+back")).expect("a design that ships");
    if word.ends_with("+back") {
        tree.set("l2_write", "back").expect("a key of designs");
    }
    tree.check().expect("a design that makes sense")
}

fn attacked(targets: &[Target], seeds: Range<u64>, threads: usize) -> Vec<tombolo_attack::TimedReport> {
    let (seed, runs) = (seeds.start, seeds.end - seeds.start);
    attack(&Attack { targets, cases: &shipped(), random: true, seed, runs, threads }, &())
}

#[test]
fn every_design_that_ships_keeps_its_promise_or_is_seen_to_have_none() {
    let targets: Vec<Target> = list_designs().iter().map(|listed| Target::new(&described(listed.name))).collect();
    for report in attacked(&targets, 1..RUNS + 1, 2) {
        let first = report.first.as_ref().map(|first| format!("{}\n{}\n{}", first.small, first.program, first.setup));
        assert!(report.verdict.holds(), "{}: {:?} {}", report.design, report.verdict, first.unwrap_or_default());
        assert!(report.not_run.is_empty(), "{}: {:?}", report.design, report.not_run);
    }
}

#[test]
fn messages_across_gpus_hold_where_gpu_homes_pass_them_on() {
    let cases: Vec<Case> = Case::shapes().into_iter().filter(is_across).collect();
    let targets = ["hmg", "hmg+back", "software-hierarchical"].map(|word| Target::new(&described(word)));
    let run = Attack { targets: &targets, cases: &cases, random: false, seed: 1, runs: ACROSS, threads: 2 };
    for report in attack(&run, &()) {
        assert!(report.verdict.holds(), "{}: {:?}", report.design, report.first);
    }
}

/// Whether a shape is one of `.sys` scope.
fn is_across(case: &Case) -> bool {
    case.file.as_ref().is_some_and(|file| file.contains(".sys."))
}

#[test]
fn any_number_of_threads_gives_the_same_answer() {
    let targets = ["hmg", "ideal"].map(|name| Target::new(&described(name)));
    assert_eq!(attacked(&targets, 7..107, 1), attacked(&targets, 7..107, 3));
}

#[test]
fn a_design_that_promises_nothing_is_seen_to_misbehave() {
    let report = &attacked(&[Target::new(&described("ideal"))], 1..2, 1)[0];
    assert_eq!(report.verdict, TimedVerdict::Misbehaves);
}

/// By broken rule: a design whose protocol has it, and runs from 1 on within which it shows (measured, and half as many
/// again); or why a timed run cannot show it.
fn expected(rule: BrokenRule) -> Result<(&'static str, u64), &'static str> {
    let explorer = Err("it is of the explorer's own host: no plan and no step of a protocol asks for it");
    match rule {
        BrokenRule::AcquireKeepsL1 => Ok(("hmg", 30)),
        BrokenRule::AcquireKeepsL2 => Ok(("software-flat", 30)),
        BrokenRule::ReleaseSkipsStores => Ok(("hmg", 80)),
        BrokenRule::ReleaseSkipsInvalidations => Ok(("hmg", 600)),
        BrokenRule::ReleaseMarkedByIssuer => Ok(("hmg", 40)),
        BrokenRule::SystemReleaseDrainsOwnModuleOnly => Ok(("hmg+back", 220)),
        BrokenRule::SystemReleaseStopsAtGpuHome => Ok(("hmg", 120)),
        BrokenRule::SharerNotRecorded | BrokenRule::StoreKeepsSharers => Ok(("hmg", 30)),
        BrokenRule::StoreKeepsSiblings => Ok(("hmg", 30)),
        BrokenRule::SharerRecordedAtRequest => Ok(("hmg", 1_050)),
        BrokenRule::InvalidationNotForwarded => Ok(("hmg", 40)),
        BrokenRule::SilentDirectoryEviction => Ok(("hmg", 1_050)),
        BrokenRule::AtomicBelowHome => Ok(("hmg", 70)),
        BrokenRule::DirtyEvictionLost => Ok(("numa-coherent", 170)),
        BrokenRule::DirtyInvalidationLost => Ok(("numa-coherent", 20)),
        BrokenRule::FillSurvivesAcquire | BrokenRule::LoadMergesAcrossAcquire => Ok(("software-flat", 160)),
        BrokenRule::StoreKeepsFill => Ok(("hmg", 160)),
        BrokenRule::StorePassesMiss => Ok(("hmg", 190)),
        BrokenRule::ReleaseDrainsOwnHomesOnly => explorer,
        BrokenRule::InvalidationForwardedOnce => Ok(("hmg", 700)),
        _ => Ok(("hmg", 4000)),
        BrokenRule::LoadIgnoresScope => Err("polls that never see their flag: a run takes a million of them"),
    }
}

#[test]
fn broken_rules_are_seen_in_timed_runs() {
    let rules: Vec<(BrokenRule, &str, u64)> = BrokenRule::ALL
        .into_iter()
        .filter_map(|rule| expected(rule).ok().map(|(name, runs)| (rule, name, runs)))
        .collect();
    let cases = shipped();
    let halves = [0, 1].map(|half| rules.iter().skip(half).step_by(2));
    std::thread::scope(|scope| {
        for half in halves {
            let cases = &cases;
            scope.spawn(move || {
                for (rule, name, runs) in half {
                    let targets = [Target::new(&described(name))];
                    let run = Attack { targets: &targets, cases, random: true, seed: 1, runs: *runs, threads: 1 };
                    assert!(catch(&run, *rule).is_some(), "{rule:?} under {name} in {runs} runs");
                }
            });
        }
    });
}

#[test]
fn a_broken_rule_leaves_a_small_run_and_a_chart() {
    let config = described("hmg");
    let targets = [Target::new(&config)];
    let cases = shipped();
    let run = Attack { targets: &targets, cases: &cases, random: true, seed: 1, runs: 60, threads: 1 };
    let (seed, _) = catch(&run, BrokenRule::AcquireKeepsL1).expect("it shows within 30 runs");
    let shown = tombolo_attack::series::show(&run, seed, Some(BrokenRule::AcquireKeepsL1)).expect("it fails again");
    assert!(shown.small.starts_with("forbidden outcome"), "{}", shown.small);
    assert!(shown.trace.contains("->|") && shown.setup.contains("--set topology.gpus="), "{}", shown.trace);
}
