//! Kernels from LULESH 2.0's CUDA port: few and long. Two kernels walk the elements region by region.

use super::kernels::{GRADIENTS, HOURGLASS, KINEMATICS, SOUND, STRESS, corners_of, find_least, joined, store_least};
use super::mesh::{CORNERS, HexMesh};
use super::physics::{self, bounded, gradients, hourglass_forces, strain, stress_forces, volume};
use super::regions::Regions;
use super::{ADDRESS, Domain, Field, RecordResult};
use crate::prelude::*;
use tombolo_workload::scale::Scale;

/// Threads per CTA in the kernels that compute forces and strains. Source: LULESH 2.0's CUDA port (`block_size`).
const NARROW: u32 = 64;
/// Threads per CTA in the other kernels. Source: LULESH 2.0's CUDA port (`dimBlock`).
const WIDE: u32 = 128;
/// Maximum number of CTAs in the time-constraint kernel, and threads in the kernel that combines their results. Source:
/// LULESH 2.0's CUDA port (`max_dimGrid`).
const MOST_CTAS: u32 = 1024;

/// Instructions per evaluation of the equation of state, from its parts in `separate.rs`.
const EVALUATION: u16 = 127;

/// Number of CTAs in the time-constraint kernel. The maximum follows the scale, so that the elements per thread remain
/// constant.
pub(super) fn ctas_of_limits(elements: u64, scale: Scale) -> u64 {
    elements.div_ceil(u64::from(WIDE)).min(scale.of(u64::from(MOST_CTAS)))
}

arrays! {
    /// Arrays and tables absent in LULESH 1.0, for a mesh with `regions` regions.
    pub(super) struct Fused(memory, mesh: &HexMesh, regions: i32) {
        /// First corner index per node.
        starts: Array<i32>[mesh.nodes() as u64],
        /// The material's elements, in order.
        elements: Array<i32>["material_elements"; mesh.elements() as u64],
        /// Element order by region, from `regions`.
        order: Array<i32>["region_elements"; mesh.elements() as u64],
        ends: Array<i32>["region_ends"; regions as u64, fixed],
        evaluations: Array<u32>["region_evaluations"; regions as u64, fixed],
        /// Minimum over each array in `Domain::limits`.
        shortest: Field[2, fixed],
        regions: Regions = Regions::new(mesh.elements(), regions),
        /// Host copy with the contents of `starts`.
        first_corner: Vec<i32> = first_corners(mesh),
    }
}

/// First corner index per node.
fn first_corners(mesh: &HexMesh) -> Vec<i32> {
    let mut first = 0;
    let first_corner = |node| {
        first += mesh.degree(node);
        first - mesh.degree(node)
    };
    (0..mesh.nodes()).map(first_corner).collect()
}

impl Fused {
    pub(super) fn fill(&self, memory: &Memory) {
        memory.fill(self.starts, |node| self.first_corner[node as usize]);
        memory.fill(self.elements, |place| place as i32);
        memory.fill(self.order, |place| self.regions.order[place as usize]);
        memory.fill(self.ends, |region| self.regions.ends[region as usize]);
        memory.fill(self.evaluations, |region| self.regions.evaluations[region as usize]);
    }

    pub(super) fn copy_to_device(&self, host: &mut Host<'_>) {
        for table in [self.starts, self.elements, self.order, self.ends] {
            host.copy_to_device(table);
        }
        host.copy_to_device(self.evaluations);
    }

    /// Elements at the given positions in the region order.
    fn in_order(&self, warp: &mut Warp<'_>, place: Lanes<i32>) -> Lanes<i32> {
        let loaded = warp.load(self.order, place);
        warp.compute(ComputeClass::Int, ADDRESS, loaded);
        map_active(warp, |lane| self.regions.order[place.lane(lane) as usize])
    }

