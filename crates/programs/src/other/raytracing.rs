//! Ray tracing: a picture of a generated scene through a hierarchy of bounding boxes.
//!
//! A thread follows its pixel's ray to the nearest triangle, tests from the hit point if the light is hidden, and
//! follows the mirrored ray. Each ray descends the hierarchy with a separate stack: nodes and triangles are gathered,
//! coherent for neighbouring pixels at first and less so after each bounce.
//!
//! Not modelled: the stacks' spilling to local memory.

mod scene;

use self::scene::{LEAF, SIDE, Triangle, Vector, along, cross, dot, hierarchy, minus, triangles, unit};
use crate::prelude::*;
use std::array::from_fn;

/// Side of the pixel square painted by a CTA. Source: NUMA-GPU, Table 2: 3072 CTAs for 1024 × 768 pixels.
const TILE: u64 = 16;
/// Threads per CTA.
const THREADS: u32 = (TILE * TILE) as u32;
/// Positions of the light and the eye. Source: assumed.
const LIGHT: Vector = [20.0, 140.0, -30.0];
const EYE: Vector = [0.5 * SIDE, 45.0, -40.0];
/// Brightness of the background, and ambient brightness in shadow. Source: assumed.
const SKY: f32 = 0.7;
const AMBIENT: f32 = 0.2;
/// Fraction of light that comes from the mirrored ray. Source: assumed.
const MIRROR: f32 = 0.3;
/// Distance from the surface at which a secondary ray starts. Source: assumed, larger than rounding errors.
const OFFSET: f32 = 1e-2;
/// Marker for a ray without a triangle.
const NONE: i32 = -1;

program! {
    // The work per ray grows with the tree's depth, the logarithm of the scene's triangle count.
    /// rays through a hierarchy of boxes: divergent gathers, warm near the root
    pub(crate) static RAYTRACING = "raytracing",
        "Aila and Laine, HPG 2009 (traversal); NUMA-GPU, Table 2 (Other-Optix-Raytracing), its scene assumed";
    properties: nonlinear;
    parameters {
        /// triangles of the scene, in leaves of four, at scale 1; scales
        triangles: count(8..=1 << 26) = 1_310_720, "NUMA-GPU, Table 2: with the hierarchy over them, 87 MB";
        /// pixels of a row, at scale 1; scales by the root, to whole tiles of 16
        columns: count(16..=1 << 13) = 1024, "NUMA-GPU, Table 2: 3072 CTAs of 256 threads";
        /// rows of pixels, at scale 1; scales by the root, to whole tiles of 16
        rows: count(16..=1 << 13) = 768, "as columns";
        /// mirrored rays of a pixel, at most
        bounces: count(0..=8) = 1, "assumed: one, so that there are incoherent rays";
    }
    lay_out(name, request, memory) {
        let (wanted, leaf) = (request.scale.of(triangles), LEAF as u64);
        let leaves = (wanted / leaf).max(2);
        let rule = format!("whole leaves of {leaf}, at least two");
        let triangles = request.fit("triangles", wanted, leaves * leaf, &rule);
        let side = |key| request.fit_multiple(key, request.scale.side_of(request.values.count(key)), TILE);
        let [columns, rows] = ["columns", "rows"].map(side);
        check_indices(name, 12 * triangles, "numbers of triangles")?;
        check_indices(name, columns * rows, "pixels")?;
    }
    struct RenderedScene {
        /// Twelve numbers per node: for each child, low and high along x and y; then low and high along z for both.
        boxes: Array<f32>[12 * (leaves - 1)],
        /// Two children per node.
        children: Array<i32>[2 * (leaves - 1)],
        /// Twelve numbers per triangle: its corners, each padded to four.
        corners: Array<f32>[12 * triangles],
        /// Brightness per triangle, from 0 to 1.
        colour: Array<f32>[triangles],
        pixels: Array<f32>[columns * rows],
        columns, rows: i32,
        bounces: u64,
        seed: u64 = request.seed,
    }
}

/// A ray from a point; hits beyond `far` do not count.
#[derive(Clone, Copy, Debug, Default)]
struct Ray {
    from: Vector,
    to: Vector,
    far: f32,
}

/// First hit along a ray: its distance and its triangle.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Hit {
    distance: f32,
    triangle: i32,
}

