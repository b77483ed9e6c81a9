//! The mesh: zones in a pie slice, their sides, and the side chunks that CTAs process.

/// A point in the plane.
pub(super) type Point = [f64; 2];

/// A quarter disc with radius 1, in rays and rings. A zone touches the centre with a corner or lies between two rings.
/// A side is a zone edge, with the triangle between the edge and the zone's centre.
pub(super) struct PieMesh {
    /// Position per point: the centre, then ring by ring.
    pub(super) points: Vec<Point>,
    /// Number of points per zone, equal to its number of sides.
    pub(super) zone_points: Vec<i32>,
    /// First point per side.
    pub(super) first: Vec<i32>,
    /// Second point per side.
    pub(super) second: Vec<i32>,
    /// Zone to which each side belongs.
    pub(super) zone: Vec<i32>,
    /// Next side around the zone, per side.
    pub(super) next: Vec<i32>,
    /// First side per chunk, plus the total side count at the end: each zone lies in a single chunk.
    pub(super) chunks: Vec<i32>,
}

impl PieMesh {
    /// Builds a mesh with `rays × rings` zones, in chunks with at most `chunk` sides.
    pub(super) fn pie(rays: u32, rings: u32, chunk: u32) -> PieMesh {
        let (rays, rings) = (rays as i32, rings as i32);
        let across = rays + 1;
        let mut mesh = PieMesh {
            points: vec![[0.0; 2]],
            zone_points: Vec::new(),
            first: Vec::new(),
            second: Vec::new(),
            zone: Vec::new(),
            next: Vec::new(),
            chunks: vec![0],
        };
        for ring in 1..=rings {
            let radius = f64::from(ring) / f64::from(rings);
            let angle = |ray: i32| std::f64::consts::FRAC_PI_2 * f64::from(rays - ray) / f64::from(rays);
            mesh.points.extend((0..across).map(|ray| [radius * angle(ray).cos(), radius * angle(ray).sin()]));
        }
        for ring in 0..rings {
            for ray in 0..rays {
                let inner = 1 + (ring - 1) * across + ray;
                let outer = inner + across;
                let corners =
                    if ring == 0 { vec![0, outer + 1, outer] } else { vec![inner, inner + 1, outer + 1, outer] };
                mesh.add(&corners, chunk as usize);
            }
        }
        mesh.chunks.push(mesh.first.len() as i32);
        mesh
    }

    fn add(&mut self, corners: &[i32], chunk: usize) {
        let start = self.first.len();
        let open = self.chunks.last().map_or(0, |first| *first as usize);
        if start + corners.len() - open > chunk {
            self.chunks.push(start as i32);
        }
        for side in 0..corners.len() {
            let next = (side + 1) % corners.len();
            self.first.push(corners[side]);
            self.second.push(corners[next]);
            self.zone.push(self.zone_points.len() as i32);
            self.next.push((start + next) as i32);
        }
        self.zone_points.push(corners.len() as i32);
    }

    /// Previous side around the zone, for each side.
    pub(super) fn before(&self) -> Vec<usize> {
        let mut before = vec![0; self.next.len()];
        self.next.iter().enumerate().for_each(|(side, next)| before[*next as usize] = side);
        before
    }

    /// Sides ordered by their first points, for the point-to-side lists.
    pub(super) fn by_point(&self) -> Vec<i32> {
        let mut sides: Vec<i32> = (0..self.first.len() as i32).collect();
        sides.sort_by_key(|side| self.first[*side as usize]);
        sides
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_whole_zones() {
        let mesh = PieMesh::pie(30, 100, 64);
        assert_eq!((mesh.points.len(), mesh.zone_points.len(), mesh.first.len()), (3_101, 3_000, 11_970));
        assert!(mesh.chunks.windows(2).all(|pair| (1..=64).contains(&(pair[1] - pair[0]))));
        let starts = |side: i32| side == 0 || mesh.zone[side as usize] != mesh.zone[side as usize - 1];
        assert!(mesh.chunks.iter().all(|side| *side as usize == mesh.first.len() || starts(*side)));
        assert_eq!(mesh.before()[mesh.next[17] as usize], 17);
    }

    #[test]
    fn every_side_ends_where_the_next_begins() {
        for (rays, rings) in [(1, 1), (1, 3), (4, 5)] {
            let mesh = PieMesh::pie(rays, rings, 64);
            for (second, next) in mesh.second.iter().zip(&mesh.next) {
                assert_eq!(*second, mesh.first[*next as usize]);
            }
        }
    }
}
