//! Kernels that process each point independently: curl, phase shift, mask, cross product, time steps; and the maxima.

use super::{FORCING, Field, RecordResult, SpectralGrid, THREADS, Turbulence};
use crate::prelude::*;
use std::f32::consts::TAU;

/// CTAs per GPU that find the maximum for one component, and threads per CTA. Source: `UMAX_GRD` and `UMAX_BLK` in
/// src/forcingCoefficient.cu.
pub(super) const MAXIMA_CTAS: u32 = 70;
const MAXIMA_THREADS: i32 = 128;
/// Forcing bound: wave numbers with smaller magnitude are forced. Source: `kf` in src/RK3.c.
const FORCED: f32 = 2.0;
/// Substep weights: diffusion and the last right-hand side in the explicit part; diffusion and the new right-hand side
/// in the implicit part. Source: src/RK3_kernels.cu.
pub(super) const DIFFUSION: [f32; 3] = [29.0 / 96.0, -3.0 / 40.0, 1.0 / 6.0];
pub(super) const LAST: [f32; 3] = [0.0, -17.0 / 60.0, -5.0 / 12.0];
pub(super) const IMPLICIT: [f32; 3] = [37.0 / 160.0, 5.0 / 24.0, 1.0 / 6.0];
pub(super) const NEW: [f32; 3] = [8.0 / 15.0, 5.0 / 12.0, 3.0 / 4.0];
/// Integer instructions to find a position with three coordinates and its address: two divisions by constants in the
/// program. Source: counted.
const PLACE: u16 = 14;
/// Instructions for three wave numbers: a comparison, a conversion and a selection each. Source: counted.
const WAVES: u16 = 9;
/// Instructions in `sincosf`. Source: counted: argument reduction and two polynomials.
const SINCOS: u16 = 30;
/// Instructions to project a complex vector: a product, a subtraction and a division by the squared length each.
/// Source: counted, with one reciprocal for all.
const PROJECTION: u16 = 34;

/// Real and imaginary parts for three components, in turn.
type Vector = [f32; 6];

/// Vector without its part along the wave numbers, which continuity forbids.
fn projected(v: Vector, k: [f32; 3]) -> Vector {
    let square = if squared(k) == 0.0 { 1.0 } else { squared(k) };
    let along = [0, 1].map(|part| (v[part] * k[0] + v[2 + part] * k[1] + v[4 + part] * k[2]) / square);
    std::array::from_fn(|at| v[at] - along[at % 2] * k[at / 2])
}

fn squared(k: [f32; 3]) -> f32 {
    k[0] * k[0] + k[1] * k[1] + k[2] * k[2]
}

/// Growth rate: forcing less viscosity.
fn growth(k: [f32; 3], reynolds: f32) -> f32 {
    let square = squared(k);
    (if square < FORCED * FORCED { FORCING } else { 0.0 }) - square / reynolds
}

/// Input for a thread in a pointwise kernel.
struct WavePoint {
    /// Index for the real part.
    at: Lanes<i32>,
    waves: [Lanes<f32>; 3],
}

fn load(warp: &mut Warp<'_>, field: Field, at: Lanes<i32>) -> [Lanes<f32>; 6] {
    let [x, y, z]: [[_; 2]; 3] = field.map(|component| warp.load_vector(component, at));
    [x[0], x[1], y[0], y[1], z[0], z[1]]
}

fn store(warp: &mut Warp<'_>, field: Field, at: Lanes<i32>, v: [Lanes<f32>; 6]) {
    for (component, part) in field.into_iter().zip([[v[0], v[1]], [v[2], v[3]], [v[4], v[5]]]) {
        warp.store_vector(component, at, part);
    }
}

