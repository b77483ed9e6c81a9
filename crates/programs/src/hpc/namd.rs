//! NAMD: short-range forces between the atoms in neighbouring patches.
//!
//! A CTA computes the forces from one of 27 patches on the atoms in one patch, and stores them as partial forces. It
//! then executes a fence and counts itself in with a scoped atomic; the patch's last CTA adds up the 27 parts. A warp
//! holds a tile with neighbouring atoms and skips tiles in the other patch that are out of reach.
//!
//! Positions are multiples of 2^-10 Å, so that distances in single precision are exact.
//!
//! Not modelled: NAMD's force tables, which stay in the texture caches; exclusions for bonded atoms.

use crate::prelude::*;
use crate::reference::compare;
use std::array::from_fn;
use tombolo_types::Semantics;

/// Threads per CTA. Source: NAMD 2.9, `BLOCK_SIZE` in ComputeNonbondedCUDAKernel.
const THREADS: u32 = 128;
/// Patches that interact with a patch: itself and its 26 neighbours. Source: NAMD, patches no smaller than the cutoff.
const NEAR: i32 = 27;
/// Neighbouring atoms that are tested together. Source: NAMD 2.10, one warp.
const TILE: i32 = 32;
/// Atom count multiple per patch: whole layers with four tiles, `4 × 4 × 2` atoms each. Source: assumed.
const LAYER: u64 = 128;
/// Position quantum in Å. Source: assumed, 16 bits for a patch.
const QUANTUM: f32 = 1.0 / 1024.0;
/// Patch sides in Å, multiples of the quantum. Source: NAMD's apoa1, 108.86 × 108.86 × 77.76 Å over 6 × 6 × 4 patches.
const SIDES: [f32; 3] = [18_579.0 * QUANTUM, 18_579.0 * QUANTUM, 19_907.0 * QUANTUM];
/// Cutoff distance for forces in Å. Source: NAMD's apoa1, `cutoff`.
const CUTOFF: f32 = 12.0;
/// Distance in Å within which tiles are paired. Source: NAMD's apoa1, `pairlistdist`.
const REACH: f32 = 13.5;
/// Period, in steps, for the slow part of the electrostatics. Source: NAMD's apoa1, `fullElectFrequency`.
const SLOW_EVERY: u64 = 4;
/// Warp arithmetic instructions per atom in the other patch: distance, test, Lennard-Jones, electrostatics, sums.
/// Source: assumed, counted from the formula in [`PairForce::new`].
const PAIR_INSTRUCTIONS: u16 = 24;
/// Maximum motion of an atom along an axis per step, in quanta. Source: assumed; a slow drift, far below the 1.5 Å
/// margin in tile pairing.
const FARTHEST: f32 = 8.0;

