//! MiniContact: two meshed surfaces that slide and press on each other.
//!
//! Each step sorts one surface's facets into bins (count, prefix sum, fill), and finds the facet touched by each node
//! on the other surface. It scatters penalty forces to the nodes on both surfaces, and moves all nodes. The seven
//! dependent kernels gather and scatter.
//!
//! All quantities are integers: coordinates in 4096ths of a facet's side, so that the sum of forces does not depend on
//! order.

use crate::prelude::*;

/// Threads per CTA in the kernels that sum bin counts. Source: assumed, equal to the other kernels' default.
const THREADS: u32 = 128;
/// Facet side, in units of length.
const SIDE: i64 = 4096;
/// Bin side, in units of length: two facets. Source: assumed; 3 × 3 bins then hold all facets that a node may touch.
const BIN: i64 = 2 * SIDE;
/// Largest node displacement from its regular position. Source: assumed, a distorted but valid mesh.
const JITTER: i64 = 900;
/// Motion of the upper surface per step along x and y. Source: assumed, a tenth of a facet.
const SLIDE: [i64; 2] = [410, 270];
/// Initial shift of the upper surface along x and y. Source: assumed; not a multiple of the facet.
const OFFSET: [i64; 2] = [1400, 2300];
/// Divisor for the penetration depth: the fraction removed by one step's impulse. Source: assumed.
const STIFFNESS: i64 = 8;
/// Marker for a node that touches no facet.
const NONE: u64 = u64::MAX;

program! {
    /// contact of two surfaces: sorting into bins, searches, forces scattered by atomics
    pub(crate) static MINICONTACT = "minicontact",
        "HMG Table III (HPC_MiniContact); NUMA-GPU, Table 2 (HPC-MiniContact-Mesh1, -Mesh2); search by bins and \
        penalty forces are assumed, the usual algorithm of contact";
    parameters {
        /// facets of each surface along x, at scale 1; scales
        columns: count(1..=1 << 14) = 1152, "assumed: with rows, the mesh that reaches the 246 MB of HMG Table III";
        /// facets along y; does not scale, because modules share rows
        rows: count(1..=1 << 14) = 1152, "assumed, as columns";
        /// time steps
        steps: count(1..=10_000) = 5, "assumed: all alike from the second on";
        /// threads of a CTA that takes a facet or a node each
        threads: one_of(96, 128, 256, 512) = 128, "assumed; the 15,423 CTAs of NUMA-GPU Table 2 fit 128 to 256 threads";
    }
    lay_out(name, request, memory) {
        let columns = request.scale.of(columns);
        let (facets, nodes) = (columns * rows, (columns + 1) * (rows + 1));
        if 4 * nodes > i32::MAX as u64 || columns.max(rows) * SIDE as u64 > i32::MAX as u64 / 2 {
            let message = format!("surfaces of {columns} by {rows} facets are too large for 32-bit coordinates");
            return Err(WorkloadError::Shape { workload: name, message });
        }
        let bins = CellGrid { x: columns.div_ceil(2) as i32, y: rows.div_ceil(2) as i32, z: 1 };
        let count = bins.count() as u64;
    }
    struct Surfaces {
        /// Node coordinates, velocities and forces: the lower surface first, then the upper.
        place: [Array<i64>; 3]["x", "y", "z"; 2 * nodes],
        velocity: [Array<i64>; 3]["velocity_x", "velocity_y", "velocity_z"; 2 * nodes],
        force: [Array<i64>; 3]["force_x", "force_y", "force_z"; 2 * nodes],
        /// Bounds per facet: least x, least y, largest x, largest y.
        bounds: Array<i32>[4 * facets],
        /// Contact per upper node: depth × 2^32 + facet.
        contact: Array<u64>[nodes],
        /// Four corner nodes per facet on the lower surface.
        corners: Array<u32>[4 * facets],
        /// Bin per facet.
        bin: Array<u32>[facets],
        /// Facet count per bin; the bin's first index in `sorted`, with one more at the end; the bin's next free index.
        count: Array<u32>[count],
        first: Array<u32>[count + 1],
        next: Array<u32>[count],
        /// Number of facets before each block of bins.
        blocks: Array<u32>[count.div_ceil(u64::from(THREADS))],
        sorted: Array<u32>[facets],
        /// Grid formed by a surface's facets.
        facets: CellGrid = CellGrid { x: columns as i32, y: rows as i32, z: 1 },
        bins: CellGrid,
        steps: u64,
        threads: u32,
        seed: u64 = request.seed,
    }
}

