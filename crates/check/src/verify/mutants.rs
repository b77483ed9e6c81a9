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
use tombolo_protocol::catalogue;
use tombolo_protocol::nmoesi::{BrokenNmoesi, NmoesiOptions};
use tombolo_protocol::vi::{HomeL2, ProtocolFacts, ProtocolOptions, Remote, WritePolicy};

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

impl Broken {
    /// True if the rule changes the reachable states of `protocol`, which has these facts.
    fn applies(self, protocol: &str, facts: &ProtocolFacts) -> bool {
        match self {
            Broken::Rule(rule) => rule.applies(facts),
            Broken::Nmoesi(_) => protocol == tombolo_protocol::nmoesi::NAME,
        }
    }
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
    /// Shipped tests for exposing the rule, by file name without extension.
    own: &'static [&'static str],
    /// Options that the rule requires, without the rule.
    options: ProtocolOptions,
    /// Resource limits of clients, if the rule shows only with few resources.
    room: Option<ClientResources>,
}

/// Every broken rule in every applicable protocol from `protocols`.
pub fn mutants(protocols: &[&str]) -> Vec<Mutant> {
    let of = |rule: Broken| {
        let known = catalogue::all().into_iter().filter(|(protocol, _)| protocols.contains(protocol));
        known
            .filter(move |(protocol, facts)| rule.applies(protocol, facts))
            .map(move |(protocol, _)| Mutant { rule, protocol })
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
    let of = |own| RuleInfo { own, options: ProtocolOptions::default(), room: None };
    let with = |options, own| RuleInfo { options, ..of(own) };
    let written_back = ProtocolOptions { write: WritePolicy::Back, ..ProtocolOptions::default() };
    let back = |own| with(written_back, own);
    let cached = |own| with(ProtocolOptions { remote: Remote::Cached, ..written_back }, own);
    let snooped = |own| with(ProtocolOptions { home_l2: HomeL2::Snooped, ..written_back }, own);
    match rule {
        BrokenRule::AcquireKeepsL1 => of(&["MP.gpu", "K-MP+reload"]),
        BrokenRule::AcquireKeepsL2 => of(&["MP.gpu", "K-MP+reload"]),
        // Every load finds the latest data on its own path, therefore no order is lost. But a polling load may never
        // see the store.
        BrokenRule::LoadIgnoresScope => of(&["Polling.gpu", "Polling.sys", "Polling+atom.gpu"]),
        BrokenRule::StoreReleaseSkipsLoads => of(&["LB+release.gpu", "LB+release.sys"]),
        BrokenRule::AtomicReleaseSkipsLoads => of(&["LB+atom.gpu", "LB+atom.sys", "LB+red.gpu"]),
        BrokenRule::AcquireDropsGpuAtOnce | BrokenRule::AcquireDropsOwnFirst => {
            of(&["MP+reader.sys", "MP+neighbour.sys"])
        }
        BrokenRule::BarrierSkipsLoads => of(&["LB+barrier.sys"]),
        BrokenRule::BarrierOpensEarly => of(&["LB+barrier.sys"]),
        BrokenRule::ReleaseSkipsStores => of(&["MP.gpu", "K-MP"]),
        BrokenRule::ReleaseSkipsInvalidations => of(&["MP.gpu", "K-MP+reload"]),
        BrokenRule::ReleaseDrainsOwnHomesOnly => of(&["WRC.sys"]),
        BrokenRule::ReleaseMarkedByIssuer => of(&["MP.sys", "MP.gpu"]),
        BrokenRule::SystemReleaseDrainsOwnModuleOnly => of(&["ISA2.sys", "WRC+near.sys", "WRC+atom.sys"]),
        BrokenRule::SystemReleaseStopsAtGpuHome => of(&["MP.sys", "K-MP"]),
        BrokenRule::StoreEndsAtGpuHome => of(&["MP.sys"]),
        BrokenRule::InvalidationTakenEarly => of(&["MP.sys", "K-MP+reload"]),
        BrokenRule::ReplacementNotAwaited => of(&["MP.sys"]),
        BrokenRule::SharerNotRecorded
        | BrokenRule::StoreKeepsSharers
        | BrokenRule::SilentDirectoryEviction
        | BrokenRule::StoreKeepsSiblings => of(&["MP.gpu"]),
        BrokenRule::SharerRecordedAtRequest => of(&["CoRWR.gpu"]),
        BrokenRule::InvalidationNotForwarded => of(&["MP.gpu"]),
        BrokenRule::InvalidationForwardedOnce => of(&["MP+readers.sys"]),
        BrokenRule::AtomicBelowHome => of(&["Atomics.gpu"]),
        BrokenRule::AtomicPassesSharers => of(&["MP+atom.gpu"]),
        BrokenRule::AtomicKeepsL1 | BrokenRule::AtomicKeepsFill => {
            of(&["CoRWR+atom.gpu", "CoRWR+atom.sys", "CoRWR+red.gpu"])
        }
        BrokenRule::DirtyEvictionLost => back(&["CoWR.gpu", "CoRWR.gpu"]),
        // Another thread's acquire must not discard bytes that this thread has not released.
        BrokenRule::DirtyInvalidationLost => back(&["MP+reader.gpu", "K-CoWW"]),
        BrokenRule::FillSurvivesAcquire | BrokenRule::LoadMergesAcrossAcquire => of(&["MP+reader.gpu"]),
        BrokenRule::StoreKeepsFill => of(&["CoRWR.gpu"]),
        BrokenRule::StorePassesMiss => of(&["CoRWR.gpu"]),
        BrokenRule::InvalidationPassesFill => of(&["MP.gpu"]),
        BrokenRule::FillForgetsOthers => of(&["MP+reader.gpu"]),
        // The rule lets reads pass, for sectors that are not in flight: updates wait for the miss in any case.
        BrokenRule::RequestPassesParked => of(&["CoWR+neighbour.gpu"]),
        BrokenRule::RequestPassesDeferred => {
            let room = Some(ClientResources { registers: 1, ways: None });
            RuleInfo { room, ..of(&["CoWR+queue.gpu"]) }
        }
        BrokenRule::LoadPassesStore => of(&["CoWR.gpu", "CoWR.sys"]),
        BrokenRule::InvalidationReachesOneLine => of(&["MP+region.sys"]),
        BrokenRule::ReleaseForgetsPending => back(&["MP+readers.gpu"]),
        BrokenRule::AtomicKeepsL2 => of(&["CoRWR+atom.gpu", "CoRWR+atom.sys", "CoRWR+red.gpu"]),
        BrokenRule::AtomicLosesDirty => back(&["CoWR+atom.gpu"]),
        BrokenRule::AtomicPassesHomeCopy => cached(&["MP+atom.gpu"]),
        BrokenRule::WriteBackPassesHomeCopy => cached(&["MP.gpu"]),
        BrokenRule::FlushFillsLine => back(&["Flush+neighbour.gpu"]),
        BrokenRule::ReleaseKeepsOwnDirty => back(&["MP.gpu", "K-MP"]),
        BrokenRule::SnoopKeepsDirty => snooped(&["MP.gpu"]),
        BrokenRule::SnoopKeepsCopy => snooped(&["Atomics.gpu"]),
    }
}

impl Mutant {
    /// The tests named in the rule's row, by file name without extension.
    pub fn own_tests(&self) -> &'static [&'static str] {
        row(self.rule).own
    }

    /// The protocol's options.
    pub(super) fn options(&self) -> ProtocolOptions {
        let RuleInfo { options, .. } = row(self.rule);
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
