//! The caches of GPUs, and the directory beside an L2.

use crate::quantity::{Fraction, choice};
use crate::section::section;
use tombolo_types::{Ps, Rate};

choice! {
    /// How a line chooses its set.
    pub enum SetIndex {
        /// By a hash of the line number: any number of sets.
        Hashed = "hashed",
        /// By the low bits of the line number: a power of two of sets.
        LowBits = "low-bits",
    }
}

section! {
    /// The L1 data cache of an SM.
    pub struct L1Config {
        /// Capacity, in bytes.
        bytes: u64,
        /// Lines of a set.
        ways: u32,
        /// Bytes fetched together: a power of two that divides the line, at least a 32nd of it.
        sector_bytes: u64,
        /// Outstanding misses, at most, in lines.
        mshrs: u32,
        /// Requests that wait on one outstanding sector, at most, the first included.
        merges: u32,
        /// Lines whose tags are looked up each cycle, a transaction each.
        lookups_per_cycle: Fraction,
        /// Cycles that a memory instruction keeps the L1 from the next, at least, however few lines it has: its lanes'
        /// addresses come some at a time. None where lines alone count.
        instruction_cycles: Option<u32> = None,
        /// Banks of the data, each of which reads 4 bytes a cycle for the loads that hit: words of one bank are read one
        /// after the other. A power of two up to 64; none where lookups alone bound what is read.
        banks: Option<u32> = None,
        /// Load hit: issue to result. A miss leaves for the crossbar within it, so that a load served
        /// elsewhere takes this time plus what happens beyond the L1.
        hit_latency: Ps,
        /// How a line chooses its set.
        set_index: SetIndex,
    }
}

section! {
    /// The L2 cache of a module.
    pub struct L2Config {
        /// Capacity of a module, over all its slices, in bytes.
        bytes: u64,
        /// Lines of a set.
        ways: u32,
        /// Slices of a module; lines are spread over them by a hash.
        slices: u16,
        /// Outstanding misses of a slice, at most, in lines.
        mshrs: u32,
        /// Requests that wait on one outstanding line, at most, the first included.
        merges: u32,
        /// Slice access: from the arrival of a request to its reply leaving on a hit, or its miss leaving. A fill is sent
        /// on as it is written.
        hit_latency: Ps,
        /// Data that a slice reads or writes.
        rate: Rate,
        /// Cycles from one request that a slice takes to the next, at least, however few the bytes.
        request_cycles: Fraction = Fraction::ONE,
        /// Lines that a slice passes, in the bytes that they hold, while it is walked for a release's write-backs or a bulk
        /// invalidation; all slices are walked side by side, beside their accesses. Infinite where a walk is free.
        walk_rate: Rate = Rate::INFINITE,
        /// Stores of a module sent to other modules and not yet acknowledged, at most, in line transactions.
        posted_stores: u32,
        /// How a line chooses its set within its slice.
        set_index: SetIndex,
    }
}

choice! {
    /// What a store of another module does to a directory that has no entry for its region.
    pub enum AllocateOnStore {
        /// Takes an entry for its sender, whose L2 keeps what it stored: HMG's Table I, read literally.
        Literal = "literal",
        /// Takes none: a store that misses its own L2 leaves nothing there. Readers alone are tracked.
        SharersOnly = "sharers-only",
    }
}

choice! {
    /// Which regions a directory has entries for.
    pub enum DirectoryTracks {
        /// Those that another module or GPU shares: HMG's Table I.
        Shared = "shared",
        /// Also those of which its own L2 holds a line. An entry that is replaced drops those lines, dirty ones to memory.
        All = "all",
    }
}

section! {
    /// The coherence directory of a module.
    pub struct DirectoryConfig {
        /// Entries of a module.
        entries: u32,
        /// Entries of a set.
        ways: u32,
        /// Neighbouring lines tracked by one entry: a power of two.
        lines_per_entry: u32,
        /// Tag bits of an entry, for the hardware cost only.
        tag_bits: u32,
        /// What a store of another module does where it finds no entry.
        allocate_on_store: AllocateOnStore = AllocateOnStore::Literal,
        /// Which regions have entries.
        tracks: DirectoryTracks = DirectoryTracks::Shared,
    }
}
