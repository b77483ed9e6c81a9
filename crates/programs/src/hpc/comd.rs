//! CoMD: molecular dynamics for copper with Lennard-Jones forces and link cells.
//!
//! A time step kicks and moves the atoms, sorts them into cells anew, copies border cells to the halo, and computes
//! forces from the 27 cells around each cell: ten dependent kernels.
//!
//! Each thread handles one cell slot, 64 per cell; threads beyond a cell's atom count exit at once. A parameter selects
//! an atom list instead, with a thread or a warp per atom.

mod atom_list;
mod force;

use self::atom_list::AtomList;
use crate::prelude::*;

/// Threads per CTA if no other number is given. Source: CoMD's CUDA version runs the force kernel with 128.
const THREADS: u32 = 128;
/// Slots per cell. Source: CoMD, `MAXATOMS`.
const SLOTS: i32 = 64;
/// Side length, in ångström, for a unit cell with four copper atoms. Source: CoMD, Lennard-Jones potential.
const LATTICE: f64 = 3.615;
/// The potential's depth in eV and diameter in ångström. Source: CoMD, `initLjPot`.
const DEPTH: f64 = 0.167;
const DIAMETER: f64 = 2.315;
/// Cutoff distance in ångström. Source: CoMD, 2.5 diameters.
const CUTOFF: f64 = 2.5 * DIAMETER;
/// Atom mass in eV fs² / Å². Source: CoMD, 63.55 atomic mass units.
const MASS: f64 = 63.55 * 103.642_695_720_458_62;
/// Largest speed at the start in Å / fs. Source: CoMD's 600 K, as the root mean square for copper.
const SPEED: f64 = 4.85e-3;
/// Atom positions in a unit cell, as fractions along its side. Source: the face-centred cubic lattice.
const BASIS: [[f64; 3]; 4] = [[0.25, 0.25, 0.25], [0.25, 0.75, 0.75], [0.75, 0.25, 0.75], [0.75, 0.75, 0.25]];

program! {
    /// molecular dynamics with link cells: short dependent kernels, halo copies, a gathering force kernel
    pub(crate) static COMD = "comd",
        "CoMD (ExMatEx), Lennard-Jones; HMG Table III (HPC_CoMD-xyz49); NUMA-GPU, Table 2 (HPC-CoMD, -Wa, -Ta)";
    parameters {
        /// unit cells of four atoms along x, at scale 1; scales by the root, at least 4
        x: count(4..=1 << 10) = 49, "HMG Table III: CoMD-xyz49";
        /// unit cells along y, at scale 1; scales by the root, at least 4
        y: count(4..=1 << 10) = 49, "HMG Table III: CoMD-xyz49";
        /// unit cells along z; does not scale, because modules share planes of z
        z: count(4..=1 << 10) = 49, "HMG Table III: CoMD-xyz49";
        /// time steps
        steps: count(1..=100_000) = 2, "assumed: CoMD runs 100, all alike";
        /// length of a time step in fs
        femtoseconds: count(1..=20) = 1, "CoMD, `--dt`";
        /// a thread a slot of a cell; a thread an atom of a list; a warp an atom, a thread where atoms only move
        mapping: choice("slot", "thread", "warp") = "slot",
            "CoMD's CUDA version: `cta_cell`, `thread_atom`, `warp_atom`";
        /// threads of a CTA of kernels over slots; where atoms are listed, of the force kernel alone
        threads: one_of(128, 256, 480, 512, 1024) = 128, "assumed; CoMD's CUDA version runs the force kernel with 128";
    }
    lay_out(name, request, memory) {
        let mut side = |name| request.fit_least(name, request.scale.side_of(request.values.count(name)), 4) as i32;
        let [x, y] = ["x", "y"].map(&mut side);
        let lattice = CellGrid { x, y, z: z as i32 };
        let along = |units: i32| (f64::from(units) * LATTICE / CUTOFF) as i32;
        let inner = CellGrid { x: along(lattice.x), y: along(lattice.y), z: along(lattice.z) };
        let outer = CellGrid { x: inner.x + 2, y: inner.y + 2, z: inner.z + 2 };
        let cells = outer.x as u64 * outer.y as u64 * outer.z as u64;
        check_indices(name, cells * SLOTS as u64, "slots of link cells")?;
        let names = ["rx", "ry", "rz", "px", "py", "pz", "id", "species", "count"];
        let sorted = ["rx2", "ry2", "rz2", "px2", "py2", "pz2", "id2", "species2", "count2"];
        let atoms = Atoms::lay_out(memory, names, cells);
        let moved = Atoms::lay_out(memory, sorted, cells);
    }
    struct Simulation {
        atoms: Atoms,
        /// Atoms in their new cells, not yet sorted.
        moved: Atoms,
        force: [Array<f64>; 3]["fx", "fy", "fz"; cells * SLOTS as u64],
        energy: Array<f64>[cells * SLOTS as u64],
        /// Mass per species.
        mass: Array<f64>[1, fixed],
        listed: Option<AtomList> = AtomList::lay_out(&request.values, memory, 4 * lattice.count() as u64),
        /// Threads per CTA for a kernel over slots.
        threads: u32 = if mapping == "slot" { threads as u32 } else { THREADS },
        /// Box dimensions in unit cells.
        lattice: CellGrid,
        /// Link cell grid without the halo.
        inner: CellGrid,
        /// Link cells including the halo, one layer on each side.
        outer: CellGrid,
        steps: u64,
        time: f64 = femtoseconds as f64,
        seed: u64 = request.seed,
    }
}

