//! SNAP: discrete-ordinates transport. For each direction octant, a wavefront of kernels sweeps the mesh, one kernel
//! per diagonal plane.
//!
//! A warp's lanes are the angles for one cell and one energy group. A CTA has eight cells in a plane and one group. A
//! group's CTAs are consecutive, and its part in each array is contiguous: modules own groups, and no plane's cells are
//! shared between modules. Source: lanl/SNAP, sweep.f90 (threads sweep separate groups, in the outermost loop) and
//! solvar.f90 (the group is the slowest index in every array). In its CUDA port (ports/legion) a kernel also has one
//! group.
//!
//! Scattering is isotropic (`nmom` = 1), assumed for simplicity. Not modelled: the fix-up for negative fluxes (SNAP's
//! `fixup`), because branches would then depend on data.

use crate::prelude::*;

/// Number of direction octants.
const OCTANTS: i32 = 8;
/// Inverse time step times inverse velocity (SNAP's `vdelt`). Source: assumed; no address depends on it.
const TIME: f64 = 0.5;

program! {
    /// discrete-ordinates sweep: hundreds of dependent kernels along diagonal planes
    pub(crate) static SNAP = "snap",
        "SNAP (Zerr and Baker, LAUR-13-21070); HMG Table III (HPC_snap); NUMA-GPU, Table 2 (HPC-SNAP)";
    properties: data_independent;
    parameters {
        /// cells along each side of the mesh; does not scale, so that wavefronts keep their length
        side: count(1..=256) = 30, "assumed: with 32 angles and groups, the cube nearest the 3.44 GB of HMG Table III";
        /// angles of an octant
        angles: one_of(8, 16, 32) = 32, "assumed: a warp of them (`nang`)";
        /// energy groups, at scale 1; scales
        groups: count(1..=512) = 32, "assumed: tens of groups, as many as angles (`ng`)";
        /// octants of a sweep, the first ones; each is a wavefront over the whole mesh
        octants: count(1..=OCTANTS as u64) = 8, "SNAP: all directions";
        /// sweeps over the octants (SNAP's inner iterations)
        sweeps: count(1..=1000) = 1, "assumed: eight octants over the same cells are a steady state already";
        /// threads of a CTA
        threads: one_of(256, 512) = 256, "assumed, the usual size where a warp has one cell";
    }
    lay_out(name, request, memory) {
        let groups = request.scale.of(groups);
        let cells = side.pow(3) * groups;
        let largest = cells * angles * OCTANTS as u64;
        check_indices(name, largest, "angular fluxes")?;
        let edge = side * side * groups * angles;
        let side = side as i32;
    }
    struct Transport {
        /// Angular flux before and after the time step: `[group][octant][z][y][x][angle]` (`ptr_in`, `ptr_out`).
        flux: [Array<f64>; 2]["flux_in", "flux_out"; largest],
        /// Inverse denominators, `[group][z][y][x][angle]` (`dinv`).
        inverse: Array<f64>[cells * angles],
        /// Isotropic source, `[group][z][y][x]` (`qtot` with one moment).
        source: Array<f64>[cells],
        /// Flux summed over all angles, `[group][z][y][x]` (`flux`).
        scalar: Array<f64>[cells],
        /// Fluxes into the next cell along each axis, `[group][plane of the other two][angle]` (`psii` …).
        edges: [Array<f64>; 3]["edge_x", "edge_y", "edge_z"; edge],
        /// Cosines along each axis and weight for each angle, `[4][angle]`.
        angle: Array<f64>[4 * angles, fixed],
        cells: CellGrid = CellGrid { x: side, y: side, z: side },
        angles, groups, octants: i32,
        threads: u32,
        sweeps: u64,
        seed: u64 = request.seed,
    }
}

/// A diagonal plane in an octant's sweep.
struct DiagonalPlane<'a> {
    transport: &'a Transport,
    octant: i32,
    /// Cells in the plane.
    members: &'a [i32],
}

/// Angle, cell and group handled by each lane in a warp.
struct SweepPoint {
    angle: Lanes<i32>,
    /// Cell index, including the group's offset.
    cell: Lanes<i32>,
    place: [Lanes<i32>; 3],
    group: i32,
}

impl Transport {
    /// Number of cells per CTA.
    fn per_cta(&self) -> u64 {
        u64::from(self.threads) / self.angles as u64
    }

    /// Cells reached by the sweep for `octant` after `distance` steps.
    fn plane(&self, octant: i32, distance: i32) -> Vec<i32> {
        let side = self.cells.x;
        let turned = |axis: i32, at: i32| if octant >> axis & 1 == 0 { at } else { side - 1 - at };
        let mut members = Vec::new();
        for z in 0..side {
            for y in 0..side {
                let x = distance - y - z;
                if (0..side).contains(&x) {
                    members.push(self.cells.index([turned(0, x), turned(1, y), turned(2, z)]));
                }
            }
        }
        members
    }

