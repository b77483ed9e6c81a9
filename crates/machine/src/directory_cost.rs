//! What the directories of a host and of the stacks cost in storage, from the fields of a machine. Source: UMH (TACO
//! 2016), sections 4.1.2 and 5.

use crate::coherent_host::StackConfig;
use crate::machine::MachineConfig;
use crate::quantity::Fraction;
use crate::sram::Sram;

/// Bits of an address. Source: UMH, section 5: a tag is what is left of 64 bits.
const ADDRESS_BITS: u32 = 64;
/// Bits of a state: N, M, O, E, S or I. Source: UMH, section 4.
const STATE_BITS: u32 = 3;
/// Bits for whether the one L2 slice above a stack owns a line. Source: UMH, section 5.
const OWNER_BITS_OF_ONE: u32 = 1;
/// Bits for whether an entry holds anything, where it has no state.
const VALID_BITS: u32 = 1;

/// Storage of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryCost {
    /// Entries.
    pub entries: u64,
    /// Bits of the tag of an entry; 0 where the place of an entry says all.
    pub tag_bits: u32,
    /// Bits of an entry, tag included.
    pub bits: u32,
}

impl DirectoryCost {
    /// All entries, in whole bytes.
    pub fn bytes(&self) -> u64 {
        (self.entries * u64::from(self.bits)).div_ceil(8)
    }

    /// The SRAM that holds all entries, each in whole bytes; `None` beyond the model's sizes.
    pub fn sram(&self) -> Option<Sram> {
        Sram::of_bytes(self.entries * u64::from(self.bits.div_ceil(8)))
    }
}

/// Bits that tell `count` apart.
fn bits_for(count: u64) -> u32 {
    count.max(1).next_power_of_two().ilog2()
}

impl StackConfig {
    /// Bits of masks for each bit of memory. Source: UMH, section 4.1.2: 12.5 % at a byte, 3.125 % at four.
    pub fn mask_share(&self) -> Option<Fraction> {
        Fraction::new(1, 8 * self.mask_bytes)
    }
}

impl MachineConfig {
    /// Stacks of a GPU: one before each L2 slice.
    pub fn stacks_per_gpu(&self) -> u64 {
        u64::from(self.l2.slices) * u64::from(self.topology.modules_per_gpu)
    }

    /// Blocks that one stack holds, in whole sets.
    fn stack_blocks(&self, stack: &StackConfig) -> u64 {
        let sets =
            stack.capacity(self.dram.bytes) / u64::from(self.l2.slices) / stack.block_bytes / u64::from(stack.ways);
        sets * u64::from(stack.ways)
    }

    /// The directory of one stack. An entry has a tag, a state, and for each line of its block whether the L2 owns it.
    /// Source: UMH, section 5: 32, 3 and 1 bits with blocks of a line, 35 and 64 bits with blocks of 4 KB.
    pub fn stack_directory_cost(&self) -> Option<DirectoryCost> {
        let stack = self.stack.as_ref()?;
        let entries = self.stack_blocks(stack);
        let placed =
            bits_for(entries / u64::from(stack.ways)) + bits_for(stack.block_bytes) + bits_for(self.stacks_per_gpu());
        let tag_bits = ADDRESS_BITS.saturating_sub(placed);
        let lines = (stack.block_bytes / self.line.bytes()) as u32;
        Some(DirectoryCost { entries, tag_bits, bits: tag_bits + STATE_BITS + OWNER_BITS_OF_ONE * lines })
    }

    /// One of the host's directories: for each block of its part of the host's memory an owner and sharers, without tag and
    /// state. Its sharers are its part of the stacks, and the CPU where `cpu` says so. Source: UMH, section 5.2, which
    /// counts stacks alone.
    pub fn host_directory_cost(&self, cpu: bool) -> Option<DirectoryCost> {
        let (host, stack) = (self.coherent_host()?, self.stack.as_ref()?);
        let controllers = u64::from(host.directory.controllers);
        let stacks = u64::from(self.topology.gpus) * self.stacks_per_gpu();
        let sharers = stacks.div_ceil(controllers) + u64::from(cpu);
        let entries = (host.memory.bytes / stack.block_bytes).div_ceil(controllers);
        Some(DirectoryCost { entries, tag_bits: 0, bits: bits_for(sharers + 1) + sharers as u32 })
    }

    /// The directory of the CPU's last-level cache. An entry has a tag, whether it is valid, and for each line of its block
    /// whether the cache has it. Source: UMH, section 5.3, which gives the sum of 7 KB alone.
    pub fn llc_directory_cost(&self) -> Option<DirectoryCost> {
        let (host, stack) = (self.coherent_host()?, self.stack.as_ref()?);
        let entries = u64::from(host.llc.directory_blocks);
        let placed = bits_for(entries / u64::from(host.llc.ways)) + bits_for(stack.block_bytes);
        let tag_bits = ADDRESS_BITS.saturating_sub(placed);
        let lines = (stack.block_bytes / self.line.bytes()) as u32;
        Some(DirectoryCost { entries, tag_bits, bits: tag_bits + VALID_BITS + lines })
    }
}
