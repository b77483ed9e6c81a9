//! The kernels of a step that move the nodes.

use super::mesh::CORNERS;
use super::physics::{self, hourglass_forces, stress_forces};
use super::{Domain, Done, corners_of, joined};
use crate::record::Host;
use crate::simt::{ComputeClass, Lanes, Warp};

/// Instructions of the formulas, an addition, a multiplication or both each. Source: counted from `physics.rs`; a
/// division or root takes eight.
const STRESS: u16 = 330;
const HOURGLASS: u16 = 1170;

impl Domain {
    pub(super) fn move_nodes(&self, host: &mut Host<'_>, step: f64) -> Done {
        self.map(host, ("init-stress", 2), [self.pressure, self.viscosity], self.stress, |[p, q]| [-(p + q); 3])?;
        let (elements, nodes) = (self.mesh.elements(), self.mesh.nodes());
        self.each(host, "stress", elements, |warp, element| self.push_by_stress(warp, element))?;
        self.each(host, "stress-to-nodes", nodes, |warp, node| self.sum_forces(warp, node, false))?;
        self.each(host, "hourglass", elements, |warp, element| self.push_by_hourglass(warp, element))?;
        self.each(host, "hourglass-to-nodes", nodes, |warp, node| self.sum_forces(warp, node, true))?;
        self.each(host, "acceleration", nodes, |warp, node| self.accelerate(warp, node))?;
        let ([vx, vy, vz], [ax, ay, az], [x, y, z]) = (self.velocity, self.acceleration, self.place);
        self.map(host, ("velocity", 9), [vx, vy, vz, ax, ay, az], self.velocity, |[vx, vy, vz, ax, ay, az]| {
            [(vx, ax), (vy, ay), (vz, az)].map(|(speed, acceleration)| physics::velocity(speed, acceleration, step))
        })?;
        self.map(host, ("position", 3), [x, y, z, vx, vy, vz], self.place, |[x, y, z, vx, vy, vz]| {
            [x + vx * step, y + vy * step, z + vz * step]
        })
    }

    fn store_forces(&self, warp: &mut Warp<'_>, element: Lanes<i32>, forces: &[Lanes<f64>]) {
        for (axis, forces) in forces.chunks(CORNERS).take(3).enumerate() {
            for (corner, force) in (0..).zip(forces) {
                warp.store(self.corner_force[axis], element + corner * self.mesh.elements(), *force);
            }
        }
    }

    fn push_by_stress(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let nodes = self.nodes_of(warp, element);
        let places = self.gather(warp, self.place, &nodes);
        let stress = self.stress.map(|field| warp.load(field, element));
        let operands: [_; 27] = joined(&[&places, &stress]);
        let results: [_; 25] = warp.calculate(ComputeClass::Fp64, STRESS, operands, |values| {
            let (forces, volume) = stress_forces(&corners_of(&values, 0), [values[24], values[25], values[26]]);
            std::array::from_fn(|at| if at < 24 { forces[at / CORNERS][at % CORNERS] } else { volume })
        });
        self.store_forces(warp, element, &results);
        warp.store(self.determinant, element, results[24]);
    }

    fn push_by_hourglass(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let nodes = self.nodes_of(warp, element);
        let places = self.gather(warp, self.place, &nodes);
        let velocities = self.gather(warp, self.velocity, &nodes);
        let own = [self.reference_volume, self.volume, self.sound, self.mass].map(|field| warp.load(field, element));
        let operands: [_; 52] = joined(&[&places, &velocities, &own]);
        // The axes have nothing in common: LULESH 2.0, `CalcElemFBHourglassForce`.
        let results: [_; 24] = warp.calculate_wide(ComputeClass::Fp64, HOURGLASS, 3, operands, |values| {
            let (at, speeds) = (corners_of(&values, 0), corners_of(&values, 24));
            let forces = hourglass_forces(&at, &speeds, values[48] * values[49], values[50], values[51]);
            std::array::from_fn(|at| forces[at / CORNERS][at % CORNERS])
        });
        self.store_forces(warp, element, &results);
    }

    /// A node's force is the sum over the corners around it, added to what it has where `more`.
    fn sum_forces(&self, warp: &mut Warp<'_>, node: Lanes<i32>, more: bool) {
        let ends = (warp.load(self.starts, node), warp.load(self.starts, node + 1));
        warp.compute(ComputeClass::Int, 1, ends);
        let last = self.mesh.nodes() - 1;
        let node_of = |node: i32| node.min(last);
        let first = node.map(|node| self.first_corner[node_of(node) as usize]);
        let degree = node.map(|node| self.mesh.degree(node_of(node)) as u32);
        let mut sums = [Lanes::all(0.0); 3];
        warp.repeat(degree, |warp, round| {
            let loaded = warp.load(self.corners, first + round as i32);
            warp.compute(ComputeClass::Int, super::ADDRESS, loaded);
            let corner = node.map(|node| self.mesh.corners(node_of(node)).nth(round as usize).unwrap_or_default());
            for (sum, field) in sums.iter_mut().zip(self.corner_force) {
                let added = *sum + warp.load(field, corner);
                let added = warp.compute(ComputeClass::Fp64, 1, added);
                *sum = warp.update(*sum, added);
            }
        });
        for (sum, field) in sums.into_iter().zip(self.force) {
            let sum = if more { sum + warp.load(field, node) } else { sum };
            let sum = warp.compute(ComputeClass::Fp64, u16::from(more), sum);
            warp.store(field, node, sum);
        }
    }

    /// Acceleration; none across the planes of symmetry.
    fn accelerate(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let mass = warp.load(self.node_mass, node);
        let planes = warp.load(self.planes, node);
        for (axis, (force, to)) in self.force.into_iter().zip(self.acceleration).enumerate() {
            let across = planes.map(|planes| planes >> axis & 1 == 1);
            let acceleration = warp.load(force, node) / mass;
            let acceleration = warp.compute(ComputeClass::Fp64, 8, acceleration);
            let acceleration = warp.compute(ComputeClass::Int, 2, across.select(Lanes::all(0.0), acceleration));
            warp.store(to, node, acceleration);
        }
    }
}
