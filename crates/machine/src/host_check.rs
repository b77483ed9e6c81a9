//! Consistency rules between the values for a host, for the stacks and for the rest of the machine.

use crate::check::{Conflict, LINES_LIMIT, MemoryKeys, WAYS_LIMIT, at_most, demand, power_of_two, sets};
use crate::coherent_host::{CoherentHost, HOST, HostPath, StackConfig};
use crate::machine::{FabricShape, MachineConfig, SetIndex};
use tombolo_types::{Bytes, Ps};

/// Smallest and largest stack block. Source: UMH, Figures 8 and 9: from a line to 16 KB.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 64..=16 << 10;
/// Maximum number of blocks in all stacks: UMH's largest machine, 4 GPUs with 4 GB each, in blocks of 64 bytes.
const BLOCKS_LIMIT: u64 = 1 << 28;
/// Largest mask granularity. Source: UMH, section 4.1.2: 4 bytes, and no program in the paper stores less.
const MASK_LIMIT: u64 = 4;
/// Maximum misses per core: assumed, four times the line fill buffers in today's cores.
const OUTSTANDING_LIMIT: u64 = 64;
/// Maximum number of host directories: assumed, twice the memory controllers in the largest server sockets.
const CONTROLLERS_LIMIT: u64 = 32;

/// The keys for the host's memory.
const HOST_MEMORY_KEYS: MemoryKeys = MemoryKeys {
    bytes: "host_memory.bytes",
    channels: "host_memory.channels",
    banks: "host_memory.banks",
    row_bytes: "host_memory.row_bytes",
    bank_groups: "host_memory.bank_groups",
    burst_bytes: "host_memory.burst_bytes",
    atom_bytes: "host_memory.atom_bytes",
    write_queue: "host_memory.write_queue",
    refresh: "host_memory.refresh",
};

impl MachineConfig {
    /// True if any traffic crosses the fabric between the GPUs.
    pub fn crosses_fabric(&self) -> bool {
        let host = self.coherent_host().is_some_and(|host| host.link.through == HostPath::Fabric);
        self.topology.gpus > 1 || host
    }

    /// The first host or stack value in conflict with other values.
    pub(crate) fn host_conflict(&self) -> Option<Conflict> {
        self.missing_section().or_else(|| {
            let host = self.coherent_host()?;
            self.llc_conflict(host)
                .or_else(|| self.memory_conflict(host.memory, &HOST_MEMORY_KEYS))
                .or_else(|| at_most(host.directory.controllers.into(), CONTROLLERS_LIMIT, "host_directory.controllers"))
                .or_else(|| self.host_link_conflict(host))
                .or_else(|| self.stack_conflict(self.stack.as_ref()?))
        })
    }

