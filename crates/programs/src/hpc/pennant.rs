//! PENNANT: gas hydrodynamics on a moving mesh, here Noh's problem: gas falls onto the centre of a disc.
//!
//! Each step predicts and corrects:
//! - `main1` moves points to the middle of the step;
//! - `main2` measures zones at midstep and finds the forces on their corners;
//! - `main3` gathers the corner forces at points, and moves the points to the end of the step;
//! - `main4` measures zones again and finds the work done;
//! - `main5` ends the step and finds the longest next step.
//!
//! Before the first step `inv-map` lists the sides of each point. The host sends the step's length. It reads back the
//! next step's length, and the number of sides turned inside out.
//!
//! Not modelled: sub-regions and other meshes. Array names spell out PENNANT's abbreviations.

mod kernels;
mod mesh;
mod physics;
mod reference;

use crate::prelude::*;
use kernels::MeshArrays;
use mesh::{PieMesh, Point};
use reference::ReferenceState;

/// Threads per CTA, and maximum number of sides per chunk. Source: PENNANT, HydroGPU.cxx, `CHUNK_SIZE`.
const CHUNK: u32 = 64;
/// Scratchpad bytes for a kernel over sides. Source: PENNANT, HydroGPU.cxx, `dss3`, `dss4`, `ctemp`, `ctemp2`.
const SCRATCH: u32 = CHUNK * (4 + 4 + 8 + 16);
/// Length of the first step. Source: PENNANT, noh.pnt, `dtinit`.
const FIRST_STEP: f64 = 0.001;
/// Maximum growth factor for a step's length. Source: PENNANT, Driver.cc, `dtfac`.
const GROWTH: f64 = 1.2;
/// Simulated time at the end of the run. Source: PENNANT, noh.pnt, `tstop`.
const END: f64 = 0.6;
/// Upper bound for every step's length. Source: PENNANT, HydroGPU.cxx, `bigval`.
const LONG: f64 = 1e99;

const INPUT: &str = "CPElide, Table II (Pennant: noh.pnt), test/noh/noh.pnt in hal-uw/gem5-bmks-micro24";

program! {
    /// hydrodynamics on a moving mesh: five kernels a step over points, sides and zones, some of many arrays
    pub(crate) static PENNANT = "pennant",
        "PENNANT (lanl/PENNANT; hal-uw/gem5-bmks-micro24, pennant/src/HydroGPU.cxx); CPElide, Table II (Pennant)";
    parameters {
        /// zones around the quarter of the disc; scales by the root
        rays: count(1..=1 << 12) = 30, INPUT;
        /// zones from the centre outwards; scales by the root
        rings: count(1..=1 << 14) = 100, INPUT;
        /// steps, at most; fewer where time ends at 0.6
        cycles: count(1..=1 << 20) = 10, INPUT;
    }
    lay_out(_, request, memory) {
        let [rays, rings] = [rays, rings].map(|side| request.scale.side_of(side) as u32);
        let mesh = PieMesh::pie(rays, rings, CHUNK);
        let [of_points, of_zones, of_sides] =
            [mesh.points.len(), mesh.zone_points.len(), mesh.first.len()].map(|len| len as u64);
        let maps = Connectivity::lay_out(memory, &mesh);
        let points = PointArrays::lay_out(memory, of_points);
        let zones = ZoneArrays::lay_out(memory, of_zones);
        let sides = SideArrays::lay_out(memory, of_sides);
        let mut array = |name: String, len| memory.array(&name, len, Scaling::Scales);
        let mut measured = |at: &str, places, volumes: Option<Array<f64>>| MeshArrays {
            places,
            centres: array(format!("centre{at}"), 2 * of_zones),
            side_areas: array(format!("side_area{at}"), of_sides),
            side_volumes: array(format!("side_volume{at}"), of_sides),
            areas: array(format!("area{at}"), of_zones),
            volumes: volumes.unwrap_or_else(|| array(format!("volume{at}"), of_zones)),
        };
        let (half, full) = (measured("_half", points.half, None), measured("", points.place, Some(zones.volume)));
    }
    struct Hydro {
        mesh: PieMesh,
        points: PointArrays,
        zones: ZoneArrays,
        sides: SideArrays,
        maps: Connectivity,
        /// Mesh measurements in the middle of a step and at its end.
        half: MeshArrays,
        full: MeshArrays,
        /// Length of the current step.
        step: Array<f64>[1, fixed],
        /// Bit pattern of the next step's length.
        next_step: Array<u64>[1, fixed],
        /// Code for the zone that limits the next step: twice its index, plus 1 if its volume is the limit.
        limiting: Array<i32>[1, fixed],
        /// Number of sides that have turned inside out.
        bad: Array<i32>[1, fixed],
        cycles: u64,
    }
}

