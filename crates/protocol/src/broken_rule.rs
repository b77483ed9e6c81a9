//! Deliberately broken rules. The explorer must catch each; no design a user can name has one.

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenRule {
    /// An acquire does not invalidate the L1.
    AcquireKeepsL1,
    /// An acquire does not invalidate the L2 caches that its design says it must.
    AcquireKeepsL2,
    /// Loads of any scope hit in any cache.
    LoadIgnoresScope,
    /// A store that releases does not wait for the loads before it.
    StoreReleaseSkipsLoads,
    /// An atomic that releases does not wait for the loads before it.
    AtomicReleaseSkipsLoads,
    /// A hierarchical `.sys` acquire drops all L2s of the GPU at once, the own one not last.
    AcquireDropsGpuAtOnce,
    /// A hierarchical `.sys` acquire drops the own L2 first, then the others of the GPU.
    AcquireDropsOwnFirst,
    /// A barrier does not wait for the loads before it.
    BarrierSkipsLoads,
    /// A release does not wait for posted stores.
    ReleaseSkipsStores,
    /// A release does not wait for invalidations.
    ReleaseSkipsInvalidations,
    /// A release drains only the homes that its own thread wrote.
    ReleaseDrainsOwnHomesOnly,
    /// The issuer of a release marks every L2, in place of the homes that sent the invalidations.
    ReleaseMarkedByIssuer,
    /// A `.sys` release drains only the L2 of its own module, and not those of the rest of its GPU.
    SystemReleaseDrainsOwnModuleOnly,
    /// A `.sys` release, and a kernel's end, wait until stores are taken inside the GPU (by GPU homes), not for those beyond.
    SystemReleaseStopsAtGpuHome,
    /// A release waits for no store beyond the GPU home that has taken it and sent it on.
    StoreEndsAtGpuHome,
    /// A GPU home answers an invalidation before those that it has sent itself are taken.
    InvalidationTakenEarly,
    /// A GPU home answers an invalidation before those that it sent when it replaced the entry are taken.
    ReplacementNotAwaited,
    /// A home does not record the sharer it sends a line to.
    SharerNotRecorded,
    /// A home records a sharer when the request arrives and not when the data leaves.
    SharerRecordedAtRequest,
    /// A store does not invalidate the other sharers.
    StoreKeepsSharers,
    /// A store that a module sent to the home does not invalidate the other modules that share the line.
    StoreKeepsSiblings,
    /// A GPU home does not forward an invalidation to its modules.
    InvalidationNotForwarded,
    /// A GPU home forwards an invalidation to one of its modules only.
    InvalidationForwardedOnce,
    /// A directory entry is replaced without invalidating its sharers.
    SilentDirectoryEviction,
    /// An atomic is performed in the first L2 it meets.
    AtomicBelowHome,
    /// An atomic on its way through a GPU home invalidates none of the modules that share the line.
    AtomicPassesSharers,
    /// An L1 keeps its copy when its own SM sends an atomic to the line.
    AtomicKeepsL1,
    /// Dirty bytes are lost when their line is evicted.
    DirtyEvictionLost,
    /// Dirty bytes are lost when their line is invalidated.
    DirtyInvalidationLost,
    /// A fill in flight installs although its cache was invalidated meanwhile.
    FillSurvivesAcquire,
    /// A later load merges into a miss that an acquire has passed.
    LoadMergesAcrossAcquire,
    /// A store does not poison the fill in flight to its L1.
    StoreKeepsFill,
    /// An atomic does not poison the fill in flight to its L1.
    AtomicKeepsFill,
    /// A store passes a miss of its line that is pending in an L2.
    StorePassesMiss,
    /// An invalidation passes the fills of its region that were sent before it.
    InvalidationPassesFill,
    /// A fill serves the first who waits for its bytes and forgets the others.
    FillForgetsOthers,
    /// A request passes one that is parked on its line's miss.
    RequestPassesParked,
    /// A request passes one of its line that came before it, and lacks a miss register when it runs again.
    RequestPassesDeferred,
    /// A load passes a store of its line that waits for a credit.
    LoadPassesStore,
    /// An invalidation of a region reaches one of its lines only.
    InvalidationReachesOneLine,
    /// A release does not wait for dirty bytes of a line whose miss is pending.
    ReleaseForgetsPending,
    /// An L2 keeps its copy of a line when it passes an atomic on.
    AtomicKeepsL2,
    /// An L2 drops its copy of a line when it passes an atomic on, with dirty bytes that it has not sent ahead.
    AtomicLosesDirty,
    /// An atomic on its way through the L2 of its home to memory leaves the clean bytes there as they are.
    AtomicPassesHomeCopy,
    /// Bytes on their way through the L2 of their home to memory leave the clean bytes there as they are.
    WriteBackPassesHomeCopy,
    /// What is written back makes its whole sectors valid.
    FlushFillsLine,
    /// A release leaves the dirty bytes of lines homed at its own module where they are.
    ReleaseKeepsOwnDirty,
}

impl BrokenRule {
    /// Every one.
    pub const ALL: [BrokenRule; 47] = [
        BrokenRule::AcquireKeepsL1,
        BrokenRule::AcquireKeepsL2,
        BrokenRule::LoadIgnoresScope,
        BrokenRule::StoreReleaseSkipsLoads,
        BrokenRule::AtomicReleaseSkipsLoads,
        BrokenRule::AcquireDropsGpuAtOnce,
        BrokenRule::AcquireDropsOwnFirst,
        BrokenRule::BarrierSkipsLoads,
        BrokenRule::ReleaseSkipsStores,
        BrokenRule::ReleaseSkipsInvalidations,
        BrokenRule::ReleaseDrainsOwnHomesOnly,
        BrokenRule::ReleaseMarkedByIssuer,
        BrokenRule::SystemReleaseDrainsOwnModuleOnly,
        BrokenRule::SystemReleaseStopsAtGpuHome,
        BrokenRule::StoreEndsAtGpuHome,
        BrokenRule::InvalidationTakenEarly,
        BrokenRule::ReplacementNotAwaited,
        BrokenRule::SharerNotRecorded,
        BrokenRule::SharerRecordedAtRequest,
        BrokenRule::StoreKeepsSharers,
        BrokenRule::StoreKeepsSiblings,
        BrokenRule::InvalidationNotForwarded,
        BrokenRule::InvalidationForwardedOnce,
        BrokenRule::SilentDirectoryEviction,
        BrokenRule::AtomicBelowHome,
        BrokenRule::AtomicPassesSharers,
        BrokenRule::AtomicKeepsL1,
        BrokenRule::DirtyEvictionLost,
        BrokenRule::DirtyInvalidationLost,
        BrokenRule::FillSurvivesAcquire,
        BrokenRule::LoadMergesAcrossAcquire,
        BrokenRule::StoreKeepsFill,
        BrokenRule::AtomicKeepsFill,
        BrokenRule::StorePassesMiss,
        BrokenRule::InvalidationPassesFill,
        BrokenRule::FillForgetsOthers,
        BrokenRule::RequestPassesParked,
        BrokenRule::RequestPassesDeferred,
        BrokenRule::LoadPassesStore,
        BrokenRule::InvalidationReachesOneLine,
        BrokenRule::ReleaseForgetsPending,
        BrokenRule::AtomicKeepsL2,
        BrokenRule::AtomicLosesDirty,
        BrokenRule::AtomicPassesHomeCopy,
        BrokenRule::WriteBackPassesHomeCopy,
        BrokenRule::FlushFillsLine,
        BrokenRule::ReleaseKeepsOwnDirty,
    ];
}
