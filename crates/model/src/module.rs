//! A GPU module: its SMs, L2 slices, memory and controller, in one partition.

use crate::activity::Sample;
use crate::below::{Below, L2};
use crate::context::{SliceShared, SliceView, SmContext, SmShared};
use crate::controller::Controller;
use crate::copy_engine::CopyEngine;
use crate::cpu::Cpu;
use crate::crossbar::SmPort;
use crate::departure::Departure;
use crate::dispatcher::Dispatcher;
use crate::latency::{Answered, Note, short};
use crate::layout::Unit;
use crate::message::{Message, Out, PagingOrder};
use crate::packet::{Chunk, CopyName, Packet};
use crate::page_moves;
use crate::parts::{Parts, sample};
use crate::sides::{SliceSide, SmSide};
use crate::site::Site;
use crate::sm::{FillMessage, Sm};
use crate::tlb::Tlb;
use crate::uncore::Uncore;
use crate::watch::{Contents, Watch};
use std::sync::Arc;
use tombolo_design::Built;
use tombolo_engine::Event;
use tombolo_protocol::paging::{Access, Mapping};
use tombolo_types::stream::Program;
use tombolo_types::{Line, Mask, ModuleId, Page, Ps, SmId};

/// One module.
pub struct Module<C: Below<D>, D: Contents> {
    site: Site<C, D>,
    sm_side: SmSide<D>,
    slice_side: SliceSide<C, D>,
    uncore: Uncore<D>,
    controller: Controller,
    copy_engine: CopyEngine,
}

impl<C: Below<D>, D: Contents> Module<C, D> {
    /// An idle module at `site`.
    pub fn new(site: Site<C, D>, built: &Built, program: Arc<dyn Program>, between: &C::Between) -> Module<C, D> {
        let (id, layout) = (site.module, site.layout);
        let core = (layout.host() == Some(id)).then(|| cpu(&site, &program));
        let sms = if core.is_some() { 0 } else { layout.sms };
        let uncore = Uncore::new(&site, built);
        let port = SmPort::new(crate::convert::crossbar(&site.machine, layout));
        let slice = |slice| C::Slice::new(layout.slice(id, slice), &site, between);
        let dispatcher = Dispatcher::new(layout.controller(id), built.cut, program, (&site.machine, layout.sms));
        Module {
            sm_side: SmSide {
                sms: (0..sms).map(SmId).map(|sm| Sm::new(sm, &site)).collect(),
                shared: SmShared::new(&site, &uncore.ways),
                ports: vec![port; usize::from(site.machine.topology.sms_per_module)],
                core,
            },
            slice_side: SliceSide {
                slices: (0..site.machine.l2.slices).map(slice).collect(),
                shared: SliceShared::new(&site, built),
            },
            uncore,
            controller: Controller::new(layout.controller(id), dispatcher),
            copy_engine: CopyEngine::new(&site),
            site,
        }
    }

    /// Which module it is.
    pub fn id(&self) -> ModuleId {
        self.site.module
    }

    /// Its SMs.
    pub fn sms(&self) -> &[Sm<D>] {
        &self.sm_side.sms
    }

    /// What they share.
    pub fn sm_shared(&self) -> &SmShared {
        &self.sm_side.shared
    }

    /// Its L2 slices.
    pub fn slices(&self) -> &[C::Slice] {
        &self.slice_side.slices
    }

    /// What they share, with its memory.
    pub fn slice_shared(&self) -> &SliceShared<D> {
        &self.slice_side.shared
    }

    /// The ports of its SMs.
    pub fn sm_ports(&self) -> &[SmPort] {
        &self.sm_side.ports
    }

    /// What it has once.
    pub fn uncore(&self) -> &Uncore<D> {
        &self.uncore
    }

    /// Puts a line of its memory into the cache in front of that, as an earlier program would have left it.
    pub fn warm(&mut self, line: Line, dirty: bool) {
        self.slice_side.shared.memory.warm(line, dirty);
    }

    /// Every TLB of it holds these pages, as if it had walked for them in this order before time zero.
    pub fn warm_tlbs(&mut self, pages: &[Page]) {
        let mut of_sm = Tlb::new(crate::convert::l1_tlb(&self.site.machine));
        of_sm.warm(pages);
        self.sm_side.sms.iter_mut().for_each(|sm| sm.set_tlb(&of_sm));
        self.sm_side.shared.translation.warm(pages);
    }