/// Concatenates a kernel's operands: wave numbers, then vectors.
fn operands<const N: usize>(waves: [Lanes<f32>; 3], vectors: &[[Lanes<f32>; 6]]) -> [Lanes<f32>; N] {
    let mut all = waves.into_iter().chain(vectors.iter().flatten().copied());
    std::array::from_fn(|_| all.next().unwrap_or(Lanes::all(0.0)))
}

/// Six values starting at `first`.
fn vector(values: &[f32], first: usize) -> Vector {
    std::array::from_fn(|at| values[first + at])
}

fn waves_of(values: &[f32]) -> [f32; 3] {
    [values[0], values[1], values[2]]
}

impl Turbulence {
    /// Launches a kernel with a thread per complex value.
    fn each_value(
        &self,
        host: &mut Host<'_>,
        name: &str,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> RecordResult {
        host.launch(self.elements.grid(name, THREADS), |cta| {
            let items = self.elements.tile(cta.index()).items;
            cta.each_warp(|warp| {
                let element = warp.compute(ComputeClass::Int, 2, warp.thread() + items.start as i32);
                warp.when(element.lt(items.end as i32), |warp| body(warp, element));
            });
        })
    }

    /// Launches a kernel with a thread per spectrum value.
    fn each_wave(
        &self,
        host: &mut Host<'_>,
        name: &str,
        body: impl Fn(&mut Warp<'_>, WavePoint) + Sync,
    ) -> RecordResult {
        let SpectralGrid { side, .. } = self.mesh;
        let (half, plane) = (self.mesh.half(), self.mesh.plane());
        self.each_value(host, name, |warp, element| {
            let element = warp.compute(ComputeClass::Int, PLACE, element);
            warp.compute(ComputeClass::Fp32, WAVES, ());
            let waves =
                [0, 1, 2].map(|axis| element.map(|h| self.mesh.waves([h / plane, h / half % side, h % half])[axis]));
            body(warp, WavePoint { at: element * 2, waves });
        })
    }

    /// Computes a velocity's curl.
    pub(super) fn curl(&self, host: &mut Host<'_>, velocity: Field) -> RecordResult {
        self.each_wave(host, "curl", |warp, WavePoint { at, waves }| {
            let u = load(warp, velocity, at);
            let given: [_; 9] = operands(waves, &[u]);
            // Real and imaginary parts for three components, three instructions each.
            let curl = warp.calculate_wide(ComputeClass::Fp32, 18, 6, given, |values| {
                let (k, u) = (waves_of(&values), vector(&values, 3));
                let component = |axis: usize| {
                    let (next, after) = ((axis + 1) % 3, (axis + 2) % 3);
                    let part = |part: usize| k[next] * u[2 * after + part] - k[after] * u[2 * next + part];
                    [-part(1), part(0)]
                };
                let [x, y, z] = [0, 1, 2].map(component);
                [x[0], x[1], y[0], y[1], z[0], z[1]]
            });
            store(warp, self.r, at, curl);
        })
    }

    /// Shifts a field's points by `phase` times the point spacing along each axis.
    pub(super) fn shift(&self, host: &mut Host<'_>, field: Field, phase: f32) -> RecordResult {
        let turn = TAU / self.mesh.side as f32 * phase;
        self.each_wave(host, "shift", |warp, WavePoint { at, waves }| {
            let v = load(warp, field, at);
            let given: [_; 9] = operands(waves, &[v]);
            let shifted = warp.calculate(ComputeClass::Fp32, 5 + SINCOS + 18, given, |values| {
                let (k, v) = (waves_of(&values), vector(&values, 3));
                let (sine, cosine) = (k[0] * turn + k[1] * turn + k[2] * turn).sin_cos();
                let component = |axis: usize| {
                    let (real, imaginary) = (v[2 * axis], v[2 * axis + 1]);
                    [cosine * real - sine * imaginary, sine * real + cosine * imaginary]
                };
                let [x, y, z] = [0, 1, 2].map(component);
                [x[0], x[1], y[0], y[1], z[0], z[1]]
            });
            store(warp, field, at, shifted);
        })
    }

    /// Zeros a field at masked wave numbers.
    pub(super) fn dealias(&self, host: &mut Host<'_>, field: Field) -> RecordResult {
        self.each_wave(host, "dealias", |warp, WavePoint { at, waves: [x, y, z] }| {
            warp.compute(ComputeClass::Fp32, 8, ());
            warp.compute(ComputeClass::Special, 1, ());
            let masked = x.zip(y, |x, y| (x, y)).zip(z, |(x, y), z| self.mesh.is_masked([x, y, z]));
            warp.when(masked, |warp| store(warp, field, at, [Lanes::all(0.0); 6]));
        })
    }

    /// Computes the cross product between a velocity and its curl in space. Real and imaginary parts are separate
    /// points, neighbours along z. The factor from the number of points is divided out.
    pub(super) fn cross(&self, host: &mut Host<'_>, velocity: Field) -> RecordResult {
        let points = self.mesh.points();
        self.each_value(host, "cross", |warp, element| {
            let at = element * 2;
            let (u, w) = (load(warp, velocity, at), load(warp, self.r, at));
            let given: [_; 12] = std::array::from_fn(|value| if value < 6 { u[value] } else { w[value - 6] });
            let product = warp.calculate(ComputeClass::Fp32, 12 + 18, given, |values| {
                let values = values.map(|value| value / points);
                let (u, w) = (vector(&values, 0), vector(&values, 6));
                std::array::from_fn(|at| {
                    let (next, after, part) = ((at / 2 + 1) % 3, (at / 2 + 2) % 3, at % 2);
                    u[2 * next + part] * w[2 * after + part] - u[2 * after + part] * w[2 * next + part]
                })
            });
            store(warp, self.r, at, product);
        })
    }

    /// Copies the velocity for the substep (`cudaMemcpyDeviceToDevice`).
    pub(super) fn copy(&self, host: &mut Host<'_>) -> RecordResult {
        self.each_value(host, "copy", |warp, element| {
            let u = load(warp, self.u, element * 2);
            store(warp, self.w, element * 2, u);
        })
    }

    /// Applies the explicit part of a substep, from `u` to `w`.
    pub(super) fn explicit(&self, host: &mut Host<'_>, substep: usize) -> RecordResult {
        let (step, reynolds) = (self.mesh.step(), self.mesh.reynolds());
        self.each_wave(host, "explicit", |warp, WavePoint { at, waves }| {
            let (u, r) = (load(warp, self.u, at), load(warp, self.r, at));
            let given: [_; 15] = operands(waves, &[u, r]);
            let moved = warp.calculate(ComputeClass::Fp32, 8 + PROJECTION + 24, given, |values| {
                let k = waves_of(&values);
                let (u, r) = (vector(&values, 3), projected(vector(&values, 9), k));
                let diffusion = DIFFUSION[substep] * growth(k, reynolds);
                std::array::from_fn::<_, 6, _>(|at| u[at] + step * (diffusion * u[at] + LAST[substep] * r[at]))
            });
            store(warp, self.w, at, moved);
        })
    }

    /// Applies the implicit part of a substep.
    pub(super) fn implicit(&self, host: &mut Host<'_>, substep: usize) -> RecordResult {
        let (step, reynolds) = (self.mesh.step(), self.mesh.reynolds());
        self.each_wave(host, "implicit", |warp, WavePoint { at, waves }| {
            let (w, r) = (load(warp, self.w, at), load(warp, self.r, at));
            let given: [_; 15] = operands(waves, &[w, r]);
            let moved = warp.calculate(ComputeClass::Fp32, 8 + PROJECTION + 12 + 10, given, |values| {
                let k = waves_of(&values);
                let (w, r) = (vector(&values, 3), projected(vector(&values, 9), k));
                let damping = 1.0 / (1.0 - IMPLICIT[substep] * step * growth(k, reynolds));
                std::array::from_fn::<_, 6, _>(|at| (w[at] + step * NEW[substep] * r[at]) * damping)
            });
            store(warp, self.u, at, moved);
        })
    }

    /// Removes the rounding errors along the wave numbers from the velocity.
    pub(super) fn project(&self, host: &mut Host<'_>) -> RecordResult {
        self.each_wave(host, "project", |warp, WavePoint { at, waves }| {
            let u = load(warp, self.u, at);
            let given: [_; 9] = operands(waves, &[u]);
            let free = warp.calculate(ComputeClass::Fp32, PROJECTION, given, |values| {
                projected(vector(&values, 3), waves_of(&values))
            });
            store(warp, self.u, at, free);
        })
    }

    /// Finds the maximum for each velocity component in space, as bits: positive floats and their bits have equal
    /// order.
    pub(super) fn maximum(&self, host: &mut Host<'_>, velocity: Field, step: u64) -> RecordResult {
        let grid = self.blocks.grid("maxima", MAXIMA_THREADS as u32).shared_bytes(4 * MAXIMA_THREADS as u32);
        host.launch(grid, |cta| {
            let tile = self.blocks.tile(cta.index());
            let (component, first) = (tile.across as u32 / MAXIMA_CTAS, tile.across as u32 % MAXIMA_CTAS);
            let start = tile.items.start as i32 + first as i32 * MAXIMA_THREADS;
            let mut largest: Vec<Lanes<f32>> = Vec::new();
            cta.each_warp(|warp| {
                let mut most = Lanes::all(0.0_f32);
                let stride = MAXIMA_CTAS as usize * MAXIMA_THREADS as usize;
                for trip in (start..tile.items.end as i32).step_by(stride) {
                    let element = warp.compute(ComputeClass::Int, 1, warp.thread() + trip);
                    // The last value in a row is padding without points in space.
                    let is_point =
                        element.lt(tile.items.end as i32) & (element % self.mesh.half()).lt(self.mesh.depth / 2);
                    warp.when(is_point, |warp| {
                        let pair: [_; 2] = warp.load_vector(velocity[component as usize], element * 2);
                        let [larger] =
                            warp.calculate(ComputeClass::Fp32, 4, [most, pair[0], pair[1]], |[most, a, b]| {
                                [most.max(a.abs()).max(b.abs())]
                            });
                        most = warp.update(most, larger);
                    });
                }
                largest.push(most);
            });
            self.largest_of(cta, &largest, u64::from(component) + 3 * step, tile.gpu);
        })
    }

    /// Combines the maxima from a CTA's threads in a tree, then from a GPU's CTAs.
    fn largest_of(&self, cta: &mut Cta<'_>, largest: &[Lanes<f32>], place: u64, gpu: usize) {
        let mut shared: Shared<f32> = cta.shared(MAXIMA_THREADS as usize);
        cta.each_warp(|warp| warp.store_shared(&mut shared, warp.thread(), largest[warp.index() as usize]));
        let mut distance = MAXIMA_THREADS / 2;
        while distance > 0 {
            cta.barrier();
            cta.each_warp(|warp| {
                let thread = warp.thread();
                warp.when(thread.lt(distance), |warp| {
                    let (own, other) =
                        (warp.load_shared(&shared, thread), warp.load_shared(&shared, thread + distance));
                    let larger = warp.compute(ComputeClass::Fp32, 1, own.max(other));
                    warp.store_shared(&mut shared, thread, larger);
                });
            });
            distance /= 2;
        }
        cta.barrier();
        cta.warp(0, |warp| {
            warp.single(|warp| {
                let most = warp.load_shared(&shared, Lanes::all(0)).map(f32::to_bits);
                let order = Order::relaxed(Scope::Gpu);
                warp.reduce(Reduction::Max, self.maxima[gpu], Lanes::all(place as i64), most, order);
            });
        });
    }
}
