//! Counters of caches and memories.

use serde::{Deserialize, Serialize};

metrics! {
    /// Lookups in all L1s, counted as line transactions.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct L1Record {
        accesses: u64 = "L1 lookups", "", "Loads, stores and atomics looked up in L1 caches, by line.";
        loads: u64 = "L1 loads", "", "Of the L1 lookups, loads.";
        hits: u64 = "L1 hits", "", "Of the L1 loads, those that found their line.";
        merges: u64 = "L1 merges", "", "Of the L1 loads, those merged into a miss already on its way.";
    }
}

metrics! {
    /// Lookups in all L2 slices, counted as line transactions; a transaction forwarded to a home counts in each slice.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct L2Record {
        accesses: u64 = "L2 lookups", "", "Loads, stores and atomics looked up in L2 slices, by line; one that goes on to a home counts in each slice.";
        loads: u64 = "L2 loads", "", "Of the L2 lookups, loads.";
        hits: u64 = "L2 hits", "", "Of the L2 loads, those that found their line.";
        merges: u64 = "L2 merges", "", "Of the L2 loads, those merged into a miss already on its way.";
        remote_loads: u64 = "L2 loads from other modules", "", "Of the L2 loads, those that came from another module.";
        remote_hits: u64 = "L2 hits from other modules", "", "Of the L2 loads from other modules, those that found their line.";
    }
}

metrics! {
    /// All memory-side caches; zeros if the machine has none.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct MemoryCacheRecord: Sum {
        accesses: u64 = "L3 lookups", "", "Reads and stores looked up in caches in front of memory, by line.";
        reads: u64 = "L3 reads", "", "Of the L3 lookups, reads.";
        writes: u64 = "L3 stores", "", "Of the L3 lookups, stores.";
        hits: u64 = "L3 hits", "", "Reads that found their bytes in a cache in front of memory.";
        merges: u64 = "L3 merges", "", "Reads that found their line on its way from memory to a cache in front of it.";
        misses: u64 = "L3 misses", "", "Reads that a cache in front of memory had to pass on.";
        evictions: u64 = "L3 evictions", "lines", "Lines displaced from a cache in front of memory.";
        write_backs: u64 = "L3 write-backs", "lines", "Dirty lines that went from a cache in front of memory to memory.";
    }
}

metrics! {
    /// All memories: bytes transferred by their channels, in whole bursts, and row states met by accesses.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct DramRecord: Sum {
        read_bytes: u64 = "{0}memory reads", "B", "Bytes read from {1}, in whole bursts.";
        write_bytes: u64 = "{0}memory writes", "B", "Bytes written to {1}, in whole bursts.";
        #[serde(default)]
        row_hits: u64 = "row hits{2}", "", "Accesses of memory channels{2} to a row that was open, or about to be.";
        #[serde(default)]
        row_misses: u64 = "row misses{2}", "", "Accesses of memory channels{2} to a bank with no row open.";
        #[serde(default)]
        row_conflicts: u64 = "row conflicts{2}", "", "Accesses of memory channels{2} to a bank with another row open.";
    }
}

impl DramRecord {
    /// Accesses by all channels; each access meets a row in a state among hit, miss and conflict.
    pub fn accesses(&self) -> u64 {
        self.row_hits + self.row_misses + self.row_conflicts
    }
}

metrics! {
    /// Flits in messages between levels, both directions together, headers included. Source: CPElide (MICRO 2024), figure
    /// 10.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct TrafficRecord {
        l1_l2: u64 = "traffic between L1 and L2", "flits", "Flits between SMs and the L2 slices of their modules, both ways, headers included.";
        l2_l3: u64 = "traffic between L2 and L3", "flits", "Flits between L2 slices and caches in front of memory, both ways, headers included.";
        remote: u64 = "traffic between modules", "flits", "Flits between modules, headers included.";
    }
}

metrics! {
    /// Number of way shifts in the modules' caches, summed over the machine.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct WaysRecord: Sum {
        to_remote: u64 = "shifts of ways to remote lines", "", "Samples at which a module's controller gave a way of its caches to lines of other modules.";
        to_local: u64 = "shifts of ways to local lines", "", "Samples at which a module's controller gave a way of its caches to lines of its own memory.";
    }
}

/// Number of ways in a module's caches that local lines may use, from a given time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalWaysRecord {
    /// Module name, for example `module3`.
    pub module: String,
    /// Seconds from the start of the run.
    pub since_s: f64,
    /// Local ways in each L1; 0 if the L1 has a single way for all lines.
    pub l1: u32,
    /// Local ways in the L2; 0 if the L2 has a single way for all lines.
    pub l2: u32,
}
