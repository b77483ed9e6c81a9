//! The timing model under attack: shipped designs keep their promises, and broken rules are detected.

use std::ops::Range;
use tombolo_attack::{Attack, Target, TimedVerdict, at_boundaries, attack, attack_shipped, catch, shipped};
use tombolo_check::verify::Case;
use tombolo_design::{DesignConfig, design, list_designs};
use tombolo_protocol::BrokenRule;
use tombolo_protocol::copies::BrokenCopies;

/// Runs per design.
const RUNS: u64 = 100;
/// Runs per design with GPU homes, restricted to the `.sys` tests.
const ACROSS_RUNS: u64 = 400;
/// Runs per design that elides boundaries, for the kernel tests and again for all tests.
const ELIDED_RUNS: u64 = 60;
/// Run count within which a broken rule must show to be tested on every push; the remaining rules are for `deep`.
const SOON: u64 = 400;

fn described(word: &str) -> DesignConfig {
    let mut words = word.split('+');
    let mut tree = design(words.next().expect("a name")).expect("a design that ships");
    for word in words {
        let (key, value) = match word {
            "back" => ("l2_write", "back"),
            "at-launch" => ("boundary", "launch"),
            "cpelide" => ("elision", "cpelide"),
            "ranges" => ("elision.operations", "range"),
            "snooped" => ("coherence.home_l2", "snooped"),
            other => panic!("{other} is no choice of these tests"),
        };
        tree.set(key, value).expect("a key of designs");
    }
    tree.check().expect("a design that makes sense")
}

fn attacked(targets: &[Target], seeds: Range<u64>, threads: usize) -> Vec<tombolo_attack::TimedReport> {
    let (seed, runs) = (seeds.start, seeds.end - seeds.start);
    attack(&Attack { targets, cases: &shipped(), random: true, seed, runs, threads }, &())
}

#[test]
fn every_design_that_ships_keeps_its_promise_or_is_seen_to_have_none() {
    attack_shipped_designs(RUNS);
}

fn attack_shipped_designs(runs: u64) {
    let targets: Vec<Target> = list_designs().into_iter().map(|listed| Target::new(&described(listed.name))).collect();
    let reports = attack_shipped(&targets, (1, runs), 2, &());
    assert_eq!(reports.len(), targets.len());
    for report in reports {
        assert!(report.runs > 0, "{}", report.design);
        let first = report.first.as_ref().map(|first| format!("{}\n{}\n{}", first.small, first.program, first.setup));
        assert!(report.verdict.holds(), "{}: {:?} {}", report.design, report.verdict, first.unwrap_or_default());
        assert!(report.not_run.is_empty(), "{}: {:?}", report.design, report.not_run);
    }
}

#[test]
fn broken_rules_of_copies_are_detected() {
    let (targets, cases) = ([Target::new(&described("memcpy"))], at_boundaries());
    for rule in BrokenCopies::ALL {
        let attack = Attack { targets: &targets, cases: &cases, random: false, seed: 1, runs: 200, threads: 1 };
        assert!(catch(&attack, rule).is_some(), "{}", rule.name());
    }
}

/// A store published at once, then a page with a single remaining copy: the draw in which a poll on this copy waited for
/// ever for a flag that the publication had left behind.
#[test]
fn a_flag_travels_with_a_store_published_at_the_watermark() {
    const DRAW: u64 = 93_895;
    let targets = ["gps", "gps-all-to-all"].map(|name| Target::new(&described(name)));
    for report in attacked(&targets, DRAW..DRAW + 1, 1) {
        assert!(report.verdict.holds(), "{}: {:?}", report.design, report.verdict);
        assert_eq!(report.runs, 1, "{}", report.design);
    }
}

/// The draw in which a module without a replica gave up a page before the page's home had published an atomic of this
/// module. The publication met a module that was no subscriber any more.
#[test]
fn a_module_gives_up_a_page_after_its_atomics_are_answered() {
    const DRAW: u64 = 3_430;
    let cases: Vec<Case> = Case::shapes().into_iter().filter(|case| case.stem() == "CoRWR+atom.gpu").collect();
    let targets = [Target::new(&described("gps"))];
    let run = Attack { targets: &targets, cases: &cases, random: false, seed: DRAW, runs: 1, threads: 1 };
    let report = &attack(&run, &())[0];
    assert!(report.verdict.holds() && report.runs == 1, "{:?}", report.first);
}

#[test]
fn messages_across_gpus_hold_where_gpu_homes_pass_them_on() {
    attack_gpu_homes(ACROSS_RUNS);
}

