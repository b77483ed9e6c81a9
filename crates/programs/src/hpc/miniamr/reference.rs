//! Plain reference solver for miniAMR's kernels: no ghost cells, neighbours by geometry.

use super::AmrBlocks;
use super::octree::{BlockPosition, Neighbour, Octree, others};
use std::collections::BTreeMap;

/// Values for one variable in all blocks, without ghosts, by slot.
pub(super) struct ReferenceMesh<'a> {
    pub(super) blocks: &'a AmrBlocks,
    pub(super) mesh: Octree,
    pub(super) values: BTreeMap<u32, Vec<f64>>,
}

impl ReferenceMesh<'_> {
    /// Value beyond a block's face, next to the cell at `at`, which touches the face.
    fn beyond(&self, place: BlockPosition, face: usize, at: [i32; 3]) -> f64 {
        let (axis, side) = (face / 2, self.blocks.side);
        let inner = self.blocks.inner();
        let facing = if face.is_multiple_of(2) { side - 1 } else { 0 };
        let across = |at: [i32; 3]| {
            let mut there = at;
            there[axis] = facing;
            inner.index(there) as usize
        };
        match self.mesh.neighbour(place, face) {
            Neighbour::Border => {
                let slot = self.mesh.blocks().find(|block| block.0 == place).map_or(0, |block| block.1);
                self.values[&slot][inner.index(at) as usize]
            }
            Neighbour::Same(slot) => self.values[&slot][across(at)],
            Neighbour::Coarser(slot) => {
                let around = [0, 1, 2].map(|axis| (at[axis] + (place.along(axis) & 1) * side) / 2);
                self.values[&slot][across(around)]
            }
            Neighbour::Finer(slots) => {
                let [first, second] = others(axis);
                let which = at[first] * 2 / side + at[second] * 2 / side * 2;
                let inside = |part: usize| {
                    let mut there = at.map(|along| along * 2 % side);
                    there[first] += (part & 1) as i32;
                    there[second] += (part >> 1) as i32;
                    self.values[&slots[which as usize]][across(there)]
                };
                (0..4).map(inside).sum::<f64>() / 4.0
            }
        }
    }

    /// Runs one stage: each cell becomes the mean over itself and its neighbours.
    pub(super) fn stage(&mut self) {
        let (inner, side) = (self.blocks.inner(), self.blocks.side);
        let mean = |place: BlockPosition, values: &[f64], cell: i32| {
            let at = inner.coordinates(cell);
            let neighbour = |face: usize| {
                let mut there = at;
                there[face / 2] += if face.is_multiple_of(2) { -1 } else { 1 };
                let within = (0..side).contains(&there[face / 2]);
                if within { values[inner.index(there) as usize] } else { self.beyond(place, face, at) }
            };
            (values[cell as usize] + (0..6).map(neighbour).sum::<f64>()) / 7.0
        };
        let block = |(place, slot): (BlockPosition, u32)| {
            let values = &self.values[&slot];
            (slot, (0..inner.count()).map(|cell| mean(place, values, cell)).collect())
        };
        self.values = self.mesh.blocks().map(block).collect();
    }

    /// Adapts the mesh and its values after `step`.
    pub(super) fn adapt(&mut self, step: u64) {
        let (inner, side) = (self.blocks.inner(), self.blocks.side);
        let [merges, splits] = self.mesh.adapt(|place| self.blocks.wanted(place, step));
        for change in merges {
            let mut whole = vec![0.0; inner.count() as usize];
            for (octant, part) in change.parts.iter().enumerate() {
                for (cell, value) in (0..).zip(&self.values[part]) {
                    let at = inner.coordinates(cell);
                    let around = [0, 1, 2].map(|axis| (at[axis] + (octant >> axis & 1) as i32 * side) / 2);
                    whole[inner.index(around) as usize] += value / 8.0;
                }
            }
            self.values.insert(change.whole, whole);
        }
        for change in splits {
            let whole = self.values[&change.whole].clone();
            for (octant, part) in change.parts.into_iter().enumerate() {
                let value = |cell| {
                    let at = inner.coordinates(cell);
                    let around = [0, 1, 2].map(|axis| (at[axis] + (octant >> axis & 1) as i32 * side) / 2);
                    whole[inner.index(around) as usize]
                };
                self.values.insert(part, (0..inner.count()).map(value).collect());
            }
        }
    }
}