type RecordResult = Result<(), RecordError>;

/// Memory order for sums to which CTAs on all GPUs add.
const SUMS: Order = Order::relaxed(Scope::Sys);

impl Surfaces {
    /// Grid formed by a surface's nodes.
    fn nodes(&self) -> CellGrid {
        CellGrid { x: self.facets.x + 1, y: self.facets.y + 1, z: 1 }
    }

    /// Runs `body` with one thread for each of `count` items.
    fn each(
        &self,
        host: &mut Host<'_>,
        name: &str,
        count: i32,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> RecordResult {
        let ctas = (count as u64).div_ceil(u64::from(self.threads));
        host.launch(Grid::new(name, ctas, self.threads), |cta| each_thread(cta, count, &body))
    }

    /// Loads the corner nodes of a facet.
    fn corners(&self, warp: &mut Warp<'_>, facet: Lanes<i32>) -> [Lanes<u32>; 4] {
        warp.load_vector(self.corners, facet * 4)
    }

    /// Bin index along an axis for a coordinate; beyond the surface, the last bin.
    fn bin_along(at: i64, bins: i32) -> i32 {
        (at / BIN).clamp(0, i64::from(bins) - 1) as i32
    }

    /// Finds a facet's bounds and the bin that contains its middle, and counts it there.
    fn bound(&self, warp: &mut Warp<'_>, facet: Lanes<i32>) {
        let corners = self.corners(warp, facet);
        let mut low = [Lanes::all(0); 2];
        let mut high = low;
        for axis in 0..2 {
            let [a, b, c, d] = corners.map(|corner| warp.load(self.place[axis], corner));
            let (least, largest) = (a.min(b).min(c.min(d)), a.max(b).max(c.max(d)));
            (low[axis], high[axis]) = warp.compute(ComputeClass::Int, 6, (least, largest));
            warp.store(self.bounds, facet * 4 + axis as i32, low[axis].cast::<i32>());
            warp.store(self.bounds, facet * 4 + (axis as i32 + 2), high[axis].cast::<i32>());
        }
        let middle = [0, 1].map(|axis| (low[axis] + high[axis]) / 2);
        let place = self.bin_of(warp, middle);
        let bin = self.bins.indices(warp, place).cast::<u32>();
        warp.store(self.bin, facet, bin);
        warp.reduce(Reduction::Add, self.count, bin, 1, SUMS);
    }

    fn bin_of(&self, warp: &mut Warp<'_>, at: [Lanes<i64>; 2]) -> [Lanes<i32>; 3] {
        let x = at[0].map(|at| Self::bin_along(at, self.bins.x));
        let y = at[1].map(|at| Self::bin_along(at, self.bins.y));
        warp.compute(ComputeClass::Int, 6, [x, y, Lanes::all(0)])
    }

    /// Writes prefix sums over `counts[start..end]`, an entry per thread, to `sums`; returns the total. `carry` is
    /// added to every sum.
    fn scan(cta: &mut Cta<'_>, [counts, sums]: [Array<u32>; 2], start: i32, end: i32, carry: u32) -> u32 {
        let mut tables = [cta.shared::<u32>(THREADS as usize), cta.shared::<u32>(THREADS as usize)];
        let mut own = Vec::new();
        cta.each_warp(|warp| {
            let mut count = Lanes::all(0);
            let at = warp.thread() + start;
            warp.when(at.lt(end), |warp| {
                let loaded = warp.load(counts, at);
                count = warp.update(count, loaded);
            });
            let thread = warp.thread();
            warp.store_shared(&mut tables[0], thread, count);
            own.push(count);
        });
        cta.barrier();
        let mut distance = 1;
        while distance < THREADS as i32 {
            let [from, to] = &mut tables;
            cta.each_warp(|warp| {
                let thread = warp.thread();
                let mut sum = warp.load_shared(from, thread);
                warp.when(thread.ge(distance), |warp| {
                    let added = sum + warp.load_shared(from, thread - distance);
                    let added = warp.compute(ComputeClass::Int, 1, added);
                    sum = warp.update(sum, added);
                });
                warp.store_shared(to, thread, sum);
            });
            cta.barrier();
            tables.swap(0, 1);
            distance *= 2;
        }
        cta.each_warp(|warp| {
            let (thread, at) = (warp.thread(), warp.thread() + start);
            let through = warp.load_shared(&tables[0], thread);
            let before = warp.compute(ComputeClass::Int, 2, through - own[warp.index() as usize] + carry);
            warp.when(at.lt(end), |warp| warp.store(sums, at, before));
        });
        cta.barrier();
        tables[0].values()[THREADS as usize - 1]
    }

    /// Prefix sums over the bins' counts: within each block, over the blocks, and both together.
    fn find_bin_starts(&self, host: &mut Host<'_>) -> RecordResult {
        let (bins, blocks, threads) = (self.bins.count(), self.blocks.len() as i32, THREADS as i32);
        let shared_bytes = 2 * 4 * THREADS;
        let grid = |name, ctas| Grid::new(name, ctas, THREADS).shared_bytes(shared_bytes);
        host.launch(grid("scan-bins", blocks as u64), |cta| {
            let block = cta.index();
            let start = block as i32 * threads;
            let total = Self::scan(cta, [self.count, self.first], start, (start + threads).min(bins), 0);
            cta.warp(0, |warp| warp.single(|warp| warp.store(self.blocks, Lanes::all(block), total)));
        })?;
        host.launch(grid("scan-blocks", 1), |cta| {
            let mut carry = 0;
            for start in (0..blocks).step_by(THREADS as usize) {
                carry += Self::scan(cta, [self.blocks; 2], start, (start + threads).min(blocks), carry);
            }
        })?;
        self.each(host, "scan-add", bins, |warp, bin| {
            let first = warp.load(self.first, bin) + warp.load(self.blocks, bin / threads);
            let first = warp.compute(ComputeClass::Int, 1, first);
            warp.store(self.first, bin, first);
            warp.store(self.next, bin, first);
            warp.store(self.count, bin, 0);
        })
    }

    /// Puts each facet at the next free index in its bin; the order within a bin does not affect results.
    fn fill_bins(&self, host: &mut Host<'_>) -> RecordResult {
        let facets = self.facets.count();
        let ctas = (facets as u64).div_ceil(u64::from(self.threads));
        host.launch_ordered(Grid::new("fill-bins", ctas, self.threads), |cta| {
            each_thread(cta, facets, &|warp: &mut Warp<'_>, facet: Lanes<i32>| {
                let bin = warp.load(self.bin, facet);
                let at = warp.atomic(Reduction::Add, self.next, bin, 1, SUMS);
                warp.store(self.sorted, at, facet.cast::<u32>());
            });
        })
    }

