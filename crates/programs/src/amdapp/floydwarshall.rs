//! FloydWarshall from the AMD APP SDK 2.5: a launch for each intermediate node of paths, with a CTA for each matrix
//! row.
//!
//! Source: FloydWarshall_Kernels.cl and FloydWarshall.cpp. A thread that finds a shorter path stores it, and every
//! thread stores the smaller length once more. The compiler cannot prove the two matrices distinct, and the kernel
//! reloads values after each store. Arithmetic and loads are counted from the Southern Islands binary shipped with the
//! sample.

use crate::prelude::*;
use crate::reference::floyd_warshall_pass;

/// Maximum number of nodes. Source: FloydWarshall.cpp, setup.
const MOST: u64 = 512;
/// Length of the longest edge. Source: FloydWarshall.hpp (`MAXDISTANCE`).
const LONGEST: u64 = 200;

program! {
    // The launch count grows with the footprint's square root.
    /// all shortest paths: a launch a node, a CTA a row, every distance stored by every launch
    pub(crate) static FLOYDWARSHALL = "amdapp-floydwarshall",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), FloydWarshall; UMH, Table I (FW)";
    properties: nonlinear;
    parameters {
        /// nodes, at scale 1; scales by the root, to a power of two up to 512
        nodes: count(1..=MOST) = 256, "UMH, Table I (FW); powers of two: FloydWarshall.cpp, setup";
    }
    lay_out(_, request, memory) {
        let wanted = request.scale.side_of(nodes);
        let taken = wanted.next_power_of_two().min(MOST);
        let nodes = request.fit("nodes", wanted, taken, &format!("powers of two up to {MOST}"));
        let mut matrix = |name| memory.array(name, nodes * nodes, Scaling::Scales);
        let (distance, path) = (matrix("distance"), matrix("path"));
    }
    struct AllPairsPaths {
        distance, path: Array<u32>,
        nodes: i32,
        seed: u64 = request.seed,
    }
}

impl AllPairsPaths {
    fn kernel(&self, cta: &mut Cta<'_>, k: i32) {
        let (nodes, row) = (self.nodes, cta.index() as i32);
        cta.each_warp(|warp| {
            let column = warp.compute(ComputeClass::Int, 7, warp.thread());
            let at = column + row * nodes;
            let load = |warp: &mut Warp<'_>| {
                let direct = warp.load(self.distance, at);
                let first = warp.load(self.distance, Lanes::all(row * nodes + k));
                (direct, first + warp.load(self.distance, column + k * nodes))
            };
            let (mut direct, detour) = load(warp);
            let mut detour = warp.compute(ComputeClass::Int, 1, detour);
            warp.when(detour.lt(direct), |warp| {
                warp.store(self.distance, at, detour);
                let through = warp.compute(ComputeClass::Int, 2, Lanes::all(k as u32));
                warp.store(self.path, at, through);
                warp.compute(ComputeClass::Int, 1, ());
                let again = load(warp);
                (direct, detour) = (warp.update(direct, again.0), warp.update(detour, again.1));
            });
            let least = warp.compute(ComputeClass::Int, 2, direct.min(detour));
            warp.store(self.distance, at, least);
        });
    }

    fn edge(&self, index: u64) -> u32 {
        let on_diagonal = index.is_multiple_of(self.nodes as u64 + 1);
        if on_diagonal { 0 } else { noise::below(self.seed, index, LONGEST + 1) as u32 }
    }

    fn row(&self, index: u64) -> u32 {
        (index / self.nodes as u64) as u32
    }
}

impl Instance for AllPairsPaths {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.distance, |index| self.edge(index));
        memory.fill(self.path, |index| self.row(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.distance);
        host.copy_to_device(self.path);
        for k in 0..self.nodes {
            // Row k is stored while other CTAs load it: its values do not change, because the distance from k to itself
            // is zero.
            host.launch_ordered(Grid::new("floyd-row", self.nodes as u64, self.nodes as u32), |cta| {
                self.kernel(cta, k)
            })?;
        }
        host.copy_to_host(self.path);
        host.copy_to_host(self.distance);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let nodes = self.nodes as usize;
        let indices = 0..(nodes * nodes) as u64;
        let mut distance: Vec<u32> = indices.clone().map(|index| self.edge(index)).collect();
        let mut path: Vec<u32> = indices.map(|index| self.row(index)).collect();
        for k in 0..nodes {
            floyd_warshall_pass((&mut distance, &mut path), nodes, k, k as u32);
        }
        equal("distance", &memory.to_vec(self.distance), &distance)?;
        equal("node between", &memory.to_vec(self.path), &path)
    }
}
