//! Pagerank over edges on several GPUs: each owns a block of nodes and their incoming arcs, and reads the ranks of all
//! nodes.
//!
//! An iteration follows Tartan's, in three kernels:
//!
//! - *sum* adds up the ranks in each GPU's block;
//! - *follow* sends each arc's start rank, divided by the start's number of outgoing arcs, to the arc's end;
//! - *rank* damps a node's received rank, adds an even part from the sum over all ranks, and clears the received rank.
//!
//! Rank from nodes without outgoing arcs is lost, like in the source, so that the sum over all ranks falls.
//!
//! The graph is also the source's. Parallel arcs are merged. Arcs into nodes with in-degree one, or with the maximum
//! in-degree, are dropped. Node blocks are whole lines of ranks, and hold about equal numbers of arcs.
//!
//! With random labels nearly every line of ranks is read by every GPU. GPS's table says "peer-to-peer": with
//! `graph=ring` a GPU reads only the ranks of its neighbours on the ring, as of a graph whose numbering is local.
//!
//! Departures from the source:
//!
//! - A thread processes an arc and adds to its end by an atomic; the source has a thread, a warp or a CTA for each row.
//!   GPS, 7.4, says that its Pagerank mostly issues atomics.
//! - Sums are integers in units of 2^-62, independent of order; the source adds floats.
//! - GPUs read ranks from the one array. The source gathers the ranks needed by other GPUs, and sends them.
//! - Each GPU holds its partial sum over its ranks, and all GPUs read all partial sums. The source has `MPI_Allreduce`.

use super::links::{GRAPH, GraphSpec, PARTNERS, REACH};
use super::rmat::{DEGREE, NODES, rows};
use super::sum::{ATOMIC, add_up};
use crate::prelude::*;
use std::sync::OnceLock;
use tombolo_workload::graph::{Arc, Graph};

/// Threads per CTA. Source: Tartan, prbench, cuda_kernels.cu (`THREADS`).
const THREADS: u64 = 128;
/// Ranks summed per thread. Source: assumed: CUB, called by the source, also gives threads several.
const RANKS: usize = 8;
/// Fraction of a rank carried along arcs. Source: Tartan, prbench, main.cpp: 0.85 unless the user gives a value.
const DAMPING: f64 = 0.85;
/// Sum units for a rank of 1. Source: assumed, 2^62: the sum over all ranks is at most one.
const UNIT: f64 = (1_u64 << 62) as f64;
/// Ranks per 128-byte line: a node block consists of whole lines.
const LINE: u64 = 16;

program! {
    /// Pagerank on several GPUs: a thread an arc adds to its node, ranks of all nodes are gathered
    pub(crate) static PAGERANK = "pagerank-edges", "Tartan, prbench (uuudown/Tartan); GPS, Table 2 (Pagerank)";
    properties: partitioned_by_gpus;
    parameters {
        NODES;
        DEGREE;
        GRAPH;
        REACH;
        PARTNERS;
        /// iterations
        iterations: count(1..=10_000) = 20, "Tartan, prbench: kernel 3 runs 20";
    }
    lay_out(name, request, memory) {
        let spec = GraphSpec::of(name, request, 1, true)?;
        let nodes = u64::from(spec.nodes());
        let gpus = request.gpus();
    }
    struct Ranks {
        spec: GraphSpec,
        gpus: u8,
        /// Links, drawn on first use: array sizes are known without them.
        links: OnceLock<PartitionedGraph> = OnceLock::new(),
        /// By arc, ordered by the end node: both ends, and the arc's share in the start's rank. The arrays have room
        /// for all arcs drawn.
        source: Array<u32>[spec.arcs()],
        target: Array<u32>[spec.arcs()],
        value: Array<f64>[spec.arcs()],
        rank: Array<f64>[nodes],
        /// Rank received by each node.
        sums: Array<u64>[nodes],
        /// Sum over a GPU's ranks in each iteration, by GPU.
        totals: Vec<Array<u64>> =
            (0..gpus).map(|gpu| memory.array(&format!("total{gpu}"), iterations, Scaling::Fixed)).collect(),
        iterations: u64,
    }
}

