//! LULESH: a blast wave in a cube of gas, by Lagrangian hydrodynamics on hexahedra.
//!
//! A step sums the forces of stress and of hourglass modes at the corners of elements and gathers them at the nodes,
//! moves the nodes, and finds each element's strain, artificial viscosity, energy and pressure; the host takes the
//! shortest step that any element allows. Elements reach their nodes, nodes their corners and elements their
//! neighbours through tables. `lulesh` numbers them along the axes, `lulesh-unstructured` by bins.

mod elements;
mod mesh;
mod nodes;
mod physics;
mod reference;

use crate::bench::benchmark::{ADDRESS, Benchmark};
use crate::bench::reference::agree;
use crate::bench::workload::{Instance, Request, WorkloadError, check_indices};
use crate::parameter::{Kind, Parameter};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Scaling, Warp};
use mesh::{CORNERS, FACES, Mesh};

/// Threads of a CTA, one element or node each. Source: NUMA-GPU, Table 2: its 12,202 CTAs lie between the 12,167 of 92³
/// elements and the 12,568 of 93³ nodes, its 435 between those of LULESH's default of 30³, its 4940 between those of
/// 68³.
const THREADS: u32 = 64;
/// Side of the box along z. Source: LULESH 2.0 (`BuildMesh`).
const SIDE: f64 = 1.125;
/// Energy of the blast for 45 elements along the side. Source: LULESH 2.0 (`ebase`).
const BLAST: f64 = 3.948_746e7;

/// Steps in time.
const STEPS: Parameter = Parameter {
    name: "steps",
    kind: Kind::Count { low: 1, high: 100_000 },
    default: "2",
    about: "steps in time",
    source: "assumed: all launch the same kernels over the same mesh",
};

const fn side(default: &'static str, source: &'static str) -> Parameter {
    Parameter {
        name: "side",
        kind: Kind::Count { low: 2, high: 256 },
        default,
        about: "elements along each side, at scale 1; x and y scale by the root, z does not, for modules share planes of z",
        source,
    }
}

static STRUCTURED: [Parameter; 2] =
    [side("92", "NUMA-GPU, Table 2 (HPC-Lulesh): 12,202 CTAs and 578 MB; LULESH's own default is 30"), STEPS];
static UNSTRUCTURED: [Parameter; 2] =
    [side("30", "LULESH 2.0 (`-s`); NUMA-GPU, Table 2 (HPC-Lulesh-Unstruct-Mesh1): 435 CTAs; 68 is its Mesh2"), STEPS];

/// The benchmark on a regular numbering.
pub(crate) static LULESH: Benchmark = Benchmark {
    name: "lulesh",
    about: "Lagrangian hydrodynamics: gathers and sums between elements and nodes, many kernels a step",
    source: "LULESH 2.0 (LLNL-TR-641973), kernels as in its CUDA port; NUMA-GPU, Table 2 (HPC-Lulesh)",
    parameters: &STRUCTURED,
    nonlinear: false,
    address_only: true,
    lay_out: |name, request, memory| Ok(Box::new(Domain::lay_out(name, request, memory, None)?)),
};

/// The benchmark on a mesh numbered by bins.
pub(crate) static LULESH_UNSTRUCTURED: Benchmark = Benchmark {
    name: "lulesh-unstructured",
    about: "Lagrangian hydrodynamics on a mesh whose numbering follows no axis",
    source: "LULESH 2.0 (LLNL-TR-641973), kernels as in its CUDA port; NUMA-GPU, Table 2 (HPC-Lulesh-Unstruct)",
    parameters: &UNSTRUCTURED,
    nonlinear: false,
    address_only: true,
    lay_out: |name, request, memory| Ok(Box::new(Domain::lay_out(name, request, memory, Some(request.seed))?)),
};

type Field = Array<f64>;
type Done = Result<(), RecordError>;

/// What a step of the equation of state keeps from kernel to kernel.
struct Material {
    volume: Field,
    change: Field,
    compression: Field,
    /// Compression in the middle of the change.
    middle: Field,
    energy_old: Field,
    pressure_old: Field,
    viscosity_old: Field,
    energy: Field,
    pressure: Field,
    pressure_half: Field,
    viscosity: Field,
    coefficient: Field,
    slope: Field,
}