impl Default for Hit {
    fn default() -> Hit {
        Hit { distance: f32::INFINITY, triangle: NONE }
    }
}

impl Hit {
    /// Nearer hit; at equal distance, the triangle with the smaller number, independent of order.
    fn or(self, other: Hit) -> Hit {
        let nearer = other.distance < self.distance
            || (other.distance == self.distance && (other.triangle as u32) < self.triangle as u32);
        if nearer { other } else { self }
    }
}

/// Distance at which a ray hits a triangle. Source: Möller and Trumbore, 1997.
fn intersect(ray: &Ray, [a, b, c]: &Triangle) -> Option<f32> {
    let (right, down) = (minus(*b, *a), minus(*c, *a));
    let across = cross(ray.to, down);
    let volume = dot(right, across);
    let inverse = 1.0 / volume;
    let start = minus(ray.from, *a);
    let u = dot(start, across) * inverse;
    let around = cross(start, right);
    let v = dot(ray.to, around) * inverse;
    let distance = dot(down, around) * inverse;
    let inside = volume != 0.0 && u >= 0.0 && v >= 0.0 && u + v <= 1.0;
    (inside && distance > 0.0 && distance < ray.far).then_some(distance)
}

/// Distance at which a ray enters a box, if below `limit`.
fn enter(ray: &Ray, [low, high]: [Vector; 2], limit: f32) -> Option<f32> {
    let (mut near, mut far) = (0.0_f32, limit);
    for axis in 0..3 {
        let inverse = 1.0 / ray.to[axis];
        let (a, b) = ((low[axis] - ray.from[axis]) * inverse, (high[axis] - ray.from[axis]) * inverse);
        near = near.max(a.min(b));
        far = far.min(a.max(b));
    }
    (near <= far).then_some(near)
}

/// State for a pixel while its rays are followed.
#[derive(Clone, Copy, Debug, Default)]
struct PixelPath {
    ray: Ray,
    light: f32,
    share: f32,
}

/// Hit point of a ray: the point, the normal on the ray's side, and the fraction of light that it would receive.
#[derive(Clone, Copy, Debug, Default)]
struct Surface {
    point: Vector,
    normal: Vector,
    lit: f32,
}

impl Surface {
    fn new(ray: &Ray, distance: f32, [a, b, c]: Triangle) -> Surface {
        let normal = unit(cross(minus(b, a), minus(c, a)));
        let normal = if dot(normal, ray.to) > 0.0 { normal.map(|part| -part) } else { normal };
        let point = along(along(ray.from, distance, ray.to), OFFSET, normal);
        Surface { point, normal, lit: dot(normal, unit(minus(LIGHT, point))).max(0.0) }
    }

    /// Ray that tests if the light is hidden.
    fn shadow_ray(&self) -> Ray {
        let to = minus(LIGHT, self.point);
        Ray { from: self.point, to: unit(to), far: dot(to, to).sqrt() }
    }
}

impl PixelPath {
    fn missed(mut self) -> PixelPath {
        self.light += self.share * SKY;
        self.share = 0.0;
        self
    }

    /// Adds the light from a surface towards the eye, and continues with the mirrored ray.
    fn bounce(mut self, surface: &Surface, colour: f32, hidden: bool) -> PixelPath {
        let lit = if hidden { 0.0 } else { surface.lit };
        self.light += self.share * (1.0 - MIRROR) * colour * (AMBIENT + (1.0 - AMBIENT) * lit);
        self.share *= MIRROR;
        let to = along(self.ray.to, -2.0 * dot(self.ray.to, surface.normal), surface.normal);
        self.ray = Ray { from: surface.point, to, far: f32::INFINITY };
        self
    }
}