    /// Finds the facet closest above or below a node on the upper surface, from the 3 × 3 bins around it.
    fn search(&self, warp: &mut Warp<'_>, index: Lanes<i32>) {
        let node = index + self.nodes().count();
        let at = [0, 1].map(|axis| warp.load(self.place[axis], node));
        let height = warp.load(self.place[2], node);
        let [x, y, _] = self.bin_of(warp, at);
        let mut closest = Lanes::all(NONE);
        let (left, right) = (x.map(|x| (x - 1).max(0)), x.map(|x| (x + 1).min(self.bins.x - 1)));
        for row in -1..=1 {
            let y = y + row;
            warp.when(y.ge(0) & y.lt(self.bins.y), |warp| {
                // Bins in a row are adjacent, and so are their facets.
                let first = self.bins.indices(warp, [left, y, Lanes::all(0)]);
                let last = self.bins.indices(warp, [right, y, Lanes::all(0)]);
                let first = warp.load(self.first, first);
                let count = warp.load(self.first, last + 1) - first;
                warp.repeat(count, |warp, candidate| {
                    let facet = warp.load(self.sorted, first + candidate);
                    let bounds: [Lanes<i32>; 4] = warp.load_vector(self.bounds, facet * 4);
                    let [low_x, low_y, high_x, high_y] = bounds.map(|bound| bound.cast::<i64>());
                    let inside = low_x.le(at[0]) & at[0].le(high_x) & low_y.le(at[1]) & at[1].le(high_y);
                    let inside = warp.compute(ComputeClass::Int, 4, inside);
                    warp.when(inside, |warp| {
                        let gap = self.gap(warp, facet.cast(), height).map(i64::unsigned_abs);
                        let key = warp.compute(ComputeClass::Int, 2, gap * (1 << 32) + facet.cast::<u64>());
                        closest = warp.update(closest, closest.min(key));
                    });
                });
            });
        }
        warp.store(self.contact, index, closest);
    }

