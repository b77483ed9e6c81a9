//! Runs whose lines carry versions: what is right passes, what is broken is seen.

mod common;

use common::{DESIGNS, design, machine, simulate};
use std::sync::Arc;
use tombolo_machine::{DesignConfig, MachineConfig};
use tombolo_protocol::BrokenRule;
use tombolo_system::checker::Checked;
use tombolo_system::directed::{Cta, Directed, Warp};
use tombolo_system::{RunSpec, run_checked};
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Mask, Order, Scope};

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

/// A kernel of sixteen CTAs, one a module, of two warps each.
fn kernel(write: impl Fn(u64, &mut Warp<'_>)) -> Vec<Cta> {
    (0..16).map(|module| (0..2).fold(Cta::new(), |cta, _| cta.warp(|warp| write(module, warp)))).collect()
}

/// Lines that every module reads and, in turn, writes: enough to overflow a directory of a few entries.
const LINES: u64 = 96;

/// Every module reads all lines; then each line is written by another module; then all are read again.
fn sharing() -> Arc<Directed> {
    let read = |_: u64, warp: &mut Warp<'_>| {
        for line in 0..LINES {
            warp.read([line]);
        }
    };
    let write = |module: u64, warp: &mut Warp<'_>| {
        for line in (0..LINES).filter(|line| (line * 5 + 3) % 16 == module) {
            warp.write([line]);
        }
    };
    Directed::new(vec![kernel(read), kernel(write), kernel(read), kernel(write), kernel(read)])
}

/// A token passes from module to module; each reads what all before it wrote, and writes its own line.
fn relay(scope: Scope) -> Arc<Directed> {
    let flag = |module: u64| 1000 + 32 * module;
    let ctas = (0..16).map(|module| {
        Cta::new().warp(|warp| {
            // Copies that the writers make old.
            for line in 0..16 {
                warp.read([line * 4]);
            }
            if module > 0 {
                let (flag, token) = (flag(module - 1), module as u32 - 1);
                if module % 2 == 0 {
                    warp.wait_until(flag, token, Order::acquire(scope));
                } else {
                    warp.wait_until(flag, token, Order::relaxed(scope)).fence(Order::acquire(scope));
                }
                for line in 0..module {
                    warp.read([line * 4]);
                }
            }
            warp.write([module * 4]);
            warp.store([flag(module)], Mask(1), Order::release(scope)).signal(module as u32);
        })
    });
    let touch = kernel(|module, warp| {
        warp.read([module * 4]);
    });
    Directed::new(vec![touch, ctas.collect()])
}

/// Neighbours in a CTA hand lines over a barrier, all modules add to one counter.
fn barriers() -> Arc<Directed> {
    let cta = |module: u64| {
        let mut cta = Cta::new();
        for warp in 0..4 {
            cta = cta.warp(|w| {
                for round in 0..4 {
                    w.write([200 + module * 4 + warp]).barrier();
                    w.read([200 + module * 4 + (warp + 1) % 4]).barrier();
                    w.atomic([900 + round % 2], Order::relaxed(Scope::Gpu), AtomicResult::Returned).use_result(1);
                }
            });
        }
        cta
    };
    Directed::new((0..2).map(|_| (0..16).map(cta).collect()).collect())
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

#[test]
fn broken_rules_are_seen_in_a_timing_run() {
    let seen = |name: &str, rule| {
        let settings: &[&str] = if rule == BrokenRule::DirtyInvalidationLost { &["design.l2_write=back"] } else { &[] };
        let violations = |program| checked(&tight(), design(name, settings), program, Some(rule)).violations;
        programs().into_iter().any(|program| violations(program) > 0)
    };
    for (name, rule) in [
        ("hmg", BrokenRule::AcquireKeepsL1),
        ("software-flat", BrokenRule::AcquireKeepsL2),
        ("software-hierarchical", BrokenRule::AcquireKeepsL2),
        ("hmg", BrokenRule::SharerNotRecorded),
        ("nhcc", BrokenRule::SharerNotRecorded),
        ("hmg", BrokenRule::StoreKeepsSharers),
        ("nhcc", BrokenRule::StoreKeepsSharers),
        ("hmg", BrokenRule::InvalidationNotForwarded),
        ("software-flat", BrokenRule::DirtyInvalidationLost),
        ("software-hierarchical", BrokenRule::DirtyInvalidationLost),
        ("hmg", BrokenRule::SilentDirectoryEviction),
        ("nhcc", BrokenRule::SilentDirectoryEviction),
    ] {
        assert!(seen(name, rule), "{rule:?} in {name} goes unseen");
    }
}