    /// Puts bytes of a line of its memory into its L2, clean, as a copy before time zero would have left them.
    pub fn warm_l2(&mut self, line: Line, mask: Mask) {
        let slice = usize::from(self.site.map.slice(line));
        let Module { site, sm_side, slice_side: SliceSide { slices, shared }, uncore, .. } = self;
        slices[slice].warm(line, mask, SliceView { site, shared, uncore, sm_ports: &sm_side.ports });
    }

    /// Its controller.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Keeps what it does over time, in windows of `window`.
    pub fn record(&mut self, window: Ps) {
        self.uncore.record(window);
    }

    /// It as it is, where a run has ended at `now`.
    pub fn sample(&self, now: Ps) -> Sample {
        sample(now, &self.sm_side.sms, &self.slice_side.shared, &self.uncore.port)
    }

    /// The core of the host.
    pub fn cpu(&self) -> Option<&Cpu> {
        self.sm_side.core.as_ref()
    }

    /// Its copy engine.
    pub fn copy_engine(&self) -> &CopyEngine {
        &self.copy_engine
    }

    /// Starts to load what an event of one of its components will look at first into the host's caches.
    #[inline]
    pub fn prefetch(&self, unit: Unit, message: &Message<D>) {
        match unit {
            Unit::Sm(sm) if self.sm_side.core.is_none() => self.sm_side.sms[usize::from(sm.0)].prefetch(message),
            Unit::Slice(slice) => self.slice_side.slices[usize::from(slice)].prefetch(message, self.view()),
            _ => {}
        }
    }

    /// Starts to load what an event of one of its components finds by what [`Module::prefetch`] has loaded.
    #[inline]
    pub fn prefetch_found(&self, unit: Unit, message: &Message<D>) {
        match unit {
            Unit::Sm(sm) if self.sm_side.core.is_none() => self.sm_side.sms[usize::from(sm.0)].prefetch_found(message),
            Unit::Slice(slice) => self.slice_side.slices[usize::from(slice)].prefetch_found(message, self.view()),
            _ => {}
        }
    }

    /// What a message says of pages that move the module's map learns before anybody acts on it. Where pages are found
    /// elsewhere the L2 drops their lines first, at their old home.
    #[inline(never)]
    fn tell_map(&mut self, message: &Message<D>, out: &mut Out<'_, D>) {
        match *message {
            Message::Paging { page, order: PagingOrder::Unmap } if self.site.paging.unmapping().refuses => {
                self.site.map.refuse(page);
            }
            Message::Paging { page, order: PagingOrder::Map(mapping) } => self.site.map.map(page, mapping),
            Message::Remap { command } => self.remap(command as usize, out),
            Message::Arrive {
                packet: Packet::Chunk(Chunk { copy: CopyName::Page(page), is_last: true, .. }), ..
            }
            | Message::Enter {
                packet: Packet::Chunk(Chunk { copy: CopyName::Page(page), is_last: true, .. }), ..
            }
            | Message::TakePage { page } => self.site.map.arrived(page),
            _ => {}
        }
    }

    /// Pages that this module finds elsewhere from a command on.
    fn remap(&mut self, command: usize, out: &mut Out<'_, D>) {
        let schedule = Arc::clone(&self.site.schedule);
        let Some(around) = schedule.around(command) else { return };
        let here = self.site.module;
        for remap in around.remaps.iter().filter(|remap| remap.at == here) {
            let Module { site, sm_side, slice_side, uncore, .. } = self;
            let mut parts = Parts { site, sm_side, slice_side, uncore, out };
            page_moves::write_back(remap.page, &mut parts);
            let mapping = Mapping::at(remap.home, Access::Write);
            self.site.map.map(remap.page, Some(mapping));
        }
    }

    #[inline]
    fn view(&self) -> SliceView<'_, C, D> {
        let Module { site, sm_side, slice_side, uncore, .. } = self;
        SliceView { site, shared: &slice_side.shared, uncore, sm_ports: &sm_side.ports }
    }

    /// Handles an event of one of its components.
    #[inline]
    pub fn handle(&mut self, unit: Unit, event: &Event<Message<D>>, out: &mut Out<'_, D>) {
        if self.site.map.moves() {
            self.tell_map(&event.message, out);
        }
        let Module { site, sm_side, slice_side, uncore, controller, copy_engine } = self;
        site.watch.handles(event.time, site.module, unit, &event.message);
        let mut parts = Parts { site, sm_side, slice_side, uncore, out };
        if event.time >= parts.uncore.due() {
            parts.come_due(event.time);
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
            (message, Unit::Sm(_)) if parts.sm_side.core.is_some() => {
                parts.at_core(|core, here| core.handle(message, here))
            }
            (message, Unit::Sm(sm)) => {
                let sm = usize::from(sm.0);
                parts.at_sm(sm, |sm, here| at_sm(sm, message, here));
                if parts.sm_side.sms[sm].has_finished() {
                    controller.refill(sm, &mut parts);
                }
            }
            (message, Unit::Slice(slice)) => {
                parts.at_slice(usize::from(slice), |slice, here| slice.handle(message, here));
            }
            (&Message::Paging { page, order }, Unit::Controller) => page_moves::obey(page, order, &mut parts),
            (&Message::PageQuiet { page }, Unit::Controller) => page_moves::quiet(page, controller, &mut parts),
            (Message::Remap { .. }, Unit::Controller) => {}
            (message, Unit::Controller) => controller.handle(*message, &mut parts),
            (message, Unit::CopyEngine) => copy_engine.handle(message, &mut parts),
        }
    }
}

