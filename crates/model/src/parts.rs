//! A module as its controller sees it: the SMs' side, the slices' side, and what goes from one to the other.

use crate::activity::Sample;
use crate::below::Below;
use crate::below::L2;
use crate::context::{SliceContext, SliceShared, SmContext, SmShared};
use crate::cpu::Cpu;
use crate::message::{Message, Out};
use crate::site::Site;
use crate::sm::Sm;
use crate::watch::Contents;
use tombolo_types::{ComponentId, Ps};

/// A module as its controller sees it: both sides.
pub struct Parts<'a, 'o, C: Below<D>, D: Contents> {
    /// Its place in the machine.
    pub site: &'a Site<C, D>,
    /// Its SMs.
    pub sms: &'a mut [Sm<D>],
    /// What they share.
    pub sm_shared: &'a mut SmShared,
    /// The core of the host, whose module has no SMs.
    pub core: Option<&'a mut Cpu>,
    /// Its L2 slices.
    pub slices: &'a mut [C::Slice],
    /// What they share.
    pub slice_shared: &'a mut SliceShared<D>,
    /// Where events go.
    pub out: &'a mut Out<'o, D>,
}

impl<'o, C: Below<D>, D: Contents> Parts<'_, 'o, C, D> {
    /// What `id` may touch in the place of a slice.
    #[inline]
    pub fn slice_side(&mut self, id: ComponentId) -> SliceContext<'_, 'o, C, D> {
        SliceContext { id, site: self.site, shared: self.slice_shared, out: self.out }
    }

    /// Has an SM act.
    #[inline]
    pub fn at_sm<R>(&mut self, sm: usize, act: impl FnOnce(&mut Sm<D>, &mut SmContext<'_, 'o, C, D>) -> R) -> R {
        act(&mut self.sms[sm], &mut SmContext { site: self.site, shared: self.sm_shared, out: self.out })
    }

    /// Has the core of the host act, where this is its module.
    pub fn at_core(&mut self, act: impl FnOnce(&mut Cpu, &mut SmContext<'_, 'o, C, D>)) {
        if let Some(core) = &mut self.core {
            act(core, &mut SmContext { site: self.site, shared: self.sm_shared, out: self.out });
        }
    }

    /// Has a slice act; the SMs get back what it has taken of them.
    #[inline]
    pub fn at_slice<R>(
        &mut self,
        slice: usize,
        act: impl FnOnce(&mut C::Slice, &mut SliceContext<'_, 'o, C, D>) -> R,
    ) -> R {
        let slice = &mut self.slices[slice];
        let id = slice.id();
        let result = act(slice, &mut SliceContext { id, site: self.site, shared: self.slice_shared, out: self.out });
        if !self.slice_shared.returns.is_empty() {
            self.hand_back(id);
        }
        result
    }

    /// Tells the SMs of their stores that a slice has taken.
    fn hand_back(&mut self, by: ComponentId) {
        let mut returns = std::mem::take(&mut self.slice_shared.returns);
        for taken in returns.drain(..) {
            if self.sms.is_empty() {
                // The host's core counts what is outstanding.
                let core = self.site.layout.sm(self.site.module, taken.sm);
                self.out.send(taken.at.max(self.out.now() + Ps(1)), by, core, Message::StoreReturned);
                continue;
            }
            self.at_sm(usize::from(taken.sm.0), |sm, here| sm.store_taken(taken, by, here));
        }
        self.slice_shared.returns = returns;
    }

    /// Does, before an event at `now`, what has become due: samples of the ways, and of the module's activity.
    #[cold]
    pub fn come_due(&mut self, now: Ps) {
        if self.slice_shared.ways.next_sample() <= now {
            self.slice_shared.shift_ways(now);
            self.tell_l1_ways();
        }
        let sms = &*self.sms;
        self.slice_shared.observe(now, |shared| sample(now, sms, shared));
    }

    /// Tells the L1s how their ways are shared from now on.
    pub fn tell_l1_ways(&mut self) {
        self.sm_shared.l1_ways = *self.slice_shared.ways.l1();
    }
}

/// A module at a moment.
pub(crate) fn sample<D: Contents>(at: Ps, sms: &[Sm<D>], shared: &SliceShared<D>) -> Sample {
    let dram = shared.memory.dram();
    Sample {
        at,
        warps: sms.iter().map(Sm::alive).sum(),
        misses: sms.iter().map(Sm::misses).sum(),
        l2_loads: shared.stats.reads,
        l2_hits: shared.stats.read_hits,
        dram_bytes: dram.read_bytes + dram.write_bytes,
        sent_bytes: shared.port.stats().bytes().0,
    }
}
