//! The graph for Pannotia's programs, as compressed sparse rows in device memory.

use crate::lonestar::network::{GRAPH, MOST_NODES, check_nodes, user_graph_path};
use crate::prelude::*;
use std::path::Path;
use tombolo_workload::graph::{Graph, GraphOptions, islands_graph, read_graph};

parameters! {
    /// nodes of the generated network, at scale 1; scales
    pub(super) const NODES = nodes: count(1..=MOST_NODES) = 69_082,
        "CPElide, Table II (AK.gr): Alaska's roads, TIGER/Line graphs of the 9th DIMACS challenge";
}

/// Parameter for a user's graph file.
pub(super) const FILE: Parameter = GRAPH;

parameters! {
    /// no: an arc back is added for every arc, so that an edge of two arcs stands twice in both rows
    pub(super) const DIRECTED = directed: flag = "no",
        "Pannotia, graph_parser/parse.cpp (`parseCOO`) without `-d`, over files that have both arcs of an edge";
}

/// A graph and its rows.
pub(super) struct GraphRows {
    pub(super) graph: Graph,
    /// Scaling of the arrays; fixed for a user's graph.
    pub(super) scaling: Scaling,
    /// First entry per row, followed by the entry count: `nodes + 1`.
    pub(super) row: Array<i32>,
    /// Node to which each entry leads.
    pub(super) column: Array<i32>,
}

impl GraphRows {
    /// Lays out a network like Alaska's roads, or the graph from a file.
    pub(super) fn lay_out(
        workload: &'static str,
        request: &mut Request,
        weighted: bool,
        memory: &mut Memory,
    ) -> Result<GraphRows, WorkloadError> {
        let (graph, scaling) = match user_graph_path(workload, request)?.map(Path::to_owned) {
            Some(path) => {
                let read = read_graph(&path, GraphOptions { symmetric: false, weighted })?;
                read.notes.into_iter().for_each(|note| request.note(note));
                (read.graph, Scaling::Fixed)
            }
            None => {
                let nodes = request.scale.of(request.values.count(NODES.name));
                check_nodes(workload, nodes)?;
                (islands_graph(nodes as u32, request.seed), Scaling::Scales)
            }
        };
        let graph = if request.values.flag(DIRECTED.name) {
            graph
        } else {
            check_indices(workload, 2 * graph.target().len() as u64, "arcs")?;
            graph.both_ways()
        };
        require(workload, graph.nodes() > 0, || "the graph has no node".to_owned())?;
        let (nodes, arcs) = (u64::from(graph.nodes()), graph.target().len() as u64);
        Ok(GraphRows {
            row: memory.array("row", nodes + 1, scaling),
            column: memory.array("column", arcs, scaling),
            graph,
            scaling,
        })
    }

    pub(super) fn nodes(&self) -> u32 {
        self.graph.nodes()
    }

    /// First entry in each node's row, and its entry count.
    pub(super) fn of(&self, warp: &mut Warp<'_>, node: Lanes<i32>) -> (Lanes<i32>, Lanes<u32>) {
        let first = warp.load(self.row, node);
        let end = warp.load(self.row, node + 1);
        (first, (end - first).cast())
    }

    pub(super) fn fill(&self, memory: &Memory) {
        memory.fill(self.row, |node| self.graph.first()[node as usize] as i32);
        memory.fill(self.column, |entry| self.graph.target()[entry as usize] as i32);
    }

    pub(super) fn copy_to_device(&self, host: &mut Host<'_>) {
        host.copy_to_device(self.row);
        host.copy_to_device(self.column);
    }
}