    /// Coordinate along `axis` at the inflow side for `octant`.
    fn inflow(&self, octant: i32, axis: usize) -> i32 {
        if octant >> axis & 1 == 0 { 0 } else { self.cells.x - 1 }
    }

    /// Index for the lane's angle on the edge across `axis`.
    fn edge(&self, point: &SweepPoint, axis: usize) -> Lanes<i32> {
        let [x, y, z] = point.place;
        let (fast, slow) = [(y, z), (x, z), (x, y)][axis];
        ((slow + point.group * self.cells.x) * self.cells.x + fast) * self.angles + point.angle
    }

    fn start(&self, which: u64, index: u64) -> f64 {
        f64::from(noise::unit(self.seed ^ which, index)) * 0.5 + 0.75
    }

    /// Cosine along an axis (0 to 2) or weight (3) for an angle.
    fn direction(&self, which: u64, angle: u64) -> f64 {
        (1.0 + angle as f64) / (2.0 + which as f64 + f64::from(self.angles))
    }

    /// Inverse of the total loss for an angle in a cell (`dinv`); `index` counts angles, cells, groups.
    fn inverse(&self, index: u64) -> f64 {
        let angle = index % self.angles as u64;
        let total = 1.0 + self.start(4, index / self.angles as u64);
        1.0 / (total + TIME + (0..3).map(|axis| self.direction(axis, angle)).sum::<f64>())
    }
}

impl DiagonalPlane<'_> {
    /// Number of CTAs per group.
    fn chunks(&self) -> u64 {
        (self.members.len() as u64).div_ceil(self.transport.per_cta())
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        let transport = self.transport;
        let per_cta = transport.per_cta() as i32;
        let chunks = self.chunks() as i32;
        let group = cta.index() as i32 / chunks;
        let first = cta.index() as i32 % chunks * per_cta;
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let member = warp.compute(ComputeClass::Int, 3, thread / transport.angles + first);
            warp.when(member.lt(self.members.len() as i32), |warp| {
                // The list with a plane's cells is a launch argument, in constant memory.
                let cell = member.pick(self.members);
                let place = transport.cells.lane_coordinates(warp, cell);
                let angle = thread % transport.angles;
                self.cell(warp, &SweepPoint { angle, cell: cell + group * transport.cells.count(), place, group });
            });
        });
    }

    /// Computes the diamond-difference balance for one cell, one angle per lane.
    fn cell(&self, warp: &mut Warp<'_>, point: &SweepPoint) {
        let transport = self.transport;
        let cosine = [0, 1, 2].map(|axis| warp.load(transport.angle, point.angle + axis * transport.angles));
        let at = warp.compute(ComputeClass::Int, 6, point.cell * transport.angles + point.angle);
        let source = warp.load(transport.source, point.cell);
        let edges = [0, 1, 2].map(|axis| self.incoming(warp, point, axis));
        // `ptr` has the octant between group and cell: the cells in successive groups lie eight times as far apart.
        let cells = transport.cells.count();
        let offset = (point.group * (OCTANTS - 1) + self.octant) * cells * transport.angles;
        let before = warp.load(transport.flux[0], at + offset);
        let inverse = warp.load(transport.inverse, at);
        let gain = edges.into_iter().zip(cosine).fold(source, |sum, (edge, cosine)| sum + edge * cosine);
        let flux = warp.compute(ComputeClass::Fp64, 5, (gain + before * TIME) * inverse);
        for (axis, edge) in edges.into_iter().enumerate() {
            let out = warp.compute(ComputeClass::Fp64, 1, flux * 2.0 - edge);
            warp.store(transport.edges[axis], transport.edge(point, axis), out);
        }
        let after = warp.compute(ComputeClass::Fp64, 1, flux * 2.0 - before);
        warp.store(transport.flux[1], at + offset, after);
        self.add_scalar(warp, point, flux);
    }

    /// Loads the flux that enters along `axis`: zero at the mesh border.
    fn incoming(&self, warp: &mut Warp<'_>, point: &SweepPoint, axis: usize) -> Lanes<f64> {
        let transport = self.transport;
        let inside = point.place[axis].ne(transport.inflow(self.octant, axis));
        let place = warp.compute(ComputeClass::Int, 3, transport.edge(point, axis));
        let mut flux = Lanes::all(0.0);
        warp.when(inside, |warp| {
            let loaded = warp.load(transport.edges[axis], place);
            flux = warp.update(flux, loaded);
        });
        flux
    }

    /// Sums over the angles in each cell; the cell's first lane adds the sum.
    fn add_scalar(&self, warp: &mut Warp<'_>, point: &SweepPoint, flux: Lanes<f64>) {
        let transport = self.transport;
        let weight = warp.load(transport.angle, point.angle + 3 * transport.angles);
        let weighted = warp.compute(ComputeClass::Fp64, 1, flux * weight);
        let sum = warp.sum_lanes(ComputeClass::Fp64, weighted, transport.angles as u32);
        warp.when(point.angle.eq(0), |warp| {
            let sum = warp.load(transport.scalar, point.cell) + sum;
            let sum = warp.compute(ComputeClass::Fp64, 1, sum);
            warp.store(transport.scalar, point.cell, sum);
        });
    }
}

