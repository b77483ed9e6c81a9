//! What the SMs, the slices and the controller of one module share: its site and its rooms.

use crate::cache::Ways;
use crate::credits::Generation;
use crate::crossbar::Crossbar;
use crate::departure::Departure;
use crate::drains::{Drains, invalidations};
use crate::flags::Flags;
use crate::memory::Memory;
use crate::message::{LineRequest, Message, Out, Packet};
use crate::outstanding::{Asker, Pool, Tickets};
use crate::port::{Parcel, Port};
use crate::posted::{Drainer, Posted, StoreReturn};
use crate::site::Site;
use crate::stats::L2Stats;
use crate::translation::Translation;
use crate::watch::Contents;
use crate::way_partition::{WayPartition, WayPolicy};
use tombolo_protocol::{Class, Coherence};
use tombolo_types::{ComponentId, Line, ModuleId, Ps, SmId};

/// What the parts of a module share.
pub struct Uncore<C, D: Contents> {
    /// Its place in the machine.
    pub site: Site<C, D>,
    /// How the ways of its caches are shared.
    pub ways: WayPartition,
    /// To and from other modules.
    pub port: Port,
    /// From the slices to the SMs.
    pub crossbar: Crossbar,
    /// The module's memory.
    pub memory: Memory<D>,
    /// Translation behind the SMs' TLBs.
    pub translation: Translation,
    /// By SM: what it has posted.
    pub posted: Vec<Posted>,
    /// By slice: requests in its input queues.
    pub queued: Vec<u32>,
    /// Stores and invalidations on their way to other modules.
    pub drains: Drains,
    /// Flags known here.
    pub flags: Flags,
    /// Counters.
    pub stats: L2Stats,
}

impl<C: Coherence, D: Contents> Uncore<C, D> {
    /// An idle module.
    pub fn new(site: Site<C, D>, policy: WayPolicy) -> Uncore<C, D> {
        let machine = &*site.machine;
        Uncore {
            ways: WayPartition::new(crate::convert::way_partition(machine, policy)),
            port: Port::new(crate::convert::port(machine)),
            crossbar: Crossbar::new(crate::convert::crossbar(machine)),
            memory: Memory::new(crate::convert::memory(machine)),
            translation: Translation::new(crate::convert::translation(machine)),
            posted: vec![Posted::new(crate::convert::posted(machine)); usize::from(site.layout.sms)],
            queued: vec![0; usize::from(site.layout.slices)],
            drains: Drains::new(crate::convert::drains(machine)),
            flags: Flags::default(),
            stats: L2Stats::default(),
            site,
        }
    }

    /// The ways of an L1 that a fill of `line` may take.
    #[inline]
    pub fn l1_ways(&self, line: Line) -> Ways {
        let split = self.ways.l1();
        let local = split.is_whole() || self.site.is_home(line);
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
        self.ways.launch(now, self.memory.queued_until(now));
    }

    /// Shifts ways as often as has become due by `now`.
    pub fn shift_ways(&mut self, now: Ps) {
        while self.ways.next_sample() <= now {
            self.ways.sample(self.memory.queued_until(self.ways.next_sample()));
        }
    }

    /// Sends a packet to another module as it departs; returns when it has left.
    pub fn send(
        &mut self,
        departs: Departure,
        target: ModuleId,
        packet: Packet<D>,
        out: &mut Out<'_, D>,
        from: ComponentId,
    ) -> Ps {
        self.port.send(Parcel { from, departs, target, packet }, &self.site, out)
    }

    /// Counts a store about to leave for `target`; one whose origin is another module is forwarded.
    pub fn post(&mut self, line: Line, origin: ModuleId, tickets: Tickets, target: ModuleId) -> Tickets {
        self.drains.post(self.site.leg(line, origin, target), tickets)
    }

    /// Counts a store that this module has found not to be needed as taken.
    pub fn withdraw(&mut self, line: Line, tickets: Tickets, out: &mut Out<'_, D>, by: ComponentId) {
        let leg = self.site.leg(line, self.site.module, self.site.next_home(line));
        for (pool, ticket) in leg.pools(tickets) {
            let to = self.site.layout.controller(self.site.module);
            out.send(out.now() + Ps(1), by, to, Message::Taken { pool, ticket });
        }
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
        let (site, origin) = (&self.site, body.origin.module);
        let pool = match (origin == from, site.is_beyond(from)) {
            (true, false) => Pool::Stores,
            (true, true) => Pool::StoresBeyond,
            (false, _) => Pool::ForwardedStores,
        };
        let back = at + site.notice_latency(from);
        out.send(back, by, site.layout.controller(from), Message::Taken { pool, ticket: body.tickets.hop });
        let by_gpu_home = origin != from || !site.is_home(body.line);
        if ends && by_gpu_home {
            let back = if origin == from { back } else { back + site.machine.module_link.latency };
            let taken = Message::Taken { pool: Pool::StoresToTheEnd, ticket: body.tickets.end };
            out.send(back, by, site.layout.controller(origin), taken);
        }
    }

    /// Answers an invalidation of `home`, wholly here at `ready`: a GPU home when those that it has sent itself are
    /// taken.
    pub fn answer_invalidation(
        &mut self,
        home: ModuleId,
        ticket: Generation,
        ready: Ps,
        out: &mut Out<'_, D>,
        by: ComponentId,
    ) {
        let (site, beyond) = (&self.site, self.site.is_beyond(home));
        let asker = Asker::Home { module: home, ticket, ready };
        if beyond && site.protocol.is_hierarchical() && self.drains.await_invalidations(asker) {
            return;
        }
        let at = ready + site.notice_latency(home);
        out.send(at, by, site.layout.controller(home), Message::Taken { pool: invalidations(beyond), ticket });
    }

    /// Delivers `bytes` to an SM as they depart from a component of its module; returns the arrival.
    pub fn deliver(&mut self, now: Ps, departs: Departure, sm: SmId, bytes: u64, from: ComponentId) -> Ps {
        self.crossbar.deliver(now, departs, (self.site.source(from), sm), bytes)
    }

    /// A store of an SM has been taken at `now`, in effect at `at`.
    pub fn return_store(&mut self, sm: SmId, credit: Generation, at: Ps, out: &mut Out<'_, D>, from: ComponentId) {
        let StoreReturn { sm, credit, at } = StoreReturn { sm, credit, at: at + self.site.machine.crossbar.latency };
        if self.posted[usize::from(sm.0)].return_at(credit, at) {
            out.send(at, from, self.site.layout.sm(self.site.module, sm), Message::StoreReturned);
        }
        self.finish_drains(sm, out, from);
    }

    /// Wakes the warps of an SM whose posted stores have all been taken.
    pub fn finish_drains(&mut self, sm: SmId, out: &mut Out<'_, D>, from: ComponentId) {
        while let Some((at, drainer)) = self.posted[usize::from(sm.0)].pop_drained(out.now()) {
            let (layout, module) = (self.site.layout, self.site.module);
            let (to, message) = match drainer {
                Drainer::Warp { warp, scope } => (layout.sm(module, sm), Message::Drained { warp, scope }),
                Drainer::Kernel => (layout.controller(module), Message::KernelDrained),
            };
            out.send(at, from, to, message);
        }
    }

    /// Starts to load what a fetch of `line` will read into the host's caches, where its memory is this module's.
    #[inline]
    pub fn prefetch_memory(&self, line: Line) {
        if self.site.is_home(line) {
            self.memory.prefetch(line);
        }
    }
}
