//! Fixed-rate links between GPUs with some shared state, for the machine's fabric. Links are reserved when a packet
//! arrives.

use crate::convert;
use crate::fabric::link::{Link, LinkConfig, LinkStats, Traffic};
use crate::fabric::pairs::Pairs;
use crate::fabric::routed_links::RoutedLinks;
use crate::fabric::shared_bus::{LinkCrossing, SharedBus, SharedBusConfig};
use crate::fabric::switch::{Switch, SwitchConfig};
use crate::fabric::tree::Tree;
use crate::fabric::turning_link::Direction;
use tombolo_machine::MachineConfig;
use tombolo_machine::machine::FabricShape;
use tombolo_types::{Bytes, GpuId, Ps};

/// Fixed-rate links between GPUs, and to a host attached to the same fabric.
#[derive(Clone, Debug)]
pub(crate) enum FixedLinks {
    /// A link per GPU to the GPU's leaf in a switch tree.
    Tree {
        /// Links towards the leaf, by GPU.
        ports: Vec<Link>,
        /// Output ports from all leaves to the GPUs.
        switch: Switch,
        /// Links between leaves.
        tree: Tree,
    },
    /// A medium shared by all members.
    Shared(SharedBus),
    /// A link per GPU pair.
    Pairs(Pairs),
    /// Links between some GPUs, which pass packets on.
    Routed(RoutedLinks),
}

impl FixedLinks {
    /// Idle links between the GPUs in `machine`, with `host` as an additional GPU if the host belongs to the fabric.
    /// `None` for a single switch, modelled by [`crate::fabric::gpu_port`].
    pub(crate) fn new(machine: &MachineConfig, host: Option<GpuId>) -> Option<FixedLinks> {
        let SwitchConfig { ports, rate, flit, crossing } = convert::switch(machine);
        let members = ports + u32::from(host.is_some());
        Some(match machine.fabric.shape {
            FabricShape::Switch => return None,
            FabricShape::Tree => FixedLinks::Tree {
                ports: vec![Link::new(LinkConfig { rate, latency: Ps::ZERO }); members as usize],
                switch: Switch::new(SwitchConfig { ports: members, rate, flit, crossing }),
                tree: Tree::new(convert::tree(machine)),
            },
            FabricShape::Shared => FixedLinks::Shared(SharedBus::new(SharedBusConfig { members, host, rate, flit })),
            FabricShape::Pairs => FixedLinks::Pairs(Pairs::new(members, rate)),
            FabricShape::Ring | FabricShape::Torus | FabricShape::Links => {
                let routes = machine.routes().expect("GPUs pass packets on");
                FixedLinks::Routed(RoutedLinks::new(routes, flit, machine.gpu_link.latency))
            }
        })
    }

    /// Carries `bytes` from one end to another. Calls must be in `now` order.
    #[inline]
    pub(crate) fn cross(&mut self, now: Ps, ends: (GpuId, GpuId), traffic: Traffic, bytes: Bytes) -> LinkCrossing {
        match self {
            FixedLinks::Tree { ports, switch, tree } => {
                let sent = ports[usize::from(ends.0.0)].send(now, traffic, bytes);
                let met = tree.climb(now, sent, ends, traffic, bytes);
                LinkCrossing { sent, left: switch.forward(now, met, ends, traffic, bytes) }
            }
            FixedLinks::Shared(medium) => medium.cross(now, ends, traffic, bytes),
            FixedLinks::Pairs(pairs) => {
                let sent = pairs.send(now, ends, traffic, bytes);
                LinkCrossing { sent, left: sent }
            }
            FixedLinks::Routed(links) => links.cross(now, ends, traffic, bytes),
        }
    }

    /// Counters for one direction on a GPU's link, or on the host's link.
    pub(crate) fn stats(&self, gpu: GpuId, direction: Direction) -> LinkStats {
        match (self, direction) {
            (FixedLinks::Tree { ports, .. }, Direction::Out) => *ports[usize::from(gpu.0)].stats(),
            (FixedLinks::Tree { switch, .. }, Direction::In) => switch.stats(gpu).left,
            (FixedLinks::Shared(medium), _) => medium.stats(gpu, direction),
            (FixedLinks::Pairs(pairs), _) => pairs.stats(gpu, direction),
            (FixedLinks::Routed(links), _) => links.stats(gpu, direction),
        }
    }

