//! One slice of a module's L2 with its part of the coherence directory: the host of the protocol.
//!
//! State changes when a request arrives; what it causes is delayed by the slice's port and access time, what a fill
//! causes by the port alone. A request that lacks a miss register waits in the input queue of its level, and requests
//! behind it wait with it. A store that lacks a credit waits with those of its line that come after it. A request whose
//! line has a miss pending parks on that miss. All run again when what they lack is freed, inside the event that frees it.
//!
//! Levels keep the machine free of deadlock: a request depends only on resources that higher levels may
//! still take. Level 0 comes from this module's SMs, level 1 from another module to this GPU home, level 2
//! to this system home, where memory always answers.
//!
//! - `held`: what requests wait for here. `publish`: pages published to their subscribers.
//! - `request`: requests, from their arrival to what they cause. `past`: those that memory takes in place of the L2. `registers`: which of them may miss.
//!   `uncredited`: stores that wait for a credit. `fill`: answers. `transfer`: what the host reads and writes between kernels.
//!   `invalidate`: invalidations and the directory. `write_back`: lines stored and evicted. `prefetch`: hints for the
//!   host's caches.

mod fill;
mod held;
mod host;
mod invalidate;
mod past;
mod prefetch;
mod publish;
mod registers;
mod request;
mod transfer;
mod uncredited;
mod write_back;

use self::registers::Registers;
use self::uncredited::Uncredited;
use crate::actions::Actions;
use crate::cache::Cache;
use crate::context::SliceContext;
use crate::departure::Departure;
use crate::directory::Directory;
use crate::latency::{Below, Inside, Note, Stamp};
use crate::message::{Flag, LineRequest};
use crate::mshr::{ByEntry, EntryId, MAX_ENTRIES, Mshr, MshrConfig};
use crate::outstanding::Tickets;
use crate::packet::{Packet, Payload};
use crate::site::Site;
use crate::watch::Contents;
use rustc_hash::FxHashMap;
use tombolo_machine::{MISS_LEVELS, MISS_LIMIT};
use tombolo_protocol::host::Backlog;
use tombolo_protocol::{
    Class, Coherence, Event, Homes, LineState, ModuleSet, Pending, Request, Requester, Sharers, Slot, coherence,
};
use tombolo_types::{ComponentId, Interval, Line, Mask, ModuleId, Ps, Scope, Serializer, SmId};

const _: () = assert!(Mshr::<Miss, Waiter, ()>::ENTRY_BYTES <= 64);
// A machine that passes its checks has no more miss registers than there are names.
const _: () = assert!(MISS_LIMIT == MAX_ENTRIES as u64);

/// Levels of requests, least first.
const LEVELS: usize = MISS_LEVELS as usize;

/// From where a request has come to a slice, least level first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// An SM of the slice's module.
    Local,
    /// Another module, to this GPU home.
    ToGpuHome(ModuleId),
    /// Another module, to this system home.
    ToSystemHome(ModuleId),
}

/// A request at a slice.
#[derive(Clone, Copy, Debug)]
struct Item<D: Contents> {
    source: Source,
    /// Of its line, as this module sees them.
    homes: Homes,
    /// When it was wholly here.
    arrived: Stamp,
    body: LineRequest<D>,
}

// As long as without the time: those that wait are many.
const _: () = assert!(size_of::<Item<()>>() <= 48);

impl<D: Contents> Item<D> {
    /// The request of `from`, wholly here at `ready`.
    #[inline]
    fn new<C: Coherence>(
        from: Requester,
        body: LineRequest<D>,
        ready: Ps,
        here: &SliceContext<'_, '_, C, D>,
    ) -> Item<D> {
        let homes = here.site.homes(body.line);
        let source = match from {
            Requester::Local => Source::Local,
            Requester::Module(module) if homes.system == here.site.module => Source::ToSystemHome(module),
            Requester::Module(module) => Source::ToGpuHome(module),
        };
        Item { source, homes, arrived: Stamp::of(ready), body }
    }

    /// Who has sent it.
    #[inline]
    fn from(&self) -> Requester {
        match self.source {
            Source::Local => Requester::Local,
            Source::ToGpuHome(module) | Source::ToSystemHome(module) => Requester::Module(module),
        }
    }

