//! A GPU module: its SMs, L2 slices, memory and controller, in one partition.

use crate::controller::{Controller, Parts, Share};
use crate::departure::Departure;
use crate::layout::Unit;
use crate::message::{Message, Out, Packet};
use crate::slice::Slice;
use crate::sm::{FillMessage, Sm};
use crate::uncore::Uncore;
use crate::watch::Contents;
use std::sync::Arc;
use tombolo_engine::Event;
use tombolo_protocol::Coherence;
use tombolo_types::stream::Program;
use tombolo_types::{Line, ModuleId, Ps, SmId};

/// One module.
pub struct Module<C, D: Contents> {
    sms: Vec<Sm<D>>,
    slices: Vec<Slice<D>>,
    uncore: Uncore<C, D>,
    controller: Controller,
}

impl<C: Coherence, D: Contents> Module<C, D> {
    /// An idle module whose parts share `uncore`.
    pub fn new(uncore: Uncore<C, D>, share: Share, program: Arc<dyn Program>) -> Module<C, D> {
        let (id, layout) = (uncore.site.module, uncore.site.layout);
        let sms = (0..layout.sms).map(SmId).map(|sm| Sm::new(layout.sm(id, sm), sm, &uncore.site.machine)).collect();
        let slices = (0..layout.slices).map(|slice| Slice::new(layout.slice(id, slice), &uncore)).collect();
        Module { sms, slices, uncore, controller: Controller::new(layout.controller(id), share, program) }
    }

    /// Its SMs.
    pub fn sms(&self) -> &[Sm<D>] {
        &self.sms
    }

    /// Its L2 slices.
    pub fn slices(&self) -> &[Slice<D>] {
        &self.slices
    }

    /// What they share.
    pub fn uncore(&self) -> &Uncore<C, D> {
        &self.uncore
    }

    /// Puts a line of its memory into the cache in front of that, as an earlier program would have left it.
    pub fn warm(&mut self, line: Line, dirty: bool) {
        self.uncore.memory.warm(line, dirty);
    }

    /// Its controller.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Starts to load what an event of one of its components will look at first into the host's caches.
    #[inline]
    pub fn prefetch(&self, unit: Unit, message: &Message<D>) {
        match unit {
            Unit::Sm(sm) => self.sms[usize::from(sm.0)].prefetch(message),
            Unit::Slice(slice) => self.slices[usize::from(slice)].prefetch(message, &self.uncore),
            _ => {}
        }
    }

    /// Starts to load what an event of one of its components finds by what [`Module::prefetch`] has loaded.
    #[inline]
    pub fn prefetch_found(&self, unit: Unit, message: &Message<D>) {
        match unit {
            Unit::Sm(sm) => self.sms[usize::from(sm.0)].prefetch_found(message),
            Unit::Slice(slice) => self.slices[usize::from(slice)].prefetch_found(message, &self.uncore),
            _ => {}
        }
    }

    /// Handles an event of one of its components.
    pub fn handle(&mut self, unit: Unit, event: &Event<Message<D>>, out: &mut Out<'_, D>) {
        if event.time >= self.uncore.ways.next_sample() {
            self.uncore.shift_ways(event.time);
        }
        match &event.message {
            Message::Arrive { route, packet } => {
                if let Some(inside) = self.uncore.port.receive(*route, packet, out) {
                    self.enter(unit, route.source, packet, inside, out);
                }
                return;
            }
            Message::Enter { source, packet } => return self.enter(unit, *source, packet, out.now(), out),
            _ => {}
        }
        match unit {
            Unit::Sm(sm) => self.at_sm(usize::from(sm.0), &event.message, out),
            Unit::Slice(slice) => self.at_slice(usize::from(slice), &event.message, out),
            Unit::Controller => {
                let Module { sms, slices, uncore, controller } = self;
                controller.handle(event.message, &mut Parts { sms, slices, uncore }, out);
            }
        }
    }

    /// Hands a packet that is wholly inside at `ready` to the component it is for.
    fn enter(&mut self, unit: Unit, source: ModuleId, packet: &Packet<D>, ready: Ps, out: &mut Out<'_, D>) {
        let Module { sms, slices, uncore, controller } = self;
        match (unit, packet) {
            (Unit::Slice(slice), _) => slices[usize::from(slice)].arrive(source, packet, ready, uncore, out),
            (Unit::Controller, _) => controller.arrive(*packet, &mut Parts { sms, slices, uncore }, out),
            (Unit::Sm(sm), _) => {
                let (grains, message) = to_sm(packet);
                let id = uncore.site.layout.sm(uncore.site.module, sm);
                let bytes = u64::from(grains) * uncore.site.machine.line.grain();
                let at = uncore.deliver(out.now(), Departure::at(ready), sm, bytes, id);
                out.send(at, id, id, message);
            }
        }
    }

    fn at_sm(&mut self, index: usize, message: &Message<D>, out: &mut Out<'_, D>) {
        let sm = &mut self.sms[index];
        let uncore = &mut self.uncore;
        match *message {
            Message::Issue { sub_core, .. } => sm.issue(sub_core, uncore, out),
            Message::CtaOver { cta } => sm.end_cta(cta, out),
            Message::Fill { register, line, mask, data, satisfied } => {
                sm.fill(FillMessage { register, line, mask, data, satisfied }, uncore, out);
            }
            Message::Old { warp, result, .. } => sm.old(warp, result, out),
            Message::StoreReturned => sm.store_returned(uncore, out),
            Message::Drained { warp, scope } => sm.drained(warp, scope, uncore, out),
            Message::Synced { warp } => sm.synced(warp, out),
            other => panic!("{} sm{index}: got {other:?}", uncore.site.module),
        }
        if sm.has_finished() {
            let Module { sms, slices, uncore, controller } = self;
            controller.refill(index, &mut Parts { sms, slices, uncore }, out);
        }
    }

    fn at_slice(&mut self, index: usize, message: &Message<D>, out: &mut Out<'_, D>) {
        let slice = &mut self.slices[index];
        let uncore = &mut self.uncore;
        match *message {
            Message::Local(request) => slice.local(request, uncore, out),
            Message::Fetch { line, mask, register } => slice.fetch_later(line, mask, register, uncore, out),
            Message::Memory { line, mask, register } => slice.memory(line, mask, register, uncore, out),
            other => panic!("{} slice{index}: got {other:?}", uncore.site.module),
        }
    }
}

/// What an SM gets of a packet that came over the links for it, by its module's crossbar: how many grains of a line, and
/// the message.
fn to_sm<D: Contents>(packet: &Packet<D>) -> (u32, Message<D>) {
    match *packet {
        Packet::Old { origin, data, .. } => (1, Message::Old { warp: origin.warp, result: origin.result, data }),
        Packet::Answer { origin, line, mask, data, satisfied } => {
            (mask.grains(), Message::Fill { register: origin.register, line, mask, data, satisfied })
        }
        Packet::Request(_)
        | Packet::Downgrade { .. }
        | Packet::Fill { .. }
        | Packet::Flag { .. }
        | Packet::Invalidate { .. }
        | Packet::Act { .. }
        | Packet::Acted { .. } => panic!("an SM got {packet:?}"),
    }
}
