//! A graph in compressed sparse row form, and the undirected edges for graphs with a reverse arc for every arc.

use super::weight;
use crate::noise;
use std::ops::Range;

/// A directed arc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arc {
    /// Source node.
    pub from: u32,
    /// Target node.
    pub to: u32,
    /// Weight.
    pub weight: u32,
}

impl Arc {
    fn reversed(self) -> Arc {
        Arc { from: self.to, to: self.from, weight: self.weight }
    }
}

/// An undirected edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The end with the smaller node number.
    pub a: u32,
    /// The end with the larger node number.
    pub b: u32,
    /// Weight.
    pub weight: u32,
}

/// Undirected edges, from a graph with a reverse arc for every arc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edges {
    /// Edges sorted by their ends, then by weight.
    pub list: Vec<Edge>,
    /// Index into the list for each arc's edge.
    pub of_arc: Vec<u32>,
}

/// A directed graph in compressed sparse row form: each node's arcs are contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    first: Vec<u32>,
    target: Vec<u32>,
    weight: Vec<u32>,
}

/// An arc as a direction of an edge: the edge, true if the arc leads to the smaller node number, and the arc's index.
type Direction = (Edge, bool, u32);

impl Graph {
    /// The graph with `nodes` nodes and the given arcs; each node's arcs keep their order.
    pub fn new(nodes: u32, arcs: &[Arc]) -> Graph {
        Graph::collect(nodes, || arcs.iter().copied())
    }

