//! The two sides of a module's crossbar: SMs with their ports, and L2 slices with the memory behind them. No mutable
//! state belongs to both sides. Controller requests to a whole side are methods in this file.
//!
//! Slices form groups ([`crate::l2::group`]). No mutable state belongs to two groups either.

use crate::fabric::crossbar::SmPort;
use crate::front_end::boundaries::{ExtentId, LostLines};
use crate::front_end::cpu::Cpu;
use crate::l2::backend::{L2Design, L2Slice};
use crate::l2::group::GroupIndex;
use crate::l2::set_index::Divisor;
use crate::memory::dram::DramStats;
use crate::message::{Message, Out};
use crate::module::config::{ModuleConfig, ModuleSite};
use crate::module::context::{SliceContext, SliceShared, SmContext, SmShared};
use crate::module::uncore::Uncore;
use crate::observe::latency::Note;
use crate::observe::value_probe::Contents;
use crate::sm::translation::Translation;
use crate::sm::{FillMessage, Sm};
use std::collections::BTreeSet;
use tombolo_design::ModelInput;
use tombolo_protocol::Action;
use tombolo_protocol::paging::AttemptedAccess;
use tombolo_types::{Bytes, Page, Ps, SmId};

/// The SMs in a module, or the host's core.
pub(crate) struct SmSide<D: Contents> {
    /// Number of the first SM on this side.
    pub(crate) first: u16,
    /// The SMs; empty for a core.
    pub(crate) sms: Vec<Sm<D>>,
    /// State shared by the SMs.
    pub(crate) shared: SmShared,
    /// Ingress ports at the crossbar, by SM; the core uses the first.
    pub(crate) ports: Vec<SmPort<D>>,
    /// The host's core.
    pub(crate) core: Option<Cpu>,
}

impl<D: Contents> SmSide<D> {
    /// Handles a message for an SM, or for the host's core in the position of SM 0.
    #[inline]
    pub(crate) fn handle(&mut self, sm: SmId, message: &Message<D>, config: &ModuleSite<D>, out: &mut Out<'_, D>) {
        let grains = match message {
            Message::Fill { mask, .. } => mask.grains(),
            Message::AtomicResult { .. } => 1,
            Message::PortReceived => return self.pass(sm, config, out),
            _ => return self.act(sm, message, config, out),
        };
        let bytes = Bytes(u64::from(grains) * config.machine.line.grain());
        let index = self.index(sm);
        match self.ports[index].take(out.now(), *message, bytes) {
            Ok(message) => self.act(sm, &message, config, out),
            Err(due) => self.call(due, sm, config, out),
        }
    }

    /// The oldest message at an SM's ingress port has been received: hands it to the SM.
    #[cold]
    fn pass(&mut self, sm: SmId, config: &ModuleSite<D>, out: &mut Out<'_, D>) {
        let index = self.index(sm);
        let (message, next) = self.ports[index].pass();
        self.call(next, sm, config, out);
        self.act(sm, &message, config, out);
    }

    /// Schedules the event when an SM's port has received the next waiting message.
    fn call(&self, due: Option<Ps>, sm: SmId, config: &ModuleSite<D>, out: &mut Out<'_, D>) {
        if let Some(at) = due {
            let id = config.layout.sm(config.module, sm);
            out.send(at, id, id, Message::PortReceived);
        }
    }

    #[inline]
    fn act(&mut self, sm: SmId, message: &Message<D>, config: &ModuleSite<D>, out: &mut Out<'_, D>) {
        let index = self.index(sm);
        let here = &mut SmContext { config, shared: &mut self.shared, out };
        match &mut self.core {
            Some(core) => core.handle(message, here),
            None => at_sm(&mut self.sms[index], message, here),
        }
    }

    /// An SM's index within this side.
    #[inline]
    fn index(&self, sm: SmId) -> usize {
        usize::from(sm.0 - self.first)
    }

    /// An SM on this side.
    #[inline]
    pub(crate) fn sm(&self, sm: SmId) -> &Sm<D> {
        &self.sms[self.index(sm)]
    }

    /// Splits off the SMs from `first` on; `shared` becomes their shared state.
    pub(crate) fn split_off(&mut self, first: u16, shared: SmShared) -> SmSide<D> {
        let index = self.index(SmId(first));
        SmSide { first, sms: self.sms.split_off(index), shared, ports: self.ports.split_off(index), core: None }
    }

    /// Reattaches SMs after the SMs on this side.
    pub(crate) fn append(&mut self, mut others: SmSide<D>) {
        assert!(usize::from(others.first - self.first) == self.sms.len(), "SMs come back in order");
        self.sms.append(&mut others.sms);
        self.ports.append(&mut others.ports);
        self.shared.merge(others.shared);
    }

    /// Drops a page from the SMs' TLBs, and all contents from their L1s, including the page's lines.
    pub(crate) fn forget_page(&mut self, page: Page) {
        for sm in &mut self.sms {
            sm.forget_page(page);
        }
    }
}

