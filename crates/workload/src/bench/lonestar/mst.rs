//! Borůvka's minimum spanning tree with scoped atomics and a barrier across CTAs.
//!
//! A spanning tree is of an undirected graph: where a file has an arc without one that leads back, arcs count in both
//! directions, which a note says. Loops and parallel edges stay; no tree holds a loop, or more than one of parallels.
//!
//! A round has two kernels. `find-minimum` reduces, for each component, the lightest edge that leaves it
//! with a scoped atomic minimum. `merge` is cooperative: component roots hook onto the component across
//! their lightest edge, all CTAs meet, roots are chased to their new root with scoped relaxed accesses, all
//! CTAs meet again, and every node takes its new root.

use super::network::{DEGREE, GRAPH, NETWORK, NODES, Network, SYMMETRIC, Uses};
use crate::bench::benchmark::Benchmark;
use crate::bench::grid_barrier::GridBarrier;
use crate::bench::scope::scope;
use crate::bench::workload::{Instance, Request, WorkloadError};
use crate::graph::{Edges, Groups};
use crate::parameter::{Kind, Parameter};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Reduction, Scaling, Warp};
use tombolo_types::{Order, Scope};

/// Threads of a CTA of the cooperative kernel. Source: assumed, the usual size.
const THREADS: u32 = 256;
/// No edge leaves the component.
const NONE: u64 = u64::MAX;

static PARAMETERS: [Parameter; 9] = [
    NODES,
    NETWORK,
    DEGREE,
    Parameter {
        name: "scope",
        kind: Kind::Choice(&["gpu", "sys"]),
        default: "gpu",
        about: "scope of atomics, and of the accesses that race",
        source: "HMG VI: mst uses .gpu-scoped synchronization; CUDA's atomics have the scope of the GPU",
    },
    Parameter {
        name: "barrier",
        kind: Kind::Choice(&["gpu", "sys"]),
        default: "sys",
        about: "scope of the barrier across CTAs",
        source: "assumed: the grid spans GPUs, so a barrier of narrower scope would not order its CTAs",
    },
    Parameter {
        name: "ctas",
        // A CTA waits for at most 32767 stores of a kernel: for each of all CTAs' at two barriers.
        kind: Kind::Count { low: 1, high: (1 << 14) - 1 },
        default: "512",
        about: "CTAs of the cooperative kernel, at scale 1; scales with the SMs",
        source: "one for each of the 512 SMs of HMG's machine (Table II)",
    },
    Parameter {
        name: "threads",
        kind: Kind::Choice(&["128", "256", "512", "768", "1024"]),
        default: "256",
        about: "threads of a CTA that looks for lightest edges",
        source: "assumed, the usual choice for one thread a node",
    },
    GRAPH,
    SYMMETRIC,
];

/// The benchmark.
pub(crate) static MST: Benchmark = Benchmark {
    name: "lonestar-mst",
    about: "Borůvka's spanning tree of an undirected network: scoped atomics, synchronisation inside kernels",
    source: "LonestarGPU mst; HMG Table III (Lonestar_mst-road-fla); NUMA-GPU, Table 2 (Lonestar-MST-Graph, -Mesh)",
    parameters: &PARAMETERS,
    nonlinear: true,
    address_only: false,
    lay_out,
};

