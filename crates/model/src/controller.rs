//! A module's controller: dispatches the CTAs of a kernel and runs the phases of acquires and releases.

use crate::boundaries::{ExtentId, Lost};
use crate::departure::Departure;
use crate::message::{Message, Packet, SyncKind};
use crate::outstanding::Asker;
use crate::pace::{KernelStats, Pace};
use crate::page_moves;
use crate::parts::Parts;
use crate::posted::Drainer;
use crate::watch::{Contents, Watch};
use std::sync::Arc;
use tombolo_design::scheduling::CtaCut;
use tombolo_protocol::drain::Pool;
use tombolo_protocol::plan::Sync;
use tombolo_protocol::{Action, Class, Coherence, Collector, l1};
use tombolo_types::stream::{KernelInfo, Program};
use tombolo_types::{ComponentId, ModuleId, Ps, Scope, SmId};

/// A plan run for a warp.
#[derive(Clone, Copy, Debug)]
struct Collection {
    collector: Collector,
    sm: SmId,
    warp: u8,
}

/// The collector of a phase executed here.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    collector: ComponentId,
    /// Which of its collections.
    collection: u16,
    /// What it has the L2 lose, counted for the command processor.
    lost: Lost,
}

impl Waiter {
    fn new(collector: ComponentId, collection: u16) -> Waiter {
        Waiter { collector, collection, lost: Lost::default() }
    }
}

/// What one phase asks of a module.
#[derive(Clone, Copy, Debug)]
struct Part {
    action: Action,
    extent: ExtentId,
    counted: bool,
}

impl Part {
    /// That of a thread's plan: every line, and nobody counts them.
    fn whole(action: Action) -> Part {
        Part { action, extent: ExtentId::CACHE, counted: false }
    }
}

/// A phase here that waits for several drains, or for memory.
#[derive(Clone, Copy, Debug)]
struct Join {
    waiter: Waiter,
    missing: u8,
}

/// The kernel being run.
#[derive(Clone, Copy, Debug, Default)]
struct Kernel {
    index: u32,
    next: u32,
    step: u32,
    end: u32,
    /// CTAs of the module's share, and how many have started.
    ctas: u32,
    started: u32,
    running: u32,
    /// SMs whose posted stores are not yet known to be taken, and one for the end of the CTAs.
    draining: u32,
    /// When the dispatcher's next turn is.
    dispatch_at: Ps,
}

/// The collection id under which the command processor's phases are answered.
const KERNEL_COLLECTION: u16 = u16::MAX;

/// A module's controller.
pub struct Controller {
    id: ComponentId,
    share: CtaCut,
    program: Arc<dyn Program>,
    collections: Vec<Option<Collection>>,
    joins: Vec<Option<Join>>,
    kernel: Option<Kernel>,
    /// Kernels started so far.
    launches: u32,
    /// By launch: the module's part of it.
    pub paces: Vec<Pace>,
    /// What its SMs had counted when the latest kernel had ended.
    counted: KernelStats,
    /// The slice that was the first to have a store credit that came free.
    first_served: usize,
    /// What went wrong while decoding a CTA.
    pub failure: Option<String>,
}

/// CTAs of a kernel, recorded with warps of `warp_width` lanes, that one SM holds at once. A warp takes the slot and
/// the registers of one of the machine's, whose lanes it may leave idle.
///
/// # Errors
/// Says which limit a single CTA exceeds.
pub fn residency(
    machine: &tombolo_machine::MachineConfig,
    kernel: &KernelInfo,
    warp_width: u32,
) -> Result<u32, String> {
    let sm = &machine.sm;
    let warps = u64::from(kernel.warps(warp_width));
    let limits = [
        ("warps", u64::from(sm.warps), warps),
        ("threads", u64::from(sm.threads), u64::from(kernel.threads_per_cta)),
        ("scratchpad bytes", sm.shared_bytes, u64::from(kernel.shared_bytes)),
        ("registers", u64::from(sm.registers), u64::from(kernel.registers) * warps * u64::from(sm.warp_width)),
        ("CTAs", u64::from(sm.ctas), 1),
    ];
    let mut resident = u64::MAX;
    for (what, has, needs) in limits {
        if needs > has {
            return Err(format!("kernel {}: a CTA needs {needs} {what}, an SM has {has}", kernel.name));
        }
        resident = resident.min(has.checked_div(needs).unwrap_or(u64::MAX));
    }
    Ok(resident as u32)
}

