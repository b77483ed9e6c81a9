//! Deliberately broken rules. The explorer must catch each; no user-selectable design contains a broken rule.

use crate::elision::RetainedLines;
use crate::options::{Choice, ProtocolFacts, ProtocolOptions, WritePolicy};
use tombolo_types::Promise;

/// Declares broken rules, each with its user-visible name, so renaming a variant changes no document, and with the
/// protocols in which it changes the reachable states, unless all rules of the enum share them.
macro_rules! broken_rules {
    ($(#[doc = $about:literal])+ pub enum $Name:ident {
        $( $(#[doc = $doc:literal])+ $Variant:ident = $name:literal in $applies:ident ),+ $(,)?
    }) => {
        $crate::broken_rule::broken_rules! {
            $(#[doc = $about])+
            pub enum $Name { $( $(#[doc = $doc])+ $Variant = $name ),+ }
        }

        impl $Name {
            /// True if the rule changes the reachable states of a protocol with these facts.
            pub fn applies(self, facts: &ProtocolFacts) -> bool {
                match self { $($Name::$Variant => $applies(facts)),+ }
            }
        }
    };
    ($(#[doc = $about:literal])+ pub enum $Name:ident {
        $( $(#[doc = $doc:literal])+ $Variant:ident = $name:literal ),+ $(,)?
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Name { $( $(#[doc = $doc])+ $Variant ),+ }

        impl $Name {
            /// All variants.
            pub const ALL: [$Name; [$($name),+].len()] = [$($Name::$Variant),+];

            /// The name in documents and tables.
            pub const fn name(self) -> &'static str {
                match self { $($Name::$Variant => $name),+ }
            }
        }
    };
}
pub(crate) use broken_rules;

/// Protocols that promise anything: L1s obey acquires.
fn coherent(facts: &ProtocolFacts) -> bool {
    facts.promise != Promise::Nothing
}

/// Coherent protocols with valid/invalid L2 lines.
fn valid_invalid(facts: &ProtocolFacts) -> bool {
    coherent(facts) && !facts.host
}

/// Protocols between clients and homes.
fn blocks(facts: &ProtocolFacts) -> bool {
    facts.host
}

/// Protocols in which an L2 may retain stale lines, and an acquire drops them.
fn drops_at_acquire(facts: &ProtocolFacts) -> bool {
    valid_invalid(facts) && (facts.holds)(&ProtocolOptions::default()) != RetainedLines::Nothing
}

/// Protocols with an L2 below the ordering point, which may hold dirty bytes and forwards atomics.
fn dirty_below(facts: &ProtocolFacts) -> bool {
    let back = ProtocolOptions { write: WritePolicy::Back, ..ProtocolOptions::default() };
    valid_invalid(facts) && (facts.holds)(&back) != RetainedLines::Nothing
}

/// Protocols with GPU homes.
fn hierarchical(facts: &ProtocolFacts) -> bool {
    valid_invalid(facts) && facts.hierarchical
}

/// Protocols with GPU homes and acquires that drop L2 lines.
fn hierarchical_software(facts: &ProtocolFacts) -> bool {
    hierarchical(facts) && drops_at_acquire(facts)
}

/// Protocols with directories of sharers.
fn directory(facts: &ProtocolFacts) -> bool {
    valid_invalid(facts) && facts.directory
}

/// Protocols with directories at GPU homes.
fn hierarchical_directory(facts: &ProtocolFacts) -> bool {
    hierarchical(facts) && facts.directory
}

/// Protocols whose home L2s may be snooped.
fn snooped(facts: &ProtocolFacts) -> bool {
    facts.offers(Choice::HomeL2)
}

/// Protocols with memory as the ordering point.
fn meets_at_memory(facts: &ProtocolFacts) -> bool {
    facts.offers(Choice::Remote)
}

broken_rules! {
    /// A single broken rule.
    pub enum BrokenRule {
        /// An acquire does not invalidate the L1.
        AcquireKeepsL1 = "AcquireKeepsL1" in coherent,
        /// An acquire does not invalidate the L2 caches that its design requires.
        // Equivalent elsewhere: with a directory, or next to memory, an acquire leaves the L2 unchanged.
        AcquireKeepsL2 = "AcquireKeepsL2" in drops_at_acquire,
        /// Loads with any scope hit in any cache.
        LoadIgnoresScope = "LoadIgnoresScope" in coherent,
        /// A releasing store does not wait for the thread's earlier loads.
        StoreReleaseSkipsLoads = "StoreReleaseSkipsLoads" in coherent,
        /// A releasing atomic does not wait for the thread's earlier loads.
        AtomicReleaseSkipsLoads = "AtomicReleaseSkipsLoads" in coherent,
        /// A hierarchical `.sys` acquire drops all L2s in the GPU at once, instead of the own L2 last.
        // Equivalent elsewhere: no thread's acquire drops more than a single L2 per GPU.
        AcquireDropsGpuAtOnce = "AcquireDropsGpuAtOnce" in hierarchical_software,
        /// A hierarchical `.sys` acquire drops the own L2 first, then the GPU's remaining L2s.
        AcquireDropsOwnFirst = "AcquireDropsOwnFirst" in hierarchical_software,
        /// A barrier does not wait for the thread's earlier loads.
        BarrierSkipsLoads = "BarrierSkipsLoads" in coherent,
        /// A barrier opens without its last arrival.
        BarrierOpensEarly = "BarrierOpensEarly" in coherent,
        /// A release does not wait for posted stores.
        ReleaseSkipsStores = "ReleaseSkipsStores" in valid_invalid,
        /// A release does not wait for invalidations.
        // Equivalent without a directory, like every rule for directories below: no module sends an invalidation.
        ReleaseSkipsInvalidations = "ReleaseSkipsInvalidations" in directory,
        /// A release drains only the homes written by its own thread.
        ReleaseDrainsOwnHomesOnly = "ReleaseDrainsOwnHomesOnly" in directory,
        /// The release's issuer marks every L2, in place of the homes that sent the invalidations.
        ReleaseMarkedByIssuer = "ReleaseMarkedByIssuer" in directory,
        /// A `.sys` release drains only its own module's L2, without the L2s in the rest of its GPU.
        // Equivalent elsewhere: a store for which its release has waited is at its system home.
        SystemReleaseDrainsOwnModuleOnly = "SystemReleaseDrainsOwnModuleOnly" in hierarchical,
        /// A `.sys` release, and a kernel's end, wait until stores are accepted inside the GPU (by GPU homes), but
        /// not for stores beyond it.
        SystemReleaseStopsAtGpuHome = "SystemReleaseStopsAtGpuHome" in valid_invalid,
        /// A release stops waiting for a store at the GPU home that has accepted and forwarded it.
        // Equivalent elsewhere: only a GPU home forwards stores after it has performed them.
        StoreEndsAtGpuHome = "StoreEndsAtGpuHome" in hierarchical,
        /// A GPU home acknowledges an invalidation before its own forwarded invalidations are acknowledged.
        // Equivalent elsewhere: only a GPU home both receives and sends invalidations.
        InvalidationTakenEarly = "InvalidationTakenEarly" in hierarchical_directory,
        /// A GPU home acknowledges an invalidation before its invalidations from an earlier entry replacement are
        /// acknowledged.
        ReplacementNotAwaited = "ReplacementNotAwaited" in hierarchical_directory,
        /// A home does not record the sharer that receives a line.
        SharerNotRecorded = "SharerNotRecorded" in directory,
        /// A home records a sharer at the request's arrival instead of the data's departure.
        SharerRecordedAtRequest = "SharerRecordedAtRequest" in directory,
        /// A store does not invalidate the remaining sharers.
        StoreKeepsSharers = "StoreKeepsSharers" in directory,
        /// A store sent by a module to the home does not invalidate the modules that share the line.
        StoreKeepsSiblings = "StoreKeepsSiblings" in directory,
        /// A GPU home does not forward an invalidation to the modules in its GPU.
        InvalidationNotForwarded = "InvalidationNotForwarded" in hierarchical_directory,
        /// A GPU home forwards an invalidation to only a single module in its GPU.
        InvalidationForwardedOnce = "InvalidationForwardedOnce" in hierarchical_directory,
        /// A directory entry is replaced without invalidating its sharers.
        SilentDirectoryEviction = "SilentDirectoryEviction" in directory,
        /// An atomic is performed in the first L2 on its path.
        AtomicBelowHome = "AtomicBelowHome" in valid_invalid,
        /// An atomic on the path through a GPU home invalidates none of the modules that share the line.
        // Equivalent elsewhere: only a GPU home forwards requests for regions with a directory entry.
        AtomicPassesSharers = "AtomicPassesSharers" in hierarchical_directory,
        /// An L1 keeps its copy when its own SM sends an atomic to the line.
        AtomicKeepsL1 = "AtomicKeepsL1" in coherent,
        /// Dirty bytes are lost when their line is evicted.
        DirtyEvictionLost = "DirtyEvictionLost" in valid_invalid,
        /// Dirty bytes are lost when their line is invalidated.
        // Equivalent with L2s next to memory, in which nothing is invalidated.
        DirtyInvalidationLost = "DirtyInvalidationLost" in dirty_below,
        /// A fill in flight installs although its cache was invalidated in the meantime.
        FillSurvivesAcquire = "FillSurvivesAcquire" in coherent,
        /// A later load merges into a miss that an acquire has already passed.
        LoadMergesAcrossAcquire = "LoadMergesAcrossAcquire" in coherent,
        /// A store does not poison the fill in flight to its L1.
        StoreKeepsFill = "StoreKeepsFill" in coherent,
        /// An atomic does not poison the fill in flight to its L1.
        AtomicKeepsFill = "AtomicKeepsFill" in coherent,
        /// A store overtakes a miss for its line that is still pending in an L2.
        StorePassesMiss = "StorePassesMiss" in valid_invalid,
        /// An invalidation overtakes earlier fills for its region on the channel.
        InvalidationPassesFill = "InvalidationPassesFill" in directory,
        /// A fill serves the first waiter for its bytes and forgets the remaining waiters.
        FillForgetsOthers = "FillForgetsOthers" in coherent,
        /// A request overtakes an older request parked on its line's miss.
        RequestPassesParked = "RequestPassesParked" in valid_invalid,
        /// A request overtakes an older request for its line that still lacks a miss register when it is retried.
        // Equivalent elsewhere: L2s with line granularity have unlimited miss registers in the explorer.
        RequestPassesDeferred = "RequestPassesDeferred" in blocks,
        /// A load overtakes a store to its line that waits for a credit.
        LoadPassesStore = "LoadPassesStore" in valid_invalid,
        /// An invalidation for a region reaches only a single line and leaves the remaining lines in place.
        InvalidationReachesOneLine = "InvalidationReachesOneLine" in directory,
        /// A release does not wait for dirty bytes in a line whose miss is pending.
        ReleaseForgetsPending = "ReleaseForgetsPending" in dirty_below,
        /// An L2 keeps its copy of the line when it forwards an atomic for the line.
        AtomicKeepsL2 = "AtomicKeepsL2" in dirty_below,
        /// An L2 drops its copy of a line when it forwards an atomic, including dirty bytes that it has not sent
        /// ahead.
        AtomicLosesDirty = "AtomicLosesDirty" in dirty_below,
        /// An atomic on the path through its home's L2 to memory leaves the clean bytes there unchanged.
        // Equivalent elsewhere: the home's L2 performs arriving requests.
        AtomicPassesHomeCopy = "AtomicPassesHomeCopy" in meets_at_memory,
        /// Written-back bytes on the path through their home's L2 to memory leave the clean bytes there unchanged.
        WriteBackPassesHomeCopy = "WriteBackPassesHomeCopy" in meets_at_memory,
        /// A write-back marks the written bytes' whole sectors as valid.
        FlushFillsLine = "FlushFillsLine" in dirty_below,
        /// A release leaves dirty bytes in place if their lines are homed at its own module.
        // Equivalent elsewhere: the home's L2 is the ordering point.
        ReleaseKeepsOwnDirty = "ReleaseKeepsOwnDirty" in meets_at_memory,
        /// A request that goes on to memory leaves the line's dirty bytes in the snooped L2.
        SnoopKeepsDirty = "SnoopKeepsDirty" in snooped,
        /// A store that goes on to memory leaves the line's copy in the snooped L2.
        SnoopKeepsCopy = "SnoopKeepsCopy" in snooped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{FACTS, PROTOCOLS};

    fn protocols(rule: BrokenRule) -> Vec<&'static str> {
        let all = PROTOCOLS.iter().zip(FACTS);
        all.filter(|(_, facts)| rule.applies(facts)).map(|(name, _)| *name).collect()
    }

    #[test]
    fn facts_decide_where_a_rule_applies() {
        let directories = ["nhcc", "hmg"];
        let below = [&["no-remote-caching", "software-flat", "software-hierarchical"], &directories[..], &["viper"]];
        assert_eq!(protocols(BrokenRule::AcquireKeepsL1).len(), PROTOCOLS.len() - 1, "all but the ideal");
        assert_eq!(protocols(BrokenRule::AtomicBelowHome).len(), PROTOCOLS.len() - 2, "not under NMOESI either");
        assert_eq!(
            protocols(BrokenRule::AcquireKeepsL2),
            ["no-remote-caching", "software-flat", "software-hierarchical", "viper"]
        );
        assert_eq!(protocols(BrokenRule::AtomicKeepsL2), below.concat());
        assert_eq!(protocols(BrokenRule::StoreEndsAtGpuHome), ["peer", "software-hierarchical", "hmg"]);
        assert_eq!(protocols(BrokenRule::AcquireDropsOwnFirst), ["software-hierarchical"]);
        assert_eq!(protocols(BrokenRule::StoreKeepsSharers), directories);
        assert_eq!(protocols(BrokenRule::ReplacementNotAwaited), ["hmg"]);
        assert_eq!(protocols(BrokenRule::ReleaseKeepsOwnDirty), ["viper"]);
        assert_eq!(protocols(BrokenRule::SnoopKeepsCopy), ["software-flat"]);
        assert_eq!(protocols(BrokenRule::RequestPassesDeferred), ["nmoesi"]);
    }
}