struct Forest {
    network: Network,
    edges: Edges,
    /// Index of each arc's edge.
    edge: Array<u32>,
    /// Weight of each arc.
    weight: Array<u32>,
    /// Two entries an edge: its ends.
    ends: Array<u32>,
    /// Root of each node's component.
    component: Array<u32>,
    /// Where each root hooks onto.
    parent: Array<u32>,
    /// Lightest edge that leaves each root's component: weight × 2^32 + edge.
    lightest: Array<u64>,
    /// 1 for each edge of the tree.
    in_tree: Array<u32>,
    /// Weight of the tree, and components merged in this round.
    totals: Array<u64>,
    barrier: GridBarrier,
    scope: Scope,
    ctas: u32,
    threads: u32,
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let network = Network::lay_out_kind(name, request, Uses::Edges, memory)?;
    let edges = network.graph.edges().expect("every arc of such a network leads back");
    let (nodes, arcs, count) = (u64::from(network.nodes()), network.target.len(), edges.list.len() as u64);
    let ctas = request.scale.of(request.values.count("ctas"));
    let scaling = network.scaling;
    Ok(Box::new(Forest {
        edge: memory.array("edge", arcs, scaling),
        weight: memory.array("weight", arcs, scaling),
        ends: memory.array("ends", 2 * count, scaling),
        component: memory.array("component", nodes, scaling),
        parent: memory.array("parent", nodes, scaling),
        lightest: memory.array("lightest", nodes, scaling),
        in_tree: memory.array("in_tree", count, scaling),
        totals: memory.array("totals", 2, Scaling::Fixed),
        barrier: GridBarrier::lay_out(memory, ctas, scope(&request.values, "barrier")),
        network,
        edges,
        scope: scope(&request.values, "scope"),
        ctas: ctas as u32,
        threads: request.values.count("threads") as u32,
    }))
}

/// Position in [`Forest::totals`] of the tree's weight.
const WEIGHT: i32 = 0;
/// Position in [`Forest::totals`] of the components merged in this round.
const MERGED: i32 = 1;

impl Forest {
    /// Each node offers its lightest edge to another component.
    fn find_minimum(&self, cta: &mut Cta<'_>) {
        let network = &self.network;
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(network.nodes() as i32), |warp| {
                let own = warp.load(self.component, node);
                let (first, degree) = network.row(warp, node);
                let mut best = Lanes::all(NONE);
                warp.repeat(degree, |warp, arc| {
                    let arc = warp.compute(ComputeClass::Int, 1, first + arc);
                    let other = warp.load(network.target, arc);
                    let other = warp.load(self.component, other);
                    warp.when(other.ne(own), |warp| {
                        let (weight, edge) = (warp.load(self.weight, arc), warp.load(self.edge, arc));
                        let key = weight.cast::<u64>() * (1 << 32) + edge.cast::<u64>();
                        let key = warp.compute(ComputeClass::Int, 3, key);
                        best = warp.update(best, best.min(key));
                    });
                });
                warp.when(best.ne(NONE), |warp| {
                    warp.reduce(Reduction::Min, self.lightest, own, best, Order::relaxed(self.scope));
                });
            });
        });
    }

    /// Joins components along their lightest edges. `round` counts from 0.
    async fn merge(&self, cta: &mut Cta<'_>, round: u32) {
        self.each_node(cta, |warp, node| self.hook(warp, node));
        self.barrier.meet(cta, 2 * round + 1).await;
        self.each_node(cta, |warp, node| self.chase(warp, node));
        self.barrier.meet(cta, 2 * round + 2).await;
        self.each_node(cta, |warp, node| {
            let old = warp.load(self.component, node);
            let new = warp.load_ordered(self.parent, old, Order::relaxed(self.scope));
            warp.store(self.component, node, new);
            warp.store(self.lightest, node, NONE);
        });
    }

    /// Runs `body` on the CTA's share of the nodes: every `grid × threads`-th node from each thread's own.
    fn each_node(&self, cta: &mut Cta<'_>, mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>)) {
        let (nodes, stride) = (self.network.nodes() as i32, (cta.grid() * cta.threads()) as usize);
        cta.each_warp(|warp| {
            for start in (0..nodes).step_by(stride) {
                let node = warp.compute(ComputeClass::Int, 1, warp.global_thread() + start);
                warp.when(node.ge(0) & node.lt(nodes), |warp| body(warp, node));
            }
        });
    }

    /// A root hooks onto the component across its lightest edge; of two that choose the same edge, the one
    /// with the smaller number stays a root.
    fn hook(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let relaxed = Order::relaxed(self.scope);
        let node_id = node.cast::<u32>();
        let root = warp.load(self.component, node);
        warp.when(root.eq(node_id), |warp| {
            warp.store_ordered(self.parent, node, node_id, relaxed);
            let key = warp.load(self.lightest, node);
            warp.when(key.ne(NONE), |warp| {
                let edge = warp.compute(ComputeClass::Int, 2, (key % (1 << 32)).cast::<i32>());
                let [a, b] = warp.load_vector(self.ends, edge * 2);
                let (a, b) = (warp.load(self.component, a), warp.load(self.component, b));
                let other = a.eq(node_id).select(b, a);
                let theirs = warp.load(self.lightest, other);
                let stays = theirs.eq(key) & node_id.lt(other);
                warp.when(!stays, |warp| {
                    warp.store_ordered(self.parent, node, other, relaxed);
                    warp.store(self.in_tree, edge, 1);
                    let weight = warp.compute(ComputeClass::Int, 1, key / (1 << 32));
                    warp.reduce(Reduction::Add, self.totals, Lanes::all(WEIGHT), weight, relaxed);
                    warp.reduce(Reduction::Add, self.totals, Lanes::all(MERGED), 1, relaxed);
                });
            });
        });
    }

    /// A root that hooked follows the hooks to the root that stayed.
    fn chase(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let relaxed = Order::relaxed(self.scope);
        let root = warp.load(self.component, node);
        warp.when(root.eq(node.cast::<u32>()), |warp| {
            let mut at = warp.load_ordered(self.parent, node, relaxed);
            loop {
                let up = warp.load_ordered(self.parent, at, relaxed);
                let moving = up.ne(at);
                at = warp.update(at, up);
                if !warp.any(moving) {
                    break;
                }
            }
            warp.store_ordered(self.parent, node, at, relaxed);
        });
    }
}