fn attack_gpu_homes(runs: u64) {
    let cases: Vec<Case> = Case::shapes().into_iter().filter(is_across).collect();
    let targets = ["hmg", "hmg+back", "software-hierarchical"].map(|word| Target::new(&described(word)));
    let run = Attack { targets: &targets, cases: &cases, random: false, seed: 1, runs, threads: 2 };
    for report in attack(&run, &()) {
        assert!(report.verdict.holds(), "{}: {:?}", report.design, report.first);
    }
}

/// True for a shape with `.sys` scope.
fn is_across(case: &Case) -> bool {
    case.file.as_ref().is_some_and(|file| file.contains(".sys."))
}

/// Designs with a command processor that elides boundaries.
const ELIDED: [&str; 10] = [
    "cpelide",
    "cpelide-home-aware",
    "viper-cached+cpelide",
    "viper-cached+cpelide+ranges",
    "viper-cached+at-launch",
    "software-flat+back+cpelide",
    "software-hierarchical+back+cpelide",
    "nhcc+cpelide",
    "hmg+cpelide",
    "hmg+back+cpelide",
];

#[test]
fn designs_that_elide_boundaries_keep_their_promise() {
    attack_elision(ELIDED_RUNS);
}

fn attack_elision(runs: u64) {
    let targets = ELIDED.map(|word| Target::new(&described(word)));
    let boundaries: Vec<Case> = Case::kernels();
    for (random, cases) in [(false, &boundaries), (true, &shipped())] {
        let run = Attack { targets: &targets, cases, random, seed: 1, runs, threads: 2 };
        for (word, report) in ELIDED.iter().zip(attack(&run, &())) {
            let first =
                report.first.as_ref().map(|first| format!("{}\n{}\n{}", first.small, first.program, first.setup));
            assert!(report.verdict.holds(), "{word}: {:?} {}", report.verdict, first.unwrap_or_default());
        }
    }
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

/// Detection of a broken rule in timed runs: under a design to which the rule applies, with all shipped tests or with
/// tests whose names contain a word. `until` is several times the first detecting run, because each additional shipped
/// test changes the drawn runs.
struct RuleDetection {
    design: &'static str,
    /// The first run. If thousands of runs show nothing, the range is skipped.
    from: u64,
    until: u64,
    tests: &'static str,
}

/// Expected detection of a rule; or the reason why timed runs do not detect it. The explorer detects each.
fn expected(rule: BrokenRule) -> Result<RuleDetection, &'static str> {
    let late = |design, from, until, tests| Ok(RuleDetection { design, from, until, tests });
    let of = |design, until, tests| late(design, 1, until, tests);
    match rule {
        BrokenRule::AcquireKeepsL1 => of("hmg", 220, ""),
        BrokenRule::AcquireKeepsL2 => of("software-flat", 220, ""),
        BrokenRule::StoreReleaseSkipsLoads => of("software-flat", 140, "LB"),
        BrokenRule::AtomicReleaseSkipsLoads => late("software-flat", 3_000, 4_830, "LB"),
        BrokenRule::BarrierOpensEarly => of("software-flat", 1_000, "barrier"),
        BrokenRule::BarrierSkipsLoads => late("software-flat", 3_000, 5_340, "LB"),
        BrokenRule::ReleaseSkipsStores | BrokenRule::SystemReleaseStopsAtGpuHome => of("hmg", 1280, ""),
        BrokenRule::ReleaseSkipsInvalidations => of("hmg", 1200, ""),
        BrokenRule::ReleaseMarkedByIssuer => of("hmg", 1280, ""),
        BrokenRule::ReleaseForgetsPending => of("hmg+back", 20, "MP"),
        BrokenRule::SystemReleaseDrainsOwnModuleOnly => of("hmg+back", 220, ""),
        BrokenRule::StoreEndsAtGpuHome => of("hmg", 1280, ""),
        BrokenRule::InvalidationTakenEarly => of("hmg", 320, "MP"),
        BrokenRule::SharerNotRecorded | BrokenRule::StoreKeepsSharers => of("hmg", 220, ""),
        BrokenRule::StoreKeepsSiblings => of("hmg", 1080, ""),
        BrokenRule::SharerRecordedAtRequest => of("hmg", 3680, ""),
        BrokenRule::InvalidationNotForwarded => of("hmg", 220, ""),
        BrokenRule::InvalidationForwardedOnce => of("hmg", 216, "MP+readers"),
        BrokenRule::InvalidationReachesOneLine => of("hmg", 3680, ""),
        BrokenRule::SilentDirectoryEviction => of("hmg", 2920, ""),
        BrokenRule::AtomicBelowHome => of("hmg", 40, ""),
        BrokenRule::AtomicPassesSharers => late("hmg", 2_000, 3_640, ""),
        BrokenRule::AtomicKeepsL1 => of("hmg", 880, ""),
        BrokenRule::DirtyEvictionLost => of("hmg+back", 260, ""),
        BrokenRule::DirtyInvalidationLost => of("software-flat+back", 20, ""),
        BrokenRule::FillSurvivesAcquire | BrokenRule::LoadMergesAcrossAcquire => of("software-flat+back", 2800, ""),
        BrokenRule::StoreKeepsFill | BrokenRule::AtomicKeepsFill | BrokenRule::FillForgetsOthers => of("hmg", 40, ""),
        BrokenRule::InvalidationPassesFill => of("hmg", 1120, ""),
        BrokenRule::StorePassesMiss => of("hmg", 80, ""),
        BrokenRule::RequestPassesParked => of("software-flat", 440, ""),
        BrokenRule::RequestPassesDeferred => Err("of clients of blocks: `system/tests/runs/blocks.rs` times it"),
        BrokenRule::LoadPassesStore => of("hmg", 2800, "CoWR"),
        BrokenRule::ReleaseDrainsOwnHomesOnly => Err("which homes its thread wrote is known to the explorer alone"),
        BrokenRule::AcquireDropsGpuAtOnce | BrokenRule::AcquireDropsOwnFirst | BrokenRule::ReplacementNotAwaited => {
            Err("its race is narrow: 6000 runs of its own tests did not meet it")
        }
        BrokenRule::AtomicKeepsL2 => of("viper", 20, ""),
        BrokenRule::AtomicLosesDirty => of("viper", 60, ""),
        BrokenRule::AtomicPassesHomeCopy => of("viper-cached", 2720, ""),
        BrokenRule::WriteBackPassesHomeCopy => of("viper-cached", 2760, ""),
        BrokenRule::FlushFillsLine => {
            Err("bytes that nobody has stored are what they were at the start: 3000 runs did not meet it")
        }
        BrokenRule::ReleaseKeepsOwnDirty => of("viper", 180, ""),
        BrokenRule::SnoopKeepsDirty => of("software-flat+back+snooped", 400, ""),
        BrokenRule::SnoopKeepsCopy => of("software-flat+back+snooped", 400, ""),
        BrokenRule::LoadIgnoresScope => Err("polls that never see their flag: a run takes a million of them"),
    }
}