/// The graph in the program's form, and its partition among GPUs.
struct PartitionedGraph {
    /// Incoming arcs: each row lists the start nodes, with the number of merged parallel arcs as weight.
    arcs: Graph,
    /// Number of outgoing arcs per node, with parallel arcs counted separately.
    leaving: Vec<u32>,
    /// Node grid for the sum kernel.
    summed: PartitionGrid,
    /// Arc grid.
    followed: PartitionGrid,
    /// Node grid for the rank kernel.
    ranked: PartitionGrid,
}

/// Incoming arcs per node, sorted by start node; parallel arcs are merged, with their number as weight.
fn arcs_in(spec: GraphSpec) -> Graph {
    let drawn = spec.draw().reversed();
    let most = (0..drawn.nodes()).map(|node| drawn.row(node).len()).max().unwrap_or(0);
    let mut arcs: Vec<Arc> = Vec::with_capacity(drawn.target().len());
    for node in 0..drawn.nodes() {
        let starts = &drawn.target()[drawn.row(node)];
        if starts.len() > 1 && starts.len() < most {
            let same = starts.chunk_by(|a, b| a == b);
            arcs.extend(same.map(|same| Arc { from: node, to: same[0], weight: same.len() as u32 }));
        }
    }
    Graph::new(drawn.nodes(), &arcs)
}

impl PartitionedGraph {
    fn new(spec: GraphSpec, gpus: u8) -> PartitionedGraph {
        let arcs = arcs_in(spec);
        let mut leaving = vec![0; arcs.nodes() as usize];
        for (start, count) in arcs.target().iter().zip(arcs.weight()) {
            leaving[*start as usize] += count;
        }
        let nodes = Partition::by_weight(arcs.first(), LINE, gpus);
        PartitionedGraph {
            leaving,
            summed: nodes.tiles(THREADS * RANKS as u64, 1),
            followed: nodes.contents(arcs.first()).aligned(THREADS),
            ranked: nodes.tiles(THREADS, 1),
            arcs,
        }
    }

    /// Fraction of the start's outgoing arcs represented by an arc.
    fn value(&self, arc: usize) -> f64 {
        f64::from(self.arcs.weight()[arc]) / f64::from(self.leaving[self.arcs.target()[arc] as usize])
    }
}

/// Rank in sum units.
fn units(rank: f64) -> u64 {
    (rank * UNIT) as u64
}

impl Ranks {
    fn links(&self) -> &PartitionedGraph {
        self.links.get_or_init(|| PartitionedGraph::new(self.spec, self.gpus))
    }

    fn nodes(&self) -> u64 {
        self.rank.len()
    }

    /// Initial ranks: random, with sum 1.
    fn start(&self) -> Vec<f64> {
        let drawn: Vec<u64> = (0..self.nodes()).map(|node| noise::below(self.spec.seed(), node, 1 << 30) + 1).collect();
        let all: u64 = drawn.iter().sum();
        drawn.into_iter().map(|one| one as f64 / all as f64).collect()
    }

    /// A node's next rank, from the sum `total` over all ranks and the received rank.
    fn next(&self, total: u64, brought: u64) -> f64 {
        let even = (1.0 - DAMPING) / self.nodes() as f64;
        even * (total as f64 / UNIT) + DAMPING * (brought as f64 / UNIT)
    }

    fn sum(&self, cta: &mut Cta<'_>, iteration: u64) {
        let CtaTile { gpu, items, .. } = self.links().summed.tile(cta.index());
        let mut sums = Vec::new();
        cta.each_warp(|warp| {
            let first = warp.compute(ComputeClass::Int, 2 + ADDRESS, warp.thread() + items.start as i32);
            let at: [Lanes<i32>; RANKS] = std::array::from_fn(|turn| first + (turn as u64 * THREADS) as i32);
            let ranks = at.map(|at| {
                let [rank] = warp.load_vector_if(at.lt(items.end as i32), self.rank, at);
                rank
            });
            // A product, a conversion and an addition each.
            let all = warp.compute_wide(ComputeClass::Fp64, 3 * RANKS as u16, RANKS as u16, ranks);
            sums.push(all.into_iter().fold(Lanes::all(0), |sum, rank: Lanes<f64>| sum + rank.map(units)));
        });
        add_up(cta, sums, self.totals[gpu], iteration as i32);
    }

