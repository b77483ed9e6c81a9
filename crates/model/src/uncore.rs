//! What the SMs, the slices and the controller of one module share: ports, memory, credits, flags.

use crate::cache::Ways;
use crate::credits::{Credits, Generation};
use crate::departure::{Departure, SOON};
use crate::dram::{Asked, Dram, DramStats};
use crate::flags::Flags;
use crate::layout::Layout;
use crate::link::Link;
use crate::map::Map;
use crate::memory_cache::{MemoryCache, MemoryCacheStats};
use crate::message::{Facts, LineRequest, Message, Origin, Out, Packet, Receiver, Route};
use crate::outstanding::{Asker, Outstanding, Pool, Tickets};
use crate::stats::L2Stats;
use crate::tlb::{Tlb, Walkers};
use crate::watch::{Contents, WarpSlot};
use crate::way_partition::{WayPartition, WayPolicy};
use crate::weight::Weights;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use tombolo_engine::{HOST_LINE, prefetch};
use tombolo_machine::MachineConfig;
use tombolo_protocol::{Class, Coherence, Topology};
use tombolo_types::{Bytes, ComponentId, Line, Mask, ModuleId, Page, Ps, Rate, Scope, Serializer, SmId};

/// Who waits until everything an SM has posted has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drainer {
    /// A warp that releases.
    Warp {
        /// Which.
        warp: u8,
        /// Scope of its release.
        scope: Scope,
    },
    /// The controller, at the end of a kernel.
    Kernel,
}

/// What the parts of a module share.
pub struct Uncore<C, D: Contents> {
    /// Which module.
    pub module: ModuleId,
    /// The protocol under test.
    pub protocol: C,
    /// Numbering of components.
    pub layout: Layout,
    /// The machine.
    pub machine: Arc<MachineConfig>,
    /// Homes of lines.
    pub map: Map,
    /// Bytes of packets on links.
    pub weights: Weights,
    /// How the ways of its caches are shared.
    pub ways: WayPartition,
    /// The module's memory.
    dram: Dram,
    /// The cache in front of it, where the machine has one.
    memory_cache: Option<MemoryCache>,
    /// Contents of memory, where data is modelled.
    memory: FxHashMap<Line, D>,
    /// The module's TLB.
    tlb: Tlb,
    /// Its page walkers.
    walkers: Walkers,
    /// Port toward other modules.
    outgoing: Link,
    /// When what was sent last on each channel toward other modules arrives: by [`Uncore::source`], then target.
    arrivals: Vec<Ps>,
    /// Port from other modules.
    incoming: Serializer,
    /// When the last packet that had to wait for that port enters.
    entering: Ps,
    /// From the slices to each SM.
    to_sm: Vec<Serializer>,
    /// When what was delivered last on each channel arrives: by SM, then [`Uncore::source`].
    delivered: Vec<Ps>,
    /// Store credits of each SM.
    pub posted: Vec<Credits>,
    /// By SM with a warp that waits for a store credit: when it hears of the first to come back, [`Ps::NEVER`] where that
    /// is not known.
    pub credit_due: Vec<Option<Ps>>,
    /// By SM: who waits for what it has posted so far, oldest first.
    pub draining: Vec<VecDeque<Drainer>>,
    /// By slice: requests in its input queues.
    pub queued: Vec<u32>,
    /// Stores and invalidations on their way to other modules.
    pub outstanding: Outstanding,
    /// Flags known here.
    pub flags: Flags,
    /// Counters.
    pub stats: L2Stats,
    /// Who checks what loads return.
    pub watch: D::Watch,
}

