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

use crate::reference::compare_f64;
use kernels::MeshArrays;
use mesh::{PieMesh, Point};
use reference::ReferenceState;
use tombolo_workload::bench::Benchmark;
use tombolo_workload::bench::{Instance, Request, WorkloadError};
use tombolo_workload::parameter::{Parameter, ParameterKind};
use tombolo_workload::record::{Host, RecordError};
use tombolo_workload::simt::{Array, Grid, Memory, Scaling};

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

const fn count(name: &'static str, default: &'static str, about: &'static str, low: u64, high: u64) -> Parameter {
    let source = "CPElide, Table II (Pennant: noh.pnt), test/noh/noh.pnt in hal-uw/gem5-bmks-micro24";
    Parameter { name, kind: ParameterKind::Count { low, high }, default, about, source }
}

static PARAMETERS: [Parameter; 3] = [
    count("rays", "30", "zones around the quarter of the disc; scales by the root", 1, 1 << 12),
    count("rings", "100", "zones from the centre outwards; scales by the root", 1, 1 << 14),
    count("cycles", "10", "steps, at most; fewer where time ends at 0.6", 1, 1 << 20),
];

/// The PENNANT benchmark.
pub(crate) static PENNANT: Benchmark = Benchmark {
    name: "pennant",
    about: "hydrodynamics on a moving mesh: five kernels a step over points, sides and zones, some of many arrays",
    source: "PENNANT (lanl/PENNANT; hal-uw/gem5-bmks-micro24, pennant/src/HydroGPU.cxx); CPElide, Table II (Pennant)",
    parameters: &PARAMETERS,
    nonlinear: false,
    data_independent: false,
    lay_out,
};

/// Point arrays; vector arrays have two elements per point.
struct PointArrays {
    place: Array<f64>,
    place_before: Array<f64>,
    half: Array<f64>,
    velocity: Array<f64>,
    velocity_before: Array<f64>,
    acceleration: Array<f64>,
    force: Array<f64>,
    mass: Array<f64>,
}

/// Zone arrays.
struct ZoneArrays {
    mass: Array<f64>,
    density: Array<f64>,
    density_half: Array<f64>,
    volume: Array<f64>,
    volume_before: Array<f64>,
    /// Least length across a zone.
    length: Array<f64>,
    signal: Array<f64>,
    energy: Array<f64>,
    /// Total energy in a zone.
    total: Array<f64>,
    work: Array<f64>,
    work_rate: Array<f64>,
    pressure: Array<f64>,
    sound: Array<f64>,
    /// Two components per zone: `2 × zones`.
    mean_velocity: Array<f64>,
}

/// Side and corner arrays; forces, the surface and each of two tensions have two elements per side.
struct SideArrays {
    surface: Array<f64>,
    fraction: Array<f64>,
    corner_area: Array<f64>,
    corner_mass: Array<f64>,
    pressure_force: Array<f64>,
    sub_zonal_force: Array<f64>,
    viscous_force: Array<f64>,
    corner_force: Array<f64>,
    corner_length: Array<f64>,
    speed: Array<f64>,
    divergence: Array<f64>,
    /// Two vectors per side: `4 × sides`.
    tension: Array<f64>,
    cosine: Array<f64>,
    weight: Array<f64>,
}

/// Connectivity between points, sides and zones.
struct Connectivity {
    chunk_first: Array<i32>,
    chunk_end: Array<i32>,
    first: Array<i32>,
    second: Array<i32>,
    zone: Array<i32>,
    next: Array<i32>,
    zone_points: Array<i32>,
    /// First points of all sides, sorted, and the sides in the sorted order.
    sorted_points: Array<i32>,
    sorted_sides: Array<i32>,
    /// First side of each point, and the next side in its list; -1 after the last.
    first_side: Array<i32>,
    next_side: Array<i32>,
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
    step: Array<f64>,
    /// Bit pattern of the next step's length.
    next_step: Array<u64>,
    /// Code for the zone that limits the next step: twice its index, plus 1 if its volume is the limit.
    limiting: Array<i32>,
    /// Number of sides that have turned inside out.
    bad: Array<i32>,
    cycles: u64,
}

fn lay_out(_: &'static str, request: &mut Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
    let side = |name| request.scale.side_of(request.values.count(name)) as u32;
    let mesh = PieMesh::pie(side("rays"), side("rings"), CHUNK);
    Ok(Box::new(Hydro::lay_out(mesh, request.values.count("cycles"), memory)))
}

