//! The dual graph of a triangle mesh: a node per triangle, an edge to each neighbour across a side.

use super::{Edge, Graph};

/// The graph of a strip-wise mesh with `nodes` triangles (at least 1), row by row. A triangle has a neighbour on each
/// side in its row and a neighbour in the row above or below: three neighbours except at the border.
pub fn mesh_graph(nodes: u32) -> Graph {
    let columns = nodes.isqrt().max(1);
    let edge = |a, b| Edge { a, b, weight: 1 };
    let mut edges = Vec::with_capacity(nodes as usize * 3 / 2);
    for node in 0..nodes {
        let (row, column) = (node / columns, node % columns);
        if column + 1 < columns && node + 1 < nodes {
            edges.push(edge(node, node + 1));
        }
        if (row + column).is_multiple_of(2) && node + columns < nodes {
            edges.push(edge(node, node + columns));
        }
    }
    Graph::undirected(nodes, edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangles_have_three_neighbours_but_at_the_border() {
        let graph = mesh_graph(10_000);
        let degree = |node: u32| graph.row(node).len();
        assert!((0..10_000).all(|node| (1..=3).contains(&degree(node))));
        assert_eq!(degree(5_050), 3);
        assert_eq!(graph.edges().unwrap().list.len(), 9_900 + 4_950);
    }

    #[test]
    fn tiny_meshes_exist() {
        for nodes in 1..8 {
            assert_eq!(mesh_graph(nodes).nodes(), nodes);
        }
    }
}