program! {
    /// short-range molecular forces by pairs of patches: scoped fences and counters inside the kernel
    pub(crate) static NAMD = "namd",
        "NAMD 2.9 and 2.10, CUDA kernel for nonbonded forces; the system apoa1; HMG Table III (HPC_namd2.10)";
    properties: nonlinear;
    parameters {
        /// patches along x, at scale 1; scales by the root
        x: count(1..=64) = 6, "NAMD's apoa1; 6 × 6 × 4 × 27 are the 3888 CTAs of NUMA-GPU Table 2";
        /// patches along y, at scale 1; scales with x to the patches of a plane
        y: count(1..=64) = 6, "NAMD's apoa1";
        /// patches along z; does not scale, because modules share planes of z
        z: count(1..=64) = 4, "NAMD's apoa1";
        /// atoms of a patch, rounded up to whole layers of 128
        atoms: count(1..=1024) = 640, "NAMD's apoa1: 92,224 atoms in 144 patches; reaches the 72 MB of HMG Table III";
        /// time steps; every fourth, from the first on, has slow forces too
        steps: count(1..=20) = 2,
            "assumed: one step of each kind; 20 are NAMD's `stepspercycle`, as long as pairs of tiles hold";
        SCOPE;
    }
    lay_out(name, request, memory) {
        let atoms_per_patch = request.fit_multiple("atoms", atoms, LAYER);
        let count = |name| request.values.count(name);
        let x = request.scale.side_of(x);
        let y = ((request.scale.of(count("x") * y) + x / 2) / x).max(1);
        let patches = x * y * z;
        let parts = patches * NEAR as u64 * atoms_per_patch;
        check_indices(name, parts, "parts of forces")?;
        let atoms = patches * atoms_per_patch;
    }
    struct Patches {
        /// Position within the patch, and charge, for each atom.
        atoms: Array<f32>[4 * atoms],
        /// Parameters for each atom (`atom_param`): radius, square root of the well depth, and two unused words.
        parameters: Array<f32>[4 * atoms],
        /// Low corner, 0, high corner, 0 for each tile.
        bounds: Array<f32>[8 * atoms / TILE as u64],
        /// Partial fast forces and energies, then slow forces, `[patch][neighbour][atom]`.
        parts: [Array<f32>; 7]
            ["part_x", "part_y", "part_z", "part_energy", "part_slow_x", "part_slow_y", "part_slow_z"; parts],
        /// Sums over the partial forces, `[patch][atom]`.
        sums: [Array<f32>; 7]["force_x", "force_y", "force_z", "energy", "slow_x", "slow_y", "slow_z"; atoms],
        /// Number of CTAs per patch that have stored their part.
        arrived: Array<u32>[patches],
        grid: CellGrid = CellGrid { x: x as i32, y: y as i32, z: z as i32 },
        atoms_per_patch: i32,
        steps: u64,
        scope: Scope = scope(&request.values, "scope"),
        seed: u64 = request.seed,
    }
}

/// Interaction between two atoms.
struct PairForce<T> {
    /// Fast force over the distance, energy, slow force over the distance.
    values: [T; 3],
}

macro_rules! pair {
    ($real:ty) => {
        impl PairForce<$real> {
            /// Computes the interaction between two atoms `square` Å² apart. `radius` is the sum over their radii,
            /// `depth` the product of their depth roots, `charge` the product of their charges. The formula is
            /// Lennard-Jones, plus electrostatics split by a linear switch.
            fn new(square: $real, radius: $real, depth: $real, charge: $real) -> PairForce<$real> {
                let cutoff = <$real>::from(CUTOFF * CUTOFF);
                let inverse = 1.0 / square;
                let near = radius * radius * inverse;
                let sixth = near * near * near;
                let electric = charge * inverse.sqrt();
                let slow = square / cutoff;
                let fast = depth * 12.0 * (sixth * sixth - sixth) + electric * (1.0 - slow);
                let energy = depth * (sixth * sixth - 2.0 * sixth) + electric;
                PairForce { values: [fast * inverse, energy, electric * slow * inverse] }
            }
        }
    };
}

pair!(f32);
pair!(f64);

/// Atom data for a tile, an atom per lane: position, charge, radius, root of the depth.
type AtomTile = [Lanes<f32>; 6];

/// The two patches handled by a CTA.
#[derive(Clone, Copy)]
struct PatchPair {
    patch: i32,
    neighbour: i32,
    /// Offset from the patch to the neighbour in Å.
    shift: [f32; 3],
}

impl Patches {
    fn tiles(&self) -> i32 {
        self.atoms_per_patch / TILE
    }

    /// Neighbour in direction `which` out of 27, around the periodic box, and its offset from the patch.
    fn neighbour(&self, patch: i32, which: i32) -> (i32, [f32; 3]) {
        let place = self.grid.coordinates(patch);
        let offset = CellGrid { x: 3, y: 3, z: 3 }.coordinates(which).map(|along| along - 1);
        let sides = [self.grid.x, self.grid.y, self.grid.z];
        let there = from_fn(|axis| (place[axis] + offset[axis]).rem_euclid(sides[axis]));
        (self.grid.index(there), from_fn(|axis| offset[axis] as f32 * SIDES[axis]))
    }

