//! R-MAT graphs: an adjacency matrix is divided recursively into quadrants, and each arc falls into a quadrant at
//! random.
//!
//! Arcs are directed. Parallel arcs and loops stay, as in Graph500's edge list. Labels are permuted, because a node's
//! degree would otherwise follow from its label.

use super::{Arc, Graph};
use crate::noise;

/// Quadrant probabilities in percent: upper left, upper right, lower left; the lower right quadrant has the rest.
/// Source: Graph500's specification, A, B, C; the method is by Chakrabarti, Zhan and Faloutsos, SDM 2004.
const QUADRANTS: [u64; 3] = [57, 19, 19];
/// Seeds for two rounds of label permutation, in addition to the graph's own seed. Source: assumed, any two numbers;
/// Graph500's generator has two rounds.
const ROUNDS: [u64; 2] = [0x6c61_6265_6c31, 0x6c61_6265_6c32];

/// Parameters of an R-MAT graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rmat {
    /// Logarithm to base 2 of the number of nodes, 1 to 30: Graph500's scale.
    pub log_nodes: u32,
    /// Arcs per node: Graph500's edge factor.
    pub degree: u32,
    /// Largest weight of an arc; weights are whole numbers from 1.
    pub heaviest: u32,
    /// True if arcs below the diagonal are mirrored above it before labels are permuted: Graph500's clip and flip.
    pub flips: bool,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Rmat {
    /// Number of nodes.
    pub fn nodes(self) -> u32 {
        1 << self.log_nodes
    }

    /// Number of arcs.
    pub fn arcs(self) -> u64 {
        u64::from(self.nodes()) * u64::from(self.degree)
    }

    /// Source and target of arc number `arc`, before labels are permuted.
    fn ends(self, arc: u64) -> (u32, u32) {
        let first = arc * u64::from(self.log_nodes);
        let (mut from, mut to) = (0, 0);
        for level in 0..u64::from(self.log_nodes) {
            let [a, b, c] = QUADRANTS;
            let (mut down, mut right) = match noise::below(self.seed, first + level, 100) {
                drawn if drawn < a => (0, 0),
                drawn if drawn < a + b => (0, 1),
                drawn if drawn < a + b + c => (1, 0),
                _ => (1, 1),
            };
            if self.flips && from == to && down > right {
                (down, right) = (right, down);
            }
            (from, to) = (2 * from + down, 2 * to + right);
        }
        (from, to)
    }

    /// A node's label: products with odd numbers, whose reversed low bits permute the labels.
    fn label(self, node: u32) -> u32 {
        ROUNDS.iter().fold(node, |label, round| {
            let key = noise::noise(self.seed, *round);
            let mixed = u64::from(label).wrapping_add(key).wrapping_mul(key | 1);
            (mixed.reverse_bits() >> (u64::BITS - self.log_nodes)) as u32
        })
    }

    fn list(self) -> impl Iterator<Item = Arc> {
        let weights = !self.seed;
        (0..self.arcs()).map(move |arc| {
            let (from, to) = self.ends(arc);
            let weight = 1 + noise::below(weights, arc, u64::from(self.heaviest)) as u32;
            Arc { from: self.label(from), to: self.label(to), weight }
        })
    }
}

/// Builds the graph; a node's arcs keep the drawing order.
pub fn rmat_graph(rmat: Rmat) -> Graph {
    Graph::collect(rmat.nodes(), || rmat.list())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const SMALL: Rmat = Rmat { log_nodes: 12, degree: 16, heaviest: 64, flips: false, seed: 7 };

    fn most(graph: &Graph) -> usize {
        (0..graph.nodes()).map(|node| graph.row(node).len()).max().unwrap()
    }

    #[test]
    fn every_arc_drawn_is_there_and_the_same_seed_draws_it_again() {
        let graph = rmat_graph(SMALL);
        assert_eq!((graph.nodes(), graph.target().len()), (4096, 65536));
        assert!(graph.weight().iter().all(|weight| (1..=64).contains(weight)));
        assert_eq!(graph.weight().iter().collect::<HashSet<_>>().len(), 64);
        assert_eq!(rmat_graph(SMALL), graph);
        assert_ne!(rmat_graph(Rmat { seed: 8, ..SMALL }), graph);
    }

    #[test]
    fn degrees_are_as_skewed_as_the_quadrants() {
        // The arcs of a single node fall into the upper half at every level: 0.76 to the 12th of all arcs.
        let expected = 65536.0 * 0.76_f64.powi(12);
        for graph in [rmat_graph(SMALL), rmat_graph(SMALL).reversed()] {
            assert!((most(&graph) as f64 / expected - 1.0).abs() < 0.1, "{} of {expected}", most(&graph));
            let alone = (0..4096).filter(|node| graph.row(*node).is_empty()).count();
            assert!((500..2500).contains(&alone), "{alone} nodes without arcs");
        }
    }

    #[test]
    fn labels_are_permuted() {
        for log_nodes in [1, 2, 9, 12] {
            let rmat = Rmat { log_nodes, ..SMALL };
            let labels: HashSet<u32> = (0..rmat.nodes()).map(|node| rmat.label(node)).collect();
            assert_eq!(labels.len() as u32, rmat.nodes());
            assert!(labels.iter().all(|label| *label < rmat.nodes()));
        }
        let graph = rmat_graph(SMALL);
        let heaviest = (0..4096).max_by_key(|node| graph.row(*node).len());
        assert_ne!(heaviest, Some(0), "the hub is not the first node");
    }

    #[test]
    fn flipped_arcs_lie_above_the_diagonal() {
        let rmat = Rmat { flips: true, ..SMALL };
        assert!((0..rmat.arcs()).all(|arc| rmat.ends(arc).0 <= rmat.ends(arc).1));
        assert!((0..rmat.arcs()).any(|arc| SMALL.ends(arc).0 > SMALL.ends(arc).1));
    }
}