impl RenderedScene {
    /// Primary ray through a pixel.
    fn primary(&self, pixel: i32) -> PixelPath {
        let (column, row) = (pixel % self.columns, pixel / self.columns);
        let across = (column as f32 + 0.5) / self.columns as f32 - 0.5;
        let up = 0.5 - (row as f32 + 0.5) / self.rows as f32;
        let to = unit([across * 1.2, -0.35 + up * 0.9, 1.0]);
        PixelPath { ray: Ray { from: EYE, to, far: f32::INFINITY }, light: 0.0, share: 1.0 }
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        let tiles = self.columns / TILE as i32;
        let tile = [cta.index() as i32 % tiles, cta.index() as i32 / tiles].map(|at| at * TILE as i32);
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 8, warp.thread());
            let side = TILE as i32;
            let pixel = (thread / side + tile[1]) * self.columns + thread % side + tile[0];
            let mut path = warp.compute(ComputeClass::Fp32, 24, pixel.map(|pixel| self.primary(pixel)));
            for _ in 0..=self.bounces {
                let going = path.map(|path| path.share > 0.0);
                warp.when(going, |warp| {
                    let next = self.follow(warp, path);
                    path = warp.update(path, next);
                });
            }
            warp.store(self.pixels, pixel, path.map(|path| path.light));
        });
    }

    /// Follows each lane's path to the next surface.
    fn follow(&self, warp: &mut Warp<'_>, path: Lanes<PixelPath>) -> Lanes<PixelPath> {
        let hit = self.trace(warp, path.map(|path| path.ray), false);
        let mut next = warp.compute(ComputeClass::Fp32, 2, path.map(PixelPath::missed));
        warp.when(hit.map(|hit| hit.triangle != NONE), |warp| {
            let triangle = self.load_triangle(warp, hit.map(|hit| hit.triangle));
            let colour = warp.load(self.colour, hit.map(|hit| hit.triangle));
            warp.compute(ComputeClass::Fp32, 50, ());
            let surface = map_active(warp, |lane| {
                Surface::new(&path.lane(lane).ray, hit.lane(lane).distance, triangle.lane(lane))
            });
            let shadow = self.trace(warp, surface.map(|surface| surface.shadow_ray()), true);
            let colour = warp.compute(ComputeClass::Fp32, 16, colour);
            let bounced = map_active(warp, |lane| {
                let hidden = shadow.lane(lane).triangle != NONE;
                path.lane(lane).bounce(&surface.lane(lane), colour.lane(lane), hidden)
            });
            next = warp.update(next, bounced);
        });
        next
    }

    /// Finds each lane's hit: the nearest, or, with `any`, the first found.
    fn trace(&self, warp: &mut Warp<'_>, ray: Lanes<Ray>, any: bool) -> Lanes<Hit> {
        let mut hit = Lanes::all(Hit::default());
        let mut stacks: [Vec<i32>; MAX_LANES] = from_fn(|_| vec![0]);
        loop {
            let done = |lane: u32| any && hit.lane(lane).triangle != NONE;
            let at = map_active(warp, |lane| if done(lane) { None } else { stacks[lane as usize].pop() });
            if !warp.any(at.map(|at| at.is_some())) {
                return hit;
            }
            let (inner, leaf) = (at.map(|at| at.is_some_and(|at| at >= 0)), at.map(|at| at.is_some_and(|at| at < 0)));
            warp.when(inner, |warp| self.descend(warp, at.map(Option::unwrap_or_default), ray, hit, &mut stacks));
            warp.when(leaf, |warp| {
                let first = at.map(|at| (-1 - at.unwrap_or_default()) * LEAF as i32);
                for part in 0..LEAF as i32 {
                    let met = self.try_triangle(warp, first + part, ray);
                    hit = warp.update(hit, hit.zip(met, Hit::or));
                }
            });
        }
    }

    /// Pushes the children that a ray enters on its stack, the nearer child last.
    fn descend(
        &self,
        warp: &mut Warp<'_>,
        node: Lanes<i32>,
        ray: Lanes<Ray>,
        hit: Lanes<Hit>,
        stacks: &mut [Vec<i32>; MAX_LANES],
    ) {
        let node = warp.compute(ComputeClass::Int, 4, node);
        let numbers = [0, 4, 8].map(|at| warp.load_vector::<f32, i32, 4>(self.boxes, node * 12 + at));
        let children: [_; 2] = warp.load_vector(self.children, node * 2);
        let numbers = warp.compute(ComputeClass::Fp32, 28, numbers);
        let children = warp.compute(ComputeClass::Int, 6, children);
        each_active(warp, |lane| {
            let limit = hit.lane(lane).distance.min(ray.lane(lane).far);
            let number = |vector: usize, at: usize| numbers[vector][at].lane(lane);
            let bounds = |child: usize| {
                let low = [number(child, 0), number(child, 2), number(2, 2 * child)];
                [low, [number(child, 1), number(child, 3), number(2, 2 * child + 1)]]
            };
            let mut entered: Vec<(f32, i32)> = (0..2)
                .filter_map(|child| Some((enter(&ray.lane(lane), bounds(child), limit)?, children[child].lane(lane))))
                .collect();
            if entered.len() == 2 && entered[0].0 < entered[1].0 {
                entered.swap(0, 1);
            }
            stacks[lane as usize].extend(entered.into_iter().map(|(_, child)| child));
        });
    }

    fn load_triangle(&self, warp: &mut Warp<'_>, triangle: Lanes<i32>) -> Lanes<Triangle> {
        let triangle = warp.compute(ComputeClass::Int, 3, triangle);
        let corners = [0, 4, 8].map(|at| warp.load_vector::<f32, i32, 4>(self.corners, triangle * 12 + at));
        let corners = warp.compute(ComputeClass::Fp32, 0, corners);
        map_active(warp, |lane| corners.map(|corner| [0, 1, 2].map(|axis: usize| corner[axis].lane(lane))))
    }

    fn try_triangle(&self, warp: &mut Warp<'_>, triangle: Lanes<i32>, ray: Lanes<Ray>) -> Lanes<Hit> {
        let corners = self.load_triangle(warp, triangle);
        warp.compute(ComputeClass::Fp32, 52, ());
        map_active(warp, |lane| match intersect(&ray.lane(lane), &corners.lane(lane)) {
            Some(distance) => Hit { distance, triangle: triangle.lane(lane) },
            None => Hit::default(),
        })
    }

    fn scene(&self) -> Vec<Triangle> {
        triangles(self.colour.len() as usize, self.seed)
    }

    fn brightness(triangle: u64) -> f32 {
        0.25 + (triangle % 4) as f32 * 0.25
    }

    /// Reference brightness for a pixel, with each ray tested against every triangle.
    fn reference(&self, scene: &[Triangle], pixel: i32) -> f32 {
        let nearest = |ray: &Ray| {
            let met = (0..)
                .zip(scene)
                .filter_map(|(index, triangle)| Some(Hit { distance: intersect(ray, triangle)?, triangle: index }));
            met.fold(Hit::default(), Hit::or)
        };
        let mut path = self.primary(pixel);
        for _ in 0..=self.bounces {
            if path.share > 0.0 {
                let hit = nearest(&path.ray);
                if hit.triangle == NONE {
                    path = path.missed();
                    continue;
                }
                let surface = Surface::new(&path.ray, hit.distance, scene[hit.triangle as usize]);
                let hidden = nearest(&surface.shadow_ray()).triangle != NONE;
                path = path.bounce(&surface, Self::brightness(hit.triangle as u64), hidden);
            }
        }
        path.light
    }
}

