//! Runs with versioned lines: correct designs pass, broken rules are detected.

mod broken;
mod programs;
mod random;

use self::programs::{barriers, relay, sharing};
use crate::common::{DESIGNS, design, machine, simulate};
use std::sync::Arc;
use tombolo_design::DesignConfig;
use tombolo_machine::MachineConfig;
use tombolo_programs::find;
use tombolo_protocol::BrokenRule;
use tombolo_system::checker::CheckReport;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_system::{RunSpec, run_checked};
use tombolo_types::stream::Program;
use tombolo_types::{Mask, Order, Scope};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

fn checked(
    machine: &Arc<MachineConfig>,
    design: DesignConfig,
    program: Arc<DirectedProgram>,
    rule: Option<BrokenRule>,
) -> CheckReport {
    let spec = RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads: 2 };
    let record = run_checked(&spec, rule).unwrap_or_else(|error| panic!("{error}"));
    record.check.expect("a checked run says what it found")
}

fn programs() -> [Arc<DirectedProgram>; 3] {
    [sharing(), relay(Scope::Sys), barriers()]
}

/// A machine with caches and directories small enough that lines and entries are evicted.
fn tight() -> Arc<MachineConfig> {
    machine(&["l2.bytes=64KB", "directory.entries=16", "directory.ways=1"])
}

/// Settings for each write policy that a design may have.
fn writes(design: &str) -> &'static [&'static [&'static str]] {
    if design == "ideal" { &[&[]] } else { &[&[], &["design.l2_write=back"]] }
}

#[test]
fn promising_designs_return_what_they_must() {
    for machine in [machine(&[]), tight()] {
        for name in DESIGNS.into_iter().filter(|name| *name != "ideal") {
            for settings in writes(name) {
                for program in programs() {
                    let outcome = checked(&machine, design(name, settings), program, None);
                    assert!(outcome.loads > 500, "{name}: {} loads were checked", outcome.loads);
                    assert_eq!(outcome.first, [], "{name} {settings:?}");
                }
            }
        }
    }
}

/// Entries that also represent lines at home are evicted all the time, and their lines are dropped with them.
#[test]
fn promising_designs_return_what_they_must_where_directories_track_all() {
    for entries in ["directory.entries=16", "directory.entries=64"] {
        let machine = machine(&["l2.bytes=64KB", entries, "directory.ways=1", "directory.tracks=all"]);
        for name in ["nhcc", "hmg"] {
            for settings in [&[][..], &["design.l2_write=back"], &["design.l2_write=back", "coherence.downgrade=true"]]
            {
                for program in programs().into_iter().chain((0..2).map(random::program)) {
                    let outcome = checked(&machine, design(name, settings), program, None);
                    assert_eq!(outcome.first, [], "{name} {settings:?} {entries}");
                }
            }
        }
    }
}

/// A shipped program, on shipped machines except for a directory small enough to overflow.
#[test]
fn a_program_that_ships_reads_what_it_must_where_directories_track_all() {
    let workload = find("stencil2d").expect("it ships");
    let given = [("columns", "256"), ("rows", "128"), ("iterations", "2")];
    let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let request = Request::new(workload, Scale::FULL, &given, 1).expect("its parameters");
    for preset in ["chiplet-4", "hmg-4x4"] {
        let mut machine = tombolo_machine::machine(preset).expect("a preset");
        let settings = ["directory.tracks=all", "directory.entries=64", "directory.ways=4"];
        tombolo_design::apply(&settings, &mut machine, &mut []).expect("settings a machine has");
        let machine = Arc::new(machine.check().expect("a machine that fits"));
        let (line, warp_width) = (machine.line, machine.sm.warp_width);
        let options = RecordOptions { line, warp_width, threads: 1, ..RecordOptions::default() };
        let program = Arc::new(record(workload, &request, &options, Mode::Auto).expect("it runs"));
        for name in ["nhcc", "hmg"] {
            for settings in writes(name) {
                let (machine, program) = (Arc::clone(&machine), Arc::clone(&program) as Arc<dyn Program>);
                let spec = RunSpec { machine, design: design(name, settings), program, pages: None, threads: 1 };
                let run = run_checked(&spec, None).unwrap_or_else(|error| panic!("{error}"));
                assert!(run.coherence["directory_evictions"] > 500, "{preset} {name}: {:?}", run.coherence);
                let found = run.check.expect("a checked run says what it found");
                assert_eq!((found.first, found.loads > 500), (Vec::new(), true), "{preset} {name} {settings:?}");
            }
        }
    }
}

#[test]
fn the_ideal_design_is_seen_to_return_what_it_must_not() {
    assert!(checked(&machine(&[]), design("ideal", &[]), sharing(), None).violations > 0);
}

#[test]
fn values_change_nothing_but_the_cost() {
    let machine = machine(&[]);
    let plain = simulate(&machine, design("hmg", &[]), sharing());
    let spec = RunSpec { machine, design: design("hmg", &[]), program: sharing(), pages: None, threads: 1 };
    let record = run_checked(&spec, None).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((record.digest, record.cycles), (plain.digest, plain.cycles));
}

/// Two warps on an SM wait for flags in a common line, each with separate requests.
#[test]
fn polls_of_two_flags_of_one_line_both_end() {
    let wait = |token| move |warp: &mut WarpBuilder<'_>| _ = warp.wait_until(500, token, Order::acquire(Scope::Sys));
    let waiters = CtaBuilder::new().warp(wait(0)).warp(wait(1));
    let setter = |token, count| {
        CtaBuilder::new().warp(move |warp| {
            warp.compute(count).store([500], Mask(1), Order::release(Scope::Sys)).signal(token);
        })
    };
    let ctas = (0..16).map(|module| match module {
        2 => waiters.clone(),
        9 => setter(0, 20_000),
        12 => setter(1, 9_000),
        _ => CtaBuilder::new().warp(|_| {}),
    });
    let program = DirectedProgram::new(vec![ctas.collect()]);
    assert_eq!(checked(&machine(&[]), design("hmg", &[]), program, None).first, []);
}

/// A poll is in flight when another warp on its SM sets the flag: the poll must not see the flag before the store is
/// visible.
#[test]
fn a_poll_on_its_way_does_not_see_the_flag_that_its_own_sm_sets() {
    for seed in 0..2 {
        for name in DESIGNS.into_iter().filter(|name| *name != "ideal") {
            let machine = machine(&["page_bytes=4KB", "l1.sector_bytes=32"]);
            assert_eq!(checked(&machine, design(name, &[]), random::program(seed), None).first, [], "{name}");
        }
    }
}
