//! Lonestar's single-source shortest paths: Bellman and Ford's edge relaxation until nothing changes, in three
//! implementations.
//!
//! *topology* visits every node in every launch. *wln* keeps a worklist, and a thread relaxes all edges at a listed
//! node. *wlc* uses a thread per edge: a CTA's threads share the edges at its nodes, like in Merrill's breadth-first
//! search, and one thread reserves space in the next worklist for the whole CTA.
//!
//! A kernel first marks all nodes as unreached, and so touches the distances first.
//!
//! CTAs race (several may reach a node simultaneously), so kernels are recorded in CTA order.

use super::network::{DEGREE, GRAPH, GraphContent, NETWORK, NODES, Network, SYMMETRIC};
use crate::bench::benchmark::{Benchmark, each_active};
use crate::bench::workload::{Instance, Request, WorkloadError};
use crate::parameter::{Parameter, ParameterKind};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Reduction, Scaling, Warp};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tombolo_types::{Order, Scope};

/// Distance for an unreached node.
const FAR: u32 = u32::MAX;
/// Order and scope for CUDA's atomics: relaxed, at GPU scope.
const ATOMIC: Order = Order::relaxed(Scope::Gpu);
/// Threads per CTA of the kernel that marks nodes as unreached. Source: LonestarGPU 2.0, apps/sssp/main.cu
/// (`setMaxThreadsPerBlock`) and sssp_worklistc.h (`MAXBLOCKSIZE`).
const INITIALIZE_THREADS: u32 = 1024;

static PARAMETERS: [Parameter; 9] = [
    NODES,
    NETWORK,
    DEGREE,
    GRAPH,
    SYMMETRIC,
    Parameter {
        name: "source",
        kind: ParameterKind::Count { low: 0, high: 1 << 30 },
        default: "0",
        about: "node to start from",
        source: "LonestarGPU sssp",
    },
    Parameter {
        name: "variant",
        kind: ParameterKind::Choice(&["topology", "wln", "wlc"]),
        default: "topology",
        about: "every node in every launch; a worklist with a thread a node; a worklist with a thread an edge",
        source: "LonestarGPU sssp: the default, sssp-wln, sssp-wlc",
    },
    Parameter {
        name: "threads",
        kind: ParameterKind::Choice(&["128", "256", "352", "512", "1024"]),
        default: "1024",
        about: "threads of a CTA",
        source: "NUMA-GPU, Table 2: 1046 CTAs of the 1,070,376 nodes of USA-road-d.FLA",
    },
    Parameter {
        name: "launches",
        kind: ParameterKind::Count { low: 1, high: 1 << 30 },
        default: "1000000",
        about: "launches, at most; fewer where nothing is left to relax",
        source: "LonestarGPU sssp runs until nothing changes",
    },
];

/// The LonestarGPU shortest-path benchmark.
pub(crate) static SSSP: Benchmark = Benchmark {
    name: "lonestar-sssp",
    about: "shortest paths by relaxation, over all nodes or by worklists: irregular, hundreds of launches",
    source: "LonestarGPU sssp (topology-driven, wln, wlc); NUMA-GPU, Table 2 (Lonestar-SSSP, -Wln, -Wlc)",
    parameters: &PARAMETERS,
    nonlinear: true,
    data_independent: false,
    lay_out,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Topology,
    NodeWorklist,
    EdgeWorklist,
}

struct SingleSourcePaths {
    network: Network,
    /// Weight per arc.
    weight: Array<u32>,
    distance: Array<u32>,
    /// Change flag for *topology*; otherwise the next worklist's length.
    changed: Array<u32>,
    /// Worklists; `None` for *topology*.
    worklists: Option<Worklists>,
    variant: Variant,
    source: u32,
    threads: u32,
    launches: u64,
}

