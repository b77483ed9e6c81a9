//! A mesh with blocks that split into eight and merge again; neighbours are at most one level apart.

use crate::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Position of a block: its level, and its coordinates among the blocks on that level, z first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockPosition {
    /// Refinement level, 0 for the coarsest.
    pub(super) level: u32,
    /// Coordinates along z, y and x.
    zyx: [i32; 3],
}

impl BlockPosition {
    /// Coordinate along x (0), y (1) or z (2) among the level's blocks.
    pub(super) fn along(self, axis: usize) -> i32 {
        self.zyx[2 - axis]
    }

    fn parent(self) -> BlockPosition {
        BlockPosition { level: self.level - 1, zyx: self.zyx.map(|at| at.div_euclid(2)) }
    }

    /// Position for a part: bit 0 of `octant` along x, bit 1 along y, bit 2 along z.
    fn child(self, octant: usize) -> BlockPosition {
        let along = |axis: usize| self.along(axis) * 2 + (octant >> axis & 1) as i32;
        BlockPosition { level: self.level + 1, zyx: [along(2), along(1), along(0)] }
    }

    /// Position at equal level across a face: 0 and 1 are the low and high faces along x, and so on.
    fn across(self, face: usize) -> BlockPosition {
        let mut zyx = self.zyx;
        zyx[2 - face / 2] += if face.is_multiple_of(2) { -1 } else { 1 };
        BlockPosition { zyx, ..self }
    }
}

/// Neighbour across a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// The mesh ends at the face.
    Border,
    /// A block at equal size.
    Same(u32),
    /// A block with double the size.
    Coarser(u32),
    /// Four blocks with half the size; in their index, bit 0 is along the first other axis, bit 1 along the second.
    Finer([u32; 4]),
}

/// A block that splits into eight, or eight blocks merged into one; the eight in octant order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MeshChange {
    /// Slot for the large block.
    pub(super) whole: u32,
    /// Slots for the small blocks.
    pub(super) parts: [u32; 8],
}

/// The mesh: maps each block to a storage slot.
#[derive(Clone, Debug)]
pub(super) struct Octree {
    roots: CellGrid,
    levels: u32,
    slots: BTreeMap<BlockPosition, u32>,
    free: BTreeSet<u32>,
}

impl Octree {
    /// Builds a mesh with `roots` blocks in the first slots out of `capacity`; blocks may split `levels` times.
    pub(super) fn new(roots: CellGrid, levels: u32, capacity: u32) -> Octree {
        let place = |index| {
            let [x, y, z] = roots.coordinates(index);
            BlockPosition { level: 0, zyx: [z, y, x] }
        };
        let slots: BTreeMap<_, _> = (0..roots.count()).map(|index| (place(index), index as u32)).collect();
        Octree { roots, levels, slots, free: (roots.count() as u32..capacity).collect() }
    }

