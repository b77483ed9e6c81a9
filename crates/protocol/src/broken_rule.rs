//! Deliberately broken rules. The explorer must catch each; no design a user can name has one.

/// Declares broken rules, each with the name that users see: renaming a variant changes no document.
macro_rules! broken_rules {
    ($(#[doc = $about:literal])+ pub enum $Name:ident {
        $( $(#[doc = $doc:literal])+ $Variant:ident = $name:literal ),+ $(,)?
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Name { $( $(#[doc = $doc])+ $Variant ),+ }

        impl $Name {
            /// Every one.
            pub const ALL: [$Name; [$($name),+].len()] = [$($Name::$Variant),+];

            /// The name in documents and tables.
            pub const fn name(self) -> &'static str {
                match self { $($Name::$Variant => $name),+ }
            }
        }
    };
}
pub(crate) use broken_rules;

broken_rules! {
    /// One broken rule.
    pub enum BrokenRule {
        /// An acquire does not invalidate the L1.
        AcquireKeepsL1 = "AcquireKeepsL1",
        /// An acquire does not invalidate the L2 caches that its design says it must.
        AcquireKeepsL2 = "AcquireKeepsL2",
        /// Loads of any scope hit in any cache.
        LoadIgnoresScope = "LoadIgnoresScope",
        /// A store that releases does not wait for the loads before it.
        StoreReleaseSkipsLoads = "StoreReleaseSkipsLoads",
        /// An atomic that releases does not wait for the loads before it.
        AtomicReleaseSkipsLoads = "AtomicReleaseSkipsLoads",
        /// A hierarchical `.sys` acquire drops all L2s of the GPU at once, the own one not last.
        AcquireDropsGpuAtOnce = "AcquireDropsGpuAtOnce",
        /// A hierarchical `.sys` acquire drops the own L2 first, then the others of the GPU.
        AcquireDropsOwnFirst = "AcquireDropsOwnFirst",
        /// A barrier does not wait for the loads before it.
        BarrierSkipsLoads = "BarrierSkipsLoads",
        /// A release does not wait for posted stores.
        ReleaseSkipsStores = "ReleaseSkipsStores",
        /// A release does not wait for invalidations.
        ReleaseSkipsInvalidations = "ReleaseSkipsInvalidations",
        /// A release drains only the homes that its own thread wrote.
        ReleaseDrainsOwnHomesOnly = "ReleaseDrainsOwnHomesOnly",
        /// The issuer of a release marks every L2, in place of the homes that sent the invalidations.
        ReleaseMarkedByIssuer = "ReleaseMarkedByIssuer",
        /// A `.sys` release drains only the L2 of its own module, and not those of the rest of its GPU.
        SystemReleaseDrainsOwnModuleOnly = "SystemReleaseDrainsOwnModuleOnly",
        /// A `.sys` release, and a kernel's end, wait until stores are taken inside the GPU (by GPU homes), not for those
        /// beyond.
        SystemReleaseStopsAtGpuHome = "SystemReleaseStopsAtGpuHome",
        /// A release waits for no store beyond the GPU home that has taken it and sent it on.
        StoreEndsAtGpuHome = "StoreEndsAtGpuHome",
        /// A GPU home answers an invalidation before those that it has sent itself are taken.
        InvalidationTakenEarly = "InvalidationTakenEarly",
        /// A GPU home answers an invalidation before those that it sent when it replaced the entry are taken.
        ReplacementNotAwaited = "ReplacementNotAwaited",
        /// A home does not record the sharer it sends a line to.
        SharerNotRecorded = "SharerNotRecorded",
        /// A home records a sharer when the request arrives and not when the data leaves.
        SharerRecordedAtRequest = "SharerRecordedAtRequest",
        /// A store does not invalidate the other sharers.
        StoreKeepsSharers = "StoreKeepsSharers",
        /// A store that a module sent to the home does not invalidate the other modules that share the line.
        StoreKeepsSiblings = "StoreKeepsSiblings",
        /// A GPU home does not forward an invalidation to its modules.
        InvalidationNotForwarded = "InvalidationNotForwarded",
        /// A GPU home forwards an invalidation to one of its modules only.
        InvalidationForwardedOnce = "InvalidationForwardedOnce",
        /// A directory entry is replaced without invalidating its sharers.
        SilentDirectoryEviction = "SilentDirectoryEviction",
        /// An atomic is performed in the first L2 it meets.
        AtomicBelowHome = "AtomicBelowHome",
        /// An atomic on its way through a GPU home invalidates none of the modules that share the line.
        AtomicPassesSharers = "AtomicPassesSharers",
        /// An L1 keeps its copy when its own SM sends an atomic to the line.
        AtomicKeepsL1 = "AtomicKeepsL1",
        /// Dirty bytes are lost when their line is evicted.
        DirtyEvictionLost = "DirtyEvictionLost",
        /// Dirty bytes are lost when their line is invalidated.
        DirtyInvalidationLost = "DirtyInvalidationLost",
        /// A fill in flight installs although its cache was invalidated meanwhile.
        FillSurvivesAcquire = "FillSurvivesAcquire",
        /// A later load merges into a miss that an acquire has passed.
        LoadMergesAcrossAcquire = "LoadMergesAcrossAcquire",
        /// A store does not poison the fill in flight to its L1.
        StoreKeepsFill = "StoreKeepsFill",
        /// An atomic does not poison the fill in flight to its L1.
        AtomicKeepsFill = "AtomicKeepsFill",
        /// A store passes a miss of its line that is pending in an L2.
        StorePassesMiss = "StorePassesMiss",
        /// An invalidation passes the fills of its region that were sent before it.
        InvalidationPassesFill = "InvalidationPassesFill",
        /// A fill serves the first who waits for its bytes and forgets the others.
        FillForgetsOthers = "FillForgetsOthers",
        /// A request passes one that is parked on its line's miss.
        RequestPassesParked = "RequestPassesParked",
        /// A request passes one of its line that came before it, and lacks a miss register when it runs again.
        RequestPassesDeferred = "RequestPassesDeferred",
        /// A load passes a store of its line that waits for a credit.
        LoadPassesStore = "LoadPassesStore",
        /// An invalidation of a region reaches one of its lines only.
        InvalidationReachesOneLine = "InvalidationReachesOneLine",
        /// A release does not wait for dirty bytes of a line whose miss is pending.
        ReleaseForgetsPending = "ReleaseForgetsPending",
        /// An L2 keeps its copy of a line when it passes an atomic on.
        AtomicKeepsL2 = "AtomicKeepsL2",
        /// An L2 drops its copy of a line when it passes an atomic on, with dirty bytes that it has not sent ahead.
        AtomicLosesDirty = "AtomicLosesDirty",
        /// An atomic on its way through the L2 of its home to memory leaves the clean bytes there as they are.
        AtomicPassesHomeCopy = "AtomicPassesHomeCopy",
        /// Bytes on their way through the L2 of their home to memory leave the clean bytes there as they are.
        WriteBackPassesHomeCopy = "WriteBackPassesHomeCopy",
        /// What is written back makes its whole sectors valid.
        FlushFillsLine = "FlushFillsLine",
        /// A release leaves the dirty bytes of lines homed at its own module where they are.
        ReleaseKeepsOwnDirty = "ReleaseKeepsOwnDirty",
    }
}
