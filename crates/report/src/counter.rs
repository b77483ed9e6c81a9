//! The counters of a run record: the name, the unit and the meaning of each, one table for axes, heads of columns
//! and tooltips. A test holds the table to what a run really records.

/// A counter of a run record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Where it is in the record, such as `l2.hits`; `*` stands for each member of a list.
    pub path: &'static str,
    /// What people call it, such as `L2 hits`.
    pub name: &'static str,
    /// Unit; empty for a plain count.
    pub unit: &'static str,
    /// What is counted, in one sentence.
    pub about: &'static str,
}

impl Counter {
    /// Name with its unit, for an axis or the head of a column: `simulated time (s)`.
    pub fn label(&self) -> String {
        if self.unit.is_empty() { self.name.to_owned() } else { format!("{} ({})", self.name, self.unit) }
    }
}

/// The counter at `path`; members of lists by index or by `*`.
pub fn find(path: &str) -> Option<&'static Counter> {
    COUNTERS.iter().find(|counter| matches(counter.path, path))
}

fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('.');
    let same = |part: &str| {
        parts
            .next()
            .is_some_and(|given| given == part || part == "*" && given.bytes().all(|byte| byte.is_ascii_digit()))
    };
    pattern.split('.').all(same) && parts.next().is_none()
}

const fn counter(path: &'static str, name: &'static str, unit: &'static str, about: &'static str) -> Counter {
    Counter { path, name, unit, about }
}

