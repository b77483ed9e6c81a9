//! Homogeneous isotropic turbulence (Tartan's `hit`): the Navier-Stokes equations in a periodic box by a
//! pseudo-spectral method, in slabs on several GPUs.
//!
//! A step has three Runge-Kutta substeps. A substep computes the velocity's curl, shifts phases, masks high wave
//! numbers, and transforms six fields to space. In space it forms the cross product, and transforms three fields back.
//! Spectra are laid out as [x][y][z] and cut in slabs along x; fields in space are laid out as [y][x][z] and cut in
//! slabs along y.
//!
//! A transform runs along y in x slabs, or along x and z in y slabs. In between, `zyx-to-zxy` and `zxy-to-zyx` exchange
//! the slabs: each GPU reads from the array `aux` the parts that every other GPU wrote from its own slab, like the
//! source's `MPI_Alltoall`. All other accesses stay within a GPU's slab.
//!
//! Departures from the source:
//! - `aux` is one array, not one for each of six streams: launches are in order, so six transforms never overlap.
//! - The time step is fixed. The maxima that would decide it are found like in the source, but stay on the device until
//!   the end.
//! - Forcing is fixed. The source divides the power by the energy in the lowest wave numbers.
//! - Statistics and the spectrum's symmetry, computed in few steps, are left out.
//! - The curl and the cross product have linear CTAs with 512 threads, like the other pointwise kernels.
//! - Transforms are written out here, in the scratchpad and with 4 to 16 points per thread; the source calls cuFFT.
//! - The box may be shorter along z, with unchanged point spacing, so that a scale shrinks an axis that is not cut.

mod fft;
mod pointwise;
mod reference;
mod transpose;

use crate::prelude::*;
use fft::{Roots, Transform};
use transpose::TILE;

const SOURCE: &str = "Tartan (uuudown/Tartan), scale-out/scale-out-pinned/hit, src/turH.h and run.conf";
/// Threads per CTA in a pointwise kernel. Source: `THREADSPERBLOCK_NU` in [`SOURCE`].
const THREADS: u32 = 512;
/// Transforms per CTA along x or y. Source: assumed, so that neighbouring columns fill a 128-byte line.
const LINES: u64 = 16;
/// Maximum number of points in a transform. Source: assumed; a CTA's scratchpad holds sixteen such transforms.
const MOST: u64 = 512;
/// Resolution: largest wave number times the smallest length. Source: `RES` in [`SOURCE`].
const RESOLUTION: f32 = 1.5;
/// Power input from the forcing. Source: `ENERGY_IN` in [`SOURCE`].
const POWER: f32 = 1.0;
/// Fraction of the step bound used for a step. Source: `cfl` in src/RK3.c of the same program.
const COURANT: f32 = 0.5;
/// Sum of the largest velocities along the axes. Source: assumed, above the initial value in a run.
const SPEED: f32 = 4.0;
/// Growth rate for the forced wave numbers. Source: assumed, the power over twice an energy of 1.
const FORCING: f32 = POWER / 2.0;
/// Phases for the three substeps, as fractions of the point spacing. Source: src/RK3.c of the same program; its first
/// phase is drawn at random, here assumed 0.1 along each axis.
const PHASES: [f32; 3] = [0.1, 0.1 + 1.0 / 3.0, 0.1 + 2.0 / 3.0];

