//! Deliberately broken rules of NMOESI. The explorer must catch each; no design a user can name has one.

/// One broken rule. Those of threads and L1s are [`BrokenRule`](crate::BrokenRule)'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenNmoesi {
    /// A client in N leaves without its bytes.
    SharedBytesEvictedSilently,
    /// A store that finds a block in E leaves it E: the owner answers clean.
    StoreKeepsExclusive,
    /// A home takes an owner that has become S for the owner still.
    OwnerKeptWhenShared,
    /// A home grants a block alone that others hold.
    SharedGrantedAlone,
    /// Memory supplies a block that an owner answers for.
    HomeSuppliesOverOwner,
    /// An owner sends a block to a peer and tells the home that it has none.
    RefusedAndSent,
    /// A client that has no such block any more sends one to the peer.
    ForwardAnsweredWithoutBlock,
    /// A client that gives up a block leaves its lines in the L2.
    InvalidationMissesL2,
    /// A client whose bytes are on their way back answers that it has none.
    SentBackAnswersNothing,
    /// A client in N that gets a block alone puts the others' bytes on top of its own.
    OthersOverOwn,
    /// A home grants a block alone before the others have given it up.
    GrantedBeforeGivenUp,
    /// A home that grants a block alone takes it from the owner and from no other.
    TakesOwnerAlone,
    /// A merge leaves the block with the others that share it.
    MergeKeepsSharers,
    /// A release merges no block in O.
    MergeSkipsOwned,
    /// A merge leaves the block with its client although others had bytes of it.
    MergeKeepsOwnCopy,
    /// A merge writes the whole block.
    MergeIgnoresMask,
    /// A merge puts the owner's bytes on top of the others'.
    OwnerMergedLast,
    /// What a client sends back counts although the home has taken the block from it.
    StaleWriteBackCounts,
    /// A block from a peer installs although the home has taken it away since.
    PeerOvertakenInstalls,
    /// A coherent load hits in S, N and O.
    CoherentLoadHitsShared,
    /// A coherent store does not ask for the block alone.
    CoherentStoreShares,
    /// A release merges nothing.
    ReleaseSkipsMerge,
    /// A launch merges nothing.
    LaunchSkipsMerge,
    /// A release ends before what it merges is taken.
    EndsWithoutMerge,
    /// A client in M leaves without its bytes.
    DirtyEvictedSilently,
    /// An atomic that finds S or N is performed there.
    AtomicShares,
    /// A release does not wait for bytes that its client has given up.
    GivenNotAwaited,
    /// A home does not record the client that it sends a block to.
    HolderNotRecorded,
}

impl BrokenNmoesi {
    /// Every one.
    pub const ALL: [BrokenNmoesi; 28] = [
        BrokenNmoesi::SharedBytesEvictedSilently,
        BrokenNmoesi::StoreKeepsExclusive,
        BrokenNmoesi::OwnerKeptWhenShared,
        BrokenNmoesi::SharedGrantedAlone,
        BrokenNmoesi::HomeSuppliesOverOwner,
        BrokenNmoesi::RefusedAndSent,
        BrokenNmoesi::ForwardAnsweredWithoutBlock,
        BrokenNmoesi::InvalidationMissesL2,
        BrokenNmoesi::SentBackAnswersNothing,
        BrokenNmoesi::OthersOverOwn,
        BrokenNmoesi::GrantedBeforeGivenUp,
        BrokenNmoesi::TakesOwnerAlone,
        BrokenNmoesi::MergeKeepsSharers,
        BrokenNmoesi::MergeSkipsOwned,
        BrokenNmoesi::MergeKeepsOwnCopy,
        BrokenNmoesi::MergeIgnoresMask,
        BrokenNmoesi::OwnerMergedLast,
        BrokenNmoesi::StaleWriteBackCounts,
        BrokenNmoesi::PeerOvertakenInstalls,
        BrokenNmoesi::CoherentLoadHitsShared,
        BrokenNmoesi::CoherentStoreShares,
        BrokenNmoesi::ReleaseSkipsMerge,
        BrokenNmoesi::LaunchSkipsMerge,
        BrokenNmoesi::EndsWithoutMerge,
        BrokenNmoesi::DirtyEvictedSilently,
        BrokenNmoesi::AtomicShares,
        BrokenNmoesi::GivenNotAwaited,
        BrokenNmoesi::HolderNotRecorded,
    ];
}
