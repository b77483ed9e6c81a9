//! A client of blocks: on a GPU an L2 above a stack, on the host a last-level cache above host memory.
//!
//! A request whose block has a transaction under way waits for its end, and so do those of the block behind it, in order. One
//! whose block is not here asks the home for it as soon as it has a place (`room`) and fewer blocks than the slice's miss
//! registers are asked for; those that lack one wait in one queue (`turn`).
//!
//! On the host the memory below the cache is host memory itself: a block that it is granted moves no bytes, its lines are read
//! when they are wanted, and what it evicts is in host memory before the home learns of it.

use super::did::Did;
use super::merge::Merging;
use super::room::Places;
use super::{Block, BlockSlice, Blocks, Bytes, Geometry, Held, MessageOf, taken};
use crate::cache::{BulkClass, Cache, Ways};
use crate::context::SliceContext;
use crate::departure::Departure;
use crate::message::{Flag, LineRequest, Message, Origin};
use crate::packet::Payload;
use crate::site::Site;
use crate::watch::Contents;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use tombolo_machine::coherent_host::RowPolicy;
use tombolo_protocol::block::ByteSet;
use tombolo_protocol::coherence;
use tombolo_protocol::host::Backlog;
use tombolo_protocol::nodes::{self, Answer, Carried, Event, Node, Nodes};
use tombolo_types::{Interval, Line, Mask, ModuleId, Ps, Scope, Serializer};

/// A line in the cache above.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Above {
    /// When its bytes are there.
    ready: Ps,
    /// Bytes that the memory below lacks.
    pub(super) written: Mask,
}

/// A block at a client.
pub(super) struct Cell<N: Nodes, D: Contents> {
    pub(super) slot: N::Slot<Held<D>>,
    /// Requests that wait for the end of its transaction, or for a place.
    pub(super) parked: VecDeque<LineRequest<D>>,
    /// Whether they wait for a place.
    pub(super) is_crowded_out: bool,
    /// Whether that transaction asks for it.
    asks: bool,
    /// The module that has said the last of it: those who waited have it to thank.
    pub(super) by: Option<ModuleId>,
    /// Releases that wait for it.
    pub(super) merging: Option<Merging>,
    /// Its lines that were used since it came, by bit.
    used: [u64; MOST_LINES / 64],
}

/// Lines of the largest block, of the shortest lines.
const MOST_LINES: usize = 256;

