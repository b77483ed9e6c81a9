//! Broken protocols, and tests for catching them: a checker that accepts everything proves nothing.
//!
//! Each [`BrokenRule`] is searched for under every applicable protocol, with the shipped tests: first the tests in the
//! rule's row, then all remaining tests (`Suite`). Random programs are tried if only few tests catch the rule; a
//! detection by random programs alone is no catch.
//!
//! A load that hits despite its scope returns no forbidden value: it only polls forever. The polling tests therefore
//! ask if an end is reachable, without evictions, because an eviction would end the wait by chance.

mod nmoesi;

use super::case::Case;
use super::suite::Suite;
use super::{ProgressObserver, side_by_side};
use crate::explore::{ClientResources, Config, Start};
use serde::Serialize;
use std::fmt;
use tombolo_protocol::BrokenRule;
use tombolo_protocol::nmoesi::{BrokenNmoesi, NmoesiOptions};
use tombolo_protocol::vi::{ProtocolOptions, Remote, WritePolicy};

const ALL: &[&str] =
    &["no-remote-caching", "memory-side", "peer", "software-flat", "software-hierarchical", "nhcc", "hmg", "viper"];
/// Protocols with threads on SMs with L1s: all protocols.
const EVERY: &[&str] = &[
    "no-remote-caching",
    "memory-side",
    "peer",
    "software-flat",
    "software-hierarchical",
    "nhcc",
    "hmg",
    "viper",
    "nmoesi",
];
/// Protocols in which an L2 below the ordering point may hold dirty bytes.
const WITH_DIRTY_BELOW: &[&str] = PASSING_ATOMICS;
const SOFTWARE: &[&str] = &["no-remote-caching", "software-flat", "software-hierarchical", "viper"];
const HIERARCHICAL: &[&str] = &["peer", "software-hierarchical", "hmg"];
const SOFTWARE_HIERARCHICAL: &[&str] = &["software-hierarchical"];
const DIRECTORY: &[&str] = &["nhcc", "hmg"];
const HMG: &[&str] = &["hmg"];
const VIPER: &[&str] = &["viper"];
const NMOESI: &[&str] = &["nmoesi"];
/// Protocols with an L2 that forwards atomics, below the performing module.
const PASSING_ATOMICS: &[&str] =
    &["no-remote-caching", "software-flat", "software-hierarchical", "nhcc", "hmg", "viper"];

/// Sufficient number of catching tests, unless all tests are requested.
pub const ENOUGH: usize = 3;

/// Number of tests to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestEffort {
    /// Tests until the first catches the mutant; no random program.
    First,
    /// Tests until [`ENOUGH`] have caught the mutant; then, if fewer have, random programs.
    Enough,
    /// All tests and all random programs in the series.
    All,
}

impl TestEffort {
    /// Limit for catching tests, after which the remaining tests are skipped.
    pub(super) fn tests(self) -> usize {
        match self {
            TestEffort::First => 1,
            TestEffort::Enough => ENOUGH,
            TestEffort::All => usize::MAX,
        }
    }

    /// True if random programs are tried after `tests` tests have caught the mutant.
    pub(super) fn tries_random(self, tests: usize) -> bool {
        match self {
            TestEffort::First => false,
            TestEffort::Enough => tests < ENOUGH,
            TestEffort::All => true,
        }
    }
}

/// A broken rule and the result of the search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MutantReport {
    /// The rule.
    pub name: String,
    /// The protocol with the broken rule.
    pub protocol: &'static str,
    /// The protocol with its options, in [`Design::configured`](super::Design::configured) syntax.
    pub configuration: String,
    /// Set if a shipped test has caught it.
    pub caught: bool,
    /// Tests and programs with a detection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<MutantCatch>,
    /// Path to the first detected violation, as a message sequence chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Tests and programs that have caught a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MutantCatch {
    /// Number of shipped tests; counted up to the limit set by [`TestEffort`].
    pub tests: usize,
    /// Number of random programs.
    pub random: usize,
    /// Number of random programs tried.
    pub random_tried: usize,
    /// The first detection.
    pub first: Detection,
}

/// Circumstances under which a test detected a broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Detection {
    /// The test.
    pub test: String,
    /// Threads and homes.
    pub placement: String,
    /// Cache contents at the start.
    pub start: &'static str,
    /// The violation.
    pub seen_as: String,
}

/// A broken rule in a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The rule.
    pub rule: Broken,
    /// The protocol.
    pub protocol: &'static str,
}

/// A broken rule from either list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A rule for threads, L1s and valid/invalid L2s.
    Rule(BrokenRule),
    /// A rule for NMOESI.
    Nmoesi(BrokenNmoesi),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Broken::Rule(rule) => rule.name(),
            Broken::Nmoesi(rule) => rule.name(),
        })
    }
}

