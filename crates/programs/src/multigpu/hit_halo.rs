//! Homogeneous isotropic turbulence by finite differences on several GPUs: each owns a slab of planes, and reads three
//! planes of either neighbour in each substep.
//!
//! The method is that of the Pencil Code and its multi-GPU program Astaroth: an isothermal gas in a periodic box, with
//! the logarithm of the density and three velocities as fields. Derivatives are central differences of sixth order. A
//! step has three Runge-Kutta substeps with two registers a field. A substep is one kernel, with a thread per point: it
//! reads the fields' last values, and writes the new values to a second copy. Slabs are cut along z; the first and the
//! last GPU are neighbours.
//!
//! GPS calls its Hit, one of Tartan's programs, peer-to-peer. Tartan's program, [`super::hit`], exchanges slabs all to
//! all, as a spectral method must; this program has the pattern of GPS's table.
//!
//! Departures from the sources:
//!
//! - Forces grow with the velocity (Lundgren), not random waves.
//! - Viscous terms with the velocity's divergence and the density's gradient are left out. They are small at low Mach
//!   numbers.
//! - The time step is fixed. The sources derive it from the largest velocity.
//! - All planes are computed in one launch. Astaroth computes inner points first, to hide its copies, which is here a
//!   task for the design.
//! - The box may be shorter along x, with unchanged point spacing, so that a scale shrinks an axis that is not cut.

use crate::prelude::*;
use std::f64::consts::TAU;

const SIDES: &str = "Tartan, hit, src/turH.h: 256 points along each axis";
/// Threads per CTA along x, and along y. Source: assumed, a warp along x.
const WIDE: i32 = 32;
const HIGH: i32 = 8;
/// Factors of the last register and of the new value, by substep. Source: Williamson, J. Comput. Phys. 35, 1980, which
/// the Pencil Code takes for its third order.
const LAST: [f64; 3] = [0.0, -5.0 / 9.0, -153.0 / 128.0];
const NEW: [f64; 3] = [1.0 / 3.0, 15.0 / 16.0, 8.0 / 15.0];
/// Weights of a sixth-order first derivative at distances 1 to 3, in 60ths, and of a second derivative at distances 0 to
/// 3, in 180ths. Source: the Pencil Code's manual, finite differences.
const FIRST: [f64; 3] = [45.0, -9.0, 1.0];
const SECOND: [f64; 4] = [-490.0, 270.0, -27.0, 2.0];
/// Speed of sound. Source: the Pencil Code's default, 1.
const SOUND: f64 = 1.0;
/// Kinematic viscosity, growth rate from the force, and fraction of the longest step. Source: assumed.
const VISCOSITY: f64 = 5e-3;
const GROWTH: f64 = 0.1;
const COURANT: f64 = 0.4;
/// Amplitude of the first velocity, a flow with a single wave along each axis, and of its noise. Source: assumed, a low
/// Mach number.
const AMPLITUDE: f64 = 0.1;
const NOISE: f64 = 0.01;
/// Number of fields: the logarithm of the density, and three velocities.
const FIELDS: usize = 4;
/// Points that a derivative reads: the point itself, and three on either side along each axis.
const POINTS: usize = 19;
/// Integer instructions for a point's indices and their wrapping. Source: counted: an addition and a selection for each
/// of 18 neighbours, and the index of the point.
const INDEX: u16 = 2 * 18 + 6;
/// Integer instructions for the addresses of a field's points. Source: counted: a 64-bit addition each.
const ADDRESSES: u16 = 2 * POINTS as u16;
/// Instructions for a field's derivatives. Source: counted: along each axis, three differences and three products for
/// the first, three sums and four products for the second.
const DERIVATIVES: u16 = 3 * (6 + 7);
/// Instructions for all rates of change. Source: counted: three products of the velocity with a gradient for each field,
/// three sums of the divergence, and three products for each velocity.
const RATES: u16 = 3 * 4 + 3 + 3 * 3;

