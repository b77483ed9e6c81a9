//! A synthetic road network: connected, nearly planar, with low degree and long diameter.

use super::{Edge, Graph, weight};
use crate::noise;

/// Edges per node: numerator and denominator. Source: the 9th DIMACS challenge, USA-road-d.FLA: 1,070,376 nodes,
/// 2,712,798 arcs, two arcs per edge.
const EDGES: (u64, u64) = (1_356_399, 1_070_376);

/// A road-like graph with `nodes` nodes (at least 1): a square grid numbered row by row. The graph keeps a random
/// spanning tree plus enough further edges for USA-road-d.FLA's degree of 2.53.
pub fn road_graph(nodes: u32, seed: u64) -> Graph {
    let wanted = (u64::from(nodes) * EDGES.0 / EDGES.1) as usize;
    Graph::undirected(nodes, grid_edges(nodes, wanted, seed))
}

/// Edges of a square grid with `nodes` nodes, numbered row by row: a random spanning tree, then further edges up to
/// `wanted`.
pub(super) fn grid_edges(nodes: u32, wanted: usize, seed: u64) -> Vec<Edge> {
    let columns = columns(nodes);
    let right = (0..nodes).filter(|node| (node + 1) % columns != 0).map(|node| (node, node + 1));
    let down = (0..nodes).map(|node| (node, node + columns));
    let mut candidates: Vec<(u64, u32, u32)> = right
        .chain(down)
        .filter(|(_, to)| *to < nodes)
        .map(|(from, to)| (noise::noise(seed, u64::from(from) << 32 | u64::from(to)), from, to))
        .collect();
    candidates.sort_unstable();
    let mut groups = DisjointSets::new(nodes);
    let (tree, rest): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|(_, from, to)| groups.join(*from, *to));
    let extra = wanted.saturating_sub(tree.len());
    let weigh = |(random, a, b)| Edge { a, b, weight: weight(random) };
    tree.into_iter().chain(rest.into_iter().take(extra)).map(weigh).collect()
}

/// Number of columns in a grid with `nodes` nodes.
pub(super) fn columns(nodes: u32) -> u32 {
    nodes.isqrt().max(1)
}

/// Disjoint sets of nodes (union by index, path halving).
pub struct DisjointSets {
    parent: Vec<u32>,
}

impl DisjointSets {
    /// Puts every node into a separate set.
    pub fn new(nodes: u32) -> DisjointSets {
        DisjointSets { parent: (0..nodes).collect() }
    }

    fn find(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            let up = self.parent[node as usize];
            self.parent[node as usize] = self.parent[up as usize];
            node = up;
        }
        node
    }

    /// Joins the sets of two nodes; returns false if both already share a set.
    pub fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a.max(b) as usize] = a.min(b);
        a != b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_road_graph_is_connected_with_the_degree_of_florida() {
        let graph = road_graph(10_000, 1);
        let mut groups = DisjointSets::new(10_000);
        let edges = graph.edges().unwrap().list;
        let joined = edges.iter().filter(|edge| groups.join(edge.a, edge.b)).count();
        assert_eq!((joined, edges.len()), (9_999, 12_672));
        assert!(edges.iter().all(|edge| (1..=8191).contains(&edge.weight)));
        assert_eq!(graph, road_graph(10_000, 1));
        assert_ne!(graph, road_graph(10_000, 2));
    }

    #[test]
    fn tiny_road_graphs_exist() {
        for nodes in 1..6 {
            assert_eq!(road_graph(nodes, 0).nodes(), nodes);
        }
    }
}
