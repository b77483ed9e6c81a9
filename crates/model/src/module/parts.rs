//! A module from the controller's viewpoint: the SM side, the slice side, and the paths between both.

use crate::fabric::port::Port;
use crate::front_end::cpu::Cpu;
use crate::l2::backend::{L2Design, L2Slice};
use crate::message::{Message, Out};
use crate::module::config::ModuleConfig;
use crate::module::context::{SliceContext, SmContext, UncoreContext};
use crate::module::halves::{SliceSide, SmSide};
use crate::module::uncore::Uncore;
use crate::observe::activity::Sample;
use crate::observe::value_probe::Contents;
use crate::sm::Sm;
use tombolo_types::{ComponentId, Line, Ps, SmId};

/// Mutable view of a module for the controller, with both sides.
pub(crate) struct Parts<'a, 'o, C: L2Design<D>, D: Contents> {
    /// The module's position in the machine.
    pub(crate) config: &'a ModuleConfig<C, D>,
    /// The module's SMs, or the host's core.
    pub(crate) sm_side: &'a mut SmSide<D>,
    /// The module's L2 slices.
    pub(crate) slice_side: &'a mut SliceSide<C, D>,
    /// Parts present only once in the module.
    pub(crate) uncore: &'a mut Uncore<D>,
    /// Output for events.
    pub(crate) out: &'a mut Out<'o, D>,
}

impl<'o, C: L2Design<D>, D: Contents> Parts<'_, 'o, C, D> {
    /// Mutable view for `id`, acting in place of a line's slice.
    #[inline]
    pub(crate) fn as_slice(&mut self, id: ComponentId, line: Line) -> SliceContext<'_, 'o, C, D> {
        let Parts { config, slice_side, uncore, out, .. } = self;
        let (_, shared) = slice_side.slice_mut(config.map.slice(line));
        SliceContext { id, config, shared, uncore, out }
    }

    /// Mutable view for the uncore; events are sent as `id`.
    #[inline]
    pub(crate) fn at_uncore(&mut self, id: ComponentId) -> UncoreContext<'_, 'o, D> {
        UncoreContext { id, config: &self.config.site, uncore: self.uncore, out: self.out }
    }

    /// Calls `act` with an SM and its view.
    #[inline]
    pub(crate) fn at_sm<R>(&mut self, sm: usize, act: impl FnOnce(&mut Sm<D>, &mut SmContext<'_, 'o, D>) -> R) -> R {
        let SmSide { sms, shared, .. } = self.sm_side;
        act(&mut sms[sm], &mut SmContext { config: &self.config.site, shared, out: self.out })
    }

    /// Calls `act` with the host's core, if this is the host's module.
    pub(crate) fn at_core(&mut self, act: impl FnOnce(&mut Cpu, &mut SmContext<'_, 'o, D>)) {
        let SmSide { core, shared, .. } = self.sm_side;
        if let Some(core) = core {
            act(core, &mut SmContext { config: &self.config.site, shared, out: self.out });
        }
    }

    /// Sends a message from `by` to every SM, to arrive one crossbar latency after `at`.
    pub(crate) fn send_to_sms(&mut self, at: Ps, by: ComponentId, message: Message<D>) {
        let at = self.to_sm(at);
        for sm in (0..self.sms()).map(SmId) {
            self.out.send(at, by, self.config.layout.sm(self.config.module, sm), message);
        }
    }

    /// Sends a message from `by` to the first slice in every group, to arrive one crossbar latency from now.
    pub(crate) fn send_to_groups(&mut self, by: ComponentId, message: Message<D>) {
        let at = self.to_sm(self.out.now());
        let size = self.config.machine.l2.slices / self.groups();
        for group in 0..self.groups() {
            self.out.send(at, by, self.config.layout.slice(self.config.module, group * size), message);
        }
    }

    /// Number of slice groups in this module.
    pub(crate) fn groups(&self) -> u16 {
        crate::convert::slice_groups(&self.config.machine)
    }

    /// Arrival time at an SM for a message sent by the controller at `at`.
    pub(crate) fn to_sm(&self, at: Ps) -> Ps {
        at + crate::convert::to_controller(&self.config.machine)
    }

    /// Departure time at an SM for a message received by the controller at `at`.
    pub(crate) fn departure_at_sm(&self, at: Ps) -> Ps {
        at.saturating_sub(crate::convert::to_controller(&self.config.machine))
    }

    /// Arrival time at the command processor of a completion that occurred at `over` in SMs or slices, and is known to
    /// the controller now.
    pub(crate) fn to_command_processor(&self, over: Ps) -> Ps {
        let machine = &self.config.machine;
        let latency = crate::convert::host_latency(machine);
        (self.out.now() + crate::convert::latency_beyond_controller(latency, machine)).max(over + latency)
    }

    /// Number of SMs in this module.
    pub(crate) fn sms(&self) -> u16 {
        if self.config.layout.host() == Some(self.config.module) { 0 } else { self.config.layout.sms }
    }

    /// Calls `act` with a slice and its view.
    #[inline]
    pub(crate) fn at_slice<R>(
        &mut self,
        index: u16,
        act: impl FnOnce(&mut C::Slice, &mut SliceContext<'_, 'o, C, D>) -> R,
    ) -> R {
        let Parts { config, slice_side, uncore, out, .. } = self;
        let (slice, shared) = slice_side.slice_mut(index);
        act(slice, &mut SliceContext { id: slice.id(), config, shared, uncore, out })
    }

    /// Runs the periodic samplers due before an event at `now`: the way partition, and the module's activity.
    #[cold]
    pub(crate) fn run_samplers(&mut self, now: Ps) {
        if self.uncore.ways.next_sample() <= now {
            self.uncore.shift_ways(now, |at| self.slice_side.queued_until(at));
            self.update_l1_ways();
        }
        let (sms, slices) = (&self.sm_side.sms, &*self.slice_side);
        self.uncore.observe(now, |port| sample(now, sms, slices, port));
    }

    /// Copies the current way split to the L1s.
    pub(crate) fn update_l1_ways(&mut self) {
        self.sm_side.shared.l1_ways = *self.uncore.ways.l1();
    }
}

/// Sample of a module's state at a moment.
pub(crate) fn sample<C: L2Design<D>, D: Contents>(
    at: Ps,
    sms: &[Sm<D>],
    slices: &SliceSide<C, D>,
    port: &Port,
) -> Sample {
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
