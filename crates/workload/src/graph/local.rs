//! Graphs with locality: arcs lead to nodes near in number, or stay in a community and in a few others.
//!
//! Every node has equally many outgoing arcs, drawn at random. Arcs are directed; parallel arcs stay.

use super::{Arc, Graph};
use crate::noise;

/// Share of a node's arcs that leave its community, in percent. Source: assumed, the smallest mixing parameter of the
/// LFR benchmark (Lancichinetti, Fortunato and Radicchi, Phys. Rev. E 78, 2008): 0.1.
const MIXING: u64 = 10;
/// Seeds for the drawn number of an end, for its node in a community, and for partners, in addition to the graph's own
/// seed. Source: assumed, any three numbers.
const SEEDS: [u64; 3] = [0x6c6f_6361_6c31, 0x6c6f_6361_6c32, 0x6c6f_6361_6c33];

/// Rule for the nodes that a node's arcs reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// Nodes on a ring: an arc leads forwards or backwards over 1 to `reach` nodes, each distance equally likely.
    Ring {
        /// Largest distance, at most half the number of nodes.
        reach: u32,
    },
    /// Communities of consecutive nodes: an arc stays in its community, or leads to one of the community's partners,
    /// which are drawn among all other communities. A partner may be drawn twice, and need not have the community
    /// among its own partners.
    Communities {
        /// Nodes per community; the last may have fewer.
        size: u32,
        /// Partners per community.
        partners: u32,
    },
}

/// Parameters of a graph with locality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalGraph {
    /// Number of nodes, at least 2.
    pub nodes: u32,
    /// Outgoing arcs per node.
    pub degree: u32,
    /// Largest weight of an arc; weights are whole numbers from 1.
    pub heaviest: u32,
    /// Rule for arcs' targets.
    pub locality: Locality,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl LocalGraph {
    /// Number of arcs.
    pub fn arcs(self) -> u64 {
        u64::from(self.nodes) * u64::from(self.degree)
    }

    /// Target of arc number `arc`, whose source is `from`.
    fn target(self, arc: u64, from: u32) -> u32 {
        match self.locality {
            Locality::Ring { reach } => {
                let drawn = noise::below(self.seed ^ SEEDS[0], arc, 2 * u64::from(reach)) as u32;
                let distance = drawn % reach + 1;
                let forwards = if drawn < reach { distance } else { self.nodes - distance };
                ((u64::from(from) + u64::from(forwards)) % u64::from(self.nodes)) as u32
            }
            Locality::Communities { size, partners } => {
                let own = from / size;
                let drawn = noise::below(self.seed ^ SEEDS[0], arc, 100 * u64::from(partners));
                let (partner, leaves) = (drawn / 100, drawn % 100 < MIXING);
                let community = if leaves { self.partner(own, partner, size, partners) } else { own };
                let first = community * size;
                let nodes = size.min(self.nodes - first);
                first + noise::below(self.seed ^ SEEDS[1], arc, u64::from(nodes)) as u32
            }
        }
    }

    /// A community's partner number `partner`; the community itself if there is no other.
    fn partner(self, own: u32, partner: u64, size: u32, partners: u32) -> u32 {
        let communities = self.nodes.div_ceil(size);
        if communities == 1 {
            return own;
        }
        let position = u64::from(own) * u64::from(partners) + partner;
        let step = 1 + noise::below(self.seed ^ SEEDS[2], position, u64::from(communities) - 1) as u32;
        (own + step) % communities
    }

    fn list(self) -> impl Iterator<Item = Arc> {
        let weights = !self.seed;
        (0..self.arcs()).map(move |arc| {
            let from = (arc / u64::from(self.degree)) as u32;
            let weight = 1 + noise::below(weights, arc, u64::from(self.heaviest)) as u32;
            Arc { from, to: self.target(arc, from), weight }
        })
    }
}

/// Builds the graph; a node's arcs keep the drawing order.
pub fn local_graph(local: LocalGraph) -> Graph {
    Graph::collect(local.nodes, || local.list())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const RING: LocalGraph =
        LocalGraph { nodes: 1000, degree: 16, heaviest: 64, locality: Locality::Ring { reach: 40 }, seed: 7 };
    const COMMUNITIES: LocalGraph = LocalGraph { locality: Locality::Communities { size: 64, partners: 2 }, ..RING };

    fn ends(graph: &Graph) -> Vec<(u32, u32)> {
        let of = |node| graph.row(node).map(move |arc| (node, graph.target()[arc]));
        (0..graph.nodes()).flat_map(of).collect()
    }

    #[test]
    fn every_node_has_its_arcs_and_the_same_seed_draws_them_again() {
        for local in [RING, COMMUNITIES] {
            let graph = local_graph(local);
            assert!((0..1000).all(|node| graph.row(node).len() == 16));
            assert!(graph.weight().iter().all(|weight| (1..=64).contains(weight)));
            assert_eq!(local_graph(local), graph);
            assert_ne!(local_graph(LocalGraph { seed: 8, ..local }), graph);
        }
    }

    #[test]
    fn arcs_on_a_ring_reach_each_distance_in_both_directions() {
        let forwards: BTreeSet<u32> =
            ends(&local_graph(RING)).iter().map(|(from, to)| (to + 1000 - from) % 1000).collect();
        assert_eq!(forwards, (1..=40).chain(960..1000).collect());
    }

    #[test]
    fn a_tenth_of_the_arcs_leave_a_community_for_its_partners() {
        let ends = ends(&local_graph(COMMUNITIES));
        let leaving: Vec<_> = ends.iter().filter(|(from, to)| from / 64 != to / 64).collect();
        assert!((0.09..0.11).contains(&(leaving.len() as f64 / 16_000.0)), "{} arcs leave", leaving.len());
        for community in 0..1000_u32.div_ceil(64) {
            let partners = leaving.iter().filter(|(from, _)| from / 64 == community).map(|(_, to)| to / 64);
            assert!((1..=2).contains(&partners.collect::<BTreeSet<_>>().len()));
        }
        let alone = LocalGraph { locality: Locality::Communities { size: 1000, partners: 2 }, ..RING };
        assert_eq!(local_graph(alone).target().len(), 16_000);
    }
}