program! {
    /// turbulence in a periodic box on several GPUs: Fourier transforms, slabs turned all to all
    pub(crate) static HIT = "hit", "Tartan (uuudown/Tartan), hit; GPS, Table 2 (Hit)";
    properties: data_independent, partitioned_by_gpus;
    parameters {
        /// points of the box along x and y, which GPUs share, a power of two; does not scale
        side: count(16..=MOST) = 256, SOURCE;
        /// points of the box along z, at scale 1, there a power of two up to 512; scales
        depth: count(8..=1 << 16) = 256, SOURCE;
        /// time steps, of three substeps each
        steps: count(1..=10_000) = 8, "assumed: the source runs until a time of 1, and its steps do the same";
    }
    lay_out(name, request, memory) {
        let depth = request.scale.of(depth);
        let side = fit_power(request, "side", side);
        let depth = fit_power(request, "depth", depth.max(8));
        let gpus = request.gpus();
        require(name, side >= u64::from(gpus), || format!("{side} planes leave some of {gpus} GPUs without any"))?;
        require(name, depth <= MOST, || format!("depth {depth} is more than the {MOST} points of a transform"))?;
        require(name, depth <= 32 * side, || format!("depth {depth} is more than 32 times the side {side}"))?;
        let half = depth / 2 + 1;
        check_indices(name, 2 * side * side * half, "values")?;
        let mut field = |name: &str| memory.array(name, 2 * side * side * half, Scaling::Scales);
        let [u, w, r] = ["u", "w", "r"].map(|name| ["x", "y", "z"].map(|axis| field(&format!("{name}-{axis}"))));
        let aux = field("aux");
        let (along_side, along_depth) = (Transform::of(side as usize), Transform::of(depth as usize / 2));
        let rows = side / along_depth.threads() as u64;
        let elements = Partition::groups(side * side * half, side * half, gpus);
        let across = side / TILE as u64 * half.div_ceil(TILE as u64);
    }
    struct Turbulence {
        mesh: SpectralGrid = SpectralGrid { side: side as i32, depth: depth as i32 },
        /// Velocity; between substeps, the substep's velocity in space.
        u: Field,
        /// Velocity in a substep.
        w: Field,
        /// Curl, cross product, and finally right-hand side.
        r: Field,
        aux: Array<f32>,
        /// Bits of the largest velocity along each axis, step after step, by GPU.
        maxima: Vec<Array<u32>> =
            (0..gpus).map(|gpu| memory.array(&format!("maxima{gpu}"), 3 * steps, Scaling::Fixed)).collect(),
        steps: u64,
        /// Grid over complex values.
        elements: PartitionGrid = elements.tiles(u64::from(THREADS), 1),
        /// Grid over complex values with a GPU's block in one tile, shared by the CTAs that find maxima.
        blocks: PartitionGrid = elements.tiles(side * side * half, 3 * u64::from(pointwise::MAXIMA_CTAS)),
        /// Grid over planes.
        planes: PartitionGrid = Partition::even(side, gpus).tiles(1, across),
        /// Grid over lines along y in a spectrum, or along x in a field in space.
        lines: PartitionGrid = Partition::groups(side * half, half, gpus).tiles(LINES, 1),
        /// Grid over rows along z.
        rows: PartitionGrid = Partition::groups(side * side, side, gpus).tiles(rows, 1),
        along_side, along_depth: Transform,
        roots: Roots = Roots::of(side.max(depth) as usize),
        seed: u64 = request.seed,
    }
}

/// Three components of a field.
type Field = [Array<f32>; 3];

type RecordResult = Result<(), RecordError>;

/// Grid points in the box, and wave numbers.
#[derive(Clone, Copy)]
struct SpectralGrid {
    side: i32,
    depth: i32,
}

impl SpectralGrid {
    /// Complex values per row along z.
    fn half(self) -> i32 {
        self.depth / 2 + 1
    }

    /// Complex values per plane.
    fn plane(self) -> i32 {
        self.side * self.half()
    }

    /// Number of points in the box, the factor by which an inverse transform is too large.
    fn points(self) -> f32 {
        self.side as f32 * self.side as f32 * self.depth as f32
    }

    /// Spacing between successive wave numbers along z: the inverse of the box's relative depth.
    fn stretch(self) -> f32 {
        self.side as f32 / self.depth as f32
    }

    /// Wave number for index `at` on an axis with `points` points.
    fn wave(at: i32, points: i32) -> f32 {
        (if at < points / 2 { at } else { at - points }) as f32
    }

    /// Wave numbers at a position in a spectrum.
    fn waves(self, [x, y, z]: [i32; 3]) -> [f32; 3] {
        [SpectralGrid::wave(x, self.side), SpectralGrid::wave(y, self.side), z as f32 * self.stretch()]
    }

    /// True if wave numbers are set to zero: the mean, and wave numbers beyond the sphere whose aliases the shift does
    /// not cancel.
    fn is_masked(self, waves: [f32; 3]) -> bool {
        let length = waves.map(|wave| wave * wave).iter().sum::<f32>().sqrt();
        length == 0.0 || (length + 0.5).floor() > 2.0_f32.sqrt() / 3.0 * self.side as f32
    }

