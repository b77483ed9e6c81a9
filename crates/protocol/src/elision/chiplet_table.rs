//! CPElide's chiplet coherence table (Dalmia, Shashi Kumar and Sinclair, MICRO 2024, III): which boundaries it elides.
//!
//! The paper's states, a row (a structure) and a chiplet each (III-B, "States"; Figure 6):
//!
//! | state | code | what the chiplet's L2 may hold | before it is used there | before it is used elsewhere |
//! | --- | --- | --- | --- | --- |
//! | Not Present | 00 | nothing | - | - |
//! | Valid | 01 | clean copies | - | written: becomes Stale |
//! | Dirty | 10 | clean and dirty copies | - | flush; written: becomes Stale |
//! | Stale | 11 | clean copies, some old | invalidate | - |
//! | Dirty beside stale (ours) | - | dirty bytes, and clean ones some of which are old | invalidate, flush | flush |
//!
//! Figure 6 takes one event at a time. A kernel that runs on all chiplets is a local and a remote event at once, for
//! which it has no row; in either order lines are lost or stale. So a launch is decided in three passes over all rows:
//!
//! 1. [`State::invalidation`] and [`State::flush`]: what is asked for, from the states before the launch.
//! 2. [`State::invalidated`], then [`State::flushed`]: what an operation on a chiplet's L2 does to all its rows. Only
//!    an invalidation gives Not Present, and such a row forgets its range (III-C says that a release does, too; III-B
//!    that it leaves clean copies).
//! 3. [`State::launched`]: what the launch itself leaves:
//!
//! | local \ remote | none, or R | R/W |
//! | --- | --- | --- |
//! | none | unchanged | V to S; D to B; others stay |
//! | R | NP to V; others stay | NP, V, S to S; D, B to B |
//! | R/W | D; from S or B: B | B |
//!
//! *Local* is what the launch does on this chiplet; *remote*, what any other user does to the lines that this chiplet
//! holds or is to use. A kernel that still runs counts as remote too. Rows that it uses skip pass 2 there: it fetches
//! and writes again.
//!
//! The fifth state needs a third bit a chiplet: present, dirty, stale. A row of four chiplets grows from 33.125 to
//! 33.625 bytes.

use super::table::{Reach, Table, TableConfig};
use super::{Account, Boundary, BrokenElision, Elision, KernelId, Mode, Packet, Why};

/// What a module's L2 may hold of a structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// NP: nothing.
    #[default]
    NotPresent,
    /// V: clean copies, all current.
    Valid,
    /// D: dirty bytes, and clean ones that are current.
    Dirty,
    /// S: clean copies, some of them old.
    Stale,
    /// B: dirty bytes, and clean ones some of which are old.
    DirtyStale,
}

impl State {
    /// Every one.
    pub const ALL: [State; 5] = [State::NotPresent, State::Valid, State::Dirty, State::Stale, State::DirtyStale];

    /// Pass 1: whether this state asks for an invalidation of the module.
    pub fn invalidation(self, local: Option<Mode>) -> Why {
        match (self, local) {
            (State::NotPresent, None | Some(Mode::Read | Mode::ReadWrite)) => Why::NotPresent,
            (State::Valid | State::Dirty, None | Some(Mode::Read | Mode::ReadWrite)) => Why::Current,
            (State::Stale | State::DirtyStale, None) => Why::StaleUnused,
            (State::Stale | State::DirtyStale, Some(Mode::Read | Mode::ReadWrite)) => Why::StaleUsed,
        }
    }

    /// Pass 1: whether this state asks for a flush of the module.
    pub fn flush(self, local: Option<Mode>, remote: Option<Mode>) -> Why {
        match (self, local, remote) {
            (State::NotPresent, None | Some(_), None | Some(_)) => Why::NotPresent,
            (State::Valid | State::Stale, None | Some(_), None | Some(_)) => Why::Clean,
            (State::Dirty, None | Some(_), None) | (State::DirtyStale, None, None) => Why::NotShared,
            (State::Dirty | State::DirtyStale, None | Some(_), Some(Mode::Read | Mode::ReadWrite)) => Why::DirtyShared,
            (State::DirtyStale, Some(Mode::Read | Mode::ReadWrite), None) => Why::DirtyStaleUsed,
        }
    }

    /// Pass 2: after an invalidation, which keeps dirty bytes.
    pub fn invalidated(self) -> State {
        match self {
            State::NotPresent | State::Valid | State::Stale => State::NotPresent,
            State::Dirty | State::DirtyStale => State::Dirty,
        }
    }

    /// Pass 2: after a flush, which leaves clean copies.
    pub fn flushed(self) -> State {
        match self {
            State::NotPresent => State::NotPresent,
            State::Valid | State::Dirty => State::Valid,
            State::Stale | State::DirtyStale => State::Stale,
        }
    }

