//! Single-source shortest paths on several GPUs: each owns a node block with its incoming arcs, and reads all nodes'
//! distances.
//!
//! Rounds follow Bellman and Ford, in two kernels. In *relax* each arc whose start was reached offers its end a
//! distance, by an atomic minimum on the next distances. In *update* each node adopts its next distance. The host
//! launches both until no node on any GPU has changed. The program starts from the node with the most outgoing arcs.
//!
//! Labels in an R-MAT graph are random, so that even node blocks are equivalent to Gunrock's random partition. A block
//! consists only of whole lines with distances.
//!
//! With random labels every GPU reads nearly all distances. GPS's table says "many-to-many": with `graph=communities`
//! the distances of a community are read where its arcs lead, on some of the other GPUs.
//!
//! Departures from the sources:
//!
//! - Gunrock and Groute keep worklists, relax a listed node's outgoing arcs, and send distances to the GPUs that own
//!   the end nodes. Here a GPU reads the start nodes for its incoming arcs, so that no GPU writes another GPU's nodes.
//! - Every round processes every arc.
//! - Arcs lead one way. Parallel arcs and loops remain; Gunrock drops them by default.
//! - GPS's table says "between every pair of vertices". Programs with this name have only a single start node.

use super::links::{GRAPH, GraphSpec, PARTNERS, REACH};
use super::rmat::{DEGREE, NODES, rows};
use super::sum::{ATOMIC, add_up};
use crate::prelude::*;
use std::sync::OnceLock;
use tombolo_workload::graph::Graph;

/// Threads per CTA. Source: Groute (`block_size`).
const THREADS: u64 = 256;
/// Distance for an unreached node. Source: Groute, sssp_async.cu (`INF`).
const FAR: u32 = u32::MAX;
/// Largest arc weight; weights are whole numbers from 1. Source: Gunrock's R-MAT generator: 1 to 64 (`rmat_vmin`,
/// `rmat_vmultipiler`).
const HEAVIEST: u32 = 64;
/// Distances per 128-byte line: a node block consists of whole lines.
const LINE: u64 = 32;

program! {
    // The number of rounds does not follow the graph's size.
    /// shortest paths on several GPUs: a thread an arc offers its node a distance, those of all nodes are gathered
    pub(crate) static SSSP = "sssp-owners",
        "Gunrock and Groute, SSSP (partitions, start, weights); GPS, Table 2 (SSSP)";
    properties: nonlinear, partitioned_by_gpus;
    parameters {
        NODES, "assumed, that of pagerank-edges: the paper names no graph";
        DEGREE, "Graph500's specification: edge factor 16";
        GRAPH, "assumed, that of pagerank-edges: the paper names no graph";
        REACH;
        PARTNERS;
        /// rounds, at most; fewer where no distance changes any more: R-MAT graphs take about ten
        rounds: count(1..=1000) = 1000, "Gunrock and Groute run until nothing changes";
    }
    lay_out(name, request, memory) {
        let spec = GraphSpec::of(name, request, HEAVIEST, false)?;
        let nodes = u64::from(spec.nodes());
        let gpus = request.gpus();
    }
    struct PartitionedPaths {
        spec: GraphSpec,
        gpus: u8,
        /// Links, drawn on first use: array sizes are known without them.
        links: OnceLock<PartitionedGraph> = OnceLock::new(),
        /// By arc, ordered by the end node: both ends and the weight.
        source: Array<u32>[spec.arcs()],
        target, weight: Array<u32>[spec.arcs()],
        /// Distances after the last round.
        distance: Array<u32>[nodes],
        /// Distances offered by arcs in this round.
        next: Array<u32>[nodes],
        /// Number of nodes changed in each round, by GPU.
        changed: Vec<Array<u64>> =
            (0..gpus).map(|gpu| memory.array(&format!("changed{gpu}"), rounds, Scaling::Fixed)).collect(),
        /// Node grid.
        updated: PartitionGrid = blocks(nodes, gpus).tiles(THREADS, 1),
        rounds: u64,
    }
}

