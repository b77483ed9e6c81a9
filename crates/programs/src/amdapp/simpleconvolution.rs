//! SimpleConvolution from the AMD APP SDK 2.5: an image convolved with a mask, a pixel per thread, without padding.
//!
//! Source: SimpleConvolution_Kernels.cl and SimpleConvolution.cpp. A window is clipped at the image's edges, so lanes
//! at the edges run shorter loops. A mask with even width has a window narrower by one: 16 gives 15 x 15 pixels. The
//! sample's host adds one to an even width: a request for 16 runs `mask=17`. Arithmetic is counted from the Southern
//! Islands binary shipped with the sample.

use crate::prelude::*;

/// Threads per CTA. Source: SimpleConvolution.cpp, runCLKernels.
const THREADS: u64 = 256;
/// Exclusive upper bound for pixel values. Source: SimpleConvolution.cpp, setupSimpleConvolution: 0 to 255.
const BOUND: u64 = 256;

program! {
    /// convolves an image with a large mask: windows of neighbouring pixels overlap, cut at the edges
    pub(crate) static SIMPLECONVOLUTION = "amdapp-simpleconvolution",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), SimpleConvolution; UMH, Table I (SC)";
    properties: data_independent;
    parameters {
        /// columns and rows of the image of 4-byte integers, at scale 1; scales by the root, to powers of two
        side: count(16..=1 << 14) = 512, "UMH, Table I (SC): 512x512; powers of two: SimpleConvolution.cpp, setup";
        /// side of the mask of 4-byte floats
        mask: count(1..=63) = 16, "UMH, 6.1.3: a mask of 16x16";
    }
    lay_out(name, request, memory) {
        let whole = side.next_power_of_two();
        // A power of two that fills a CTA.
        let pixels = request.scale.of(whole * whole).next_power_of_two().max(THREADS);
        check_indices(name, pixels, "pixels")?;
        let columns = 1 << pixels.ilog2().div_ceil(2);
        let rule = "powers of two, with half as many rows where pixels are no square";
        request.fit("side", request.scale.side_of(side), columns, rule);
    }
    struct MaskConvolution {
        input: Array<u32>[pixels],
        mask: Array<f32>[mask * mask, fixed],
        output: Array<u32>[pixels],
        columns: i32,
        rows: i32 = (pixels / columns) as i32,
        /// Side length of the mask.
        side: i32 = mask as i32,
        seed: u64 = request.seed,
    }
}

/// First pixel and number of pixels in a window along an axis: `reach` to both sides of `at`, clipped at `length`.
fn window(at: Lanes<i32>, reach: i32, length: i32) -> (Lanes<i32>, Lanes<u32>) {
    let first = (at - reach).max(Lanes::all(0));
    let last = (at + reach).min(Lanes::all(length - 1));
    (first, (last - first + 1).cast())
}

impl MaskConvolution {
    /// Window pixels to each side of the centre.
    fn reach(&self) -> i32 {
        (self.side - 1) / 2
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        cta.each_warp(|warp| {
            let t = warp.compute(ComputeClass::Int, 38 + 20, warp.global_thread());
            let (x, y) = (t % self.columns, t / self.columns);
            let (left, across) = window(x, self.reach(), self.columns);
            let (top, down) = window(y, self.reach(), self.rows);
            let mut sum = Lanes::all(0.0);
            warp.repeat(across, |warp, i| {
                let column = warp.compute(ComputeClass::Int, 3, left + i as i32);
                warp.repeat(down, |warp, j| {
                    let row = top + j as i32;
                    let place = (row - y + self.reach()) * self.side + column - x + self.reach();
                    let added = self.product(warp, row * self.columns + column, place);
                    sum = warp.update(sum, sum + added);
                });
                warp.compute(ComputeClass::Int, 4, ());
            });
            let rounded = warp.compute(ComputeClass::Fp32, 2, sum + 0.5).cast::<u32>();
            let t = warp.compute(ComputeClass::Int, 3, t);
            warp.store(self.output, t, rounded);
        });
    }

    /// Loads a pixel and multiplies the value by a weight.
    fn product(&self, warp: &mut Warp<'_>, pixel: Lanes<i32>, place: Lanes<i32>) -> Lanes<f32> {
        let value = warp.load(self.input, pixel).cast::<f32>();
        let product = warp.load(self.mask, place) * value;
        // The conversion, the sum, and three steps for the indices.
        let product = warp.compute(ComputeClass::Fp32, 2, product);
        warp.compute(ComputeClass::Int, 3, product)
    }

    fn pixel(&self, index: u64) -> u32 {
        noise::below(self.seed, index, BOUND) as u32
    }

    /// Weights that form a cross through the middle, for blurring.
    fn weight(&self, index: u64) -> f32 {
        let (side, middle) = (self.side as u64, self.side as u64 / 2);
        let on_cross = index / side == middle || index % side == middle;
        if on_cross { 1.0 / (2.0 * side as f32 - 1.0) } else { 0.0 }
    }

    fn expected(&self, index: i32) -> u32 {
        let (x, y, reach) = (index % self.columns, index / self.columns, self.reach());
        let cut = |at: i32, length: i32| (at - reach).max(0)..=(at + reach).min(length - 1);
        let mut sum = 0.0;
        for column in cut(x, self.columns) {
            for row in cut(y, self.rows) {
                let weight = self.weight(((row - y + reach) * self.side + column - x + reach) as u64);
                sum += weight * self.pixel((row * self.columns + column) as u64) as f32;
            }
        }
        (sum + 0.5) as u32
    }
}

impl Instance for MaskConvolution {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.pixel(index));
        memory.fill(self.mask, |index| self.weight(index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        host.copy_to_device(self.mask);
        let grid = Grid::new("convolution", self.output.len() / THREADS, THREADS as u32);
        host.launch(grid, |cta| self.kernel(cta))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected: Vec<u32> = (0..self.output.len() as i32).map(|index| self.expected(index)).collect();
        equal("pixel", &memory.to_vec(self.output), &expected)
    }
}