    fn reynolds(self) -> f32 {
        (2.0_f32.sqrt() / 3.0 * self.side as f32 / RESOLUTION).powf(4.0 / 3.0) * POWER.powf(-1.0 / 3.0)
    }

    /// Time step: the convection bound, or the viscosity bound if it is smaller.
    fn step(self) -> f32 {
        let finest = self.side as f32 / 3.0;
        (COURANT / (finest * SPEED)).min(COURANT * self.reynolds() / (finest * finest))
    }
}

/// Sets a parameter, `wanted` at the scale, to the nearest power of two.
fn fit_power(request: &mut Request, parameter: &'static str, wanted: u64) -> u64 {
    let above = wanted.next_power_of_two();
    let nearest = if above - wanted > wanted - above / 2 { above / 2 } else { above };
    request.fit(parameter, wanted, nearest, "powers of two, the nearest")
}

impl Turbulence {
    /// Transforms a spectrum to space, without division by the number of points.
    fn to_space(&self, host: &mut Host<'_>, field: Array<f32>) -> RecordResult {
        self.zyx_to_yzx(host, field, self.aux)?;
        self.along_y(host, self.aux, field, true)?;
        self.yzx_to_zyx(host, field, self.aux)?;
        self.zxy_to_zyx(host, self.aux, field)?;
        self.along_x(host, field, true)?;
        self.z_to_real(host, field)
    }

    /// Transforms a field in space to its spectrum.
    fn to_spectrum(&self, host: &mut Host<'_>, field: Array<f32>) -> RecordResult {
        self.z_from_real(host, field)?;
        self.along_x(host, field, false)?;
        self.zyx_to_zxy(host, field, self.aux)?;
        self.zyx_to_yzx(host, self.aux, field)?;
        self.along_y(host, field, self.aux, false)?;
        self.yzx_to_zyx(host, self.aux, field)
    }

    /// Computes the cross product between a velocity and its curl, and leaves it in `r`; the velocity is left in space.
    fn right_side(&self, host: &mut Host<'_>, velocity: Field, phase: f32) -> RecordResult {
        self.curl(host, velocity)?;
        for field in [velocity, self.r] {
            self.shift(host, field, phase)?;
            self.dealias(host, field)?;
        }
        velocity.into_iter().chain(self.r).try_for_each(|field| self.to_space(host, field))?;
        self.cross(host, velocity)?;
        self.r.into_iter().try_for_each(|field| self.to_spectrum(host, field))?;
        self.dealias(host, self.r)?;
        self.shift(host, self.r, -phase)
    }

    fn step(&self, host: &mut Host<'_>, step: u64) -> RecordResult {
        self.dealias(host, self.u)?;
        self.copy(host)?;
        self.right_side(host, self.w, PHASES[0])?;
        self.maximum(host, self.w, step)?;
        for (substep, phase) in PHASES.into_iter().enumerate() {
            self.explicit(host, substep)?;
            if substep > 0 {
                self.right_side(host, self.u, phase)?;
            }
            self.implicit(host, substep)?;
        }
        self.project(host)
    }
}

impl Instance for Turbulence {
    fn fill(&self, memory: &Memory) {
        self.w.into_iter().chain(self.r).chain([self.aux]).for_each(|field| memory.clear(field));
        self.maxima.iter().for_each(|maxima| memory.clear(*maxima));
        self.u.into_iter().for_each(|field| memory.fill(field, |_| 0.0));
        for (axis, field) in self.u.into_iter().enumerate() {
            for ([x, y, z], values) in reference::modes(self.mesh, self.seed) {
                let at = 2 * ((x * self.mesh.side + y) * self.mesh.half() + z) as u64;
                let [real, imaginary] = values[axis].map(|part| part as f32);
                memory.write(field, at, real);
                memory.write(field, at + 1, imaginary);
            }
        }
    }

    fn run(&self, host: &mut Host<'_>) -> RecordResult {
        self.u.iter().for_each(|field| host.copy_to_device(*field));
        (0..self.steps).try_for_each(|step| self.step(host, step))?;
        self.u.iter().for_each(|field| host.copy_to_host(*field));
        self.maxima.iter().for_each(|maxima| host.copy_to_host(*maxima));
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        reference::verify(self, memory)
    }
}