/// The graph, and its arcs' partition among GPUs.
struct PartitionedGraph {
    /// Incoming arcs: each row lists the start nodes.
    arcs: Graph,
    /// Start node for the search.
    start: u32,
    relaxed: PartitionGrid,
}

/// Node block for each GPU.
fn blocks(nodes: u64, gpus: u8) -> Partition {
    Partition::groups(nodes, LINE, gpus)
}

impl PartitionedGraph {
    fn new(spec: GraphSpec, gpus: u8) -> PartitionedGraph {
        let drawn = spec.draw();
        let leaving = |node: &u32| drawn.row(*node).len();
        // In reverse order, the last maximum has the lowest label.
        let start = (0..drawn.nodes()).rev().max_by_key(leaving).unwrap_or(0);
        let arcs = drawn.reversed();
        let relaxed = blocks(u64::from(arcs.nodes()), gpus).contents(arcs.first()).aligned(THREADS);
        PartitionedGraph { start, relaxed, arcs }
    }
}

impl PartitionedPaths {
    fn links(&self) -> &PartitionedGraph {
        self.links.get_or_init(|| PartitionedGraph::new(self.spec, self.gpus))
    }

    fn relax(&self, cta: &mut Cta<'_>) {
        let CtaTile { items, .. } = self.links().relaxed.tile(cta.index());
        let first = (items.start / THREADS * THREADS) as i32;
        cta.each_warp(|warp| {
            let arc = warp.compute(ComputeClass::Int, 3, warp.thread() + first);
            warp.when(arc.ge(items.start as i32) & arc.lt(items.end as i32), |warp| {
                let arc = warp.compute(ComputeClass::Int, 3 * ADDRESS, arc);
                let source = warp.load(self.source, arc);
                let source = warp.compute(ComputeClass::Int, ADDRESS, source);
                let reached = warp.load(self.distance, source);
                warp.when(reached.ne(FAR), |warp| {
                    let weight = warp.load(self.weight, arc);
                    let target = warp.load(self.target, arc);
                    let offer = warp.compute(ComputeClass::Int, 1, reached + weight);
                    let target = warp.compute(ComputeClass::Int, ADDRESS, target);
                    warp.reduce(Reduction::Min, self.next, target, offer, ATOMIC);
                });
            });
        });
    }

    fn update(&self, cta: &mut Cta<'_>, round: u64) {
        let CtaTile { gpu, items, .. } = self.updated.tile(cta.index());
        let mut counts = Vec::new();
        cta.each_warp(|warp| {
            let mut changes = Lanes::all(0_u64);
            let node = warp.compute(ComputeClass::Int, 2, warp.thread() + items.start as i32);
            warp.when(node.lt(items.end as i32), |warp| {
                let node = warp.compute(ComputeClass::Int, 2 * ADDRESS, node);
                let next = warp.load(self.next, node);
                let distance = warp.load(self.distance, node);
                warp.when(next.lt(distance), |warp| {
                    warp.store(self.distance, node, next);
                    changes = warp.update(changes, Lanes::all(1));
                });
            });
            counts.push(changes);
        });
        add_up(cta, counts, self.changed[gpu], round as i32);
    }

    fn start(&self, node: u64) -> u32 {
        if node == u64::from(self.links().start) { 0 } else { FAR }
    }
}

impl Instance for PartitionedPaths {
    fn fill(&self, memory: &Memory) {
        let PartitionedGraph { arcs, .. } = self.links();
        let mut targets = rows(arcs);
        memory.fill(self.source, |arc| arcs.target()[arc as usize]);
        memory.fill(self.target, |_| targets.next().unwrap_or_default());
        memory.fill(self.weight, |arc| arcs.weight()[arc as usize]);
        memory.fill(self.distance, |node| self.start(node));
        memory.fill(self.next, |node| self.start(node));
        self.changed.iter().for_each(|changed| memory.clear(*changed));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for array in [self.source, self.target, self.weight, self.distance, self.next] {
            host.copy_to_device(array);
        }
        let relaxed = &self.links().relaxed;
        for round in 0..self.rounds {
            host.launch(relaxed.grid("relax", THREADS as u32), |cta| self.relax(cta))?;
            let update = self.updated.grid("update", THREADS as u32).shared_bytes(8 * THREADS as u32 / 32);
            host.launch(update, |cta| self.update(cta, round))?;
            self.changed.iter().for_each(|changed| host.copy_to_host(*changed));
            if self.changed.iter().all(|changed| host.memory().read(*changed, round) == 0) {
                break;
            }
        }
        host.copy_to_host(self.distance);
        Ok(())
    }

