//! A small network with three layers: a 5 × 5 convolution, maxima over 3 × 3 windows, a fully connected layer.
//!
//! DNNMark's composed model, with the images from CPElide's Table II in place of 32 × 32 pixels. An image with 3 × 128²
//! pixels becomes 32 × 128² sums, then 32 × 63² maxima, then 32 outputs. The fully connected layer has 32 × 127,008
//! weights, 15.5 of the 26 MiB; four images share the weights.
//!
//! The layer's product has a single tile of outputs and very many terms, so CTAs divide the terms, and a last kernel
//! adds the partial sums. cuBLAS does the same (`splitKreduce_kernel`); MIOpen's method is not known to us.

use super::convolution::{Convolution, ConvolutionShape, Epilogue, Filter};
use super::gemm::TILE_32X32;
use super::product::{Factor, Product};
use crate::prelude::*;
use crate::reference::compare;

/// The convolution's filter. Source: DNNMark, config_example/composed_model_config.dnnmark, `conv1`.
const FILTER: Filter = Filter { side: 5, stride: 1, padding: 2 };
/// Side length of a window. Source: DNNMark, composed_model_config, `pool1`.
const WINDOW: u32 = 3;
/// Distance between windows in pixels. Source: DNNMark, composed_model_config, `pool1`.
const STRIDE: u32 = 2;
/// Threads per CTA in kernels with an element per thread. Source: assumed, the usual choice.
const THREADS: u32 = 256;
/// Channels and outputs are multiples of this number, for complete vectors of four.
const VECTOR: u64 = 4;

/// Source of the layers' sizes.
const COMPOSED: &str = "DNNMark in gem5-resources, composed_model_config.dnnmark (`num_output`)";

program! {
    /// convolution, maxima of windows, fully connected layer: each reads once what the one before wrote
    pub(crate) static CNN = "cnn",
        "DNNMark (shidong-ai/DNNMark; gem5/gem5-resources, src/gpu/DNNMark); CPElide, Table II (CNN)";
    properties: nonlinear, data_independent;
    parameters {
        /// images, at scale 1; scales by the root
        batch: count(1..=1 << 12) = 4, "CPElide, Table II (CNN: BS 4)";
        /// rows and columns of an image
        side: count(3..=1 << 10) = 128, "CPElide, Table II (CNN: 128x128x3)";
        /// channels of an image; scales by the root
        inputs: count(1..=1 << 12) = 3, "CPElide, Table II (CNN: 128x128x3)";
        /// channels of the convolution, rounded down to a multiple of 4; scales by the root
        channels: count(1..=1 << 12) = 32, COMPOSED;
        /// outputs of the last layer, rounded down to a multiple of 4; scales by the root
        outputs: count(1..=1 << 14) = 32, COMPOSED;
        /// parts in which CTAs share the terms of the last layer; at most one for each 32 of them
        splits: count(1..=1 << 12) = 128, "assumed: half as many CTAs as the four chiplets have compute units";
    }
    lay_out(name, request, memory) {
        let root = |request: &Request, name| request.scale.side_of(request.values.count(name));
        let vectors = |request: &mut Request, name| {
            let wanted = root(request, name);
            let whole = (wanted / VECTOR * VECTOR).max(VECTOR);
            request.fit(name, wanted, whole, "whole multiples of 4, rounded down, at least 4") as u32
        };
        let (channels, outputs) = (vectors(request, "channels"), vectors(request, "outputs"));
        let (batch, inputs) = (root(request, "batch") as u32, root(request, "inputs") as u32);
        let side = side as u32;
        let shape = ConvolutionShape { batch, groups: 1, inputs, outputs: channels, side, filter: FILTER, tile: None };
        shape.check().map_err(|message| WorkloadError::Shape { workload: name, message })?;
        let features = u64::from(channels) * u64::from(pooled_side(side)).pow(2);
        check_indices(name, u64::from(outputs) * features, "weights")?;
        let slabs = features.div_ceil(u64::from(TILE_32X32.depth));
        let splits = request.fit_most("splits", splits, slabs);
        let results = u64::from(batch) * u64::from(outputs);
        check_indices(name, splits * results, "sums")?;
        let mut scaled = |name, elements| memory.array(name, elements, Scaling::Scales);
        let [input, filters, convolved] = shape.elements();
    }
    struct Network {
        convolution: Convolution = Convolution {
            shape,
            input: scaled("input", input),
            weights: scaled("filters", filters),
            output: scaled("convolved", convolved),
            after: Epilogue::Nothing,
        },
        /// `batch × channels × pooled side × pooled side`.
        pooled: Array<f32> = scaled("pooled", u64::from(batch) * features),
        /// `outputs × features`.
        weights: Array<f32> = scaled("weights", u64::from(outputs) * features),
        /// `splits × batch × outputs`: sums over each part of the terms.
        parts: Array<f32> = scaled("parts", splits * results),
        /// `batch × outputs`.
        output: Array<f32> = scaled("output", results),
        outputs, splits: u32,
        seed: u64 = request.seed,
    }
}

/// Rows and columns in the array of maxima for images with the given side length.
fn pooled_side(side: u32) -> u32 {
    (side - WINDOW) / STRIDE + 1
}

