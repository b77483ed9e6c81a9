//! The result of a run is equal, bit for bit, at every thread count.

use crate::common::{DESIGNS, design, machine, simulate_on};
use std::sync::Arc;
use tombolo_system::directed::{CtaBuilder, DirectedProgram};
use tombolo_types::stream::AtomicResult;
use tombolo_types::{Mask, Order, Scope};

/// Sixteen CTAs that read a shared array, write neighbouring lines, and synchronise at every scope.
fn traffic() -> Arc<DirectedProgram> {
    let cta = |id: u64| {
        let mut cta = CtaBuilder::new();
        for warp in 0..4 {
            let seed = id * 4 + warp;
            cta = cta.warp(|w| {
                for step in 0..12 {
                    w.read([step * 7 % 64, 1000 + (seed * 5 + step) % 128]).compute(3);
                    w.store([1000 + (seed + step * 3) % 128], Mask(0xff << (step % 4 * 8)), Order::WEAK);
                    w.atomic([2000 + step % 3], Order::relaxed(Scope::Gpu), AtomicResult::Discarded);
                }
                w.store([3000 + id], Mask(1), Order::release(Scope::Gpu)).barrier();
                w.load([3000 + (id + 3) % 16], Order::acquire(Scope::Sys)).use_result(1).read([4000 + seed]);
            });
        }
        cta
    };
    DirectedProgram::new((0..3).map(|_| (0..16).map(cta).collect()).collect())
}

#[test]
fn every_design_gives_one_digest_at_every_thread_count() {
    let machine = machine(&[]);
    for name in DESIGNS {
        let one = simulate_on(1, &machine, design(name, &[]), traffic());
        assert!(one.transactions > 3 * 16 * 4 * 36, "{name}: the program ran");
        for threads in [2, 3, 4, 8] {
            let many = simulate_on(threads, &machine, design(name, &[]), traffic());
            assert_eq!(one.digest, many.digest, "{name} on {threads} threads");
            assert_eq!(one.cycles, many.cycles, "{name} on {threads} threads");
        }
    }
}

#[test]
fn a_result_does_not_depend_on_how_often_it_is_computed() {
    let machine = machine(&[]);
    let digests: Vec<_> = (0..2).map(|_| simulate_on(2, &machine, design("hmg", &[]), traffic()).digest).collect();
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn designs_differ() {
    let machine = machine(&[]);
    let mut digests: Vec<_> =
        DESIGNS.iter().map(|name| simulate_on(1, &machine, design(name, &[]), traffic()).digest).collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), DESIGNS.len());
}
