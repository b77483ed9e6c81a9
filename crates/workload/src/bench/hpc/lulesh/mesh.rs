//! The mesh of hexahedra: a cube of elements, held as any unstructured mesh is.

use crate::bench::cells::Cells;
use crate::bench::numbering::Numbering;

/// Corners of an element.
pub(super) const CORNERS: usize = 8;
/// Faces of an element, the lower and the upper one along each axis.
pub(super) const FACES: usize = 6;

/// Which corner lies at these offsets from the lowest, along x, y and z: the lower face around, then the upper.
const CORNER_AT: [usize; CORNERS] = [0, 1, 3, 2, 4, 5, 7, 6];

/// Elements, nodes and what they touch.
pub(super) struct Mesh {
    elements: Cells,
    nodes: Cells,
    element_numbers: Numbering,
    node_numbers: Numbering,
}

impl Mesh {
    /// A box of `[x, y, z]` elements, numbered regularly or, with a seed, by bins.
    pub(super) fn new([x, y, z]: [i32; 3], seed: Option<u64>) -> Mesh {
        let elements = Cells { x, y, z };
        let nodes = Cells { x: x + 1, y: y + 1, z: z + 1 };
        let number = |cells, twist| match seed {
            Some(seed) => Numbering::binned(cells, 1, seed ^ twist),
            None => Numbering::Regular,
        };
        Mesh { elements, nodes, element_numbers: number(elements, 0), node_numbers: number(nodes, 1) }
    }

    /// Elements.
    pub(super) fn elements(&self) -> i32 {
        self.elements.count()
    }

    /// Nodes.
    pub(super) fn nodes(&self) -> i32 {
        self.nodes.count()
    }

    /// The element at the lowest corner of the box.
    pub(super) fn origin(&self) -> i32 {
        self.element_numbers.number(0)
    }

    /// Coordinates of a node, in elements.
    pub(super) fn place(&self, node: i32) -> [i32; 3] {
        self.nodes.place(self.node_numbers.place(node))
    }

    /// The node at a corner of an element.
    pub(super) fn node(&self, element: i32, corner: usize) -> i32 {
        let place = self.elements.place(self.element_numbers.place(element));
        let offset = CORNER_AT[corner];
        let at = std::array::from_fn(|axis| place[axis] + (offset >> axis & 1) as i32);
        self.node_numbers.number(self.nodes.index(at))
    }

    /// The element beyond a face: lower and upper along x, along y, along z. The element itself where there is none.
    pub(super) fn beyond(&self, element: i32, face: usize) -> i32 {
        let mut place = self.elements.place(self.element_numbers.place(element));
        let side = [self.elements.x, self.elements.y, self.elements.z][face / 2];
        place[face / 2] = (place[face / 2] + if face.is_multiple_of(2) { -1 } else { 1 }).clamp(0, side - 1);
        self.element_numbers.number(self.elements.index(place))
    }

    /// Bit by face: the faces beyond which there is no element. The lower ones are planes of symmetry, the upper ones
    /// are free.
    pub(super) fn borders(&self, element: i32) -> u32 {
        (0..FACES).fold(0, |bits, face| bits | u32::from(self.beyond(element, face) == element) << face)
    }

    /// Bit by axis: the planes of symmetry that a node lies on.
    pub(super) fn planes(&self, node: i32) -> u32 {
        (0..).zip(self.place(node)).fold(0, |bits, (axis, at)| bits | u32::from(at == 0) << axis)
    }

    /// Elements around a node.
    pub(super) fn degree(&self, node: i32) -> i32 {
        let sides = [self.nodes.x, self.nodes.y, self.nodes.z];
        let along = |(at, side): (i32, i32)| i32::from(at > 0) + i32::from(at < side - 1);
        self.place(node).into_iter().zip(sides).map(along).product()
    }

    /// The corners around a node: corner × elements + element.
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
        for seed in [None, Some(7)] {
            let mesh = Mesh::new([3, 5, 6], seed);
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
        let mesh = Mesh::new([3, 5, 6], Some(7));
        for element in 0..mesh.elements() {
            for face in 0..FACES {
                let border = mesh.borders(element) >> face & 1 == 1;
                assert!(border || mesh.beyond(mesh.beyond(element, face), face ^ 1) == element);
            }
        }
        let borders: u32 = (0..mesh.elements()).map(|element| mesh.borders(element).count_ones()).sum();
        assert_eq!(borders, 2 * (15 + 18 + 30));
    }
}