/// Atom data by slot, and the atom count per cell.
struct Atoms {
    position: [Array<f64>; 3],
    momentum: [Array<f64>; 3],
    id: Array<u32>,
    species: Array<u32>,
    count: Array<u32>,
}

impl Atoms {
    fn lay_out(memory: &mut Memory, names: [&str; 9], cells: u64) -> Atoms {
        let slots = cells * SLOTS as u64;
        let mut reals = |at: usize| [0, 1, 2].map(|axis| memory.array(names[at + axis], slots, Scaling::Scales));
        let (position, momentum) = (reals(0), reals(3));
        let mut whole = |at: usize, len| memory.array(names[at], len, Scaling::Scales);
        Atoms { position, momentum, id: whole(6, slots), species: whole(7, slots), count: whole(8, cells) }
    }

    /// Copies an atom, with position, momentum, id and species, to a slot in the other arrays.
    fn copy_atom(&self, warp: &mut Warp<'_>, from: Lanes<i32>, to: &Atoms, slot: Lanes<i32>) {
        for (source, target) in self.position.iter().zip(to.position).chain(self.momentum.iter().zip(to.momentum)) {
            let value = warp.load(*source, from);
            warp.store(target, slot, value);
        }
        for (source, target) in [(self.id, to.id), (self.species, to.species)] {
            let value = warp.load(source, from);
            warp.store(target, slot, value);
        }
    }
}

type RecordResult = Result<(), RecordError>;

/// Force divided by distance, and energy, for a pair whose squared distance `square` lies below the cutoff.
fn lennard_jones(square: f64) -> (f64, f64) {
    let inverse = 1.0 / square;
    let sixth = (DIAMETER * DIAMETER * inverse).powi(3);
    let shift = (DIAMETER / CUTOFF).powi(6);
    let energy = 4.0 * DEPTH * (sixth * (sixth - 1.0) - shift * (shift - 1.0));
    (4.0 * DEPTH * sixth * inverse * (12.0 * sixth - 6.0), energy)
}

impl Simulation {
    /// Side lengths, in ångström, for the periodic box.
    fn lengths(&self) -> [f64; 3] {
        [self.lattice.x, self.lattice.y, self.lattice.z].map(|units| f64::from(units) * LATTICE)
    }

    fn sides(cells: CellGrid) -> [i32; 3] {
        [cells.x, cells.y, cells.z]
    }