    /// Pass 3: after the kernel that is launched.
    pub fn launched(self, local: Option<Mode>, remote: Option<Mode>) -> State {
        match (local, remote, self) {
            (None, None | Some(Mode::Read), unchanged) => unchanged,
            (None, Some(Mode::ReadWrite), State::NotPresent) => State::NotPresent,
            (None, Some(Mode::ReadWrite), State::Valid | State::Stale) => State::Stale,
            (None, Some(Mode::ReadWrite), State::Dirty | State::DirtyStale) => State::DirtyStale,

            (Some(Mode::Read), None | Some(Mode::Read), State::NotPresent | State::Valid) => State::Valid,
            (Some(Mode::Read), None | Some(Mode::Read), State::Dirty) => State::Dirty,
            // S and B are met here only in rows that a running kernel uses: pass 2 has cleaned all others.
            (Some(Mode::Read), None | Some(Mode::Read), State::Stale) => State::Stale,
            (Some(Mode::Read), None | Some(Mode::Read), State::DirtyStale) => State::DirtyStale,
            // Its lines may be fetched before the others write them.
            (Some(Mode::Read), Some(Mode::ReadWrite), State::NotPresent | State::Valid | State::Stale) => State::Stale,
            (Some(Mode::Read), Some(Mode::ReadWrite), State::Dirty | State::DirtyStale) => State::DirtyStale,

            (Some(Mode::ReadWrite), None | Some(Mode::Read), State::NotPresent | State::Valid | State::Dirty) => {
                State::Dirty
            }
            (Some(Mode::ReadWrite), None | Some(Mode::Read), State::Stale | State::DirtyStale) => State::DirtyStale,
            (
                Some(Mode::ReadWrite),
                Some(Mode::ReadWrite),
                State::NotPresent | State::Valid | State::Dirty | State::Stale | State::DirtyStale,
            ) => State::DirtyStale,
        }
    }

    /// What two rows that become one hold: the more conservative of the two (III-B, "Coarsening").
    pub fn joined(self, other: State) -> State {
        match (self, other) {
            (State::NotPresent, state) | (state, State::NotPresent) => state,
            (State::Valid, State::Valid) => State::Valid,
            (State::Valid | State::Dirty, State::Dirty) | (State::Dirty, State::Valid) => State::Dirty,
            (State::Valid | State::Stale, State::Stale) | (State::Stale, State::Valid) => State::Stale,
            (State::Dirty, State::Stale) | (State::Stale, State::Dirty) => State::DirtyStale,
            (State::DirtyStale, State::Valid | State::Dirty | State::Stale | State::DirtyStale) => State::DirtyStale,
            (State::Valid | State::Dirty | State::Stale, State::DirtyStale) => State::DirtyStale,
        }
    }

    /// Whether dirty bytes may be held.
    pub fn is_dirty(self) -> bool {
        match self {
            State::Dirty | State::DirtyStale => true,
            State::NotPresent | State::Valid | State::Stale => false,
        }
    }
}

/// CPElide's table. It needs no homes and is sound whatever an L2 holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChipletTable(Table);

impl ChipletTable {
    /// An empty table for a machine of `modules` modules.
    pub fn new(config: TableConfig, modules: u8, broken: Option<BrokenElision>) -> ChipletTable {
        ChipletTable(Table::new(config, Reach::Every, modules, broken))
    }
}

impl Elision for ChipletTable {
    fn launch(&mut self, packet: &Packet<'_>, why: &mut dyn FnMut(&Account)) -> Boundary {
        self.0.launch(packet, why)
    }

    fn finish(&mut self, kernel: KernelId, why: &mut dyn FnMut(&Account)) -> Boundary {
        self.0.finish(kernel, why)
    }

    fn end(&mut self, why: &mut dyn FnMut(&Account)) -> Boundary {
        self.0.end(why)
    }

    /// One for each range of the module that has most: at most [`TableConfig::rows`].
    fn rows(&self) -> usize {
        self.0.entries()
    }
}

#[cfg(test)]
mod tests {
    use super::State::{Dirty as D, DirtyStale as B, NotPresent as NP, Stale as S, Valid as V};
    use super::*;

    const R: Option<Mode> = Some(Mode::Read);
    const RW: Option<Mode> = Some(Mode::ReadWrite);

    #[test]
    fn every_cell_of_pass_1() {
        let locals = [None, R, RW];
        for local in locals {
            for remote in [None, R, RW] {
                let operations =
                    |state: State| (state.invalidation(local).is_done(), state.flush(local, remote).is_done());
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
        assert_eq!([NP, V, D, S, B].map(State::invalidated), [NP, NP, D, NP, D]);
        assert_eq!([NP, V, D, S, B].map(State::flushed), [NP, V, V, S, S]);
    }

    #[test]
    fn every_cell_of_pass_3() {
        let row = |local, remote| [NP, V, D, S, B].map(|state: State| state.launched(local, remote));
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
        for one in State::ALL {
            for other in State::ALL {
                assert_eq!(bits(one.joined(other)), bits(one) | bits(other), "{one:?} and {other:?}");
            }
        }
    }
}
