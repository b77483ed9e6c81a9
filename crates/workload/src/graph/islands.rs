//! A synthetic road network in many pieces, modelled on Alaska: a mainland and hundreds of islands.
//!
//! Source of all shares: counts from the AK road network in the TIGER/Line graphs of the 9th DIMACS challenge. The
//! network has 69,082 nodes in 731 pieces, and node 0 lies in a piece with 68 nodes: a search from node 0 ends soon.

use super::road::{columns, grid_edges};
use super::{Edge, Graph};
use crate::noise;

/// Node count in AK.
const NODES: u64 = 69_082;
/// Edge count in AK, with two arcs each.
const EDGES: u64 = 78_100;
/// Node count in AK's largest piece.
const MAINLAND: u64 = 48_560;
/// Size constant for islands: AK's k-th largest piece has about 1/k times this many nodes. Values are between 3,500 and
/// 4,700 from the second to the hundredth piece.
const ISLANDS: u64 = 3_900;
/// Node count in node 0's piece.
const FIRST: u64 = 68;

/// A piece of the network.
struct NetworkPiece {
    /// Global number of each node; the piece's nodes form a square grid row by row.
    numbers: Vec<u32>,
    /// Requested number of edges.
    edges: usize,
}

/// A road network like Alaska's with `nodes` nodes (at least 1). At every size, node 0 is in the middle of an island
/// with 68 nodes, and a search from node 0 takes equally long. All remaining pieces scale with the size. An island's
/// nodes are numbered consecutively, and islands lie between runs of mainland nodes, like AK's consecutive counties.
pub fn islands_graph(nodes: u32, seed: u64) -> Graph {
    let mut edges = Vec::new();
    for (index, piece) in (0..).zip(pieces(nodes, seed)) {
        let number = |node: u32| piece.numbers[node as usize];
        let grid = grid_edges(piece.numbers.len() as u32, piece.edges, noise::noise(seed, index));
        edges.extend(grid.into_iter().map(|edge| Edge { a: number(edge.a), b: number(edge.b), ..edge }));
    }
    Graph::undirected(nodes, edges)
}

/// Sizes of all islands except node 0's, largest first, if `left` nodes are available.
fn islands(nodes: u64, mut left: u64) -> Vec<u32> {
    let mut sizes = Vec::new();
    while left > 0 {
        let rank = sizes.len() as u64 + 2;
        let size = (nodes * ISLANDS / (NODES * rank)).clamp(2, left.max(2)).min(left);
        sizes.push(size as u32);
        left -= size;
    }
    sizes
}

fn pieces(nodes: u32, seed: u64) -> Vec<NetworkPiece> {
    let all = u64::from(nodes);
    let first = all.min(FIRST) as u32;
    let mainland = (all * MAINLAND / NODES).min(all - u64::from(first));
    let mut mixed: Vec<_> = (0..).zip(islands(all, all - u64::from(first) - mainland)).collect();
    mixed.sort_by_cached_key(|(rank, _)| noise::noise(seed ^ 1, *rank));
    let sizes: Vec<u32> = mixed.into_iter().map(|(_, size)| size).collect();
    let edges = |nodes: usize| (nodes as u64 * EDGES / NODES) as usize;
    let middle = (first / columns(first) / 2) * columns(first) + columns(first) / 2;
    let turned = (0..first).map(|node| (node + first - middle.min(first - 1)) % first).collect();
    let mut found = vec![NetworkPiece { numbers: turned, edges: edges(first as usize) }];
    let (mut mainland_numbers, mut next) = (Vec::new(), first);
    for (index, size) in (1..).zip(&sizes) {
        let before = (mainland * index / (sizes.len() as u64 + 1)) as u32;
        let run = before - mainland_numbers.len() as u32;
        mainland_numbers.extend(next..next + run);
        next += run;
        found.push(NetworkPiece { numbers: (next..next + size).collect(), edges: edges(*size as usize) });
        next += size;
    }
    mainland_numbers.extend(next..nodes);
    let edges = edges(mainland_numbers.len());
    found.push(NetworkPiece { numbers: mainland_numbers, edges });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes reachable from `node`, and steps to the farthest.
    fn reached(graph: &Graph, node: u32) -> (usize, usize) {
        let (mut seen, mut front, mut steps, mut count) = (vec![false; graph.nodes() as usize], vec![node], 0, 1);
        seen[node as usize] = true;
        while !front.is_empty() {
            let mut next = Vec::new();
            for &target in front.iter().flat_map(|node| &graph.target()[graph.row(*node)]) {
                if !std::mem::replace(&mut seen[target as usize], true) {
                    next.push(target);
                }
            }
            (count, steps) = (count + next.len(), steps + usize::from(!next.is_empty()));
            front = next;
        }
        (count, steps)
    }

    #[test]
    fn pieces_are_those_of_alaska() {
        let graph = islands_graph(69_082, 1);
        let edges = graph.edges().unwrap().list.len();
        assert!((77_500..=78_100).contains(&edges), "{edges} edges");
        let (of_first, steps) = reached(&graph, 0);
        assert_eq!(of_first, 68);
        assert!((8..=24).contains(&steps), "{steps} steps, 11 in AK");
        let largest = (0..500).map(|index| reached(&graph, 100 + index * 100).0).max().unwrap();
        assert!((48_000..49_000).contains(&largest), "{largest} nodes");
        assert_eq!((&graph, false), (&islands_graph(69_082, 1), graph == islands_graph(69_082, 2)));
    }

    #[test]
    fn small_networks_have_every_node() {
        for nodes in (1..300).chain([4_318]) {
            let graph = islands_graph(nodes, 3);
            assert_eq!((graph.nodes(), reached(&graph, 0).0), (nodes, nodes.min(68) as usize));
        }
    }

    #[test]
    fn every_number_is_taken_once() {
        let mut numbers: Vec<u32> = pieces(5_000, 3).into_iter().flat_map(|piece| piece.numbers).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..5_000).collect::<Vec<_>>());
    }
}
