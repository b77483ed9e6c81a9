//! Client side of the block protocol: on a GPU an L2 above a DRAM stack, on the host a last-level cache above host
//! memory.
//!
//! A request waits while its block has a transaction in flight, and later requests to this block queue behind in
//! order. If the block is absent, the client requests it from the home. For this it needs a frame in the memory below
//! (`frames`) and a free MSHR: the slice's MSHR count limits the outstanding blocks. Requests without either resource
//! wait in one queue (`turn`).
//!
//! On the host the memory below the cache is host memory itself. A granted block therefore moves no bytes, its lines
//! are read on demand, and evicted bytes reach host memory before the home is notified.

use super::effects::StepEffects;
use super::frames::BlockFrames;
use super::merge::PendingMerge;
use super::{Block, BlockBytes, BlockContents, BlockDesign, BlockSlice, Geometry, MessageOf, expect_accepted};
use crate::fabric::packet::Payload;
use crate::l2::cache::{BulkClass, Cache, Ways};
use crate::l2::departure::Departure;
use crate::message::{Flag, LineRequest, Message, ReplyDestination};
use crate::module::config::ModuleConfig;
use crate::module::context::SliceContext;
use crate::observe::value_probe::Contents;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use tombolo_machine::coherent_host::RowPolicy;
use tombolo_protocol::block::ByteSet;
use tombolo_protocol::client_home::{self, Answer, BlockEvent, Carried, Node, Nodes};
use tombolo_protocol::coherence;
use tombolo_protocol::host::Backlog;
use tombolo_types::{Interval, Line, Mask, ModuleId, Ps, Scope, Serializer};

/// State for a line in the cache above the block memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CachedLine {
    /// Arrival time for the line's bytes.
    ready: Ps,
    /// Bytes newer than the copy in the memory below.
    pub(super) written: Mask,
}

/// Client state for a block.
pub(super) struct ClientBlock<N: Nodes, D: Contents> {
    pub(super) slot: N::Slot<BlockContents<D>>,
    /// Requests waiting for the end of the block's transaction, or for a frame.
    pub(super) parked: VecDeque<LineRequest<D>>,
    /// Set while the parked requests wait for a frame.
    pub(super) is_crowded_out: bool,
    /// Set if the current transaction requests the block from the home, and so counts against `most_asked`.
    is_requesting: bool,
    /// Module that sent the latest message in the transaction. Waiting requests attribute their latency to this
    /// module.
    pub(super) by: Option<ModuleId>,
    /// Pending merge, if releases wait for this block to be merged.
    pub(super) merging: Option<PendingMerge>,
    /// Bit set: lines accessed since the block arrived.
    used: [u64; MOST_LINES / 64],
}

/// Number of lines in the largest block with the shortest lines.
const MOST_LINES: usize = 256;

