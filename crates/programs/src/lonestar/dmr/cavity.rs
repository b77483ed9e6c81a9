//! The cavity around a bad triangle, found by a warp's lanes. A cavity consists of the new point, the triangles whose
//! circles contain it, and the ring of sides around them.

use super::geometry::{LEAST, Point, area, circumcentre, encroaches, in_circle, square};
use super::mesh::NONE;
use crate::prelude::*;
use std::array::from_fn;

/// The mesh in device memory.
pub(super) struct MeshArrays {
    /// Two integer coordinates per point.
    pub(super) point: Array<f64>,
    /// Three corners per triangle, plus a spare word.
    pub(super) corner: Array<u32>,
    /// Three neighbours per triangle, plus a spare word.
    pub(super) neighbour: Array<u32>,
}

/// A triangle's corners and coordinates in the form loaded by its lane.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TriangleData {
    pub(super) corners: [u32; 3],
    pub(super) points: [Point; 3],
}

/// A ring side, counterclockwise when seen from the cavity.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingSide {
    pub(super) ends: [u32; 2],
    pub(super) points: [Point; 2],
    /// Triangle beyond the side, or [`NONE`], and this side's index in the outer triangle.
    pub(super) outer: u32,
    pub(super) outer_side: u32,
}

/// Search state for a lane's cavity, kept between steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Cavity {
    /// The new point.
    pub(super) centre: Point,
    /// Triangle that contains the new point, followed by all triangles whose circles contain it.
    pub(super) triangles: Vec<u32>,
    pub(super) ring: Vec<RingSide>,
    /// Ends of the border side that the new point splits.
    split: Option<[u32; 2]>,
    /// Set if there is no room for a point: the bad triangle then remains unchanged.
    pub(super) hopeless: bool,
    /// Number of triangles in the list already examined.
    seen: usize,
}

impl Cavity {
    /// All triangles that change: triangles in the cavity, and their outer neighbours.
    pub(super) fn claims(&self) -> Vec<u32> {
        let outer = self.ring.iter().map(|side| side.outer).filter(|outer| *outer != NONE);
        self.triangles.iter().copied().chain(outer).collect()
    }

    /// Restarts the search with the middle of a border side as the new point.
    fn split(&mut self, triangle: u32, ends: [u32; 2], [a, b]: [Point; 2]) {
        self.centre = [0, 1].map(|axis| (a[axis] + b[axis]) / 2);
        self.hopeless = square(a, b) < LEAST;
        self.triangles = vec![triangle];
        self.ring.clear();
        self.split = Some(ends);
        self.seen = 0;
    }
}

/// Cavities for a warp's lanes.
pub(super) type Cavities = [Cavity; MAX_LANES];

impl MeshArrays {
    /// Loads corners and coordinates for a triangle.
    pub(super) fn load(&self, warp: &mut Warp<'_>, triangle: Lanes<u32>) -> Lanes<TriangleData> {
        let triangle = warp.compute(ComputeClass::Int, 3, triangle);
        let [a, b, c, _] = warp.load_vector(self.corner, triangle * 4);
        let corners = warp.compute(ComputeClass::Int, 3, [a, b, c]);
        let points = corners.map(|corner| warp.load_vector::<f64, u32, 2>(self.point, corner * 2));
        let points = warp.compute(ComputeClass::Fp64, 0, points);
        map_active(warp, |lane| TriangleData {
            corners: corners.map(|corner| corner.lane(lane)),
            points: points.map(|point| point.map(|along| along.lane(lane) as i64)),
        })
    }

    fn load_neighbours(&self, warp: &mut Warp<'_>, triangle: Lanes<u32>) -> Lanes<[u32; 3]> {
        let [a, b, c, _] = warp.load_vector(self.neighbour, triangle * 4);
        let [a, b, c] = warp.compute(ComputeClass::Int, 0, [a, b, c]);
        map_active(warp, |lane| [a.lane(lane), b.lane(lane), c.lane(lane)])
    }

    /// Finds the cavities for the bad triangles in the active lanes.
    pub(super) fn find(&self, warp: &mut Warp<'_>, bad: Lanes<u32>) -> Cavities {
        let mut cavities: Cavities = from_fn(|_| Cavity::default());
        let loaded = self.load(warp, bad);
        warp.compute(ComputeClass::Fp64, 24, ());
        each_active(warp, |lane| {
            let cavity = &mut cavities[lane as usize];
            cavity.centre = circumcentre(loaded.lane(lane).points);
            cavity.triangles = vec![bad.lane(lane)];
        });
        self.walk(warp, &mut cavities);
        self.grow(warp, &mut cavities);
        cavities
    }

