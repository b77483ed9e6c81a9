//! The kernels: two over points, two over sides, one over zones, and one that lists the sides of each point.
//!
//! A CTA of a kernel over sides takes a chunk of whole zones. Its threads, a side each, sum over the sides of a zone by way
//! of the scratchpad, in a ring from side to next side; each writes its zone's result, and all write the same.

use super::mesh::Point;
use super::physics::{self, Corner, Limits, State};
use super::{CHUNK, Hydro};
use crate::bench::benchmark::ADDRESS;
use crate::simt::{Array, ComputeClass, Cta, Lanes, Reduction, Shared, Warp};
use std::array::from_fn;
use tombolo_types::{Order, Scope};

/// HIP's atomics are relaxed, at the scope of the device.
const ATOMIC: Order = Order::relaxed(Scope::Gpu);
/// Instructions of the formulas. Source: counted, with 10 for a division or a root, as LLVM's AMDGPU expands them.
mod cost {
    pub(super) const ADVANCE: u16 = 4;
    pub(super) const CENTRE: u16 = 22;
    pub(super) const ACROSS: u16 = 28;
    pub(super) const SURFACE: u16 = 6;
    pub(super) const SIDE: u16 = 16;
    pub(super) const CORNER_MASS: u16 = 14;
    pub(super) const STATE: u16 = 75;
    pub(super) const FORCES: u16 = 32;
    pub(super) const CORNER: u16 = 190;
    pub(super) const TENSION: u16 = 62;
    pub(super) const WEIGHT: u16 = 14;
    pub(super) const VISCOUS: u16 = 36;
    pub(super) const CLOSING: u16 = 26;
    pub(super) const POINT: u16 = 40;
    pub(super) const WORK: u16 = 14;
    pub(super) const END: u16 = 34;
    pub(super) const LIMITS: u16 = 38;
}

/// A point or vector in each lane.
type Pair = [Lanes<f64>; 2];

/// What a thread of a kernel over sides holds.
#[derive(Clone, Copy)]
struct Thread {
    /// Whether it has a side.
    on: Lanes<bool>,
    /// Place of the side in its chunk.
    own: Lanes<i32>,
    side: Lanes<i32>,
    zone: Lanes<i32>,
    /// Its points.
    ends: [Lanes<i32>; 2],
    /// Next side around the zone, and the one before.
    next: Lanes<i32>,
    before: Lanes<i32>,
    places: [Pair; 2],
    centre: Pair,
    area: Lanes<f64>,
    /// Surface or force of the side, between two steps of the kernel.
    vector: Pair,
    forces: [Pair; 2],
    value: Lanes<f64>,
}

/// The scratchpad of a kernel over sides.
struct Scratch {
    /// From a side to the next one, and to the one before.
    on: Shared<i32>,
    back: Shared<i32>,
    one: Shared<f64>,
    two: Shared<f64>,
}

/// Where a kernel finds points and leaves what it measures.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    /// `2 × points`.
    pub(super) places: Array<f64>,
    /// `2 × zones`.
    pub(super) centres: Array<f64>,
    pub(super) side_areas: Array<f64>,
    pub(super) side_volumes: Array<f64>,
    pub(super) areas: Array<f64>,
    pub(super) volumes: Array<f64>,
}

fn zero() -> Lanes<f64> {
    Lanes::all(0.0)
}

fn load(warp: &mut Warp<'_>, array: Array<f64>, index: Lanes<i32>) -> Lanes<f64> {
    let index = warp.compute(ComputeClass::Int, ADDRESS, index);
    warp.load(array, index)
}

fn store(warp: &mut Warp<'_>, array: Array<f64>, index: Lanes<i32>, value: Lanes<f64>) {
    let index = warp.compute(ComputeClass::Int, ADDRESS, index);
    warp.store(array, index, value);
}

fn pair(warp: &mut Warp<'_>, array: Array<f64>, index: Lanes<i32>) -> Pair {
    let index = warp.compute(ComputeClass::Int, ADDRESS, index * 2);
    warp.load_vector(array, index)
}

