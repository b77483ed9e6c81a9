//! A Delaunay triangulation for a square in host memory: built point by point, and checked.

use super::geometry::{Point, area, circumcentre, in_circle};
use crate::prelude::*;

/// Side of the square. Source: assumed; a power of two that keeps determinants within 128 bits.
pub(super) const SIDE: i64 = 1 << 24;
/// Marker for a side without a neighbouring triangle.
pub(super) const NONE: u32 = u32::MAX;

/// Triangles by their corners, counterclockwise; neighbour `k` lies across the side from corner `k` to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Triangulation {
    pub(super) points: Vec<Point>,
    pub(super) corners: Vec<[u32; 3]>,
    pub(super) neighbours: Vec<[u32; 3]>,
}

/// Numbers of points and triangles in [`Triangulation::random`].
pub(super) fn size(side: u64) -> (u64, u64) {
    (side * side + 4, 2 * side * side + 2)
}

impl Triangulation {
    /// Builds a mesh from the square's corners, and a random point in each field on a `side × side` board.
    pub(super) fn random(side: u64, seed: u64) -> Triangulation {
        let mut mesh = Triangulation {
            points: vec![[0, 0], [SIDE, 0], [SIDE, SIDE], [0, SIDE]],
            corners: vec![[0, 1, 2], [0, 2, 3]],
            neighbours: vec![[NONE, NONE, 1], [0, NONE, NONE]],
        };
        let field = SIDE / side as i64;
        for row in 0..side {
            for step in 0..side {
                // The order goes back and forth, so that each point lies near the previous point.
                let column = if row % 2 == 0 { step } else { side - 1 - step };
                let at = |axis: u64, place: u64| {
                    let within = noise::below(seed, 2 * (row * side + column) + axis, field as u64 - 2);
                    place as i64 * field + 1 + within as i64
                };
                mesh.insert([at(0, column), at(1, row)]);
            }
        }
        mesh
    }

    pub(super) fn triangle(&self, triangle: u32) -> [Point; 3] {
        self.corners[triangle as usize].map(|corner| self.points[corner as usize])
    }

    /// Triangle that contains a point; the search starts at the latest triangle.
    fn locate(&self, point: Point) -> u32 {
        let mut at = self.corners.len() as u32 - 1;
        'walk: loop {
            let corners = self.triangle(at);
            for side in 0..3 {
                if area([corners[side], corners[(side + 1) % 3], point]) < 0 {
                    at = self.neighbours[at as usize][side];
                    continue 'walk;
                }
            }
            return at;
        }
    }

    /// Adds a point inside the square. Source: Bowyer and Watson, 1981.
    fn insert(&mut self, point: Point) {
        let mut cavity = vec![self.locate(point)];
        let mut ring = Vec::new();
        let mut next = 0;
        while let Some(&triangle) = cavity.get(next) {
            for side in 0..3 {
                let other = self.neighbours[triangle as usize][side];
                if cavity.contains(&other) {
                    continue;
                }
                if other != NONE && in_circle(self.triangle(other), point) {
                    cavity.push(other);
                } else {
                    let corners = self.corners[triangle as usize];
                    ring.push((corners[side], corners[(side + 1) % 3], other, triangle));
                }
            }
            next += 1;
        }
        let centre = self.points.len() as u32;
        self.points.push(point);
        let fresh = self.corners.len() as u32;
        let slots: Vec<u32> = cavity.into_iter().chain(fresh..).take(ring.len()).collect();
        self.corners.resize(fresh as usize + 2, [0; 3]);
        self.neighbours.resize(fresh as usize + 2, [NONE; 3]);
        for (&(from, to, outer, inner), &slot) in ring.iter().zip(&slots) {
            let slot_where = |holds: &dyn Fn(u32, u32) -> bool| {
                let at = ring.iter().position(|&(from, to, ..)| holds(from, to)).expect("the ring is closed");
                slots[at]
            };
            let (after, before) = (slot_where(&|from, _| from == to), slot_where(&|_, to| to == from));
            self.corners[slot as usize] = [from, to, centre];
            self.neighbours[slot as usize] = [outer, after, before];
            if outer != NONE {
                let sides = self.corners[outer as usize];
                let side = (0..3).find(|&side| sides[side] == to).expect("the neighbour shares the side");
                debug_assert!(self.neighbours[outer as usize][side] == inner || slots.contains(&inner));
                self.neighbours[outer as usize][side] = slot;
            }
        }
    }

    /// Checks the triangulation: it covers the square, neighbours agree, every point is a corner, and no circle through
    /// a triangle's corners contains its neighbours' corners. Returns the first error found.
    pub(super) fn check(&self) -> Result<(), String> {
        let (mut covered, mut border) = (0, 0);
        for (at, corners) in (0..).zip(&self.corners) {
            let points = self.triangle(at);
            let size = area(points);
            if size <= 0 {
                return Err(format!("triangle {at} has the doubled area {size}"));
            }
            covered += i128::from(size);
            for side in 0..3 {
                let other = self.neighbours[at as usize][side];
                let (from, to) = (corners[side], corners[(side + 1) % 3]);
                if other == NONE {
                    border += 1;
                    continue;
                }
                let theirs = self.corners.get(other as usize).copied().unwrap_or_default();
                let back = (0..3).find(|&back| theirs[back] == to && theirs[(back + 1) % 3] == from);
                let Some(back) = back.filter(|&back| self.neighbours[other as usize][back] == at) else {
                    return Err(format!("triangles {at} and {other} disagree on the side from {from} to {to}"));
                };
                let opposite = self.points[theirs[(back + 2) % 3] as usize];
                if in_circle(points, opposite) {
                    return Err(format!(
                        "the circle around {:?} of triangle {at} holds {opposite:?}",
                        circumcentre(points)
                    ));
                }
            }
        }
        if covered != 2 * i128::from(SIDE) * i128::from(SIDE) {
            return Err(format!("the triangles cover {covered}"));
        }
        let expected = 2 * self.points.len() - 2 - border;
        match self.corners.len() {
            found if found == expected => Ok(()),
            found => Err(format!("{found} triangles of {} points, expected {expected}", self.points.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_mesh_is_a_delaunay_triangulation() {
        for side in [1, 2, 9, 40] {
            let mesh = Triangulation::random(side, side);
            assert_eq!(mesh.check(), Ok(()));
            assert_eq!((mesh.points.len() as u64, mesh.corners.len() as u64), size(side));
        }
    }

    #[test]
    fn a_broken_mesh_is_seen() {
        let mut mesh = Triangulation::random(9, 1);
        mesh.neighbours[7][1] = 3;
        assert!(mesh.check().is_err());
        let mut mesh = Triangulation::random(9, 1);
        mesh.points[20] = [mesh.points[20][0] + SIDE / 5, mesh.points[20][1]];
        assert!(mesh.check().is_err());
    }
}