    fn follow(&self, cta: &mut Cta<'_>) {
        let CtaTile { items, .. } = self.links().followed.tile(cta.index());
        let first = (items.start / THREADS * THREADS) as i32;
        cta.each_warp(|warp| {
            let arc = warp.compute(ComputeClass::Int, 3, warp.thread() + first);
            warp.when(arc.ge(items.start as i32) & arc.lt(items.end as i32), |warp| {
                let arc = warp.compute(ComputeClass::Int, 3 * ADDRESS, arc);
                let source = warp.load(self.source, arc);
                let value = warp.load(self.value, arc);
                let target = warp.load(self.target, arc);
                let source = warp.compute(ComputeClass::Int, ADDRESS, source);
                let rank = warp.load(self.rank, source);
                let [brought] =
                    warp.calculate(ComputeClass::Fp64, 3, [value, rank], |[value, rank]| [units(value * rank)]);
                let target = warp.compute(ComputeClass::Int, ADDRESS, target);
                warp.reduce(Reduction::Add, self.sums, target, brought, ATOMIC);
            });
        });
    }

    fn rank(&self, cta: &mut Cta<'_>, iteration: u64) {
        let CtaTile { items, .. } = self.links().ranked.tile(cta.index());
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.thread() + items.start as i32);
            warp.when(node.lt(items.end as i32), |warp| {
                let node = warp.compute(ComputeClass::Int, 2 * ADDRESS, node);
                let brought = warp.load(self.sums, node);
                let load = |part: &Array<u64>| warp.load(*part, Lanes::all(iteration as i32));
                let parts: Vec<Lanes<u64>> = self.totals.iter().map(load).collect();
                let total = parts.into_iter().fold(Lanes::all(0), |total, part| total + part);
                let total = warp.compute(ComputeClass::Int, self.totals.len() as u16, total);
                // Two conversions, a product and a fused product.
                let [rank] = warp
                    .calculate(ComputeClass::Fp64, 4, [total, brought], |[total, brought]| [self.next(total, brought)]);
                warp.store(self.rank, node, rank);
                warp.store(self.sums, node, 0_u64);
            });
        });
    }
}

