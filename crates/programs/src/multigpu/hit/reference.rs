//! Plain reference solver in double precision, on whole spectra; and the common initial velocity.

use super::pointwise::{DIFFUSION, IMPLICIT, LAST, NEW};
use super::{FORCING, PHASES, SpectralGrid, Turbulence};
use crate::prelude::*;
use std::f64::consts::TAU;

/// Largest index along each axis for the initial wave numbers. Source: assumed, a few large eddies.
const LARGEST: i32 = 2;
/// Largest real or imaginary part in an initial mode. Source: assumed, to give velocities near 1.
const AMPLITUDE: f64 = 1.0 / 32.0;
/// Relative rounding error in single precision.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

/// Rounding errors that may leave divergence in the velocity. Source: counted from a projection.
const SOURCES: f64 = 8.0;

/// Real and imaginary part.
type Complex = [f64; 2];

fn times(a: Complex, b: Complex) -> Complex {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// Initial half spectrum: positions and three components, multiplied by the number of points.
pub(super) fn modes(mesh: SpectralGrid, seed: u64) -> Vec<([i32; 3], [Complex; 3])> {
    let mut all = Vec::new();
    let range = -LARGEST..=LARGEST;
    let indices =
        (0..=LARGEST).flat_map(|z| range.clone().flat_map(move |y| (-LARGEST..=LARGEST).map(move |x| [x, y, z])));
    for (mode, index) in (0_u64..).zip(indices) {
        let [x, y, z] = index;
        // In a pair of modes with conjugate values, only the first mode is drawn.
        if z == 0 && (y < 0 || (y == 0 && x <= 0)) {
            continue;
        }
        let wave = [f64::from(x), f64::from(y), f64::from(z) * f64::from(mesh.stretch())];
        let drawn = |at: u64| f64::from(noise::unit(seed, 6 * mode + at)) * AMPLITUDE * f64::from(mesh.points());
        let free = [0, 1].map(|part| solenoidal([0, 2, 4].map(|axis| drawn(axis + part)), wave));
        let values = [0, 1, 2].map(|axis| [free[0][axis], free[1][axis]]);
        let place = |sign: i32| [(sign * x).rem_euclid(mesh.side), (sign * y).rem_euclid(mesh.side), z];
        all.push((place(1), values));
        if z == 0 {
            all.push((place(-1), values.map(|[real, imaginary]| [real, -imaginary])));
        }
    }
    all
}

/// Vector without its part along `wave`.
fn solenoidal(vector: [f64; 3], wave: [f64; 3]) -> [f64; 3] {
    let square: f64 = wave.iter().map(|wave| wave * wave).sum();
    let along: f64 = vector.iter().zip(wave).map(|(value, wave)| value * wave).sum();
    [0, 1, 2].map(|axis| vector[axis] - if square > 0.0 { along * wave[axis] / square } else { 0.0 })
}

/// A whole field with layout [x][y][z], each point or wave number once.
type WholeField = [Vec<Complex>; 3];

struct SpectralSolver {
    mesh: SpectralGrid,
    u: WholeField,
    /// Unnormalised velocity maxima in space, step after step.
    maxima: Vec<f64>,
}

impl SpectralSolver {
    fn new(mesh: SpectralGrid, seed: u64) -> SpectralSolver {
        let sides = [mesh.side, mesh.side, mesh.depth];
        let mut u: WholeField = [0, 1, 2].map(|_| vec![[0.0; 2]; sides.iter().map(|side| *side as usize).product()]);
        for (place, values) in modes(mesh, seed) {
            let opposite: Vec<i32> = place.iter().zip(sides).map(|(at, side)| (side - at) % side).collect();
            for axis in 0..3 {
                let [real, imaginary] = values[axis];
                u[axis][index(mesh, place)] = [real, imaginary];
                u[axis][index(mesh, [opposite[0], opposite[1], opposite[2]])] = [real, -imaginary];
            }
        }
        SpectralSolver { mesh, u, maxima: Vec::new() }
    }

    /// Wave numbers at a position, and true if the kernels keep them.
    fn wave(&self, at: usize) -> ([f64; 3], bool) {
        let (side, depth) = (self.mesh.side as usize, self.mesh.depth as usize);
        let place = [at / depth / side, at / depth % side, at % depth];
        let signed = |at: usize, points: usize| if at < points / 2 { at as f64 } else { at as f64 - points as f64 };
        let stretch = side as f64 / depth as f64;
        let wave = [signed(place[0], side), signed(place[1], side), signed(place[2], depth) * stretch];
        let length = wave.iter().map(|wave| wave * wave).sum::<f64>().sqrt();
        let kept = length > 0.0 && (length + 0.5).floor() <= 2.0_f64.sqrt() / 3.0 * side as f64;
        (wave, kept)
    }

    /// Replaces every mode in a field by `change(wave numbers, value)`; zero for masked modes.
    fn change(&self, field: &WholeField, change: impl Fn([f64; 3], [Complex; 3]) -> [Complex; 3]) -> WholeField {
        let mut result = field.clone();
        for at in 0..field[0].len() {
            let (wave, kept) = self.wave(at);
            let new = if kept { change(wave, [0, 1, 2].map(|axis| field[axis][at])) } else { [[0.0; 2]; 3] };
            (0..3).for_each(|axis| result[axis][at] = new[axis]);
        }
        result
    }

    /// Field with phases rotated by its wave numbers times `turn`.
    fn shifted(&self, field: &WholeField, turn: f64) -> WholeField {
        self.change(field, |wave, value| {
            let angle = wave.iter().sum::<f64>() * turn;
            value.map(|value| times(value, [angle.cos(), angle.sin()]))
        })
    }

    /// Right-hand side without the pressure term, and the velocity in space.
    fn right_side(&self, u: &WholeField, phase: f32) -> (WholeField, WholeField) {
        let turn = TAU / f64::from(self.mesh.side) * f64::from(phase);
        let curl = self.change(u, |k, u| {
            let cross = |part: usize| {
                let u = u.map(|value| value[part]);
                [k[1] * u[2] - k[2] * u[1], k[2] * u[0] - k[0] * u[2], k[0] * u[1] - k[1] * u[0]]
            };
            let (real, imaginary) = (cross(0), cross(1));
            [0, 1, 2].map(|axis| [-imaginary[axis], real[axis]])
        });
        let [mut velocity, mut curl] = [self.shifted(u, turn), self.shifted(&curl, turn)];
        velocity.iter_mut().chain(&mut curl).for_each(|field| self.transform(field, true));
        let points = f64::from(self.mesh.points());
        let mut product = velocity.clone();
        for at in 0..velocity[0].len() {
            let [u, w] = [&velocity, &curl].map(|field| [0, 1, 2].map(|axis| field[axis][at][0] / points));
            let cross = [u[1] * w[2] - u[2] * w[1], u[2] * w[0] - u[0] * w[2], u[0] * w[1] - u[1] * w[0]];
            (0..3).for_each(|axis| product[axis][at] = [cross[axis], 0.0]);
        }
        product.iter_mut().for_each(|field| self.transform(field, false));
        let product = self.change(&product, |wave, value| {
            let free = [0, 1].map(|part| solenoidal(value.map(|value| value[part]), wave));
            [0, 1, 2].map(|axis| [free[0][axis], free[1][axis]])
        });
        (self.shifted(&product, -turn), velocity)
    }

    fn step(&mut self) {
        let (step, reynolds) = (f64::from(self.mesh.step()), f64::from(self.mesh.reynolds()));
        let growth = |k: [f64; 3]| {
            let square: f64 = k.iter().map(|wave| wave * wave).sum();
            (if square < 4.0 { f64::from(FORCING) } else { 0.0 }) - square / reynolds
        };
        self.u = self.change(&self.u, |_, value| value);
        let mut last: Option<WholeField> = None;
        for substep in 0..3 {
            let (right, velocity) = self.right_side(&self.u, PHASES[substep]);
            if substep == 0 {
                let most = |field: &Vec<Complex>| field.iter().map(|value| value[0].abs()).fold(0.0, f64::max);
                self.maxima.extend(velocity.iter().map(most));
            }
            let weight = |weights: [f32; 3]| f64::from(weights[substep]);
            let mut new = self.u.clone();
            for at in 0..new[0].len() {
                let rate = growth(self.wave(at).0);
                for axis in 0..3 {
                    for part in 0..2 {
                        let (u, right) = (self.u[axis][at][part], right[axis][at][part]);
                        let before = last.as_ref().map_or(0.0, |last| last[axis][at][part]);
                        let known =
                            u + step * (weight(DIFFUSION) * rate * u + weight(LAST) * before + weight(NEW) * right);
                        new[axis][at][part] = known / (1.0 - weight(IMPLICIT) * step * rate);
                    }
                }
            }
            self.u = new;
            last = Some(right);
        }
    }

    /// Transforms a field along its three axes, without a normalising factor.
    fn transform(&self, field: &mut [Complex], inverse: bool) {
        let (side, depth) = (self.mesh.side as usize, self.mesh.depth as usize);
        for (stride, points) in [(1, depth), (depth, side), (side * depth, side)] {
            let root = |turn: usize| {
                let angle = TAU * turn as f64 / points as f64;
                [angle.cos(), if inverse { angle.sin() } else { -angle.sin() }]
            };
            let roots: Vec<Complex> = (0..points).map(root).collect();
            for first in (0..field.len()).filter(|at| at / stride % points == 0) {
                let line: Vec<Complex> = (0..points).map(|at| field[first + at * stride]).collect();
                spectrum(&line, &roots).iter().enumerate().for_each(|(at, value)| field[first + at * stride] = *value);
            }
        }
    }
}

/// Cooley and Tukey's transform for a line; the line's roots are a regular subset of the given roots.
fn spectrum(line: &[Complex], roots: &[Complex]) -> Vec<Complex> {
    let half = line.len() / 2;
    if half == 0 {
        return line.to_vec();
    }
    let every_other = |first: usize| line.iter().skip(first).step_by(2).copied().collect::<Vec<_>>();
    let [even, odd] = [0, 1].map(|first| spectrum(&every_other(first), roots));
    let mut result = vec![[0.0; 2]; line.len()];
    for at in 0..half {
        let turned = times(odd[at], roots[at * (roots.len() / line.len())]);
        result[at] = [even[at][0] + turned[0], even[at][1] + turned[1]];
        result[at + half] = [even[at][0] - turned[0], even[at][1] - turned[1]];
    }
    result
}

fn index(mesh: SpectralGrid, [x, y, z]: [i32; 3]) -> usize {
    ((x * mesh.side + y) * mesh.depth + z) as usize
}

/// Compares the velocity and the maxima, and checks that the velocity has no divergence.
pub(super) fn verify(run: &Turbulence, memory: &Memory) -> Result<(), String> {
    let mesh = run.mesh;
    let mut solver = SpectralSolver::new(mesh, run.seed);
    (0..run.steps).for_each(|_| solver.step());
    // In a substep a value passes two transforms, each with a butterfly per halving of the points. Rounding errors add
    // up like random steps, and twice the root of their number bounds nearly all.
    let roundings = 6.0 * run.steps as f64 * f64::from(mesh.points().log2());
    let tolerance = 2.0 * roundings.sqrt() * ROUNDING;
    let largest = solver.u.iter().flatten().flatten().fold(0.0_f64, |most, part| most.max(part.abs()));
    let found: [Vec<f32>; 3] = run.u.map(|field| memory.to_vec(field));
    let places =
        (0..mesh.side).flat_map(|x| (0..mesh.side).flat_map(move |y| (0..mesh.half()).map(move |z| [x, y, z])));
    for (at, place) in places.enumerate() {
        let waves = mesh.waves(place).map(f64::from);
        let mut flow = [0.0; 2];
        for ((found, expected), wave) in found.iter().zip(&solver.u).zip(waves) {
            let (found, expected) = ([found[2 * at], found[2 * at + 1]].map(f64::from), expected[index(mesh, place)]);
            let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance * largest);
            if !near {
                return Err(format!("velocity at {place:?} is {found:?}, expected {expected:?}"));
            }
            (0..2).for_each(|part| flow[part] += wave * found[part]);
        }
        let length = waves.iter().map(|wave| wave * wave).sum::<f64>().sqrt();
        if flow.iter().any(|part| part.abs() > SOURCES * ROUNDING * length * largest) {
            return Err(format!("the velocity has sources {flow:?} at {place:?}"));
        }
    }
    for (place, expected) in (0..).zip(&solver.maxima) {
        let bits = run.maxima.iter().map(|maxima| memory.get(*maxima, place).unwrap_or_default()).max();
        let found = f64::from(f32::from_bits(bits.unwrap_or_default()));
        let near = (found - expected).abs() <= tolerance * expected;
        if !near {
            return Err(format!("maximum {place} is {found}, expected {expected}"));
        }
    }
    Ok(())
}
