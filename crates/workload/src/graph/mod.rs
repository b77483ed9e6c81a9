//! Graphs: generated like a road network, a mesh or at random, or read from a user's file.
//!
//! Every graph is taken as undirected and simple: arcs count in both directions, loops are dropped, and of
//! parallel edges the lightest stays.

mod dimacs;
mod lines;
mod matrix_market;
mod mesh;
mod random;
mod road;

pub use dimacs::read_dimacs;
pub use matrix_market::read_matrix_market;
pub use mesh::mesh_graph;
pub use random::random_graph;
pub(crate) use road::Groups;
pub use road::road_graph;

use crate::noise;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use thiserror::Error;

/// Most nodes of a graph for each edge read, beyond [`FREE_NODES`]: a file of a few bytes must not claim
/// gigabytes. Source: assumed, far above any connected graph.
const NODES_PER_EDGE: u64 = 16;
/// Nodes that any file may claim.
const FREE_NODES: u64 = 1 << 16;
/// Most nodes and arcs of a graph: kernels index them with 32-bit signed integers.
const LIMIT: u64 = i32::MAX as u64;

/// Largest weight of a generated edge. Source: assumed; travel distances in the DIMACS road graphs are mostly in the
/// thousands.
const HEAVIEST: u64 = 8191;

/// A weight, by 64 random bits.
fn weight(random: u64) -> u32 {
    1 + noise::below(random, 0, HEAVIEST) as u32
}

/// A graph file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}{}: {message}", if *line == 0 { String::new() } else { format!(":{line}") })]
pub struct GraphError {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: u64,
    /// What is wrong there, and what was expected.
    pub message: String,
}

/// An undirected edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The end with the smaller number.
    pub a: u32,
    /// The other end.
    pub b: u32,
    /// Weight.
    pub weight: u32,
}

/// An undirected simple graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    nodes: u32,
    edges: Vec<Edge>,
}

/// A graph as compressed sparse rows: each edge appears as two arcs.
#[derive(Clone, Debug)]
pub struct Arcs {
    /// Index of each node's first arc, and the number of arcs behind the last: `nodes + 1` entries.
    pub first: Vec<u32>,
    /// The node that each arc leads to.
    pub target: Vec<u32>,
    /// Index in [`Graph::edges`] of each arc's edge.
    pub edge: Vec<u32>,
}

impl Graph {
    /// A graph of `nodes` nodes; edges are put in order, loops dropped, parallel edges merged to the lightest.
    fn new(nodes: u32, mut edges: Vec<Edge>) -> Graph {
        for edge in &mut edges {
            (edge.a, edge.b) = (edge.a.min(edge.b), edge.a.max(edge.b));
        }
        edges.retain(|edge| edge.a != edge.b);
        edges.sort_unstable();
        edges.dedup_by_key(|edge| (edge.a, edge.b));
        Graph { nodes, edges }
    }

    /// The same graph with random weights in place of its own.
    pub fn weighted(mut self, seed: u64) -> Graph {
        for edge in &mut self.edges {
            let random = noise::noise(seed, u64::from(edge.a) << 32 | u64::from(edge.b));
            edge.weight = weight(random);
        }
        self
    }

    /// Nodes, numbered from 0.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Edges, in order of their ends.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Its compressed sparse rows.
    pub fn arcs(&self) -> Arcs {
        let mut first = vec![0; self.nodes as usize + 1];
        for edge in &self.edges {
            first[edge.a as usize + 1] += 1;
            first[edge.b as usize + 1] += 1;
        }
        for node in 0..self.nodes as usize {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let (mut target, mut edge_of) = (vec![0; 2 * self.edges.len()], vec![0; 2 * self.edges.len()]);
        for (index, edge) in (0..).zip(&self.edges) {
            for (from, to) in [(edge.a, edge.b), (edge.b, edge.a)] {
                let at = next[from as usize] as usize;
                next[from as usize] += 1;
                (target[at], edge_of[at]) = (to, index);
            }
        }
        Arcs { first, target, edge: edge_of }
    }
}

/// Reads a graph, in the format that the file's ending names: `.gr` (DIMACS) or `.mtx` (MatrixMarket).
pub fn read_graph(path: &Path) -> Result<Graph, GraphError> {
    let name = path.display().to_string();
    let whole = |message| GraphError { file: name.clone(), line: 0, message };
    let read: fn(&str, BufReader<File>) -> Result<Graph, GraphError> =
        match path.extension().and_then(|end| end.to_str()) {
            Some("gr") => read_dimacs,
            Some("mtx") => read_matrix_market,
            _ => return Err(whole("expected a file that ends in .gr (DIMACS) or .mtx (MatrixMarket)".to_owned())),
        };
    // To open a pipe is to wait for its writer.
    let found = std::fs::metadata(path).map_err(|error| whole(format!("cannot be opened: {error}")))?;
    if !found.is_file() {
        return Err(whole("not a file".to_owned()));
    }
    let file = File::open(path).map_err(|error| whole(format!("cannot be opened: {error}")))?;
    read(&name, BufReader::new(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_list_each_edge_from_both_ends() {
        let edge = |a, b, weight| Edge { a, b, weight };
        let graph = Graph::new(4, vec![edge(2, 0, 5), edge(1, 1, 1), edge(0, 1, 9), edge(1, 0, 3)]);
        assert_eq!(graph.edges(), [edge(0, 1, 3), edge(0, 2, 5)]);
        let arcs = graph.arcs();
        assert_eq!(arcs.first, [0, 2, 3, 4, 4]);
        assert_eq!((arcs.target, arcs.edge), (vec![1, 2, 0, 0], vec![0, 1, 0, 1]));
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let error = read_graph(Path::new("roads.txt")).unwrap_err();
        assert_eq!(error.to_string(), "roads.txt: expected a file that ends in .gr (DIMACS) or .mtx (MatrixMarket)");
        assert!(read_graph(Path::new("/nowhere/roads.gr")).unwrap_err().message.contains("cannot be opened"));
    }
}
