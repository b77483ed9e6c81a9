//! A convolution as an implicit matrix product: weights × patches of the input.
//!
//! Rows in the product are output channels, columns are output pixels of all images, and terms are the weights for an
//! output channel. At a scale, channels and images each shrink by the scale's square root, and weights keep their ratio
//! to caches and directories just like images; arithmetic then falls faster than bytes. Patches are gathered from the
//! input on demand. Weights are read in storage order, channel by channel: 32 bytes per channel and slab. Source: the
//! `nn`, neither factor transposed, in the names of cuDNN's kernels (`volta_scudnn_128x128_relu_interior_nn_v1`).

use super::gemm::{
    FactorSide, FetchedPiece, FetchedValues, TILE_48X64, TILE_64X64, TILE_64X128, TILE_128X128, TileShape,
};
use crate::prelude::*;
use crate::reference::compare;
use std::ops::Range;
use tombolo_workload::scale::Scale;

/// Shape of a convolution on square images with square filters.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConvolutionShape {
    pub(super) batch: u32,
    /// Number of mutually independent channel groups.
    pub(super) groups: u32,
    /// Input channels, a multiple of the groups.
    pub(super) inputs: u32,
    /// Output channels, a multiple of the groups.
    pub(super) outputs: u32,
    /// Number of rows and columns in an input image.
    pub(super) side: u32,
    pub(super) filter: Filter,
    /// Tile per CTA, if the shape prescribes a tile.
    pub(super) tile: Option<TileShape>,
}

/// Size and movement of a filter over an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    /// Number of rows and columns.
    pub(super) side: u32,
    /// Distance between consecutive positions, in pixels.
    pub(super) stride: u32,
    /// Width of the zero border around the image.
    pub(super) padding: u32,
}

impl ConvolutionShape {
    /// Number of rows and columns in an output image.
    pub(super) fn out_side(&self) -> u32 {
        (self.side + 2 * self.filter.padding - self.filter.side) / self.filter.stride + 1
    }

    /// Pixels per output image.
    fn out_area(&self) -> u32 {
        self.out_side() * self.out_side()
    }

    /// Weights per output channel.
    fn terms(&self) -> u32 {
        self.inputs / self.groups * self.filter.side * self.filter.side
    }

    /// Output channels per group.
    fn group_outputs(&self) -> u32 {
        self.outputs / self.groups
    }

    /// Element counts for input, weights and output.
    pub(super) fn elements(&self) -> [u64; 3] {
        let input = u64::from(self.batch) * u64::from(self.inputs) * u64::from(self.side * self.side);
        let output = u64::from(self.batch) * u64::from(self.outputs) * u64::from(self.out_area());
        [input, u64::from(self.outputs) * u64::from(self.terms()), output]
    }

    /// The shape at `scale`: images and channels shrink by the scale's square root, with channels in whole groups.
    /// Inputs, weights and outputs are each products with two scaled factors, and all three follow the scale. Side
    /// lengths and patches stay.
    pub(super) fn scaled(&self, scale: Scale) -> ConvolutionShape {
        let of_group = |channels: u32| scale.side_of(u64::from(channels / self.groups)) as u32;
        ConvolutionShape {
            batch: scale.side_of(u64::from(self.batch)) as u32,
            inputs: self.groups * of_group(self.inputs),
            outputs: self.groups * of_group(self.outputs),
            ..*self
        }
    }