impl Instance for RenderedScene {
    fn fill(&self, memory: &Memory) {
        let scene = self.scene();
        for (index, triangle) in (0..).zip(&scene) {
            for (corner, point) in (0..).zip(triangle) {
                (0..).zip(point).for_each(|(axis, at)| memory.write(self.corners, 12 * index + 4 * corner + axis, *at));
            }
        }
        for (index, node) in (0..).zip(hierarchy(&scene)) {
            for (child, [low, high]) in node.bounds.into_iter().enumerate() {
                let flat = [low[0], high[0], low[1], high[1]];
                let first = 12 * index + 4 * child as u64;
                (0..).zip(flat).for_each(|(at, value)| memory.write(self.boxes, first + at, value));
                memory.write(self.boxes, 12 * index + 8 + 2 * child as u64, low[2]);
                memory.write(self.boxes, 12 * index + 9 + 2 * child as u64, high[2]);
                memory.write(self.children, 2 * index + child as u64, node.children[child]);
            }
        }
        memory.fill(self.colour, Self::brightness);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        [self.boxes, self.corners, self.colour].into_iter().for_each(|array| host.copy_to_device(array));
        host.copy_to_device(self.children);
        let ctas = self.pixels.len() / (TILE * TILE);
        host.launch(Grid::new("trace", ctas, THREADS), |cta| self.kernel(cta))?;
        host.copy_to_host(self.pixels);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let scene = self.scene();
        let expected = (0..self.columns * self.rows).map(|pixel| self.reference(&scene, pixel));
        compare("pixel", memory.to_vec(self.pixels), expected, 0.0)
    }
}