arrays! {
    /// Point arrays; vector arrays have two elements per point.
    struct PointArrays(memory, points: u64) {
        place: Array<f64>[2 * points],
        half: Array<f64>["place_half"; 2 * points],
        place_before, velocity, velocity_before, acceleration, force: Array<f64>[2 * points],
        mass: Array<f64>["point_mass"; points],
    }
}

arrays! {
    /// Zone arrays.
    struct ZoneArrays(memory, zones: u64) {
        mass, density, density_half, volume, volume_before: Array<f64>[zones],
        /// Least length across a zone.
        length: Array<f64>[zones],
        signal, energy: Array<f64>[zones],
        /// Total energy in a zone.
        total: Array<f64>["total_energy"; zones],
        work, work_rate, pressure, sound: Array<f64>[zones],
        /// Two components per zone: `2 × zones`.
        mean_velocity: Array<f64>[2 * zones],
    }
}

arrays! {
    /// Side and corner arrays; forces, the surface and each of two tensions have two elements per side.
    struct SideArrays(memory, sides: u64) {
        surface: Array<f64>[2 * sides],
        fraction, corner_area, corner_mass: Array<f64>[sides],
        pressure_force, sub_zonal_force, viscous_force, corner_force: Array<f64>[2 * sides],
        corner_length: Array<f64>[sides],
        speed: Array<f64>["corner_speed"; sides],
        divergence: Array<f64>[sides],
        /// Two vectors per side: `4 × sides`.
        tension: Array<f64>[4 * sides],
        cosine, weight: Array<f64>[sides],
    }
}

arrays! {
    /// Connectivity between points, sides and zones.
    struct Connectivity(memory, mesh: &PieMesh) {
        chunk_first, chunk_end: Array<i32>[mesh.chunks.len() as u64 - 1],
        first: Array<i32>["side_first_point"; mesh.first.len() as u64],
        second: Array<i32>["side_second_point"; mesh.first.len() as u64],
        zone: Array<i32>["side_zone"; mesh.first.len() as u64],
        next: Array<i32>["side_next"; mesh.first.len() as u64],
        zone_points: Array<i32>[mesh.zone_points.len() as u64],
        /// First points of all sides, sorted, and the sides in the sorted order.
        sorted_points: Array<i32>[mesh.first.len() as u64],
        sorted_sides: Array<i32>[mesh.first.len() as u64],
        /// First side of each point, and the next side in its list; -1 after the last.
        first_side: Array<i32>["point_first_side"; mesh.points.len() as u64],
        next_side: Array<i32>["side_next_of_point"; mesh.first.len() as u64],
    }
}

impl Hydro {
    fn grid(&self, name: &str, items: usize) -> Grid {
        Grid::new(name, (items as u64).div_ceil(u64::from(CHUNK)), CHUNK)
    }

    /// True if no side has turned inside out; the host checks after two of the kernels.
    fn no_side_inverted(&self, host: &mut Host<'_>) -> bool {
        host.copy_to_host(self.bad);
        host.memory().read(self.bad, 0) == 0
    }

