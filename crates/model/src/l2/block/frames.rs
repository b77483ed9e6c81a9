//! Frame allocation for blocks in the memory below a client.
//!
//! A block without a frame evicts the least recently used idle block in its set, that is a block without a transaction
//! in flight. The frame is reused immediately, while the victim's write-back is still in flight.

use super::effects::StepEffects;
use super::{Block, BlockDesign, BlockSlice, Geometry};
use crate::l2::departure::Departure;
use crate::module::config::ModuleConfig;
use crate::module::context::SliceContext;
use crate::observe::value_probe::Contents;
use rustc_hash::FxHashMap;
use tombolo_protocol::client_home::{BlockEvent, Nodes};

/// Result of a frame allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameAllocation {
    /// The block has a frame.
    Here,
    /// Every block in the given set has a transaction in flight or parked requests.
    Crowded(u64),
}

/// Set-associative frame directory with `ways` ways per set and LRU replacement. Only sets in use are stored.
#[derive(Debug)]
pub(super) struct BlockFrames {
    sets: u64,
    ways: usize,
    /// Number of slices in the block interleaving, and the binary logarithm of the consecutive blocks per slice.
    slices: u64,
    together: u32,
    used: FxHashMap<u64, Vec<(Block, u64)>>,
    clock: u64,
}

impl BlockFrames {
    pub(super) fn new<N: Nodes, D: Contents>(
        config: &ModuleConfig<BlockDesign<N>, D>,
        geometry: Geometry,
    ) -> BlockFrames {
        let machine = &config.machine;
        let stack = machine.stack.as_ref().expect("a design of blocks is built for machines that have stacks");
        let slices = u64::from(machine.l2.slices);
        let (blocks, ways) = match (config.layout.host() == Some(config.module), &machine.llc) {
            (true, Some(llc)) => (u64::from(llc.directory_blocks), llc.ways),
            (true, None) | (false, _) => (stack.capacity(machine.dram.bytes) / stack.block_bytes, stack.ways),
        };
        // A split block has one entry per part, for the same number of bytes.
        let blocks = blocks * geometry.parts();
        let together = (stack.interleave() / stack.block_bytes).max(1).trailing_zeros();
        BlockFrames {
            sets: (blocks / slices / u64::from(ways)).max(1),
            ways: ways as usize,
            slices,
            together,
            used: FxHashMap::default(),
            clock: 0,
        }
    }

    /// Returns a block's set: the slice's blocks, numbered consecutively, modulo the number of sets.
    pub(super) fn set(&self, block: Block) -> u64 {
        let group = (block.0 >> self.together) / self.slices;
        (group << self.together | block.0 & ((1 << self.together) - 1)) % self.sets
    }

    /// True if a block has a frame. Marks the frame as most recently used.
    fn touch(&mut self, set: u64, block: Block) -> bool {
        self.clock += 1;
        let found = self.used.get_mut(&set).and_then(|ways| ways.iter_mut().find(|(there, _)| *there == block));
        match found {
            Some((_, used)) => {
                *used = self.clock;
                true
            }
            None => false,
        }
    }

    fn add(&mut self, set: u64, block: Block) {
        self.used.entry(set).or_default().push((block, self.clock));
    }

    pub(super) fn remove(&mut self, block: Block) {
        let set = self.set(block);
        let Some(ways) = self.used.get_mut(&set) else { return };
        ways.retain(|(there, _)| *there != block);
        if ways.is_empty() {
            self.used.remove(&set);
        }
    }

    fn is_full(&self, set: u64) -> bool {
        self.used.get(&set).is_some_and(|ways| ways.len() >= self.ways)
    }

    /// Returns a set's blocks in LRU order, least recently used first.
    fn oldest_first(&self, set: u64) -> Vec<Block> {
        let mut ways = self.used.get(&set).cloned().unwrap_or_default();
        ways.sort_unstable_by_key(|(_, used)| *used);
        ways.into_iter().map(|(block, _)| block).collect()
    }
}

impl<N: Nodes, D: Contents> BlockSlice<N, D> {
    /// Allocates a frame for a block, evicting another block if necessary, or reports that the set is crowded.
    pub(super) fn place(
        &mut self,
        block: Block,
        here: &mut SliceContext<'_, '_, BlockDesign<N>, D>,
    ) -> FrameAllocation {
        let set = self.client.places.set(block);
        if self.client.places.touch(set, block) {
            return FrameAllocation::Here;
        }
        if self.client.places.is_full(set) {
            let idle = |other: &Block| {
                let cell = &self.client.blocks[other];
                !N::is_busy(&cell.slot) && cell.parked.is_empty()
            };
            let Some(victim) = self.client.places.oldest_first(set).into_iter().find(idle) else {
                self.stats.frame_stalls += 1;
                return FrameAllocation::Crowded(set);
            };
            self.evict(victim, here);
        }
        self.client.places.add(set, block);
        FrameAllocation::Here
    }

    fn evict(&mut self, block: Block, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        self.stats.evicted += 1;
        self.client.places.remove(block);
        let mut did = StepEffects::default();
        self.step(block, BlockEvent::Evict, &mut did, here);
        let leaves = Departure::at(here.out.now()).after(self.client.answers_after());
        self.sync_above(block, leaves, here);
        self.send_messages(block, did, leaves, here);
        self.forget_if_gone(block, here);
    }

    /// Drops the client's state for a block without contents and without waiting requests, then retries requests that
    /// wait for a frame in its set.
    pub(super) fn forget_if_gone(&mut self, block: Block, here: &mut SliceContext<'_, '_, BlockDesign<N>, D>) {
        let Some(cell) = self.client.blocks.get(&block) else { return };
        if N::is_busy(&cell.slot) {
            return;
        }
        let waits = !cell.parked.is_empty() || cell.merging.is_some() || here.config.protocol.0.owes(&cell.slot);
        if !N::holds(&cell.slot) && !waits {
            self.record_use(block);
            self.client.blocks.remove(&block);
            self.client.places.remove(block);
        }
        self.resume_crowded(self.client.places.set(block), here);
    }
}
