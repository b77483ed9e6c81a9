//! Conversion from lane addresses to line transactions and to passes over the scratchpad's banks.

use super::opcode::LANES;
use tombolo_types::stream::{Access, Accesses};
use tombolo_types::{Line, LineSize, Mask};

/// Banks of the scratchpad. Source: CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x to 9.x.
const BANKS: usize = 32;
/// Width of a bank in bytes. Source: as above.
const WORD: u64 = 4;
/// Size in bytes of the generic address windows for scratchpad and local memory, and of a thread's local addresses.
/// Source: in traces of A100 and H100 the bases are multiples of 16 MiB and the stack ends at offset 2^24.
pub(super) const WINDOW: u64 = 1 << 24;

/// Appends the line transactions of an instruction, in ascending line order.
pub(super) struct Coalescer<'a> {
    accesses: &'a mut Vec<Access>,
    start: usize,
    line_size: LineSize,
    sorted: bool,
    /// Accessed bytes not yet added: neighbouring lanes mostly access neighbouring bytes.
    run: ByteRun,
}

/// A run of `bytes` bytes from `address`.
#[derive(Clone, Copy, Default)]
struct ByteRun {
    address: u64,
    bytes: u64,
}

impl<'a> Coalescer<'a> {
    /// A coalescer for an instruction whose accesses are appended to `accesses`.
    pub(super) fn new(accesses: &'a mut Vec<Access>, line_size: LineSize) -> Coalescer<'a> {
        let start = accesses.len();
        Coalescer { accesses, start, line_size, sorted: true, run: ByteRun::default() }
    }

    /// Notes that a lane accesses `bytes` bytes from `address`.
    #[inline]
    pub(super) fn touch(&mut self, address: u64, bytes: u64) {
        let run = &mut self.run;
        if address == run.address.wrapping_add(run.bytes) {
            run.bytes += bytes;
        } else if address != run.address || bytes > run.bytes {
            let run = std::mem::replace(run, ByteRun { address, bytes });
            self.add_run(run);
        }
    }

    fn add_run(&mut self, ByteRun { mut address, mut bytes }: ByteRun) {
        while bytes > 0 {
            let room = self.line_size.bytes() - (address & (self.line_size.bytes() - 1));
            let here = bytes.min(room);
            self.add(self.line_size.line_of(address), self.line_size.mask(address, here));
            address = address.wrapping_add(here);
            bytes -= here;
        }
    }

    #[inline]
    fn add(&mut self, line: Line, mask: Mask) {
        let mine = &mut self.accesses[self.start..];
        match mine.last_mut() {
            Some(last) if { last.line } == line => {
                last.mask |= mask;
                return;
            }
            Some(last) if self.sorted && { last.line } > line => self.sorted = false,
            _ => {}
        }
        if !self.sorted
            && let Some(same) = mine.iter_mut().find(|access| { access.line } == line)
        {
            same.mask |= mask;
            return;
        }
        self.accesses.push(Access { line, mask });
    }

    /// Returns the accesses, or `None` if their number exceeds an instruction's limit.
    pub(super) fn finish(mut self) -> Option<Accesses> {
        self.add_run(self.run);
        let mine = &mut self.accesses[self.start..];
        if !self.sorted {
            mine.sort_unstable_by_key(|access| access.line);
        }
        let len = u8::try_from(mine.len()).ok()?;
        let start = u32::try_from(self.start).ok()?;
        Some(Accesses { start, len })
    }
}

/// Layout of local memory for the threads of a kernel.
///
/// A thread's local address names a word private to the thread: word `w` of the 32 lanes in a warp forms a run of 128
/// bytes. Source: CUDA C++ Programming Guide, "Local Memory": consecutive words are accessed by consecutive thread ids.
/// Traces do not record the hardware's placement, so local memory is laid out in a region of its own. The region
/// consists of blocks with [`LocalMemory::BLOCK`] bytes per thread: a given block for every warp in the grid, then the
/// next block. Pages in the region are shared by neighbouring warps and contain no untouched memory in between.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalMemory {
    /// Address of the region's first byte.
    pub(super) region: u64,
    /// Number of warps in the grid.
    pub(super) warps: u64,
    /// Generic address that corresponds to local address 0.
    pub(super) base: u64,
}

