//! L2 slice with its part of the coherence directory: the protocol's host in the timing model.
//!
//! State changes when a request arrives. Its effects are delayed by the slice's port and access latency, a fill's
//! effects by the port alone. A request without an MSHR waits in the input queue for its level, and younger requests
//! wait behind it. A store without a credit waits together with younger requests to its line. A request to a line with
//! a pending miss parks on this miss. Every waiting request is retried as soon as its resource is freed, within this
//! event.
//!
//! Levels (virtual channels) keep the machine free of deadlock: a request depends only on resources that higher levels
//! can still allocate. Level 0 carries requests from this module's SMs, level 1 requests from another module to this
//! GPU home. Level 2 carries requests from another module to this system home, with memory as an unconditional
//! responder.
//!
//! - `latency`: latency accounting. `publish`: publication of written data to subscribed pages.
//! - `request`: requests, from arrival to their effects. `bypass`: requests that memory serves while bypassing the L2.
//!   `mshr_reserve`: MSHR allocation between levels. `outgoing_misses`: requests at the GPU's port. `credit_queue`: stores without credit.
//! - `fill`: fills and replies. `transfer`: host reads and writes between kernels. `invalidate`: invalidations and the
//!   directory. `write_back`: line installation, eviction and write-back. `prefetch`: hints for the host's caches.

mod bypass;
mod credit_queue;
mod fill;
mod host;
mod invalidate;
mod latency;
mod mshr_reserve;
mod outgoing_misses;
mod prefetch;
mod publish;
mod request;
mod transfer;
mod write_back;

use self::credit_queue::CreditQueue;
use self::mshr_reserve::MshrReserve;
use self::outgoing_misses::OutgoingMisses;
use crate::fabric::packet::{Packet, Payload};
use crate::l2::cache::Cache;
use crate::l2::departure::Departure;
use crate::l2::directory::Directory;
use crate::l2::mshr::{EntryId, MAX_ENTRIES, Mshr, MshrConfig, PerEntry};
use crate::l2::outstanding::Tickets;
use crate::message::{Flag, LineRequest};
use crate::module::actions::Actions;
use crate::module::config::ModuleConfig;
use crate::module::context::SliceContext;
use crate::observe::latency::{LatencyBelow, ModuleLatency, Note, Stamp};
use crate::observe::value_probe::Contents;
use rustc_hash::FxHashMap;
use tombolo_machine::{MISS_LEVELS, MISS_LIMIT};
use tombolo_protocol::host::Backlog;
use tombolo_protocol::{
    Class, Coherence, Homes, L2Event, LineSlot, LineState, ModuleSet, Pending, Request, Requester, Sharers, coherence,
};
use tombolo_types::{ComponentId, Interval, Line, Mask, ModuleId, Ps, Scope, Serializer, SmId};

const _: () = assert!(Mshr::<Miss, Waiter, ()>::ENTRY_BYTES <= 64);
// A checked machine has no more MSHRs than entry identifiers.
const _: () = assert!(MISS_LIMIT == MAX_ENTRIES as u64);

/// Number of request levels; the lowest comes first.
const LEVELS: usize = MISS_LEVELS as usize;

/// Request source, ordered by level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestSource {
    /// An SM in this slice's module.
    Local,
    /// A remote module, addressing this slice as GPU home.
    ToGpuHome(ModuleId),
    /// A remote module, addressing this slice as system home.
    ToSystemHome(ModuleId),
}

/// Request at a slice.
#[derive(Clone, Copy, Debug)]
struct SliceRequest<D: Contents> {
    source: RequestSource,
    /// Homes for the request's line, from this module's point of view.
    homes: Homes,
    /// Arrival time for the complete request.
    arrived: Stamp,
    body: LineRequest<D>,
}

// The size must not grow with the timestamp, because many items can wait.
const _: () = assert!(size_of::<SliceRequest<()>>() <= 48);