    /// Its level.
    #[inline]
    fn level(&self) -> usize {
        match self.source {
            Source::Local => 0,
            Source::ToGpuHome(_) => 1,
            Source::ToSystemHome(_) => 2,
        }
    }

    #[inline]
    fn is_read(&self) -> bool {
        matches!(self.body.request, Request::Read { .. })
    }

    /// Whether it passes this L2 without looking into it.
    #[inline]
    fn passes_l2<C: Coherence>(&self, here: &SliceContext<'_, '_, C, D>) -> bool {
        coherence::passes_l2(&here.site.protocol, here.site.module, self.homes, self.from())
    }

    /// Whether it is a read of another module, which this module's memory answers where the L2 does not.
    fn reads_at_memory<C: Coherence>(&self, here: &SliceContext<'_, '_, C, D>) -> bool {
        let is_met_here = self.homes.system == here.site.module && self.from() != Requester::Local;
        is_met_here && here.site.protocol.ordering_point().is_memory()
    }

    /// Whether a store that may have to travel on finds a credit.
    #[inline]
    fn credit_left<C: Coherence>(&self, here: &SliceContext<'_, '_, C, D>) -> bool {
        if here.uncore.publisher.is_some()
            && let Some(has_room) = self.publication_has_room(here)
        {
            return has_room;
        }
        self.is_read()
            || self.homes.system == here.site.module
            || here.uncore.drains.has_room(Self::forwards(self.level()))
    }

    /// Whether a store of a level that travels on is another module's.
    fn forwards(level: usize) -> bool {
        level > 0
    }
}

/// A pending miss: [`Pending`], flat, for its register is one cache line of the host.
#[derive(Clone, Copy, Debug)]
struct Miss {
    mask: Mask,
    stale: Mask,
    scope: Scope,
    /// Of the line, as this module sees them.
    homes: Homes,
    class: Class,
    /// Whether a release waits for the line's dirty bytes, which leave after the fill.
    flushes: bool,
    /// Of the request that caused it.
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

/// A read that waits for a miss.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    from: Requester,
    /// Of the SM that has asked first.
    module: ModuleId,
    sm: SmId,
    /// The miss register that waits for the answer: that of the SM, or of the L2 before this one where that has one.
    register: EntryId,
    mask: Mask,
    flag: Flag,
    /// When its request was wholly here.
    arrived: Stamp,
}

/// Bytes of a line that a miss has memory read.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The line.
    pub line: Line,
    /// Its bytes.
    pub mask: Mask,
    /// The miss register that waits for them.
    pub register: EntryId,
    /// What memory took for them, once it has them.
    pub time: Inside,
}

/// The bytes of a line that answer a read.
#[derive(Clone, Copy, Debug)]
struct Arrived<D> {
    line: Line,
    mask: Mask,
    data: D,
    /// The module that has answered it.
    by: ModuleId,
    /// What passed from the request's departure to their arrival here, and how much of it an idle link takes.
    below: Below,
    wire: u32,
}

/// What a step of the protocol made of a slot.
#[derive(Clone, Copy)]
struct Step<'s, D: Contents> {
    before: &'s Slot<D>,
    after: &'s Slot<D>,
    actions: &'s Actions<D>,
}

/// Whether a request could be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Yes,
    NoRoom,
}

/// One L2 slice.
pub struct Slice<D: Contents> {
    id: ComponentId,
    /// Its index in the module.
    index: usize,
    cache: Cache<LineState<D>>,
    /// By class: lines in it with dirty bytes.
    dirty: [u32; Class::ALL.len()],
    directory: Directory<Sharers>,
    mshr: Mshr<Miss, Waiter, Item<D>>,
    registers: Registers,
    queues: [Backlog<Item<D>>; LEVELS],
    /// Requests in its input queues.
    queued: u32,
    /// By level: stores that wait for a credit, with those behind them.
    uncredited: [Uncredited<Item<D>>; LEVELS],
    /// By level: the line of the first request of its queue, where that is a read that waits for a miss register: it is
    /// looked at again when there is one, or when its line has a miss pending or is here.
    starved: [Option<Line>; LEVELS],
    /// By line with a miss pending whose dirty bytes a release waits for: the credits of that store.
    flushes: FxHashMap<Line, Tickets>,
    port: Serializer,
    /// What a request takes of the port, at least.
    request: Interval,
    /// By miss register: when its last request left for another module.
    sent: ByEntry<Stamp>,
}