impl<C: Coherence, D: Contents> Uncore<C, D> {
    /// An idle module.
    pub fn new(
        module: ModuleId,
        protocol: C,
        layout: Layout,
        machine: Arc<MachineConfig>,
        map: Map,
        policy: WayPolicy,
        watch: D::Watch,
    ) -> Uncore<C, D> {
        let (sms, sources) = (usize::from(layout.sms), usize::from(layout.slices) + 1);
        Uncore {
            module,
            protocol,
            layout,
            dram: Dram::new(crate::convert::dram(&machine)),
            memory_cache: crate::convert::memory_cache(&machine).map(MemoryCache::new),
            memory: FxHashMap::default(),
            tlb: Tlb::new(crate::convert::l2_tlb(&machine)),
            walkers: Walkers::new(crate::convert::walkers(&machine)),
            outgoing: Link::new(crate::convert::link(&machine.module_link)),
            arrivals: vec![Ps::ZERO; sources * usize::from(layout.modules)],
            incoming: Serializer::new(machine.module_link.rate),
            entering: Ps::ZERO,
            to_sm: vec![Serializer::new(machine.crossbar.rate); sms],
            delivered: vec![Ps::ZERO; sms * sources],
            posted: vec![Credits::new(machine.sm.posted_stores); sms],
            credit_due: vec![None; sms],
            draining: vec![VecDeque::new(); sms],
            queued: vec![0; usize::from(layout.slices)],
            outstanding: Outstanding::new(machine.l2.posted_stores),
            flags: Flags::default(),
            weights: Weights::new(&machine),
            stats: L2Stats::default(),
            ways: WayPartition::new(crate::convert::way_partition(&machine, policy)),
            watch,
            machine,
            map,
        }
    }

    /// The name of a warp slot for those who watch.
    pub fn warp_slot(&self, sm: SmId, slot: usize) -> WarpSlot {
        WarpSlot { gpu: self.map.gpu_of(self.module), module: self.module, sm, slot: slot as u8 }
    }

    /// The ways of an L1 that a fill of `line` may take.
    #[inline]
    pub fn l1_ways(&self, line: Line) -> Ways {
        let split = self.ways.l1();
        let local = split.is_whole() || self.map.system_home(line) == self.module;
        if local { split.local } else { split.remote }
    }

    /// The ways of the L2 that lines of a class may take.
    #[inline]
    pub fn l2_ways(&self, class: Class) -> Ways {
        match class {
            Class::Own => self.ways.l2().local,
            Class::GpuHome | Class::GpuRemote | Class::SystemRemote => self.ways.l2().remote,
        }
    }

    /// A kernel starts on this module.
    pub fn begin_kernel(&mut self, now: Ps) {
        self.flags.clear();
        self.ways.launch(now, self.dram.queued_until(now));
    }

    /// Shifts ways as often as has become due by `now`.
    pub fn shift_ways(&mut self, now: Ps) {
        while self.ways.next_sample() <= now {
            self.ways.sample(self.dram.queued_until(self.ways.next_sample()));
        }
    }

    /// Counters of the port toward other modules.
    pub fn outgoing(&self) -> &Link {
        &self.outgoing
    }

    /// Where the channels of a component of this module stand: those of its slices first, those of all others in one.
    pub(crate) fn source(&self, from: ComponentId) -> usize {
        let slice = from.0.wrapping_sub(self.layout.slice(self.module, 0).0);
        usize::from(slice.min(self.layout.slices))
    }

    /// Counters of the module's memory.
    pub fn dram(&self) -> &DramStats {
        self.dram.stats()
    }

    /// Counters of the cache in front of it; zeros where there is none.
    pub fn memory_cache(&self) -> MemoryCacheStats {
        self.memory_cache.as_ref().map(|cache| *cache.stats()).unwrap_or_default()
    }

    /// Sends a packet to another module as it departs. What a component sends to one module arrives in order: the
    /// protocols rely on it line by line and region by region, and each of those has one slice. Returns when it has left.
    pub fn send(
        &mut self,
        departs: Departure,
        target: ModuleId,
        packet: Packet<D>,
        out: &mut Out<'_, D>,
        from: ComponentId,
    ) -> Ps {
        let Facts { receiver, traffic, payload } = packet.facts();
        let bytes = self.weights.of(payload);
        let component = self.component(target, receiver);
        let route = Route { source: self.module, target, bytes: bytes.0 as u16, component };
        let sent = self.outgoing.pass(out.now(), departs, traffic, bytes);
        let channel = self.source(from) * usize::from(self.layout.modules) + usize::from(target.0);
        let arrival = in_order(&mut self.arrivals[channel], sent.time());
        if !self.is_beyond(target) {
            out.send(arrival, from, component, Message::Arrive { route, packet });
        } else {
            let half = Ps(self.machine.gpu_link.latency.0 / 2);
            out.send(arrival + half, from, self.layout.switch(), Message::Cross { route, packet });
        }
        sent.time().saturating_sub(self.outgoing.latency())
    }