    /// Checks that all sizes are compatible and small enough; an error describes the first mismatch.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_parts()?;
        match self.elements().into_iter().find(|&elements| elements > i32::MAX as u64) {
            Some(elements) => Err(format!("{elements} elements exceed 2^31 - 1")),
            None => Ok(()),
        }
    }

    /// Checks conditions required at any scale.
    fn check_parts(&self) -> Result<(), String> {
        let ConvolutionShape { groups, inputs, outputs, .. } = *self;
        if !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            return Err(format!(
                "{inputs} inputs and {outputs} outputs: both must be multiples of {groups}, the groups"
            ));
        }
        if self.side + 2 * self.filter.padding < self.filter.side {
            return Err(format!("side {} is smaller than the filter of {}", self.side, self.filter.side));
        }
        Ok(())
    }

    /// The prescribed tile, or else the tile that leaves the fewest rows empty, preferring the larger on a tie. Source:
    /// assumed, because cuDNN's choice is not published.
    fn tile(&self) -> TileShape {
        if let Some(tile) = self.tile {
            return tile;
        }
        let channels = self.group_outputs();
        let rows = |tile: TileShape| channels.next_multiple_of(tile.rows);
        if rows(TILE_64X128) < rows(TILE_128X128) { TILE_64X128 } else { TILE_128X128 }
    }
}

/// A convolution over arrays in device memory.
pub(super) struct Convolution {
    pub(super) shape: ConvolutionShape,
    /// `batch × inputs × side × side`.
    pub(super) input: Array<f32>,
    /// `outputs × inputs per group × filter × filter`.
    pub(super) weights: Array<f32>,
    /// `batch × outputs × out_side × out_side`.
    pub(super) output: Array<f32>,
    pub(super) after: Epilogue,
}

/// Operation applied to a sum before it is stored.
#[derive(Clone, Copy)]
pub(super) enum Epilogue {
    /// Stores the sum unchanged.
    Nothing,
    /// Clips negative results to zero.
    Relu,
    /// Adds the shortcut, an array with the output's shape, and clips negative results to zero.
    ShortcutRelu(Array<f32>),
}

/// Pixels in a warp's lanes, the same for every slab.
struct Pixels {
    /// True if the pixel exists.
    exists: Lanes<bool>,
    /// True if the input row under each filter row lies inside the image.
    rows: Vec<Lanes<bool>>,
    /// True if the input column under each filter column lies inside the image.
    columns: Vec<Lanes<bool>>,
    /// Input position under the filter's middle, in the image's first channel.
    input: Lanes<i32>,
    /// Output position of the pixel, in the first output channel.
    output: Lanes<i32>,
}

/// The tile of a CTA.
struct TilePosition {
    tile: TileShape,
    group: u32,
    /// First output channel within the group.
    channel: u32,
    pixels: Vec<Pixels>,
}

impl Convolution {
    /// Launches the layer's kernel for all images.
    pub(super) fn launch(&self, host: &mut Host<'_>, name: &str) -> Result<(), RecordError> {
        self.launch_images(host, name, &(0..self.shape.batch))
    }

    /// Launches the layer's kernel for a range of images.
    fn launch_images(&self, host: &mut Host<'_>, name: &str, images: &Range<u32>) -> Result<(), RecordError> {
        let (shape, tile) = (&self.shape, self.shape.tile());
        let pixel_tiles = (images.len() as u32 * shape.out_area()).div_ceil(tile.columns);
        let channel_tiles = shape.groups * shape.group_outputs().div_ceil(tile.rows);
        let ctas = u64::from(pixel_tiles) * u64::from(channel_tiles);
        host.launch(tile.grid(name, ctas), |cta| self.kernel(cta, images))
    }

    fn place(&self, cta: &mut Cta<'_>, images: &Range<u32>) -> TilePosition {
        let (shape, tile) = (&self.shape, self.shape.tile());
        let channel_tiles = shape.group_outputs().div_ceil(tile.rows);
        let across = shape.groups * channel_tiles;
        let row = cta.index() % across;
        let first = images.start * shape.out_area() + cta.index() / across * tile.columns;
        let end = (images.end * shape.out_area()) as i32;
        let mut pixels = Vec::new();
        cta.each_warp(|warp| {
            let pixel = warp.thread() % tile.columns as i32 + first as i32;
            pixels.push(self.pixels(warp.compute(ComputeClass::Int, 12, pixel), end));
        });
        TilePosition { tile, group: row / channel_tiles, channel: row % channel_tiles * tile.rows, pixels }
    }

