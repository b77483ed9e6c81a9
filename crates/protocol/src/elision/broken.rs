//! Deliberately broken elision rules. The tests against ground truth must catch each; no user-selectable design
//! contains a broken rule.

/// A single broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenElision {
    /// Stale is treated as Valid: no invalidation before a use.
    StaleTakenAsValid,
    /// Dirty lines needed by another user are not flushed.
    SharedDirtyKept,
    /// A write by another user leaves Valid unchanged.
    RemoteWriteLeavesValid,
    /// A release sets Not Present: III-C's sentence, read literally.
    ReleaseSetsNotPresent,
    /// An operation changes only the rows that requested it: sound, but performs too much.
    ColumnsOfAskingRows,
    /// An operation changes module 0's rows, whichever module performs it. Source: the authors' public simulator,
    /// which uses index 0 at this point.
    ColumnsOfModuleZero,
    /// The launch's own transition precedes the column updates.
    TransitionBeforeColumns,
    /// Figure 6 event by event: the launch's local access, then the remote accesses.
    LocalBeforeRemote,
    /// Figure 6 event by event: the remote accesses, then the launch's local access.
    RemoteBeforeLocal,
    /// The fifth state is stored as Dirty.
    StaleBytesForgotten,
    /// Overlapping ranges are treated as if they were disjoint.
    OverlapTakenAsDisjoint,
    /// A range end inside a line is rounded down: a longer range loses its last line.
    EndsRoundedDown,
    /// A surviving row takes the new range in place of the union.
    RangeReplaced,
    /// Combined structures keep only the first structure's users.
    CoarseningDropsUsers,
    /// Combined structures take the weaker mode.
    CoarseningWeakensMode,
    /// A row is evicted without operations.
    EvictionSilent,
    /// The clean copies left by an evicted row's flush are forgotten.
    EvictionLeavesCopies,
    /// A row without dirty lines is removed.
    LiveRowRemoved,
    /// A kernel without labels changes nothing in the table.
    UnlabelledDoesNothing,
    /// A kernel without labels is not released at its end.
    UnlabelledNotReleased,
    /// The end of the program releases nothing, so dirty lines are lost.
    FinalReleaseMissing,
    /// The table ignores accesses made by the host.
    HostIgnored,
    /// The ranges used by a kernel that is still running do not count as remote uses.
    RunningForgotten,
    /// An operation changes the states in rows used by a running kernel.
    BusyRowCleaned,
    /// A row used by a running kernel is evicted from the table.
    BusyRowEvicted,
    /// A module with a running kernel is invalidated before the flushes: the kernel refetches stale bytes.
    RunningInvalidatedFirst,
    /// The home-aware table is used although an L2 holds lines from other homes.
    HomesIgnored,
    /// A kernel ends before its written-through stores have arrived. The boundary's steps omit the wait, whichever
    /// table decides.
    StoresNotAwaited,
}

impl BrokenElision {
    /// All variants.
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
