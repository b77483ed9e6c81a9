//! A barrier across the CTAs of a cooperative kernel.

use tombolo_workload::prelude::*;

/// Flags of a grid barrier: each CTA sets its flag, and CTA 0 sees all flags and sets every CTA's second flag. Source:
/// Xiao and Feng, IPDPS 2010, lock-free synchronization.
pub(crate) struct GridBarrier {
    /// Number of barriers reached by each CTA, and (`released`) number of completed barriers.
    arrived: Array<u32>,
    released: Array<u32>,
    scope: Scope,
}

impl GridBarrier {
    /// Lays out the flags for `ctas` CTAs, a number that scales.
    pub(crate) fn lay_out(memory: &mut Memory, ctas: u64, scope: Scope) -> GridBarrier {
        GridBarrier {
            arrived: memory.flags("arrived", ctas, Scaling::Scales),
            released: memory.flags("released", ctas, Scaling::Scales),
            scope,
        }
    }

    /// Waits for all CTAs. `count` is the number of this barrier, counted from 1; each barrier's number must exceed all
    /// earlier numbers.
    pub(crate) async fn meet(&self, cta: &mut Cta<'_>, count: u32) {
        let (relaxed, acquire, release) =
            (Order::relaxed(self.scope), Order::acquire(self.scope), Order::release(self.scope));
        let (me, grid, stride) = (cta.index(), cta.grid(), cta.threads() as usize);
        cta.barrier();
        cta.warp(0, |warp| {
            warp.single(|warp| warp.store_ordered(self.arrived, Lanes::all(me), count, release));
        });
        if me == 0 {
            let warps = cta.warps();
            for other in 0..grid {
                let warp = other / 32 % warps;
                cta.wait_until(warp, self.arrived, u64::from(other), relaxed, |flag| flag == count).await;
            }
            // Each warp that polled acquires once for all its flags.
            (0..warps.min(grid.div_ceil(32))).for_each(|warp| cta.warp(warp, |warp| warp.fence(acquire)));
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
            cta.wait_until(0, self.released, u64::from(me), relaxed, |flag| flag == count).await;
            cta.warp(0, |warp| warp.fence(acquire));
        }
        cta.barrier();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::stream::{CtaStream, Op, Program};
    use tombolo_workload::record::Host;
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::simt::{Backing, Grid};

    #[test]
    fn a_warp_acquires_once_for_all_the_flags_it_polls() {
        let mut memory = Memory::new(Backing::Real);
        let barrier = GridBarrier::lay_out(&mut memory, 80, Scope::Sys);
        let options = RecordOptions::default();
        let mut host = Host::new(&memory, &options);
        host.launch_cooperative(Grid::new("meet", 80, 64), async |cta: &mut Cta<'_>| barrier.meet(cta, 1).await)
            .unwrap();
        let recording = host.finish("barrier");
        let mut stream = CtaStream::default();
        // CTA 0 has two warps: one polls 32 flags plus the last 16, the other polls 32.
        for (cta, fences) in [(0, 2), (1, 1), (79, 1)] {
            recording.cta(0, cta, &mut stream).unwrap();
            let acquires = |op: &&Op| matches!(op, Op::WaitUntil { order, .. } if order.order().semantics.acquires());
            assert_eq!(stream.ops.iter().filter(acquires).count(), 0, "CTA {cta}");
            let fence = Op::Fence { order: Order::acquire(Scope::Sys).into() };
            assert_eq!(stream.ops.iter().filter(|op| **op == fence).count(), fences, "CTA {cta}");
        }
    }
}
