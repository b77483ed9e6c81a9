//! Deliberately broken rules of NMOESI. The explorer must catch each; no design a user can name has one.

use crate::broken_rule::broken_rules;

broken_rules! {
    /// One broken rule. Those of threads and L1s are [`BrokenRule`](crate::BrokenRule)'s.
    pub enum BrokenNmoesi {
        /// A client in N leaves without its bytes.
        SharedBytesEvictedSilently = "SharedBytesEvictedSilently",
        /// A store that finds a block in E leaves it E: the owner answers clean.
        StoreKeepsExclusive = "StoreKeepsExclusive",
        /// A home takes an owner that has become S for the owner still.
        OwnerKeptWhenShared = "OwnerKeptWhenShared",
        /// A home grants a block alone that others hold.
        SharedGrantedAlone = "SharedGrantedAlone",
        /// Memory supplies a block that an owner answers for.
        HomeSuppliesOverOwner = "HomeSuppliesOverOwner",
        /// An owner sends a block to a peer and tells the home that it has none.
        RefusedAndSent = "RefusedAndSent",
        /// A client that has no such block any more sends one to the peer.
        ForwardAnsweredWithoutBlock = "ForwardAnsweredWithoutBlock",
        /// A client that gives up a block leaves its lines in the L2.
        InvalidationMissesL2 = "InvalidationMissesL2",
        /// A client whose bytes are on their way back answers that it has none.
        SentBackAnswersNothing = "SentBackAnswersNothing",
        /// A client in N that gets a block alone puts the others' bytes on top of its own.
        OthersOverOwn = "OthersOverOwn",
        /// A home grants a block alone before the others have given it up.
        GrantedBeforeGivenUp = "GrantedBeforeGivenUp",
        /// A home that grants a block alone takes it from the owner and from no other.
        TakesOwnerAlone = "TakesOwnerAlone",
        /// A merge leaves the block with the others that share it.
        MergeKeepsSharers = "MergeKeepsSharers",
        /// A release merges no block in O.
        MergeSkipsOwned = "MergeSkipsOwned",
        /// A merge leaves the block with its client although others had bytes of it.
        MergeKeepsOwnCopy = "MergeKeepsOwnCopy",
        /// A merge writes the whole block.
        MergeIgnoresMask = "MergeIgnoresMask",
        /// A merge puts the owner's bytes on top of the others'.
        OwnerMergedLast = "OwnerMergedLast",
        /// What a client sends back counts although the home has taken the block from it.
        StaleWriteBackCounts = "StaleWriteBackCounts",
        /// A block from a peer installs although the home has taken it away since.
        PeerOvertakenInstalls = "PeerOvertakenInstalls",
        /// A coherent load hits in S, N and O.
        CoherentLoadHitsShared = "CoherentLoadHitsShared",
        /// A coherent store does not ask for the block alone.
        CoherentStoreShares = "CoherentStoreShares",
        /// A release merges nothing.
        ReleaseSkipsMerge = "ReleaseSkipsMerge",
        /// A launch merges nothing.
        LaunchSkipsMerge = "LaunchSkipsMerge",
        /// A release ends before what it merges is taken.
        EndsWithoutMerge = "EndsWithoutMerge",
        /// A client in M leaves without its bytes.
        DirtyEvictedSilently = "DirtyEvictedSilently",
        /// An atomic that finds S or N is performed there.
        AtomicShares = "AtomicShares",
        /// A release does not wait for bytes that its client has given up.
        GivenNotAwaited = "GivenNotAwaited",
        /// A home does not record the client that it sends a block to.
        HolderNotRecorded = "HolderNotRecorded",
    }
}
