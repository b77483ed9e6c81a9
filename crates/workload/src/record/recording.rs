//! A recorded program, decoded CTA by CTA from any thread.

use super::block::{BLOCK_BYTES, Block, Store, cta_bytes};
use super::sample::{LaunchWeights, TimeWeights};
use crate::encode::decode;
use crate::parameter::AdjustedParameter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tombolo_types::stream::{Command, CtaStream, KernelInfo, Program, StreamError};
use tombolo_types::{ArrayInfo, HostPhase, LineSize};

/// Shard count for the cache of unpacked blocks, to avoid lock contention between threads.
const SHARDS: usize = 64;
/// Unpacked blocks per shard. Source: 64 shards with 8 blocks of 64 KiB are 32 MiB and serve 512 modules, each with a
/// separate CTA sequence.
const BLOCKS_PER_SHARD: usize = 8;
/// Largest capacity at which a block's storage is kept for reuse, in bytes: enough for most blocks with several CTAs.
const SPARE_BYTES: usize = 2 * BLOCK_BYTES;

/// A program whose streams were recorded. Replay is identical for every memory system, any number of times.
pub struct Recording {
    pub(super) name: String,
    pub(super) line: LineSize,
    pub(super) width: u32,
    pub(super) kernels: Vec<KernelInfo>,
    /// Blocks of each kernel, in CTA order.
    pub(super) blocks: Vec<Vec<Block>>,
    pub(super) commands: Vec<Command>,
    pub(super) setup: HostPhase,
    pub(super) phases: Vec<HostPhase>,
    pub(super) results: HostPhase,
    /// Weight and origin for each launch.
    pub(super) parts: Vec<LaunchWeights>,
    /// Launch count for the whole program.
    pub(super) launches: f64,
    pub(super) arrays: Vec<ArrayInfo>,
    /// True if the size of some array follows the scale of a run.
    pub(super) scales: bool,
    pub(super) store: Store,
    pub(super) instructions: u64,
    pub(super) cache: Cache,
    /// Parameters that the workload set to different values than requested.
    pub(super) adjusted: Vec<AdjustedParameter>,
    pub(super) notes: Vec<String>,
}

impl Recording {
    /// True if the size of some array follows the scale of a run.
    pub fn scales(&self) -> bool {
        self.scales
    }

    /// Parameters that the workload set to different values than requested.
    pub fn adjusted(&self) -> &[AdjustedParameter] {
        &self.adjusted
    }

    /// Notes for readers of the results, including every adjusted parameter.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the recording with the adjustments and notes from its workload's layout.
    pub(crate) fn with_notes(self, adjusted: Vec<AdjustedParameter>, notes: Vec<String>) -> Recording {
        Recording { adjusted, notes, ..self }
    }

    /// Weight of each launch in the whole program, in order.
    pub fn parts(&self) -> &[LaunchWeights] {
        &self.parts
    }

    /// Launch count for the whole program, recorded or not.
    pub fn launches(&self) -> u64 {
        self.launches.round() as u64
    }

    /// True if less than the whole program is recorded.
    pub fn is_sampled(&self) -> bool {
        self.parts.iter().any(|part| part.weights != TimeWeights { total: 1.0, second_half: 0.0 })
    }

    /// Bytes of compressed streams, in memory and on disk.
    pub fn packed_bytes(&self) -> u64 {
        self.blocks.iter().flatten().map(Block::packed_bytes).sum()
    }

    /// Bytes of compressed streams on disk.
    pub fn spilled_bytes(&self) -> u64 {
        self.store.spilled()
    }

    /// Warp instructions of all kernels; each kernel counts once, regardless of the launch count.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    fn block(&self, kernel: u32, cta: u32) -> Option<(usize, &Block)> {
        let blocks = self.blocks.get(kernel as usize)?;
        let place = blocks.partition_point(|block| block.first <= cta).checked_sub(1)?;
        let block = &blocks[place];
        (cta - block.first < block.ctas).then_some((place, block))
    }

    fn unpack(&self, block: &Block, into: &mut Vec<u8>) -> Result<(), StreamError> {
        self.store
            .unpack(block, into)
            .map_err(|error| StreamError { message: format!("cannot read back a block of the recording: {error}") })
    }
}

