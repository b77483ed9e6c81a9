//! A tetrahedral mesh: cubes in a box, each cut into six tetrahedra that share its diagonal (Kuhn's cut).
//!
//! A tetrahedron corresponds to an order in which a path walks the axes from the cube's lowest corner to its highest.
//! Elements are numbered bin by bin, in random order within a bin, like in Rodinia's meshes.

use crate::numbering::Numbering;
use crate::prelude::*;

/// Faces per element.
pub(super) const FACES: usize = 4;
/// Marker for the wing beyond a face. Source: Rodinia 3.1 cfd.
pub(super) const WING: i32 = -1;
/// Marker for the free flow beyond a face. Source: Rodinia 3.1 cfd.
pub(super) const FAR: i32 = -2;

/// The orders of three axes, one per tetrahedron in a cube.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// A mesh with its numbering.
pub(super) struct TetMesh {
    cubes: CellGrid,
    /// Numbering for element positions; a position is the cube × 6 + the order.
    numbering: Numbering,
}

impl TetMesh {
    /// Volume of every element; cubes have side 1.
    pub(super) const VOLUME: f32 = 1.0 / 6.0;

    /// Builds a box with the given number of cubes along each axis.
    pub(super) fn new([x, y, z]: [i32; 3], seed: u64) -> TetMesh {
        let cubes = CellGrid { x, y, z };
        TetMesh { cubes, numbering: Numbering::binned(cubes, ORDERS.len() as i32, seed) }
    }

    /// Number of elements.
    pub(super) fn elements(&self) -> i32 {
        self.cubes.count() * ORDERS.len() as i32
    }

    fn place(&self, element: i32) -> (i32, [usize; 3]) {
        let place = self.numbering.place(element);
        (place / 6, ORDERS[(place % 6) as usize])
    }

    /// Element beyond a face, [`WING`] or [`FAR`]. Faces lie opposite the corners along the path.
    pub(super) fn neighbour(&self, element: i32, face: usize) -> i32 {
        let (cube, [a, b, c]) = self.place(element);
        let mut at = self.cubes.coordinates(cube);
        let order = match face {
            0 => {
                at[a] += 1;
                [b, c, a]
            }
            1 => [b, a, c],
            2 => [a, c, b],
            _ => {
                at[c] -= 1;
                [c, a, b]
            }
        };
        let sides = [self.cubes.x, self.cubes.y, self.cubes.z];
        if at[2] < 0 {
            return WING;
        }
        if (0..3).any(|axis| at[axis] < 0 || at[axis] >= sides[axis]) {
            return FAR;
        }
        let order = (0..).zip(ORDERS).find(|(_, other)| *other == order).map_or(0, |(index, _)| index);
        self.numbering.number(self.cubes.index(at) * 6 + order)
    }

    /// Inward normal for a face, with the face's area as length.
    pub(super) fn normal(&self, element: i32, face: usize) -> [f32; 3] {
        let (_, [a, b, c]) = self.place(element);
        let mut normal = [0.0; 3];
        let (to, from) = match face {
            0 => (None, Some(a)),
            1 => (Some(a), Some(b)),
            2 => (Some(b), Some(c)),
            _ => (Some(c), None),
        };
        to.iter().for_each(|axis: &usize| normal[*axis] = 0.5);
        from.iter().for_each(|axis: &usize| normal[*axis] = -0.5);
        normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_meet_and_close_every_element() {
        let mesh = TetMesh::new([3, 5, 6], 7);
        for element in 0..mesh.elements() {
            let mut sum = [0.0; 3];
            for face in 0..FACES {
                let normal = mesh.normal(element, face);
                (0..3).for_each(|axis| sum[axis] += normal[axis]);
                let beyond = mesh.neighbour(element, face);
                if beyond >= 0 {
                    let back = (0..FACES).find(|face| mesh.neighbour(beyond, *face) == element).unwrap();
                    assert_eq!(mesh.normal(beyond, back), normal.map(|part| -part));
                }
            }
            assert_eq!(sum, [0.0; 3]);
        }
        let walls = |wall| {
            let faces = (0..mesh.elements()).flat_map(|element| (0..FACES).map(move |face| (element, face)));
            faces.filter(|(element, face)| mesh.neighbour(*element, *face) == wall).count()
        };
        assert_eq!((walls(WING), walls(FAR)), (2 * 15, 2 * 15 + 4 * 18 + 4 * 30));
    }
}
