//! SobelFilter from the AMD APP SDK 2.5: gradients of an image with four bytes per pixel, launched repeatedly without
//! changing the image.
//!
//! Source: SobelFilter_Kernels.cl and SobelFilter.cpp. A pixel is a single 4-byte word. The window's centre has weight
//! zero. Arithmetic and the eight loads are counted from the Southern Islands binary shipped with the sample.

use crate::prelude::*;

/// Threads per CTA, all on pixels in the same row. Source: SobelFilter.hpp (`GROUP_SIZE`).
const THREADS: u64 = 256;
/// Byte components per pixel. Source: SobelFilter_Kernels.cl (`uchar4`).
const COMPONENTS: usize = 4;

program! {
    /// Sobel gradients of an image: a launch an iteration, neighbours of a pixel
    pub(crate) static SOBELFILTER = "sobelfilter",
        "AMD APP SDK 2.5 (Multi2Sim/m2s-bench-amdsdk-2.5-src), SobelFilter; UMH, Table I (SF)";
    properties: data_independent;
    parameters {
        /// pixels of a row, in whole multiples of 256; does not scale, so that vertical neighbours stay as many CTAs
        /// apart
        width: count(1..=1 << 14) = 1024, "UMH, Table I (SF): 1024x768x3";
        /// rows of the image of 4-byte pixels, at scale 1; scales
        height: count(1..=1 << 20) = 768, "UMH, Table I (SF): 1024x768x3";
        /// launches over the same image
        iterations: count(1..=1000) = 3,
            "UMH, Table I (SF): 1024x768x3, the third, for the table calls it iterative and a pixel has four bytes";
    }
    lay_out(name, request, memory) {
        let width = request.fit_multiple("width", width, THREADS);
        let height = request.scale.of(height);
        check_indices(name, width * height, "pixels")?;
    }
    struct SobelFilter {
        input, output: Array<u32>[width * height],
        width, height: i32,
        iterations: u64,
        seed: u64 = request.seed,
    }
}

/// Half the length of a component's gradient, from its neighbours row by row without the centre. A byte keeps the low
/// eight bits of a larger length.
fn gradient([nw, n, ne, w, e, sw, s, se]: [f32; 8]) -> u32 {
    let down = nw + 2.0 * n + ne - sw - 2.0 * s - se;
    let across = nw - ne + 2.0 * w - 2.0 * e + sw - se;
    ((down * down + across * across).sqrt() / 2.0) as u32 & 0xff
}

/// A component of a pixel.
fn component(pixel: u32, index: usize) -> f32 {
    f32::from(pixel.to_le_bytes()[index])
}

impl SobelFilter {
    fn kernel(&self, cta: &mut Cta<'_>) {
        let (width, height, across) = (self.width, self.height, self.width / THREADS as i32);
        let (left, y) = (cta.index() as i32 % across * THREADS as i32, cta.index() as i32 / across);
        cta.each_warp(|warp| {
            let x = warp.compute(ComputeClass::Int, 12, warp.thread() + left);
            let rows = Lanes::all((1..height - 1).contains(&y));
            warp.when(x.ge(1) & x.lt(width - 1) & rows, |warp| {
                let at = warp.compute(ComputeClass::Int, 25, x + y * width);
                let offsets = [-1 - width, -width, 1 - width, -1, 1, width - 1, width, width + 1];
                let window = offsets.map(|offset| warp.load(self.input, at + offset));
                let [pixel] = warp.calculate(ComputeClass::Fp32, 228, window, |window| {
                    let of = |index| gradient(window.map(|pixel| component(pixel, index)));
                    [(0..COMPONENTS).fold(0, |pixel, index| pixel | of(index) << (8 * index))]
                });
                warp.store(self.output, at, pixel);
            });
        });
    }

    fn pixel(&self, index: u64) -> u32 {
        noise::noise(self.seed, index) as u32
    }

    /// Expected pixel in the filtered image, computed in integers and double precision; the border stays black.
    fn expected(&self, index: u64) -> u32 {
        let (x, y) = (index as i64 % i64::from(self.width), index as i64 / i64::from(self.width));
        let border = x == 0 || y == 0 || x + 1 == i64::from(self.width) || y + 1 == i64::from(self.height);
        if border {
            return 0;
        }
        let weights = [1, 2, 1];
        let of = |component: usize| {
            let value = |dx: i64, dy: i64| {
                let neighbour = self.pixel(((y + dy) * i64::from(self.width) + x + dx) as u64);
                i64::from(neighbour.to_le_bytes()[component])
            };
            let along = |place: &dyn Fn(i64, i64) -> i64| -> i64 {
                (-1..=1).zip(weights).map(|(at, weight)| weight * (place(at, -1) - place(at, 1))).sum()
            };
            let (down, across) = (along(&|dx, dy| value(dx, dy)), along(&|dy, dx| value(dx, dy)));
            let length = ((down * down + across * across) as f64).sqrt() / 2.0;
            u32::from(length as u16 as u8) << (8 * component)
        };
        (0..COMPONENTS).map(of).sum()
    }
}

impl Instance for SobelFilter {
    /// The host clears the output, because no kernel writes its border.
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| self.pixel(index));
        memory.fill(self.output, |_| 0);
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        for _ in 0..self.iterations {
            let grid = Grid::new("sobel", self.input.len() / THREADS, THREADS as u32);
            host.launch(grid, |cta| self.kernel(cta))?;
            host.copy_to_host(self.output);
        }
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let expected: Vec<u32> = (0..self.output.len()).map(|index| self.expected(index)).collect();
        equal("pixel", &memory.to_vec(self.output), &expected)
    }
}