impl Instance for Transport {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.flux[0], |index| self.start(1, index));
        memory.fill(self.source, |index| self.start(2, index));
        memory.fill(self.inverse, |index| self.inverse(index));
        let angles = self.angles as u64;
        memory.fill(self.angle, |index| self.direction(index / angles, index % angles));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for array in [self.flux[0], self.source, self.inverse, self.angle] {
            host.copy_to_device(array);
        }
        for _ in 0..self.sweeps {
            for octant in 0..self.octants {
                for distance in 0..=3 * (self.cells.x - 1) {
                    let members = self.plane(octant, distance);
                    let plane = DiagonalPlane { transport: self, octant, members: &members };
                    let ctas = plane.chunks() * self.groups as u64;
                    host.launch(Grid::new("snap-sweep", ctas, self.threads), |cta| plane.kernel(cta))?;
                }
            }
        }
        host.copy_to_host(self.scalar);
        Ok(())
    }

    /// Sweeps cell by cell in the order for each octant, angle by angle.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (cells, angles) = (self.cells.count() as usize, self.angles as usize);
        let side = self.cells.x as usize;
        let mut scalar = vec![0.0; cells * self.groups as usize];
        let mut after = vec![0.0; self.flux[0].len() as usize];
        let octants = (0..self.sweeps).flat_map(|_| 0..self.octants);
        for (octant, group) in octants.flat_map(|octant| (0..self.groups as usize).map(move |group| (octant, group))) {
            let mut edges = [(); 3].map(|()| vec![0.0; side * side * angles]);
            let members = (0..=3 * (self.cells.x - 1)).flat_map(|distance| self.plane(octant, distance));
            for (cell, angle) in members.flat_map(|cell| (0..angles).map(move |angle| (cell as usize, angle))) {
                let [x, y, z] = self.cells.coordinates(cell as i32).map(|at| at as usize);
                let at = [z * side + y, z * side + x, y * side + x].map(|at| at * angles + angle);
                let whole = group * cells + cell;
                let place = ((group * OCTANTS as usize + octant as usize) * cells + cell) * angles + angle;
                let before = self.start(1, place as u64);
                let gain = (0..3).map(|axis| edges[axis][at[axis]] * self.direction(axis as u64, angle as u64));
                let balance = self.start(2, whole as u64) + TIME * before + gain.sum::<f64>();
                let flux = balance * self.inverse((whole * angles + angle) as u64);
                (0..3).for_each(|axis| edges[axis][at[axis]] = 2.0 * flux - edges[axis][at[axis]]);
                after[place] = 2.0 * flux - before;
                scalar[whole] += flux * self.direction(3, angle as u64);
            }
        }
        compare_f64("scalar flux", &memory.to_vec(self.scalar), &scalar)?;
        compare_f64("angular flux", &memory.to_vec(self.flux[1]), &after)
    }
}

#[cfg(test)]
mod tests {
    use crate::find;
    use tombolo_types::stream::{CtaStream, Op, Program};
    use tombolo_workload::bench::{Mode, Request, record};
    use tombolo_workload::record::RecordOptions;
    use tombolo_workload::scale::Scale;

    #[test]
    fn a_quarter_of_the_ctas_stores_a_quarter_of_the_groups() {
        let given = [("side", "8"), ("angles", "8"), ("groups", "4"), ("octants", "1")];
        let given = given.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let workload = find("snap").unwrap();
        let request = Request::new(workload, Scale::FULL, &given, 7).unwrap();
        let recording = record(workload, &request, &RecordOptions::default(), Mode::Verify).unwrap();
        let line = recording.line_size();
        let mut stream = CtaStream::default();
        let mut stores = 0;
        for (kernel, info) in (0..).zip(recording.kernels()) {
            for cta in 0..info.ctas {
                recording.cta(kernel, cta, &mut stream).unwrap();
                for op in &stream.ops {
                    let Op::Store { accesses, .. } = op else { continue };
                    for access in &stream.accesses[accesses.range()] {
                        let address = line.address_of(access.line);
                        let mut arrays = recording.arrays().iter();
                        let array = arrays.find(|array| array.addresses().contains(&address)).unwrap();
                        let quarter = (address - array.base) * 4 / array.bytes;
                        assert_eq!(quarter, u64::from(cta * 4 / info.ctas), "{}", array.name);
                        stores += 1;
                    }
                }
            }
        }
        assert!(stores > 1000);
    }
}
