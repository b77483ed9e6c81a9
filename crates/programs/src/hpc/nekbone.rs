//! Nekbone: conjugate gradients on a mesh of spectral elements. The operator multiplies each element by small dense
//! matrices along three axes. Values at points shared by several elements are then summed, and the sum is written back
//! to every copy.
//!
//! The operator uses one CTA per element and one thread per point; an iteration has some thirteen short dependent
//! kernels.

mod mesh;

use self::mesh::SpectralMesh;
use crate::prelude::*;

/// Threads per CTA in the vector kernels. Source: assumed, the usual size.
const THREADS: u32 = 256;
/// Vector elements summed by each thread in a dot product. Source: assumed.
const EACH: u64 = 4;
/// Independent entries in a point's symmetric geometric factors. Source: Nekbone, `g(6, …)`.
const FACTORS: u64 = 6;

program! {
    /// spectral-element conjugate gradients: small dense operators, shared points, dot products
    pub(crate) static NEKBONE = "nekbone",
        "Nekbone (CESAR); one element a CTA as in Gong et al. 2016; HMG Table III (HPC_Nekbone-10)";
    parameters {
        /// points along each side of an element: the order of its polynomials plus one
        points: count(2..=10) = 10, "HMG Table III: Nekbone-10";
        /// elements along x, at scale 1; scales by the root
        x: count(1..=1 << 10) = 8,
            "assumed: with y and z, the number of elements that reaches the 178 MB of HMG Table III";
        /// elements along y, at scale 1; scales by the root
        y: count(1..=1 << 10) = 12, "assumed, as x";
        /// elements along z; does not scale, because modules share planes of z
        z: count(1..=1 << 10) = 16, "assumed, as x";
        /// iterations of conjugate gradients
        iterations: count(1..=1000) = 10, "assumed: Nekbone runs 100, all alike from the second on";
    }
    lay_out(name, request, memory) {
        let (side, x, y) = (points, request.scale.side_of(x), request.scale.side_of(y));
        let points = side.pow(3) * x * y * z;
        check_indices(name, points * FACTORS, "factors of points")?;
        let mesh = SpectralMesh::new(CellGrid { x: x as i32, y: y as i32, z: z as i32 }, side as i32);
        let copies = mesh.shared.iter().map(Vec::len).sum::<usize>() as u64;
    }
    struct ConjugateGradients {
        /// Solution, right-hand side, residual, operator's result, direction, preconditioned residual; each
        /// `[element][z][y][x]`.
        x: Array<f64>[points],
        rhs, r, w, p, z: Array<f64>[points],
        /// Inverse of the number of elements that share a point.
        weight: Array<f64>[points],
        /// Mask with 0 on the mesh border and 1 inside.
        mask: Array<f64>[points],
        /// Geometric factors, `[6][element][z][y][x]`.
        factors: Array<f64>[FACTORS * points],
        /// Partial dot product per CTA, and the total.
        partial: Array<f64>[points.div_ceil(EACH * u64::from(THREADS))],
        /// Derivative matrix along one side, `[row][column]`.
        derivative: Array<f64>[side * side, fixed],
        /// First entry in `copies` for each shared point, with one more at the end.
        first: Array<u32>[mesh.shared.len() as u64 + 1],
        /// Local copies of shared points.
        copies: Array<u32>[copies],
        total: Array<f64>[1, fixed],
        mesh: SpectralMesh,
        iterations: u64,
        seed: u64 = request.seed,
    }
}

/// Scratchpad arrays for one element.
struct ElementScratch {
    derivative: Shared<f64>,
    value: Shared<f64>,
    slopes: [Shared<f64>; 3],
}

/// Position of a thread's point in its element, and strides along the axes.
struct ElementPoint {
    along: [Lanes<i32>; 3],
    strides: [i32; 3],
    thread: Lanes<i32>,
}