    /// The pixels of a warp; pixels at `end` and beyond do not belong to the launch.
    fn pixels(&self, pixel: Lanes<i32>, end: i32) -> Pixels {
        let (shape, Filter { side: filter, stride, padding }) = (&self.shape, self.shape.filter);
        let (area, out_side, side) = (shape.out_area() as i32, shape.out_side() as i32, shape.side as i32);
        let (image, within) = (pixel / area, pixel % area);
        let (y, x) = (within / out_side * stride as i32, within % out_side * stride as i32);
        let inside = |at: Lanes<i32>| {
            let part = |part: u32| {
                let at = at + (part as i32 - padding as i32);
                at.ge(0) & at.lt(side)
            };
            (0..filter).map(part).collect()
        };
        Pixels {
            exists: pixel.lt(end),
            rows: inside(y),
            columns: inside(x),
            input: image * (shape.inputs as i32 * side * side) + y * side + x,
            output: image * (shape.outputs as i32 * area) + within,
        }
    }

    fn kernel(&self, cta: &mut Cta<'_>, images: &Range<u32>) {
        let place = self.place(cta, images);
        let slabs = self.shape.terms().div_ceil(place.tile.depth);
        let product = place.tile.multiply(cta, slabs, |warp, slab| {
            let mut pieces = Vec::with_capacity(place.tile.words());
            self.fetch_weights(warp, &place, slab, &mut pieces);
            self.fetch_patches(warp, &place, slab, &mut pieces);
            pieces
        });
        cta.each_warp(|warp| self.store(warp, &place, &product));
    }

    fn store(&self, warp: &mut Warp<'_>, place: &TilePosition, product: &[f32]) {
        let (shape, tile) = (&self.shape, place.tile);
        let pixels = &place.pixels[warp.index() as usize];
        let column = warp.thread() % tile.columns as i32;
        for round in 0..tile.rounds(tile.rows) {
            let row = tile.row_of(warp, round);
            let channel = row + place.channel;
            let sum = (column + (row * tile.columns) as i32).pick(product);
            let exists = pixels.exists & Lanes::all(channel < shape.group_outputs());
            let map = (channel + place.group * shape.group_outputs()) * shape.out_area();
            let at = warp.compute(ComputeClass::Int, 2, pixels.output + map as i32);
            let value = match self.after {
                Epilogue::Nothing => sum,
                Epilogue::Relu => warp.compute(ComputeClass::Fp32, 1, sum.max(Lanes::all(0.0))),
                Epilogue::ShortcutRelu(shortcut) => {
                    let [carried] = warp.load_vector_if(exists, shortcut, at);
                    warp.compute(ComputeClass::Fp32, 2, (sum + carried).max(Lanes::all(0.0)))
                }
            };
            warp.store_if(exists, self.output, at, value);
        }
    }

    /// Fetches the slab of weights: four terms of a channel per thread if every channel's weights start at a multiple
    /// of 16 bytes, otherwise term by term.
    fn fetch_weights(&self, warp: &mut Warp<'_>, place: &TilePosition, slab: u32, pieces: &mut Vec<FetchedPiece>) {
        let (shape, tile) = (&self.shape, place.tile);
        let wide = shape.terms().is_multiple_of(4);
        let each = if wide { 4 } else { 1 };
        let (channels, terms) = (shape.group_outputs() as i32, shape.terms() as i32);
        for part in 0..tile.rows * tile.depth / (tile.threads * each) {
            let at = (warp.thread() + (part * tile.threads) as i32) * each as i32;
            let (line, depth) = (at / tile.depth as i32, at % tile.depth as i32);
            let (channel, term) = (line + place.channel as i32, depth + (slab * tile.depth) as i32);
            let exists = channel.lt(channels) & term.lt(terms);
            let first = channel + place.group as i32 * channels;
            let index = warp.compute(ComputeClass::Int, 2, first * terms + term);
            let values = if wide {
                FetchedValues::Terms(warp.load_vector_if(exists, self.weights, index))
            } else {
                let [value] = warp.load_vector_if(exists, self.weights, index);
                FetchedValues::One(value)
            };
            pieces.push(FetchedPiece { side: FactorSide::Left, line, term: depth, values });
        }
    }

