//! Broken protocols and the tests that catch them: a checker that passes everything proves nothing.
//!
//! Each [`BrokenRule`] is looked for under every protocol that has it, with the tests that ship: first those that the rule's
//! row names, then all others (`Suite`). Random programs are tried where these are few.

mod nmoesi;

use super::case::Case;
use super::suite::Suite;
use super::{Watch, side_by_side};
use crate::explore::{Config, Room, Start};
use serde::Serialize;
use std::fmt;
use tombolo_protocol::BrokenRule;
use tombolo_protocol::nmoesi::{BrokenNmoesi, NmoesiOptions};
use tombolo_protocol::vi::{Options, Remote, WritePolicy};

const ALL: &[&str] =
    &["no-remote-caching", "memory-side", "peer", "software-flat", "software-hierarchical", "nhcc", "hmg", "viper"];
/// Where threads are on SMs with L1s: everywhere.
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
/// Where an L2 below the ordering point may hold dirty bytes.
const WITH_DIRTY_BELOW: &[&str] = PASSING_ATOMICS;
const SOFTWARE: &[&str] = &["no-remote-caching", "software-flat", "software-hierarchical", "viper"];
const HIERARCHICAL: &[&str] = &["peer", "software-hierarchical", "hmg"];
const SOFTWARE_HIERARCHICAL: &[&str] = &["software-hierarchical"];
const DIRECTORY: &[&str] = &["nhcc", "hmg"];
const HMG: &[&str] = &["hmg"];
const VIPER: &[&str] = &["viper"];
const NMOESI: &[&str] = &["nmoesi"];
/// Where some L2 that passes an atomic on is below the place where it acts.
const PASSING_ATOMICS: &[&str] =
    &["no-remote-caching", "software-flat", "software-hierarchical", "nhcc", "hmg", "viper"];

/// How many tests are enough, where not all are asked.
pub const ENOUGH: usize = 3;

/// How many of the tests are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Tests until one has caught the mutant; no random program.
    First,
    /// Tests until [`ENOUGH`] have caught the mutant; then, if fewer have, random programs.
    Enough,
    /// All tests and all random programs of the series.
    All,
}

impl Asked {
    /// Tests that are to catch a mutant before the rest is spared.
    pub(super) fn tests(self) -> usize {
        match self {
            Asked::First => 1,
            Asked::Enough => ENOUGH,
            Asked::All => usize::MAX,
        }
    }

    /// Whether random programs are tried where so many tests have caught it.
    pub(super) fn tries_random(self, tests: usize) -> bool {
        match self {
            Asked::First => false,
            Asked::Enough => tests < ENOUGH,
            Asked::All => true,
        }
    }
}

/// A broken rule and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MutantReport {
    /// The rule.
    pub name: String,
    /// The protocol in which it is broken.
    pub protocol: &'static str,
    /// The protocol with its options, as [`Design::configured`](super::Design::configured) takes it.
    pub configuration: String,
    /// Whether a test that ships has caught it.
    pub caught: bool,
    /// By what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Catch>,
    /// The way to what the first has seen, as a message sequence chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// What has caught a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Catch {
    /// Tests that ship; counted as far as [`Asked`] goes.
    pub tests: usize,
    /// Random programs.
    pub random: usize,
    /// Random programs that were tried.
    pub random_tried: usize,
    /// Which saw it first.
    pub first: Sighting,
}

/// How a test has seen a broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sighting {
    /// The test.
    pub test: String,
    /// Threads and homes.
    pub placement: String,
    /// What the caches held at the start.
    pub start: &'static str,
    /// What was wrong.
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

/// A broken rule, of whichever list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Of threads, L1s and valid/invalid L2s.
    Rule(BrokenRule),
    /// Of NMOESI.
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

/// What is known of a rule.
struct Row {
    /// Where it changes what can be reached.
    protocols: &'static [&'static str],
    /// Shipped tests that show it, by file name without ending.
    own: &'static [&'static str],
    /// Whether it takes lines that are written back.
    write: WritePolicy,
    /// Where lines of other modules are read and written, in a protocol that leaves the choice.
    remote: Remote,
    /// Resources of clients, where it takes few to show it.
    room: Option<Room>,
}

