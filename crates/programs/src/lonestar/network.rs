//! The network processed by the graph benchmarks, as arrays in device memory.

use crate::prelude::*;
use std::path::Path;
use tombolo_workload::graph::{Graph, GraphOptions, mesh_graph, random_graph, read_graph, road_graph};

/// Maximum node count in a generated graph. Source: assumed, sixty times the largest road network in use; its
/// generation takes some gigabytes.
pub(crate) const MOST_NODES: u64 = 1 << 26;

parameters! {
    /// nodes of the generated network, at scale 1; scales
    pub(super) const NODES = nodes: count(1..=MOST_NODES) = 1_070_376,
        "USA-road-d.FLA of the 9th DIMACS challenge, the graph of HMG Table III";
}

parameters! {
    /// generated network: like a road network, of the triangles of a mesh (3 arcs a node), or at random
    pub(super) const NETWORK = network: choice("road", "mesh", "random") = "road",
        "LonestarGPU's inputs: road networks, grids, random graphs";
}

parameters! {
    /// arcs of a node of a random network, on average
    pub(super) const DEGREE = degree: count(2..=1024) = 4, "LonestarGPU's random inputs: four edges a node";
}

parameters! {
    /// a file to use instead, its arcs as they are written: .gr (DIMACS or Galois), .mtx (MatrixMarket), .el, .wel or
    /// .txt (edges), .sg or .wsg (GAP), .graph (METIS), or one of them in .gz; it does not scale
    pub(crate) const GRAPH = graph: file, "none: the network is generated unless a file is given";
}

parameters! {
    /// yes: an arc of the file that has none of its weight leading back gets one; a MatrixMarket file that says
    /// symmetric is always read so
    pub(super) const SYMMETRIC = symmetric: flag = "no", "MatrixMarket, `symmetric`; Pannotia's readers, `directed`";
}

/// Parts of a graph that a program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GraphContent {
    /// Arcs.
    Arcs,
    /// Arcs and their weights.
    Weights,
    /// Undirected edges and their weights: arcs without a reverse arc count as edges, and a note says so. A generated
    /// network gets a reverse arc for every arc, although each already has one. Source: LonestarGPU's inputs for mst
    /// (`USA-road-d.FLA.sym.gr`); with twice the arcs its arrays take the 83 MB in HMG's Table III.
    Edges,
}

impl GraphContent {
    /// Converts a generated graph to the form expected by the program.
    fn generated(self, graph: Graph) -> Graph {
        if self == GraphContent::Edges { graph.both_ways() } else { graph }
    }
}

arrays! {
    /// A graph and its rows in device memory, laid out like in LonestarGPU.
    pub(super) struct Network(memory, graph: Graph, scaling: Scaling) {
        /// Row per node (LonestarGPU `srcsrc`); the identity.
        pub(super) row: Array<u32>[u64::from(graph.nodes()), scaling],
        /// First arc per row (LonestarGPU `psrc`).
        pub(super) first: Array<u32>[u64::from(graph.nodes()), scaling],
        /// Arc count per node (LonestarGPU `noutgoing`).
        pub(super) degree: Array<u32>[u64::from(graph.nodes()), scaling],
        /// End node per arc (LonestarGPU `edgessrcdst`).
        pub(super) target: Array<u32>[graph.target().len() as u64, scaling],
        pub(super) graph: Graph,
        /// Scaling of the arrays; fixed for a user's graph.
        pub(super) scaling: Scaling,
    }
}

pub(crate) fn check_nodes(workload: &'static str, nodes: u64) -> Result<(), WorkloadError> {
    require(workload, nodes <= MOST_NODES, || format!("{nodes} nodes: at most {MOST_NODES} are allowed"))
}

/// Random graph with `nodes` nodes, a number after scaling, and `degree` arcs per node.
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

/// Path to the user's graph, if given. Rejects parameters for a generated network together with a file, and parameters
/// for a file without a file.
pub(crate) fn user_graph_path<'a>(
    workload: &'static str,
    request: &'a Request,
) -> Result<Option<&'a Path>, WorkloadError> {
    let path = request.values.text(GRAPH.name);
    if path.is_empty() {
        let told = request.values.is_given(SYMMETRIC.name);
        require(workload, !told, || "`symmetric` is of a file's graph: give it with `graph`".to_owned())?;
        return Ok(None);
    }
    let generated = [NODES, NETWORK, DEGREE].map(|parameter| parameter.name);
    let beside = generated.into_iter().find(|name| request.values.is_given(name));
    require(workload, beside.is_none(), || {
        let name = beside.unwrap_or_default();
        format!("`{name}` is of a generated network, and `graph={path}` takes the place of one: give one of the two")
    })?;
    Ok(Some(Path::new(path)))
}

