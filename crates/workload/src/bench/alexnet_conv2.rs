//! AlexNet's second convolution as an implicit matrix product: weights × patches of the input.
//!
//! Rows of the product are output channels, columns are output pixels of all images, terms are the weights
//! of one output channel. Patches are gathered from the input as they are needed.

use super::gemm::{Piece, Tile, compare};
use super::{Instance, Request, Workload, WorkloadError};
use crate::noise;
use crate::parameter::{Kind, Parameter};
use crate::record::{Host, RecordError};
use crate::simt::{Array, ComputeClass, Cta, Grid, Lanes, Memory, Scaling, Warp};

/// Output channels × pixels of a CTA. Source: the 128 × 128 × 8 tile with 8 × 8 results a thread that cuBLAS
/// and cuDNN use for single precision (Lavin, maxDNN, 2015). Passes: for each term, a thread reads two
/// 16-byte vectors of each factor.
const TILE: Tile = Tile { rows: 128, columns: 128, depth: 8, threads: 256, passes: 32 };
/// Side of the filter. Source: Krizhevsky et al., 2012, section 3.5.
const FILTER: u32 = 5;
/// Zeros around the input, which keep the size. Source: Krizhevsky et al., 2012 (27 × 27 in and out).
const PADDING: i32 = 2;

static PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "batch",
        kind: Kind::Count { low: 1, high: 1 << 12 },
        default: "828",
        about: "images, at scale 1; scales",
        source: "HMG Table III: 812 MB (MiB) of inputs, weights and outputs in single precision",
    },
    Parameter {
        name: "groups",
        kind: Kind::Choice(&["1", "2"]),
        default: "2",
        about: "groups of channels that do not see each other",
        source: "Krizhevsky et al., 2012, section 3.5: the kernels of conv2 see one GPU's half",
    },
    Parameter {
        name: "inputs",
        kind: Kind::Count { low: 8, high: 1 << 12 },
        default: "96",
        about: "input channels, a multiple of 4 for each group",
        source: "Krizhevsky et al., 2012, section 3.5",
    },
    Parameter {
        name: "outputs",
        kind: Kind::Count { low: 2, high: 1 << 12 },
        default: "256",
        about: "output channels, a multiple of the groups",
        source: "Krizhevsky et al., 2012, section 3.5",
    },
    Parameter {
        name: "side",
        kind: Kind::Count { low: 1, high: 1 << 10 },
        default: "27",
        about: "rows and columns of an image",
        source: "Krizhevsky et al., 2012: 55 × 55 after conv1, pooled to 27 × 27",
    },
];

/// The benchmark.
pub(super) struct AlexnetConv2;

struct Layer {
    /// `batch × inputs × side × side`.
    input: Array<f32>,
    /// `outputs × inputs of a group × FILTER × FILTER`.
    weights: Array<f32>,
    /// `batch × outputs × side × side`.
    output: Array<f32>,
    batch: u32,
    groups: u32,
    inputs: u32,
    outputs: u32,
    side: u32,
    seed: u64,
}

impl Workload for AlexnetConv2 {
    fn name(&self) -> &'static str {
        "alexnet-conv2"
    }

    fn about(&self) -> &'static str {
        "convolution as an implicit matrix product: weights shared by all CTAs"
    }

    fn source(&self) -> &'static str {
        "Krizhevsky et al., 2012; HMG Table III"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn address_only(&self) -> bool {
        true
    }

    fn lay_out(&self, request: &Request, memory: &mut Memory) -> Result<Box<dyn Instance>, WorkloadError> {
        let count = |name| request.values.count(name);
        let (inputs, outputs, side) = (count("inputs"), count("outputs"), count("side"));
        let batch = request.scale.of(count("batch"));
        let groups = if request.values.text("groups") == "1" { 1 } else { 2 };
        let shape = |message| Err(WorkloadError::Shape { workload: self.name(), message });
        if !inputs.is_multiple_of(4 * groups) || !outputs.is_multiple_of(groups) {
            let allowed = format!("inputs must be a multiple of {}, outputs of {groups}", 4 * groups);
            return shape(format!("{inputs} inputs and {outputs} outputs: {allowed}"));
        }
        let largest = batch * inputs.max(outputs) * side * side;
        if largest > i32::MAX as u64 {
            return shape(format!("{largest} elements exceed 2^31 - 1"));
        }
        let weights = outputs * (inputs / groups) * u64::from(FILTER * FILTER);
        Ok(Box::new(Layer {
            input: memory.array("input", batch * inputs * side * side, Scaling::Scales),
            weights: memory.array("weights", weights, Scaling::Fixed),
            output: memory.array("output", batch * outputs * side * side, Scaling::Scales),
            batch: batch as u32,
            groups: groups as u32,
            inputs: inputs as u32,
            outputs: outputs as u32,
            side: side as u32,
            seed: request.seed,
        }))
    }
}

