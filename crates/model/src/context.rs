//! What a component may touch of its module beside itself: an SM what the SMs share, a slice what those of its group share.
//! Nothing that changes is in both: what a slice tells an SM goes by message, a crossbar's latency ahead.

use crate::cache::Ways;
use crate::credits::Generation;
use crate::crossbar::Deliveries;
use crate::departure::Departure;
use crate::drains::counted;
use crate::flags::Flags;
use crate::group::GroupIndex;
use crate::kernel_slot::{KernelSlot, entry};
use crate::latency::Latencies;
use crate::memory::{Memory, MemoryRead};
use crate::message::{LineRequest, Message, Out};
use crate::outstanding::{Asker, Tickets};
use crate::pace::KernelStats;
use crate::packet::{Packet, Payload};
use crate::port::Parcel;
use crate::residence::Residence;
use crate::site::Site;
use crate::stall::Stall;
use crate::stats::L2Stats;
use crate::traffic::Traffic;
use crate::translation::Translation;
use crate::uncore::Uncore;
use crate::watch::{Contents, Watch};
use crate::way_partition::{Split, WayPartition};
use std::sync::Arc;
use tombolo_design::Built;
use tombolo_protocol::drain::{self, Pool, StoreTaken, TakenOn};
use tombolo_protocol::{Class, Coherence};
use tombolo_types::stream::Program;
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Ps, SmId};

/// What the SMs of a module share.
pub struct SmShared {
    /// Who waits for pages, and what is under way to them.
    pub pages: Residence,
    /// How the ways of each L1 are shared, as the module's controller has told it last.
    pub l1_ways: Split,
    /// What its CTAs execute.
    pub program: Arc<dyn Program>,
    /// What went wrong while decoding a CTA.
    pub failure: Option<String>,
    /// By kernel slot: the launch under way in it.
    pub launches: Vec<u32>,
    /// By launch of the program: what SMs counted of it, as far as it has ended on them.
    pub counted: Vec<KernelStats>,
    /// What loads took.
    pub latencies: Latencies,
    /// By module: what a wait for its answer counts as.
    answers: Vec<Stall>,
}

/// What an SM's wait for the answer of another module, or of its own, counts as.
fn stall_of<C, D: Contents>(site: &Site<C, D>, by: ModuleId) -> Stall {
    if by == site.module {
        Stall::OwnL2
    } else if site.layout.host() == Some(by) {
        Stall::Host
    } else if site.is_beyond(by) {
        Stall::Gpu
    } else {
        Stall::Module
    }
}

impl SmShared {
    /// What a wait for the answer of a module counts as.
    #[inline]
    pub fn stall_of(&self, by: ModuleId) -> Stall {
        self.answers[usize::from(by.0)]
    }

    /// A kernel's launch begins in a slot.
    pub fn begin(&mut self, slot: KernelSlot, launch: u32) {
        *entry(&mut self.launches, slot) = launch;
    }

    /// Adds what an SM has counted of the kernel in a slot.
    pub fn count(&mut self, slot: KernelSlot, counted: KernelStats) {
        let launch = *entry(&mut self.launches, slot) as usize;
        self.counted.resize(self.counted.len().max(launch + 1), KernelStats::default());
        self.counted[launch] = self.counted[launch].and(&counted);
    }

    /// Idle, under the split of a module's ways.
    pub fn new<C, D: Contents>(site: &Site<C, D>, ways: &WayPartition, program: Arc<dyn Program>) -> SmShared {
        SmShared {
            pages: Residence::default(),
            l1_ways: *ways.l1(),
            program,
            failure: None,
            launches: Vec::new(),
            counted: Vec::new(),
            latencies: Latencies::default(),
            answers: (0..site.layout.all_modules()).map(|module| stall_of(site, ModuleId(module))).collect(),
        }
    }
}

/// What an SM may touch beside itself.
pub struct SmContext<'a, 'o, C, D: Contents> {
    /// Its module's place in the machine.
    pub site: &'a Site<C, D>,
    /// What it shares with the other SMs.
    pub shared: &'a mut SmShared,
    /// Where its events go.
    pub out: &'a mut Out<'o, D>,
}

impl<C, D: Contents> SmContext<'_, '_, C, D> {
    /// The ways of an L1 that a fill of `line` may take.
    #[inline]
    pub fn l1_ways(&self, line: Line) -> Ways {
        let split = self.shared.l1_ways;
        let local = split.is_whole() || self.site.is_home(line);
        if local { split.local } else { split.remote }
    }
}

/// What the slices of a group share, with their part of the module's memory.
pub struct SliceShared<D: Contents> {
    /// The memory of their lines.
    pub memory: Memory<D>,
    /// Flags known of their lines, where the module has no publisher.
    flags: Flags,
    /// What is on its way to the module's SMs.
    pub deliveries: Deliveries,
    /// A bank of the module's translation, where one stands with the group.
    pub translation: Option<Translation>,
    /// Counters.
    pub stats: L2Stats,
    /// What passed between the levels of the module by these slices.
    pub traffic: Traffic,
}