impl LocalMemory {
    /// Contiguous bytes per thread.
    const BLOCK: u64 = 256;

    /// Address at which lane `lane` of warp `warp` in the grid keeps the word at `address`, local or generic.
    fn word(self, warp: u64, lane: u32, address: u64) -> u64 {
        let offset = if address < WINDOW { address } else { address.wrapping_sub(self.base) & (WINDOW - 1) };
        // Stacks grow down from the end of the window: counting from the end, all stacks use the first blocks.
        let block = (WINDOW - 1 - offset) / Self::BLOCK;
        let word = offset % Self::BLOCK / WORD;
        let lanes = u64::from(LANES);
        let warp_block = block.wrapping_mul(self.warps).wrapping_add(warp).wrapping_mul(Self::BLOCK * lanes);
        self.region.wrapping_add(warp_block).wrapping_add((word * lanes + u64::from(lane)) * WORD)
    }

    /// Accesses `bytes` bytes from a local address for each active lane in warp `warp`.
    pub(super) fn touch(self, warp: u64, mask: u32, addresses: &[u64], bytes: u64, into: &mut Coalescer<'_>) {
        let words = bytes.div_ceil(WORD);
        for word in 0..words {
            let mut lanes = mask;
            for address in addresses {
                let lane = lanes.trailing_zeros();
                lanes &= lanes.wrapping_sub(1);
                let in_word = bytes.min(WORD);
                let first = address.wrapping_add(word * WORD);
                let place = self.word(warp, lane, first).wrapping_add(first % WORD);
                into.touch(place, in_word.min(WORD - first % WORD));
            }
        }
    }
}

