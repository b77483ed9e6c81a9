//! Rodinia cfd (euler3d): air flow over a tetrahedral mesh, by finite volumes.
//!
//! A step saves the variables and finds each element's time step. Three times (Runge and Kutta), it then sums the
//! fluxes through each element's four faces and updates its variables. A face needs the five variables of the element
//! beyond it, at an irregular address.

mod mesh;

use crate::prelude::*;
use mesh::{FACES, FAR, TetMesh, WING};

/// Threads per CTA, with one element each. Source: Rodinia 3.1 cfd (`block_length`).
const THREADS: u32 = 192;
/// Variables per element: density, three momentum components, energy. Source: Rodinia 3.1 cfd (`NVAR`).
const VARIABLES: usize = 5;
/// Stages per step. Source: Rodinia 3.1 cfd (`RK`).
const STAGES: u32 = 3;
/// Ratio between the specific heats of air. Source: Rodinia 3.1 cfd (`GAMMA`).
const GAMMA: f32 = 1.4;
/// Mach number: the free flow's speed over the speed of sound. Source: Rodinia 3.1 cfd (`ff_mach`).
const MACH: f32 = 1.2;
/// Dissipation weight. Source: Rodinia 3.1 cfd (`smoothing_coefficient`).
const SMOOTHING: f32 = 0.2;

program! {
    /// flow over a mesh of tetrahedra: gathers of the variables of neighbours
    pub(crate) static EULER3D = "euler3d", "Rodinia 3.1 cfd (euler3d); NUMA-GPU, Table 2 (Rodinia-Euler3D)";
    properties: data_independent;
    parameters {
        /// cubes of six tetrahedra along x, at scale 1; scales by the root
        x: count(1..=512) = 16, "Rodinia 3.1 cfd (fvcorr.domn.193K): with y and z 193,440 elements for its 193,474";
        /// cubes along y, at scale 1; scales by the root
        y: count(1..=512) = 31, "Rodinia 3.1 cfd, as x";
        /// cubes along z; does not scale, because modules share planes of z
        z: count(1..=512) = 65, "Rodinia 3.1 cfd, as x";
        /// steps in time
        iterations: count(1..=100_000) = 2, "assumed: all alike; Rodinia 3.1 cfd runs 2000";
    }
    lay_out(_, request, memory) {
        let (x, y) = (request.scale.side_of(x), request.scale.side_of(y));
        let cubes = x * y * z;
        check_indices("euler3d", cubes * 6 * 12, "normals")?;
        let mesh = TetMesh::new([x, y, z].map(|side| side as i32), request.seed);
        let elements = (cubes * 6).next_multiple_of(u64::from(THREADS));
        let (faces, variables) = (FACES as u64, VARIABLES as u64);
    }
    struct Flow {
        mesh: TetMesh,
        /// Volume per element.
        areas: Array<f32>[elements],
        /// Element beyond each face, `[face][element]`, or [`WING`] or [`FAR`].
        neighbours: Array<i32>[faces * elements],
        /// Inward normal, `[axis][face][element]`, with the face's area as length.
        normals: Array<f32>[3 * faces * elements],
        /// Variables, `[variable][element]`, like the next two arrays.
        variables: Array<f32>[variables * elements],
        kept, fluxes: Array<f32>[variables * elements],
        steps: Array<f32>[elements],
        /// Number of elements, including padding in the last CTA.
        elements: i32,
        iterations: u64,
        seed: u64 = request.seed,
    }
}

type FlowState = [f32; VARIABLES];

/// A state in each lane.
type FlowStates = [Lanes<f32>; VARIABLES];

/// Velocity, speed, pressure and the speed of sound for a state.
fn derived([density, momentum @ .., energy]: FlowState) -> ([f32; 3], f32, f32, f32) {
    let velocity = momentum.map(|part| part / density);
    let square: f32 = velocity.iter().map(|part| part * part).sum();
    let pressure = (GAMMA - 1.0) * (energy - 0.5 * density * square);
    (velocity, square.sqrt(), pressure, (GAMMA * pressure / density).sqrt())
}

/// Flux carried by a state along each axis: `[axis][variable]`.
fn carried(state: FlowState) -> [FlowState; 3] {
    let ([_, momentum @ .., energy], (velocity, _, pressure, _)) = (state, derived(state));
    std::array::from_fn(|axis| {
        let push = |along: usize| if along == axis { pressure } else { 0.0 };
        let moved: [f32; 3] = std::array::from_fn(|part| velocity[part] * momentum[axis] + push(part));
        [momentum[axis], moved[0], moved[1], moved[2], velocity[axis] * (energy + pressure)]
    })
}

