//! Rodinia srad (version 2): diffusion that removes speckles from an image and keeps its edges.
//!
//! `srad-1` computes the four derivatives and the diffusion coefficient for each pixel. `srad-2` updates the pixel with
//! its own coefficient and the coefficients at its southern and eastern neighbour. The host measures the speckle
//! between steps.

use crate::prelude::*;

/// Sides of a CTA's tile, in pixels and in threads. Source: Rodinia 3.1 srad_v2 (`BLOCK_SIZE`).
const SIDE: i32 = 16;
/// Rows and columns from the corner in which the speckle is measured. Source: Rodinia 3.1 srad_v2 (`run`: 0 127 0 127).
const SPECKLE: u64 = 128;
/// Diffusion step. Source: Rodinia 3.1 srad_v2 (`run`: 0.5).
const LAMBDA: f32 = 0.5;

program! {
    /// speckle-reducing diffusion of an image: two stencils over six arrays a step
    pub(crate) static SRAD = "srad", "Rodinia 3.1 srad_v2; NUMA-GPU, Table 2 (Rodinia-Srad)";
    properties: data_independent;
    parameters {
        /// columns of the image, at scale 1; scales, to whole multiples of 16
        columns: count(16..=1 << 16) = 2048,
            "Rodinia 3.1 srad_v2 (`run`: 2048 2048); 98 MB and 16,384 CTAs in NUMA-GPU, Table 2";
        /// rows of the image, raised to a multiple of 16; does not scale, because modules share rows
        rows: count(16..=1 << 16) = 2048, "Rodinia 3.1 srad_v2 (`run`: 2048 2048)";
        /// steps of the diffusion
        iterations: count(1..=10_000) = 2, "Rodinia 3.1 srad_v2 (`run`: 2)";
    }
    lay_out(name, request, memory) {
        let side = SIDE as u64;
        let columns = request.fit_multiple("columns", request.scale.of(columns), side);
        let rows = request.fit_multiple("rows", rows, side);
        check_indices(name, columns * rows, "pixels")?;
    }
    struct SpeckleImage {
        image, coefficient: Array<f32>[columns * rows],
        /// Derivatives to the north, south, west and east.
        derivatives: [Array<f32>; 4]["north", "south", "west", "east"; columns * rows],
        columns, rows: i32,
        iterations: u64,
        seed: u64 = request.seed,
    }
}

/// Scratchpad elements for a tile, and for each strip around it.
const STRIP: i32 = SIDE * SIDE;

/// Diffusion coefficient for a pixel, from its derivatives and the speckle.
fn diffusion(pixel: f32, [north, south, west, east]: [f32; 4], speckle: f32) -> f32 {
    let gradient = (north * north + south * south + west * west + east * east) / (pixel * pixel);
    let laplacian = (north + south + west + east) / pixel;
    let numerator = 0.5 * gradient - (1.0 / 16.0) * (laplacian * laplacian);
    let denominator = 1.0 + 0.25 * laplacian;
    let variation = numerator / (denominator * denominator);
    let excess = (variation - speckle) / (speckle * (1.0 + speckle));
    (1.0 / (1.0 + excess)).clamp(0.0, 1.0)
}

impl SpeckleImage {
    /// Column and row for each lane's thread in the tile, and the tile's corner.
    fn place(&self, warp: &mut Warp<'_>) -> ([Lanes<i32>; 2], [i32; 2]) {
        let (across, cta) = (self.columns / SIDE, warp.cta() as i32);
        let thread = warp.thread();
        let place = warp.compute(ComputeClass::Int, 6, [thread % SIDE, thread / SIDE]);
        (place, [cta % across * SIDE, cta / across * SIDE])
    }

    /// Loads the tile and the strips given by `strips` (row and column offsets beyond the tile, clamped to the image).
    fn load_tile(&self, cta: &mut Cta<'_>, from: Array<f32>, strips: &[[i32; 2]]) -> Shared<f32> {
        let mut tile = cta.shared::<f32>(STRIP as usize * (strips.len() + 1));
        cta.each_warp(|warp| {
            let ([x, y], [left, top]) = self.place(warp);
            let thread = warp.thread();
            let own = warp.compute(ComputeClass::Int, ADDRESS, (y + top) * self.columns + x + left);
            let value = warp.load(from, own);
            warp.store_shared(&mut tile, thread, value);
            for (strip, [across, down]) in (1..).zip(strips) {
                // A strip beyond one side has a constant coordinate for all threads along the other axis.
                let x = if *across == 0 { x + left } else { Lanes::all(left + *across) };
                let y = if *down == 0 { y + top } else { Lanes::all(top + *down) };
                let x = x.map(|x| x.clamp(0, self.columns - 1));
                let y = y.map(|y| y.clamp(0, self.rows - 1));
                let at = warp.compute(ComputeClass::Int, 4 + ADDRESS, y * self.columns + x);
                let value = warp.load(from, at);
                warp.store_shared(&mut tile, thread + strip * STRIP, value);
            }
        });
        cta.barrier();
        tile
    }

