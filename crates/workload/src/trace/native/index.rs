//! Index for native traces: locations of each kernel's CTAs in the file.

use super::LARGEST_BLOCK;

/// Size of a block's index entry in bytes.
const ENTRY: usize = 8 + 4 + 4 + 4 + 8;

/// A compressed run of CTAs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockEntry {
    /// Byte offset in the file.
    pub(super) offset: u64,
    /// Length in the file, in bytes.
    pub(super) length: u32,
    /// Length after unpacking, in bytes.
    pub(super) unpacked: u32,
    /// Number of CTAs, at least 1.
    pub(super) ctas: u32,
    /// Checksum over the block's bytes in the file.
    pub(super) checksum: u64,
}

/// The blocks of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelIndex {
    pub(super) blocks: Vec<BlockEntry>,
    /// First CTA index for each block.
    first: Vec<u32>,
}

impl KernelIndex {
    /// Appends a block with the next CTAs.
    pub(super) fn push(&mut self, block: BlockEntry) {
        let next = self.ctas();
        self.first.push(next);
        self.blocks.push(block);
    }

    /// CTA count over all blocks.
    fn ctas(&self) -> u32 {
        self.first.last().copied().unwrap_or(0) + self.blocks.last().map_or(0, |block| block.ctas)
    }

    /// Finds `cta`: returns the block number and the CTA's position within the block.
    pub(super) fn find(&self, cta: u32) -> Option<(usize, u32)> {
        let number = self.first.partition_point(|first| *first <= cta).checked_sub(1)?;
        let place = cta - self.first[number];
        (place < self.blocks[number].ctas).then_some((number, place))
    }
}

/// Appends all kernels' indices to `out`.
pub(super) fn write(kernels: &[KernelIndex], out: &mut Vec<u8>) {
    for kernel in kernels {
        out.extend((kernel.blocks.len() as u32).to_le_bytes());
        for block in &kernel.blocks {
            out.extend(block.offset.to_le_bytes());
            out.extend(block.length.to_le_bytes());
            out.extend(block.unpacked.to_le_bytes());
            out.extend(block.ctas.to_le_bytes());
            out.extend(block.checksum.to_le_bytes());
        }
    }
}

/// Reads the index for kernels with `ctas` CTAs each. Their blocks must fill the file from `start` to `end` without a
/// gap. An error includes the position in `bytes`.
pub(super) fn read(
    bytes: &[u8],
    ctas: impl Iterator<Item = u32>,
    start: u64,
    end: u64,
) -> Result<Vec<KernelIndex>, (usize, String)> {
    let mut at = 0;
    let mut offset = start;
    let mut kernels = Vec::new();
    for (number, ctas) in ctas.enumerate() {
        let count = take(bytes, &mut at).map(u32::from_le_bytes);
        let count = count.ok_or_else(|| (at, format!("the index ends before kernel {number}")))? as usize;
        if count > (bytes.len() - at) / ENTRY {
            return Err((at, format!("the index ends within the {count} blocks of kernel {number}")));
        }
        let mut kernel = KernelIndex::default();
        for _ in 0..count {
            let begin = at;
            let block = entry(bytes, &mut at).ok_or_else(|| (begin, "the index ends within a block".to_owned()))?;
            check(&block, offset, end, ctas - kernel.ctas()).map_err(|message| (begin, message))?;
            offset += u64::from(block.length);
            kernel.push(block);
        }
        if kernel.ctas() != ctas {
            return Err((at, format!("kernel {number} has {ctas} CTAs, but its blocks hold {}", kernel.ctas())));
        }
        kernels.push(kernel);
    }
    if at != bytes.len() {
        return Err((at, format!("{} bytes after the last kernel", bytes.len() - at)));
    }
    if offset != end {
        return Err((at, format!("blocks end at byte {offset}, but the index begins at byte {end}")));
    }
    Ok(kernels)
}

/// Checks a block that must begin at `offset`, end at or before `end`, and hold at most `left` CTAs.
fn check(block: &BlockEntry, offset: u64, end: u64, left: u32) -> Result<(), String> {
    if block.offset != offset {
        return Err(format!("a block at byte {}, expected at byte {offset}", block.offset));
    }
    if u64::from(block.length) > end - offset {
        return Err(format!("a block of {} bytes, of which {} are in the file", block.length, end - offset));
    }
    if block.ctas == 0 || block.ctas > left {
        return Err(format!("a block of {} CTAs, where 1 to {left} are left", block.ctas));
    }
    if block.unpacked as usize > LARGEST_BLOCK {
        return Err(format!("a block of {} bytes unpacked; the largest is {LARGEST_BLOCK}", block.unpacked));
    }
    Ok(())
}

fn entry(bytes: &[u8], at: &mut usize) -> Option<BlockEntry> {
    Some(BlockEntry {
        offset: take(bytes, at).map(u64::from_le_bytes)?,
        length: take(bytes, at).map(u32::from_le_bytes)?,
        unpacked: take(bytes, at).map(u32::from_le_bytes)?,
        ctas: take(bytes, at).map(u32::from_le_bytes)?,
        checksum: take(bytes, at).map(u64::from_le_bytes)?,
    })
}

/// Reads the next `N` bytes of a number and advances `at`.
pub(super) fn take<const N: usize>(bytes: &[u8], at: &mut usize) -> Option<[u8; N]> {
    let number = bytes.get(*at..)?.first_chunk::<N>()?;
    *at += N;
    Some(*number)
}
