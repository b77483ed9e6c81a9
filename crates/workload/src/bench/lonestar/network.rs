//! The network that the graph benchmarks run on, as arrays in device memory.

use crate::bench::benchmark::demand;
use crate::bench::workload::{Request, WorkloadError, check_indices};
use crate::graph::{Arcs, Graph, mesh_graph, random_graph, read_graph, road_graph};
use crate::parameter::{Kind, Parameter};
use crate::record::Host;
use crate::simt::{Array, Lanes, Memory, Scaling, Warp};
use std::path::Path;

/// Most nodes of a generated graph. Source: assumed, sixty times the largest road network in use; generating
/// it takes some gigabytes.
const MOST_NODES: u64 = 1 << 26;

/// Number of nodes of a generated graph.
pub(super) const NODES: Parameter = Parameter {
    name: "nodes",
    kind: Kind::Count { low: 1, high: MOST_NODES },
    default: "1070376",
    about: "nodes of the generated network, at scale 1; scales",
    source: "USA-road-d.FLA of the 9th DIMACS challenge, the graph of HMG Table III",
};

/// Kind of a generated graph.
pub(super) const NETWORK: Parameter = Parameter {
    name: "network",
    kind: Kind::Choice(&["road", "mesh", "random"]),
    default: "road",
    about: "generated network: like a road network, of the triangles of a mesh (3 arcs a node), or at random",
    source: "LonestarGPU's inputs: road networks, grids, random graphs",
};

/// Arcs of a node of a random network.
pub(super) const DEGREE: Parameter = Parameter {
    name: "degree",
    kind: Kind::Count { low: 2, high: 1024 },
    default: "4",
    about: "arcs of a node of a random network, on average",
    source: "LonestarGPU's random inputs: four edges a node",
};

/// A user's graph.
pub(super) const GRAPH: Parameter = Parameter {
    name: "graph",
    kind: Kind::File,
    default: "",
    about: "a .gr (DIMACS) or .mtx (MatrixMarket) file to use instead; it does not scale",
    source: "none: the network is generated unless a file is given",
};

/// A graph and its rows in device memory, laid out as LonestarGPU does.
pub(super) struct Network {
    pub(super) graph: Graph,
    pub(super) rows: Arcs,
    /// Whether arrays follow the scale: a user's graph does not.
    pub(super) scaling: Scaling,
    /// Row of each node (LonestarGPU `srcsrc`); the identity.
    pub(super) row: Array<u32>,
    /// First arc of each row (LonestarGPU `psrc`).
    pub(super) first: Array<u32>,
    /// Arcs of each node (LonestarGPU `noutgoing`).
    pub(super) degree: Array<u32>,
    /// Node at the end of each arc (LonestarGPU `edgessrcdst`).
    pub(super) target: Array<u32>,
}

fn check_nodes(workload: &'static str, nodes: u64) -> Result<(), WorkloadError> {
    demand(workload, nodes <= MOST_NODES, || format!("{nodes} nodes: at most {MOST_NODES} are allowed"))
}

/// A random graph of `nodes` nodes, a number after scaling, with `degree` arcs each.
pub(super) fn random_network(
    workload: &'static str,
    nodes: u64,
    degree: u64,
    seed: u32,
) -> Result<Graph, WorkloadError> {
    check_nodes(workload, nodes)?;
    check_indices(workload, nodes * degree, "arcs")?;
    Ok(random_graph(nodes as u32, degree as u32, seed))
}

/// The path of the user's graph, if there is one. Refuses parameters of a generated network beside it.
pub(super) fn file<'a>(workload: &'static str, request: &'a Request) -> Result<Option<&'a Path>, WorkloadError> {
    let path = request.values.text(GRAPH.name);
    if path.is_empty() {
        return Ok(None);
    }
    let generated = [NODES, NETWORK, DEGREE].map(|parameter| parameter.name);
    let beside = generated.into_iter().find(|name| request.values.is_given(name));
    demand(workload, beside.is_none(), || {
        let name = beside.unwrap_or_default();
        format!("`{name}` is of a generated network, and `graph={path}` takes the place of one: give one of the two")
    })?;
    Ok(Some(Path::new(path)))
}

impl Network {
    pub(super) fn lay_out(
        workload: &'static str,
        request: &Request,
        memory: &mut Memory,
    ) -> Result<Network, WorkloadError> {
        let (graph, scaling) = match file(workload, request)? {
            None => {
                let nodes = request.scale.of(request.values.count("nodes"));
                check_nodes(workload, nodes)?;
                (road_graph(nodes as u32, request.seed), Scaling::Scales)
            }
            Some(path) => (read_graph(path)?, Scaling::Fixed),
        };
        Ok(Network::of(graph, scaling, memory))
    }

    /// [`Network::lay_out`] with the kind of network that [`NETWORK`] names.
    pub(super) fn lay_out_kind(
        workload: &'static str,
        request: &Request,
        memory: &mut Memory,
    ) -> Result<Network, WorkloadError> {
        let values = &request.values;
        let (nodes, seed) = (request.scale.of(values.count("nodes")), request.seed);
        let told = values.text("network") == "random" || file(workload, request)?.is_some();
        demand(workload, told || !values.is_given("degree"), || "`degree` is of network=random".into())?;
        let graph = match values.text("network") {
            _ if file(workload, request)?.is_some() => return Network::lay_out(workload, request, memory),
            "mesh" => {
                check_nodes(workload, nodes)?;
                mesh_graph(nodes as u32)
            }
            "random" => random_network(workload, nodes, values.count("degree"), seed as u32)?,
            _ => return Network::lay_out(workload, request, memory),
        };
        let graph = graph.weighted(seed);
        Ok(Network::of(graph, Scaling::Scales, memory))
    }

    /// The arrays of a graph.
    pub(super) fn of(graph: Graph, scaling: Scaling, memory: &mut Memory) -> Network {
        let rows = graph.arcs();
        let nodes = u64::from(graph.nodes());
        let arcs = rows.target.len() as u64;
        Network {
            row: memory.array("row", nodes, scaling),
            first: memory.array("first", nodes, scaling),
            degree: memory.array("degree", nodes, scaling),
            target: memory.array("target", arcs, scaling),
            graph,
            rows,
            scaling,
        }
    }

    pub(super) fn nodes(&self) -> u32 {
        self.graph.nodes()
    }

    /// First arc and number of arcs of a node.
    pub(super) fn row(&self, warp: &mut Warp<'_>, node: Lanes<i32>) -> (Lanes<u32>, Lanes<u32>) {
        let row = warp.load(self.row, node);
        let degree = warp.load(self.degree, node);
        (warp.load(self.first, row), degree)
    }

    pub(super) fn fill(&self, memory: &Memory) {
        memory.fill(self.row, |node| node as u32);
        memory.fill(self.first, |node| self.rows.first[node as usize]);
        memory.fill(self.degree, |node| self.rows.first[node as usize + 1] - self.rows.first[node as usize]);
        memory.fill(self.target, |arc| self.rows.target[arc as usize]);
    }

    pub(super) fn copy_to_device(&self, host: &mut Host<'_>) {
        host.copy_to_device(self.row);
        host.copy_to_device(self.first);
        host.copy_to_device(self.degree);
        host.copy_to_device(self.target);
    }
}