    /// Counters for a leaf's uplink, up and down; `None` without a tree.
    pub(crate) fn uplink_stats(&self, leaf: u8) -> Option<[LinkStats; 2]> {
        match self {
            FixedLinks::Tree { tree, .. } => Some(tree.stats(leaf)),
            FixedLinks::Shared(_) | FixedLinks::Pairs(_) | FixedLinks::Routed(_) => None,
        }
    }

    /// Counters for a shared medium, towards its root and away; `None` without such a medium.
    pub(crate) fn medium_stats(&self) -> Option<[LinkStats; 2]> {
        match self {
            FixedLinks::Shared(medium) => Some(medium.direction_stats()),
            FixedLinks::Tree { .. } | FixedLinks::Pairs(_) | FixedLinks::Routed(_) => None,
        }
    }

    /// Counters for each link between two GPUs that pass packets on; empty in other fabrics.
    pub(crate) fn hops(&self) -> Vec<((GpuId, GpuId), LinkStats)> {
        match self {
            FixedLinks::Routed(links) => links.hops().collect(),
            FixedLinks::Tree { .. } | FixedLinks::Shared(_) | FixedLinks::Pairs(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Traffic = Traffic::Data { grains: 1 };

    fn machine(name: &str, settings: &[(&str, &str)]) -> MachineConfig {
        let mut described = tombolo_machine::machine(name).expect("it ships");
        settings.iter().for_each(|(path, value)| described.set(path, value).expect("a key"));
        described.check().expect("it fits")
    }

    fn links(machine: &MachineConfig, host: u8) -> FixedLinks {
        FixedLinks::new(machine, Some(GpuId(host))).expect("it is no switch")
    }

    /// Departure time of the last byte in a 160 KB stream per pair, all sent at once.
    fn streams(links: &mut FixedLinks, pairs: &[(u8, u8)]) -> Vec<Ps> {
        let mut ends = Vec::new();
        for _ in 0..1600 {
            let each = pairs.iter().map(|(from, to)| (GpuId(*from), GpuId(*to)));
            ends = each.map(|ends| links.cross(Ps::ZERO, ends, DATA, Bytes(100)).left).collect();
        }
        ends
    }

    #[test]
    fn on_umhs_pcie_gpus_share_the_way_to_the_host() {
        for (name, gpus) in [("umh-1-pcie", 1), ("umh-2-pcie", 2), ("umh-4-pcie", 4)] {
            let mut links = links(&machine(name, &[]), gpus);
            let to_host: Vec<(u8, u8)> = (0..gpus).map(|gpu| (gpu, gpus)).collect();
            let last = streams(&mut links, &to_host).last().copied();
            assert_eq!(last, Some(Ps(10_000_000 * u64::from(gpus))), "{name}: 160 KB of each at 16 GB/s in all");
            assert_eq!(
                links.medium_stats().map(|directions| directions[0].bytes()),
                Some(Bytes(160_000 * u64::from(gpus)))
            );
        }
    }

    #[test]
    fn on_umhs_nvlink_each_pair_has_the_rate_host_included() {
        let mut links = links(&machine("umh-4-nvlink", &[]), 4);
        let all: Vec<(u8, u8)> = (0..5).flat_map(|from| (0..5).map(move |to| (from, to))).collect();
        let all: Vec<(u8, u8)> = all.into_iter().filter(|(from, to)| from != to).collect();
        assert_eq!(streams(&mut links, &all), [Ps(2_000_000); 20], "160 KB at 80 GB/s");
        assert!(links.medium_stats().is_none() && links.uplink_stats(0).is_none());
    }

    #[test]
    fn links_to_one_switch_share_nothing() {
        let switched = machine("umh-2-pcie", &[("fabric.shape", "switch")]);
        assert!(FixedLinks::new(&switched, Some(GpuId(2))).is_none());
    }
}
