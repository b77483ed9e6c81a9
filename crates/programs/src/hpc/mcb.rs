//! MCB, the Monte Carlo benchmark: particles fly, scatter and are absorbed in a square mesh.
//!
//! A thread follows a particle from event to event - a collision, the cell's side, the end of the time step - and adds
//! to the tallies in the cells on its path. Particles lie in random order, so tallies and cross sections are gathered
//! and scattered.
//!
//! Tallies are integers, in units of 2^-20 particle weights, which makes sums independent of their order.

use crate::prelude::*;

/// Threads per CTA. Source: NUMA-GPU, Table 2: 5001 CTAs, one more than 1,280,000 particles fill.
const THREADS: u32 = 256;
/// Tally units per particle weight. Source: assumed; a sum over 2^40 weights fits 64 bits.
const PARTS: f64 = (1 << 20) as f64;
/// Mean number of collisions on the path through a cell, lowest and highest. Source: assumed, neither void nor opaque.
const COLLISIONS: (f64, f64) = (0.2, 1.0);
/// Fraction of absorbing collisions. Source: assumed.
const ABSORBED: f64 = 0.1;
/// Distance, in cell sides, that a particle can fly in a time step. Source: assumed.
const REACH: f64 = 4.0;
/// Tallies per cell: absorbed weight, track length, collisions, weight at the end of the step.
const TALLIES: i32 = 4;
/// Memory order for tally sums: relaxed, at system scope, because CTAs on all GPUs add to them.
const SUMS: Order = Order::relaxed(Scope::Sys);

program! {
    /// Monte Carlo transport: divergent histories, tallies scattered by atomics
    pub(crate) static MCB = "mcb",
        "MCB (LLNL, CORAL); NUMA-GPU, Table 2 (HPC-MCB); one energy group, analog absorption";
    parameters {
        /// particles, at scale 1; scales
        particles: count(1..=1 << 26) = 1_280_000, "NUMA-GPU, Table 2: 5001 CTAs of 256 threads, 162 MB";
        /// cells along each side of the mesh, at scale 1; scales by the root
        side: count(1..=1 << 13) = 400, "CORAL, MCB: `--nZonesX=400 --nZonesY=400`";
        /// time steps
        steps: count(1..=1000) = 1, "assumed: all alike while particles are left";
    }
    lay_out(name, request, memory) {
        let particles = request.scale.of(particles);
        let side = request.scale.side_of(side);
        check_indices(name, particles + u64::from(THREADS), "particles")?;
        check_indices(name, TALLIES as u64 * side * side, "tallies")?;
    }
    struct Transport {
        reals: [Array<f64>; REALS.len()] = REALS.map(|field| memory.array(field, particles, Scaling::Scales)),
        wholes: [Array<u32>; WHOLES.len()] = WHOLES.map(|field| memory.array(field, particles, Scaling::Scales)),
        /// Random-number state per particle.
        random: Array<u64>[particles],
        /// Mean free paths to the next collision.
        optical: Array<f64>[particles],
        /// Collisions per cell side length.
        opacity: Array<f64>[side * side],
        /// [`TALLIES`] values per cell.
        tally: Array<u64>[TALLIES as u64 * side * side],
        /// Total weight that left the mesh.
        escaped: Array<u64>[1, fixed],
        side: i32,
        steps: u64,
        seed: u64 = request.seed,
    }
}

/// Real and integer particle fields, as in MCB's particles.
const REALS: [&str; 11] =
    ["x", "y", "along_x", "along_y", "along_z", "energy", "weight", "speed", "left", "age", "path"];
const WHOLES: [&str; 6] = ["cell", "state", "segments", "collisions", "id", "breed"];

/// Particle states: in flight, or gone.
const ALIVE: u32 = 1;
const GONE: u32 = 0;

/// State of one particle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Particle {
    place: [f64; 2],
    direction: [f64; 3],
    energy: f64,
    weight: f64,
    /// Cell sides flown per time step.
    speed: f64,
    /// Remaining part of the time step.
    left: f64,
    /// Age in time steps, and path length in cell sides.
    age: f64,
    path: f64,
    /// Mean free paths to the next collision.
    optical: f64,
    random: u64,
    cell: [i32; 2],
    state: u32,
    segments: u32,
    collisions: u32,
}

/// Event that ends a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SegmentEnd {
    #[default]
    Census,
    Absorbed,
    Scattered,
    Crossed,
    Escaped,
}

/// A segment in a particle's history: the contribution to the cell that contains it.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    end: SegmentEnd,
    length: f64,
}