impl<D: Contents> SliceShared<D> {
    /// Idle, of the group `group`.
    pub fn new<C>(site: &Site<C, D>, built: &Built, group: GroupIndex) -> SliceShared<D> {
        let slices = usize::from(site.machine.l2.slices) / group.groups as usize;
        let each = group.groups / u32::from(crate::convert::tlb_banks(&site.machine));
        let has_bank = group.index.is_multiple_of(each);
        let (first, sms) = (group.index as usize * slices, usize::from(site.layout.sms.max(1)));
        SliceShared {
            memory: Memory::new(crate::convert::memory(&site.machine, built.l3_write), group),
            flags: Flags::default(),
            deliveries: Deliveries::new((first, slices), sms),
            translation: has_bank
                .then(|| Translation::new(crate::convert::translation(&site.machine), site.schedule.tracks())),
            stats: L2Stats::default(),
            traffic: Traffic::default(),
        }
    }

    /// Flags known of a line of the group: those of its module's publisher, where it has one, which sends lines of all slices.
    #[inline]
    pub fn flags_mut<'a>(&'a mut self, uncore: &'a mut Uncore<D>) -> &'a mut Flags {
        match &mut uncore.publisher {
            Some(publisher) => &mut publisher.flags,
            None => &mut self.flags,
        }
    }
}

/// What a slice may read beside itself.
pub struct SliceView<'a, C, D: Contents> {
    /// Its module's place in the machine.
    pub site: &'a Site<C, D>,
    /// What it shares with the other slices of its group.
    pub shared: &'a SliceShared<D>,
    /// What its module has once.
    pub uncore: &'a Uncore<D>,
}

impl<C, D: Contents> Clone for SliceView<'_, C, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, D: Contents> Copy for SliceView<'_, C, D> {}

impl<C, D: Contents> SliceView<'_, C, D> {
    /// Starts to load what a fetch of `line` will read into the host's caches, where its memory is this module's.
    #[inline]
    pub fn prefetch_memory(&self, line: Line) {
        if self.site.is_home(line) {
            self.shared.memory.prefetch(line);
        }
    }
}

/// What a slice, or who acts for the module in its place, may touch beside itself.
pub struct SliceContext<'a, 'o, C, D: Contents> {
    /// Who acts: the source of its events.
    pub id: ComponentId,
    /// Its module's place in the machine.
    pub site: &'a Site<C, D>,
    /// What it shares with the other slices of its group.
    pub shared: &'a mut SliceShared<D>,
    /// What its module has once.
    pub uncore: &'a mut Uncore<D>,
    /// Where its events go.
    pub out: &'a mut Out<'o, D>,
}

impl<'o, C, D: Contents> SliceContext<'_, 'o, C, D> {
    /// The same, to read.
    #[inline]
    pub fn view(&self) -> SliceView<'_, C, D> {
        SliceView { site: self.site, shared: self.shared, uncore: self.uncore }
    }

    /// The ways of the L2 that lines of a class may take.
    #[inline]
    pub fn l2_ways(&self, class: Class) -> Ways {
        match class {
            Class::Own => self.uncore.ways.l2().local,
            Class::GpuHome | Class::GpuRemote | Class::SystemRemote => self.uncore.ways.l2().remote,
        }
    }

    /// What it may touch of what its module has once.
    #[inline]
    pub fn at_uncore(&mut self) -> UncoreContext<'_, 'o, C, D> {
        UncoreContext { id: self.id, site: self.site, uncore: self.uncore, out: self.out }
    }

    /// Flags known of a line of its group.
    #[inline]
    pub fn flags(&self) -> &Flags {
        match &self.uncore.publisher {
            Some(publisher) => &publisher.flags,
            None => &self.shared.flags,
        }
    }

    /// The same, to learn of more.
    #[inline]
    pub fn flags_mut(&mut self) -> &mut Flags {
        self.shared.flags_mut(self.uncore)
    }

    /// Sends a packet to another module as it departs; returns when it has left.
    pub fn send(&mut self, departs: Departure, target: ModuleId, packet: Packet<D>) -> Ps {
        self.at_uncore().send(departs, target, packet)
    }

    /// Has memory read bytes of a line.
    #[inline]
    pub fn read_memory(&mut self, line: Line, mask: Mask, departs: Departure) -> MemoryRead {
        self.shared.stats.memory_read_bytes += u64::from(mask.grains()) * self.site.machine.line.grain();
        self.shared.traffic.l2_l3 += self.site.weights.of(Payload::Read) + self.site.weights.answer(mask);
        self.shared.memory.fetch(self.out.now(), departs, line, mask)
    }

    /// Has memory write bytes of a line that it has the contents of; returns when they are taken.
    #[inline]
    pub fn store_memory(&mut self, line: Line, mask: Mask, departs: Departure) -> Ps {
        self.shared.stats.memory_write_bytes += u64::from(mask.grains()) * self.site.machine.line.grain();
        self.shared.traffic.l2_l3 += self.site.weights.of(Payload::store(mask));
        self.shared.memory.store(self.out.now(), departs, line, mask)
    }

    /// Delivers grains of a line to an SM as they depart: `message` is made of when they are wholly there, unless they wait for
    /// its port.
    pub fn deliver(&mut self, departs: Departure, sm: SmId, grains: u32, message: impl FnOnce(Ps) -> Message<D>) {
        let Self { site, shared, .. } = self;
        shared.traffic.l1_l2 += site.weights.of(Payload::Grains(grains));
        let source = site.source(self.id);
        let crossing = site.machine.crossbar.latency + site.weights.into_sm(grains);
        let at = shared.deliveries.in_order((source, usize::from(sm.0)), departs.time() + crossing);
        let at = at + site.watch.delivery(site.module, source, sm);
        self.out.send(at, self.id, site.layout.sm(site.module, sm), message(at));
    }

    /// Counts a store about to leave; one whose origin is another module is forwarded.
    pub fn post(&mut self, line: Line, origin: ModuleId, tickets: Tickets) -> Tickets {
        self.uncore.drains.post(self.site.leg(line, origin), tickets)
    }

    /// Counts a store that this module has found not to be needed as taken at `at`, or right away.
    pub fn withdraw(&mut self, line: Line, tickets: Tickets, at: Ps) {
        let at = at.max(self.out.now() + Ps(1));
        let to = self.site.layout.controller(self.site.module);
        for (pool, ticket) in counted(self.site.leg(line, self.site.module), tickets) {
            self.out.send(at, self.id, to, Message::Taken { pool, ticket });
        }
    }

    /// Tells an SM of this module that a store of its has been taken, in effect at `at`.
    pub fn return_store(&mut self, sm: SmId, credit: Generation, at: Ps) {
        let now = self.out.now();
        let at = (at.max(now) + self.site.machine.crossbar.latency).max(now + Ps(1));
        self.out.send(at, self.id, self.site.layout.sm(self.site.module, sm), Message::StoreTaken { credit });
    }
}