impl Instance for Ranks {
    fn fill(&self, memory: &Memory) {
        let links = self.links();
        let (starts, mut targets) = (links.arcs.target(), rows(&links.arcs));
        memory.fill(self.source, |arc| starts.get(arc as usize).copied().unwrap_or_default());
        memory.fill(self.target, |_| targets.next().unwrap_or_default());
        memory.fill(self.value, |arc| if (arc as usize) < starts.len() { links.value(arc as usize) } else { 0.0 });
        let ranks = self.start();
        memory.fill(self.rank, |node| ranks[node as usize]);
        memory.clear(self.sums);
        self.totals.iter().for_each(|total| memory.clear(*total));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let PartitionedGraph { summed, followed, ranked, .. } = self.links();
        host.copy_to_device(self.source);
        host.copy_to_device(self.target);
        host.copy_to_device(self.value);
        host.copy_to_device(self.rank);
        for iteration in 0..self.iterations {
            let threads = THREADS as u32;
            let sum = summed.grid("sum", threads).shared_bytes(8 * threads / 32);
            host.launch(sum, |cta| self.sum(cta, iteration))?;
            host.launch(followed.grid("follow", threads), |cta| self.follow(cta))?;
            host.launch(ranked.grid("rank", threads), |cta| self.rank(cta, iteration))?;
        }
        host.copy_to_host(self.rank);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let PartitionedGraph { arcs, .. } = self.links();
        let (mut ranks, mut totals) = (self.start(), Vec::new());
        for _ in 0..self.iterations {
            let total = ranks.iter().map(|rank| units(*rank)).sum();
            let brought = |node: u32| -> u64 {
                arcs.row(node).map(|arc| units(self.links().value(arc) * ranks[arcs.target()[arc] as usize])).sum()
            };
            ranks = (0..arcs.nodes()).map(|node| self.next(total, brought(node))).collect();
            totals.push(total);
        }
        equal("rank", &memory.to_vec(self.rank), &ranks)?;
        let found = |at| self.totals.iter().fold(0_u64, |sum, part| sum.wrapping_add(memory.read(*part, at)));
        equal("total", &(0..self.iterations).map(found).collect::<Vec<_>>(), &totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::compare_f64;
    use tombolo_workload::graph::{Rmat, rmat_graph};
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::scale::Scale;
    use tombolo_workload::simt::Backing;

    const SMALL: Rmat = Rmat { log_nodes: 10, degree: 8, heaviest: 1, flips: true, seed: 7 };

    /// Reference Pagerank in floats, with unmerged arcs processed in turn.
    fn floats(iterations: u64, mut ranks: Vec<f64>) -> Vec<f64> {
        let graph = rmat_graph(SMALL);
        let arcs: Vec<(u32, u32)> = rows(&graph).zip(graph.target().iter().copied()).collect();
        let mut into = vec![0; ranks.len()];
        arcs.iter().for_each(|(_, to)| into[*to as usize] += 1);
        let most = *into.iter().max().unwrap();
        let kept: Vec<_> = arcs.iter().filter(|(_, to)| (2..most).contains(&into[*to as usize])).collect();
        let mut out = vec![0.0; ranks.len()];
        kept.iter().for_each(|(from, _)| out[*from as usize] += 1.0);
        for _ in 0..iterations {
            let even = (1.0 - DAMPING) * ranks.iter().sum::<f64>() / ranks.len() as f64;
            let mut next = vec![even; ranks.len()];
            kept.iter()
                .for_each(|(from, to)| next[*to as usize] += DAMPING * ranks[*from as usize] / out[*from as usize]);
            ranks = next;
        }
        ranks
    }

    #[test]
    fn ranks_are_those_of_floats_and_fall_together() {
        let given = [("nodes", "1024"), ("degree", "8"), ("iterations", "5")];
        let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut request = Request::new(&PAGERANK, Scale::FULL, &given, 7).unwrap().with_gpus(4);
        let mut memory = Memory::new(Backing::Real);
        let instance = PAGERANK.lay_out(&mut request, &mut memory).unwrap();
        instance.fill(&memory);
        let place = memory.arrays().iter().position(|array| array.name == "rank").unwrap();
        let ranks = || memory.bits(place).into_iter().map(f64::from_bits).collect::<Vec<_>>();
        let start = ranks();
        instance.run(&mut Host::new(&memory, &RecordOptions::default())).unwrap();
        compare_f64("rank", &ranks(), &floats(5, start.clone())).unwrap();
        let together = |ranks: &[f64]| ranks.iter().sum::<f64>();
        assert!((together(&start) - 1.0).abs() < 1e-12 && together(&ranks()) < 0.9);
    }

    #[test]
    fn arcs_into_nodes_with_one_or_the_most_are_dropped_and_parallels_joined() {
        let (drawn, kept) = (rmat_graph(SMALL).reversed(), arcs_in(GraphSpec::Rmat(SMALL)));
        let most = (0..1024).map(|node| drawn.row(node).len()).max().unwrap();
        for node in 0..1024 {
            let count = drawn.row(node).len();
            let (row, expected) = (kept.row(node), if (2..most).contains(&count) { count } else { 0 });
            assert_eq!(kept.weight()[row.clone()].iter().sum::<u32>() as usize, expected);
            assert!(kept.target()[row].is_sorted_by(|a, b| a < b));
        }
    }
}