    /// Runs one step with this length. Returns the longest next step, or `None` if the mesh is torn.
    fn cycle(&self, host: &mut Host<'_>, step: f64) -> Result<Option<f64>, RecordError> {
        let (points, zones, chunks) =
            (self.mesh.points.len(), self.mesh.zone_points.len(), self.mesh.chunks.len() as u64 - 1);
        host.memory().write(self.step, 0, step);
        host.copy_to_device(self.step);
        host.launch(self.grid("main1", points), |cta| self.advance_half(cta))?;
        host.launch(Grid::new("main2", chunks, CHUNK).shared_bytes(SCRATCH), |cta| self.forces(cta))?;
        if !self.no_side_inverted(host) {
            return Ok(None);
        }
        host.launch(self.grid("main3", points), |cta| self.advance(cta))?;
        host.memory().write(self.next_step, 0, LONG.to_bits());
        host.copy_to_device(self.next_step);
        host.launch(Grid::new("main4", chunks, CHUNK).shared_bytes(SCRATCH), |cta| self.work(cta))?;
        // CTAs compare with the minimum left by earlier CTAs.
        let end = self.grid("main5", zones).shared_bytes(CHUNK * (8 + 16));
        host.launch_ordered(end, |cta| self.end(cta))?;
        if !self.no_side_inverted(host) {
            return Ok(None);
        }
        host.copy_to_host(self.next_step);
        host.copy_to_host(self.limiting);
        Ok(Some(f64::from_bits(host.memory().read(self.next_step, 0))))
    }

    fn copy_inputs(&self, host: &mut Host<'_>) {
        let Connectivity {
            chunk_first,
            chunk_end,
            first,
            second,
            zone,
            next,
            zone_points,
            sorted_points,
            sorted_sides,
            ..
        } = self.maps;
        let maps = [chunk_first, chunk_end, first, second, zone, next, zone_points, sorted_points, sorted_sides];
        maps.into_iter().for_each(|map| host.copy_to_device(map));
        let ZoneArrays { mass, density, volume, energy, total, work_rate, .. } = self.zones;
        let values =
            [mass, self.sides.fraction, self.points.place, self.points.velocity, density, volume, energy, total];
        values.into_iter().chain([work_rate]).for_each(|array| host.copy_to_device(array));
    }
}

/// Length of a step, from the previous step's length if present, the limit from the zones, and the remaining time.
fn step_of(before: Option<f64>, allowed: f64, left: f64) -> f64 {
    before.map_or(FIRST_STEP, |before| GROWTH * before).min(allowed).min(left)
}

/// Runs `cycle(step)`, which returns the longest next step, from step to step until time or cycles end.
fn run_steps<E>(cycles: u64, mut cycle: impl FnMut(f64) -> Result<Option<f64>, E>) -> Result<(), E> {
    let (mut time, mut before, mut allowed) = (0.0, None, LONG);
    for _ in 0..cycles {
        if time >= END {
            break;
        }
        let step = step_of(before, allowed, END - time);
        let Some(next) = cycle(step)? else { break };
        (time, before, allowed) = (time + step, Some(step), next);
    }
    Ok(())
}

/// Concatenates the vectors' components.
fn flat(vectors: &[Point]) -> Vec<f64> {
    vectors.iter().flatten().copied().collect()
}