    fn derive(&self, cta: &mut Cta<'_>, speckle: f32) {
        let tile = self.load_tile(cta, self.image, &[[0, -1], [0, SIDE], [-1, 0], [SIDE, 0]]);
        cta.each_warp(|warp| {
            let ([x, y], [left, top]) = self.place(warp);
            let thread = warp.thread();
            let inner = [y.gt(0), y.lt(SIDE - 1), x.gt(0), x.lt(SIDE - 1)];
            let pixel = warp.load_shared(&tile, thread);
            let steps = [-SIDE, SIDE, -1, 1];
            let mut derivatives = [Lanes::all(0.0); 4];
            for (side, derivative) in derivatives.iter_mut().enumerate() {
                let beyond = thread + (side as i32 + 1) * STRIP;
                let at = warp.compute(ComputeClass::Int, 2, inner[side].select(thread + steps[side], beyond));
                *derivative = warp.load_shared(&tile, at) - pixel;
            }
            let [north, south, west, east] = derivatives;
            // Five divisions take eight instructions each.
            let operands = [pixel, north, south, west, east];
            let [value] = warp.calculate(ComputeClass::Fp32, 64, operands, |[pixel, north, south, west, east]| {
                [diffusion(pixel, [north, south, west, east], speckle)]
            });
            let at = warp.compute(ComputeClass::Int, ADDRESS, (y + top) * self.columns + x + left);
            warp.store(self.coefficient, at, value);
            for (array, derivative) in self.derivatives.into_iter().zip(derivatives) {
                warp.store(array, at, derivative);
            }
        });
    }

    fn diffuse(&self, cta: &mut Cta<'_>) {
        let tile = self.load_tile(cta, self.coefficient, &[[0, SIDE], [SIDE, 0]]);
        cta.each_warp(|warp| {
            let ([x, y], [left, top]) = self.place(warp);
            let thread = warp.thread();
            let at = warp.compute(ComputeClass::Int, ADDRESS, (y + top) * self.columns + x + left);
            let own = warp.load_shared(&tile, thread);
            let below = warp.compute(ComputeClass::Int, 2, y.lt(SIDE - 1).select(thread + SIDE, thread + STRIP));
            let right = warp.compute(ComputeClass::Int, 2, x.lt(SIDE - 1).select(thread + 1, thread + 2 * STRIP));
            let (south, east) = (warp.load_shared(&tile, below), warp.load_shared(&tile, right));
            let [to_north, to_south, to_west, to_east] = self.derivatives.map(|array| warp.load(array, at));
            let divergence = own * to_north + south * to_south + own * to_west + east * to_east;
            let pixel = warp.load(self.image, at) + divergence * (0.25 * LAMBDA);
            let pixel = warp.compute(ComputeClass::Fp32, 6, pixel);
            warp.store(self.image, at, pixel);
        });
    }

    fn start(&self, index: u64) -> f32 {
        1.5 + noise::unit(self.seed, index)
    }

    /// Variance over squared mean in the image's corner.
    fn speckle(&self, image: &[f32]) -> f32 {
        let (width, height) = (SPECKLE.min(self.columns as u64), SPECKLE.min(self.rows as u64));
        let corner = image.chunks(self.columns as usize).take(height as usize);
        let (mut sum, mut squares) = (0.0, 0.0);
        for pixel in corner.flat_map(|row| &row[..width as usize]) {
            sum += f64::from(*pixel);
            squares += f64::from(*pixel) * f64::from(*pixel);
        }
        let mean = sum / (width * height) as f64;
        ((squares / (width * height) as f64 - mean * mean) / (mean * mean)) as f32
    }

    /// Runs one step in the plain reference: the diffusion by Yu and Acton, IEEE Trans. Image Processing 11(11), 2002,
    /// in double precision.
    fn step(&self, image: &mut [f32]) {
        let speckle = self.speckle(image);
        let (columns, rows) = (self.columns as usize, self.rows as usize);
        let around = |at: usize| {
            let (x, y) = (at % columns, at / columns);
            let north = y.saturating_sub(1) * columns + x;
            let south = (y + 1).min(rows - 1) * columns + x;
            [north, south, y * columns + x.saturating_sub(1), y * columns + (x + 1).min(columns - 1)]
        };
        let derivatives: Vec<[f32; 4]> =
            (0..image.len()).map(|at| around(at).map(|beside| image[beside] - image[at])).collect();
        let scale = f64::from(speckle);
        let coefficient = |(pixel, all): (&f32, &[f32; 4])| {
            let relative = all.map(|derivative| f64::from(derivative) / f64::from(*pixel));
            let squares = relative.iter().map(|part| part * part).sum::<f64>();
            let laplacian = relative.iter().sum::<f64>();
            let variation = (squares / 2.0 - laplacian.powi(2) / 16.0) / (1.0 + laplacian / 4.0).powi(2);
            let diffused = 1.0 / (1.0 + (variation - scale) / (scale * (1.0 + scale)));
            diffused.clamp(0.0, 1.0) as f32
        };
        let coefficients: Vec<f32> = image.iter().zip(&derivatives).map(coefficient).collect();
        for at in 0..image.len() {
            let [_, south, _, east] = around(at).map(|beside| coefficients[beside]);
            let [to_north, to_south, to_west, to_east] = derivatives[at];
            let own = coefficients[at];
            image[at] += 0.25 * LAMBDA * (own * to_north + south * to_south + own * to_west + east * to_east);
        }
    }
}

impl Instance for SpeckleImage {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.image, |index| self.start(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        let ctas = (self.columns / SIDE) as u64 * (self.rows / SIDE) as u64;
        let grid =
            |name, strips: i32| Grid::new(name, ctas, STRIP as u32).shared_bytes((4 * STRIP * (strips + 1)) as u32);
        for _ in 0..self.iterations {
            let speckle = self.speckle(&host.memory().to_vec(self.image));
            host.copy_to_device(self.image);
            host.launch(grid("srad-1", 4), |cta| self.derive(cta, speckle))?;
            host.launch(grid("srad-2", 2), |cta| self.diffuse(cta))?;
            host.copy_to_host(self.image);
        }
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let mut image: Vec<f32> = (0..self.image.len()).map(|index| self.start(index)).collect();
        (0..self.iterations).for_each(|_| self.step(&mut image));
        compare("pixel", memory.to_vec(self.image), image, 1e-5)
    }
}
