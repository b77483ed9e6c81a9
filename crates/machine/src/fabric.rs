//! What joins the links of the GPUs.

use crate::quantity::choice;
use crate::section::section;
use tombolo_types::{GpuId, Ps, Rate};

choice! {
    /// What joins the links of the GPUs.
    pub enum FabricShape {
        /// One switch.
        Switch = "switch",
        /// Switches of a few neighbouring GPUs each, the leaves, which a root joins.
        Tree = "tree",
        /// One medium that joins all GPUs, and a host that hangs from it, to a root. `gpu_link.rate` is that of all traffic
        /// towards the root together, and again of all traffic away from it. What goes from GPU to GPU takes both.
        Shared = "shared",
        /// A link of its own, of `gpu_link.rate` each way, between any two.
        Pairs = "pairs",
    }
}

section! {
    /// What joins the links of the GPUs.
    pub struct FabricConfig {
        /// One switch, a tree of switches, one medium for all, or links from each to each. Source of the default: as
        /// NVSwitch, and as NUMA-aware GPUs, Figure 1.
        shape: FabricShape = FabricShape::Switch,
        /// GPUs of a leaf of a tree; it divides the GPUs of the machine. Source of the default: not used by one switch.
        gpus_per_leaf: u8 = 1,
        /// Uplink of a leaf, each way, which its GPUs share. Source of the default: not used by one switch.
        uplink_rate: Rate = Rate::INFINITE,
        /// One way of an uplink and the switch at its end, without queueing or serialisation. From leaf to leaf it comes
        /// twice on top of `gpu_link.latency`. Source of the default: not used by one switch.
        uplink_latency: Ps = Ps::ZERO,
    }
}

impl FabricConfig {
    /// The leaf of a tree that `gpu` hangs from; of any other fabric, 0.
    pub fn leaf_of(&self, gpu: GpuId) -> u8 {
        match self.shape {
            FabricShape::Switch | FabricShape::Shared | FabricShape::Pairs => 0,
            FabricShape::Tree => gpu.0 / self.gpus_per_leaf,
        }
    }

    /// What the uplinks between two GPUs add to `gpu_link.latency`, one way.
    pub fn detour(&self, from: GpuId, to: GpuId) -> Ps {
        if self.leaf_of(from) == self.leaf_of(to) { Ps::ZERO } else { self.uplink_latency + self.uplink_latency }
    }
}
