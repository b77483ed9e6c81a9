//! Each rule that can be broken in a timing run, with a checked run that detects the fault.
//!
//! Not included, because no run shows the fault:
//! - `ReleaseDrainsOwnHomesOnly` is a rule in the explorer's host and changes no timing run.
//! - `AtomicBelowHome` lets an atomic miss forever at an L2 that never holds the line: the run does not end. With
//!   `FillForgetsOthers`, loads wait forever, and the run does not end either.
//! - `StoreEndsAtGpuHome` and `InvalidationPassesFill`: a late message must overtake an earlier one, which requires
//!   random delays (`tombolo check --timed`).
//! - `LoadIgnoresScope` loses no order: a poll never sees its flag, and the run ends with a deadlock report.
//! - `AcquireDropsGpuAtOnce`, `AcquireDropsOwnFirst`, `SystemReleaseDrainsOwnModuleOnly` and `ReplacementNotAwaited`
//!   break an order that ports and links preserve anyway: no message in these programs overtakes an earlier message
//!   there.
//! - `FillSurvivesAcquire` and `LoadMergesAcrossAcquire` under a directory: a release waits for an invalidation, and
//!   the invalidation follows the fill on the same channel.

use super::programs::{HandOver, additions, boundary, late_fill, late_load, overflow, sharing, turns};
use super::*;
use BrokenRule as Rule;

/// Caches and directories small enough that lines and entries are evicted.
const TIGHT: &[&str] = &["l2.bytes=64KB", "directory.entries=16", "directory.ways=1"];
/// Narrow links: data queues for them, while acknowledgments and launches pass immediately.
const NARROW: &[&str] = &["topology.sms_per_module=2", "gpu_link.rate=100MB/s", "module_link.rate=100MB/s"];
/// Narrower still: an invalidation takes longer to cross a link than a launch.
const CREEPING: &[&str] = &["topology.sms_per_module=2", "gpu_link.rate=10MB/s", "module_link.rate=10MB/s"];
/// At most one store in flight per module.
const UNCREDITED: &[&str] = &["topology.sms_per_module=2", "l2.posted_stores=1"];
/// Page walks longer than any activity by other warps in the meantime.
const WALKS: &[&str] = &["topology.sms_per_module=2", "tlb.walk_latency=20us"];

/// Small caches that miss by sectors, and pages with few lines.
const SMALL: &[&str] = &[
    "topology.sms_per_module=2",
    "page_bytes=4KB",
    "l1.sector_bytes=32",
    "l1.bytes=2KB",
    "l2.bytes=64KB",
    "directory.entries=16",
    "directory.ways=1",
];

const CACHING: &[&str] = &["no-remote-caching", "software-flat", "software-hierarchical", "nhcc", "hmg"];
const SOFTWARE: &[&str] = &["no-remote-caching", "software-flat", "software-hierarchical"];
const DIRECTORY: &[&str] = &["nhcc", "hmg"];
const HMG: &[&str] = &["hmg"];
const ALL: &[&str] =
    &["no-remote-caching", "software-flat", "software-hierarchical", "nhcc", "hmg", "numa-memory-side"];

/// Conditions under which a broken rule is detected: machine, program, designs.
type Detection = (Rule, &'static [&'static str], Arc<DirectedProgram>, &'static [&'static str]);

#[rustfmt::skip]
fn table() -> Vec<Detection> {
    vec![
        (Rule::AcquireKeepsL1, TIGHT, sharing(), ALL),
        (Rule::AcquireKeepsL2, TIGHT, sharing(), SOFTWARE),
        (Rule::StoreReleaseSkipsLoads, WALKS, late_load(HandOver::Store), ALL),
        (Rule::AtomicReleaseSkipsLoads, WALKS, late_load(HandOver::Atomic), ALL),
        (Rule::BarrierSkipsLoads, WALKS, late_load(HandOver::Barrier), ALL),
        (Rule::ReleaseSkipsStores, NARROW, sharing(), ALL),
        (Rule::ReleaseSkipsInvalidations, NARROW, late_fill(), DIRECTORY),
        (Rule::ReleaseSkipsInvalidations, CREEPING, boundary(), DIRECTORY),
        (Rule::ReleaseMarkedByIssuer, CREEPING, boundary(), DIRECTORY),
        (Rule::SystemReleaseStopsAtGpuHome, NARROW, sharing(), ALL),
        (Rule::InvalidationTakenEarly, CREEPING, boundary(), HMG),
        (Rule::SharerNotRecorded, TIGHT, sharing(), DIRECTORY),
        (Rule::SharerRecordedAtRequest, TIGHT, boundary(), HMG),
        (Rule::StoreKeepsSharers, TIGHT, sharing(), DIRECTORY),
        (Rule::StoreKeepsSiblings, TIGHT, sharing(), DIRECTORY),
        (Rule::InvalidationNotForwarded, NARROW, sharing(), HMG),
        (Rule::InvalidationForwardedOnce, NARROW, sharing(), HMG),
        (Rule::SilentDirectoryEviction, TIGHT, sharing(), DIRECTORY),
        (Rule::DirtyEvictionLost, TIGHT, overflow(), ALL),
        (Rule::DirtyInvalidationLost, TIGHT, sharing(), CACHING),
        (Rule::FillSurvivesAcquire, NARROW, late_fill(), SOFTWARE),
        (Rule::FillSurvivesAcquire, NARROW, late_fill(), &["numa-memory-side"]),
        (Rule::LoadMergesAcrossAcquire, NARROW, late_fill(), SOFTWARE),
        (Rule::StorePassesMiss, TIGHT, random::program(0), CACHING),
        (Rule::RequestPassesParked, TIGHT, random::program(0), SOFTWARE),
        (Rule::LoadPassesStore, UNCREDITED, random::program(0), ALL),
        (Rule::InvalidationReachesOneLine, NARROW, sharing(), DIRECTORY),
        (Rule::ReleaseForgetsPending, SMALL, random::program(27), &["software-flat", "nhcc"]),
        (Rule::AtomicPassesSharers, WALKS, additions(), HMG),
        (Rule::AtomicKeepsL1, WALKS, additions(), ALL),
        (Rule::AtomicKeepsFill, TIGHT, random::program(0), ALL),
        (Rule::StoreKeepsFill, TIGHT, random::program(0), ALL),
    ]
}

