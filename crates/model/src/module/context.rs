//! Components' views of their module: an SM sees the state shared by the SMs, a slice sees the state shared in the
//! group. No mutable state belongs to both views: slices and SMs exchange messages, one crossbar latency ahead.

use crate::fabric::crossbar::Deliveries;
use crate::fabric::packet::{Packet, Payload};
use crate::fabric::port::OutgoingPacket;
use crate::fabric::traffic::LevelTraffic;
use crate::l2::cache::Ways;
use crate::l2::credits::Generation;
use crate::l2::departure::Departure;
use crate::l2::drains::counted;
use crate::l2::group::GroupIndex;
use crate::l2::outstanding::{DrainWaiter, Tickets};
use crate::l2::way_partition::{WayPartition, WaySplit};
use crate::memory::{Memory, MemoryRead};
use crate::message::{LineRequest, Message, Out};
use crate::module::config::{ModuleConfig, ModuleSite};
use crate::module::uncore::Uncore;
use crate::observe::latency::Latencies;
use crate::observe::stall::Stall;
use crate::observe::stats::L2Stats;
use crate::observe::value_probe::{Contents, ValueProbe};
use crate::sm::flags::Flags;
use crate::sm::kernel_slot::{KernelSlot, entry};
use crate::sm::kernel_stats::KernelStats;
use crate::sm::page_waits::PageWaits;
use crate::sm::translation::Translation;
use std::sync::Arc;
use tombolo_design::ModelInput;
use tombolo_protocol::drain::{self, AcknowledgedStore, Pool, SuccessorWait};
use tombolo_protocol::{Class, Coherence};
use tombolo_types::stream::Program;
use tombolo_types::{ComponentId, Line, Mask, ModuleId, Ps, SmId};

/// State shared by the SMs of a module.
pub struct SmShared {
    /// Warps that wait for pages, and requests in flight for pages.
    pub(crate) pages: PageWaits,
    /// Way split of every L1 between local and remote lines, last received from the module's controller.
    pub(crate) l1_ways: WaySplit,
    /// The program executed by the CTAs.
    pub(crate) program: Arc<dyn Program>,
    /// Error from the decoding of a CTA, if any.
    pub(crate) failure: Option<String>,
    /// Launch in progress, indexed by kernel slot.
    pub(crate) launches: Vec<u32>,
    /// Statistics for ended CTAs, indexed by launch number in the program.
    pub(crate) counted: Vec<KernelStats>,
    /// Latencies of loads.
    pub latencies: Latencies,
    /// Stall class of a wait for a module's reply, indexed by module.
    stall_classes: Vec<Stall>,
}

/// Stall class of an SM's wait for a reply from module `by`.
fn stall_of<D: Contents>(config: &ModuleSite<D>, by: ModuleId) -> Stall {
    if by == config.module {
        Stall::OwnL2
    } else if config.layout.host() == Some(by) {
        Stall::Host
    } else if config.is_beyond(by) {
        Stall::Gpu
    } else {
        Stall::Module
    }
}

impl SmShared {
    /// Stall class of a wait for a reply from module `by`.
    #[inline]
    pub(crate) fn stall_of(&self, by: ModuleId) -> Stall {
        self.stall_classes[usize::from(by.0)]
    }

    /// A kernel's launch begins in a slot.
    pub(crate) fn begin(&mut self, slot: KernelSlot, launch: u32) {
        *entry(&mut self.launches, slot) = launch;
    }

    /// Adds an SM's statistics of the kernel in a slot.
    pub(crate) fn count(&mut self, slot: KernelSlot, counted: KernelStats) {
        let launch = *entry(&mut self.launches, slot) as usize;
        self.counted.resize(self.counted.len().max(launch + 1), KernelStats::default());
        self.counted[launch] = self.counted[launch].and(&counted);
    }

    /// Idle state, with the current way split of the module.
    pub(crate) fn new<D: Contents>(config: &ModuleSite<D>, ways: &WayPartition, program: Arc<dyn Program>) -> SmShared {
        SmShared {
            pages: PageWaits::default(),
            l1_ways: *ways.l1(),
            program,
            failure: None,
            launches: Vec::new(),
            counted: Vec::new(),
            latencies: Latencies::default(),
            stall_classes: (0..config.layout.all_modules()).map(|module| stall_of(config, ModuleId(module))).collect(),
        }
    }
}