impl Program for Recording {
    fn name(&self) -> &str {
        &self.name
    }

    fn line_size(&self) -> LineSize {
        self.line
    }

    fn warp_width(&self) -> u32 {
        self.width
    }

    fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    fn commands(&self) -> &[Command] {
        &self.commands
    }

    fn arrays(&self) -> &[ArrayInfo] {
        &self.arrays
    }

    fn host_phases(&self) -> &[HostPhase] {
        &self.phases
    }

    fn setup(&self) -> &HostPhase {
        &self.setup
    }

    fn results(&self) -> &HostPhase {
        &self.results
    }

    fn cta(&self, kernel: u32, cta: u32, into: &mut CtaStream) -> Result<(), StreamError> {
        let missing = || StreamError { message: format!("kernel {kernel} has no CTA {cta}") };
        let (place, block) = self.block(kernel, cta).ok_or_else(missing)?;
        let mut read = |raw: &[u8]| {
            let bytes = cta_bytes(raw, block.ctas, cta - block.first).ok_or_else(missing)?;
            decode(bytes, into).map(|_| ())
        };
        let held = self.cache.slot((kernel, place as u32));
        let mut raw = match held.get() {
            Ok(raw) => return read(&raw),
            Err(storage) => storage,
        };
        self.unpack(block, &mut raw)?;
        if block.ctas == 1 {
            // A block with a single CTA is unlikely to be requested again soon.
            let done = read(&raw);
            held.shard().keep_storage(raw);
            return done;
        }
        read(&held.put(raw))
    }
}

/// Kernel index and block index.
type BlockKey = (u32, u32);

/// Cache of recently unpacked blocks.
pub(super) struct Cache {
    shards: Vec<Mutex<Shard>>,
}

#[derive(Default)]
struct Shard {
    /// Cached blocks, most recently used first.
    blocks: Vec<(BlockKey, Arc<Vec<u8>>)>,
    /// Storage of an evicted block, reused for the next block. Blocks come and go all the time, and memory that an
    /// allocator returns to the system breaks up its huge pages.
    spare: Vec<u8>,
}

impl Shard {
    fn keep_storage(&mut self, storage: Vec<u8>) {
        if storage.capacity() <= SPARE_BYTES {
            self.spare = storage;
        }
    }
}

/// Cache slot of a block: its shard and its key.
struct CacheSlot<'a> {
    shard: &'a Mutex<Shard>,
    key: BlockKey,
}

impl Cache {
    pub(super) fn new() -> Cache {
        Cache { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    fn slot(&self, key: BlockKey) -> CacheSlot<'_> {
        let shard = &self.shards[(key.0 as usize).wrapping_mul(31).wrapping_add(key.1 as usize) % SHARDS];
        CacheSlot { shard, key }
    }
}

impl CacheSlot<'_> {
    fn shard(&self) -> MutexGuard<'_, Shard> {
        self.shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cached block, or storage for unpacking it.
    fn get(&self) -> Result<Arc<Vec<u8>>, Vec<u8>> {
        let mut shard = self.shard();
        let Some(place) = shard.blocks.iter().position(|(held, _)| *held == self.key) else {
            return Err(std::mem::take(&mut shard.spare));
        };
        shard.blocks[..=place].rotate_right(1);
        Ok(Arc::clone(&shard.blocks[0].1))
    }

    /// Inserts the block and evicts the least recently used block if the shard is full.
    fn put(&self, raw: Vec<u8>) -> Arc<Vec<u8>> {
        let mut shard = self.shard();
        if shard.blocks.len() >= BLOCKS_PER_SHARD
            && let Some((_, oldest)) = shard.blocks.pop()
            && let Some(storage) = Arc::into_inner(oldest)
        {
            shard.keep_storage(storage);
        }
        let raw = Arc::new(raw);
        shard.blocks.insert(0, (self.key, Arc::clone(&raw)));
        raw
    }
}
