//! All shortest paths: a launch for each intermediate node of paths, each over the whole matrix.
//!
//! No address depends on data, but a thread stores only after finding a shorter path. In a sample, the few recorded
//! passes lack the results of earlier passes; distances are then drawn for the expected share of storing threads.

use crate::prelude::*;
use crate::reference::floyd_warshall_pass;

/// Side length of a CTA. Source: [`MI300A_KERNELS`].
const SIDE: i32 = 8;
/// Length of the longest edge. Source: [`MI300A_KERNELS`].
const LONGEST: u64 = 100;
/// Share of storing threads: in pass k, a thread in `(k + STORES.0) / STORES.1` stores. Source: assumed, a curve fitted
/// by eye to the store counts tabulated in the measured suite's description.
const STORES: (u64, f64) = (8, 1.6);

program! {
    // The launch count grows with the footprint's square root.
    /// all shortest paths: a launch a node, CTAs of one warp on tiles of 8 x 8
    pub(crate) static FLOYDWARSHALL = "floydwarshall", MI300A_KERNELS;
    properties: nonlinear;
    parameters {
        /// nodes, at scale 1; scales by the root, to a multiple of 8
        nodes: count(1..=1 << 14) = 384, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        let nodes = request.fit_multiple("nodes", request.scale.side_of(nodes), SIDE as u64);
        let mut matrix = |name| memory.array(name, nodes * nodes, Scaling::Scales);
        let (distance, through) = (matrix("distance"), matrix("through"));
    }
    struct AllPairsPaths {
        distance, through: Array<u32>,
        nodes: i32,
        seed: u64 = request.seed,
    }
}

impl AllPairsPaths {
    fn kernel(&self, cta: &mut Cta<'_>, k: i32) {
        let (nodes, across) = (self.nodes, self.nodes / SIDE);
        let (left, top) = (cta.index() as i32 % across * SIDE, cta.index() as i32 / across * SIDE);
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 6 + 3 * ADDRESS, warp.thread());
            let (column, row) = (thread % SIDE + left, thread / SIDE + top);
            let at = row * nodes + column;
            let direct = warp.load(self.distance, at);
            let detour = warp.load(self.distance, row * nodes + k) + warp.load(self.distance, column + k * nodes);
            let detour = warp.compute(ComputeClass::Int, 1, detour);
            warp.when(detour.cast::<i32>().lt(direct.cast::<i32>()), |warp| {
                warp.store(self.distance, at, detour);
                warp.store(self.through, at, Lanes::all(k as u32));
            });
        });
    }

    fn edge(&self, index: u64) -> u32 {
        let on_diagonal = index.is_multiple_of(self.nodes as u64 + 1);
        if on_diagonal { 0 } else { noise::below(self.seed, index, LONGEST) as u32 + 1 }
    }

    /// Draws distances for pass k, with the number of improvements expected after all preceding passes.
    fn draw(&self, memory: &Memory, k: u64) {
        let (offset, share) = STORES;
        let one_in = ((k + offset) as f64 / share) as u64;
        let (row, column) = (k * self.nodes as u64, k);
        memory.fill(self.distance, |index| {
            let on_path = index / self.nodes as u64 == k || index % self.nodes as u64 == column;
            let improves = noise::below(self.seed ^ row, index, one_in.max(1)) == 0;
            if improves && !on_path { 3 } else { 1 }
        });
    }
}

impl Instance for AllPairsPaths {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.distance, |index| self.edge(index));
        memory.fill(self.through, |index| (index / self.nodes as u64) as u32);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.distance);
        host.copy_to_device(self.through);
        let tiles = (self.nodes / SIDE) as u64;
        let all = host.series_length(self.nodes as u64) == self.nodes as u64;
        host.series(self.nodes as u64, |host, k| {
            if !all {
                host.restore(|memory| self.draw(memory, k));
            }
            // Row k and column k do not change in pass k, because the node's distance to itself is zero.
            host.launch(Grid::new("floyd-pass", tiles * tiles, (SIDE * SIDE) as u32), |cta| self.kernel(cta, k as i32))
        })?;
        host.copy_to_host(self.distance);
        host.copy_to_host(self.through);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let nodes = self.nodes as usize;
        let mut distance: Vec<u32> = (0..(nodes * nodes) as u64).map(|index| self.edge(index)).collect();
        let mut through: Vec<u32> = (0..nodes * nodes).map(|index| (index / nodes) as u32).collect();
        for k in 0..nodes {
            floyd_warshall_pass((&mut distance, &mut through), nodes, k, k as u32);
        }
        equal("distance", &memory.to_vec(self.distance), &distance)?;
        equal("node between", &memory.to_vec(self.through), &through)
    }
}