#[derive(Clone, Copy)]
struct Worklists {
    /// Nodes to relax in this launch, and nodes to relax in the next.
    nodes: [Array<u32>; 2],
    /// Number of the last launch that listed each node, used to list each node only once.
    listed: Array<u32>,
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

fn lay_out(name: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let network = Network::lay_out_kind(name, request, GraphContent::Weights, memory)?;
    let source = request.values.count("source");
    if source >= u64::from(network.nodes()) {
        let message = format!("source {source} is no node of the graph's {}", network.nodes());
        return Err(WorkloadError::Shape { workload: name, message });
    }
    check_distances(&network, source as u32).map_err(|message| WorkloadError::Shape { workload: name, message })?;
    let (nodes, scaling) = (u64::from(network.nodes()), network.scaling);
    let variant = match request.values.text("variant") {
        "wln" => Variant::NodeWorklist,
        "wlc" => Variant::EdgeWorklist,
        _ => Variant::Topology,
    };
    Ok(Box::new(SingleSourcePaths {
        weight: memory.array("weight", network.target.len(), scaling),
        distance: memory.array("distance", nodes, scaling),
        changed: memory.array("changed", 1, Scaling::Fixed),
        worklists: (variant != Variant::Topology).then(|| Worklists {
            nodes: ["worklist0", "worklist1"].map(|name| memory.array(name, nodes, scaling)),
            listed: memory.array("listed", nodes, scaling),
        }),
        variant,
        network,
        source: source as u32,
        threads: request.values.count("threads") as u32,
        launches: request.values.count("launches"),
    }))
}

/// Parameters for a launch over a worklist.
struct WorklistLaunch {
    lists: Worklists,
    /// Index of the worklist to read.
    from: usize,
    /// Number of nodes on the worklist.
    items: u32,
    /// Launch number, from 1.
    number: u32,
}

/// Edges at a thread's node, to be shared by the CTA's threads.
#[derive(Clone, Copy, Debug, Default)]
struct ArcRange {
    first: u32,
    degree: u32,
    distance: u32,
}

impl SingleSourcePaths {
    /// Marks all nodes as unreached; the host then sets the source's distance.
    ///
    /// *wlc* launches the kernel twice, once in the common part of the program and once in its own: apps/sssp/main.cu
    /// and sssp_worklistc.h.
    fn initialize(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let nodes = self.network.nodes();
        let ctas = u64::from(nodes.div_ceil(INITIALIZE_THREADS));
        for _ in 0..if self.variant == Variant::EdgeWorklist { 2 } else { 1 } {
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
    fn relax_all(&self, cta: &mut Cta<'_>) {
        let network = &self.network;
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(network.nodes() as i32), |warp| {
                let distance = warp.load(self.distance, node);
                warp.when(distance.ne(FAR), |warp| {
                    let (first, degree) = network.row(warp, node);
                    warp.repeat(degree, |warp, arc| {
                        let arc = warp.compute(ComputeClass::Int, 1, first + arc);
                        self.relax(warp, arc, distance, |warp, _| warp.store(self.changed, Lanes::all(0), 1));
                    });
                });
            });
        });
    }