/// What a component may touch of what its module has once.
pub struct UncoreContext<'a, 'o, C, D: Contents> {
    /// Who acts: the source of its events.
    pub id: ComponentId,
    /// Its module's place in the machine.
    pub site: &'a Site<C, D>,
    /// What the module has once.
    pub uncore: &'a mut Uncore<D>,
    /// Where its events go.
    pub out: &'a mut Out<'o, D>,
}

impl<C, D: Contents> UncoreContext<'_, '_, C, D> {
    /// Sends a packet to another module as it departs; returns when it has left.
    pub fn send(&mut self, departs: Departure, target: ModuleId, packet: Packet<D>) -> Ps {
        self.uncore.port.send(Parcel { from: self.id, departs, target, packet }, self.site, self.out)
    }
}

impl<C: Coherence, D: Contents> SliceContext<'_, '_, C, D> {
    /// Tells the senders of a store that `from` has sent here that it has been taken at `at`; `ends`: and that it goes no
    /// further. Its first sender hears of that the way it came.
    pub fn acknowledge(&mut self, body: &LineRequest<D>, from: ModuleId, ends: bool, at: Ps) {
        let (site, origin) = (self.site, body.origin.module);
        let (beyond, at_home) = (site.is_beyond(from), site.is_home(body.line));
        let (pool, end) = StoreTaken { origin, from, beyond, at_home, ends }.told(&site.protocol);
        let back = at + site.notice_latency(from);
        let taken = Message::Taken { pool, ticket: body.tickets.hop };
        self.out.send(back, self.id, site.layout.controller(from), taken);
        if let Some(pool) = end {
            let back = if origin == from { back } else { back + site.machine.module_link.latency };
            let taken = Message::Taken { pool, ticket: body.tickets.end };
            self.out.send(back, self.id, site.layout.controller(origin), taken);
        }
    }

    /// Answers an invalidation of `home`, wholly here at `ready`: a GPU home when those that it has sent itself are
    /// taken. `earlier`: how many were under way before this one came.
    pub fn answer_invalidation(&mut self, (home, ticket): (ModuleId, Generation), ready: Ps, earlier: u32) {
        let (site, beyond) = (self.site, self.site.is_beyond(home));
        let awaits = match drain::taken_on(&site.protocol) {
            TakenOn::All => true,
            TakenOn::Forwarded => self.uncore.drains.invalidations() > earlier,
            TakenOn::Nothing => false,
        };
        let asker = Asker::Home { module: home, ticket, ready };
        if awaits && beyond && site.routing.hierarchical && self.uncore.drains.await_invalidations(asker) {
            return;
        }
        let at = ready + site.notice_latency(home);
        let taken = Message::Taken { pool: Pool::of_invalidations(beyond), ticket };
        self.out.send(at, self.id, site.layout.controller(home), taken);
    }
}
