//! A convolution layer with a single input channel: the image is unfolded, then a tiled product applies the weights.

use super::im2col::{FILTER, SIDE, Unfolding};
use crate::prelude::*;

/// Number of output channels. Source: [`MI300A_KERNELS`].
const CHANNELS: i32 = 3;
/// Side length for a tile, and for a CTA. Source: [`MI300A_KERNELS`].
const TILE: i32 = 16;

program! {
    /// convolution layer as unfolding and product: two dependent kernels
    pub(crate) static CONV2D = "conv2d", MI300A_KERNELS;
    properties: data_independent;
    parameters {
        SIDE;
        FILTER;
    }
    lay_out(workload, request, memory) {
        let unfolding = Unfolding::lay_out(workload, request, memory)?;
        let (filter, field) = (unfolding.filter as u64, unfolding.field as u64);
    }
    struct Conv2dLayer {
        /// `[channel][filter squared]`.
        weights: Array<f32>[CHANNELS as u64 * filter * filter, fixed],
        bias: Array<f32>[CHANNELS as u64, fixed],
        /// `[row of a tile][field squared]`: the first rows are channels, the remaining rows are only ever zeroed.
        output: Array<f32>[TILE as u64 * field * field + TILE as u64],
        seed: u64 = request.seed,
        unfolding: Unfolding,
    }
}

impl Conv2dLayer {
    /// Computes a tile of 16 columns. Rows beyond the channels are zeroed too, as in the source.
    fn product(&self, cta: &mut Cta<'_>) {
        let (terms, columns) =
            (self.unfolding.filter * self.unfolding.filter, self.unfolding.field * self.unfolding.field);
        let first = cta.index() as i32 * TILE;
        let mut a: Shared<f32> = cta.shared((TILE * TILE) as usize);
        let mut b: Shared<f32> = cta.shared((TILE * TILE) as usize);
        cta.each_warp(|warp| {
            let thread = warp.compute(ComputeClass::Int, 8 + ADDRESS, warp.thread());
            let (x, y) = (thread % TILE + first, thread / TILE);
            warp.when(x.lt(columns), |warp| warp.store(self.output, y * columns + x, 0.0));
        });
        let mut sums = vec![Lanes::all(0.0); cta.warps() as usize];
        for base in (0..terms).step_by(TILE as usize) {
            cta.each_warp(|warp| self.stage(warp, (&mut a, &mut b), first, base));
            cta.barrier();
            cta.each_warp(|warp| {
                let thread = warp.thread();
                let (x, y) = (thread % TILE, thread / TILE);
                let sum = &mut sums[warp.index() as usize];
                for k in 0..TILE.min(terms - base) {
                    let product = warp.load_shared(&a, y * TILE + k) * warp.load_shared(&b, x + k * TILE);
                    *sum = warp.compute(ComputeClass::Fp32, 1, *sum + product);
                }
            });
            cta.barrier();
        }
        cta.each_warp(|warp| {
            let thread = warp.thread();
            let (x, y) = (thread % TILE + first, thread / TILE);
            let sum = sums[warp.index() as usize];
            warp.when(x.lt(columns) & y.lt(CHANNELS), |warp| {
                let bias = warp.load(self.bias, y);
                let sum = warp.compute(ComputeClass::Fp32, 1, sum + bias);
                warp.store(self.output, y * columns + x, sum);
            });
        });
    }

    /// Loads the tiles for 16 terms starting at `base`, with zeros beyond the last term.
    fn stage(
        &self,
        warp: &mut tombolo_workload::simt::Warp<'_>,
        (a, b): (&mut Shared<f32>, &mut Shared<f32>),
        first: i32,
        base: i32,
    ) {
        let (terms, columns) =
            (self.unfolding.filter * self.unfolding.filter, self.unfolding.field * self.unfolding.field);
        let thread = warp.compute(ComputeClass::Int, 8 + DIVISION / 4, warp.thread());
        let (x, y) = (thread % TILE, thread / TILE);
        let (mut weight, mut value) = (Lanes::all(0.0), Lanes::all(0.0));
        warp.when(y.lt(CHANNELS) & x.lt(terms - base), |warp| {
            let loaded = warp.load(self.weights, y * terms + x + base);
            weight = warp.update(weight, loaded);
        });
        warp.when(y.lt(terms - base) & x.lt(columns - first), |warp| {
            let loaded = warp.load(self.unfolding.columns, (y + base) * columns + x + first);
            value = warp.update(value, loaded);
        });
        warp.store_shared(a, y * TILE + x, weight);
        warp.store_shared(b, y * TILE + x, value);
    }
}

impl Instance for Conv2dLayer {
    fn fill(&self, memory: &Memory) {
        self.unfolding.fill(memory);
        memory.fill(self.weights, |index| noise::unit(!self.seed, index));
        memory.fill(self.bias, |index| noise::unit(self.seed ^ 1, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.unfolding.input);
        host.copy_to_device(self.weights);
        host.copy_to_device(self.bias);
        self.unfolding.launch(host)?;
        let columns = (self.unfolding.field * self.unfolding.field) as u64;
        let grid = Grid::new("product", columns.div_ceil(TILE as u64), (TILE * TILE) as u32);
        host.launch(grid.shared_bytes(2 * 4 * (TILE * TILE) as u32), |cta| self.product(cta))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (weights, bias) = (memory.to_vec(self.weights), memory.to_vec(self.bias));
        let unfolded = self.unfolding.expected();
        let terms = (self.unfolding.filter * self.unfolding.filter) as usize;
        let columns = unfolded.len() / terms;
        let expected = (0..CHANNELS as usize * columns).map(|at| {
            let (channel, column) = (at / columns, at % columns);
            let term = |sum: f32, k: usize| sum + weights[channel * terms + k] * unfolded[k * columns + column];
            (0..terms).fold(0.0, term) + bias[channel]
        });
        // Rows beyond the channels contain only zeros.
        let rest = self.output.len() as usize - CHANNELS as usize * columns;
        compare("output", memory.to_vec(self.output), expected.chain(std::iter::repeat_n(0.0, rest)), 1e-5)
    }
}