    /// Relaxes an arc whose start is at `distance`; runs `shorter(warp, node at its end)` if the distance decreased.
    fn relax(
        &self,
        warp: &mut Warp<'_>,
        arc: Lanes<u32>,
        distance: Lanes<u32>,
        shorter: impl FnOnce(&mut Warp<'_>, Lanes<u32>),
    ) {
        let target = warp.load(self.network.target, arc);
        // A longer path may overflow, and must not wrap to a short distance.
        let reached = distance.zip(warp.load(self.weight, arc), u32::saturating_add);
        let known = warp.load(self.distance, target);
        let reached = warp.compute(ComputeClass::Int, 1, reached);
        warp.when(reached.lt(known), |warp| {
            let before = warp.atomic(Reduction::Min, self.distance, target, reached, ATOMIC);
            warp.when(reached.lt(before), |warp| shorter(warp, target));
        });
    }

    /// Relaxes the edges at a worklist node in each thread.
    fn relax_listed(&self, cta: &mut Cta<'_>, turn: &WorklistLaunch) {
        cta.each_warp(|warp| {
            self.with_listed_node(warp, turn, |warp, range| {
                let [first, degree, distance] = range;
                warp.repeat(degree, |warp, arc| {
                    let arc = warp.compute(ComputeClass::Int, 1, first + arc);
                    self.relax(warp, arc, distance, |warp, node| {
                        let before = warp.exchange(turn.lists.listed, node, turn.number, ATOMIC);
                        warp.when(before.ne(turn.number), |warp| {
                            let slot = warp.atomic(Reduction::Add, self.changed, Lanes::all(0), 1, ATOMIC);
                            warp.store(turn.lists.nodes[1 - turn.from], slot, node);
                        });
                    });
                });
            });
        });
    }

    /// Runs `body` with first arc, arc count and distance for each thread's worklist node.
    fn with_listed_node(
        &self,
        warp: &mut Warp<'_>,
        turn: &WorklistLaunch,
        body: impl FnOnce(&mut Warp<'_>, [Lanes<u32>; 3]),
    ) {
        let item = warp.compute(ComputeClass::Int, 2, warp.global_thread());
        warp.when(item.lt(turn.items as i32), |warp| {
            let node = warp.load(turn.lists.nodes[turn.from], item).cast::<i32>();
            let distance = warp.load(self.distance, node);
            let (first, degree) = self.network.row(warp, node);
            body(warp, [first, degree, distance]);
        });
    }

    /// Gathers the edges at the CTA's nodes; each thread relaxes an edge at a time.
    fn relax_shared(&self, cta: &mut Cta<'_>, turn: &WorklistLaunch) {
        let (threads, steps) = (cta.threads() as usize, cta.threads().ilog2() as u16);
        let mut ranges = vec![ArcRange::default(); threads];
        cta.each_warp(|warp| {
            let base = (warp.index() * warp.width()) as usize;
            self.with_listed_node(warp, turn, |warp, parts| {
                let [first, degree, distance] = warp.compute(ComputeClass::Int, 0, parts);
                each_active(warp, |lane| {
                    ranges[base + lane as usize] =
                        ArcRange { first: first.lane(lane), degree: degree.lane(lane), distance: distance.lane(lane) };
                });
            });
        });
        scan(cta, steps);
        let edges: Vec<(u32, u32)> = ranges
            .iter()
            .flat_map(|range| (range.first..range.first + range.degree).map(|arc| (arc, range.distance)))
            .collect();
        for share in edges.chunks(threads) {
            self.relax_share(cta, turn, share, steps);
        }
    }

    /// Relaxes an arc per thread. `share` holds at most one arc per thread, with the arc's index and the distance at
    /// its start.
    fn relax_share(&self, cta: &mut Cta<'_>, turn: &WorklistLaunch, share: &[(u32, u32)], steps: u16) {
        let (mut found, mut slots) = (Vec::new(), Vec::new());
        // Threads write their nodes' arcs that fall into this share, and each thread reads an arc back.
        cta.each_warp(|warp| warp.shared(2));
        cta.barrier();
        cta.each_warp(|warp| {
            warp.shared(2);
            let base = warp.index() * warp.width();
            let entry = |lane| share.get((base + lane) as usize).copied().unwrap_or_default();
            let (arc, distance) = (Lanes::by_lane(|lane| entry(lane).0), Lanes::by_lane(|lane| entry(lane).1));
            warp.when(warp.thread().lt(share.len() as i32), |warp| {
                self.relax(warp, arc, distance, |warp, node| {
                    let before = warp.exchange(turn.lists.listed, node, turn.number, ATOMIC);
                    warp.when(before.ne(turn.number), |warp| {
                        each_active(warp, |lane| found.push((base + lane, node.lane(lane))));
                    });
                });
            });
        });
        scan(cta, steps);
        cta.warp(0, |warp| {
            warp.single(|warp| {
                let count = found.len() as u32;
                let first = warp.atomic(Reduction::Add, self.changed, Lanes::all(0), count, ATOMIC);
                let first = warp.compute(ComputeClass::Int, 0, first);
                each_active(warp, |lane| slots.extend((0..count).map(|at| first.lane(lane) + at)));
                warp.shared(1);
            });
        });
        cta.barrier();
        cta.each_warp(|warp| {
            warp.shared(1);
            let base = warp.index() * warp.width();
            let place = |lane| found.binary_search_by_key(&(base + lane), |(thread, _)| *thread).ok();
            let slot = Lanes::by_lane(|lane| place(lane).map_or(0, |at| slots[at]));
            let node = Lanes::by_lane(|lane| place(lane).map_or(0, |at| found[at].1));
            warp.when(Lanes::by_lane(|lane| place(lane).is_some()), |warp| {
                warp.store(turn.lists.nodes[1 - turn.from], slot, node);
            });
        });
    }

    fn run_topology(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let ctas = u64::from(self.network.nodes().div_ceil(self.threads));
        for _ in 0..self.launches {
            host.memory().write(self.changed, 0, 0);
            host.copy_to_device(self.changed);
            host.launch_ordered(Grid::new("relax", ctas, self.threads), |cta| self.relax_all(cta))?;
            host.copy_to_host(self.changed);
            if host.memory().read(self.changed, 0) == 0 {
                break;
            }
        }
        Ok(())
    }

    fn run_worklists(&self, host: &mut Host<'_>, lists: Worklists) -> Result<(), RecordError> {
        let mut items = 1;
        host.memory().write(lists.nodes[0], 0, self.source);
        for number in (1..=self.launches).take_while(|&number| number < u64::from(u32::MAX)) {
            let turn = WorklistLaunch { lists, from: (number % 2) as usize ^ 1, items, number: number as u32 };
            host.memory().write(self.changed, 0, 0);
            host.copy_to_device(self.changed);
            let grid = Grid::new("relax", u64::from(items.div_ceil(self.threads)), self.threads);
            host.launch_ordered(grid, |cta| match self.variant {
                Variant::EdgeWorklist => self.relax_shared(cta, &turn),
                Variant::NodeWorklist | Variant::Topology => self.relax_listed(cta, &turn),
            })?;
            host.copy_to_host(self.changed);
            items = host.memory().read(self.changed, 0);
            if items == 0 {
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

/// Accounts for a prefix sum over a value per thread: in each warp by shuffles, then over the warps' sums.
fn scan(cta: &mut Cta<'_>, steps: u16) {
    cta.each_warp(|warp| {
        warp.compute(ComputeClass::Int, 2 * steps, ());
        warp.shared(1);
    });
    cta.barrier();
    cta.each_warp(|warp| warp.shared(1));
    cta.barrier();
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
        match self.worklists {
            Some(lists) => self.run_worklists(host, lists)?,
            None => self.run_topology(host)?,
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
    use crate::bench::{Mode, record};
    use crate::graph::{Graph, road_graph};
    use crate::record::RecordOptions;
    use crate::scale::Scale;
    use tombolo_types::stream::{Command, Program};

    /// Worklist lengths per launch. Groups with neighbouring items read their nodes' distances together, then relax
    /// their edges in turns: each item's first edge, then each item's second edge.
    fn lists(graph: &Graph, group: usize) -> Vec<u32> {
        let mut distance = vec![FAR; graph.nodes() as usize];
        let mut listed = vec![0; graph.nodes() as usize];
        let (mut list, mut lengths) = (vec![0_u32], Vec::new());
        distance[0] = 0;
        while !list.is_empty() {
            lengths.push(list.len() as u32);
            let mut next = Vec::new();
            for group in list.chunks(group) {
                let items: Vec<_> = group.iter().map(|&node| (graph.row(node), distance[node as usize])).collect();
                let longest = items.iter().map(|(arcs, _)| arcs.len()).max().unwrap_or(0);
                for turn in 0..longest {
                    for (arcs, start) in &items {
                        let Some(arc) = arcs.clone().nth(turn) else { continue };
                        let to = graph.target()[arc];
                        let reached = start + graph.weight()[arc];
                        if reached < distance[to as usize] {
                            distance[to as usize] = reached;
                            if std::mem::replace(&mut listed[to as usize], lengths.len()) != lengths.len() {
                                next.push(to);
                            }
                        }
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
    fn launches_take_the_lists_of_a_plain_search() {
        let given = [("nodes", "2000"), ("variant", "wln"), ("threads", "128")];
        let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let request = Request::new(&SSSP, Scale::FULL, &given, 7).unwrap();
        let recording = record(&SSSP, &request, &RecordOptions::default(), Mode::Auto).unwrap();
        let kernels = recording.commands().iter().filter_map(Command::kernel);
        let launched = kernels.map(|kernel| &recording.kernels()[kernel as usize]);
        let launched = launched.filter(|info| info.name == "relax").map(|info| info.ctas);
        let expected = lists(&road_graph(2000, 7), 32).into_iter().map(|length| length.div_ceil(128));
        assert_eq!(launched.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn worklists_have_the_ctas_of_table_2() {
        // Source: NUMA-GPU, Table 2: Lonestar-SSSP-Wln and -Wlc.
        let graph = road_graph(435_666, 1);
        for (group, threads, published) in [(32, 352, 60.0), (128, 128, 163.0)] {
            let found = average(&lists(&graph, group), threads);
            assert!((found / published - 1.0).abs() < 0.05, "{threads} threads: {found} CTAs of {published}");
        }
    }
}
