//! HACC, force tree: short-range gravity for a ball with particles, with one launch per leaf in a tree built by the
//! host.
//!
//! For each leaf the host gathers its interaction list: nearby particles, and pseudo-particles for nodes that look
//! small. It copies the list and the leaf to device buffers, launches a kernel over all pairs, and copies velocities
//! back. All leaves share the buffers. Each trial has its own particles and tree; after a trial the host reads the test
//! particle.
//!
//! The kernel processes tiles with 4 × 4 pairs. Lanes in a shared row combine their sums by shuffles, and CTAs by
//! floating-point atomics, recorded in CTA order. The force is Newton's, softened; the short-range polynomial is
//! switched off in the published kernel.

mod tree;

use crate::prelude::*;
use crate::reference::compare;
use std::array::from_fn;
use tree::{ForceSource, Particle, Tree};

/// Columns and rows per tile. Source: HACC, RCBForceTree.cxx, `TILEX`, `TILEY`.
const TILE: u32 = 4;
/// Thread columns and rows per CTA. Source: HACC, RCBForceTree.cxx, `BLOCKX`, `BLOCKY`.
const BLOCK: [u32; 2] = [32, 4];
/// Maximum number of CTA columns and rows. Source: HACC, RCBForceTree.cxx, `MAXX`, `MAXY`.
const MOST: [u32; 2] = [32, 256];
/// Side length for the box in which balls are placed. Source: CPElide, Table II (HACC: 0.5 …).
const BOX: f32 = 0.5;
/// Ball radius. Source: CPElide, Table II (HACC: … 0.1 512 …).
const RADIUS: f32 = 0.1;
/// Softening length. Source: HACC, ForceTreeTest.cxx, `m_rsm`.
const SOFTENING: f32 = 0.1;
/// Maximum distance at which the force acts. Source: HACC, ForceLaw.cxx, `m_rmax`.
const REACH: f32 = 3.116_326_4;
/// Arithmetic instructions per pair in addition to the reciprocal root. Source: counted from the comments in HACC's
/// `computeForces`.
const PAIR: u16 = 16;
/// Order and scope for CUDA's `atomicAdd`: relaxed, at GPU scope.
const SUMS: Order = Order::relaxed(Scope::Gpu);

const INPUT: &str = "CPElide, Table II (HACC: 0.5 0.1 512 0.1 2 N 12 rcb), read by ForceTreeTest.cxx";

program! {
    /// short-range gravity by a tree on the host: many small launches over the same buffers, copies between them
    pub(crate) static HACC = "hacc",
        "HACC, ForceTreeTest (CORAL; gem5/gem5-resources, src/gpu/halo-finder; hal-uw/gem5-bmks-micro24, \
        halo-finder/src/RCBForceTree.cxx); CPElide, Table II (HACC)";
    properties: nonlinear, data_independent;
    parameters {
        /// particles of the ball, beside a test particle; scales
        particles: count(1..=1 << 20) = 512, INPUT;
        /// largest angle under which a node looks small, in milliradians
        angle: count(1..=1500) = 100, INPUT;
        /// balls, one after the other
        trials: count(1..=1 << 20) = 2, INPUT;
        /// particles of a leaf, at most (`rcbN`, by default)
        leaf: count(1..=1 << 10) = 12, INPUT;
    }
    lay_out(_, request, memory) {
        let count = request.scale.of(particles);
        let trees: Vec<Tree> = (0..trials)
            .map(|trial| Tree::new(self::particles(count, noise::noise(request.seed, trial)), leaf as usize))
            .collect();
        let most = |tree: &Tree| tree.leaves().into_iter().map(|leaf| tree.nodes[leaf].count as u64).max();
        let room = trees.iter().filter_map(most).max().unwrap_or(0).max(leaf);
    }
    struct Gravity {
        /// All particles in tree order, on the host.
        all: Bodies = bodies(memory, "", count + 1, Scaling::Scales),
        /// All particles' velocities, one array per axis, on the host.
        velocity: [Array<f32>; 3] = velocities(memory, "", count + 1, Scaling::Scales),
        /// Device buffer for the current leaf's particles.
        leaf: Bodies = bodies(memory, "leaf_", room, Scaling::Fixed),
        /// Device buffer for the current leaf's velocities.
        leaf_velocity: [Array<f32>; 3] = velocities(memory, "leaf_", room, Scaling::Fixed),
        /// Device buffer for the leaf's interaction list.
        list: Bodies = bodies(memory, "list_", count + 1, Scaling::Scales),
        /// Tree for each trial.
        trees: Vec<Tree>,
        /// Tangent for the largest angle under which a node looks small.
        tangent: f32 = (angle as f32 / 1000.0).tan(),
    }
}

