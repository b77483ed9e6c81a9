//! LULESH: a blast wave in a gas cube, by Lagrangian hydrodynamics on hexahedra.
//!
//! A step sums the forces from stress and hourglass modes at element corners, gathers them at the nodes, and moves the
//! nodes. It then finds each element's strain, artificial viscosity, energy and pressure. The host picks the shortest
//! step that any element allows. Tables map elements to nodes, nodes to corners, and elements to neighbours.
//!
//! Three programs share the formulas, the mesh and the reference:
//!
//! - `lulesh` is NVIDIA's CUDA port of LULESH 2.0 with `-s`: twelve launches a step. Two of the kernels walk the
//!   elements region by region.
//! - `lulesh-unstructured` is the CUDA port with `-u`. The mesh is numbered in shells around the blast, as in the
//!   port's file `sedov21oct.lmesh`.
//! - `lulesh-hip` is the HIP port of LULESH 1.0 in gem5-resources, run by CPElide. It has no regions, and a kernel for
//!   each part in the equation of state.

mod fused;
mod kernels;
mod mesh;
mod physics;
mod reference;
mod regions;
mod separate;

use crate::prelude::*;
use fused::Fused;
use mesh::{CORNERS, FACES, HexMesh, NumberingScheme};
use separate::Separate;

/// Box side along z. Source: LULESH 2.0 (`BuildMesh`).
const SIDE: f64 = 1.125;
/// Blast energy for 45 elements along the side. Source: LULESH 2.0 (`ebase`).
const BLAST: f64 = 3.948_746e7;

parameters! {
    /// elements along each side, at scale 1; x and y scale by the root, z does not, for modules share planes of z
    const EDGE = side: count(2..=256) = 98,
        "NUMA-GPU, Table 2 (HPC-Lulesh): the only side within 5 % of its 12,202 CTAs and 10 % of its 578 MB";
    /// steps in time
    const STEPS = steps: count(1..=100_000) = 2, "assumed: all launch the same kernels over the same mesh";
    /// regions that the elements are dealt to in short runs; kernels walk elements region by region
    const REGIONS = regions: count(1..=100) = 11, "LULESH 2.0 (`-r`) and its CUDA port";
}

program! {
    // LULESH 2.0 with regular numbering.
    /// Lagrangian hydrodynamics: gathers between elements and nodes, and elements in the order of regions
    pub(crate) static LULESH = "lulesh",
        "LULESH 2.0 (LLNL-TR-641973), its CUDA port (e-ago/lulesh2-cuda-async); NUMA-GPU, Table 2 (HPC-Lulesh)";
    properties: data_independent;
    parameters {
        EDGE;
        REGIONS;
        STEPS;
    }
    lay_out: |name, request, memory| {
        let regions = request.values.count("regions") as i32;
        Ok(Box::new(Domain::lay_out(memory, name, request, NumberingScheme::Rows, Some(regions))?))
    };
}

program! {
    // LULESH 2.0 on a mesh numbered in shells.
    /// Lagrangian hydrodynamics on a mesh that is numbered in shells around the blast
    pub(crate) static LULESH_UNSTRUCTURED = "lulesh-unstructured",
        "LULESH 2.0 (LLNL-TR-641973), its CUDA port (e-ago/lulesh2-cuda-async) with a mesh from a file; NUMA-GPU, \
        Table 2 (HPC-Lulesh-Unstruct)";
    properties: data_independent;
    parameters {
        EDGE = 32,
            "the CUDA port's `sedov21oct.lmesh` has 31,408 elements; 72 is NUMA-GPU's HPC-Lulesh-Unstruct-Mesh2";
        REGIONS;
        STEPS;
    }
    lay_out: |name, request, memory| {
        let regions = request.values.count("regions") as i32;
        Ok(Box::new(Domain::lay_out(memory, name, request, NumberingScheme::Shells, Some(regions))?))
    };
}