program! {
    /// turbulence by finite differences on several GPUs: a slab of planes each, three planes of either neighbour read
    /// three times a step
    pub(crate) static HIT_HALO = "hit-halo",
        "Pencil Code and Astaroth (Pekkilae et al., Comput. Phys. Commun. 217, 2017); GPS, Table 2 (Hit)";
    properties: data_independent, partitioned_by_gpus;
    parameters {
        /// points along x, of 4-byte floats, at scale 1; scales
        x: count(4..=1 << 20) = 256, SIDES;
        /// points along y; does not scale
        y: count(4..=1 << 14) = 256, SIDES;
        /// planes along z, which GPUs share; does not scale
        z: count(4..=1 << 14) = 256, SIDES;
        /// time steps, of three launches each
        steps: count(1..=100_000) = 8, "assumed, that of hit";
    }
    lay_out(name, request, memory) {
        let count = |key| request.values.count(key);
        let [y, z, steps] = ["y", "z", "steps"].map(count);
        let wanted = request.scale.of(x);
        let x = request.fit_least("x", wanted, 4);
        check_indices(name, x * y * z, "points")?;
        let gpus = request.gpus();
        require(name, z >= u64::from(gpus), || format!("{z} planes leave some of {gpus} GPUs without any"))?;
        let mut state = |suffix: &str| {
            ["lnrho", "ux", "uy", "uz"].map(|name| memory.array(&format!("{name}{suffix}"), x * y * z, Scaling::Scales))
        };
        let across = x.div_ceil(WIDE as u64) * y.div_ceil(HIGH as u64);
    }
    struct Gas {
        /// Box sides, in points.
        sides: [i32; 3] = [x, y, z].map(|side| side as i32),
        /// Fields before and after a substep, `[z][y][x]`.
        states: [State; 2] = [state(""), state("-new")],
        /// Runge-Kutta registers, one for each field.
        registers: State = state("-register"),
        steps: u64,
        /// Grid over planes, with the CTAs of a plane side by side.
        planes: PartitionGrid = Partition::even(z, gpus).tiles(1, across),
        seed: u64 = request.seed,
    }
}

/// The logarithm of the density, then the velocity along x, y and z.
type State = [Array<f32>; FIELDS];

/// A field's value at a point, its first derivatives along x, y and z, and the sum over its second derivatives.
type Derivatives<T> = [T; 5];

/// First derivative, in units of the inverse spacing, from differences between values at distances 1 to 3 on either
/// side.
fn first(differences: [f32; 3]) -> f32 {
    (0..3).map(|at| FIRST[at] as f32 * differences[at]).sum::<f32>() / 60.0
}

/// Second derivative, in units of the inverse squared spacing, from the value itself and from sums of values at
/// distances 1 to 3.
fn second(own: f32, sums: [f32; 3]) -> f32 {
    (SECOND[0] as f32 * own + (0..3).map(|at| SECOND[at + 1] as f32 * sums[at]).sum::<f32>()) / 180.0
}

/// A field's derivatives from its values at a point and, for each axis, at distances 1, 2, 3, -1, -2 and -3.
fn derivatives(values: [f32; POINTS], spacing: f32) -> Derivatives<f32> {
    let around = |axis: usize, distance: usize| [values[6 * axis + 1 + distance], values[6 * axis + 4 + distance]];
    let along = |axis: usize, combine: fn([f32; 2]) -> f32| [0, 1, 2].map(|distance| combine(around(axis, distance)));
    let [x, y, z] = [0, 1, 2].map(|axis| first(along(axis, |[after, before]| after - before)) / spacing);
    let seconds = [0, 1, 2].map(|axis| second(values[0], along(axis, |[after, before]| after + before)));
    [values[0], x, y, z, seconds.iter().sum::<f32>() / (spacing * spacing)]
}

/// Rates of change of all fields, from their derivatives: continuity, and the balance of momentum.
fn rates(fields: [Derivatives<f32>; FIELDS]) -> [f32; FIELDS] {
    let velocity = [fields[1][0], fields[2][0], fields[3][0]];
    let carried = fields.map(|[_, x, y, z, _]| velocity[0] * x + velocity[1] * y + velocity[2] * z);
    let divergence = fields[1][1] + fields[2][2] + fields[3][3];
    let push = |axis: usize| {
        let [own, .., laplacian] = fields[axis + 1];
        let pressure = (SOUND * SOUND) as f32 * fields[0][axis + 1];
        VISCOSITY as f32 * laplacian + GROWTH as f32 * own - pressure - carried[axis + 1]
    };
    [-carried[0] - divergence, push(0), push(1), push(2)]
}

impl Gas {
    /// Point spacing along all axes: the box is a full wave wide along y.
    fn spacing(&self) -> f64 {
        TAU / f64::from(self.sides[1])
    }

    /// Length of a time step: the bound from sound and the first velocity, or from viscosity if it is smaller.
    fn step(&self) -> f64 {
        let spacing = self.spacing();
        COURANT * (spacing / (SOUND + 2.0 * AMPLITUDE)).min(spacing * spacing / (6.0 * VISCOSITY))
    }