/// An SM's mutable view of the module.
pub(crate) struct SmContext<'a, 'o, D: Contents> {
    /// The module's position in the machine.
    pub(crate) config: &'a ModuleSite<D>,
    /// State shared by all SMs.
    pub(crate) shared: &'a mut SmShared,
    /// Output for the SM's events.
    pub(crate) out: &'a mut Out<'o, D>,
}

impl<D: Contents> SmContext<'_, '_, D> {
    /// Ways in an L1 available for a fill with `line`.
    #[inline]
    pub(crate) fn l1_ways(&self, line: Line) -> Ways {
        let split = self.shared.l1_ways;
        let local = split.is_whole() || self.config.is_home(line);
        if local { split.local } else { split.remote }
    }
}

/// State shared by the slices of a group, with their part of the module's memory.
pub struct SliceShared<D: Contents> {
    /// Memory for the lines in the group.
    pub memory: Memory<D>,
    /// Known flags of the group's lines, used if the module has no publisher.
    flags: Flags,
    /// Deliveries in flight to the module's SMs.
    pub(crate) deliveries: Deliveries,
    /// A bank for the module's address translation, if the group has a bank.
    pub(crate) translation: Option<Translation>,
    /// Counters.
    pub(crate) stats: L2Stats,
    /// Bytes moved by these slices between the module's cache levels.
    pub traffic: LevelTraffic,
}

impl<D: Contents> SliceShared<D> {
    /// Idle state for slice group `group`.
    pub(crate) fn new(config: &ModuleSite<D>, built: &ModelInput, group: GroupIndex) -> SliceShared<D> {
        let slices = usize::from(config.machine.l2.slices) / group.groups as usize;
        let each = group.groups / u32::from(crate::convert::tlb_banks(&config.machine));
        let has_bank = group.index.is_multiple_of(each);
        let (first, sms) = (group.index as usize * slices, usize::from(config.layout.sms.max(1)));
        SliceShared {
            memory: Memory::new(crate::convert::memory(&config.machine, built.l3_write), group),
            flags: Flags::default(),
            deliveries: Deliveries::new((first, slices), sms),
            translation: has_bank
                .then(|| Translation::new(crate::convert::translation(&config.machine), config.schedule.tracks())),
            stats: L2Stats::default(),
            traffic: LevelTraffic::default(),
        }
    }

    /// Known flags for a line in the group. In a module with a publisher, the publisher holds all flags, because it
    /// sends lines from all slices.
    #[inline]
    pub(crate) fn flags_mut<'a>(&'a mut self, uncore: &'a mut Uncore<D>) -> &'a mut Flags {
        match &mut uncore.publisher {
            Some(publisher) => &mut publisher.flags,
            None => &mut self.flags,
        }
    }
}

/// A slice's read-only view of the module.
pub struct SliceView<'a, C, D: Contents> {
    /// The module's position in the machine.
    pub config: &'a ModuleConfig<C, D>,
    /// State shared by the slices in the group.
    pub(crate) shared: &'a SliceShared<D>,
    /// Parts present only once in the module.
    pub(crate) uncore: &'a Uncore<D>,
}

impl<C, D: Contents> Clone for SliceView<'_, C, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, D: Contents> Copy for SliceView<'_, C, D> {}

impl<C, D: Contents> SliceView<'_, C, D> {
    /// Prefetches into the host's caches the data read by a fetch of `line`, if this module's memory holds the line.
    #[inline]
    pub(crate) fn prefetch_memory(&self, line: Line) {
        if self.config.is_home(line) {
            self.shared.memory.prefetch(line);
        }
    }
}

