//! Machines with a participating host: designs keep their promise on them, and broken NMOESI rules are detected.

use tombolo_attack::report::NO_HOST;
use tombolo_attack::{Attack, Target, attack, catch, shipped};
use tombolo_check::verify::Case;
use tombolo_design::{DesignConfig, design};
use tombolo_protocol::nmoesi::BrokenNmoesi;

/// Runs per design: a few seconds on a single core.
const RUNS: u64 = 400;

/// A shipped design, with different coherence options.
fn described(name: &str, options: &[(&str, &str)]) -> DesignConfig {
    let mut tree = design(name).expect("a design that ships");
    options.iter().for_each(|(key, value)| tree.set(key, value).expect("a key of designs"));
    tree.check().expect("a design that makes sense")
}

#[test]
fn designs_with_a_host_keep_their_promise() {
    let designs = [
        described("umh", &[]),
        described("umh", &[("coherence.peer_transfer", "false"), ("coherence.silent_eviction", "false")]),
        described("umh", &[("coherence.kernel_end", "flush-all")]),
        described("zero-copy", &[]),
    ];
    let targets = designs.each_ref().map(Target::new);
    let run = Attack { targets: &targets, cases: &shipped(), random: true, seed: 1, runs: RUNS, threads: 2 };
    for report in attack(&run, &()) {
        let first = report.first.as_ref().map(|first| format!("{}\n{}\n{}", first.small, first.program, first.setup));
        assert!(report.verdict.holds(), "{}: {:?} {}", report.design, report.verdict, first.unwrap_or_default());
        assert!(report.runs == RUNS && report.not_run.is_empty(), "{}: {:?}", report.design, report.not_run);
    }
}

/// Detection of a broken NMOESI rule in timed runs under `umh`: within the given number of runs from 1 (several times
/// the first detecting run).
enum RuleDetection {
    /// In runs over all shipped tests and random programs.
    InAll(u64),
    /// In runs over shipped tests with this word in their names.
    In(&'static str, u64),
    /// In runs over tests with host work between kernels.
    BesideHost(u64),
}

/// Expected detection of a rule; or the reason why timed runs do not detect it. The explorer detects each.
fn expected(rule: BrokenNmoesi) -> Result<RuleDetection, &'static str> {
    Ok(match rule {
        BrokenNmoesi::SharedBytesEvictedSilently => RuleDetection::InAll(200),
        BrokenNmoesi::StoreKeepsExclusive | BrokenNmoesi::HomeSuppliesOverOwner => RuleDetection::InAll(240),
        BrokenNmoesi::OwnerKeptWhenShared => RuleDetection::InAll(240),
        BrokenNmoesi::SharedGrantedAlone => RuleDetection::In("K-", 240),
        BrokenNmoesi::RefusedAndSent | BrokenNmoesi::GrantedBeforeGivenUp => RuleDetection::InAll(20),
        BrokenNmoesi::ForwardAnsweredWithoutBlock => RuleDetection::In("MP+readers", 1480),
        BrokenNmoesi::InvalidationMissesL2 | BrokenNmoesi::HolderNotRecorded => RuleDetection::InAll(20),
        BrokenNmoesi::SentBackAnswersNothing => RuleDetection::InAll(120),
        BrokenNmoesi::OthersOverOwn => RuleDetection::BesideHost(720),
        BrokenNmoesi::TakesOwnerAlone | BrokenNmoesi::AtomicShares => RuleDetection::InAll(1000),
        BrokenNmoesi::MergeKeepsSharers | BrokenNmoesi::ReleaseSkipsMerge => RuleDetection::InAll(240),
        BrokenNmoesi::MergeSkipsOwned => RuleDetection::In("K-", 100),
        BrokenNmoesi::MergeKeepsOwnCopy => RuleDetection::In("K-", 160),
        BrokenNmoesi::MergeIgnoresMask | BrokenNmoesi::DirtyEvictedSilently => RuleDetection::InAll(200),
        BrokenNmoesi::OwnerMergedLast => RuleDetection::BesideHost(1080),
        BrokenNmoesi::StaleWriteBackCounts => RuleDetection::In("K-", 2840),
        BrokenNmoesi::PeerOvertakenInstalls => RuleDetection::InAll(880),
        BrokenNmoesi::CoherentLoadHitsShared | BrokenNmoesi::CoherentStoreShares => RuleDetection::BesideHost(80),
        BrokenNmoesi::LaunchSkipsMerge => RuleDetection::BesideHost(20),
        BrokenNmoesi::EndsWithoutMerge => RuleDetection::InAll(1240),
        BrokenNmoesi::GivenNotAwaited => return Err("its race is narrow: 3000 runs did not meet it"),
    })
}

#[test]
fn broken_rules_of_nmoesi_are_seen_in_timed_runs() {
    let shows = |rule: BrokenNmoesi| expected(rule).ok().map(|shows| (rule, shows));
    let rules: Vec<(BrokenNmoesi, RuleDetection)> = BrokenNmoesi::ALL.into_iter().filter_map(shows).collect();
    std::thread::scope(|scope| {
        for half in [0, 1] {
            let rules = rules.iter().skip(half).step_by(2);
            scope.spawn(move || rules.for_each(|(rule, shows)| assert_seen(*rule, shows)));
        }
    });
}

fn assert_seen(rule: BrokenNmoesi, shows: &RuleDetection) {
    let named = |cases: Vec<Case>, word: &str| -> Vec<Case> {
        let holds = |case: &Case| case.file.as_ref().is_some_and(|file| file.contains(word));
        cases.into_iter().filter(holds).collect()
    };
    let (cases, random, runs) = match *shows {
        RuleDetection::InAll(runs) => (shipped(), true, runs),
        RuleDetection::In(word, runs) => (named(shipped(), word), false, runs),
        RuleDetection::BesideHost(runs) => (named(Case::host(), "K-host"), false, runs),
    };
    let targets = [Target::new(&described("umh", &[]))];
    let run = Attack { targets: &targets, cases: &cases, random, seed: 1, runs, threads: 1 };
    assert!(catch(&run, rule).is_some(), "{rule:?} in {runs} runs");
}

#[test]
fn host_threads_between_kernels_are_timed_and_others_are_named() {
    let targets = ["umh", "zero-copy", "hmg"].map(|name| Target::new(&described(name, &[])));
    let run = Attack { targets: &targets, cases: &Case::host(), random: false, seed: 1, runs: 310, threads: 2 };
    let [umh, zero_copy, hmg] = attack(&run, &()).try_into().expect("one report a design");
    for report in [umh, zero_copy] {
        assert!(report.verdict.holds() && report.runs > 50, "{}: {:?}", report.design, report.first);
        assert!(report.not_run.iter().any(|not_run| not_run.reason.contains("they are explored, not timed")));
    }
    assert!(hmg.runs == 0 && hmg.not_run.iter().any(|not_run| not_run.reason == NO_HOST), "{:?}", hmg.not_run);
}
