//! All pairs of bodies: each thread processes a body, and the other bodies are staged in tiles of 256 in global memory.
//!
//! The program equals the measured program, faults included. Every CTA stages tiles in a common buffer with 4 KB, and
//! CTAs race. All CTAs stage identical values in identical order. The recording, with CTAs in sequence, therefore
//! computes the right forces.

use crate::prelude::*;

/// Threads per CTA, and bodies per tile. Source: [`MI300A_KERNELS`].
const THREADS: u32 = 256;
/// Softening of the distance, squared. Source: assumed; no address depends on this value.
const SOFTENING: f32 = 0.25;
/// Length of a time step. Source: assumed; no address depends on this value.
const STEP: f32 = 0.005;
/// Instructions per interaction: 20 for the force, about 14 for an IEEE square root and 11 for an IEEE division,
/// including two transcendental instructions, and the loop. Source: LLVM AMDGPU, expansions of `fsqrt` and `fdiv` in
/// single precision without fast-math.
const INTERACTION: [(ComputeClass, u16); 3] =
    [(ComputeClass::Fp32, 20 + 13 + 10), (ComputeClass::Special, 2), (ComputeClass::Int, 1 + ADDRESS)];

program! {
    // The work grows with the footprint's square.
    /// all pairs of bodies: arithmetic, loads that all lanes share
    pub(crate) static NBODY = "nbody", MI300A_KERNELS;
    properties: nonlinear, data_independent;
    parameters {
        /// bodies, at scale 1; scales, to whole tiles of 256
        bodies: count(1..=1 << 22) = 24_576, MI300A_KERNELS;
    }
    lay_out(_, request, memory) {
        let wanted = request.scale.of(bodies);
        let bodies = request.fit_multiple("bodies", wanted, u64::from(THREADS));
        let mut array = |name| memory.array(name, 4 * bodies, Scaling::Scales);
        let (position, velocity) = (array("position"), array("velocity"));
        let (new_position, new_velocity) = (array("new_position"), array("new_velocity"));
        let staged = memory.array("staged", 4 * u64::from(THREADS), Scaling::Fixed);
    }
    struct Bodies {
        position, velocity, new_position, new_velocity: Array<f32>,
        /// A single tile.
        staged: Array<f32>,
        seed: u64 = request.seed,
    }
}

/// Components x, y, z and mass (or nothing).
type Vector = [Lanes<f32>; 4];

/// Adds to `force` the pull from `other` at position `own`.
fn interact(force: [Lanes<f32>; 3], own: &Vector, other: &Vector) -> [Lanes<f32>; 3] {
    let apart: [Lanes<f32>; 3] = std::array::from_fn(|axis| other[axis] - own[axis]);
    let square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2] + SOFTENING;
    let inverse = square.map(|square| 1.0 / square.sqrt());
    let pull = other[3] * inverse * inverse * inverse;
    std::array::from_fn(|axis| force[axis] + apart[axis] * pull)
}

impl Bodies {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let mut own: Vec<Vector> = Vec::new();
        let mut forces = vec![[Lanes::all(0.0); 3]; cta.warps() as usize];
        cta.each_warp(|warp| {
            let at = warp.compute(ComputeClass::Int, 2 + ADDRESS, warp.global_thread() * 4);
            let body: Vector = warp.load_vector(self.position, at);
            own.push(warp.compute(ComputeClass::Int, 1, body));
        });
        for tile in cta.trips().map(|tile| tile as i32) {
            cta.each_warp(|warp| {
                let at = warp.compute(ComputeClass::Int, ADDRESS, (warp.thread() + tile * THREADS as i32) * 4);
                let body: Vector = warp.load_vector(self.position, at);
                warp.store_vector(self.staged, warp.thread() * 4, body);
            });
            cta.barrier();
            cta.each_warp(|warp| {
                let index = warp.index() as usize;
                for j in 0..THREADS as i32 {
                    let other: Vector = warp.load_vector(self.staged, Lanes::all(4 * j));
                    let [first, rest @ ..] = INTERACTION;
                    let other = warp.compute(first.0, first.1, other);
                    rest.into_iter().for_each(|(class, count)| warp.compute(class, count, ()));
                    if warp.computes() {
                        forces[index] = interact(forces[index], &own[index], &other);
                    }
                }
            });
            cta.barrier();
        }
        cta.each_warp(|warp| {
            let index = warp.index() as usize;
            let at = warp.compute(ComputeClass::Int, ADDRESS, warp.global_thread() * 4);
            let velocity: Vector = warp.load_vector(self.velocity, at);
            let velocity = warp.compute(ComputeClass::Fp32, 12, velocity);
            let (force, own) = (forces[index], own[index]);
            let moved = |axis: usize| velocity[axis] + force[axis.min(2)] * STEP;
            let velocity: Vector = std::array::from_fn(|axis| if axis < 3 { moved(axis) } else { velocity[3] });
            let position: Vector =
                std::array::from_fn(|axis| if axis < 3 { own[axis] + velocity[axis] * STEP } else { own[3] });
            warp.store_vector(self.new_position, at, position);
            warp.store_vector(self.new_velocity, at, velocity);
        });
    }

    fn start(&self, index: u64) -> f32 {
        noise::unit(self.seed, index)
    }
}

impl Instance for Bodies {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.position, |index| self.start(index));
        memory.fill(self.velocity, |index| noise::unit(!self.seed, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.position);
        host.copy_to_device(self.velocity);
        let tiles = self.position.len() / 4 / u64::from(THREADS);
        let trips = Trips { count: tiles, unit: 1 };
        host.launch_ordered(Grid::new("nbody", tiles, THREADS).trips(trips), |cta| self.kernel(cta))?;
        host.copy_to_host(self.new_position);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let bodies = self.position.len() / 4;
        let position = |body: u64, axis: u64| self.start(4 * body + axis);
        let (velocity, moved) = (memory.to_vec(self.new_velocity), memory.to_vec(self.new_position));
        for body in 0..bodies {
            let mut force = [0.0_f64; 3];
            for other in 0..bodies {
                let apart: [f64; 3] =
                    std::array::from_fn(|axis| f64::from(position(other, axis as u64) - position(body, axis as u64)));
                let square: f64 = apart.iter().map(|apart| apart * apart).sum::<f64>() + f64::from(SOFTENING);
                let pull = f64::from(position(other, 3)) / (square * square.sqrt());
                (0..3).for_each(|axis| force[axis] += apart[axis] * pull);
            }
            let kept = [velocity[4 * body as usize + 3], moved[4 * body as usize + 3]];
            if kept != [noise::unit(!self.seed, 4 * body + 3), position(body, 3)] {
                return Err(format!("the fourth components of body {body} are {kept:?}"));
            }
            for (axis, force) in (0..3).zip(force) {
                let at = 4 * body + axis;
                let expected = f64::from(noise::unit(!self.seed, at)) + force * f64::from(STEP);
                let found = f64::from(velocity[at as usize]);
                let near =
                    |found: f64, expected: f64, most: f64| (found - expected).abs() <= most * expected.abs().max(1.0);
                if !near(found, expected, 1e-5) {
                    return Err(format!("velocity {axis} of body {body} is {found}, expected {expected}"));
                }
                // The expected position uses the velocity found, so that an error in the position step is detected.
                let expected = f64::from(position(body, axis)) + found * f64::from(STEP);
                let found = f64::from(moved[at as usize]);
                if !near(found, expected, 1e-6) {
                    return Err(format!("position {axis} of body {body} is {found}, expected {expected}"));
                }
            }
        }
        Ok(())
    }
}