/// Neighbouring slices, and the state they own together.
pub(crate) struct SliceGroup<C: L2Design<D>, D: Contents> {
    /// The slices.
    pub(crate) slices: Vec<C::Slice>,
    /// Shared state, with the memory for their lines.
    pub(crate) shared: SliceShared<D>,
}

/// A module's L2 slices, in groups, with the module's memory.
pub struct SliceSide<C: L2Design<D>, D: Contents> {
    /// Index of the first group on this side.
    first: usize,
    /// The groups, all with equal size.
    pub(crate) groups: Vec<SliceGroup<C, D>>,
    /// Number of slices per group.
    size: Divisor,
}

impl<C: L2Design<D>, D: Contents> SliceSide<C, D> {
    /// Empty slices and idle memory.
    pub(crate) fn new(config: &ModuleConfig<C, D>, built: &ModelInput, between: &C::SharedBySlices) -> SliceSide<C, D> {
        let groups = crate::convert::slice_groups(&config.machine);
        let size = config.machine.l2.slices / groups;
        let slice = |slice| C::Slice::new(config.layout.slice(config.module, slice), config, between);
        let group = |group: GroupIndex| {
            let first = group.index as u16 * size;
            SliceGroup {
                slices: (first..first + size).map(slice).collect(),
                shared: SliceShared::new(config, built, group),
            }
        };
        let groups = GroupIndex::all(groups.into()).map(group).collect();
        SliceSide { first: 0, groups, size: Divisor::new(size.into()) }
    }

    /// Splits off the groups from `first` on.
    pub(crate) fn split_off(&mut self, first: usize) -> SliceSide<C, D> {
        SliceSide { first, groups: self.groups.split_off(first - self.first), size: self.size }
    }

    /// Reattaches groups after the groups on this side.
    pub(crate) fn append(&mut self, mut others: SliceSide<C, D>) {
        assert!(others.first - self.first == self.groups.len(), "groups come back in order");
        self.groups.append(&mut others.groups);
    }

    /// Handles a module message for a slice, or for the slice's whole group.
    #[inline]
    pub(crate) fn handle(
        &mut self,
        slice: u16,
        message: &Message<D>,
        (config, uncore): (&ModuleConfig<C, D>, &mut Uncore<D>),
        out: &mut Out<'_, D>,
    ) {
        match *message {
            Message::Begin { slot, launch } => self.slice_mut(slice).1.flags_mut(uncore).begin(slot, launch),
            Message::Translate { sm, page } => self.translate(slice, (sm, page), config, out),
            Message::Walk { page, wanted } => self.walk(slice, (page, wanted), config, out),
            Message::Transfer { number, is_read } => self.transfer(slice, (number, is_read), (config, uncore), out),
            Message::Act { action, extent, counted, act } => {
                self.act(slice, (action, extent, counted), act, (config, uncore), out);
            }
            _ => {
                let (slice, shared) = self.slice_mut(slice);
                slice.handle(message, &mut SliceContext { id: slice.id(), config, shared, uncore, out });
            }
        }
    }

    /// Translation bank in the group with slice `slice`.
    pub(crate) fn bank(&mut self, slice: u16) -> &mut Translation {
        let bank = &mut self.slice_mut(slice).1.translation;
        bank.as_mut().expect("a page's bank stands with the group that its module says")
    }

    /// Returns the pages accessed by SMs; afterwards, accesses are no longer tracked.
    pub(crate) fn take_accessed(&mut self) -> BTreeSet<Page> {
        let banks = self.groups.iter_mut().filter_map(|group| group.shared.translation.as_mut());
        banks.flat_map(Translation::take_accessed).collect()
    }

    /// Looks up a page, or walks for it. The SM sent the request half an L2 TLB latency ago; the reply takes the second
    /// half, and states when the translation is available.
    fn translate(&mut self, slice: u16, (sm, page): (SmId, Page), config: &ModuleConfig<C, D>, out: &mut Out<'_, D>) {
        let (latency, now) = (crate::convert::to_l2_tlb(&config.machine), out.now());
        let (ready, walked) = self.bank(slice).translate(page, now.saturating_sub(latency));
        let (id, to) = (config.layout.slice(config.module, slice), config.layout.sm(config.module, sm));
        let at = now + (config.machine.tlb.l2_latency - latency);
        out.send(at, id, to, Message::Translated { page, ready, walked });
    }

    /// Like `translate`, for an access not permitted to the module: the driver serves the fault.
    fn walk(
        &mut self,
        slice: u16,
        (page, wanted): (Page, AttemptedAccess),
        config: &ModuleConfig<C, D>,
        out: &mut Out<'_, D>,
    ) {
        let (latency, now) = (crate::convert::to_l2_tlb(&config.machine), out.now());
        let (walked, _) = self.bank(slice).translate(page, now.saturating_sub(latency));
        let at = walked.max(now) + crate::convert::host_latency(&config.machine);
        let fault = Message::Fault { page, module: config.module, wanted };
        out.send(at, config.layout.slice(config.module, slice), config.layout.driver(), fault);
    }