impl<D: Contents> SliceRequest<D> {
    /// Creates an item for a request from `from`, complete at `ready`.
    #[inline]
    fn new<C: Coherence>(
        from: Requester,
        body: LineRequest<D>,
        ready: Ps,
        here: &SliceContext<'_, '_, C, D>,
    ) -> SliceRequest<D> {
        let homes = here.config.homes(body.line);
        let source = match from {
            Requester::Local => RequestSource::Local,
            Requester::Module(module) if homes.system == here.config.module => RequestSource::ToSystemHome(module),
            Requester::Module(module) => RequestSource::ToGpuHome(module),
        };
        SliceRequest { source, homes, arrived: Stamp::of(ready), body }
    }

    /// Requester that sent this item.
    #[inline]
    fn from(&self) -> Requester {
        match self.source {
            RequestSource::Local => Requester::Local,
            RequestSource::ToGpuHome(module) | RequestSource::ToSystemHome(module) => Requester::Module(module),
        }
    }

    /// Level (virtual channel) of this request.
    #[inline]
    fn level(&self) -> usize {
        match self.source {
            RequestSource::Local => 0,
            RequestSource::ToGpuHome(_) => 1,
            RequestSource::ToSystemHome(_) => 2,
        }
    }

    #[inline]
    fn is_read(&self) -> bool {
        matches!(self.body.request, Request::Read { .. })
    }

    /// True if the request bypasses this L2.
    #[inline]
    fn passes_l2<C: Coherence>(&self, here: &SliceContext<'_, '_, C, D>) -> bool {
        coherence::bypasses_l2(&here.config.protocol, here.config.module, self.homes, self.from())
    }

    /// True for another module's read that this module's memory serves after an L2 miss.
    fn reads_at_memory<C: Coherence>(&self, here: &SliceContext<'_, '_, C, D>) -> bool {
        let is_met_here = self.homes.system == here.config.module && self.from() != Requester::Local;
        is_met_here && here.config.protocol.memory_answers()
    }

    /// True if a credit is available for a store that may be forwarded; also true for requests without need for a
    /// credit.
    #[inline]
    fn credit_left<C: Coherence>(&self, here: &SliceContext<'_, '_, C, D>) -> bool {
        if here.uncore.publisher.is_some()
            && let Some(has_room) = self.publication_has_room(here)
        {
            return has_room;
        }
        self.is_read()
            || self.homes.system == here.config.module
            || here.uncore.drains.has_room(Self::forwards(self.level()))
    }

    /// True if a forwarded store at this level originates from another module.
    fn forwards(level: usize) -> bool {
        level > 0
    }
}

/// Pending miss: a flattened [`Pending`], to fit an MSHR into a single host cache line.
#[derive(Clone, Copy, Debug)]
struct Miss {
    mask: Mask,
    stale: Mask,
    scope: Scope,
    /// Homes for the line, from this module's point of view.
    homes: Homes,
    class: Class,
    /// Set if a release waits for the line's dirty bytes, to be written back after the fill.
    flushes: bool,
    /// Level of the request causing this miss.
    level: u8,
}

impl Miss {
    fn pending(&self) -> Pending {
        Pending { mask: self.mask, stale: self.stale, scope: self.scope }
    }

    fn set_pending(&mut self, Pending { mask, stale, scope }: Pending) {
        (self.mask, self.stale, self.scope) = (mask, stale, scope);
    }
}

/// Read waiting for a miss.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    from: Requester,
    /// Module that contains the requesting SM.
    module: ModuleId,
    sm: SmId,
    /// MSHR that waits for the reply: in the requesting SM, or in the L2 that forwarded the read, if it allocated an
    /// MSHR.
    register: EntryId,
    mask: Mask,
    flag: Flag,
    /// Arrival time for the complete request.
    arrived: Stamp,
}

