//! Broken protocols and the tests that catch them: a checker that passes everything proves nothing.
//!
//! Each [`BrokenRule`] is looked for under every protocol that has it, with a shape that shows
//! it, on placement after placement, from cold and from warm caches, until it is seen.

use super::case::Placements;
use super::corpus::kernel_test;
use super::coverage::{Place, coverage};
use super::shapes::{atomics, cowr, cowr_after_load, isa2, mp, mp_second_reader, mp_two_readers, polling, wrc};
use super::{Watch, side_by_side};
use crate::axiomatic::{Limits, outcomes};
use crate::explore::{Config, Evictions, Start, Verdict, is_hierarchical, run};
use crate::litmus::{FinalState, Litmus};
use serde::Serialize;
use tombolo_protocol::BrokenRule;
use tombolo_protocol::vi::WritePolicy;

const ALL: &[&str] = &["no-remote-caching", "memory-side", "software-flat", "software-hierarchical", "nhcc", "hmg"];
/// Where an L2 may hold lines of other modules.
const CACHING_OTHERS: &[&str] = &["no-remote-caching", "software-flat", "software-hierarchical", "nhcc", "hmg"];
const SOFTWARE: &[&str] = &["no-remote-caching", "software-flat", "software-hierarchical"];
const HIERARCHICAL: &[&str] = &["software-hierarchical", "hmg"];
const DIRECTORY: &[&str] = &["nhcc", "hmg"];
const HMG: &[&str] = &["hmg"];

/// States of a placement: what a mutant does wrong, it does soon.
const STATES: usize = 50_000;

/// A broken rule and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MutantReport {
    /// The rule.
    pub name: String,
    /// The protocol in which it is broken.
    pub protocol: &'static str,
    /// Whether that was seen.
    pub caught: bool,
    /// By which test, where, from which start, and as what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Catch>,
    /// The way there, as a message sequence chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// How a mutant was caught.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Catch {
    /// The test.
    pub test: String,
    /// Threads and homes.
    pub placement: String,
    /// What the caches held at the start.
    pub start: &'static str,
    /// What was wrong.
    pub seen_as: String,
}

/// A broken rule in a protocol, and what must show it.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The rule.
    pub rule: BrokenRule,
    /// The protocol.
    pub protocol: &'static str,
    /// What shows it.
    pub test: Litmus,
}

/// Every broken rule in every one of `protocols` that has it.
pub fn mutants(protocols: &[&str]) -> Vec<Mutant> {
    let of = |rule: BrokenRule, (breakable, test): Catcher| {
        let chosen = breakable.iter().filter(|protocol| protocols.contains(protocol));
        chosen.map(move |&protocol| Mutant { rule, protocol, test: test.clone() })
    };
    let within_kernels = BrokenRule::ALL.into_iter().flat_map(|rule| of(rule, catcher(rule)));
    // A writer, the home and a reader on three modules of one GPU.
    let within_a_gpu = of(BrokenRule::ReleaseMarkedByIssuer, (DIRECTORY, mp("gpu")));
    let at_boundaries =
        BrokenRule::ALL.into_iter().filter_map(|rule| Some(of(rule, boundary_catcher(rule)?))).flatten();
    within_kernels.chain(within_a_gpu).chain(at_boundaries).collect()
}

/// Looks for each with `threads` threads.
pub fn catch(mutants: &[Mutant], threads: usize, watch: &dyn Watch) -> Vec<MutantReport> {
    side_by_side(threads, mutants.len(), |index| {
        let mutant = &mutants[index];
        let name = format!("{:?}", mutant.rule);
        watch.begins(&name, mutant.protocol);
        let report = mutant.caught();
        watch.ends(&name, mutant.protocol);
        report
    })
}

/// Protocols and a test.
type Catcher = (&'static [&'static str], Litmus);

/// The protocols in which `rule`, broken, changes what happens at a kernel's boundary, and a test that shows it there.
fn boundary_catcher(rule: BrokenRule) -> Option<Catcher> {
    let (protocols, test) = match rule {
        BrokenRule::AcquireKeepsL1 => (ALL, "K-MP+reload"),
        BrokenRule::AcquireKeepsL2 => (SOFTWARE, "K-MP+reload"),
        BrokenRule::ReleaseSkipsStores => (ALL, "K-MP"),
        BrokenRule::ReleaseSkipsInvalidations => (DIRECTORY, "K-MP+reload"),
        BrokenRule::SystemReleaseStopsAtGpuHome => (HIERARCHICAL, "K-MP"),
        BrokenRule::InvalidationTakenEarly => (HMG, "K-MP+reload"),
        BrokenRule::DirtyInvalidationLost => (SOFTWARE, "K-CoWW"),
        // These break what threads do, not what a boundary does.
        BrokenRule::LoadIgnoresScope
        | BrokenRule::ReleaseDrainsOwnHomesOnly
        | BrokenRule::ReleaseMarkedByIssuer
        | BrokenRule::SystemReleaseDrainsOwnModuleOnly
        | BrokenRule::ReplacementNotAwaited
        | BrokenRule::SharerNotRecorded
        | BrokenRule::SharerRecordedAtRequest
        | BrokenRule::StoreKeepsSharers
        | BrokenRule::StoreKeepsSiblings
        | BrokenRule::InvalidationNotForwarded
        | BrokenRule::InvalidationForwardedOnce
        | BrokenRule::SilentDirectoryEviction
        | BrokenRule::AtomicBelowHome
        | BrokenRule::DirtyEvictionLost
        | BrokenRule::FillSurvivesAcquire
        | BrokenRule::LoadMergesAcrossAcquire
        | BrokenRule::StoreKeepsFill
        | BrokenRule::StorePassesMiss => return None,
    };
    Some((protocols, kernel_test(test)))
}