    /// Runs `body(warp, slot, cell's coordinates in the halo's grid, place in the cell)` for each slot in a box with
    /// link cells. The box's first cell lies at `corner` in the halo's grid; threads beyond the last slot do nothing.
    fn each_slot(
        &self,
        cta: &mut Cta<'_>,
        cells: CellGrid,
        corner: [i32; 3],
        body: impl Fn(&mut Warp<'_>, Lanes<i32>, [Lanes<i32>; 3], Lanes<i32>),
    ) {
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            let (cell, place) = (thread / SLOTS, thread % SLOTS);
            warp.when(cell.lt(cells.count()), |warp| {
                let [x, y, z] = cells.lane_coordinates(warp, cell);
                let at = [x + corner[0], y + corner[1], z + corner[2]];
                let cell = self.outer.indices(warp, at);
                body(warp, cell * SLOTS + place, at, place);
            });
        });
    }

    /// Launch grid for a kernel over the slots in `cells`.
    fn grid(&self, name: &str, cells: CellGrid) -> Grid {
        let slots = cells.count() as u64 * SLOTS as u64;
        Grid::new(name, slots.div_ceil(u64::from(self.threads)), self.threads)
    }

    /// Runs `body(warp, slot)` for each atom in `atoms` inside the halo.
    fn each_atom(&self, cta: &mut Cta<'_>, atoms: &Atoms, body: impl Fn(&mut Warp<'_>, Lanes<i32>)) {
        self.each_slot(cta, self.inner, [1; 3], |warp, slot, _, place| {
            let count = warp.load(atoms.count, slot / SLOTS);
            warp.when(place.cast::<u32>().lt(count), |warp| body(warp, slot));
        });
    }

    fn kick(&self, warp: &mut Warp<'_>, slot: Lanes<i32>) {
        for axis in 0..3 {
            let force = warp.load(self.force[axis], slot);
            let momentum = warp.load(self.atoms.momentum[axis], slot) + force * (0.5 * self.time);
            let momentum = warp.compute(ComputeClass::Fp64, 1, momentum);
            warp.store(self.atoms.momentum[axis], slot, momentum);
        }
    }

    fn drift(&self, warp: &mut Warp<'_>, slot: Lanes<i32>) {
        let species = warp.load(self.atoms.species, slot);
        let mass = warp.load(self.mass, species);
        let slowness = warp.compute(ComputeClass::Fp64, 1, mass.map(|mass| self.time / mass));
        for axis in 0..3 {
            let momentum = warp.load(self.atoms.momentum[axis], slot);
            let position = warp.load(self.atoms.position[axis], slot) + momentum * slowness;
            let position = warp.compute(ComputeClass::Fp64, 1, position);
            warp.store(self.atoms.position[axis], slot, position);
        }
    }

    /// Coordinate wrapped into the periodic box.
    fn wrapped(&self, axis: usize, at: f64) -> f64 {
        let length = self.lengths()[axis];
        let inside = at - length * (at / length).floor();
        if inside < length { inside } else { 0.0 }
    }

    /// Link cell along an axis, counted in the halo's grid.
    fn cell_along(&self, axis: usize, at: f64) -> i32 {
        let cells = Self::sides(self.inner)[axis];
        ((at / self.lengths()[axis] * f64::from(cells)) as i32).min(cells - 1) + 1
    }

    /// Moves an atom to the next free slot in its current cell.
    fn link(&self, warp: &mut Warp<'_>, slot: Lanes<i32>) {
        let position = [0, 1, 2].map(|axis| {
            let at = warp.load(self.atoms.position[axis], slot).map(|at| self.wrapped(axis, at));
            let at = warp.compute(ComputeClass::Fp64, 4, at);
            warp.store(self.atoms.position[axis], slot, at);
            at
        });
        let place = [0, 1, 2].map(|axis| position[axis].map(|at| self.cell_along(axis, at)));
        let place = warp.compute(ComputeClass::Fp64, 6, place);
        let cell = self.outer.indices(warp, place);
        let next = warp.atomic(Reduction::Add, self.moved.count, cell, 1, Order::relaxed(Scope::Sys));
        let to = warp.compute(ComputeClass::Int, 1, cell * SLOTS + next.cast::<i32>());
        self.atoms.copy_atom(warp, slot, &self.moved, to);
    }

    /// Writes a cell's atoms back in id order, so that the atomics' order leaves no trace.
    fn sort(&self, cta: &mut Cta<'_>) {
        self.each_slot(cta, self.inner, [1; 3], |warp, slot, _, place| {
            let cell = slot / SLOTS;
            let count = warp.load(self.moved.count, cell);
            warp.when(place.eq(0), |warp| warp.store(self.atoms.count, cell, count));
            warp.when(place.cast::<u32>().lt(count), |warp| {
                let own = warp.load(self.moved.id, slot);
                let mut rank = Lanes::all(0);
                warp.repeat(count, |warp, other| {
                    let id = warp.load(self.moved.id, cell * SLOTS + other as i32);
                    let higher = warp.compute(ComputeClass::Int, 2, rank + id.lt(own).map(i32::from));
                    rank = warp.update(rank, higher);
                });
                self.moved.copy_atom(warp, slot, &self.atoms, cell * SLOTS + rank);
            });
        });
    }

    /// Fills the halo's cells on both sides along `axis` with atoms from the opposite side, shifted by the box length.
    /// Along earlier axes, the halo is already full.
    fn exchange(&self, host: &mut Host<'_>, axis: usize) -> RecordResult {
        let mut size = Self::sides(self.outer);
        let mut corner = [0; 3];
        for later in axis..3 {
            size[later] = Self::sides(self.inner)[later];
            corner[later] = 1;
        }
        (size[axis], corner[axis]) = (2, 0);
        let face = CellGrid { x: size[0], y: size[1], z: size[2] };
        let (last, length) = (Self::sides(self.inner)[axis], self.lengths()[axis]);
        host.launch(self.grid("halo", face), |cta| {
            self.each_slot(cta, face, corner, |warp, _, at, place| {
                // Along the axis, `at` is 0 or 1 and selects the halo's first or last cell.
                let low = at[axis].eq(0);
                let (mut to, mut from) = (at, at);
                to[axis] = low.select(Lanes::all(0), Lanes::all(last + 1));
                from[axis] = low.select(Lanes::all(last), Lanes::all(1));
                let shift = low.select(Lanes::all(-length), Lanes::all(length));
                let (to, from) = (self.outer.indices(warp, to), self.outer.indices(warp, from));
                let count = warp.load(self.atoms.count, from);
                warp.when(place.eq(0), |warp| warp.store(self.atoms.count, to, count));
                warp.when(place.cast::<u32>().lt(count), |warp| {
                    let (source, target) = (from * SLOTS + place, to * SLOTS + place);
                    for (along, array) in self.atoms.position.into_iter().enumerate() {
                        let position = warp.load(array, source);
                        let shifted = if along == axis { position + shift } else { position };
                        let shifted = warp.compute(ComputeClass::Fp64, 1, shifted);
                        warp.store(array, target, shifted);
                    }
                    let (id, species) = (warp.load(self.atoms.id, source), warp.load(self.atoms.species, source));
                    warp.store(self.atoms.id, target, id);
                    warp.store(self.atoms.species, target, species);
                });
            });
        })
    }

    /// Initial position and momentum per atom, by id. The perfect lattice exerts no force.
    fn start(&self) -> Vec<[[f64; 3]; 2]> {
        let unit = |cell: i32, basis: usize| {
            let place = self.lattice.coordinates(cell);
            let id = cell as u64 * 4 + basis as u64;
            let position = [0, 1, 2].map(|axis| (f64::from(place[axis]) + BASIS[basis][axis]) * LATTICE);
            let speed = |axis| SPEED * f64::from(noise::unit(self.seed, 3 * id + axis));
            [position, [0, 1, 2].map(|axis| MASS * speed(axis))]
        };
        (0..self.lattice.count()).flat_map(|cell| (0..4).map(move |basis| unit(cell, basis))).collect()
    }

    /// Force and energy per atom over all pairs, each with its nearest image; an atom gets half the energy per pair.
    fn reference_forces(&self, atoms: &[[[f64; 3]; 2]]) -> Vec<[f64; 4]> {
        let lengths = self.lengths();
        let force = |own: &[[f64; 3]; 2]| {
            let mut sum = [0.0; 4];
            for other in atoms {
                let apart = [0, 1, 2].map(|axis| {
                    let along = own[0][axis] - other[0][axis];
                    along - lengths[axis] * (along / lengths[axis]).round()
                });
                let square = apart.iter().map(|along| along * along).sum::<f64>();
                if square > 0.0 && square < CUTOFF * CUTOFF {
                    let (strength, energy) = lennard_jones(square);
                    (0..3).for_each(|axis| sum[axis] += apart[axis] * strength);
                    sum[3] += 0.5 * energy;
                }
            }
            sum
        };
        atoms.iter().map(force).collect()
    }
}