impl<D: Contents> Slice<D> {
    /// An empty slice.
    pub fn new<C: Coherence>(id: ComponentId, site: &Site<C, D>) -> Slice<D> {
        let machine = &site.machine;
        Slice {
            id,
            index: site.source(id),
            cache: Cache::new(crate::convert::l2_slice(machine)),
            dirty: [0; Class::ALL.len()],
            directory: Directory::new(crate::convert::directory_slice(machine)),
            mshr: Mshr::new(MshrConfig { entries: machine.l2.mshrs, merges: machine.l2.merges }),
            registers: Registers::new(machine.l2.mshrs, crate::convert::miss_levels(machine)),
            queues: Default::default(),
            queued: 0,
            uncredited: std::array::from_fn(|_| Uncredited::new()),
            starved: [None; LEVELS],
            flushes: FxHashMap::default(),
            port: Serializer::new(machine.l2.rate),
            request: crate::convert::request_interval(machine),
            sent: ByEntry::default(),
        }
    }

    /// Its id.
    pub fn id(&self) -> ComponentId {
        self.id
    }

    /// How long its port was in use.
    pub fn busy(&self) -> Ps {
        self.port.busy()
    }

    /// A request of an SM of this module.
    pub fn local<C: Coherence>(&mut self, body: LineRequest<D>, here: &mut SliceContext<'_, '_, C, D>) {
        here.shared.traffic.l1_l2 += here.site.weights.of(Payload::of(&body.request));
        let now = here.out.now();
        self.offer(Item::new(Requester::Local, body, now, here), now, here);
    }

    /// What came over the links, wholly inside at `ready`.
    pub fn arrive<C: Coherence>(
        &mut self,
        source: ModuleId,
        packet: &Packet<D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, C, D>,
    ) {
        match *packet {
            Packet::Request(body) => {
                self.offer(Item::new(Requester::Module(source), body, ready, here), ready, here);
            }
            Packet::Flag { line, flag } => here.flags_mut().learn(line, flag),
            Packet::Fill { register, line, mask, data, by, inside, link } => {
                let time = Below { inside: inside.read().into(), link: link.read() };
                let (below, wire) = self.passed((source, by), (mask, register), (time, ready), here);
                self.fill(Arrived { line, mask, data, by, below, wire }, register, ready, here);
            }
            Packet::Invalidate { line, cause, ticket } => {
                let earlier = here.uncore.drains.invalidations();
                self.invalidate(line, cause, ready, here);
                here.answer_invalidation((source, ticket), ready, earlier);
            }
            Packet::Downgrade { line } => {
                let mut slot = self.view(line, here);
                let before = slot;
                let event = Event::Downgrade { from: source };
                self.step(&mut slot, event, here);
                self.keep_entry(&before, &slot, Departure::at(ready), here);
            }
            Packet::Old { origin, line: _, data: _, by: _ } => {
                here.send(Departure::at(ready), origin.module, *packet);
            }
            Packet::Answer { .. } | Packet::Act { .. } | Packet::Acted { .. } | Packet::Chunk(_) | Packet::Told(_) => {
                panic!("slice {:?} of {} got a packet for another component: {packet:?}", self.id, here.site.module)
            }
        }
    }

    /// A fetch that waited for the slice's port goes to memory.
    pub fn fetch_later<C: Coherence>(&mut self, wanted: Wanted, here: &mut SliceContext<'_, '_, C, D>) {
        let leaves = Departure::at(here.out.now()).after(here.site.machine.l2.hit_latency);
        self.fetch(wanted, leaves, here);
    }

    /// Memory has answered a fetch.
    pub fn memory<C: Coherence>(&mut self, wanted: Wanted, here: &mut SliceContext<'_, '_, C, D>) {
        let Wanted { line, mask, register, time } = wanted;
        let data = here.shared.memory.read(line);
        let below = Below { inside: time, link: 0 };
        let arrived = Arrived { line, mask, data, by: here.site.module, below, wire: 0 };
        self.fill(arrived, register, here.out.now(), here);
    }

    /// Whether requests wait in its input queues.
    pub fn has_queued(&self) -> bool {
        self.queued > 0
    }