/// Number of accessed lines in a use bit set.
fn lines_used(used: &[u64; MOST_LINES / 64]) -> u64 {
    used.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Client part of a slice: block states, cache above, and request queues.
pub(super) struct Client<N: Nodes, D: Contents> {
    pub(super) node: Node,
    is_host: bool,
    pub(super) blocks: FxHashMap<Block, ClientBlock<N, D>>,
    pub(super) places: BlockFrames,
    /// Cache above the block memory.
    pub(super) above: Cache<CachedLine>,
    pub(super) port: Serializer,
    /// Minimum port occupancy per request.
    request: Interval,
    /// Lookup latency for the stack's block directory.
    lookup: Ps,
    /// Time to probe every line of a block in the cache above, on a request from the home.
    probes: Ps,
    /// True if each access to the memory below closes the open row.
    closes_rows: bool,
    /// Grains per bit in a dirty mask.
    grains_together: u32,
    /// Number of blocks currently requested from the home, and its limit.
    pub(super) outstanding: u32,
    pub(super) most_outstanding: u32,
    /// Requests waiting for a free MSHR, that is until a requested block arrives.
    pub(super) queue: Backlog<LineRequest<D>>,
    /// Crowded blocks per frame set: their requests wait until an idle block in the set can be evicted.
    pub(super) crowded: FxHashMap<u64, VecDeque<Block>>,
    /// On the host: bytes already written to host memory, but still dirty in this cache from the home's point of view.
    settled: FxHashMap<Block, BlockBytes>,
    /// Pending joins at the controller: join number, and number of blocks still to be merged.
    pub(super) joins: Vec<(u32, u32)>,
}

impl<N: Nodes, D: Contents> Client<N, D> {
    pub(super) fn new(config: &ModuleConfig<BlockDesign<N>, D>, geometry: Geometry) -> Client<N, D> {
        let machine = &config.machine;
        let stack = machine.stack.as_ref().expect("a design of blocks is built for machines that have stacks");
        let is_host = config.layout.host() == Some(config.module);
        let closes = stack.row_policy == RowPolicy::Closed;
        let cycles = (stack.probe_cycles.numerator * u32::from(geometry.lines()), stack.probe_cycles.denominator);
        let outgoing = crate::convert::outgoing_misses(machine, stack.block_bytes).filter(|_| !is_host);
        let most_outstanding = outgoing.map_or(machine.l2.mshrs, |most| most.min(machine.l2.mshrs));
        Client {
            node: Node::Client(config.module),
            is_host,
            blocks: FxHashMap::default(),
            places: BlockFrames::new(config, geometry),
            above: Cache::new(crate::convert::l2_slice(machine)),
            port: Serializer::new(machine.l2.rate),
            request: crate::convert::request_interval(machine),
            lookup: if is_host { Ps::ZERO } else { stack.lookup_latency },
            probes: Interval::cycles(machine.sm.clock.span(1 << 20), cycles).time(),
            closes_rows: closes && !is_host,
            grains_together: (stack.mask_bytes / machine.line.grain()).max(1) as u32,
            outstanding: 0,
            most_outstanding,
            queue: Backlog::default(),
            crowded: FxHashMap::default(),
            settled: FxHashMap::default(),
            joins: Vec::new(),
        }
    }

    /// Number of blocks held in each protocol state.
    pub(super) fn states(&self) -> Vec<(N::State, u64)> {
        let count = |state: &N::State| {
            let held = self.blocks.values().filter(|cell| N::state(&cell.slot).as_ref() == Some(state));
            (*state, held.count() as u64)
        };
        N::STATES.iter().map(count).collect()
    }

    /// Number of valid lines in the cache above, and how many are dirty.
    pub(super) fn lines(&mut self) -> (u32, u32) {
        let (mut lines, mut written) = (0, 0);
        self.above.for_each_valid(|_, _, state| {
            lines += 1;
            written += u32::from(!state.written.is_empty());
        });
        (lines, written)
    }

    /// Number of accessed lines over all resident blocks; 0 on the host.
    pub(super) fn lines_used(&self) -> u64 {
        if self.is_host { 0 } else { self.blocks.values().map(|cell| lines_used(&cell.used)).sum() }
    }

    /// Waiting requests for the deadlock report: the awaited resource and the block.
    pub(super) fn waiting(&self, geometry: Geometry) -> impl Iterator<Item = (&'static str, Block)> + '_ {
        let of = |what, waits: fn(&ClientBlock<N, D>) -> bool| {
            let those = self.blocks.iter().filter(move |(_, cell)| waits(cell));
            those.map(move |(block, _)| (what, *block))
        };
        let busy = of("a transaction of its block", |cell| N::is_busy(&cell.slot));
        let crowded = of("a place for its block", |cell| cell.is_crowded_out);
        let merging = of("a merge", |cell| cell.merging.is_some());
        let queued = self.queue.iter().map(move |body| ("a miss register", geometry.block(body.line)));
        busy.chain(crowded).chain(merging).chain(queued)
    }

    pub(super) fn cell(&mut self, block: Block) -> &mut ClientBlock<N, D> {
        let node = self.node;
        self.blocks.entry(block).or_insert_with(|| ClientBlock {
            slot: N::empty(node),
            parked: VecDeque::new(),
            is_crowded_out: false,
            is_requesting: false,
            by: None,
            merging: None,
            used: [0; MOST_LINES / 64],
        })
    }

    /// Latency for answering a home's request: a directory lookup plus a probe for all lines of the block above.
    pub(super) fn answers_after(&self) -> Ps {
        self.lookup + self.probes
    }

    /// Returns and clears the settled bytes: already in host memory, but still dirty here from the home's point of
    /// view. Called when the home receives the bytes.
    pub(super) fn take_settled(&mut self, block: Block) -> BlockBytes {
        self.settled.remove(&block).unwrap_or_default()
    }

    /// Converts a request from a core or an SM to the block protocol's form. A store smaller than a dirty mask's
    /// granularity gets `.sys` scope, because a merge by masks would corrupt its neighbours.
    fn request(&self, body: &LineRequest<D>, place: u16) -> client_home::BlockRequest<BlockContents<D>> {
        match body.request {
            coherence::Request::Read { mask, scope } => {
                client_home::BlockRequest::Read { set: BlockBytes::of(place, mask), scope }
            }
            coherence::Request::Write { mask, scope, data, .. } => {
                let scope = if is_whole(mask, self.grains_together) { scope } else { Scope::Sys };
                client_home::BlockRequest::Write {
                    set: BlockBytes::of(place, mask),
                    scope,
                    data: BlockContents::of(place, data),
                }
            }
            coherence::Request::Atomic { mask, scope, update, returns } => {
                client_home::BlockRequest::Atomic { set: BlockBytes::of(place, mask), scope, update, returns }
            }
        }
    }
}

/// True if a mask consists of complete groups, each with `grains` grains.
fn is_whole(mask: Mask, grains: u32) -> bool {
    let group = u32::MAX >> (u32::BITS - grains.min(u32::BITS));
    (0..u32::BITS / grains).all(|index| {
        let of_group = mask.0 >> (index * grains) & group;
        of_group == 0 || of_group == group
    })
}

/// Returns the bytes named in a request.
fn mask_of<D: Contents>(body: &LineRequest<D>) -> Mask {
    match body.request {
        coherence::Request::Read { mask, .. }
        | coherence::Request::Write { mask, .. }
        | coherence::Request::Atomic { mask, .. } => mask,
    }
}

impl<N: Nodes, D: Contents> BlockSlice<N, D> {
    /// Accepts a request from this module's SMs, or from the host's core.
    pub(super) fn local(&mut self, mut body: LineRequest<D>, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        here.shared.traffic.l1_l2 += here.config.packet_sizes.of(Payload::of(&body.request));
        body.note_arrival(here.out.now());
        self.offer(body, here);
    }

    /// True if a request would start a transaction with the home. Evaluated on a copy of the block's state.
    pub(super) fn needs_home(
        &mut self,
        block: Block,
        body: &LineRequest<D>,
        here: &SliceContext<'_, '_, BlockDesign<N>, D>,
    ) -> bool {
        let request = self.client.request(body, self.geometry.place(body.line));
        let mut slot = self.client.cell(block).slot.clone();
        let mut did = StepEffects::<N, D>::default();
        let step = here.config.protocol.0.step(self.client.node, &mut slot, BlockEvent::Request(request), &mut did);
        step.is_err() || did.parks
    }

    /// Executes a request for a block with a frame and no transaction in flight. `by`: the module that caused the
    /// wait.
    pub(super) fn run(
        &mut self,
        body: &LineRequest<D>,
        by: ModuleId,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        let (block, place) = (self.geometry.block(body.line), self.geometry.place(body.line));
        let request = self.client.request(body, place);
        let cell = self.client.cell(block);
        let above = N::above(&cell.slot).map_or(Mask::NONE, |above| above.of_line(place));
        let was_above = above.contains(mask_of(body));
        let mut did = StepEffects::default();
        self.step(block, BlockEvent::Request(request), &mut did, here);
        let (now, line) = (here.out.now(), here.config.machine.line);
        if did.parks {
            let cell = self.client.cell(block);
            cell.parked.push_front(*body);
            cell.is_requesting = true;
            self.client.outstanding += 1;
            self.stats.requests += 1;
            let looked_up = Departure::at(now).through_for(
                now,
                &mut self.client.port,
                tombolo_types::Bytes(0),
                self.client.request,
            );
            let leaves = looked_up.after(here.config.machine.l2.hit_latency).after(self.client.lookup);
            self.send_messages(block, did, leaves, here);
            return;
        }
        let bytes = tombolo_types::Bytes(u64::from(mask_of(body).grains()) * line.grain());
        let passed = Departure::at(now).through_for(now, &mut self.client.port, bytes, self.client.request);
        let leaves = passed.after(here.config.machine.l2.hit_latency);
        self.count(body, was_above, here);
        self.client.cell(block).used[usize::from(place / 64)] |= 1 << (place % 64);
        let ready = self.bring_above(body, was_above, leaves, here);
        self.answer(body, did.answer.map(|answer| (answer, by)), ready, here);
    }

    /// Brings a request's bytes into the cache above; returns their arrival time.
    fn bring_above(
        &mut self,
        body: &LineRequest<D>,
        was_above: bool,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
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
            self.insert_above(line, state, here);
        }
        ready
    }

    /// Reads a line's bytes from the memory below; returns the arrival time.
    fn read_below(
        &mut self,
        line: Line,
        mask: Mask,
        asks: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) -> Ps {
        if self.client.closes_rows {
            here.shared.memory.close_row(line);
        }
        here.read_memory(line, mask, asks).done
    }

    /// Inserts a line into the cache above and writes a dirty victim back to the memory below.
    fn insert_above(&mut self, line: Line, state: CachedLine, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        let inserted = self.client.above.insert(line, BulkClass::new(0), state, Ways::ALL);
        let Some(victim) = inserted.and_then(|inserted| inserted.victim) else { return };
        here.shared.stats.evictions += 1;
        let (block, place) = (self.geometry.block(victim.line), self.geometry.place(victim.line));
        self.step(block, BlockEvent::EvictAbove(BlockBytes::of(place, Mask::ALL)), &mut StepEffects::default(), here);
        let written = victim.state.written;
        if !written.is_empty() {
            here.shared.stats.writebacks += 1;
            let leaves = Departure::at(here.out.now()).after(self.client.lookup);
            self.write_below(victim.line, written, leaves, here);
            if self.client.is_host {
                self.client.settled.entry(block).or_default().add(&BlockBytes::of(place, written));
            }
        }
    }

    fn write_below(
        &mut self,
        line: Line,
        mask: Mask,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        here.store_memory(line, mask, leaves);
    }

    /// Replies to a request. `answer`: the reply's contents, and the module charged with its latency.
    fn answer(
        &mut self,
        body: &LineRequest<D>,
        answer: Option<(Answer<BlockContents<D>>, ModuleId)>,
        ready: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        let ReplyDestination { sm, warp, result, register, .. } = body.origin;
        let (line, place) = (body.line, self.geometry.place(body.line));
        match answer {
            Some((Answer::Fill { data, .. }, by)) => {
                let mask = mask_of(body);
                let seen = here.flags().seen(line, body.flag) != Flag::NONE;
                let data = data.line(place);
                here.deliver(ready, sm, mask.grains(), |at| {
                    let time = body.held_until(ready.time(), at);
                    Message::Fill { register, line, mask, data, seen, responder: by, latency: time }
                });
            }
            Some((Answer::Old { data }, by)) => {
                let data = data.line(place);
                here.deliver(ready, sm, 1, |_| Message::AtomicResult { warp, result, data, responder: by });
            }
            None => {}
        }
        if !matches!(body.request, coherence::Request::Read { .. }) {
            here.flags_mut().learn(line, body.flag);
            here.return_store(sm, body.tickets.hop, ready.time());
        }
    }

    fn count(&self, body: &LineRequest<D>, was_above: bool, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
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

    /// Handles a block message from another node.
    pub(super) fn client_receive(
        &mut self,
        from: Node,
        block: Block,
        message: MessageOf<N, D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        let cell = self.client.cell(block);
        if cell.is_requesting {
            cell.by = match from {
                Node::Client(module) => Some(module),
                Node::Home => here.config.layout.host(),
            };
        }
        let brings_block = matches!(N::carries(&message), Carried::Block);
        let mut did = StepEffects::default();
        self.step(block, BlockEvent::Message { from, message }, &mut did, here);
        let mut leaves = Departure::at(ready);
        if did.messages.is_empty() {
            if brings_block && !self.client.is_host {
                self.fill_below(block, leaves, here);
            }
            if !N::is_dirty(&self.client.cell(block).slot) {
                // Host memory has all bytes written here, and the home knows it.
                self.client.settled.remove(&block);
            }
        } else {
            // A client that sends messages here replies to a request from the home, or repeats its own request after
            // an overtaken block. All lines in the block have been probed for this.
            leaves = leaves.after(self.client.answers_after());
        }
        self.sync_above(block, leaves, here);
        self.send_messages(block, did, leaves, here);
        self.settle(block, here);
    }

    /// Adds the lines accessed during a block's residency to the statistics and clears the use bits.
    pub(super) fn record_use(&mut self, block: Block) {
        if let Some(cell) = self.client.blocks.get_mut(&block)
            && !self.client.is_host
        {
            self.stats.used_lines += lines_used(&std::mem::take(&mut cell.used));
        }
    }

    /// Writes an arriving block to the stack as a single access: its row stays open for all lines.
    fn fill_below(&mut self, block: Block, leaves: Departure, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        let leaves = leaves.after(self.client.lookup);
        self.stats.fills += 1;
        self.record_use(block);
        for place in 0..self.geometry.lines() {
            let line = self.geometry.line(block, place);
            here.store_memory(line, Mask::ALL, leaves);
        }
    }

    /// Sends the messages produced in a protocol step. A message's block bytes are read from the memory below; on the
    /// host they come from the last-level cache if present.
    pub(super) fn send_messages(
        &mut self,
        block: Block,
        did: StepEffects<N, D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        for (to, message) in did.messages {
            let ready = match N::carries(&message) {
                Carried::Nothing => leaves,
                Carried::Block if self.client.is_host => self.read_cached(block, leaves, here),
                Carried::Block => self.read_out(block, &BlockBytes::whole(self.geometry.lines()), leaves, here),
                Carried::Masked(set) if self.client.is_host => self.read_written(block, set, leaves, here),
                Carried::Masked(set) => {
                    let set = set.clone();
                    self.read_out(block, &set, leaves, here)
                }
            };
            self.send_to_node(to, block, message, ready, here);
        }
    }

    /// Reads a block on the host: cached lines from the last-level cache, all remaining bytes from host memory.
    fn read_cached(
        &mut self,
        block: Block,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) -> Departure {
        let cached = N::above(&self.client.cell(block).slot).cloned().unwrap_or_default();
        let mut done = self.pass_port(&cached, leaves, here).time();
        for (place, mask) in BlockBytes::whole(self.geometry.lines()).without(&cached).iter() {
            done = done.max(here.read_memory(self.geometry.line(block, place), mask, leaves).done);
        }
        Departure::at(done)
    }

    /// Reads the bytes that the host has written and sends back. Bytes already settled in host memory need no port
    /// time.
    fn read_written(
        &mut self,
        block: Block,
        set: &BlockBytes,
        leaves: Departure,
        here: &SliceContext<'_, '_, BlockDesign<N>, D>,
    ) -> Departure {
        let cached = self.client.settled.get(&block).map_or_else(|| set.clone(), |settled| set.without(settled));
        self.pass_port(&cached, leaves, here)
    }

    /// Passes bytes from the cache above through its port, line by line; returns the departure of the last line.
    fn pass_port(
        &mut self,
        set: &BlockBytes,
        leaves: Departure,
        here: &SliceContext<'_, '_, BlockDesign<N>, D>,
    ) -> Departure {
        let (now, grain) = (here.out.now(), here.config.machine.line.grain());
        let mut passed = leaves;
        for (_, mask) in set.iter() {
            let bytes = tombolo_types::Bytes(u64::from(mask.grains()) * grain);
            passed = leaves.through_for(now, &mut self.client.port, bytes, self.client.request);
        }
        if set.is_empty() { leaves } else { passed.after(here.config.machine.l2.hit_latency) }
    }

    /// Reads bytes from a block in the stack as a single access.
    fn read_out(
        &mut self,
        block: Block,
        set: &BlockBytes,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
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

    /// Synchronizes the cache above with the protocol's state for a block. Lines revoked by the protocol are removed.
    /// Bytes moved to the memory below are written there if the block stays resident; on the host, the memory below
    /// receives the bytes when the lines leave the cache.
    pub(super) fn sync_above(
        &mut self,
        block: Block,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        let Some(cell) = self.client.blocks.get(&block) else { return };
        let stays = N::holds(&cell.slot);
        let [above, fresh] = [N::above(&cell.slot), N::fresh(&cell.slot)].map(|set| set.cloned().unwrap_or_default());
        let lacking = if self.client.is_host { N::client_view(&cell.slot).dirty } else { fresh };
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

    /// Continues after a possible end of a block's transaction: releases its request slot and reruns waiting requests.
    pub(super) fn settle(&mut self, block: Block, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        let cell = self.client.cell(block);
        if !N::is_busy(&cell.slot) {
            if std::mem::take(&mut cell.is_requesting) {
                self.client.outstanding -= 1;
            }
            self.resume(block, here);
        }
        self.merge_on(block, here);
        self.forget_if_gone(block, here);
        self.serve(here);
    }

    /// Performs a protocol step at the client. The step must not be refused.
    pub(super) fn step(
        &mut self,
        block: Block,
        event: BlockEvent<MessageOf<N, D>, BlockContents<D>>,
        did: &mut StepEffects<N, D>,
        here: &SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        let protocol = here.config.protocol.0;
        let node = self.client.node;
        let cell = self.client.cell(block);
        expect_accepted(protocol.step(node, &mut cell.slot, event, did), node, block);
    }
}