/// Negative logarithm for a number above 0 and at most 1, computed from its bits, so that every machine gives an equal
/// result.
fn minus_log(number: f64) -> f64 {
    let bits = number.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    // Series ln m = 2 artanh((m - 1) / (m + 1)); the argument is at most a third.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let series = (0..16).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    -(f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * ratio * series)
}

impl Particle {
    /// Draws the next random number, above 0 and at most 1. Source: Steele, Lea and Flood, OOPSLA 2014 (SplitMix64).
    fn draw(&mut self) -> f64 {
        self.random = self.random.wrapping_add(1);
        ((noise::noise(self.random, 0) >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Draws a uniformly distributed direction. Source: Marsaglia, 1972: without sines.
    fn turn(&mut self) {
        loop {
            let (u, v) = (2.0 * self.draw() - 1.0, 2.0 * self.draw() - 1.0);
            let square = u * u + v * v;
            if square < 1.0 {
                let root = 2.0 * (1.0 - square).sqrt();
                self.direction = [u * root, v * root, 1.0 - 2.0 * square];
                return;
            }
        }
    }

    /// Builds the particle at the start of the first step.
    fn initial(id: u64, side: i32, seed: u64) -> Particle {
        let mut particle = Particle {
            random: noise::noise(seed, id),
            energy: 1.0,
            weight: 1.0,
            speed: REACH,
            state: ALIVE,
            ..Particle::default()
        };
        particle.place = [0, 1].map(|_| (1.0 - particle.draw()) * f64::from(side));
        particle.cell = particle.place.map(|at| (at as i32).min(side - 1));
        particle.turn();
        particle.optical = minus_log(particle.draw());
        particle
    }

    /// Distance to the cell side ahead, and the axis across that side.
    fn boundary(&self) -> (f64, usize) {
        let along = [0, 1].map(|axis| {
            let direction = self.direction[axis];
            let side = f64::from(self.cell[axis] + i32::from(direction > 0.0));
            if direction == 0.0 { f64::INFINITY } else { ((side - self.place[axis]) / direction).max(0.0) }
        });
        if along[0] <= along[1] { (along[0], 0) } else { (along[1], 1) }
    }

    /// Flies to the next event, and returns the segment flown.
    fn advance(&mut self, opacity: f64, side: i32) -> Segment {
        let (boundary, axis) = self.boundary();
        let (collision, census) = (self.optical / opacity, self.left * self.speed);
        let length = boundary.min(collision).min(census);
        for axis in 0..2 {
            self.place[axis] += length * self.direction[axis];
        }
        self.optical -= length * opacity;
        self.left -= length / self.speed;
        self.age += length / self.speed;
        self.path += length;
        self.segments += 1;
        let end = if length == census {
            SegmentEnd::Census
        } else if length == collision {
            self.collide()
        } else {
            self.cross(axis, side)
        };
        Segment { end, length }
    }

    fn collide(&mut self) -> SegmentEnd {
        self.collisions += 1;
        if self.draw() <= ABSORBED {
            self.state = GONE;
            return SegmentEnd::Absorbed;
        }
        self.turn();
        self.optical = minus_log(self.draw());
        SegmentEnd::Scattered
    }

    /// Moves to the next cell; the low sides of the mesh are mirrors, the high sides are open.
    fn cross(&mut self, axis: usize, side: i32) -> SegmentEnd {
        let next = self.cell[axis] + if self.direction[axis] > 0.0 { 1 } else { -1 };
        self.place[axis] = f64::from(self.cell[axis].max(next));
        if next < 0 {
            self.direction[axis] = -self.direction[axis];
        } else if next < side {
            self.cell[axis] = next;
        } else {
            self.state = GONE;
            return SegmentEnd::Escaped;
        }
        SegmentEnd::Crossed
    }

    /// Contributions from a segment to its cell's tallies.
    fn shares(&self, segment: Segment) -> [u64; TALLIES as usize] {
        let parts = |share: f64| (share * PARTS) as u64;
        let of = |ends: &[SegmentEnd]| ends.contains(&segment.end);
        [
            if of(&[SegmentEnd::Absorbed]) { parts(self.weight * self.energy) } else { 0 },
            parts(self.weight * segment.length),
            u64::from(of(&[SegmentEnd::Absorbed, SegmentEnd::Scattered])),
            if of(&[SegmentEnd::Census]) { parts(self.weight) } else { 0 },
        ]
    }
}

impl Transport {
    fn particles(&self) -> u64 {
        self.random.len()
    }

    /// Cell index for coordinates in the mesh.
    fn cell(&self, [x, y]: [i32; 2]) -> i32 {
        y * self.side + x
    }

    fn opacity_of(&self, cell: u64) -> f64 {
        let share = (1.0 + f64::from(noise::unit(self.seed ^ 1, cell))) / 2.0;
        COLLISIONS.0 + (COLLISIONS.1 - COLLISIONS.0) * share
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let at = warp.compute(ComputeClass::Int, 2, warp.global_thread());
            warp.when(at.lt(self.particles() as i32), |warp| {
                let state = warp.load(self.wholes[1], at);
                warp.when(state.eq(ALIVE), |warp| {
                    let mut particle = self.load_particle(warp, at);
                    self.track(warp, &mut particle);
                    self.store_particle(warp, at, particle);
                });
            });
        });
    }

    /// Processes events until each lane's step ends.
    fn track(&self, warp: &mut Warp<'_>, particle: &mut Lanes<Particle>) {
        let mut under_way = map_active(warp, |_| true);
        while warp.any(under_way) {
            warp.when(under_way, |warp| {
                let cell = particle.map(|particle| self.cell(particle.cell));
                let cell = warp.compute(ComputeClass::Int, 2, cell);
                let opacity = warp.load(self.opacity, cell);
                // Three distances with a division each, the flight, and random numbers for a collision.
                let opacity = warp.compute(ComputeClass::Fp64, 60, opacity);
                let moved = map_active(warp, |lane| {
                    let mut moved = particle.lane(lane);
                    let segment = moved.advance(opacity.lane(lane), self.side);
                    (moved, segment)
                });
                let (after, segment) = (moved.map(|(particle, _)| particle), moved.map(|(_, segment)| segment));
                self.tally(warp, cell, after, segment);
                *particle = warp.update(*particle, after);
                let ended = segment.map(|segment| !matches!(segment.end, SegmentEnd::Scattered | SegmentEnd::Crossed));
                under_way = warp.update(under_way, !ended);
            });
        }
    }

    fn tally(&self, warp: &mut Warp<'_>, cell: Lanes<i32>, particle: Lanes<Particle>, segment: Lanes<Segment>) {
        let shares = particle.zip(segment, |particle, segment| particle.shares(segment));
        let shares = warp.compute(ComputeClass::Fp64, 4, shares);
        for tally in 0..TALLIES {
            let share = shares.map(|shares| shares[tally as usize]);
            warp.when(share.gt(0), |warp| {
                warp.reduce(Reduction::Add, self.tally, cell * TALLIES + tally, share, SUMS);
            });
        }
        warp.when(segment.map(|segment| segment.end == SegmentEnd::Escaped), |warp| {
            let weight = particle.map(|particle| (particle.weight * PARTS) as u64);
            warp.reduce(Reduction::Add, self.escaped, Lanes::all(0), weight, SUMS);
        });
    }

    /// Loads each lane's particle, with its whole time step ahead.
    fn load_particle(&self, warp: &mut Warp<'_>, at: Lanes<i32>) -> Lanes<Particle> {
        let reals = self.reals.map(|field| warp.load(field, at));
        let wholes = self.wholes.map(|field| warp.load(field, at));
        let (random, optical) = (warp.load(self.random, at), warp.load(self.optical, at));
        let (reals, wholes) = (warp.compute(ComputeClass::Int, 0, reals), warp.compute(ComputeClass::Int, 4, wholes));
        let (random, optical) = warp.compute(ComputeClass::Int, 0, (random, optical));
        map_active(warp, |lane| {
            let [x, y, along_x, along_y, along_z, energy, weight, speed, _, age, path] =
                reals.map(|field| field.lane(lane));
            let [cell, state, segments, collisions, _, _] = wholes.map(|field| field.lane(lane));
            Particle {
                place: [x, y],
                direction: [along_x, along_y, along_z],
                energy,
                weight,
                speed,
                left: 1.0,
                age,
                path,
                optical: optical.lane(lane),
                random: random.lane(lane),
                cell: [cell as i32 % self.side, cell as i32 / self.side],
                state,
                segments,
                collisions,
            }
        })
    }

    /// Stores the particle fields that can change.
    fn store_particle(&self, warp: &mut Warp<'_>, at: Lanes<i32>, particle: Lanes<Particle>) {
        for field in [0, 1, 2, 3, 4, 8, 9, 10] {
            warp.store(self.reals[field], at, particle.map(|particle| particle.reals()[field]));
        }
        for field in 0..4 {
            warp.store(self.wholes[field], at, particle.map(|particle| self.wholes_of(&particle)[field]));
        }
        warp.store(self.random, at, particle.map(|particle| particle.random));
        warp.store(self.optical, at, particle.map(|particle| particle.optical));
    }

    fn wholes_of(&self, particle: &Particle) -> [u32; 4] {
        [self.cell(particle.cell) as u32, particle.state, particle.segments, particle.collisions]
    }
}

impl Particle {
    /// Real fields in the order of [`REALS`].
    fn reals(&self) -> [f64; REALS.len()] {
        let ([x, y], [along_x, along_y, along_z]) = (self.place, self.direction);
        [x, y, along_x, along_y, along_z, self.energy, self.weight, self.speed, self.left, self.age, self.path]
    }
}

impl Instance for Transport {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.opacity, |cell| self.opacity_of(cell));
        let set = self.wholes[..5].iter().map(Array::addresses);
        let set = set.chain(self.reals.iter().map(Array::addresses));
        memory.fill_together(set.chain([self.random.addresses(), self.optical.addresses()]), || {
            for id in 0..self.particles() {
                let particle = Particle::initial(id, self.side, self.seed);
                for (field, value) in self.reals.into_iter().zip(particle.reals()) {
                    memory.write(field, id, value);
                }
                for (field, value) in self.wholes.into_iter().zip(self.wholes_of(&particle)) {
                    memory.write(field, id, value);
                }
                memory.write(self.wholes[4], id, id as u32);
                memory.write(self.random, id, particle.random);
                memory.write(self.optical, id, particle.optical);
            }
        });
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.reals.into_iter().chain([self.optical, self.opacity]).for_each(|array| host.copy_to_device(array));
        self.wholes.into_iter().for_each(|array| host.copy_to_device(array));
        host.copy_to_device(self.random);
        let ctas = self.particles() / u64::from(THREADS) + 1;
        (0..self.steps).try_for_each(|_| host.launch(Grid::new("track", ctas, THREADS), |cta| self.kernel(cta)))?;
        host.copy_to_host(self.tally);
        host.copy_to_host(self.escaped);
        Ok(())
    }

    /// Follows every particle separately, in id order, and compares fields and tallies.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut tally = vec![0; self.tally.len() as usize];
        let mut escaped = 0;
        for id in 0..self.particles() {
            let mut particle = Particle::initial(id, self.side, self.seed);
            for _ in 0..self.steps {
                particle.left = if particle.state == ALIVE { 1.0 } else { particle.left };
                while particle.state == ALIVE {
                    let cell = self.cell(particle.cell);
                    let segment = particle.advance(self.opacity_of(cell as u64), self.side);
                    for (tally, share) in tally[(cell * TALLIES) as usize..].iter_mut().zip(particle.shares(segment)) {
                        *tally += share;
                    }
                    if segment.end == SegmentEnd::Escaped {
                        escaped += (particle.weight * PARTS) as u64;
                    }
                    if segment.end == SegmentEnd::Census {
                        break;
                    }
                }
            }
            let found = self.reals.map(|field| memory.read(field, id));
            if found != particle.reals() {
                return Err(format!("particle {id} is {found:?}, expected {:?}", particle.reals()));
            }
            let found = (self.wholes.map(|field| memory.read(field, id)), memory.read(self.random, id));
            let [cell, state, segments, collisions] = self.wholes_of(&particle);
            let expected = ([cell, state, segments, collisions, id as u32, 0], particle.random);
            if found != expected || memory.read(self.optical, id) != particle.optical {
                return Err(format!(
                    "fields of particle {id} are {found:?}, expected {expected:?}, or its optical differs"
                ));
            }
        }
        if let Some(at) = (0..).zip(&tally).find(|(at, share)| memory.read(self.tally, *at) != **share) {
            return Err(format!("tally {} is {}, expected {}", at.0, memory.read(self.tally, at.0), at.1));
        }
        match memory.read(self.escaped, 0) {
            found if found == escaped => Ok(()),
            found => Err(format!("{found} escaped, expected {escaped}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_one() {
        for number in [1.0, 0.5, 0.999_999, 0.3, 1e-5, 2.0_f64.powi(-53)] {
            assert!((minus_log(number) + number.ln()).abs() < 1e-12, "{number}");
        }
    }

    #[test]
    fn particles_meet_every_end_and_none_is_lost() {
        let mut ends = Vec::new();
        for id in 0..2000 {
            let mut particle = Particle::initial(id, 5, 3);
            particle.left = 1.0;
            loop {
                let Segment { end, length } = particle.advance(0.6, 5);
                assert!(length >= 0.0);
                ends.push(end);
                if !matches!(end, SegmentEnd::Scattered | SegmentEnd::Crossed) {
                    break;
                }
            }
        }
        let count = |which| ends.iter().filter(|end| **end == which).count();
        assert!(
            [SegmentEnd::Census, SegmentEnd::Absorbed, SegmentEnd::Escaped].into_iter().all(|end| count(end) > 100)
        );
        assert!(count(SegmentEnd::Scattered) > 100 && count(SegmentEnd::Crossed) > 2000);
    }
}
