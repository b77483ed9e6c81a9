//! Kernels from LULESH 1.0's HIP port: each passes its results on through arrays.

use super::kernels::{GRADIENTS, HOURGLASS, KINEMATICS, SOUND, STRESS, corners_of, find_least, joined, store_least};
use super::mesh::CORNERS;
use super::physics::{self, bounded, gradients, hourglass_forces, strain, stress_forces, volume};
use super::{ADDRESS, Domain, Field, RecordResult};
use crate::prelude::*;

/// Threads per CTA. Source: gem5-resources, `lulesh.hip.cc` (`BLOCKSIZE`).
const THREADS: u32 = 256;

/// Number of CTAs in the time-constraint kernel.
pub(super) fn ctas_of_limits(elements: u64) -> u64 {
    elements.div_ceil(u64::from(THREADS))
}

arrays! {
    /// Arrays that pass data between the kernels in a step.
    pub(super) struct Separate(memory, elements: u64) {
        stress: [Field; 3]["stress_x", "stress_y", "stress_z"; elements],
        determinant: Field[elements],
        material: Material = Material::lay_out(memory, elements),
    }
}

arrays! {
    /// Intermediate values in the equation of state, passed from kernel to kernel.
    struct Material(memory, elements: u64) {
        volume: Field["eos_volume"; elements],
        change: Field["eos_change"; elements],
        compression: Field["eos_compression"; elements],
        /// Compression in the middle of the volume change.
        middle: Field["eos_middle"; elements],
        energy_old: Field["eos_energy_old"; elements],
        pressure_old: Field["eos_pressure_old"; elements],
        viscosity_old: Field["eos_viscosity_old"; elements],
        energy: Field["eos_energy"; elements],
        pressure: Field["eos_pressure"; elements],
        pressure_half: Field["eos_pressure_half"; elements],
        viscosity: Field["eos_viscosity"; elements],
        coefficient: Field["eos_coefficient"; elements],
        slope: Field["eos_slope"; elements],
    }
}

impl Domain {
    /// Runs a step of LULESH 1.0; returns the shortest limits for the next step.
    pub(super) fn step_separate(
        &self,
        host: &mut Host<'_>,
        separate: &Separate,
        step: f64,
    ) -> Result<[f64; 2], RecordError> {
        self.move_nodes(host, separate, step)?;
        self.update_elements(host, &separate.material, step)?;
        Ok(self.limits.map(|limit| {
            host.copy_to_host(limit);
            host.memory().to_vec(limit).into_iter().fold(f64::MAX, f64::min)
        }))
    }

    /// Launches a kernel that maps fields to fields, element by element (or node by node), in `count` instructions.
    fn map<const N: usize, const M: usize>(
        &self,
        host: &mut Host<'_>,
        (name, count): (&str, u16),
        from: [Field; N],
        to: [Field; M],
        function: impl Fn([f64; N]) -> [f64; M] + Sync,
    ) -> RecordResult {
        self.each(host, (name, THREADS), from[0].len() as i32, |warp, index| {
            let operands = from.map(|field| warp.load(field, index));
            let results = warp.calculate(ComputeClass::Fp64, count, operands, &function);
            to.into_iter().zip(results).for_each(|(field, result)| warp.store(field, index, result));
        })
    }