/// Lines that the module's L2 holds, and those of them that are dirty.
fn held<C: Coherence, D: Contents>(parts: &mut Parts<'_, '_, C, D>) -> (u32, u32) {
    let slices = parts.slices.iter_mut().map(|slice| slice.held());
    slices.fold((0, 0), |(valid, dirty), (more, more_dirty)| (valid + more, dirty + more_dirty))
}

/// Takes the first free place of a slab.
fn place<T>(slab: &mut Vec<Option<T>>, value: T) -> u16 {
    let free = slab.iter().position(Option::is_none).unwrap_or_else(|| {
        slab.push(None);
        slab.len() - 1
    });
    slab[free] = Some(value);
    u16::try_from(free).expect("a module synchronises for at most its warps at once")
}

impl Controller {
    /// An idle controller.
    pub fn new(id: ComponentId, share: CtaCut, program: Arc<dyn Program>) -> Controller {
        Controller {
            id,
            share,
            program,
            collections: Vec::new(),
            joins: Vec::new(),
            kernel: None,
            launches: 0,
            paces: Vec::new(),
            counted: KernelStats::default(),
            first_served: 0,
            failure: None,
        }
    }

    /// A message to the controller.
    pub fn handle<C: Coherence, D: Contents>(&mut self, message: Message<D>, parts: &mut Parts<'_, '_, C, D>) {
        match message {
            Message::Sync { sm, warp, kind, scope } => self.sync((sm, warp), kind, scope, parts),
            Message::Phase { action, extent, counted } => {
                let collector = parts.site.layout.command_processor();
                self.act(Part { action, extent, counted }, Waiter::new(collector, KERNEL_COLLECTION), parts);
            }
            Message::Taken { pool, ticket } => {
                parts.slice_shared.drains.taken(parts.out.now(), pool, ticket);
                self.finish(pool, parts);
                if pool.takes_room() {
                    self.serve_slices(parts);
                }
            }
            Message::Written { join } => self.part_done(join, parts),
            Message::LanesIn(lanes) => {
                let rate = crate::convert::incoming(&parts.site.machine, lanes);
                parts.slice_shared.ways.set_incoming(rate);
            }
            Message::Launch { kernel } => self.launch(kernel, parts),
            Message::KernelDrained => self.kernel_drained(parts),
            other => panic!("{}: a controller got {other:?}", parts.site.module),
        }
    }

    /// The driver waits until what the module has sent is taken at the end of its way. `number`: what it is answered under.
    pub fn await_stores<C: Coherence, D: Contents>(&mut self, number: u16, parts: &mut Parts<'_, '_, C, D>) {
        let driver = parts.site.layout.driver();
        self.act(Part::whole(Action::AwaitStores), Waiter::new(driver, number), parts);
    }

    /// What came over the links.
    pub fn arrive<C: Coherence, D: Contents>(&mut self, packet: Packet<D>, parts: &mut Parts<'_, '_, C, D>) {
        match packet {
            Packet::Act { action, collector, collection } => {
                self.act(Part::whole(action), Waiter::new(collector, collection), parts);
            }
            Packet::Acted { collection } => self.acted(collection, parts),
            other => panic!("{}: a controller got {other:?}", parts.site.module),
        }
    }

    /// An SM may have ended CTAs: dispatches others in their place.
    pub fn refill<C: Coherence, D: Contents>(&mut self, sm: usize, parts: &mut Parts<'_, '_, C, D>) {
        // A CTA without warps ends as it starts.
        while parts.sms[sm].has_finished() {
            let finished = parts.sms[sm].take_finished();
            let kernel = self.kernel.as_mut().expect("only a running kernel's CTAs end");
            kernel.running -= finished;
            for _ in 0..finished {
                self.dispatch(sm, parts);
            }
        }
        self.drain_if_done(parts);
    }

