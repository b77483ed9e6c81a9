//! Level-synchronous, topology-driven breadth-first search: every launch looks at every node.
//!
//! Nodes of the current level relax their neighbours with an atomic minimum; the host launches again until
//! nothing changed. CTAs race (several may reach a node at once, and see it in either state), so the kernel
//! is recorded in the order of CTAs.

use super::network::{GRAPH, NODES, Network, SYMMETRIC, Uses, file, random_network};
use crate::bench::benchmark::Benchmark;
use crate::bench::reference::levels;
use crate::bench::workload::{Instance, Request, WorkloadError};
use crate::parameter::{Kind, Parameter};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Reduction, Scaling, Warp};
use tombolo_types::{Order, Scope};

/// Level of a node that was not reached.
const FAR: u32 = u32::MAX;
/// CUDA's `atomicMin` is relaxed, at the scope of the GPU.
const ATOMIC: Order = Order::relaxed(Scope::Gpu);

/// Threads of a group, and the nodes that it takes one after the other. Source: MGPUSim, gpu_perf_scripts.
const GROUP: i32 = 32;
/// Seed of a random graph where a run's seed is 1. Source: MGPUSim, gpu_perf_scripts.
const RANDOM_SEED: u32 = 42;

static PARAMETERS: [Parameter; 7] = [
    NODES,
    Parameter {
        name: "source",
        kind: Kind::Count { low: 0, high: 1 << 30 },
        default: "0",
        about: "node to start from",
        source: "LonestarGPU bfs",
    },
    GRAPH,
    SYMMETRIC,
    Parameter {
        name: "degree",
        kind: Kind::Count { low: 0, high: 1024 },
        default: "0",
        about: "arcs of a node of a random graph; 0 for the road network",
        source: "MGPUSim, gpu_perf_scripts: random graphs of degree 4 to 32",
    },
    Parameter {
        name: "mapping",
        kind: Kind::Choice(&["node", "group"]),
        default: "node",
        about: "a thread a node, or a group of 32 threads that shares the neighbours of 32 nodes in turn",
        source: "node: LonestarGPU bfs; group: MGPUSim, gpu_perf_scripts",
    },
    Parameter {
        name: "threads",
        kind: Kind::Choice(&["128", "256", "512", "1024"]),
        default: "256",
        about: "threads of a CTA",
        source: "assumed, the usual choice for one thread a node; Rodinia's bfs has 512",
    },
];

/// The benchmark.
pub(crate) static BFS: Benchmark = Benchmark {
    name: "lonestar-bfs",
    about: "breadth-first search along the arcs of a road network: a launch a level, irregular, hundreds of levels",
    source: "LonestarGPU bfs, topology-driven; HMG Table III (Lonestar_bfs-road-fla)",
    parameters: &PARAMETERS,
    nonlinear: true,
    address_only: false,
    lay_out,
};

struct Search {
    network: Network,
    level: Array<u32>,
    changed: Array<u32>,
    source: u32,
    threads: u32,
    groups: bool,
}

/// The first run's graph is the source's; a run of another seed has another.
fn seed_of_graph(run: u64) -> u32 {
    RANDOM_SEED.wrapping_sub(1).wrapping_add(run as u32)
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let degree = request.values.count("degree");
    let network = if degree == 0 || file(name, request)?.is_some() {
        Network::lay_out(name, request, Uses::Arcs, memory)?
    } else {
        let nodes = request.scale.of(request.values.count("nodes"));
        let graph = random_network(name, nodes, degree, seed_of_graph(request.seed))?;
        Network::of(graph, Scaling::Scales, memory)
    };
    let source = request.values.count("source");
    if source >= u64::from(network.nodes()) {
        let message = format!("source {source} is no node of the graph's {}", network.nodes());
        return Err(WorkloadError::Shape { workload: name, message });
    }
    Ok(Box::new(Search {
        level: memory.array("level", u64::from(network.nodes()), network.scaling),
        changed: memory.array("changed", 1, Scaling::Fixed),
        network,
        source: source as u32,
        threads: request.values.count("threads") as u32,
        groups: request.values.text("mapping") == "group",
    }))
}

