//! Programs with modules that read and write common lines.

use std::sync::Arc;
use tombolo_system::directed::{CtaBuilder, DirectedProgram, WarpBuilder};
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Mask, Order, Scope};

/// A kernel with sixteen CTAs, one per module, with two warps each.
pub(crate) fn kernel(write: impl Fn(u64, &mut WarpBuilder<'_>)) -> Vec<CtaBuilder> {
    (0..16).map(|module| (0..2).fold(CtaBuilder::new(), |cta, _| cta.warp(|warp| write(module, warp)))).collect()
}

/// Lines that every module reads and, in turn, writes: enough to overflow a directory with a few entries.
const LINES: u64 = 96;

/// Every module reads all lines; then each line is written by a different module; then all lines are read again.
pub(crate) fn sharing() -> Arc<DirectedProgram> {
    let read = |_: u64, warp: &mut WarpBuilder<'_>| {
        for line in 0..LINES {
            warp.read([line]);
        }
    };
    let write = |module: u64, warp: &mut WarpBuilder<'_>| {
        for line in (0..LINES).filter(|line| (line * 5 + 3) % 16 == module) {
            warp.write([line]);
        }
    };
    DirectedProgram::new(vec![kernel(read), kernel(write), kernel(read), kernel(write), kernel(read)])
}

