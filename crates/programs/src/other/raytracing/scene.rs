//! The scene: hills under a cloud with small triangles, and the box hierarchy over them.

use crate::prelude::*;

/// A point or a direction.
pub(super) type Vector = [f32; 3];

/// Triangles per leaf. Source: OptiX and Aila and Laine have up to four to eight.
pub(super) const LEAF: usize = 4;
/// Side length of the scene, in scene units.
pub(super) const SIDE: f32 = 100.0;
/// Height of the hills, in scene units. Source: assumed.
const HILLS: f32 = 12.0;
/// Points per side in the coarse height grid, from which hills are interpolated. Source: assumed.
const COARSE: usize = 17;
/// Side length of a cloud triangle. Source: assumed.
const SPECK: f32 = 0.4;
/// Margin by which boxes exceed their contents, so that rounding loses no hit.
const SLACK: f32 = 1e-3;

/// A triangle, given by its three corners.
pub(super) type Triangle = [Vector; 3];

/// A box, given by its low and high corner.
pub(super) type Bounds = [Vector; 2];

/// Difference vector between two points.
pub(super) fn minus(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(super) fn dot(a: Vector, b: Vector) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(super) fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Computes `a + t b`.
pub(super) fn along(a: Vector, t: f32, b: Vector) -> Vector {
    [a[0] + t * b[0], a[1] + t * b[1], a[2] + t * b[2]]
}

/// Scales `a` to length one.
pub(super) fn unit(a: Vector) -> Vector {
    let inverse = 1.0 / dot(a, a).sqrt();
    a.map(|part| part * inverse)
}

/// Generates `count` triangles in the leaves' order: along a curve through space.
pub(super) fn triangles(count: usize, seed: u64) -> Vec<Triangle> {
    // Half the triangles form the hills, two triangles per grid square; the rest floats above.
    let squares = (count / 4).isqrt().max(1);
    let mut all = Vec::with_capacity(count);
    for square in 0..squares * squares {
        let corner = |right: usize, down: usize| {
            let at = [square % squares + right, square / squares + down].map(|at| at as f32 * SIDE / squares as f32);
            [at[0], height(at, seed), at[1]]
        };
        let [a, b, c, d] = [corner(0, 0), corner(1, 0), corner(0, 1), corner(1, 1)];
        all.extend([[a, b, c], [b, d, c]]);
    }
    all.truncate(count);
    for speck in all.len()..count {
        let part = |at: u64| noise::unit(seed ^ 1, 12 * speck as u64 + at);
        let middle = [0.5 * SIDE * (1.0 + part(0)), HILLS * (1.6 + 0.5 * part(1)), 0.5 * SIDE * (1.0 + part(2))];
        all.push([3, 6, 9].map(|at| along(middle, SPECK, [part(at), part(at + 1), part(at + 2)])));
    }
    all.sort_by_cached_key(curve);
    all
}

/// Height of the hills at a point.
fn height(at: [f32; 2], seed: u64) -> f32 {
    let cell = SIDE / (COARSE - 1) as f32;
    let [x, z] = at.map(|at| ((at / cell) as usize).min(COARSE - 2));
    let [right, down] = [at[0] / cell - x as f32, at[1] / cell - z as f32];
    let coarse = |x: usize, z: usize| 0.5 * HILLS * (1.0 + noise::unit(seed, (z * COARSE + x) as u64));
    let upper = (1.0 - right) * coarse(x, z) + right * coarse(x + 1, z);
    let lower = (1.0 - right) * coarse(x, z + 1) + right * coarse(x + 1, z + 1);
    (1.0 - down) * upper + down * lower
}

/// Position of a triangle's middle on the Morton curve, ten bits per axis.
fn curve(triangle: &Triangle) -> u32 {
    let spread = |mut bits: u32| {
        bits = (bits | bits << 16) & 0x0300_00ff;
        bits = (bits | bits << 8) & 0x0300_f00f;
        bits = (bits | bits << 4) & 0x030c_30c3;
        (bits | bits << 2) & 0x0924_9249
    };
    let middle = |axis: usize| {
        let sum: f32 = triangle.iter().map(|corner| corner[axis]).sum();
        ((sum / 3.0 / SIDE * 1024.0) as u32).min(1023)
    };
    spread(middle(0)) << 2 | spread(middle(1)) << 1 | spread(middle(2))
}

/// An inner node: its two children, and their boxes. A child from 0 on is a node; child `-1 - n` is leaf `n`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BoxNode {
    pub(super) children: [i32; 2],
    pub(super) bounds: [Bounds; 2],
}

/// Builds the hierarchy over leaves with [`LEAF`] triangles each, in depth-first order: a node's children are the
/// halves of its leaf range. `triangles` fill at least two leaves.
pub(super) fn hierarchy(triangles: &[Triangle]) -> Vec<BoxNode> {
    let leaves = triangles.len() / LEAF;
    let mut nodes = vec![BoxNode::default(); leaves - 1];
    build(triangles, 0, leaves, 0, &mut nodes);
    nodes
}

/// Fills the nodes from `node` on, over `count` leaves from `first` on; returns the child and its box.
fn build(triangles: &[Triangle], first: usize, count: usize, node: usize, nodes: &mut [BoxNode]) -> (i32, Bounds) {
    if count == 1 {
        return (-1 - first as i32, bounds(&triangles[first * LEAF..(first + 1) * LEAF]));
    }
    let half = count / 2;
    let (left, left_box) = build(triangles, first, half, node + 1, nodes);
    let (right, right_box) = build(triangles, first + half, count - half, node + half, nodes);
    nodes[node] = BoxNode { children: [left, right], bounds: [left_box, right_box] };
    let [low, high] = left_box;
    let joined = [
        [0, 1, 2].map(|axis| low[axis].min(right_box[0][axis])),
        [0, 1, 2].map(|axis| high[axis].max(right_box[1][axis])),
    ];
    (node as i32, joined)
}

fn bounds(triangles: &[Triangle]) -> Bounds {
    let corners = triangles.as_flattened();
    let low = [0, 1, 2].map(|axis| corners.iter().map(|corner| corner[axis]).fold(f32::MAX, f32::min) - SLACK);
    let high = [0, 1, 2].map(|axis| corners.iter().map(|corner| corner[axis]).fold(f32::MIN, f32::max) + SLACK);
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_box_holds_what_lies_under_it() {
        let triangles = triangles(4 * 37, 3);
        let nodes = hierarchy(&triangles);
        let mut seen = vec![0; 37];
        let mut stack = vec![(0, [[f32::MIN; 3], [f32::MAX; 3]])];
        while let Some((at, around)) = stack.pop() {
            let Some(node) = usize::try_from(at).ok().map(|at| nodes[at]) else {
                let leaf = (-1 - at) as usize;
                seen[leaf] += 1;
                for corner in triangles[leaf * LEAF..(leaf + 1) * LEAF].as_flattened() {
                    assert!((0..3).all(|axis| (around[0][axis]..=around[1][axis]).contains(&corner[axis])));
                }
                continue;
            };
            stack.extend(node.children.into_iter().zip(node.bounds));
        }
        assert!(seen.iter().all(|&times| times == 1), "{seen:?}");
    }
}
