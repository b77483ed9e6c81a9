//! Broken rules of NMOESI, and the tests that show them.

use super::Row;
use tombolo_protocol::nmoesi::BrokenNmoesi;
use tombolo_protocol::options::{Remote, WritePolicy};

pub(super) fn row(rule: BrokenNmoesi) -> Row {
    let own: &[&str] = match rule {
        BrokenNmoesi::SharedBytesEvictedSilently => &[],
        BrokenNmoesi::StoreKeepsExclusive => &[],
        BrokenNmoesi::OwnerKeptWhenShared => &[],
        BrokenNmoesi::SharedGrantedAlone => &[],
        BrokenNmoesi::HomeSuppliesOverOwner => &[],
        BrokenNmoesi::RefusedAndSent => &[],
        BrokenNmoesi::ForwardAnsweredWithoutBlock => &[],
        BrokenNmoesi::InvalidationMissesL2 => &[],
        BrokenNmoesi::SentBackAnswersNothing => &[],
        BrokenNmoesi::OthersOverOwn => &[],
        BrokenNmoesi::GrantedBeforeGivenUp => &[],
        BrokenNmoesi::TakesOwnerAlone => &[],
        BrokenNmoesi::MergeKeepsSharers => &[],
        BrokenNmoesi::MergeSkipsOwned => &[],
        BrokenNmoesi::MergeKeepsOwnCopy => &[],
        BrokenNmoesi::MergeIgnoresMask => &[],
        BrokenNmoesi::OwnerMergedLast => &[],
        BrokenNmoesi::StaleWriteBackCounts => &[],
        BrokenNmoesi::PeerOvertakenInstalls => &[],
        BrokenNmoesi::CoherentLoadHitsShared => &[],
        BrokenNmoesi::CoherentStoreShares => &[],
        BrokenNmoesi::ReleaseSkipsMerge => &[],
        BrokenNmoesi::LaunchSkipsMerge => &[],
        BrokenNmoesi::EndsWithoutMerge => &[],
        BrokenNmoesi::DirtyEvictedSilently => &[],
        BrokenNmoesi::AtomicShares => &[],
        BrokenNmoesi::HolderNotRecorded => &[],
    };
    Row { protocols: &["nmoesi"], own, write: WritePolicy::Through, remote: Remote::Memory }
}