/// Known facts about a rule.
struct RuleInfo {
    /// Protocols in which the rule changes the reachable states.
    protocols: &'static [&'static str],
    /// Shipped tests for exposing the rule, by file name without extension.
    own: &'static [&'static str],
    /// Write policy that the rule requires.
    write: WritePolicy,
    /// Location for reads and writes to lines from other modules, in a protocol with this choice.
    remote: Remote,
    /// Resource limits of clients, if the rule shows only with few resources.
    room: Option<ClientResources>,
}

/// Every broken rule in every applicable protocol from `protocols`.
pub fn mutants(protocols: &[&str]) -> Vec<Mutant> {
    let of = |rule: Broken| {
        let chosen = row(rule).protocols.iter().filter(|protocol| protocols.contains(protocol));
        chosen.map(move |&protocol| Mutant { rule, protocol })
    };
    let rules = BrokenRule::ALL.into_iter().map(Broken::Rule);
    rules.chain(BrokenNmoesi::ALL.into_iter().map(Broken::Nmoesi)).flat_map(of).collect()
}

/// Searches for each mutant with `threads` threads.
pub fn catch(
    mutants: &[Mutant],
    effort: TestEffort,
    threads: usize,
    watch: &dyn ProgressObserver,
) -> Vec<MutantReport> {
    let suite = Suite::shipped();
    side_by_side(threads, mutants.len(), |index| {
        let mutant = &mutants[index];
        let name = mutant.rule.to_string();
        watch.started(&name, mutant.protocol);
        let report = suite.report(mutant, effort);
        watch.finished(&name, mutant.protocol);
        report
    })
}

fn row(rule: Broken) -> RuleInfo {
    match rule {
        Broken::Rule(rule) => row_of_rule(rule),
        Broken::Nmoesi(rule) => nmoesi::row(rule),
    }
}

