//! Topology-driven breadth-first search: every launch visits every arc at every node.
//!
//! A thread processes a node and loads, for each outgoing arc, the level at either end. If the arc shortens the path to
//! the far end, the thread lowers the far level with an atomic minimum and sets a flag. The host launches again until
//! the flag stays clear. Every launch thus reads the whole graph, which a cache may retain from launch to launch, or
//! lose.
//!
//! If CTAs run concurrently, a launch reaches the neighbours of nodes reached by earlier launches. CTAs are recorded
//! sequentially; to keep a launch from reaching farther, a node reached in the current launch is skipped.
//!
//! With `mapping=group` the program is MGPUSim's, which visits only the arcs in the current level.

use super::network::{GRAPH, GraphContent, NODES, Network, SYMMETRIC, random_network, user_graph_path};
use crate::prelude::*;
use crate::reference::levels;

/// Level for an unreached node.
const FAR: u32 = u32::MAX;
/// Order and scope for CUDA's `atomicMin`: relaxed, at GPU scope.
const ATOMIC: Order = Order::relaxed(Scope::Gpu);

/// Threads per group, and nodes that the group processes in turn. Source: MGPUSim, gpu_perf_scripts.
const GROUP: i32 = 32;
/// Seed for a random graph in a run with seed 1. Source: MGPUSim, gpu_perf_scripts.
const RANDOM_SEED: u32 = 42;

program! {
    /// breadth-first search along the arcs of a road network: every arc in every launch, a launch a level, hundreds of
    /// levels
    pub(crate) static BFS = "lonestar-bfs", "LonestarGPU bfs, topology-driven; HMG Table III (Lonestar_bfs-road-fla)";
    properties: nonlinear;
    parameters {
        NODES;
        /// node to start from
        source: count(0..=1 << 30) = 0, "LonestarGPU bfs";
        GRAPH;
        SYMMETRIC;
        /// arcs of a node of a random graph; 0 for the road network
        degree: count(0..=1024) = 0, "MGPUSim, gpu_perf_scripts: random graphs of degree 4 to 32";
        /// a thread a node, which visits all its arcs in every launch; or a group of 32 threads that shares the arcs of
        /// 32 nodes in turn, of those alone that the launch before has reached
        mapping: choice("node", "group") = "node", "node: LonestarGPU bfs; group: MGPUSim, gpu_perf_scripts";
        /// threads of a CTA; most: 1024 with mapping=node, 256 with mapping=group
        threads: choice("most", "128", "256", "512", "1024") = "most",
            "node: LonestarGPU bfs (`setMaxThreadsPerBlock`); group: assumed; Rodinia's bfs has 512";
        /// launches, at most, of a level each; fewer where no node is left to reach
        launches: count(1..=1 << 30) = 1_000_000, "LonestarGPU bfs, MGPUSim: until nothing changes";
    }
    lay_out: lay_out;
}

/// A search whose flag has elements `C`: a byte in LonestarGPU, four bytes in MGPUSim.
struct BreadthFirstSearch<C> {
    network: Network,
    level: Array<u32>,
    changed: Array<C>,
    source: u32,
    threads: u32,
    groups: bool,
    launches: u32,
}

/// Graph seed for a run's seed: seed 1 gives the source's graph, and other seeds give other graphs.
fn seed_of_graph(run: u64) -> u32 {
    RANDOM_SEED.wrapping_sub(1).wrapping_add(run as u32)
}

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let degree = request.values.count("degree");
    let network = if degree == 0 || user_graph_path(name, request)?.is_some() {
        Network::lay_out_road(name, request, GraphContent::Arcs, memory)?
    } else {
        let nodes = request.scale.of(request.values.count("nodes"));
        let graph = random_network(name, nodes, degree, seed_of_graph(request.seed))?;
        Network::lay_out(memory, graph, Scaling::Scales)
    };
    let source = request.values.count("source");
    if source >= u64::from(network.nodes()) {
        let message = format!("source {source} is no node of the graph's {}", network.nodes());
        return Err(WorkloadError::Shape { workload: name, message });
    }
    if request.values.text("mapping") == "group" {
        Ok(Box::new(search::<u32>(request, network, source as u32, memory)))
    } else {
        Ok(Box::new(search::<bool>(request, network, source as u32, memory)))
    }
}

fn search<C: Element>(request: &Request, network: Network, source: u32, memory: &mut Memory) -> BreadthFirstSearch<C> {
    let groups = request.values.text("mapping") == "group";
    let threads = match (request.values.text("threads"), groups) {
        ("most", false) => 1024,
        ("most", true) => 256,
        _ => request.values.count("threads") as u32,
    };
    BreadthFirstSearch {
        level: memory.array("level", u64::from(network.nodes()), network.scaling),
        changed: memory.array("changed", 1, Scaling::Fixed),
        network,
        source,
        threads,
        groups,
        launches: request.values.count("launches") as u32,
    }
}

