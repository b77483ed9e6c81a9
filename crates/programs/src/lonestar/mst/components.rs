//! Disjoint node components on the device (LonestarGPU `ComponentSpace`).

use crate::prelude::*;
use tombolo_workload::graph::DisjointSets;

arrays! {
    /// Pointer trees: a node points to another node in its component, the boss points to itself.
    pub(super) struct Components(memory, nodes: u64, scaling: Scaling, scope: Scope) {
        /// Parent pointer per node (`ele2comp`).
        up: Array<u32>["components"; nodes, scaling],
        /// Number of nodes in each boss's component (`complen`).
        size: Array<u32>["component-size"; nodes, scaling],
        /// Number of components (`ncomponents`).
        count: Array<u32>["component-count"; 1, fixed],
        /// Memory order for atomics.
        order: Order = Order::relaxed(scope),
    }
}

impl Components {
    /// Makes each node a component (`dinitcs`).
    pub(super) fn initialize(&self, host: &mut Host<'_>, nodes: u32, threads: u32) -> Result<(), RecordError> {
        let grid = Grid::new("initialize-components", u64::from(nodes.div_ceil(threads)), threads);
        host.launch(grid, |cta| {
            cta.each_warp(|warp| {
                let node = warp.compute(ComputeClass::Int, 2, warp.global_thread());
                warp.when(node.lt(nodes as i32), |warp| {
                    warp.store(self.size, node, 1);
                    warp.store(self.up, node, node.cast::<u32>());
                });
            });
        })?;
        host.memory().write(self.count, 0, nodes);
        host.copy_to_device(self.count);
        Ok(())
    }

    /// Number of components, copied back to the host.
    pub(super) fn count_on_host(&self, host: &mut Host<'_>) -> u32 {
        host.copy_to_host(self.count);
        host.memory().read(self.count, 0)
    }

    /// True if a node is its component's boss.
    pub(super) fn is_boss(&self, warp: &mut Warp<'_>, node: Lanes<u32>) -> Lanes<bool> {
        let up = warp.load(self.up, node);
        up.eq(node)
    }

    /// Boss for each lane's node. A plain store points the node directly to the boss: other CTAs may see either path.
    pub(super) fn find(&self, warp: &mut Warp<'_>, node: Lanes<u32>) -> Lanes<u32> {
        let boss = self.walk(warp, node);
        warp.store(self.up, node, boss);
        boss
    }

    /// Boss for each lane's node, without path compression.
    fn walk(&self, warp: &mut Warp<'_>, node: Lanes<u32>) -> Lanes<u32> {
        let mut at = node;
        let mut up = warp.load(self.up, at);
        loop {
            let mut moves = false;
            warp.when(up.ne(at), |warp| {
                moves = true;
                at = warp.update(at, up);
                let next = warp.load(self.up, at);
                up = warp.update(up, next);
            });
            if !moves {
                return at;
            }
        }
    }

    /// Joins the components around two nodes; false in the lanes in which they are already joined. The boss with the
    /// larger number remains a boss. If another thread has meanwhile given the smaller boss a new parent, the loop
    /// joins that parent instead.
    pub(super) fn unify(&self, warp: &mut Warp<'_>, one: Lanes<u32>, two: Lanes<u32>) -> Lanes<bool> {
        let (mut one, mut two) = (one, two);
        let (mut open, mut joined) = (Lanes::all(true), Lanes::all(false));
        loop {
            let mut goes_on = false;
            warp.when(open, |warp| {
                goes_on = true;
                let (a, b) = (self.walk(warp, one), self.walk(warp, two));
                open = warp.update(open, a.ne(b));
                warp.when(a.ne(b), |warp| {
                    let (lower, boss) = (a.min(b), a.max(b));
                    let before = warp.exchange(self.up, lower, boss, self.order);
                    let was_boss = before.eq(lower);
                    (one, two) = (warp.update(one, before), warp.update(two, boss));
                    (open, joined) = (warp.update(open, !was_boss), warp.update(joined, was_boss));
                    warp.when(was_boss, |warp| self.add_size(warp, lower, boss));
                });
            });
            if !goes_on {
                return joined;
            }
        }
    }

    /// Adds a component's size to the component it was joined to, and decrements the count.
    fn add_size(&self, warp: &mut Warp<'_>, lower: Lanes<u32>, boss: Lanes<u32>) {
        let size = warp.load(self.size, lower);
        warp.reduce(Reduction::Add, self.size, boss, size, self.order);
        warp.reduce(Reduction::Add, self.count, Lanes::all(0), u32::MAX, self.order);
    }

    /// Checks that there are `count` components, consistent with the node sets in `groups`.
    pub(super) fn verify(&self, memory: &Memory, count: u32, groups: &mut DisjointSets) -> Result<(), String> {
        let up = memory.to_vec(self.up);
        let boss = |node: u32| {
            let mut at = node;
            while up[at as usize] != at {
                at = up[at as usize];
            }
            at
        };
        let apart = (0..up.len() as u32).find(|&node| groups.join(node, boss(node)));
        if let Some(node) = apart {
            return Err(format!(
                "node {node} is in the component of node {}, from which no path leads to it",
                boss(node)
            ));
        }
        let bosses = (0..).zip(&up).filter(|(node, up)| node == *up).count();
        match memory.read(self.count, 0) {
            found if found == count && bosses == count as usize => Ok(()),
            found => Err(format!("{bosses} components, counted as {found}, expected {count}")),
        }
    }
}