    /// Number of equation-of-state evaluations at the given positions in the region order. The kernel scans the regions
    /// linearly.
    fn evaluations(&self, warp: &mut Warp<'_>, place: Lanes<i32>) -> Lanes<u32> {
        let region = map_active(warp, |lane| self.regions.at(place.lane(lane)) as i32);
        let last = self.regions.ends.len() as i32 - 1;
        let looks = region.map(|region| (region + 1).min(last) as u32);
        warp.repeat(looks, |warp, round| {
            let end = warp.load(self.ends, Lanes::all(round));
            warp.compute(ComputeClass::Int, 2, end);
        });
        let loaded = warp.load(self.evaluations, region);
        warp.compute(ComputeClass::Int, 1, loaded);
        map_active(warp, |lane| self.regions.evaluations[region.lane(lane) as usize])
    }
}

impl Domain {
    /// Runs a step of LULESH 2.0; returns the shortest limits for the next step.
    pub(super) fn step_fused(&self, host: &mut Host<'_>, fused: &Fused, step: f64) -> Result<[f64; 2], RecordError> {
        let (elements, nodes) = (self.mesh.elements(), self.mesh.nodes());
        self.each(host, ("volume-force", NARROW), elements, |warp, element| self.push(warp, element))?;
        self.each(host, ("node-force", NARROW), nodes, |warp, node| {
            let loaded = warp.load(fused.starts, node);
            warp.compute(ComputeClass::Int, 1, loaded);
            let first = map_active(warp, |lane| fused.first_corner[node.lane(lane) as usize]);
            self.sum_forces(warp, node, false, |round| first + round as i32);
        })?;
        self.each(host, ("acceleration", WIDE), nodes, |warp, node| self.accelerate(warp, node))?;
        for (axis, name) in ["symmetry-x", "symmetry-y", "symmetry-z"].into_iter().enumerate() {
            let held = self.held[axis].len() as i32;
            self.each(host, (name, WIDE), held, |warp, place| self.zero_acceleration(warp, place, axis))?;
        }
        self.each(host, ("position-velocity", WIDE), nodes, |warp, node| self.move_node(warp, node, step))?;
        self.each(host, ("kinematics-gradient", NARROW), elements, |warp, element| {
            self.deform_and_grade(warp, element, step);
        })?;
        self.each(host, ("viscosity-region", WIDE), elements, |warp, place| {
            let element = fused.in_order(warp, place);
            self.find_viscosity(warp, element);
            // A viscosity above the limit would stop the program.
            let viscosity = warp.load(self.viscosity, element);
            warp.compute(ComputeClass::Fp64, 1, viscosity);
        })?;
        self.each(host, ("material-region", WIDE), elements, |warp, place| self.apply(warp, fused, place))?;
        self.find_time_constraints(host, fused)?;
        self.find_shortest(host, fused)?;
        host.copy_to_host(fused.shortest);
        Ok([0, 1].map(|which| host.memory().read(fused.shortest, which)))
    }

    /// Stress forces and anti-hourglass forces at element corners.
    fn push(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let fields = [self.volume, self.reference_volume, self.sound, self.mass, self.pressure, self.viscosity];
        let own = fields.map(|field| warp.load(field, element));
        let nodes = self.nodes_of(warp, element);
        let places = self.gather(warp, self.place, &nodes);
        let operands: [_; 30] = joined(&[&own, &places]);
        let stresses: [_; 24] = warp.calculate(ComputeClass::Fp64, STRESS + 1, operands, |values| {
            let stress = [-(values[4] + values[5]); 3];
            let (forces, _) = stress_forces(&corners_of(&values, 6), stress);
            std::array::from_fn(|at| forces[at / CORNERS][at % CORNERS])
        });
        let velocities = self.gather(warp, self.velocity, &nodes);
        let operands: [_; 76] = joined(&[&own[..4], &places, &velocities, &stresses]);
        // Axes share no subexpressions: LULESH 2.0, `CalcElemFBHourglassForce`.
        let results: [_; 24] = warp.calculate_wide(ComputeClass::Fp64, HOURGLASS, 3, operands, |values| {
            let (at, speeds) = (corners_of(&values, 4), corners_of(&values, 28));
            let forces = hourglass_forces(&at, &speeds, values[0] * values[1], values[2], values[3]);
            std::array::from_fn(|at| values[52 + at] + forces[at / CORNERS][at % CORNERS])
        });
        self.store_forces(warp, element, &results);
    }