    /// Blocks and their slots.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (BlockPosition, u32)> {
        self.slots.iter().map(|(place, slot)| (*place, *slot))
    }

    /// Slots in use, ascending.
    pub(super) fn active(&self) -> Vec<u32> {
        self.slots.values().copied().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// True if a position lies inside the mesh.
    fn inside(&self, place: BlockPosition) -> bool {
        let sides = [self.roots.x, self.roots.y, self.roots.z];
        (0..3).all(|axis| (0..sides[axis] << place.level).contains(&place.along(axis)))
    }

    /// Neighbour across a block's face.
    pub(super) fn neighbour(&self, place: BlockPosition, face: usize) -> Neighbour {
        let there = place.across(face);
        if !self.inside(there) {
            return Neighbour::Border;
        }
        if let Some(&slot) = self.slots.get(&there) {
            return Neighbour::Same(slot);
        }
        if place.level > 0
            && let Some(&slot) = self.slots.get(&there.parent())
        {
            return Neighbour::Coarser(slot);
        }
        Neighbour::Finer(touching(face).map(|octant| self.slots[&there.child(octant)]))
    }

    /// Merges and splits blocks, once each, to bring blocks for which `wanted` holds to the finest level. Returns the
    /// merges, which happen first, and the splits. Full storage refuses splits, like in miniAMR.
    pub(super) fn adapt(&mut self, wanted: impl Fn(BlockPosition) -> bool) -> [Vec<MeshChange>; 2] {
        let before: Vec<BlockPosition> = self.slots.keys().copied().collect();
        let parents: BTreeSet<BlockPosition> =
            before.iter().filter(|place| place.level > 0).map(|place| place.parent()).collect();
        let merges = parents.into_iter().filter(|&parent| !wanted(parent)).filter_map(|parent| self.merge(parent));
        let merges: Vec<MeshChange> = merges.collect();
        self.free.extend(merges.iter().flat_map(|change| change.parts));
        let mut left = Vec::new();
        let mut splits = Vec::new();
        for place in before.into_iter().filter(|&place| wanted(place)) {
            if let Some(change) = self.split(place) {
                left.push(change.whole);
                splits.push(change);
            }
        }
        // A split block is read until its parts are filled.
        self.free.extend(left);
        [merges, splits]
    }

    /// Merges the eight parts of `parent`, if all eight exist and no neighbour would be two levels finer. Their slots
    /// stay in use, because they are read until the parent is filled.
    fn merge(&mut self, parent: BlockPosition) -> Option<MeshChange> {
        let parts: Vec<BlockPosition> = (0..8).map(|octant| parent.child(octant)).collect();
        let fine = |&place: &BlockPosition, face| matches!(self.neighbour(place, face), Neighbour::Finer(_));
        let whole = parts.iter().all(|place| self.slots.contains_key(place));
        if !whole || parts.iter().any(|place| (0..6).any(|face| fine(place, face))) {
            return None;
        }
        let slot = self.free.pop_first()?;
        let mut slots = [0; 8];
        for (part, place) in slots.iter_mut().zip(parts) {
            *part = self.slots.remove(&place).expect("all eight parts are there");
        }
        self.slots.insert(parent, slot);
        Some(MeshChange { whole: slot, parts: slots })
    }

    /// Splits a block, if it still exists, no neighbour is coarser, and level and storage allow it.
    fn split(&mut self, place: BlockPosition) -> Option<MeshChange> {
        let coarse = |face| matches!(self.neighbour(place, face), Neighbour::Coarser(_));
        let allowed = place.level < self.levels && self.free.len() >= 8;
        if !allowed || !self.slots.contains_key(&place) || (0..6).any(coarse) {
            return None;
        }
        let whole = self.slots.remove(&place).expect("the block is there");
        let mut parts = [0; 8];
        for (octant, part) in parts.iter_mut().enumerate() {
            *part = self.free.pop_first().expect("eight slots are free");
            self.slots.insert(place.child(octant), *part);
        }
        Some(MeshChange { whole, parts })
    }
}

/// Octants in a block that touch the neighbour, if the block lies across the neighbour's face `face`.
fn touching(face: usize) -> [usize; 4] {
    let (axis, low) = (face / 2, face.is_multiple_of(2));
    let [first, second] = others(axis);
    [0, 1, 2, 3].map(|which| usize::from(low) << axis | (which & 1) << first | (which >> 1) << second)
}

/// The two remaining axes, ascending.
pub(super) fn others(axis: usize) -> [usize; 2] {
    [[1, 2], [0, 2], [0, 1]][axis]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh() -> Octree {
        Octree::new(CellGrid { x: 3, y: 2, z: 2 }, 2, 100)
    }

    fn corner(place: BlockPosition) -> bool {
        (0..3).all(|axis| place.along(axis) == 0)
    }

    #[test]
    fn a_block_splits_and_merges_back() {
        let mut mesh = mesh();
        let [merges, splits] = mesh.adapt(corner);
        assert_eq!((merges.len(), splits.len(), splits[0].whole), (0, 1, 0));
        assert_eq!(mesh.active().len(), 19);
        let [merges, splits] = mesh.adapt(|_| false);
        assert_eq!((merges.len(), splits.len(), mesh.active().len()), (1, 0, 12));
        assert!(!splits.iter().any(|change| merges[0].parts.contains(&change.whole)));
    }

    #[test]
    fn neighbours_are_at_most_one_level_apart() {
        let mut mesh = mesh();
        (0..4).for_each(|_| _ = mesh.adapt(corner));
        // The call panics if the four finer neighbours do not exist.
        let finest = mesh.blocks().filter(|&(place, _)| {
            (0..6).for_each(|face| _ = mesh.neighbour(place, face));
            place.level == 2
        });
        assert_eq!(finest.count(), 8);
        let first = mesh.blocks().next().unwrap().0;
        assert!(matches!(mesh.neighbour(first, 0), Neighbour::Finer(_)), "{first:?}");
    }

    #[test]
    fn full_storage_refuses_splits() {
        let mut mesh = Octree::new(CellGrid { x: 2, y: 1, z: 1 }, 1, 10);
        let [_, splits] = mesh.adapt(|_| true);
        assert_eq!((splits.len(), mesh.active().len()), (1, 9));
    }
}
