//! Random graphs: a random spanning tree, which makes every node reachable, plus edges between random nodes.

use super::{Edge, Graph};

/// Distance to the farther earlier term added by the generator. Source: glibc, `random_r.c`, TYPE_3.
const LONG: usize = 31;
/// Distance to the nearer earlier term added by the generator.
const SHORT: usize = 3;
/// Values discarded after seeding: ten per term.
const WARM_UP: usize = 10 * LONG;

/// The generator behind `rand()` in glibc, from which published graphs are drawn: each number is the sum of the numbers
/// 3 and 31 positions before, without the lowest bit.
struct Rand {
    /// Ring buffer with the last `LONG` sums.
    sums: [u32; LONG],
    next: usize,
}

impl Rand {
    /// A generator in the state after `srand(seed)`.
    fn new(seed: u32) -> Rand {
        let mut state = i64::from(seed.max(1));
        let mut sums = [0; LONG];
        for sum in &mut sums {
            *sum = state as u32;
            // Park and Miller's minimal standard generator fills the initial state.
            state = state * 16_807 % 2_147_483_647;
        }
        let mut rand = Rand { sums, next: SHORT };
        (0..WARM_UP).for_each(|_| _ = rand.number());
        rand
    }

    fn number(&mut self) -> u32 {
        let sum = self.sums[self.next].wrapping_add(self.sums[(self.next + LONG - SHORT) % LONG]);
        self.sums[self.next] = sum;
        self.next = (self.next + 1) % LONG;
        sum >> 1
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.number() % bound
    }
}

/// A connected graph with `nodes` nodes and on average `degree` arcs per node, before parallel edges are merged.
/// Source: MGPUSim, gpu_perf_scripts, bfs, with seed 42.
pub fn random_graph(nodes: u32, degree: u32, seed: u32) -> Graph {
    let mut rand = Rand::new(seed);
    let edge = |a, b| Edge { a, b, weight: 1 };
    let mut edges: Vec<Edge> = (1..nodes).map(|node| edge(node, rand.below(node))).collect();
    let wanted = (u64::from(nodes) * u64::from(degree) / 2) as usize;
    while nodes > 1 && edges.len() < wanted {
        let (a, b) = (rand.below(nodes), rand.below(nodes));
        if a != b {
            edges.push(edge(a, b));
        }
    }
    Graph::undirected(nodes, edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_glibc() {
        let mut rand = Rand::new(42);
        assert_eq!(rand.number(), 71_876_166);
        let mut rand = Rand::new(1);
        assert_eq!([rand.number(), rand.number()], [1_804_289_383, 846_930_886]);
    }

    /// Node count at each distance from node 0.
    fn levels(graph: &Graph) -> Vec<usize> {
        let mut reached = vec![false; graph.nodes() as usize];
        let mut front = vec![0];
        reached[0] = true;
        let mut levels = Vec::new();
        while !front.is_empty() {
            levels.push(front.len());
            let mut next = Vec::new();
            for node in front {
                for &to in &graph.target()[graph.row(node)] {
                    if !std::mem::replace(&mut reached[to as usize], true) {
                        next.push(to);
                    }
                }
            }
            front = next;
        }
        levels
    }

    #[test]
    fn levels_are_those_published_with_the_measurements() {
        assert_eq!(levels(&random_graph(1024, 4, 42)), [1, 13, 63, 211, 429, 264, 41, 2]);
        assert_eq!(levels(&random_graph(1024, 16, 42)), [1, 24, 341, 652, 6]);
    }
}
