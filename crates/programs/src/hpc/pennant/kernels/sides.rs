//! PENNANT's kernels over sides: forces in the middle of a step, and work at its end.

use super::super::Hydro;
use super::super::mesh::Point;
use super::super::physics::{self, Corner, StateInputs};
use super::chunk::{Scratch, SideThread, extreme, mean, share_pair, stage};
use super::{ATOMIC, LaneVector, cost, load, pair, store, store_pair};
use crate::prelude::*;
use std::array::from_fn;

/// Arrays from which a kernel reads points, and arrays for its measurements.
#[derive(Clone, Copy)]
pub(in super::super) struct MeshArrays {
    /// Point positions, `2 × points`.
    pub(in super::super) places: Array<f64>,
    /// Zone centres, `2 × zones`.
    pub(in super::super) centres: Array<f64>,
    pub(in super::super) side_areas: Array<f64>,
    pub(in super::super) side_volumes: Array<f64>,
    pub(in super::super) areas: Array<f64>,
    pub(in super::super) volumes: Array<f64>,
}

impl Hydro {
    /// Computes the area and volume for a side.
    fn measure(&self, warp: &mut Warp<'_>, thread: &mut SideThread, to: MeshArrays) {
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

    /// Sums a zone's area and volume over its sides in memory.
    fn gather(&self, warp: &mut Warp<'_>, thread: &SideThread, from: MeshArrays) -> [Lanes<f64>; 2] {
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
                // Two arrays, each with a separate sum.
                let more = warp.compute_wide(ComputeClass::Fp64, 2, 2, [sums[0] + parts[0], sums[1] + parts[1]]);
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

    /// Computes the forces from each zone on its corners in the middle of the step.
    pub(in super::super) fn forces(&self, cta: &mut Cta<'_>) {
        let (mut threads, mut scratch) = self.begin(cta);
        self.fetch(cta, &mut threads, &mut scratch, self.half.places);
        stage(cta, &mut threads, |warp, thread| self.centre_and_width(warp, &mut scratch, thread));
        stage(cta, &mut threads, |warp, thread| self.surface_and_volume(warp, &scratch, thread));
        stage(cta, &mut threads, |warp, thread| self.corner_mass_and_state(warp, thread));
        stage(cta, &mut threads, |warp, thread| self.pressures(warp, &mut scratch, thread));
        stage(cta, &mut threads, |warp, thread| self.corners(warp, &scratch, thread));
        stage(cta, &mut threads, |warp, thread| self.viscosity(warp, &mut scratch, thread));
        stage(cta, &mut threads, |warp, thread| self.corner_force(warp, &mut scratch, thread));
        stage(cta, &mut threads, |warp, thread| self.signal(warp, &scratch, thread));
    }

    /// Computes a zone's centre, and the width across a side's triangle.
    fn centre_and_width(&self, warp: &mut Warp<'_>, scratch: &mut Scratch, thread: &mut SideThread) {
        let volume = load(warp, self.zones.volume, thread.zone);
        store(warp, self.zones.volume_before, thread.zone, volume);
        thread.centre = mean(warp, scratch, thread);
        store_pair(warp, self.half.centres, thread.zone, thread.centre);
        let points = warp.load(self.maps.zone_points, thread.zone).cast::<f64>();
        let [[ax, ay], [bx, by]] = thread.places;
        let [cx, cy] = thread.centre;
        let of = [ax, ay, bx, by, cx, cy, points];
        let [across] = warp.calculate(ComputeClass::Fp64, cost::ACROSS, of, |[ax, ay, bx, by, cx, cy, points]| {
            [physics::across([[ax, ay], [bx, by], [cx, cy]], points)]
        });
        warp.store_shared(&mut scratch.one, thread.own, across);
    }

    /// Stores a zone's least width; computes a side's surface, area and volume.
    fn surface_and_volume(&self, warp: &mut Warp<'_>, scratch: &Scratch, thread: &mut SideThread) {
        let least = extreme(warp, scratch, thread, |a, b| a.min(b));
        store(warp, self.zones.length, thread.zone, least);
        let [[ax, ay], [bx, by]] = thread.places;
        let [cx, cy] = thread.centre;
        let of = [ax, ay, bx, by, cx, cy];
        thread.vector = warp.calculate(ComputeClass::Fp64, cost::SURFACE, of, |[ax, ay, bx, by, cx, cy]| {
            physics::surface([[ax, ay], [bx, by], [cx, cy]])
        });
        store_pair(warp, self.sides.surface, thread.side, thread.vector);
        self.measure(warp, thread, self.half);
    }

    /// Computes the force on a corner, from both adjacent sides, and the speed at which a side's points approach.
    fn corner_force(&self, warp: &mut Warp<'_>, scratch: &mut Scratch, thread: &SideThread) {
        let back = warp.load_shared(&scratch.back, thread.own);
        let other: LaneVector = warp.load_shared_vector(&scratch.two, (thread.own + back) * 2);
        let own: LaneVector = warp.load_shared_vector(&scratch.two, thread.own * 2);
        // The two force components are summed separately, like PENNANT's `double2`.
        let total = warp.compute_wide(ComputeClass::Fp64, 2, 2, [own[0] - other[0], own[1] - other[1]]);
        store_pair(warp, self.sides.corner_force, thread.side, total);
        let [[u, v], [s, t]] = thread.ends.map(|point| pair(warp, self.points.velocity, point));
        let [[ax, ay], [bx, by]] = thread.places;
        let of = [ax, ay, bx, by, u, v, s, t];
        let [closing] = warp.calculate(ComputeClass::Fp64, cost::CLOSING, of, |[ax, ay, bx, by, u, v, s, t]| {
            [physics::closing([[ax, ay], [bx, by]], [[u, v], [s, t]])]
        });
        warp.store_shared(&mut scratch.one, thread.own, closing);
    }

    /// Computes the signal speed that limits a zone's next step.
    fn signal(&self, warp: &mut Warp<'_>, scratch: &Scratch, thread: &SideThread) {
        let most = extreme(warp, scratch, thread, |a, b| a.max(b));
        let sound = load(warp, self.zones.sound, thread.zone);
        let of = [sound, most];
        let [signal] = warp.calculate(ComputeClass::Fp64, 3, of, |[sound, most]| [physics::signal(sound, most)]);
        store(warp, self.zones.signal, thread.zone, signal);
    }

    /// Computes density and corner masses; one thread per zone computes its state.
    fn corner_mass_and_state(&self, warp: &mut Warp<'_>, thread: &SideThread) {
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
                    physics::state(StateInputs { density, energy, work_rate, mass, volumes: [before, volume], step })
                },
            );
            store(warp, zones.pressure, thread.zone, state[0]);
            store(warp, zones.sound, thread.zone, state[1]);
        });
    }

    /// Computes pressure force and sub-zonal force on a side; shares the velocity at its first point.
    fn pressures(&self, warp: &mut Warp<'_>, scratch: &mut Scratch, thread: &mut SideThread) {
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
        let velocity = pair(warp, self.points.velocity, thread.ends[0]);
        share_pair(warp, &mut scratch.two, thread.own, velocity);
    }

    /// Computes a corner's viscosity inputs, tensions and weight.
    fn corners(&self, warp: &mut Warp<'_>, scratch: &Scratch, thread: &SideThread) {
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

    /// Computes the viscous force on a side, from the corners at both ends, and the sum over all three forces.
    fn viscosity(&self, warp: &mut Warp<'_>, scratch: &mut Scratch, thread: &SideThread) {
        let sides = &self.sides;
        let ends = [thread.side, thread.next];
        let weights = ends.map(|side| [sides.weight, sides.cosine].map(|array| load(warp, array, side)));
        let tensions = ends.map(|side| [0, 1].map(|edge| pair(warp, sides.tension, side * 2 + edge)));
        let of: [Lanes<f64>; 16] = from_fn(|part| match part {
            0..4 => weights[part / 2][part % 2],
            4..12 => tensions[(part - 4) / 4][(part - 4) / 2 % 2][part % 2],
            _ => thread.places[(part - 12) / 2][part % 2],
        });
        let viscous = warp.calculate(ComputeClass::Fp64, cost::VISCOUS, of, |of| {
            let pair = |at: usize| [of[at], of[at + 1]];
            let tensions = [[pair(4), pair(6)], [pair(8), pair(10)]];
            physics::viscous([pair(0), pair(2)], tensions, [pair(12), pair(14)])
        });
        store_pair(warp, sides.viscous_force, thread.side, viscous);
        let [pressure, sub_zonal] = thread.forces;
        let sum: LaneVector = from_fn(|axis| pressure[axis] + sub_zonal[axis] + viscous[axis]);
        let sum = warp.compute(ComputeClass::Fp64, 4, sum);
        share_pair(warp, &mut scratch.two, thread.own, sum);
    }

    /// Measures the mesh at the end of the step, and computes the work done by the forces.
    pub(in super::super) fn work(&self, cta: &mut Cta<'_>) {
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
            let work = extreme(warp, &scratch, thread, |a, b| a + b);
            let total = warp.compute(ComputeClass::Fp64, 1, thread.value + work);
            store(warp, zones.total, thread.zone, total);
            store(warp, zones.work, thread.zone, work);
        });
    }
}
