//! CPElide's chiplet coherence table (Dalmia, Shashi Kumar and Sinclair, MICRO 2024, III): its elision decisions.
//!
//! The paper's states, kept per row (a structure) and chiplet (III-B, "States"; Figure 6):
//!
//! | state | code | possible contents of the chiplet's L2 | before local use | before remote use |
//! | --- | --- | --- | --- | --- |
//! | Not Present | 00 | nothing | - | - |
//! | Valid | 01 | clean copies | - | written: becomes Stale |
//! | Dirty | 10 | clean and dirty copies | - | flush; written: becomes Stale |
//! | Stale | 11 | clean copies, some outdated | invalidate | - |
//! | Dirty and stale (ours) | - | dirty bytes, and clean bytes, some outdated | invalidate, flush | flush |
//!
//! Figure 6 handles a single event at a time. A kernel that runs on all chiplets is a local and a remote event at
//! once, for which the figure has no row; either order leads to lost or stale lines. A launch is therefore decided
//! in three passes over all rows:
//!
//! 1. [`StructureState::invalidation`] and [`StructureState::flush`]: the requested operations, from the states before the launch.
//! 2. [`StructureState::invalidated`], then [`StructureState::flushed`]: the effect of an operation on a chiplet's L2, for all its
//!    rows. Only an invalidation leads to Not Present, and the row then forgets its range (III-C says a release
//!    does so too; III-B says that a release leaves clean copies).
//! 3. [`StructureState::launched`]: the effect of the launch itself:
//!
//! | local \ remote | none, or R | R/W |
//! | --- | --- | --- |
//! | none | unchanged | V to S; D to B; others stay |
//! | R | NP to V; others stay | NP, V, S to S; D, B to B |
//! | R/W | D; from S or B: B | B |
//!
//! *Local* is the launch's use on this chiplet; *remote* is any other user's access to lines that this chiplet
//! holds or is about to use. A running kernel also counts as remote. Its rows skip pass 2 on its chiplets: the
//! kernel fetches and writes again.
//!
//! The fifth state needs a third bit per chiplet: present, dirty, stale. A row for four chiplets grows from 33.125
//! to 33.625 bytes.

use super::table::{CoherenceTable, LineHolders, TableConfig};
use super::{AccessMode, Account, BoundaryOperations, BrokenElision, DecisionReason, Elision, KernelId, Packet};

/// Possible contents of a module's L2 for a structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StructureState {
    /// NP: nothing.
    #[default]
    NotPresent,
    /// V: clean copies, all current.
    Valid,
    /// D: dirty bytes, and current clean bytes.
    Dirty,
    /// S: clean copies, some outdated.
    Stale,
    /// B: dirty bytes, and clean bytes, some outdated.
    DirtyStale,
}

impl StructureState {
    /// All states.
    pub const ALL: [StructureState; 5] = [
        StructureState::NotPresent,
        StructureState::Valid,
        StructureState::Dirty,
        StructureState::Stale,
        StructureState::DirtyStale,
    ];

    /// Pass 1: decides if this state requests an invalidation at the module.
    pub fn invalidation(self, local: Option<AccessMode>) -> DecisionReason {
        match (self, local) {
            (StructureState::NotPresent, None | Some(AccessMode::Read | AccessMode::ReadWrite)) => {
                DecisionReason::NotPresent
            }
            (StructureState::Valid | StructureState::Dirty, None | Some(AccessMode::Read | AccessMode::ReadWrite)) => {
                DecisionReason::Current
            }
            (StructureState::Stale | StructureState::DirtyStale, None) => DecisionReason::StaleUnused,
            (StructureState::Stale | StructureState::DirtyStale, Some(AccessMode::Read | AccessMode::ReadWrite)) => {
                DecisionReason::StaleUsed
            }
        }
    }