/// Every number of a run record.
#[rustfmt::skip]
pub const COUNTERS: &[Counter] = &[
    counter("time_s", "simulated time", "s", "Time from the start of the program to the end of its last kernel's release or last copy."),
    counter("time.kernels_s", "time of kernels", "s", "Time while a kernel was open: from the end of its launch latency to the end of its release."),
    counter("time.copies_s", "time of copies", "s", "Of the rest, time while a copy between host and device memory ran."),
    counter("time.host_s", "time of the host program", "s", "Of the rest, time while the host program worked on memory."),
    counter("time.launches_s", "time of launches", "s", "The rest of the time: launch latencies."),
    counter("time.region_s", "time of the region", "s", "Time from the first kernel's opening to the last one's end, with the gaps and the copies between."),
    counter("time.whole_s", "simulated time", "s", "Time from the start of the program to the end of its last command."),
    counter("cycles", "cycles", "cycles", "Simulated time in cycles of the SM clock."),
    counter("kernel_launches", "kernel launches", "", "Kernels launched."),
    counter("warp_instructions", "warp instructions", "", "Instructions issued, one for all lanes of a warp."),
    counter("memory_instructions", "memory instructions", "", "Of the warp instructions, loads, stores and atomics."),
    counter("transactions", "transactions", "", "Line-granular requests that left the SMs' coalescers."),
    counter("inter_gpu_bytes", "traffic between GPUs", "B", "Bytes that GPUs sent each other, and the host where that is in the fabric, headers included."),

    counter("l1.accesses", "L1 lookups", "", "Loads, stores and atomics looked up in L1 caches, by line."),
    counter("l1.loads", "L1 loads", "", "Of the L1 lookups, loads."),
    counter("l1.hits", "L1 hits", "", "Of the L1 loads, those that found their line."),
    counter("l1.merges", "L1 merges", "", "Of the L1 loads, those merged into a miss already on its way."),
    counter("l2.accesses", "L2 lookups", "", "Loads, stores and atomics looked up in L2 slices, by line; one that goes on to a home counts in each slice."),
    counter("l2.loads", "L2 loads", "", "Of the L2 lookups, loads."),
    counter("l2.hits", "L2 hits", "", "Of the L2 loads, those that found their line."),
    counter("l2.merges", "L2 merges", "", "Of the L2 loads, those merged into a miss already on its way."),
    counter("l2.remote_loads", "L2 loads from other modules", "", "Of the L2 loads, those that came from another module."),
    counter("l2.remote_hits", "L2 hits from other modules", "", "Of the L2 loads from other modules, those that found their line."),

    counter("links.*.bytes", "link traffic", "B", "Bytes sent in one direction of one link, headers included."),
    counter("links.*.data_bytes", "link data", "B", "Of the bytes sent, bytes of memory: without headers, masks and what fills a flit."),
    counter("links.*.utilization", "link utilization", "share of time", "Share of the simulated time that the link was sending, 0 to 1."),
    counter("links.*.lanes", "lanes", "", "Lanes that carried this way, on average over the run; 1 of a link without lanes."),
    counter("links.*.lanes_turned", "lanes turned", "", "Lanes that turned to this way."),
    counter("gpus.*.busy_s", "busy time", "s", "Time in which the GPU had CTAs of a kernel, or stores of theirs that were not yet taken."),
    counter("gpus.*.transactions", "transactions", "", "Line-granular requests that left the coalescers of the GPU's SMs."),
    counter("gpus.*.link_bytes", "link traffic", "B", "Bytes on the GPU's link to other GPUs, both ways, headers included."),
    counter("dram.read_bytes", "memory reads", "B", "Bytes read from all memories, in whole bursts."),
    counter("dram.write_bytes", "memory writes", "B", "Bytes written to all memories, in whole bursts."),
    counter("dram.row_hits", "row hits", "", "Accesses of memory channels to a row that was open, or about to be."),
    counter("dram.row_misses", "row misses", "", "Accesses of memory channels to a bank with no row open."),
    counter("dram.row_conflicts", "row conflicts", "", "Accesses of memory channels to a bank with another row open."),
    counter("utilization.dram_channels.mean", "memory channels in use", "share of time", "Share of the simulated time that the bus of a memory channel was in use, turns included: the mean of all."),
    counter("utilization.dram_channels.highest", "busiest memory channel", "share of time", "Likewise, of the busiest."),
    counter("utilization.l2_slices.mean", "L2 slices in use", "share of time", "Share of the simulated time that the port of an L2 slice was in use, by lookups and bytes: the mean of all."),
    counter("utilization.l2_slices.highest", "busiest L2 slice", "share of time", "Likewise, of the busiest."),
    counter("utilization.crossbar_to_sms.mean", "crossbars to SMs in use", "share of time", "Share of the simulated time that the way of a crossbar to an SM was in use: the mean of all."),
    counter("utilization.crossbar_to_sms.highest", "busiest crossbar to an SM", "share of time", "Likewise, of the busiest."),
    counter("utilization.crossbar_from_sms.mean", "crossbars from SMs in use", "share of time", "Share of the simulated time that the way of a crossbar from an SM was in use, by bytes of stores and atomics: the mean of all."),
    counter("utilization.crossbar_from_sms.highest", "busiest crossbar from an SM", "share of time", "Likewise, of the busiest."),
    counter("memory_cache.accesses", "L3 lookups", "", "Reads and stores looked up in caches in front of memory, by line."),
    counter("memory_cache.reads", "L3 reads", "", "Of the L3 lookups, reads."),
    counter("memory_cache.writes", "L3 stores", "", "Of the L3 lookups, stores."),
    counter("memory_cache.hits", "L3 hits", "", "Reads that found their bytes in a cache in front of memory."),
    counter("memory_cache.merges", "L3 merges", "", "Reads that found their line on its way from memory to a cache in front of it."),
    counter("memory_cache.misses", "L3 misses", "", "Reads that a cache in front of memory had to pass on."),
    counter("memory_cache.evictions", "L3 evictions", "lines", "Lines displaced from a cache in front of memory."),
    counter("memory_cache.write_backs", "L3 write-backs", "lines", "Dirty lines that went from a cache in front of memory to memory."),
    counter("elision.boundaries", "kernel boundaries", "", "Launches, and the end of the program."),
    counter("elision.flushes", "flushes at boundaries", "", "Flushes of a module's L2 at kernel boundaries, for the host and at the end included."),
    counter("elision.invalidations", "invalidations at boundaries", "", "Invalidations of a module's L2 at kernel boundaries."),
    counter("elision.elided_flushes", "flushes elided", "", "Flushes fewer than one of each module at each boundary."),
    counter("elision.elided_invalidations", "invalidations elided", "", "Invalidations fewer than one of each module at each launch."),
    counter("elision.needed_flushes", "flushes needed", "", "Flushes at kernel boundaries that an oracle would have done."),
    counter("elision.needed_invalidations", "invalidations needed", "", "Invalidations at kernel boundaries that an oracle would have done."),
    counter("elision.elidable_flushes", "flushes that an oracle elides", "", "Flushes that an oracle elides, likewise."),
    counter("elision.elidable_invalidations", "invalidations that an oracle elides", "", "Invalidations that an oracle elides, likewise."),
    counter("elision.flushed_lines", "lines flushed at boundaries", "lines", "Dirty lines that kernel boundaries wrote to memory."),
    counter("elision.dropped_lines", "lines dropped at boundaries", "lines", "Lines that kernel boundaries dropped from L2 caches."),
    counter("elision.rows_peak", "rows of the chiplet table", "", "Rows of the command processor's table in use at most."),
    counter("phases.kernels_s", "kernels", "s", "While CTAs ran, or stores of theirs were not taken."),
    counter("phases.synchronisation_s", "kernel boundaries", "s", "Of the rest, while the boundary of a kernel was synchronised: write-backs, invalidations, merges."),
    counter("phases.copies_in_s", "copies to GPUs", "s", "Of the rest, while copies to GPUs were made before a kernel."),
    counter("phases.copies_out_s", "copies behind kernels", "s", "Of the rest, while copies were made behind kernels, or before the host read."),
    counter("phases.host_setup_s", "host writes inputs", "s", "Of the rest, while the host set arrays up, before the first command."),
    counter("phases.host_between_s", "host between kernels", "s", "Of the rest, while the host worked between commands."),
    counter("phases.host_results_s", "host reads results", "s", "Of the rest, while the host read results, behind the last command."),
    counter("phases.launches_s", "launch latencies", "s", "The rest of the run: launch latencies."),
    counter("phases.whole_s", "whole run", "s", "From the start of the program to the end of its last command; the parts add up to it."),
    counter("phases.first_value_s", "first value on the host", "s", "From the end of the last CTA to the first value that the host has loaded behind it."),
    counter("phases.last_value_s", "last value on the host", "s", "From the end of the last CTA to the end of the host's last work that loads values."),
    counter("phases.final_flush_bytes", "final flush", "B", "Dirty bytes that L2 slices wrote back for a release behind the last CTA; merges of blocks are apart."),
    counter("phases.copied_back_bytes", "copied to the host", "B", "Bytes copied from GPUs to the host, without headers."),
    counter("host_memory.read_bytes", "host memory reads", "B", "Bytes read from the memory of the host, in whole bursts."),
    counter("host_memory.write_bytes", "host memory writes", "B", "Bytes written to the memory of the host, in whole bursts."),
    counter("host_memory.row_hits", "row hits of the host", "", "Accesses of memory channels of the host to a row that was open, or about to be."),
    counter("host_memory.row_misses", "row misses of the host", "", "Accesses of memory channels of the host to a bank with no row open."),
    counter("host_memory.row_conflicts", "row conflicts of the host", "", "Accesses of memory channels of the host to a bank with another row open."),
    counter("blocks.asked", "requests for blocks", "", "Requests of GPUs and the host's cache for a block of host memory, or to have one alone."),
    counter("blocks.fetched", "blocks fetched", "", "Blocks of host memory that came to a GPU's memory."),
    counter("blocks.used_lines", "lines used of blocks", "lines", "Lines of the blocks fetched that SMs used, once for each time that the block came."),
    counter("blocks.from_peers", "blocks from peers", "", "Of the blocks that came, those that another GPU or the host's cache sent past the home."),
    counter("blocks.evicted", "blocks evicted", "", "Blocks that left a GPU's memory or the host's cache for others."),
    counter("blocks.merged", "blocks merged", "", "Blocks that a release or a launch had merged, once a GPU."),
    counter("blocks.home_waits", "requests behind a transaction", "", "Requests that waited at a home for a transaction of their block."),
    counter("blocks.written_back_bytes", "bytes sent home", "B", "Bytes of blocks that GPUs and the host's cache sent homes, without masks."),
    counter("blocks.control_messages", "messages without data", "", "Messages of blocks that carry no bytes of them."),
    counter("blocks.control_bytes", "bytes without data", "B", "Bytes of messages of blocks without data, between GPUs and between GPUs and the host."),
    counter("blocks.data_bytes", "data between GPUs and host", "B", "Bytes of blocks that crossed between GPUs or between GPUs and the host, without headers and masks."),
    counter("blocks.wanted", "blocks that GPUs asked for", "", "Blocks of host memory that at least one GPU asked for."),
    counter("blocks.wanting", "GPUs that asked for blocks", "", "GPUs that asked for a block of host memory, summed over the blocks."),
    counter("blocks.states.N", "blocks in N", "", "Blocks in GPU memories at the end of the run: shared, with bytes that this GPU alone has written."),
    counter("blocks.states.M", "blocks in M", "", "Blocks in GPU memories at the end of the run: held alone, written."),
    counter("blocks.states.O", "blocks in O", "", "Blocks in GPU memories at the end of the run: shared, written, answered for."),
    counter("blocks.states.E", "blocks in E", "", "Blocks in GPU memories at the end of the run: held alone, clean."),
    counter("blocks.states.S", "blocks in S", "", "Blocks in GPU memories at the end of the run: shared, clean."),
    counter("blocks.states.I", "blocks in I", "", "Blocks in GPU memories at the end of the run: on their way."),
    counter("paging.faults", "page faults", "", "Accesses that a GPU or the host was not to make, once a page and each at a time."),
    counter("paging.host_faults", "page faults of the host", "", "Those that the host told of."),
    counter("paging.batches", "batches of faults", "", "Batches of faults that the driver served."),
    counter("paging.migrations", "pages migrated", "", "Pages that faults moved or copied."),
    counter("paging.migrated_bytes", "bytes migrated", "B", "Bytes of pages that faults moved or copied."),
    counter("paging.prefetched_bytes", "bytes prefetched", "B", "Bytes of pages that were moved before a kernel."),
    counter("paging.shootdowns", "shootdowns", "", "Times that a page was unmapped where it was in use."),
    counter("paging.evictions", "pages evicted", "", "Pages that went to the host to make room."),
    counter("paging.pins", "pages pinned", "", "Times that a page that thrashed was pinned."),
    counter("paging.faults_s", "time in faults", "s", "While faults were being served, with what they moved."),
    counter("iteration.launches", "launches of the first iteration", "", "Launches before the first one that does what an earlier one did."),
    counter("iteration.of", "launches of the program", "", "All launches of the program."),
    counter("iteration.first_s", "first iteration", "s", "From the first kernel's opening to that of the first launch behind the first iteration."),
    counter("iteration.steady_s", "iterations behind the first", "s", "The rest of the region."),
    counter("publication.stores", "published stores", "", "Stores to pages with several subscribers."),
    counter("publication.queue_hits", "queue hits", "", "Published stores whose line was in the write queue."),
    counter("publication.atomics", "published atomics", "", "Atomics to pages with several subscribers."),
    counter("publication.published_lines", "lines published", "", "Lines sent to subscribers, once each."),
    counter("publication.published_bytes", "bytes published", "B", "Bytes of lines and atomics sent to subscribers, headers included."),
    counter("publication.useless_bytes", "bytes published in vain", "B", "Bytes published that no SM there loaded before they were published again, or at all."),
    counter("publication.unwritten_bytes", "bytes unwritten", "B", "Bytes of published lines that nobody had written."),
    counter("publication.republished_lines", "lines published again", "", "Lines sent that had been sent since the last release."),
    counter("publication.drains.watermark", "entries drained by the watermark", "", "Entries that left a write queue at its watermark."),
    counter("publication.drains.release", "entries drained by releases", "", "Entries that left at a release, a kernel's end, or a change of their page."),
    counter("publication.drains.load", "entries drained by loads", "", "Entries that left ahead of a load that found some of its bytes there."),
    counter("publication.drains.atomic", "entries drained by atomics", "", "Entries that left ahead of an atomic of their line."),
    counter("publication.tlb.accesses", "lookups of subscribers", "", "Lookups in the TLBs of subscribers."),
    counter("publication.tlb.hits", "subscribers found", "", "Lookups that found the page, or its walk on the way."),
    counter("publication.forwards", "loads from the queue", "", "Loads of a GPU without a replica that its queue answered."),
    counter("publication.remote_loads", "loads of subscribers' replicas", "", "Loads of a GPU without a replica that went to a subscriber."),
    counter("publication.subscribers.*", "pages by subscribers", "", "Pages that so many GPUs hold in the end."),
    counter("publication.collapses", "pages collapsed", "", "Pages of which a store at .sys scope left one copy."),
    counter("copies.calls", "copies between GPUs", "", "Calls that copied a range from GPU to GPU, or between the host and a GPU."),
    counter("copies.bytes", "bytes copied between GPUs", "B", "Bytes copied from GPU to GPU, or between the host and GPUs, without headers."),
    counter("copies.exposed_s", "exposed copies", "s", "While the program waited for copies, or for pages moved before a kernel."),
    counter("traffic_flits.l1_l2", "traffic between L1 and L2", "flits", "Flits between SMs and the L2 slices of their modules, both ways, headers included."),
    counter("traffic_flits.l2_l3", "traffic between L2 and L3", "flits", "Flits between L2 slices and caches in front of memory, both ways, headers included."),
    counter("traffic_flits.remote", "traffic between modules", "flits", "Flits between modules, headers included."),

    counter("coherence.reads", "L2 reads", "", "Reads looked up in L2 slices, by line."),
    counter("coherence.read_hits", "L2 read hits", "", "Of the L2 reads, those that found their line."),
    counter("coherence.remote_reads", "remote L2 reads", "", "Of the L2 reads, those that came from another module."),
    counter("coherence.remote_read_hits", "remote L2 read hits", "", "Of the remote L2 reads, those that found their line."),
    counter("coherence.merges", "merged L2 reads", "", "L2 reads merged into a miss already on its way."),
    counter("coherence.writes", "L2 writes", "", "Stores that L2 slices took."),
    counter("coherence.atomics", "L2 atomics", "", "Atomics that L2 slices performed."),
    counter("coherence.atomics_passed", "L2 atomics passed on", "", "Atomics that L2 slices sent on toward their home, once a slice."),
    counter("coherence.evictions", "L2 evictions", "lines", "Lines evicted from L2 slices for room."),
    counter("coherence.writebacks", "L2 write-backs", "lines", "Dirty lines written back by an eviction or a release."),
    counter("coherence.invalidations_by_store", "invalidations by stores", "messages", "Invalidations sent because of a store or an atomic."),
    counter("coherence.invalidations_by_eviction", "invalidations by directory evictions", "messages", "Invalidations sent because a directory entry was replaced."),
    counter("coherence.invalidations_forwarded", "forwarded invalidations", "messages", "Invalidations that a GPU home passed on to its modules."),
    counter("coherence.stores_on_shared", "stores on shared lines", "", "Stores and atomics that invalidated at least one sharer."),
    counter("coherence.directory_evictions", "directory evictions", "entries", "Directory entries replaced for room."),
    counter("coherence.directory_evictions_shared", "directory evictions with sharers", "entries", "Of the directory entries replaced, those that had a sharer."),
    counter("coherence.lines_invalidated_by_store", "lines invalidated by stores", "lines", "Lines dropped because of an invalidation that a store caused."),
    counter("coherence.lines_invalidated_by_eviction", "lines invalidated by directory evictions", "lines", "Lines dropped because of an invalidation that a directory eviction caused, or with the replaced entry that stood for them."),
    counter("coherence.invalidation_bytes", "invalidation traffic", "B", "Bytes of invalidations sent, each counted once however many links it crosses."),
    counter("coherence.bulk_invalidations", "bulk L2 invalidations", "", "Times that an acquire invalidated a whole L2 or a class of its lines."),
    counter("coherence.phases", "synchronisation phases", "", "Phases of acquires and releases that L2 slices answered."),
    counter("coherence.parks", "parked L2 requests", "", "Requests parked on a miss already on its way."),
    counter("coherence.queued", "queued L2 requests", "", "Requests that waited in an input queue for a miss register or a store credit."),
    counter("coherence.passed", "requests past the L2", "", "Of the L2 lookups, requests that memory took without the L2 being looked into."),
    counter("coherence.fill_bytes", "L2 fills", "B", "Bytes that came back to L2 slices for their misses."),
    counter("coherence.write_back_bytes", "L2 data written back", "B", "Dirty bytes that left L2 slices by an eviction, a release or an invalidation."),
    counter("coherence.inter_gpu_loads", "loads between GPUs", "", "Loads sent to another GPU."),
    counter("coherence.memory_read_bytes", "memory reads", "B", "Bytes that L2 slices read from memories or the caches in front of them."),
    counter("coherence.memory_write_bytes", "memory writes", "B", "Bytes that L2 slices wrote to memories or the caches in front of them."),

    counter("ways.to_remote", "shifts of ways to remote lines", "", "Samples at which a module's controller gave a way of its caches to lines of other modules."),
    counter("ways.to_local", "shifts of ways to local lines", "", "Samples at which a module's controller gave a way of its caches to lines of its own memory."),

    counter("stalls.warp_slot_cycles", "warp-slot cycles", "cycles", "Cycles of the SM clock, once for each warp slot: the classes below add up to it."),
    counter("stalls.issue", "issue", "cycles", "Of the warp-slot cycles, those in which a warp issued other than arithmetic, or was ready and waited for its sub-core."),
    counter("stalls.arithmetic", "arithmetic", "cycles", "Those in which a warp's arithmetic occupied its sub-core's pipelines."),
    counter("stalls.scratchpad", "waits for the scratchpad", "cycles", "Those in which a warp waited for the scratchpad."),
    counter("stalls.l1", "waits for the L1", "cycles", "Those in which a warp waited for hits of the L1, or in its queue."),
    counter("stalls.own_l2", "waits for its module", "cycles", "Those in which a warp waited for loads and atomics that the L2 or the memory of its own module answered, or for the room that one left."),
    counter("stalls.module", "waits for other modules", "cycles", "Likewise, where another module of its GPU answered."),
    counter("stalls.gpu", "waits for other GPUs", "cycles", "Likewise, where another GPU answered."),
    counter("stalls.host", "waits for the host", "cycles", "Likewise, where the host answered."),
    counter("stalls.tlb", "waits for translations", "cycles", "Those in which a warp waited for translations."),
    counter("stalls.page", "waits for pages", "cycles", "Those in which a warp waited for pages that its GPU was not to use so."),
    counter("stalls.store_credit", "waits for store credits", "cycles", "Those in which a warp waited for a store credit."),
    counter("stalls.barrier", "waits at barriers", "cycles", "Those in which a warp waited for the others of its CTA at a barrier."),
    counter("stalls.acquire", "waits to acquire", "cycles", "Those in which a warp waited for a flag, or for the operations of an acquire."),
    counter("stalls.release", "waits to release", "cycles", "Those in which a warp waited for its posted stores before a release, or for the operations of that."),
    counter("stalls.kernel_boundary", "empty at boundaries", "cycles", "Those without a warp while a kernel was open and no CTA of any ran: launches, and the operations at boundaries."),
    counter("stalls.idle", "idle", "cycles", "Those without a warp otherwise, or whose warp had ended."),
    counter("gpus.*.stalls.warp_slot_cycles", "warp-slot cycles", "cycles", "Cycles of the SM clock, once for each warp slot of the GPU: the classes below add up to it."),
    counter("gpus.*.stalls.issue", "issue", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.issue` counts."),
    counter("gpus.*.stalls.arithmetic", "arithmetic", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.arithmetic` counts."),
    counter("gpus.*.stalls.scratchpad", "waits for the scratchpad", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.scratchpad` counts."),
    counter("gpus.*.stalls.l1", "waits for the L1", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.l1` counts."),
    counter("gpus.*.stalls.own_l2", "waits for its module", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.own_l2` counts."),
    counter("gpus.*.stalls.module", "waits for other modules", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.module` counts."),
    counter("gpus.*.stalls.gpu", "waits for other GPUs", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.gpu` counts."),
    counter("gpus.*.stalls.host", "waits for the host", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.host` counts."),
    counter("gpus.*.stalls.tlb", "waits for translations", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.tlb` counts."),
    counter("gpus.*.stalls.page", "waits for pages", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.page` counts."),
    counter("gpus.*.stalls.store_credit", "waits for store credits", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.store_credit` counts."),
    counter("gpus.*.stalls.barrier", "waits at barriers", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.barrier` counts."),
    counter("gpus.*.stalls.acquire", "waits to acquire", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.acquire` counts."),
    counter("gpus.*.stalls.release", "waits to release", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.release` counts."),
    counter("gpus.*.stalls.kernel_boundary", "empty at boundaries", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.kernel_boundary` counts."),
    counter("gpus.*.stalls.idle", "idle", "cycles", "Of the GPU's warp-slot cycles, those that `stalls.idle` counts."),

    counter("sm.warp_instructions", "warp instructions", "", "Instructions issued, one for all lanes of a warp."),
    counter("sm.memory_instructions", "memory instructions", "", "Of the warp instructions, loads, stores, atomics and waits for flags."),
    counter("sm.transactions", "transactions", "", "Line-granular requests that left the SMs' coalescers."),
    counter("sm.ctas", "CTAs", "", "CTAs run."),
    counter("sm.l1_loads", "L1 loads", "", "Loads looked up in L1 caches, by line."),
    counter("sm.l1_hits", "L1 hits", "", "Of the L1 loads, those that found their line."),
    counter("sm.l1_merges", "L1 merges", "", "Of the L1 loads, those merged into a miss already on its way."),
    counter("sm.l1_invalidations", "bulk L1 invalidations", "", "Times that an acquire invalidated an L1."),
    counter("sm.tlb_misses", "TLB misses", "", "Translations that missed the SM's TLB."),
    counter("sm.tlb_walks", "page walks", "", "Of the TLB misses, those that missed the module's TLB too."),
    counter("sm.failed_polls", "failed polls", "", "Polls that found their flag not yet set."),
    counter("sm.parks", "parked warps", "", "Times that a warp waited for a miss register, a line, a store credit or a page."),
    counter("sm.page_waits", "waits for pages", "", "Times that a warp waited for a page that its GPU was not to use so."),
    counter("sm.retries", "retries", "", "Times that a warp, woken for a resource, found it gone; always zero."),
    counter("sm.issues", "issue events", "", "Issue events of sub-cores that the simulator handled."),
    counter("sm.stale_issues", "stale issue events", "", "Of the issue events, those overtaken by an earlier one."),
    counter("sm.scratchpad_passes", "scratchpad passes", "", "Conflict-free passes of the scratchpads."),

    counter("energy_pj.l1i", "L1 instruction energy", "pJ", "Fetches from L1 instruction caches."),
    counter("energy_pj.l1", "L1 energy", "pJ", "Moving bits between L1 data caches and registers."),
    counter("energy_pj.scratchpad", "scratchpad energy", "pJ", "Passes of the scratchpads."),
    counter("energy_pj.l2", "L2 energy", "pJ", "Lookups of L2 slices and, where the machine states it, fills and write-backs."),
    counter("energy_pj.l3", "L3 energy", "pJ", "Lookups of caches in front of memory."),
    counter("energy_pj.crossbar", "crossbar energy", "pJ", "Messages between SMs and L2 slices, and between these and memory."),
    counter("energy_pj.dram", "memory energy", "pJ", "Moving bits between memories and their dies."),
    counter("energy_pj.module_links", "module link energy", "pJ", "Moving bits between the modules of a GPU."),
    counter("energy_pj.gpu_links", "GPU link energy", "pJ", "Moving bits between GPUs, links and switch together."),

    counter("host.wall_s", "wall time", "s", "Real time spent simulating, without recording the workload."),
    counter("host.warp_instructions_per_s", "simulated warp instructions per second", "1/s", "Warp instructions simulated in a second of wall time."),
    counter("host.transactions_per_s", "simulated transactions per second", "1/s", "Line transactions simulated in a second of wall time."),
    counter("host.peak_rss_bytes", "peak host memory", "B", "Most memory the simulator held; zero where the system does not say."),
    counter("host.threads", "threads", "", "Threads the simulator used."),
    counter("host.events", "events", "", "Events the simulator handled."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_lists_are_found_by_index() {
        assert_eq!(find("links.12.bytes").map(|counter| counter.name), Some("link traffic"));
        assert_eq!(find("links.*.bytes").map(|counter| counter.name), Some("link traffic"));
        for path in ["links.bytes", "links.x.bytes", "links.1.bytes.more", "links.1", ""] {
            assert_eq!(find(path), None, "{path}");
        }
    }

    #[test]
    fn a_label_carries_the_unit_where_there_is_one() {
        let label = |path| find(path).expect("in the table").label();
        assert_eq!((label("time_s").as_str(), label("l2.hits").as_str()), ("simulated time (s)", "L2 hits"));
    }

    #[test]
    fn every_counter_is_told_once_in_a_sentence() {
        for (index, counter) in COUNTERS.iter().enumerate() {
            assert!(COUNTERS[..index].iter().all(|other| other.path != counter.path), "{} twice", counter.path);
            assert!(counter.about.ends_with('.') && !counter.name.is_empty(), "{}", counter.path);
        }
    }
}