impl Instance for Simulation {
    fn fill(&self, memory: &Memory) {
        memory.write(self.mass, 0, MASS);
        for (id, [position, momentum]) in (0..).zip(self.start()) {
            let cell = self.outer.index([0, 1, 2].map(|axis| self.cell_along(axis, position[axis]))) as u64;
            let place = memory.read(self.atoms.count, cell);
            memory.write(self.atoms.count, cell, place + 1);
            let slot = cell * SLOTS as u64 + u64::from(place);
            for axis in 0..3 {
                memory.write(self.atoms.position[axis], slot, position[axis]);
                memory.write(self.atoms.momentum[axis], slot, momentum[axis]);
            }
            memory.write(self.atoms.id, slot, id);
        }
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.atoms.position.into_iter().chain(self.atoms.momentum).for_each(|array| host.copy_to_device(array));
        [self.atoms.id, self.atoms.species, self.atoms.count].into_iter().for_each(|array| host.copy_to_device(array));
        let inner = self.inner;
        self.list_atoms(host)?;
        for _ in 0..self.steps {
            self.advance(host, "advance-velocity", |warp, slot| self.kick(warp, slot))?;
            self.advance(host, "advance-position", |warp, slot| self.drift(warp, slot))?;
            let cells = self.outer.count();
            let ctas = (cells as u64).div_ceil(u64::from(THREADS));
            host.launch(Grid::new("clear-counts", ctas, THREADS), |cta| {
                cta.each_warp(|warp| {
                    let cell = warp.global_thread();
                    warp.when(cell.lt(cells), |warp| warp.store(self.moved.count, cell, 0));
                });
            })?;
            host.launch_ordered(self.grid("link-cells", inner), |cta| {
                self.each_atom(cta, &self.atoms, |warp, slot| self.link(warp, slot));
            })?;
            host.launch(self.grid("sort-cells", inner), |cta| self.sort(cta))?;
            (0..3).try_for_each(|axis| self.exchange(host, axis))?;
            self.list_atoms(host)?;
            self.launch_force(host)?;
            self.advance(host, "advance-velocity", |warp, slot| self.kick(warp, slot))?;
        }
        self.atoms.position.into_iter().chain(self.atoms.momentum).for_each(|array| host.copy_to_host(array));
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut atoms = self.start();
        let mut force = vec![[0.0; 4]; atoms.len()];
        for _ in 0..self.steps {
            for (atom, force) in atoms.iter_mut().zip(&force) {
                for axis in 0..3 {
                    atom[1][axis] += force[axis] * 0.5 * self.time;
                    atom[0][axis] = self.wrapped(axis, atom[0][axis] + atom[1][axis] * self.time / MASS);
                }
            }
            force = self.reference_forces(&atoms);
            for (atom, force) in atoms.iter_mut().zip(&force) {
                (0..3).for_each(|axis| atom[1][axis] += force[axis] * 0.5 * self.time);
            }
        }
        let mut found = vec![[[f64::NAN; 3]; 2]; atoms.len()];
        let mut found_force = vec![[f64::NAN; 4]; atoms.len()];
        for cell in (0..self.inner.count()).map(|cell| self.outer.index(self.inner.coordinates(cell).map(|at| at + 1)))
        {
            for place in 0..memory.read(self.atoms.count, cell as u64) {
                let slot = cell as u64 * SLOTS as u64 + u64::from(place);
                let read = |arrays: [Array<f64>; 3]| arrays.map(|array| memory.read(array, slot));
                let (id, species) = (memory.read(self.atoms.id, slot) as usize, memory.read(self.atoms.species, slot));
                if species != 0 {
                    return Err(format!("atom {id} is of species {species}, of which there is one, 0"));
                }
                found[id] = [read(self.atoms.position), read(self.atoms.momentum)];
                let [x, y, z] = read(self.force);
                found_force[id] = [x, y, z, memory.read(self.energy, slot)];
            }
        }
        compare_f64("coordinate", found.as_flattened().as_flattened(), atoms.as_flattened().as_flattened())?;
        compare_f64("force or energy", found_force.as_flattened(), force.as_flattened())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::scale::Scale;
    use tombolo_workload::simt::Backing;

    #[test]
    fn atoms_change_cells_in_a_small_instance() {
        // With seven unit cells, a plane with atoms lies on the border between two cells in the row with four link
        // cells.
        let given = [("x", "4"), ("y", "4"), ("z", "7"), ("femtoseconds", "20")];
        let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let mut request = Request::new(&COMD, Scale::FULL, &given, 7).unwrap();
        let mut memory = Memory::new(Backing::Real);
        let simulation = Simulation::lay_out("comd", &mut request, &mut memory).unwrap();
        let ids = |memory: &Memory| {
            let cells = 0..simulation.outer.count() as u64;
            let atoms = cells.map(|cell| (cell * SLOTS as u64, memory.read(simulation.atoms.count, cell)));
            let id = |(first, count): (u64, u32)| {
                (0..u64::from(count)).map(move |place| memory.read(simulation.atoms.id, first + place)).collect()
            };
            atoms.map(id).collect::<Vec<Vec<u32>>>()
        };
        simulation.fill(&memory);
        let before = ids(&memory);
        simulation.run(&mut Host::new(&memory, &RecordOptions::default())).unwrap();
        let inner = |cell: i32| simulation.outer.index(simulation.inner.coordinates(cell).map(|at| at + 1)) as usize;
        let after = ids(&memory);
        assert!((0..simulation.inner.count()).map(inner).any(|cell| before[cell] != after[cell]));
    }
}
