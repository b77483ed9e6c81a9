//! The formulas of a side, a corner and a zone. A corner is that of a side's first point.
//!
//! Sources: Barlow and others: compatible hydrodynamics; Campbell and Shashkov, JCP 172, 2001 (viscosity); Caramana and
//! Shashkov, JCP 142, 1998 (sub-zonal pressures); PENNANT, doc/pennantdoc.

use super::mesh::Point;

/// Ratio of specific heats. Source: PENNANT, PolyGas.cc, `gamma`, and QCS.cc, `qgamma`.
const GAMMA: f64 = 5.0 / 3.0;
/// Least speed of sound. Source: PENNANT, noh.pnt, `ssmin`.
const SLOWEST: f64 = 0.1;
/// Weight of sub-zonal pressures. Source: PENNANT, TTS.cc, `alfa`.
const ALPHA: f64 = 0.5;
/// Linear and quadratic viscosity. Source: PENNANT, noh.pnt, `q1` and `q2`.
const VISCOSITY: [f64; 2] = [0.1, 1.0];
/// Fractions of the time that sound takes through a zone, and of its volume, that a step may take. Source: PENNANT,
/// Hydro.cc, `cfl` and `cflv`.
const COURANT: [f64; 2] = [0.6, 0.1];
/// What keeps divisions from zero. Source: PENNANT, `fuzz`.
const FUZZ: f64 = 1e-99;

pub(super) fn add(a: Point, b: Point) -> Point {
    [a[0] + b[0], a[1] + b[1]]
}

pub(super) fn sub(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1]]
}

pub(super) fn times(a: Point, factor: f64) -> Point {
    a.map(|part| part * factor)
}

pub(super) fn dot(a: Point, b: Point) -> f64 {
    a[0] * b[0] + a[1] * b[1]
}

fn cross(a: Point, b: Point) -> f64 {
    a[0] * b[1] - a[1] * b[0]
}

fn length(a: Point) -> f64 {
    dot(a, a).sqrt()
}

fn middle(a: Point, b: Point) -> Point {
    times(add(a, b), 0.5)
}

/// Area and volume of a side: it is turned around the y axis.
pub(super) fn side([a, b, centre]: [Point; 3]) -> [f64; 2] {
    let area = 0.5 * cross(sub(b, a), sub(centre, a));
    [area, area * (a[0] + b[0] + centre[0]) / 3.0]
}

/// Length of a side's triangle across its edge, as the time step sees it; `points` are those of the zone.
pub(super) fn across([a, b, centre]: [Point; 3], points: f64) -> f64 {
    let [area, _] = side([a, b, centre]);
    let factor = if points == 3.0 { 3.0 } else { 4.0 };
    factor * area / length(sub(b, a))
}

/// The surface between a side's corners: from the zone's centre to the middle of the edge, turned left.
pub(super) fn surface([a, b, centre]: [Point; 3]) -> Point {
    let [x, y] = sub(middle(a, b), centre);
    [-y, x]
}

/// What a zone's state is made of.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) density: f64,
    pub(super) energy: f64,
    pub(super) work_rate: f64,
    pub(super) mass: f64,
    /// Volumes before the step and in its middle.
    pub(super) volumes: [f64; 2],
    pub(super) step: f64,
}

/// Pressure and speed of sound in the middle of a step.
pub(super) fn state(of: State) -> [f64; 2] {
    let State { density, energy, work_rate, mass, volumes, step } = of;
    let energy = energy.max(0.0);
    let by_energy = (GAMMA - 1.0) * density;
    let pressure = by_energy * energy;
    let squared = (GAMMA - 1.0) * energy + by_energy * pressure / (density * density);
    let sound = squared.max((SLOWEST * SLOWEST).max(FUZZ)).sqrt();
    let growth = (volumes[1] - volumes[0]) / mass;
    let heating = by_energy * work_rate * 0.5 * step / mass;
    let bulk = density * sound * sound;
    [pressure + (heating - density * bulk * growth) / (1.0 + 0.5 * by_energy * growth), sound]
}

/// Force of sub-zonal pressures on a side's surface: of the side's density against the zone's.
pub(super) fn sub_zonal(areas: [f64; 2], density: f64, fraction: f64, sound: f64, surface: Point) -> Point {
    let [of_zone, of_side] = areas;
    let own = density * fraction * of_zone / of_side;
    let sound = sound.max(SLOWEST);
    times(surface, -(ALPHA * sound * sound * (own - density)))
}

/// What viscosity sees of a corner.
#[derive(Clone, Copy, Default)]
pub(super) struct Corner {
    pub(super) cosine: f64,
    pub(super) area: f64,
    pub(super) divergence: f64,
    /// Difference of velocities, where the corner is pressed together.
    pub(super) speed: f64,
    /// Length over which they differ.
    pub(super) length: f64,
}

