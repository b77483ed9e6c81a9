//! Energy: counts times energies per bit moved.

use tombolo_types::Bytes;

/// Moving a bit between L1 and registers, in femtojoules. Source: Arunkumar et al., "Understanding the
/// Future of Energy Efficiency in Multi-Module GPUs", HPCA 2019, measured on a Kepler GPU (5.85 pJ/bit).
const L1_FJ_PER_BIT: u64 = 5850;
/// Moving a bit between L2 and L1. Source: as above (15.48 pJ/bit).
const L2_FJ_PER_BIT: u64 = 15_480;
/// Moving a bit between HBM2 and the die. Source: O'Connor et al., "Fine-Grained DRAM", MICRO 2017
/// (3.92 pJ/bit).
const DRAM_FJ_PER_BIT: u64 = 3920;
/// Moving a bit between the modules of a GPU. Source: HMG, reference 12 (0.54 pJ/bit).
const MODULE_LINK_FJ_PER_BIT: u64 = 540;
/// Moving a bit between GPUs, links and switch. Source: NUMA-aware GPUs, section 6 (10 pJ/bit).
const GPU_LINK_FJ_PER_BIT: u64 = 10_000;

/// Bytes moved by each part of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// By L1s, to and from registers.
    pub l1: Bytes,
    /// By L2 slices.
    pub l2: Bytes,
    /// By memories.
    pub dram: Bytes,
    /// By the ports of modules.
    pub module_links: Bytes,
    /// By the ports of GPUs, each crossing once.
    pub gpu_links: Bytes,
}

/// Picojoules by component.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Energy {
    /// L1 caches.
    pub l1: f64,
    /// L2 caches.
    pub l2: f64,
    /// Memories.
    pub dram: f64,
    /// Links between modules.
    pub module_links: f64,
    /// Links between GPUs.
    pub gpu_links: f64,
}

impl Energy {
    /// The energy of what was moved.
    pub fn of(moved: &Moved) -> Energy {
        let picojoules = |bytes: Bytes, per_bit: u64| (bytes.0 * 8) as f64 * per_bit as f64 / 1000.0;
        Energy {
            l1: picojoules(moved.l1, L1_FJ_PER_BIT),
            l2: picojoules(moved.l2, L2_FJ_PER_BIT),
            dram: picojoules(moved.dram, DRAM_FJ_PER_BIT),
            module_links: picojoules(moved.module_links, MODULE_LINK_FJ_PER_BIT),
            gpu_links: picojoules(moved.gpu_links, GPU_LINK_FJ_PER_BIT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_between_gpus_costs_eighty_picojoules() {
        let energy = Energy::of(&Moved { gpu_links: Bytes(1), ..Moved::default() });
        assert_eq!(energy.gpu_links, 80.0);
        assert_eq!(energy.dram, 0.0);
    }
}