/// Mutable view of the module, for a slice or for a component in its place.
pub struct SliceContext<'a, 'o, C, D: Contents> {
    /// The acting component, used in events as the source.
    pub id: ComponentId,
    /// The module's position in the machine.
    pub(crate) config: &'a ModuleConfig<C, D>,
    /// State shared by the slices in the group.
    pub(crate) shared: &'a mut SliceShared<D>,
    /// Parts present only once in the module.
    pub(crate) uncore: &'a mut Uncore<D>,
    /// Output for the component's events.
    pub(crate) out: &'a mut Out<'o, D>,
}

impl<'o, C, D: Contents> SliceContext<'_, 'o, C, D> {
    /// Read-only view with the same contents.
    #[inline]
    pub(crate) fn view(&self) -> SliceView<'_, C, D> {
        SliceView { config: self.config, shared: self.shared, uncore: self.uncore }
    }

    /// Ways in the L2 available to lines in a class.
    #[inline]
    pub(crate) fn l2_ways(&self, class: Class) -> Ways {
        match class {
            Class::Own => self.uncore.ways.l2().local,
            Class::GpuHome | Class::GpuRemote | Class::SystemRemote => self.uncore.ways.l2().remote,
        }
    }

    /// Mutable view for the module's uncore; events are sent as `id`.
    #[inline]
    pub(crate) fn at_uncore(&mut self) -> UncoreContext<'_, 'o, D> {
        UncoreContext { id: self.id, config: &self.config.site, uncore: self.uncore, out: self.out }
    }

    /// Known flags of a line in the group.
    #[inline]
    pub(crate) fn flags(&self) -> &Flags {
        match &self.uncore.publisher {
            Some(publisher) => &publisher.flags,
            None => &self.shared.flags,
        }
    }

    /// Mutable flags of the group, to record more.
    #[inline]
    pub(crate) fn flags_mut(&mut self) -> &mut Flags {
        self.shared.flags_mut(self.uncore)
    }

    /// Sends a packet to another module at its departure; returns when it has left.
    pub(crate) fn send(&mut self, departs: Departure, target: ModuleId, packet: Packet<D>) -> Ps {
        self.at_uncore().send(departs, target, packet)
    }

    /// Reads bytes in a line from memory.
    #[inline]
    pub(crate) fn read_memory(&mut self, line: Line, mask: Mask, departs: Departure) -> MemoryRead {
        self.shared.stats.memory_read_bytes += u64::from(mask.grains()) * self.config.machine.line.grain();
        self.shared.traffic.l2_l3 += self.config.packet_sizes.of(Payload::Read) + self.config.packet_sizes.answer(mask);
        self.shared.memory.fetch(self.out.now(), departs, line, mask)
    }

    /// Writes bytes in a line to memory; the contents are stored separately. Returns when memory has accepted the
    /// bytes.
    #[inline]
    pub(crate) fn store_memory(&mut self, line: Line, mask: Mask, departs: Departure) -> Ps {
        self.shared.stats.memory_write_bytes += u64::from(mask.grains()) * self.config.machine.line.grain();
        self.shared.traffic.l2_l3 += self.config.packet_sizes.of(Payload::store(mask));
        self.shared.memory.store(self.out.now(), departs, line, mask)
    }

    /// Delivers grains of a line to an SM at their departure. `message` builds the message from the arrival time; all
    /// grains are complete then, unless the SM's port is busy.
    pub(crate) fn deliver(
        &mut self,
        departs: Departure,
        sm: SmId,
        grains: u32,
        message: impl FnOnce(Ps) -> Message<D>,
    ) {
        let Self { config, shared, .. } = self;
        shared.traffic.l1_l2 += config.packet_sizes.of(Payload::Grains(grains));
        let source = config.source(self.id);
        let crossing = config.machine.crossbar.latency + config.packet_sizes.ingress_time(grains);
        let at = shared.deliveries.in_order((source, usize::from(sm.0)), departs.time() + crossing);
        let at = at + config.probe.delivery(config.module, source, sm);
        self.out.send(at, self.id, config.layout.sm(config.module, sm), message(at));
    }

    /// Counts a store about to leave the module; a store from another module counts as forwarded.
    pub(crate) fn post(&mut self, line: Line, origin: ModuleId, tickets: Tickets) -> Tickets {
        self.uncore.drains.post(self.config.leg(line, origin), tickets)
    }

    /// Acknowledges a store that this module found unnecessary, at `at` or immediately if `at` has passed.
    pub(crate) fn withdraw(&mut self, line: Line, tickets: Tickets, at: Ps) {
        let at = at.max(self.out.now() + Ps(1));
        let to = self.config.layout.controller(self.config.module);
        for (pool, ticket) in counted(self.config.leg(line, self.config.module), tickets) {
            self.out.send(at, self.id, to, Message::Acknowledged { pool, ticket });
        }
    }

    /// Notifies an SM in this module about the acceptance of its store, with effect at `at`.
    pub(crate) fn return_store(&mut self, sm: SmId, credit: Generation, at: Ps) {
        let now = self.out.now();
        let at = (at.max(now) + self.config.machine.crossbar.latency).max(now + Ps(1));
        self.out.send(at, self.id, self.config.layout.sm(self.config.module, sm), Message::StoreAccepted { credit });
    }
}