    /// The component of `target` that receives a packet.
    fn component(&self, target: ModuleId, receiver: Receiver) -> ComponentId {
        match receiver {
            Receiver::Slice(line) => self.slice_of(target, line),
            Receiver::Origin(origin, line) if origin.module != target => self.slice_of(target, line),
            Receiver::Origin(Origin { sm, .. }, _) | Receiver::Sm(sm) => self.layout.sm(target, sm),
            Receiver::Controller => self.layout.controller(target),
        }
    }

    fn slice_of(&self, module: ModuleId, line: Line) -> ComponentId {
        self.layout.slice(module, self.map.slice(line))
    }

    /// Takes a packet for a component of this module from the port. Returns when it is wholly inside where that is soon
    /// enough for it to be handled now ([`SOON`]); otherwise it comes again, as [`Message::Enter`]. A controller takes its
    /// part in a phase by so much too early.
    pub fn receive(&mut self, route: Route, packet: &Packet<D>, out: &mut Out<'_, D>) -> Option<Ps> {
        let now = out.now();
        let inside = self.incoming.send(now, Bytes(u64::from(route.bytes)));
        if inside <= now + SOON && now > self.entering {
            return Some(inside);
        }
        // One after the other, whichever components they are for.
        self.entering = inside.max(self.entering + Ps(1)).max(now + Ps(1));
        let to = route.component;
        out.send(self.entering, to, to, Message::Enter { source: route.source, packet: *packet });
        None
    }

    /// How long a notice without weight takes to another module: flow control rides on other packets.
    pub fn notice_latency(&self, target: ModuleId) -> Ps {
        let hop = self.machine.module_link.latency;
        if self.is_beyond(target) { hop + hop + self.machine.gpu_link.latency } else { hop }
    }

    /// Whether a module is of another GPU.
    pub fn is_beyond(&self, module: ModuleId) -> bool {
        self.map.gpu_of(module) != self.map.gpu_of(self.module)
    }

    /// Counts a store about to leave for `target`; one whose origin is another module is forwarded.
    pub fn post(&mut self, line: Line, origin: ModuleId, tickets: Tickets, target: ModuleId) -> Tickets {
        if origin != self.module {
            return Tickets { hop: self.outstanding.send(Pool::ForwardedStores), ..tickets };
        }
        if self.is_beyond(target) {
            return Tickets { hop: self.outstanding.send(Pool::StoresBeyond), ..Tickets::default() };
        }
        let goes_on = self.goes_on(line, target);
        let end = if goes_on { self.outstanding.send(Pool::StoresToTheEnd) } else { Generation::default() };
        Tickets { hop: self.outstanding.send(Pool::Stores), end }
    }

    /// Counts a store that this module has found not to be needed as taken.
    pub fn withdraw(&mut self, line: Line, tickets: Tickets, out: &mut Out<'_, D>, by: ComponentId) {
        let target = self.next_home(line);
        let hop = if self.is_beyond(target) { Pool::StoresBeyond } else { Pool::Stores };
        let end = self.goes_on(line, target).then_some((Pool::StoresToTheEnd, tickets.end));
        for (pool, ticket) in [Some((hop, tickets.hop)), end].into_iter().flatten() {
            out.send(out.now() + Ps(1), by, self.layout.controller(self.module), Message::Taken { pool, ticket });
        }
    }

    /// Where stores to a line of another module go from here.
    pub fn next_home(&self, line: Line) -> ModuleId {
        let homes = self.map.homes(self.module, line);
        let next = homes.next(self.module, self.protocol.is_hierarchical());
        next.expect("a store goes on from every module but its system home")
    }

    /// Where the result of an atomic on a line goes from here on its way to the module that issued it: back as the
    /// atomic came. Source: HMG, section V-B: as load responses.
    pub fn next_back(&self, line: Line, origin: ModuleId) -> ModuleId {
        let homes = self.map.homes(origin, line);
        let first = homes.next(origin, self.protocol.is_hierarchical());
        first.filter(|&home| home != self.module && home != origin).unwrap_or(origin)
    }