fn store_pair(warp: &mut Warp<'_>, array: Array<f64>, index: Lanes<i32>, value: Pair) {
    let index = warp.compute(ComputeClass::Int, ADDRESS, index * 2);
    warp.store_vector(array, index, value);
}

fn share_pair(warp: &mut Warp<'_>, shared: &mut Shared<f64>, index: Lanes<i32>, value: Pair) {
    warp.store_shared_vector(shared, index * 2, value);
}

/// Runs `body` for each other side of a zone, from the next one on.
fn ring(warp: &mut Warp<'_>, on: &Shared<i32>, own: Lanes<i32>, mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>)) {
    let mut at = own + warp.load_shared(on, own);
    loop {
        let more = at.ne(own);
        if !warp.any(more) {
            break;
        }
        let now = at;
        warp.when(more, |warp| {
            body(warp, now);
            let step = warp.load_shared(on, now);
            at = warp.update(now, now + step);
        });
    }
}

/// Runs `body` in the threads that have a side, and meets at the barrier.
fn stage(cta: &mut Cta<'_>, threads: &mut [Thread], mut body: impl FnMut(&mut Warp<'_>, &mut Thread)) {
    cta.each_warp(|warp| {
        let thread = &mut threads[warp.index() as usize];
        warp.when(thread.on, |warp| body(warp, thread));
    });
    cta.barrier();
}

/// The mean of a zone's points, which wait in the scratchpad.
fn mean(warp: &mut Warp<'_>, scratch: &Scratch, thread: &Thread) -> Pair {
    let mut sum: Pair = warp.load_shared_vector(&scratch.two, thread.own * 2);
    let mut count = Lanes::all(1.0);
    ring(warp, &scratch.on, thread.own, |warp, at| {
        let other: Pair = warp.load_shared_vector(&scratch.two, at * 2);
        let more = warp.compute(ComputeClass::Fp64, 3, [sum[0] + other[0], sum[1] + other[1], count + 1.0]);
        [sum[0], sum[1], count] = from_fn(|part| warp.update([sum[0], sum[1], count][part], more[part]));
    });
    warp.calculate(ComputeClass::Fp64, cost::CENTRE, [sum[0], sum[1], count], |[x, y, count]| [x / count, y / count])
}

impl Hydro {
    /// Lists the sides of each point: a place of the sorted list a thread.
    pub(super) fn list_sides(&self, cta: &mut Cta<'_>) {
        let (maps, sides) = (&self.maps, self.mesh.first.len() as i32);
        cta.each_warp(|warp| {
            let at = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(at.lt(sides), |warp| {
                let (point, side) = (warp.load(maps.sorted_points, at), warp.load(maps.sorted_sides, at));
                let mut before = Lanes::all(-1);
                warp.when(at.gt(0), |warp| {
                    let found = warp.load(maps.sorted_points, at + -1);
                    before = warp.update(before, found);
                });
                warp.when(point.ne(before), |warp| warp.store(maps.first_side, point, side));
                let (mut after, mut next) = (Lanes::all(-1), Lanes::all(-1));
                warp.when(at.lt(sides - 1), |warp| {
                    let found = [maps.sorted_points, maps.sorted_sides].map(|map| warp.load(map, at + 1));
                    [after, next] = [warp.update(after, found[0]), warp.update(next, found[1])];
                });
                let next = point.eq(after).select(next, Lanes::all(-1));
                warp.store(maps.next_side, side, next);
            });
        });
    }

