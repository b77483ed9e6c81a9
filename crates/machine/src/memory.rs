//! Memory: the DRAM in a module, or the host's memory, and the cache in front of it.

use crate::section::section;
use tombolo_types::{Bytes, Ps, Rate};

section! {
    /// Memory: the DRAM in a module, or the host's memory.
    pub struct DramConfig {
        /// Capacity of a module, or of the host, in bytes.
        bytes: u64,
        /// All its channels together.
        rate: Rate,
        /// Channels; lines are spread over them.
        channels: u16,
        /// Banks per channel.
        banks: u32,
        /// Bytes per open row in a bank: a power of two, at least a line.
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
        /// Writes waiting in a channel, at most: a batch takes half the queue.
        write_queue: u32,
        /// Idle time on a channel's bus per batch of writes: the bus turns round twice.
        turn: Ps = Ps::ZERO,
        /// From a channel's refresh, with all banks, to the next refresh (tREFI); 0 for no refresh.
        refresh_interval: Ps = Ps::ZERO,
        /// Time for a refresh (tRFC): less than the interval.
        refresh: Ps = Ps::ZERO,
    }
}

section! {
    /// A cache in front of a module's DRAM, on the memory side, the last level (L3). It holds only lines from this
    /// memory, for any requester, and is invisible to protocols. Its write policy is the design's `l3_write`.
    pub struct MemoryCacheConfig {
        /// Capacity of a module's part, in bytes; 0 for none.
        bytes: Bytes = Bytes(0),
        /// Lines per set.
        ways: u32 = 16,
        /// Data read and written, both together.
        rate: Rate = Rate::INFINITE,
        /// Access: from a request to the first byte of a hit, or to the departure of a miss to DRAM.
        hit_latency: Ps = Ps::ZERO,
    }
}
