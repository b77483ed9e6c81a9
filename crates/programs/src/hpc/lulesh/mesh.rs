//! The hexahedral mesh: a cube with elements, stored like any unstructured mesh.

use crate::numbering::Numbering;
use crate::prelude::*;

/// Corners per element.
pub(super) const CORNERS: usize = 8;
/// Faces per element: the lower and the upper face along each axis.
pub(super) const FACES: usize = 6;

/// Corner number by offset from the lowest corner, along x, y and z: around the lower face, then the upper.
const CORNER_AT: [usize; CORNERS] = [0, 1, 3, 2, 4, 5, 7, 6];

/// Numbering scheme for elements and nodes in the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberingScheme {
    /// Row by row, plane by plane. Source: LULESH 2.0 (`BuildMesh`).
    Rows,
    /// Shell by shell around the blast. Source: `sedov21oct.lmesh` in LULESH 2.0's CUDA port, for the shells within its
    /// core.
    Shells,
}

/// Elements, nodes and their connectivity.
pub(super) struct HexMesh {
    elements: CellGrid,
    nodes: CellGrid,
    element_numbers: Numbering,
    node_numbers: Numbering,
}

impl HexMesh {
    /// Builds a box with `[x, y, z]` elements.
    pub(super) fn new([x, y, z]: [i32; 3], order: NumberingScheme) -> HexMesh {
        let elements = CellGrid { x, y, z };
        let nodes = CellGrid { x: x + 1, y: y + 1, z: z + 1 };
        let number = |cells| match order {
            NumberingScheme::Rows => Numbering::Regular,
            NumberingScheme::Shells => Numbering::shells(cells),
        };
        HexMesh { elements, nodes, element_numbers: number(elements), node_numbers: number(nodes) }
    }

    /// Number of elements in the mesh.
    pub(super) fn elements(&self) -> i32 {
        self.elements.count()
    }

    /// Number of nodes in the mesh.
    pub(super) fn nodes(&self) -> i32 {
        self.nodes.count()
    }

    /// Element at the box's lowest corner.
    pub(super) fn origin(&self) -> i32 {
        self.element_numbers.number(0)
    }

    /// Coordinates for a node, in elements.
    pub(super) fn place(&self, node: i32) -> [i32; 3] {
        self.nodes.coordinates(self.node_numbers.place(node))
    }

    /// Node at a corner of an element.
    pub(super) fn node(&self, element: i32, corner: usize) -> i32 {
        let place = self.elements.coordinates(self.element_numbers.place(element));
        let offset = CORNER_AT[corner];
        let at = std::array::from_fn(|axis| place[axis] + (offset >> axis & 1) as i32);
        self.node_numbers.number(self.nodes.index(at))
    }

    /// Element beyond a face: lower and upper along x, along y, along z. At the border, the element itself.
    pub(super) fn beyond(&self, element: i32, face: usize) -> i32 {
        let mut place = self.elements.coordinates(self.element_numbers.place(element));
        let side = [self.elements.x, self.elements.y, self.elements.z][face / 2];
        place[face / 2] = (place[face / 2] + if face.is_multiple_of(2) { -1 } else { 1 }).clamp(0, side - 1);
        self.element_numbers.number(self.elements.index(place))
    }

    /// Bit mask by face: a bit is set if no element lies beyond the face. Lower border faces are symmetry planes, upper
    /// border faces are free.
    pub(super) fn borders(&self, element: i32) -> u32 {
        (0..FACES).fold(0, |bits, face| bits | u32::from(self.beyond(element, face) == element) << face)
    }

    /// True if a node lies on the symmetry plane across an axis.
    pub(super) fn on_symmetry_plane(&self, node: i32, axis: usize) -> bool {
        self.place(node)[axis] == 0
    }

    /// Nodes on the symmetry plane across an axis, ascending.
    pub(super) fn symmetry_nodes(&self, axis: usize) -> Vec<i32> {
        (0..self.nodes()).filter(|node| self.on_symmetry_plane(*node, axis)).collect()
    }

    /// Number of elements around a node.
    pub(super) fn degree(&self, node: i32) -> i32 {
        let sides = [self.nodes.x, self.nodes.y, self.nodes.z];
        let along = |(at, side): (i32, i32)| i32::from(at > 0) + i32::from(at < side - 1);
        self.place(node).into_iter().zip(sides).map(along).product()
    }

    /// Corners around a node, encoded as corner × elements + element.
    pub(super) fn corners(&self, node: i32) -> impl Iterator<Item = i32> {
        let place = self.place(node);
        let sides = [self.elements.x, self.elements.y, self.elements.z];
        (0..CORNERS as i32).rev().filter_map(move |offset| {
            let at: [i32; 3] = std::array::from_fn(|axis| place[axis] - (offset >> axis & 1));
            if (0..3).any(|axis| at[axis] < 0 || at[axis] >= sides[axis]) {
                return None;
            }
            let corner = CORNER_AT.iter().position(|other| *other as i32 == offset)?;
            Some(corner as i32 * self.elements() + self.element_numbers.number(self.elements.index(at)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_lead_back_to_their_node() {
        for order in [NumberingScheme::Rows, NumberingScheme::Shells] {
            let mesh = HexMesh::new([3, 5, 6], order);
            for node in 0..mesh.nodes() {
                let corners: Vec<i32> = mesh.corners(node).collect();
                assert_eq!(corners.len() as i32, mesh.degree(node));
                for corner in corners {
                    assert_eq!(mesh.node(corner % mesh.elements(), (corner / mesh.elements()) as usize), node);
                }
            }
            assert_eq!((0..mesh.nodes()).map(|node| mesh.degree(node)).sum::<i32>(), 8 * mesh.elements());
        }
    }

    #[test]
    fn neighbours_see_each_other_through_opposite_faces() {
        let mesh = HexMesh::new([3, 5, 6], NumberingScheme::Shells);
        for element in 0..mesh.elements() {
            for face in 0..FACES {
                let border = mesh.borders(element) >> face & 1 == 1;
                assert!(border || mesh.beyond(mesh.beyond(element, face), face ^ 1) == element);
            }
        }
        let borders: u32 = (0..mesh.elements()).map(|element| mesh.borders(element).count_ones()).sum();
        assert_eq!(borders, 2 * (15 + 18 + 30));
    }

    #[test]
    fn planes_of_symmetry_are_faces_of_the_box() {
        let mesh = HexMesh::new([3, 5, 6], NumberingScheme::Shells);
        assert_eq!([0, 1, 2].map(|axis| mesh.symmetry_nodes(axis).len()), [6 * 7, 4 * 7, 4 * 6]);
        assert!(mesh.symmetry_nodes(1).iter().all(|node| mesh.place(*node)[1] == 0));
        assert_eq!(mesh.origin(), 0);
    }

    /// Source: the first four element lines in `sedov21oct.lmesh`.
    #[test]
    fn the_first_shells_are_those_of_the_public_mesh() {
        let mesh = HexMesh::new([4, 4, 4], NumberingScheme::Shells);
        let nodes = |element| (0..CORNERS).map(|corner| mesh.node(element, corner)).collect::<Vec<_>>();
        assert_eq!(nodes(0), [0, 5, 6, 7, 1, 2, 3, 4]);
        assert_eq!(nodes(1), [1, 2, 3, 4, 8, 9, 10, 11]);
        assert_eq!(nodes(2), [2, 17, 18, 3, 9, 12, 13, 10]);
        assert_eq!(nodes(3), [3, 18, 19, 20, 10, 13, 14, 15]);
    }
}