    /// Runs `body` with a point a thread.
    fn each_point(&self, cta: &mut Cta<'_>, body: impl Fn(&mut Warp<'_>, Lanes<i32>)) {
        let points = self.mesh.points.len() as i32;
        cta.each_warp(|warp| {
            let point = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(point.lt(points), |warp| body(warp, point));
        });
    }

    /// Points move to the middle of the step.
    pub(super) fn advance_half(&self, cta: &mut Cta<'_>) {
        let points = &self.points;
        self.each_point(cta, |warp, point| {
            let step = warp.load(self.step, Lanes::all(0));
            let (place, velocity) = (pair(warp, points.place, point), pair(warp, points.velocity, point));
            store_pair(warp, points.place_before, point, place);
            store_pair(warp, points.velocity_before, point, velocity);
            let half: Pair = from_fn(|axis| place[axis] + velocity[axis] * step * 0.5);
            let half = warp.compute(ComputeClass::Fp64, cost::ADVANCE, half);
            store_pair(warp, points.half, point, half);
        });
    }

    /// The threads of a chunk, with their places in it and around their zones.
    fn begin(&self, cta: &mut Cta<'_>) -> (Vec<Thread>, Scratch) {
        let len = CHUNK as usize;
        let mut scratch =
            Scratch { on: cta.shared(len), back: cta.shared(len), one: cta.shared(len), two: cta.shared(2 * len) };
        let (maps, mut threads) = (&self.maps, Vec::new());
        cta.each_warp(|warp| {
            let chunk = Lanes::all(warp.cta() as i32);
            let (first, end) = (warp.load(maps.chunk_first, chunk), warp.load(maps.chunk_end, chunk));
            let own = warp.thread();
            let side = warp.compute(ComputeClass::Int, 1, own + first);
            let on = side.lt(warp.compute(ComputeClass::Int, 0, end));
            let none = Lanes::all(0);
            let nowhere = [zero(); 2];
            let mut thread = Thread {
                on,
                own,
                side,
                zone: none,
                ends: [none; 2],
                next: none,
                before: none,
                places: [nowhere; 2],
                centre: nowhere,
                area: zero(),
                vector: nowhere,
                forces: [nowhere; 2],
                value: zero(),
            };
            warp.when(on, |warp| {
                thread.ends = [maps.first, maps.second].map(|map| warp.load(map, side));
                thread.zone = warp.load(maps.zone, side);
                thread.next = warp.load(maps.next, side);
                let near = warp.compute(ComputeClass::Int, 3, thread.next - first);
                warp.store_shared(&mut scratch.on, own, near - own);
                warp.store_shared(&mut scratch.back, near, own - near);
            });
            threads.push(thread);
        });
        cta.barrier();
        stage(cta, &mut threads, |warp, thread| {
            let back = warp.load_shared(&scratch.back, thread.own);
            thread.before = warp.compute(ComputeClass::Int, 1, thread.side + back);
        });
        (threads, scratch)
    }

    /// Fetches the points of each side, and puts the first of them where its zone's sides find it.
    fn fetch(&self, cta: &mut Cta<'_>, threads: &mut [Thread], scratch: &mut Scratch, places: Array<f64>) {
        stage(cta, threads, |warp, thread| {
            thread.places = thread.ends.map(|point| pair(warp, places, point));
            share_pair(warp, &mut scratch.two, thread.own, thread.places[0]);
        });
    }

    /// Area and volume of a side.
    fn measure(&self, warp: &mut Warp<'_>, thread: &mut Thread, to: Measured) {
        let [[ax, ay], [bx, by]] = thread.places;
        let [cx, cy] = thread.centre;
        let of = [ax, ay, bx, by, cx, cy];
        let found = warp.calculate(ComputeClass::Fp64, cost::SIDE, of, |[ax, ay, bx, by, cx, cy]| {
            physics::side([[ax, ay], [bx, by], [cx, cy]])
        });
        let [area, volume] = found;
        thread.area = area;
        store(warp, to.side_areas, thread.side, area);
        store(warp, to.side_volumes, thread.side, volume);
        warp.when(volume.le(0.0), |warp| warp.reduce(Reduction::Add, self.bad, Lanes::all(0), 1, ATOMIC));
    }

    /// Area and volume of a zone, from those of its sides in memory.
    fn gather(&self, warp: &mut Warp<'_>, thread: &Thread, from: Measured) -> [Lanes<f64>; 2] {
        let arrays = [from.side_areas, from.side_volumes];
        let mut sums = arrays.map(|array| load(warp, array, thread.side));
        let mut at = thread.next;
        loop {
            let more = at.ne(thread.side);
            if !warp.any(more) {
                break;
            }
            let now = at;
            warp.when(more, |warp| {
                let parts = arrays.map(|array| load(warp, array, now));
                let more = warp.compute(ComputeClass::Fp64, 2, [sums[0] + parts[0], sums[1] + parts[1]]);
                sums = from_fn(|part| warp.update(sums[part], more[part]));
                let next = warp.load(self.maps.next, now);
                let next = warp.compute(ComputeClass::Int, 0, next);
                at = warp.update(now, next);
            });
        }
        store(warp, from.areas, thread.zone, sums[0]);
        store(warp, from.volumes, thread.zone, sums[1]);
        sums
    }

    /// Forces of each zone on its corners in the middle of the step.
    pub(super) fn forces(&self, cta: &mut Cta<'_>) {
        let (half, zones, sides) = (self.half, &self.zones, &self.sides);
        let (mut threads, mut scratch) = self.begin(cta);
        self.fetch(cta, &mut threads, &mut scratch, half.places);
        stage(cta, &mut threads, |warp, thread| {
            let volume = load(warp, zones.volume, thread.zone);
            store(warp, zones.volume_before, thread.zone, volume);
            thread.centre = mean(warp, &scratch, thread);
            store_pair(warp, half.centres, thread.zone, thread.centre);
            let points = warp.load(self.maps.zone_points, thread.zone).cast::<f64>();
            let [[ax, ay], [bx, by]] = thread.places;
            let [cx, cy] = thread.centre;
            let of = [ax, ay, bx, by, cx, cy, points];
            let [across] = warp.calculate(ComputeClass::Fp64, cost::ACROSS, of, |[ax, ay, bx, by, cx, cy, points]| {
                [physics::across([[ax, ay], [bx, by], [cx, cy]], points)]
            });
            thread.value = across;
            warp.store_shared(&mut scratch.one, thread.own, across);
        });
        stage(cta, &mut threads, |warp, thread| {
            let least = self.extreme(warp, &scratch, thread, |a, b| a.min(b));
            store(warp, zones.length, thread.zone, least);
            let [[ax, ay], [bx, by]] = thread.places;
            let [cx, cy] = thread.centre;
            let of = [ax, ay, bx, by, cx, cy];
            thread.vector = warp.calculate(ComputeClass::Fp64, cost::SURFACE, of, |[ax, ay, bx, by, cx, cy]| {
                physics::surface([[ax, ay], [bx, by], [cx, cy]])
            });
            store_pair(warp, sides.surface, thread.side, thread.vector);
            self.measure(warp, thread, half);
        });
        stage(cta, &mut threads, |warp, thread| self.corner_mass_and_state(warp, thread));
        stage(cta, &mut threads, |warp, thread| {
            self.pressures(warp, thread);
            let velocity = pair(warp, self.points.velocity, thread.ends[0]);
            share_pair(warp, &mut scratch.two, thread.own, velocity);
        });
        stage(cta, &mut threads, |warp, thread| self.corners(warp, &scratch, thread));
        stage(cta, &mut threads, |warp, thread| {
            self.viscosity(warp, thread);
            let sum: Pair = from_fn(|axis| thread.forces[0][axis] + thread.forces[1][axis] + thread.vector[axis]);
            thread.vector = warp.compute(ComputeClass::Fp64, 4, sum);
            share_pair(warp, &mut scratch.two, thread.own, thread.vector);
        });
        stage(cta, &mut threads, |warp, thread| {
            let back = warp.load_shared(&scratch.back, thread.own);
            let other: Pair = warp.load_shared_vector(&scratch.two, (thread.own + back) * 2);
            let own: Pair = warp.load_shared_vector(&scratch.two, thread.own * 2);
            let total = warp.compute(ComputeClass::Fp64, 2, [own[0] - other[0], own[1] - other[1]]);
            store_pair(warp, sides.corner_force, thread.side, total);
            let velocities = thread.ends.map(|point| pair(warp, self.points.velocity, point));
            let [[ax, ay], [bx, by]] = thread.places;
            let of = [ax, ay, bx, by, velocities[0][0], velocities[0][1], velocities[1][0], velocities[1][1]];
            let [closing] = warp.calculate(ComputeClass::Fp64, cost::CLOSING, of, |[ax, ay, bx, by, u, v, s, t]| {
                [physics::closing([[ax, ay], [bx, by]], [[u, v], [s, t]])]
            });
            thread.value = closing;
            warp.store_shared(&mut scratch.one, thread.own, closing);
        });
        stage(cta, &mut threads, |warp, thread| {
            let most = self.extreme(warp, &scratch, thread, |a, b| a.max(b));
            let sound = load(warp, zones.sound, thread.zone);
            let [signal] =
                warp.calculate(ComputeClass::Fp64, 3, [sound, most], |[sound, most]| [physics::signal(sound, most)]);
            store(warp, zones.signal, thread.zone, signal);
        });
    }

    /// The extreme of a zone's values, which wait in the scratchpad.
    fn extreme(
        &self,
        warp: &mut Warp<'_>,
        scratch: &Scratch,
        thread: &Thread,
        of: impl Fn(Lanes<f64>, Lanes<f64>) -> Lanes<f64>,
    ) -> Lanes<f64> {
        let mut found = warp.load_shared(&scratch.one, thread.own);
        ring(warp, &scratch.on, thread.own, |warp, at| {
            let other = warp.load_shared(&scratch.one, at);
            let extreme = warp.compute(ComputeClass::Fp64, 1, of(found, other));
            found = warp.update(found, extreme);
        });
        found
    }

    /// Density and corner masses; one thread of a zone finds its state.
    fn corner_mass_and_state(&self, warp: &mut Warp<'_>, thread: &Thread) {
        let (zones, sides) = (&self.zones, &self.sides);
        let [area, volume] = self.gather(warp, thread, self.half);
        let mass = load(warp, zones.mass, thread.zone);
        let fractions = [thread.side, thread.before].map(|side| load(warp, sides.fraction, side));
        let of = [mass, volume, area, fractions[0], fractions[1]];
        let [density, corner] =
            warp.calculate(ComputeClass::Fp64, cost::CORNER_MASS, of, |[mass, volume, area, a, b]| {
                [mass / volume, mass / volume * area * (0.5 * (a + b))]
            });
        store(warp, zones.density_half, thread.zone, density);
        store(warp, sides.corner_mass, thread.side, corner);
        warp.when(thread.before.gt(thread.side), |warp| {
            let [density, energy, work_rate, before] =
                [zones.density, zones.energy, zones.work_rate, zones.volume_before]
                    .map(|array| load(warp, array, thread.zone));
            let step = warp.load(self.step, Lanes::all(0));
            let of = [density, energy, work_rate, mass, before, volume, step];
            let state = warp.calculate(
                ComputeClass::Fp64,
                cost::STATE,
                of,
                |[density, energy, work_rate, mass, before, volume, step]| {
                    physics::state(State { density, energy, work_rate, mass, volumes: [before, volume], step })
                },
            );
            store(warp, zones.pressure, thread.zone, state[0]);
            store(warp, zones.sound, thread.zone, state[1]);
        });
    }

    /// Forces of the pressure and of sub-zonal pressures on a side.
    fn pressures(&self, warp: &mut Warp<'_>, thread: &mut Thread) {
        let zones = &self.zones;
        let [pressure, sound, density, area] = [zones.pressure, zones.sound, zones.density_half, self.half.areas]
            .map(|array| load(warp, array, thread.zone));
        let fraction = load(warp, self.sides.fraction, thread.side);
        let [x, y] = thread.vector;
        let of = [pressure, sound, density, area, thread.area, fraction, x, y];
        let [px, py, tx, ty] = warp.calculate(
            ComputeClass::Fp64,
            cost::FORCES,
            of,
            |[pressure, sound, density, area, own, fraction, x, y]| {
                let [px, py] = physics::times([x, y], -pressure);
                let [tx, ty] = physics::sub_zonal([area, own], density, fraction, sound, [x, y]);
                [px, py, tx, ty]
            },
        );
        thread.forces = [[px, py], [tx, ty]];
        store_pair(warp, self.sides.pressure_force, thread.side, [px, py]);
        store_pair(warp, self.sides.sub_zonal_force, thread.side, [tx, ty]);
    }

    /// What viscosity sees of a corner, its tensions and its weight.
    fn corners(&self, warp: &mut Warp<'_>, scratch: &Scratch, thread: &Thread) {
        let (points, sides) = (&self.points, &self.sides);
        let mean = mean(warp, scratch, thread);
        store_pair(warp, self.zones.mean_velocity, thread.zone, mean);
        let before = warp.load(self.maps.first, thread.before);
        let around = [before, thread.ends[0], thread.ends[1]];
        let moving = around.map(|point| pair(warp, points.velocity, point));
        let last = pair(warp, points.half, before);
        let [density, sound] = [self.zones.density_half, self.zones.sound].map(|array| load(warp, array, thread.zone));
        let places = [last, thread.places[0], thread.places[1], thread.centre];
        let velocities = [moving[0], moving[1], moving[2], mean];
        let of: [Lanes<f64>; 18] = from_fn(|part| match part {
            0..8 => places[part / 2][part % 2],
            8..16 => velocities[part / 2 - 4][part % 2],
            16 => density,
            _ => sound,
        });
        let cost = cost::CORNER + cost::TENSION + cost::WEIGHT;
        let found = warp.calculate(ComputeClass::Fp64, cost, of, |of| {
            let point = |at: usize| -> Point { [of[2 * at], of[2 * at + 1]] };
            let (places, velocities) = (from_fn(point), from_fn(|at| point(at + 4)));
            let corner = physics::corner(places, velocities);
            let [[ax, ay], [bx, by]] = physics::tension(corner, of[16], of[17], places, velocities);
            let [weight, weighted] = physics::weight(corner);
            let Corner { area, divergence, speed, length, .. } = corner;
            [area, divergence, speed, length, ax, ay, bx, by, weight, weighted]
        });
        let [area, divergence, speed, length, ax, ay, bx, by, weight, weighted] = found;
        let arrays =
            [sides.corner_area, sides.divergence, sides.speed, sides.corner_length, sides.weight, sides.cosine];
        for (array, value) in arrays.into_iter().zip([area, divergence, speed, length, weight, weighted]) {
            store(warp, array, thread.side, value);
        }
        store_pair(warp, sides.tension, thread.side * 2, [ax, ay]);
        store_pair(warp, sides.tension, thread.side * 2 + 1, [bx, by]);
    }

    /// Viscous force on a side, from the corners at both ends.
    fn viscosity(&self, warp: &mut Warp<'_>, thread: &mut Thread) {
        let sides = &self.sides;
        let ends = [thread.side, thread.next];
        let weights = ends.map(|side| [sides.weight, sides.cosine].map(|array| load(warp, array, side)));
        let tensions = ends.map(|side| [0, 1].map(|edge| pair(warp, sides.tension, side * 2 + edge)));
        let of: [Lanes<f64>; 16] = from_fn(|part| match part {
            0..4 => weights[part / 2][part % 2],
            4..12 => tensions[(part - 4) / 4][(part - 4) / 2 % 2][part % 2],
            _ => thread.places[(part - 12) / 2][part % 2],
        });
        thread.vector = warp.calculate(ComputeClass::Fp64, cost::VISCOUS, of, |of| {
            let pair = |at: usize| [of[at], of[at + 1]];
            let tensions = [[pair(4), pair(6)], [pair(8), pair(10)]];
            physics::viscous([pair(0), pair(2)], tensions, [pair(12), pair(14)])
        });
        store_pair(warp, sides.viscous_force, thread.side, thread.vector);
    }

    /// Points gather what their corners give, and move to the end of the step.
    pub(super) fn advance(&self, cta: &mut Cta<'_>) {
        let (points, maps, sides) = (&self.points, &self.maps, &self.sides);
        self.each_point(cta, |warp, point| {
            let mut mass = zero();
            let mut force = [zero(); 2];
            let first = warp.load(maps.first_side, point);
            self.each_side(warp, first, |warp, side| {
                let sum = mass + load(warp, sides.corner_mass, side);
                let sum = warp.compute(ComputeClass::Fp64, 1, sum);
                mass = warp.update(mass, sum);
            });
            store(warp, points.mass, point, mass);
            self.each_side(warp, first, |warp, side| {
                let more = pair(warp, sides.corner_force, side);
                let sum = warp.compute(ComputeClass::Fp64, 2, [force[0] + more[0], force[1] + more[1]]);
                force = from_fn(|axis| warp.update(force[axis], sum[axis]));
            });
            let [half, velocity, place] =
                [points.half, points.velocity_before, points.place_before].map(|array| pair(warp, array, point));
            let step = warp.load(self.step, Lanes::all(0));
            let of: [Lanes<f64>; 10] = from_fn(|part| match part {
                0..8 => [half, velocity, place, force][part / 2][part % 2],
                8 => mass,
                _ => step,
            });
            let found =
                warp.calculate(ComputeClass::Fp64, cost::POINT, of, |[hx, hy, u, v, x, y, fx, fy, mass, step]| {
                    let [velocity, force] = [[u, v], [fx, fy]].map(|value| physics::on_axes([hx, hy], value));
                    let pull = physics::acceleration(force, mass);
                    let after = physics::add(velocity, physics::times(pull, step));
                    let to = physics::add([x, y], physics::times(physics::add(after, velocity), 0.5 * step));
                    let [(u, v), (fx, fy), (ax, ay), (s, t), (x, y)] =
                        [velocity, force, pull, after, to].map(|[x, y]| (x, y));
                    [u, v, fx, fy, ax, ay, s, t, x, y]
                });
            let on_axis = half[0].zip(half[1], |x: f64, y: f64| x.abs() < 1e-12 || y.abs() < 1e-12);
            warp.when(on_axis, |warp| store_pair(warp, points.velocity_before, point, [found[0], found[1]]));
            let arrays = [points.force, points.acceleration, points.velocity, points.place];
            for (array, value) in arrays.into_iter().zip([2, 4, 6, 8]) {
                store_pair(warp, array, point, [found[value], found[value + 1]]);
            }
        });
    }

    /// Runs `body` for each side of a point, from `first` on.
    fn each_side(&self, warp: &mut Warp<'_>, first: Lanes<i32>, mut body: impl FnMut(&mut Warp<'_>, Lanes<i32>)) {
        let mut side = first;
        loop {
            let more = side.ge(0);
            if !warp.any(more) {
                break;
            }
            let now = side;
            warp.when(more, |warp| {
                body(warp, now);
                let next = warp.load(self.maps.next_side, now);
                let next = warp.compute(ComputeClass::Int, 0, next);
                side = warp.update(now, next);
            });
        }
    }

    /// The mesh at the end of the step, and the work that forces have done.
    pub(super) fn work(&self, cta: &mut Cta<'_>) {
        let (full, zones, points) = (self.full, &self.zones, &self.points);
        let (mut threads, mut scratch) = self.begin(cta);
        self.fetch(cta, &mut threads, &mut scratch, full.places);
        stage(cta, &mut threads, |warp, thread| {
            thread.centre = mean(warp, &scratch, thread);
            store_pair(warp, full.centres, thread.zone, thread.centre);
            self.measure(warp, thread, full);
        });
        stage(cta, &mut threads, |warp, thread| {
            self.gather(warp, thread, full);
            let [pressure, viscous] =
                [self.sides.pressure_force, self.sides.viscous_force].map(|array| pair(warp, array, thread.side));
            let [before, after, half] = [points.velocity_before, points.velocity, points.half]
                .map(|array| thread.ends.map(|point| pair(warp, array, point)));
            let step = warp.load(self.step, Lanes::all(0));
            let of: [Lanes<f64>; 17] = from_fn(|part| match part {
                0..2 => pressure[part],
                2..4 => viscous[part - 2],
                4..16 => [before, after, half][(part - 4) / 4][part / 2 % 2][part % 2],
                _ => step,
            });
            let [work] = warp.calculate(ComputeClass::Fp64, cost::WORK, of, |of| {
                let pair = |at: usize| [of[at], of[at + 1]];
                let two = |at: usize| [pair(at), pair(at + 2)];
                [physics::work(physics::add(pair(0), pair(2)), two(4), two(8), two(12), of[16])]
            });
            warp.store_shared(&mut scratch.one, thread.own, work);
            thread.value = load(warp, zones.total, thread.zone);
        });
        stage(cta, &mut threads, |warp, thread| {
            let work = self.extreme(warp, &scratch, thread, |a, b| a + b);
            let total = warp.compute(ComputeClass::Fp64, 1, thread.value + work);
            store(warp, zones.total, thread.zone, total);
            store(warp, zones.work, thread.zone, work);
        });
    }

    /// State of each zone at the end of the step, and the longest step that all allow.
    pub(super) fn end(&self, cta: &mut Cta<'_>) {
        let (zones, count) = (&self.zones, self.mesh.zone_points.len() as i32);
        let mut least: Shared<f64> = cta.shared(CHUNK as usize);
        let mut which: Shared<i32> = cta.shared(CHUNK as usize);
        cta.each_warp(|warp| {
            let zone = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            let own = warp.thread();
            warp.when(zone.lt(count), |warp| {
                let [before, after, work, pressure, total, mass] =
                    [zones.volume_before, zones.volume, zones.work, zones.pressure, zones.total, zones.mass]
                        .map(|array| load(warp, array, zone));
                let step = warp.load(self.step, Lanes::all(0));
                let of = [total, mass, work, pressure, before, after, step];
                let ended =
                    warp.calculate(ComputeClass::Fp64, cost::END, of, |[total, mass, work, pressure, a, b, step]| {
                        physics::end_of_step(total, mass, work, pressure, [a, b], step)
                    });
                for (array, value) in [zones.energy, zones.density, zones.work_rate].into_iter().zip(ended) {
                    store(warp, array, zone, value);
                }
                let [signal, sound, length] =
                    [zones.signal, zones.sound, zones.length].map(|array| load(warp, array, zone));
                let of = [signal, sound, length, before, after, step];
                let [next, by_volume] =
                    warp.calculate(ComputeClass::Fp64, cost::LIMITS, of, |[signal, sound, length, a, b, step]| {
                        physics::longest(Limits { signal, sound, length, volumes: [a, b], step })
                    });
                warp.store_shared(&mut least, own, next);
                warp.store_shared(&mut which, own, zone * 2 + by_volume.cast());
            });
        });
        cta.barrier();
        self.find_least(cta, &mut least, &mut which);
    }

    /// The least of a CTA's values by halving, then of all CTAs'.
    fn find_least(&self, cta: &mut Cta<'_>, least: &mut Shared<f64>, which: &mut Shared<i32>) {
        let zones = self.mesh.zone_points.len() as u32;
        let mut len = (zones - cta.index() * CHUNK).min(CHUNK);
        let mut half = len / 2;
        while half > 0 {
            len = half + len % 2;
            cta.each_warp(|warp| {
                let own = warp.thread();
                warp.when(own.lt(half as i32), |warp| {
                    let other = warp.load_shared(least, own + len as i32);
                    let mine = warp.load_shared(least, own);
                    warp.when(other.lt(mine), |warp| {
                        warp.store_shared(least, own, other);
                        let zone = warp.load_shared(which, own + len as i32);
                        warp.store_shared(which, own, zone);
                    });
                });
            });
            cta.barrier();
            half = len / 2;
        }
        cta.warp(0, |warp| {
            warp.single(|warp| {
                let first = Lanes::all(0);
                // Positive floats are in the order of their bits.
                let found = warp.load_shared(least, first).map(f64::to_bits);
                let known = warp.load(self.next_step, first);
                warp.when(found.lt(known), |warp| {
                    _ = warp.atomic(Reduction::Min, self.next_step, first, found, ATOMIC);
                    let now = warp.load(self.next_step, first);
                    let zone = warp.load_shared(which, first);
                    warp.when(now.eq(found), |warp| warp.store(self.limiting, first, zone));
                });
            });
        });
    }
}
