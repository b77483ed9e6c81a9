//! LonestarGPU's minimum spanning tree: Borůvka's algorithm on components stored as pointer trees.
//!
//! A spanning tree needs an undirected graph: if a file has an arc without its reverse, arcs count in both directions,
//! and a note says so. Loops and parallel edges remain; no tree contains a loop, or more than one parallel edge.
//!
//! Each node points to another node in its component, and the component's *boss* points to itself (`components`). A
//! round has five kernels. `initialize` clears the nodes' state. `find-minimum` finds each node's lightest arc to
//! another component, and each boss's lightest weight by an atomic minimum. `find-node` elects, by compare and swap, a
//! node with the lightest weight. `verify-minimum` lets each boss mark the elected node. `merge` is cooperative: it
//! joins the components on both sides of each marked node's arc, between two grid barriers. It is launched again if two
//! components were already joined. Rounds end when the number of components is unchanged.
//!
//! A search for a boss compresses the path: it stores the boss to the node at which it started. The first three
//! searches in a round start from every node and from its neighbours, so that CTAs store to words read by other CTAs.

mod components;

use super::network::{DEGREE, GRAPH, GraphContent, NETWORK, NODES, Network, SYMMETRIC};
use crate::prelude::*;
use components::Components;
use tombolo_workload::graph::DisjointSets;

/// Threads per CTA in `merge`. Source: LonestarGPU mst (`dfindcompmintwo`).
const THREADS: u32 = 384;
/// Marker for a weight not yet known (LonestarGPU `MYINFINITY`): above every weight.
const NONE: u32 = u32::MAX;
/// Maximum number of waits per CTA in a kernel: one for each other CTA at each barrier.
const MOST_WAITS: u64 = 32_767;

program! {
    /// Borůvka's spanning tree of an undirected network: pointers that searches compress, atomics, barriers inside
    /// kernels
    pub(crate) static MST = "lonestar-mst",
        "LonestarGPU mst; HMG Table III (Lonestar_mst-road-fla); NUMA-GPU, Table 2 (Lonestar-MST-Graph, -Mesh)";
    properties: nonlinear;
    parameters {
        NODES;
        NETWORK;
        DEGREE;
        /// scope of atomics
        scope: choice("gpu", "sys") = "gpu",
            "HMG VI: mst uses .gpu-scoped synchronization; CUDA's atomics have the scope of the GPU";
        /// scope of the barrier across CTAs
        barrier: choice("gpu", "sys") = "sys",
            "assumed: the grid spans GPUs, so a barrier of narrower scope would not order its CTAs";
        /// CTAs of the cooperative kernel, of 384 threads, at scale 1; scales with the SMs
        // At each of two barriers, one CTA waits for all other CTAs.
        ctas: count(1..=MOST_WAITS / 2) = 512,
            "LonestarGPU mst: as many for each SM as are resident; one is assumed, of the 512 SMs of HMG's machine \
            (Table II)";
        /// threads of a CTA of the other kernels, which have one thread a node
        threads: one_of(128, 256, 512, 768, 1024) = 1024, "LonestarGPU mst (`setMaxThreadsPerBlock`)";
        GRAPH;
        SYMMETRIC;
    }
    lay_out(name, request, memory) {
        let network = Network::lay_out_kind(name, request, GraphContent::Edges, memory)?;
        let ctas = request.scale.of(ctas);
        let waits = (ctas - 1) * u64::from(2 * turns(network.nodes(), ctas as u32));
        require(name, waits <= MOST_WAITS, || {
            format!(
                "{} nodes and ctas={ctas}: a CTA would wait {waits} times in a kernel, at most {MOST_WAITS}",
                network.nodes()
            )
        })?;
        require(name, network.graph.weight().iter().all(|weight| *weight != NONE), || {
            format!("a weight of {NONE}: below that")
        })?;
        let (nodes, arcs, scaling) = (u64::from(network.nodes()), network.target.len(), network.scaling);
        let scope_of_atomics = crate::scope::scope(&request.values, "scope");
    }
    struct Forest {
        /// Weight per arc (LonestarGPU `edgessrcwt`).
        weight: Array<u32>[arcs, scaling],
        components: Components = Components::lay_out(memory, nodes, scaling, scope_of_atomics),
        /// Weight of each node's lightest arc to another component (`eleminwts`).
        lightest: Array<u32>[nodes, scaling],
        /// Lightest weight in each boss's component (`minwtcomponent`).
        lightest_of: Array<u32>["lightest-of"; nodes, scaling],
        /// Component at the far end of each node's arc; the number of nodes if there is none (`partners`).
        partner: Array<u32>[nodes, scaling],
        /// Cleared and not read (`phores`).
        phore: Array<u32>[nodes, scaling],
        /// Set if the node's arc joins components in this round (`processinnextiteration`).
        marked: Array<bool>[nodes, scaling],
        /// Node elected for each boss; the number of nodes if there is none (`goaheadnodeofcomponent`).
        elected: Array<u32>[nodes, scaling],
        /// Total weight and number of edges in the tree.
        total: Array<u32>[1, fixed],
        edges: Array<u32>[1, fixed],
        /// Set if `merge` found components already joined.
        again: Array<bool>[1, fixed],
        barrier: GridBarrier = GridBarrier::lay_out(memory, ctas, crate::scope::scope(&request.values, "barrier")),
        network: Network,
        scope: Scope = scope_of_atomics,
        ctas, threads: u32,
    }
}

