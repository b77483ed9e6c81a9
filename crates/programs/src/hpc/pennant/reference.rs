//! Plain reference run with equal steps, zone by zone and point by point.

use super::mesh::{PieMesh, Point};
use super::physics::{self, Corner, StateInputs, StepLimits, add, sub, times};

/// Simulation state carried from step to step.
pub(super) struct ReferenceState<'a> {
    mesh: &'a PieMesh,
    before: Vec<usize>,
    pub(super) places: Vec<Point>,
    pub(super) velocities: Vec<Point>,
    /// Mass per zone, and each side's initial fraction in the zone's area.
    pub(super) masses: Vec<f64>,
    fractions: Vec<f64>,
    pub(super) densities: Vec<f64>,
    pub(super) energies: Vec<f64>,
    pub(super) totals: Vec<f64>,
    work_rates: Vec<f64>,
    pub(super) pressures: Vec<f64>,
    volumes: Vec<f64>,
    /// Point masses in the last step, for comparison with the kernel's.
    pub(super) point_masses: Vec<f64>,
    /// Longest next step allowed after the last step.
    pub(super) longest: f64,
}

/// Mesh geometry at one time: centre, area and volume per zone, area per side.
pub(super) struct Geometry {
    pub(super) centres: Vec<Point>,
    pub(super) areas: Vec<f64>,
    pub(super) volumes: Vec<f64>,
    pub(super) side_areas: Vec<f64>,
}

/// Computes centres, areas and volumes for points at `places`.
pub(super) fn geometry(mesh: &PieMesh, places: &[Point]) -> Geometry {
    let zones = mesh.zone_points.len();
    let mut found = Geometry {
        centres: vec![[0.0; 2]; zones],
        areas: vec![0.0; zones],
        volumes: vec![0.0; zones],
        side_areas: vec![0.0; mesh.first.len()],
    };
    for (side, zone) in mesh.zone.iter().enumerate() {
        let centre = &mut found.centres[*zone as usize];
        *centre = add(*centre, places[mesh.first[side] as usize]);
    }
    for (centre, points) in found.centres.iter_mut().zip(&mesh.zone_points) {
        *centre = times(*centre, 1.0 / f64::from(*points));
    }
    for (side, zone) in mesh.zone.iter().enumerate() {
        let [area, volume] = physics::side(triangle(mesh, places, &found.centres, side));
        found.side_areas[side] = area;
        found.areas[*zone as usize] += area;
        found.volumes[*zone as usize] += volume;
    }
    found
}

fn triangle(mesh: &PieMesh, places: &[Point], centres: &[Point], side: usize) -> [Point; 3] {
    let [a, b] = [mesh.first[side], mesh.second[side]].map(|point| places[point as usize]);
    [a, b, centres[mesh.zone[side] as usize]]
}

