//! Branches of the timing model that attacks reach, by the counters that their runs move.

use tombolo_attack::{Target, attack_shipped};
use tombolo_design::design;

/// Designs, one for each mechanism, with the counters that their runs must move.
const MECHANISMS: [(&str, &[&str]); 7] = [
    ("unified-memory", &["paging.faults", "paging.migrations", "paging.shootdowns", "paging.evictions"]),
    ("unified-memory-hints", &["paging.faults", "paging.prefetched_bytes", "paging.shootdowns", "paging.evictions"]),
    ("unified-memory-host", &["paging.faults", "paging.migrations", "paging.evictions", "paging.pins"]),
    (
        "gps",
        &[
            "paging.evictions",
            "publication.atomics",
            "publication.collapses",
            "publication.drains.atomic",
            "publication.drains.load",
            "publication.drains.release",
            "publication.drains.watermark",
            "publication.queue_hits",
            "publication.remote_loads",
            "publication.republished_lines",
        ],
    ),
    ("gps-on-read", &["paging.evictions", "publication.collapses", "publication.drains.watermark"]),
    (
        "umh",
        &[
            "blocks.evicted",
            "blocks.from_peers",
            "blocks.home_waits",
            "blocks.merged",
            "coherence.queued",
            "coherence.writebacks",
        ],
    ),
    (
        "hmg",
        &[
            "coherence.directory_evictions_shared",
            "coherence.evictions",
            "coherence.invalidations_forwarded",
            "coherence.invalidations_by_eviction",
            "coherence.merges",
            "coherence.parks",
            "coherence.queued",
            "sm.failed_polls",
            "sm.parks",
        ],
    ),
];

#[test]
fn attacks_reach_the_branches_of_each_mechanism() {
    reach(600, 1);
}

#[test]
#[ignore = "deep: 10,000 runs of each design"]
fn long_attacks_reach_each_branch_a_hundred_times() {
    reach(10_000, 100);
}

/// Attacks each design with `runs` runs; panics if fewer than `least` of them move a counter.
fn reach(runs: u64, least: u64) {
    let described = |name| design(name).and_then(|design| design.check()).expect("a design that ships");
    let targets: Vec<Target> = MECHANISMS.iter().map(|(name, _)| Target::new(&described(name))).collect();
    let reports = attack_shipped(&targets, (1, runs), 2, &());
    for (report, (_, counters)) in reports.iter().zip(MECHANISMS) {
        assert!(report.verdict.holds(), "{}: {:?}", report.design, report.first);
        let rare: Vec<(&str, u64)> = counters
            .iter()
            .map(|counter| (*counter, report.reached.get(*counter).copied().unwrap_or_default()))
            .filter(|(_, runs)| *runs < least)
            .collect();
        assert!(rare.is_empty(), "{}, of {runs} runs: {rare:?}", report.design);
    }
}
