//! Code shared by the kernels in both LULESH versions.

use super::mesh::{CORNERS, FACES};
use super::physics::{Corners, limits, smoothness, viscosity};
use super::{ADDRESS, Domain, Field, RecordResult};
use crate::prelude::*;

/// Instruction counts for the formulas; each is an addition, a multiplication or both. Source: counted from
/// `physics.rs`; a division or root takes eight.
pub(super) const STRESS: u16 = 330;
pub(super) const HOURGLASS: u16 = 1170;
pub(super) const KINEMATICS: u16 = 430;
pub(super) const GRADIENTS: u16 = 200;
pub(super) const SOUND: u16 = 14;
const VISCOSITY: u16 = 110;
const LIMITS: u16 = 30;

/// Concatenates the parts into an array with `N` values.
pub(super) fn joined<const N: usize>(parts: &[&[Lanes<f64>]]) -> [Lanes<f64>; N] {
    let mut all = parts.iter().flat_map(|part| part.iter().copied());
    std::array::from_fn(|_| all.next().expect("the parts have N values"))
}

/// Coordinates or velocities at eight corners along three axes, starting at `first`.
pub(super) fn corners_of(values: &[f64], first: usize) -> Corners {
    std::array::from_fn(|axis| std::array::from_fn(|corner| values[first + axis * CORNERS + corner]))
}

/// Reduces the first `threads` values in each table to the minimum, placed first: a tree in the scratchpad. One warp
/// handles the last 32 pairs, without a barrier.
pub(super) fn find_least(cta: &mut Cta<'_>, tables: &mut [Shared<f64>], threads: u32) {
    cta.barrier();
    let mut distance = threads as i32 / 2;
    while distance > 0 {
        let warps = (distance as u32).div_ceil(cta.warp(0, |warp| warp.width()));
        for index in 0..warps {
            cta.warp(index, |warp| {
                let thread = warp.thread();
                warp.when(thread.lt(distance), |warp| {
                    for table in &mut *tables {
                        let pair = [thread, thread + distance].map(|at| warp.load_shared(table, at));
                        let least = warp.compute(ComputeClass::Fp64, 1, pair[0].min(pair[1]));
                        warp.store_shared(table, thread, least);
                    }
                });
            });
        }
        if distance > 32 {
            cta.barrier();
        }
        distance /= 2;
    }
}

/// Stores each table's first value in a field, at an index, by the first thread.
pub(super) fn store_least(cta: &mut Cta<'_>, tables: &[Shared<f64>], to: &[(Field, u32)]) {
    cta.warp(0, |warp| {
        warp.single(|warp| {
            for (table, (field, index)) in tables.iter().zip(to) {
                let least = warp.load_shared(table, Lanes::all(0));
                warp.store(*field, Lanes::all(*index), least);
            }
        });
    });
}