    fn move_node(&self, warp: &mut Warp<'_>, node: Lanes<i32>, step: f64) {
        let speeds = self.velocity.map(|field| warp.load(field, node));
        let accelerations = self.acceleration.map(|field| warp.load(field, node));
        let places = self.place.map(|field| warp.load(field, node));
        let operands: [_; 9] = joined(&[&speeds, &accelerations, &places]);
        let results: [_; 6] = warp.calculate(ComputeClass::Fp64, 12, operands, |values| {
            let speed = |axis: usize| physics::velocity(values[axis], values[3 + axis], step);
            std::array::from_fn(|at| if at < 3 { values[6 + at] + speed(at) * step } else { speed(at - 3) })
        });
        let fields = self.place.into_iter().chain(self.velocity);
        fields.zip(results).for_each(|(field, result)| warp.store(field, node, result));
    }

    /// Computes volumes, strains, and velocity gradients.
    fn deform_and_grade(&self, warp: &mut Warp<'_>, element: Lanes<i32>, step: f64) {
        let nodes = self.nodes_of(warp, element);
        let places = self.gather(warp, self.place, &nodes);
        let own = [self.reference_volume, self.volume].map(|field| warp.load(field, element));
        let velocities = self.gather(warp, self.velocity, &nodes);
        let operands: [_; 50] = joined(&[&places, &velocities, &own]);
        let count = KINEMATICS + 6 + GRADIENTS;
        let results: [_; 13] = warp.calculate(ComputeClass::Fp64, count, operands, |values| {
            let (at, speeds, reference) = (corners_of(&values, 0), corners_of(&values, 24), values[48]);
            let relative = volume(&at) / reference;
            let [x, y, z] = strain(&at, &speeds, step);
            let sum = x + y + z;
            let length = physics::length(&at, relative * reference);
            let (rates, lengths) = gradients(&at, &speeds, reference * relative);
            let [a, b, c] = [x, y, z].map(|rate| rate - sum / 3.0);
            let [[d, e, f], [g, h, i]] = [rates, lengths];
            [relative, relative - values[49], length, sum, a, b, c, d, e, f, g, h, i]
        });
        let fields = [self.new_volume, self.change, self.length, self.strain].into_iter();
        let fields = fields.chain(self.rates).chain(self.gradients).chain(self.lengths);
        fields.zip(results).for_each(|(field, result)| warp.store(field, element, result));
    }

    /// Applies the equation of state as often as the element's region requires, and stores the new volume.
    fn apply(&self, warp: &mut Warp<'_>, fused: &Fused, place: Lanes<i32>) {
        let element = fused.in_order(warp, place);
        let [new_volume, old_volume] = [self.new_volume, self.volume].map(|field| warp.load(field, element));
        warp.compute(ComputeClass::Fp64, 5, [new_volume, old_volume]);
        let evaluations = fused.evaluations(warp, place);
        let fields = [self.energy, self.pressure, self.viscosity, self.quadratic, self.linear, self.change];
        let own = fields.map(|field| warp.load(field, element));
        let operands: [_; 7] = joined(&[&own, &[new_volume]]);
        let mut results = [Lanes::all(0.0); 4];
        warp.repeat(evaluations, |warp, _| {
            let found = warp.calculate(ComputeClass::Fp64, EVALUATION, operands, evaluate);
            results.iter_mut().zip(found).for_each(|(result, found)| *result = warp.update(*result, found));
        });
        let [energy, pressure, viscosity, coefficient] = results;
        for (field, result) in [(self.pressure, pressure), (self.energy, energy), (self.viscosity, viscosity)] {
            warp.store(field, element, result);
        }
        let operands = [energy, new_volume, coefficient, pressure];
        let [sound] = warp.calculate(ComputeClass::Fp64, SOUND, operands, |[energy, volume, coefficient, pressure]| {
            [physics::sound(physics::SLOPE * energy, bounded(volume), coefficient, pressure)]
        });
        warp.store(self.sound, element, sound);
        let [settled] = warp.calculate(ComputeClass::Fp64, 2, [new_volume], |[volume]| [physics::settled(volume)]);
        warp.store(self.volume, element, settled);
    }

