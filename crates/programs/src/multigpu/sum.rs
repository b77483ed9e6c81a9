//! A sum over all CTAs on a GPU, in a word reserved for the GPU.

use crate::prelude::*;

/// Order and scope for CUDA's atomics: relaxed, at GPU scope.
pub(super) const ATOMIC: Order = Order::relaxed(Scope::Gpu);

/// Adds the values in each warp's lanes to `into[at]`: by shuffles in a warp, through the scratchpad in the CTA, then
/// by one atomic.
pub(super) fn add_up(cta: &mut Cta<'_>, held: Vec<Lanes<u64>>, into: Array<u64>, at: i32) {
    let warps = held.len();
    let mut partial = cta.shared(warps);
    for (index, held) in (0..).zip(held) {
        cta.warp(index, |warp| {
            let sum = warp.sum_lanes(ComputeClass::Int, held, warp.width());
            warp.single(|warp| warp.store_shared(&mut partial, Lanes::all(index), sum));
        });
    }
    cta.barrier();
    cta.warp(0, |warp| {
        let lane = warp.lane();
        let mut sum = Lanes::all(0_u64);
        warp.when(lane.lt(warps as i32), |warp| {
            let loaded = warp.load_shared(&partial, lane);
            sum = warp.update(sum, loaded);
        });
        let sum = warp.sum_lanes(ComputeClass::Int, sum, warp.width());
        warp.single(|warp| warp.reduce(Reduction::Add, into, Lanes::all(at), sum, ATOMIC));
    });
}