/// DRAM fetch for a miss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DramFetch {
    /// Fetched line.
    pub(crate) line: Line,
    /// Bytes to fetch.
    pub(crate) mask: Mask,
    /// MSHR that waits for the bytes.
    pub(crate) register: EntryId,
    /// DRAM latency breakdown, known after the fetch.
    pub(crate) latency: ModuleLatency,
}

/// Line bytes that have arrived in reply to a read.
#[derive(Clone, Copy, Debug)]
struct ReplyBytes<D> {
    line: Line,
    mask: Mask,
    data: D,
    /// Module that served the read.
    by: ModuleId,
    /// Latency from the request's departure to the reply's arrival here, and its unloaded link part.
    below: LatencyBelow,
    unloaded: u32,
}

/// Protocol step result: the slot before and after it, and the resulting actions.
#[derive(Clone, Copy)]
struct StepResult<'s, D: Contents> {
    before: &'s LineSlot<D>,
    after: &'s LineSlot<D>,
    actions: &'s Actions<D>,
}

/// Result of a request's attempt to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    Accepted,
    NoMshr,
}

/// L2 slice state.
pub struct Slice<D: Contents> {
    id: ComponentId,
    /// Slice index within the module.
    index: usize,
    cache: Cache<LineState<D>>,
    /// Number of lines with dirty bytes, per class.
    dirty: [u32; Class::ALL.len()],
    directory: Directory<Sharers>,
    mshr: Mshr<Miss, Waiter, SliceRequest<D>>,
    registers: MshrReserve,
    outgoing: OutgoingMisses,
    queues: [Backlog<SliceRequest<D>>; LEVELS],
    /// Total number of requests in the input queues.
    queued: u32,
    /// Stores waiting for a credit, with the requests behind them, per level.
    uncredited: [CreditQueue<SliceRequest<D>>; LEVELS],
    /// Line requested by a head-of-queue read stalled for an MSHR, per level. The read is retried when an MSHR frees,
    /// or when its line becomes present or pending.
    starved: [Option<Line>; LEVELS],
    /// Credits held by releases, keyed by line: each such line has dirty bytes and a pending miss.
    flushes: FxHashMap<Line, Tickets>,
    port: Serializer,
    /// Minimum port occupancy per request.
    request: Interval,
    /// Departure time of the latest request to another module, per MSHR.
    sent: PerEntry<Stamp>,
}

impl<D: Contents> Slice<D> {
    /// Creates an empty slice.
    pub(crate) fn new<C: Coherence>(id: ComponentId, config: &ModuleConfig<C, D>) -> Slice<D> {
        let machine = &config.machine;
        Slice {
            id,
            index: config.source(id),
            cache: Cache::new(crate::convert::l2_slice(machine)),
            dirty: [0; Class::ALL.len()],
            directory: Directory::new(crate::convert::directory_slice(machine)),
            mshr: Mshr::new(MshrConfig { entries: machine.l2.mshrs, merges: machine.l2.merges }),
            registers: MshrReserve::new(machine.l2.mshrs, crate::convert::miss_levels(machine)),
            outgoing: OutgoingMisses::new(crate::convert::outgoing_misses(machine, machine.line.bytes())),
            queues: Default::default(),
            queued: 0,
            uncredited: std::array::from_fn(|_| CreditQueue::new()),
            starved: [None; LEVELS],
            flushes: FxHashMap::default(),
            port: Serializer::new(machine.l2.rate),
            request: crate::convert::request_interval(machine),
            sent: PerEntry::default(),
        }
    }

    /// Component id.
    pub(crate) fn id(&self) -> ComponentId {
        self.id
    }

    /// Busy time of the slice's port.
    pub(crate) fn busy(&self) -> Ps {
        self.port.busy()
    }

    /// Accepts a request from an SM in this module.
    pub(crate) fn local<C: Coherence>(&mut self, body: LineRequest<D>, here: &mut SliceContext<'_, '_, C, D>) {
        here.shared.traffic.l1_l2 += here.config.packet_sizes.of(Payload::of(&body.request));
        let now = here.out.now();
        self.offer(SliceRequest::new(Requester::Local, body, now, here), now, here);
    }

