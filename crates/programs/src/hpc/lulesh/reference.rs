//! Reference step in plain loops: forces are scattered from elements to nodes, and the equation of state is one
//! function.

use super::mesh::CORNERS;
use super::physics::{self, Corners};
use super::{Domain, Field};

/// Simulation state carried from step to step.
pub(super) struct ReferenceState<'a> {
    domain: &'a Domain,
    pub(super) place: [Vec<f64>; 3],
    pub(super) velocity: [Vec<f64>; 3],
    pub(super) energy: Vec<f64>,
    pub(super) pressure: Vec<f64>,
    pub(super) viscosity: Vec<f64>,
    pub(super) volume: Vec<f64>,
    sound: Vec<f64>,
}

impl ReferenceState<'_> {
    /// Builds the initial state.
    pub(super) fn new(domain: &Domain) -> ReferenceState<'_> {
        let zeros = |field: Field| vec![0.0; field.len() as usize];
        let mut energy = zeros(domain.energy);
        energy[domain.mesh.origin() as usize] = domain.blast();
        ReferenceState {
            domain,
            place: std::array::from_fn(|axis| {
                (0..domain.mesh.nodes()).map(|node| domain.start_place(node, axis)).collect()
            }),
            velocity: domain.velocity.map(zeros),
            energy,
            pressure: zeros(domain.pressure),
            viscosity: zeros(domain.viscosity),
            volume: vec![1.0; domain.mesh.elements() as usize],
            sound: zeros(domain.sound),
        }
    }

    fn corners(&self, values: &[Vec<f64>; 3], element: i32) -> Corners {
        std::array::from_fn(|axis| {
            std::array::from_fn(|corner| values[axis][self.domain.mesh.node(element, corner) as usize])
        })
    }

    /// Forces on the nodes, `[axis][node]`.
    fn forces(&self) -> [Vec<f64>; 3] {
        let mut forces = [(); 3].map(|()| vec![0.0; self.domain.mesh.nodes() as usize]);
        for element in 0..self.domain.mesh.elements() {
            let (at, own) = (self.corners(&self.place, element), element as usize);
            let (stress, _) = physics::stress_forces(&at, [-(self.pressure[own] + self.viscosity[own]); 3]);
            let start = self.domain.start_volume();
            let speeds = self.corners(&self.velocity, element);
            let against = physics::hourglass_forces(&at, &speeds, start * self.volume[own], self.sound[own], start);
            for corner in 0..CORNERS {
                let node = self.domain.mesh.node(element, corner) as usize;
                for (axis, force) in forces.iter_mut().enumerate() {
                    force[node] += stress[axis][corner] + against[axis][corner];
                }
            }
        }
        forces
    }

    /// Advances the state by `step`; returns the shortest limits for the next step.
    pub(super) fn step(&mut self, step: f64) -> [f64; 2] {
        let forces = self.forces();
        for (axis, forces) in forces.iter().enumerate() {
            for node in 0..self.domain.mesh.nodes() {
                let mass = self.domain.start_volume() / 8.0 * f64::from(self.domain.mesh.degree(node));
                let held = self.domain.mesh.on_symmetry_plane(node, axis);
                let node = node as usize;
                let acceleration = if held { 0.0 } else { forces[node] / mass };
                self.velocity[axis][node] = physics::velocity(self.velocity[axis][node], acceleration, step);
                self.place[axis][node] += self.velocity[axis][node] * step;
            }
        }
        let start = self.domain.start_volume();
        let elements = 0..self.domain.mesh.elements();
        let shapes: Vec<(Corners, Corners)> = elements
            .clone()
            .map(|element| (self.corners(&self.place, element), self.corners(&self.velocity, element)))
            .collect();
        let volumes: Vec<f64> = shapes.iter().map(|(at, _)| physics::volume(at) / start).collect();
        let gradients: Vec<_> = shapes
            .iter()
            .zip(&volumes)
            .map(|((at, speeds), volume)| physics::gradients(at, speeds, start * volume))
            .collect();
        let mut shortest = [f64::MAX; 2];
        for element in elements {
            let own = element as usize;
            let strain: f64 = physics::strain(&shapes[own].0, &shapes[own].1, step).iter().sum();
            let smooth = self.smoothness(element, &gradients);
            let (rates, lengths) = gradients[own];
            let viscosity = physics::viscosity(rates, lengths, smooth, strain, 1.0 / volumes[own]);
            self.apply_material(own, volumes[own], viscosity);
            self.volume[own] = physics::settled(volumes[own]);
            let length = physics::length(&shapes[own].0, volumes[own] * start);
            let limits = physics::limits(self.sound[own], strain, length);
            shortest = [shortest[0].min(limits[0]), shortest[1].min(limits[1])];
        }
        shortest
    }

    fn smoothness(&self, element: i32, gradients: &[([f64; 3], [f64; 3])]) -> [f64; 3] {
        let mesh = &self.domain.mesh;
        std::array::from_fn(|axis| {
            let of = |element: i32| gradients[element as usize].0[axis];
            let free = mesh.borders(element) >> (2 * axis + 1) & 1 == 1;
            let above = if free { 0.0 } else { of(mesh.beyond(element, 2 * axis + 1)) };
            physics::smoothness(of(element), of(mesh.beyond(element, 2 * axis)), above)
        })
    }

    /// Applies the equation of state to an element at its new volume.
    fn apply_material(&mut self, own: usize, volume: f64, [linear, quadratic]: [f64; 2]) {
        let (change, volume) = (volume - self.volume[own], physics::bounded(volume));
        let [compression, middle] = physics::compressions(volume, change);
        let old = self.pressure[own] + self.viscosity[own];
        let sound = |energy: f64, volume, coefficient, pressure| {
            physics::sound(physics::SLOPE * energy, volume, coefficient, pressure)
        };
        let energy = physics::energy_half(self.energy[own], change, self.pressure[own], self.viscosity[own]);
        let [coefficient, half] = physics::pressure(energy, middle, volume);
        let speed = sound(energy, 1.0 / (1.0 + middle), coefficient, half);
        let viscosity = physics::viscous(change, speed, linear, quadratic);
        let energy = physics::energy_predicted(energy, change, old, half + viscosity);
        let [coefficient, pressure] = physics::pressure(energy, compression, volume);
        let new = physics::viscous(change, sound(energy, volume, coefficient, pressure), linear, quadratic);
        let energy = physics::energy_corrected(energy, change, old, half + viscosity, pressure + new);
        let [coefficient, pressure] = physics::pressure(energy, compression, volume);
        let speed = sound(energy, volume, coefficient, pressure);
        let viscosity = physics::cut_viscosity(physics::viscous(change, speed, linear, quadratic));
        (self.energy[own], self.pressure[own], self.viscosity[own]) = (energy, pressure, viscosity);
        self.sound[own] = speed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpc::lulesh;
    use crate::hpc::lulesh::mesh::NumberingScheme;
    use tombolo_workload::bench::Request;
    use tombolo_workload::scale::Scale;
    use tombolo_workload::simt::{Backing, Memory};

    /// Builds the domain with the given side.
    fn domain(side: &str) -> Domain {
        let given = [("side".to_owned(), side.to_owned())];
        let mut request = Request::new(&lulesh::LULESH, Scale::FULL, &given, 7).unwrap();
        Domain::lay_out(&mut Memory::new(Backing::AddressOnly), "lulesh", &mut request, NumberingScheme::Rows, None)
            .unwrap()
    }

    /// Number of steps to time 0.01, and the final energy at the origin.
    fn whole_run(side: &str) -> (u32, String) {
        let domain = domain(side);
        let mut reference = ReferenceState::new(&domain);
        let (mut step, mut time, mut steps) = (domain.first_step(), 0.0, 0);
        while time < 1e-2 {
            let left = 1e-2 - time;
            let aimed = if left > step && left < 4.0 / 3.0 * step { 2.0 / 3.0 * step } else { left };
            step = step.min(aimed);
            time += step;
            steps += 1;
            step = physics::next_step(step, reference.step(step));
        }
        (steps, format!("{:.6e}", reference.energy[0]))
    }

    /// Source: LULESH 2.0's own results table.
    #[test]
    fn a_whole_run_ends_with_lulesh_s_own_energy() {
        assert_eq!(whole_run("5"), (72, "7.853665e3".to_owned()));
        assert_eq!(whole_run("10"), (231, "2.720531e4".to_owned()));
    }

    #[test]
    fn axes_are_alike() {
        let domain = domain("5");
        let mut reference = ReferenceState::new(&domain);
        let mut step = domain.first_step();
        for _ in 0..20 {
            step = physics::next_step(step, reference.step(step));
        }
        let at = |[x, y, z]: [usize; 3]| reference.energy[(z * 5 + y) * 5 + x];
        let moved = (0..125).filter(|element| reference.energy[*element] != 0.0).count();
        assert!(moved > 30, "{moved}");
        for element in 0..125 {
            let [x, y, z] = [element % 5, element / 5 % 5, element / 25];
            assert!((at([x, y, z]) - at([z, x, y])).abs() <= 1e-9 * at([x, y, z]).abs().max(1.0));
        }
    }
}
