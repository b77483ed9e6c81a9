//! A module's controller: runs the phases in acquires and releases. The [`Dispatcher`] inside runs kernels.

use crate::fabric::packet::Packet;
use crate::front_end::boundaries::{ExtentId, LostLines};
use crate::front_end::page_moves;
use crate::front_end::page_run::PageRun;
use crate::l2::backend::{L2Design, L2Slice};
use crate::l2::credits::Generation;
use crate::l2::departure::Departure;
use crate::l2::drains::LEG_OF_PUBLICATIONS;
use crate::l2::outstanding::DrainWaiter;
use crate::message::{Message, SyncKind};
use crate::module::parts::Parts;
use crate::observe::latency::{Note, ReplyLatency, short};
use crate::observe::value_probe::Contents;
use crate::sm::dispatcher::{Dispatcher, KernelLaunch};
use crate::sm::kernel_slot::KernelSlot;
use tombolo_protocol::drain::Pool;
use tombolo_protocol::plan::Sync;
use tombolo_protocol::{Action, Collector};
use tombolo_types::{ComponentId, Line, ModuleId, Ps, Scope, SmId};

/// Plan for an acquire or release, run on behalf of a warp.
#[derive(Clone, Copy, Debug)]
struct RunningPlan {
    collector: Collector,
    sm: SmId,
    warp: u8,
}

/// Collector for a phase executed by this module.
#[derive(Clone, Copy, Debug)]
struct PhaseWaiter {
    collector: ComponentId,
    /// The collector's number for its collection. For the command processor: the command's slot; for the driver: a run
    /// of pages.
    collection: u32,
    /// Lines that the phase drops or flushes in the L2, counted for the command processor.
    lost: LostLines,
}

impl PhaseWaiter {
    fn new(collector: ComponentId, collection: u32) -> PhaseWaiter {
        PhaseWaiter { collector, collection, lost: LostLines::default() }
    }
}

/// Work required by one phase from a module.
#[derive(Clone, Copy, Debug)]
struct PhaseWork {
    action: Action,
    extent: ExtentId,
    counted: bool,
}

impl PhaseWork {
    /// Work for a thread's plan: it covers every line, and the lost lines are not counted.
    fn whole(action: Action) -> PhaseWork {
        PhaseWork { action, extent: ExtentId::CACHE, counted: false }
    }
}

/// Phase that the slice groups are carrying out.
#[derive(Clone, Copy, Debug)]
struct GroupPhase {
    action: Action,
    waiter: PhaseWaiter,
    missing: u16,
    /// Time when memory has accepted all bytes written so far.
    taken: Ps,
    /// Bytes written back so far.
    flushed: u64,
}

/// Phase that waits for several drains, or for memory.
#[derive(Clone, Copy, Debug)]
struct PhaseJoin {
    waiter: PhaseWaiter,
    missing: u8,
    /// Start of the wait, and end of the phase if no wait is needed.
    began: Ps,
    over: Ps,
}

/// Controller of a module.
pub struct Controller {
    id: ComponentId,
    dispatcher: Dispatcher,
    collections: Vec<Option<RunningPlan>>,
    acts: Vec<Option<GroupPhase>>,
    joins: Vec<Option<PhaseJoin>>,
    /// The slice that was offered free store credits first in the last round.
    first_served: u16,
    /// Times and sizes, in bytes, of the slices' write-backs for phases.
    flushes: Vec<(Ps, u64)>,
}

/// Tells the driver which pages the module has accessed; the pages are no longer tracked afterwards.
fn report_accesses<C: L2Design<D>, D: Contents>(id: ComponentId, parts: &mut Parts<'_, '_, C, D>) {
    let (module, driver) = (parts.config.module, parts.config.layout.driver());
    let at = parts.out.now() + crate::convert::host_latency(&parts.config.machine);
    for pages in PageRun::all(parts.slice_side.take_accessed()) {
        parts.out.send(at, id, driver, Message::Accessed { pages, module });
    }
    parts.out.send(at, id, driver, Message::AccessesReported);
}

