//! The fabric joining the GPUs' links.

use crate::quantity::choice;
use crate::section::section;
use tombolo_types::{GpuId, Ps, Rate};

choice! {
    /// The topology of the fabric that joins GPU links.
    pub enum FabricShape {
        /// A single switch for all GPUs.
        Switch = "switch",
        /// A tree: leaf switches for a few neighbouring GPUs each, joined by a root switch.
        Tree = "tree",
        /// A shared medium from all GPUs, and from an attached host, to a root. `gpu_link.rate` limits the total
        /// traffic towards the root, and separately the total traffic away from the root. Traffic from GPU to GPU
        /// uses both directions.
        Shared = "shared",
        /// A separate link between any two GPUs, with `gpu_link.rate` in each direction.
        Pairs = "pairs",
    }
}

section! {
    /// The fabric joining the GPUs' links.
    pub struct FabricConfig {
        /// One switch, a tree of switches, one medium for all, or links from each to each. Source of the default:
        /// as NVSwitch, and as NUMA-aware GPUs, Figure 1.
        shape: FabricShape = FabricShape::Switch,
        /// GPUs per leaf in a tree; it divides the machine's GPU count. Source of the default: not used by one
        /// switch.
        gpus_per_leaf: u8 = 1,
        /// Uplink per leaf, each way, shared by the leaf's GPUs. Source of the default: not used by one switch.
        uplink_rate: Rate = Rate::INFINITE,
        /// One way on an uplink plus the switch at the end, without queueing or serialisation. From leaf to leaf it
        /// is added twice to `gpu_link.latency`. Source of the default: not used by one switch.
        uplink_latency: Ps = Ps::ZERO,
    }
}

impl FabricConfig {
    /// The leaf in a tree to which `gpu` is attached; 0 for any other fabric.
    pub fn leaf_of(&self, gpu: GpuId) -> u8 {
        match self.shape {
            FabricShape::Switch | FabricShape::Shared | FabricShape::Pairs => 0,
            FabricShape::Tree => gpu.0 / self.gpus_per_leaf,
        }
    }

    /// The one-way latency added to `gpu_link.latency` by the uplinks between two GPUs.
    pub fn detour(&self, from: GpuId, to: GpuId) -> Ps {
        if self.leaf_of(from) == self.leaf_of(to) { Ps::ZERO } else { self.uplink_latency + self.uplink_latency }
    }
}
