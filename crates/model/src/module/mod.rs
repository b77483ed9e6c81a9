//! A GPU module: SMs, L2 slices, memory and controller, in one partition.

pub(crate) mod actions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod controller;
pub(crate) mod halves;
pub(crate) mod parts;
pub(crate) mod uncore;

pub use config::{ModuleConfig, ModuleSite};
pub use context::SmShared;
pub use controller::Controller;

use crate::fabric::crossbar::SmPort;
use crate::fabric::packet::{Chunk, CopyName, Packet};
use crate::front_end::copy_engine::CopyEngine;
use crate::front_end::cpu::Cpu;
use crate::front_end::page_moves;
use crate::l2::backend::{L2Design, L2Slice};
use crate::l2::partitioning::{SlicePartition, SmPartition};
use crate::layout::Unit;
use crate::message::{Message, Out, PagingOrder};
use crate::module::context::SliceView;
use crate::module::halves::{SliceSide, SmSide};
use crate::module::parts::{Parts, sample};
use crate::module::uncore::Uncore;
use crate::observe::activity::Sample;
use crate::observe::stats::L2Stats;
use crate::observe::value_probe::{Contents, ValueProbe};
use crate::sm::Sm;
use crate::sm::dispatcher::Dispatcher;
use crate::sm::kernel_stats::KernelStats;
use crate::sm::tlb::Tlb;
use crate::sm::translation::bank_of;
use std::sync::Arc;
use tombolo_design::ModelInput;
use tombolo_engine::Event;
use tombolo_protocol::paging::{Mapping, PagePermission};
use tombolo_types::stream::Program;
use tombolo_types::{Line, Mask, ModuleId, Page, Ps, SmId};

/// A module.
pub struct Module<C: L2Design<D>, D: Contents> {
    config: ModuleConfig<C, D>,
    sm_side: SmSide<D>,
    slice_side: SliceSide<C, D>,
    uncore: Uncore<D>,
    controller: Controller,
    copy_engine: CopyEngine,
}

impl<C: L2Design<D>, D: Contents> Module<C, D> {
    /// An idle module of `config`.
    pub fn new(
        config: ModuleConfig<C, D>,
        built: &ModelInput,
        program: Arc<dyn Program>,
        between: &C::SharedBySlices,
    ) -> Module<C, D> {
        let (id, layout) = (config.module, config.layout);
        let core = (layout.host() == Some(id)).then(|| cpu(&config, &program));
        let sms = if core.is_some() { 0 } else { layout.sms };
        let uncore = Uncore::new(&config, built);
        let port = SmPort::new(config.machine.crossbar.rate);
        let dispatcher =
            Dispatcher::new(layout.controller(id), built.cut, Arc::clone(&program), (&config.machine, layout.sms));
        Module {
            sm_side: SmSide {
                first: 0,
                sms: (0..sms).map(SmId).map(|sm| Sm::new(sm, &config)).collect(),
                shared: SmShared::new(&config, &uncore.ways, program),
                ports: vec![port; usize::from(config.machine.topology.sms_per_module)],
                core,
            },
            slice_side: SliceSide::new(&config, built, between),
            uncore,
            controller: Controller::new(layout.controller(id), dispatcher),
            copy_engine: CopyEngine::new(&config),
            config,
        }
    }

    /// True if the SMs may run in separate partitions: all state they read changes only through messages.
    pub fn may_part(&self) -> bool {
        let moves = self.config.map.moves() || self.sm_side.core.is_some();
        !moves && self.uncore.ways.is_fixed() && self.uncore.activity().is_none()
    }

    /// Splits off the SMs into `groups` partitions with about equal numbers of SMs.
    pub fn split_sms(&mut self, groups: u16) -> Vec<SmPartition<D>> {
        let sms = self.config.layout.sms;
        let first = |group: u16| (u32::from(group) * u32::from(sms) / u32::from(groups)) as u16;
        let part = |group| {
            let program = Arc::clone(&self.sm_side.shared.program);
            let shared = SmShared::new(&self.config, &self.uncore.ways, program);
            SmPartition::new(self.config.site.again(), self.sm_side.split_off(first(group), shared))
        };
        let mut apart: Vec<SmPartition<D>> = (0..groups).rev().map(part).collect();
        apart.reverse();
        apart
    }

    /// Reattaches SMs; partitions must come back in order, the first group first.
    pub fn rejoin_sms(&mut self, sms: SmPartition<D>) {
        self.sm_side.append(sms.into_side());
    }

    /// Number of slice groups allowed to run in separate partitions. Zero if the groups share a port to other modules,
    /// a publisher for stores, or a copy engine.
    pub fn apart_slices(&self) -> u16 {
        let alone = self.config.layout.all_modules() == 1 && self.uncore.publisher.is_none();
        let copies = self.config.schedule.tasks.iter().any(|tasks| !tasks.is_empty());
        if alone && !copies && self.may_part() { crate::convert::slice_groups(&self.config.machine) } else { 0 }
    }

