//! Blocks: several CTAs of one kernel, encoded, compressed together, in memory or in a temporary file.
//!
//! ```text
//! block := end* cta*      before compression; end: 4 bytes little endian, where each CTA ends
//! ```

use super::RecordError;
use crate::encode::encode;
use crate::unpack::unpack;
use rustc_hash::FxHasher;
use std::fs::File;
use std::hash::Hasher;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tombolo_types::StopFlag;
use tombolo_types::stream::CtaStream;

/// Encoded size at which a block is closed, in bytes. Source: measured; larger blocks compress little better, and a
/// simulation with hundreds of modules keeps an open block for each module.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// Compression level. Source: measured; level 3 is a third slower and shrinks blocks by only a few percent.
const LEVEL: i32 = 1;

/// Location of a block's compressed bytes: in memory or in the spill file.
enum BlockLocation {
    InMemory(Box<[u8]>),
    /// Offset in the spill file.
    InSpillFile(u64),
}

/// Consecutive CTAs of a kernel, packed together.
pub(crate) struct Block {
    /// Index of the first CTA.
    pub(crate) first: u32,
    /// Number of CTAs.
    pub(crate) ctas: u32,
    raw_bytes: usize,
    /// Hash of the compressed bytes.
    digest: u64,
    packed_bytes: usize,
    location: BlockLocation,
}

impl Block {
    pub(crate) fn packed_bytes(&self) -> u64 {
        self.packed_bytes as u64
    }
}

/// Encodes CTAs in order and closes blocks when they are full.
pub(crate) struct Packer<'a> {
    store: &'a Store,
    first: u32,
    ends: Vec<u32>,
    encoded: Vec<u8>,
    blocks: Vec<Block>,
    /// Warp instructions encoded so far.
    pub(crate) instructions: u64,
    stop: StopFlag,
}

impl<'a> Packer<'a> {
    /// A packer whose first CTA has index `first`.
    pub(crate) fn new(store: &'a Store, first: u32) -> Packer<'a> {
        let (ends, encoded, blocks) = (Vec::new(), Vec::new(), Vec::new());
        Packer { store, first, ends, encoded, blocks, instructions: 0, stop: StopFlag::current() }
    }

    /// Adds the next CTA, unless the work is to stop.
    pub(crate) fn push(&mut self, stream: &CtaStream) -> Result<(), RecordError> {
        if self.stop.is_set() {
            return Err(RecordError::Stopped);
        }
        self.instructions += stream.instructions();
        encode(stream, &mut self.encoded);
        let end = u32::try_from(self.encoded.len())
            .map_err(|_| std::io::Error::other("the stream of one CTA exceeds 4 GiB"))?;
        self.ends.push(end);
        if self.encoded.len() >= BLOCK_BYTES { self.close() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<(), RecordError> {
        let ctas = self.ends.len() as u32;
        if ctas == 0 {
            return Ok(());
        }
        let mut raw = Vec::with_capacity(4 * self.ends.len() + self.encoded.len());
        self.ends.drain(..).for_each(|end| raw.extend(end.to_le_bytes()));
        raw.append(&mut self.encoded);
        let packed = zstd::bulk::compress(&raw, LEVEL)?;
        let (packed_bytes, digest) = (packed.len(), digest_of(&packed));
        let location = self.store.keep(packed)?;
        self.blocks.push(Block { first: self.first, ctas, raw_bytes: raw.len(), digest, packed_bytes, location });
        self.first += ctas;
        Ok(())
    }

    /// Closes the last block and returns all blocks, with the total warp instruction count.
    pub(crate) fn finish(mut self) -> Result<(Vec<Block>, u64), RecordError> {
        self.close()?;
        Ok((self.blocks, self.instructions))
    }
}

/// Compressed bytes of all blocks: in memory up to a budget, beyond the budget in an unnamed temporary file.
pub(crate) struct Store {
    budget: u64,
    state: Mutex<StoreState>,
}

#[derive(Default)]
struct StoreState {
    held: u64,
    spill: Option<File>,
    spilled: u64,
}

impl Store {
    /// A store that holds at most `budget` bytes in memory.
    pub(crate) fn new(budget: u64) -> Store {
        Store { budget, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, packed: Vec<u8>) -> Result<BlockLocation, RecordError> {
        let mut state = self.state();
        let len = packed.len() as u64;
        if state.held + len <= self.budget {
            state.held += len;
            return Ok(BlockLocation::InMemory(packed.into_boxed_slice()));
        }
        let at = state.spilled;
        let file = match &mut state.spill {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&packed)?;
        state.spilled += len;
        Ok(BlockLocation::InSpillFile(at))
    }

    /// Releases the space of the most recently recorded kernel: memory returns to the budget, and the end of the spill
    /// file moves back.
    pub(crate) fn release(&self, blocks: &[Block]) {
        let mut state = self.state();
        for block in blocks {
            match block.location {
                BlockLocation::InMemory(_) => state.held -= block.packed_bytes(),
                BlockLocation::InSpillFile(at) => state.spilled = state.spilled.min(at),
            }
        }
    }

    /// Bytes in the temporary file.
    pub(crate) fn spilled(&self) -> u64 {
        self.state().spilled
    }

    fn packed<R>(&self, block: &Block, use_it: impl FnOnce(&[u8]) -> R) -> std::io::Result<R> {
        match &block.location {
            BlockLocation::InMemory(bytes) => Ok(use_it(bytes)),
            BlockLocation::InSpillFile(at) => {
                let mut bytes = vec![0; block.packed_bytes];
                let mut state = self.state();
                let file = state.spill.as_mut().ok_or_else(|| std::io::Error::other("no temporary file"))?;
                file.seek(SeekFrom::Start(*at))?;
                file.read_exact(&mut bytes)?;
                drop(state);
                Ok(use_it(&bytes))
            }
        }
    }

    /// Overwrites `into` with the block's uncompressed bytes.
    pub(crate) fn unpack(&self, block: &Block, into: &mut Vec<u8>) -> std::io::Result<()> {
        self.packed(block, |bytes| unpack(bytes, block.raw_bytes, into))?
    }

    /// True if two kernels' blocks are identical byte for byte.
    pub(crate) fn same(&self, a: &[Block], b: &[Block]) -> std::io::Result<bool> {
        if a.len() != b.len() {
            return Ok(false);
        }
        for (a, b) in a.iter().zip(b) {
            let alike = (a.first, a.ctas, a.digest) == (b.first, b.ctas, b.digest);
            if !alike || self.packed(a, <[u8]>::to_vec)? != self.packed(b, <[u8]>::to_vec)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Digest over a kernel's blocks: equal blocks give equal digests.
pub(crate) fn digest(blocks: &[Block]) -> u64 {
    let mut hasher = FxHasher::default();
    for block in blocks {
        hasher.write_u32(block.ctas);
        hasher.write_u64(block.digest);
    }
    hasher.finish()
}

fn digest_of(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// The encoded bytes of the CTA at index `place` in an unpacked block with `ctas` CTAs.
pub(crate) fn cta_bytes(raw: &[u8], ctas: u32, place: u32) -> Option<&[u8]> {
    let (ends, encoded) = raw.split_at_checked(4 * ctas as usize)?;
    let end = |place: u32| -> Option<usize> {
        let at = 4 * place as usize;
        Some(u32::from_le_bytes(ends.get(at..at + 4)?.try_into().ok()?) as usize)
    };
    let start = if place == 0 { 0 } else { end(place - 1)? };
    encoded.get(start..end(place)?)
}