    /// Compares with distances over at most as many arcs as rounds, computed by pushing along each node's outgoing
    /// arcs.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let leaving = self.links().arcs.reversed();
        let mut distance: Vec<u32> = (0..self.distance.len()).map(|node| self.start(node)).collect();
        for round in 0..self.rounds {
            let mut next = distance.clone();
            for node in (0..leaving.nodes()).filter(|node| distance[*node as usize] != FAR) {
                for arc in leaving.row(node) {
                    let end = leaving.target()[arc] as usize;
                    next[end] = next[end].min(distance[node as usize] + leaving.weight()[arc]);
                }
            }
            let expected = distance.iter().zip(&next).filter(|(before, after)| before != after).count() as u64;
            let found = self.changed.iter().fold(0_u64, |sum, part| sum.wrapping_add(memory.read(*part, round)));
            if found != expected {
                return Err(format!("{found} nodes changed in round {round}, expected {expected}"));
            }
            distance = next;
            if expected == 0 {
                break;
            }
        }
        equal("distance", &memory.to_vec(self.distance), &distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    use tombolo_workload::bench::{Mode, record};
    use tombolo_workload::graph::{Rmat, rmat_graph};
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::scale::Scale;
    use tombolo_workload::simt::Backing;

    const SMALL: Rmat = Rmat { log_nodes: 10, degree: 8, heaviest: HEAVIEST, flips: false, seed: 7 };

    fn request(given: &[(&str, &str)]) -> Request {
        let small = [("nodes", "1024"), ("degree", "8")];
        let given = small.iter().chain(given).map(|(key, value)| (key.to_string(), value.to_string()));
        Request::new(&SSSP, Scale::FULL, &given.collect::<Vec<_>>(), 7).unwrap().with_gpus(4)
    }

    /// Dijkstra's algorithm.
    fn nearest(graph: &Graph, start: u32) -> Vec<u32> {
        let mut nearest = vec![FAR; graph.nodes() as usize];
        let mut queue = BinaryHeap::from([(Reverse(0), start)]);
        while let Some((Reverse(distance), node)) = queue.pop() {
            if distance < nearest[node as usize] {
                nearest[node as usize] = distance;
                let ends = graph.row(node).map(|arc| (Reverse(distance + graph.weight()[arc]), graph.target()[arc]));
                queue.extend(ends);
            }
        }
        nearest
    }

    #[test]
    fn distances_are_the_shortest() {
        let mut memory = Memory::new(Backing::Real);
        let instance = SSSP.lay_out(&mut request(&[]), &mut memory).unwrap();
        instance.fill(&memory);
        instance.run(&mut Host::new(&memory, &RecordOptions::default())).unwrap();
        let place = memory.arrays().iter().position(|array| array.name == "distance").unwrap();
        let found: Vec<u32> = memory.bits(place).into_iter().map(|bits| bits as u32).collect();
        let graph = rmat_graph(SMALL);
        assert_eq!(found, nearest(&graph, PartitionedGraph::new(GraphSpec::Rmat(SMALL), 1).start));
        let reached = found.iter().filter(|distance| **distance != FAR).count();
        assert!(reached > 500, "{reached} of 1024 nodes are reached");
    }

    #[test]
    fn rounds_that_are_given_are_the_most() {
        let launches = |rounds: &str| {
            record(&SSSP, &request(&[("rounds", rounds)]), &RecordOptions::default(), Mode::Verify).unwrap().launches()
        };
        assert_eq!(launches("3"), 6);
        let all = launches("1000");
        assert!((12..=60).contains(&all), "{all} launches until nothing changes");
    }
}