    /// Splits off the slices into `parts` partitions with about equal numbers of groups.
    pub fn split_slices(&mut self, parts: u16, built: &ModelInput) -> Vec<SlicePartition<C, D>> {
        let groups = usize::from(crate::convert::slice_groups(&self.config.machine));
        let part = |part: usize| {
            let side = self.slice_side.split_off(part * groups / usize::from(parts));
            SlicePartition::new(self.config.again(), side, Uncore::new(&self.config, built))
        };
        let mut apart: Vec<SlicePartition<C, D>> = (0..usize::from(parts)).rev().map(part).collect();
        apart.reverse();
        apart
    }

    /// Reattaches slices; partitions must come back in order, the first group first.
    pub fn rejoin_slices(&mut self, slices: SlicePartition<C, D>) {
        self.slice_side.append(slices.into_side());
    }

    /// Id of the module.
    pub fn id(&self) -> ModuleId {
        self.config.module
    }

    /// The module's SMs.
    pub fn sms(&self) -> &[Sm<D>] {
        &self.sm_side.sms
    }

    /// State shared by the SMs.
    pub fn sm_shared(&self) -> &SmShared {
        &self.sm_side.shared
    }

    /// The module's L2 slices, with its memory.
    pub fn slice_side(&self) -> &SliceSide<C, D> {
        &self.slice_side
    }

    /// Counters for L2, directory and memory.
    pub fn l2_stats(&self) -> L2Stats {
        let mut sum = self.uncore.stats;
        self.slice_side.shared().for_each(|shared| sum.merge(&shared.stats));
        sum
    }

    /// Ingress ports of the SMs.
    pub fn sm_ports(&self) -> &[SmPort<D>] {
        &self.sm_side.ports
    }

    /// Parts present only once in the module.
    pub fn uncore(&self) -> &Uncore<D> {
        &self.uncore
    }

    /// Installs a line in the cache in front of memory, as if left by an earlier program.
    pub fn warm(&mut self, line: Line, dirty: bool) {
        let slice = self.config.map.slice(line);
        self.slice_side.slice_mut(slice).1.memory.warm(line, dirty);
    }

    /// Fills every TLB in the module with these pages, as if walked for in this order before time zero.
    pub fn warm_tlbs(&mut self, pages: &[Page]) {
        let mut of_sm = Tlb::new(crate::convert::l1_tlb(&self.config.machine));
        of_sm.warm(pages);
        self.sm_side.sms.iter_mut().for_each(|sm| sm.set_tlb(&of_sm));
        let banks = crate::convert::tlb_banks(&self.config.machine);
        for bank in 0..banks {
            let own: Vec<Page> = pages.iter().copied().filter(|page| bank_of(*page, banks) == bank).collect();
            let slice = self.config.first_slice_of_bank(bank);
            self.slice_side.bank(slice).warm(&own);
        }
    }

    /// Installs bytes of a line in the L2, clean, as if left by a copy before time zero.
    pub fn warm_l2(&mut self, line: Line, mask: Mask) {
        let Module { config, slice_side, uncore, .. } = self;
        let (slice, shared) = slice_side.slice_mut(config.map.slice(line));
        slice.warm(line, mask, SliceView { config, shared, uncore });
    }

    /// Counters recorded by the SMs for a launch, by launch number in the program.
    pub fn counted(&self, launch: usize) -> KernelStats {
        self.sm_side.shared.counted.get(launch).copied().unwrap_or_default()
    }

    /// Error from an SM's decoding of a CTA, if any.
    pub fn failure(&self) -> Option<&str> {
        self.sm_side.shared.failure.as_deref()
    }

    /// The module's controller.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Records the module's activity in windows of length `window`.
    pub fn record(&mut self, window: Ps) {
        self.uncore.record(window);
    }

    /// Sample of the module's state when a run has ended at `now`.
    pub fn sample(&self, now: Ps) -> Sample {
        sample(now, &self.sm_side.sms, &self.slice_side, &self.uncore.port)
    }

    /// The host's core, if this is the host's module.
    pub fn cpu(&self) -> Option<&Cpu> {
        self.sm_side.core.as_ref()
    }

    /// The module's copy engine.
    pub fn copy_engine(&self) -> &CopyEngine {
        &self.copy_engine
    }

    /// Prefetches into the host's caches the first data that an event for a component reads.
    #[inline]
    pub fn prefetch(&self, unit: Unit, message: &Message<D>) {
        match unit {
            Unit::Sm(sm) if self.sm_side.core.is_none() => self.sm_side.sms[usize::from(sm.0)].prefetch(message),
            Unit::Slice(slice) => {
                let (slice, view) = self.view(slice);
                slice.prefetch(message, view);
            }
            _ => {}
        }
    }

    /// Prefetches data found through pointers that [`Module::prefetch`] has loaded.
    #[inline]
    pub fn prefetch_found(&self, unit: Unit, message: &Message<D>) {
        match unit {
            Unit::Sm(sm) if self.sm_side.core.is_none() => self.sm_side.sms[usize::from(sm.0)].prefetch_found(message),
            Unit::Slice(slice) => {
                let (slice, view) = self.view(slice);
                slice.prefetch_found(message, view);
            }
            _ => {}
        }
    }

