//! Lonestar's single-source shortest paths: Bellman and Ford's edge relaxation until nothing changes, in three
//! implementations.
//!
//! *topology* visits every node in every launch. *wln* and *wlc* keep worklists of the nodes that became nearer, with a
//! thread per node ([`node_worklist`]) and a thread per edge ([`edge_worklist`]). Lists may hold a node several times.
//!
//! A kernel first marks all nodes as unreached, and so touches the distances first.
//!
//! CTAs race (several may reach a node simultaneously), so kernels are recorded in CTA order.

mod edge_worklist;
mod node_worklist;

use super::network::{DEGREE, GRAPH, GraphContent, NETWORK, NODES, Network, SYMMETRIC};
use crate::prelude::*;
use edge_worklist::EdgeWorklists;
use node_worklist::NodeWorklists;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Distance for an unreached node.
const FAR: u32 = u32::MAX;
/// Order and scope for CUDA's atomics: relaxed, at GPU scope.
const ATOMIC: Order = Order::relaxed(Scope::Gpu);
/// Threads per CTA of the kernel that marks nodes as unreached. Source: LonestarGPU 2.0, apps/sssp/main.cu
/// (`setMaxThreadsPerBlock`) and sssp_worklistc.h (`MAXBLOCKSIZE`).
const INITIALIZE_THREADS: u32 = 1024;

program! {
    /// shortest paths by relaxation, over all nodes or by worklists: irregular, hundreds of launches
    pub(crate) static SSSP = "lonestar-sssp",
        "LonestarGPU sssp (topology-driven, wln, wlc); NUMA-GPU, Table 2 (Lonestar-SSSP, -Wln, -Wlc)";
    properties: nonlinear;
    parameters {
        NODES;
        NETWORK;
        DEGREE;
        GRAPH;
        SYMMETRIC;
        /// node to start from
        source: count(0..=1 << 30) = 0, "LonestarGPU sssp";
        /// every node in every launch; a worklist with a thread a node; a worklist with a thread an edge
        variant: choice("topology", "wln", "wlc") = "topology",
            "LonestarGPU 2.0, apps/sssp/Makefile: sssp, sssp-wln, sssp-wlc";
        /// threads of a CTA; public: 1024 with variant=topology, 256 with wln, 512 with wlc
        threads: choice("public", "128", "256", "352", "512", "1024") = "public",
            "LonestarGPU 2.0: `setMaxThreadsPerBlock`; include/common.h, `BLOCKSIZE`; sssp_worklistc.h, `BLKSIZE`";
        /// CTAs of every launch with variant=wln, at scale 1; scales
        ctas: count(1..=65_535) = 60,
            "NUMA-GPU, Table 2: Lonestar-SSSP-Wln; LonestarGPU 2.0 has four per SM (include/common.h, `MAXNBLOCKS`)";
        /// launches, at most; fewer where nothing is left to relax
        launches: count(1..=1 << 30) = 1_000_000, "LonestarGPU sssp runs until nothing changes";
    }
    lay_out(name, request, memory) {
        let network = Network::lay_out_kind(name, request, GraphContent::Weights, memory)?;
        if source >= u64::from(network.nodes()) {
            let message = format!("source {source} is no node of the graph's {}", network.nodes());
            return Err(WorkloadError::Shape { workload: name, message });
        }
        check_distances(&network, source as u32).map_err(|message| WorkloadError::Shape { workload: name, message })?;
        let told = request.values.is_given("ctas");
        require(name, variant == "wln" || !told, || "`ctas` is of variant=wln".to_owned())?;
        let (nodes, arcs, scaling) = (u64::from(network.nodes()), network.target.len(), network.scaling);
        let weight = memory.array("weight", arcs, scaling);
        let distance = memory.array("distance", nodes, scaling);
        let (variant, threads) = match variant {
            "wln" => {
                let ctas = request.scale.of(ctas) as u32;
                (Variant::NodeWorklist(NodeWorklists::lay_out(memory, arcs, scaling, ctas)), 256)
            }
            "wlc" => (Variant::EdgeWorklist(EdgeWorklists::lay_out(memory, arcs, scaling)), 512),
            _ => (Variant::Topology { changed: memory.array("changed", 1, Scaling::Fixed) }, 1024),
        };
        let threads = match request.values.text("threads") {
            "public" => threads,
            _ => request.values.count("threads") as u32,
        };
    }
    struct SingleSourcePaths {
        network: Network,
        /// Weight per arc.
        weight: Array<u32>,
        distance: Array<u32>,
        variant: Variant,
        source, threads: u32,
        launches: u64,
    }
}

