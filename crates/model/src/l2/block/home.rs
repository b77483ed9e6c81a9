//! Home side for the block protocol: the directory beside host memory.
//!
//! Requests wait in order while their block has a transaction in flight, or while the directory has as many transactions
//! in flight as it can. Messages within a transaction are processed immediately.

use super::effects::StepEffects;
use super::{Block, BlockBytes, BlockContents, BlockDesign, BlockSlice, MessageOf, expect_accepted};
use crate::l2::departure::Departure;
use crate::l2::mshr::EntryId;
use crate::message::Message;
use crate::module::config::ModuleConfig;
use crate::module::context::SliceContext;
use crate::observe::value_probe::Contents;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use tombolo_protocol::block::ByteSet;
use tombolo_protocol::client_home::{BlockEvent, HomeMemoryAccess, MessageClass, Node, Nodes};
use tombolo_protocol::topology::ModuleSet;
use tombolo_types::{Mask, ModuleId, Ps};

/// Directory entry for a block.
struct HomeBlock<N: Nodes, D: Contents> {
    slot: N::Slot<BlockContents<D>>,
    /// Client whose request started the current transaction.
    requester: ModuleId,
    /// GPUs that have requested this block.
    requesters: ModuleSet,
    waiting: VecDeque<(Node, MessageOf<N, D>)>,
}

/// Home part of a slice: directory entries and lookup latency.
pub(super) struct Home<N: Nodes, D: Contents> {
    blocks: FxHashMap<Block, HomeBlock<N, D>>,
    lookup: Ps,
    /// Transactions in flight, and their maximum.
    in_flight: u32,
    most_in_flight: u32,
    /// Blocks without a transaction whose requests wait because of this maximum, in order of arrival.
    ready: VecDeque<Block>,
}

impl<N: Nodes, D: Contents> Home<N, D> {
    pub(super) fn new(config: &ModuleConfig<BlockDesign<N>, D>) -> Home<N, D> {
        let directory = config.machine.host_directory.as_ref().expect("a machine with stacks has a host");
        Home {
            blocks: FxHashMap::default(),
            lookup: directory.lookup_latency,
            in_flight: 0,
            most_in_flight: directory.outstanding,
            ready: VecDeque::new(),
        }
    }

    /// Returns blocks with waiting requests.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Block> + '_ {
        self.blocks.iter().filter(|(_, kept)| !kept.waiting.is_empty()).map(|(block, _)| *block)
    }

    /// Returns the number of blocks requested by any GPU, and the requesting GPUs summed over these blocks.
    pub(super) fn requested(&self) -> (u64, u64) {
        let counts = self.blocks.values().map(|kept| u64::from(kept.requesters.count())).filter(|count| *count > 0);
        counts.fold((0, 0), |(blocks, all), count| (blocks + 1, all + count))
    }

    /// The next waiting request of a block; `None` while a transaction is in flight.
    fn next_waiting(&mut self, block: Block) -> Option<(Node, MessageOf<N, D>)> {
        let kept = self.block(block);
        if N::is_busy(&kept.slot) { None } else { kept.waiting.pop_front() }
    }

    /// Ends a block's transaction. The block's waiting requests run after the requests of all blocks that are ready.
    fn end_transaction(&mut self, block: Block) {
        self.in_flight -= 1;
        if !self.block(block).waiting.is_empty() {
            self.ready.push_back(block);
        }
    }

    fn block(&mut self, block: Block) -> &mut HomeBlock<N, D> {
        let empty = || HomeBlock {
            slot: N::empty(Node::Home),
            requester: ModuleId(0),
            requesters: ModuleSet::NONE,
            waiting: VecDeque::new(),
        };
        self.blocks.entry(block).or_insert_with(empty)
    }
}

impl<N: Nodes, D: Contents> BlockSlice<N, D> {
    fn home(&mut self) -> &mut Home<N, D> {
        self.home.as_mut().expect("what homes are told goes to the host")
    }