/// Number of turns in which the threads of `merge` cover every node.
fn turns(nodes: u32, ctas: u32) -> u32 {
    nodes.div_ceil(ctas * THREADS)
}

impl Forest {
    /// Runs `body` with each thread's node.
    fn each_node(&self, cta: &mut Cta<'_>, mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>)) {
        cta.each_warp(|warp| {
            let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(node.lt(self.network.nodes() as i32), |warp| body(warp, node));
        });
    }

    /// Clears each node's state; LonestarGPU `dinit`.
    fn initialize(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        warp.store(self.lightest, node, NONE);
        warp.store(self.lightest_of, node, NONE);
        warp.store(self.elected, node, self.network.nodes());
        warp.store(self.phore, node, 0);
        warp.store(self.partner, node, node.cast::<u32>());
        warp.store(self.marked, node, false);
    }

    /// Finds each node's lightest arc to another component; LonestarGPU `dfindelemin`.
    fn find_minimum(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let boss = self.components.find(warp, node.cast());
        let (first, degree) = self.network.row(warp, node);
        let (mut least, mut partner) = (Lanes::all(NONE), Lanes::all(self.network.nodes()));
        warp.repeat(degree, |warp, arc| {
            let arc = warp.compute(ComputeClass::Int, 1, first + arc);
            let weight = warp.load(self.weight, arc);
            warp.when(weight.lt(least), |warp| {
                let neighbour = warp.load(self.network.target, arc);
                let other = self.components.find(warp, neighbour);
                warp.when(other.ne(boss), |warp| {
                    least = warp.update(least, weight);
                    partner = warp.update(partner, other);
                });
            });
        });
        warp.store(self.lightest, node, least);
        warp.store(self.partner, node, partner);
        let known = warp.load(self.lightest_of, boss);
        warp.when(least.lt(known) & boss.ne(partner), |warp| {
            warp.reduce(Reduction::Min, self.lightest_of, boss, least, Order::relaxed(self.scope));
        });
    }

    /// Elects a node with the component's lightest weight; LonestarGPU `dfindelemin2`.
    fn find_node(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let boss = self.components.find(warp, node.cast());
        let (own, least) = (warp.load(self.lightest, node), warp.load(self.lightest_of, boss));
        warp.when(own.eq(least), |warp| {
            let partner = warp.load(self.partner, node);
            warp.when(partner.ne(boss) & partner.ne(self.network.nodes()), |warp| {
                let (first, degree) = self.network.row(warp, node);
                warp.repeat(degree, |warp, arc| {
                    let arc = warp.compute(ComputeClass::Int, 1, first + arc);
                    let weight = warp.load(self.weight, arc);
                    warp.when(weight.eq(own), |warp| {
                        let neighbour = warp.load(self.network.target, arc);
                        let other = self.components.find(warp, neighbour);
                        warp.when(other.eq(partner), |warp| self.elect(warp, boss, node));
                    });
                });
            });
        });
    }