/// How many lines are used.
fn lines_used(used: &[u64; MOST_LINES / 64]) -> u64 {
    used.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// The client of a slice.
pub(super) struct Client<N: Nodes, D: Contents> {
    pub(super) node: Node,
    is_host: bool,
    pub(super) blocks: FxHashMap<Block, Cell<N, D>>,
    pub(super) places: Places,
    /// The cache above.
    pub(super) above: Cache<Above>,
    pub(super) port: Serializer,
    /// What a request takes of the port, at least.
    request: Interval,
    /// A look-up of the directory of the memory below.
    lookup: Ps,
    /// Looking up all lines of a block in the cache above for a home.
    probes: Ps,
    /// Whether each access of the memory below closes the row that is open.
    closes_rows: bool,
    /// Grains of a line that a bit of a mask stands for.
    grains_together: u32,
    /// Blocks asked for, and how many may be.
    pub(super) asked: u32,
    pub(super) most_asked: u32,
    /// Requests that wait for one of them to come.
    pub(super) queue: Backlog<LineRequest<D>>,
    /// By set of places: blocks whose requests wait for one whose transaction is over.
    pub(super) crowded: FxHashMap<u64, VecDeque<Block>>,
    /// On the host: bytes that have been written to host memory, and that its home takes to be here alone.
    settled: FxHashMap<Block, Bytes>,
    /// By join of the controller: blocks that it waits for.
    pub(super) joins: Vec<(u32, u32)>,
}

impl<N: Nodes, D: Contents> Client<N, D> {
    pub(super) fn new(site: &Site<Blocks<N>, D>, geometry: Geometry) -> Client<N, D> {
        let machine = &site.machine;
        let stack = machine.stack.as_ref().expect("a design of blocks is built for machines that have stacks");
        let is_host = site.layout.host() == Some(site.module);
        let closes = stack.row_policy == RowPolicy::Closed;
        let cycles = (stack.probe_cycles.numerator * u32::from(geometry.lines()), stack.probe_cycles.denominator);
        Client {
            node: Node::Client(site.module),
            is_host,
            blocks: FxHashMap::default(),
            places: Places::new(site, geometry),
            above: Cache::new(crate::convert::l2_slice(machine)),
            port: Serializer::new(machine.l2.rate),
            request: crate::convert::request_interval(machine),
            lookup: if is_host { Ps::ZERO } else { stack.lookup_latency },
            probes: Interval::cycles(machine.sm.clock.span(1 << 20), cycles).time(),
            closes_rows: closes && !is_host,
            grains_together: (stack.mask_bytes / machine.line.grain()).max(1) as u32,
            asked: 0,
            most_asked: machine.l2.mshrs,
            queue: Backlog::default(),
            crowded: FxHashMap::default(),
            settled: FxHashMap::default(),
            joins: Vec::new(),
        }
    }

    /// How many blocks it holds in each state.
    pub(super) fn states(&self) -> Vec<(N::State, u64)> {
        let count = |state: &N::State| {
            let held = self.blocks.values().filter(|cell| N::state(&cell.slot).as_ref() == Some(state));
            (*state, held.count() as u64)
        };
        N::STATES.iter().map(count).collect()
    }

    /// Lines in the cache above, and those of them that the memory below lacks bytes of.
    pub(super) fn lines(&mut self) -> (u32, u32) {
        let (mut lines, mut written) = (0, 0);
        self.above.for_each_valid(|_, _, state| {
            lines += 1;
            written += u32::from(!state.written.is_empty());
        });
        (lines, written)
    }

    /// Lines used of the blocks that are here.
    pub(super) fn lines_used(&self) -> u64 {
        if self.is_host { 0 } else { self.blocks.values().map(|cell| lines_used(&cell.used)).sum() }
    }

    /// What waits, and for which block.
    pub(super) fn waiting(&self, geometry: Geometry) -> impl Iterator<Item = (&'static str, Block)> + '_ {
        let of = |what, waits: fn(&Cell<N, D>) -> bool| {
            let those = self.blocks.iter().filter(move |(_, cell)| waits(cell));
            those.map(move |(block, _)| (what, *block))
        };
        let busy = of("a transaction of its block", |cell| N::is_busy(&cell.slot));
        let crowded = of("a place for its block", |cell| cell.is_crowded_out);
        let merging = of("a merge", |cell| cell.merging.is_some());
        let queued = self.queue.iter().map(move |body| ("a miss register", geometry.block(body.line)));
        busy.chain(crowded).chain(merging).chain(queued)
    }

    pub(super) fn cell(&mut self, block: Block) -> &mut Cell<N, D> {
        let node = self.node;
        self.blocks.entry(block).or_insert_with(|| Cell {
            slot: N::empty(node),
            parked: VecDeque::new(),
            is_crowded_out: false,
            asks: false,
            by: None,
            merging: None,
            used: [0; MOST_LINES / 64],
        })
    }

    /// What a client takes to answer for a block: it looks up its directory and all lines of the block above.
    pub(super) fn answers_after(&self) -> Ps {
        self.lookup + self.probes
    }

    /// Bytes of a block that are in host memory although its home takes them to be here; asked for as the home takes them.
    pub(super) fn take_settled(&mut self, block: Block) -> Bytes {
        self.settled.remove(&block).unwrap_or_default()
    }

    /// The request of a core or an SM, as the protocol has it. A store that covers less than what a bit of a mask stands for
    /// must not be merged by masks.
    fn request(&self, body: &LineRequest<D>, place: u16) -> nodes::Request<Held<D>> {
        match body.request {
            coherence::Request::Read { mask, scope } => nodes::Request::Read { set: Bytes::of(place, mask), scope },
            coherence::Request::Write { mask, scope, data, .. } => {
                let scope = if is_whole(mask, self.grains_together) { scope } else { Scope::Sys };
                nodes::Request::Write { set: Bytes::of(place, mask), scope, data: Held::of(place, data) }
            }
            coherence::Request::Atomic { mask, scope, update, returns } => {
                nodes::Request::Atomic { set: Bytes::of(place, mask), scope, update, returns }
            }
        }
    }
}

/// Whether a mask covers whole groups of so many grains.
fn is_whole(mask: Mask, grains: u32) -> bool {
    let group = u32::MAX >> (u32::BITS - grains.min(u32::BITS));
    (0..u32::BITS / grains).all(|index| {
        let of_group = mask.0 >> (index * grains) & group;
        of_group == 0 || of_group == group
    })
}

/// Bytes that a request names.
fn mask_of<D: Contents>(body: &LineRequest<D>) -> Mask {
    match body.request {
        coherence::Request::Read { mask, .. }
        | coherence::Request::Write { mask, .. }
        | coherence::Request::Atomic { mask, .. } => mask,
    }
}

impl<N: Nodes, D: Contents> BlockSlice<N, D> {
    /// A request of this module's SMs, or of the host's core.
    pub(super) fn local(&mut self, mut body: LineRequest<D>, here: &mut SliceContext<'_, '_, Blocks<N>, D>) {
        here.shared.traffic.l1_l2 += here.site.weights.of(Payload::of(&body.request));
        body.note_arrival(here.out.now());
        self.offer(body, here);
    }

    /// Whether a request would ask the home.
    pub(super) fn must_ask(
        &mut self,
        block: Block,
        body: &LineRequest<D>,
        here: &SliceContext<'_, '_, Blocks<N>, D>,
    ) -> bool {
        let request = self.client.request(body, self.geometry.place(body.line));
        let mut slot = self.client.cell(block).slot.clone();
        let mut did = Did::<N, D>::default();
        let step = here.site.protocol.0.step(self.client.node, &mut slot, Event::Asked(request), &mut did);
        step.is_err() || did.parks
    }

    /// A request whose block has a place here and nothing under way. `by`: the module that it has waited for.
    pub(super) fn run(&mut self, body: &LineRequest<D>, by: ModuleId, here: &mut SliceContext<'_, '_, Blocks<N>, D>) {
        let (block, place) = (self.geometry.block(body.line), self.geometry.place(body.line));
        let request = self.client.request(body, place);
        let cell = self.client.cell(block);
        let above = N::above(&cell.slot).map_or(Mask::NONE, |above| above.of_line(place));
        let was_above = above.contains(mask_of(body));
        let mut did = Did::default();
        self.step(block, Event::Asked(request), &mut did, here);
        let (now, line) = (here.out.now(), here.site.machine.line);
        if did.parks {
            let cell = self.client.cell(block);
            cell.parked.push_front(*body);
            cell.asks = true;
            self.client.asked += 1;
            self.stats.asked += 1;
            let looked_up = Departure::at(now).through_for(
                now,
                &mut self.client.port,
                tombolo_types::Bytes(0),
                self.client.request,
            );
            let leaves = looked_up.after(here.site.machine.l2.hit_latency).after(self.client.lookup);
            self.tell_all(block, did, leaves, here);
            return;
        }
        let bytes = tombolo_types::Bytes(u64::from(mask_of(body).grains()) * line.grain());
        let passed = Departure::at(now).through_for(now, &mut self.client.port, bytes, self.client.request);
        let leaves = passed.after(here.site.machine.l2.hit_latency);
        self.count(body, was_above, here);
        self.client.cell(block).used[usize::from(place / 64)] |= 1 << (place % 64);
        let ready = self.raise(body, was_above, leaves, here);
        self.answer(body, did.answer.map(|answer| (answer, by)), ready, here);
    }

    /// Has the bytes of a request in the cache above; returns when they are there.
    fn raise(
        &mut self,
        body: &LineRequest<D>,
        was_above: bool,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, Blocks<N>, D>,
    ) -> Departure {
        let (line, mask) = (body.line, mask_of(body));
        let writes = !matches!(body.request, coherence::Request::Read { .. });
        let reads = !matches!(body.request, coherence::Request::Write { .. });
        let mut ready = leaves;
        if reads && !was_above {
            let asks = leaves.after(self.client.lookup);
            ready = Departure::at(self.read_below(line, mask, asks, here));
        }
        let earlier = self.client.above.lookup(line).copied();
        if reads && let Some(above) = earlier {
            ready = Departure::at(ready.time().max(above.ready));
        }
        let mut state = earlier.unwrap_or_default();
        if reads {
            state.ready = ready.time();
        }
        if writes {
            state.written |= mask;
        }
        if earlier.is_some() {
            if let Some(place) = self.client.above.peek_mut(line) {
                *place = state;
            }
        } else {
            self.enter_above(line, state, here);
        }
        ready
    }

    /// Reads bytes of a line in the memory below; returns when they are there.
    fn read_below(
        &mut self,
        line: Line,
        mask: Mask,
        asks: Departure,
        here: &mut SliceContext<'_, '_, Blocks<N>, D>,
    ) -> Ps {
        if self.client.closes_rows {
            here.shared.memory.close_row(line);
        }
        here.read_memory(line, mask, asks).done
    }

    /// A line takes its place in the cache above; one that must go is written to the memory below.
    fn enter_above(&mut self, line: Line, state: Above, here: &mut SliceContext<'_, '_, Blocks<N>, D>) {
        let inserted = self.client.above.insert(line, BulkClass::new(0), state, Ways::ALL);
        let Some(victim) = inserted.and_then(|inserted| inserted.victim) else { return };
        here.shared.stats.evictions += 1;
        let (block, place) = (self.geometry.block(victim.line), self.geometry.place(victim.line));
        self.step(block, Event::EvictAbove(Bytes::of(place, Mask::ALL)), &mut Did::default(), here);
        let written = victim.state.written;
        if !written.is_empty() {
            here.shared.stats.writebacks += 1;
            let leaves = Departure::at(here.out.now()).after(self.client.lookup);
            self.write_below(victim.line, written, leaves, here);
            if self.client.is_host {
                self.client.settled.entry(block).or_default().add(&Bytes::of(place, written));
            }
        }
    }

    fn write_below(
        &mut self,
        line: Line,
        mask: Mask,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, Blocks<N>, D>,
    ) {
        here.store_memory(line, mask, leaves);
    }

    /// Answers a request, with what it gets from whom.
    fn answer(
        &mut self,
        body: &LineRequest<D>,
        answer: Option<(Answer<Held<D>>, ModuleId)>,
        ready: Departure,
        here: &mut SliceContext<'_, '_, Blocks<N>, D>,
    ) {
        let Origin { sm, warp, result, register, .. } = body.origin;
        let (line, place) = (body.line, self.geometry.place(body.line));
        match answer {
            Some((Answer::Fill { data, .. }, by)) => {
                let mask = mask_of(body);
                let seen = here.flags().seen(line, body.flag) != Flag::NONE;
                let data = data.line(place);
                here.deliver(ready, sm, mask.grains(), |at| {
                    let time = body.held_until(ready.time(), at);
                    Message::Fill { register, line, mask, data, seen, by, time }
                });
            }
            Some((Answer::Old { data }, by)) => {
                let data = data.line(place);
                here.deliver(ready, sm, 1, |_| Message::Old { warp, result, data, by });
            }
            None => {}
        }
        if !matches!(body.request, coherence::Request::Read { .. }) {
            here.flags_mut().learn(line, body.flag);
            here.return_store(sm, body.tickets.hop, ready.time());
        }
    }

    fn count(&self, body: &LineRequest<D>, was_above: bool, here: &mut SliceContext<'_, '_, Blocks<N>, D>) {
        let stats = &mut here.shared.stats;
        match body.request {
            coherence::Request::Read { .. } => {
                stats.reads += 1;
                stats.read_hits += u64::from(was_above);
            }
            coherence::Request::Write { .. } => stats.writes += 1,
            coherence::Request::Atomic { .. } => stats.atomics += 1,
        }
    }

    /// Another node says something of a block.
    pub(super) fn client_told(
        &mut self,
        from: Node,
        block: Block,
        message: MessageOf<N, D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, Blocks<N>, D>,
    ) {
        let cell = self.client.cell(block);
        if cell.asks {
            cell.by = match from {
                Node::Client(module) => Some(module),
                Node::Home => here.site.layout.host(),
            };
        }
        let brings_block = matches!(N::carries(&message), Carried::Block);
        let mut did = Did::default();
        self.step(block, Event::Told { from, message }, &mut did, here);
        let mut leaves = Departure::at(ready);
        if did.told.is_empty() {
            if brings_block && !self.client.is_host {
                self.fill_below(block, leaves, here);
            }
            if !N::is_dirty(&self.client.cell(block).slot) {
                // What it had written is in host memory, for its home as well.
                self.client.settled.remove(&block);
            }
        } else {
            // It was asked, and has looked up all lines of the block.
            leaves = leaves.after(self.client.answers_after());
        }
        self.keep_above(block, leaves, here);
        self.tell_all(block, did, leaves, here);
        self.settle(block, here);
    }

    /// Counts the lines of a block that were used until it went.
    pub(super) fn close_use(&mut self, block: Block) {
        if let Some(cell) = self.client.blocks.get_mut(&block)
            && !self.client.is_host
        {
            self.stats.used_lines += lines_used(&std::mem::take(&mut cell.used));
        }
    }

    /// Writes a block that has come to the stack: one access, whose row stays open for it.
    fn fill_below(&mut self, block: Block, leaves: Departure, here: &mut SliceContext<'_, '_, Blocks<N>, D>) {
        let leaves = leaves.after(self.client.lookup);
        self.stats.filled += 1;
        self.close_use(block);
        for place in 0..self.geometry.lines() {
            let line = self.geometry.line(block, place);
            here.store_memory(line, Mask::ALL, leaves);
        }
    }

    /// Tells other nodes what a step asked for. What is sent of the block is read in the memory below; on the host, in the
    /// cache above where that has it.
    pub(super) fn tell_all(
        &mut self,
        block: Block,
        did: Did<N, D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, Blocks<N>, D>,
    ) {
        for (to, message) in did.told {
            let ready = match N::carries(&message) {
                Carried::Nothing => leaves,
                Carried::Block if self.client.is_host => self.read_cached(block, leaves, here),
                Carried::Block => self.read_out(block, &Bytes::whole(self.geometry.lines()), leaves, here),
                Carried::Masked(set) if self.client.is_host => self.pass_written(block, set, leaves, here),
                Carried::Masked(set) => {
                    let set = set.clone();
                    self.read_out(block, &set, leaves, here)
                }
            };
            self.tell(to, block, message, ready, here);
        }
    }

    /// Reads a block on the host: what the last-level cache has of it there, and the rest in host memory.
    fn read_cached(
        &mut self,
        block: Block,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, Blocks<N>, D>,
    ) -> Departure {
        let cached = N::above(&self.client.cell(block).slot).cloned().unwrap_or_default();
        let mut done = self.pass_port(&cached, leaves, here).time();
        for (place, mask) in Bytes::whole(self.geometry.lines()).without(&cached).iter() {
            done = done.max(here.read_memory(self.geometry.line(block, place), mask, leaves).done);
        }
        Departure::at(done)
    }

    /// Reads bytes that the host has written and sends back: those that are in host memory already stay there.
    fn pass_written(
        &mut self,
        block: Block,
        set: &Bytes,
        leaves: Departure,
        here: &SliceContext<'_, '_, Blocks<N>, D>,
    ) -> Departure {
        let cached = self.client.settled.get(&block).map_or_else(|| set.clone(), |settled| set.without(settled));
        self.pass_port(&cached, leaves, here)
    }

    /// Bytes of the cache above pass its port, line by line; returns when the last of them leaves.
    fn pass_port(&mut self, set: &Bytes, leaves: Departure, here: &SliceContext<'_, '_, Blocks<N>, D>) -> Departure {
        let (now, grain) = (here.out.now(), here.site.machine.line.grain());
        let mut passed = leaves;
        for (_, mask) in set.iter() {
            let bytes = tombolo_types::Bytes(u64::from(mask.grains()) * grain);
            passed = leaves.through_for(now, &mut self.client.port, bytes, self.client.request);
        }
        if set.is_empty() { leaves } else { passed.after(here.site.machine.l2.hit_latency) }
    }

    /// Reads bytes of a block in the stack, as one access.
    fn read_out(
        &mut self,
        block: Block,
        set: &Bytes,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, Blocks<N>, D>,
    ) -> Departure {
        let mut done = leaves.time();
        for (index, (place, mask)) in set.iter().enumerate() {
            let line = self.geometry.line(block, place);
            if index == 0 && self.client.closes_rows {
                here.shared.memory.close_row(line);
            }
            done = done.max(here.read_memory(line, mask, leaves).done);
        }
        Departure::at(done)
    }

    /// Lines of a block that the protocol has taken from the cache above leave it; those that it has brought to the memory
    /// below are written there, where the block stays. On the host that memory lacks them until they leave the cache.
    pub(super) fn keep_above(
        &mut self,
        block: Block,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, Blocks<N>, D>,
    ) {
        let Some(cell) = self.client.blocks.get(&block) else { return };
        let stays = N::holds(&cell.slot);
        let [above, fresh] = [N::above(&cell.slot), N::fresh(&cell.slot)].map(|set| set.cloned().unwrap_or_default());
        let lacking = if self.client.is_host { N::standing(&cell.slot).dirty } else { fresh };
        for place in 0..self.geometry.lines() {
            let line = self.geometry.line(block, place);
            let Some(state) = self.client.above.peek(line).copied() else { continue };
            let settled = state.written & !lacking.of_line(place);
            if stays && !settled.is_empty() && !self.client.is_host {
                self.write_below(line, settled, leaves, here);
            }
            if above.of_line(place).is_empty() {
                self.client.above.remove(line);
            } else if let Some(kept) = self.client.above.peek_mut(line) {
                kept.written = kept.written & lacking.of_line(place);
            }
        }
    }

    /// What follows from a block whose transaction may be over: those who wait run.
    pub(super) fn settle(&mut self, block: Block, here: &mut SliceContext<'_, '_, Blocks<N>, D>) {
        let cell = self.client.cell(block);
        if !N::is_busy(&cell.slot) {
            if std::mem::take(&mut cell.asks) {
                self.client.asked -= 1;
            }
            self.resume(block, here);
        }
        self.merge_on(block, here);
        self.forget_if_gone(block, here);
        self.serve(here);
    }

    /// A step of the client that is not refused.
    pub(super) fn step(
        &mut self,
        block: Block,
        event: Event<MessageOf<N, D>, Held<D>>,
        did: &mut Did<N, D>,
        here: &SliceContext<'_, '_, Blocks<N>, D>,
    ) {
        let protocol = here.site.protocol.0;
        let node = self.client.node;
        let cell = self.client.cell(block);
        taken(protocol.step(node, &mut cell.slot, event, did), node, block);
    }
}
