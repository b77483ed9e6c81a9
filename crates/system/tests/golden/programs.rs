//! Six short programs with pinned results. The programs must never change: golden results would lose their meaning.

use std::sync::Arc;
use tombolo_machine::MachineConfig;
use tombolo_programs::find;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_types::stream::{AtomicResult, Program};
use tombolo_types::{Mask, Order, Scope};
use tombolo_workload::bench::{Mode, Request, record};
use tombolo_workload::record::RecordOptions;
use tombolo_workload::scale::Scale;

/// Names and programs, recorded for the line size and warp width of `machine`.
pub(crate) fn programs(machine: &MachineConfig) -> Vec<(&'static str, Arc<dyn Program>)> {
    vec![
        ("scopes", scopes()),
        ("relay", relay()),
        ("gather", gather()),
        ("triad", recorded(machine, "triad", "elements=32768,iterations=2")),
        ("pathfinder", recorded(machine, "pathfinder", "columns=32768,rows=20")),
        ("stencil2d", recorded(machine, "stencil2d", "columns=256,rows=128,iterations=2")),
    ]
}

/// A shipped workload at fixed parameters.
fn recorded(machine: &MachineConfig, name: &str, parameters: &str) -> Arc<dyn Program> {
    let workload = find(name).expect("a workload that ships");
    let pair = |text: &str| text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let given: Vec<_> = parameters.split(',').filter_map(pair).collect();
    let request = Request::new(workload, Scale::FULL, &given, 1).expect("its parameters");
    let options =
        RecordOptions { line: machine.line, warp_width: machine.sm.warp_width, threads: 1, ..RecordOptions::default() };
    Arc::new(record(workload, &request, &options, Mode::Auto).expect("it runs"))
}

/// Thirty-two CTAs that share lines for reading, write parts of neighbours' lines, and synchronise at every scope.
fn scopes() -> Arc<dyn Program> {
    let cta = |id: u64| {
        (0..4).fold(CtaBuilder::new(), |cta, warp| {
            let seed = id * 4 + warp;
            cta.warp(|w| {
                for step in 0..10 {
                    w.read([step * 7 % 64, 1000 + (seed * 5 + step) % 128]).compute(3);
                    w.store([1000 + (seed + step * 3) % 128], Mask(0xff << (step % 4 * 8)), Order::WEAK);
                    w.atomic([2000 + step % 3], Order::relaxed(Scope::Gpu), AtomicResult::Discarded);
                }
                w.atomic([2100 + seed % 5], Order::relaxed(Scope::Sys), AtomicResult::Returned)
                    .use_result(1)
                    .scratchpad(2);
                w.store([3000 + id], Mask(1), Order::release(Scope::Gpu)).barrier();
                w.load([3000 + (id + 3) % 32], Order::acquire(Scope::Sys)).use_result(1);
                w.fence(Order::acquire(Scope::Gpu)).read([4000 + seed]);
            })
        })
    };
    DirectedProgram::new((0..3).map(|_| (0..32).map(cta).collect()).collect())
}

/// Each CTA waits for the previous CTA's flag, reads the writes by all previous CTAs, and sets its own flag.
fn relay() -> Arc<dyn Program> {
    let flag = |cta: u64| 5000 + cta * 4;
    let cta = |id: u64| {
        CtaBuilder::new().warp(|w| {
            if id > 0 {
                let order = if id.is_multiple_of(2) { Order::acquire(Scope::Sys) } else { Order::relaxed(Scope::Sys) };
                w.wait_until(flag(id - 1), id as u32 - 1, order).fence(Order::acquire(Scope::Sys));
                (0..id).for_each(|line| _ = w.read([line * 4]));
            }
            w.write([id * 4]).store([flag(id)], Mask(1), Order::release(Scope::Sys)).signal(id as u32);
        })
    };
    let touch = |id: u64| CtaBuilder::new().warp(|w| _ = w.read([id * 4]));
    DirectedProgram::new(vec![(0..16).map(touch).collect(), (0..16).map(cta).collect()])
}

/// Scattered loads and stores over more lines than caches and directories hold, then a copy.
fn gather() -> Arc<dyn Program> {
    let cta = |kernel: u64, id: u64| {
        (0..4).fold(CtaBuilder::new(), |cta, warp| {
            cta.warp(|w| {
                for step in 0..24 {
                    // Multiplier for a linear congruential generator (Knuth, MMIX): scattered and fixed.
                    let at = |n: u64| {
                        ((kernel + id * 97 + warp * 31 + step * 7 + n).wrapping_mul(6_364_136_223_846_793_005) >> 33)
                            % 8192
                    };
                    w.load([at(0), at(1), at(2)], Order::WEAK);
                    w.store([at(3)], Mask(0xf << (step % 8 * 4)), Order::WEAK);
                    w.use_result(1).compute(2);
                }
            })
        })
    };
    let kernel = |kernel: u64| (0..64).map(|id| cta(kernel, id)).collect();
    DirectedProgram::with_copies((0..3).map(kernel).collect(), &[4096])
}