    /// Node height above the middle of a facet.
    fn gap(&self, warp: &mut Warp<'_>, facet: Lanes<i32>, height: Lanes<i64>) -> Lanes<i64> {
        let corners = self.corners(warp, facet);
        let [a, b, c, d] = corners.map(|corner| warp.load(self.place[2], corner));
        warp.compute(ComputeClass::Int, 5, height - (a + b + c + d) / 4)
    }

    /// Pushes a node below its facet up, and the facet's corners down.
    fn push(&self, warp: &mut Warp<'_>, index: Lanes<i32>) {
        let contact = warp.load(self.contact, index);
        warp.when(contact.ne(NONE), |warp| {
            let facet = (contact % (1 << 32)).cast::<i32>();
            let node = index + self.nodes().count();
            let height = warp.load(self.place[2], node);
            let gap = self.gap(warp, facet, height);
            warp.when(gap.lt(0), |warp| {
                let quarter = warp.compute(ComputeClass::Int, 2, gap / STIFFNESS);
                warp.reduce(Reduction::Add, self.force[2], node, quarter * -4, SUMS);
                for corner in self.corners(warp, facet) {
                    warp.reduce(Reduction::Add, self.force[2], corner, quarter, SUMS);
                }
            });
        });
    }

    fn advance(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        for axis in 0..3 {
            let velocity = warp.load(self.velocity[axis], node) + warp.load(self.force[axis], node);
            let place = warp.load(self.place[axis], node) + velocity;
            let (place, velocity) = warp.compute(ComputeClass::Int, 2, (place, velocity));
            warp.store(self.place[axis], node, place);
            warp.store(self.velocity[axis], node, velocity);
            warp.store(self.force[axis], node, 0);
        }
    }

    /// Initial coordinates and velocities for a node on the lower (0) or upper (1) surface.
    fn start(&self, surface: u64, node: i32) -> [[i64; 3]; 2] {
        let [x, y, _] = self.nodes().coordinates(node).map(i64::from);
        let jitter = |axis: u64| {
            let bits = noise::below(self.seed ^ (2 * axis + surface), node as u64, 2 * JITTER as u64 + 1);
            bits as i64 - JITTER
        };
        let upper = surface as i64;
        let shift = OFFSET.map(|offset| upper * offset);
        let place = [x * SIDE + jitter(0) + shift[0], y * SIDE + jitter(1) + shift[1], jitter(2) / 2 + upper * JITTER];
        [place, [upper * SLIDE[0], upper * SLIDE[1], upper * -JITTER / 2]]
    }

