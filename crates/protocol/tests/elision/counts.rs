//! Closed forms: the number of operations per sequence.

use crate::cases::{Kind, module};
use crate::directed::{DirectedProgram, R, RW};
use crate::kernel::Kernel;
use tombolo_protocol::elision::{BrokenElision, DecisionReason, OperationGranularity, ReleaseTime, TableConfig, User};

const MODULES: u8 = 4;
const LINES: u64 = 4;
const NOTHING: (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());

fn every() -> Vec<u8> {
    (0..MODULES).collect()
}

fn directed(kind: Kind) -> DirectedProgram {
    DirectedProgram::new(kind, MODULES, 3, LINES)
}

#[test]
fn own_ranges_cost_nothing_until_the_end() {
    let mut program = directed(Kind::Chiplet);
    for _ in 0..10 {
        let parts = program.each(RW, |at| program.own(at));
        assert_eq!(program.run(&[(0, parts)]), NOTHING);
    }
    assert_eq!(program.end(), (vec![], every()));
    assert_eq!(program.flushed as u64, LINES * u64::from(MODULES), "each line once, whatever the number of kernels");
}

#[test]
fn without_elision_every_boundary_costs_all() {
    for (when, last) in [(ReleaseTime::EndThenLaunch, vec![]), (ReleaseTime::Launch, every())] {
        let mut program = directed(Kind::Never(when));
        let mut flushed = 0;
        for _ in 0..10 {
            let parts = program.each(RW, |at| program.own(at));
            let (invalidated, _) = program.run(&[(0, parts)]);
            assert_eq!(invalidated, every());
            flushed += program.flushed;
        }
        assert_eq!(program.end(), (vec![], last));
        assert_eq!((flushed + program.flushed) as u64, 10 * LINES * u64::from(MODULES));
    }
}

#[test]
fn a_producer_is_flushed_once_and_keeps_clean_copies() {
    let mut program = directed(Kind::Chiplet);
    let own = program.own(0);
    assert_eq!(program.run(&[(0, vec![(module(0), RW, own.clone())])]), NOTHING);
    assert_eq!(program.run(&[(0, vec![(module(1), R, own.clone())])]), (vec![], vec![0]));
    assert_eq!(program.flushed as u64, LINES);
    assert_eq!(program.run(&[(0, vec![(module(0), R, own)])]), NOTHING);
    assert_eq!(program.world.valid(tombolo_types::ModuleId(0)) as u64, LINES, "what it wrote is there to be hit");
    assert_eq!(program.end(), NOTHING);
}

#[test]
fn an_invalidation_for_one_array_keeps_the_dirty_lines_of_another() {
    let mut program = directed(Kind::Chiplet);
    let own = program.own(0);
    let part = |at, mode| vec![(module(at), mode, own.clone())];
    assert_eq!(program.run(&[(0, part(0, RW)), (1, part(0, RW))]), NOTHING);
    assert_eq!(program.run(&[(0, part(1, RW))]), (vec![], vec![0]));
    assert_eq!(program.run(&[(1, part(0, RW))]), NOTHING);
    assert_eq!(program.run(&[(0, part(0, R))]), (vec![0], vec![1]));
    assert_eq!(program.world.dirty(tombolo_types::ModuleId(0)) as u64, LINES, "the other array's lines survive");
    assert_eq!(program.run(&[(1, part(0, RW))]), NOTHING, "and the table knows");
}

#[test]
fn arrays_that_are_only_read_cost_nothing() {
    let mut program = directed(Kind::Chiplet);
    for _ in 0..10 {
        let all = program.all(R);
        assert_eq!(program.run(&[(0, all)]), NOTHING);
    }
    assert_eq!(program.end(), NOTHING);
}

#[test]
fn one_range_that_all_write_costs_as_much_as_no_elision() {
    let mut program = directed(Kind::Chiplet);
    assert_eq!(program.run(&[(0, program.all(RW))]), NOTHING);
    for _ in 0..5 {
        assert_eq!(program.run(&[(0, program.all(RW))]), (every(), every()));
    }
    assert_eq!(program.end(), (vec![], every()));
}