program! {
    // LULESH 1.0.
    /// Lagrangian hydrodynamics in many small kernels, which hand arrays of a step to each other
    pub(crate) static LULESH_HIP = "lulesh-hip",
        "LULESH 1.0 (LLNL-TR-490254), its HIP port in gem5-resources; CPElide, Table II (Lulesh)";
    properties: data_independent;
    parameters {
        EDGE = 45, "gem5-resources, `lulesh.hip.cc` (`edgeElems`)";
        STEPS = 10,
            "gem5-resources, `lulesh.hip.cc`: the second of its arguments `1.0e-2 10`, which CPElide's Table II names";
    }
    lay_out: |name, request, memory| Ok(Box::new(Domain::lay_out(memory, name, request, NumberingScheme::Rows, None)?));
}

type Field = Array<f64>;
type RecordResult = Result<(), RecordError>;

/// A program's kernels, with the arrays that no other version has.
enum Version {
    /// LULESH 2.0 in CUDA.
    Fused(Fused),
    /// LULESH 1.0 in HIP.
    Separate(Separate),
}

arrays! {
    lay_out(memory, name: &'static str, request: &mut Request, order: NumberingScheme, regions: Option<i32>) {
        let side = request.values.count("side");
        let along = request.fit_least("side", request.scale.side_of(side), 2);
        check_indices(name, (along + 1) * (along + 1) * (side + 1) * CORNERS as u64, "corners")?;
        let mesh = HexMesh::new([along as i32, along as i32, side as i32], order);
        let (elements, nodes) = (mesh.elements() as u64, mesh.nodes() as u64);
        let all_corners = CORNERS as u64 * elements;
        let held = [0, 1, 2].map(|axis| mesh.symmetry_nodes(axis));
        let ctas = match regions {
            Some(_) => fused::ctas_of_limits(elements, request.scale),
            None => separate::ctas_of_limits(elements),
        };
    }
    /// A mesh and its values; those of LULESH 2.0 if regions are given.
    struct Domain {
        /// Node index for each corner: `[corner][element]`
        nodes_of: Array<i32>[all_corners],
        /// Neighbouring element beyond each face: `[face][element]`
        beyond: Array<i32>[FACES as u64 * elements],
        /// Number of element corners around each node.
        counts: Array<i32>[nodes],
        corners: Array<i32>[if regions.is_some() { all_corners } else { CORNERS as u64 * nodes }],
        /// Bit mask by face: set for border faces.
        borders: Array<u32>[elements],
        /// Nodes on the symmetry plane across each axis.
        symmetry: [Array<i32>; 3] = lists(memory, &held),
        version: Version = match regions {
            Some(regions) => Version::Fused(Fused::lay_out(memory, &mesh, regions)),
            None => Version::Separate(Separate::lay_out(memory, elements)),
        },
        /// Longest steps allowed by the elements in each CTA.
        limits: [Field; 2]["courant", "change_limit"; ctas],
        /// `[corner][element]`, along each axis.
        corner_force: [Field; 3]["corner_force_x", "corner_force_y", "corner_force_z"; all_corners],
        place: [Field; 3]["x", "y", "z"; nodes],
        velocity: [Field; 3]["velocity_x", "velocity_y", "velocity_z"; nodes],
        acceleration: [Field; 3]["acceleration_x", "acceleration_y", "acceleration_z"; nodes],
        force: [Field; 3]["force_x", "force_y", "force_z"; nodes],
        node_mass: Field[nodes],
        /// Initial volume, current relative volume, and next relative volume.
        reference_volume: Field[elements],
        volume, new_volume, change: Field[elements],
        rates: [Field; 3]["rate_x", "rate_y", "rate_z"; elements],
        strain, length, mass, sound, energy, pressure, viscosity, linear, quadratic: Field[elements],
        gradients: [Field; 3]["gradient_xi", "gradient_eta", "gradient_zeta"; elements],
        lengths: [Field; 3]["length_xi", "length_eta", "length_zeta"; elements],
        /// Host copy with the contents of `symmetry`.
        held: [Vec<i32>; 3],
        /// Elements along z.
        side: i32,
        steps: u64 = request.values.count("steps"),
        mesh: HexMesh,
    }
}

/// Adds the node lists for the symmetry planes. Planes across x and y contain the axis that does not scale.
fn lists(memory: &mut Memory, held: &[Vec<i32>; 3]) -> [Array<i32>; 3] {
    let mut list = |name: &str, axis: usize, scaling| memory.array(name, held[axis].len() as u64, scaling);
    [list("symmetry_x", 0, Scaling::Root), list("symmetry_y", 1, Scaling::Root), list("symmetry_z", 2, Scaling::Scales)]
}