/// Flux from `other` into `own` through a face with the inward normal `normal`.
fn through(own: FlowState, other: FlowState, normal: [f32; 3], smoothing: f32) -> FlowState {
    let (from, to) = (carried(other), carried(own));
    let size = normal.iter().map(|part| part * part).sum::<f32>().sqrt();
    let ((_, speed, _, sound), (_, other_speed, _, other_sound)) = (derived(own), derived(other));
    let loss = -size * smoothing * 0.5 * (speed + other_speed + sound + other_sound);
    std::array::from_fn(|part| {
        let mean: f32 = (0..3).map(|axis| 0.5 * normal[axis] * (from[axis][part] + to[axis][part])).sum();
        loss * (own[part] - other[part]) + mean
    })
}

/// Flux into `own` through a wall: its pressure.
fn against_wall(own: FlowState, normal: [f32; 3]) -> FlowState {
    let (_, _, pressure, _) = derived(own);
    [0.0, normal[0] * pressure, normal[1] * pressure, normal[2] * pressure, 0.0]
}

/// Time step for a state over its volume, with Courant number 1/2.
fn time_step(state: FlowState, area: f32) -> f32 {
    let (_, speed, _, sound) = derived(state);
    0.5 / (area.sqrt() * (speed + sound))
}

/// State of the free flow, along x.
fn free() -> FlowState {
    let (density, pressure) = (1.4, 1.0_f32);
    let speed = MACH * (GAMMA * pressure / density).sqrt();
    [density, density * speed, 0.0, 0.0, pressure / (GAMMA - 1.0) + 0.5 * density * speed * speed]
}

impl Flow {
    /// Launches a kernel with one thread per element.
    fn each(
        &self,
        host: &mut Host<'_>,
        name: &str,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> Result<(), RecordError> {
        let ctas = self.elements as u64 / u64::from(THREADS);
        host.launch(Grid::new(name, ctas, THREADS), |cta: &mut Cta<'_>| {
            cta.each_warp(|warp| {
                let element = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread());
                body(warp, element);
            });
        })
    }

    /// Loads an element's variables from `array`.
    fn state(&self, warp: &mut Warp<'_>, array: Array<f32>, element: Lanes<i32>) -> FlowStates {
        std::array::from_fn(|variable| warp.load(array, element + variable as i32 * self.elements))
    }

    fn find_steps(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let [density, x, y, z, energy] = self.state(warp, self.variables, element);
        let area = warp.load(self.areas, element);
        // Five divisions, three roots.
        let operands = [density, x, y, z, energy, area];
        let [step] = warp.calculate(ComputeClass::Fp32, 60, operands, |[state @ .., area]| [time_step(state, area)]);
        warp.store(self.steps, element, step);
    }

    fn find_fluxes(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let own = self.state(warp, self.variables, element);
        let mut sums = [Lanes::all(0.0); VARIABLES];
        for face in 0..FACES {
            let slot = element + face as i32 * self.elements;
            let loaded = warp.load(self.neighbours, slot);
            let normal: [Lanes<f32>; 3] =
                std::array::from_fn(|axis| warp.load(self.normals, slot + (axis * FACES) as i32 * self.elements));
            // The host knows the loaded neighbours without memory contents.
            warp.compute(ComputeClass::Int, ADDRESS, loaded);
            let beyond = element.map(|element| self.mesh.neighbour(self.source(element), face));
            warp.when(beyond.ge(0), |warp| {
                let other = self.state(warp, self.variables, beyond);
                self.add(warp, &mut sums, (own, other, normal), 90, |own, other, normal| {
                    through(own, other, normal, SMOOTHING)
                });
            });
            warp.when(beyond.eq(WING), |warp| {
                self.add(warp, &mut sums, (own, own, normal), 6, |own, _, normal| against_wall(own, normal));
            });
            warp.when(beyond.eq(FAR), |warp| {
                let far = free().map(Lanes::all);
                self.add(warp, &mut sums, (own, far, normal), 30, |own, far, normal| through(own, far, normal, 0.0));
            });
        }
        for (variable, sum) in (0..).zip(sums) {
            warp.store(self.fluxes, element + variable * self.elements, sum);
        }
    }

    /// Adds the flux through a face, in `count` instructions.
    fn add(
        &self,
        warp: &mut Warp<'_>,
        sums: &mut FlowStates,
        (own, other, normal): (FlowStates, FlowStates, [Lanes<f32>; 3]),
        count: u16,
        flux: impl Fn(FlowState, FlowState, [f32; 3]) -> FlowState,
    ) {
        let ([a, b, c, d, e], [f, g, h, i, j], [k, l, m], [n, o, p, q, r]) = (own, other, normal, *sums);
        let operands = [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r];
        let results: [_; VARIABLES] = warp.calculate(ComputeClass::Fp32, count, operands, |values: [f32; 18]| {
            let part = |from: usize| std::array::from_fn(|at| values[from + at]);
            let flux = flux(part(0), part(VARIABLES), std::array::from_fn(|axis| values[2 * VARIABLES + axis]));
            std::array::from_fn(|at| values[2 * VARIABLES + 3 + at] + flux[at])
        });
        sums.iter_mut().zip(results).for_each(|(sum, result)| *sum = warp.update(*sum, result));
    }

    fn advance(&self, warp: &mut Warp<'_>, element: Lanes<i32>, stage: u32) {
        let step = warp.load(self.steps, element) * (1.0 / (STAGES - stage) as f32);
        let step = warp.compute(ComputeClass::Fp32, 1, step);
        for variable in 0..VARIABLES as i32 {
            let at = element + variable * self.elements;
            let moved = warp.load(self.kept, at) + step * warp.load(self.fluxes, at);
            let moved = warp.compute(ComputeClass::Fp32, 1, moved);
            warp.store(self.variables, at, moved);
        }
    }

    /// Mesh element for an index; padding indices repeat the last element.
    fn source(&self, element: i32) -> i32 {
        element.min(self.mesh.elements() - 1)
    }

    /// Initial value: the free flow with a disturbance.
    fn start(&self, index: u64) -> f32 {
        let (variable, element) = (index / self.elements as u64, index % self.elements as u64);
        let element = self.source(element as i32);
        let disturbance = noise::unit(self.seed, variable * self.elements as u64 + element as u64) / 64.0;
        free()[variable as usize] * (1.0 + disturbance)
    }

    /// Runs one step in the plain reference.
    fn step(&self, states: &mut [FlowState]) {
        let kept = states.to_vec();
        let steps: Vec<f32> = states.iter().map(|state| time_step(*state, TetMesh::VOLUME)).collect();
        for stage in 0..STAGES {
            let flux = |element: usize| {
                let mut sum = [0.0; VARIABLES];
                for face in 0..FACES {
                    let (own, normal) = (states[element], self.mesh.normal(element as i32, face));
                    let part = match self.mesh.neighbour(element as i32, face) {
                        WING => against_wall(own, normal),
                        FAR => through(own, free(), normal, 0.0),
                        beyond => through(own, states[beyond as usize], normal, SMOOTHING),
                    };
                    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
                }
                sum
            };
            let fluxes: Vec<FlowState> = (0..states.len()).map(flux).collect();
            for (element, state) in states.iter_mut().enumerate() {
                let step = steps[element] * (1.0 / (STAGES - stage) as f32);
                *state = std::array::from_fn(|part| kept[element][part] + step * fluxes[element][part]);
            }
        }
    }
}