    /// Checks that a host's sections are all present or all absent, and that stacks have a host.
    fn missing_section(&self) -> Option<Conflict> {
        let there = [
            self.cpu.is_some(),
            self.llc.is_some(),
            self.host_memory.is_some(),
            self.host_directory.is_some(),
            self.host_link.is_some(),
        ];
        let names = |wanted: bool| -> Vec<&'static str> {
            HOST.iter().zip(there).filter(|(_, there)| *there == wanted).map(|(name, _)| *name).collect()
        };
        let (mut present, missing) = (names(true), names(false));
        present.extend(self.stack.is_some().then_some("stack"));
        let first = missing.first().filter(|_| !present.is_empty())?;
        let reason = format!(
            "a host takes the sections {} together, and stacks are a cache of its memory; there is {}, and no {}",
            HOST.join(", "),
            present.join(", "),
            missing.join(", ")
        );
        Some(Conflict { key: first, reason })
    }

    fn llc_conflict(&self, host: CoherentHost<'_>) -> Option<Conflict> {
        let (cpu, llc) = (host.cpu, host.llc);
        let shape = (1, llc.ways.into(), self.line.bytes());
        at_most(cpu.outstanding.into(), OUTSTANDING_LIMIT, "cpu.outstanding")
            .or_else(|| sets(["llc.bytes", "llc.ways", "llc.ways"], (1, llc.bytes), shape, SetIndex::Hashed))
            .or_else(|| at_most(llc.directory_blocks.into(), LINES_LIMIT, "llc.directory_blocks"))
            .or_else(|| {
                demand(llc.directory_blocks.is_multiple_of(llc.ways), "llc.directory_blocks", || {
                    format!("it must be a multiple of the {} ways", llc.ways)
                })
            })
    }

    fn host_link_conflict(&self, host: CoherentHost<'_>) -> Option<Conflict> {
        match host.link.through {
            HostPath::Own => demand(host.link.latency > Ps::ZERO, "host_link.latency", || {
                "links of the GPUs' own to the host take time".to_owned()
            }),
            HostPath::Fabric => {
                let has_place =
                    matches!(self.fabric.shape, FabricShape::Switch | FabricShape::Shared | FabricShape::Pairs);
                demand(has_place, "host_link.through", || {
                    let shape = self.fabric.shape.word();
                    format!(
                        "a host has no place in a fabric of shape {shape:?}; its GPUs have links of their \"own\" to a host"
                    )
                })
            }
        }
    }

    fn stack_conflict(&self, stack: &StackConfig) -> Option<Conflict> {
        let (line, page, block) = (self.line.bytes(), self.page_bytes, stack.block_bytes);
        let size = block.is_power_of_two() && BLOCK_BYTES.contains(&block) && block >= line;
        demand(size, "stack.block_bytes", || {
            let (least, most) = (BLOCK_BYTES.start().max(&line), BLOCK_BYTES.end());
            format!("expected a power of two from {least} to {most} bytes")
        })
        .or_else(|| {
            demand(block <= page, "stack.block_bytes", || format!("a block lies in one page, which has {page} bytes"))
        })
        .or_else(|| {
            let interleave = stack.interleave();
            power_of_two(interleave, "stack.interleave_bytes")
                .or_else(|| demand(interleave >= line, "stack.interleave_bytes", || format!("a line has {line} bytes")))
        })
        .or_else(|| self.mask_conflict(stack))
        .or_else(|| self.stack_size_conflict(stack))
    }

    fn mask_conflict(&self, stack: &StackConfig) -> Option<Conflict> {
        let (line, grain) = (self.line.bytes(), self.line.grain());
        let allowed: Vec<String> = [1, 2, 4].iter().filter(|bytes| **bytes >= grain).map(u64::to_string).collect();
        let fits = stack.mask_bytes.is_power_of_two() && (grain..=MASK_LIMIT).contains(&stack.mask_bytes);
        demand(fits, "stack.mask_bytes", || match allowed.is_empty() {
            true => {
                format!("masks have 32 bits a line, {grain} bytes of one of {line}; stacks take lines of at most 128")
            }
            false => format!(
                "masks have 32 bits a line, so that a bit stands for {grain} bytes of one of {line} at least; expected {}",
                allowed.join(" or ")
            ),
        })
    }

    fn stack_size_conflict(&self, stack: &StackConfig) -> Option<Conflict> {
        let (slices, ways) = (u64::from(self.l2.slices), u64::from(stack.ways));
        let (set, memory) = (slices * ways * stack.block_bytes, self.dram.bytes);
        let capacity = stack.capacity(memory);
        at_most(ways, WAYS_LIMIT, "stack.ways")
            .or_else(|| {
                demand(stack.bytes == Bytes(0) || capacity.is_multiple_of(set), "stack.bytes", || {
                    format!(
                        "it must be a multiple of {set} bytes ({slices} stacks × {ways} ways × {}-byte blocks)",
                        stack.block_bytes
                    )
                })
            })
            .or_else(|| {
                demand((set..=memory).contains(&capacity), "stack.bytes", || {
                    format!("expected {set} bytes, a set of each stack, to the {memory} bytes of dram.bytes")
                })
            })
            .or_else(|| {
                let blocks = (capacity / stack.block_bytes).saturating_mul(self.topology.modules() as u64);
                demand(blocks <= BLOCKS_LIMIT, "stack.block_bytes", || {
                    format!("{blocks} blocks in all stacks; at most {BLOCKS_LIMIT} are supported")
                })
            })
    }
}