    /// Pass 1: decides if this state requests a flush at the module.
    pub fn flush(self, local: Option<AccessMode>, remote: Option<AccessMode>) -> DecisionReason {
        match (self, local, remote) {
            (StructureState::NotPresent, None | Some(_), None | Some(_)) => DecisionReason::NotPresent,
            (StructureState::Valid | StructureState::Stale, None | Some(_), None | Some(_)) => DecisionReason::Clean,
            (StructureState::Dirty, None | Some(_), None) | (StructureState::DirtyStale, None, None) => {
                DecisionReason::NotShared
            }
            (
                StructureState::Dirty | StructureState::DirtyStale,
                None | Some(_),
                Some(AccessMode::Read | AccessMode::ReadWrite),
            ) => DecisionReason::DirtyShared,
            (StructureState::DirtyStale, Some(AccessMode::Read | AccessMode::ReadWrite), None) => {
                DecisionReason::DirtyStaleUsed
            }
        }
    }

    /// Pass 2: the state after an invalidation, which keeps dirty bytes.
    pub fn invalidated(self) -> StructureState {
        match self {
            StructureState::NotPresent | StructureState::Valid | StructureState::Stale => StructureState::NotPresent,
            StructureState::Dirty | StructureState::DirtyStale => StructureState::Dirty,
        }
    }

    /// Pass 2: the state after a flush, which leaves clean copies.
    pub fn flushed(self) -> StructureState {
        match self {
            StructureState::NotPresent => StructureState::NotPresent,
            StructureState::Valid | StructureState::Dirty => StructureState::Valid,
            StructureState::Stale | StructureState::DirtyStale => StructureState::Stale,
        }
    }

    /// Pass 3: the state after the launched kernel.
    pub fn launched(self, local: Option<AccessMode>, remote: Option<AccessMode>) -> StructureState {
        match (local, remote, self) {
            (None, None | Some(AccessMode::Read), unchanged) => unchanged,
            (None, Some(AccessMode::ReadWrite), StructureState::NotPresent) => StructureState::NotPresent,
            (None, Some(AccessMode::ReadWrite), StructureState::Valid | StructureState::Stale) => StructureState::Stale,
            (None, Some(AccessMode::ReadWrite), StructureState::Dirty | StructureState::DirtyStale) => {
                StructureState::DirtyStale
            }

            (
                Some(AccessMode::Read),
                None | Some(AccessMode::Read),
                StructureState::NotPresent | StructureState::Valid,
            ) => StructureState::Valid,
            (Some(AccessMode::Read), None | Some(AccessMode::Read), StructureState::Dirty) => StructureState::Dirty,
            // S and B occur here only in rows used by a running kernel: pass 2 has cleaned all other rows.
            (Some(AccessMode::Read), None | Some(AccessMode::Read), StructureState::Stale) => StructureState::Stale,
            (Some(AccessMode::Read), None | Some(AccessMode::Read), StructureState::DirtyStale) => {
                StructureState::DirtyStale
            }
            // The module may fetch its lines before other users write them.
            (
                Some(AccessMode::Read),
                Some(AccessMode::ReadWrite),
                StructureState::NotPresent | StructureState::Valid | StructureState::Stale,
            ) => StructureState::Stale,
            (
                Some(AccessMode::Read),
                Some(AccessMode::ReadWrite),
                StructureState::Dirty | StructureState::DirtyStale,
            ) => StructureState::DirtyStale,

            (
                Some(AccessMode::ReadWrite),
                None | Some(AccessMode::Read),
                StructureState::NotPresent | StructureState::Valid | StructureState::Dirty,
            ) => StructureState::Dirty,
            (
                Some(AccessMode::ReadWrite),
                None | Some(AccessMode::Read),
                StructureState::Stale | StructureState::DirtyStale,
            ) => StructureState::DirtyStale,
            (
                Some(AccessMode::ReadWrite),
                Some(AccessMode::ReadWrite),
                StructureState::NotPresent
                | StructureState::Valid
                | StructureState::Dirty
                | StructureState::Stale
                | StructureState::DirtyStale,
            ) => StructureState::DirtyStale,
        }
    }