    /// Like [`Graph::new`], for arcs from an iterator. `arcs` is called twice and must return identical iterators.
    pub(super) fn collect<I: Iterator<Item = Arc>>(nodes: u32, arcs: impl Fn() -> I) -> Graph {
        let mut first = vec![0; nodes as usize + 1];
        for arc in arcs() {
            first[arc.from as usize + 1] += 1;
        }
        for node in 0..nodes as usize {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let count = first[nodes as usize] as usize;
        let (mut target, mut weight) = (vec![0; count], vec![0; count]);
        for arc in arcs() {
            let at = next[arc.from as usize] as usize;
            next[arc.from as usize] += 1;
            (target[at], weight[at]) = (arc.to, arc.weight);
        }
        Graph { first, target, weight }
    }

    /// Builds a generated graph: undirected and simple. An edge becomes an arc in each direction; loops are dropped,
    /// and parallel edges are merged into the lightest.
    pub(super) fn undirected(nodes: u32, mut edges: Vec<Edge>) -> Graph {
        for edge in &mut edges {
            (edge.a, edge.b) = (edge.a.min(edge.b), edge.a.max(edge.b));
        }
        edges.retain(|edge| edge.a != edge.b);
        edges.sort_unstable();
        edges.dedup_by_key(|edge| (edge.a, edge.b));
        let there = |edge: &Edge| Arc { from: edge.a, to: edge.b, weight: edge.weight };
        let arcs: Vec<Arc> = edges.iter().map(there).flat_map(|arc| [arc, arc.reversed()]).collect();
        Graph::new(nodes, &arcs)
    }

    /// Returns the graph with random weights instead of the original weights, equal in both directions.
    pub fn weighted(mut self, seed: u64) -> Graph {
        for node in 0..self.nodes() {
            for at in self.row(node) {
                let (a, b) = (node.min(self.target[at]), node.max(self.target[at]));
                self.weight[at] = weight(noise::noise(seed, u64::from(a) << 32 | u64::from(b)));
            }
        }
        self
    }

    /// Number of nodes, numbered from 0.
    pub fn nodes(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// Index of each node's first arc, followed by the total arc count: `nodes + 1` entries.
    pub fn first(&self) -> &[u32] {
        &self.first
    }

    /// Target node of each arc.
    pub fn target(&self) -> &[u32] {
        &self.target
    }

    /// Weight of each arc.
    pub fn weight(&self) -> &[u32] {
        &self.weight
    }

    /// Index range of a node's arcs.
    pub fn row(&self, node: u32) -> Range<usize> {
        self.first[node as usize] as usize..self.first[node as usize + 1] as usize
    }

    /// All arcs in order.
    fn arcs(&self) -> impl Iterator<Item = Arc> {
        (0..self.nodes()).flat_map(move |from| {
            self.row(from).map(move |at| Arc { from, to: self.target[at], weight: self.weight[at] })
        })
    }

    /// All arcs sorted by edge; within an edge, arcs to the larger node number come first.
    fn directions(&self) -> Vec<Direction> {
        let edge = |arc: Arc| Edge { a: arc.from.min(arc.to), b: arc.from.max(arc.to), weight: arc.weight };
        let mut directions: Vec<_> =
            (0..).zip(self.arcs()).map(|(index, arc)| (edge(arc), arc.from > arc.to, index)).collect();
        directions.sort_unstable();
        directions
    }

    /// Returns the graph with a reverse arc added for each arc that lacks a reverse arc with equal weight. Added arcs
    /// follow a node's original arcs.
    pub fn symmetric(&self) -> Graph {
        let directions = self.directions();
        let mut alone = vec![false; self.target.len()];
        for (there, back) in directions.chunk_by(|a, b| a.0 == b.0).filter_map(both) {
            let paired = there.len().min(back.len());
            let surplus = there[paired..].iter().chain(&back[paired..]);
            surplus.for_each(|(_, _, index)| alone[*index as usize] = true);
        }
        let added = self.arcs().zip(&alone).filter(|(_, alone)| **alone).map(|(arc, _)| arc.reversed());
        let arcs: Vec<Arc> = self.arcs().chain(added).collect();
        Graph::new(self.nodes(), &arcs)
    }

    /// Returns the graph with a reverse arc added for every arc, even if a reverse arc already exists. A node's arcs
    /// keep the original order.
    pub fn both_ways(&self) -> Graph {
        let arcs: Vec<Arc> = self.arcs().flat_map(|arc| [arc, arc.reversed()]).collect();
        Graph::new(self.nodes(), &arcs)
    }

    /// The graph with all arcs reversed; a node's arcs are ordered by target node.
    pub fn reversed(&self) -> Graph {
        Graph::collect(self.nodes(), || self.arcs().map(Arc::reversed))
    }

    /// The graph's undirected edges: an arc and a reverse arc with equal weight form an edge, and a loop alone is an
    /// edge. `None` if an arc lacks a reverse arc.
    pub fn edges(&self) -> Option<Edges> {
        let mut edges = Edges { list: Vec::new(), of_arc: vec![0; self.target.len()] };
        for same in self.directions().chunk_by(|a, b| a.0 == b.0) {
            let mut add = |arcs: &[Direction]| {
                arcs.iter().for_each(|(_, _, index)| edges.of_arc[*index as usize] = edges.list.len() as u32);
                edges.list.push(same[0].0);
            };
            match both(same) {
                None => same.iter().for_each(|&loop_of_one| add(&[loop_of_one])),
                Some((there, back)) if there.len() == back.len() => {
                    there.iter().zip(back).for_each(|(&there, &back)| add(&[there, back]));
                }
                Some(_) => return None,
            }
        }
        Some(edges)
    }
}

/// Splits an edge's arcs by direction; `None` for loops.
fn both(same: &[Direction]) -> Option<(&[Direction], &[Direction])> {
    let (edge, ..) = same[0];
    (edge.a != edge.b).then(|| same.split_at(same.partition_point(|(_, back, _)| !back)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(a: u32, b: u32, weight: u32) -> Edge {
        Edge { a, b, weight }
    }

    fn graph(nodes: u32, arcs: &[(u32, u32, u32)]) -> Graph {
        let arcs: Vec<Arc> = arcs.iter().map(|&(from, to, weight)| Arc { from, to, weight }).collect();
        Graph::new(nodes, &arcs)
    }

    fn arcs(graph: &Graph) -> Vec<(u32, u32, u32)> {
        graph.arcs().map(|arc| (arc.from, arc.to, arc.weight)).collect()
    }

    #[test]
    fn a_generated_graph_is_simple_and_lists_each_edge_from_both_ends() {
        let graph = Graph::undirected(4, vec![edge(2, 0, 5), edge(1, 1, 1), edge(0, 1, 9), edge(1, 0, 3)]);
        assert_eq!((graph.first(), graph.target()), (&[0, 2, 3, 4, 4][..], &[1, 2, 0, 0][..]));
        let edges = graph.edges().unwrap();
        assert_eq!((edges.list, edges.of_arc), (vec![edge(0, 1, 3), edge(0, 2, 5)], vec![0, 1, 0, 1]));
    }

    #[test]
    fn read_both_ways_an_edge_of_two_arcs_stands_twice() {
        let arc = |from, to, weight| Arc { from, to, weight };
        let graph = Graph::new(3, &[arc(0, 1, 5), arc(1, 0, 5), arc(2, 1, 7)]).both_ways();
        assert_eq!((graph.first(), graph.target()), (&[0, 2, 5, 6][..], &[1, 1, 0, 0, 2, 1][..]));
        assert_eq!(graph.weight(), [5, 5, 5, 5, 7, 7]);
    }

    #[test]
    fn reversed_arcs_are_sorted_and_keep_their_weights() {
        let written = graph(3, &[(2, 0, 7), (0, 2, 5), (1, 0, 3), (1, 1, 4), (1, 0, 9)]);
        assert_eq!(arcs(&written.reversed()), [(0, 1, 3), (0, 1, 9), (0, 2, 7), (1, 1, 4), (2, 0, 5)]);
        assert_eq!(written.reversed().reversed().first(), written.first());
    }

    #[test]
    fn arcs_stay_as_they_are_with_loops_and_parallels_in_order() {
        let written = [(0, 2, 7), (0, 1, 5), (0, 2, 7), (2, 2, 1)];
        assert_eq!(arcs(&graph(3, &written)), written);
        assert_eq!(graph(3, &written).edges(), None);
    }

    #[test]
    fn a_symmetric_graph_gains_the_arcs_back_that_it_lacks_and_no_others() {
        // Of two parallel arcs, only the first has a reverse arc; a loop is its own reverse; arcs with different
        // weights are different edges.
        let lacks = graph(3, &[(1, 0, 5), (0, 1, 5), (1, 0, 5), (2, 2, 1), (1, 2, 3), (2, 1, 4)]);
        let symmetric = lacks.symmetric();
        let expected =
            [(0, 1, 5), (0, 1, 5), (1, 0, 5), (1, 0, 5), (1, 2, 3), (1, 2, 4), (2, 2, 1), (2, 1, 4), (2, 1, 3)];
        assert_eq!(arcs(&symmetric), expected);
        assert_eq!(symmetric.symmetric(), symmetric);
        let list = vec![edge(0, 1, 5), edge(0, 1, 5), edge(1, 2, 3), edge(1, 2, 4), edge(2, 2, 1)];
        assert_eq!(symmetric.edges().unwrap().list, list);
    }

    #[test]
    fn weights_are_drawn_by_the_ends_of_an_edge() {
        let graph = graph(3, &[(0, 1, 0), (1, 0, 0), (1, 2, 0), (2, 1, 0)]).weighted(7);
        assert_eq!(graph.edges().unwrap().list.len(), 2);
        assert_ne!(graph.weight()[0], graph.weight()[2]);
    }
}
