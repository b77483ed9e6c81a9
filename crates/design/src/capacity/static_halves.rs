//! Two caches in an L2: half for the module's memory, half for remote data (NUMA-GPU, figure 7b).

use super::{CacheLevel, CapacityPolicy};
use crate::axis::option;

option! {
    /// Half of the ways to each. Source: NUMA-GPU, figure 7b.
    pub struct StaticHalves = "static-halves" {}
}

impl CapacityPolicy for StaticHalves {
    /// L1 caches are not split.
    fn start(&self, level: CacheLevel, ways: u32) -> Option<u32> {
        match level {
            CacheLevel::L1 => None,
            CacheLevel::L2 => (ways > 1).then_some(ways / 2),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }
}