/// Every broken rule in every one of `protocols` that has it.
pub fn mutants(protocols: &[&str]) -> Vec<Mutant> {
    let of = |rule: Broken| {
        let chosen = row(rule).protocols.iter().filter(|protocol| protocols.contains(protocol));
        chosen.map(move |&protocol| Mutant { rule, protocol })
    };
    let rules = BrokenRule::ALL.into_iter().map(Broken::Rule);
    rules.chain(BrokenNmoesi::ALL.into_iter().map(Broken::Nmoesi)).flat_map(of).collect()
}

/// Looks for each with `threads` threads.
pub fn catch(mutants: &[Mutant], asked: Asked, threads: usize, watch: &dyn Watch) -> Vec<MutantReport> {
    let suite = Suite::shipped();
    side_by_side(threads, mutants.len(), |index| {
        let mutant = &mutants[index];
        let name = mutant.rule.to_string();
        watch.begins(&name, mutant.protocol);
        let report = suite.report(mutant, asked);
        watch.ends(&name, mutant.protocol);
        report
    })
}

fn row(rule: Broken) -> Row {
    match rule {
        Broken::Rule(rule) => row_of_rule(rule),
        Broken::Nmoesi(rule) => nmoesi::row(rule),
    }
}

fn row_of_rule(rule: BrokenRule) -> Row {
    let of = |protocols, own| Row { protocols, own, write: WritePolicy::Through, remote: Remote::Memory, room: None };
    let back = |protocols, own| Row { write: WritePolicy::Back, ..of(protocols, own) };
    let cached = |protocols, own| Row { remote: Remote::Cached, ..back(protocols, own) };
    match rule {
        BrokenRule::AcquireKeepsL1 => of(EVERY, &["MP.gpu", "K-MP+reload"]),
        // Equivalent elsewhere: with a directory, or beside memory, an acquire leaves the L2 alone.
        BrokenRule::AcquireKeepsL2 => of(SOFTWARE, &["MP.gpu", "K-MP+reload"]),
        // Every load finds what its own path has brought last, so no order is lost; what is lost is that a
        // polling load ever sees the store.
        BrokenRule::LoadIgnoresScope => of(EVERY, &["Polling.gpu", "Polling.sys", "Polling+atom.gpu"]),
        BrokenRule::StoreReleaseSkipsLoads => of(EVERY, &["LB+release.gpu", "LB+release.sys"]),
        BrokenRule::AtomicReleaseSkipsLoads => of(EVERY, &["LB+atom.gpu", "LB+atom.sys", "LB+red.gpu"]),
        // Equivalent elsewhere: no thread's acquire drops more than one L2 of a GPU.
        BrokenRule::AcquireDropsGpuAtOnce | BrokenRule::AcquireDropsOwnFirst => {
            of(SOFTWARE_HIERARCHICAL, &["MP+reader.sys", "MP+neighbour.sys"])
        }
        BrokenRule::BarrierSkipsLoads => of(EVERY, &["LB+barrier.sys"]),
        BrokenRule::ReleaseSkipsStores => of(ALL, &["MP.gpu", "K-MP"]),
        // Equivalent without a directory, as all that is [`DIRECTORY`] below: nobody sends an invalidation.
        BrokenRule::ReleaseSkipsInvalidations => of(DIRECTORY, &["MP.gpu", "K-MP+reload"]),
        BrokenRule::ReleaseDrainsOwnHomesOnly => of(DIRECTORY, &["WRC.sys"]),
        BrokenRule::ReleaseMarkedByIssuer => of(DIRECTORY, &["MP.sys", "MP.gpu"]),
        // Equivalent elsewhere: a store that its release has waited for is at its system home.
        BrokenRule::SystemReleaseDrainsOwnModuleOnly => of(HIERARCHICAL, &["ISA2.sys", "WRC+near.sys", "WRC+atom.sys"]),
        BrokenRule::SystemReleaseStopsAtGpuHome => of(ALL, &["MP.sys", "K-MP"]),
        // Equivalent elsewhere: only a GPU home sends on what it has taken.
        BrokenRule::StoreEndsAtGpuHome => of(HIERARCHICAL, &["MP.sys"]),
        // Equivalent elsewhere: only a GPU home both takes invalidations and sends them.
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
        // Equivalent elsewhere: only a GPU home passes on what it keeps a directory entry of.
        BrokenRule::AtomicPassesSharers => of(HMG, &["MP+atom.gpu"]),
        BrokenRule::AtomicKeepsL1 | BrokenRule::AtomicKeepsFill => {
            of(EVERY, &["CoRWR+atom.gpu", "CoRWR+atom.sys", "CoRWR+red.gpu"])
        }
        BrokenRule::DirtyEvictionLost => back(ALL, &["CoWR.gpu", "CoRWR.gpu"]),
        // Another thread's acquire must not take what this one has not released. Equivalent with L2s beside memory, in
        // which nothing is invalidated.
        BrokenRule::DirtyInvalidationLost => back(WITH_DIRTY_BELOW, &["MP+reader.gpu", "K-CoWW"]),
        BrokenRule::FillSurvivesAcquire | BrokenRule::LoadMergesAcrossAcquire => of(EVERY, &["MP+reader.gpu"]),
        BrokenRule::StoreKeepsFill => of(EVERY, &["CoRWR.gpu"]),
        BrokenRule::StorePassesMiss => of(ALL, &["CoRWR.gpu"]),
        BrokenRule::InvalidationPassesFill => of(DIRECTORY, &["MP.gpu"]),
        BrokenRule::FillForgetsOthers => of(EVERY, &["MP+reader.gpu"]),
        // What it lets pass are reads, of sectors that are not on their way: updates wait for the miss in any case.
        BrokenRule::RequestPassesParked => of(ALL, &["CoWR+neighbour.gpu"]),
        // Equivalent elsewhere: L2s of lines have as many miss registers as they want here.
        BrokenRule::RequestPassesDeferred => {
            let room = Some(Room { registers: 1, ways: None });
            Row { room, ..of(NMOESI, &["CoWR+queue.gpu"]) }
        }
        BrokenRule::LoadPassesStore => of(ALL, &["CoWR.gpu", "CoWR.sys"]),
        BrokenRule::InvalidationReachesOneLine => of(DIRECTORY, &["MP+region.sys"]),
        BrokenRule::ReleaseForgetsPending => back(WITH_DIRTY_BELOW, &["MP+readers.gpu"]),
        BrokenRule::AtomicKeepsL2 => of(PASSING_ATOMICS, &["CoRWR+atom.gpu", "CoRWR+atom.sys", "CoRWR+red.gpu"]),
        BrokenRule::AtomicLosesDirty => back(PASSING_ATOMICS, &["CoWR+atom.gpu"]),
        // Equivalent elsewhere: the home's L2 performs what comes to it.
        BrokenRule::AtomicPassesHomeCopy => cached(VIPER, &["MP+atom.gpu"]),
        BrokenRule::WriteBackPassesHomeCopy => cached(VIPER, &["MP.gpu"]),
        BrokenRule::FlushFillsLine => back(WITH_DIRTY_BELOW, &["Flush+neighbour.gpu"]),
        // Equivalent elsewhere: the home's L2 is the ordering point.
        BrokenRule::ReleaseKeepsOwnDirty => back(VIPER, &["MP.gpu", "K-MP"]),
    }
}

impl Mutant {
    /// The tests that its rule's row names, by file name without ending.
    pub fn own_tests(&self) -> &'static [&'static str] {
        row(self.rule).own
    }

    /// The protocol's options.
    pub(super) fn options(&self) -> Options {
        let Row { write, remote, .. } = row(self.rule);
        let options = Options { write, remote, ..Options::default() };
        match self.rule {
            Broken::Rule(rule) => Options { broken_rule: Some(rule), ..options },
            Broken::Nmoesi(rule) => {
                Options { nmoesi: NmoesiOptions { broken: Some(rule), ..options.nmoesi }, ..options }
            }
        }
    }

    /// How `case` is explored.
    pub(super) fn config(&self, case: &Case, start: Start) -> Config {
        let (options, room) = (self.options(), row(self.rule).room);
        Config { options, room, start, evictions: case.evictions(), ..Config::new(self.protocol) }
    }
}
