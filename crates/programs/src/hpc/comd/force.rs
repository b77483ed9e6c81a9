//! The force kernel: pairwise interactions between atoms in neighbouring cells.

use super::{CUTOFF, CellGrid, SLOTS, Simulation, lennard_jones};
use crate::prelude::*;

impl Simulation {
    /// Computes force and energy for each atom from the atoms in the 27 cells around it.
    pub(super) fn find_force(&self, cta: &mut Cta<'_>) {
        let atoms = &self.atoms;
        self.each_slot(cta, self.inner, [1; 3], |warp, slot, cell, place| {
            let count = warp.load(atoms.count, slot / SLOTS);
            warp.when(place.cast::<u32>().lt(count), |warp| self.gather_force(warp, slot, cell));
        });
    }

    /// Computes force and energy for the atom in each lane; `cell` holds its cell coordinates in the halo's grid.
    pub(super) fn gather_force(&self, warp: &mut Warp<'_>, slot: Lanes<i32>, cell: [Lanes<i32>; 3]) {
        let atoms = &self.atoms;
        let own = atoms.position.map(|array| warp.load(array, slot));
        let mut sums = [Lanes::all(0.0); 4];
        for neighbour in 0..27 {
            let offset = CellGrid { x: 3, y: 3, z: 3 }.coordinates(neighbour);
            let near = [0, 1, 2].map(|axis| cell[axis] + (offset[axis] - 1));
            let near = self.outer.indices(warp, near);
            let count = warp.load(atoms.count, near);
            warp.repeat(count, |warp, other| {
                let other = warp.compute(ComputeClass::Int, 1, near * SLOTS + other as i32);
                self.add_pair(warp, &own, other, &mut sums);
            });
        }
        for (array, sum) in self.force.into_iter().chain([self.energy]).zip(sums) {
            warp.store(array, slot, sum);
        }
    }

    /// Adds the force and half the energy for one pair per lane.
    pub(super) fn add_pair(
        &self,
        warp: &mut Warp<'_>,
        own: &[Lanes<f64>; 3],
        other: Lanes<i32>,
        sums: &mut [Lanes<f64>; 4],
    ) {
        let apart = [0, 1, 2].map(|axis| own[axis] - warp.load(self.atoms.position[axis], other));
        let square = apart.iter().fold(Lanes::all(0.0), |sum, along| sum + *along * *along);
        let (square, apart) = warp.compute(ComputeClass::Fp64, 6, (square, apart));
        warp.when(square.lt(CUTOFF * CUTOFF) & square.gt(0.0), |warp| {
            let strength = square.map(|square| lennard_jones(square).0);
            let energy = square.map(|square| 0.5 * lennard_jones(square).1);
            let (strength, energy) = warp.compute(ComputeClass::Fp64, 9, (strength, energy));
            for axis in 0..3 {
                let sum = warp.compute(ComputeClass::Fp64, 1, sums[axis] + apart[axis] * strength);
                sums[axis] = warp.update(sums[axis], sum);
            }
            let sum = warp.compute(ComputeClass::Fp64, 1, sums[3] + energy);
            sums[3] = warp.update(sums[3], sum);
        });
    }
}