    /// The combined state of two merged rows: the more conservative state (III-B, "Coarsening").
    pub fn joined(self, other: StructureState) -> StructureState {
        match (self, other) {
            (StructureState::NotPresent, state) | (state, StructureState::NotPresent) => state,
            (StructureState::Valid, StructureState::Valid) => StructureState::Valid,
            (StructureState::Valid | StructureState::Dirty, StructureState::Dirty)
            | (StructureState::Dirty, StructureState::Valid) => StructureState::Dirty,
            (StructureState::Valid | StructureState::Stale, StructureState::Stale)
            | (StructureState::Stale, StructureState::Valid) => StructureState::Stale,
            (StructureState::Dirty, StructureState::Stale) | (StructureState::Stale, StructureState::Dirty) => {
                StructureState::DirtyStale
            }
            (
                StructureState::DirtyStale,
                StructureState::Valid | StructureState::Dirty | StructureState::Stale | StructureState::DirtyStale,
            ) => StructureState::DirtyStale,
            (StructureState::Valid | StructureState::Dirty | StructureState::Stale, StructureState::DirtyStale) => {
                StructureState::DirtyStale
            }
        }
    }

    /// True if the L2 may hold dirty bytes.
    pub fn is_dirty(self) -> bool {
        match self {
            StructureState::Dirty | StructureState::DirtyStale => true,
            StructureState::NotPresent | StructureState::Valid | StructureState::Stale => false,
        }
    }
}

/// CPElide's table. It needs no homes and is sound for any L2 contents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChipletTable(CoherenceTable);

impl ChipletTable {
    /// An empty table for a machine with `modules` modules.
    pub fn new(config: TableConfig, modules: u8, broken: Option<BrokenElision>) -> ChipletTable {
        ChipletTable(CoherenceTable::new(config, LineHolders::Every, modules, broken))
    }
}

impl Elision for ChipletTable {
    fn launch(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        self.0.launch(packet, why)
    }

    fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        self.0.finish(kernel, why)
    }

    fn end(&mut self, why: &mut dyn FnMut(&Account)) -> BoundaryOperations {
        self.0.end(why)
    }

    /// Number of entries: per row, the ranges of the module with the most ranges; at most [`TableConfig::rows`].
    fn rows(&self) -> usize {
        self.0.entries()
    }
}

#[cfg(test)]
mod tests {
    use super::StructureState::{Dirty as D, DirtyStale as B, NotPresent as NP, Stale as S, Valid as V};
    use super::*;

    const R: Option<AccessMode> = Some(AccessMode::Read);
    const RW: Option<AccessMode> = Some(AccessMode::ReadWrite);

    #[test]
    fn every_cell_of_pass_1() {
        let locals = [None, R, RW];
        for local in locals {
            for remote in [None, R, RW] {
                let operations =
                    |state: StructureState| (state.invalidation(local).is_done(), state.flush(local, remote).is_done());
                assert_eq!(operations(NP), (false, false));
                assert_eq!(operations(V), (false, false));
                assert_eq!(operations(D), (false, remote.is_some()));
                assert_eq!(operations(S), (local.is_some(), false));
                assert_eq!(operations(B), (local.is_some(), local.is_some() || remote.is_some()));
            }
        }
    }

    #[test]
    fn every_cell_of_pass_2() {
        assert_eq!([NP, V, D, S, B].map(StructureState::invalidated), [NP, NP, D, NP, D]);
        assert_eq!([NP, V, D, S, B].map(StructureState::flushed), [NP, V, V, S, S]);
    }

    #[test]
    fn every_cell_of_pass_3() {
        let row = |local, remote| [NP, V, D, S, B].map(|state: StructureState| state.launched(local, remote));
        for reads in [None, R] {
            assert_eq!(row(None, reads), [NP, V, D, S, B]);
            assert_eq!(row(R, reads), [V, V, D, S, B]);
            assert_eq!(row(RW, reads), [D, D, D, B, B]);
        }
        assert_eq!(row(None, RW), [NP, S, B, S, B]);
        assert_eq!(row(R, RW), [S, S, B, S, B]);
        assert_eq!(row(RW, RW), [B; 5]);
    }

    #[test]
    fn rows_join_to_the_union_of_present_dirty_and_stale() {
        let bits = |state| match state {
            NP => 0b000,
            V => 0b001,
            D => 0b011,
            S => 0b101,
            B => 0b111,
        };
        for one in StructureState::ALL {
            for other in StructureState::ALL {
                assert_eq!(bits(one.joined(other)), bits(one) | bits(other), "{one:?} and {other:?}");
            }
        }
    }
}