    /// Finds the longest steps allowed by the elements in each CTA; a thread may process several elements.
    fn find_time_constraints(&self, host: &mut Host<'_>, fused: &Fused) -> RecordResult {
        let (count, ctas) = (self.mesh.elements(), self.limits[0].len());
        let stride = ctas as i32 * WIDE as i32;
        host.launch(Grid::new("time-constraints", ctas, WIDE).shared_bytes(2 * 8 * WIDE), |cta: &mut Cta<'_>| {
            let mut tables = [(); 2].map(|()| cta.shared::<f64>(WIDE as usize));
            cta.each_warp(|warp| {
                let first = warp.compute(ComputeClass::Int, 1 + ADDRESS, warp.global_thread());
                let mut shortest = [Lanes::all(f64::MAX); 2];
                let turns = first.map(|first| ((count - first + stride - 1) / stride).max(0) as u32);
                warp.repeat(turns, |warp, turn| {
                    let element = first + turn as i32 * stride;
                    let loaded = warp.load(fused.elements, element);
                    warp.compute(ComputeClass::Int, ADDRESS, loaded);
                    let found = self.shorten(warp, element, shortest);
                    shortest.iter_mut().zip(found).for_each(|(all, found)| *all = warp.update(*all, found));
                });
                for (table, shortest) in tables.iter_mut().zip(shortest) {
                    warp.store_shared(table, warp.thread(), shortest);
                }
            });
            find_least(cta, &mut tables, WIDE);
            let index = cta.index();
            store_least(cta, &tables, &self.limits.map(|limit| (limit, index)));
        })
    }

    /// Finds the minimum over all CTAs' limits, with a CTA for each limit array.
    fn find_shortest(&self, host: &mut Host<'_>, fused: &Fused) -> RecordResult {
        let count = self.limits[0].len() as i32;
        let grid = Grid::new("shortest", 2, MOST_CTAS).shared_bytes(8 * MOST_CTAS);
        host.launch(grid, |cta: &mut Cta<'_>| {
            let which = cta.index();
            let mut tables = [cta.shared::<f64>(MOST_CTAS as usize)];
            cta.each_warp(|warp| {
                let thread = warp.thread();
                let mut limit = Lanes::all(f64::MAX);
                warp.when(thread.lt(count), |warp| {
                    let loaded = warp.load(self.limits[which as usize], thread);
                    limit = warp.update(limit, loaded);
                });
                warp.store_shared(&mut tables[0], thread, limit);
            });
            find_least(cta, &mut tables, MOST_CTAS);
            store_least(cta, &tables, &[(fused.shortest, which)]);
        })
    }
}