impl<C: Element> BreadthFirstSearch<C> {
    /// Marks all nodes as unreached.
    fn initialize(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(self.network.nodes() as i32), |warp| warp.store(self.level, node, FAR));
        });
    }

    /// Visits a node's arcs in each thread.
    fn kernel(&self, cta: &mut Cta<'_>, current: u32) {
        let network = &self.network;
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(network.nodes() as i32), |warp| {
                let (first, degree) = network.row(warp, node);
                warp.repeat(degree, |warp, arc| {
                    let arc = warp.compute(ComputeClass::Int, 1, first + arc);
                    let neighbour = warp.load(network.target, arc);
                    // Atomics in the launch may have changed the level, so it is loaded for each arc.
                    let level = warp.load(self.level, node);
                    let known = warp.load(self.level, neighbour);
                    let (next, _) = warp.compute(ComputeClass::Int, 1, (level + 1, level));
                    warp.when(next.lt(known) & level.le(current), |warp| {
                        let before = warp.atomic(Reduction::Min, self.level, neighbour, next, ATOMIC);
                        warp.when(next.lt(before), |warp| self.note_change(warp));
                    });
                });
            });
        });
    }

    fn note_change(&self, warp: &mut Warp<'_>) {
        warp.store(self.changed, Lanes::all(0), C::from_bits(1));
    }

    /// Processes a group's nodes in turn; the group's threads share each node's neighbours. Stores are plain: threads
    /// that meet at a node store equal values.
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

    /// Visits the nodes at the arcs' far ends.
    fn reach(&self, warp: &mut Warp<'_>, arc: Lanes<i32>, next: u32) {
        let arc = warp.compute(ComputeClass::Int, 1, arc);
        let neighbour = warp.load(self.network.target, arc);
        let known = warp.load(self.level, neighbour);
        warp.when(known.eq(FAR), |warp| {
            warp.store(self.level, neighbour, next);
            self.note_change(warp);
        });
    }

    /// Sets the levels before the first launch: the program's kernel clears them, and the host sets the source's level.
    fn begin(&self, host: &mut Host<'_>, ctas: u64) -> Result<(), RecordError> {
        if self.groups {
            host.copy_to_device(self.level);
            return Ok(());
        }
        host.launch(Grid::new("initialize", ctas, self.threads), |cta| self.initialize(cta))?;
        host.memory().write(self.level, u64::from(self.source), 0);
        host.copy_element_to_device(self.level, u64::from(self.source));
        Ok(())
    }
}

impl<C: Element> Instance for BreadthFirstSearch<C> {
    fn fill(&self, memory: &Memory) {
        self.network.fill(memory);
        if self.groups {
            memory.fill(self.level, |node| if node == u64::from(self.source) { 0 } else { FAR });
        }
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let ctas = u64::from(self.network.nodes().div_ceil(self.threads));
        self.network.copy_to_device(host);
        self.begin(host, ctas)?;
        for level in 0..self.launches {
            host.memory().write(self.changed, 0, C::default());
            host.copy_to_device(self.changed);
            host.launch_ordered(Grid::new("bfs-level", ctas, self.threads), |cta| {
                if self.groups { self.group_kernel(cta, level) } else { self.kernel(cta, level) }
            })?;
            host.copy_to_host(self.changed);
            if host.memory().read(self.changed, 0) == C::default() {
                break;
            }
        }
        host.copy_to_host(self.level);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut expected = levels(&self.network.graph, self.source, [0, 1, FAR]);
        expected.iter_mut().filter(|level| **level > self.launches).for_each(|level| *level = FAR);
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
    use crate::find;
    use tombolo_types::stream::{CtaStream, Op, Program};
    use tombolo_workload::bench::{Mode, record};
    use tombolo_workload::graph::random_graph;
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::scale::Scale;

    #[test]
    fn another_seed_gives_another_random_graph() {
        let targets = |run: u64| random_graph(900, 4, seed_of_graph(run)).target().to_vec();
        assert_eq!(seed_of_graph(1), RANDOM_SEED);
        assert_eq!(targets(2), targets(2));
        assert_ne!(targets(1), targets(2));
    }

    /// Every lane visits equally many arcs in every launch, and besides atomics no launch writes anything but the flag.
    #[test]
    fn every_launch_visits_every_arc() {
        let given = [("nodes", "300"), ("threads", "128")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let workload = find("bfs").unwrap();
        let request = Request::new(workload, Scale::FULL, &given, 7).unwrap();
        let recording = record(workload, &request, &RecordOptions::default(), Mode::Verify).unwrap();
        let targets = recording.arrays().iter().find(|array| array.name == "target").unwrap().addresses();
        let mut stream = CtaStream::default();
        let mut arcs = |kernel: u32| -> u32 {
            let of_cta = |cta| {
                recording.cta(kernel, cta, &mut stream).unwrap();
                let loads = stream.ops.iter().filter_map(|op| match op {
                    Op::Load { accesses, .. } => Some(&stream.accesses[accesses.range()]),
                    _ => None,
                });
                let line = recording.line_size();
                let of_targets = loads.flatten().filter(|access| targets.contains(&line.address_of(access.line)));
                of_targets.map(|access| access.mask.grains()).sum::<u32>()
            };
            (0..3).map(of_cta).sum()
        };
        let levels = (0..).zip(recording.kernels()).filter(|(_, info)| info.name == "bfs-level").map(|(at, _)| at);
        let visited: Vec<u32> = levels.map(&mut arcs).collect();
        // USA-road-d.FLA has degree 2.53: 380 edges for 300 nodes, each stored as two arcs.
        assert!(visited.len() > 10 && visited.iter().all(|&arcs| arcs == 760), "{visited:?}");
    }
}