impl Domain {
    /// Runs `body` with one thread for each of `count` elements or nodes, in CTAs with `threads` threads.
    pub(super) fn each(
        &self,
        host: &mut Host<'_>,
        (name, threads): (&str, u32),
        count: i32,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> RecordResult {
        let ctas = (count as u64).div_ceil(u64::from(threads));
        host.launch(Grid::new(name, ctas, threads), |cta: &mut Cta<'_>| {
            cta.each_warp(|warp| {
                let index = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread());
                warp.when(index.lt(count), |warp| body(warp, index));
            });
        })
    }

    /// Node indices for an element: the table is read, and the host also knows the values.
    pub(super) fn nodes_of(&self, warp: &mut Warp<'_>, element: Lanes<i32>) -> [Lanes<i32>; CORNERS] {
        let (count, last) = (self.mesh.elements(), self.mesh.elements() - 1);
        let loaded: [Lanes<i32>; CORNERS] =
            std::array::from_fn(|corner| warp.load(self.nodes_of, element + corner as i32 * count));
        warp.compute(ComputeClass::Int, ADDRESS * CORNERS as u16, loaded);
        std::array::from_fn(|corner| element.map(|element| self.mesh.node(element.min(last), corner)))
    }

    /// Loads three fields at eight nodes, axis by axis.
    pub(super) fn gather(
        &self,
        warp: &mut Warp<'_>,
        fields: [Field; 3],
        nodes: &[Lanes<i32>; CORNERS],
    ) -> [Lanes<f64>; 3 * CORNERS] {
        std::array::from_fn(|at| warp.load(fields[at / CORNERS], nodes[at % CORNERS]))
    }

    pub(super) fn store_forces(&self, warp: &mut Warp<'_>, element: Lanes<i32>, forces: &[Lanes<f64>]) {
        for (axis, forces) in forces.chunks(CORNERS).take(3).enumerate() {
            for (corner, force) in (0..).zip(forces) {
                warp.store(self.corner_force[axis], element + corner * self.mesh.elements(), *force);
            }
        }
    }

    /// Sums the forces at the corners around a node; with `more`, adds them to the node's present force. `slot` gives
    /// the position in the corner list for the node's corner in a round.
    pub(super) fn sum_forces(
        &self,
        warp: &mut Warp<'_>,
        node: Lanes<i32>,
        more: bool,
        slot: impl Fn(u32) -> Lanes<i32>,
    ) {
        let count = warp.load(self.counts, node);
        warp.compute(ComputeClass::Int, 1, count);
        let degree = map_active(warp, |lane| self.mesh.degree(node.lane(lane)) as u32);
        let mut sums = [Lanes::all(0.0); 3];
        warp.repeat(degree, |warp, round| {
            let loaded = warp.load(self.corners, slot(round));
            warp.compute(ComputeClass::Int, ADDRESS, loaded);
            let nth = |lane| self.mesh.corners(node.lane(lane)).nth(round as usize).expect("a corner for each degree");
            let corner = map_active(warp, nth);
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

    pub(super) fn accelerate(&self, warp: &mut Warp<'_>, node: Lanes<i32>) {
        let mass = warp.load(self.node_mass, node);
        for (force, to) in self.force.into_iter().zip(self.acceleration) {
            let acceleration = warp.load(force, node) / mass;
            let acceleration = warp.compute(ComputeClass::Fp64, 8, acceleration);
            warp.store(to, node, acceleration);
        }
    }

    /// Zeros the acceleration across an axis's symmetry plane, for the nodes at the given list positions.
    pub(super) fn zero_acceleration(&self, warp: &mut Warp<'_>, place: Lanes<i32>, axis: usize) {
        let loaded = warp.load(self.symmetry[axis], place);
        warp.compute(ComputeClass::Int, ADDRESS, loaded);
        let node = map_active(warp, |lane| self.held[axis][place.lane(lane) as usize]);
        warp.store(self.acceleration[axis], node, Lanes::all(0.0));
    }

    /// Computes artificial viscosity, from the gradients in an element and its six neighbours.
    pub(super) fn find_viscosity(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let borders = warp.load(self.borders, element);
        let own = self.gradients.map(|field| warp.load(field, element));
        // Beyond a symmetry plane lies the element itself; beyond a free face lies nothing.
        let mut beside: [Lanes<f64>; FACES] =
            std::array::from_fn(|face| if face % 2 == 0 { own[face / 2] } else { Lanes::all(0.0) });
        warp.compute(ComputeClass::Int, FACES as u16, borders);
        for (face, beside) in beside.iter_mut().enumerate() {
            let inner = map_active(warp, |lane| self.mesh.borders(element.lane(lane)) >> face & 1 == 0);
            warp.when(inner, |warp| {
                let loaded = warp.load(self.beyond, element + face as i32 * self.mesh.elements());
                warp.compute(ComputeClass::Int, ADDRESS, loaded);
                let beyond = map_active(warp, |lane| self.mesh.beyond(element.lane(lane), face));
                let gradient = warp.load(self.gradients[face / 2], beyond);
                *beside = warp.update(*beside, gradient);
            });
        }
        let lengths = self.lengths.map(|field| warp.load(field, element));
        let fields = [self.strain, self.mass, self.reference_volume, self.new_volume];
        let rest = fields.map(|field| warp.load(field, element));
        let operands: [_; 16] = joined(&[&own, &beside, &lengths, &rest]);
        let results = warp.calculate(ComputeClass::Fp64, VISCOSITY, operands, |values| {
            let three = |first: usize| [values[first], values[first + 1], values[first + 2]];
            let smooth =
                std::array::from_fn(|axis| smoothness(values[axis], values[3 + 2 * axis], values[4 + 2 * axis]));
            viscosity(three(0), three(9), smooth, values[12], values[13] / (values[14] * values[15]))
        });
        let fields = [self.linear, self.quadratic];
        fields.into_iter().zip(results).for_each(|(field, result)| warp.store(field, element, result));
    }

    /// Minimum of `shortest` and the steps that an element allows.
    pub(super) fn shorten(
        &self,
        warp: &mut Warp<'_>,
        element: Lanes<i32>,
        shortest: [Lanes<f64>; 2],
    ) -> [Lanes<f64>; 2] {
        let own = [self.strain, self.sound, self.length].map(|field| warp.load(field, element));
        let operands: [_; 5] = joined(&[&own, &shortest]);
        warp.calculate(ComputeClass::Fp64, LIMITS, operands, |[strain, sound, length, courant, change]| {
            let found = limits(sound, strain, length);
            [courant.min(found[0]), change.min(found[1])]
        })
    }
}