    /// Makes the group with first slice `slice` carry out its part in a phase.
    #[cold]
    fn act(
        &mut self,
        slice: u16,
        (action, extent, counted): (Action, ExtentId, bool),
        act: u32,
        (config, uncore): (&ModuleConfig<C, D>, &mut Uncore<D>),
        out: &mut Out<'_, D>,
    ) {
        let (group, _) = self.place(slice);
        let SliceGroup { slices, shared } = &mut self.groups[group];
        let held = |slices: &mut [C::Slice]| {
            let each = slices.iter_mut().map(|slice| slice.line_counts());
            each.fold((0, 0), |(valid, dirty), (more, more_dirty)| (valid + more, dirty + more_dirty))
        };
        let lines = config.extents.lines(extent);
        let (now, id) = (out.now(), config.layout.slice(config.module, slice));
        let (before, written_back) = (counted.then(|| held(slices)), shared.stats.write_back_bytes);
        let mut taken = now + crate::convert::walk(&config.machine);
        for slice in &mut *slices {
            let mut here = SliceContext { id: slice.id(), config, shared, uncore, out };
            taken = taken.max(slice.act(action, lines.as_deref(), &mut here));
        }
        let lost = before.map_or(LostLines::default(), |(valid, dirty): (u32, u32)| {
            let (left, still) = held(slices);
            LostLines { flushed: dirty.saturating_sub(still), dropped: valid.saturating_sub(left) }
        });
        let flushed = shared.stats.write_back_bytes - written_back;
        let at = now + crate::convert::to_controller(&config.machine);
        out.send(at, id, config.layout.controller(config.module), Message::GroupActed { act, taken, lost, flushed });
    }

    /// Group index and position within the group for a slice in the module.
    #[inline]
    pub(crate) fn place(&self, slice: u16) -> (usize, usize) {
        let (group, within) = self.size.split(slice.into());
        (group as usize - self.first, within as usize)
    }

    /// A slice by number in the module, with the state shared in the slice's group.
    #[inline]
    pub(crate) fn slice(&self, slice: u16) -> (&C::Slice, &SliceShared<D>) {
        let (group, within) = self.place(slice);
        let SliceGroup { slices, shared } = &self.groups[group];
        (&slices[within], shared)
    }

    /// Mutable slice by number in the module, with the state shared in the slice's group.
    #[inline]
    pub(crate) fn slice_mut(&mut self, slice: u16) -> (&mut C::Slice, &mut SliceShared<D>) {
        let (group, within) = self.place(slice);
        let SliceGroup { slices, shared } = &mut self.groups[group];
        (&mut slices[within], shared)
    }

    /// Number of slices.
    pub(crate) fn count(&self) -> u16 {
        self.groups.iter().map(|group| group.slices.len() as u16).sum()
    }

    /// All slices, in order.
    pub fn slices(&self) -> impl Iterator<Item = &C::Slice> {
        self.groups.iter().flat_map(|group| &group.slices)
    }

    /// Shared state, group by group.
    pub fn shared(&self) -> impl Iterator<Item = &SliceShared<D>> {
        self.groups.iter().map(|group| &group.shared)
    }

    /// Mean queueing time of requests at memory up to `at`, over all channels.
    pub(crate) fn queued_until(&self, at: Ps) -> Ps {
        let channels: u64 = self.shared().map(|shared| shared.memory.busy().count() as u64).sum();
        Ps(self.shared().map(|shared| shared.memory.waited_until(at).0).sum::<u64>() / channels)
    }

    /// Counters for the DRAM.
    pub fn dram(&self) -> DramStats {
        let mut sum = DramStats::default();
        self.shared().for_each(|shared| sum.merge(shared.memory.dram()));
        sum
    }
}

/// Dispatches a message to an SM's handlers.
#[inline]
fn at_sm<D: Contents>(sm: &mut Sm<D>, message: &Message<D>, here: &mut SmContext<'_, '_, D>) {
    match *message {
        Message::Issue { sub_core, .. } => sm.issue(sub_core, here),
        Message::CtaOver { cta } => sm.end_cta(cta, here),
        Message::Begin { slot, launch } => sm.begin(slot, launch, here),
        Message::Start { slot, kernel, cta } => sm.start_cta((slot, kernel, cta), here),
        Message::Translated { page, ready, walked } => sm.translated((page, ready, walked), here),
        Message::Fill { register, line, mask, data, seen, responder: by, latency: time } => {
            sm.fill(FillMessage { register, line, mask, data, seen, responder: by, latency: time.read() }, here);
        }
        Message::AtomicResult { warp, result, responder: by, .. } => sm.old(warp, result, by, here),
        Message::StoreAccepted { credit } => sm.store_taken(credit, here),
        Message::Drain(drainer) => sm.drain(drainer, here),
        Message::Drained { warp, scope } => sm.drained(warp, scope, here),
        Message::Synced { warp } => sm.synced(warp, here.out),
        other => panic!("{}, {:?}: an SM got {other:?}", here.config.module, sm.id()),
    }
}
