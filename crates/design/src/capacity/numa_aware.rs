//! Ways that shift according to saturation (NUMA-GPU, section 5.1).
//!
//! | incoming link saturated | memory saturated | action |
//! | --- | --- | --- |
//! | yes | no | a way moves from local to remote |
//! | no | yes | a way moves from remote to local |
//! | yes | yes | a way moves toward an even split |
//! | no | no | nothing |

use super::{CacheLevel, CapacityPolicy, Window};
use crate::axis::option;

/// Cycles between two samples. Source: NUMA-GPU, section 5.1: a 5K cycles period.
const SAMPLE_TIME: u32 = 5_000;

option! {
    /// Shifted, in L1 caches too, by saturation of memory or link. Source: NUMA-GPU, figure 7d.
    pub struct NumaAware = "numa-aware" {
        /// Cycles of the SM clock between two samples. Source of the default: NUMA-GPU, section 5.1.
        sample_time: u32 = SAMPLE_TIME,
        /// Each kernel starts with an even split of the ways. Source of the default: NUMA-GPU, section 5.1.
        reset: bool = true,
    }
}

impl CapacityPolicy for NumaAware {
    /// An even split; a cache with a single way is not split.
    fn start(&self, _: CacheLevel, ways: u32) -> Option<u32> {
        (ways > 1).then_some(ways / 2)
    }

    fn sample_cycles(&self) -> Option<u32> {
        Some(self.sample_time)
    }

    fn resets(&self) -> bool {
        self.reset
    }

    fn shift(&self, local: u32, ways: u32, window: Window) -> u32 {
        match window {
            Window { link: true, memory: false } => local.saturating_sub(1).max(1),
            Window { link: false, memory: true } => (local + 1).min(ways - 1),
            Window { link: true, memory: true } if local > ways / 2 => local - 1,
            Window { link: true, memory: true } if local < ways / 2 => local + 1,
            Window { link: true, memory: true } | Window { link: false, memory: false } => local,
        }
    }
}