impl Connectivity {
    fn lay_out(mesh: &PieMesh, memory: &mut Memory) -> Connectivity {
        let mut map = |name, len: usize| memory.array::<i32>(name, len as u64, Scaling::Scales);
        let (sides, chunks) = (mesh.first.len(), mesh.chunks.len() - 1);
        Connectivity {
            chunk_first: map("chunk_first", chunks),
            chunk_end: map("chunk_end", chunks),
            first: map("side_first_point", sides),
            second: map("side_second_point", sides),
            zone: map("side_zone", sides),
            next: map("side_next", sides),
            zone_points: map("zone_points", mesh.zone_points.len()),
            sorted_points: map("sorted_points", sides),
            sorted_sides: map("sorted_sides", sides),
            first_side: map("point_first_side", mesh.points.len()),
            next_side: map("side_next_of_point", sides),
        }
    }
}

impl PointArrays {
    fn lay_out(points: u64, memory: &mut Memory) -> PointArrays {
        let mut array = |name, each| memory.array(name, each * points, Scaling::Scales);
        PointArrays {
            place: array("place", 2),
            half: array("place_half", 2),
            place_before: array("place_before", 2),
            velocity: array("velocity", 2),
            velocity_before: array("velocity_before", 2),
            acceleration: array("acceleration", 2),
            force: array("force", 2),
            mass: array("point_mass", 1),
        }
    }
}

impl ZoneArrays {
    fn lay_out(zones: u64, memory: &mut Memory) -> ZoneArrays {
        let mut array = |name, each| memory.array(name, each * zones, Scaling::Scales);
        ZoneArrays {
            mass: array("mass", 1),
            density: array("density", 1),
            density_half: array("density_half", 1),
            volume: array("volume", 1),
            volume_before: array("volume_before", 1),
            length: array("length", 1),
            signal: array("signal", 1),
            energy: array("energy", 1),
            total: array("total_energy", 1),
            work: array("work", 1),
            work_rate: array("work_rate", 1),
            pressure: array("pressure", 1),
            sound: array("sound", 1),
            mean_velocity: array("mean_velocity", 2),
        }
    }
}

impl SideArrays {
    fn lay_out(sides: u64, memory: &mut Memory) -> SideArrays {
        let mut array = |name, each| memory.array(name, each * sides, Scaling::Scales);
        SideArrays {
            surface: array("surface", 2),
            fraction: array("fraction", 1),
            corner_area: array("corner_area", 1),
            corner_mass: array("corner_mass", 1),
            pressure_force: array("pressure_force", 2),
            sub_zonal_force: array("sub_zonal_force", 2),
            viscous_force: array("viscous_force", 2),
            corner_force: array("corner_force", 2),
            corner_length: array("corner_length", 1),
            speed: array("corner_speed", 1),
            divergence: array("divergence", 1),
            tension: array("tension", 4),
            cosine: array("cosine", 1),
            weight: array("weight", 1),
        }
    }
}

impl Hydro {
    fn lay_out(mesh: PieMesh, cycles: u64, memory: &mut Memory) -> Hydro {
        let [of_points, of_zones, of_sides] =
            [mesh.points.len(), mesh.zone_points.len(), mesh.first.len()].map(|len| len as u64);
        let maps = Connectivity::lay_out(&mesh, memory);
        let points = PointArrays::lay_out(of_points, memory);
        let zones = ZoneArrays::lay_out(of_zones, memory);
        let sides = SideArrays::lay_out(of_sides, memory);
        let mut array = |name: String, len| memory.array(&name, len, Scaling::Scales);
        let mut measured = |at: &str, places, volumes: Option<Array<f64>>| MeshArrays {
            places,
            centres: array(format!("centre{at}"), 2 * of_zones),
            side_areas: array(format!("side_area{at}"), of_sides),
            side_volumes: array(format!("side_volume{at}"), of_sides),
            areas: array(format!("area{at}"), of_zones),
            volumes: volumes.unwrap_or_else(|| array(format!("volume{at}"), of_zones)),
        };
        Hydro {
            half: measured("_half", points.half, None),
            full: measured("", points.place, Some(zones.volume)),
            points,
            zones,
            sides,
            maps,
            step: memory.array("step", 1, Scaling::Fixed),
            next_step: memory.array("next_step", 1, Scaling::Fixed),
            limiting: memory.array("limiting", 1, Scaling::Fixed),
            bad: memory.array("bad", 1, Scaling::Fixed),
            mesh,
            cycles,
        }
    }

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