/// Kernels that read one array around their own part and write their own part in another, with the arrays then
/// swapped. Returns invalidations and flushes for each launch.
fn ping_pong(kind: Kind, broken: Option<BrokenElision>) -> Vec<(usize, usize)> {
    let mut program = DirectedProgram::with(kind, MODULES, 2, LINES, TableConfig::default(), broken);
    let kernels = (0..9).map(|step| {
        let reads = program.each(R, |at| program.around(at, 1));
        let writes = program.each(RW, |at| program.own(at));
        let (invalidated, flushed) = program.run(&[(step % 2, reads), (1 - step % 2, writes)]);
        (invalidated.len(), flushed.len())
    });
    kernels.collect()
}

#[test]
fn a_halo_costs_all_flushes_and_every_second_time_all_invalidations() {
    let found = ping_pong(Kind::Chiplet, None);
    assert_eq!(found, [(0, 0), (0, 4), (4, 4), (0, 4), (4, 4), (0, 4), (4, 4), (0, 4), (4, 4)]);
}

#[test]
fn a_halo_costs_no_invalidation_where_homes_are_known() {
    let found = ping_pong(Kind::Home, None);
    assert_eq!(found, [(0, 0), (0, 4), (0, 4), (0, 4), (0, 4), (0, 4), (0, 4), (0, 4), (0, 4)]);
}

#[test]
fn updating_only_the_requesting_rows_costs_more() {
    let operations = |broken| {
        let mut program = DirectedProgram::with(Kind::Chiplet, MODULES, 2, LINES, TableConfig::default(), broken);
        let own = program.own(0);
        let mut run = |structures: &[(u64, u8)], mode| {
            let parts = structures.iter().map(|&(number, at)| (number, vec![(module(at), mode, own.clone())]));
            program.run(&parts.collect::<Vec<_>>())
        };
        run(&[(0, 0), (1, 0)], RW);
        run(&[(0, 1)], R);
        run(&[(1, 1)], R)
    };
    assert_eq!(operations(None), NOTHING, "the flush for the first array has cleaned the second");
    assert_eq!(operations(Some(BrokenElision::ColumnsOfAskingRows)), (vec![], vec![0]));
}

#[test]
fn ranged_operations_leave_other_arrays_alone() {
    let flushed = |operations| {
        let config = TableConfig { operations, ..TableConfig::default() };
        let mut program = DirectedProgram::with(Kind::Chiplet, MODULES, 2, LINES, config, None);
        let own = program.own(0);
        let part = |at, mode| vec![(module(at), mode, own.clone())];
        program.run(&[(0, part(0, RW)), (1, part(0, RW))]);
        assert_eq!(program.run(&[(0, part(1, R))]), (vec![], vec![0]));
        (program.flushed as u64, program.world.dirty(tombolo_types::ModuleId(0)) as u64)
    };
    assert_eq!(flushed(OperationGranularity::Cache), (2 * LINES, 0));
    assert_eq!(flushed(OperationGranularity::Range), (LINES, LINES));
}

#[test]
fn more_ranges_than_a_row_holds_are_one_and_take_an_entry_each_otherwise() {
    let rows = |ranges| {
        let config = TableConfig { ranges, ..TableConfig::default() };
        let mut program = DirectedProgram::with(Kind::Chiplet, MODULES, 1, LINES, config, None);
        let parts = [0..1, 2..3, 8..9].map(|range| (module(0), RW, range));
        program.run(&[(0, parts.to_vec())]);
        let between = program.run(&[(0, vec![(module(1), R, 5..6)])]);
        (program.elision.rows(), between.1.len())
    };
    assert_eq!(rows(1), (1, 1), "the hull overlaps what is read");
    assert_eq!(rows(2), (2, 0), "the smaller gap is filled: 0..3 and 8..9");
    assert_eq!(rows(3), (3, 0));
}

