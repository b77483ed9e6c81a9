//! Runs whose lines carry versions: what is right passes, what is broken is seen.

mod broken;
#[path = "../common/mod.rs"]
mod common;
mod programs;
mod random;

use common::{DESIGNS, design, machine, simulate};
use programs::{barriers, relay, sharing};
use std::sync::Arc;
use tombolo_machine::{DesignConfig, MachineConfig};
use tombolo_protocol::BrokenRule;
use tombolo_system::checker::Checked;
use tombolo_system::directed::Directed;
use tombolo_system::{RunSpec, run_checked};
use tombolo_types::Scope;

fn checked(
    machine: &Arc<MachineConfig>,
    design: DesignConfig,
    program: Arc<Directed>,
    rule: Option<BrokenRule>,
) -> Checked {
    let spec = RunSpec { machine: Arc::clone(machine), design, program, pages: None, threads: 2 };
    let record = run_checked(&spec, rule).unwrap_or_else(|error| panic!("{error}"));
    record.check.expect("a checked run says what it found")
}

fn programs() -> [Arc<Directed>; 3] {
    [sharing(), relay(Scope::Sys), barriers()]
}

/// A machine whose caches and directories are so small that lines and entries are replaced.
fn tight() -> Arc<MachineConfig> {
    machine(&["l2.bytes=64KB", "directory.entries=16", "directory.ways=1"])
}

/// Settings for each write policy a design may have.
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