    /// Handles a packet from another module, complete at `ready`.
    pub(crate) fn arrive<C: Coherence>(
        &mut self,
        source: ModuleId,
        packet: &Packet<D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        match *packet {
            Packet::Request(body) => {
                self.offer(SliceRequest::new(Requester::Module(source), body, ready, here), ready, here);
            }
            Packet::Flag { line, flag } => here.flags_mut().learn(line, flag),
            Packet::Fill { register, line, mask, data, by, inside, link } => {
                let time = LatencyBelow { inside: inside.read().into(), link: link.read() };
                let (below, unloaded) = self.latency_below((source, by), (mask, register), (time, ready), here);
                self.fill(ReplyBytes { line, mask, data, by, below, unloaded }, register, ready, here);
            }
            Packet::Invalidate { line, cause, ticket } => {
                let earlier = here.uncore.drains.invalidations();
                self.invalidate(line, cause, ready, here);
                here.answer_invalidation((source, ticket), ready, earlier);
            }
            Packet::Downgrade { line } => {
                let mut slot = self.view(line, here);
                let before = slot;
                let event = L2Event::Downgrade { from: source };
                self.step(&mut slot, event, here);
                self.keep_entry(&before, &slot, Departure::at(ready), here);
            }
            Packet::AtomicResult { origin, line: _, data: _, by: _ } => {
                here.send(Departure::at(ready), origin.module, *packet);
            }
            Packet::Answer { .. }
            | Packet::Act { .. }
            | Packet::PhaseDone { .. }
            | Packet::Chunk(_)
            | Packet::BlockMessage(_) => {
                panic!("slice {:?} of {} got a packet for another component: {packet:?}", self.id, here.config.module)
            }
        }
    }

    /// Starts a DRAM fetch that waited for the slice's port.
    pub(crate) fn fetch_later<C: Coherence>(&mut self, wanted: DramFetch, here: &mut SliceContext<'_, '_, C, D>) {
        let leaves = Departure::at(here.out.now()).after(here.config.machine.l2.hit_latency);
        self.fetch(wanted, leaves, here);
    }

    /// Handles a completed DRAM fetch.
    pub(crate) fn memory<C: Coherence>(&mut self, wanted: DramFetch, here: &mut SliceContext<'_, '_, C, D>) {
        let DramFetch { line, mask, register, latency: time } = wanted;
        let data = here.shared.memory.read(line);
        let below = LatencyBelow { inside: time, link: 0 };
        let arrived = ReplyBytes { line, mask, data, by: here.config.module, below, unloaded: 0 };
        self.fill(arrived, register, here.out.now(), here);
    }

    /// True if requests wait in the input queues.
    pub(crate) fn has_queued(&self) -> bool {
        self.queued > 0
    }

    /// Retries requests that wait for a store credit, then requests in the input queues.
    pub(crate) fn serve_queues<C: Coherence>(&mut self, here: &mut SliceContext<'_, '_, C, D>) {
        if self.queued == 0 {
            return;
        }
        for level in (0..LEVELS).rev() {
            if !self.uncredited[level].is_empty() {
                self.serve_uncredited(level, here);
            }
            loop {
                if let Some(line) = self.starved[level]
                    && !self.registers.has_room(level)
                {
                    debug_assert!(self.mshr.find(line).is_none() && self.cache.peek(line).is_none(), "{line} is fed");
                    break;
                }
                let Some(&item) = self.queues[level].get(0) else { break };
                self.starved[level] = None;
                let now = here.out.now();
                if self.take(&item, now, here) == Admission::NoMshr {
                    break;
                }
                self.queues[level].pop();
                self.queued -= 1;
                self.prefetch_queue(level, here.view());
            }
        }
    }