    fn move_nodes(&self, host: &mut Host<'_>, separate: &Separate, step: f64) -> RecordResult {
        let (stress, determinant) = (separate.stress, separate.determinant);
        self.map(host, ("init-stress", 2), [self.pressure, self.viscosity], stress, |[p, q]| [-(p + q); 3])?;
        let (elements, nodes) = (self.mesh.elements(), self.mesh.nodes());
        self.each(host, ("stress", THREADS), elements, |warp, element| {
            self.push_by_stress(warp, element, stress, determinant);
        })?;
        let slot = |node: Lanes<i32>| move |round: u32| node + round as i32 * nodes;
        self.each(host, ("stress-to-nodes", THREADS), nodes, |warp, node| {
            self.sum_forces(warp, node, false, slot(node));
        })?;
        self.each(host, ("hourglass", THREADS), elements, |warp, element| self.push_by_hourglass(warp, element))?;
        self.each(host, ("hourglass-to-nodes", THREADS), nodes, |warp, node| {
            self.sum_forces(warp, node, true, slot(node));
        })?;
        self.each(host, ("acceleration", THREADS), nodes, |warp, node| self.accelerate(warp, node))?;
        let longest = self.held.iter().map(Vec::len).max().expect("three planes of symmetry");
        self.each(host, ("symmetry", THREADS), longest as i32, |warp, place| {
            for (axis, held) in self.held.iter().enumerate() {
                warp.when(place.lt(held.len() as i32), |warp| self.zero_acceleration(warp, place, axis));
            }
        })?;
        let ([vx, vy, vz], [ax, ay, az], [x, y, z]) = (self.velocity, self.acceleration, self.place);
        self.map(host, ("velocity", 9), [vx, vy, vz, ax, ay, az], self.velocity, |[vx, vy, vz, ax, ay, az]| {
            [(vx, ax), (vy, ay), (vz, az)].map(|(speed, acceleration)| physics::velocity(speed, acceleration, step))
        })?;
        self.map(host, ("position", 3), [x, y, z, vx, vy, vz], self.place, |[x, y, z, vx, vy, vz]| {
            [x + vx * step, y + vy * step, z + vz * step]
        })
    }

    fn push_by_stress(&self, warp: &mut Warp<'_>, element: Lanes<i32>, stress: [Field; 3], determinant: Field) {
        let nodes = self.nodes_of(warp, element);
        let places = self.gather(warp, self.place, &nodes);
        let stress = stress.map(|field| warp.load(field, element));
        let operands: [_; 27] = joined(&[&places, &stress]);
        let results: [_; 25] = warp.calculate(ComputeClass::Fp64, STRESS, operands, |values| {
            let (forces, volume) = stress_forces(&corners_of(&values, 0), [values[24], values[25], values[26]]);
            std::array::from_fn(|at| if at < 24 { forces[at / CORNERS][at % CORNERS] } else { volume })
        });
        self.store_forces(warp, element, &results);
        warp.store(determinant, element, results[24]);
    }

    fn push_by_hourglass(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let nodes = self.nodes_of(warp, element);
        let places = self.gather(warp, self.place, &nodes);
        let velocities = self.gather(warp, self.velocity, &nodes);
        let own = [self.reference_volume, self.volume, self.sound, self.mass].map(|field| warp.load(field, element));
        let operands: [_; 52] = joined(&[&places, &velocities, &own]);
        // Axes share no subexpressions: LULESH 2.0, `CalcElemFBHourglassForce`.
        let results: [_; 24] = warp.calculate_wide(ComputeClass::Fp64, HOURGLASS, 3, operands, |values| {
            let (at, speeds) = (corners_of(&values, 0), corners_of(&values, 24));
            let forces = hourglass_forces(&at, &speeds, values[48] * values[49], values[50], values[51]);
            std::array::from_fn(|at| forces[at / CORNERS][at % CORNERS])
        });
        self.store_forces(warp, element, &results);
    }

    fn update_elements(&self, host: &mut Host<'_>, material: &Material, step: f64) -> RecordResult {
        let elements = self.mesh.elements();
        self.each(host, ("kinematics", THREADS), elements, |warp, element| self.deform(warp, element, step))?;
        let [x, y, z] = self.rates;
        self.map(host, ("strain", 6), self.rates, [self.strain, x, y, z], |[x, y, z]| {
            let sum = x + y + z;
            [sum, x - sum / 3.0, y - sum / 3.0, z - sum / 3.0]
        })?;
        self.each(host, ("gradients", THREADS), elements, |warp, element| self.find_gradients(warp, element))?;
        self.each(host, ("viscosity", THREADS), elements, |warp, element| self.find_viscosity(warp, element))?;
        self.apply_material(host, material)?;
        self.map(host, ("volumes", 2), [self.new_volume], [self.volume], |[volume]| [physics::settled(volume)])?;
        self.find_limits(host)
    }