impl Instance for Hydro {
    fn fill(&self, memory: &Memory) {
        let (mesh, maps) = (&self.mesh, &self.maps);
        let sorted = mesh.by_point();
        let start = ReferenceState::new(mesh);
        let set = |array, values: &[i32]| memory.fill(array, |index| values[index as usize]);
        set(maps.chunk_first, &mesh.chunks[..mesh.chunks.len() - 1]);
        set(maps.chunk_end, &mesh.chunks[1..]);
        set(maps.first, &mesh.first);
        set(maps.second, &mesh.second);
        set(maps.zone, &mesh.zone);
        set(maps.next, &mesh.next);
        set(maps.zone_points, &mesh.zone_points);
        set(maps.sorted_sides, &sorted);
        memory.fill(maps.sorted_points, |at| mesh.first[sorted[at as usize] as usize]);
        let set = |array, values: &[f64]| memory.fill(array, |index| values[index as usize]);
        set(self.points.place, &flat(&mesh.points));
        set(self.points.velocity, &flat(&start.velocities));
        set(self.zones.mass, &start.masses);
        set(self.zones.density, &start.densities);
        set(self.zones.volume, start.volumes());
        set(self.sides.fraction, start.fractions());
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        self.copy_inputs(host);
        host.launch(self.grid("inv-map", self.mesh.first.len()), |cta| self.list_sides(cta))?;
        host.memory().write(self.bad, 0, 0);
        host.copy_to_device(self.bad);
        run_steps(self.cycles, |step| self.cycle(host, step))?;
        let ZoneArrays { density, energy, pressure, .. } = self.zones;
        [self.points.place, density, energy, pressure].into_iter().for_each(|array| host.copy_to_host(array));
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut plain = ReferenceState::new(&self.mesh);
        run_steps(self.cycles, |step| {
            plain.step(step);
            Ok::<_, String>(Some(plain.longest))
        })?;
        for (what, array, expected) in [
            ("place", self.points.place, &flat(&plain.places)),
            ("velocity", self.points.velocity, &flat(&plain.velocities)),
            ("mass of point", self.points.mass, &plain.point_masses),
            ("density", self.zones.density, &plain.densities),
            ("energy", self.zones.energy, &plain.energies),
            ("energy of zone", self.zones.total, &plain.totals),
            ("pressure", self.zones.pressure, &plain.pressures),
        ] {
            compare_f64(what, &memory.to_vec(array), expected)?;
        }
        compare_f64("next step", &[f64::from_bits(memory.read(self.next_step, 0))], &[plain.longest])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noh's problem has no preferred direction: points at equal radius stay at equal radius, and move only inwards.
    #[test]
    fn rings_stay_rings_and_energy_stays() {
        let (rays, rings) = (6, 30);
        let mesh = PieMesh::pie(rays, rings, CHUNK);
        let mut plain = ReferenceState::new(&mesh);
        let kinetic = |plain: &ReferenceState<'_>| -> f64 {
            let half = reference::geometry(&mesh, &plain.places);
            let mut sum = 0.0;
            for (side, zone) in mesh.zone.iter().enumerate() {
                let [u, v] = plain.velocities[mesh.first[side] as usize];
                let points = f64::from(mesh.zone_points[*zone as usize]);
                sum += 0.5 * plain.masses[*zone as usize] / points * (u * u + v * v);
            }
            assert!(half.volumes.iter().all(|volume| *volume > 0.0));
            sum
        };
        let energy = |plain: &ReferenceState<'_>| kinetic(plain) + plain.totals.iter().sum::<f64>();
        let (before, first) = (energy(&plain), kinetic(&plain));
        let mut time = 0.0;
        run_steps(20_000, |step| {
            time += step;
            plain.step(step);
            Ok::<_, String>(Some(plain.longest))
        })
        .unwrap();
        for ring in plain.places[1..].chunks(rays as usize + 1) {
            let radii: Vec<f64> = ring.iter().map(|place| place[0].hypot(place[1])).collect();
            assert!(radii.iter().all(|radius| (radius / radii[0] - 1.0).abs() < 1e-9), "{radii:?}");
        }
        let (after, last) = (energy(&plain), kinetic(&plain));
        assert!(time >= END, "{time}");
        assert!(last < 0.95 * first, "the shock turns motion into heat: {last} of {first}");
        assert!((after / before - 1.0).abs() < 0.02, "{after} of {before}");
    }
}
