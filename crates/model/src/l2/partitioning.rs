//! Parts of a module with a partition each: SMs, and groups of L2 slices. Messages between two parts, or between a part
//! and the rest of the module, take at least [`least_delay`].

use crate::l2::backend::{L2Design, L2Slice};
use crate::layout::Unit;
use crate::message::{Message, Out};
use crate::module::config::{ModuleConfig, ModuleSite};
use crate::module::context::{SliceView, SmShared};
use crate::module::halves::{SliceSide, SmSide};
use crate::module::uncore::Uncore;
use crate::observe::value_probe::{Contents, ValueProbe};
use tombolo_engine::Event;
use tombolo_machine::MachineConfig;
use tombolo_types::{Ps, SmId};

/// Minimum delay for a message between two parts of a module: the crossbar latency or half the L2 TLB latency,
/// whichever is less.
pub fn least_delay(machine: &MachineConfig) -> Ps {
    machine.crossbar.latency.min(crate::convert::to_l2_tlb(machine))
}

/// Partition for some SMs in a module.
pub struct SmPartition<D: Contents> {
    config: ModuleSite<D>,
    side: SmSide<D>,
}

impl<D: Contents> SmPartition<D> {
    /// Partition for the SMs in `side`, which belong to the module of `config`.
    pub(crate) fn new(config: ModuleSite<D>, side: SmSide<D>) -> SmPartition<D> {
        SmPartition { config, side }
    }

    /// Returns the SMs and their shared state.
    pub(crate) fn into_side(self) -> SmSide<D> {
        self.side
    }

    /// Handles an event for an SM in this partition.
    #[inline]
    pub fn handle(&mut self, sm: SmId, event: &Event<Message<D>>, out: &mut Out<'_, D>) {
        self.config.probe.handles(event.time, self.config.module, Unit::Sm(sm), &event.message);
        self.side.handle(sm, &event.message, &self.config, out);
    }

    /// Prefetches into the host's caches the first data that an event for `sm` reads.
    #[inline]
    pub fn prefetch(&self, sm: SmId, message: &Message<D>) {
        self.side.sm(sm).prefetch(message);
    }

    /// Prefetches data found through pointers loaded by [`SmPartition::prefetch`], for the same event.
    #[inline]
    pub fn prefetch_found(&self, sm: SmId, message: &Message<D>) {
        self.side.sm(sm).prefetch_found(message);
    }
}

/// Partition with some groups of a module's L2 slices. The module must be alone in the machine.
pub struct SlicePartition<C: L2Design<D>, D: Contents> {
    config: ModuleConfig<C, D>,
    side: SliceSide<C, D>,
    /// Idle uncore: the module has no other modules to send to.
    uncore: Uncore<D>,
}

impl<C: L2Design<D>, D: Contents> SlicePartition<C, D> {
    /// Partition for the slices in `side`, which belong to the module of `config`.
    pub(crate) fn new(config: ModuleConfig<C, D>, side: SliceSide<C, D>, uncore: Uncore<D>) -> SlicePartition<C, D> {
        SlicePartition { config, side, uncore }
    }

    /// Returns the slices and their shared state.
    pub(crate) fn into_side(self) -> SliceSide<C, D> {
        self.side
    }

    /// Handles an event for a slice in this partition.
    #[inline]
    pub fn handle(&mut self, slice: u16, event: &Event<Message<D>>, out: &mut Out<'_, D>) {
        let SlicePartition { config, side, uncore } = self;
        config.probe.handles(event.time, config.module, Unit::Slice(slice), &event.message);
        side.handle(slice, &event.message, (config, uncore), out);
    }

    /// Prefetches into the host's caches the first data that an event for `slice` reads.
    #[inline]
    pub fn prefetch(&self, slice: u16, message: &Message<D>) {
        let (one, view) = self.view(slice);
        one.prefetch(message, view);
    }

    /// Prefetches data found through pointers loaded by [`SlicePartition::prefetch`], for the same event.
    #[inline]
    pub fn prefetch_found(&self, slice: u16, message: &Message<D>) {
        let (one, view) = self.view(slice);
        one.prefetch_found(message, view);
    }

    fn view(&self, slice: u16) -> (&C::Slice, SliceView<'_, C, D>) {
        let (one, shared) = self.side.slice(slice);
        (one, SliceView { config: &self.config, shared, uncore: &self.uncore })
    }
}

impl SmShared {
    /// Adds the counters and failures recorded by other SMs of the module in their own partition.
    pub(crate) fn merge(&mut self, other: SmShared) {
        self.failure = self.failure.take().or(other.failure);
        self.latencies.merge(&other.latencies);
        self.counted.resize(self.counted.len().max(other.counted.len()), Default::default());
        for (mine, theirs) in self.counted.iter_mut().zip(&other.counted) {
            *mine = mine.and(theirs);
        }
    }
}
