//! Formulas for a side, a corner and a zone. A corner belongs to the first point on its side.
//!
//! Sources: Barlow and others: compatible hydrodynamics; Campbell and Shashkov, JCP 172, 2001 (viscosity); Caramana and
//! Shashkov, JCP 142, 1998 (sub-zonal pressures); PENNANT, doc/pennantdoc.

use super::mesh::Point;

/// Ratio between specific heats. Source: PENNANT, PolyGas.cc, `gamma`, and QCS.cc, `qgamma`.
const GAMMA: f64 = 5.0 / 3.0;
/// Least speed of sound. Source: PENNANT, noh.pnt, `ssmin`.
const SLOWEST: f64 = 0.1;
/// Weight for sub-zonal pressures. Source: PENNANT, TTS.cc, `alfa`.
const ALPHA: f64 = 0.5;
/// Linear and quadratic viscosity. Source: PENNANT, noh.pnt, `q1` and `q2`.
const VISCOSITY: [f64; 2] = [0.1, 1.0];
/// Step limits, as fractions: a zone's sound crossing time, and its volume change. Source: PENNANT, Hydro.cc, `cfl` and
/// `cflv`.
const COURANT: [f64; 2] = [0.6, 0.1];
/// Small number that keeps divisors above zero. Source: PENNANT, `fuzz`.
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

/// Area and volume for a side: the volume comes from rotation around the y axis.
pub(super) fn side([a, b, centre]: [Point; 3]) -> [f64; 2] {
    let area = 0.5 * cross(sub(b, a), sub(centre, a));
    [area, area * (a[0] + b[0] + centre[0]) / 3.0]
}

/// Length across a side's triangle, perpendicular to its edge, for the time step; `points` is the zone's point count.
pub(super) fn across([a, b, centre]: [Point; 3], points: f64) -> f64 {
    let [area, _] = side([a, b, centre]);
    let factor = if points == 3.0 { 3.0 } else { 4.0 };
    factor * area / length(sub(b, a))
}

/// Surface between a side's corners: from the zone's centre to the middle of the edge, turned left.
pub(super) fn surface([a, b, centre]: [Point; 3]) -> Point {
    let [x, y] = sub(middle(a, b), centre);
    [-y, x]
}

/// Inputs for a zone's state.
#[derive(Clone, Copy)]
pub(super) struct StateInputs {
    pub(super) density: f64,
    pub(super) energy: f64,
    pub(super) work_rate: f64,
    pub(super) mass: f64,
    /// Volumes before the step and in its middle.
    pub(super) volumes: [f64; 2],
    pub(super) step: f64,
}

/// Pressure and speed of sound in the middle of a step.
pub(super) fn state(of: StateInputs) -> [f64; 2] {
    let StateInputs { density, energy, work_rate, mass, volumes, step } = of;
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

/// Force from sub-zonal pressures on a side's surface, from the difference between the side's and the zone's density.
pub(super) fn sub_zonal(areas: [f64; 2], density: f64, fraction: f64, sound: f64, surface: Point) -> Point {
    let [of_zone, of_side] = areas;
    let own = density * fraction * of_zone / of_side;
    let sound = sound.max(SLOWEST);
    times(surface, -(ALPHA * sound * sound * (own - density)))
}

/// Geometry and motion at a corner, for the viscosity.
#[derive(Clone, Copy, Default)]
pub(super) struct Corner {
    pub(super) cosine: f64,
    pub(super) area: f64,
    pub(super) divergence: f64,
    /// Velocity difference, non-zero if the corner is compressed.
    pub(super) speed: f64,
    /// Length over which the velocities differ.
    pub(super) length: f64,
}

/// Builds a corner from positions and velocities at the previous point, the corner's point, the next point and the
/// zone's centre.
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

/// Viscous tension along the edge to the previous point and along the edge to the next point.
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

/// Weight and cosine for a corner: both zero if its edges are nearly collinear.
pub(super) fn weight(corner: Corner) -> [f64; 2] {
    let squared_sine = 1.0 - corner.cosine * corner.cosine;
    if squared_sine < 1e-4 { [0.0, 0.0] } else { [corner.area / squared_sine, corner.cosine] }
}

/// Viscous force on a side from the corners at its ends: inputs are weights and cosines, tensions, and the end
/// positions.
pub(super) fn viscous(ends: [[f64; 2]; 2], tensions: [[Point; 2]; 2], [a, b]: [Point; 2]) -> Point {
    let [[own, own_cosine], [next, next_cosine]] = ends;
    let of_own = times(add(tensions[0][1], times(tensions[0][0], own_cosine)), own);
    let of_next = times(add(tensions[1][0], times(tensions[1][1], next_cosine)), next);
    times(add(of_own, of_next), 1.0 / length(sub(a, b)))
}

/// Speed at which a side's points approach each other or move apart.
pub(super) fn closing([a, b]: [Point; 2], [ua, ub]: [Point; 2]) -> f64 {
    let edge = sub(b, a);
    let size = length(edge);
    if size > 0.0 { dot(sub(ub, ua), edge).abs() / size } else { 0.0 }
}

/// Signal speed for the time step: sound and the fastest side.
pub(super) fn signal(sound: f64, closing: f64) -> f64 {
    VISCOSITY[0] * sound + 2.0 * VISCOSITY[1] * closing
}

/// Removes from a velocity or force the part across a symmetry axis, if the point lies on the axis.
pub(super) fn on_axes(place: Point, value: Point) -> Point {
    let mut value = value;
    (0..2).filter(|axis| place[*axis].abs() < 1e-12).for_each(|axis| value[axis] = 0.0);
    value
}

/// Acceleration of a point.
pub(super) fn acceleration(force: Point, mass: f64) -> Point {
    times(force, 1.0 / mass.max(FUZZ))
}

/// Work done by a side's force on its end points: inputs are both velocities before and after, and the midstep
/// positions.
pub(super) fn work(force: Point, before: [Point; 2], after: [Point; 2], places: [Point; 2], step: f64) -> f64 {
    let on = |point: usize| dot(force, add(before[point], after[point])) * places[point][0];
    -0.5 * step * (on(0) - on(1))
}

/// Inputs for the limit on a zone's next step.
#[derive(Clone, Copy)]
pub(super) struct StepLimits {
    pub(super) signal: f64,
    pub(super) sound: f64,
    pub(super) length: f64,
    /// Volumes before and after the step.
    pub(super) volumes: [f64; 2],
    pub(super) step: f64,
}

/// Longest next step allowed by a zone. The second value is 1 if the volume decides, and 0 if sound decides.
pub(super) fn longest(of: StepLimits) -> [f64; 2] {
    let by_sound = of.length * COURANT[0] / of.signal.max(of.sound.max(FUZZ));
    let change = ((of.volumes[1] - of.volumes[0]) / of.volumes[0]).abs();
    let by_volume = of.step * COURANT[1] / change;
    if by_volume < by_sound { [by_volume, 1.0] } else { [by_sound, 0.0] }
}

/// Specific energy, density, and rate of work beyond pressure work, at the end of a step.
pub(super) fn end_of_step(total: f64, mass: f64, work: f64, pressure: f64, volumes: [f64; 2], step: f64) -> [f64; 3] {
    [total / (mass + FUZZ), mass / volumes[1], (work + pressure * (volumes[1] - volumes[0])) / step]
}
