//! Particle tree built by the host: boxes are halved at their centres of mass (Gafton and Rosswog, 2011).
//!
//! Twelve pseudo-particles on a sphere around the centre of mass represent a node's particles. Their masses give the
//! same moments up to the quadrupole (Kawai and others, 2004).

use std::ops::Range;

/// Pseudo-particles per node. Source: HACC, RCBForceTree.h, `QUADRUPOLE_TDPTS`.
pub(super) const PSEUDO: usize = 12;
/// Sphere radius, as a fraction relative to the distance from the centre to the nearest face. Source: HACC,
/// RCBForceTree.h, `ppc`.
const CONTRACTION: f32 = 0.9;
/// Non-zero coordinates for an icosahedron's vertices. Source: Hardin and Sloane, 1992: a spherical 4-design.
const VERTEX: (f32, f32) = (0.850_650_8, 0.525_731_1);

/// A point mass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Particle {
    /// Position along x, y and z.
    pub(super) at: [f32; 3],
    /// Mass.
    pub(super) mass: f32,
}

/// A node in the tree.
#[derive(Clone, Debug)]
pub(super) struct TreeNode {
    /// Index for the node's first particle.
    pub(super) first: usize,
    /// Number of particles in the node.
    pub(super) count: usize,
    /// Bounding box around the node's particles: least and largest coordinates.
    bounds: [[f32; 3]; 2],
    centre: [f32; 3],
    pseudo: [Particle; PSEUDO],
    children: Option<[usize; 2]>,
}

impl TreeNode {
    /// Index range for the node's particles.
    pub(super) fn particles(&self) -> Range<usize> {
        self.first..self.first + self.count
    }
}

/// The tree, with the particles in leaf order.
pub(super) struct Tree {
    pub(super) particles: Vec<Particle>,
    pub(super) nodes: Vec<TreeNode>,
}

/// An entry on a leaf's interaction list.
#[derive(Clone, Copy, Debug)]
pub(super) enum ForceSource {
    /// A particle, by its index.
    Particle(usize),
    /// A pseudo-particle, by node and number.
    Pseudo(usize, usize),
}