#[test]
fn an_array_beyond_the_last_row_evicts_the_least_recently_used_one() {
    let mut program = DirectedProgram::new(Kind::Chiplet, 2, 65, 1);
    for number in 0..64 {
        assert_eq!(program.run(&[(number, vec![(module(0), RW, 0..1)])]), NOTHING);
    }
    assert_eq!(program.elision.rows(), 64);
    assert_eq!(program.run(&[(64, vec![(module(1), R, 0..1)])]), (vec![0], vec![0]));
    assert_eq!(program.elision.rows(), 64);
    let evicted: Vec<_> = program.accounts.iter().filter(|account| account.flush == DecisionReason::Evicted).collect();
    assert_eq!(evicted.len(), 1);
    assert_eq!(evicted[0].structure, Some(program.structure(0)));
    assert_eq!(program.run(&[(64, vec![(module(0), R, 0..1)])]), (vec![0], vec![]), "its flush left copies");
    assert_eq!(program.run(&[(64, vec![(module(0), R, 0..1)])]), NOTHING);
}

#[test]
fn of_nine_arrays_the_two_closest_share_a_row() {
    let mut program = DirectedProgram::new(Kind::Chiplet, 2, 20, 1);
    // The ninth and tenth are adjacent; all other neighbours have a gap.
    let numbers = [0, 2, 4, 6, 8, 10, 12, 14, 15];
    let kernel = |at: u8| numbers.map(|number| (number, vec![(module(at), RW, 0..2)]));
    program.run(&kernel(0));
    assert_eq!(program.elision.rows(), 8);
    assert_eq!(program.run(&[(14, vec![(module(0), RW, 0..2)])]), NOTHING);
    assert_eq!(program.run(&[(15, vec![(module(1), R, 0..2)])]), (vec![], vec![0]));
}

#[test]
fn a_host_read_of_dirty_lines_costs_one_flush() {
    let mut program = directed(Kind::Chiplet);
    let parts = program.each(RW, |at| program.own(at));
    program.run(&[(0, parts)]);
    assert_eq!(program.run(&[(0, vec![(User::Host, R, 0..1)])]), (vec![], vec![0]));
    assert_eq!(program.run(&[(0, vec![(User::Host, R, 0..1)])]), NOTHING);
    assert_eq!(program.run(&[(0, vec![(User::Host, RW, 0..1)])]), NOTHING);
    assert_eq!(program.run(&[(0, vec![(module(0), R, 0..1)])]), (vec![0], vec![]), "a host write makes copies stale");
}

#[test]
fn a_kernel_without_labels_costs_all_before_and_the_next_launch_an_invalidation() {
    let mut program = directed(Kind::Chiplet);
    let own = |program: &DirectedProgram| program.each(R, |at| program.own(at));
    let parts = own(&program);
    program.run(&[(0, parts.clone())]);
    let accesses =
        Kernel { accesses: vec![crate::truth::Access { user: module(0), grain: 0, write: true }], labels: None };
    assert_eq!(program.launch(&accesses), (every(), every()));
    assert_eq!(program.flushed, 1, "at its end");
    assert_eq!(program.elision.rows(), 0);
    assert_eq!(program.run(&[(0, parts.clone())]), (every(), vec![]));
    assert_eq!(program.run(&[(0, parts)]), NOTHING);
}

#[test]
fn one_module_costs_nothing_but_the_final_flush() {
    let mut program = DirectedProgram::new(Kind::Chiplet, 1, 3, LINES);
    for step in 0..6 {
        let parts = [(step % 3, program.all(R)), ((step + 1) % 3, program.all(RW))];
        assert_eq!(program.run(&parts), NOTHING);
    }
    assert_eq!(program.end(), (vec![], vec![0]));
}

/// Bits per entry: base address, ranges, mode, and `bits` for each chiplet. Source: CPElide, III-A.
fn bytes_of_the_table(bits: u32) -> f64 {
    f64::from(8 * 4 + 8 * 28 + 1 + 4 * bits) / 8.0 * f64::from(TableConfig::default().rows)
}

#[test]
fn the_table_takes_two_kilobytes() {
    assert_eq!(bytes_of_the_table(2), 2120.0, "33.125 bytes an entry");
    assert_eq!(bytes_of_the_table(3), 2152.0, "with the fifth state");
}
