//! Pannotia fw: all-pairs shortest paths by Floyd and Warshall, with a launch for each node that paths may pass
//! through.
//!
//! The program is separate from `floydwarshall`, which evaluates an equal formula:
//! - lanes follow each other down a matrix column, so that a warp's accesses share no line;
//! - few node pairs have an edge, so that most threads store nothing;
//! - the loop starts at node 1 and ends early, so that the result covers only paths through a few nodes;
//! - intermediate nodes are set only by kernels, and stay on the device.
//!
//! The graph in Table II is a file with 512 nodes and 65,536 edges with weights up to 100, drawn at random. Here an
//! equal number is drawn.

use crate::prelude::*;
use crate::reference::floyd_warshall_pass;

/// Side of a CTA. Source: Pannotia fw in gem5's build, `threads(16, 16, 1)`.
const SIDE: i32 = 16;
/// Distance for a pair without an edge. Source: Pannotia fw, `BIGNUM`.
const FAR: i32 = 999_999;
/// Longest edge. Source: Pannotia, dataset/floydwarshall/512_65536.gr, `Max. weight`.
const LONGEST: u64 = 100;
/// Instructions for a 64-bit index: extend two operands, multiply and add in parts. Source: assumed.
const WIDE_INDEX: u16 = 4;

program! {
    /// all shortest paths through the first nodes: a launch a node, lanes along columns, few edges
    pub(crate) static FW = "pannotia-fw",
        "Pannotia fw (pannotia/pannotia, graph_app/fw; hal-uw/gem5-bmks-micro24, pannotia/fw); CPElide, Table II (FW)";
    properties: nonlinear;
    parameters {
        /// nodes, at scale 1; scales by the root, to a multiple of 16
        nodes: count(1..=1 << 14) = 512, "CPElide, Table II (FW: 512_65536.gr)";
        /// edges drawn at random, at scale 1; of those between the same nodes the last counts; scales
        edges: count(0..=1 << 28) = 65_536, "CPElide, Table II (FW: 512_65536.gr)";
        /// launches: paths go through nodes 1 to as many, fewer than there are nodes
        passes: count(1..=1 << 14) = 15,
            "Pannotia fw in gem5's build (hal-uw/gem5-bmks-micro24): `MAX_ITERS` 16, and the loop starts at 1";
    }
    lay_out(_, request, memory) {
        let nodes = request.fit_multiple("nodes", request.scale.side_of(nodes), SIDE as u64);
        let passes = request.fit_most("passes", passes, nodes - 1);
    }
    struct AllPairs {
        /// Distance matrix, `nodes × nodes`: from the row's node to the column's.
        distance: Array<i32>[nodes * nodes],
        /// Last intermediate node inserted in the path, `nodes × nodes`.
        through: Array<i32>[nodes * nodes],
        nodes: i32,
        edges: u64 = request.scale.of(edges),
        passes: i32,
        seed: u64 = request.seed,
    }
}

impl AllPairs {
    /// Processes a node pair per thread: x counts rows.
    fn kernel(&self, cta: &mut Cta<'_>, k: i32) {
        let (nodes, across) = (self.nodes, self.nodes / SIDE);
        let (top, left) = (cta.index() as i32 % across * SIDE, cta.index() as i32 / across * SIDE);
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 4 + 3 * (WIDE_INDEX + ADDRESS), warp.thread());
            let (row, column) = (thread % SIDE + top, thread / SIDE + left);
            let at = row * nodes + column;
            let detour = warp.load(self.distance, row * nodes + k) + warp.load(self.distance, column + k * nodes);
            let direct = warp.load(self.distance, at);
            let detour = warp.compute(ComputeClass::Int, 1, detour);
            warp.when(detour.lt(direct), |warp| {
                warp.store(self.distance, at, detour);
                warp.store(self.through, at, Lanes::all(k));
            });
        });
    }

    /// Distances along single edges, before any pass.
    fn direct(&self) -> Vec<i32> {
        let nodes = self.nodes as u64;
        let mut distance = vec![FAR; (nodes * nodes) as usize];
        for edge in 0..self.edges {
            let [from, to] = [1, 2].map(|end| noise::below(self.seed ^ end, edge, nodes));
            distance[(from * nodes + to) as usize] = noise::below(self.seed ^ 3, edge, LONGEST + 1) as i32;
        }
        (0..nodes).for_each(|node| distance[(node * nodes + node) as usize] = 0);
        distance
    }
}

impl Instance for AllPairs {
    fn fill(&self, memory: &Memory) {
        let direct = self.direct();
        memory.fill(self.distance, |index| direct[index as usize]);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.distance);
        let tiles = (self.nodes / SIDE) as u64;
        for k in 1..=self.passes {
            // Row k and column k do not change in pass k, because the distance from k to itself is zero.
            host.launch(Grid::new("floydwarshall", tiles * tiles, (SIDE * SIDE) as u32), |cta| self.kernel(cta, k))?;
        }
        host.copy_to_host(self.distance);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let nodes = self.nodes as usize;
        let (mut distance, mut through) = (self.direct(), vec![0; nodes * nodes]);
        for k in 1..=self.passes as usize {
            floyd_warshall_pass((&mut distance, &mut through), nodes, k, k as i32);
        }
        equal("distance", &memory.to_vec(self.distance), &distance)?;
        equal("node between", &memory.to_vec(self.through), &through)
    }
}
