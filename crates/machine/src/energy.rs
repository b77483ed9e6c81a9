//! Energy used by data movement.

use crate::section::section;
use tombolo_types::Attojoules;

section! {
    /// Energy used by the memory subsystem, by component and access. Each cache lookup is charged for the whole
    /// line, and a miss's returning data only by `l2_fill_per_bit`. Leakage and arithmetic are not counted.
    pub struct EnergyConfig {
        /// A fetch from an L1 instruction cache.
        l1i_per_fetch: Attojoules = Attojoules::ZERO,
        /// Warp instructions per fetch: fetches are counted as warp instructions divided by this number.
        l1i_instructions_per_fetch: u32 = 1,
        /// A bit of a line at an L1 data cache, to or from registers. Source of the default: Arunkumar et al.,
        /// "Understanding the Future of Energy Efficiency in Multi-Module GPUs", HPCA 2019, measured on a Kepler
        /// GPU (5.85 pJ/bit).
        l1_per_bit: Attojoules = Attojoules::from_fj(5850),
        /// A conflict-free pass of the scratchpad, all banks together.
        scratchpad_per_pass: Attojoules = Attojoules::ZERO,
        /// A bit of a line at an L2 slice, to or from L1 caches. The default contains the crossbar. Source of the
        /// default: Arunkumar et al., HPCA 2019, as `l1_per_bit` (15.48 pJ/bit).
        l2_per_bit: Attojoules = Attojoules::from_fj(15_480),
        /// A bit returned to an L2 slice for a miss, or read from it for a write-back.
        l2_fill_per_bit: Attojoules = Attojoules::ZERO,
        /// A bit of a line at a cache in front of memory.
        l3_per_bit: Attojoules = Attojoules::ZERO,
        /// A bit of a message between SMs and their module's L2 slices, header included.
        l1_l2_per_bit: Attojoules = Attojoules::ZERO,
        /// A bit of a message between L2 slices and memory or the cache in front of it, header included.
        l2_l3_per_bit: Attojoules = Attojoules::ZERO,
        /// A bit between memory and its die. Source of the default: O'Connor et al., "Fine-Grained DRAM", MICRO
        /// 2017, HBM2 (3.92 pJ/bit).
        dram_per_bit: Attojoules = Attojoules::from_fj(3920),
        /// A bit between a GPU's modules. Source of the default: HMG, reference 12 (0.54 pJ/bit).
        module_link_per_bit: Attojoules = Attojoules::from_fj(540),
        /// A bit between GPUs, links and switch together. Source of the default: NUMA-aware GPUs, section 6 (10
        /// pJ/bit).
        gpu_link_per_bit: Attojoules = Attojoules::from_fj(10_000),
    }
}