impl Instance for Forest {
    fn fill(&self, memory: &Memory) {
        self.network.fill(memory);
        memory.fill(self.edge, |arc| self.edges.of_arc[arc as usize]);
        memory.fill(self.weight, |arc| self.network.graph.weight()[arc as usize]);
        for (index, edge) in (0..).zip(&self.edges.list) {
            memory.write(self.ends, 2 * index, edge.a);
            memory.write(self.ends, 2 * index + 1, edge.b);
        }
        memory.fill(self.component, |node| node as u32);
        memory.fill(self.lightest, |_| NONE);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.network.copy_to_device(host);
        for array in [self.edge, self.weight, self.ends, self.component] {
            host.copy_to_device(array);
        }
        host.copy_to_device(self.lightest);
        let ctas = u64::from(self.network.nodes().div_ceil(self.threads));
        for round in 0.. {
            host.memory().write(self.totals, MERGED as u64, 0);
            host.copy_to_device(self.totals);
            host.launch(Grid::new("find-minimum", ctas, self.threads), |cta| self.find_minimum(cta))?;
            let grid = Grid::new("merge", u64::from(self.ctas), THREADS);
            host.launch_cooperative(grid, async |cta: &mut Cta<'_>| self.merge(cta, round).await)?;
            host.copy_to_host(self.totals);
            if host.memory().read(self.totals, MERGED as u64) == 0 {
                break;
            }
        }
        host.copy_to_host(self.in_tree);
        Ok(())
    }

    /// Kruskal's algorithm, with the same order of equal weights.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let edges = &self.edges.list;
        let mut order: Vec<usize> = (0..edges.len()).collect();
        order.sort_by_key(|&index| (edges[index].weight, index));
        let mut groups = Groups::new(self.network.nodes());
        let mut expected = vec![0; edges.len()];
        let mut weight = 0;
        for index in order {
            if groups.join(edges[index].a, edges[index].b) {
                expected[index] = 1;
                weight += u64::from(edges[index].weight);
            }
        }
        let found = memory.to_vec(self.in_tree);
        if let Some(at) = expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            return Err(format!("edge {at} is in the tree {} times, expected {}", found[at], expected[at]));
        }
        match memory.read(self.totals, WEIGHT as u64) {
            found if found == weight => Ok(()),
            found => Err(format!("the tree weighs {found}, expected {weight}")),
        }
    }
}