/// Energy, pressure, viscosity and pressure coefficient after an evaluation of the equation of state.
fn evaluate([energy, pressure, viscosity, quadratic, linear, change, volume]: [f64; 7]) -> [f64; 4] {
    let volume = bounded(volume);
    let [compression, middle] = physics::compressions(volume, change);
    let viscous = |energy: f64, volume: f64, coefficient: f64, pressure: f64| {
        let sound = physics::sound(physics::SLOPE * energy, volume, coefficient, pressure);
        physics::viscous(change, sound, linear, quadratic)
    };
    let before = pressure + viscosity;
    let new_energy = physics::energy_half(energy, change, pressure, viscosity);
    let [coefficient, half] = physics::pressure(new_energy, middle, volume);
    let between = half + viscous(new_energy, 1.0 / (1.0 + middle), coefficient, half);
    let new_energy = physics::energy_predicted(new_energy, change, before, between);
    let [coefficient, after] = physics::pressure(new_energy, compression, volume);
    let after = after + viscous(new_energy, volume, coefficient, after);
    let new_energy = physics::energy_corrected(new_energy, change, before, between, after);
    let [coefficient, new_pressure] = physics::pressure(new_energy, compression, volume);
    let new_viscosity = viscous(new_energy, volume, coefficient, new_pressure);
    [new_energy, new_pressure, physics::cut_viscosity(new_viscosity), coefficient]
}

#[cfg(test)]
mod tests {
    use crate::find;
    use std::collections::{BTreeMap, BTreeSet};
    use tombolo_types::stream::{CtaStream, Program};
    use tombolo_workload::bench::{Mode, Request, record};
    use tombolo_workload::record::{RecordOptions, Recording};
    use tombolo_workload::scale::Scale;

    fn recorded(given: &[(&str, &str)]) -> Recording {
        let given: Vec<_> = given.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let workload = find("lulesh").unwrap();
        let request = Request::new(workload, Scale::FULL, &given, 7).unwrap();
        record(workload, &request, &RecordOptions::default(), Mode::AddressOnly).unwrap()
    }

    /// Lines in an array that each CTA in a kernel touches.
    fn lines(recording: &Recording, kernel: &str, array: &str) -> BTreeMap<u32, BTreeSet<u64>> {
        let place = recording.kernels().iter().position(|info| info.name == kernel).unwrap();
        let array = recording.arrays().iter().find(|other| other.name == array).unwrap();
        let mut stream = CtaStream::default();
        let of = |cta| {
            recording.cta(place as u32, cta, &mut stream).unwrap();
            let addresses = stream.accesses.iter().map(|access| recording.line_size().address_of(access.line));
            (cta, addresses.filter(|address| array.addresses().contains(address)).collect())
        };
        (0..recording.kernels()[place].ctas).map(of).collect()
    }

    /// A mesh with 51³ elements has more elements than 1024 CTAs have threads.
    #[test]
    fn time_constraints_read_every_element_of_a_mesh_that_is_larger_than_their_grid() {
        let recording = recorded(&[("side", "51"), ("steps", "1")]);
        let lines = lines(&recording, "time-constraints", "sound");
        let all: BTreeSet<u64> = lines.values().flatten().copied().collect();
        assert_eq!((lines.len(), all.len() as u64), (1024, (51_u64.pow(3) * 8).div_ceil(128)));
    }

    /// A CTA processes 128 neighbours with one region. With more regions, its elements are interleaved with runs from
    /// other regions.
    #[test]
    fn regions_scatter_what_the_threads_of_a_cta_take() {
        let spread = |regions: &str| {
            let recording = recorded(&[("side", "20"), ("steps", "1"), ("regions", regions)]);
            let lines = lines(&recording, "material-region", "energy");
            lines.values().map(|lines| lines.last().unwrap() - lines.first().unwrap()).max().unwrap()
        };
        assert_eq!(spread("1"), 7 * 128);
        assert!(spread("11") > 100 * 128, "{}", spread("11"));
    }

    #[test]
    fn a_step_is_twelve_launches() {
        let launched = |steps: &str| {
            let recording = recorded(&[("side", "5"), ("steps", steps)]);
            let launches = recording.commands().iter().filter(|command| command.kernel().is_some());
            launches.count()
        };
        assert_eq!(launched("3") - launched("2"), 12);
    }
}