    /// Handles a message from a client.
    pub(super) fn home_receive(
        &mut self,
        from: Node,
        block: Block,
        message: MessageOf<N, D>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        let is_request = N::class(&message) == MessageClass::Request;
        let home = self.home();
        let is_full = home.in_flight >= home.most_in_flight;
        let kept = home.block(block);
        let is_busy = N::is_busy(&kept.slot);
        if is_request && (is_busy || is_full || !kept.waiting.is_empty()) {
            let is_first = !is_busy && kept.waiting.is_empty();
            kept.waiting.push_back((from, message));
            if is_first {
                home.ready.push_back(block);
            }
            self.stats.home_waits += 1;
            return;
        }
        self.home_step(block, BlockEvent::Message { from, message }, ready, here);
        self.run_waiting(ready, here);
    }

    /// Handles a completed memory read for a block.
    pub(super) fn home_read(&mut self, block: Block, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        let mut held = BlockContents::default();
        if size_of::<D>() != 0 {
            for place in 0..self.geometry.lines() {
                let data = here.shared.memory.read(self.geometry.line(block, place));
                held.put(place, |line| *line = data);
            }
        }
        let now = here.out.now();
        self.home_step(block, BlockEvent::Read(held), now, here);
        self.run_waiting(now, here);
    }

    /// Runs the waiting requests of the ready blocks, each until a request starts a transaction, while the directory has
    /// room for a transaction.
    fn run_waiting(&mut self, ready: Ps, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        loop {
            let home = self.home();
            if home.in_flight >= home.most_in_flight {
                return;
            }
            let Some(block) = home.ready.pop_front() else { return };
            while let Some((from, message)) = self.home().next_waiting(block) {
                self.home_step(block, BlockEvent::Message { from, message }, ready, here);
            }
        }
    }

    fn home_step(
        &mut self,
        block: Block,
        event: BlockEvent<MessageOf<N, D>, BlockContents<D>>,
        ready: Ps,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        let mut did = StepEffects::default();
        let (protocol, lookup) = (here.config.protocol.0, self.home().lookup);
        let kept = self.home().block(block);
        if let BlockEvent::Message { from: Node::Client(client), message } = &event
            && N::class(message) == MessageClass::Request
        {
            kept.requester = *client;
            if *client != here.config.module {
                kept.requesters.add(*client);
            }
        }
        let requester = kept.requester;
        let was_busy = N::is_busy(&kept.slot);
        expect_accepted(protocol.step(Node::Home, &mut kept.slot, event, &mut did), Node::Home, block);
        match (was_busy, N::is_busy(&kept.slot)) {
            (false, true) => self.home().in_flight += 1,
            (true, false) => self.home().end_transaction(block),
            _ => {}
        }
        let leaves = Departure::at(ready).after(lookup);
        for access in did.memory {
            self.home_memory(block, access, requester, leaves, here);
        }
        for (to, message) in did.messages {
            self.send_to_node(to, block, message, leaves, here);
        }
    }

    /// Reads or writes host memory. A block granted to the host's own last-level cache is not read here: the cache
    /// reads lines on demand.
    fn home_memory(
        &mut self,
        block: Block,
        access: HomeMemoryAccess<BlockContents<D>>,
        requester: ModuleId,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        match access {
            HomeMemoryAccess::Read => {
                let is_own = requester == here.config.module;
                let places = if is_own { 0 } else { self.geometry.lines() };
                let line = |place| self.geometry.line(block, place);
                let reads = (0..places).map(|place| here.read_memory(line(place), Mask::ALL, leaves).done);
                let at = reads.max().unwrap_or(leaves.time()).max(here.out.now() + Ps(1));
                let (line, register) = (line(0), EntryId::default());
                let time = D::Note::default();
                here.out.send(at, self.id, self.id, Message::Memory { line, mask: Mask::ALL, register, latency: time });
            }
            HomeMemoryAccess::Write { set, data } => self.home_write(block, &set, &data, leaves, here),
            HomeMemoryAccess::WriteAll { data } => {
                let set = BlockBytes::whole(self.geometry.lines());
                self.home_write(block, &set, &data, leaves, here);
            }
        }
    }

    /// Writes a block's bytes to host memory. Bytes already written there by the last-level cache take no additional
    /// time.
    fn home_write(
        &mut self,
        block: Block,
        set: &BlockBytes,
        data: &BlockContents<D>,
        leaves: Departure,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) {
        for (place, mask) in set.iter() {
            here.shared.memory.write(self.geometry.line(block, place), mask, data.line(place));
        }
        let missing = set.without(&self.client.take_settled(block));
        for (place, mask) in missing.iter() {
            here.store_memory(self.geometry.line(block, place), mask, leaves);
        }
    }
}