    fn kernel(&self, cta: &mut Cta<'_>, slow: bool) {
        let (patch, which) = (cta.index() as i32 / NEAR, cta.index() as i32 % NEAR);
        let (neighbour, shift) = self.neighbour(patch, which);
        let block = PatchPair { patch, neighbour, shift };
        cta.each_warp(|warp| {
            warp.compute(ComputeClass::Int, 8, ());
            for start in (0..self.atoms_per_patch).step_by(THREADS as usize) {
                let forces = self.forces(warp, block, start);
                let first = (patch * NEAR + which) * self.atoms_per_patch + start;
                let at = warp.compute(ComputeClass::Int, 1, warp.thread() + first);
                for (array, force) in self.parts.iter().zip(forces).take(result_arrays(slow)) {
                    warp.store(*array, at, force);
                }
            }
        });
        cta.barrier();
        if self.is_last(cta, patch) {
            self.add_up(cta, patch, slow);
        }
    }

    /// Forces from the neighbour on the warp's tile.
    fn forces(&self, warp: &mut Warp<'_>, block: PatchPair, start: i32) -> [Lanes<f32>; 7] {
        let lane = warp.thread() + start;
        let own = self.load_atoms(warp, lane + block.patch * self.atoms_per_patch);
        let near = self.near_tiles(warp, block, lane);
        let mut sums = [[0.0; MAX_LANES]; 7];
        for tile in (0..self.tiles()).filter(|&tile| near.lane(tile as u32)) {
            let first = block.neighbour * self.atoms_per_patch + tile * TILE;
            let other = self.load_atoms(warp, warp.lane() % TILE + first);
            // The warp stores the tile in the scratchpad and reads it atom by atom; all lanes read equal addresses.
            let (own, other) = warp.compute(ComputeClass::Fp32, 0, (own, other));
            warp.shared(8);
            warp.shared(2 * TILE as u16);
            warp.compute(ComputeClass::Fp32, PAIR_INSTRUCTIONS * TILE as u16, ());
            warp.compute(ComputeClass::Special, TILE as u16, ());
            for lane in 0..warp.width() {
                add_tile(&own, lane, &other, block.shift, &mut sums);
            }
        }
        sums.map(|sum| Lanes::by_lane(|lane| sum[lane as usize]))
    }

    fn load_atoms(&self, warp: &mut Warp<'_>, atom: Lanes<i32>) -> AtomTile {
        let [x, y, z, charge] = warp.load_vector(self.atoms, atom * 4);
        let [radius, depth, _, _] = warp.load_vector(self.parameters, atom * 4);
        [x, y, z, charge, radius, depth]
    }

    /// Per lane: true if the neighbour's tile with the lane's number is in reach of the warp's own tiles.
    fn near_tiles(&self, warp: &mut Warp<'_>, block: PatchPair, atom: Lanes<i32>) -> Lanes<bool> {
        let own = atom / TILE + block.patch * self.tiles();
        let own = self.load_bounds(warp, own);
        let tile = warp.lane().map(|lane| lane.min(self.tiles() - 1));
        let other = self.load_bounds(warp, tile + block.neighbour * self.tiles());
        let (own, other) = warp.compute(ComputeClass::Fp32, 16, (own, other));
        let tiles_of_warp = (warp.width() / TILE as u32).max(1);
        Lanes::by_lane(|lane| {
            (0..tiles_of_warp).any(|part| {
                let gap = |axis: usize| {
                    let [low, high] = [0, 4].map(|corner| other[corner + axis].lane(lane) + block.shift[axis]);
                    let [own_low, own_high] = [0, 4].map(|corner| own[corner + axis].lane(part * TILE as u32));
                    (low - own_high).max(own_low - high).max(0.0)
                };
                (0..3).map(|axis| gap(axis) * gap(axis)).sum::<f32>() < REACH * REACH
            })
        })
    }

    fn load_bounds(&self, warp: &mut Warp<'_>, tile: Lanes<i32>) -> [Lanes<f32>; 8] {
        let low: [Lanes<f32>; 4] = warp.load_vector(self.bounds, tile * 8);
        let high: [Lanes<f32>; 4] = warp.load_vector(self.bounds, tile * 8 + 4);
        from_fn(|at| if at < 4 { low[at] } else { high[at - 4] })
    }

