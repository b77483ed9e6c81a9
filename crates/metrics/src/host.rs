//! Phases in a run with a coherent host, statistics for cached blocks of host memory, and the cost of the run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

metrics! {
    /// Run time with a coherent host, in seconds: eight parts that add up to `whole_s`. If several activities overlap, the
    /// first in field order from `kernels_s` on counts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct PhasesRecord {
        kernels_s: f64 = "kernels", "s", "While CTAs ran, or stores of theirs were not taken.";
        synchronisation_s: f64 = "kernel boundaries", "s", "Of the rest, while the boundary of a kernel was synchronised: write-backs, invalidations, merges.";
        copies_in_s: f64 = "copies to GPUs", "s", "Of the rest, while copies to GPUs were made before a kernel.";
        copies_out_s: f64 = "copies behind kernels", "s", "Of the rest, while copies were made behind kernels, or before the host read.";
        host_setup_s: f64 = "host writes inputs", "s", "Of the rest, while the host set arrays up, before the first command.";
        host_between_s: f64 = "host between kernels", "s", "Of the rest, while the host worked between commands.";
        host_results_s: f64 = "host reads results", "s", "Of the rest, while the host read results, behind the last command.";
        launches_s: f64 = "launch latencies", "s", "The rest of the run: launch latencies.";
        whole_s: f64 = "whole run", "s", "From the start of the program to the end of its last command; the parts add up to it.";
        /// Null if the host loads none.
        first_value_s: Option<f64> = "first value on the host", "s", "From the end of the last CTA to the first value that the host has loaded behind it.";
        /// Null if the host loads nothing.
        last_value_s: Option<f64> = "last value on the host", "s", "From the end of the last CTA to the end of the host's last work that loads values.";
        final_flush_bytes: u64 = "final flush", "B", "Dirty bytes that L2 slices wrote back for a release behind the last CTA; merges of blocks are apart.";
        copied_back_bytes: u64 = "copied to the host", "B", "Bytes copied from GPUs to the host, without headers.";
    }
}

metrics! {
    /// Statistics for cached blocks of host memory, summed over the GPUs and the host.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct BlocksRecord {
        asked: u64 = "requests for blocks", "", "Requests of GPUs and the host's cache for a block of host memory, or to have one alone.";
        fetched: u64 = "blocks fetched", "", "Blocks of host memory that came to a GPU's memory.";
        used_lines: u64 = "lines used of blocks", "lines", "Lines of the blocks fetched that SMs used, once for each time that the block came.";
        from_peers: u64 = "blocks from peers", "", "Of the blocks that came, those that another GPU or the host's cache sent past the home.";
        evicted: u64 = "blocks evicted", "", "Blocks that left a GPU's memory or the host's cache for others.";
        merged: u64 = "blocks merged", "", "Blocks that a release or a launch had merged, once a GPU.";
        home_waits: u64 = "requests behind a transaction", "", "Requests that waited at a home for a transaction of their block, or for room for one.";
        written_back_bytes: u64 = "bytes sent home", "B", "Bytes of blocks that GPUs and the host's cache sent homes, without masks.";
        control_messages: u64 = "messages without data", "", "Messages of blocks that carry no bytes of them.";
        control_bytes: u64 = "bytes without data", "B", "Bytes of messages of blocks without data, between GPUs and between GPUs and the host.";
        data_bytes: u64 = "data between GPUs and host", "B", "Bytes of blocks that crossed between GPUs or between GPUs and the host, without headers and masks.";
        wanted: u64 = "blocks that GPUs asked for", "", "Blocks of host memory that at least one GPU asked for.";
        wanting: u64 = "GPUs that asked for blocks", "", "GPUs that asked for a block of host memory, summed over the blocks.";
        /// Blocks in the GPUs by state, at the end of the run.
        states: BTreeMap<String, u64> => [
            "N", "blocks in N", "", "Blocks in GPU memories at the end of the run: shared, with bytes that this GPU alone has written.",
            "M", "blocks in M", "", "Blocks in GPU memories at the end of the run: held alone, written.",
            "O", "blocks in O", "", "Blocks in GPU memories at the end of the run: shared, written, answered for.",
            "E", "blocks in E", "", "Blocks in GPU memories at the end of the run: held alone, clean.",
            "S", "blocks in S", "", "Blocks in GPU memories at the end of the run: shared, clean.",
            "I", "blocks in I", "", "Blocks in GPU memories at the end of the run: on their way.",
        ];
    }
}

metrics! {
    /// Cost of the run on the host machine. Differs from run to run.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct HostRecord {
        wall_s: f64 = "wall time", "s", "Real time spent simulating, without recording the workload.";
        warp_instructions_per_s: f64 = "simulated warp instructions per second", "1/s", "Warp instructions simulated in a second of wall time.";
        transactions_per_s: f64 = "simulated transactions per second", "1/s", "Line transactions simulated in a second of wall time.";
        peak_rss_bytes: u64 = "peak host memory", "B", "Most memory the simulator held; zero where the system does not say.";
        threads: usize = "threads", "", "Threads the simulator used.";
        events: u64 = "events", "", "Events the simulator handled.";
    }
}