impl Network {
    /// Elements per image read by the last layer.
    fn features(&self) -> u32 {
        self.convolution.shape.outputs * pooled_side(self.convolution.shape.side).pow(2)
    }

    /// Launches `kernel(warp, element)` with an element per thread.
    fn each(
        &self,
        host: &mut Host<'_>,
        name: &str,
        elements: u64,
        kernel: impl Fn(&mut Warp<'_>, Lanes<i32>) + Sync,
    ) -> Result<(), RecordError> {
        host.launch(Grid::new(name, elements.div_ceil(u64::from(THREADS)), THREADS), |cta| {
            cta.each_warp(|warp| {
                let element = warp.compute(ComputeClass::Int, 2, warp.global_thread());
                warp.when(element.lt(elements as i32), |warp| kernel(warp, element));
            });
        })
    }

    /// Computes the maximum in a window.
    fn pool(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let (side, pooled) = (self.convolution.shape.side as i32, pooled_side(self.convolution.shape.side) as i32);
        let (map, within) = (element / (pooled * pooled), element % (pooled * pooled));
        let (y, x) = (within / pooled * STRIDE as i32, within % pooled * STRIDE as i32);
        let corner = warp.compute(ComputeClass::Int, 2 * DIVISION + 4, (map * side + y) * side + x);
        let mut largest = Lanes::all(f32::NEG_INFINITY);
        for row in 0..WINDOW as i32 {
            for column in 0..WINDOW as i32 {
                let at = warp.compute(ComputeClass::Int, ADDRESS, corner + (row * side + column));
                largest = largest.max(warp.load(self.convolution.output, at));
            }
        }
        let largest = warp.compute(ComputeClass::Fp32, (WINDOW * WINDOW) as u16, largest);
        warp.store(self.pooled, element, largest);
    }

    /// The product with sums over each part of the terms.
    fn product(&self) -> Product {
        let features = self.features();
        Product {
            rows: self.outputs,
            columns: self.convolution.shape.batch,
            terms: features,
            left: Factor::by_line(self.weights, 0, features),
            right: Factor::by_line(self.pooled, 0, features),
            output: self.parts,
            first: 0,
            adds: false,
            splits: self.splits,
            tile: TILE_32X32,
        }
    }

    /// Adds up an output's partial sums.
    fn sum(&self, warp: &mut Warp<'_>, element: Lanes<i32>) {
        let mut sum = Lanes::all(0.0);
        for part in 0..self.splits as i32 {
            let at = warp.compute(ComputeClass::Int, ADDRESS, element + part * self.output.len() as i32);
            let term = warp.load(self.parts, at);
            sum = warp.compute(ComputeClass::Fp32, 1, sum + term);
        }
        warp.store(self.output, element, sum);
    }

    fn verify_pooling(&self, memory: &Memory) -> Result<(), String> {
        let (convolved, pooled) = (memory.to_vec(self.convolution.output), memory.to_vec(self.pooled));
        let side = self.convolution.shape.side as usize;
        let across = pooled_side(side as u32) as usize;
        for (at, found) in pooled.into_iter().enumerate() {
            let (map, y, x) = (at / (across * across), at / across % across, at % across);
            let rows = (0..WINDOW as usize).map(|row| (map * side + y * STRIDE as usize + row) * side);
            let window = rows.flat_map(|row| &convolved[row + x * STRIDE as usize..][..WINDOW as usize]);
            let expected = window.copied().fold(f32::NEG_INFINITY, f32::max);
            if found != expected {
                return Err(format!("maximum ({y}, {x}) of map {map} is {found}, expected {expected}"));
            }
        }
        Ok(())
    }

    fn verify_output(&self, memory: &Memory) -> Result<(), String> {
        let (pooled, weights) = (memory.to_vec(self.pooled), memory.to_vec(self.weights));
        let (features, outputs) = (self.features() as usize, self.outputs as usize);
        for (at, found) in memory.to_vec(self.output).into_iter().enumerate() {
            let (image, output) = (at / outputs, at % outputs);
            let terms = pooled[image * features..][..features].iter().zip(&weights[output * features..]);
            let products = terms.map(|(value, weight)| f64::from(*value) * f64::from(*weight));
            let (sum, magnitude) = products.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
            compare(&format!("output {output} of image {image}"), found, sum, magnitude)?;
        }
        Ok(())
    }
}

impl Instance for Network {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.convolution.input, |index| noise::unit(self.seed, index));
        memory.fill(self.convolution.weights, |index| noise::unit(self.seed ^ 1, index));
        memory.fill(self.weights, |index| noise::unit(self.seed ^ 2, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.convolution.input);
        host.copy_to_device(self.convolution.weights);
        host.copy_to_device(self.weights);
        self.convolution.launch(host, "convolution")?;
        self.each(host, "max-pooling", self.pooled.len(), |warp, element| self.pool(warp, element))?;
        self.product().launch(host, "fully-connected")?;
        self.each(host, "fully-connected-sum", self.output.len(), |warp, element| self.sum(warp, element))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        self.convolution.verify(memory).map_err(|message| format!("convolution: {message}"))?;
        self.verify_pooling(memory)?;
        self.verify_output(memory)
    }
}