    /// Counts the CTA in after a fence; returns true for the patch's last CTA.
    fn is_last(&self, cta: &mut Cta<'_>, patch: i32) -> bool {
        let both = Order::new(Semantics::AcquireRelease, self.scope);
        let mut last = false;
        cta.warp(0, |warp| {
            warp.single(|warp| {
                warp.fence(both);
                let before =
                    warp.atomic(Reduction::Add, self.arrived, Lanes::all(patch), 1, Order::relaxed(self.scope));
                let before = warp.compute(ComputeClass::Int, 2, before);
                warp.fence(both);
                warp.shared(1);
                last = before.lane(0) % NEAR as u32 == NEAR as u32 - 1;
            });
        });
        cta.barrier();
        cta.each_warp(|warp| {
            warp.shared(1);
            warp.compute(ComputeClass::Other, 1, ());
        });
        last
    }

    /// Sums a patch's partial forces.
    fn add_up(&self, cta: &mut Cta<'_>, patch: i32, slow: bool) {
        cta.each_warp(|warp| {
            for start in (0..self.atoms_per_patch).step_by(THREADS as usize) {
                let atom = warp.thread() + start;
                for (parts, sums) in self.parts.iter().zip(self.sums).take(result_arrays(slow)) {
                    let mut sum = Lanes::all(0.0);
                    let part = |which: i32| atom + (patch * NEAR + which) * self.atoms_per_patch;
                    let loaded: Vec<_> = (0..NEAR).map(|which| warp.load(*parts, part(which))).collect();
                    for value in loaded {
                        sum = warp.compute(ComputeClass::Fp32, 1, sum + value);
                    }
                    warp.store(sums, atom + patch * self.atoms_per_patch, sum);
                }
            }
        });
    }

    /// Initial position of an atom in its patch: a jittered lattice, tile by tile.
    fn position(&self, atom: i32) -> [f32; 3] {
        let inner = atom % self.atoms_per_patch;
        let layers = self.atoms_per_patch / LAYER as i32;
        let tile = CellGrid { x: 2, y: 2, z: layers }.coordinates(inner / TILE);
        let corner = CellGrid { x: 4, y: 4, z: 2 }.coordinates(inner % TILE);
        let atoms = [8, 8, 2 * layers];
        let tile_atoms = [4, 4, 2];
        from_fn(|axis| {
            let spacing = SIDES[axis] / atoms[axis] as f32;
            let jitter = 0.15 * noise::unit(self.seed, 3 * atom as u64 + axis as u64);
            let at = (tile[axis] * tile_atoms[axis] + corner[axis]) as f32 + 0.5 + jitter;
            quantised(at * spacing - SIDES[axis] / 2.0)
        })
    }

    /// Radius, root of the depth, charge. Source: between hydrogen and carbon in the CHARMM force field.
    fn kind(&self, atom: i32) -> [f32; 3] {
        let bits = noise::below(self.seed ^ 1, atom as u64, 4) as f32;
        [0.8 + 0.1 * bits, 0.2 + 0.05 * bits, 2.0 * (bits - 1.5)]
    }

    fn all_atoms(&self) -> i32 {
        self.grid.count() * self.atoms_per_patch
    }

    /// Moves atoms along their forces on the host, like NAMD's integration.
    fn integrate(&self, memory: &Memory) {
        for atom in 0..self.all_atoms() as u64 {
            for axis in 0..3 {
                let force = memory.read(self.sums[axis as usize], atom);
                let at = memory.read(self.atoms, 4 * atom + axis);
                let moved = at + force.clamp(-FARTHEST, FARTHEST).round() * QUANTUM;
                memory.write(self.atoms, 4 * atom + axis, moved);
            }
        }
    }
}

/// Number of result arrays in a step: seven with slow forces, otherwise four.
fn result_arrays(slow: bool) -> usize {
    if slow { 7 } else { 4 }
}

fn quantised(at: f32) -> f32 {
    (at / QUANTUM).round() * QUANTUM
}