    /// Whether a store that this module sends to `target` is not at its system home there.
    fn goes_on(&self, line: Line, target: ModuleId) -> bool {
        self.protocol.is_hierarchical() && self.map.system_home(line) != target
    }

    /// Tells the senders of a store that `from` has sent here that it has been taken at `at`; `ends`: and that it goes no
    /// further. Its first sender hears of that the way it came.
    pub fn acknowledge(
        &mut self,
        body: &LineRequest<D>,
        from: ModuleId,
        ends: bool,
        at: Ps,
        out: &mut Out<'_, D>,
        by: ComponentId,
    ) {
        let origin = body.origin.module;
        let pool = match (origin == from, self.is_beyond(from)) {
            (true, false) => Pool::Stores,
            (true, true) => Pool::StoresBeyond,
            (false, _) => Pool::ForwardedStores,
        };
        let back = at + self.notice_latency(from);
        out.send(back, by, self.layout.controller(from), Message::Taken { pool, ticket: body.tickets.hop });
        let by_gpu_home = origin != from || self.map.system_home(body.line) != self.module;
        if ends && by_gpu_home {
            let back = if origin == from { back } else { back + self.machine.module_link.latency };
            let taken = Message::Taken { pool: Pool::StoresToTheEnd, ticket: body.tickets.end };
            out.send(back, by, self.layout.controller(origin), taken);
        }
    }

    /// Counts an invalidation about to leave for `target`.
    pub fn post_invalidation(&mut self, target: ModuleId) -> Generation {
        let beyond = self.is_beyond(target);
        self.outstanding.send(if beyond { Pool::InvalidationsBeyond } else { Pool::Invalidations })
    }

    /// Answers an invalidation of `home`, wholly here at `ready`: a GPU home when those that it has sent itself are
    /// taken. That waits for all of them where those of the region would do.
    pub fn answer_invalidation(
        &mut self,
        home: ModuleId,
        ticket: Generation,
        ready: Ps,
        out: &mut Out<'_, D>,
        by: ComponentId,
    ) {
        let beyond = self.is_beyond(home);
        if beyond && self.protocol.is_hierarchical() && !self.outstanding.is_empty(Pool::Invalidations) {
            self.outstanding.drain(Pool::Invalidations, Asker::Home { module: home, ticket, ready });
            return;
        }
        let pool = if beyond { Pool::InvalidationsBeyond } else { Pool::Invalidations };
        let at = ready + self.notice_latency(home);
        out.send(at, by, self.layout.controller(home), Message::Taken { pool, ticket });
    }

    /// Delivers `bytes` to an SM as they depart from a component of its module; returns the arrival, never before that
    /// of what the component sent it earlier.
    pub fn deliver(&mut self, now: Ps, departs: Departure, sm: SmId, bytes: u64, from: ComponentId) -> Ps {
        let passed = departs.through(now, &mut self.to_sm[usize::from(sm.0)], Bytes(bytes));
        let channel = self.delivery(sm, self.source(from));
        in_order(&mut self.delivered[channel], passed.after(self.machine.crossbar.latency).time())
    }

    /// Starts to load what an answer of a slice to an SM will change into the host's caches.
    #[inline]
    pub fn prefetch_delivery(&self, sm: SmId, slice: usize) {
        prefetch(&self.to_sm[usize::from(sm.0)]);
        prefetch(&self.delivered[self.delivery(sm, slice)]);
    }

    /// Starts to load what packets of a slice to other modules will change into the host's caches.
    #[inline]
    pub fn prefetch_arrivals(&self, slice: usize) {
        let modules = usize::from(self.layout.modules);
        let arrivals = &self.arrivals[slice * modules..][..modules];
        arrivals.iter().step_by(HOST_LINE / size_of_val(&arrivals[0])).for_each(prefetch);
    }

    /// Where the channel to an SM from a source stands.
    fn delivery(&self, sm: SmId, source: usize) -> usize {
        usize::from(sm.0) * (usize::from(self.layout.slices) + 1) + source
    }

