//! A module as its controller sees it: the SMs' side, the slices' side, and what goes from one to the other.

use crate::activity::Sample;
use crate::below::{Below, L2};
use crate::context::{SliceContext, SmContext, UncoreContext};
use crate::cpu::Cpu;
use crate::message::{Message, Out};
use crate::port::Port;
use crate::sides::{SliceSide, SmSide};
use crate::site::Site;
use crate::sm::Sm;
use crate::uncore::Uncore;
use crate::watch::Contents;
use tombolo_types::{ComponentId, Line, Ps, SmId};

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
        let Parts { site, slice_side, uncore, out, .. } = self;
        let (_, shared) = slice_side.slice_mut(site.map.slice(line));
        SliceContext { id, site, shared, uncore, out }
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

    /// Tells every SM, a crossbar's latency after `at`; `by` does.
    pub fn tell_sms(&mut self, at: Ps, by: ComponentId, message: Message<D>) {
        let at = self.to_sm(at);
        for sm in (0..self.sms()).map(SmId) {
            self.out.send(at, by, self.site.layout.sm(self.site.module, sm), message);
        }
    }

    /// Tells the first slice of every group, a crossbar's latency from now; `by` does.
    pub fn tell_groups(&mut self, by: ComponentId, message: Message<D>) {
        let at = self.to_sm(self.out.now());
        let size = self.site.machine.l2.slices / self.groups();
        for group in 0..self.groups() {
            self.out.send(at, by, self.site.layout.slice(self.site.module, group * size), message);
        }
    }

    /// Groups of the module's slices.
    pub fn groups(&self) -> u16 {
        crate::convert::slice_groups(&self.site.machine)
    }

    /// When an SM has what its controller sends at `at`.
    pub fn to_sm(&self, at: Ps) -> Ps {
        at + crate::convert::to_controller(&self.site.machine)
    }

    /// When an SM has sent what its controller has at `at`.
    pub fn from_sm(&self, at: Ps) -> Ps {
        at.saturating_sub(crate::convert::to_controller(&self.site.machine))
    }

    /// When the command processor hears of what SMs or slices had done at `over`, and the controller knows now.
    pub fn to_command_processor(&self, over: Ps) -> Ps {
        let machine = &self.site.machine;
        let way = crate::convert::host_latency(machine);
        (self.out.now() + crate::convert::beyond_controller(way, machine)).max(over + way)
    }

    /// SMs of the module.
    pub fn sms(&self) -> u16 {
        if self.site.layout.host() == Some(self.site.module) { 0 } else { self.site.layout.sms }
    }

    /// Has a slice act.
    #[inline]
    pub fn at_slice<R>(
        &mut self,
        index: u16,
        act: impl FnOnce(&mut C::Slice, &mut SliceContext<'_, 'o, C, D>) -> R,
    ) -> R {
        let Parts { site, slice_side, uncore, out, .. } = self;
        let (slice, shared) = slice_side.slice_mut(index);
        act(slice, &mut SliceContext { id: slice.id(), site, shared, uncore, out })
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
