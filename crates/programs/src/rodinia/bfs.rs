//! Rodinia bfs: breadth-first search with masks, two launches per level.
//!
//! `expand` visits every node: a node on the front leaves it, and marks each unvisited neighbour with the next level.
//! `advance` also visits every node: a marked node becomes visited and joins the front, and the flag `over` tells the
//! host to continue. The host clears the flag before each level and reads it afterwards.
//!
//! A mark takes one byte, and CTAs that reach a node simultaneously store equal values: no result depends on their
//! order. Marks on scattered nodes leave the rest of a word unchanged, and are stored at their home.

use crate::prelude::*;
use crate::reference::levels;
use tombolo_workload::graph::{Arc, Graph};

/// Threads per CTA. Source: Rodinia 3.1 bfs (`MAX_THREADS_PER_BLOCK`).
const THREADS: u32 = 512;
/// Minimum and maximum number of edges that a node adds to the graph. Source: Rodinia 3.1, bfs/inputGen/graphgen.cpp
/// (`MIN_EDGES`, `MAX_INIT_EDGES`).
const EDGES: [u64; 2] = [2, 4];
/// Cost that marks an unreached node. Source: Rodinia 3.1 bfs (`h_cost`).
const FAR: i32 = -1;
/// Maximum number of nodes for which eight arcs each still have 32-bit indices.
const MOST_NODES: u64 = 1 << 26;

program! {
    /// breadth-first search of a random graph: two launches a level, masks, a flag that the host reads
    pub(crate) static BFS = "rodinia-bfs",
        "Rodinia 3.1 bfs (yuhc/gpu-rodinia, cuda/bfs/bfs.cu); NUMA-GPU, Table 2 (Rodinia-BFS); CPElide, Table II";
    properties: nonlinear;
    parameters {
        /// nodes of the random graph, of six arcs each on average, at scale 1; scales
        nodes: count(1..=MOST_NODES) = 131_072,
            "CPElide, Table II: graph128k.txt; Rodinia's graph1MW_6.txt has 1,000,000";
        /// node to start from
        source: count(0..=MOST_NODES - 1) = 0, "Rodinia 3.1 bfs (`source`)";
    }
    lay_out(name, request, memory) {
        let nodes = request.scale.of(nodes);
        check_indices(name, nodes * 2 * EDGES[1], "arcs")?;
        require(name, source < nodes, || format!("source {source} is no node of the graph's {nodes}"))?;
        let graph = graph(nodes as u32, request.seed);
    }
    struct BreadthFirstSearch {
        source: u32,
        /// First arc and arc count for each node, in turn: `[node][2]`.
        nodes: Array<i32>[2 * nodes],
        /// End node per arc.
        arcs: Array<i32>[graph.target().len() as u64],
        /// Set if a node is on the current front.
        mask: Array<bool>[nodes],
        /// Set if a node is on the next front.
        updating: Array<bool>["updating-mask"; nodes],
        visited: Array<bool>[nodes],
        /// Level for each node.
        cost: Array<i32>[nodes],
        over: Array<bool>[1, fixed],
        graph: Graph,
    }
}

/// Builds a graph in which each node has edges to random nodes. Loops and parallel edges remain.
fn graph(nodes: u32, seed: u64) -> Graph {
    let [low, high] = EDGES;
    let edges = |node: u32| low + noise::below(seed, u64::from(node), high - low + 1);
    let end = |node: u32, edge| noise::below(!seed, high * u64::from(node) + edge, u64::from(nodes)) as u32;
    let both = |from: u32, to: u32| [Arc { from, to, weight: 1 }, Arc { from: to, to: from, weight: 1 }];
    let arcs: Vec<Arc> =
        (0..nodes).flat_map(|node| (0..edges(node)).flat_map(move |edge| both(node, end(node, edge)))).collect();
    Graph::new(nodes, &arcs)
}

impl BreadthFirstSearch {
    /// Marks the unvisited neighbours of the current front.
    fn expand(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(self.graph.nodes() as i32), |warp| {
                let front = warp.load(self.mask, node);
                warp.when(front, |warp| {
                    warp.store(self.mask, node, false);
                    let at = warp.compute(ComputeClass::Int, 1 + ADDRESS, node * 2);
                    let (first, count) = (warp.load(self.nodes, at), warp.load(self.nodes, at + 1));
                    warp.repeat(count.cast::<u32>(), |warp, arc| {
                        let arc = warp.compute(ComputeClass::Int, 1, first + arc as i32);
                        let neighbour = warp.load(self.arcs, arc);
                        let visited = warp.load(self.visited, neighbour);
                        warp.when(visited.eq(false), |warp| {
                            let cost = warp.load(self.cost, node) + 1;
                            let cost = warp.compute(ComputeClass::Int, 1, cost);
                            warp.store(self.cost, neighbour, cost);
                            warp.store(self.updating, neighbour, true);
                        });
                    });
                });
            });
        });
    }

    /// Makes all marked nodes the new front, and sets the flag for the host.
    fn advance(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(self.graph.nodes() as i32), |warp| {
                let marked = warp.load(self.updating, node);
                warp.when(marked, |warp| {
                    warp.store(self.mask, node, true);
                    warp.store(self.visited, node, true);
                    warp.store(self.over, Lanes::all(0), true);
                    warp.store(self.updating, node, false);
                });
            });
        });
    }
}