/// Pixels of the lanes of a warp, the same for every slab.
struct Pixels {
    /// Whether the pixel exists.
    exists: Lanes<bool>,
    /// Whether the input row under each row of the filter lies inside the image.
    rows: [Lanes<bool>; FILTER as usize],
    /// Whether the input column under each column of the filter lies inside the image.
    columns: [Lanes<bool>; FILTER as usize],
    /// Position of the pixel in the first channel of its image, in input and output.
    input: Lanes<i32>,
    output: Lanes<i32>,
}

/// The tile of one CTA.
struct Place {
    group: u32,
    /// First output channel within the group.
    channel: u32,
    pixels: Vec<Pixels>,
}

impl Layer {
    /// Pixels of an image.
    fn area(&self) -> u32 {
        self.side * self.side
    }

    /// Weights of one output channel.
    fn terms(&self) -> u32 {
        self.inputs / self.groups * FILTER * FILTER
    }

    /// Tiles of output channels of a group.
    fn channel_tiles(&self) -> u32 {
        (self.outputs / self.groups).div_ceil(TILE.rows)
    }

    fn place(&self, cta: &mut Cta<'_>) -> Place {
        let across = self.groups * self.channel_tiles();
        let (tile, first) = (cta.index() % across, cta.index() / across * TILE.columns);
        let mut pixels = Vec::new();
        cta.each_warp(|warp| {
            let pixel = warp.thread() % TILE.columns as i32 + first as i32;
            let pixel = warp.compute(ComputeClass::Int, 12, pixel);
            let (area, side) = (self.area() as i32, self.side as i32);
            let (image, y, x) = (pixel / area, pixel % area / side, pixel % area % side);
            let inside = |at: Lanes<i32>| {
                std::array::from_fn(|part| {
                    let at = at + (part as i32 - PADDING);
                    at.ge(0) & at.lt(side)
                })
            };
            let within = y * side + x;
            pixels.push(Pixels {
                exists: pixel.lt(self.batch as i32 * area),
                rows: inside(y),
                columns: inside(x),
                input: image * (self.inputs as i32 * area) + within,
                output: image * (self.outputs as i32 * area) + within,
            });
        });
        Place { group: tile / self.channel_tiles(), channel: tile % self.channel_tiles() * TILE.rows, pixels }
    }

    fn kernel(&self, cta: &mut Cta<'_>) {
        let place = self.place(cta);
        let slabs = self.terms().div_ceil(TILE.depth);
        let product = TILE.multiply(cta, slabs, |warp, slab| {
            let mut pieces = vec![self.fetch_weights(warp, &place, slab)];
            self.fetch_patches(warp, &place, slab, &mut pieces);
            pieces
        });
        cta.each_warp(|warp| {
            let pixels = &place.pixels[warp.index() as usize];
            let column = warp.thread() % TILE.columns as i32;
            let channels = self.outputs / self.groups;
            for round in 0..TILE.rounds(TILE.rows) {
                let row = TILE.row_of(warp, round);
                let channel = row + place.channel;
                let sum = (column + (row * TILE.columns) as i32).pick(&product);
                let exists = pixels.exists & Lanes::all(channel < channels);
                let map = (channel + place.group * channels) * self.area();
                let at = warp.compute(ComputeClass::Int, 2, pixels.output + map as i32);
                warp.store_if(exists, self.output, at, sum);
            }
        });
    }

