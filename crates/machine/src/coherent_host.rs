//! A host whose memory the GPUs reach coherently: its CPU, last-level cache, memory, directories and links, and the
//! memory of a GPU as a cache of the host's. A machine may leave these sections out.
//!
//! After UMH (TACO 2016), sections 4 and 5: a host-memory directory stands before the host's memory, a stacked-memory
//! directory before each stack of a GPU. Both track blocks of a few kilobytes.

use crate::description::OptionalSection;
use crate::machine::DramConfig;
use crate::quantity::{Fraction, choice};
use crate::section::section;
use tombolo_types::{Bytes, Clock, Ps, Rate};

/// The sections of a host, which come together.
pub(crate) const HOST: &[&str] = &["cpu", "llc", "host_memory", "host_directory", "host_link"];

/// Every section that a machine may leave out, in the order of the documentation.
pub(crate) const OPTIONAL_SECTIONS: &[OptionalSection] = &[
    OptionalSection { name: "cpu", needs: HOST },
    OptionalSection { name: "llc", needs: HOST },
    OptionalSection { name: "host_memory", needs: HOST },
    OptionalSection { name: "host_directory", needs: HOST },
    OptionalSection { name: "host_link", needs: HOST },
    OptionalSection { name: "stack", needs: HOST },
];

/// The sections of a host, all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoherentHost<'a> {
    /// Its CPU.
    pub cpu: &'a CpuConfig,
    /// The last-level cache of the CPU.
    pub llc: &'a LlcConfig,
    /// Its memory.
    pub memory: &'a DramConfig,
    /// The directories before its memory.
    pub directory: &'a HostDirectoryConfig,
    /// Its links to the GPUs.
    pub link: &'a HostLinkConfig,
}

section! {
    /// The host's CPU: one core that issues in order, and goes on while it has outstanding misses left.
    pub struct CpuConfig {
        /// Core clock, that of `issue_cycles`.
        clock: Clock,
        /// Misses of the core that are outstanding, at most, in lines. Source of the default: assumed, the ten line fill
        /// buffers that Intel's optimisation manual states for cores from Nehalem to Skylake.
        outstanding: u32 = 10,
        /// Cycles of `clock` from one line access of a stream to the next, at least.
        issue_cycles: Fraction,
    }
}

section! {
    /// The last-level cache of the CPU: a client of the host's directories, as a GPU's stack is.
    pub struct LlcConfig {
        /// Capacity, in bytes.
        bytes: u64,
        /// Lines of a set, and entries of a set of its directory.
        ways: u32,
        /// From a request of the core to the first byte of a hit, or to the request of a miss leaving.
        hit_latency: Ps,
        /// Data that it reads and writes, both together.
        rate: Rate,
        /// Blocks that its directory tracks: only their lines can be in it. Source of the default: UMH, section 5.3: 7 KB,
        /// which are 512 entries of 112 bits.
        directory_blocks: u32 = 512,
    }
}

section! {
    /// The directories before the host's memory, each for its part of the blocks.
    pub struct HostDirectoryConfig {
        /// How many of them there are; blocks are spread over them.
        controllers: u16,
        /// A look-up, from the arrival of a request to what follows from it leaving.
        lookup_latency: Ps,
    }
}

choice! {
    /// How the host reaches the GPUs.
    pub enum HostPath {
        /// Each GPU has a link of its own to the host, beside whatever joins the GPUs.
        Own = "own",
        /// The host hangs from the fabric between the GPUs, as one more of them.
        Fabric = "fabric",
    }
}

section! {
    /// Between the host and the GPUs.
    pub struct HostLinkConfig {
        /// Links of the GPUs' own, or the fabric between the GPUs with the rate and latency of `gpu_link`.
        through: HostPath,
        /// Link of one GPU to the host, each way. Source of the default: not used by `fabric`.
        rate: Rate = Rate::INFINITE,
        /// One way, without queueing or serialisation. Source of the default: not used by `fabric`, and refused by `own`.
        latency: Ps = Ps::ZERO,
    }
}

choice! {
    /// Whether a row of a stack stays open.
    pub enum RowPolicy {
        /// Each access opens its row and closes it: UMH, section 5.4.
        Closed = "closed",
        /// A row stays open until another one of its bank is wanted.
        Open = "open",
    }
}

section! {
    /// The memory of a module as a cache of the host's memory, by blocks: a stack before each L2 slice, with its directory.
    pub struct StackConfig {
        /// What is fetched and tracked together: a power of two from 64 bytes to 16 KB, at least a line. Source of the
        /// default: UMH, Table III.
        block_bytes: u64 = 4096,
        /// Blocks of a set. Source of the default: UMH, section 5: direct-mapped.
        ways: u32 = 1,
        /// Capacity of the stacks of a module; 0 for all of `dram.bytes`. Source of the default: UMH, section 3: all of the
        /// memory is a cache.
        bytes: Bytes = Bytes(0),
        /// A look-up of its directory, from the arrival of a request to its access of the stack or its miss leaving.
        lookup_latency: Ps,
        /// Cycles of the SM clock for each line of a block that an invalidation looks up in the L2. Source of the default:
        /// assumed, as the one request a cycle of an L2 slice.
        probe_cycles: Fraction = Fraction::ONE,
        /// Whether rows stay open. Source of the default: UMH, section 5.4.
        row_policy: RowPolicy = RowPolicy::Closed,
        /// Neighbouring bytes of one L2 slice and its stack: a power of two, at least a line; 0 for a block. Where it is less
        /// than a block each slice has a part of that, with an entry of its own. Source of the default: UMH, section 5.3.
        interleave_bytes: Bytes = Bytes(0),
        /// Bytes that one bit of a mask of stores stands for: a power of two up to 4, at least a 32nd of a line. Source of the
        /// default: UMH, section 4.1.2.
        mask_bytes: u64 = 4,
    }
}

impl StackConfig {
    /// Neighbouring bytes of one L2 slice and its stack.
    pub fn interleave(&self) -> u64 {
        if self.interleave_bytes == Bytes(0) { self.block_bytes } else { self.interleave_bytes.0 }
    }

    /// Capacity of the stacks of a module whose memory has `dram_bytes`.
    pub fn capacity(&self, dram_bytes: u64) -> u64 {
        if self.bytes == Bytes(0) { dram_bytes } else { self.bytes.0 }
    }
}
