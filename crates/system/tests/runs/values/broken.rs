//! Each rule that may be broken in a timing run, and a checked run that sees it.
//!
//! Not here, for no run shows them:
//! - `ReleaseDrainsOwnHomesOnly` is a rule of the explorer's host and changes no timing run.
//! - `AtomicBelowHome` lets an atomic miss for ever at an L2 that keeps no such line: the run does not end. Nor does it with
//!   `FillForgetsOthers`, whose loads wait for ever.
//! - `StoreEndsAtGpuHome` and `InvalidationPassesFill`: what comes late must pass what comes in time, which takes delays that are
//!   drawn (`tombolo check --timed`).
//! - `LoadIgnoresScope` loses no order: a poll never sees its flag, and the run ends with a report.
//! - `AcquireDropsGpuAtOnce`, `AcquireDropsOwnFirst`, `SystemReleaseDrainsOwnModuleOnly` and `ReplacementNotAwaited` break
//!   an order that ports and links keep all the same: none of these programs overtakes there.
//! - `FillSurvivesAcquire` and `LoadMergesAcrossAcquire` under a directory: a release waits for an invalidation, which
//!   follows the fill on its channel.

use super::programs::{HandOver, additions, boundary, late_fill, late_load, overflow, sharing, turns};
use super::*;
use BrokenRule as Rule;

/// Caches and directories so small that lines and entries are replaced.
const TIGHT: &[&str] = &["l2.bytes=64KB", "directory.entries=16", "directory.ways=1"];
/// Links so narrow that what is sent over them waits, while acknowledgments and launches do not.
const NARROW: &[&str] = &["topology.sms_per_module=2", "gpu_link.rate=100MB/s", "module_link.rate=100MB/s"];
/// Narrower still: an invalidation passes a link in more time than a launch takes.
const CREEPING: &[&str] = &["topology.sms_per_module=2", "gpu_link.rate=10MB/s", "module_link.rate=10MB/s"];
/// A store of a module under way at a time.
const UNCREDITED: &[&str] = &["topology.sms_per_module=2", "l2.posted_stores=1"];
/// Walks of the page table that last longer than what other warps do meanwhile.
const WALKS: &[&str] = &["topology.sms_per_module=2", "tlb.walk_latency=20us"];

/// Small caches that miss by sectors, pages of few lines.
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

/// Where a broken rule is seen: machine, program, designs.
type Seen = (Rule, &'static [&'static str], Arc<Directed>, &'static [&'static str]);

#[rustfmt::skip]
fn table() -> Vec<Seen> {
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

/// Rules that say something of dirty bytes, and so of designs that write back.
fn settings(rule: Rule) -> &'static [&'static str] {
    let dirty = [Rule::DirtyEvictionLost, Rule::DirtyInvalidationLost, Rule::ReleaseForgetsPending];
    if dirty.contains(&rule) { &["design.l2_write=back"] } else { &[] }
}

/// Rules that no run here shows: see above.
const UNSEEN: [Rule; 17] = [
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
    // Of protocols that meet at memory, for which this table has no program. Runs of litmus tests on the timing model see all
    // but `FlushFillsLine` (crate `attack`, `tests/timed.rs`).
    Rule::AtomicKeepsL2,
    Rule::AtomicLosesDirty,
    Rule::AtomicPassesHomeCopy,
    Rule::WriteBackPassesHomeCopy,
    Rule::FlushFillsLine,
    Rule::ReleaseKeepsOwnDirty,
    // Of clients of blocks: seen in `runs/blocks.rs`.
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
    let unseen = |(rule, of, program, designs): Seen| {
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

/// A store that has parked is ahead of all of its line that wait for a credit when it runs again.
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
