//! Memory: the DRAM in a module, or the host's memory, and the cache in front of it.

use crate::quantity::choice;
use crate::section::section;
use tombolo_types::{Bytes, Ps, Rate};

choice! {
    /// Banks that are refreshed together.
    pub enum RefreshScope {
        /// All banks in a channel.
        Channel = "channel",
        /// Each bank alone, the banks in turn.
        Bank = "bank",
    }
}

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
        /// Bank groups per channel: a power of two; fewer if the number of banks is no multiple. Groups take turns in the
        /// banks' order.
        bank_groups: u32 = 1,
        /// Bytes a column command transfers: a power of two, at most a line.
        burst_bytes: u64,
        /// Least bytes accessed, aligned: a power of two, from a burst to a line. None if a burst.
        atom_bytes: Option<u32> = None,
        /// Column access to an open row: command to first data (tCL).
        column: Ps,
        /// Opening a row: activate to column command (tRCD).
        activate: Ps,
        /// Closing a row: precharge to activate (tRP).
        precharge: Ps,
        /// A row stays open at least this long (tRAS).
        row_active: Ps,
        /// Write command to first data (tCWL).
        t_cwl: Ps = Ps::ZERO,
        /// Between column commands in a bank group, at least (tCCD_L), rounded to half bursts: at most 16 bursts.
        t_ccd_l: Ps = Ps::ZERO,
        /// Between activates in a channel, at least (tRRD_S).
        t_rrd_s: Ps = Ps::ZERO,
        /// Between activates in a bank group, at least (tRRD_L): at most 32 times the distance in a channel.
        t_rrd_l: Ps = Ps::ZERO,
        /// Window for four activates in a channel (tFAW); each takes a quarter.
        t_faw: Ps = Ps::ZERO,
        /// Read command to precharge (tRTP).
        t_rtp: Ps = Ps::ZERO,
        /// Write recovery: last written data to precharge (tWR).
        t_wr: Ps = Ps::ZERO,
        /// Controller, queues and wires, both ways, besides the bank's own times.
        base_latency: Ps,
        /// Writes waiting in a channel, at most: a batch takes half the queue.
        write_queue: u32,
        /// Idle time on a channel's bus from a batch of writes to reads: the bus turns round twice.
        turn: Ps = Ps::ZERO,
        /// Banks that a refresh covers.
        refresh_scope: RefreshScope = RefreshScope::Channel,
        /// From a bank's refresh to its next (tREFI); 0 for no refresh.
        refresh_interval: Ps = Ps::ZERO,
        /// Time for a refresh (tRFC, or tRFCpb for a bank alone): less than the interval.
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