/// Stores `value` in the first free slot of a slab; returns the slot's index.
fn store_in_slab<T>(slab: &mut Vec<Option<T>>, value: T) -> u32 {
    let free = slab.iter().position(Option::is_none).unwrap_or_else(|| {
        slab.push(None);
        slab.len() - 1
    });
    slab[free] = Some(value);
    u32::try_from(free).expect("a module synchronises for its warps, and for pages")
}

impl Controller {
    /// An idle controller.
    pub(crate) fn new(id: ComponentId, dispatcher: Dispatcher) -> Controller {
        let (collections, acts, joins) = (Vec::new(), Vec::new(), Vec::new());
        Controller { id, dispatcher, collections, acts, joins, first_served: 0, flushes: Vec::new() }
    }

    /// The dispatcher of CTAs.
    pub fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }

    /// Bytes that the slices wrote back for phases since the time `since`.
    pub fn flushed(&self, since: Ps) -> u64 {
        self.flushes.iter().filter(|(at, _)| *at >= since).map(|(_, bytes)| bytes).sum()
    }

    /// Handles a message to the controller.
    pub(crate) fn handle<C: L2Design<D>, D: Contents>(&mut self, message: Message<D>, parts: &mut Parts<'_, '_, C, D>) {
        match message {
            Message::Sync { sm, warp, kind, scope } => self.sync((sm, warp), kind, scope, parts),
            Message::Phase { slot, action, extent, counted } => {
                let collector = parts.config.layout.command_processor();
                self.act(PhaseWork { action, extent, counted }, PhaseWaiter::new(collector, slot.0.into()), parts);
            }
            Message::Acknowledged { pool, ticket } => {
                parts.uncore.drains.taken(pool, ticket);
                self.finish(pool, parts);
                if pool.takes_room() {
                    parts.at_uncore(self.id).drain_to_watermark();
                    self.serve_slices(parts);
                }
            }
            Message::Delivered { ticket, line } => self.delivered((ticket, line), parts),
            Message::Transfer { .. } => parts.send_to_groups(self.id, message),
            Message::AskAccesses => report_accesses(self.id, parts),
            Message::Written { join } => self.part_done(join, parts),
            Message::LanesIn(lanes) => {
                let rate = crate::convert::incoming(&parts.config.machine, lanes);
                parts.uncore.ways.set_incoming(rate);
            }
            Message::Launch { command, launch, slot } => {
                self.dispatcher.launch(KernelLaunch { command, launch, slot }, parts);
            }
            Message::GroupActed { act, taken, lost, flushed } => self.group_acted(act, (taken, lost, flushed), parts),
            Message::KernelBegins { slot, launch } => parts.send_to_groups(self.id, Message::Begin { slot, launch }),
            Message::CtaEnded { sm, slot, failed } => self.dispatcher.refill((sm, slot, failed), parts),
            Message::CtaAssigned { sm, slot, cta } => self.dispatcher.assigned((sm, slot, cta), parts),
            Message::CtaDrained { slot } => self.dispatcher.drained(slot, parts),
            other => panic!("{}: a controller got {other:?}", parts.config.module),
        }
    }

    /// A subscriber has accepted a published update of a line: requests that wait for buffer room, or for the line,
    /// resume.
    fn delivered<C: L2Design<D>, D: Contents>(
        &mut self,
        (ticket, line): (Generation, Line),
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let (pool, _) = LEG_OF_PUBLICATIONS.pools();
        parts.uncore.drains.taken(pool, ticket);
        parts.at_uncore(self.id).publication_taken(line);
        self.finish(pool, parts);
        parts.at_uncore(self.id).drain_to_watermark();
        self.serve_slices(parts);
    }

    /// The result for an atomic on a line has arrived: waiting requests resume.
    fn answered<C: L2Design<D>, D: Contents>(&mut self, line: Line, parts: &mut Parts<'_, '_, C, D>) {
        let Some(publisher) = &mut parts.uncore.publisher else { return };
        publisher.answered(line);
        let page = parts.config.map.page(line);
        if !page_moves::has_unanswered(page, parts) && parts.sm_side.shared.pages.answers_end(page) {
            parts.out.send(parts.out.now() + Ps(1), self.id, self.id, Message::PageQuiet { pages: PageRun::of(page) });
        }
        parts.at_uncore(self.id).drain_to_watermark();
        self.serve_slices(parts);
    }

    /// Lets the driver wait until all stores of the module are accepted at their final destination. One phase per page
    /// is counted, and all run at once. `number`: key for the later reply.
    pub(crate) fn await_stores<C: L2Design<D>, D: Contents>(
        &mut self,
        pages: PageRun,
        number: u32,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let driver = parts.config.layout.driver();
        parts.uncore.stats.phases += u64::from(pages.count() - 1);
        self.act(PhaseWork::whole(Action::AwaitStores), PhaseWaiter::new(driver, number), parts);
    }

    /// Handles a packet received over the links.
    pub(crate) fn arrive<C: L2Design<D>, D: Contents>(
        &mut self,
        packet: Packet<D>,
        ready: Ps,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        match packet {
            Packet::Act { action, collector, collection } => {
                self.act(PhaseWork::whole(action), PhaseWaiter::new(collector, collection), parts);
            }
            Packet::PhaseDone { collection } => self.acted(collection, parts),
            Packet::AtomicResult { .. } | Packet::Answer { .. } => self.pass_on(packet, ready, parts),
            other => panic!("{}: a controller got {other:?}", parts.config.module),
        }
    }

    /// Forwards a packet for an SM over the crossbar.
    fn pass_on<C: L2Design<D>, D: Contents>(&mut self, packet: Packet<D>, ready: Ps, parts: &mut Parts<'_, '_, C, D>) {
        let departs = Departure::at(ready);
        match packet {
            Packet::AtomicResult { origin, line, data, by } => {
                self.answered(line, parts);
                let old = Message::AtomicResult { warp: origin.warp, result: origin.result, data, responder: by };
                parts.as_slice(self.id, line).deliver(departs, origin.sm, 1, |_| old);
            }
            Packet::Answer { sm, register, line, mask, data, seen, by, inside } => {
                parts.as_slice(self.id, line).deliver(departs, sm, mask.grains(), |at| {
                    // The SM itself computes the latency of the links.
                    let crossbar = short(at.saturating_sub(ready));
                    let time =
                        D::Note::of(ReplyLatency { inside: inside.read().into(), crossbar, ..ReplyLatency::default() });
                    Message::Fill { register, line, mask, data, seen, responder: by, latency: time }
                });
            }
            other => panic!("{}: no SM waits for {other:?}", parts.config.module),
        }
    }

    /// Plans that wait for acknowledgments, and kernels, for the deadlock report.
    pub fn waiting(&self) -> impl Iterator<Item = String> + '_ {
        let plans = self.collections.iter().flatten().map(|collection| {
            let RunningPlan { collector, sm, warp } = collection;
            format!("{sm} warp {warp}'s plan lacks {} acknowledgments", collector.missing())
        });
        let acts = self.acts.iter().flatten().map(|act| format!("a phase lacks {} groups of slices", act.missing));
        let joins = self.joins.iter().flatten().map(|join| format!("a phase lacks {} drains or writes", join.missing));
        plans.chain(acts).chain(joins).chain(self.dispatcher.waiting())
    }

    fn sync<C: L2Design<D>, D: Contents>(
        &mut self,
        (sm, warp): (SmId, u8),
        kind: SyncKind,
        scope: Scope,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let protocol = &parts.config.protocol;
        let plan = match kind {
            SyncKind::Acquire => protocol.acquire(Sync::Thread(scope)),
            SyncKind::Release => protocol.release(Sync::Thread(scope)),
        };
        let collector = Collector::new(plan, parts.config.module);
        let collection = store_in_slab(&mut self.collections, RunningPlan { collector, sm, warp });
        self.begin_phase(collection, parts);
    }

    /// Sends the current phase of a plan to its members, or replies to the warp when all phases are done.
    fn begin_phase<C: L2Design<D>, D: Contents>(&mut self, collection: u32, parts: &mut Parts<'_, '_, C, D>) {
        let entry = &mut self.collections[collection as usize];
        let RunningPlan { collector, sm, warp } = entry.as_mut().expect("a plan is kept until it is done");
        let mut members = Vec::new();
        if !collector.begin_phase(&parts.config.map, |member, action| members.push((member, action))) {
            let to = parts.config.layout.sm(parts.config.module, *sm);
            let at = parts.out.now() + parts.config.machine.crossbar.latency.max(Ps(1));
            parts.out.send(at, self.id, to, Message::Synced { warp: *warp });
            *entry = None;
            return;
        }
        let (mut own, now) = (None, Departure::at(parts.out.now()));
        for (member, action) in members {
            if member == parts.config.module {
                own = Some(action);
            } else {
                let packet = Packet::Act { action, collector: self.id, collection };
                parts.at_uncore(self.id).send(now, member, packet);
            }
        }
        if let Some(action) = own {
            self.act(PhaseWork::whole(action), PhaseWaiter::new(self.id, collection), parts);
        }
    }

    /// Carries out this module's part of a phase.
    fn act<C: L2Design<D>, D: Contents>(
        &mut self,
        part: PhaseWork,
        waiter: PhaseWaiter,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        parts.uncore.stats.phases += 1;
        parts.at_uncore(self.id).empty_queue(part.action);
        if let Action::Merge { all } = part.action {
            return self.merge(all, waiter, parts);
        }
        let PhaseWork { action, extent, counted } = part;
        if matches!(action, Action::Invalidate(_)) {
            parts.uncore.stats.bulk_invalidations += 1;
        }
        let now = parts.out.now();
        if !C::Slice::is_walked(&parts.config.protocol, action) {
            return self.answer_when_taken(action, waiter, now, parts);
        }
        let missing = parts.groups();
        let act = store_in_slab(&mut self.acts, GroupPhase { action, waiter, missing, taken: now, flushed: 0 });
        parts.send_to_groups(self.id, Message::Act { action, extent, counted, act });
    }

    /// A group of slices has finished its part of a phase.
    fn group_acted<C: L2Design<D>, D: Contents>(
        &mut self,
        act: u32,
        (taken, lost, flushed): (Ps, LostLines, u64),
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let entry = &mut self.acts[act as usize];
        let of_all = entry.as_mut().expect("a phase is kept until its groups are done");
        of_all.taken = of_all.taken.max(taken);
        of_all.waiter.lost = of_all.waiter.lost.and(lost);
        of_all.flushed += flushed;
        of_all.missing -= 1;
        if of_all.missing > 0 {
            return;
        }
        let GroupPhase { action, waiter, taken, flushed, .. } = *of_all;
        *entry = None;
        if flushed > 0 {
            self.flushes.push((parts.out.now(), flushed));
        }
        self.answer_when_taken(action, waiter, taken, parts);
    }

    /// Makes every slice merge its blocks, and replies when all are done.
    fn merge<C: L2Design<D>, D: Contents>(&mut self, all: bool, waiter: PhaseWaiter, parts: &mut Parts<'_, '_, C, D>) {
        let now = parts.out.now();
        let missing = parts.slice_side.count() as u8;
        let join = store_in_slab(&mut self.joins, PhaseJoin { waiter, missing, began: now, over: now });
        for slice in 0..parts.slice_side.count() {
            parts.at_slice(slice, |slice, here| slice.merge(all, join, here));
        }
    }

    /// Replies when memory has accepted all written bytes, and when the drains that the action awaits are complete.
    fn answer_when_taken<C: L2Design<D>, D: Contents>(
        &mut self,
        action: Action,
        waiter: PhaseWaiter,
        taken: Ps,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let is_written = u8::from(taken > parts.out.now());
        let awaited = || Pool::ALL.into_iter().filter(|pool| pool.is_awaited_by(action));
        let missing = awaited().count() as u8 + is_written;
        if missing == 0 {
            self.answer(waiter, taken, parts);
            return;
        }
        let join = store_in_slab(&mut self.joins, PhaseJoin { waiter, missing, began: parts.out.now(), over: taken });
        if is_written > 0 {
            parts.out.send(taken, self.id, self.id, Message::Written { join });
        }
        for pool in awaited() {
            parts.uncore.drains.drain(pool, DrainWaiter::Join(join));
        }
        for pool in awaited() {
            self.finish(pool, parts);
        }
    }

    /// Replies to every waiter for a completed drain in one pool.
    fn finish<C: L2Design<D>, D: Contents>(&mut self, pool: Pool, parts: &mut Parts<'_, '_, C, D>) {
        while let Some(waiter) = parts.uncore.drains.pop_drained(pool) {
            match waiter {
                DrainWaiter::Join(join) => self.part_done(join, parts),
                DrainWaiter::Home { module, ticket, ready } => {
                    let at = ready.max(parts.out.now()) + parts.config.notice_latency(module);
                    let taken = Message::Acknowledged { pool: Pool::InvalidationsBeyond, ticket };
                    parts.out.send(at, self.id, parts.config.layout.controller(module), taken);
                }
            }
        }
    }

    /// An awaited part of a phase has completed.
    fn part_done<C: L2Design<D>, D: Contents>(&mut self, join: u32, parts: &mut Parts<'_, '_, C, D>) {
        let entry = &mut self.joins[join as usize];
        let join = entry.as_mut().expect("a join is kept until its parts are done");
        join.missing -= 1;
        if join.missing == 0 {
            let PhaseJoin { waiter, began, over, .. } = *join;
            let now = parts.out.now();
            *entry = None;
            self.answer(waiter, if now > began { now } else { over }, parts);
        }
    }

    /// Acknowledges a phase to the collector; the phase ended at `over`. Slices may have reported the end one crossbar
    /// latency later.
    fn answer<C: L2Design<D>, D: Contents>(&mut self, waiter: PhaseWaiter, over: Ps, parts: &mut Parts<'_, '_, C, D>) {
        let PhaseWaiter { collector, collection, lost } = waiter;
        if collector == self.id {
            self.acted(collection, parts);
        } else if collector == parts.config.layout.command_processor() {
            let at = parts.to_command_processor(over);
            let done = Message::PhaseDone { slot: KernelSlot(collection as u8), module: parts.config.module, lost };
            parts.out.send(at, self.id, collector, done);
        } else if collector == parts.config.layout.driver() {
            let pages = parts.sm_side.shared.pages.drained(collection);
            page_moves::answer(pages, parts.out.now(), parts);
        } else {
            let now = Departure::at(parts.out.now());
            let module = ModuleId((collector.0 / parts.config.layout.stride()) as u8);
            parts.at_uncore(self.id).send(now, module, Packet::PhaseDone { collection });
        }
    }

    /// A member has finished its part of a phase in this controller's plan.
    fn acted<C: L2Design<D>, D: Contents>(&mut self, collection: u32, parts: &mut Parts<'_, '_, C, D>) {
        let entry = self.collections[collection as usize].as_mut();
        if entry.expect("a plan is kept until it is done").collector.acknowledge() {
            self.begin_phase(collection, parts);
        }
    }

    /// Makes slices retry requests that wait for a store credit. The first slice rotates from call to call.
    fn serve_slices<C: L2Design<D>, D: Contents>(&mut self, parts: &mut Parts<'_, '_, C, D>) {
        let count = parts.slice_side.count();
        self.first_served = if self.first_served + 1 < count { self.first_served + 1 } else { 0 };
        for slice in (self.first_served..count).chain(0..self.first_served) {
            if parts.slice_side.slice(slice).0.has_queued() {
                parts.at_slice(slice, |slice, here| slice.serve_queues(here));
            }
        }
    }
}