    /// Fetches the slab of patches: a term of a pixel per thread and round.
    fn fetch_patches(&self, warp: &mut Warp<'_>, place: &TilePosition, slab: u32, pieces: &mut Vec<FetchedPiece>) {
        let (shape, tile, Filter { side: filter, padding, .. }) = (&self.shape, place.tile, self.shape.filter);
        let pixels = &place.pixels[warp.index() as usize];
        let line = warp.thread() % tile.columns as i32;
        for round in 0..tile.rounds(tile.depth) {
            let depth = tile.row_of(warp, round);
            let term = depth + slab * tile.depth;
            let (plane, y, x) = (term / (filter * filter), term / filter % filter, term % filter);
            let inside = pixels.rows[y as usize] & pixels.columns[x as usize];
            let exists = pixels.exists & inside & Lanes::all(term < shape.terms());
            let channel = plane + place.group * shape.inputs / shape.groups;
            let under = (channel * shape.side + y) * shape.side + x;
            let offset = under as i32 - (padding * shape.side + padding) as i32;
            let index = warp.compute(ComputeClass::Int, 8, pixels.input + offset);
            let [value] = warp.load_vector_if(exists, self.input, index);
            pieces.push(FetchedPiece {
                side: FactorSide::Right,
                line,
                term: Lanes::all(depth as i32),
                values: FetchedValues::One(value),
            });
        }
    }

    /// Compares the output with a plain convolution of the input.
    pub(super) fn verify(&self, memory: &Memory) -> Result<(), String> {
        let (input, weights) = (memory.to_vec(self.input), memory.to_vec(self.weights));
        let shortcut = match self.after {
            Epilogue::ShortcutRelu(shortcut) => memory.to_vec(shortcut),
            Epilogue::Nothing | Epilogue::Relu => Vec::new(),
        };
        let (side, outputs) = (self.shape.out_side() as usize, self.shape.outputs as usize);
        for (at, found) in memory.to_vec(self.output).into_iter().enumerate() {
            let (y, x) = (at / side % side, at % side);
            let (image, channel) = (at / (side * side * outputs), at / (side * side) % outputs);
            let (mut sum, mut magnitude) = self.plain_sum(&input, &weights, (image, channel), (y, x));
            if let Some(&carried) = shortcut.get(at) {
                sum += f64::from(carried);
                magnitude += f64::from(carried).abs();
            }
            let expected = if matches!(self.after, Epilogue::Nothing) { sum } else { sum.max(0.0) };
            let what = format!("pixel ({y}, {x}) of channel {channel} of image {image}");
            compare(&what, found, expected, magnitude)?;
        }
        Ok(())
    }

    /// An output of the plain convolution, and the sum of its terms' magnitudes.
    fn plain_sum(
        &self,
        input: &[f32],
        weights: &[f32],
        (image, channel): (usize, usize),
        (y, x): (usize, usize),
    ) -> (f64, f64) {
        let (shape, filter) = (&self.shape, self.shape.filter.side as usize);
        let (side, stride, padding) =
            (shape.side as usize, shape.filter.stride as usize, shape.filter.padding as usize);
        let first = channel / shape.group_outputs() as usize * (shape.inputs / shape.groups) as usize;
        let (mut sum, mut magnitude) = (0.0, 0.0);
        for term in 0..shape.terms() as usize {
            let (plane, row, column) = (term / (filter * filter), term / filter % filter, term % filter);
            let from_y = (y * stride + row).wrapping_sub(padding);
            let from_x = (x * stride + column).wrapping_sub(padding);
            if from_y < side && from_x < side {
                let map = image * shape.inputs as usize + first + plane;
                let value = f64::from(input[(map * side + from_y) * side + from_x]);
                let product = value * f64::from(weights[channel * shape.terms() as usize + term]);
                sum += product;
                magnitude += product.abs();
            }
        }
        (sum, magnitude)
    }
}