impl Material {
    /// `field` adds a field of the name.
    fn lay_out(mut field: impl FnMut(&'static str) -> Field) -> Material {
        Material {
            volume: field("eos_volume"),
            change: field("eos_change"),
            compression: field("eos_compression"),
            middle: field("eos_middle"),
            energy_old: field("eos_energy_old"),
            pressure_old: field("eos_pressure_old"),
            viscosity_old: field("eos_viscosity_old"),
            energy: field("eos_energy"),
            pressure: field("eos_pressure"),
            pressure_half: field("eos_pressure_half"),
            viscosity: field("eos_viscosity"),
            coefficient: field("eos_coefficient"),
            slope: field("eos_slope"),
        }
    }
}

struct Domain {
    mesh: Mesh,
    /// `[corner][element]`
    nodes_of: Array<i32>,
    /// `[face][element]`
    beyond: Array<i32>,
    /// Bit by face: it is a border.
    borders: Array<u32>,
    /// First of each node's corners, and one more.
    starts: Array<i32>,
    corners: Array<i32>,
    /// Bit by axis: the node lies on a plane of symmetry.
    planes: Array<u32>,
    place: [Field; 3],
    velocity: [Field; 3],
    acceleration: [Field; 3],
    force: [Field; 3],
    node_mass: Field,
    stress: [Field; 3],
    /// `[corner][element]`, along each axis.
    corner_force: [Field; 3],
    determinant: Field,
    /// Volume at the start, relative volume, and the next one.
    reference_volume: Field,
    volume: Field,
    new_volume: Field,
    change: Field,
    rates: [Field; 3],
    strain: Field,
    length: Field,
    mass: Field,
    sound: Field,
    energy: Field,
    pressure: Field,
    viscosity: Field,
    linear: Field,
    quadratic: Field,
    gradients: [Field; 3],
    lengths: [Field; 3],
    material: Material,
    /// Longest steps that the elements of a CTA allow.
    limits: [Field; 2],
    /// What `starts` holds.
    first_corner: Vec<i32>,
    /// Elements along z.
    side: i32,
    steps: u64,
}

/// Values of the parts, one after the other; there are `N`.
fn joined<const N: usize>(parts: &[&[Lanes<f64>]]) -> [Lanes<f64>; N] {
    let mut all = parts.iter().flat_map(|part| part.iter().copied());
    std::array::from_fn(|_| all.next().expect("the parts have N values"))
}

/// The values of three times eight corners from `first`.
fn corners_of(values: &[f64], first: usize) -> physics::Corners {
    std::array::from_fn(|axis| std::array::from_fn(|corner| values[first + axis * CORNERS + corner]))
}

impl Domain {
    /// Adds all arrays; a seed numbers the mesh by bins.
    fn lay_out(
        name: &'static str,
        request: &mut Request,
        memory: &mut Memory,
        seed: Option<u64>,
    ) -> Result<Domain, WorkloadError> {
        let side = request.values.count("side");
        let along = request.fit_least("side", request.scale.side_of(side), 2);
        check_indices(name, (along + 1) * (along + 1) * (side + 1) * CORNERS as u64, "corners")?;
        let mesh = Mesh::new([along as i32, along as i32, side as i32], seed);
        let (elements, nodes) = (mesh.elements() as u64, mesh.nodes() as u64);
        let mut first_corner = vec![0];
        for node in 0..mesh.nodes() {
            first_corner.push(first_corner[node as usize] + mesh.degree(node));
        }
        let (all_corners, faces) = (CORNERS as u64 * elements, FACES as u64 * elements);
        let nodes_of = memory.array("nodes_of", all_corners, Scaling::Scales);
        let beyond = memory.array("beyond", faces, Scaling::Scales);
        let borders = memory.array("borders", elements, Scaling::Scales);
        let starts = memory.array("starts", nodes + 1, Scaling::Scales);
        let corners = memory.array("corners", all_corners, Scaling::Scales);
        let planes = memory.array("planes", nodes, Scaling::Scales);
        let mut field = |name: &str, len| memory.array(name, len, Scaling::Scales);
        let ctas = elements.div_ceil(u64::from(THREADS));
        let limits = ["courant", "change_limit"].map(|name| field(name, ctas));
        let corner_force = ["corner_force_x", "corner_force_y", "corner_force_z"].map(|name| field(name, all_corners));
        let mut nodal = |name| field(name, nodes);
        let place = ["x", "y", "z"].map(&mut nodal);
        let velocity = ["velocity_x", "velocity_y", "velocity_z"].map(&mut nodal);
        let acceleration = ["acceleration_x", "acceleration_y", "acceleration_z"].map(&mut nodal);
        let force = ["force_x", "force_y", "force_z"].map(&mut nodal);
        let node_mass = nodal("node_mass");
        let mut field = |name| field(name, elements);
        Ok(Domain {
            nodes_of,
            beyond,
            borders,
            starts,
            corners,
            planes,
            place,
            velocity,
            acceleration,
            force,
            node_mass,
            stress: ["stress_x", "stress_y", "stress_z"].map(&mut field),
            corner_force,
            determinant: field("determinant"),
            reference_volume: field("reference_volume"),
            volume: field("volume"),
            new_volume: field("new_volume"),
            change: field("change"),
            rates: ["rate_x", "rate_y", "rate_z"].map(&mut field),
            strain: field("strain"),
            length: field("length"),
            mass: field("mass"),
            sound: field("sound"),
            energy: field("energy"),
            pressure: field("pressure"),
            viscosity: field("viscosity"),
            linear: field("linear"),
            quadratic: field("quadratic"),
            gradients: ["gradient_xi", "gradient_eta", "gradient_zeta"].map(&mut field),
            lengths: ["length_xi", "length_eta", "length_zeta"].map(&mut field),
            material: Material::lay_out(field),
            limits,
            first_corner,
            side: side as i32,
            steps: request.values.count("steps"),
            mesh,
        })
    }

