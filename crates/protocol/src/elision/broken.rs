//! Deliberately broken rules of elision. The tests against truth must catch each; no design a user can name has one.

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenElision {
    /// Stale is taken as Valid: no invalidation before a use.
    StaleTakenAsValid,
    /// Dirty lines that another user needs are not flushed.
    SharedDirtyKept,
    /// A write by another user leaves Valid as it is.
    RemoteWriteLeavesValid,
    /// A release sets Not Present: the sentence of III-C, read literally.
    ReleaseSetsNotPresent,
    /// An operation changes the rows that asked for it and no other: sound, and does too much.
    ColumnsOfAskingRows,
    /// An operation changes the rows of module 0, whichever module performs it. Source: the authors' public
    /// simulator, which indexes by 0 there.
    ColumnsOfModuleZero,
    /// The launch's own transition comes before the columns.
    TransitionBeforeColumns,
    /// Figure 6 event by event: the launch's local access, then the others'.
    LocalBeforeRemote,
    /// Figure 6 event by event: the others' accesses, then the launch's local one.
    RemoteBeforeLocal,
    /// The fifth state is stored as Dirty.
    StaleBytesForgotten,
    /// Ranges that overlap are taken as disjoint.
    OverlapTakenAsDisjoint,
    /// An end inside a line is rounded down: the last line of a longer range is left out.
    EndsRoundedDown,
    /// A row that is kept takes the new range in place of the union.
    RangeReplaced,
    /// Structures combined into one keep the users of the first.
    CoarseningDropsUsers,
    /// Structures combined into one take the weaker mode.
    CoarseningWeakensMode,
    /// A row is evicted without operations.
    EvictionSilent,
    /// The clean copies that the flush of an evicted row leaves are forgotten.
    EvictionLeavesCopies,
    /// A row without dirty lines is removed.
    LiveRowRemoved,
    /// A kernel without labels changes nothing.
    UnlabelledDoesNothing,
    /// A kernel without labels is not released at its end.
    UnlabelledNotReleased,
    /// The end of the program releases nothing.
    FinalReleaseMissing,
    /// Accesses of the host are not looked at.
    HostIgnored,
    /// The ranges of a kernel that still runs do not count.
    RunningForgotten,
    /// An operation changes rows that a running kernel uses.
    BusyRowCleaned,
    /// A row that a running kernel uses is evicted.
    BusyRowEvicted,
    /// A module on which a kernel runs is invalidated before the flushes: the kernel fetches stale bytes again.
    RunningInvalidatedFirst,
    /// The home-aware table is used where an L2 holds lines of other homes.
    HomesIgnored,
    /// A kernel ends before its stores that went through have arrived. The boundary's steps leave the wait out, whichever
    /// table decides.
    StoresNotAwaited,
}

impl BrokenElision {
    /// Every one.
    pub const ALL: [BrokenElision; 28] = [
        BrokenElision::StaleTakenAsValid,
        BrokenElision::SharedDirtyKept,
        BrokenElision::RemoteWriteLeavesValid,
        BrokenElision::ReleaseSetsNotPresent,
        BrokenElision::ColumnsOfAskingRows,
        BrokenElision::ColumnsOfModuleZero,
        BrokenElision::TransitionBeforeColumns,
        BrokenElision::LocalBeforeRemote,
        BrokenElision::RemoteBeforeLocal,
        BrokenElision::StaleBytesForgotten,
        BrokenElision::OverlapTakenAsDisjoint,
        BrokenElision::EndsRoundedDown,
        BrokenElision::RangeReplaced,
        BrokenElision::CoarseningDropsUsers,
        BrokenElision::CoarseningWeakensMode,
        BrokenElision::EvictionSilent,
        BrokenElision::EvictionLeavesCopies,
        BrokenElision::LiveRowRemoved,
        BrokenElision::UnlabelledDoesNothing,
        BrokenElision::UnlabelledNotReleased,
        BrokenElision::FinalReleaseMissing,
        BrokenElision::HostIgnored,
        BrokenElision::RunningForgotten,
        BrokenElision::BusyRowCleaned,
        BrokenElision::BusyRowEvicted,
        BrokenElision::RunningInvalidatedFirst,
        BrokenElision::HomesIgnored,
        BrokenElision::StoresNotAwaited,
    ];
}