/// A corner from places and velocities of the point before, the own one, the next one and the zone's centre.
pub(super) fn corner(places: [Point; 4], velocities: [Point; 4]) -> Corner {
    let quadrilateral = |[before, own, next, centre]: [Point; 4]| [own, middle(own, next), centre, middle(before, own)];
    let (x, u) = (quadrilateral(places), quadrilateral(velocities));
    let diagonals = |of: [Point; 4]| [sub(of[2], of[0]), sub(of[3], of[1])];
    let ([x20, x31], [u20, u31]) = (diagonals(x), diagonals(u));
    let mean = times(add(add(u[0], u[1]), add(u[2], u[3])), 0.25);
    let edges = [sub(x[1], x[0]), sub(x[3], x[0])];
    let [e1, e2] = edges.map(length);
    let shortest = 2.0 * e1.min(e2);
    let cosine = if shortest < 1e-12 { 0.0 } else { dot(edges[0], edges[1]) / (e1 * e2) };
    let area = 0.5 * cross(x20, x31);
    let divergence = (cross(u20, x31) - cross(u31, x20)) / (2.0 * area);
    if divergence >= 0.0 {
        return Corner { cosine, area, divergence, speed: 0.0, length: 0.0 };
    }
    let [minus, plus] = [sub(u20, u31), add(u20, u31)];
    let speed = dot(minus, minus).max(dot(plus, plus)).sqrt();
    let axes = [times(sub(x20, x31), 0.5), times(add(x20, x31), 0.5)];
    let [l1, l2] = axes.map(length);
    let along = [dot(axes[0], mean).abs() * l2, dot(axes[1], mean).abs() * l1];
    let ratio = if along[0] > along[1] { l1 / l2 } else { l2 / l1 };
    let evolved = (4.0 * area * ratio).sqrt().min(2.0 * shortest);
    Corner { cosine, area, divergence, speed, length: evolved }
}

/// Viscous tension along the edge to the point before and along that to the next one.
pub(super) fn tension(
    corner: Corner,
    density: f64,
    sound: f64,
    places: [Point; 4],
    velocities: [Point; 4],
) -> [Point; 2] {
    let quadratic = VISCOSITY[1] * 0.25 * (GAMMA + 1.0) * corner.speed;
    let linear = VISCOSITY[0] * sound;
    let speed = quadratic + (quadratic * quadratic + linear * linear).sqrt();
    let viscosity = if corner.divergence > 0.0 { 0.0 } else { speed * density * corner.length };
    let along = |from: usize, to: usize| {
        times(sub(velocities[to], velocities[from]), viscosity / length(sub(places[to], places[from])))
    };
    [along(0, 1), along(1, 2)]
}

/// Weight and cosine of a corner: none where its edges are nearly one line.
pub(super) fn weight(corner: Corner) -> [f64; 2] {
    let squared_sine = 1.0 - corner.cosine * corner.cosine;
    if squared_sine < 1e-4 { [0.0, 0.0] } else { [corner.area / squared_sine, corner.cosine] }
}

/// Viscous force on a side from the corners at its ends: weights and cosines, tensions, places of its points.
pub(super) fn viscous(ends: [[f64; 2]; 2], tensions: [[Point; 2]; 2], [a, b]: [Point; 2]) -> Point {
    let [[own, own_cosine], [next, next_cosine]] = ends;
    let of_own = times(add(tensions[0][1], times(tensions[0][0], own_cosine)), own);
    let of_next = times(add(tensions[1][0], times(tensions[1][1], next_cosine)), next);
    times(add(of_own, of_next), 1.0 / length(sub(a, b)))
}

/// How fast a side's points come nearer or move apart.
pub(super) fn closing([a, b]: [Point; 2], [ua, ub]: [Point; 2]) -> f64 {
    let edge = sub(b, a);
    let size = length(edge);
    if size > 0.0 { dot(sub(ub, ua), edge).abs() / size } else { 0.0 }
}

/// Speed that the time step sees: sound and the fastest side.
pub(super) fn signal(sound: f64, closing: f64) -> f64 {
    VISCOSITY[0] * sound + 2.0 * VISCOSITY[1] * closing
}

/// A velocity or force without its part across an axis of symmetry on which the point lies.
pub(super) fn on_axes(place: Point, value: Point) -> Point {
    let mut value = value;
    (0..2).filter(|axis| place[*axis].abs() < 1e-12).for_each(|axis| value[axis] = 0.0);
    value
}

/// Acceleration of a point.
pub(super) fn acceleration(force: Point, mass: f64) -> Point {
    times(force, 1.0 / mass.max(FUZZ))
}

/// Work of a side's force on its points: velocities before and after of both, their places in the middle of the step.
pub(super) fn work(force: Point, before: [Point; 2], after: [Point; 2], places: [Point; 2], step: f64) -> f64 {
    let on = |point: usize| dot(force, add(before[point], after[point])) * places[point][0];
    -0.5 * step * (on(0) - on(1))
}

/// What a zone's next step is found from.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) signal: f64,
    pub(super) sound: f64,
    pub(super) length: f64,
    /// Volumes before and after the step.
    pub(super) volumes: [f64; 2],
    pub(super) step: f64,
}

/// The longest step that a zone allows next, and 1 where its volume decides, 0 where sound does.
pub(super) fn longest(of: Limits) -> [f64; 2] {
    let by_sound = of.length * COURANT[0] / of.signal.max(of.sound.max(FUZZ));
    let change = ((of.volumes[1] - of.volumes[0]) / of.volumes[0]).abs();
    let by_volume = of.step * COURANT[1] / change;
    if by_volume < by_sound { [by_volume, 1.0] } else { [by_sound, 0.0] }
}

/// Specific energy, density, and rate of work beyond that of pressure, at the end of a step.
pub(super) fn end_of_step(total: f64, mass: f64, work: f64, pressure: f64, volumes: [f64; 2], step: f64) -> [f64; 3] {
    [total / (mass + FUZZ), mass / volumes[1], (work + pressure * (volumes[1] - volumes[0])) / step]
}
