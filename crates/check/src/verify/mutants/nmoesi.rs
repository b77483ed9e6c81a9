//! Broken rules for NMOESI, and tests for exposing them.

use super::RuleInfo;
use tombolo_protocol::nmoesi::BrokenNmoesi;
use tombolo_protocol::options::ProtocolOptions;

pub(super) fn row(rule: BrokenNmoesi) -> RuleInfo {
    let own: &[&str] = match rule {
        BrokenNmoesi::SharedBytesEvictedSilently => &["CoRWR.sys"],
        BrokenNmoesi::StoreKeepsExclusive => &["CoRWR.gpu", "K-MP"],
        BrokenNmoesi::OwnerKeptWhenShared => &["CoRWR.sys"],
        BrokenNmoesi::SharedGrantedAlone => &["CoRWR.sys"],
        BrokenNmoesi::HomeSuppliesOverOwner => &["Atomics.sys"],
        BrokenNmoesi::RefusedAndSent => &["Atomics.sys"],
        BrokenNmoesi::ForwardAnsweredWithoutBlock => &["MP+readers+reload.sys"],
        BrokenNmoesi::InvalidationMissesL2 => &["Atomics.gpu"],
        BrokenNmoesi::SentBackAnswersNothing => &["Atomics.sys"],
        BrokenNmoesi::OthersOverOwn => &["MP+host-writes+own.sys"],
        BrokenNmoesi::GrantedBeforeGivenUp => &["Atomics.sys"],
        BrokenNmoesi::TakesOwnerAlone => &["Atomics.sys"],
        BrokenNmoesi::MergeKeepsSharers => &["ISA2.sys"],
        BrokenNmoesi::MergeSkipsOwned => &["MP+region.sys"],
        BrokenNmoesi::MergeKeepsOwnCopy => &["K-Both-Write"],
        BrokenNmoesi::MergeIgnoresMask => &["Flush.sys"],
        BrokenNmoesi::OwnerMergedLast => &["K-host+writers"],
        BrokenNmoesi::StaleWriteBackCounts => &["Atomics.sys"],
        BrokenNmoesi::PeerOvertakenInstalls => &["CoRWR+atom.sys"],
        BrokenNmoesi::CoherentLoadHitsShared => &["K-host+beside"],
        BrokenNmoesi::CoherentStoreShares => &["K-host+flag-writes"],
        BrokenNmoesi::ReleaseSkipsMerge => &["MP+neighbour.sys"],
        BrokenNmoesi::LaunchSkipsMerge => &["K-Beside"],
        BrokenNmoesi::EndsWithoutMerge => &["MP+neighbour.sys"],
        BrokenNmoesi::DirtyEvictedSilently => &["Atomics.gpu"],
        BrokenNmoesi::AtomicShares => &["Atomics.sys"],
        BrokenNmoesi::GivenNotAwaited => &["MP.sys"],
        BrokenNmoesi::HolderNotRecorded => &["Atomics.gpu"],
    };
    RuleInfo { own, options: ProtocolOptions::default(), room: None }
}
