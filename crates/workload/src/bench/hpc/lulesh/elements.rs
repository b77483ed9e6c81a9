//! The kernels of a step that update the elements.

use super::mesh::FACES;
use super::physics::{self, bounded, gradients, limits, smoothness, strain, viscosity, volume};
use super::{ADDRESS, Domain, Done, THREADS, corners_of, joined};
use crate::record::Host;
use crate::simt::{ComputeClass, Cta, Grid, Lanes, Warp};

/// Instructions of the formulas, an addition, a multiplication or both each. Source: counted from `physics.rs`; a
/// division or root takes eight.
const KINEMATICS: u16 = 430;
const GRADIENTS: u16 = 200;
const VISCOSITY: u16 = 110;
const SOUND: u16 = 14;

impl Domain {
    pub(super) fn update_elements(&self, host: &mut Host<'_>, step: f64) -> Done {
        let elements = self.mesh.elements();
        self.each(host, "kinematics", elements, |warp, element| self.deform(warp, element, step))?;
        let [x, y, z] = self.rates;
        self.map(host, ("strain", 6), self.rates, [self.strain, x, y, z], |[x, y, z]| {
            let sum = x + y + z;
            [sum, x - sum / 3.0, y - sum / 3.0, z - sum / 3.0]
        })?;
        self.each(host, "gradients", elements, |warp, element| self.find_gradients(warp, element))?;
        self.each(host, "viscosity", elements, |warp, element| self.find_viscosity(warp, element))?;
        self.apply_material(host)?;
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

    /// Artificial viscosity, from the gradients of an element and of the six beside it.
    fn find_viscosity(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let (count, last) = (self.mesh.elements(), self.mesh.elements() - 1);
        let borders = warp.load(self.borders, element);
        let own = self.gradients.map(|field| warp.load(field, element));
        let mut beside = [Lanes::all(0.0); FACES];
        for (face, beside) in beside.iter_mut().enumerate() {
            let loaded = warp.load(self.beyond, element + face as i32 * count);
            warp.compute(ComputeClass::Int, ADDRESS, loaded);
            let beyond = element.map(|element| self.mesh.beyond(element.min(last), face));
            *beside = warp.load(self.gradients[face / 2], beyond);
            if face % 2 == 1 {
                // Beyond a free face there is nothing; beyond a plane of symmetry, the element itself.
                let free = borders.map(|borders| borders >> face & 1 == 1);
                *beside = warp.compute(ComputeClass::Int, 2, free.select(Lanes::all(0.0), *beside));
            }
        }
        let lengths = self.lengths.map(|field| warp.load(field, element));
        let fields = [self.strain, self.mass, self.reference_volume, self.new_volume];
        let rest = fields.map(|field| warp.load(field, element));
        let operands: [_; 16] = joined(&[&own, &beside, &lengths, &rest]);
        let results = warp.calculate(ComputeClass::Fp64, VISCOSITY, operands, |values| {
            let three = |first: usize| [values[first], values[first + 1], values[first + 2]];
            let smooth =
                std::array::from_fn(|axis| smoothness(values[axis], values[3 + 2 * axis], values[4 + 2 * axis]));
            viscosity(three(0), three(9), smooth, values[12], values[13] / (values[14] * values[15]))
        });
        let fields = [self.linear, self.quadratic];
        fields.into_iter().zip(results).for_each(|(field, result)| warp.store(field, element, result));
    }

    /// Energy, pressure, viscosity and the speed of sound by the equation of state.
    fn apply_material(&self, host: &mut Host<'_>) -> Done {
        let m = &self.material;
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
        self.find_pressure(host, true)?;
        let from = [m.energy, m.middle, m.change, m.coefficient, m.slope, m.pressure_half, m.pressure_old];
        let [a, b, c, d, e, f, g] = from;
        let from = [a, b, c, d, e, f, g, m.viscosity_old, self.linear, self.quadratic];
        self.map(host, ("energy-predict", SOUND + 16), from, [m.viscosity, m.energy], |values| {
            let [energy, middle, change, coefficient, slope, half, pressure, old, linear, quadratic] = values;
            let sound = physics::sound(slope * energy, 1.0 / (1.0 + middle), coefficient, half);
            let viscosity = physics::viscous(change, sound, linear, quadratic);
            [viscosity, physics::energy_predicted(energy, change, pressure + old, half + viscosity)]
        })?;
        self.find_pressure(host, false)?;
        self.correct_energy(host)?;
        self.find_pressure(host, false)?;
        self.finish_material(host)
    }

    /// The pressure of the energy so far, at the compression in the middle or at the end.
    fn find_pressure(&self, host: &mut Host<'_>, half: bool) -> Done {
        let m = &self.material;
        let (compression, pressure) = if half { (m.middle, m.pressure_half) } else { (m.compression, m.pressure) };
        let from = [m.energy, compression, m.volume];
        self.map(host, ("pressure", 6), from, [m.coefficient, m.slope, pressure], |[energy, compression, volume]| {
            let [coefficient, pressure] = physics::pressure(energy, compression, volume);
            [coefficient, physics::SLOPE, pressure]
        })
    }

    fn correct_energy(&self, host: &mut Host<'_>) -> Done {
        let m = &self.material;
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

    fn finish_material(&self, host: &mut Host<'_>) -> Done {
        let m = &self.material;
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

    /// The longest steps that the elements of each CTA allow: a tree of minima in the scratchpad.
    fn find_limits(&self, host: &mut Host<'_>) -> Done {
        let (count, ctas) = (self.mesh.elements(), self.limits[0].len());
        host.launch(Grid::new("limits", ctas, THREADS).shared_bytes(2 * 8 * THREADS), |cta: &mut Cta<'_>| {
            let mut tables = [(); 2].map(|()| cta.shared::<f64>(THREADS as usize));
            cta.each_warp(|warp| {
                let element = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread());
                let mut shortest = [Lanes::all(f64::MAX); 2];
                warp.when(element.lt(count), |warp| {
                    let own = [self.sound, self.strain, self.length].map(|field| warp.load(field, element));
                    let found = warp.calculate(ComputeClass::Fp64, 30, own, |[sound, strain, length]| {
                        limits(sound, strain, length)
                    });
                    shortest.iter_mut().zip(found).for_each(|(all, found)| *all = warp.update(*all, found));
                });
                for (table, shortest) in tables.iter_mut().zip(shortest) {
                    warp.store_shared(table, warp.thread(), shortest);
                }
            });
            cta.barrier();
            let mut distance = THREADS as i32 / 2;
            while distance > 0 {
                cta.each_warp(|warp| {
                    let thread = warp.thread();
                    warp.when(thread.lt(distance), |warp| {
                        for table in &mut tables {
                            let pair = [thread, thread + distance].map(|at| warp.load_shared(table, at));
                            let least = warp.compute(ComputeClass::Fp64, 1, pair[0].min(pair[1]));
                            warp.store_shared(table, thread, least);
                        }
                    });
                });
                cta.barrier();
                distance /= 2;
            }
            let index = Lanes::all(cta.index());
            cta.warp(0, |warp| {
                warp.single(|warp| {
                    for (table, limit) in tables.iter().zip(self.limits) {
                        let least = warp.load_shared(table, Lanes::all(0));
                        warp.store(limit, index, least);
                    }
                });
            });
        })
    }
}