    /// Clears the stall on a line for queued reads: the line became present or pending, and their reads need no
    /// further MSHR.
    fn clear_stall(&mut self, line: Line) {
        for starved in &mut self.starved {
            if *starved == Some(line) {
                *starved = None;
            }
        }
    }

    /// Requests that wait for a resource, for the deadlock report.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&'static str, Line)> + '_ {
        let queued = self.queues.iter().flat_map(Backlog::iter).map(|item| ("an input queue", item.body.line));
        let uncredited = self.uncredited.iter().flat_map(CreditQueue::requests);
        let uncredited = uncredited.map(|item| ("a lack of store credits", item.body.line));
        let misses = self.mshr.entries().map(|entry| ("a pending miss", self.mshr.line(entry)));
        queued.chain(uncredited).chain(misses)
    }

    fn view<C: Coherence>(&mut self, line: Line, here: &SliceContext<'_, '_, C, D>) -> LineSlot<D> {
        let entry = self.mshr.find(line);
        let homes = here.config.homes(line);
        let mut slot = self.view_line(line, homes, entry);
        self.view_entry(&mut slot, here);
        slot
    }

    /// Looks up the slot's directory entry, if this module is a home for the line.
    #[inline]
    fn view_entry<C: Coherence>(&mut self, slot: &mut LineSlot<D>, here: &SliceContext<'_, '_, C, D>) {
        let is_home = slot.homes.system == here.config.module || slot.homes.gpu == here.config.module;
        if is_home && here.config.protocol.has_directory() {
            slot.entry = self.directory.lookup(slot.line_id).copied();
        }
    }

    /// Returns the slot without its directory entry. Sufficient for fills, and for reads by this module's SMs unless
    /// the directory tracks local copies.
    #[inline(never)]
    fn view_line(&mut self, line: Line, homes: Homes, miss: Option<EntryId>) -> LineSlot<D> {
        self.slot(line, homes, miss)
    }

    /// Inlined [`Slice::view_line`], for the hot paths: every request and every fill.
    #[inline(always)]
    fn slot(&mut self, line: Line, homes: Homes, miss: Option<EntryId>) -> LineSlot<D> {
        LineSlot {
            line_id: line,
            homes,
            line: self.cache.lookup(line).copied(),
            pending: miss.map(|entry| self.mshr.get(entry).pending()),
            entry: None,
        }
    }

    /// Performs a protocol step that must not be refused.
    #[inline]
    fn step<C: Coherence>(
        &mut self,
        slot: &mut LineSlot<D>,
        event: L2Event<D>,
        here: &SliceContext<'_, '_, C, D>,
    ) -> Actions<D> {
        let (before, mut actions) = (*slot, Actions::default());
        if let Err(refusal) = here.config.protocol.step(&here.config.map, here.config.module, slot, event, &mut actions)
        {
            panic!("{}, {}: {event:?} refused: {refusal:?}", here.config.module, slot.line_id);
        }
        debug_assert!(keeps_to_edges(&before, &actions, here), "{}, {}: {event:?}", here.config.module, slot.line_id);
        actions
    }
}

/// True if a step sends messages only along edges that the protocol declares.
fn keeps_to_edges<C: Coherence, D: Contents>(
    before: &LineSlot<D>,
    actions: &Actions<D>,
    here: &SliceContext<'_, '_, C, D>,
) -> bool {
    let (at, protocol) = (here.config.module, &here.config.protocol);
    let requests = actions.forwards.iter().flatten().map(|(to, _)| *to);
    let up: ModuleSet = requests.chain(actions.downgrade).collect();
    let down: ModuleSet = actions.invalidate.iter().collect();
    let above = protocol.next_level(at, before.homes);
    let named = |entry| protocol.invalidation_targets(&here.config.map, at, before.line_id, entry);
    let named = before.entry.map_or(ModuleSet::NONE, named);
    up.difference(above).is_empty() && down.difference(named).is_empty()
}