fn row_of_rule(rule: BrokenRule) -> RuleInfo {
    let of =
        |protocols, own| RuleInfo { protocols, own, write: WritePolicy::Through, remote: Remote::Memory, room: None };
    let back = |protocols, own| RuleInfo { write: WritePolicy::Back, ..of(protocols, own) };
    let cached = |protocols, own| RuleInfo { remote: Remote::Cached, ..back(protocols, own) };
    match rule {
        BrokenRule::AcquireKeepsL1 => of(EVERY, &["MP.gpu", "K-MP+reload"]),
        // Equivalent elsewhere: with a directory, or next to memory, an acquire leaves the L2 unchanged.
        BrokenRule::AcquireKeepsL2 => of(SOFTWARE, &["MP.gpu", "K-MP+reload"]),
        // Every load finds the latest data on its own path, therefore no order is lost. But a polling load may never
        // see the store.
        BrokenRule::LoadIgnoresScope => of(EVERY, &["Polling.gpu", "Polling.sys", "Polling+atom.gpu"]),
        BrokenRule::StoreReleaseSkipsLoads => of(EVERY, &["LB+release.gpu", "LB+release.sys"]),
        BrokenRule::AtomicReleaseSkipsLoads => of(EVERY, &["LB+atom.gpu", "LB+atom.sys", "LB+red.gpu"]),
        // Equivalent elsewhere: no thread's acquire drops more than a single L2 per GPU.
        BrokenRule::AcquireDropsGpuAtOnce | BrokenRule::AcquireDropsOwnFirst => {
            of(SOFTWARE_HIERARCHICAL, &["MP+reader.sys", "MP+neighbour.sys"])
        }
        BrokenRule::BarrierSkipsLoads => of(EVERY, &["LB+barrier.sys"]),
        BrokenRule::ReleaseSkipsStores => of(ALL, &["MP.gpu", "K-MP"]),
        // Equivalent without a directory, like every [`DIRECTORY`] rule below: no module sends an invalidation.
        BrokenRule::ReleaseSkipsInvalidations => of(DIRECTORY, &["MP.gpu", "K-MP+reload"]),
        BrokenRule::ReleaseDrainsOwnHomesOnly => of(DIRECTORY, &["WRC.sys"]),
        BrokenRule::ReleaseMarkedByIssuer => of(DIRECTORY, &["MP.sys", "MP.gpu"]),
        // Equivalent elsewhere: a store for which its release has waited is at its system home.
        BrokenRule::SystemReleaseDrainsOwnModuleOnly => of(HIERARCHICAL, &["ISA2.sys", "WRC+near.sys", "WRC+atom.sys"]),
        BrokenRule::SystemReleaseStopsAtGpuHome => of(ALL, &["MP.sys", "K-MP"]),
        // Equivalent elsewhere: only a GPU home forwards stores after it has performed them.
        BrokenRule::StoreEndsAtGpuHome => of(HIERARCHICAL, &["MP.sys"]),
        // Equivalent elsewhere: only a GPU home both receives and sends invalidations.
        BrokenRule::InvalidationTakenEarly => of(HMG, &["MP.sys", "K-MP+reload"]),
        BrokenRule::ReplacementNotAwaited => of(HMG, &["MP.sys"]),
        BrokenRule::SharerNotRecorded
        | BrokenRule::StoreKeepsSharers
        | BrokenRule::SilentDirectoryEviction
        | BrokenRule::StoreKeepsSiblings => of(DIRECTORY, &["MP.gpu"]),
        BrokenRule::SharerRecordedAtRequest => of(DIRECTORY, &["CoRWR.gpu"]),
        BrokenRule::InvalidationNotForwarded => of(HMG, &["MP.gpu"]),
        BrokenRule::InvalidationForwardedOnce => of(HMG, &["MP+readers.sys"]),
        BrokenRule::AtomicBelowHome => of(ALL, &["Atomics.gpu"]),
        // Equivalent elsewhere: only a GPU home forwards requests for regions with a directory entry.
        BrokenRule::AtomicPassesSharers => of(HMG, &["MP+atom.gpu"]),
        BrokenRule::AtomicKeepsL1 | BrokenRule::AtomicKeepsFill => {
            of(EVERY, &["CoRWR+atom.gpu", "CoRWR+atom.sys", "CoRWR+red.gpu"])
        }
        BrokenRule::DirtyEvictionLost => back(ALL, &["CoWR.gpu", "CoRWR.gpu"]),
        // Another thread's acquire must not discard bytes that this thread has not released. Equivalent with L2s next
        // to memory, in which nothing is invalidated.
        BrokenRule::DirtyInvalidationLost => back(WITH_DIRTY_BELOW, &["MP+reader.gpu", "K-CoWW"]),
        BrokenRule::FillSurvivesAcquire | BrokenRule::LoadMergesAcrossAcquire => of(EVERY, &["MP+reader.gpu"]),
        BrokenRule::StoreKeepsFill => of(EVERY, &["CoRWR.gpu"]),
        BrokenRule::StorePassesMiss => of(ALL, &["CoRWR.gpu"]),
        BrokenRule::InvalidationPassesFill => of(DIRECTORY, &["MP.gpu"]),
        BrokenRule::FillForgetsOthers => of(EVERY, &["MP+reader.gpu"]),
        // The rule lets reads pass, for sectors that are not in flight: updates wait for the miss in any case.
        BrokenRule::RequestPassesParked => of(ALL, &["CoWR+neighbour.gpu"]),
        // Equivalent elsewhere: L2s with line granularity have unlimited miss registers in the explorer.
        BrokenRule::RequestPassesDeferred => {
            let room = Some(ClientResources { registers: 1, ways: None });
            RuleInfo { room, ..of(NMOESI, &["CoWR+queue.gpu"]) }
        }
        BrokenRule::LoadPassesStore => of(ALL, &["CoWR.gpu", "CoWR.sys"]),
        BrokenRule::InvalidationReachesOneLine => of(DIRECTORY, &["MP+region.sys"]),
        BrokenRule::ReleaseForgetsPending => back(WITH_DIRTY_BELOW, &["MP+readers.gpu"]),
        BrokenRule::AtomicKeepsL2 => of(PASSING_ATOMICS, &["CoRWR+atom.gpu", "CoRWR+atom.sys", "CoRWR+red.gpu"]),
        BrokenRule::AtomicLosesDirty => back(PASSING_ATOMICS, &["CoWR+atom.gpu"]),
        // Equivalent elsewhere: the home's L2 performs arriving requests.
        BrokenRule::AtomicPassesHomeCopy => cached(VIPER, &["MP+atom.gpu"]),
        BrokenRule::WriteBackPassesHomeCopy => cached(VIPER, &["MP.gpu"]),
        BrokenRule::FlushFillsLine => back(WITH_DIRTY_BELOW, &["Flush+neighbour.gpu"]),
        // Equivalent elsewhere: the home's L2 is the ordering point.
        BrokenRule::ReleaseKeepsOwnDirty => back(VIPER, &["MP.gpu", "K-MP"]),
    }
}

impl Mutant {
    /// The tests named in the rule's row, by file name without extension.
    pub fn own_tests(&self) -> &'static [&'static str] {
        row(self.rule).own
    }

    /// The protocol's options.
    pub(super) fn options(&self) -> ProtocolOptions {
        let RuleInfo { write, remote, .. } = row(self.rule);
        let options = ProtocolOptions { write, remote, ..ProtocolOptions::default() };
        match self.rule {
            Broken::Rule(rule) => ProtocolOptions { broken_rule: Some(rule), ..options },
            Broken::Nmoesi(rule) => {
                ProtocolOptions { nmoesi: NmoesiOptions { broken: Some(rule), ..options.nmoesi }, ..options }
            }
        }
    }

    /// Configuration for the exploration of `case`.
    pub(super) fn config(&self, case: &Case, start: Start) -> Config {
        let (options, room) = (self.options(), row(self.rule).room);
        Config { options, room, start, evictions: case.evictions(), ..Config::new(self.protocol) }
    }
}