impl<'a> ReferenceState<'a> {
    /// Builds the initial state: density 1, no energy, velocity 1 towards the centre.
    pub(super) fn new(mesh: &'a PieMesh) -> ReferenceState<'a> {
        let Geometry { areas, volumes, side_areas, .. } = geometry(mesh, &mesh.points);
        let fraction = |(side, area): (usize, &f64)| area / areas[mesh.zone[side] as usize];
        let inwards = |place: &Point| {
            let size = place[0].hypot(place[1]);
            if size > 1e-12 { times(*place, -1.0 / size) } else { [0.0; 2] }
        };
        let zones = areas.len();
        ReferenceState {
            mesh,
            before: mesh.before(),
            places: mesh.points.clone(),
            velocities: mesh.points.iter().map(inwards).collect(),
            masses: volumes.clone(),
            fractions: side_areas.iter().enumerate().map(fraction).collect(),
            densities: vec![1.0; zones],
            energies: vec![0.0; zones],
            totals: vec![0.0; zones],
            work_rates: vec![0.0; zones],
            pressures: vec![0.0; zones],
            volumes,
            point_masses: vec![0.0; mesh.points.len()],
            longest: 1e99,
        }
    }

    /// Initial fraction for each side in its zone's area.
    pub(super) fn fractions(&self) -> &[f64] {
        &self.fractions
    }

    /// Volume per zone at the end of the last step.
    pub(super) fn volumes(&self) -> &[f64] {
        &self.volumes
    }

    /// Runs one step with length `step`.
    pub(super) fn step(&mut self, step: f64) {
        let mesh = self.mesh;
        let (places, velocities) = (self.places.clone(), self.velocities.clone());
        let half: Vec<Point> =
            places.iter().zip(&velocities).map(|(place, velocity)| add(*place, times(*velocity, 0.5 * step))).collect();
        let middle = geometry(mesh, &half);
        let zones = 0..mesh.zone_points.len();
        let densities: Vec<f64> = zones.clone().map(|zone| self.masses[zone] / middle.volumes[zone]).collect();
        let states: Vec<[f64; 2]> = zones.clone().map(|zone| self.state(zone, middle.volumes[zone], step)).collect();
        let forces = self.forces(&half, &velocities, &middle, &densities, &states);
        let before = self.advance(&half, &forces, &middle, &densities, step);
        let after = geometry(mesh, &self.places);
        let mut works = vec![0.0; zones.len()];
        for (side, zone) in mesh.zone.iter().enumerate() {
            let ends = [mesh.first[side], mesh.second[side]].map(|point| point as usize);
            let force = add(forces.pressure[side], forces.viscous[side]);
            let [earlier, later, at] = [&before, &self.velocities, &half].map(|of| ends.map(|point| of[point]));
            works[*zone as usize] += physics::work(force, earlier, later, at, step);
        }
        self.longest = 1e99;
        for zone in zones {
            self.totals[zone] += works[zone];
            let volumes = [self.volumes[zone], after.volumes[zone]];
            let [pressure, sound] = states[zone];
            self.pressures[zone] = pressure;
            [self.energies[zone], self.densities[zone], self.work_rates[zone]] =
                physics::end_of_step(self.totals[zone], self.masses[zone], works[zone], pressure, volumes, step);
            let limits =
                StepLimits { signal: forces.signals[zone], sound, length: forces.lengths[zone], volumes, step };
            self.longest = self.longest.min(physics::longest(limits)[0]);
        }
        self.volumes = after.volumes;
    }

    fn state(&self, zone: usize, volume: f64, step: f64) -> [f64; 2] {
        physics::state(StateInputs {
            density: self.densities[zone],
            energy: self.energies[zone],
            work_rate: self.work_rates[zone],
            mass: self.masses[zone],
            volumes: [self.volumes[zone], volume],
            step,
        })
    }

    fn forces(
        &self,
        half: &[Point],
        velocities: &[Point],
        middle: &Geometry,
        densities: &[f64],
        states: &[[f64; 2]],
    ) -> Forces {
        let (mesh, sides, zones) = (self.mesh, self.mesh.first.len(), states.len());
        let mut mean = vec![[0.0; 2]; zones];
        for side in 0..sides {
            let (zone, point) = (mesh.zone[side] as usize, mesh.first[side] as usize);
            mean[zone] = add(mean[zone], velocities[point]);
        }
        for (mean, points) in mean.iter_mut().zip(&mesh.zone_points) {
            *mean = times(*mean, 1.0 / f64::from(*points));
        }
        let mut forces = Forces::default();
        let (mut closings, mut corners) = (vec![0.0_f64; zones], Vec::<(Corner, [Point; 2])>::new());
        forces.lengths = vec![f64::INFINITY; zones];
        for side in 0..sides {
            let zone = mesh.zone[side] as usize;
            let [own, next] = [mesh.first[side], mesh.second[side]].map(|point| point as usize);
            let last = mesh.first[self.before[side]] as usize;
            let around = |of: &[Point], centre| [of[last], of[own], of[next], centre];
            let (at, moving) = (around(half, middle.centres[zone]), around(velocities, mean[zone]));
            let corner = physics::corner(at, moving);
            corners.push((corner, physics::tension(corner, densities[zone], states[zone][1], at, moving)));
            let triangle = triangle(mesh, half, &middle.centres, side);
            let surface = physics::surface(triangle);
            forces.pressure.push(times(surface, -states[zone][0]));
            let areas = [middle.areas[zone], middle.side_areas[side]];
            forces.sub_zonal.push(physics::sub_zonal(
                areas,
                densities[zone],
                self.fractions[side],
                states[zone][1],
                surface,
            ));
            let across = physics::across(triangle, f64::from(mesh.zone_points[zone]));
            forces.lengths[zone] = forces.lengths[zone].min(across);
            closings[zone] = closings[zone].max(physics::closing([at[1], at[2]], [moving[1], moving[2]]));
        }
        for side in 0..sides {
            let both = [side, mesh.next[side] as usize].map(|side| corners[side]);
            let ends = both.map(|(corner, _)| physics::weight(corner));
            let places = [mesh.first[side], mesh.second[side]].map(|point| half[point as usize]);
            forces.viscous.push(physics::viscous(ends, both.map(|(_, tension)| tension), places));
        }
        forces.signals =
            states.iter().zip(closings).map(|([_, sound], closing)| physics::signal(*sound, closing)).collect();
        forces
    }

    /// Moves points by the forces on them. Returns the velocities before the step, corrected on the symmetry axes.
    fn advance(
        &mut self,
        half: &[Point],
        forces: &Forces,
        middle: &Geometry,
        densities: &[f64],
        step: f64,
    ) -> Vec<Point> {
        let mesh = self.mesh;
        let mut on_points = vec![[0.0; 2]; half.len()];
        let mut masses = vec![0.0; half.len()];
        for side in 0..mesh.first.len() {
            let (zone, point, before) = (mesh.zone[side] as usize, mesh.first[side] as usize, self.before[side]);
            let total = |side: usize| add(add(forces.pressure[side], forces.sub_zonal[side]), forces.viscous[side]);
            on_points[point] = add(on_points[point], sub(total(side), total(before)));
            let share = 0.5 * (self.fractions[side] + self.fractions[before]);
            masses[point] += densities[zone] * middle.areas[zone] * share;
        }
        let mut before = Vec::new();
        for point in 0..half.len() {
            let force = physics::on_axes(half[point], on_points[point]);
            let velocity = physics::on_axes(half[point], self.velocities[point]);
            let after = add(velocity, times(physics::acceleration(force, masses[point]), step));
            self.places[point] = add(self.places[point], times(add(after, velocity), 0.5 * step));
            self.velocities[point] = after;
            before.push(velocity);
        }
        self.point_masses = masses;
        before
    }
}

/// Forces on each side's surface, and the signal speeds and lengths that limit each zone's next step.
#[derive(Default)]
struct Forces {
    pressure: Vec<Point>,
    sub_zonal: Vec<Point>,
    viscous: Vec<Point>,
    signals: Vec<f64>,
    lengths: Vec<f64>,
}
