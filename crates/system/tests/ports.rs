//! Ports of modules and of what lies inside them: what waits for what, told by the time of directed programs. CTA `i` of
//! sixteen runs on module `i`.

mod common;

use common::{design, machine, simulate};
use tombolo_system::directed::{Cta, Directed};
use tombolo_types::{Order, Scope};

/// A load that no L1 serves.
const PAST_L1: Order = Order::relaxed(Scope::Gpu);

/// Seconds from the launch of the last kernel to its end.
fn last_kernel(settings: &[&str], kernels: Vec<Vec<Cta>>) -> f64 {
    let record = simulate(&machine(settings), design("hmg", &[]), Directed::new(kernels));
    let kernel = record.kernels.last().expect("a kernel ran");
    kernel.end_s - kernel.start_s
}

#[test]
fn a_fill_does_not_wait_for_hits_that_are_still_looked_up() {
    // One warp follows lines that only memory has, while another of its SM hits the same line over and over, so that at
    // nearly every time a hit is under way for the SM that was reserved before a fill and leaves long after it.
    let time = |hits: usize| {
        let mut cta = Cta::new().warp(|warp| {
            for line in (64..128).step_by(8) {
                warp.load([line], PAST_L1).use_result(1);
            }
        });
        cta = cta.warp(|warp| (0..hits).for_each(|_| _ = warp.load([0], PAST_L1).use_result(1)));
        let touch = vec![Cta::new().warp(|warp| _ = warp.read([0]))];
        last_kernel(&["l2.hit_latency=1us"], vec![touch, vec![cta]])
    };
    let (alone, beside) = (time(0), time(6));
    // Eight misses, each a lookup of a microsecond and more; six hits end before them.
    assert!(alone > 8e-6 && beside < alone + 0.1e-6, "{alone} s alone, {beside} s beside hits");
}