    /// Elects a node for its component if no node is elected yet.
    fn elect(&self, warp: &mut Warp<'_>, boss: Lanes<u32>, node: Lanes<i32>) {
        let nobody = self.network.nodes();
        warp.compare_exchange(self.elected, boss, nobody, node.cast::<u32>(), Order::relaxed(self.scope));
    }

    /// Lets each boss mark its elected node; LonestarGPU `verify_min_elem`.
    fn verify_minimum(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let boss = node.cast::<u32>();
        let is_boss = self.components.is_boss(warp, boss);
        warp.when(is_boss, |warp| {
            let elected = warp.load(self.elected, node);
            warp.when(elected.ne(self.network.nodes()), |warp| {
                let (first, degree) = self.network.row(warp, elected.cast());
                let least = warp.load(self.lightest_of, node);
                warp.when(least.ne(NONE), |warp| self.mark(warp, [boss, elected, first, degree, least]));
            });
        });
    }

    /// Marks the elected node if an arc has the component's lightest weight and leads to the node's partner. Lanes end
    /// with the first matching arc.
    fn mark(&self, warp: &mut Warp<'_>, [boss, elected, first, degree, least]: [Lanes<u32>; 5]) {
        let mut left = degree;
        for arc in 0.. {
            let mut goes_on = false;
            warp.when(left.gt(arc), |warp| {
                goes_on = true;
                let arc = warp.compute(ComputeClass::Int, 1, first + arc);
                let weight = warp.load(self.weight, arc);
                warp.when(weight.eq(least), |warp| {
                    let neighbour = warp.load(self.network.target, arc);
                    let other = self.components.find(warp, neighbour);
                    let partner = warp.load(self.partner, elected);
                    warp.when(other.eq(partner) & other.ne(boss), |warp| {
                        warp.store(self.marked, elected, true);
                        left = warp.update(left, Lanes::all(0));
                    });
                });
            });
            if !goes_on {
                break;
            }
        }
    }