/// Rules about dirty bytes, which apply to designs with write-back.
fn settings(rule: Rule) -> &'static [&'static str] {
    let dirty = [Rule::DirtyEvictionLost, Rule::DirtyInvalidationLost, Rule::ReleaseForgetsPending];
    if dirty.contains(&rule) { &["design.l2_write=back"] } else { &[] }
}

/// Rules that no run in this file shows: see above.
const UNSEEN: [Rule; 20] = [
    Rule::InvalidationPassesFill,
    Rule::ReleaseDrainsOwnHomesOnly,
    Rule::StoreEndsAtGpuHome,
    Rule::LoadIgnoresScope,
    Rule::AcquireDropsGpuAtOnce,
    Rule::AcquireDropsOwnFirst,
    Rule::SystemReleaseDrainsOwnModuleOnly,
    Rule::ReplacementNotAwaited,
    Rule::AtomicBelowHome,
    Rule::FillForgetsOthers,
    // The check learns from the barrier itself which threads it orders.
    Rule::BarrierOpensEarly,
    // Rules for protocols that meet at memory, for which this table has no program. Litmus tests on the timing model
    // detect all of them except `FlushFillsLine` (crate `attack`, `tests/attack/timed.rs`).
    Rule::AtomicKeepsL2,
    Rule::AtomicLosesDirty,
    Rule::AtomicPassesHomeCopy,
    Rule::WriteBackPassesHomeCopy,
    Rule::FlushFillsLine,
    Rule::ReleaseKeepsOwnDirty,
    // Rules for snooped home L2s: likewise.
    Rule::SnoopKeepsDirty,
    Rule::SnoopKeepsCopy,
    // Rules for block clients: detected in `runs/blocks.rs`.
    Rule::RequestPassesDeferred,
];

#[test]
fn every_broken_rule_is_in_the_table_or_has_a_reason() {
    let seen: Vec<Rule> = table().into_iter().map(|(rule, ..)| rule).collect();
    for rule in Rule::ALL {
        assert!(seen.contains(&rule) != UNSEEN.contains(&rule), "{rule:?}");
    }
}

#[test]
fn broken_rules_are_seen_in_a_timing_run() {
    let unseen = |(rule, of, program, designs): Detection| {
        let machine = machine(of);
        let sees = move |name: &&str| {
            checked(&machine, design(name, settings(rule)), Arc::clone(&program), Some(rule)).violations > 0
        };
        designs.iter().filter(|name| !sees(name)).map(|name| format!("{rule:?} in {name}")).collect::<Vec<_>>()
    };
    let unseen: Vec<String> = table().into_iter().flat_map(unseen).collect();
    assert!(unseen.is_empty(), "{unseen:#?}");
}

#[test]
fn the_same_programs_are_clean_where_nothing_is_broken() {
    for (rule, of, program, designs) in table() {
        let machine = machine(of);
        for name in designs {
            let found = checked(&machine, design(name, settings(rule)), Arc::clone(&program), None);
            assert_eq!(found.first, [], "{name}, as for {rule:?}");
        }
    }
}

/// On retry, a parked store precedes all stores to its line that wait for a credit.
#[test]
fn stores_of_a_warp_to_a_line_keep_their_order_whoever_parks_or_lacks_a_credit() {
    (1..4).cycle().zip(ALL).for_each(|(posted, name)| keeps_order_of_stores(name, posted));
}

#[test]
#[ignore = "deep: every design with every number of credits"]
fn stores_of_a_warp_to_a_line_keep_their_order_with_any_credits() {
    (1..4).for_each(|posted| ALL.iter().for_each(|name| keeps_order_of_stores(name, posted)));
}

fn keeps_order_of_stores(name: &str, posted: u32) {
    let posted = format!("l2.posted_stores={posted}");
    let machine = machine(&["topology.sms_per_module=2", &posted]);
    let found = checked(&machine, design(name, &[]), turns(), None);
    assert!(found.stores > 90 && found.loads > 20_000, "{name}: {found:?}");
    assert_eq!(found.first, [], "{name} {posted}");
}