/// A component's mutable view of the module's uncore.
pub(crate) struct UncoreContext<'a, 'o, D: Contents> {
    /// The acting component, used in events as the source.
    pub(crate) id: ComponentId,
    /// The module's position in the machine.
    pub(crate) config: &'a ModuleSite<D>,
    /// Parts present only once in the module.
    pub(crate) uncore: &'a mut Uncore<D>,
    /// Output for the component's events.
    pub(crate) out: &'a mut Out<'o, D>,
}

impl<D: Contents> UncoreContext<'_, '_, D> {
    /// Sends a packet to another module at its departure; returns when it has left.
    pub(crate) fn send(&mut self, departs: Departure, target: ModuleId, packet: Packet<D>) -> Ps {
        self.uncore.port.send(OutgoingPacket { from: self.id, departs, target, packet }, self.config, self.out)
    }
}

impl<C: Coherence, D: Contents> SliceContext<'_, '_, C, D> {
    /// Acknowledges a store, sent by module `from` and accepted at `at`, to all senders. `ends`: set if the store
    /// travels no further. The origin module is then notified along the path on which the store came.
    pub(crate) fn acknowledge(&mut self, body: &LineRequest<D>, from: ModuleId, ends: bool, at: Ps) {
        let (config, origin) = (self.config, body.origin.module);
        let (beyond, at_home) = (config.is_beyond(from), config.is_home(body.line));
        let (pool, end) =
            AcknowledgedStore { origin, from, beyond, at_home, ends }.pools_to_decrement(&config.protocol);
        let back = at + config.notice_latency(from);
        let taken = Message::Acknowledged { pool, ticket: body.tickets.hop };
        self.out.send(back, self.id, config.layout.controller(from), taken);
        if let Some(pool) = end {
            let back = if origin == from { back } else { back + config.machine.module_link.latency };
            let taken = Message::Acknowledged { pool, ticket: body.tickets.end };
            self.out.send(back, self.id, config.layout.controller(origin), taken);
        }
    }

    /// Acknowledges an invalidation from `home`, complete at `ready`. A GPU home may first wait for acknowledgments to
    /// its forwarded invalidations. `earlier`: number of invalidations in flight before this one arrived.
    pub(crate) fn answer_invalidation(&mut self, (home, ticket): (ModuleId, Generation), ready: Ps, earlier: u32) {
        let (config, beyond) = (self.config, self.config.is_beyond(home));
        let awaits = match drain::successor_wait(&config.protocol) {
            SuccessorWait::All => true,
            SuccessorWait::Forwarded => self.uncore.drains.invalidations() > earlier,
            SuccessorWait::Nothing => false,
        };
        let waiter = DrainWaiter::Home { module: home, ticket, ready };
        if awaits && beyond && config.routing.hierarchical && self.uncore.drains.await_invalidations(waiter) {
            return;
        }
        let at = ready + config.notice_latency(home);
        let taken = Message::Acknowledged { pool: Pool::of_invalidations(beyond), ticket };
        self.out.send(at, self.id, config.layout.controller(home), taken);
    }
}