/// Particle arrays.
#[derive(Clone, Copy)]
struct Bodies {
    /// Coordinates, one array per axis.
    at: [Array<f32>; 3],
    mass: Array<f32>,
}

/// Particles for one trial: the test particle first, then the ball.
fn particles(count: u64, seed: u64) -> Vec<Particle> {
    let place = |seed| [1, 2, 3].map(|axis| BOX * 0.5 * (1.0 + noise::unit(seed, axis)));
    let (test, centre) = (place(noise::noise(seed, 1)), place(noise::noise(seed, 2)));
    let mut found = vec![Particle { at: test, mass: 1.0 }];
    let shots = (0..).map(|shot| [1, 2, 3].map(|axis| noise::unit(noise::noise(seed, 2 + axis), shot)));
    let inside = shots.filter(|[x, y, z]| x * x + y * y + z * z <= 1.0);
    let ball = inside.map(|shot| from_fn(|axis| centre[axis] + RADIUS * shot[axis]));
    found.extend(ball.take(count as usize).map(|at| Particle { at, mass: 1.0 }));
    found
}

fn bodies(memory: &mut Memory, prefix: &str, len: u64, scaling: Scaling) -> Bodies {
    let mut array = |name| memory.array(&format!("{prefix}{name}"), len, scaling);
    Bodies { at: ["x", "y", "z"].map(&mut array), mass: array("mass") }
}

fn velocities(memory: &mut Memory, prefix: &str, len: u64, scaling: Scaling) -> [Array<f32>; 3] {
    ["vx", "vy", "vz"].map(|name| memory.array(&format!("{prefix}{name}"), len, scaling))
}

/// Component triple per lane: the row's position, or the force accumulated on it.
type LaneVector = [Lanes<f32>; 3];

