//! Deliberately broken NMOESI rules. The explorer must catch each; no user-selectable design contains a broken
//! rule.

use crate::broken_rule::broken_rules;

broken_rules! {
    /// A single broken rule. Broken rules for threads and L1s are in [`BrokenRule`](crate::BrokenRule).
    pub enum BrokenNmoesi {
        /// A client in N evicts the block without sending its bytes.
        SharedBytesEvictedSilently = "SharedBytesEvictedSilently",
        /// A store that finds a block in E leaves it in E: the owner later replies as if clean.
        StoreKeepsExclusive = "StoreKeepsExclusive",
        /// A home still treats an owner that has become S as the owner.
        OwnerKeptWhenShared = "OwnerKeptWhenShared",
        /// A home grants exclusive access to a block still held by further clients.
        SharedGrantedAlone = "SharedGrantedAlone",
        /// Memory supplies a block although an owner answers for it.
        HomeSuppliesOverOwner = "HomeSuppliesOverOwner",
        /// An owner sends a block to a peer and tells the home that it has no such block.
        RefusedAndSent = "RefusedAndSent",
        /// A client that no longer has a block still sends a copy to the peer.
        ForwardAnsweredWithoutBlock = "ForwardAnsweredWithoutBlock",
        /// A client that gives up a block leaves its lines in the L2.
        InvalidationMissesL2 = "InvalidationMissesL2",
        /// A client whose bytes are being written back replies that it has no bytes.
        SentBackAnswersNothing = "SentBackAnswersNothing",
        /// A client in N with newly granted exclusive access puts remote bytes on top of its own bytes.
        OthersOverOwn = "OthersOverOwn",
        /// A home grants exclusive access before the remaining clients have given up the block.
        GrantedBeforeGivenUp = "GrantedBeforeGivenUp",
        /// A home that grants exclusive access takes the block from the owner only, and not from the sharers.
        TakesOwnerAlone = "TakesOwnerAlone",
        /// A merge leaves the block with the remaining sharers.
        MergeKeepsSharers = "MergeKeepsSharers",
        /// A release merges no block in O.
        MergeSkipsOwned = "MergeSkipsOwned",
        /// A merge leaves the block with its client although further clients had bytes in the block.
        MergeKeepsOwnCopy = "MergeKeepsOwnCopy",
        /// A merge writes the whole block.
        MergeIgnoresMask = "MergeIgnoresMask",
        /// A merge puts the owner's bytes on top of the remaining clients' bytes.
        OwnerMergedLast = "OwnerMergedLast",
        /// A client's write-back counts although the home has taken the block from the client.
        StaleWriteBackCounts = "StaleWriteBackCounts",
        /// A block from a peer installs although the home has taken it away since.
        PeerOvertakenInstalls = "PeerOvertakenInstalls",
        /// A coherent load hits in S, N and O.
        CoherentLoadHitsShared = "CoherentLoadHitsShared",
        /// A coherent store does not request exclusive access.
        CoherentStoreShares = "CoherentStoreShares",
        /// A release merges nothing.
        ReleaseSkipsMerge = "ReleaseSkipsMerge",
        /// A launch merges nothing.
        LaunchSkipsMerge = "LaunchSkipsMerge",
        /// A release ends before its merges are acknowledged.
        EndsWithoutMerge = "EndsWithoutMerge",
        /// A client in M evicts the block without sending its bytes.
        DirtyEvictedSilently = "DirtyEvictedSilently",
        /// An atomic that finds S or N is performed in place.
        AtomicShares = "AtomicShares",
        /// A release does not wait for bytes given up by its client.
        GivenNotAwaited = "GivenNotAwaited",
        /// A home does not record the client that receives a block.
        HolderNotRecorded = "HolderNotRecorded",
    }
}
