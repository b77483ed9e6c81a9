//! Memory: the DRAM of a module, or that of the host, and the cache in front of it.

use crate::section::section;
use tombolo_types::{Bytes, Ps, Rate};

section! {
    /// Memory: the DRAM of a module, or that of the host.
    pub struct DramConfig {
        /// Capacity of a module, or of the host, in bytes.
        bytes: u64,
        /// All its channels together.
        rate: Rate,
        /// Channels; lines are spread over them.
        channels: u16,
        /// Banks of a channel.
        banks: u32,
        /// Bytes of an open row of a bank: a power of two, at least a line.
        row_bytes: u64,
        /// Least bytes a channel transfers: a power of two, at most a line.
        burst_bytes: u64,
        /// Column access to an open row: command to first data (tCL).
        column: Ps,
        /// Opening a row: activate to column command (tRCD).
        activate: Ps,
        /// Closing a row: precharge to activate (tRP).
        precharge: Ps,
        /// A row stays open at least this long (tRAS).
        row_active: Ps,
        /// Controller, queues and wires, both ways, besides the bank's own times.
        base_latency: Ps,
        /// Writes that wait in a channel, at most: half of them go in one batch.
        write_queue: u32,
        /// The bus of a channel is idle so long for each batch of writes: it turns round there and back.
        turn: Ps = Ps::ZERO,
        /// From one refresh of a channel, with all its banks, to its next (tREFI); 0 where there is none.
        refresh_interval: Ps = Ps::ZERO,
        /// What a refresh takes (tRFC): less than the interval.
        refresh: Ps = Ps::ZERO,
    }
}

section! {
    /// A cache in front of a module's DRAM, on the memory's side, the last level (L3): it holds lines of that memory alone,
    /// whoever asks, and no protocol sees it. When it passes stores on is the design's `l3_write`.
    pub struct MemoryCacheConfig {
        /// Capacity of a module's part, in bytes; 0 for none.
        bytes: Bytes = Bytes(0),
        /// Lines of a set.
        ways: u32 = 16,
        /// Data that it reads and writes, both together.
        rate: Rate = Rate::INFINITE,
        /// Access: from a request to the first byte of a hit, or to the request of a miss leaving for DRAM.
        hit_latency: Ps = Ps::ZERO,
    }
}