    /// Indices of a point and its neighbours; [`derivatives`] states the order.
    fn points(&self, place: [Lanes<i32>; 3]) -> [Lanes<i32>; POINTS] {
        let [wide, high, _] = self.sides;
        let strides = [1, wide, wide * high];
        let own = place[0] + place[1] * wide + place[2] * (wide * high);
        std::array::from_fn(|at| {
            let Some(at) = at.checked_sub(1) else { return own };
            let (axis, distance) = (at / 6, (at % 3) as i32 + 1);
            let (side, steps) = (self.sides[axis], if at % 6 < 3 { distance } else { -distance });
            let moved = place[axis].map(|at| (at + steps).rem_euclid(side) - at);
            own + moved * strides[axis]
        })
    }

    fn substep(&self, cta: &mut Cta<'_>, substep: usize, [from, to]: [State; 2]) {
        let CtaTile { items, across, .. } = self.planes.tile(cta.index());
        let wide = (self.sides[0] as u64).div_ceil(WIDE as u64);
        let [left, top] = [(across % wide) as i32 * WIDE, (across / wide) as i32 * HIGH];
        let plane = Lanes::all(items.start as i32);
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let [x, y] = warp.compute(ComputeClass::Int, 4, [thread % WIDE + left, thread / WIDE + top]);
            warp.when(x.lt(self.sides[0]) & y.lt(self.sides[1]), |warp| {
                let points = warp.compute(ComputeClass::Int, INDEX, self.points([x, y, plane]));
                let fields = from.map(|field| self.derive(warp, field, &points));
                let operands: [Lanes<f32>; 5 * FIELDS] = std::array::from_fn(|at| fields[at / 5][at % 5]);
                let rates = warp.calculate(ComputeClass::Fp32, RATES, operands, |values| {
                    rates(std::array::from_fn(|field| std::array::from_fn(|at| values[5 * field + at])))
                });
                for field in 0..FIELDS {
                    let arrays = [self.registers[field], to[field]];
                    self.advance(warp, substep, arrays, points[0], [fields[field][0], rates[field]]);
                }
            });
        });
    }

    /// Loads a field around a point, and computes its derivatives.
    fn derive(&self, warp: &mut Warp<'_>, field: Array<f32>, points: &[Lanes<i32>; POINTS]) -> Derivatives<Lanes<f32>> {
        let points = warp.compute(ComputeClass::Int, ADDRESSES, *points);
        let values = points.map(|point| warp.load(field, point));
        let spacing = self.spacing() as f32;
        warp.calculate(ComputeClass::Fp32, DERIVATIVES, values, |values| derivatives(values, spacing))
    }

    /// Advances a field at a point from its value and its rate of change.
    fn advance(
        &self,
        warp: &mut Warp<'_>,
        substep: usize,
        [register, to]: [Array<f32>; 2],
        point: Lanes<i32>,
        [own, rate]: [Lanes<f32>; 2],
    ) {
        let [step, last_factor, new_factor] = [self.step(), LAST[substep], NEW[substep]].map(|factor| factor as f32);
        let last = if substep == 0 { Lanes::all(0.0) } else { warp.load(register, point) };
        let [change, new] = warp.calculate(ComputeClass::Fp32, 3, [own, rate, last], |[own, rate, last]| {
            let change = last_factor * last + step * rate;
            [change, own + new_factor * change]
        });
        warp.store(register, point, change);
        warp.store(to, point, new);
    }

    /// Initial value of a field: density 1, and a flow that is free of sources but for its noise.
    fn start(&self, field: usize, index: u64) -> f64 {
        let [wide, high, _] = self.sides.map(|side| side as u64);
        let place = [index % wide, index / wide % high, index / wide / high];
        let angles = [0, 1, 2].map(|axis| TAU * place[axis] as f64 / f64::from(self.sides[axis]));
        let Some(axis) = field.checked_sub(1) else { return 0.0 };
        let noise = NOISE * f64::from(noise::unit(self.seed ^ field as u64, index));
        AMPLITUDE * (angles[(axis + 1) % 3].cos() + angles[(axis + 2) % 3].sin() + noise)
    }

    /// A step in double precision, term after term.
    fn after_step(&self, mut fields: [Vec<f64>; FIELDS]) -> [Vec<f64>; FIELDS] {
        let mut registers = [(); FIELDS].map(|()| vec![0.0; fields[0].len()]);
        for substep in 0..3 {
            let before = fields.clone();
            for index in 0..before[0].len() {
                for field in 0..FIELDS {
                    let register = &mut registers[field][index];
                    *register = LAST[substep] * *register + self.step() * self.rate(&before, field, index);
                    fields[field][index] += NEW[substep] * *register;
                }
            }
        }
        fields
    }

    /// A field's rate of change at a point, in double precision.
    fn rate(&self, fields: &[Vec<f64>; FIELDS], field: usize, index: usize) -> f64 {
        let [wide, high, deep] = self.sides.map(|side| side as usize);
        let (place, spacing) = ([index % wide, index / wide % high, index / wide / high], self.spacing());
        let at = |field: usize, axis: usize, steps: i32| {
            let mut place = place.map(|at| at as i32);
            place[axis] = (place[axis] + steps).rem_euclid([wide, high, deep][axis] as i32);
            fields[field][(place[2] as usize * high + place[1] as usize) * wide + place[0] as usize]
        };
        let slope = |field: usize, axis: usize| -> f64 {
            let term = |steps: i32| FIRST[steps as usize - 1] * (at(field, axis, steps) - at(field, axis, -steps));
            (1..4).map(term).sum::<f64>() / (60.0 * spacing)
        };
        let curve = |axis: usize| -> f64 {
            let term = |steps: i32| SECOND[steps.unsigned_abs() as usize] * at(field, axis, steps);
            (-3..4).map(term).sum::<f64>() / (180.0 * spacing * spacing)
        };
        let carried: f64 = (0..3).map(|axis| fields[axis + 1][index] * slope(field, axis)).sum();
        match field.checked_sub(1) {
            None => -carried - (0..3).map(|axis| slope(axis + 1, axis)).sum::<f64>(),
            Some(axis) => {
                let viscous = VISCOSITY * (0..3).map(curve).sum::<f64>();
                viscous + GROWTH * fields[field][index] - SOUND * SOUND * slope(0, axis) - carried
            }
        }
    }
}