/// The core of the host whose place this is.
fn cpu<C: Below<D>, D: Contents>(site: &Site<C, D>, program: &Arc<dyn Program>) -> Cpu {
    let config = site.machine.cpu.as_ref().expect("a host that takes part has a CPU");
    let id = site.layout.sm(site.module, SmId(0));
    Cpu::new(id, site.warp_slot(SmId(0), 0), config, Arc::clone(program))
}

/// Hands a packet that is wholly inside at `ready` to the component it is for.
fn enter<C: Below<D>, D: Contents>(
    unit: Unit,
    source: ModuleId,
    packet: &Packet<D>,
    ready: Ps,
    (controller, copy_engine, parts): (&mut Controller, &mut CopyEngine, &mut Parts<'_, '_, C, D>),
) {
    match unit {
        Unit::Slice(slice) => {
            parts.at_slice(usize::from(slice), |slice, here| slice.arrive(source, packet, ready, here));
        }
        Unit::Controller => controller.arrive(*packet, parts),
        Unit::CopyEngine => match *packet {
            Packet::Chunk(chunk) => copy_engine.arrive(chunk, ready, parts),
            other => panic!("{}: a copy engine got {other:?}", parts.site.module),
        },
        Unit::Sm(sm) => {
            if let Packet::Old { line, .. } = *packet {
                controller.answered(line, parts);
            }
            let (grains, mut message) = to_sm(packet);
            let id = parts.site.layout.sm(parts.site.module, sm);
            let at = parts.as_slice(id).deliver(Departure::at(ready), sm, grains);
            if let Message::Fill { time, .. } = &mut message {
                *time = D::Note::of(Answered { crossbar: short(at.saturating_sub(ready)), ..time.read() });
            }
            parts.out.send(at, id, id, message);
        }
    }
}

/// A message for an SM.
#[inline]
fn at_sm<C: Below<D>, D: Contents>(sm: &mut Sm<D>, message: &Message<D>, here: &mut SmContext<'_, '_, C, D>) {
    match *message {
        Message::Issue { sub_core, .. } => sm.issue(sub_core, here),
        Message::CtaOver { cta } => sm.end_cta(cta, here.out),
        Message::Fill { register, line, mask, data, seen, by, time } => {
            sm.fill(FillMessage { register, line, mask, data, seen, by, time: time.read() }, here);
        }
        Message::Old { warp, result, by, .. } => sm.old(warp, result, by, here),
        Message::StoreReturned => sm.store_returned(here),
        Message::Drained { warp, scope } => sm.drained(warp, scope, here),
        Message::Synced { warp } => sm.synced(warp, here.out),
        other => panic!("{}, {:?}: an SM got {other:?}", here.site.module, sm.id()),
    }
}

/// What an SM gets of a packet that came over the links for it, by its module's crossbar: how many grains of a line, and
/// the message.
fn to_sm<D: Contents>(packet: &Packet<D>) -> (u32, Message<D>) {
    match *packet {
        Packet::Old { origin, data, by, .. } => {
            (1, Message::Old { warp: origin.warp, result: origin.result, data, by })
        }
        Packet::Answer { register, line, mask, data, seen, by, inside, .. } => {
            // The SM itself finds out what the links took.
            let time = D::Note::of(Answered { inside: inside.read().into(), ..Answered::default() });
            (mask.grains(), Message::Fill { register, line, mask, data, seen, by, time })
        }
        Packet::Request(_)
        | Packet::Downgrade { .. }
        | Packet::Fill { .. }
        | Packet::Flag { .. }
        | Packet::Invalidate { .. }
        | Packet::Act { .. }
        | Packet::Acted { .. }
        | Packet::Chunk(_)
        | Packet::Told(_) => panic!("an SM got {packet:?}"),
    }
}