    /// Plans that wait for acknowledgments, for a report of who waits for whom.
    pub fn waiting(&self) -> impl Iterator<Item = String> + '_ {
        let plans = self.collections.iter().flatten().map(|collection| {
            let Collection { collector, sm, warp } = collection;
            format!("{sm} warp {warp}'s plan lacks {} acknowledgments", collector.missing())
        });
        let joins = self.joins.iter().flatten().map(|join| format!("a phase lacks {} drains or writes", join.missing));
        plans.chain(joins)
    }

    fn sync<C: Coherence, D: Contents>(
        &mut self,
        (sm, warp): (SmId, u8),
        kind: SyncKind,
        scope: Scope,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let protocol = &parts.site.protocol;
        let plan = match kind {
            SyncKind::Acquire => protocol.acquire(Sync::Thread(scope)),
            SyncKind::Release => protocol.release(Sync::Thread(scope)),
        };
        let collector = Collector::new(plan, parts.site.module);
        let collection = place(&mut self.collections, Collection { collector, sm, warp });
        self.begin_phase(collection, parts);
    }

    /// Sends the current phase of a plan to its members, or answers the warp when all phases are done.
    fn begin_phase<C: Coherence, D: Contents>(&mut self, collection: u16, parts: &mut Parts<'_, '_, C, D>) {
        let entry = &mut self.collections[usize::from(collection)];
        let Collection { collector, sm, warp } = entry.as_mut().expect("a plan is kept until it is done");
        let mut members = Vec::new();
        if !collector.begin_phase(&parts.site.map, |member, action| members.push((member, action))) {
            let to = parts.site.layout.sm(parts.site.module, *sm);
            let at = parts.out.now() + parts.site.machine.crossbar.latency.max(Ps(1));
            parts.out.send(at, self.id, to, Message::Synced { warp: *warp });
            *entry = None;
            return;
        }
        let (mut own, now) = (None, Departure::at(parts.out.now()));
        for (member, action) in members {
            if member == parts.site.module {
                own = Some(action);
            } else {
                let packet = Packet::Act { action, collector: self.id, collection };
                parts.slice_side(self.id).send(now, member, packet);
            }
        }
        if let Some(action) = own {
            self.act(Part::whole(action), Waiter::new(self.id, collection), parts);
        }
    }

    /// This module's part of a phase.
    fn act<C: Coherence, D: Contents>(&mut self, part: Part, mut waiter: Waiter, parts: &mut Parts<'_, '_, C, D>) {
        parts.slice_shared.stats.phases += 1;
        let extent = parts.site.extents.lines(part.extent);
        let before = part.counted.then(|| held(parts));
        let mut taken = parts.out.now();
        match part.action {
            Action::Invalidate(classes) => {
                parts.slice_shared.stats.bulk_invalidations += 1;
                taken += crate::convert::walk(&parts.site.machine);
                for slice in 0..parts.slices.len() {
                    let by =
                        parts.at_slice(slice, |slice, here| slice.invalidate_classes(classes, extent.as_deref(), here));
                    taken = taken.max(by);
                }
            }
            Action::DrainStores(_)
            | Action::PassOnStores
            | Action::DrainInvalidations(_)
            | Action::Flush
            | Action::AwaitStores => {
                let classes = part.action.writes_back();
                let is_any = Class::ALL.into_iter().any(|one| classes.contains(one));
                if is_any && parts.site.protocol.writes_back() {
                    taken += crate::convert::walk(&parts.site.machine);
                }
                for slice in 0..parts.slices.len() {
                    let by = parts.at_slice(slice, |slice, here| slice.flush(classes, extent.as_deref(), here));
                    taken = taken.max(by);
                }
            }
        }
        if let Some((valid, dirty)) = before {
            let (left, still) = held(parts);
            waiter.lost = Lost { flushed: dirty.saturating_sub(still), dropped: valid.saturating_sub(left) };
        }
        self.answer_when_taken(part.action, waiter, taken, parts);
    }

    /// Answers when memory has what was written to it, and when what the action awaits has been taken.
    fn answer_when_taken<C: Coherence, D: Contents>(
        &mut self,
        action: Action,
        waiter: Waiter,
        taken: Ps,
        parts: &mut Parts<'_, '_, C, D>,
    ) {
        let is_written = u8::from(taken > parts.out.now());
        let awaited = || Pool::ALL.into_iter().filter(|pool| pool.is_awaited_by(action));
        let missing = awaited().count() as u8 + is_written;
        if missing == 0 {
            self.answer(waiter, parts);
            return;
        }
        let join = place(&mut self.joins, Join { waiter, missing });
        if is_written > 0 {
            parts.out.send(taken, self.id, self.id, Message::Written { join });
        }
        for pool in awaited() {
            parts.slice_shared.drains.drain(pool, Asker::Join(join));
        }
        for pool in awaited() {
            self.finish(pool, parts);
        }
    }

    /// Answers those who wait for drains of one pool that are over.
    fn finish<C: Coherence, D: Contents>(&mut self, pool: Pool, parts: &mut Parts<'_, '_, C, D>) {
        while let Some(asker) = parts.slice_shared.drains.pop_drained(pool) {
            match asker {
                Asker::Join(join) => self.part_done(join, parts),
                Asker::Home { module, ticket, ready } => {
                    let at = ready.max(parts.out.now()) + parts.site.notice_latency(module);
                    let taken = Message::Taken { pool: Pool::InvalidationsBeyond, ticket };
                    parts.out.send(at, self.id, parts.site.layout.controller(module), taken);
                }
            }
        }
    }

    /// One of the things that a phase here waits for has come.
    fn part_done<C: Coherence, D: Contents>(&mut self, join: u16, parts: &mut Parts<'_, '_, C, D>) {
        let entry = &mut self.joins[usize::from(join)];
        let Join { waiter, missing } = entry.as_mut().expect("a join is kept until its parts are done");
        *missing -= 1;
        if *missing == 0 {
            let waiter = *waiter;
            *entry = None;
            self.answer(waiter, parts);
        }
    }

    /// Acknowledges a phase to whoever collects.
    fn answer<C: Coherence, D: Contents>(&mut self, waiter: Waiter, parts: &mut Parts<'_, '_, C, D>) {
        let Waiter { collector, collection, lost } = waiter;
        if collector == self.id {
            self.acted(collection, parts);
        } else if collector == parts.site.layout.command_processor() {
            parts.out.send(
                parts.out.now() + crate::convert::host_latency(&parts.site.machine),
                self.id,
                collector,
                Message::PhaseDone { module: parts.site.module, lost },
            );
        } else if collector == parts.site.layout.driver() {
            let page = parts.sm_shared.pages.drained(collection);
            page_moves::answer(page, parts.out.now(), parts);
        } else {
            let now = Departure::at(parts.out.now());
            let module = ModuleId((collector.0 / parts.site.layout.stride()) as u8);
            parts.slice_side(self.id).send(now, module, Packet::Acted { collection });
        }
    }

    /// A member has done its part of a phase of this controller's plan.
    fn acted<C: Coherence, D: Contents>(&mut self, collection: u16, parts: &mut Parts<'_, '_, C, D>) {
        let entry = self.collections[usize::from(collection)].as_mut();
        if entry.expect("a plan is kept until it is done").collector.acknowledge() {
            self.begin_phase(collection, parts);
        }
    }

    /// Has slices run what waits for a store credit, each time another one first.
    fn serve_slices<C: Coherence, D: Contents>(&mut self, parts: &mut Parts<'_, '_, C, D>) {
        let count = parts.slices.len();
        self.first_served = if self.first_served + 1 < count { self.first_served + 1 } else { 0 };
        for slice in (self.first_served..count).chain(0..self.first_served) {
            if parts.slice_shared.queued[slice] > 0 {
                parts.at_slice(slice, |slice, here| slice.serve_queues(here));
            }
        }
    }

    fn launch<C: Coherence, D: Contents>(&mut self, index: u32, parts: &mut Parts<'_, '_, C, D>) {
        let site = parts.site;
        site.watch.kernel(self.launches);
        self.launches += 1;
        parts.slice_shared.begin_kernel(parts.out.now());
        parts.tell_l1_ways();
        for sm in &mut *parts.sms {
            sm.forget_flags();
            if l1::acquire_invalidates(&site.protocol, Scope::Sys) {
                sm.invalidate_l1();
            }
        }
        let info = &self.program.kernels()[index as usize];
        let modules = u32::from(site.layout.modules);
        let (next, step, end) = self.share.of(info.ctas, u32::from(site.module.0), modules);
        let resident =
            residency(&site.machine, info, self.program.warp_width()).expect("residency was checked before the run");
        let ctas = (end - next).div_ceil(step);
        self.kernel = Some(Kernel { index, next, step, end, ctas, dispatch_at: parts.out.now(), ..Kernel::default() });
        self.paces.push(Pace::new(parts.out.now()));
        for _ in 0..resident {
            for sm in 0..parts.sms.len() {
                self.dispatch(sm, parts);
                if parts.sms[sm].has_finished() {
                    self.refill(sm, parts);
                }
            }
        }
        self.drain_if_done(parts);
    }

    /// Starts the module's next CTA on an SM, if there is one left.
    fn dispatch<C: Coherence, D: Contents>(&mut self, sm: usize, parts: &mut Parts<'_, '_, C, D>) {
        let kernel = self.kernel.as_mut().expect("a kernel is running");
        if kernel.next >= kernel.end || self.failure.is_some() {
            return;
        }
        let mut stream = parts.sms[sm].spare_stream();
        if let Err(error) = self.program.cta(kernel.index, kernel.next, &mut stream) {
            self.failure = Some(error.to_string());
            return;
        }
        kernel.next += kernel.step;
        kernel.running += 1;
        let start = kernel.dispatch_at.max(parts.out.now());
        kernel.dispatch_at = start + parts.site.machine.host.dispatch_interval;
        let pace = self.paces.last_mut().expect("a kernel was launched");
        pace.start(start, (u64::from(kernel.started) * 4 / u64::from(kernel.ctas)) as usize);
        kernel.started += 1;
        parts.at_sm(sm, |sm, here| sm.start_cta(start, stream, here));
    }

    /// When all CTAs have run, waits for what their SMs have posted.
    fn drain_if_done<C: Coherence, D: Contents>(&mut self, parts: &mut Parts<'_, '_, C, D>) {
        let Some(kernel) = &mut self.kernel else { return };
        let left = kernel.next < kernel.end && self.failure.is_none();
        if left || kernel.running > 0 || kernel.draining > 0 {
            return;
        }
        kernel.draining = parts.sms.len() as u32 + 1;
        parts.out.send(parts.out.now() + Ps(1), self.id, self.id, Message::KernelDrained);
        for sm in 0..parts.sms.len() {
            parts.at_sm(sm, |sm, here| sm.drain(Drainer::Kernel, self.id, here));
        }
    }

    fn kernel_drained<C: Coherence, D: Contents>(&mut self, parts: &mut Parts<'_, '_, C, D>) {
        let kernel = self.kernel.as_mut().expect("a kernel drains while it is the module's");
        kernel.draining -= 1;
        if kernel.draining == 0 {
            let (ctas, counted) = (kernel.ctas, KernelStats::of(parts.sms.iter().map(|sm| &sm.stats)));
            let pace = self.paces.last_mut().expect("a kernel was launched");
            pace.drain(if ctas == 0 { None } else { Some(parts.out.now()) }, counted.since(&self.counted));
            self.counted = counted;
            self.kernel = None;
            parts.slice_shared.ways.stop();
            let at = parts.out.now() + crate::convert::host_latency(&parts.site.machine);
            parts.out.send(at, self.id, parts.site.layout.command_processor(), Message::KernelDone);
        }
    }
}