impl Instance for Flow {
    fn fill(&self, memory: &Memory) {
        let elements = self.elements as u64;
        let place = |index: u64| (self.source((index % elements) as i32), (index / elements) as usize);
        memory.fill(self.areas, |_| TetMesh::VOLUME);
        memory.fill(self.neighbours, |index| {
            let (element, face) = place(index);
            self.mesh.neighbour(element, face)
        });
        memory.fill(self.normals, |index| {
            let (element, slot) = place(index);
            self.mesh.normal(element, slot % FACES)[slot / FACES]
        });
        memory.fill(self.variables, |index| self.start(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.areas);
        host.copy_to_device(self.neighbours);
        host.copy_to_device(self.normals);
        host.copy_to_device(self.variables);
        for _ in 0..self.iterations {
            self.each(host, "keep", |warp, element| {
                let state = self.state(warp, self.variables, element);
                for (variable, value) in (0..).zip(state) {
                    warp.store(self.kept, element + variable * self.elements, value);
                }
            })?;
            self.each(host, "step-factor", |warp, element| self.find_steps(warp, element))?;
            for stage in 0..STAGES {
                self.each(host, "flux", |warp, element| self.find_fluxes(warp, element))?;
                self.each(host, "time-step", |warp, element| self.advance(warp, element, stage))?;
            }
        }
        host.copy_to_host(self.variables);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let pitch = self.elements as u64;
        let start = |element: i32| std::array::from_fn(|part| self.start(part as u64 * pitch + element as u64));
        let mut states: Vec<FlowState> = (0..self.mesh.elements()).map(start).collect();
        (0..self.iterations).for_each(|_| self.step(&mut states));
        let found = memory.to_vec(self.variables);
        for (part, name) in ["density", "momentum x", "momentum y", "momentum z", "energy"].into_iter().enumerate() {
            let of = found.iter().skip(part * pitch as usize).take(pitch as usize).copied();
            let expected = (0..self.elements).map(|element| states[self.source(element) as usize][part]);
            // Fluxes are small relative to the variables, and the reference adds them in the kernel's order.
            compare(name, of, expected, 0.0)?;
        }
        Ok(())
    }
}