/// A token passes from module to module; each module reads the writes by all previous modules, and writes its own line.
pub(crate) fn relay(scope: Scope) -> Arc<DirectedProgram> {
    let flag = |module: u64| 1000 + 32 * module;
    let ctas = (0..16).map(|module| {
        CtaBuilder::new().warp(|warp| {
            // Copies that become outdated by the writers.
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
    DirectedProgram::new(vec![touch, ctas.collect()])
}

/// Neighbours in a CTA exchange lines through a barrier, all modules add to one counter.
pub(crate) fn barriers() -> Arc<DirectedProgram> {
    let cta = |module: u64| {
        let mut cta = CtaBuilder::new();
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
    DirectedProgram::new((0..2).map(|_| (0..16).map(cta).collect()).collect())
}

/// Lines in a 2 MB page: touching the first line places the page at a module.
const PAGE: u64 = 16384;

/// Two CTAs per module; only listed CTAs do any work. The preceding kernel places page `m` at module `m`.
fn placed(busy: Vec<(usize, CtaBuilder)>) -> Arc<DirectedProgram> {
    let touch = kernel(|module, warp| {
        warp.read([module * PAGE]);
    });
    let mut ctas = vec![CtaBuilder::new().warp(|_| {}); 32];
    for (index, cta) in busy {
        ctas[index] = cta;
    }
    DirectedProgram::new(vec![touch, ctas])
}

/// The CTA index for a module's first or second SM.
fn on(module: usize, sm: usize) -> usize {
    module * 2 + sm
}

/// Warp B acquires while warp A's load is still in flight to their SM. The load was read before another module's store,
/// and is queued behind many fills that the line's home sends to another module.
pub(crate) fn late_fill() -> Arc<DirectedProgram> {
    let (line, flag) = (512, 2 * PAGE + 512);
    let readers = CtaBuilder::new()
        .warp(|a| {
            a.compute(8_000).load([line], Order::WEAK).use_result(1);
        })
        .warp(|b| {
            b.wait_until(flag, 0, Order::acquire(Scope::Gpu)).read([line]);
        });
    let writer = CtaBuilder::new().warp(|warp| {
        warp.compute(16_000).write([line]);
        warp.store([flag], Mask(1), Order::release(Scope::Gpu)).signal(0);
    });
    let flood = CtaBuilder::sharing(1024..1536, 16, |warp, line| _ = warp.load([line], Order::WEAK));
    placed(vec![(on(2, 0), readers), (on(3, 0), writer), (on(1, 0), flood)])
}

/// Every module reads all modules' lines; then every second module writes its own lines; then all modules read again.
pub(crate) fn boundary() -> Arc<DirectedProgram> {
    let lines = |module: u64| (0..6).map(move |line| module % 16 * PAGE + line * 5);
    let touch = kernel(|module, warp| {
        warp.read([module * PAGE]);
    });
    let read = kernel(|module, warp| {
        (0..16).flat_map(|other| lines(module + other)).for_each(|line| _ = warp.load([line], Order::WEAK));
    });
    let write = kernel(|module, warp| {
        if module % 2 == 1 {
            warp.write(lines(module));
        }
    });
    DirectedProgram::new(vec![touch, read.clone(), write, read])
}

/// Four modules each write more private lines than a small L2 holds; then other modules read them.
pub(crate) fn overflow() -> Arc<DirectedProgram> {
    let lines = |module: u64| module % 4 * PAGE..module % 4 * PAGE + 1024;
    let touch = kernel(|module, warp| {
        warp.read([module * PAGE]);
    });
    let of_four = |each: &dyn Fn(u64, &mut WarpBuilder<'_>)| {
        (0..16)
            .map(|module| {
                CtaBuilder::new().warp(|warp| {
                    if module < 4 {
                        each(module, warp)
                    }
                })
            })
            .collect()
    };
    let write = of_four(&|module, warp| lines(module).for_each(|line| _ = warp.write([line])));
    let read = of_four(&|module, warp| _ = warp.sweep(lines(module + 1), 1));
    DirectedProgram::new(vec![touch, write, read])
}

/// A module adds to lines on another GPU that it and a second warp have read, and reads them again; then the second
/// warp does.
pub(crate) fn additions() -> Arc<DirectedProgram> {
    let (flag, lines) = (PAGE + 512, || (0..16).map(|region| 4 * PAGE + 512 + region * 4));
    let adder = CtaBuilder::new().warp(|warp| {
        lines().for_each(|line| _ = warp.read([line]));
        warp.compute(8_000);
        for line in lines() {
            warp.atomic([line], Order::relaxed(Scope::Sys), AtomicResult::Returned).use_result(1).read([line]);
        }
        warp.store([flag], Mask(1), Order::release(Scope::Gpu)).signal(0);
    });
    let mate = CtaBuilder::new().warp(|warp| {
        lines().for_each(|line| _ = warp.read([line]));
        warp.wait_until(flag, 0, Order::acquire(Scope::Gpu));
        lines().for_each(|line| _ = warp.read([line]));
    });
    placed(vec![(on(1, 0), adder), (on(2, 0), mate)])
}

/// Method by which a warp signals the completion of its earlier loads to another module.
#[derive(Clone, Copy)]
pub(crate) enum HandOver {
    /// Through another warp in its CTA, after a barrier.
    Barrier,
    /// By a store that releases.
    Store,
    /// By an atomic that releases.
    Atomic,
}

/// A load from a page missing in its module's TLBs, and another module's later store to the same line.
pub(crate) fn late_load(how: HandOver) -> Arc<DirectedProgram> {
    let (line, flag, order) = (2 * PAGE + 512, PAGE + 512, Order::release(Scope::Sys));
    let loader = CtaBuilder::new().warp(|warp| {
        warp.compute(20_000).load([line], Order::WEAK);
        match how {
            HandOver::Barrier => warp.barrier(),
            HandOver::Store => warp.store([flag], Mask(1), order).signal(0),
            HandOver::Atomic => warp.atomic([flag], order, AtomicResult::Discarded).signal(0),
        };
    });
    let loader = match how {
        HandOver::Barrier => loader.warp(|mate| _ = mate.barrier().store([flag], Mask(1), order).signal(0)),
        HandOver::Store | HandOver::Atomic => loader,
    };
    let writer = CtaBuilder::new().warp(|warp| {
        warp.wait_until(flag, 0, Order::acquire(Scope::Sys)).write([line]);
    });
    placed(vec![(on(1, 0), loader), (on(2, 0), writer)])
}

/// Lines between the two stores in [`turns`]: some share the slice with both stores.
const OTHERS: u64 = 12;

/// A module stores twice to each line in a set, and to further lines in between, while other warps keep loads to the
/// set in flight. With few stores in flight at a time, one store in a pair parks on a load's miss while the other waits
/// for a credit.
pub(crate) fn turns() -> Arc<DirectedProgram> {
    let lines = || (0..24).map(|line| 512 + 5 * line);
    let writer = CtaBuilder::new().warp(|warp| {
        warp.compute(2_000);
        for line in lines() {
            warp.write([line]);
            (0..OTHERS).for_each(|other| _ = warp.write([line + 1024 * (1 + other)]));
            warp.write([line]);
        }
    });
    let reader = CtaBuilder::sharing(0..8, 8, |warp, first| {
        for line in (0..120).flat_map(|_| lines().cycle().skip(3 * first as usize).take(24)) {
            warp.load([line], Order::relaxed(Scope::Sys)).use_result(1);
        }
    });
    let read = kernel(|_, warp| lines().for_each(|line| _ = warp.load([line], Order::WEAK)));
    let touch = kernel(|module, warp| {
        warp.read([module * PAGE]);
    });
    let mut ctas = vec![CtaBuilder::new().warp(|_| {}); 32];
    for (module, cta) in [(4, writer), (5, reader.clone()), (6, reader.clone()), (7, reader)] {
        ctas[on(module, 0)] = cta;
    }
    DirectedProgram::new(vec![touch, ctas, read])
}