impl Domain {
    /// Initial volume per element.
    fn start_volume(&self) -> f64 {
        (SIDE / f64::from(self.side)).powi(3)
    }

    /// Initial energy in the first element.
    fn blast(&self) -> f64 {
        BLAST * (f64::from(self.side) / 45.0).powi(3)
    }

    /// Initial time step.
    fn first_step(&self) -> f64 {
        0.5 * self.start_volume().cbrt() / (2.0 * self.blast()).sqrt()
    }

    fn start_place(&self, node: i32, axis: usize) -> f64 {
        SIDE * f64::from(self.mesh.place(node)[axis]) / f64::from(self.side)
    }
}

impl Instance for Domain {
    fn fill(&self, memory: &Memory) {
        let elements = self.mesh.elements() as u64;
        let place = |index: u64| ((index % elements) as i32, (index / elements) as usize);
        memory.fill(self.nodes_of, |index| self.mesh.node(place(index).0, place(index).1));
        memory.fill(self.beyond, |index| self.mesh.beyond(place(index).0, place(index).1));
        memory.fill(self.borders, |element| self.mesh.borders(element as i32));
        memory.fill(self.counts, |node| self.mesh.degree(node as i32));
        for (list, held) in self.symmetry.into_iter().zip(&self.held) {
            memory.fill(list, |at| held[at as usize]);
        }
        match &self.version {
            Version::Fused(fused) => {
                let mut corners = (0..self.mesh.nodes()).flat_map(|node| self.mesh.corners(node));
                memory.fill(self.corners, |_| corners.next().expect("each node lists its corners"));
                fused.fill(memory);
            }
            Version::Separate(_) => {
                let nodes = self.mesh.nodes() as u64;
                let corner = |node: u64, round: u64| self.mesh.corners(node as i32).nth(round as usize);
                memory.fill(self.corners, |at| corner(at % nodes, at / nodes).unwrap_or_default());
            }
        }
        for axis in 0..3 {
            memory.fill(self.place[axis], |node| self.start_place(node as i32, axis));
        }
        let volume = self.start_volume();
        memory.fill(self.node_mass, |node| volume / 8.0 * f64::from(self.mesh.degree(node as i32)));
        memory.fill(self.reference_volume, |_| volume);
        memory.fill(self.mass, |_| volume);
        memory.fill(self.volume, |_| 1.0);
        memory.fill(self.energy, |element| if element as i32 == self.mesh.origin() { self.blast() } else { 0.0 });
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for table in [self.nodes_of, self.beyond, self.counts, self.corners].into_iter().chain(self.symmetry) {
            host.copy_to_device(table);
        }
        host.copy_to_device(self.borders);
        let fields = [self.node_mass, self.reference_volume, self.mass, self.energy];
        self.place.into_iter().chain(fields).for_each(|field| host.copy_to_device(field));
        if let Version::Fused(fused) = &self.version {
            fused.copy_to_device(host);
        }
        let mut step = self.first_step();
        for _ in 0..self.steps {
            let shortest = match &self.version {
                Version::Fused(fused) => self.step_fused(host, fused, step)?,
                Version::Separate(separate) => self.step_separate(host, separate, step)?,
            };
            step = physics::next_step(step, shortest);
        }
        host.copy_to_host(self.energy);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut reference = reference::ReferenceState::new(self);
        let mut step = self.first_step();
        for _ in 0..self.steps {
            step = physics::next_step(step, reference.step(step));
        }
        for axis in 0..3 {
            compare_f64("place", &memory.to_vec(self.place[axis]), &reference.place[axis])?;
            compare_f64("velocity", &memory.to_vec(self.velocity[axis]), &reference.velocity[axis])?;
        }
        compare_f64("energy", &memory.to_vec(self.energy), &reference.energy)?;
        compare_f64("pressure", &memory.to_vec(self.pressure), &reference.pressure)?;
        compare_f64("viscosity", &memory.to_vec(self.viscosity), &reference.viscosity)?;
        compare_f64("volume", &memory.to_vec(self.volume), &reference.volume)
    }
}
