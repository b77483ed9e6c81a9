//! A host whose memory is coherently accessible from the GPUs: its CPU, last-level cache, memory, directories and
//! links, and GPU memory used as a cache of host memory. A machine may leave these sections out.
//!
//! After UMH (TACO 2016), sections 4 and 5: a host-memory directory is in front of the host's memory, a
//! stacked-memory directory in front of each GPU stack. Both track blocks of a few kilobytes.

use crate::description::OptionalSection;
use crate::machine::DramConfig;
use crate::quantity::{Fraction, choice};
use crate::section::section;
use tombolo_types::{Bytes, Clock, Ps, Rate};

/// A host's sections, which must be present together.
pub(crate) const HOST: &[&str] = &["cpu", "llc", "host_memory", "host_directory", "host_link"];

/// Every section that a machine may leave out, in the order used by the documentation.
pub(crate) const OPTIONAL_SECTIONS: &[OptionalSection] = &[
    OptionalSection { name: "cpu", needs: HOST },
    OptionalSection { name: "llc", needs: HOST },
    OptionalSection { name: "host_memory", needs: HOST },
    OptionalSection { name: "host_directory", needs: HOST },
    OptionalSection { name: "host_link", needs: HOST },
    OptionalSection { name: "stack", needs: HOST },
];

/// All sections that describe a host, present together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoherentHost<'a> {
    /// The CPU.
    pub cpu: &'a CpuConfig,
    /// The CPU's last-level cache.
    pub llc: &'a LlcConfig,
    /// The host's memory.
    pub memory: &'a DramConfig,
    /// The directories in front of host memory.
    pub directory: &'a HostDirectoryConfig,
    /// The links to the GPUs.
    pub link: &'a HostLinkConfig,
}

choice! {
    /// Order of the host program's accesses between two kernels.
    pub enum HostOrder {
        /// In order of address; a line that is read and written is read first.
        Address = "address",
        /// All reads, then all writes, each in order of address.
        ReadsFirst = "reads-first",
    }
}

section! {
    /// The host's CPU: a single core with in-order issue, which proceeds while it has outstanding misses left.
    pub struct CpuConfig {
        /// Core clock, for `issue_cycles`.
        clock: Clock,
        /// Outstanding misses of the core, at most, in lines. Source of the default: assumed, the ten line fill
        /// buffers that Intel's optimisation manual states for cores from Nehalem to Skylake.
        outstanding: u32 = 10,
        /// Minimum cycles of `clock` from a line access in a stream to the next.
        issue_cycles: Fraction,
        /// Order of the host program's accesses. Source of the default: assumed, a walk over the arrays in memory.
        order: HostOrder = HostOrder::Address,
    }
}

section! {
    /// The CPU's last-level cache: a client of the host's directories, in the same role as a GPU's stack.
    pub struct LlcConfig {
        /// Capacity, in bytes.
        bytes: u64,
        /// Lines per set, and entries per set in its directory.
        ways: u32,
        /// From a request by the core to the first byte of a hit, or to the departure of a miss.
        hit_latency: Ps,
        /// Data rate for reads and writes together.
        rate: Rate,
        /// Blocks tracked by its directory: only their lines can be cached. Source of the default: UMH, section
        /// 5.3: 7 KB, or 512 entries of 112 bits.
        directory_blocks: u32 = 512,
    }
}

section! {
    /// The directories in front of host memory, each responsible for a part of the blocks.
    pub struct HostDirectoryConfig {
        /// Number of directories; blocks are spread over them.
        controllers: u16,
        /// A look-up, from a request's arrival to the result's departure.
        lookup_latency: Ps,
        /// Transactions in flight per directory, at most: blocks that it fetches or moves for a client; and, counted
        /// apart, lines that miss in its part of the last-level cache. Requests beyond wait in order of arrival. Source
        /// of the default: assumed, no limit: more than all GPUs have in flight.
        outstanding: u32 = 65535,
    }
}

choice! {
    /// The path from the host to the GPUs.
    pub enum HostPath {
        /// Each GPU has a separate link to the host, besides the fabric that joins the GPUs.
        Own = "own",
        /// The host is attached to the fabric between the GPUs, as an additional endpoint.
        Fabric = "fabric",
    }
}

section! {
    /// The links between the host and the GPUs.
    pub struct HostLinkConfig {
        /// Links from each GPU, or the fabric between the GPUs with `gpu_link`'s rate and latency.
        through: HostPath,
        /// Link of one GPU to the host, each way. Source of the default: not used by `fabric`.
        rate: Rate = Rate::INFINITE,
        /// One way, without queueing or serialisation. Source of the default: not used by `fabric`, and refused by
        /// `own`.
        latency: Ps = Ps::ZERO,
        /// Requests in flight at a GPU's port to the host and to other GPUs, at most, each an L2 slice's equal share:
        /// misses of lines or blocks, and parts of copies from the host. Stores need none. Source of the default: assumed,
        /// no limit: more than the L2 has in flight.
        outstanding: u32 = 1048576,
        /// Bytes per request: a line or a block of more bytes takes several. Source of the default: UMH, section 3: a
        /// block is one request.
        request_bytes: u64 = 4096,
    }
}

choice! {
    /// The policy for closing or keeping a stack's open row.
    pub enum RowPolicy {
        /// Each access opens its row and closes it again: UMH, section 5.4.
        Closed = "closed",
        /// A row stays open until its bank needs another row.
        Open = "open",
    }
}

section! {
    /// A module's memory used as a block cache for host memory: a stack per L2 slice, in front of it, with a
    /// directory.
    pub struct StackConfig {
        /// Unit of fetching and tracking: a power of two from 64 bytes to 16 KB, at least a line. Source of the
        /// default: UMH, Table III.
        block_bytes: u64 = 4096,
        /// Blocks per set. Source of the default: UMH, section 5: direct-mapped.
        ways: u32 = 1,
        /// Stack capacity per module; 0 for all of `dram.bytes`. Source of the default: UMH, section 3: the whole
        /// memory is a cache.
        bytes: Bytes = Bytes(0),
        /// A directory look-up, from a request's arrival to the access to the stack or the miss's departure.
        lookup_latency: Ps,
        /// SM clock cycles for each line that a block's invalidation looks up in the L2. Source of the default:
        /// assumed, as for the one request a cycle in an L2 slice.
        probe_cycles: Fraction = Fraction::ONE,
        /// Row policy. Source of the default: UMH, section 5.4.
        row_policy: RowPolicy = RowPolicy::Closed,
        /// Neighbouring bytes per L2 slice and stack: a power of two, at least a line; 0 for a block. If it is less
        /// than a block each slice has a part, with its own entry. Source of the default: UMH, section 5.3.
        interleave_bytes: Bytes = Bytes(0),
        /// Bytes per bit in a mask for stores: a power of two up to 4, at least a 32nd of a line. Source of the
        /// default: UMH, section 4.1.2.
        mask_bytes: u64 = 4,
    }
}

impl StackConfig {
    /// Number of neighbouring bytes per L2 slice and stack.
    pub fn interleave(&self) -> u64 {
        if self.interleave_bytes == Bytes(0) { self.block_bytes } else { self.interleave_bytes.0 }
    }

    /// Stack capacity in a module whose memory has `dram_bytes`.
    pub fn capacity(&self, dram_bytes: u64) -> u64 {
        if self.bytes == Bytes(0) { dram_bytes } else { self.bytes.0 }
    }
}
