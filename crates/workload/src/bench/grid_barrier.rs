//! A barrier across the CTAs of a cooperative kernel.

use crate::simt::{Array, Cta, Lanes, Memory, Scaling};
use tombolo_types::{Order, Scope};

/// Each CTA sets its flag, CTA 0 sees all and sets every CTA's second flag.
/// Source: Xiao and Feng, IPDPS 2010, lock-free synchronization.
pub(super) struct GridBarrier {
    /// Barriers each CTA has reached, and was let go from.
    arrived: Array<u32>,
    released: Array<u32>,
    scope: Scope,
}

impl GridBarrier {
    /// The flags of `ctas` CTAs, a number that scales.
    pub(super) fn lay_out(memory: &mut Memory, ctas: u64, scope: Scope) -> GridBarrier {
        GridBarrier {
            arrived: memory.flags("arrived", ctas, Scaling::Scales),
            released: memory.flags("released", ctas, Scaling::Scales),
            scope,
        }
    }

    /// Waits for all CTAs. `count` is the number of this barrier, from 1 on, larger than those of all before it.
    pub(super) async fn meet(&self, cta: &mut Cta<'_>, count: u32) {
        let (acquire, release) = (Order::acquire(self.scope), Order::release(self.scope));
        let (me, grid, stride) = (cta.index(), cta.grid(), cta.threads() as usize);
        cta.barrier();
        cta.warp(0, |warp| {
            warp.single(|warp| warp.store_ordered(self.arrived, Lanes::all(me), count, release));
        });
        if me == 0 {
            let warps = cta.warps();
            for other in 0..grid {
                let warp = other / 32 % warps;
                cta.wait_until(warp, self.arrived, u64::from(other), acquire, |flag| flag == count).await;
            }
            cta.barrier();
            cta.each_warp(|warp| {
                for start in (0..grid as i32).step_by(stride) {
                    let other = warp.thread() + start;
                    warp.when(other.lt(grid as i32), |warp| {
                        warp.store_ordered(self.released, other, count, release);
                    });
                }
            });
        } else {
            cta.wait_until(0, self.released, u64::from(me), acquire, |flag| flag == count).await;
        }
        cta.barrier();
    }
}