impl Gravity {
    /// Adds the forces from the list's `others` entries to the leaf's `own` particles.
    fn kernel(&self, cta: &mut Cta<'_>, grid: [u32; 2], own: u32, others: u32) {
        let at = [cta.index() % grid[0], cta.index() / grid[0]];
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 4, warp.thread());
            let column = thread % BLOCK[0] as i32 + (at[0] * BLOCK[0]) as i32;
            let row = thread / BLOCK[0] as i32 + (at[1] * BLOCK[1]) as i32;
            let step = [grid[0] * BLOCK[0], grid[1] * BLOCK[1]];
            let whole = own / TILE;
            strided(warp, row, whole, step[1], |warp, tile| {
                self.tile::<{ TILE as usize }>(warp, tile * TILE as i32, column, step[0], others);
            });
            strided(warp, row, own % TILE, step[1], |warp, rest| {
                self.tile::<1>(warp, rest + (whole * TILE) as i32, column, step[0], others);
            });
        });
    }

    /// Adds forces from a thread's list columns to `ROWS` leaf particles, starting at `first`.
    fn tile<const ROWS: usize>(
        &self,
        warp: &mut Warp<'_>,
        first: Lanes<i32>,
        column: Lanes<i32>,
        step: u32,
        others: u32,
    ) {
        let places: [[Lanes<f32>; ROWS]; 3] = self.leaf.at.map(|axis| load(warp, axis, first));
        let mut forces = [[Lanes::all(0.0); 3]; ROWS];
        let whole = others / TILE;
        let mut meet = |warp: &mut Warp<'_>, columns: &[[Lanes<f32>; 4]]| {
            // A single reciprocal root for each pair with a row and a column.
            let pairs = (ROWS * columns.len()) as u16;
            warp.compute_wide(ComputeClass::Special, pairs, pairs, ());
            for (row, force) in forces.iter_mut().enumerate() {
                let place = places.map(|axis| axis[row]);
                columns.iter().for_each(|column| attract(warp, place, *column, force));
            }
        };
        strided(warp, column, whole, step, |warp, tile| {
            let columns: [[Lanes<f32>; 4]; TILE as usize] = self.columns(warp, tile * TILE as i32);
            meet(warp, &columns);
        });
        strided(warp, column, others % TILE, step, |warp, rest| {
            let columns: [[Lanes<f32>; 4]; 1] = self.columns(warp, rest + (whole * TILE) as i32);
            meet(warp, &columns);
        });
        self.apply(warp, first, &forces);
    }

    /// Loads position and mass for `COLUMNS` list entries, starting at `first`.
    fn columns<const COLUMNS: usize>(&self, warp: &mut Warp<'_>, first: Lanes<i32>) -> [[Lanes<f32>; 4]; COLUMNS] {
        let [x, y, z] = self.list.at;
        let parts: [[Lanes<f32>; COLUMNS]; 4] = [x, y, z, self.list.mass].map(|array| load(warp, array, first));
        from_fn(|column| parts.map(|part| part[column]))
    }

    /// Sums the forces over the lanes that share a row, and adds the sums to the leaf's velocities.
    fn apply(&self, warp: &mut Warp<'_>, first: Lanes<i32>, forces: &[LaneVector]) {
        let group = warp.width().min(BLOCK[0]);
        let leads = (warp.thread() % group as i32).eq(0);
        for (row, force) in (0..).zip(forces) {
            for (array, force) in self.leaf_velocity.into_iter().zip(force) {
                let sum = warp.sum_lanes(ComputeClass::Fp32, *force, group);
                warp.when(leads, |warp| {
                    let at = warp.compute(ComputeClass::Int, ADDRESS, first + row);
                    warp.add_in_order(array, at, sum, SUMS);
                });
            }
        }
    }

    /// Gathers a leaf and its interaction list on the host, and copies both to the device.
    fn gather(&self, host: &mut Host<'_>, tree: &Tree, leaf: usize, list: &[ForceSource]) {
        let memory = host.memory();
        let own: Vec<ForceSource> = tree.own(leaf).collect();
        for (to, entries) in [(self.list, list), (self.leaf, &own[..])] {
            for (at, entry) in (0..).zip(entries) {
                let found = match *entry {
                    ForceSource::Particle(index) => self.read(memory, index as u64),
                    ForceSource::Pseudo(..) => tree.particle(*entry),
                };
                to.at.iter().zip(found.at).for_each(|(axis, value)| memory.write(*axis, at, value));
                memory.write(to.mass, at, found.mass);
            }
        }
        for (from, to) in self.velocity.into_iter().zip(self.leaf_velocity) {
            let first = tree.nodes[leaf].first as u64;
            (0..own.len() as u64).for_each(|at| memory.write(to, at, memory.read(from, first + at)));
        }
        for (bodies, entries) in [(self.list, list.len()), (self.leaf, own.len())] {
            bodies.at.into_iter().chain([bodies.mass]).for_each(|array| {
                host.copy_first_to_device(array, entries as u64);
            });
        }
        self.leaf_velocity.into_iter().for_each(|array| host.copy_first_to_device(array, own.len() as u64));
    }

    /// Reads a particle from the host arrays.
    fn read(&self, memory: &Memory, index: u64) -> Particle {
        Particle { at: self.all.at.map(|axis| memory.read(axis, index)), mass: memory.read(self.all.mass, index) }
    }

    /// Copies a leaf's velocities back into the host arrays.
    fn scatter(&self, host: &mut Host<'_>, tree: &Tree, leaf: usize) {
        let (first, count) = (tree.nodes[leaf].first as u64, tree.nodes[leaf].count as u64);
        self.leaf_velocity.into_iter().for_each(|array| host.copy_first_to_host(array, count));
        let memory = host.memory();
        for (to, from) in self.velocity.into_iter().zip(self.leaf_velocity) {
            (0..count).for_each(|at| memory.write(to, first + at, memory.read(from, at)));
        }
    }

    /// Places a trial's particles, at rest, in the host arrays.
    fn place(&self, memory: &Memory, tree: &Tree) {
        for (axis, array) in self.all.at.into_iter().enumerate() {
            memory.fill(array, |index| tree.particles[index as usize].at[axis]);
        }
        memory.fill(self.all.mass, |index| tree.particles[index as usize].mass);
        self.velocity.into_iter().for_each(|array| memory.fill(array, |_| 0.0));
    }

    /// Force on a particle from the entries on its leaf's list, and the sum over the terms' magnitudes.
    fn plain(tree: &Tree, index: usize, list: &[ForceSource]) -> ([f64; 3], f64) {
        let own = tree.particles[index].at.map(f64::from);
        let (mut force, mut magnitude) = ([0.0; 3], 0.0);
        for other in list.iter().map(|entry| tree.particle(*entry)) {
            let between: [f64; 3] = from_fn(|axis| f64::from(other.at[axis]) - own[axis]);
            let squared: f64 = between.iter().map(|part| part * part).sum();
            if squared > 0.0 && squared < f64::from(REACH).powi(2) {
                let pull = f64::from(other.mass) * (squared + f64::from(SOFTENING).powi(2)).powf(-1.5);
                force.iter_mut().zip(between).for_each(|(force, part)| *force += pull * part);
                magnitude += pull.abs() * squared.sqrt();
            }
        }
        (force, magnitude)
    }
}

/// Loads `N` elements starting at `first`: one vector, or one element.
fn load<const N: usize>(warp: &mut Warp<'_>, array: Array<f32>, first: Lanes<i32>) -> [Lanes<f32>; N] {
    let first = warp.compute(ComputeClass::Int, ADDRESS, first);
    if N == 1 { [warp.load(array, first); N] } else { warp.load_vector(array, first) }
}