    /// Four terms of one output channel for each thread.
    fn fetch_weights(&self, warp: &mut Warp<'_>, place: &Place, slab: u32) -> Piece {
        let at = warp.thread() * 4;
        let (row, depth) = (at / TILE.depth as i32, at % TILE.depth as i32);
        let channels = self.outputs / self.groups;
        let (channel, term) = (row + place.channel as i32, depth + (slab * TILE.depth) as i32);
        let exists = channel.lt(channels as i32) & term.lt(self.terms() as i32);
        let first = channel + (place.group * channels) as i32;
        let index = warp.compute(ComputeClass::Int, 2, first * self.terms() as i32 + term);
        Piece::Left { at, values: warp.load_vector_if(exists, self.weights, index) }
    }

    /// One term of one pixel for each thread, and every other term of the slab.
    fn fetch_patches(&self, warp: &mut Warp<'_>, place: &Place, slab: u32, pieces: &mut Vec<Piece>) {
        let pixels = &place.pixels[warp.index() as usize];
        let column = warp.thread() % TILE.columns as i32;
        for round in 0..TILE.rounds(TILE.depth) {
            let depth = TILE.row_of(warp, round);
            let term = depth + slab * TILE.depth;
            let (plane, y, x) = (term / (FILTER * FILTER), term / FILTER % FILTER, term % FILTER);
            let inside = pixels.rows[y as usize] & pixels.columns[x as usize];
            let exists = pixels.exists & inside & Lanes::all(term < self.terms());
            let channel = plane + place.group * self.inputs / self.groups;
            let offset = (channel * self.area()) as i32 + (y as i32 - PADDING) * self.side as i32 + x as i32 - PADDING;
            let index = warp.compute(ComputeClass::Int, 8, pixels.input + offset);
            let [value] = warp.load_vector_if(exists, self.input, index);
            pieces.push(Piece::RightOne { at: column + (depth * TILE.columns) as i32, value });
        }
    }
}

impl Instance for Layer {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.input, |index| noise::unit(self.seed, index));
        memory.fill(self.weights, |index| noise::unit(self.seed ^ 1, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.input);
        host.copy_to_device(self.weights);
        let pixel_tiles = (self.batch * self.area()).div_ceil(TILE.columns);
        let ctas = u64::from(pixel_tiles) * u64::from(self.groups * self.channel_tiles());
        let grid = Grid::new("conv2", ctas, TILE.threads).shared_bytes(TILE.shared_bytes());
        host.launch(grid, |cta| self.kernel(cta))?;
        host.copy_to_host(self.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (input, weights, output) =
            (memory.to_vec(self.input), memory.to_vec(self.weights), memory.to_vec(self.output));
        let (side, group_inputs) = (self.side as usize, (self.inputs / self.groups) as usize);
        let filter = FILTER as usize;
        for (at, found) in output.iter().enumerate() {
            let (x, y) = (at % side, at / side % side);
            let (channel, image) =
                (at / (side * side) % self.outputs as usize, at / (side * side * self.outputs as usize));
            let first = channel / (self.outputs / self.groups) as usize * group_inputs;
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for term in 0..group_inputs * filter * filter {
                let (plane, row, column) = (term / (filter * filter), term / filter % filter, term % filter);
                let (from_y, from_x) = ((y + row).wrapping_sub(2), (x + column).wrapping_sub(2));
                if from_y < side && from_x < side {
                    let map = image * self.inputs as usize + first + plane;
                    let value = f64::from(input[(map * side + from_y) * side + from_x]);
                    let product = value * f64::from(weights[channel * self.terms() as usize + term]);
                    sum += product;
                    magnitude += product.abs();
                }
            }
            let what = format!("pixel ({y}, {x}) of channel {channel} of image {image}");
            compare(&what, *found, sum, magnitude)?;
        }
        Ok(())
    }
}