impl Search {
    fn kernel(&self, cta: &mut Cta<'_>, current: u32) {
        let (network, next) = (&self.network, current + 1);
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(network.nodes() as i32), |warp| {
                let level = warp.load(self.level, node);
                warp.when(level.eq(current), |warp| {
                    let (first, degree) = network.row(warp, node);
                    warp.repeat(degree, |warp, arc| {
                        let arc = warp.compute(ComputeClass::Int, 1, first + arc);
                        let neighbour = warp.load(network.target, arc);
                        let known = warp.load(self.level, neighbour);
                        warp.when(known.gt(next), |warp| {
                            warp.reduce(Reduction::Min, self.level, neighbour, next, ATOMIC);
                            warp.store(self.changed, Lanes::all(0), 1);
                        });
                    });
                });
            });
        });
    }
}

impl Search {
    /// Each group of threads takes its nodes in turn and shares the neighbours of each. Plain stores: threads that
    /// meet at a node store the same.
    fn group_kernel(&self, cta: &mut Cta<'_>, current: u32) {
        let network = &self.network;
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 3, warp.global_thread());
            let lane = thread % GROUP;
            for turn in 0..GROUP {
                let node = warp.compute(ComputeClass::Int, 1, thread - lane + turn);
                warp.when(node.lt(network.nodes() as i32), |warp| {
                    let level = warp.load(self.level, node);
                    warp.when(level.eq(current), |warp| {
                        let first = warp.load(network.first, node);
                        let degree = warp.load(network.degree, node);
                        let share = (degree.cast::<i32>() - lane + (GROUP - 1)) / GROUP;
                        warp.repeat(share.max(Lanes::all(0)).cast(), |warp, round| {
                            let arc = first.cast::<i32>() + lane + round as i32 * GROUP;
                            self.reach(warp, arc, current + 1);
                        });
                    });
                });
            }
        });
    }

    /// Looks at the nodes that arcs lead to.
    fn reach(&self, warp: &mut Warp<'_>, arc: Lanes<i32>, next: u32) {
        let arc = warp.compute(ComputeClass::Int, 1, arc);
        let neighbour = warp.load(self.network.target, arc);
        let known = warp.load(self.level, neighbour);
        warp.when(known.eq(FAR), |warp| {
            warp.store(self.level, neighbour, next);
            warp.store(self.changed, Lanes::all(0), 1);
        });
    }
}

impl Instance for Search {
    fn fill(&self, memory: &Memory) {
        self.network.fill(memory);
        memory.fill(self.level, |node| if node == u64::from(self.source) { 0 } else { FAR });
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.network.copy_to_device(host);
        host.copy_to_device(self.level);
        let ctas = u64::from(self.network.nodes().div_ceil(self.threads));
        for level in 0.. {
            host.memory().write(self.changed, 0, 0);
            host.copy_to_device(self.changed);
            host.launch_ordered(Grid::new("bfs-level", ctas, self.threads), |cta| {
                if self.groups { self.group_kernel(cta, level) } else { self.kernel(cta, level) }
            })?;
            host.copy_to_host(self.changed);
            if host.memory().read(self.changed, 0) == 0 {
                break;
            }
        }
        host.copy_to_host(self.level);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected = levels(&self.network.graph, self.source, [0, 1, FAR]);
        let found = memory.to_vec(self.level);
        match expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            Some(node) => Err(format!("node {node} is at level {}, expected {}", found[node], expected[node])),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::random_graph;

    #[test]
    fn another_seed_gives_another_random_graph() {
        let targets = |run: u64| random_graph(900, 4, seed_of_graph(run)).target().to_vec();
        assert_eq!(seed_of_graph(1), RANDOM_SEED);
        assert_eq!(targets(2), targets(2));
        assert_ne!(targets(1), targets(2));
    }
}