impl ElementPoint {
    /// Index for the point at `step` along `axis` on this point's line.
    fn on_line(&self, axis: usize, step: i32) -> Lanes<i32> {
        self.thread + self.along[axis].map(|at| step - at) * self.strides[axis]
    }
}

impl ConjugateGradients {
    fn point(&self, warp: &mut Warp<'_>) -> ElementPoint {
        let side = self.mesh.side;
        let thread = warp.thread();
        let along = CellGrid { x: side, y: side, z: side }.lane_coordinates(warp, thread);
        ElementPoint { along, strides: [1, side, side * side], thread }
    }

    /// Computes `w = D' G D p` for one element.
    fn operator(&self, cta: &mut Cta<'_>) {
        let (side, points) = (self.mesh.side, self.mesh.element_points());
        let first = cta.index() as i32 * points;
        let mut tile = ElementScratch {
            derivative: cta.shared((side * side) as usize),
            value: cta.shared(points as usize),
            slopes: [cta.shared(points as usize), cta.shared(points as usize), cta.shared(points as usize)],
        };
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let value = warp.load(self.p, thread + first);
            warp.when(thread.lt(side * side), |warp| {
                let entry = warp.load(self.derivative, thread);
                warp.store_shared(&mut tile.derivative, thread, entry);
            });
            warp.store_shared(&mut tile.value, thread, value);
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let point = self.point(warp);
            let slopes = [0, 1, 2]
                .map(|axis| self.along(warp, &point, axis, &tile.derivative, &tile.value, |at, step| at * side + step));
            let flows = self.flows(warp, point.thread + first, slopes);
            for (slope, flow) in tile.slopes.iter_mut().zip(flows) {
                warp.store_shared(slope, point.thread, flow);
            }
        });
        cta.barrier();
        cta.each_warp(|warp| {
            let point = self.point(warp);
            let mut sum = Lanes::all(0.0);
            for axis in 0..3 {
                let slopes = &tile.slopes[axis];
                let part = self.along(warp, &point, axis, &tile.derivative, slopes, |at, step| at + step * side);
                sum = warp.compute(ComputeClass::Fp64, 1, sum + part);
            }
            warp.store(self.w, point.thread + first, sum);
        });
    }

    /// Multiplies a row of the derivative (or its transpose) with the line in `values` along `axis`.
    fn along(
        &self,
        warp: &mut Warp<'_>,
        point: &ElementPoint,
        axis: usize,
        derivative: &Shared<f64>,
        values: &Shared<f64>,
        entry: impl Fn(Lanes<i32>, i32) -> Lanes<i32>,
    ) -> Lanes<f64> {
        let mut sum = Lanes::all(0.0);
        for step in 0..self.mesh.side {
            let factor = warp.load_shared(derivative, entry(point.along[axis], step));
            let value = warp.load_shared(values, point.on_line(axis, step));
            sum = warp.compute(ComputeClass::Fp64, 1, sum + factor * value);
        }
        sum
    }

    /// Multiplies the symmetric matrix with a point's geometric factors by its slopes.
    fn flows(&self, warp: &mut Warp<'_>, at: Lanes<i32>, [r, s, t]: [Lanes<f64>; 3]) -> [Lanes<f64>; 3] {
        let points = self.mesh.points();
        let [rr, rs, rt, ss, st, tt] = [0, 1, 2, 3, 4, 5].map(|row| warp.load(self.factors, at + row * points));
        let flows = [rr * r + rs * s + rt * t, rs * r + ss * s + st * t, rt * r + st * s + tt * t];
        // Three sums with three products each.
        warp.compute_wide(ComputeClass::Fp64, 9, 3, flows)
    }

    /// Sums the copies of each shared point and writes the sum to all copies.
    fn gather_scatter(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let shared = warp.global_thread();
            warp.when(shared.lt(self.mesh.shared.len() as i32), |warp| {
                let first = warp.load(self.first, shared);
                let count = warp.load(self.first, shared + 1) - first;
                let mut sum = Lanes::all(0.0);
                warp.repeat(count, |warp, copy| {
                    let local = warp.load(self.copies, first + copy);
                    let added = sum + warp.load(self.w, local);
                    let added = warp.compute(ComputeClass::Fp64, 1, added);
                    sum = warp.update(sum, added);
                });
                warp.repeat(count, |warp, copy| {
                    let local = warp.load(self.copies, first + copy);
                    warp.store(self.w, local, sum);
                });
            });
        });
    }

    /// Computes `to = factor × to + from`, one point per thread.
    fn combine(
        &self,
        host: &mut Host<'_>,
        name: &str,
        to: Array<f64>,
        factor: f64,
        from: ScaledVector,
    ) -> RecordResult {
        self.each_point(host, name, |warp, at| {
            let sum = warp.load(to, at) * factor + warp.load(from.array, at) * from.factor;
            let sum = warp.compute(ComputeClass::Fp64, 1, sum);
            warp.store(to, at, sum);
        })
    }

    fn copy(&self, host: &mut Host<'_>, to: Array<f64>, from: Array<f64>) -> RecordResult {
        self.each_point(host, "copy", |warp, at| {
            let value = warp.load(from, at);
            warp.store(to, at, value);
        })
    }

    /// Zeros `array` on the border.
    fn apply_mask(&self, host: &mut Host<'_>, array: Array<f64>) -> RecordResult {
        self.each_point(host, "mask", |warp, at| {
            let masked = warp.load(array, at) * warp.load(self.mask, at);
            let masked = warp.compute(ComputeClass::Fp64, 1, masked);
            warp.store(array, at, masked);
        })
    }

    fn each_point(
        &self,
        host: &mut Host<'_>,
        name: &str,
        body: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> RecordResult {
        let points = self.mesh.points();
        let ctas = (points as u64).div_ceil(u64::from(THREADS));
        host.launch(Grid::new(name, ctas, THREADS), |cta| {
            cta.each_warp(|warp| {
                let at = warp.compute(ComputeClass::Int, 1, warp.global_thread());
                warp.when(at.lt(points), |warp| body(warp, at));
            });
        })
    }

    /// Weighted dot product of two vectors: a kernel for partial sums, a kernel that adds them up, and a copy of the
    /// result to the host.
    fn dot(&self, host: &mut Host<'_>, a: Array<f64>, b: Array<f64>) -> Result<f64, RecordError> {
        let grid = |name, ctas| Grid::new(name, ctas, THREADS).shared_bytes(8 * THREADS / 32);
        host.launch(grid("dot", self.partial.len()), |cta| {
            let first = cta.index() as i32 * (EACH * u64::from(THREADS)) as i32;
            let term = |warp: &mut Warp<'_>, at| {
                let product = warp.load(a, at) * warp.load(self.weight, at) * warp.load(b, at);
                warp.compute(ComputeClass::Fp64, 1, product)
            };
            sum_up(
                cta,
                first,
                (first + (EACH * u64::from(THREADS)) as i32).min(self.mesh.points()),
                term,
                self.partial,
            );
        })?;
        host.launch(grid("dot-finish", 1), |cta| {
            sum_up(cta, 0, self.partial.len() as i32, |warp, at| warp.load(self.partial, at), self.total);
        })?;
        host.copy_to_host(self.total);
        Ok(host.memory().read(self.total, 0))
    }
}