/// Adds the forces from a tile's atoms, shifted by `shift`, on one lane's atom.
fn add_tile(own: &AtomTile, lane: u32, other: &AtomTile, shift: [f32; 3], sums: &mut [[f32; MAX_LANES]; 7]) {
    let [x, y, z, charge, radius, depth] = own.each_ref().map(|values| values.lane(lane));
    for at in 0..TILE as u32 {
        let there = other.each_ref().map(|values| values.lane(at));
        let apart: [f32; 3] = from_fn(|axis| [x, y, z][axis] - (there[axis] + shift[axis]));
        let square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2];
        if square < CUTOFF * CUTOFF && square > 0.0 {
            let [fast, energy, slow] =
                PairForce::<f32>::new(square, radius + there[4], depth * there[5], charge * there[3]).values;
            let added = [fast * apart[0], fast * apart[1], fast * apart[2], energy];
            let slowly = apart.map(|along| slow * along);
            for (sum, value) in sums.iter_mut().zip(added.into_iter().chain(slowly)) {
                sum[lane as usize] += value;
            }
        }
    }
}

impl Instance for Patches {
    fn fill(&self, memory: &Memory) {
        for atom in 0..self.all_atoms() {
            let (position, [radius, depth, charge]) = (self.position(atom), self.kind(atom));
            for (word, value) in (4 * atom as u64..).zip(position.into_iter().chain([charge])) {
                memory.write(self.atoms, word, value);
            }
            memory.write(self.parameters, 4 * atom as u64, radius);
            memory.write(self.parameters, 4 * atom as u64 + 1, depth);
            for (axis, at) in (0..).zip(position) {
                let low = 8 * (atom / TILE) as u64 + axis;
                let first = atom % TILE == 0;
                let bound = |corner, pick: fn(f32, f32) -> f32| {
                    let before = memory.read(self.bounds, corner);
                    memory.write(self.bounds, corner, if first { at } else { pick(before, at) });
                };
                bound(low, f32::min);
                bound(low + 4, f32::max);
            }
        }
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.parameters);
        host.copy_to_device(self.bounds);
        for step in 0..self.steps {
            if step > 0 {
                self.integrate(host.memory());
            }
            host.copy_to_device(self.atoms);
            let slow = step.is_multiple_of(SLOW_EVERY);
            let shared_bytes = THREADS * 8 * 4;
            let grid = Grid::new("nonbonded", (self.grid.count() * NEAR) as u64, THREADS).shared_bytes(shared_bytes);
            host.launch_ordered(grid, |cta| self.kernel(cta, slow))?;
            self.sums.into_iter().take(result_arrays(slow)).for_each(|array| host.copy_to_host(array));
        }
        Ok(())
    }

    /// Compares the last step's forces with sums over all atoms and all images, in double precision.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (atoms, kinds) = (memory.to_vec(self.atoms), result_arrays((self.steps - 1).is_multiple_of(SLOW_EVERY)));
        let read = |atom: i32, word: i32| f64::from(atoms[(4 * atom + word) as usize]);
        for atom in 0..self.all_atoms() {
            let [radius, depth, charge] = self.kind(atom).map(f64::from);
            let (mut sums, mut magnitudes) = ([0.0; 7], [0.0; 7]);
            for which in 0..NEAR {
                let (neighbour, shift) = self.neighbour(atom / self.atoms_per_patch, which);
                for other in neighbour * self.atoms_per_patch..(neighbour + 1) * self.atoms_per_patch {
                    let apart: [f64; 3] =
                        from_fn(|axis| read(atom, axis as i32) - read(other, axis as i32) - f64::from(shift[axis]));
                    let square = apart.iter().map(|along| along * along).sum::<f64>();
                    if square >= f64::from(CUTOFF * CUTOFF) || square == 0.0 {
                        continue;
                    }
                    let [other_radius, other_depth, other_charge] = self.kind(other).map(f64::from);
                    let pair = PairForce::<f64>::new(
                        square,
                        radius + other_radius,
                        depth * other_depth,
                        charge * other_charge,
                    );
                    let [fast, energy, slow] = pair.values;
                    let terms = apart.map(|along| fast * along).into_iter().chain([energy]);
                    for (at, term) in terms.chain(apart.map(|along| slow * along)).enumerate() {
                        sums[at] += term;
                        magnitudes[at] += term.abs();
                    }
                }
            }
            for at in 0..kinds {
                let found = memory.read(self.sums[at], atom as u64);
                compare(&format!("force {at} of atom {atom}"), found, sums[at], magnitudes[at])?;
            }
        }
        Ok(())
    }
}
