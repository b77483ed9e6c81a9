//! Energy in the memory subsystem: event counts multiplied by the machine file's energies.
//!
//! | component | counted |
//! | --- | --- |
//! | L1 instruction cache | fetches: warp instructions divided by instructions per fetch |
//! | L1 data cache | line transactions from the coalescers, whole lines |
//! | scratchpad | conflict-free passes |
//! | L2 | slice lookups, whole lines; fill and write-back bytes separately. Requests that bypass an L2 are no lookups |
//! | L3 | reads and stores at memory-side caches, whole lines |
//! | crossbar | messages between SMs and L2 slices, and between slices and memory or its cache, in whole flits |
//! | memory | bytes in whole bursts |
//! | links | messages in whole flits, each crossing once |
//!
//! Not counted: leakage, arithmetic, registers, translation, directories, and store acknowledgments inside a module.

use tombolo_machine::machine::EnergyConfig;
pub use tombolo_metrics::Energy;
use tombolo_model::fabric::LevelTraffic;
use tombolo_types::{Attojoules, Bytes};

/// Activity counts for each part of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityCounts {
    /// Warp instructions issued.
    pub instructions: u64,
    /// Bytes moved by L1s, to and from registers, in whole lines.
    pub l1: Bytes,
    /// Conflict-free scratchpad passes.
    pub scratchpad_passes: u64,
    /// Bytes accessed by L2 slice lookups, in whole lines.
    pub l2: Bytes,
    /// Bytes filled into L2 slices after misses, and bytes written back.
    pub l2_fills: Bytes,
    /// Bytes accessed in memory-side caches, in whole lines.
    pub l3: Bytes,
    /// Traffic between levels inside modules.
    pub traffic: LevelTraffic,
    /// Bytes moved by memories.
    pub dram: Bytes,
    /// Bytes sent through module ports.
    pub module_links: Bytes,
    /// Bytes sent through GPU ports, each crossing counted once.
    pub gpu_links: Bytes,
}

impl ActivityCounts {
    /// Energy for this activity, with the energies per access in `each`.
    pub fn energy(&self, each: &EnergyConfig) -> Energy {
        let moved = self;
        let bits = |bytes: Bytes, per_bit: Attojoules| per_bit.picojoules_of(bytes.0 * 8);
        let LevelTraffic { l1_l2, l2_l3 } = moved.traffic;
        let fetches = f64::from(each.l1i_instructions_per_fetch);
        Energy {
            l1i: each.l1i_per_fetch.picojoules_of(moved.instructions) / fetches,
            l1: bits(moved.l1, each.l1_per_bit),
            scratchpad: each.scratchpad_per_pass.picojoules_of(moved.scratchpad_passes),
            l2: bits(moved.l2, each.l2_per_bit) + bits(moved.l2_fills, each.l2_fill_per_bit),
            l3: bits(moved.l3, each.l3_per_bit),
            crossbar: bits(l1_l2, each.l1_l2_per_bit) + bits(l2_l3, each.l2_l3_per_bit),
            dram: bits(moved.dram, each.dram_per_bit),
            module_links: bits(moved.module_links, each.module_link_per_bit),
            gpu_links: bits(moved.gpu_links, each.gpu_link_per_bit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn energies(machine: &str) -> EnergyConfig {
        tombolo_machine::machine(machine).and_then(|machine| machine.check()).expect("a preset").energy
    }

    #[test]
    fn a_byte_between_gpus_costs_eighty_picojoules() {
        let energy = ActivityCounts { gpu_links: Bytes(1), ..ActivityCounts::default() }.energy(&energies("hmg-4x4"));
        assert_eq!(energy, Energy { gpu_links: 80.0, ..Energy::default() });
    }

    #[test]
    fn a_machine_that_states_nothing_is_charged_its_caches_memory_and_links_alone() {
        let line = Bytes(128);
        let traffic = LevelTraffic { l1_l2: line, l2_l3: line };
        let (l1, l2, l2_fills, l3, dram) = (line, line, line, line, line);
        let moved = ActivityCounts {
            instructions: 8,
            l1,
            scratchpad_passes: 9,
            l2,
            l2_fills,
            l3,
            traffic,
            dram,
            ..ActivityCounts::default()
        };
        let energy = moved.energy(&energies("hmg-4x4"));
        assert_eq!(energy, Energy { l1: 5990.4, l2: 15_851.52, dram: 4014.08, ..Energy::default() });
        assert_eq!(energy.total(), 5990.4 + 15_851.52 + 4014.08);
    }

    #[test]
    fn a_record_from_before_a_component_was_counted_still_reads() {
        let read: Energy = serde_json::from_str(r#"{"l1":1.5,"l2":2.0,"dram":3.0,"module_links":0.0,"gpu_links":4.0}"#)
            .expect("older records have five");
        assert_eq!(read, Energy { l1: 1.5, l2: 2.0, dram: 3.0, gpu_links: 4.0, ..Energy::default() });
    }
}