/// Graph from the user's file, if given; notes about it are left in the request.
fn graph_of_file(
    workload: &'static str,
    request: &mut Request,
    uses: GraphContent,
) -> Result<Option<Graph>, WorkloadError> {
    let Some(path) = user_graph_path(workload, request)?.map(Path::to_owned) else { return Ok(None) };
    let reading = GraphOptions { symmetric: request.values.flag(SYMMETRIC.name), weighted: uses != GraphContent::Arcs };
    let read = read_graph(&path, reading)?;
    read.notes.into_iter().for_each(|note| request.note(note));
    if uses != GraphContent::Edges || read.graph.edges().is_some() {
        return Ok(Some(read.graph));
    }
    request.note(format!(
        "{}: not every arc leads back, and this program is of undirected graphs: arcs count in both directions, as with \
         `symmetric=yes`",
        path.display()
    ));
    Ok(Some(read.graph.symmetric()))
}

impl Network {
    /// Lays out a road network, or the graph from a file.
    pub(super) fn lay_out_road(
        workload: &'static str,
        request: &mut Request,
        uses: GraphContent,
        memory: &mut Memory,
    ) -> Result<Network, WorkloadError> {
        if let Some(graph) = graph_of_file(workload, request, uses)? {
            return Ok(Network::lay_out(memory, graph, Scaling::Fixed));
        }
        let nodes = request.scale.of(request.values.count("nodes"));
        check_nodes(workload, nodes)?;
        Ok(Network::lay_out(memory, uses.generated(road_graph(nodes as u32, request.seed)), Scaling::Scales))
    }

    /// Like [`Network::lay_out_road`], with the kind of network selected by [`NETWORK`].
    pub(super) fn lay_out_kind(
        workload: &'static str,
        request: &mut Request,
        uses: GraphContent,
        memory: &mut Memory,
    ) -> Result<Network, WorkloadError> {
        let values = &request.values;
        let (nodes, seed) = (request.scale.of(values.count("nodes")), request.seed);
        let told = values.text("network") == "random" || user_graph_path(workload, request)?.is_some();
        require(workload, told || !values.is_given("degree"), || "`degree` is of network=random".into())?;
        let graph = match values.text("network") {
            _ if user_graph_path(workload, request)?.is_some() => {
                return Network::lay_out_road(workload, request, uses, memory);
            }
            "mesh" => {
                check_nodes(workload, nodes)?;
                mesh_graph(nodes as u32)
            }
            "random" => random_network(workload, nodes, values.count("degree"), seed as u32)?,
            _ => return Network::lay_out_road(workload, request, uses, memory),
        };
        Ok(Network::lay_out(memory, uses.generated(graph.weighted(seed)), Scaling::Scales))
    }

    pub(super) fn nodes(&self) -> u32 {
        self.graph.nodes()
    }

    /// First arc and arc count for a node.
    pub(super) fn row(&self, warp: &mut Warp<'_>, node: Lanes<i32>) -> (Lanes<u32>, Lanes<u32>) {
        let row = warp.load(self.row, node);
        let degree = warp.load(self.degree, node);
        (warp.load(self.first, row), degree)
    }

    pub(super) fn fill(&self, memory: &Memory) {
        memory.fill(self.row, |node| node as u32);
        memory.fill(self.first, |node| self.graph.first()[node as usize]);
        memory.fill(self.degree, |node| self.graph.row(node as u32).len() as u32);
        memory.fill(self.target, |arc| self.graph.target()[arc as usize]);
    }

    pub(super) fn copy_to_device(&self, host: &mut Host<'_>) {
        host.copy_to_device(self.row);
        host.copy_to_device(self.first);
        host.copy_to_device(self.degree);
        host.copy_to_device(self.target);
    }
}

#[cfg(test)]
mod tests {
    use crate::find;
    use std::fmt::Write as _;
    use tombolo_types::stream::{Command, Program};
    use tombolo_workload::bench::{Mode, Request, WorkloadError, footprint, record};
    use tombolo_workload::record::{RecordOptions, Recording};
    use tombolo_workload::scale::Scale;