    /// Joins components along marked arcs; LonestarGPU `dfindcompmintwo`. `launch` counts from 0.
    async fn merge(&self, cta: &mut Cta<'_>, launch: u32) {
        let (nodes, threads) = (self.network.nodes(), self.ctas * THREADS);
        let turns = turns(nodes, self.ctas);
        for turn in 0..turns {
            let meeting = 2 * (launch * turns + turn) + 1;
            let mut sides = Vec::with_capacity(cta.warps() as usize);
            let own = |warp: &mut Warp<'_>| {
                let node = warp.global_thread().cast::<u32>() + turn * threads;
                warp.compute(ComputeClass::Int, 1, node)
            };
            cta.each_warp(|warp| {
                let node = own(warp);
                let mut found = [Lanes::all(0); 2];
                self.each_marked(warp, node, |warp| found = self.sides(warp, node, found));
                sides.push(found);
            });
            self.barrier.meet(cta, meeting).await;
            cta.each_warp(|warp| {
                let (node, [source, target]) = (own(warp), sides[warp.index() as usize]);
                self.each_marked(warp, node, |warp| {
                    warp.when(source.ne(target), |warp| self.join(warp, node, source, target));
                });
            });
            self.barrier.meet(cta, meeting + 1).await;
        }
    }

    /// Runs `body` in the lanes whose node exists and is marked.
    fn each_marked(&self, warp: &mut Warp<'_>, node: Lanes<u32>, body: impl FnOnce(&mut Warp<'_>)) {
        warp.when(node.lt(self.network.nodes()), |warp| {
            let marked = warp.load(self.marked, node);
            warp.when(marked, body);
        });
    }

    /// Components on both sides of a marked node's arc; `other` in inactive lanes.
    fn sides(&self, warp: &mut Warp<'_>, node: Lanes<u32>, other: [Lanes<u32>; 2]) -> [Lanes<u32>; 2] {
        let source = self.components.find(warp, node);
        let partner = warp.load(self.partner, node);
        let target = self.components.find(warp, partner);
        let sides = warp.compute(ComputeClass::Int, 0, [source, target]);
        [warp.update(other[0], sides[0]), warp.update(other[1], sides[1])]
    }

    /// Joins the components at marked nodes; requests another launch if they are already joined.
    fn join(&self, warp: &mut Warp<'_>, node: Lanes<u32>, source: Lanes<u32>, target: Lanes<u32>) {
        let relaxed = Order::relaxed(self.scope);
        let joined = self.components.unify(warp, source, target);
        warp.when_else(
            joined,
            |warp| {
                let weight = warp.load(self.lightest, node);
                warp.reduce(Reduction::Add, self.total, Lanes::all(0), weight, relaxed);
                warp.reduce(Reduction::Add, self.edges, Lanes::all(0), 1, relaxed);
                warp.store(self.marked, node, false);
                warp.store(self.lightest, node, NONE);
            },
            |warp| warp.store(self.again, Lanes::all(0), true),
        );
    }

    /// Runs a round; returns the number of remaining components. `launches` counts the launches of `merge`.
    fn round(&self, host: &mut Host<'_>, launches: &mut u32) -> Result<u32, RecordError> {
        let ctas = u64::from(self.network.nodes().div_ceil(self.threads));
        let grid = |name| Grid::new(name, ctas, self.threads);
        host.launch(grid("initialize"), |cta| self.each_node(cta, |warp, node| self.initialize(warp, node)))?;
        host.launch_ordered(grid("find-minimum"), |cta| {
            self.each_node(cta, |warp, node| self.find_minimum(warp, node))
        })?;
        host.launch_ordered(grid("find-node"), |cta| self.each_node(cta, |warp, node| self.find_node(warp, node)))?;
        host.launch_ordered(grid("verify-minimum"), |cta| {
            self.each_node(cta, |warp, node| self.verify_minimum(warp, node));
        })?;
        loop {
            host.memory().write(self.again, 0, false);
            host.copy_to_device(self.again);
            let launch = *launches;
            let merge = async |cta: &mut Cta<'_>| self.merge(cta, launch).await;
            host.launch_cooperative(Grid::new("merge", u64::from(self.ctas), THREADS), merge)?;
            *launches += 1;
            host.copy_to_host(self.again);
            if !host.memory().read(self.again, 0) {
                break;
            }
        }
        let left = self.components.count_on_host(host);
        host.copy_to_host(self.total);
        host.copy_to_host(self.edges);
        Ok(left)
    }
}

impl Instance for Forest {
    fn fill(&self, memory: &Memory) {
        self.network.fill(memory);
        memory.fill(self.weight, |arc| self.network.graph.weight()[arc as usize]);
        memory.write(self.total, 0, 0);
        memory.write(self.edges, 0, 0);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.network.copy_to_device(host);
        host.copy_to_device(self.weight);
        let nodes = self.network.nodes();
        self.components.initialize(host, nodes, self.threads)?;
        host.copy_to_device(self.total);
        host.copy_to_device(self.edges);
        let (mut before, mut launches) = (nodes, 0);
        loop {
            let left = self.round(host, &mut launches)?;
            if left == before {
                return Ok(());
            }
            before = left;
        }
    }

    /// Checks against Kruskal's algorithm. With equal weights, different edges may be in a tree, but the total weight
    /// is equal.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let graph = &self.network.graph;
        let mut arcs: Vec<(u32, u32, u32)> = (0..graph.nodes())
            .flat_map(|from| graph.row(from).map(move |arc| (graph.weight()[arc], from, graph.target()[arc])))
            .collect();
        arcs.sort_unstable();
        let mut groups = DisjointSets::new(graph.nodes());
        let (mut edges, mut weight) = (0, 0_u32);
        for (of_arc, from, to) in arcs {
            if groups.join(from, to) {
                edges += 1;
                weight = weight.wrapping_add(of_arc);
            }
        }
        match (memory.read(self.edges, 0), memory.read(self.total, 0)) {
            found if found == (edges, weight) => {}
            (found, _) if found != edges => return Err(format!("the tree has {found} edges, expected {edges}")),
            (_, found) => return Err(format!("the tree weighs {found}, expected {weight}")),
        }
        self.components.verify(memory, graph.nodes() - edges, &mut groups)
    }
}