/// Implementation, with its arrays.
enum Variant {
    /// Flag for a change in the launch.
    Topology {
        changed: Array<u32>,
    },
    NodeWorklist(NodeWorklists),
    EdgeWorklist(EdgeWorklists),
}

/// Shortest distances from `source`, `None` for unreachable nodes: Dijkstra's algorithm.
fn nearest(network: &Network, source: u32) -> Vec<Option<u64>> {
    let graph = &network.graph;
    let mut nearest = vec![None; network.nodes() as usize];
    nearest[source as usize] = Some(0);
    let mut queue = BinaryHeap::from([(Reverse(0), source)]);
    while let Some((Reverse(distance), node)) = queue.pop() {
        if nearest[node as usize].is_some_and(|known| distance > known) {
            continue;
        }
        for arc in graph.row(node) {
            let to = graph.target()[arc];
            let reached = distance + u64::from(graph.weight()[arc]);
            if nearest[to as usize].is_none_or(|known| reached < known) {
                nearest[to as usize] = Some(reached);
                queue.push((Reverse(reached), to));
            }
        }
    }
    nearest
}

/// Returns an error if a shortest path is too long for a distance, because it would look like an unreached node.
fn check_distances(network: &Network, source: u32) -> Result<(), String> {
    let heaviest = network.graph.weight().iter().copied().map(u64::from).max().unwrap_or(0);
    if heaviest * u64::from(network.nodes()) < u64::from(FAR) {
        return Ok(());
    }
    match nearest(network, source).into_iter().flatten().max() {
        Some(farthest) if farthest >= u64::from(FAR) => {
            Err(format!("a node is {farthest} away from node {source}: distances below {FAR} are possible"))
        }
        Some(_) | None => Ok(()),
    }
}

impl SingleSourcePaths {
    /// Marks all nodes as unreached; the host then sets the source's distance.
    ///
    /// *wlc* launches the kernel twice, once in the common part of the program and once in its own: apps/sssp/main.cu
    /// and sssp_worklistc.h.
    fn initialize(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let nodes = self.network.nodes();
        let ctas = u64::from(nodes.div_ceil(INITIALIZE_THREADS));
        let launches = if matches!(self.variant, Variant::EdgeWorklist(_)) { 2 } else { 1 };
        for _ in 0..launches {
            host.launch(Grid::new("initialize", ctas, INITIALIZE_THREADS), |cta| {
                cta.each_warp(|warp| {
                    let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
                    warp.when(node.lt(nodes as i32), |warp| warp.store(self.distance, node, FAR));
                });
            })?;
        }
        host.memory().write(self.distance, u64::from(self.source), 0);
        host.copy_element_to_device(self.distance, u64::from(self.source));
        Ok(())
    }