impl Instance for BreadthFirstSearch {
    fn fill(&self, memory: &Memory) {
        let row = |node: u64| self.graph.row(node as u32);
        memory.fill(self.nodes, |at| {
            let row = row(at / 2);
            if at % 2 == 0 { row.start as i32 } else { row.len() as i32 }
        });
        memory.fill(self.arcs, |arc| self.graph.target()[arc as usize] as i32);
        let is_source = |node: u64| node == u64::from(self.source);
        memory.fill(self.mask, is_source);
        memory.fill(self.visited, is_source);
        memory.fill(self.cost, |node| if is_source(node) { 0 } else { FAR });
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.nodes);
        host.copy_to_device(self.arcs);
        host.copy_to_device(self.mask);
        host.copy_to_device(self.updating);
        host.copy_to_device(self.visited);
        host.copy_to_device(self.cost);
        let grid = |name| Grid::new(name, u64::from(self.graph.nodes().div_ceil(THREADS)), THREADS);
        loop {
            host.memory().write(self.over, 0, false);
            host.copy_to_device(self.over);
            host.launch_ordered(grid("expand"), |cta| self.expand(cta))?;
            host.launch_ordered(grid("advance"), |cta| self.advance(cta))?;
            host.copy_to_host(self.over);
            if !host.memory().read(self.over, 0) {
                break;
            }
        }
        host.copy_to_host(self.cost);
        Ok(())
    }

    /// Compares with levels from a plain search, front by front.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected = levels(&self.graph, self.source, [0, 1, FAR]);
        let found = memory.to_vec(self.cost);
        match expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            Some(node) => Err(format!("node {node} is at level {}, expected {}", found[node], expected[node])),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;
    use std::collections::BTreeMap;
    use tombolo_types::stream::{CtaStream, Op, Program};
    use tombolo_workload::bench::{Mode, record};
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::scale::Scale;

    /// Numbers of stores to each array, by kind: ordinary stores, and stores performed at their home;
    /// `[ordinary, at home]`.
    fn stores(nodes: u64) -> BTreeMap<String, [u32; 2]> {
        let workload = find("rodinia-bfs").unwrap();
        let request = Request::new(workload, Scale::FULL, &[("nodes".into(), nodes.to_string())], 7).unwrap();
        let recording = record(workload, &request, &RecordOptions::default(), Mode::Verify).unwrap();
        let (mut found, mut stream) = (BTreeMap::<String, [u32; 2]>::new(), CtaStream::default());
        for (kernel, info) in (0..).zip(recording.kernels()) {
            for cta in 0..info.ctas {
                recording.cta(kernel, cta, &mut stream).unwrap();
                for op in &stream.ops {
                    let (at, accesses) = match op {
                        Op::Store { accesses, .. } => (0, accesses),
                        Op::Atomic { accesses, .. } => (1, accesses),
                        _ => continue,
                    };
                    let address = recording.line_size().address_of(stream.accesses[accesses.range()][0].line);
                    let array = recording.arrays().iter().find(|array| array.addresses().contains(&address)).unwrap();
                    found.entry(array.name.clone()).or_default()[at] += 1;
                }
            }
        }
        found
    }

    #[test]
    fn marks_of_scattered_nodes_are_stored_at_their_home() {
        let found = stores(5000);
        let at_home = |name: &str| f64::from(found[name][1]) / f64::from(found[name][0] + found[name][1]);
        assert_eq!((at_home("cost"), at_home("over")), (0.0, 0.0), "four bytes, and all that an array has: {found:?}");
        let marks = ["mask", "updating-mask", "visited"].map(at_home);
        assert!(marks.iter().all(|share| *share > 0.9), "{found:?}");
    }

    #[test]
    fn a_node_has_six_arcs_on_average_and_every_arc_leads_back() {
        let graph = graph(2000, 7);
        let arcs = graph.target().len() as f64 / 2000.0;
        assert!((5.8..6.2).contains(&arcs), "{arcs}");
        let mut there: Vec<_> =
            (0..2000).flat_map(|node| graph.target()[graph.row(node)].iter().map(move |to| (node, *to))).collect();
        let mut back: Vec<_> = there.iter().map(|(from, to)| (*to, *from)).collect();
        there.sort_unstable();
        back.sort_unstable();
        assert_eq!(there, back);
    }
}