    /// Records a program over a file with the given name and content, and checks it against the program's reference.
    fn of_file(
        workload: &str,
        (file, content): (&str, &str),
        more: &[(&str, &str)],
    ) -> Result<Recording, WorkloadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        std::fs::write(&path, content).unwrap();
        let graph = ("graph".to_owned(), path.to_str().unwrap().to_owned());
        let given = more.iter().map(|(key, value)| (key.to_string(), value.to_string())).chain([graph]);
        let workload = find(workload)?;
        let request = Request::new(workload, Scale::FULL, &given.collect::<Vec<_>>(), 7)?;
        record(workload, &request, &RecordOptions::default(), Mode::Verify)
    }

    /// Number of launches, excluding launches that initialise arrays.
    fn launches(recording: &Recording) -> usize {
        let named = |kernel: u32| recording.kernels()[kernel as usize].name.as_str();
        recording.commands().iter().filter_map(Command::kernel).filter(|&kernel| named(kernel) != "initialize").count()
    }

    /// Text for a graph with 64 nodes, each with an arc to the previous node.
    fn one_way() -> String {
        (2..=64).fold("p sp 64 63\n".to_owned(), |mut text, node| {
            writeln!(text, "a {node} {} 1", node - 1).unwrap();
            text
        })
    }

    #[test]
    fn searches_follow_arcs_one_way_unless_the_user_or_the_file_says_symmetric() {
        let text = one_way();
        let file = ("chain.gr", text.as_str());
        for workload in ["bfs", "sssp"] {
            let of = |more: &[_]| launches(&of_file(workload, file, more).unwrap());
            assert_eq!(of(&[]), 1, "{workload}: nothing is reached from node 0");
            assert_eq!(of(&[("source", "63")]), 64, "{workload}");
        }
        assert_eq!(launches(&of_file("bfs", file, &[("symmetric", "yes")]).unwrap()), 64);
        let matrix = |symmetry: &str| {
            let text = format!("%%MatrixMarket matrix coordinate pattern {symmetry}\n3 3 2\n2 1\n3 2\n");
            launches(&of_file("bfs", ("chain.mtx", &text), &[]).unwrap())
        };
        assert_eq!([matrix("general"), matrix("symmetric")], [1, 3]);
    }

    #[test]
    fn a_spanning_tree_takes_arcs_both_ways_and_says_so() {
        let notes = |content: &str, more: &[_]| of_file("mst", ("x.gr", content), more).unwrap().notes().to_vec();
        let both = "p sp 3 5\na 1 2 4\na 2 1 4\na 2 3 1\na 3 2 1\na 2 2 9\n";
        assert_eq!(notes(both, &[]), [""; 0], "a loop needs no way back");
        let one_way = "p sp 3 2\na 2 1 4\na 3 2 1\n";
        assert!(notes(one_way, &[])[0].contains("`symmetric=yes`"));
        assert_eq!(notes(one_way, &[("symmetric", "yes")]), [""; 0]);
    }

    #[test]
    fn loops_parallels_and_lone_nodes_are_no_obstacle() {
        let odd = "p sp 5 8\na 1 1 0\na 1 2 9\na 1 2 3\na 1 2 3\na 2 1 4\na 3 2 0\na 2 3 2\na 4 4 7\n";
        for (workload, more) in [
            ("bfs", &[][..]),
            ("bfs", &[("mapping", "group")]),
            ("mst", &[]),
            ("sssp", &[]),
            ("sssp", &[("variant", "wln")]),
            ("sssp", &[("variant", "wlc")]),
        ] {
            for content in [odd, "p sp 3 0\n", "p sp 1 1\na 1 1 1\n"] {
                of_file(workload, ("x.gr", content), more)
                    .unwrap_or_else(|error| panic!("{workload} {more:?}: {error}"));
            }
        }
    }

    #[test]
    fn weights_are_judged_by_programs_that_use_them() {
        let matrix = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 2.6\n2 2 0.3\n";
        for workload in ["mst", "sssp"] {
            let refused = of_file(workload, ("x.mtx", matrix), &[]).map(|_| ()).unwrap_err().to_string();
            assert!(refused.contains("x.mtx:4: value 0.3 would be rounded to 0"), "{refused}");
            let rounded = of_file(workload, ("x.mtx", &matrix.replace("0.3", "1")), &[]).unwrap();
            assert!(rounded.notes()[0].contains("weights rounded to whole numbers: 1; the first, in line 3"));
        }
        let notes = of_file("bfs", ("x.mtx", matrix), &[]).unwrap().notes().to_vec();
        assert!(notes[0].contains("the program takes no weights"), "{notes:?}");
    }

    #[test]
    fn symmetric_is_of_a_file() {
        let given = [("symmetric".to_owned(), "yes".to_owned())];
        for name in ["bfs", "mst", "sssp"] {
            let workload = find(name).unwrap();
            let request = Request::new(workload, Scale::FULL, &given, 7).unwrap();
            let refused = footprint(workload, &request).unwrap_err().to_string();
            assert!(refused.ends_with("`symmetric` is of a file's graph: give it with `graph`"), "{refused}");
        }
    }
}
