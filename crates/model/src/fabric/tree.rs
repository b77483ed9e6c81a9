//! Switches in a tree with two levels: the GPUs at a leaf share an uplink to the root in each direction.
//!
//! Traffic within a leaf uses no uplink. Traffic between leaves passes the uplinks of both leaves, and each serialises
//! the packet completely. An uplink is modelled as a switch output ([`crate::fabric::switch`]): a packet known before arrival
//! does not delay packets with an earlier arrival. Not modelled, like in the switch: finite buffers, arbitration.

use crate::fabric::link::{LinkStats, Traffic};
use crate::fabric::switch::{Switch, SwitchConfig};
use tombolo_types::{Bytes, GpuId, Ps};

/// Shape of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeConfig {
    /// GPUs per leaf.
    pub(crate) gpus_per_leaf: u8,
    /// Uplinks in one direction, modelled by switch outputs. A port exists per GPU, but only ports numbered like leaves
    /// carry traffic.
    pub(crate) uplinks: SwitchConfig,
    /// Latency in one direction for an uplink and the switch at the end.
    pub(crate) latency: Ps,
}

/// Uplinks of a tree.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    config: TreeConfig,
    up: Switch,
    down: Switch,
}

impl Tree {
    /// Idle uplinks.
    pub(crate) fn new(config: TreeConfig) -> Tree {
        Tree { config, up: Switch::new(config.uplinks), down: Switch::new(config.uplinks) }
    }

    /// A GPU's leaf, used for a port number.
    fn leaf(&self, gpu: GpuId) -> GpuId {
        GpuId(gpu.0 / self.config.gpus_per_leaf)
    }

    /// Carries `bytes`, received in the leaf with `from` at `inside`, to the leaf with `to`; returns the arrival time
    /// in this leaf. A packet within one leaf arrives unchanged at `inside`. Calls must follow the order required by
    /// [`Switch::forward`].
    #[inline]
    pub(crate) fn climb(
        &mut self,
        now: Ps,
        inside: Ps,
        (from, to): (GpuId, GpuId),
        traffic: Traffic,
        bytes: Bytes,
    ) -> Ps {
        let (near, far) = (self.leaf(from), self.leaf(to));
        if near == far {
            return inside;
        }
        let at_root = self.up.forward(now, inside, (from, near), traffic, bytes) + self.config.latency;
        self.down.forward(now, at_root, (from, far), traffic, bytes) + self.config.latency
    }

    /// Counters for a leaf's uplink, up and down.
    pub(crate) fn stats(&self, leaf: u8) -> [LinkStats; 2] {
        [&self.up, &self.down].map(|direction| direction.stats(GpuId(leaf)).left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::Rate;

    /// Four GPUs in two leaves; an uplink takes 1 ns for 100 bytes.
    fn tree() -> Tree {
        let uplinks = SwitchConfig { ports: 4, rate: Rate(100_000_000_000), flit: Bytes(10), crossing: Ps::ZERO };
        Tree::new(TreeConfig { gpus_per_leaf: 2, uplinks, latency: Ps(300) })
    }

    fn climb(tree: &mut Tree, inside: u64, from: u8, to: u8) -> Ps {
        tree.climb(Ps(0), Ps(inside), (GpuId(from), GpuId(to)), Traffic::Data { grains: 1 }, Bytes(100))
    }

    #[test]
    fn what_stays_in_its_leaf_sees_no_uplink() {
        let mut tree = tree();
        assert_eq!(climb(&mut tree, 50, 0, 1), Ps(50));
        assert_eq!(tree.stats(0).map(|direction| direction.bytes()), [Bytes(0); 2]);
    }

    #[test]
    fn an_idle_tree_costs_both_uplinks() {
        let mut tree = tree();
        assert_eq!(climb(&mut tree, 50, 0, 3), Ps(50 + 2 * (1000 + 300)));
        assert_eq!(tree.stats(0).map(|direction| direction.bytes()), [Bytes(100), Bytes(0)]);
        assert_eq!(tree.stats(1).map(|direction| direction.bytes()), [Bytes(0), Bytes(100)]);
    }

    #[test]
    fn gpus_of_a_leaf_share_its_uplink() {
        let mut tree = tree();
        let last = (0..30_000_u32).map(|packet| climb(&mut tree, 0, (packet % 2) as u8, 2 + (packet % 2) as u8)).last();
        assert_eq!(last, Some(Ps(30_000_000 + 1000 + 600)), "3 MB at 100 GB/s, and the last once more");
        assert_eq!(climb(&mut tree, 0, 2, 0), Ps(2600), "the other way is free");
    }
}