/// Difference vector between two positions.
fn apart(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// Scalar product of two vectors.
fn dot(a: [f32; 3], b: [f32; 3]) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Bounds and centre of mass for a non-empty list with particles.
fn measure(particles: &[Particle]) -> ([[f32; 3]; 2], [f32; 3]) {
    let mut bounds = [particles[0].at; 2];
    let (mut moment, mut mass) = ([0.0; 3], 0.0);
    for particle in particles {
        for axis in 0..3 {
            bounds[0][axis] = bounds[0][axis].min(particle.at[axis]);
            bounds[1][axis] = bounds[1][axis].max(particle.at[axis]);
            moment[axis] += f64::from(particle.mass) * f64::from(particle.at[axis]);
        }
        mass += f64::from(particle.mass);
    }
    (bounds, moment.map(|moment| (moment / mass) as f32))
}

/// Initial pseudo-particles for a node: positions on the sphere, mass zero.
fn sphere([least, largest]: [[f32; 3]; 2], centre: [f32; 3]) -> [Particle; PSEUDO] {
    let to_faces = (0..3).flat_map(|axis| [largest[axis] - centre[axis], centre[axis] - least[axis]]);
    let radius = CONTRACTION * to_faces.fold(f32::INFINITY, f32::min);
    let mut found = [Particle::default(); PSEUDO];
    for (index, place) in found.iter_mut().enumerate() {
        let (axis, signs) = (index / 4, [1.0, -1.0]);
        let mut at = [0.0; 3];
        at[(axis + 1) % 3] = VERTEX.0 * signs[index % 2];
        at[(axis + 2) % 3] = VERTEX.1 * signs[index / 2 % 2];
        let at = [0, 1, 2].map(|axis| centre[axis] + radius * at[axis]);
        *place = Particle { at, mass: 0.0 };
    }
    found
}

/// Distributes the masses in `of` among pseudo-particles around `centre`.
fn share_out(pseudo: &mut [Particle; PSEUDO], centre: [f32; 3], of: impl Iterator<Item = Particle>) {
    let points = PSEUDO as f32;
    for particle in of {
        let from = apart(particle.at, centre);
        let distance = dot(from, from).sqrt();
        for place in pseudo.iter_mut() {
            let to = apart(place.at, centre);
            let radius = dot(to, to).sqrt();
            let mut share = 1.0 / points;
            if radius > 0.0 && distance > 0.0 {
                let (ratio, cosine) = (distance / radius, dot(from, to) / (distance * radius));
                share += 3.0 / points * ratio * cosine;
                share += 5.0 / points * ratio * ratio * 0.5 * (3.0 * cosine * cosine - 1.0);
            }
            place.mass += particle.mass * share;
        }
    }
}

impl Tree {
    /// Builds the tree over `particles`. Each leaf has at most `leaf` particles unless all its particles share one
    /// point.
    pub(super) fn new(particles: Vec<Particle>, leaf: usize) -> Tree {
        let count = particles.len();
        let mut tree = Tree { particles, nodes: Vec::new() };
        if count > 0 {
            tree.add(0, count, leaf);
        }
        tree
    }

    /// Adds the node for particles `first` to `first + count - 1` and all nodes below it; returns its index.
    fn add(&mut self, first: usize, count: usize, leaf: usize) -> usize {
        let (bounds, centre) = measure(&self.particles[first..first + count]);
        let index = self.nodes.len();
        let pseudo = sphere(bounds, centre);
        self.nodes.push(TreeNode { first, count, bounds, centre, pseudo, children: None });
        let left = if count > leaf { self.divide(first, count, bounds, centre) } else { 0 };
        let mut pseudo = pseudo;
        if left == 0 || left == count {
            share_out(&mut pseudo, centre, self.particles[first..first + count].iter().copied());
        } else {
            let children = [self.add(first, left, leaf), self.add(first + left, count - left, leaf)];
            for child in children {
                let of: Vec<Particle> = self.representatives(child).map(|entry| self.particle(entry)).collect();
                share_out(&mut pseudo, centre, of.into_iter());
            }
            self.nodes[index].children = Some(children);
        }
        self.nodes[index].pseudo = pseudo;
        index
    }

    /// Moves the particles below the centre along the longest edge to the front; returns their number.
    fn divide(&mut self, first: usize, count: usize, [least, largest]: [[f32; 3]; 2], centre: [f32; 3]) -> usize {
        let edge = apart(largest, least);
        let axis = if edge[0] > edge[1] && edge[0] > edge[2] {
            0
        } else if edge[1] > edge[2] {
            1
        } else {
            2
        };
        let part = &mut self.particles[first..first + count];
        let below: Vec<usize> = (0..count).filter(|at| part[*at].at[axis] < centre[axis]).collect();
        below.iter().enumerate().for_each(|(to, from)| part.swap(to, *from));
        below.len()
    }

    /// Entries that represent a node: its particles if few, otherwise its pseudo-particles.
    fn representatives(&self, node: usize) -> impl Iterator<Item = ForceSource> {
        let TreeNode { first, count, .. } = self.nodes[node];
        let few = count <= PSEUDO;
        (0..if few { count } else { PSEUDO })
            .map(move |at| if few { ForceSource::Particle(first + at) } else { ForceSource::Pseudo(node, at) })
    }

    /// Position and mass for an entry.
    pub(super) fn particle(&self, entry: ForceSource) -> Particle {
        match entry {
            ForceSource::Particle(index) => self.particles[index],
            ForceSource::Pseudo(node, at) => self.nodes[node].pseudo[at],
        }
    }

    /// Entries for a node's particles.
    pub(super) fn own(&self, node: usize) -> impl Iterator<Item = ForceSource> {
        self.nodes[node].particles().map(ForceSource::Particle)
    }

    /// Leaves, with each node's last child first.
    pub(super) fn leaves(&self) -> Vec<usize> {
        let (mut open, mut found) = (vec![0], Vec::new());
        while let Some(node) = open.pop() {
            match self.nodes[node].children {
                Some(children) => open.extend(children),
                None => found.push(node),
            }
        }
        found
    }

    /// Interaction list for a leaf: nodes that look small from it, particles in other leaves, and its own particles.
    /// `tangent` belongs to the largest angle under which a node looks small; nodes beyond `reach` are left out.
    pub(super) fn interactions(&self, leaf: usize, tangent: f32, reach: f32) -> Vec<ForceSource> {
        let (mut open, mut found) = (vec![0], Vec::new());
        while let Some(node) = open.pop() {
            if node == leaf {
                continue;
            }
            let children = self.nodes[node].children;
            let above = self.nodes[node].particles().contains(&self.nodes[leaf].first);
            let looks_big = above || self.looks_big(node, leaf, tangent);
            match children {
                _ if !looks_big && self.squared_distance(node, leaf) > reach * reach => {}
                Some(children) if looks_big => {
                    open.extend(children.into_iter().filter(|child| self.is_near(*child, leaf, reach)));
                }
                None if looks_big => found.extend(self.own(node)),
                Some(_) | None => found.extend(self.representatives(node)),
            }
        }
        found.extend(self.own(leaf));
        found
    }

    fn squared_distance(&self, node: usize, leaf: usize) -> f32 {
        let between = apart(self.nodes[node].centre, self.nodes[leaf].centre);
        dot(between, between)
    }

    /// True if a node's diagonal, seen from a leaf's centre, exceeds the allowed angle.
    fn looks_big(&self, node: usize, leaf: usize, tangent: f32) -> bool {
        let [least, largest] = self.nodes[node].bounds;
        let diagonal = apart(largest, least);
        dot(diagonal, diagonal) > self.squared_distance(node, leaf) * tangent * tangent
    }

    /// True if two nodes' boxes are at most `reach` apart along every axis.
    fn is_near(&self, node: usize, leaf: usize, reach: f32) -> bool {
        let ([least, largest], [low, high]) = (self.nodes[node].bounds, self.nodes[leaf].bounds);
        (0..3).all(|axis| (least[axis] - high[axis]).max(low[axis] - largest[axis]) <= reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tombolo_workload::noise;

    fn cloud(count: u64) -> Vec<Particle> {
        let at = |index| [1, 2, 3].map(|axis| 0.25 + 0.2 * noise::unit(axis, index));
        (0..count).map(|index| Particle { at: at(index), mass: 1.0 }).collect()
    }

    #[test]
    fn leaves_hold_every_particle_once_and_no_more_than_fit() {
        let tree = Tree::new(cloud(700), 12);
        let leaves = tree.leaves();
        let mut held: Vec<usize> = leaves.iter().flat_map(|leaf| tree.nodes[*leaf].particles()).collect();
        held.sort_unstable();
        assert_eq!(held, (0..700).collect::<Vec<_>>());
        assert!(leaves.iter().all(|leaf| tree.nodes[*leaf].count <= 12));
        let (mut sorted, mut before) = (tree.particles, cloud(700));
        sorted.sort_by(|a, b| a.at.partial_cmp(&b.at).unwrap());
        before.sort_by(|a, b| a.at.partial_cmp(&b.at).unwrap());
        assert_eq!(sorted, before);
    }

    #[test]
    fn pseudo_particles_keep_mass_and_centre() {
        let tree = Tree::new(cloud(300), 12);
        for node in &tree.nodes {
            let mass: f32 = node.pseudo.iter().map(|point| point.mass).sum();
            assert!((mass - node.count as f32).abs() < 1e-2 * node.count as f32, "{mass} of {}", node.count);
            for axis in 0..3 {
                let moment: f32 = node.pseudo.iter().map(|point| point.mass * point.at[axis]).sum();
                assert!((moment / mass - node.centre[axis]).abs() < 1e-2, "{moment} {mass} {:?}", node.centre);
            }
        }
    }

    #[test]
    fn a_list_stands_for_the_mass_of_all() {
        let tree = Tree::new(cloud(600), 12);
        for tangent in [0.05, 0.5, 2.0] {
            for leaf in tree.leaves() {
                let list = tree.interactions(leaf, tangent, 9.0);
                let mass: f32 = list.iter().map(|entry| tree.particle(*entry).mass).sum();
                assert!((mass - 600.0).abs() < 1.0, "{mass} under {tangent}");
                assert!(list.len() <= 600);
            }
        }
    }

    #[test]
    fn particles_in_one_point_are_one_leaf() {
        let tree = Tree::new(vec![Particle { at: [0.1; 3], mass: 1.0 }; 40], 12);
        assert_eq!((tree.leaves(), tree.nodes.len()), (vec![0], 1));
    }
}