    /// Updates the module's address map with a message about moving pages, before any component acts on the message. If
    /// pages get a new home, the L2 first drops their lines at the old home.
    #[inline(never)]
    fn update_map(&mut self, message: &Message<D>, out: &mut Out<'_, D>) {
        match *message {
            Message::Paging { pages, order: PagingOrder::Unmap } if self.config.paging.unmapping().refuses => {
                pages.pages().for_each(|page| self.config.map.refuse(page));
            }
            Message::Paging { pages, order: PagingOrder::Map(mapping) } => {
                pages.pages().for_each(|page| self.config.map.map(page, mapping));
            }
            Message::Remap { command } => self.remap(command as usize, out),
            Message::Arrive {
                packet: Packet::Chunk(Chunk { copy: CopyName::Page(page), is_last: true, .. }), ..
            }
            | Message::Enter {
                packet: Packet::Chunk(Chunk { copy: CopyName::Page(page), is_last: true, .. }), ..
            }
            | Message::TakePage { page } => self.config.map.arrived(page),
            _ => {}
        }
    }

    /// Applies the new page homes that begin with a command.
    fn remap(&mut self, command: usize, out: &mut Out<'_, D>) {
        let schedule = Arc::clone(&self.config.schedule);
        let Some(tasks) = schedule.tasks_of(command) else { return };
        let here = self.config.module;
        for remap in tasks.remaps.iter().filter(|remap| remap.at == here) {
            let Module { config, sm_side, slice_side, uncore, .. } = self;
            let mut parts = Parts { config, sm_side, slice_side, uncore, out };
            page_moves::write_back(remap.page, &mut parts);
            let mapping = Mapping::at(remap.home, PagePermission::Write);
            self.config.map.map(remap.page, Some(mapping));
        }
    }

    #[inline]
    fn view(&self, slice: u16) -> (&C::Slice, SliceView<'_, C, D>) {
        let Module { config, slice_side, uncore, .. } = self;
        let (slice, shared) = slice_side.slice(slice);
        (slice, SliceView { config, shared, uncore })
    }

    /// Handles an event for a component in the module.
    #[inline]
    pub fn handle(&mut self, unit: Unit, event: &Event<Message<D>>, out: &mut Out<'_, D>) {
        if self.config.map.moves() {
            self.update_map(&event.message, out);
        }
        let Module { config, sm_side, slice_side, uncore, controller, copy_engine } = self;
        config.probe.handles(event.time, config.module, unit, &event.message);
        let mut parts = Parts { config, sm_side, slice_side, uncore, out };
        if event.time >= parts.uncore.due() {
            parts.run_samplers(event.time);
        }
        match (&event.message, unit) {
            (Message::Arrive { route, packet }, _) => {
                if let Some(inside) = parts.uncore.port.receive(*route, packet, parts.out) {
                    enter(unit, route.source, packet, inside, (controller, copy_engine, &mut parts));
                }
            }
            (Message::Enter { source, packet }, _) => {
                let now = parts.out.now();
                enter(unit, *source, packet, now, (controller, copy_engine, &mut parts));
            }
            (message, Unit::Sm(sm)) => parts.sm_side.handle(sm, message, parts.config, parts.out),
            (message, Unit::Slice(slice)) => {
                parts.slice_side.handle(slice, message, (parts.config, parts.uncore), parts.out);
            }
            (&Message::Paging { pages, order }, Unit::Controller) => page_moves::obey(pages, order, &mut parts),
            (&Message::PageQuiet { pages }, Unit::Controller) => page_moves::quiet(pages, controller, &mut parts),
            (Message::Remap { .. }, Unit::Controller) => {}
            (message, Unit::Controller) => controller.handle(*message, &mut parts),
            (message, Unit::CopyEngine) => copy_engine.handle(message, &mut parts),
        }
    }
}

/// The host's core, for the host's module.
fn cpu<C: L2Design<D>, D: Contents>(config: &ModuleConfig<C, D>, program: &Arc<dyn Program>) -> Cpu {
    let cpu = config.machine.cpu.as_ref().expect("a host that takes part has a CPU");
    let id = config.layout.sm(config.module, SmId(0));
    Cpu::new(id, config.warp_slot(SmId(0), 0), cpu, Arc::clone(program))
}

/// Hands a packet, received completely at `ready`, to the destination component.
fn enter<C: L2Design<D>, D: Contents>(
    unit: Unit,
    source: ModuleId,
    packet: &Packet<D>,
    ready: Ps,
    (controller, copy_engine, parts): (&mut Controller, &mut CopyEngine, &mut Parts<'_, '_, C, D>),
) {
    match unit {
        Unit::Slice(slice) => {
            parts.at_slice(slice, |slice, here| slice.arrive(source, packet, ready, here));
        }
        Unit::Controller => controller.arrive(*packet, ready, parts),
        Unit::CopyEngine => match *packet {
            Packet::Chunk(chunk) => copy_engine.arrive(chunk, ready, parts),
            other => panic!("{}: a copy engine got {other:?}", parts.config.module),
        },
        Unit::Sm(sm) => panic!("{sm} of {} got {packet:?} from a link", parts.config.module),
    }
}
