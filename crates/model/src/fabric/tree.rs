//! Switches in a tree with two levels: the GPUs at a leaf share uplinks to the root in each direction.
//!
//! Packets from one GPU to another always take the same uplink of a leaf, and stay in order. Traffic within a leaf uses no uplink. Traffic between leaves passes the uplinks of both leaves, and each serialises
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
    /// Uplinks per leaf.
    pub(crate) per_leaf: u8,
    /// Uplinks in one direction, modelled by switch outputs. Uplink `u` at leaf `l` is port `l * per_leaf + u`. There are
    /// as many ports as GPUs at least, although more may carry no traffic.
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
        let per_leaf = self.config.per_leaf;
        let own = ((u16::from(from.0) + u16::from(to.0)) % u16::from(per_leaf)) as u8;
        let [up, down] = [near, far].map(|leaf| GpuId(leaf.0 * per_leaf + own));
        let at_root = self.up.forward(now, inside, (from, up), traffic, bytes) + self.config.latency;
        self.down.forward(now, at_root, (from, down), traffic, bytes) + self.config.latency
    }

    /// Sum over the counters for a leaf's uplinks, up and down; the busy time is the average.
    pub(crate) fn stats(&self, leaf: u8) -> [LinkStats; 2] {
        let per_leaf = self.config.per_leaf;
        [&self.up, &self.down].map(|direction| {
            let mut all = LinkStats::default();
            let own = (0..per_leaf).map(|uplink| GpuId(leaf * per_leaf + uplink));
            own.for_each(|port| all.merge(&direction.stats(port).left));
            all.busy = Ps(all.busy.0 / u64::from(per_leaf));
            all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::Rate;

    /// Four GPUs in two leaves; an uplink takes 1 ns for 100 bytes.
    fn tree() -> Tree {
        let uplinks = SwitchConfig { ports: 4, rate: Rate(100_000_000_000), flit: Bytes(10), crossing: Ps::ZERO };
        Tree::new(TreeConfig { gpus_per_leaf: 2, per_leaf: 1, uplinks, latency: Ps(300) })
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
    fn uplinks_of_a_leaf_carry_pairs_side_by_side() {
        let config = TreeConfig { per_leaf: 2, ..tree().config };
        let mut tree = Tree::new(config);
        // GPUs 0 and 2 use one uplink of their leaves, GPUs 0 and 3 the other.
        let ends: Vec<Ps> = (0..30_000_u32).map(|packet| climb(&mut tree, 0, 0, 2 + (packet % 2) as u8)).collect();
        assert_eq!(ends.last(), Some(&Ps(15_000_000 + 1000 + 600)), "3 MB at 200 GB/s, and the last once more");
        let [up, down] = tree.stats(0);
        assert_eq!((up.bytes(), up.busy, down.bytes()), (Bytes(3_000_000), Ps(15_000_000), Bytes(0)));
        assert_eq!(tree.stats(1).map(|way| way.bytes()), [Bytes(0), Bytes(3_000_000)]);
    }

    #[test]
    fn gpus_of_a_leaf_share_its_uplink() {
        let mut tree = tree();
        let last = (0..30_000_u32).map(|packet| climb(&mut tree, 0, (packet % 2) as u8, 2 + (packet % 2) as u8)).last();
        assert_eq!(last, Some(Ps(30_000_000 + 1000 + 600)), "3 MB at 100 GB/s, and the last once more");
        assert_eq!(climb(&mut tree, 0, 2, 0), Ps(2600), "the other way is free");
    }
}