#[test]
fn broken_rules_that_show_soon_are_seen_in_timed_runs() {
    assert_all_seen(&shown_rules(|shows| shows.until <= SOON));
}

fn shown_rules(wanted: impl Fn(&RuleDetection) -> bool) -> Vec<(BrokenRule, RuleDetection)> {
    let shows = |rule: BrokenRule| expected(rule).ok().filter(&wanted).map(|shows| (rule, shows));
    BrokenRule::ALL.into_iter().filter_map(shows).collect()
}

fn assert_all_seen(rules: &[(BrokenRule, RuleDetection)]) {
    let halves = [0, 1].map(|half| rules.iter().skip(half).step_by(2));
    std::thread::scope(|scope| {
        for half in halves {
            scope.spawn(move || half.for_each(|(rule, shows)| assert_seen(*rule, shows)));
        }
    });
}

fn assert_seen(rule: BrokenRule, &RuleDetection { design, from, until, tests }: &RuleDetection) {
    let of_word = |case: &Case| case.file.as_ref().is_some_and(|file| file.contains(tests));
    let cases: Vec<Case> = shipped().into_iter().filter(of_word).collect();
    let targets = [Target::new(&described(design))];
    let (random, runs) = (tests.is_empty(), until - from);
    let run = Attack { targets: &targets, cases: &cases, random, seed: from, runs, threads: 1 };
    assert!(catch(&run, rule).is_some(), "{rule:?} under {design} from run {from} to {until}");
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

mod deep {
    use super::*;

    #[test]
    #[ignore = "deep: 10,000 runs of each design"]
    fn every_design_that_ships_keeps_its_promise_or_is_seen_to_have_none() {
        attack_shipped_designs(10_000);
    }

    #[test]
    #[ignore = "deep: 10,000 runs of each design"]
    fn messages_across_gpus_hold_where_gpu_homes_pass_them_on() {
        attack_gpu_homes(10_000);
    }

    #[test]
    #[ignore = "deep: 1,000 runs of each design and set of tests"]
    fn designs_that_elide_boundaries_keep_their_promise() {
        attack_elision(1_000);
    }

    #[test]
    #[ignore = "deep: up to 5,340 runs of a rule"]
    fn broken_rules_are_seen_in_timed_runs() {
        assert_all_seen(&shown_rules(|shows| shows.until > SOON));
    }
}