/// The protocols that have `rule`, and a shape that shows it.
fn catcher(rule: BrokenRule) -> Catcher {
    match rule {
        BrokenRule::AcquireKeepsL1 | BrokenRule::ReleaseSkipsStores => (ALL, mp("gpu")),
        // With a directory an acquire leaves the L2 alone.
        BrokenRule::AcquireKeepsL2 => (SOFTWARE, mp("gpu")),
        // Every load finds what its own path has brought last, so no order is lost; what is lost is that a
        // polling load ever sees the store.
        BrokenRule::LoadIgnoresScope => (ALL, polling("gpu")),
        BrokenRule::ReleaseSkipsInvalidations => (DIRECTORY, mp("gpu")),
        BrokenRule::ReleaseDrainsOwnHomesOnly => (DIRECTORY, wrc("sys")),
        BrokenRule::ReleaseMarkedByIssuer => (DIRECTORY, mp("sys")),
        BrokenRule::SystemReleaseDrainsOwnModuleOnly => (HIERARCHICAL, isa2()),
        BrokenRule::SystemReleaseStopsAtGpuHome => (HIERARCHICAL, mp("sys")),
        BrokenRule::InvalidationTakenEarly | BrokenRule::ReplacementNotAwaited => (HMG, mp("sys")),
        BrokenRule::SharerNotRecorded | BrokenRule::StoreKeepsSharers | BrokenRule::SilentDirectoryEviction => {
            (DIRECTORY, mp("gpu"))
        }
        BrokenRule::SharerRecordedAtRequest => (DIRECTORY, cowr_after_load("gpu")),
        BrokenRule::StoreKeepsSiblings => (DIRECTORY, mp("gpu")),
        BrokenRule::InvalidationNotForwarded => (HMG, mp("gpu")),
        BrokenRule::InvalidationForwardedOnce => (HMG, mp_two_readers("sys")),
        BrokenRule::AtomicBelowHome => (CACHING_OTHERS, atomics("gpu")),
        BrokenRule::DirtyEvictionLost => (ALL, cowr("gpu")),
        // Another thread's acquire must not take what this one has not released.
        BrokenRule::DirtyInvalidationLost => (CACHING_OTHERS, mp_second_reader("gpu")),
        BrokenRule::FillSurvivesAcquire | BrokenRule::LoadMergesAcrossAcquire => (ALL, mp_second_reader("gpu")),
        BrokenRule::StoreKeepsFill | BrokenRule::StorePassesMiss => (ALL, cowr_after_load("gpu")),
    }
}

impl Mutant {
    /// How the protocol is explored: with the rule broken, or (`whole`) as it should be.
    pub fn config(&self, start: Start, whole: bool) -> Config {
        let mut config = Config { start, max_states: STATES, ..Config::new(self.protocol) };
        if matches!(self.rule, BrokenRule::DirtyEvictionLost | BrokenRule::DirtyInvalidationLost) {
            config.options.write = WritePolicy::Back;
        }
        if self.rule == BrokenRule::LoadIgnoresScope {
            // An eviction would end the wait by chance.
            config.evictions = Evictions::Never;
        }
        if whole { config } else { config.with_broken_rule(self.rule) }
    }

    /// Explores place after place until the broken rule is seen.
    fn caught(&self) -> MutantReport {
        let name = format!("{:?}", self.rule);
        let allowed = outcomes(&self.test.program, &Limits::default()).ok();
        let forbidden = |state: &FinalState| allowed.as_ref().is_some_and(|allowed| !allowed.contains(state));
        for Place { layout, start } in self.places() {
            let config = self.config(start, false);
            let report = run(&self.test.program, &layout, &config, &forbidden).expect("the protocols above have names");
            if let Verdict::Violated(violation) = report.verdict {
                let by = Catch {
                    test: self.test.program.name.clone(),
                    placement: layout.to_string(),
                    start: match start {
                        Start::Cold => "cold",
                        Start::Warm => "warm",
                    },
                    seen_as: violation.to_string(),
                };
                let trace = report.trace;
                return MutantReport { name, protocol: self.protocol, caught: true, by: Some(by), trace };
            }
        }
        MutantReport { name, protocol: self.protocol, caught: false, by: None, trace: None }
    }

    /// Where it is looked for.
    fn places(&self) -> Vec<Place> {
        let config = self.config(Start::Cold, false);
        let gpu_homes = is_hierarchical(&config).expect("the protocols above have names");
        coverage(&self.test.program, Placements::All, gpu_homes).places
    }
}