    fn facet_corners(&self, facet: i32) -> [i32; 4] {
        let [x, y, _] = self.facets.coordinates(facet);
        [[0, 0], [1, 0], [1, 1], [0, 1]].map(|[right, up]| self.nodes().index([x + right, y + up, 0]))
    }

    /// All nodes at the start: the lower surface first, then the upper.
    fn each_node(&self) -> impl Iterator<Item = [[i64; 3]; 2]> {
        let nodes = self.nodes().count();
        (0..2).flat_map(move |surface| (0..nodes).map(move |node| self.start(surface, node)))
    }

    /// Forces in one step; each node is tested against every facet.
    fn reference_forces(&self, nodes: &[[[i64; 3]; 2]]) -> Vec<i64> {
        let mut forces = vec![0; nodes.len()];
        for upper in nodes.len() / 2..nodes.len() {
            let at = nodes[upper][0];
            let touch = |facet: i32| {
                let corners = self.facet_corners(facet).map(|corner| nodes[corner as usize][0]);
                let inside = (0..2).all(|axis| {
                    let along = corners.map(|corner| corner[axis]);
                    along.iter().any(|&low| low <= at[axis]) && along.iter().any(|&high| at[axis] <= high)
                });
                let gap = at[2] - corners.iter().map(|corner| corner[2]).sum::<i64>() / 4;
                inside.then_some((gap.abs(), facet, gap))
            };
            if let Some((_, facet, gap)) = (0..self.facets.count()).filter_map(touch).min()
                && gap < 0
            {
                forces[upper] -= gap / STIFFNESS * 4;
                self.facet_corners(facet).iter().for_each(|&corner| forces[corner as usize] += gap / STIFFNESS);
            }
        }
        forces
    }
}

/// Runs `body` in each thread whose grid index is below `count`.
fn each_thread(cta: &mut Cta<'_>, count: i32, body: &impl Fn(&mut Warp<'_>, Lanes<i32>)) {
    cta.each_warp(|warp| {
        let at = warp.compute(ComputeClass::Int, 1, warp.global_thread());
        warp.when(at.lt(count), |warp| body(warp, at));
    });
}

impl Instance for Surfaces {
    fn fill(&self, memory: &Memory) {
        for (node, [place, velocity]) in (0..).zip(self.each_node()) {
            for axis in 0..3 {
                memory.write(self.place[axis], node, place[axis]);
                memory.write(self.velocity[axis], node, velocity[axis]);
            }
        }
        memory.fill(self.corners, |index| self.facet_corners((index / 4) as i32)[(index % 4) as usize] as u32);
        memory.write(self.first, self.bins.count() as u64, self.facets.count() as u32);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.place.into_iter().chain(self.velocity).for_each(|array| host.copy_to_device(array));
        host.copy_to_device(self.corners);
        host.copy_to_device(self.first);
        let (nodes, facets) = (self.nodes().count(), self.facets.count());
        for _ in 0..self.steps {
            self.each(host, "bound", facets, |warp, facet| self.bound(warp, facet))?;
            self.find_bin_starts(host)?;
            self.fill_bins(host)?;
            self.each(host, "search", nodes, |warp, node| self.search(warp, node))?;
            self.each(host, "push", nodes, |warp, node| self.push(warp, node))?;
            self.each(host, "advance", 2 * nodes, |warp, node| self.advance(warp, node))?;
        }
        self.place.into_iter().for_each(|array| host.copy_to_host(array));
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut nodes: Vec<_> = self.each_node().collect();
        for _ in 0..self.steps {
            let forces = self.reference_forces(&nodes);
            for ([place, velocity], force) in nodes.iter_mut().zip(forces) {
                velocity[2] += force;
                (0..3).for_each(|axis| place[axis] += velocity[axis]);
            }
        }
        for (node, expected) in (0..).zip(&nodes) {
            let found = [self.place, self.velocity].map(|arrays| arrays.map(|array| memory.read(array, node)));
            if found != *expected {
                return Err(format!("node {node} is at and moves by {found:?}, expected {expected:?}"));
            }
        }
        Ok(())
    }
}
