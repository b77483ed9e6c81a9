//! The GPUs' caches, and the directory next to an L2.

use crate::quantity::{Fraction, choice};
use crate::section::section;
use tombolo_types::{Ps, Rate, StoreAllocation, Tracks};

choice! {
    /// The mapping from a line to its set.
    pub enum SetIndex {
        /// Sets are chosen by a hash of the line number: any number of sets.
        Hashed = "hashed",
        /// Sets are chosen by the low bits of the line number; the number of sets must be a power of two.
        LowBits = "low-bits",
    }
}

section! {
    /// The L1 data cache in an SM.
    pub struct L1Config {
        /// Capacity, in bytes.
        bytes: u64,
        /// Lines per set.
        ways: u32,
        /// Bytes fetched together: a power of two that divides the line, at least a 32nd of it.
        sector_bytes: u64,
        /// Outstanding misses, at most, in lines.
        mshrs: u32,
        /// Requests waiting on one outstanding sector, at most, the first included.
        merges: u32,
        /// Lines whose tags are looked up per cycle, a transaction each.
        lookups_per_cycle: Fraction,
        /// Minimum cycles for which a memory instruction keeps the L1 from the next, however few lines it has: its
        /// lanes' addresses arrive in parts. None if only lines count.
        instruction_cycles: Option<u32> = None,
        /// Lookup time for a load's line that is not in the cache; 0 if that of a line in the cache.
        miss_lookup: Ps = Ps::ZERO,
        /// Time from a line requested by a load to the next, at least.
        request_interval: Ps = Ps::ZERO,
        /// Time from a load instruction's first request to the next load's, at least, however few lines it requests.
        request_instruction: Ps = Ps::ZERO,
        /// Data banks, each of which reads 4 bytes a cycle for loads that hit: words in one bank are read one after
        /// the next. A power of two up to 64; none if only lookups bound the reads.
        banks: Option<u32> = None,
        /// Load hit: issue to result. A miss leaves for the crossbar within this time, so a load served elsewhere
        /// takes this time plus the time beyond the L1.
        hit_latency: Ps,
        /// Mapping from lines to sets.
        set_index: SetIndex,
    }
}

section! {
    /// The L2 cache in a module.
    pub struct L2Config {
        /// Capacity per module, over all its slices, in bytes.
        bytes: u64,
        /// Lines per set.
        ways: u32,
        /// Slices per module; lines are spread over them by a hash.
        slices: u16,
        /// Bytes that a miss fetches from memory at least, aligned: a power of two, from a sector to a line. Sectors
        /// beside the requested one stay in the L2. None for a sector.
        fetch_bytes: Option<u32> = None,
        /// Outstanding misses per slice, at most, in lines.
        mshrs: u32,
        /// Requests waiting on one outstanding line, at most, the first included.
        merges: u32,
        /// Slice access: from a request's arrival to the reply's departure on a hit, or the miss's. A fill is
        /// forwarded as it is written.
        hit_latency: Ps,
        /// Data read or written per slice.
        rate: Rate,
        /// Minimum cycles from one request accepted by a slice to the next, however few bytes.
        request_cycles: Fraction = Fraction::ONE,
        /// Rate at which lines, in the bytes they hold, pass in a slice's walk for a release's write-backs or a
        /// bulk invalidation; all slices are walked in parallel, alongside their accesses. Infinite if a walk is
        /// free.
        walk_rate: Rate = Rate::INFINITE,
        /// Stores sent from a module to other modules and not yet acknowledged, at most, in transactions.
        posted_stores: u32,
        /// Mapping from lines to sets within a slice.
        set_index: SetIndex,
    }
}

section! {
    /// The coherence directory in a module.
    pub struct DirectoryConfig {
        /// Entries per module.
        entries: u32,
        /// Entries per set.
        ways: u32,
        /// Neighbouring lines per entry: a power of two.
        lines_per_entry: u32,
        /// Tag bits per entry, for the hardware cost only.
        tag_bits: u32,
        /// Effect of a remote module's store that finds no entry.
        allocate_on_store: StoreAllocation = StoreAllocation::Literal,
        /// Regions with entries.
        tracks: Tracks = Tracks::Shared,
    }
}