parameters! {
    /// images, at scale 1; scales by the root
    pub(super) const BATCH = batch: count(1..=1 << 12) = 1, "none: a layer states its own";
    /// groups of channels that do not see each other
    pub(super) const GROUPS = groups: one_of(1, 2) = 1, "none: a layer states its own";
    /// input channels, a multiple of the groups; scales by the root
    pub(super) const INPUTS = inputs: count(1..=1 << 12) = 1, "none: a layer states its own";
    /// output channels, a multiple of the groups; scales by the root
    pub(super) const OUTPUTS = outputs: count(1..=1 << 12) = 1, "none: a layer states its own";
    /// rows and columns of an input image
    pub(super) const SIDE = side: count(1..=1 << 10) = 1, "none: a layer states its own";
    /// launches that share the images: mini-batches
    pub(super) const LAUNCHES = launches: count(1..=1 << 12) = 1, "assumed: a layer of a mini-batch is one launch";
    /// output channels × pixels of a CTA; auto: 128x128 or 64x128, by which leaves fewer channels empty
    pub(super) const TILE = tile: choice("auto", "128x128", "64x128", "64x64", "48x64") = "auto",
        "assumed: what cuDNN chooses is not published";
}

/// Lays out a workload with a single convolution. Its arithmetic grows with the footprint to the power of 3/2.
pub(super) fn lay_out(
    workload: &'static str,
    request: &mut Request,
    memory: &mut Memory,
    filter: Filter,
) -> Result<Box<dyn Instance>, WorkloadError> {
    let count = |name| request.values.count(name) as u32;
    let message = |message| WorkloadError::Shape { workload, message };
    let whole = ConvolutionShape {
        batch: count("batch"),
        groups: if request.values.text("groups") == "1" { 1 } else { 2 },
        inputs: count("inputs"),
        outputs: count("outputs"),
        side: count("side"),
        filter,
        tile: match request.values.text("tile") {
            "128x128" => Some(TILE_128X128),
            "64x128" => Some(TILE_64X128),
            "64x64" => Some(TILE_64X64),
            "48x64" => Some(TILE_48X64),
            _ => None,
        },
    };
    whole.check_parts().map_err(message)?;
    let shape = whole.scaled(request.scale);
    shape.check().map_err(message)?;
    let launches = request.values.count("launches");
    let each = u64::from(shape.batch).div_ceil(launches);
    let shared = u64::from(shape.batch).div_ceil(each);
    request.fit("launches", launches, shared, "equal mini-batches of the images, the last perhaps smaller");
    let [input, weights, output] = shape.elements();
    let convolution = Convolution {
        shape,
        input: memory.array("input", input, Scaling::Scales),
        weights: memory.array("weights", weights, Scaling::Scales),
        output: memory.array("output", output, Scaling::Scales),
        after: Epilogue::Nothing,
    };
    Ok(Box::new(SingleConvolution { convolution, each: each as u32, seed: request.seed }))
}

struct SingleConvolution {
    convolution: Convolution,
    /// Images per launch; the last launch may have fewer.
    each: u32,
    seed: u64,
}

impl Instance for SingleConvolution {
    fn fill(&self, memory: &Memory) {
        memory.fill(self.convolution.input, |index| noise::unit(self.seed, index));
        memory.fill(self.convolution.weights, |index| noise::unit(self.seed ^ 1, index));
    }

    fn run(&self, host: &mut Host<'_>) -> Result<(), RecordError> {
        host.copy_to_device(self.convolution.input);
        host.copy_to_device(self.convolution.weights);
        let batch = self.convolution.shape.batch;
        for first in (0..batch).step_by(self.each as usize) {
            self.convolution.launch_images(host, "convolution", &(first..(first + self.each).min(batch)))?;
        }
        host.copy_to_host(self.convolution.output);
        Ok(())
    }

    fn verify(&self, memory: &Memory) -> Result<(), String> {
        self.convolution.verify(memory)
    }
}