/// Number of passes over the scratchpad for an access to `bytes` bytes at each address: the largest number of distinct
/// words in a single bank, at least 1.
pub(super) fn bank_passes(addresses: &[u64], bytes: u64) -> u16 {
    let words = bytes.div_ceil(WORD).max(1);
    let all = || addresses.iter().flat_map(|address| (0..words).map(move |place| (address / WORD).wrapping_add(place)));
    let mut first: [Option<u64>; BANKS] = [None; BANKS];
    let conflict = all().any(|word| *first[bank(word)].get_or_insert(word) != word);
    if !conflict {
        return 1;
    }
    let mut wanted: Vec<(usize, u64)> = all().map(|word| (bank(word), word)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let longest = wanted.chunk_by(|one, next| one.0 == next.0).map(<[_]>::len).max();
    longest.expect("a conflict has words") as u16
}

/// Number of passes over the scratchpad for an atomic of `bytes` bytes at each address: the largest number of words in a
/// single bank, where lanes with the same word follow each other. Source: GPGPU-Sim, `generate_mem_accesses`: atomics
/// have no broadcast.
pub(super) fn lane_passes(addresses: &[u64], bytes: u64) -> u16 {
    let words = bytes.div_ceil(WORD).max(1);
    let mut counts = [0_u16; BANKS];
    for address in addresses {
        (0..words).for_each(|place| counts[bank((address / WORD).wrapping_add(place))] += 1);
    }
    counts.into_iter().max().unwrap_or(1).max(1)
}

fn bank(word: u64) -> usize {
    (word % BANKS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(touches: &[(u64, u64)]) -> Vec<(u64, u32)> {
        let mut accesses = Vec::new();
        let mut coalescer = Coalescer::new(&mut accesses, LineSize::B128);
        for (address, bytes) in touches {
            coalescer.touch(*address, *bytes);
        }
        assert_eq!(usize::from(coalescer.finish().unwrap().len), accesses.len());
        accesses.iter().map(|access| (access.line.0, access.mask.0)).collect()
    }

    #[test]
    fn neighbouring_lanes_share_a_line() {
        let warp: Vec<(u64, u64)> = (0..32).map(|lane| (0x1000 + lane * 4, 4)).collect();
        assert_eq!(lines(&warp), [(0x20, u32::MAX)]);
    }

    #[test]
    fn scattered_lanes_give_each_line_once_in_order() {
        assert_eq!(lines(&[(0x200, 4), (0x80, 4), (0x204, 4), (0x100, 4), (0x84, 4)]), [(1, 3), (2, 1), (4, 3)]);
    }

    #[test]
    fn an_access_across_two_lines_touches_both() {
        assert_eq!(lines(&[(0x7c, 8)]), [(0, 1 << 31), (1, 1)]);
        assert_eq!(lines(&[(u64::MAX - 3, 8)]), [(0, 1), (u64::MAX >> 7, 1 << 31)]);
    }

    fn local(mask: u32, addresses: &[u64], bytes: u64) -> Vec<Access> {
        let mut accesses = Vec::new();
        let mut coalescer = Coalescer::new(&mut accesses, LineSize::B128);
        LocalMemory { region: 0, warps: 10, base: 0x7f00_0000_0000 }.touch(3, mask, addresses, bytes, &mut coalescer);
        coalescer.finish().unwrap();
        accesses
    }

    #[test]
    fn local_words_of_a_warp_are_interleaved() {
        let accesses = local(u32::MAX, &[0xff_fff8; 32], 8);
        assert_eq!(accesses.len(), 2, "two words of 32 lanes are two lines");
        assert!(accesses.iter().all(|access| access.mask == Mask::ALL));
        assert_eq!({ accesses[1].line }.0, (3 * 256 * 32 + 63 * 128) / 128, "the last word of the block of warp 3");
    }

    #[test]
    fn a_generic_address_of_local_memory_is_its_local_address() {
        assert_eq!(local(1, &[0x7f00_00ff_0000], 4), local(1, &[0xff_0000], 4));
    }

    #[test]
    fn a_local_byte_touches_the_word_of_its_lane() {
        let accesses = local(0b100, &[0xff_ff01], 1);
        assert_eq!(accesses, [Access { line: Line((3 * 256 * 32) / 128), mask: Mask(0b100) }]);
    }

    #[test]
    fn atomics_of_one_word_follow_each_other() {
        assert_eq!(lane_passes(&[0x400; 32], 4), 32);
        assert_eq!(lane_passes(&[[0x400; 16], [0x404; 16]].concat(), 4), 16, "two words in two banks");
        assert_eq!(lane_passes(&[[0x400; 16], [0x480; 16]].concat(), 4), 32, "two words in one bank");
        assert_eq!(lane_passes(&(0..32).map(|lane| lane * 4).collect::<Vec<u64>>(), 4), 1);
        assert_eq!(lane_passes(&[0x400; 32], 8), 32);
        assert_eq!(lane_passes(&[], 4), 1);
    }

    #[test]
    fn bank_conflicts_are_counted_by_distinct_words() {
        let strided = |stride: u64| (0..32).map(|lane| lane * stride).collect::<Vec<u64>>();
        assert_eq!(bank_passes(&strided(4), 4), 1);
        assert_eq!(bank_passes(&strided(0), 4), 1, "one word for all is broadcast");
        assert_eq!(bank_passes(&strided(8), 4), 2);
        assert_eq!(bank_passes(&strided(128), 4), 32);
        assert_eq!(bank_passes(&strided(8), 8), 2, "two half warps");
        assert_eq!(bank_passes(&strided(16), 16), 4);
        assert_eq!(bank_passes(&strided(1), 1), 1);
        assert_eq!(bank_passes(&[], 4), 1);
    }
}
