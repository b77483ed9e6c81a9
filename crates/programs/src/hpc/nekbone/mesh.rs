//! Nekbone's mesh: elements with points; neighbouring elements share the points on their faces.

use crate::prelude::*;

/// Elements and their shared points.
pub(super) struct SpectralMesh {
    pub(super) elements: CellGrid,
    /// Points along each side of an element.
    pub(super) side: i32,
    /// Local copies of each point shared by several elements: a list per point.
    pub(super) shared: Vec<Vec<u32>>,
}

impl SpectralMesh {
    /// Builds a mesh with `elements` elements, each with `side` points along its sides.
    pub(super) fn new(elements: CellGrid, side: i32) -> SpectralMesh {
        let mut mesh = SpectralMesh { elements, side, shared: Vec::new() };
        let mut copies = vec![Vec::new(); mesh.global().count() as usize];
        for local in 0..mesh.points() {
            copies[mesh.global_point(local) as usize].push(local as u32);
        }
        mesh.shared = copies.into_iter().filter(|copies| copies.len() > 1).collect();
        mesh
    }

    /// Number of points per element.
    pub(super) fn element_points(&self) -> i32 {
        self.side.pow(3)
    }

    /// Number of local points, counted in all elements.
    pub(super) fn points(&self) -> i32 {
        self.elements.count() * self.element_points()
    }

    /// Grid of distinct points.
    pub(super) fn global(&self) -> CellGrid {
        let along = |elements: i32| elements * (self.side - 1) + 1;
        CellGrid { x: along(self.elements.x), y: along(self.elements.y), z: along(self.elements.z) }
    }

    /// Coordinates in the grid of distinct points.
    fn place(&self, local: i32) -> [i32; 3] {
        let inner = CellGrid { x: self.side, y: self.side, z: self.side };
        let (element, point) = (
            self.elements.coordinates(local / self.element_points()),
            inner.coordinates(local % self.element_points()),
        );
        [0, 1, 2].map(|axis| element[axis] * (self.side - 1) + point[axis])
    }

    /// Index in the grid of distinct points for a local copy.
    pub(super) fn global_point(&self, local: i32) -> i32 {
        self.global().index(self.place(local))
    }

    /// True if a local point lies on the mesh border.
    pub(super) fn border(&self, local: i32) -> bool {
        let (place, grid) = (self.place(local), self.global());
        place.contains(&0) || place[0] == grid.x - 1 || place[1] == grid.y - 1 || place[2] == grid.z - 1
    }
}