impl Instance for Gas {
    fn fill(&self, memory: &Memory) {
        for (field, array) in self.states[0].into_iter().enumerate() {
            memory.fill(array, |index| self.start(field, index) as f32);
        }
        self.states[1].into_iter().chain(self.registers).for_each(|array| memory.clear(array));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.states[0].into_iter().for_each(|field| host.copy_to_device(field));
        let mut pair = self.states;
        for _ in 0..self.steps {
            for substep in 0..3 {
                let grid = self.planes.grid("substep", (WIDE * HIGH) as u32);
                host.launch(grid, |cta| self.substep(cta, substep, pair))?;
                pair.reverse();
            }
        }
        pair[0].into_iter().for_each(|field| host.copy_to_host(field));
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let points: u64 = self.sides.iter().map(|side| *side as u64).product();
        // The first values are rounded, as on the device.
        let start = |field| (0..points).map(|index| f64::from(self.start(field, index) as f32)).collect();
        let mut expected: [Vec<f64>; FIELDS] = [0, 1, 2, 3].map(start);
        for _ in 0..self.steps {
            expected = self.after_step(expected);
        }
        let latest = self.states[(3 * self.steps % 2) as usize];
        // Values are below 1, and a substep adds few roundings to each.
        let tolerance = 1e-6 * self.steps as f32;
        for (array, expected) in latest.into_iter().zip(expected) {
            let expected = expected.into_iter().map(|value| value as f32);
            compare(memory.name(array), memory.to_vec(array), expected, tolerance)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_of_a_wave_are_near_its_cosine_and_its_negative() {
        let spacing = TAU / 16.0;
        for point in 0..16 {
            let wave = |steps: i32| (f64::from(point + steps) * spacing).sin() as f32;
            let values = std::array::from_fn(|at| match at {
                0 => wave(0),
                1..=3 => wave(at as i32),
                4..=6 => wave(3 - at as i32),
                _ => wave(0),
            });
            let [own, x, y, z, laplacian] = derivatives(values, spacing as f32);
            let angle = f64::from(point) * spacing;
            assert!((f64::from(x) - angle.cos()).abs() < 1e-4, "{x} at {point}");
            assert!((laplacian + own).abs() < 1e-4, "{laplacian} at {point}");
            assert_eq!((y, z), (0.0, 0.0));
        }
    }

    #[test]
    fn sound_and_force_drive_a_gas_at_rest_in_the_right_direction() {
        // Density grows along x; the gas moves along y, slower with growing y.
        let at_rest = [0.0; 5];
        let found = rates([[0.0, 2.0, 0.0, 0.0, 0.0], at_rest, [1.0, 0.0, -3.0, 0.0, 0.0], at_rest]);
        assert_eq!(found, [3.0, -2.0, 3.0 + GROWTH as f32, 0.0]);
    }
}
