//! PENNANT's kernels: two over points, two over sides, one over zones, and the kernel that lists each point's sides.

mod chunk;
mod sides;

pub(super) use sides::MeshArrays;

use super::physics::{self, StepLimits};
use super::{CHUNK, Hydro};
use crate::prelude::*;
use std::array::from_fn;

/// Order and scope for HIP's atomics: relaxed, at device scope.
const ATOMIC: Order = Order::relaxed(Scope::Gpu);

/// Instruction counts for the formulas. Source: counted, with 10 for a division or a root, as LLVM's AMDGPU expands
/// them.
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

/// Point or vector in each lane.
type LaneVector = [Lanes<f64>; 2];

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

fn pair(warp: &mut Warp<'_>, array: Array<f64>, index: Lanes<i32>) -> LaneVector {
    let index = warp.compute(ComputeClass::Int, ADDRESS, index * 2);
    warp.load_vector(array, index)
}

fn store_pair(warp: &mut Warp<'_>, array: Array<f64>, index: Lanes<i32>, value: LaneVector) {
    let index = warp.compute(ComputeClass::Int, ADDRESS, index * 2);
    warp.store_vector(array, index, value);
}

impl Hydro {
    /// Lists each point's sides: one sorted list position per thread.
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

    /// Runs `body` with a point per thread.
    fn each_point(&self, cta: &mut Cta<'_>, body: impl Fn(&mut Warp<'_>, Lanes<i32>)) {
        let points = self.mesh.points.len() as i32;
        cta.each_warp(|warp| {
            let point = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(point.lt(points), |warp| body(warp, point));
        });
    }

    /// Moves points to the middle of the step.
    pub(super) fn advance_half(&self, cta: &mut Cta<'_>) {
        let points = &self.points;
        self.each_point(cta, |warp, point| {
            let step = warp.load(self.step, Lanes::all(0));
            let (place, velocity) = (pair(warp, points.place, point), pair(warp, points.velocity, point));
            store_pair(warp, points.place_before, point, place);
            store_pair(warp, points.velocity_before, point, velocity);
            let half: LaneVector = from_fn(|axis| place[axis] + velocity[axis] * step * 0.5);
            let half = warp.compute(ComputeClass::Fp64, cost::ADVANCE, half);
            store_pair(warp, points.half, point, half);
        });
    }

    /// Gathers corner masses and forces at points, and moves the points to the end of the step.
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
                // The two force components are summed separately, like PENNANT's `double2`.
                let sum = warp.compute_wide(ComputeClass::Fp64, 2, 2, [force[0] + more[0], force[1] + more[1]]);
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

    /// Runs `body` for each side in a point's list, starting at `first`.
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

    /// Computes each zone's state at the end of the step, and the longest step allowed by all zones.
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
                        physics::longest(StepLimits { signal, sound, length, volumes: [a, b], step })
                    });
                warp.store_shared(&mut least, own, next);
                warp.store_shared(&mut which, own, zone * 2 + by_volume.cast());
            });
        });
        cta.barrier();
        self.find_least(cta, &mut least, &mut which);
    }

    /// Finds the minimum over a CTA's values by halving, then over all CTAs.
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
                // Positive floats compare like their bit patterns.
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
