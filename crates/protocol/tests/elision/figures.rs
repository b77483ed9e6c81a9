//! The walk-throughs in CPElide's figures and listings, in the paper's order.

use crate::cases::{Kind, module};
use crate::directed::{DirectedProgram, DirectedUse, R, RW};
use tombolo_protocol::elision::StructureState::{Dirty, NotPresent, Stale, Valid};
use tombolo_protocol::elision::{AccessMode, DecisionReason, StructureState};

const NOTHING: (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());

/// Two chiplets, and arrays with eight lines: chiplet 0 is home to the first four.
fn two_chiplets() -> DirectedProgram {
    DirectedProgram::new(Kind::Chiplet, 2, 3, 4)
}

fn on(at: u8, mode: AccessMode) -> Vec<DirectedUse> {
    vec![(module(at), mode, 0..4)]
}

/// An array's state on a chiplet before and after the last launch.
fn states(program: &DirectedProgram, structure: u64, chiplet: u8) -> (StructureState, StructureState) {
    let of = |structure| Some(program.structure(structure));
    let account =
        program.accounts.iter().find(|account| account.structure == of(structure) && account.module.0 == chiplet);
    account.map_or((NotPresent, NotPresent), |account| (account.before, account.after))
}

#[test]
fn figure_6_valid_stays_on_a_local_read_a_remote_read_and_a_flush() {
    let mut program = two_chiplets();
    program.run(&[(0, on(0, R))]);
    assert_eq!(states(&program, 0, 0), (NotPresent, Valid));
    program.run(&[(0, on(0, R))]);
    assert_eq!(states(&program, 0, 0), (Valid, Valid), "ALR");
    program.run(&[(0, on(1, R)), (1, on(0, RW))]);
    assert_eq!(states(&program, 0, 0), (Valid, Valid), "ARR: stay in Valid on remote accesses");
    assert_eq!(program.run(&[(1, on(1, R))]), (vec![], vec![0]));
    assert_eq!(states(&program, 0, 0), (Valid, Valid), "a flush initiated by a different data structure");
}

#[test]
fn figure_6_valid_becomes_stale_when_another_chiplet_is_to_write() {
    let mut program = two_chiplets();
    program.run(&[(0, on(0, R))]);
    assert_eq!(program.run(&[(0, on(1, RW))]), NOTHING, "lazily: nothing is sent yet");
    assert_eq!(states(&program, 0, 0), (Valid, Stale));
    assert_eq!(program.run(&[(1, on(0, R))]), NOTHING, "not even where the chiplet runs something else");
    assert_eq!(program.run(&[(0, on(0, R))]), (vec![0], vec![1]), "it is invalidated before subsequent uses");
    assert_eq!(states(&program, 0, 0), (Stale, Valid));
}

#[test]
fn figure_6_dirty_is_flushed_and_becomes_stale_when_another_chiplet_is_to_write() {
    let mut program = two_chiplets();
    program.run(&[(0, on(0, RW))]);
    assert_eq!(states(&program, 0, 0), (NotPresent, Dirty), "the transition occurs at the launch");
    assert_eq!(program.run(&[(0, on(1, RW))]), (vec![], vec![0]));
    assert_eq!(states(&program, 0, 0), (Dirty, Stale));
    assert_eq!(program.run(&[(0, on(0, R))]), (vec![0], vec![1]), "it further generates an invalidate");
}

#[test]
fn figure_6_valid_becomes_dirty_on_a_local_write() {
    let mut program = two_chiplets();
    program.run(&[(0, on(0, R))]);
    assert_eq!(program.run(&[(0, on(0, RW))]), NOTHING);
    assert_eq!(states(&program, 0, 0), (Valid, Dirty));
}

#[test]
fn figure_6_dirty_stays_on_accesses_of_its_own() {
    let mut program = two_chiplets();
    program.run(&[(0, on(0, RW))]);
    for mode in [R, RW, R] {
        assert_eq!(program.run(&[(0, on(0, mode))]), NOTHING);
        assert_eq!(states(&program, 0, 0), (Dirty, Dirty));
        let elided = program.accounts.iter().find(|account| account.before == Dirty).expect("there is a row");
        assert_eq!((elided.invalidate, elided.flush), (DecisionReason::Current, DecisionReason::NotShared));
    }
}

#[test]
fn lazy_release_after_the_acquire_keeps_the_lines_that_the_previous_kernel_wrote() {
    let mut program = two_chiplets();
    program.run(&[(0, on(0, R)), (1, on(0, RW))]);
    program.run(&[(0, on(1, RW))]);
    // Chiplet 0 is invalidated for the first array and flushed for the second.
    assert_eq!(program.run(&[(0, on(0, R)), (1, on(1, R))]), (vec![0], vec![0, 1]));
    assert_eq!(states(&program, 1, 0), (Dirty, Valid), "not Not Present: a clean copy stays");
    assert_eq!(program.world.valid(tombolo_types::ModuleId(0)), 8);
}

#[test]
fn listing_2_square_in_halves_elides_everything() {
    let mut program = two_chiplets();
    for _ in 0..2 {
        let half = |mode| program.each(mode, |at| program.own(at));
        assert_eq!(program.run(&[(0, half(RW)), (1, half(R))]), NOTHING);
    }
    assert_eq!(program.end(), (vec![], vec![0, 1]));
}

#[test]
fn listing_1_square_without_ranges_elides_nothing() {
    let mut program = two_chiplets();
    assert_eq!(program.run(&[(0, program.all(RW)), (1, program.all(R))]), NOTHING);
    assert_eq!(program.run(&[(0, program.all(RW)), (1, program.all(R))]), (vec![0, 1], vec![0, 1]));
}

#[test]
fn removing_entries_an_acquire_on_all_chiplets_empties_a_clean_table() {
    let mut program = two_chiplets();
    program.run(&[(0, on(0, R)), (1, on(0, R)), (2, on(0, R))]);
    assert_eq!(program.elision.rows(), 3);
    program.run(&[(0, on(1, RW))]);
    assert_eq!(program.run(&[(0, on(0, R))]), (vec![0], vec![1]));
    assert_eq!(program.elision.rows(), 1, "only what the kernel uses is left");
}