    fn deform(&self, warp: &mut Warp<'_>, element: Lanes<i32>, step: f64) {
        let nodes = self.nodes_of(warp, element);
        let places = self.gather(warp, self.place, &nodes);
        let velocities = self.gather(warp, self.velocity, &nodes);
        let own = [self.reference_volume, self.volume].map(|field| warp.load(field, element));
        let operands: [_; 50] = joined(&[&places, &velocities, &own]);
        let results: [_; 6] = warp.calculate(ComputeClass::Fp64, KINEMATICS, operands, |values| {
            let (at, speeds, reference) = (corners_of(&values, 0), corners_of(&values, 24), values[48]);
            let relative = volume(&at) / reference;
            let [x, y, z] = strain(&at, &speeds, step);
            [relative, relative - values[49], physics::length(&at, relative * reference), x, y, z]
        });
        let [x, y, z] = self.rates;
        let fields = [self.new_volume, self.change, self.length, x, y, z];
        fields.into_iter().zip(results).for_each(|(field, result)| warp.store(field, element, result));
    }

    fn find_gradients(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let nodes = self.nodes_of(warp, element);
        let places = self.gather(warp, self.place, &nodes);
        let velocities = self.gather(warp, self.velocity, &nodes);
        let own = [self.reference_volume, self.new_volume].map(|field| warp.load(field, element));
        let operands: [_; 50] = joined(&[&places, &velocities, &own]);
        let results: [_; 6] = warp.calculate(ComputeClass::Fp64, GRADIENTS, operands, |values| {
            let (at, speeds) = (corners_of(&values, 0), corners_of(&values, 24));
            let ([a, b, c], [d, e, f]) = gradients(&at, &speeds, values[48] * values[49]);
            [a, b, c, d, e, f]
        });
        let fields = self.gradients.into_iter().chain(self.lengths);
        fields.zip(results).for_each(|(field, result)| warp.store(field, element, result));
    }

    /// Computes energy, pressure, viscosity and the speed of sound by the equation of state.
    fn apply_material(&self, host: &mut Host<'_>, m: &Material) -> RecordResult {
        let from = [self.new_volume, self.energy, self.change, self.pressure, self.viscosity];
        let to = [m.volume, m.energy_old, m.change, m.pressure_old, m.viscosity_old, m.compression, m.middle];
        self.map(host, ("compress", 22), from, to, |[volume, energy, change, pressure, viscosity]| {
            let volume = bounded(volume);
            let [compression, middle] = physics::compressions(volume, change);
            [volume, energy, change, pressure, viscosity, compression, middle]
        })?;
        let from = [m.energy_old, m.change, m.pressure_old, m.viscosity_old];
        self.map(host, ("energy-half", 4), from, [m.energy], |[energy, change, pressure, viscosity]| {
            [physics::energy_half(energy, change, pressure, viscosity)]
        })?;
        self.find_pressure(host, m, true)?;
        let from = [m.energy, m.middle, m.change, m.coefficient, m.slope, m.pressure_half, m.pressure_old];
        let [a, b, c, d, e, f, g] = from;
        let from = [a, b, c, d, e, f, g, m.viscosity_old, self.linear, self.quadratic];
        self.map(host, ("energy-predict", SOUND + 16), from, [m.viscosity, m.energy], |values| {
            let [energy, middle, change, coefficient, slope, half, pressure, old, linear, quadratic] = values;
            let sound = physics::sound(slope * energy, 1.0 / (1.0 + middle), coefficient, half);
            let viscosity = physics::viscous(change, sound, linear, quadratic);
            [viscosity, physics::energy_predicted(energy, change, pressure + old, half + viscosity)]
        })?;
        self.find_pressure(host, m, false)?;
        self.correct_energy(host, m)?;
        self.find_pressure(host, m, false)?;
        self.finish_material(host, m)
    }