    /// Walks to the triangle that contains the centre. If the mesh border lies in between, splits the border side
    /// instead.
    fn walk(&self, warp: &mut Warp<'_>, cavities: &mut Cavities) {
        let mut walking = map_active(warp, |_| true);
        while warp.any(walking) {
            warp.when(walking, |warp| {
                let at = map_active(warp, |lane| cavities[lane as usize].triangles[0]);
                let neighbours = self.load_neighbours(warp, at);
                let loaded = self.load(warp, at);
                warp.compute(ComputeClass::Fp64, 21, ());
                let on = map_active(warp, |lane| {
                    let cavity = &mut cavities[lane as usize];
                    let TriangleData { corners, points } = loaded.lane(lane);
                    let ends = |side: usize| [points[side], points[(side + 1) % 3]];
                    let beyond = |side: &usize| area([ends(*side)[0], ends(*side)[1], cavity.centre]) < 0;
                    let Some(side) = (0..3).find(beyond) else {
                        cavity.hopeless = points.contains(&cavity.centre);
                        return false;
                    };
                    match neighbours.lane(lane)[side] {
                        NONE => cavity.split(at.lane(lane), [corners[side], corners[(side + 1) % 3]], ends(side)),
                        next => cavity.triangles = vec![next],
                    }
                    cavity.split.is_none()
                });
                walking = warp.update(walking, on);
            });
        }
    }

    /// Adds all triangles whose circles contain the centre. If the centre is too near a border side, the search
    /// restarts at the middle of the side.
    fn grow(&self, warp: &mut Warp<'_>, cavities: &mut Cavities) {
        loop {
            let at = map_active(warp, |lane| {
                let cavity = &mut cavities[lane as usize];
                let next = cavity.triangles.get(cavity.seen).copied().filter(|_| !cavity.hopeless);
                cavity.seen += 1;
                next
            });
            if !warp.any(at.map(|at| at.is_some())) {
                return;
            }
            warp.when(at.map(|at| at.is_some()), |warp| {
                let at = at.map(Option::unwrap_or_default);
                let neighbours = self.load_neighbours(warp, at);
                let loaded = self.load(warp, at);
                for side in 0..3 {
                    // Lanes that restarted on an earlier side have left this triangle's queue.
                    let going = map_active(warp, |lane| cavities[lane as usize].seen > 0);
                    warp.when(going, |warp| self.look_across(warp, cavities, at, side, loaded, neighbours));
                }
            });
        }
    }

    /// Examines the neighbour across a side, for the current triangle in each lane's cavity.
    fn look_across(
        &self,
        warp: &mut Warp<'_>,
        cavities: &mut Cavities,
        at: Lanes<u32>,
        side: usize,
        loaded: Lanes<TriangleData>,
        neighbours: Lanes<[u32; 3]>,
    ) {
        let other = neighbours.map(|neighbours| neighbours[side]);
        let own = loaded.map(|TriangleData { corners, points }| {
            let next = (side + 1) % 3;
            ([corners[side], corners[next]], [points[side], points[next]])
        });
        let border = other.eq(NONE);
        warp.when(border, |warp| {
            warp.compute(ComputeClass::Fp64, 7, ());
            each_active(warp, |lane| {
                let (cavity, (ends, points)) = (&mut cavities[lane as usize], own.lane(lane));
                if cavity.split.is_none() && encroaches(cavity.centre, points) {
                    cavity.split(at.lane(lane), ends, points);
                } else if cavity.split != Some(ends) {
                    cavity.ring.push(RingSide { ends, points, outer: NONE, outer_side: 0 });
                }
            });
        });
        let fresh = map_active(warp, |lane| !cavities[lane as usize].triangles.contains(&other.lane(lane)));
        warp.when(!border & fresh, |warp| {
            let theirs = self.load(warp, other);
            warp.compute(ComputeClass::Fp64, 26, ());
            each_active(warp, |lane| {
                let (cavity, theirs) = (&mut cavities[lane as usize], theirs.lane(lane));
                let (ends, points) = own.lane(lane);
                if in_circle(theirs.points, cavity.centre) {
                    cavity.triangles.push(other.lane(lane));
                } else {
                    let outer_side = (0..3).find(|&back| theirs.corners[back] == ends[1]).unwrap_or_default();
                    let outer = other.lane(lane);
                    cavity.ring.push(RingSide { ends, points, outer, outer_side: outer_side as u32 });
                }
            });
        });
    }
}
