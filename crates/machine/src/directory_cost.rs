//! Storage cost of the directories in a host and in its stacks, computed from a machine's fields. Source: UMH (TACO
//! 2016), sections 4.1.2 and 5.

use crate::coherent_host::StackConfig;
use crate::machine::MachineConfig;
use crate::quantity::Fraction;
use crate::sram::Sram;

/// Bits per address. Source: UMH, section 5: a tag is the rest from 64 bits.
const ADDRESS_BITS: u32 = 64;
/// Bits per state: N, M, O, E, S or I. Source: UMH, section 4.
const STATE_BITS: u32 = 3;
/// Ownership bits per line, if a single L2 slice is above a stack. Source: UMH, section 5.
const OWNER_BITS_OF_ONE: u32 = 1;
/// Valid bits for an entry without a state to mark it as empty.
const VALID_BITS: u32 = 1;

/// A directory's storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryCost {
    /// Number of entries.
    pub entries: u64,
    /// Tag bits per entry; 0 if an entry's position already identifies its block.
    pub tag_bits: u32,
    /// Bits per entry, including the tag.
    pub bits: u32,
}

impl DirectoryCost {
    /// Size in whole bytes, for all entries.
    pub fn bytes(&self) -> u64 {
        (self.entries * u64::from(self.bits)).div_ceil(8)
    }

    /// The SRAM that holds all entries, each in whole bytes; `None` beyond the model's sizes.
    pub fn sram(&self) -> Option<Sram> {
        Sram::of_bytes(self.entries * u64::from(self.bits.div_ceil(8)))
    }
}

/// Number of bits required to distinguish `count` values.
fn bits_for(count: u64) -> u32 {
    count.max(1).next_power_of_two().ilog2()
}

impl StackConfig {
    /// Mask bits per memory bit. Source: UMH, section 4.1.2: 12.5 % for one byte per mask bit, 3.125 % for four.
    pub fn mask_share(&self) -> Option<Fraction> {
        Fraction::new(1, 8 * self.mask_bytes)
    }
}

impl MachineConfig {
    /// Number of stacks per GPU: a stack in front of each L2 slice.
    pub fn stacks_per_gpu(&self) -> u64 {
        u64::from(self.l2.slices) * u64::from(self.topology.modules_per_gpu)
    }

    /// Number of blocks in a stack, in whole sets.
    fn stack_blocks(&self, stack: &StackConfig) -> u64 {
        let sets =
            stack.capacity(self.dram.bytes) / u64::from(self.l2.slices) / stack.block_bytes / u64::from(stack.ways);
        sets * u64::from(stack.ways)
    }

    /// A single stack's directory. An entry has a tag, a state, and, for each line in its block, an L2 ownership
    /// bit. Source: UMH, section 5: 32, 3 and 1 bits with line-sized blocks, 35 and 64 bits with blocks of 4 KB.
    pub fn stack_directory_cost(&self) -> Option<DirectoryCost> {
        let stack = self.stack.as_ref()?;
        let entries = self.stack_blocks(stack);
        let placed =
            bits_for(entries / u64::from(stack.ways)) + bits_for(stack.block_bytes) + bits_for(self.stacks_per_gpu());
        let tag_bits = ADDRESS_BITS.saturating_sub(placed);
        let lines = (stack.block_bytes / self.line.bytes()) as u32;
        Some(DirectoryCost { entries, tag_bits, bits: tag_bits + STATE_BITS + OWNER_BITS_OF_ONE * lines })
    }

    /// A single host directory: an owner and sharers for each block in its part of host memory, without tag and
    /// state. The sharers are the directory's part of the stacks, plus the CPU if `cpu` is set. Source: UMH,
    /// section 5.2, which counts stacks alone.
    pub fn host_directory_cost(&self, cpu: bool) -> Option<DirectoryCost> {
        let (host, stack) = (self.coherent_host()?, self.stack.as_ref()?);
        let controllers = u64::from(host.directory.controllers);
        let stacks = u64::from(self.topology.gpus) * self.stacks_per_gpu();
        let sharers = stacks.div_ceil(controllers) + u64::from(cpu);
        let entries = (host.memory.bytes / stack.block_bytes).div_ceil(controllers);
        Some(DirectoryCost { entries, tag_bits: 0, bits: bits_for(sharers + 1) + sharers as u32 })
    }

    /// The directory in the CPU's last-level cache. An entry has a tag, a valid bit, and, for each line in its
    /// block, a bit for the line's presence in the cache. Source: UMH, section 5.3, which gives only the sum of 7
    /// KB.
    pub fn llc_directory_cost(&self) -> Option<DirectoryCost> {
        let (host, stack) = (self.coherent_host()?, self.stack.as_ref()?);
        let entries = u64::from(host.llc.directory_blocks);
        let placed = bits_for(entries / u64::from(host.llc.ways)) + bits_for(stack.block_bytes);
        let tag_bits = ADDRESS_BITS.saturating_sub(placed);
        let lines = (stack.block_bytes / self.line.bytes()) as u32;
        Some(DirectoryCost { entries, tag_bits, bits: tag_bits + VALID_BITS + lines })
    }
}
