//! Counters of the model's components: plain integers, one set per module, added up at the end.

/// Digest that covers a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DigestClass {
    /// Digest of the simulated result.
    Result,
    /// Digest of statistics without influence on decisions.
    Statistic,
}

counters! {
    /// Counters for the SMs in a module.
    pub struct SmStats {
        result warp_instructions = "warp instructions", "", "Instructions issued, one for all lanes of a warp.";
        result memory_instructions = "memory instructions", "", "Of the warp instructions, loads, stores, atomics and waits for flags.";
        result transactions = "transactions", "", "Line-granular requests that left the SMs' coalescers.";
        result ctas = "CTAs", "", "CTAs run.";
        result l1_loads = "L1 loads", "", "Loads looked up in L1 caches, by line.";
        result l1_hits = "L1 hits", "", "Of the L1 loads, those that found their line.";
        result l1_merges = "L1 merges", "", "Of the L1 loads, those merged into a miss already on its way.";
        result l1_invalidations = "bulk L1 invalidations", "", "Times that an acquire invalidated an L1.";
        result tlb_misses = "TLB misses", "", "Translations that missed the SM's TLB.";
        result tlb_walks = "page walks", "", "Of the TLB misses, those that missed the module's TLB too.";
        result failed_polls = "failed polls", "", "Polls that found their flag not yet set.";
        statistic parks = "parked warps", "", "Times that a warp waited for a miss register, a line, a store credit or a page.";
        statistic page_waits = "waits for pages", "", "Times that a warp waited for a page that its GPU was not to use so.";
        statistic retries = "retries", "", "Times that a warp, woken for a resource, found it gone; always zero.";
        statistic issues = "issue events", "", "Issue events of sub-cores that the simulator handled.";
        statistic stale_issues = "stale issue events", "", "Of the issue events, those overtaken by an earlier one.";
        statistic scratchpad_passes = "scratchpad passes", "", "Conflict-free passes of the scratchpads.";
    }
}

counters! {
    /// Counters for the L2 slices, the directory and the memory in a module.
    pub struct L2Stats {
        result reads = "L2 reads", "", "Reads looked up in L2 slices, by line.";
        result read_hits = "L2 read hits", "", "Of the L2 reads, those that found their line.";
        result remote_reads = "remote L2 reads", "", "Of the L2 reads, those that came from another module.";
        result remote_read_hits = "remote L2 read hits", "", "Of the remote L2 reads, those that found their line.";
        result merges = "merged L2 reads", "", "L2 reads merged into a miss already on its way.";
        result writes = "L2 writes", "", "Stores that L2 slices took.";
        result atomics = "L2 atomics", "", "Atomics that L2 slices performed.";
        result atomics_passed = "L2 atomics passed on", "", "Atomics that L2 slices sent on toward their home, once a slice.";
        result evictions = "L2 evictions", "lines", "Lines evicted from L2 slices for room.";
        result writebacks = "L2 write-backs", "lines", "Dirty lines written back by an eviction or a release.";
        result invalidations_by_store = "invalidations by stores", "messages", "Invalidations sent because of a store or an atomic.";
        result invalidations_by_eviction = "invalidations by directory evictions", "messages", "Invalidations sent because a directory entry was replaced.";
        result invalidations_forwarded = "forwarded invalidations", "messages", "Invalidations that a GPU home passed on to its modules.";
        result stores_on_shared = "stores on shared lines", "", "Stores and atomics that invalidated at least one sharer.";
        result directory_evictions = "directory evictions", "entries", "Directory entries replaced for room.";
        result directory_evictions_shared = "directory evictions with sharers", "entries", "Of the directory entries replaced, those that had a sharer.";
        result lines_invalidated_by_store = "lines invalidated by stores", "lines", "Lines dropped because of an invalidation that a store caused.";
        result lines_invalidated_by_eviction = "lines invalidated by directory evictions", "lines", "Lines dropped because of an invalidation that a directory eviction caused, or with the replaced entry that stood for them.";
        result invalidation_bytes = "invalidation traffic", "B", "Bytes of invalidations sent, each counted once however many links it crosses.";
        result bulk_invalidations = "bulk L2 invalidations", "", "Times that an acquire invalidated a whole L2 or a class of its lines.";
        result phases = "synchronisation phases", "", "Phases of acquires and releases that L2 slices answered.";
        statistic parks = "parked L2 requests", "", "Requests parked on a miss already on its way.";
        statistic queued = "queued L2 requests", "", "Requests that waited in an input queue for a miss register or a store credit.";
        statistic passed = "requests past the L2", "", "Of the L2 lookups, requests that memory took without the L2 being looked into.";
        statistic fill_bytes = "L2 fills", "B", "Bytes that came back to L2 slices for their misses.";
        statistic write_back_bytes = "L2 data written back", "B", "Dirty bytes that left L2 slices by an eviction, a release or an invalidation.";
        result inter_gpu_loads = "loads between GPUs", "", "Loads sent to another GPU.";
        result memory_read_bytes = "memory reads", "B", "Bytes that L2 slices read from memories or the caches in front of them.";
        result memory_write_bytes = "memory writes", "B", "Bytes that L2 slices wrote to memories or the caches in front of them.";
    }
}