    /// Runs what waits for a store credit, and then what waits in the input queues.
    pub fn serve_queues<C: Coherence>(&mut self, here: &mut SliceContext<'_, '_, C, D>) {
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
                if self.take(&item, now, here) == Taken::NoRoom {
                    break;
                }
                self.queues[level].pop();
                self.queued -= 1;
                self.prefetch_queue(level, here.view());
            }
        }
    }

    /// A request that waits for a miss register of its own need not have one for this line any more.
    fn feed(&mut self, line: Line) {
        for starved in &mut self.starved {
            if *starved == Some(line) {
                *starved = None;
            }
        }
    }

    /// Requests that wait for a resource, for a report of who waits for whom.
    pub fn waiting(&self) -> impl Iterator<Item = (&'static str, Line)> + '_ {
        let queued = self.queues.iter().flat_map(Backlog::iter).map(|item| ("an input queue", item.body.line));
        let uncredited = self.uncredited.iter().flat_map(Uncredited::requests);
        let uncredited = uncredited.map(|item| ("a lack of store credits", item.body.line));
        let misses = self.mshr.entries().map(|entry| ("a pending miss", self.mshr.line(entry)));
        queued.chain(uncredited).chain(misses)
    }

    fn view<C: Coherence>(&mut self, line: Line, here: &SliceContext<'_, '_, C, D>) -> Slot<D> {
        let entry = self.mshr.find(line);
        let homes = here.site.homes(line);
        let mut slot = self.view_line(line, homes, entry);
        self.view_entry(&mut slot, here);
        slot
    }

    /// Looks up the slot's directory entry.
    #[inline]
    fn view_entry<C: Coherence>(&mut self, slot: &mut Slot<D>, here: &SliceContext<'_, '_, C, D>) {
        let is_home = slot.homes.system == here.site.module || slot.homes.gpu == here.site.module;
        if is_home && here.site.protocol.has_directory() {
            slot.entry = self.directory.lookup(slot.line_id).copied();
        }
    }

    /// The slot without its directory entry: for fills, and for reads of this module's SMs unless entries stand for what is
    /// here.
    #[inline(never)]
    fn view_line(&mut self, line: Line, homes: Homes, miss: Option<EntryId>) -> Slot<D> {
        self.slot(line, homes, miss)
    }

    /// [`Slice::view_line`], for each request and each fill.
    #[inline(always)]
    fn slot(&mut self, line: Line, homes: Homes, miss: Option<EntryId>) -> Slot<D> {
        Slot {
            line_id: line,
            homes,
            line: self.cache.lookup(line).copied(),
            pending: miss.map(|entry| self.mshr.get(entry).pending()),
            entry: None,
        }
    }

    /// A step that must not be refused.
    #[inline]
    fn step<C: Coherence>(
        &mut self,
        slot: &mut Slot<D>,
        event: Event<D>,
        here: &SliceContext<'_, '_, C, D>,
    ) -> Actions<D> {
        let (before, mut actions) = (*slot, Actions::default());
        if let Err(refusal) = here.site.protocol.step(&here.site.map, here.site.module, slot, event, &mut actions) {
            panic!("{}, {}: {event:?} refused: {refusal:?}", here.site.module, slot.line_id);
        }
        debug_assert!(keeps_to_edges(&before, &actions, here), "{}, {}: {event:?}", here.site.module, slot.line_id);
        actions
    }
}

/// Whether what a step sends goes to whom the protocol says that it may.
fn keeps_to_edges<C: Coherence, D: Contents>(
    before: &Slot<D>,
    actions: &Actions<D>,
    here: &SliceContext<'_, '_, C, D>,
) -> bool {
    let (at, protocol) = (here.site.module, &here.site.protocol);
    let requests = actions.forwards.iter().flatten().map(|(to, _)| *to);
    let up: ModuleSet = requests.chain(actions.downgrade).collect();
    let down: ModuleSet = actions.invalidate.iter().collect();
    let above = protocol.above(at, before.homes);
    let named = |entry| protocol.named(&here.site.map, at, before.line_id, entry);
    let named = before.entry.map_or(ModuleSet::NONE, named);
    up.without(above).is_empty() && down.without(named).is_empty()
}