    /// Relaxes the edges at every reached node.
    fn relax_all(&self, cta: &mut Cta<'_>, changed: Array<u32>) {
        let network = &self.network;
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(network.nodes() as i32), |warp| {
                let distance = warp.load(self.distance, node);
                warp.when(distance.ne(FAR), |warp| {
                    let (first, degree) = network.row(warp, node);
                    warp.repeat(degree, |warp, arc| {
                        let arc = warp.compute(ComputeClass::Int, 1, first + arc);
                        self.relax(warp, arc, distance, changed);
                    });
                });
            });
        });
    }

    /// Relaxes an arc whose start is at `distance`.
    fn relax(&self, warp: &mut Warp<'_>, arc: Lanes<u32>, distance: Lanes<u32>, changed: Array<u32>) {
        let target = warp.load(self.network.target, arc);
        // A longer path may overflow, and must not wrap to a short distance.
        let reached = distance.zip(warp.load(self.weight, arc), u32::saturating_add);
        let known = warp.load(self.distance, target);
        let reached = warp.compute(ComputeClass::Int, 1, reached);
        warp.when(reached.lt(known), |warp| {
            let before = warp.atomic(Reduction::Min, self.distance, target, reached, ATOMIC);
            warp.when(reached.lt(before), |warp| warp.store(changed, Lanes::all(0), 1));
        });
    }

    fn run_topology(&self, host: &mut Host<'_>, changed: Array<u32>) -> Result<(), RecordError> {
        let ctas = u64::from(self.network.nodes().div_ceil(self.threads));
        for _ in 0..self.launches {
            host.memory().write(changed, 0, 0);
            host.copy_to_device(changed);
            host.launch_ordered(Grid::new("relax", ctas, self.threads), |cta| self.relax_all(cta, changed))?;
            host.copy_to_host(changed);
            if host.memory().read(changed, 0) == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Shortest distances over paths with at most `launches` edges.
    fn within_launches(&self) -> Vec<u32> {
        let graph = &self.network.graph;
        let mut distance = vec![FAR; graph.nodes() as usize];
        distance[self.source as usize] = 0;
        for _ in 0..self.launches {
            let mut next = distance.clone();
            for node in 0..graph.nodes() {
                for arc in graph.row(node) {
                    let (to, reached) =
                        (graph.target()[arc] as usize, distance[node as usize].saturating_add(graph.weight()[arc]));
                    next[to] = next[to].min(reached);
                }
            }
            if next == distance {
                break;
            }
            distance = next;
        }
        distance
    }
}

impl Instance for SingleSourcePaths {
    fn fill(&self, memory: &Memory) {
        self.network.fill(memory);
        memory.fill(self.weight, |arc| self.network.graph.weight()[arc as usize]);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.network.copy_to_device(host);
        host.copy_to_device(self.weight);
        self.initialize(host)?;
        match &self.variant {
            Variant::Topology { changed } => self.run_topology(host, *changed)?,
            Variant::NodeWorklist(lists) => lists.run(self, host)?,
            Variant::EdgeWorklist(lists) => lists.run(self, host)?,
        }
        host.copy_to_host(self.distance);
        Ok(())
    }

    /// Checks that no distance is below the shortest, and none above the shortest over paths with at most as many edges
    /// as launches.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (least, most) = (nearest(&self.network, self.source), self.within_launches());
        for (node, found) in memory.to_vec(self.distance).into_iter().enumerate() {
            let least = least[node].map_or(FAR, |distance| distance as u32);
            if !(least..=most[node]).contains(&found) {
                return Err(format!("node {node} is {found} away, expected {least} to {}", most[node]));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_types::stream::{Command, Program};
    use tombolo_workload::bench::{Mode, record};
    use tombolo_workload::graph::{Graph, road_graph};
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::scale::Scale;

    /// Worklist lengths per launch of *wlc*, with CTAs of `threads` threads in warps of 32. A warp loads the distances
    /// at both ends of its arcs together, and pushes the end of each arc that is shorter.
    fn lists(graph: &Graph, threads: usize) -> Vec<u32> {
        let mut distance = vec![FAR; graph.nodes() as usize];
        let (mut list, mut lengths) = (vec![0_u32], Vec::new());
        distance[0] = 0;
        while !list.is_empty() {
            lengths.push(list.len() as u32);
            let mut next = Vec::new();
            for cta in list.chunks(threads) {
                let arcs: Vec<_> = cta.iter().flat_map(|&node| graph.row(node).map(move |arc| (node, arc))).collect();
                for warp in arcs.chunks(threads).flat_map(|share| share.chunks(32)) {
                    let reached = |&(node, arc): &(u32, usize)| {
                        (graph.target()[arc], distance[node as usize] + graph.weight()[arc])
                    };
                    let shorter = |&(to, reached): &(u32, u32)| reached < distance[to as usize];
                    for (to, reached) in warp.iter().map(reached).filter(shorter).collect::<Vec<_>>() {
                        distance[to as usize] = distance[to as usize].min(reached);
                        next.push(to);
                    }
                }
            }
            list = next;
        }
        lengths
    }

    /// Mean number of CTAs per launch, weighted by the worklist length.
    fn average(lengths: &[u32], threads: u32) -> f64 {
        let weighted = lengths.iter().map(|&length| f64::from(length) * f64::from(length.div_ceil(threads)));
        weighted.sum::<f64>() / lengths.iter().copied().map(f64::from).sum::<f64>()
    }

    /// CTAs per launch of `relax` for a road network of 2000 nodes.
    fn launches(given: &[(&str, &str)]) -> Vec<u32> {
        let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let request = Request::new(&SSSP, Scale::FULL, &given, 7).unwrap();
        let recording = record(&SSSP, &request, &RecordOptions::default(), Mode::Auto).unwrap();
        let kernels = recording.commands().iter().filter_map(Command::kernel);
        let launched = kernels.map(|kernel| &recording.kernels()[kernel as usize]);
        launched.filter(|info| info.name == "relax").map(|info| info.ctas).collect()
    }

    #[test]
    fn paths_that_no_distance_holds_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |weight: u32| {
            let path = folder.path().join("chain.gr");
            std::fs::write(&path, format!("p sp 3 2\na 1 2 {weight}\na 2 3 3000000000\n")).unwrap();
            let given = [("graph".to_owned(), path.to_str().unwrap().to_owned())];
            let request = Request::new(&SSSP, Scale::FULL, &given, 7).unwrap();
            record(&SSSP, &request, &RecordOptions::default(), Mode::Verify).err().map(|error| error.to_string())
        };
        assert_eq!(refusal(1_000_000_000), None);
        let why = "lonestar-sssp: a node is 6000000000 away from node 0: distances below 4294967295 are possible";
        assert_eq!(refusal(3_000_000_000).as_deref(), Some(why));
    }

    #[test]
    fn launches_of_wlc_take_the_lists_of_a_plain_search() {
        let expected = lists(&road_graph(2000, 7), 128).into_iter().map(|length| length.div_ceil(128));
        let launched = launches(&[("nodes", "2000"), ("variant", "wlc"), ("threads", "128")]);
        assert_eq!(launched, expected.collect::<Vec<_>>());
    }

    #[test]
    fn launches_of_wln_have_equally_many_ctas() {
        let launched = launches(&[("nodes", "2000"), ("variant", "wln"), ("ctas", "3")]);
        assert!(launched.len() > 10 && launched.iter().all(|&ctas| ctas == 3), "{launched:?}");
    }

    #[test]
    fn ctas_are_of_wln() {
        let request = Request::new(&SSSP, Scale::FULL, &[("ctas".to_owned(), "60".to_owned())], 7).unwrap();
        let refused = record(&SSSP, &request, &RecordOptions::default(), Mode::Auto).map(|_| ()).unwrap_err();
        assert_eq!(refused.to_string(), "lonestar-sssp: `ctas` is of variant=wln");
    }

    #[test]
    fn launches_of_wlc_have_a_third_of_the_ctas_of_table_2() {
        // Source: NUMA-GPU, Table 2: 163 for Lonestar-SSSP-Wlc. The more CTAs run at once, the more threads push a node;
        // here CTAs run in turn. Those of Wln are the parameter `ctas`.
        let found = average(&lists(&road_graph(435_666, 1), 512), 512);
        assert!((found / 163.0 - 0.33).abs() < 0.01, "{found} CTAs of 163");
    }
}