    /// Runs `body` with one thread for each of `count` elements or nodes.
    fn each(
        &self,
        host: &mut Host<'_>,
        name: &str,
        count: i32,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> Done {
        let ctas = (count as u64).div_ceil(u64::from(THREADS));
        host.launch(Grid::new(name, ctas, THREADS), |cta: &mut Cta<'_>| {
            cta.each_warp(|warp| {
                let index = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread());
                warp.when(index.lt(count), |warp| body(warp, index));
            });
        })
    }

    /// A kernel that turns fields into fields, element by element (or node by node), in `count` instructions.
    fn map<const N: usize, const M: usize>(
        &self,
        host: &mut Host<'_>,
        (name, count): (&str, u16),
        from: [Field; N],
        to: [Field; M],
        function: impl Fn([f64; N]) -> [f64; M] + Sync,
    ) -> Done {
        self.each(host, name, from[0].len() as i32, |warp, index| {
            let operands = from.map(|field| warp.load(field, index));
            let results = warp.calculate(ComputeClass::Fp64, count, operands, &function);
            to.into_iter().zip(results).for_each(|(field, result)| warp.store(field, index, result));
        })
    }

    /// The nodes of an element, read from the table, known without it.
    fn nodes_of(&self, warp: &mut Warp<'_>, element: Lanes<i32>) -> [Lanes<i32>; CORNERS] {
        let (count, last) = (self.mesh.elements(), self.mesh.elements() - 1);
        let loaded: [Lanes<i32>; CORNERS] =
            std::array::from_fn(|corner| warp.load(self.nodes_of, element + corner as i32 * count));
        warp.compute(ComputeClass::Int, ADDRESS * CORNERS as u16, loaded);
        std::array::from_fn(|corner| element.map(|element| self.mesh.node(element.min(last), corner)))
    }

    /// Three fields at eight nodes, axis by axis.
    fn gather(
        &self,
        warp: &mut Warp<'_>,
        fields: [Field; 3],
        nodes: &[Lanes<i32>; CORNERS],
    ) -> [Lanes<f64>; 3 * CORNERS] {
        std::array::from_fn(|at| warp.load(fields[at / CORNERS], nodes[at % CORNERS]))
    }

    /// Volume of each element at the start.
    fn start_volume(&self) -> f64 {
        (SIDE / f64::from(self.side)).powi(3)
    }

    /// Energy of the first element at the start.
    fn blast(&self) -> f64 {
        BLAST * (f64::from(self.side) / 45.0).powi(3)
    }

    /// The first step in time.
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
        memory.fill(self.starts, |node| self.first_corner[node as usize]);
        let mut corners = (0..self.mesh.nodes()).flat_map(|node| self.mesh.corners(node));
        memory.fill(self.corners, |_| corners.next().expect("each node lists its corners"));
        memory.fill(self.planes, |node| self.mesh.planes(node as i32));
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
        host.copy_to_device(self.nodes_of);
        host.copy_to_device(self.beyond);
        host.copy_to_device(self.corners);
        self.place.iter().for_each(|field| host.copy_to_device(*field));
        let mut step = self.first_step();
        for _ in 0..self.steps {
            self.move_nodes(host, step)?;
            self.update_elements(host, step)?;
            let shortest = self.limits.map(|limit| {
                host.copy_to_host(limit);
                host.memory().to_vec(limit).into_iter().fold(f64::MAX, f64::min)
            });
            step = physics::next_step(step, shortest);
        }
        host.copy_to_host(self.energy);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut reference = reference::Reference::new(self);
        let mut step = self.first_step();
        for _ in 0..self.steps {
            step = physics::next_step(step, reference.step(step));
        }
        for axis in 0..3 {
            agree("place", &memory.to_vec(self.place[axis]), &reference.place[axis])?;
            agree("velocity", &memory.to_vec(self.velocity[axis]), &reference.velocity[axis])?;
        }
        agree("energy", &memory.to_vec(self.energy), &reference.energy)?;
        agree("pressure", &memory.to_vec(self.pressure), &reference.pressure)?;
        agree("viscosity", &memory.to_vec(self.viscosity), &reference.viscosity)?;
        agree("volume", &memory.to_vec(self.volume), &reference.volume)
    }
}