    /// Computes the pressure for the present energy, at the midpoint compression (`half`) or at the final compression.
    fn find_pressure(&self, host: &mut Host<'_>, m: &Material, half: bool) -> RecordResult {
        let (compression, pressure) = if half { (m.middle, m.pressure_half) } else { (m.compression, m.pressure) };
        let from = [m.energy, compression, m.volume];
        self.map(host, ("pressure", 6), from, [m.coefficient, m.slope, pressure], |[energy, compression, volume]| {
            let [coefficient, pressure] = physics::pressure(energy, compression, volume);
            [coefficient, physics::SLOPE, pressure]
        })
    }

    fn correct_energy(&self, host: &mut Host<'_>, m: &Material) -> RecordResult {
        let from = [
            m.energy,
            m.volume,
            m.change,
            m.coefficient,
            m.slope,
            m.pressure,
            m.pressure_half,
            m.viscosity,
            m.pressure_old,
            m.viscosity_old,
            self.linear,
            self.quadratic,
        ];
        self.map(host, ("energy-correct", SOUND + 20), from, [m.energy], |values| {
            let [energy, volume, change, coefficient, slope, pressure, half, viscosity, before, old, ..] = values;
            let sound = physics::sound(slope * energy, volume, coefficient, pressure);
            let new = physics::viscous(change, sound, values[10], values[11]);
            [physics::energy_corrected(energy, change, before + old, half + viscosity, pressure + new)]
        })
    }

    fn finish_material(&self, host: &mut Host<'_>, m: &Material) -> RecordResult {
        let from = [m.energy, m.volume, m.change, m.coefficient, m.slope, m.pressure, self.linear, self.quadratic];
        self.map(host, ("viscosity-new", SOUND + 5), from, [m.viscosity], |values| {
            let [energy, volume, change, coefficient, slope, pressure, linear, quadratic] = values;
            let sound = physics::sound(slope * energy, volume, coefficient, pressure);
            [physics::cut_viscosity(physics::viscous(change, sound, linear, quadratic))]
        })?;
        let from = [m.pressure, m.energy, m.viscosity, m.volume, m.coefficient, m.slope];
        let to = [self.pressure, self.energy, self.viscosity, self.sound];
        self.map(host, ("sound", SOUND), from, to, |[pressure, energy, viscosity, volume, coefficient, slope]| {
            [pressure, energy, viscosity, physics::sound(slope * energy, volume, coefficient, pressure)]
        })
    }

    /// Finds the longest steps allowed by the elements in each CTA.
    fn find_limits(&self, host: &mut Host<'_>) -> RecordResult {
        let (count, ctas) = (self.mesh.elements(), self.limits[0].len());
        host.launch(Grid::new("limits", ctas, THREADS).shared_bytes(2 * 8 * THREADS), |cta: &mut Cta<'_>| {
            let mut tables = [(); 2].map(|()| cta.shared::<f64>(THREADS as usize));
            cta.each_warp(|warp| {
                let element = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread());
                let mut shortest = [Lanes::all(f64::MAX); 2];
                warp.when(element.lt(count), |warp| {
                    let found = self.shorten(warp, element, shortest);
                    shortest.iter_mut().zip(found).for_each(|(all, found)| *all = warp.update(*all, found));
                });
                for (table, shortest) in tables.iter_mut().zip(shortest) {
                    warp.store_shared(table, warp.thread(), shortest);
                }
            });
            find_least(cta, &mut tables, THREADS);
            let index = cta.index();
            store_least(cta, &tables, &self.limits.map(|limit| (limit, index)));
        })
    }
}
