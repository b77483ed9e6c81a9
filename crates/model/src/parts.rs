//! A module as its controller sees it: the SMs' side, the slices' side, and what goes from one to the other.

use crate::activity::Sample;
use crate::below::{Below, L2};
use crate::context::{SliceContext, SmContext, UncoreContext};
use crate::cpu::Cpu;
use crate::message::{Message, Out};
use crate::port::Port;
use crate::posted::Drainer;
use crate::sides::{SliceSide, SmSide};
use crate::site::Site;
use crate::sm::Sm;
use crate::uncore::Uncore;
use crate::watch::Contents;
use tombolo_types::{ComponentId, Line, Ps};

/// A module as its controller sees it: both sides.
pub struct Parts<'a, 'o, C: Below<D>, D: Contents> {
    /// Its place in the machine.
    pub site: &'a Site<C, D>,
    /// Its SMs, or the core of the host.
    pub sm_side: &'a mut SmSide<D>,
    /// Its L2 slices.
    pub slice_side: &'a mut SliceSide<C, D>,
    /// What it has once.
    pub uncore: &'a mut Uncore<D>,
    /// Where events go.
    pub out: &'a mut Out<'o, D>,
}

impl<'o, C: Below<D>, D: Contents> Parts<'_, 'o, C, D> {
    /// What `id` may touch in the place of the slice of a line.
    #[inline]
    pub fn as_slice(&mut self, id: ComponentId, line: Line) -> SliceContext<'_, 'o, C, D> {
        let Parts { site, sm_side, slice_side, uncore, out } = self;
        let (_, shared) = slice_side.slice_mut(site.map.slice(line));
        SliceContext { id, site, shared, uncore, sm_ports: &mut sm_side.ports, out }
    }

    /// What `id` may touch of what the module has once.
    #[inline]
    pub fn at_uncore(&mut self, id: ComponentId) -> UncoreContext<'_, 'o, C, D> {
        UncoreContext { id, site: self.site, uncore: self.uncore, out: self.out }
    }

    /// Has an SM act.
    #[inline]
    pub fn at_sm<R>(&mut self, sm: usize, act: impl FnOnce(&mut Sm<D>, &mut SmContext<'_, 'o, C, D>) -> R) -> R {
        let SmSide { sms, shared, .. } = self.sm_side;
        act(&mut sms[sm], &mut SmContext { site: self.site, shared, out: self.out })
    }

    /// Has the core of the host act, where this is its module.
    pub fn at_core(&mut self, act: impl FnOnce(&mut Cpu, &mut SmContext<'_, 'o, C, D>)) {
        let SmSide { core, shared, .. } = self.sm_side;
        if let Some(core) = core {
            act(core, &mut SmContext { site: self.site, shared, out: self.out });
        }
    }

    /// Has every SM tell when all that it has posted so far has been taken; `by` asks.
    pub fn drain_sms(&mut self, drainer: Drainer, by: ComponentId) {
        for sm in 0..self.sm_side.sms.len() {
            self.at_sm(sm, |sm, here| sm.drain(drainer, by, here));
        }
    }

    /// Has a slice act; the SMs get back what it has taken of them.
    #[inline]
    pub fn at_slice<R>(
        &mut self,
        index: u16,
        act: impl FnOnce(&mut C::Slice, &mut SliceContext<'_, 'o, C, D>) -> R,
    ) -> R {
        let Parts { site, sm_side, slice_side, uncore, out } = self;
        let (slice, shared) = slice_side.slice_mut(index);
        let id = slice.id();
        let sm_ports = &mut sm_side.ports;
        let mut here = SliceContext { id, site, shared, uncore, sm_ports, out };
        let result = act(slice, &mut here);
        if !here.shared.returns.is_empty() {
            self.hand_back(index, id);
        }
        result
    }

    /// Tells the SMs of their stores that the slice `index`, which is `by`, has taken.
    fn hand_back(&mut self, index: u16, by: ComponentId) {
        let mut returns = std::mem::take(&mut self.slice_side.slice_mut(index).1.returns);
        for taken in returns.drain(..) {
            if self.sm_side.sms.is_empty() {
                // The host's core counts what is outstanding.
                let core = self.site.layout.sm(self.site.module, taken.sm);
                self.out.send(taken.at.max(self.out.now() + Ps(1)), by, core, Message::StoreReturned);
                continue;
            }
            self.at_sm(usize::from(taken.sm.0), |sm, here| sm.store_taken(taken, by, here));
        }
        self.slice_side.slice_mut(index).1.returns = returns;
    }

    /// Does, before an event at `now`, what has become due: samples of the ways, and of the module's activity.
    #[cold]
    pub fn come_due(&mut self, now: Ps) {
        if self.uncore.ways.next_sample() <= now {
            self.uncore.shift_ways(now, |at| self.slice_side.queued_until(at));
            self.tell_l1_ways();
        }
        let (sms, slices) = (&self.sm_side.sms, &*self.slice_side);
        self.uncore.observe(now, |port| sample(now, sms, slices, port));
    }

    /// Tells the L1s how their ways are shared from now on.
    pub fn tell_l1_ways(&mut self) {
        self.sm_side.shared.l1_ways = *self.uncore.ways.l1();
    }
}

/// A module at a moment.
pub(crate) fn sample<C: Below<D>, D: Contents>(at: Ps, sms: &[Sm<D>], slices: &SliceSide<C, D>, port: &Port) -> Sample {
    let dram = slices.dram();
    Sample {
        at,
        warps: sms.iter().map(Sm::alive).sum(),
        misses: sms.iter().map(Sm::misses).sum(),
        l2_loads: slices.shared().map(|shared| shared.stats.reads).sum(),
        l2_hits: slices.shared().map(|shared| shared.stats.read_hits).sum(),
        dram_bytes: dram.read_bytes + dram.write_bytes,
        sent_bytes: port.stats().bytes().0,
    }
}
