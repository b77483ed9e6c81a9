//! Deliberately broken rules. The explorer must catch each; no user-selectable design contains a broken rule.

/// Declares broken rules, each with its user-visible name, so renaming a variant changes no document.
macro_rules! broken_rules {
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

broken_rules! {
    /// A single broken rule.
    pub enum BrokenRule {
        /// An acquire does not invalidate the L1.
        AcquireKeepsL1 = "AcquireKeepsL1",
        /// An acquire does not invalidate the L2 caches that its design requires.
        AcquireKeepsL2 = "AcquireKeepsL2",
        /// Loads with any scope hit in any cache.
        LoadIgnoresScope = "LoadIgnoresScope",
        /// A releasing store does not wait for the thread's earlier loads.
        StoreReleaseSkipsLoads = "StoreReleaseSkipsLoads",
        /// A releasing atomic does not wait for the thread's earlier loads.
        AtomicReleaseSkipsLoads = "AtomicReleaseSkipsLoads",
        /// A hierarchical `.sys` acquire drops all L2s in the GPU at once, instead of the own L2 last.
        AcquireDropsGpuAtOnce = "AcquireDropsGpuAtOnce",
        /// A hierarchical `.sys` acquire drops the own L2 first, then the GPU's remaining L2s.
        AcquireDropsOwnFirst = "AcquireDropsOwnFirst",
        /// A barrier does not wait for the thread's earlier loads.
        BarrierSkipsLoads = "BarrierSkipsLoads",
        /// A release does not wait for posted stores.
        ReleaseSkipsStores = "ReleaseSkipsStores",
        /// A release does not wait for invalidations.
        ReleaseSkipsInvalidations = "ReleaseSkipsInvalidations",
        /// A release drains only the homes written by its own thread.
        ReleaseDrainsOwnHomesOnly = "ReleaseDrainsOwnHomesOnly",
        /// The release's issuer marks every L2, in place of the homes that sent the invalidations.
        ReleaseMarkedByIssuer = "ReleaseMarkedByIssuer",
        /// A `.sys` release drains only its own module's L2, without the L2s in the rest of its GPU.
        SystemReleaseDrainsOwnModuleOnly = "SystemReleaseDrainsOwnModuleOnly",
        /// A `.sys` release, and a kernel's end, wait until stores are accepted inside the GPU (by GPU homes), but
        /// not for stores beyond it.
        SystemReleaseStopsAtGpuHome = "SystemReleaseStopsAtGpuHome",
        /// A release stops waiting for a store at the GPU home that has accepted and forwarded it.
        StoreEndsAtGpuHome = "StoreEndsAtGpuHome",
        /// A GPU home acknowledges an invalidation before its own forwarded invalidations are acknowledged.
        InvalidationTakenEarly = "InvalidationTakenEarly",
        /// A GPU home acknowledges an invalidation before its invalidations from an earlier entry replacement are
        /// acknowledged.
        ReplacementNotAwaited = "ReplacementNotAwaited",
        /// A home does not record the sharer that receives a line.
        SharerNotRecorded = "SharerNotRecorded",
        /// A home records a sharer at the request's arrival instead of the data's departure.
        SharerRecordedAtRequest = "SharerRecordedAtRequest",
        /// A store does not invalidate the remaining sharers.
        StoreKeepsSharers = "StoreKeepsSharers",
        /// A store sent by a module to the home does not invalidate the modules that share the line.
        StoreKeepsSiblings = "StoreKeepsSiblings",
        /// A GPU home does not forward an invalidation to the modules in its GPU.
        InvalidationNotForwarded = "InvalidationNotForwarded",
        /// A GPU home forwards an invalidation to only a single module in its GPU.
        InvalidationForwardedOnce = "InvalidationForwardedOnce",
        /// A directory entry is replaced without invalidating its sharers.
        SilentDirectoryEviction = "SilentDirectoryEviction",
        /// An atomic is performed in the first L2 on its path.
        AtomicBelowHome = "AtomicBelowHome",
        /// An atomic on the path through a GPU home invalidates none of the modules that share the line.
        AtomicPassesSharers = "AtomicPassesSharers",
        /// An L1 keeps its copy when its own SM sends an atomic to the line.
        AtomicKeepsL1 = "AtomicKeepsL1",
        /// Dirty bytes are lost when their line is evicted.
        DirtyEvictionLost = "DirtyEvictionLost",
        /// Dirty bytes are lost when their line is invalidated.
        DirtyInvalidationLost = "DirtyInvalidationLost",
        /// A fill in flight installs although its cache was invalidated in the meantime.
        FillSurvivesAcquire = "FillSurvivesAcquire",
        /// A later load merges into a miss that an acquire has already passed.
        LoadMergesAcrossAcquire = "LoadMergesAcrossAcquire",
        /// A store does not poison the fill in flight to its L1.
        StoreKeepsFill = "StoreKeepsFill",
        /// An atomic does not poison the fill in flight to its L1.
        AtomicKeepsFill = "AtomicKeepsFill",
        /// A store overtakes a miss for its line that is still pending in an L2.
        StorePassesMiss = "StorePassesMiss",
        /// An invalidation overtakes earlier fills for its region on the channel.
        InvalidationPassesFill = "InvalidationPassesFill",
        /// A fill serves the first waiter for its bytes and forgets the remaining waiters.
        FillForgetsOthers = "FillForgetsOthers",
        /// A request overtakes an older request parked on its line's miss.
        RequestPassesParked = "RequestPassesParked",
        /// A request overtakes an older request for its line that still lacks a miss register when it is retried.
        RequestPassesDeferred = "RequestPassesDeferred",
        /// A load overtakes a store to its line that waits for a credit.
        LoadPassesStore = "LoadPassesStore",
        /// An invalidation for a region reaches only a single line and leaves the remaining lines in place.
        InvalidationReachesOneLine = "InvalidationReachesOneLine",
        /// A release does not wait for dirty bytes in a line whose miss is pending.
        ReleaseForgetsPending = "ReleaseForgetsPending",
        /// An L2 keeps its copy of the line when it forwards an atomic for the line.
        AtomicKeepsL2 = "AtomicKeepsL2",
        /// An L2 drops its copy of a line when it forwards an atomic, including dirty bytes that it has not sent
        /// ahead.
        AtomicLosesDirty = "AtomicLosesDirty",
        /// An atomic on the path through its home's L2 to memory leaves the clean bytes there unchanged.
        AtomicPassesHomeCopy = "AtomicPassesHomeCopy",
        /// Written-back bytes on the path through their home's L2 to memory leave the clean bytes there unchanged.
        WriteBackPassesHomeCopy = "WriteBackPassesHomeCopy",
        /// A write-back marks the written bytes' whole sectors as valid.
        FlushFillsLine = "FlushFillsLine",
        /// A release leaves dirty bytes in place if their lines are homed at its own module.
        ReleaseKeepsOwnDirty = "ReleaseKeepsOwnDirty",
    }
}