    /// A store of an SM has been taken at `now`, in effect at `at`.
    pub fn return_store(&mut self, sm: SmId, generation: Generation, at: Ps, out: &mut Out<'_, D>, from: ComponentId) {
        let index = usize::from(sm.0);
        let to = self.layout.sm(self.module, sm);
        let back = at + self.machine.crossbar.latency;
        self.posted[index].return_at(generation, back);
        if let Some(due) = &mut self.credit_due[index]
            && back < *due
        {
            *due = back;
            out.send(back, from, to, Message::StoreReturned);
        }
        self.finish_drains(sm, out, from);
    }

    /// Wakes the warps of an SM whose posted stores have all been taken.
    pub fn finish_drains(&mut self, sm: SmId, out: &mut Out<'_, D>, from: ComponentId) {
        let index = usize::from(sm.0);
        while let Some(drained) = self.posted[index].pop_drained() {
            let drainer = self.draining[index].pop_front().expect("somebody waits for each drain of an SM's stores");
            let at = drained.at.max(out.now()) + Ps(1);
            let (to, message) = match drainer {
                Drainer::Warp { warp, scope } => (self.layout.sm(self.module, sm), Message::Drained { warp, scope }),
                Drainer::Kernel => (self.layout.controller(self.module), Message::KernelDrained),
            };
            out.send(at, from, to, message);
        }
    }

    /// Has memory read `bytes` of `line` for a request that departs as told; returns when they are there.
    pub fn fetch(&mut self, now: Ps, departs: Departure, line: Line, bytes: Bytes) -> Ps {
        match &mut self.memory_cache {
            Some(cache) => cache.read(now, departs, (line, bytes), &mut self.dram),
            None => {
                let asked = Asked { now, ready: departs.time() };
                self.dram.read(asked, line, bytes) + self.machine.dram.base_latency
            }
        }
    }

    /// Starts to load what a fetch of `line` will read into the host's caches, where its memory is this module's.
    #[inline]
    pub fn prefetch_memory(&self, line: Line) {
        if self.map.system_home(line) == self.module {
            self.dram.prefetch(line);
        }
    }

    /// Has memory write `bytes` of `line` that depart as told; returns when they are taken.
    pub fn store(&mut self, now: Ps, departs: Departure, line: Line, bytes: Bytes) -> Ps {
        match &mut self.memory_cache {
            Some(cache) => cache.write(now, departs, (line, bytes), &mut self.dram),
            None => self.dram.write(Asked { now, ready: departs.time() }, line, bytes),
        }
    }

    /// Puts a line into the cache in front of memory, as an earlier program would have left it.
    pub fn warm(&mut self, line: Line, dirty: bool) {
        if let Some(cache) = &mut self.memory_cache {
            cache.warm(line, dirty);
        }
    }

    /// Reads the contents of memory.
    pub fn read_memory(&self, line: Line) -> D {
        if size_of::<D>() == 0 { D::default() } else { self.memory.get(&line).copied().unwrap_or_default() }
    }

    /// Writes the contents of memory.
    pub fn write_memory(&mut self, line: Line, mask: Mask, data: D) {
        if size_of::<D>() != 0 {
            self.memory.entry(line).or_default().merge(data, mask);
        }
    }

    /// Translates a page that missed an SM's TLB at `now`: when the translation is there, and whether it took
    /// a walk.
    pub fn translate(&mut self, page: Page, now: Ps) -> (Ps, bool) {
        let looked_up = now + self.machine.tlb.l2_latency;
        match self.tlb.lookup(looked_up, page) {
            Some(ready) => (ready, false),
            None => {
                let ready = self.walkers.walk(looked_up);
                self.tlb.fill(page, ready);
                (ready, true)
            }
        }
    }

    /// To and from the command processor.
    pub fn host_latency(&self) -> Ps {
        crate::convert::host_latency(&self.machine)
    }

    /// The rate at which a slice reads or writes data.
    pub fn slice_rate(&self) -> Rate {
        self.machine.l2.rate
    }
}

/// The arrival on a channel of what would arrive at `at`: not before what was sent ahead of it.
fn in_order(last: &mut Ps, at: Ps) -> Ps {
    *last = at.max(*last);
    *last
}