type RecordResult = Result<(), RecordError>;

/// Vector, with its factor, added by [`ConjugateGradients::combine`].
#[derive(Clone, Copy)]
struct ScaledVector {
    array: Array<f64>,
    factor: f64,
}

/// Adds up `term(first)` to `term(end - 1)` over the CTA's threads and stores the sum at the CTA's index in `to`.
fn sum_up(
    cta: &mut Cta<'_>,
    first: i32,
    end: i32,
    term: impl Fn(&mut Warp<'_>, Lanes<i32>) -> Lanes<f64>,
    to: Array<f64>,
) {
    let (warps, index) = (cta.warps() as i32, cta.index());
    let mut sums = cta.shared::<f64>(warps as usize);
    cta.each_warp(|warp| {
        let mut sum = Lanes::all(0.0);
        for start in (first..end).step_by(THREADS as usize) {
            let at = warp.compute(ComputeClass::Int, 1, warp.thread() + start);
            warp.when(at.lt(end), |warp| {
                let added = sum + term(warp, at);
                let added = warp.compute(ComputeClass::Fp64, 1, added);
                sum = warp.update(sum, added);
            });
        }
        let (own, width) = (warp.index() as i32, warp.width());
        let sum = warp.sum_lanes(ComputeClass::Fp64, sum, width);
        warp.single(|warp| warp.store_shared(&mut sums, Lanes::all(own), sum));
    });
    cta.barrier();
    cta.warp(0, |warp| {
        let lane = warp.lane();
        let mut sum = Lanes::all(0.0);
        warp.when(lane.lt(warps), |warp| {
            let own = warp.load_shared(&sums, lane);
            sum = warp.update(sum, own);
        });
        let width = warp.width();
        let sum = warp.sum_lanes(ComputeClass::Fp64, sum, width);
        warp.single(|warp| warp.store(to, Lanes::all(index), sum));
    });
}

impl ConjugateGradients {
    fn start(&self, local: i32) -> f64 {
        let global = self.mesh.global_point(local) as u64;
        if self.mesh.border(local) { 0.0 } else { f64::from(noise::unit(self.seed, global)) }
    }

    /// Entry in the derivative matrix. Source: any full matrix serves; rows sum to about zero as in a derivative.
    fn derivative(&self, row: i32, column: i32) -> f64 {
        let distance = f64::from(row - column);
        if row == column { 0.0 } else { 1.0 / distance }
    }

    /// Geometric factor for a point in a slightly sheared element.
    fn factor(&self, which: usize, local: i32) -> f64 {
        let bent = 0.1 * f64::from(noise::unit(self.seed ^ (which as u64 + 1), local as u64));
        if [0, 3, 5].contains(&which) { 1.0 + bent } else { bent }
    }

    /// Computes `to = A from` on local points, without kernels.
    fn reference_operator(&self, from: &[f64]) -> Vec<f64> {
        let (side, mesh) = (self.mesh.side as usize, &self.mesh);
        let strides = [1, side, side * side];
        let mut sums = vec![0.0; mesh.global().count() as usize];
        for (element, values) in from.chunks(mesh.element_points() as usize).enumerate() {
            let at = |point: usize, axis: usize| point / strides[axis] % side;
            let line = |values: &[f64], point: usize, axis: usize, turned: bool| {
                let entry = |step: usize| {
                    let (row, column) = if turned { (step, at(point, axis)) } else { (at(point, axis), step) };
                    self.derivative(row as i32, column as i32)
                };
                let base = point - at(point, axis) * strides[axis];
                (0..side).map(|step| entry(step) * values[base + step * strides[axis]]).sum::<f64>()
            };
            let mut flows = [(); 3].map(|()| vec![0.0; values.len()]);
            for point in 0..values.len() {
                let slope = [0, 1, 2].map(|axis| line(values, point, axis, false));
                let factor = |which| self.factor(which, (element * values.len() + point) as i32);
                let rows = [[0, 1, 2], [1, 3, 4], [2, 4, 5]];
                for (flow, row) in flows.iter_mut().zip(rows) {
                    flow[point] = row.iter().zip(slope).map(|(&which, slope)| factor(which) * slope).sum();
                }
            }
            for point in 0..values.len() {
                let global = mesh.global_point((element * values.len() + point) as i32);
                sums[global as usize] += (0..3).map(|axis| line(&flows[axis], point, axis, true)).sum::<f64>();
            }
        }
        let value = |local| if mesh.border(local) { 0.0 } else { sums[mesh.global_point(local) as usize] };
        (0..mesh.points()).map(value).collect()
    }
}

impl Instance for ConjugateGradients {
    fn fill(&self, memory: &Memory) {
        let mesh = &self.mesh;
        memory.fill(self.rhs, |local| self.start(local as i32));
        memory.fill(self.mask, |local| if mesh.border(local as i32) { 0.0 } else { 1.0 });
        let points = mesh.points() as u64;
        memory.fill(self.factors, |index| self.factor((index / points) as usize, (index % points) as i32));
        let side = mesh.side as u64;
        memory.fill(self.derivative, |index| self.derivative((index / side) as i32, (index % side) as i32));
        memory.fill(self.weight, |_| 1.0);
        let mut next = 0;
        for (shared, copies) in (0..).zip(&mesh.shared) {
            memory.write(self.first, shared, next as u32);
            for &local in copies {
                memory.write(self.copies, next, local);
                memory.write(self.weight, u64::from(local), 1.0 / copies.len() as f64);
                next += 1;
            }
        }
        memory.write(self.first, mesh.shared.len() as u64, next as u32);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        for array in [self.rhs, self.mask, self.factors, self.derivative, self.weight] {
            host.copy_to_device(array);
        }
        host.copy_to_device(self.first);
        host.copy_to_device(self.copies);
        self.copy(host, self.r, self.rhs)?;
        self.apply_mask(host, self.r)?;
        let mut before = 1.0;
        for iteration in 0..self.iterations {
            self.copy(host, self.z, self.r)?;
            let now = self.dot(host, self.r, self.z)?;
            let beta = if iteration == 0 { 0.0 } else { now / before };
            before = now;
            self.combine(host, "add2s1", self.p, beta, ScaledVector { array: self.z, factor: 1.0 })?;
            let (elements, points) = (self.mesh.elements.count() as u64, self.mesh.element_points() as u32);
            let shared_bytes = 8 * (4 * points + (self.mesh.side * self.mesh.side) as u32);
            host.launch(Grid::new("ax", elements, points).shared_bytes(shared_bytes), |cta| self.operator(cta))?;
            if !self.mesh.shared.is_empty() {
                let ctas = (self.mesh.shared.len() as u64).div_ceil(u64::from(THREADS));
                host.launch(Grid::new("gather-scatter", ctas, THREADS), |cta| self.gather_scatter(cta))?;
            }
            self.apply_mask(host, self.w)?;
            let alpha = now / self.dot(host, self.w, self.p)?;
            self.combine(host, "add2s2", self.x, 1.0, ScaledVector { array: self.p, factor: alpha })?;
            self.combine(host, "add2s2", self.r, 1.0, ScaledVector { array: self.w, factor: -alpha })?;
            self.dot(host, self.r, self.r)?;
        }
        host.copy_to_host(self.x);
        Ok(())
    }

    /// Runs conjugate gradients over distinct points, with an independent summation order.
    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let points = self.mesh.points();
        let mut shares = vec![1.0; points as usize];
        for copies in &self.mesh.shared {
            copies.iter().for_each(|&local| shares[local as usize] = 1.0 / copies.len() as f64);
        }
        let dot = |a: &[f64], b: &[f64]| (0..a.len()).map(|at| a[at] * b[at] * shares[at]).sum::<f64>();
        let mut r: Vec<f64> = (0..points).map(|local| self.start(local)).collect();
        let (mut x, mut p) = (vec![0.0; r.len()], vec![0.0; r.len()]);
        let mut before = f64::INFINITY;
        for _ in 0..self.iterations {
            let now = dot(&r, &r);
            (0..r.len()).for_each(|at| p[at] = r[at] + now / before * p[at]);
            let w = self.reference_operator(&p);
            let alpha = now / dot(&w, &p);
            for at in 0..r.len() {
                x[at] += alpha * p[at];
                r[at] -= alpha * w[at];
            }
            before = now;
        }
        compare_f64("solution", &memory.to_vec(self.x), &x)
    }
}