/// Runs `body` for each index from a lane's `first` on, below `end`, with stride `step`.
fn strided(
    warp: &mut Warp<'_>,
    first: Lanes<i32>,
    end: u32,
    step: u32,
    mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>),
) {
    let rounds = first.map(|first| end.saturating_sub(first as u32).div_ceil(step));
    warp.repeat(rounds, |warp, round| {
        let index = warp.compute(ComputeClass::Int, 1, first + (round * step) as i32);
        body(warp, index);
    });
}

/// Adds the pull that a column exerts on a row.
fn attract(
    warp: &mut Warp<'_>,
    [x, y, z]: LaneVector,
    [to_x, to_y, to_z, mass]: [Lanes<f32>; 4],
    force: &mut LaneVector,
) {
    let [fx, fy, fz] = *force;
    let operands = [x, y, z, to_x, to_y, to_z, mass, fx, fy, fz];
    let pulled = warp.calculate(ComputeClass::Fp32, PAIR, operands, |[x, y, z, to_x, to_y, to_z, mass, fx, fy, fz]| {
        let (dx, dy, dz): (f32, f32, f32) = (to_x - x, to_y - y, to_z - z);
        let squared = dx * dx + dy * dy + dz * dz;
        let softened = squared + SOFTENING * SOFTENING;
        let near = squared < REACH * REACH && squared > 0.0;
        let pull = if near { mass / (softened * softened * softened).sqrt() } else { 0.0 };
        [fx + pull * dx, fy + pull * dy, fz + pull * dz]
    });
    force.iter_mut().zip(pulled).for_each(|(force, pulled)| *force = warp.update(*force, pulled));
}

impl Instance for Gravity {
    /// Fills nothing: the host program sets all arrays, trial by trial.
    fn fill(&self, _: &Memory) {}

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for tree in &self.trees {
            self.place(host.memory(), tree);
            for leaf in tree.leaves() {
                let list = tree.interactions(leaf, self.tangent, REACH);
                let (own, others) = (tree.nodes[leaf].count as u32, list.len() as u32);
                self.gather(host, tree, leaf, &list);
                let grid = [others.div_ceil(BLOCK[0]).min(MOST[0]), own.div_ceil(BLOCK[1]).min(MOST[1])];
                let launch = Grid::new("step10", u64::from(grid[0] * grid[1]), BLOCK[0] * BLOCK[1]);
                // CTAs along a row add to shared velocities.
                host.launch_ordered(launch, |cta| self.kernel(cta, grid, own, others))?;
                self.scatter(host, tree, leaf);
            }
            // The program prints one particle's speed.
            self.velocity.into_iter().for_each(|array| _ = host.memory().read(array, 0));
        }
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let Some(tree) = self.trees.last() else { return Ok(()) };
        let found = self.velocity.map(|array| memory.to_vec(array));
        for leaf in tree.leaves() {
            let list = tree.interactions(leaf, self.tangent, REACH);
            for index in tree.nodes[leaf].particles() {
                let (expected, magnitude) = Gravity::plain(tree, index, &list);
                for (axis, expected) in expected.into_iter().enumerate() {
                    let what = format!("velocity {axis} of particle {index}");
                    compare(&what, found[axis][index], expected, magnitude)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;
    use tombolo_workload::scale::Scale;
    use tombolo_workload::simt::Backing;

    /// Largest error in the tree's forces against the all-pairs forces, relative to the largest force.
    fn error(angle: &str) -> f64 {
        let given = [("angle".to_owned(), angle.to_owned()), ("trials".to_owned(), "1".to_owned())];
        let mut request = Request::new(find("hacc").unwrap(), Scale::FULL, &given, 3).unwrap();
        let gravity = Gravity::lay_out("hacc", &mut request, &mut Memory::new(Backing::AddressOnly)).unwrap();
        let tree = &gravity.trees[0];
        let all: Vec<ForceSource> = (0..tree.particles.len()).map(ForceSource::Particle).collect();
        let (mut worst, mut largest) = (0.0_f64, 0.0_f64);
        for leaf in tree.leaves() {
            let list = tree.interactions(leaf, gravity.tangent, REACH);
            for index in tree.nodes[leaf].particles() {
                let (near, exact) = (Gravity::plain(tree, index, &list).0, Gravity::plain(tree, index, &all).0);
                let size = |force: [f64; 3]| force.iter().map(|part| part * part).sum::<f64>().sqrt();
                worst = worst.max(size(from_fn(|axis| near[axis] - exact[axis])));
                largest = largest.max(size(exact));
            }
        }
        worst / largest
    }

    #[test]
    fn forces_of_the_tree_come_near_those_of_all_pairs() {
        assert!(error("1") < 1e-6, "no node looks small");
        assert!(error("100") < 1e-3);
        assert!(error("700") < 5e-2);
    }
}
